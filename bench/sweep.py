"""What `explore` does once so that a reader's sliders need no kernel, against drawing every setting with matplotlib."""

import contextlib
import io
import itertools
import statistics

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot as plt

from attn_helpers import explore
from attn_helpers.explorer import compressed
from bench import stock
from bench.rows import Row, seconds

ROUNDS = 5
SAMPLE = 25  # settings that the loop draws in a round; all of them would take minutes


def chapter() -> tuple[dict, dict]:
    """Chapter 1 run up to its last explorer: its names, and the controls of its explorers by name."""
    controls = {}

    def note(**given):
        def decorate(function):
            controls[function.__name__] = given
            return function

        return decorate

    names = {"note": note}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in stock.cells(stock.chapter()):
            exec(code.replace("@explore(", "@note("), names)
            plt.close("all")
            if len(controls) == len(stock.CELLS):
                break
    return names, controls


def drawn(function, setting: dict) -> bytes:
    """The picture of one setting, as the notebook keeps it."""
    with contextlib.redirect_stdout(io.StringIO()):
        function(**setting)
    buffer = io.BytesIO()
    plt.gcf().savefig(buffer, format="png", bbox_inches="tight")
    plt.close("all")
    return buffer.getvalue()


def rows() -> list[Row]:
    table, against = [], "a loop that draws with matplotlib"
    names, controls = chapter()
    for name, given in controls.items():
        swept = explore(**given)(names[name]).explorer  # once before the clock runs
        options = {control["name"]: control["values"] for control in swept.payload["controls"]}
        settings = [
            dict(zip(options, values, strict=True))
            for values in itertools.product(*options.values())
        ]
        by_hand = dict(names, plt=plt)
        exec(stock.CELLS[name].replace("plt.show()", "pass"), by_hand)
        times, sizes = {"ours": [], "theirs": []}, []
        for round in range(ROUNDS):
            times["ours"].append(seconds(lambda: explore(**given)(names[name]).explorer.html()))  # noqa: B023
            sample = settings[round :: max(1, len(settings) // SAMPLE)]
            spent = seconds(lambda: sizes.extend(len(drawn(by_hand[name], s)) for s in sample))  # noqa: B023
            times["theirs"].append(spent / len(sample))
        ours = statistics.median(times["ours"]) / len(settings)
        table += [
            Row("the sweep", f"time per setting, {name}, {len(settings)} settings", "ms",
                1000 * ours, 1000 * statistics.median(times["theirs"]), against),
            Row("the sweep", f"bytes per setting, {name}", "B",
                compressed(swept.payload) / len(settings), statistics.mean(sizes), "a PNG for each setting"),
        ]  # fmt: skip
    return table
