"""What each page costs to run: the tables of back/status.md.

The first is measured while the build runs the pages. Nothing that executes notebooks reports their memory.
So every kernel of the build gets a start-up file that leaves its time and its peak memory behind when the
kernel ends, next to the cached outputs: as long as those are reused, so are the numbers. The second is read
from a file that tests/browser/test_notebooks.py wrote when it ran the chapters in Binder's environment.
"""

import json
import os
import platform
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PACKAGES = ("torch", "matplotlib", "seaborn", "ipywidgets", "anywidget", "jupyter-book", "sphinx")
OF_BINDER = ("torch", "ipywidgets", "anywidget", "jupyterlab", "notebook", "jupytext")
MACHINE = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"

START_UP = '''"""Leave this kernel's time and peak memory behind when it ends."""


def measure():
    import atexit, json, os, pathlib, sys, time

    start = time.monotonic()

    def leave():
        try:
            import resource
        except ImportError:  # Windows
            return
        unit = 1 if sys.platform == "darwin" else 1024
        peak = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        file = pathlib.Path(os.environ["BOOK_COSTS"], os.environ["BOOK_PAGE"] + ".json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seconds": time.monotonic() - start, "peak": peak}))

    atexit.register(leave)


measure()
del measure
'''


def prepare(app, config):
    """Give the build's kernels the start-up file (after execution.py has named the cache)."""
    folder = Path(config.nb_execution_cache_path)
    start_up = folder / "ipython" / "profile_default" / "startup" / "00-costs.py"
    start_up.parent.mkdir(parents=True, exist_ok=True)
    start_up.write_text(START_UP, "utf-8")
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    os.environ["BOOK_COSTS"] = str(folder / "costs")


def name_page(app, docname, source):
    """Tell the next kernel whose cells it runs: a page is executed right after it is read."""
    os.environ["BOOK_PAGE"] = docname


def costs(docname):
    """Seconds and bytes that the page's kernel took, or None for a page without cells."""
    file = Path(os.environ["BOOK_COSTS"], f"{docname}.json")
    return json.loads(file.read_text("utf-8")) if file.exists() else None


class PageCosts(nodes.General, nodes.Element):
    """Stands where the tables go, until all pages have run."""


class PageCostsDirective(SphinxDirective):
    """The tables of this build; with an argument, those of a file of measurements beside the page."""

    optional_arguments = 1

    def run(self):
        self.env.metadata[self.env.docname]["page-costs"] = True
        node = PageCosts()
        if self.arguments:
            node["measured"] = self.env.relfn2path(self.arguments[0])[1]
        return [node]


def rewrite(app, env):
    """The tables speak of other pages, so their page is written in every build."""
    return [docname for docname, fields in env.metadata.items() if "page-costs" in fields]


def fill(app, doctree, docname):
    for node in list(doctree.findall(PageCosts)):
        tables = of_binder(app.env, node["measured"]) if "measured" in node else of_build(app.env)
        node.replace_self(tables)


def of_build(env):
    pages = [(env.titles[page].astext(), costs(page)) for page in ordered(env)]
    measured = [
        (title, f"{cost['seconds']:.0f} s", megabytes(cost["peak"]))
        for title, cost in pages
        if cost
    ]
    versions = [("Python", platform.python_version())]
    versions += [(name, metadata.version(name)) for name in PACKAGES]
    return [
        table(("Page", "Run time", "Peak memory"), measured),
        table(("Part", "Version of this build"), [*versions, ("machine", MACHINE)]),
    ]


def of_binder(env, file):
    found = json.loads(Path(file).read_text("utf-8"))
    chapters = [
        (env.titles[page].astext(), f"{cost['seconds']:.0f} s", megabytes(cost["peak_bytes"]))
        for name, cost in found["chapters"].items()
        if (page := f"chapters/{name}") in env.titles
    ]
    largest = max(cost["peak_bytes"] for cost in found["chapters"].values())
    whole = [
        ("Installed packages", f"{found['installed_bytes'] / 1e9:.1f} GB"),
        ("From start to the first page of JupyterLab", f"{found['start_seconds']:.0f} s"),
        ("The JupyterLab server, peak memory", megabytes(found["server_bytes"])),
        ("One student: that server and the largest chapter", megabytes(found["server_bytes"] + largest)),
        *found["versions"].items(),
        ("machine", found["machine"]),
        ("measured on", found["date"]),
    ]  # fmt: skip
    return [
        table(("Chapter", "Run time", "Peak memory"), chapters),
        table(("Part", "As measured"), whole),
    ]


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


def ordered(env):
    """All pages in the order of the table of contents."""
    root = env.config.root_doc
    listed = [root]
    for docname in listed:
        listed += [page for page in env.toctree_includes.get(docname, []) if page not in listed]
    return listed


def table(head, rows):
    def row(cells):
        return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))

    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
    group += nodes.thead("", row(head))
    group += nodes.tbody("", *map(row, rows))
    return nodes.table("", group)


def setup(app):
    app.add_node(PageCosts)
    app.add_directive("page-costs", PageCostsDirective)
    app.connect("config-inited", prepare, priority=600)
    app.connect("source-read", name_page)
    app.connect("env-updated", rewrite)
    app.connect("doctree-resolved", fill)
