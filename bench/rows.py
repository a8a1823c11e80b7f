"""A row of the table, and how two things are measured side by side."""

import math
import random
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """One comparison. ratio = ours / peer: below 1, ours is smaller or faster."""

    group: str
    what: str
    unit: str
    ours: float
    peer: float
    against: str

    @property
    def ratio(self) -> float:
        return self.ours / self.peer


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one call takes."""
    start = clock()
    run()
    return clock() - start


def side_by_side(
    runs: dict[str, Callable[[], object]],
    *,
    rounds: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median time of each, in seconds; they take turns, so that a busy moment hits all alike."""
    for run in runs.values():  # warm up: the first call allocates
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    chance, order = random.Random(0), list(runs)
    for _ in range(rounds):
        chance.shuffle(order)  # what runs before leaves its traces in caches and memory
        for name in order:
            times[name].append(seconds(runs[name], clock))
    return {name: statistics.median(series) for name, series in times.items()}


def exponent(sizes: list[int], amounts: list[float]) -> float:
    """p in amount ∝ size^p, fitted to the logarithms."""
    slope, _ = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(amount) for amount in amounts]
    )
    return slope
