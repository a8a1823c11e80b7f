"""The helpers against torch's own layers, and against the same formulas as the d2l package has them."""

import contextlib
import copy
import ctypes
import importlib
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import torch
import torch.nn.functional as F
from torch import nn

from attn_helpers import AdditiveAttention, MultiHeadAttention, attention
from bench.rows import Row, exponent, side_by_side

SIZES = (64, 128, 256, 512, 1024, 2048)
WIDTH, HEADS, BATCH, HIDDEN = 384, 12, 1, 32  # a layer of chapter 10's model, one sequence
# Layers with weights of their own that are called one after another, as in a model: a layer that is called again at
# once finds its weights in the processor's cache, by luck.
DEPTH = 12
D2L = Path(__file__).parents[1] / "_build" / "bench" / "d2l"


def load_d2l():
    """Import d2l 1.0.3 from a folder of its own; what its first lines import and we lack is a stub."""
    if not D2L.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*command, "--target", str(D2L), "d2l==1.0.3"], check=True)
    sys.path.append(str(D2L))
    for name in ("torchvision", "pandas", "requests", "scipy", "scipy.spatial"):
        try:
            importlib.import_module(name)
        except Exception:  # torchvision may be there and still fail to load beside this torch
            sys.modules[name] = MagicMock()
    return importlib.import_module("d2l.torch")


def forward(layer, x):
    """A call as it stands in a cell: torch records what a gradient would need."""
    layer(x)


def without_gradients(layer, x):
    with torch.no_grad():
        layer(x)


def forward_backward(layer, x):
    """A call as in training."""
    output = layer(x.clone().requires_grad_())
    (output[0] if isinstance(output, tuple) else output).sum().backward()


DIRECTIONS = {
    "forward": forward,
    "forward + backward": forward_backward,
    "forward without gradients": without_gradients,
}


def layers(d2l, n: int, *, training: bool):
    """For each layer its input, and ours and its peers as functions of it.

    Outside training and without gradients torch takes a path of its own through its layer, the fastest it has.
    """
    x = torch.randn(BATCH, n, WIDTH)
    heads = torch.randn(BATCH, HEADS, n, WIDTH // HEADS)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).train(training)
    averaging = copy.deepcopy(theirs)  # a layer that ran twice would find its weights in the cache
    ours = MultiHeadAttention.from_torch(theirs)
    d2l_heads = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0, bias=True).train(training)
    d2l_dot = d2l.DotProductAttention(0.0).train(training)

    def fused_with_projections(x):
        split = [
            w(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for w in (ours.W_q, ours.W_k, ours.W_v)
        ]
        return ours.W_o(F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(-2))

    yield (
        "attention",
        heads,
        {
            "ours": lambda x: attention(x, x, x),
            "torch, fused (no weights)": lambda x: F.scaled_dot_product_attention(x, x, x),
            "d2l": lambda x: d2l_dot(*3 * [x.flatten(0, 1)]),  # it knows one batch axis
        },
    )
    yield (
        "multi-head, with weights",
        x,
        {
            "ours": ours,
            "torch, with weights": lambda x: theirs(x, x, x, average_attn_weights=False),
            "torch, with weights averaged (its default)": lambda x: averaging(x, x, x),
            "d2l": lambda x: d2l_heads(x, x, x, None),
        },
    )
    yield (
        "multi-head, without weights",
        x,
        {
            "ours": lambda x: ours(x, need_weights=False),
            "fused call + projections": fused_with_projections,
            "torch, without weights": lambda x: theirs(x, x, x, need_weights=False),
        },
    )
    if n <= 512:  # the hidden axis makes additive scoring large: 512² · 32 numbers are 34 MB
        additive = AdditiveAttention(WIDTH, WIDTH, HIDDEN).train(training)
        d2l_additive = d2l.AdditiveAttention(HIDDEN, 0.0).train(training)
        yield (
            "additive",
            x,
            {
                "ours": lambda x: additive(x, x, x),
                "d2l": lambda x: d2l_additive(x, x, x, None),
            },
        )


@contextlib.contextmanager
def silence():
    """The profiler writes to the process's own stderr, past Python."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def keep_freed_memory() -> None:
    """Let glibc keep what is freed, as it does with small blocks.

    It gives a block of 32 MB or more back at once, and the next call then measures how fast the system hands
    out pages: a third of the time, or by luck nothing.
    """
    with contextlib.suppress(OSError, AttributeError):  # another libc has other habits
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def peak_bytes(run) -> int:
    """Bytes that torch holds at the most while `run` works, beyond what it held before."""
    with silence(), torch.profiler.profile(profile_memory=True, record_shapes=False) as profile:
        run()
    held = peak = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def rounds(n: int) -> int:
    """Small sizes cost little, and vary more."""
    return 25 if n < 512 else 5 if n == 512 else 3


def one_after_another(call, functions, x):
    """All layers of a stack at the same input: what goes through them has no part in the time."""

    def run():
        for function in functions:
            call(function, x)

    return run


def rows() -> list[Row]:
    """Times at every size, and how time and memory grow with n."""
    torch.manual_seed(0)
    keep_freed_memory()
    torch.set_num_threads(1)  # so that processor time is the time of the work
    d2l, table, growth = load_d2l(), [], {}
    for n in SIZES:
        for direction, call in DIRECTIONS.items():
            training = direction == "forward + backward"
            stacks = [layers(d2l, n, training=training) for _ in range(DEPTH)]
            for stack in zip(*stacks, strict=True):
                layer, x, functions = stack[0]
                runs = {
                    name: one_after_another(call, [one[name] for _, _, one in stack], x)
                    for name in functions
                }
                times = side_by_side(runs, rounds=rounds(n), clock=time.process_time)
                each = {name: 1000 * seconds / DEPTH for name, seconds in times.items()}
                for peer in list(each)[1:]:
                    what = f"{layer}, n = {n}, {direction}"
                    table.append(Row("helpers", what, "ms", each["ours"], each[peer], peer))
                if direction == "forward without gradients":
                    series = growth.setdefault(layer, {})
                    for name, function in functions.items():
                        peak = peak_bytes(partial(call, function, x))
                        series.setdefault(name, []).append((n, each[name], peak))
    return table + [
        Row("growth", f"{layer}: p in {what} ∝ n^p", "", p["ours"], p[peer], peer)
        for layer, found in growth.items()
        for column, what in ((1, "time"), (2, "memory"))
        for p in [{name: power(series, column) for name, series in found.items()}]
        for peer in list(p)[1:]
    ]


def power(series: list[tuple], column: int) -> float:
    """The exponent of n, without the smallest size: there the fixed cost of a call shows."""
    return exponent([row[0] for row in series[1:]], [row[column] for row in series[1:]])
