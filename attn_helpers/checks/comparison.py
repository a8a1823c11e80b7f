"""Checks for chapter 8: what attention costs, how far convolution reaches, recurrence both ways."""

import math
from numbers import Real

import torch
from torch import Tensor

from attn_helpers import _validate as validate
from attn_helpers.checks._report import call, compare, passed, slip


def _counts(answer, sizes) -> Tensor:
    """The answer at every pair of sizes, as one tensor."""
    counts = []
    for pair in sizes:
        count = call(answer, *pair)
        if isinstance(count, Tensor) and count.numel() == 1:
            count = count.item()
        if isinstance(count, bool) or not isinstance(count, Real):
            slip(f"expected a number for {pair}, got {validate.describe(count)}")
        counts.append(float(count))
    return torch.tensor(counts, dtype=torch.float64)


def check_attention_cost(answer) -> None:
    """Check ``answer(n, d)``: the multiply-adds of one self-attention layer, n tokens of width d.

    Three projections of n·d² each, scores of n²·d, a weighted sum of n²·d. Chapter 8, exercise 1.
    """
    sizes = [(7, 5), (3, 16), (100, 64)]

    def of(formula) -> Tensor:
        return torch.tensor([float(formula(n, d)) for n, d in sizes], dtype=torch.float64)

    def right(n, d):
        return 3 * n * d**2 + 2 * n**2 * d

    compare(
        _counts(answer, sizes),
        of(right),
        slips={
            "the weighted sum is missing: after the scores, weights × values costs n²·d again": of(
                lambda n, d: 3 * n * d**2 + n**2 * d
            ),
            "the projections are missing: W_q, W_k and W_v cost n·d² each": (
                of(lambda n, d: 2 * n**2 * d),
                of(lambda n, d: n**2 * d),
            ),
            "scores and weighted sum are missing: each of the two costs n²·d": of(
                lambda n, d: 3 * n * d**2
            ),
            "the parameters of the projections are counted: each is used once for every token, n times": (
                of(lambda n, d: 3 * d**2),
                of(lambda n, d: 3 * d**2 + 2 * n**2 * d),
            ),
            "one projection is counted, and there are three": of(
                lambda n, d: n * d**2 + 2 * n**2 * d
            ),
            "these are the orders of growth, without their factors: three projections, two products "
            "of n²·d": of(lambda n, d: n * d**2 + n**2 * d),
            "a multiplication with its addition counts once here, not twice": of(
                lambda n, d: 2 * right(n, d)
            ),
            "n and d are swapped": of(lambda n, d: right(d, n)),
            "each of the n² scores is counted as one: it costs d multiply-adds, and so does each of the "
            "n·d entries of the weighted sum, n of them": (
                of(lambda n, d: 3 * n * d**2 + n**2),
                of(lambda n, d: 3 * n * d**2 + 2 * n**2),
                of(lambda n, d: 3 * n * d**2 + n**2 * d + n**2),
            ),
            "the softmax is counted as well: it multiplies no matrices, so it is left out here": of(
                lambda n, d: right(n, d) + n**2
            ),
            "W_o is counted as well: a single head of the full width has none here": of(
                lambda n, d: 4 * n * d**2 + 2 * n**2 * d
            ),
        },
        what="the count",
    )
    passed("three projections and two products: 3·n·d² + 2·n²·d multiply-adds")


def check_conv_layers(answer) -> None:
    """Check ``answer(n, width)``: how many convolutions until the last of n places sees the first.

    A centred window of odd width reaches (width − 1)/2 places further with each layer.
    Chapter 8, exercise 2.
    """
    sizes = [(16, 3), (16, 5), (17, 5), (100, 7), (2, 3), (64, 9), (6, 9)]

    def of(formula) -> Tensor:
        return torch.tensor([float(formula(n, w)) for n, w in sizes], dtype=torch.float64)

    compare(
        _counts(answer, sizes),
        of(lambda n, w: math.ceil(2 * (n - 1) / (w - 1))),
        slips={
            "half of the window looks the other way: a layer reaches (width − 1)/2 places further, "
            "not width − 1": (
                of(lambda n, w: math.ceil((n - 1) / (w - 1))),
                of(lambda n, w: math.ceil(n / (w - 1))),
            ),
            "a layer reaches (width − 1)/2 places further, not width": (
                of(lambda n, w: math.ceil(n / w)),
                of(lambda n, w: math.ceil((n - 1) / w)),
                of(lambda n, w: n // w),
            ),
            "rounded down: a layer too few does not reach the end": (
                of(lambda n, w: 2 * (n - 1) // (w - 1)),
            ),
            "a layer too many for some n: from the first place to the last it is n − 1 steps, not n; "
            "round their quotient up, instead of rounding down and adding 1": of(
                lambda n, w: math.ceil(2 * n / (w - 1))  # the same as ⌊2(n − 1)/(w − 1)⌋ + 1
            ),
            "log n is for windows with gaps that grow: here every layer reaches (width − 1)/2 places "
            "further": of(lambda n, w: math.ceil(math.log(n, w))),
            "rounded to the nearest: a fraction of a layer takes a whole one, so round up": of(
                lambda n, w: round(2 * (n - 1) / (w - 1))
            ),
            "not rounded: layers are whole": of(lambda n, w: 2 * (n - 1) / (w - 1)),
        },
        what="the number of layers",
    )
    passed("each layer reaches (width − 1)/2 places further, so ⌈2(n − 1)/(width − 1)⌉ layers")


def check_bidirectional(answer) -> None:
    """Check ``answer(x, forward, backward)``: two running functions, one from each end.

    Both take (n, d) and return states, (n, d_s), reading from the first row on. The second reads x from its end.
    Returns (n, 2·d_s): place by place, what was read up to it and what was read after it, itself included.
    Chapter 8, exercise 3.
    """
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(8))
    mix = torch.randn(3, 4, generator=torch.Generator().manual_seed(9))

    def forward(x):
        return x.cumsum(0) @ mix

    def backward(x):
        return torch.tanh(x @ mix).cumsum(0)

    ahead, back = forward(x), backward(x.flip(0)).flip(0)
    compare(
        call(answer, x.clone(), forward, backward),
        torch.cat([ahead, back], dim=-1),
        slips={
            "the second result is not turned back: its first row belongs to the last place": (
                torch.cat([ahead, back.flip(0)], dim=-1)
            ),
            "the second function reads from the front, too: turn x around before it": (
                torch.cat([ahead, backward(x)], dim=-1)
            ),
            "x is not turned around, its result is: turn both": (
                torch.cat([ahead, backward(x).flip(0)], dim=-1)
            ),
            "the features are turned around, not the sequence: flip axis 0": (
                torch.cat([ahead, backward(x.flip(-1)).flip(-1)], dim=-1)
            ),
            "the two are added: put them side by side, so that neither is lost": (
                ahead + back,
                (ahead + back) / 2,
            ),
            "the two follow one another along the sequence: join them along the last axis": (
                torch.cat([ahead, back], dim=0)
            ),
            "the halves are swapped: first what was read from the front": (
                torch.cat([back, ahead], dim=-1)
            ),
            "only one of the two functions is used": (
                torch.cat([ahead, forward(x.flip(0)).flip(0)], dim=-1),
                ahead,
                back,
            ),
        },
        what="the result",
    )
    passed("every place knows both sides: what came before it, and what comes after")
