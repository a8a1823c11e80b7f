"""A build that cannot lie: faults fail it, from nothing and again; changes reach the page."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from pages import ROOT

pytestmark = pytest.mark.slow

FRONT = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
INDEX = """\
(index)=
# A small book

See [the chapter](chapters/01-small.md).
"""
CHAPTER = """\
(01-small)=
# 1. A small chapter

$$
a = b
$$ (small)

By {eq}`small`.

```{code-cell} ipython3
from attn_helpers import Readout, data, explore

print("the sentence:", " ".join(data.SENTENCE))
```

```{code-cell} ipython3
@explore(x=(0, 3))
def twice(x=1):
    return Readout("twice", 2 * x)
```

```{exercise} A task
:label: exercise-small

Do it.
```

````{solution-start} exercise-small
:class: dropdown
````

```{code-cell} ipython3
answer = "forty-two"
```

The answer is forty-two.

````{solution-end}
````
"""


class Book:
    """A copy of the build's own code with two pages; it is built as the real one is."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("sphinx_ext", "attn_helpers", "_static"):
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("_config.yml", "requirements.txt", "references.bib"):
            shutil.copy(ROOT / name, folder)
        (folder / "tools").mkdir()
        (folder / "tools" / "npm").symlink_to(ROOT / "tools" / "npm")
        (folder / "_toc.yml").write_text(
            "format: jb-book\nroot: index\nchapters:\n- file: chapters/01-small\n"
        )
        (folder / "index.md").write_text(FRONT + INDEX)
        (folder / "chapters").mkdir()
        self.write(CHAPTER)

    def write(self, chapter):
        (self.folder / "chapters" / "01-small.md").write_text(FRONT + chapter)

    def change(self, name, old, new):
        file = self.folder / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    def build(self, **settings):
        return subprocess.run(
            [sys.executable, ROOT / "tools" / "build_book.py", "--source", self.folder],
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def site(self):
        return self.folder / "_build" / "html"

    @property
    def page(self):
        return (self.site / "chapters" / "01-small.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Built once; each test takes it as the last one left it, and leaves it in order."""
    book = Book(tmp_path_factory.mktemp("book"))
    built = book.build()
    assert built.returncode == 0, built.stdout[-3000:]
    return book


def test_it_builds(book):
    assert "the sentence: the" in book.page
    assert 'data-name="twice"' in book.page
    assert (book.site / ".nojekyll").exists()


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ("```{code-cell} ipython3\n1 / 0\n```\n", "ZeroDivisionError"),
        ("```{code-cell} ipython3\nimport warnings; warnings.warn('loud')\n```\n", "stderr"),
        ("See {eq}`nowhere`.\n", "nowhere"),
        ("$$\n\\nonsense\n$$\n", "nonsense"),
        ("![](../_static/path.svg)\n", "alt"),
    ],
    ids=["error", "stderr", "reference", "formula", "alt text"],
)
def test_a_fault_fails_the_build_and_the_next_one(book, fault, named):
    book.write(CHAPTER + "\n" + fault)
    for _ in range(2):
        built = book.build()
        assert built.returncode != 0
        assert named in built.stdout
    for page in book.site.rglob("*.html"):
        assert "Traceback (most recent call last)" not in page.read_text(encoding="utf-8")
    book.write(CHAPTER)
    built = book.build()
    assert built.returncode == 0, built.stdout[-3000:]


def test_a_changed_helper_reaches_the_page(book):
    book.change("attn_helpers/data.py", "SENTENCE =", 'SENTENCE = ["changed"]\nBEFORE =')
    assert book.build().returncode == 0
    assert "the sentence: changed" in book.page


def test_a_changed_script_and_style_reach_the_site(book):
    for name in ("explorer.js", "explorer.css"):
        with (book.folder / "attn_helpers" / "static" / name).open("a", encoding="utf-8") as file:
            file.write("\n/* a mark */\n")
    assert book.build().returncode == 0
    marked = [f.name for f in book.site.rglob("explorer*") if "a mark" in f.read_text("utf-8")]
    assert sorted(marked) == ["explorer.css", "explorer.js"]


def test_a_changed_build_reaches_the_page(book):
    book.change("sphinx_ext/pages.py", '<details class="solution"', '<details class="solution new"')
    assert book.build().returncode == 0
    assert 'class="solution new"' in book.page


def test_solutions_can_be_left_out(book):
    """For a class: neither the page nor its notebooks hold them, and they come back."""
    archive = next(book.site.rglob("*.zip"))
    for shown, settings in [(False, {"BOOK_SOLUTIONS": "0"}), (True, {})]:
        assert book.build(**settings).returncode == 0
        assert ("forty-two" in book.page) == shown
        assert "A task" in book.page
        notebook = next(book.site.rglob("01-small.ipynb")).read_text(encoding="utf-8")
        assert ("forty-two" in notebook) == shown
        with zipfile.ZipFile(archive) as zipped:
            texts = [zipped.read(name).decode() for name in zipped.namelist() if "01" in name]
        assert texts and all(("forty-two" in text) == shown for text in texts)
