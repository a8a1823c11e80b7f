"""Building the whole book: from nothing, with one sentence changed, and with nothing changed."""

import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from bench import stock
from bench.rows import Row, seconds

AGAINST = "jupyter-book build, same sources, stock configuration"
ROUNDS = 3


def build_ours(folder: Path) -> None:
    command = [sys.executable, "tools/build_book.py", "--source", str(folder)]
    with (stock.WORK / "ours.log").open("w") as output:
        subprocess.run(command, cwd=stock.ROOT, stdout=output, stderr=output, check=True)


def build_stock(folder: Path) -> None:
    stock.jupyter_book(folder, stock.WORK / "stock.log")


def change_a_sentence(folder: Path) -> None:
    page = folder / f"{stock.CHAPTER}.md"
    text = page.read_text("utf-8")
    page.write_text(
        text.replace("\n## Summary\n", "\nOne more sentence.\n\n## Summary\n", 1), "utf-8"
    )


def rows() -> list[Row]:
    """From nothing each book is built once (minutes, and alike within a few per cent), the rest ROUNDS times."""
    ours, theirs = stock.WORK / "ours", stock.WORK / "stock"
    for folder in (ours, theirs):
        shutil.rmtree(folder, ignore_errors=True)
    stock.copy_sources(ours)
    (ours / "tools/npm/node_modules").symlink_to(stock.ROOT / "tools/npm/node_modules")
    stock.stock_sources(theirs)
    sides = [(build_ours, ours), (build_stock, theirs)]
    table = []
    for what, change, times in (
        ("from nothing", lambda folder: None, 1),
        ("one sentence changed", change_a_sentence, ROUNDS),
        ("nothing changed", lambda folder: None, ROUNDS),
    ):
        spent = [[], []]
        for _ in range(times):
            for (build, folder), measured in zip(sides, spent, strict=True):
                change(folder)
                measured.append(seconds(lambda: build(folder)))  # noqa: B023
        table.append(
            Row("a build of the whole book", what, "s", *map(statistics.median, spent), AGAINST)
        )
    return table
