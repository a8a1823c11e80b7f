"""What this book adds to Sphinx. Each module says why it exists; `setup` connects them."""

from sphinx_ext import assets, downloads, execution, formulas, pages, site, status


def setup(app):
    for part in (execution, status, formulas, assets, pages, downloads, site):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
