"""The benchmark's arithmetic and its page. Nothing here is timed: how fast things are is for `make bench`."""

import json

import nbformat
import pytest

from bench import moves, report, stock
from bench.rows import Row, exponent, side_by_side

ROWS = [
    Row("helpers", "attention, n = 64, forward", "ms", 3.0, 2.0, "torch, fused (no weights)"),
    Row("helpers", "attention, n = 128, forward", "ms", 8.0, 10.0, "torch, fused (no weights)"),
    Row("helpers", "attention, n = 64, forward", "ms", 3.0, 4.0, "d2l"),
]


def test_ratio_is_ours_by_the_peer():
    assert [row.ratio for row in ROWS] == [1.5, 0.8, 0.75]


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 2.5])
def test_exponent_of_a_power_law(power):
    sizes = [64, 128, 256, 1024]
    assert exponent(sizes, [7.0 * n**power for n in sizes]) == pytest.approx(power)


def test_sides_take_turns_and_the_median_counts():
    ticks = {"ours": [0, 5, 1, 9, 2], "peer": [0, 4, 4, 4, 4]}  # the first call warms up
    now, calls = [0.0], []

    def run(name):
        def call():
            calls.append(name)
            now[0] += ticks[name][calls.count(name) - 1]

        return call

    times = side_by_side({name: run(name) for name in ticks}, rounds=4, clock=lambda: now[0])
    assert times == {"ours": 3.5, "peer": 4}
    assert all(set(calls[i : i + 2]) == set(ticks) for i in range(0, len(calls), 2))


@pytest.mark.parametrize(
    "value, text",
    [
        (41, "41"),
        (2447.455, "2,447"),
        (267.4, "267"),
        (45.67, "45.7"),
        (1.234, "1.23"),
        (0.0123, "0.012"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert report.number(value) == text


def test_a_tiny_ratio_is_not_zero():
    assert (report.ratio(0.0023), report.ratio(0.061), report.ratio(1.5)) == (
        "0.0023",
        "0.061",
        "1.50",
    )


def test_tables_hold_every_row():
    text, markdown = report.text_table(ROWS), report.markdown_table(ROWS)
    assert len(text.splitlines()) == 1 + len(ROWS)
    assert len({line.index("ms") for line in text.splitlines()[1:]}) == 1  # aligned
    assert (
        "| attention, n = 128, forward | 8 ms | 10 ms | 0.80 | torch, fused (no weights) |"
        in markdown
    )


def test_ratios_by_size():
    lines = report.by_size(ROWS).splitlines()
    assert lines[0] == "| layer | direction | against | n = 64 | n = 128 |"
    assert lines[2] == "| attention | forward | torch, fused (no weights) | 1.50 | 0.80 |"
    assert lines[3] == "| attention | forward | d2l | 0.75 |  |"


def test_a_part_takes_the_place_of_its_older_results(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path / "benchmarks.json")
    report.keep("helpers", ROWS)
    report.keep("build", ROWS[:1])
    report.keep("helpers", ROWS[1:])
    results = report.load()
    assert report.rows_of(results, "helpers") == ROWS[1:]
    assert report.rows_of(results, "build") == ROWS[:1]
    assert report.rows_of(results, "pages") == []
    assert {"date", "machine", "versions"} < results["helpers"].keys()
    assert json.loads((tmp_path / "benchmarks.json").read_text()) == results


def test_parts_that_were_measured_alike_share_a_row():
    here = {"date": "2030-01-01", "machine": "one", "versions": {"torch": "1"}}
    table = report.surroundings_table({"pages": here, "moves": here, "build": here | {"date": "2"}})
    assert table.splitlines()[2:] == [
        "| pages, moves | 2030-01-01 | one | torch 1 |",
        "| build | 2 | one | torch 1 |",
    ]


def test_slower_rows_are_told_with_their_reason():
    (reason,) = report.slower(ROWS)
    assert "no weights" in reason
    told = report.slower_list(ROWS)
    assert told.count("\n") == 0 and "1.50" in told and reason in told
    assert report.slower_list(ROWS[1:]) == "In no row."


def test_the_page_is_made_from_the_results():
    results = report.load()
    assert report.PAGE.read_text("utf-8") == report.page(results)
    assert set(results) <= {"pages", "moves", "sweep", "helpers", "build"}


def test_every_slower_row_has_a_reason():
    results = report.load()
    unexplained = report.slower([row for part in results for row in report.rows_of(results, part)])
    assert unexplained.get(None, []) == []


@pytest.mark.parametrize("sliders", [True, False])
def test_chapter_1_the_stock_way(sliders):
    text = stock.with_matplotlib(stock.chapter(), sliders=sliders)
    assert text.count("@interact(") == (len(stock.CELLS) if sliders else 0)
    assert text.count("plt.show()") == len(stock.CELLS)
    assert len(stock.cells(text)) == len(stock.cells(stock.chapter()))
    for code in stock.cells(text):
        compile(code, stock.CHAPTER, "exec")


def test_the_peers_notebook_has_a_cell_for_each_explorer(tmp_path):
    moves.notebook(tmp_path)
    cells = nbformat.read(tmp_path / "stock.ipynb", as_version=4).cells
    assert ["@interact(" in cell["source"] for cell in cells] == [False, *[True] * len(stock.CELLS)]
    compile((tmp_path / "chapter.py").read_text("utf-8"), "chapter.py", "exec")


def test_exercises_of_the_plain_copy_have_labels_of_their_own():
    plain = stock.plain_chapter()
    assert "{exercise-start}" not in plain and plain.count(":label: plain-exercise-") >= 3
    assert plain.count("{solution-start} plain-exercise-") == plain.count("{solution-end}") >= 3
