"""The build does not lie: a fault fails it, from nothing and on top of the last build; a change reaches the page.

Each test builds a book of one or two short pages with the book's own settings, extension and build script.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml

from tools.setup import ROOT

FRONT = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
    format_version: 0.13
    jupytext_version: 1.16.0
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
INDEX = f"""{FRONT}(index)=
# A tiny book

A paragraph long enough to be the description of this page, with a formula $x^2$.

```{{code-cell}} ipython3
from tiny import word
print("the word is", word)
```
"""


class Book:
    """A folder with a book, and what came of its last build."""

    def __init__(self, folder):
        self.folder, self.html = folder, folder / "_build" / "html"
        settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
        settings["sphinx"]["local_extensions"] = {"sphinx_ext": str(ROOT)}
        self.write("_config.yml", yaml.safe_dump(settings))
        self.write("_toc.yml", "format: jb-book\nroot: index\n")
        self.write("index.md", INDEX)
        self.write("references.bib", (ROOT / "references.bib").read_text(encoding="utf-8"))
        self.write("requirements.txt", "# What the chapters run\ntorch==2.13.0\n\n")
        shutil.copytree(ROOT / "_static", folder / "_static")
        self.write("attn_helpers/tiny.py", "")  # stands for the helpers: any of their files counts
        self.write("tiny.py", "word = 'first'\n")
        self.write("attn_helpers/static/explorer.js", "// first\n")

    def write(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def add(self, text):
        """Put text at the end of the page."""
        self.write("index.md", INDEX + text)

    def build(self, *options, **environment):
        """Run the build script; return its exit status."""
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / "build_book.py", "--source", self.folder, *options],
            env={**os.environ, "BOOK_REPOSITORY": "", "GITHUB_REPOSITORY": "", **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.said = done.stdout + done.stderr
        self.last = done.stdout.strip().splitlines()[-1]
        return done.returncode

    def page(self, name="index.html"):
        return (self.html / name).read_text(encoding="utf-8")

    def published(self):
        """All text below the site's folder."""
        files = [f for f in self.html.rglob("*") if f.suffix in (".html", ".js", ".log", ".txt")]
        return "\n".join(f.read_text(encoding="utf-8", errors="replace") for f in files)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A book that was built without a fault. Copied, never changed."""
    folder = tmp_path_factory.mktemp("built") / "book"
    folder.mkdir()
    book = Book(folder)
    # attn_helpers is a bare folder here; the explorers' script comes from the installed package.
    assert book.build() == 0, book.said
    return book


@pytest.fixture
def book(built, tmp_path):
    """A copy of the built book, with its last build."""
    copy = object.__new__(Book)
    copy.folder = tmp_path / "book"
    copy.html = copy.folder / "_build" / "html"
    shutil.copytree(built.folder, copy.folder, symlinks=True)
    return copy


def test_a_good_book(built):
    assert "the word is first" in built.page()
    assert 'class="katex"' in built.page()
    # A full stop stays on the line of its formula.
    assert re.search(r'<span class="nowrap"><span class="math">.*?</span>\.</span>', built.page())
    assert built.last.startswith("The book is built")
    assert (built.html / ".nojekyll").exists()


def test_a_cell_that_raises_fails_the_build(book):
    book.add('\n```{code-cell} ipython3\nraise RuntimeError("boom")\n```\n')
    for options in ([], [], ["--clean"]):  # on top of the last build, once more, from nothing
        assert book.build(*options) != 0
        assert "boom" in book.said
        assert book.last.startswith("The book was not built. First fault: ")
        assert "Traceback" not in book.published() and "boom" not in book.published()
    book.add("")
    assert book.build() == 0, book.said


WARNINGS = {  # what is written, what the build says of it
    '```{code-cell} ipython3\nimport warnings; warnings.warn("hm")\n```': "stderr was found",
    "See {ref}`nowhere`.": "nowhere",
    "See {eq}`nothing`.": "nothing",
    "Here $\\frac{1$ is wrong.": "formula not understood",
    "Here $ü$ is what KaTeX is not sure of.": "unicodeTextInMathMode",
    "![](_static/logo.svg)": "picture without alt text",
    "{cite:p}`nobody1900`": "nobody1900",
    "```{parsed-literal}\nx\n```": "{parsed-literal} has no form in a notebook",
}


def test_a_mere_warning_fails_the_build_again_and_again(book):
    book.add("\n" + "\n\n".join(WARNINGS) + "\n")
    for options in ([], [], ["--clean"]):
        assert book.build(*options) != 0
        for warning in WARNINGS.values():
            assert warning in book.said, (options, warning)
        assert "UserWarning" not in book.published(), "what goes to stderr reaches no page"


@pytest.mark.parametrize("written", ["See {ref}`nowhere`.", "Here $\\frac{1$ is wrong."])
def test_one_warning_is_enough(book, written):
    """One that Sphinx finds while it resolves links, one found while a page is written."""
    book.add(f"\n{written}\n")
    assert book.build() != 0
    assert book.build() != 0, "on top of the last build"
    assert book.last.startswith("The book was not built. First fault: ")


def test_what_the_pages_depend_on_reaches_them(book):
    """A module that cells import, outside of attn_helpers, is nobody's business; attn_helpers is."""
    book.write("tiny.py", "word = 'second'\n")
    assert book.build() == 0
    assert "the word is first" in book.page(), "an unchanged page keeps its outputs"
    book.write("attn_helpers/tiny.py", "# changed\n")
    assert book.build() == 0
    assert "the word is second" in book.page()
    book.write("tiny.py", "word = 'third'\n")
    book.write("requirements.txt", "# What the chapters run\ntorch==2.13.0\nnumpy\n\n")
    assert book.build() == 0
    assert "the word is third" in book.page()
    book.write("tiny.py", "word = 'fourth'\n")
    book.write("attn_helpers/static/words.json", "{}")
    assert book.build() == 0
    assert "the word is fourth" in book.page()


def test_the_look_reaches_the_pages(book):
    """The style sheet, and the explorers' script, without a change of any chapter."""
    before = book.page()
    book.write("_static/book.css", "body { color: red }\n")
    assert book.build() == 0
    assert (book.html / "_static" / "book.css").read_text() == "body { color: red }\n"
    assert book.page() != before, "the address of the style sheet changes with it"
    stamps = {f.name for f in (book.folder / "_build" / "assets").iterdir()}
    book.write("attn_helpers/static/explorer.js", "// second\n")
    assert book.build() == 0
    assert {f.name for f in (book.folder / "_build" / "assets").iterdir()}.isdisjoint(stamps)


def test_a_page_that_is_gone_is_gone(book):
    book.write("_toc.yml", "format: jb-book\nroot: index\nchapters:\n- file: other\n")
    book.write("other.md", "(other)=\n# Another page\n\nText.\n")
    assert book.build() == 0, book.said
    assert (book.html / "other.html").exists()
    book.write("_toc.yml", "format: jb-book\nroot: index\n")
    (book.folder / "other.md").unlink()
    assert book.build() == 0, book.said
    assert not (book.html / "other.html").exists()


def test_links_follow_the_repository(book):
    assert "mybinder" not in book.page() and "github.com" not in book.page()
    assert book.build(BOOK_REPOSITORY="someone/fork", BOOK_BRANCH="draft") == 0, book.said
    page = book.page()
    assert 'href="https://mybinder.org/v2/gh/someone/fork/draft?urlpath=lab/tree/index.md"' in page
    assert 'href="https://github.com/someone/fork/edit/draft/index.md"' in page
    assert "colab.research.google.com/github/someone/fork/blob/notebooks/index.ipynb" in page
    assert 'content="https://someone.github.io/fork/_static/preview.png"' in page
    notebook = (book.html / "notebooks" / "index.ipynb").read_text()
    assert "https://github.com/someone/fork/archive/draft.zip" in notebook
    assert book.build() == 0
    assert "mybinder" not in book.page(), "and go when it is no longer known"


def test_without_solutions(book):
    """For a class: no solution, in the page or in its notebook, and no link to one."""
    book.add(WORDS)
    alone = ["--only", book.folder / "index.md"]
    assert book.build(*alone) == 0 and 'class="solution"' in book.page(), book.said
    assert book.build(*alone, BOOK_SOLUTIONS="0") == 0, book.said
    assert "2 * 2" not in book.published() and "#solution-" not in book.page()
    assert "2 * 2" not in (book.html / "notebooks" / "index.ipynb").read_text()
    assert "Double it." in book.page()


def test_one_page_alone(book, tmp_path):
    """A chapter's writer builds it without the others that it points to."""
    book.add("\nSee [another](other.md) and {cite:p}`vaswani2017`.\n")
    assert book.build() != 0
    assert book.build("--only", book.folder / "index.md", "--out", tmp_path / "x") == 0, book.said
    assert "the word is first" in (tmp_path / "x" / "html" / "index.html").read_text()


WORDS = r"""
## Words

:::{admonition} Where we are
The *knob* at $x$, see {eq}`square` and {ref}`words <index>`.
:::

$$
y = x^2
$$ (square)

:::{dropdown} A. Yes
**Right.** Because of {cite:t}`vaswani2017`.
:::

```{exercise} Twice
:label: exercise-twice

Double it.
```

```{solution-start} exercise-twice
:class: dropdown
```

```{code-cell} ipython3
2 * 2
```

```{solution-end}
```

```{figure} _static/logo.svg
---
alt: A grid
---
The logo.
```

```{list-table}
:header-rows: 1

* - a
  - b
* - 1
  - 2
```
"""


def test_a_notebook_to_download(book):
    """Text, formulas, pictures; nothing of MyST's own markup; the same bytes from each build."""
    book.add(WORDS)
    assert book.build("--only", book.folder / "index.md") == 0, book.said
    file = book.html / "notebooks" / "index.ipynb"
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    first, *rest = notebook.cells
    assert first.cell_type == "code" and "attn_helpers" in first.source
    text = "\n".join(cell.source for cell in rest if cell.cell_type == "markdown")
    for markup in (":::", "{eq}", "{ref}", "{cite", "```{", "(square)", ":label:", "(index)="):
        assert markup not in text, markup
    for words in (
        "# A tiny book",
        "> **Where we are**",
        "\\tag{1}",
        "see (1)",
        "<details><summary>A. Yes</summary>",
        "Vaswani et al. (2017)",
        "**Exercise 1** (Twice)",
        "**Solution to exercise 1**",
        "![A grid](attachment:logo.svg)",
        "| a | b |",
        "## References of this chapter",
    ):
        assert words in text, words
    assert any("logo.svg" in cell.get("attachments", {}) for cell in rest)
    assert "2 * 2" in [cell.source for cell in rest if cell.cell_type == "code"]
    with zipfile.ZipFile(book.html / "notebooks" / "attention-by-hand.zip") as archive:
        assert archive.read("attention-by-hand/index.ipynb") == file.read_bytes()
    before = json.loads(file.read_text())
    assert book.build("--only", book.folder / "index.md", "--clean") == 0
    assert json.loads(file.read_text()) == before


def test_notebooks_of_the_book(site_dir):
    """Every page that has cells offers its notebook, and it is valid and free of MyST's markup."""
    pages = [p for p in site_dir.rglob("*.html") if 'class="cell ' in p.read_text(encoding="utf-8")]
    assert pages
    for page in pages:
        file = site_dir / "notebooks" / f"{page.stem}.ipynb"
        assert os.path.relpath(file, page.parent) in page.read_text(encoding="utf-8"), page
        notebook = nbformat.read(file, as_version=4)
        nbformat.validate(notebook)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                outside = "\n".join(cell.source.split("```")[::2])
                assert ":::" not in outside, f"{file.name}: {outside}"
                assert not re.search(r"\{[a-z:]+\}`", outside), f"{file.name}: {outside}"
    with zipfile.ZipFile(site_dir / "notebooks" / "attention-by-hand.zip") as archive:
        names = {Path(name).name for name in archive.namelist()}
    assert names == {f"{page.stem}.ipynb" for page in pages}


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("someone/book", "someone/book"),
        ("https://github.com/someone/book.git", "someone/book"),
        ("https://token@github.com/someone/book", "someone/book"),
        ("git@github.com:someone/my.book.git\n", "someone/my.book"),
        ("ssh://git@github.com/someone/book", "someone/book"),
        ("/srv/git/book", None),
        ("https://example.org/someone/book", None),
        ("", None),
    ],
)
def test_repository_addresses(address, name):
    from sphinx_ext import repository

    assert repository.parse(address) == name


def test_repository_of_a_fork_in_github_actions(tmp_path):
    from sphinx_ext import repository

    of = lambda **environment: repository.find(tmp_path, environment)  # noqa: E731
    fork = of(GITHUB_REPOSITORY="Someone/book", GITHUB_REF="refs/heads/main")
    assert fork["site"] == "https://someone.github.io/book/"
    assert of(GITHUB_REPOSITORY="a/b", GITHUB_REF="refs/pull/7/merge")["branch"] == "main"
    assert of(GITHUB_REPOSITORY="a/a.github.io")["site"] == "https://a.github.io/"
    assert (
        of(BOOK_REPOSITORY="a/b", BOOK_URL="https://book.example/")["site"]
        == "https://book.example/"
    )
    assert of()["name"] == "" and of()["site"] == ""
