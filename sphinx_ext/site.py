"""The site around the text: templates, addresses, the 404 page. It needs no host but its own, and no script to be read.

The stock theme loads 848 kB a page (an icon font and its script, Bootstrap, the search index), and its inline scripts forbid a strict
Content-Security-Policy. templates/layout.html is the whole shell instead, _static/book.css its look, static/book.js the little it does.
"""

import base64
import hashlib
import re
from pathlib import Path

from docutils import nodes

from sphinx_ext import downloads, repository

HERE = Path(__file__).parent

# What others write into a page that keeps a reader with a screen reader from it.
MENDED = {
    'role="doc-biblioentry"': 'role="listitem"',  # Sphinx: deprecated, and not what a list holds
    ' aria-label="Toggle hidden content"': "",  # myst-nb: hides the words that are there
}

# Drawn for this book on a 24 × 24 grid, as strokes.
ICONS = {
    "menu": '<path d="M4 7h16M4 12h16M4 17h16"/>',
    "search": '<circle cx="11" cy="11" r="6"/><path d="m20 20-4.6-4.6"/>',
    "notebook": '<rect x="5" y="3.5" width="14" height="17" rx="2"/><path d="M9 3.5v17M12.5 8h3.5M12.5 12h3.5"/>',
    "run": '<path d="M7 4.8v14.4L19 12z"/>',
    "download": '<path d="M12 4v11m-4.5-4 4.5 4.5L16.500 11M5 19.500h14"/>',
    "edit": '<path d="M4.500 19.500 6 14.500 15.500 5l3.500 3.500L9.500 18z"/>',
    "source": '<path d="m8.500 7-5 5 5 5m7-10 5 5-5 5"/>',
    "auto": '<circle cx="12" cy="12" r="8"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/>',
    "light": '<circle cx="12" cy="12" r="4"/><path d="M12 3v2m0 14v2M3 12h2m14 0h2M5.600 5.600 7 7m10 10 1.400 1.400M5.600 18.400 7 17M17 7l1.400-1.400"/>',
    "dark": '<path d="M19.500 14.500A8 8 0 0 1 9.500 4.500a8 8 0 1 0 10 10z"/>',
}

NOT_FOUND_STYLE = """
:root { color-scheme: light dark; font: 1.1rem/1.6 system-ui, sans-serif; }
body { margin: 0; display: grid; min-height: 100vh; place-items: center; background: light-dark(#fff, #14181d); color: light-dark(#1d2733, #dfe5ea); }
main { padding: 2rem; max-width: 32rem; }
a { color: light-dark(#0b5c8a, #8cc8f0); }
"""
# Without a known address of the site: the nearest folder above that holds a book. (The address itself says nothing of its depth.)
NOT_FOUND_SCRIPT = """
(async () => {
  const home = document.getElementById("home");
  if (!home.hidden) return;
  for (let path = location.pathname; path.includes("/"); path = path.slice(0, path.lastIndexOf("/"))) {
    const root = path.slice(0, path.lastIndexOf("/") + 1);
    const answer = await fetch(root + "searchindex.js", { method: "HEAD" }).catch(() => null);
    if (answer?.ok) {
      home.firstElementChild.href = root;
      home.hidden = false;
      return;
    }
  }
})();
"""


def csp_hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


NOT_FOUND = {
    "style": NOT_FOUND_STYLE,
    "style_hash": csp_hash(NOT_FOUND_STYLE),
    "script": NOT_FOUND_SCRIPT,
    "script_hash": csp_hash(NOT_FOUND_SCRIPT),
}


def describe(doctree, otherwise):
    """The first paragraph of some length, at most 200 characters."""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join(paragraph.astext().split())
        if len(text) > 60:
            return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
    return otherwise


def sections(toc):
    """The list of a page's sections, without the page itself."""
    match = re.search(r"</a>(<ul>.*</ul>)\s*</li>\s*</ul>", toc or "", re.DOTALL)
    return match.group(1) if match else ""


def complete(app, pagename, templatename, context, doctree):
    """What layout.html asks for."""
    pathto, root = context["pathto"], app.config.root_doc
    known = app.config.html_context["repository"]
    has_cells = pagename in downloads.pages_with_cells(app.env)

    def asset(name):
        """Address of a file in _static that changes when the file does."""
        content = (Path(app.outdir) / "_static" / name).read_bytes()
        return f"{pathto('_static/' + name, 1)}?v={hashlib.sha256(content).hexdigest()[:8]}"

    chapters = context["toctree"](includehidden=True, collapse=False, titles_only=True, maxdepth=1)
    page_file = "" if pagename == root else pagename + ".html"
    notebook = f"{downloads.FOLDER}/{downloads.name(pagename)}" if has_cells else None
    in_repository = (
        repository.links(known, app.env.doc2path(pagename, base=False), downloads.name(pagename))
        if doctree
        else {}
    )
    context["body"] = context.get("body", "")
    for fault, repair in MENDED.items():
        context["body"] = context["body"].replace(fault, repair)
    context.update(
        asset=asset,
        icons=ICONS,
        not_found=NOT_FOUND,
        author=app.config.author,
        description=describe(doctree, app.config.html_title),
        root_url=known["site"],
        page_url=known["site"] + page_file if known["site"] and doctree else "",
        preview_url=known["site"] + "_static/preview.png"
        if known["site"]
        else pathto("_static/preview.png", 1),
        chapters=chapters.replace(' role="heading"', ""),  # Sphinx gives a caption no level
        page_sections=sections(context.get("toc")) if doctree else "",
        has_explorer='class="attn-explorer"' in context["body"],
        notebook=notebook,
        notebooks_zip=f"{downloads.FOLDER}/{downloads.ARCHIVE}",
        launch=in_repository,
    )


def prepare(app, config):
    config.html_theme_options = {}  # Jupyter Book sets those of another theme
    config.templates_path.append(str(HERE / "templates"))
    config.html_additional_pages = {"404": "404.html"}
    config.html_context = {**config.html_context, "repository": repository.find(app.srcdir)}


def publish(app, exception):
    if exception:
        return
    out = Path(app.outdir)
    (out / ".nojekyll").touch()  # or GitHub Pages leaves out every folder that begins with _
    pages = {f"{page}.html" for page in app.env.found_docs} | {
        "index.html",
        "search.html",
        "404.html",
    }
    for file in out.rglob("*.html"):  # Sphinx keeps the page of a chapter that is gone
        if file.relative_to(out).as_posix() not in pages:
            file.unlink()


def setup(app):
    app.connect("config-inited", prepare)
    app.connect("html-page-context", complete)
    app.connect("build-finished", publish)
