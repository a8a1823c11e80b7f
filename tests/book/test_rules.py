"""Every page keeps every rule, and every rule has a page that breaks it."""

import re
import subprocess

import pages
import pytest
import rules
import yaml

CHAPTERS = sorted(pages.ROOT.glob("chapters/[0-9]*.md"))
OTHERS = [pages.ROOT / "index.md", *sorted(pages.ROOT.glob("back/*.md"))]
BOOK = [pages.read(path) for path in CHAPTERS + OTHERS]


def name(value):
    return getattr(value, "__name__", getattr(value, "stem", str(value)))


@pytest.mark.parametrize("rule", rules.OF_PAGES, ids=name)
@pytest.mark.parametrize("path", CHAPTERS + OTHERS, ids=name)
def test_page(path, rule):
    assert list(rule(pages.read(path), BOOK)) == []


@pytest.mark.parametrize("rule", rules.OF_CHAPTERS, ids=name)
@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_chapter(path, rule):
    assert list(rule(pages.read(path), BOOK)) == []


@pytest.mark.parametrize("rule", rules.OF_BUILT, ids=name)
def test_built(site_dir, rule):
    built = sorted(site_dir.rglob("*.html"))
    assert (site_dir / "index.html") in built
    faults = {str(p.relative_to(site_dir)): list(rule(p.read_text("utf-8"))) for p in built}
    assert {path: found for path, found in faults.items() if found} == {}


def test_every_page_is_in_the_contents():
    contents = yaml.safe_load((pages.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [entry["file"] for part in contents["parts"] for entry in part["chapters"] or []]
    written = [p.relative_to(pages.ROOT).with_suffix("").as_posix() for p in CHAPTERS + OTHERS]
    assert sorted([contents["root"], *listed]) == sorted(written)


def test_every_exercise_is_on_the_page_of_solutions():
    """With its title, its check and a link to its solution, in the order of the book."""
    listed = (pages.ROOT / "back" / "solutions.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"\| \{ref\}`(.*?) <(.*?)>` \| \{ref\}`solution <(.*?)>` \| `(\w+)` \|", listed
    )
    expected = []
    for page in (pages.read(path) for path in CHAPTERS):
        parts = page.section("Exercises")
        for task in (d for d in parts if d.name == "exercise"):
            label = task.options["label"]
            solution = next(d for d in parts if (d.name, d.title) == ("solution-start", label))
            check = re.search(r"`(check_\w+)\(", task.text)[1]
            expected.append((task.title, label, solution.options["label"], check))
    assert rows == expected and len(rows) > 30


def test_the_landing_page_gives_each_chapters_minutes():
    text = (pages.ROOT / "index.md").read_text(encoding="utf-8")
    promised = dict(re.findall(r"\(chapters/([\w-]+)\.md\) \|.*\| (\d+) \|", text))
    assert promised == {
        path.stem: re.search(r"\*\*Time\*\* about (\d+) minutes", path.read_text("utf-8"))[1]
        for path in CHAPTERS
    }


def test_every_source_is_cited_on_a_page():
    listed = re.findall(r"^@\w+\{(\w+),", (pages.ROOT / "references.bib").read_text("utf-8"), re.M)
    cited = {
        key.strip()
        for path in CHAPTERS + OTHERS
        for keys in re.findall(r"\{cite:[tp]\}`([^`]+)`", path.read_text("utf-8"))
        for key in keys.split(",")
    }
    assert set(listed) == cited


def test_the_readmes_example_runs():
    """As it stands there: every name that it uses is defined in it."""
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(code, names)
    assert len(names["first_look"].explorer.payload["controls"]) == 2


def test_no_notebook_in_git():
    tracked = subprocess.run(
        ["git", "ls-files", "*.ipynb"], cwd=pages.ROOT, capture_output=True, text=True
    )
    assert tracked.stdout == ""


# A page that keeps all rules, and for each rule what breaks it.

GOOD = """\
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

(07-good)=
# 7. A good page

Why?

**The question.** Why indeed?

**You will be able to** say so.

**You need** nothing.

**Time** about 5 minutes.

:::{admonition} Where we are
**The knob.** Here.
:::

## First

```{code-cell} ipython3
---
mystnb:
  image:
    alt: >-
      One dark square
      on the diagonal.
---
from attn_helpers import plot_heatmap

plot_heatmap([[1.0]]);
```

$$
a = 0.1234!
$$ (good-a)

## Second

By {eq}`good-a`, 12,288 stats. See [it](../index.md).

```python
def yours(x):
    ...  # simply!
```

## Summary

- It is so.

## Questions

QUESTIONS
## Exercises

EXERCISES
## What comes next

More.
"""
QUESTION = """\
**1. Why?**

:::{dropdown} A. So
**Right.** It is so.
:::

:::{dropdown} B. Not so
**Not quite.** It is so.
:::

"""
EXERCISE = """\
```{exercise} Do it
:label: do-N

Write it.
```

:::{dropdown} Hint
Try.
:::

````{solution-start} do-N
:class: dropdown
````

```{code-cell} ipython3
check_it(1)
```

````{solution-end}
````

"""
GOOD = GOOD.replace("QUESTIONS\n", QUESTION * 3)
GOOD = GOOD.replace("EXERCISES\n", "".join(EXERCISE.replace("N", str(n)) for n in range(3)))

# rule -> what to replace in the good page by what; each pair alone must break that rule
BREAKS = {
    "one_title": [("## First", "# First"), ("# 7. A good page\n", "")],
    "label_is_file_name": [("(07-good)=", "(good)="), ("(07-good)=\n", "")],
    "front_matter": [
        ("format_name: myst", "format_name: light"),
        ("name: python3", "name: julia"),
        ("  display_name: Python 3\n", ""),
    ],
    "template": [
        ("## Summary", "## In short"),
        ("**You need**", "You need"),
        ("## Second\n", ""),
        ("Where we are", "Here"),
        ("## What comes next", "## Next"),
    ],
    "vocabulary": [
        (":::{admonition} Where we are", ":::{warning} Where we are"),
        ("{eq}`good-a`", "{numref}`good-a`"),
    ],
    "short_code": [
        ("check_it(1)", "check_it(1)\n" * 21),
        ("check_it(1)", f"check_it('{'x' * 80}')"),
    ],
    "code_parses": [("check_it(1)", "check_it(1"), ("check_it(1)", "%time check_it(1)")],
    "alt_texts": [
        ("    alt: >-\n      One dark square\n      on the diagonal.\n", "    width: 300\n"),
        ("Why?\n", "```{figure} _static/a.svg\nA.\n```\n"),
        ("Why?\n", "![](a.png)\n"),
    ],
    "no_plotting": [
        ("check_it(1)", "import matplotlib"),
        ("check_it(1)", "plt.plot()"),
        ("check_it(1)", "!pip install torch"),
    ],
    "public_names": [
        ("import plot_heatmap", "import _validate"),
        ("from attn_helpers import", "from attn_helpers.plots import"),
        ("check_it(1)", "attn_helpers.no_such_name"),
    ],
    "questions": [
        (QUESTION * 3, QUESTION * 2),
        ("**Right.** It is so.", "**Not quite.** It is so."),
        ("**Not quite.** It is so.", "**Right.** It is so."),
        ("**Not quite.** It is so.", "**Not quite.**"),
        ("**Not quite.** It is so.", "It is so."),
    ],
    "exercises": [
        (EXERCISE.replace("N", "2"), ""),
        ("{dropdown} Hint", "{note} Hint"),
        ("check_it(1)", "print(1)"),
        ("{solution-start} do-1", "{solution-start} do-2"),
        (":label: do-1\n", ""),
        ("````{solution-end}\n````\n", ""),
        (":class: dropdown\n", ""),
    ],
    "equation_references": [("{eq}`good-a`", "{eq}`good-b`")],
    "no_outputs": [("Why?\n", "![a picture of it](data:image/png;base64,AAAA)\n")],
    "no_typed_measurements": [
        ("- It is so.", "- The loss is 0.0231."),
        ("- It is so.", "- It took 3.2 s."),
        ("- It is so.", "- It took 55 ms."),
    ],
    "plain_words": [
        ("- It is so.", "- It is so!"),
        ("- It is so.", "- It is simply so."),
        ("**Right.** It is so.", "**Right.** It is so \U0001f600"),
    ],
}
GOOD_HTML = '<p><img alt="Six dots" src="a.png"><img src="b.png" alt=""></p><pre>a $$ b</pre>'
BREAKS_BUILT = {
    "no_widget_state": ['<script type="application/vnd.jupyter.widget-state+json">', "/require.js"],
    "no_errors_shown": [
        "Traceback (most recent call last)",
        "UserWarning: x",
        "&lt;Figure size 6x4",
    ],
    "images_have_alt": ['<img src="a.png">', '<img alt="_images/a.png" src="a.png">'],
    "no_raw_markup": [":::{note}", "$$ x $$", "{eq}`x`"],
}


BROKEN = [
    pytest.param(rule, old, new, id=f"{rule.__name__}: {new[:30]!r}")
    for rule in rules.OF_PAGES + rules.OF_CHAPTERS
    for old, new in BREAKS[rule.__name__]
]


@pytest.mark.parametrize("rule", rules.OF_PAGES + rules.OF_CHAPTERS, ids=name)
def test_the_good_page_keeps(rule):
    page = pages.parse(GOOD, pages.Path("07-good.md"))
    assert list(rule(page, [page])) == []


@pytest.mark.parametrize("rule", rules.OF_PAGES + rules.OF_CHAPTERS, ids=name)
def test_the_template_for_authors_keeps(rule):
    text = (pages.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    template = re.search(r"`````markdown\n(.*?)`````", text, re.S)[1]
    template = template.replace("check_f", "check_prediction")
    page = pages.parse(template, pages.Path("11-topic.md"))
    assert [fault for fault in rule(page, [page]) if "3 or more" not in fault] == []


@pytest.mark.parametrize(("rule", "old", "new"), BROKEN)
def test_a_bad_page_breaks(rule, old, new):
    assert old in GOOD
    page = pages.parse(GOOD.replace(old, new, 1), pages.Path("07-good.md"))
    assert list(rule(page, [page])) != []


@pytest.mark.parametrize("rule", rules.OF_BUILT, ids=name)
def test_a_bad_built_page_breaks(rule):
    assert list(rule(GOOD_HTML)) == []
    for bad in BREAKS_BUILT[rule.__name__]:
        assert list(rule(GOOD_HTML + bad)) != [], bad
