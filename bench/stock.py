"""The same book made the stock way: Jupyter Book's defaults, and chapter 1 with `interact` and matplotlib.

Everything is written into _build/bench; nothing of it is committed.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / "_build" / "bench"
CHAPTER = "chapters/01-new-operator"
LEFT_OUT = ("_build", ".*", "node_modules", "*.egg-info", "__pycache__", "tests", "bench")

# What the sources need to be read at all; all else is as Jupyter Book has it.
CONFIG = """\
title: Attention by Hand
author: The authors of Attention by Hand
logo: _static/logo.svg
only_build_toc_files: true
exclude_patterns: [_build, tools, README.md, CONTRIBUTING.md]
execute:
  execute_notebooks: cache
  timeout: 600
  exclude_patterns: [{left_alone}]
parse:
  myst_enable_extensions: [colon_fence, deflist, dollarmath]
bibtex_bibfiles: [references.bib]
sphinx:
  extra_extensions: [sphinx_exercise, sphinx.ext.autodoc, sphinx.ext.napoleon]
"""

IMPORTS = "import matplotlib.pyplot as plt\nfrom ipywidgets import interact\n"

# The chapter's two explorers as an author without `explore` would write them, under the chapter's own controls.
CELLS = {
    "new_operator": """\
def new_operator(strength=207, bandwidth=30):
    scores = -((strength - crew.strength) ** 2) / (2 * bandwidth**2)
    weights = torch.softmax(scores, dim=-1)
    prediction = weights @ crew.ability
    plt.barh(crew.names, weights)
    plt.xlim(0, 1)
    plt.title("weights")
    plt.show()
    print(f"predicted ability: {prediction:.1f} points")
""",
    "two_stat_crew": """\
def two_stat_crew(strength=207, intelligence=289, bandwidth=30):
    query = torch.tensor([float(strength), float(intelligence)])
    weights = weights_from_stats(query, stats, bandwidth)
    figure, (crew_map, bars) = plt.subplots(1, 2, figsize=(9, 4))
    crew_map.scatter(*stats.T, c=weights, vmin=0, vmax=1, edgecolors="black")
    crew_map.scatter(*query, marker="D", color="red")
    for name, place in zip(crew.names, stats):
        crew_map.annotate(name, place)
    crew_map.set_xlabel("strength (points)")
    crew_map.set_ylabel("intelligence (points)")
    bars.barh(crew.names, weights)
    bars.set_xlim(0, 1)
    plt.show()
    print(f"predicted ability: {weights @ crew.reassessed:.1f} points")
""",
}

CELL = re.compile(
    r"(?m)^```\{code-cell\}[^\n]*\n(?P<head>---\n.*?\n---\n)?(?P<code>.*?)^```\n", re.S
)


def chapter() -> str:
    """The source of the chapter that is measured."""
    return (ROOT / f"{CHAPTER}.md").read_text("utf-8")


def cells(text: str) -> list[str]:
    """The code of a chapter's cells."""
    return [match["code"] for match in CELL.finditer(text)]


def with_matplotlib(text: str, *, sliders: bool) -> str:
    """Chapter 1 with its explorers rewritten; without sliders, as pictures of the default setting."""

    def rewrite(match):
        code = match["code"]
        for name, function in CELLS.items():
            controls, found, _ = code.partition(f"def {name}(")
            if found:
                interact = controls.replace("@explore(", "@interact(")
                new = interact + function if sliders else f"{function}\n\n{name}()\n"
                return match[0].replace(code, new)
        return match[0]

    rewritten = CELL.sub(rewrite, text)
    if "@explore" in rewritten:
        raise ValueError(
            "chapter 1 has an explorer that bench/stock.py does not know: add it to CELLS"
        )
    return rewritten.replace("import torch\n", "import torch\n" + IMPORTS, 1)


def copy_sources(folder: Path) -> Path:
    """A fresh copy of the book's sources, without what was built; earlier builds in it stay."""
    for old in folder.glob("*"):
        if old.name != "_build":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    return folder


def stock_sources(folder: Path, *, run_only: str | None = None) -> Path:
    """The sources with a stock configuration. run_only: the chapters whose cells are run, as a regular expression."""
    copy_sources(folder)
    pages = [page.relative_to(folder).as_posix() for page in sorted(folder.glob("*/*.md"))]
    left_alone = [page for page in pages if run_only and not re.match(run_only, page)]
    (folder / "_config.yml").write_text(CONFIG.format(left_alone=", ".join(left_alone)), "utf-8")
    return folder


def jupyter_book(folder: Path, log: Path) -> None:
    """`jupyter-book build`, as it comes."""
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    with log.open("w") as output:
        subprocess.run(
            [*command, "build", "."], cwd=folder, stdout=output, stderr=output, check=True
        )


def plain_chapter() -> str:
    """The chapter without sliders, to stand beside the one with: two exercises of one label end the build."""
    return re.sub(
        r"\b(exercise|solution)-(?!start|end)",
        r"plain-\1-",
        with_matplotlib(chapter(), sliders=False),
    )


def site_of_pages() -> Path:
    """A stock site of the whole book in which chapter 1 stands twice: with sliders, and with none."""
    folder = stock_sources(WORK / "stock-pages", run_only=r"chapters/01")
    (folder / f"{CHAPTER}.md").write_text(with_matplotlib(chapter(), sliders=True), "utf-8")
    (folder / f"{CHAPTER}-plain.md").write_text(plain_chapter(), "utf-8")
    toc = folder / "_toc.yml"
    line = f"      - file: {CHAPTER}\n"
    toc.write_text(toc.read_text("utf-8").replace(line, line + line.rstrip() + "-plain\n"), "utf-8")
    jupyter_book(folder, WORK / "stock-pages.log")
    return folder / "_build" / "html"


def our_site() -> Path:
    """The book itself, as `make book` builds it; what has not changed is not built again."""
    command = [sys.executable, "tools/build_book.py"]
    with (WORK / "book.log").open("w") as output:
        subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=True)
    return ROOT / "_build" / "html"
