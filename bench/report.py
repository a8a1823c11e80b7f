"""Results kept in back/benchmarks.json; the table of `make bench` and the page back/benchmarks.md are made from them."""

import json
import os
import platform
import time
from importlib import metadata
from pathlib import Path

from bench.rows import Row

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "back" / "benchmarks.json"
PAGE = ROOT / "back" / "benchmarks.md"
TEMPLATE = Path(__file__).with_name("page.md")
PACKAGES = ("torch", "matplotlib", "ipywidgets", "jupyterlab", "jupyter-book", "sphinx-book-theme")
SLOWER = 1.1  # from this ratio on, the page has to say why

# Why a row is slower or larger than its peer: words of the row's what, words of its against, the reason.
SMALL = (
    "At small sizes a call costs tens of microseconds more: the checks that name a wrong argument instead of "
    "failing deep inside torch. The cost does not grow with n."
)
REASONS = [
    (
        "attention, n",
        "fused",
        "The fused kernel gives no weights: it never stores the matrix that this book is about. Ours returns it. "
        "Who needs the output alone takes `MultiHeadAttention(...)(x, need_weights=False)`, which is the fused kernel.",
    ),
    (
        "attention: p in",
        "fused",
        "The same: ours stores a matrix of n × n, the fused kernel does not.",
    ),
    (
        "n = 64,",
        "",
        SMALL,
    ),
    (
        "n = 128,",
        "",
        SMALL,
    ),
    (
        "changed",
        "jupyter-book",
        "Ours also writes every page's notebook for download, typesets the formulas, and looks whether a helper or "
        "the environment has changed, which the stock build does not see: it would keep yesterday's outputs.",
    ),
    (
        "from nothing",
        "jupyter-book",
        "Ours typesets every formula, draws a picture of every explorer for paper and for readers without scripts, "
        "and writes a notebook for each page. A reader's browser does the first for the stock site, on every visit; "
        "the other two the stock site has not.",
    ),
]


def processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def surroundings() -> dict:
    """Where and when, for the record."""
    versions = {"Python": platform.python_version()}
    versions |= {name: metadata.version(name) for name in PACKAGES}
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": versions,
    }


def load() -> dict:
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def keep(part: str, rows: list[Row]) -> None:
    """Put the rows of a part in the place of its older ones."""
    results = load()
    results[part] = surroundings() | {"rows": [row._asdict() for row in rows]}
    text = json.dumps(results, indent=1, ensure_ascii=False)
    RESULTS.write_text(text + "\n", "utf-8")


def rows_of(results: dict, part: str) -> list[Row]:
    return [Row(**row) for row in results.get(part, {"rows": []})["rows"]]


def number(value: float) -> str:
    """Three digits, without exponents."""
    if value == int(value):
        return f"{value:,.0f}"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def ratio(value: float) -> str:
    """Two digits, or where it is tiny one that is not 0."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


HEAD = ("what", "ours", "peer", "ratio", "unit", "against")


def fields(row: Row) -> tuple[str, ...]:
    return (row.what, number(row.ours), number(row.peer), ratio(row.ratio), row.unit, row.against)


def text_table(rows: list[Row]) -> str:
    """All rows for the terminal, the columns aligned."""
    lines = [("group", *HEAD)] + [(row.group, *fields(row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = {2, 3, 4}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(head: tuple, lines: list[tuple], *, right: range) -> str:
    """A Markdown table with the columns of `right` set to the right."""
    rule = ["--:" if i in right else ":--" for i in range(len(head))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def markdown_table(rows: list[Row]) -> str:
    """The rows for the page: units stand with their numbers, which leaves a phone one column less."""
    lines = [
        (what, f"{ours} {unit}".rstrip(), f"{peer} {unit}".rstrip(), ratio, against)
        for what, ours, peer, ratio, unit, against in map(fields, rows)
    ]
    return markdown(("what", "ours", "peer", "ratio", "against"), lines, right=range(1, 4))


def by_size(rows: list[Row]) -> str:
    """The ratios of the helpers: a row for each layer, direction and peer, a column for each n."""
    ratios: dict[tuple, dict[str, str]] = {}
    for row in rows:
        layer, size, direction = row.what.rsplit(", ", 2)
        ratios.setdefault((layer, direction, row.against), {})[size] = ratio(row.ratio)
    sizes = list(dict.fromkeys(size for found in ratios.values() for size in found))
    lines = [(*key, *(found.get(size, "") for size in sizes)) for key, found in ratios.items()]
    head = ("layer", "direction", "against", *sizes)
    return markdown(head, lines, right=range(3, len(head)))


def why(row: Row) -> str | None:
    """The reason that is written down for a row that is slower than its peer."""
    for what, against, reason in REASONS:
        if what in row.what and against in row.against:
            return reason
    return None


def slower(rows: list[Row]) -> dict[str | None, list[Row]]:
    """The rows in which ours is slower or larger, by their reason."""
    found: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.ratio > SLOWER:
            found.setdefault(why(row), []).append(row)
    return found


def slower_list(rows: list[Row]) -> str:
    """One point for each reason, with the rows it speaks of counted and the largest named."""
    points = []
    for reason, of_it in slower(rows).items():
        worst = max(of_it, key=lambda row: row.ratio)
        count = "one row" if len(of_it) == 1 else f"{len(of_it)} rows, the largest ratio"
        points.append(
            f"- **{worst.what}**, against {worst.against} ({count}: {ratio(worst.ratio)}). {reason}"
        )
    return "\n".join(points) or "In no row."


def surroundings_table(results: dict) -> str:
    """Where and when; the parts that were measured alike share a row."""
    parts: dict[tuple, list[str]] = {}
    for part, found in results.items():
        versions = ", ".join(map(" ".join, found["versions"].items()))
        parts.setdefault((found["date"], found["machine"], versions), []).append(part)
    lines = [(", ".join(names), *where) for where, names in parts.items()]
    return markdown(("parts", "date", "machine", "versions"), lines, right=range(0))


def page(results: dict) -> str:
    """back/benchmarks.md: the text of bench/page.md with the tables in it."""
    everything = [row for part in results for row in rows_of(results, part)]
    helpers = rows_of(results, "helpers")
    tables = {
        "pages": markdown_table(rows_of(results, "pages")),
        "moves": markdown_table(rows_of(results, "moves")),
        "sweep": markdown_table(rows_of(results, "sweep")),
        "ratios": by_size([row for row in helpers if row.group == "helpers"]),
        "growth": markdown_table([row for row in helpers if row.group == "growth"]),
        "helpers": markdown_table([row for row in helpers if row.group == "helpers"]),
        "build": markdown_table(rows_of(results, "build")),
        "slower": slower_list(everything),
        "limit": str(SLOWER),
        "machines": surroundings_table(results),
    }
    text = TEMPLATE.read_text("utf-8")
    for name, table in tables.items():
        text = text.replace("{{" + name + "}}", table)
    return text
