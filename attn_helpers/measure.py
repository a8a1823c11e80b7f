"""What a computation costs: parameters, multiply-adds, seconds and peak memory."""

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
    """Seconds, and the peak memory of the whole process in bytes; NaN until they are measured."""

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

    The peak is that of the whole process, Python and torch included: what a machine needs to run it.
    On Linux it starts anew with the block; elsewhere it is the highest since the process began, which
    can only be more.
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
    """Seconds of the fastest of `repeats` calls: what else the machine does can only slow a call down."""
    times = []
    for _ in range(validate.integer("repeats", repeats)):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def parameter_count(module: nn.Module) -> int:
    """How many numbers a module learns."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {validate.describe(module)}")
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def multiply_adds(function: Callable, *args) -> int:
    """How many multiplications, each with its addition, the products in ``function(*args)`` make.

    Counted while it runs: matrix products, convolutions and torch's fused attention. Sums, softmax and
    other functions of single entries are left out; there are few of them beside the products, and so
    is `nn.LSTM`, which torch does not take apart. With tensors on the "meta" device nothing is computed
    or stored, so any size can be counted.
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
