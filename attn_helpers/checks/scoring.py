"""Checks for chapter 4: scoring functions, masks and the softmax."""

from numbers import Real

import torch
from torch import Tensor

from attn_helpers.attention import masked_softmax
from attn_helpers.checks._report import call, close, compare, passed, slip


def _random(*shape: int) -> Tensor:
    """Numbers of the check's own: the reader's seed is neither used nor moved."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(4))


def check_scaled_scores(answer) -> None:
    """Check ``answer(queries, keys)``: the scores S = Q Kᵀ / √d_k, for any batch axes.

    queries (..., q, d_k), keys (..., k, d_k) -> (..., q, k). Chapter 4, exercise 1.
    """
    heads, q, k, d = 3, 5, 11, 7
    for lead in [(), (heads,)]:
        queries, keys = _random(*lead, q, d), 1 + _random(*lead, k, d)
        products = queries @ keys.mT
        expected = products / d**0.5
        slips = {
            "the scores are not divided by √d_k": products,
            "divided by d_k: divide by its square root, √d_k": products / d,
            "multiplied by √d_k: divide by it": products * d**0.5,
            "** 1 / 2 is ** 1, and then / 2: the square root is ** 0.5": products / d / 2,
            "divided by the square root of the number of keys: "
            "d_k is the width of a key, the size of the last axis": products / k**0.5,
            "divided by the square root of the number of queries: "
            "d_k is the width of a query, the size of the last axis": products / q**0.5,
            "the scores are keys × queries: rows are queries in this book": expected.mT,
            "the sign is turned: a large dot product is a good score": -expected,
            "these are weights already: leave the softmax out": expected.softmax(-1),
            "these are squared distances: a dot product was asked for": (
                torch.cdist(queries, keys).square()
            ),
        }
        if lead:
            slips[
                "divided by √d_model, the width of all heads together: each head divides by "
                "the square root of its own width, √d_k"
            ] = products / (heads * d) ** 0.5
        compare(
            call(answer, queries.clone(), keys.clone()), expected, slips=slips, what="the scores"
        )
    passed("every query is scored against every key, and the scores are divided by √d_k")


def check_masked_weights(answer) -> None:
    """Check ``answer(scores, mask)``: the softmax over the keys that may be attended to.

    scores (..., q, k), mask bool (..., q, k), True = may be attended to -> weights (..., q, k).
    Masked keys get exactly 0, an empty row is all 0, and scores is left as it was.
    Chapter 4, exercise 2.
    """
    scores = 2 * _random(2, 5, 7)
    # A pattern in which every row and every column has both a True and a False.
    mask = (torch.arange(5)[:, None] + torch.arange(7)) % 3 > 0
    mask = torch.stack([mask, ~mask])
    expected = masked_softmax(scores, mask)
    plain = scores.softmax(-1)
    given = scores.clone()
    result = call(answer, given, mask.clone())
    if isinstance(result, Tensor) and result.isnan().all():
        slip("everything is NaN: 0 times minus infinity is NaN, so use masked_fill instead")
    down = scores.masked_fill(~mask, -torch.inf)
    compare(
        result,
        expected,
        slips={
            "the mask is inverted: True = may be attended to": masked_softmax(scores, ~mask),
            "the mask is not used": plain,
            "the softmax runs over the queries: it must run over the keys, the last axis": (
                down.softmax(-2)
            ),
            "the softmax runs over the whole matrix: each row has to sum to 1": (
                down.flatten(1).softmax(-1).reshape_as(scores)
            ),
            "the weights are masked after the softmax, so rows no longer sum to 1: "
            "mask the scores": plain * mask,
            "the scores are multiplied by the mask: a score of 0 still gets exp(0) = 1; use -inf": (
                scores * mask
            ).softmax(-1),
            "the mask is added as 0 and 1: masked scores must become -inf": (
                (scores + mask.float()).softmax(-1)
            ),
            "the weights are not divided by their sum": scores.exp() * mask,
        },
        what="the weights",
    )
    if not torch.equal(given, scores):
        slip("your function changes the scores it was given: work on a copy, as masked_fill does")

    low = scores - 1e12  # as good as any other scores: a softmax knows differences only
    shifted = call(answer, low.clone(), mask).detach()
    if (shifted[~mask] != 0).any():
        slip(
            "a finite 'minus infinity' leaks: with scores below it, masked keys get weight; use -inf"
        )
    if not close(shifted.sum(-1), torch.ones(mask.shape[:-1])):
        slip(
            "with very low scores the visible keys lose their weight: a softmax compares scores with "
            "the largest visible one; fill the others with -inf before it"
        )

    mask[0, 2] = False
    row = call(answer, scores.clone(), mask)[0, 2]
    if row.isnan().any():
        slip("a row that may look at nothing is NaN: it should be all 0")
    if (row > 0).all():
        slip("a row that may look at nothing spreads its weight over masked keys: it should be 0")
    if (row != 0).any():
        slip("a row that may look at nothing should be all 0")
    passed("masked keys get exactly 0, every other row sums to 1, and an empty row is all 0")


def check_additive_scores(answer) -> None:
    """Check ``answer(queries, keys, W_q, W_k, w_v)``: the scores sᵢⱼ = tanh(qᵢ W_q + kⱼ W_k) w_v.

    queries (..., q, d_q), keys (..., k, d_k), W_q (d_q, d_h), W_k (d_k, d_h), w_v (d_h,)
    -> (..., q, k).
    Chapter 4, exercise 3.
    """
    for lead in [(), (2,)]:
        queries, keys = _random(*lead, 3, 7), 1 + _random(*lead, 5, 11)
        W_q, W_k, w_v = _random(7, 13) / 2, _random(11, 13) / 3, _random(13)
        left, right = (queries @ W_q).unsqueeze(-2), (keys @ W_k).unsqueeze(-3)
        hidden = torch.tanh(left + right)
        expected = hidden @ w_v
        compare(
            call(answer, queries.clone(), keys.clone(), W_q.clone(), W_k.clone(), w_v.clone()),
            expected,
            slips={
                "the tanh is missing": (left + right) @ w_v,
                "another function stands in the place of the tanh": (
                    torch.sigmoid(left + right) @ w_v,
                    torch.relu(left + right) @ w_v,
                ),
                "the tanh comes after w_v: it acts on the hidden units, before they are summed": (
                    torch.tanh((left + right) @ w_v)
                ),
                "the tanh acts on query and key apart: add them first, or no unit ever compares them": (
                    (left.tanh() + right.tanh()) @ w_v
                ),
                "query and key are multiplied: they have to be added": (left * right).tanh() @ w_v,
                "w_v is missing: the hidden axis is still there": hidden,
                "the hidden units are added up without w_v": hidden.sum(-1),
                "an axis of size 1 is left over: squeeze it": expected.unsqueeze(-1),
                "the scores are keys × queries: rows are queries in this book": expected.mT,
                "these are weights already: leave the softmax out": expected.softmax(-1),
                "the scores are divided by √d_h: only a dot product needs a scale": expected
                / 13**0.5,
            },
            what="the scores",
        )
    passed("every query is compared with every key in the hidden layer, and w_v makes it one score")


def check_bandwidth(answer) -> None:
    """Check ``answer(d)``: the bandwidth σ for which a Gaussian kernel on keys of equal norm gives
    the weights of scaled dot-product attention of width d. Chapter 4, exercise 4.
    """
    widths = [4, 16, 64, 12_288]
    results = []
    for d in widths:
        result = call(answer, d)
        if isinstance(result, Tensor) and result.numel() == 1:
            result = result.item()
        if not isinstance(result, Real):
            slip(f"the bandwidth should be one number, got {type(result).__name__} for d = {d}")
        results.append(float(result))
    d = torch.tensor(widths, dtype=torch.float64)
    compare(
        torch.tensor(results, dtype=torch.float64),
        d**0.25,
        slips={
            "this is σ², the temperature: σ is its square root": d**0.5,
            "this is the factor in front of the scores: a wide kernel has a large σ": d**-0.5,
            "this is 1/σ: the bandwidth itself grows with d": d**-0.25,
            "d ** 1 / 4 is d / 4: put the exponent in brackets, d ** (1 / 4)": d / 4,
            "this is d: the temperature is √d, and σ² is the temperature": d,
            "a factor 2 too much: the 2 of 2σ² cancels that of ‖q − k‖² = … − 2 q·k": (
                (2 * d**0.5) ** 0.5
            ),
            "a factor 2 too little: the 2 of 2σ² cancels that of ‖q − k‖² = … − 2 q·k": (
                (d**0.5 / 2) ** 0.5
            ),
        },
        what="the bandwidth",
    )
    passed("dividing by √d is a Gaussian kernel with σ² = √d: one knob, two names")
