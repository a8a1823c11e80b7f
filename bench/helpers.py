"""The helpers against torch's own layers, and against the same formulas as the d2l package has them."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import torch
import torch.nn.functional as F
from torch import nn

from attn_helpers import AdditiveAttention, MultiHeadAttention, attention
from bench.rows import Row, exponent, side_by_side

SIZES = (64, 128, 256, 512, 1024, 2048)
WIDTH, HEADS, BATCH, HIDDEN = 64, 8, 4, 32
os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # the memory profiler is talkative
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


def forward_backward(layer, *inputs):
    """A call that goes forward, and one that goes back as well."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]

    def forward():
        with torch.no_grad():
            return layer(*inputs)

    def backward():
        output = layer(*leaves)
        (output[0] if isinstance(output, tuple) else output).sum().backward()

    return {"forward": forward, "forward + backward": backward}


def peak_bytes(run) -> int:
    """Bytes that torch holds at the most while `run` works, beyond what it held before."""
    with torch.profiler.profile(profile_memory=True, record_shapes=False) as profile:
        run()
    held = peak = 0
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def cases(d2l, n: int):
    """For each layer: ours first, then its peers, all on the same inputs."""
    x = torch.randn(BATCH, n, WIDTH)
    heads = torch.randn(BATCH, HEADS, n, WIDTH // HEADS)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    ours = MultiHeadAttention.from_torch(theirs)
    d2l_heads = d2l.MultiHeadAttention(WIDTH, HEADS, 0.0, bias=True)
    d2l_dot = d2l.DotProductAttention(0.0)
    flat = heads.flatten(0, 1)

    def fused_with_projections(x):
        split = [
            w(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for w in (ours.W_q, ours.W_k, ours.W_v)
        ]
        return ours.W_o(F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(-2))

    yield (
        "attention",
        {
            "ours": forward_backward(lambda x: attention(x, x, x), heads),
            "torch, fused (no weights)": forward_backward(
                lambda x: F.scaled_dot_product_attention(x, x, x), heads
            ),
            "d2l": forward_backward(lambda x: d2l_dot(x, x, x), flat),
        },
    )
    yield (
        "multi-head, with weights",
        {
            "ours": forward_backward(lambda x: ours(x), x),
            "torch, with weights": forward_backward(
                lambda x: theirs(x, x, x, average_attn_weights=False), x
            ),
            "d2l": forward_backward(lambda x: d2l_heads(x, x, x, None), x),
        },
    )
    yield (
        "multi-head, without weights",
        {
            "ours": forward_backward(lambda x: ours(x, need_weights=False), x),
            "fused call + projections": forward_backward(fused_with_projections, x),
            "torch, without weights": forward_backward(
                lambda x: theirs(x, x, x, need_weights=False), x
            ),
        },
    )
    if n <= 512:  # the hidden axis makes additive scoring large: 4 · 512² · 32 numbers are 134 MB
        additive, d2l_additive = (
            AdditiveAttention(WIDTH, WIDTH, HIDDEN),
            d2l.AdditiveAttention(HIDDEN, 0.0),
        )
        yield (
            "additive",
            {
                "ours": forward_backward(lambda x: additive(x, x, x), x),
                "d2l": forward_backward(lambda x: d2l_additive(x, x, x, None), x),
            },
        )


def rows() -> list[Row]:
    """Times at every size, and how time and memory grow with n."""
    torch.manual_seed(0)
    d2l, table, growth = load_d2l(), [], {}
    for n in SIZES:
        for layer, runs in cases(d2l, n):
            for direction in ("forward", "forward + backward"):
                times = side_by_side(
                    {name: run[direction] for name, run in runs.items()},
                    rounds=15 if n < 1024 else 7,
                )
                ours = 1000 * times.pop("ours")
                for peer, time in times.items():
                    what = f"{layer}, n = {n}, {direction}"
                    table.append(Row("helpers", what, "ms", ours, 1000 * time, peer))
            for name, run in runs.items():
                time = side_by_side({name: run["forward"]}, rounds=5)[name]
                growth.setdefault((layer, name), []).append((n, time, peak_bytes(run["forward"])))
    for layer, name in growth:
        if name == "ours":
            continue
        for what, column in (("time", 1), ("memory", 2)):
            p = {}
            for who in ("ours", name):
                large = growth[layer, who][
                    1:
                ]  # at the smallest size the fixed cost of a call shows
                p[who] = exponent([row[0] for row in large], [row[column] for row in large])
            table.append(
                Row("growth", f"{layer}: p in {what} ∝ n^p, forward", "", p["ours"], p[name], name)
            )
    return table
