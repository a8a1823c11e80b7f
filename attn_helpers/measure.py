"""What a computation costs: parameters, multiply-adds, seconds and peak memory.

A count is the same on every machine, a measurement is not: chapters 4, 5, 6 and 8 assert counts and
print measurements.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attn_helpers import _validate as validate


@dataclass
class Cost:
    """Seconds, and the peak memory of the whole process in bytes; NaN until they are measured.

    What `measured` hands out; printed, it reads ``0.2 s, peak memory 312 MB``. Chapter 5.
    """

    seconds: float = math.nan
    peak_bytes: float = math.nan

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, peak memory {self.peak_bytes / 1e6:.0f} MB"


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the block it encloses::

        with measured() as cost:
            output = layer(x)
        print(cost)  ->  0.2 s, peak memory 312 MB

    The numbers are there once the block has ended, also if it raised. The peak is that of the whole
    process, Python and torch included: what a machine needs to run it. On Linux it starts anew with the
    block; elsewhere it is the highest since the process began, which can only be more. Chapter 5, "The
    real size".
    """
    cost = Cost()
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # makes Linux forget the peak so far
    start = time.perf_counter()
    try:
        yield cost
    finally:
        cost.seconds = time.perf_counter() - start
        cost.peak_bytes = _peak_bytes()


def _peak_bytes() -> float:
    """The highest resident memory of this process, from whichever source the system has."""
    with suppress(OSError, StopIteration), open("/proc/self/status") as file:  # Linux
        line = next(line for line in file if line.startswith("VmHWM"))
        return 1024 * float(line.split()[1])
    with suppress(ImportError):  # macOS
        import resource

        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    import psutil  # Windows; it comes with Jupyter's kernel

    return float(psutil.Process().memory_info().peak_wset)


def best_time(function: Callable, *args, repeats: int = 5) -> float:
    """Seconds of the fastest of `repeats` calls of ``function(*args)``.

    The fastest, not the mean: whatever else the machine does can only slow a call down.
    Raises TypeError or ValueError for `repeats` that is not an integer of at least 1.
    Chapter 8, and chapter 5, "The real size".
    """
    times = []
    for _ in range(validate.integer("repeats", repeats)):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def parameter_count(module: nn.Module) -> int:
    """How many numbers a module learns: the entries of its parameters, without those that are frozen.

    The four matrices of `MultiHeadAttention` (d, h, bias=False) are 4 d² parameters, for any h.
    Raises TypeError for anything but a `torch.nn.Module`. Chapter 4, "What the scores cost".
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {validate.describe(module)}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def multiply_adds(function: Callable, *args) -> int:
    """How many multiplications, each with its addition, the products in ``function(*args)`` make.

    Counted while it runs: matrix products, (n, d) times (d, m) being n·d·m, convolutions and torch's
    fused attention. Left out are sums, softmax and other functions of single entries, which are few
    beside the products, and `nn.LSTM`, which torch does not take apart. With tensors on the "meta"
    device nothing is computed or stored, so any size can be counted.
    Chapter 4, "What the scores cost", and chapter 6, "What it costs".
    """
    with FlopCounterMode(display=False, custom_mapping=_PRODUCTS) as counter:
        function(*args)
    return counter.get_total_flops() // 2  # a multiplication and an addition are two operations


# Products that torch 2.13 does not count by itself: shapes in, operations out.
_PRODUCTS = {
    torch.ops.aten.mv: lambda matrix, vector, *_, **__: 2 * math.prod(matrix),
    torch.ops.aten.dot: lambda a, b, *_, **__: 2 * math.prod(a),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: (
        2 * math.prod(q[:-1]) * k[-2] * (q[-1] + v[-1])
    ),
}
