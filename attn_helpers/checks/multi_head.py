"""Checks for chapter 6: splitting heads, attending with many, and what each contributes."""

import torch
from torch import Tensor

from attn_helpers.checks._report import call, compare, passed, slip
from attn_helpers.checks.self_attention import output_of, random


def _split(x: Tensor, h: int) -> Tensor:
    """(..., n, d) -> (..., h, n, d_k), the right way."""
    return x.unflatten(-1, (h, -1)).transpose(-3, -2)


def _merge(heads: Tensor) -> Tensor:
    """(..., h, n, d_k) -> (..., n, d), the right way."""
    return heads.transpose(-3, -2).flatten(-2)


def _view(x: Tensor, h: int) -> Tensor:
    """(n, d) -> (h, n, d_k), the wrong way: it cuts rows off the top."""
    return x.reshape(*x.shape[:-2], h, x.shape[-2], -1)


def check_split_heads(answer) -> None:
    """Check ``answer(x, h)``: head r gets the columns from r·d_k up to (r+1)·d_k of every row.

    x (..., n, d) -> (..., h, n, d_k) with d_k = d / h. Chapter 6, exercise 1.
    """
    h = 3
    for shape in [(5, 12), (2, 5, 12)]:
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        compare(
            call(answer, x.clone(), h),
            _split(x, h),
            slips={
                "a reshape alone: view(h, n, d_k) gives head 0 the first rows, not the first columns "
                "of every row": _view(x, h),
                "the heads are still behind the rows: the shape is (n, h, d_k), and a transpose is "
                "missing": x.unflatten(-1, (h, -1)),
                "a head gets every h-th column: it owns d_k columns that stand side by side": (
                    x.unflatten(-1, (-1, h)).movedim(-1, -3)
                ),
                "h and d_k have changed places: h heads of width d_k": (
                    x.unflatten(-1, (-1, h)).transpose(-3, -2)
                ),
                "the wrong two axes are swapped: (…, n, h, d_k) needs axes -3 and -2": (
                    x.unflatten(-1, (h, -1)).mT
                ),
                "the heads stand before the batch: count axes from the end, with -3 and -2": (
                    x.unflatten(-1, (h, -1)).transpose(0, 1),
                    x.unflatten(-1, (h, -1)).movedim(-2, 0),
                ),
            },
            what="the heads",
        )
    passed("every head has its own columns of every row")


def check_multi_head(answer) -> None:
    """Check ``answer(x, W_q, W_k, W_v, W_o, h)``: concat(Z_1 … Z_h) W_o, all matrices (d, d).

    x (n, d) -> (n, d). Chapter 6, exercise 2.
    """
    h, d_k = 3, 4
    for n in (4, 5):  # 4 = d_k: there a product without its transpose runs, and can be named
        d = h * d_k
        x = random(n, d, seed=1)
        W_q, W_k, W_v, W_o = (random(d, d, seed=s) / d**0.5 for s in (2, 3, 4, 5))
        W_q = 4 * W_q  # sharp weights, so that no slip drowns
        q, k, v = x @ W_q, x @ W_k, x @ W_v

        def attend(q, k, v, scale=d_k**-0.5, axis=-1):
            return (q @ k.mT * scale).softmax(axis) @ v

        def heads(q=q, k=k, v=v, **options):
            return attend(_split(q, h), _split(k, h), _split(v, h), **options)

        def stripes(t):  # (n, d) -> (h, n, d_k): every h-th column
            return t.unflatten(-1, (d_k, h)).movedim(-1, 0)

        own = [slice(r * d_k, (r + 1) * d_k) for r in range(h)]
        pieces = [
            attend(x[:, s] @ W_q[s, s], x[:, s] @ W_k[s, s], x[:, s] @ W_v[s, s]) for s in own
        ]
        again = [attend(q[:, s] @ W_q[s, s], k[:, s] @ W_k[s, s], v[:, s] @ W_v[s, s]) for s in own]
        beside = (t.unflatten(-1, (h, d_k)) for t in (q, k, v))  # (n, h, d_k)
        viewed = attend(*(_view(t, h) for t in (q, k, v)))
        slips = {
            "W_o is forgotten: it mixes the heads at the end": _merge(heads()),
            "divided by √d_model: each head divides by its own √d_k = √(d/h)": (
                _merge(heads(scale=d**-0.5)) @ W_o
            ),
            "the scores are not divided by √d_k": _merge(heads(scale=1.0)) @ W_o,
            "divided by d_k: divide by its square root, √d_k": _merge(heads(scale=1 / d_k)) @ W_o,
            "divided by d, the width of the model: each head divides by √d_k, the root of its own": (
                _merge(heads(scale=1 / d)) @ W_o
            ),
            "the scores are multiplied by √d_k: divide by it": _merge(heads(scale=d_k**0.5)) @ W_o,
            "the softmax is missing: every row of weights sums to 1": (
                _merge(_split(q, h) @ _split(k, h).mT * d_k**-0.5 @ _split(v, h)) @ W_o
            ),
            "divided by √h, the number of heads: divide by √d_k, the width of a head": (
                _merge(heads(scale=h**-0.5)) @ W_o
            ),
            "the softmax runs over the queries: it must run over the keys, the last axis": (
                _merge(heads(axis=-2)) @ W_o
            ),
            "the softmax runs over the heads: it must run over the keys, the last axis": (
                _merge(heads(axis=-3)) @ W_o
            ),
            "heads by reshape alone: view(h, n, d_k) cuts rows off, not columns; "
            "view(n, h, d_k) and a transpose are needed": _merge(viewed) @ W_o,
            "heads by reshape alone, on the way in and out: view(n, h, d_k) and a transpose are "
            "needed": viewed.reshape(n, d) @ W_o,
            "the heads are put together by reshape alone: transpose back to (n, h, d_k) first": (
                heads().reshape(n, d) @ W_o
            ),
            "a product without the transpose: over (n, h, d_k) the heads of one row attend to one "
            "another; bring the heads forward first": attend(*beside).flatten(-2) @ W_o,
            "there is one head only, of full width: split into h": attend(q, k, v, d**-0.5) @ W_o,
            "the heads' scores are added: that gives one full-width head back; keep the heads apart": (
                attend(q, k, v) @ W_o
            ),
            "V is built from the keys: values have a matrix of their own, W_v": (
                _merge(heads(v=k)) @ W_o
            ),
            "V is x itself: the values are x W_v": _merge(heads(v=x)) @ W_o,
            "x is projected twice: once by each matrix is enough": (
                _merge(heads(q @ W_q, k @ W_k, v @ W_v)) @ W_o
            ),
            "the inputs are projected again inside each head": torch.cat(again, -1) @ W_o,
            "queries, keys and values are not projected": _merge(heads(x, x, x)) @ W_o,
            "queries and keys have changed places: the scores are Q Kᵀ": _merge(heads(k, q)) @ W_o,
            "W_o is transposed: row vectors stand on the left, x W": (_merge(heads()) @ W_o.T),
            "the matrices are transposed: row vectors stand on the left, x W": (
                _merge(heads(x @ W_q.T, x @ W_k.T, x @ W_v.T)) @ W_o.T,
                _merge(heads(x @ W_q.T, x @ W_k.T, x @ W_v.T)) @ W_o,
            ),
            "x is split before it is projected: every head projects all of x": (
                torch.cat(pieces, -1) @ W_o
            ),
            "a head gets every h-th column: it owns d_k columns that stand side by side": (
                attend(stripes(q), stripes(k), stripes(v)).movedim(0, -1).flatten(-2) @ W_o,
                _merge(attend(stripes(q), stripes(k), stripes(v))) @ W_o,
            ),
            "the columns of the heads are interleaved: put whole heads side by side": (
                heads().movedim(0, -1).flatten(-2) @ W_o
            ),
            "the heads' weights are averaged: each head mixes its own values with its own weights": (
                (_split(q, h) @ _split(k, h).mT * d_k**-0.5).softmax(-1).mean(0) @ v @ W_o
            ),
            "x is added to the output: that waits for chapter 9": _merge(heads()) @ W_o + x,
            "the heads stand one below another: put them side by side": (
                heads().flatten(0, 1),
                heads().transpose(0, 1).flatten(0, 1),
            ),
            "the heads are averaged: put them side by side instead": (
                heads().mean(0).repeat(1, h) @ W_o
            ),
        }
        if n == d_k:
            slips["a transpose is missing: a head's scores are Q Kᵀ, not Q K"] = (
                _merge(attend(_split(q, h), _split(k, h).mT, _split(v, h))) @ W_o
            )
        compare(
            output_of(call(answer, *(t.clone() for t in (x, W_q, W_k, W_v, W_o)), h)),
            _merge(heads()) @ W_o,
            slips=slips,
            what="the output",
        )
    passed("the heads attend side by side, and W_o mixes them")


def check_head_contributions(answer) -> None:
    """Check ``answer(heads, W_o)``: Z_r W_o⁽ʳ⁾, what each head r adds to the output.

    heads (h, n, d_k), W_o (h·d_k, d) -> (h, n, d). Chapter 6, exercise 3.
    """
    h, n = 3, 5
    for d_k, d in [
        (4, 12),
        (4, 7),
    ]:  # a square W_o first: there its columns can be taken for its rows
        heads, W_o = random(h, n, d_k, seed=1), random(h * d_k, d, seed=2)
        expected = heads @ W_o.unflatten(0, (h, d_k))
        slips = {
            "this is the sum already: give every head's share": expected.sum(0),
            "a head multiplies every h-th row of W_o: its rows stand one below another": (
                heads @ W_o.unflatten(0, (d_k, h)).transpose(0, 1)
            ),
            "the shares are averaged over the heads: they are added": expected / h,
            "every head multiplies the first rows of W_o: each has rows of its own": heads
            @ W_o[:d_k],
            "this is the whole output once for each head: give only the head's own share": (
                expected.sum(0).expand(h, -1, -1)
            ),
            "the first axis must be the heads: (h, n, d)": expected.transpose(0, 1),
        }
        if d == h * d_k:
            slips[
                "W_o is cut into columns: head r owns its rows from r·d_k up to (r+1)·d_k, counting from 0"
            ] = heads @ W_o.T.unflatten(0, (h, d_k))
        compare(call(answer, heads.clone(), W_o.clone()), expected, slips=slips, what="the shares")
    passed("the shares of the heads add up to concat(heads) W_o")


def check_torch_mask(answer) -> None:
    """Check ``answer(mask, h)``: our mask (b, q, k) as the attn_mask of torch.nn.MultiheadAttention.

    Torch wants (b·h, q, k), the heads of one sequence next to one another, and True = leave out.
    Chapter 6, exercise 4.
    """
    b, h, q, k = 2, 3, 4, 5
    mask = random(b, q, k) > 0
    expected = (~mask).repeat_interleave(h, dim=0)
    result = call(answer, mask.clone(), h)
    if isinstance(result, Tensor) and result.is_floating_point():  # torch adds it to the scores
        if not result.isneginf().any():
            slip("torch adds a float mask to the scores: only minus infinity hides a key")
        if result[~result.isneginf()].any():
            slip("torch adds a float mask to the scores: where a key may be seen it has to be 0")
        result = result.isneginf()
    elif isinstance(result, Tensor) and result.dtype != torch.bool:
        slip(f"torch takes a mask of True and False here, got {result.dtype}")
    numbers = result.int() if isinstance(result, Tensor) else result
    compare(
        numbers,
        expected.int(),
        slips={
            "the mask is inverted: torch's True means leave out": (1 - expected.int()),
            "the heads of different sequences are mixed up: use repeat_interleave, not repeat": (
                (~mask).repeat(h, 1, 1).int()
            ),
            "neither inverted nor in order: torch's True means leave out, and the heads of one "
            "sequence stand next to one another": mask.repeat(h, 1, 1).int(),
            "inverted, but not repeated for every head": (~mask).int(),
            "not repeated for every head, and not inverted": mask.int(),
            "rows are repeated, not whole masks: repeat along the first axis": (
                (~mask).repeat_interleave(h, dim=1).int()
            ),
            "the heads have an axis of their own: torch wants (b·h, q, k), one axis for both": (
                (~mask).int().unsqueeze(1).expand(-1, h, -1, -1)
            ),
        },
        what="the mask",
    )
    passed("torch's layer leaves out what ours does")
