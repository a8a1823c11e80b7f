"""Checks for chapter 5: self-attention in rows, in columns and with a causal mask."""

import torch
from torch import Tensor

from attn_helpers.attention import causal_mask, masked_softmax
from attn_helpers.checks._report import call, close, compare, passed, slip


def random(*shape: int, seed: int = 5) -> Tensor:
    """Numbers of the check's own: the reader's seed is neither used nor moved."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def output_of(answer):
    """The output, from an answer that returns it alone or as (output, weights)."""
    return answer[0] if isinstance(answer, tuple) and answer else answer


def _inputs(n: int, d: int, d_k: int, d_v: int):
    """x (n, d) and three matrices, neither small nor centred, so that no slip hides."""
    return (
        random(n, d, seed=1) + 0.3,
        random(d, d_k, seed=2),
        random(d, d_k, seed=3) + 0.2,
        random(d, d_v, seed=4),
    )


# The first sizes are all equal: there a forgotten transpose runs, and can be named. The second are
# all different: there nothing fits by accident.
SIZES = [(4, 4, 4, 4), (5, 7, 3, 2)]


def _slips(
    x: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor
) -> dict[str, Tensor | tuple[Tensor, ...]]:
    """What the classic slips of exercise 1 give."""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    (n, d), d_k = x.shape, q.shape[-1]
    scores, root = q @ k.T, d_k**0.5
    weights = (scores / root).softmax(-1)
    slips = {
        "the scores are not divided by √d_k": scores.softmax(-1) @ v,
        "divided by d_k: divide by its square root, √d_k": (scores / d_k).softmax(-1) @ v,
        "multiplied by √d_k: divide by it": (scores * root).softmax(-1) @ v,
        "** 1 / 2 is ** 1, and then / 2: the square root is ** 0.5": (
            (scores / d_k / 2).softmax(-1) @ v
        ),
        "the softmax runs over the queries: it must run over the keys, the last axis": (
            (scores / root).softmax(0) @ v
        ),
        "the softmax runs over the whole matrix: each row has to sum to 1": (
            (scores / root).flatten().softmax(0).view(n, n) @ v
        ),
        "there is no softmax: scores are not weights yet": scores / root @ v,
        "the weights are transposed: rows are queries, so the output is A V": weights.T @ v,
        "queries and keys have changed places: the scores are Q Kᵀ": (
            (scores.T / root).softmax(-1) @ v
        ),
        "V is built from the keys: values have a matrix of their own, W_v": weights @ k,
        "V is x itself: the values are x W_v": weights @ x,
        "queries and keys are x itself: project with W_q and W_k first": (
            (x @ x.T / d**0.5).softmax(-1) @ v
        ),
        "the scores are Q Qᵀ: keys have a matrix of their own, W_k": (q @ q.T / root).softmax(-1)
        @ v,
        "the weights are divided by √d_k: divide the scores, before the softmax": (
            scores.softmax(-1) / root @ v
        ),
        "the weights are divided by n: they sum to 1 already": weights @ v / n,
        "these are the weights: mix the values with them": weights,
        "these are the scores: a softmax and the values are missing": (scores, scores / root),
    }
    if d_k != v.shape[-1]:
        slips["divided by √d_v, the width of a value: divide by √d_k, the width of a key"] = (
            scores / v.shape[-1] ** 0.5
        ).softmax(-1) @ v
    if d != d_k:
        slips["divided by √d_model, the width of x: divide by √d_k, the width of a key"] = (
            scores / d**0.5
        ).softmax(-1) @ v
    if n != d_k:
        slips["divided by the square root of the number of rows: d_k is the width of a key"] = (
            scores / n**0.5
        ).softmax(-1) @ v
    if n == d == d_k == v.shape[-1]:
        slips |= {
            "a transpose is missing: the scores are Q Kᵀ, not Q K": (q @ k / root).softmax(-1) @ v,
            "the matrices are transposed: row vectors stand on the left, x W": (
                (x @ W_q.T @ (x @ W_k.T).T / root).softmax(-1) @ (x @ W_v.T)
            ),
            "x stands on the wrong side of the matrices: with rows it is x W, not W x": (
                ((W_q @ x) @ (W_k @ x).T / root).softmax(-1) @ (W_v @ x)
            ),
            "V is K W_v: values are made from x, not from the keys": weights @ (k @ W_v),
            "the values stand on the wrong side: with rows the output is A V": v @ weights,
            "x is projected twice: once by each matrix is enough": (
                (q @ W_q @ (k @ W_k).T / root).softmax(-1) @ (v @ W_v)
            ),
            "x is added to the output: in this chapter the mix replaces it": weights @ v + x,
        }
    return slips


def check_self_attention(answer) -> None:
    """Check ``answer(x, W_q, W_k, W_v)``: the output Z = softmax(Q Kᵀ / √d_k) V.

    x (n, d), W_q and W_k (d, d_k), W_v (d, d_v) -> (n, d_v). Chapter 5, exercise 1.
    """
    for sizes in SIZES:
        x, W_q, W_k, W_v = inputs = _inputs(*sizes)
        scores = (x @ W_q) @ (x @ W_k).T / W_q.shape[-1] ** 0.5
        compare(
            output_of(call(answer, *(t.clone() for t in inputs))),
            scores.softmax(-1) @ (x @ W_v),
            slips=_slips(*inputs),
            what="the output",
        )
    passed("every row is compared with every row, and mixes their values")


def check_column_attention(answer) -> None:
    """Check ``answer(Q, K, V)`` in columns: Z = V softmax(Kᵀ Q / √d_k), the softmax down the columns.

    Q and K (d_k, n), V (d_v, n) -> (d_v, n). Chapter 5, exercise 2.
    """
    for n, d_k, d_v in [(4, 4, 4), (5, 3, 2)]:
        q, k, v = random(d_k, n, seed=1), random(d_k, n, seed=2) + 0.2, random(d_v, n, seed=3)
        scores, root = k.T @ q, d_k**0.5
        expected = v @ (scores / root).softmax(0)
        slips = {
            "the softmax runs along the rows: in columns, a query's weights stand below one another": (
                v @ (scores / root).softmax(1)
            ),
            "a transpose is missing: your matrix has a query's weights in a row, so it needs to be "
            "transposed before V stands on its left": v @ (scores.T / root).softmax(1),
            "queries and keys have changed places: the scores are Kᵀ Q": (
                v @ (scores.T / root).softmax(0)
            ),
            "the scores are not divided by √d_k": v @ scores.softmax(0),
            "divided by d_k: divide by its square root, √d_k": v @ (scores / d_k).softmax(0),
            "this is the transpose: outputs are columns here": expected.T,
            "V is built from the keys": k @ (scores / root).softmax(0),
            "these are the weights: mix the values with them": (scores / root).softmax(0),
        }
        if d_v != d_k:
            slips["divided by √d_v, the width of a value: divide by √d_k, the width of a key"] = (
                v @ (scores / d_v**0.5).softmax(0)
            )
        if n != d_k:
            slips[
                "divided by √n, the number of vectors: in columns the width d_k is the first axis"
            ] = v @ (scores / n**0.5).softmax(0)
        else:
            slips |= {
                "a transpose is missing: the scores are Kᵀ Q, not K Q": (
                    v @ (k @ q / root).softmax(0)
                ),
                "columns are taken for rows: here every vector is a column": (
                    (q @ k.T / root).softmax(-1) @ v
                ),
                "the values stand on the wrong side: with columns the output is V A": (
                    (scores / root).softmax(0) @ v
                ),
            }
        compare(
            output_of(call(answer, q.clone(), k.clone(), v.clone())),
            expected,
            slips=slips,
            what="the output",
        )
    passed("the columns say the same as the rows")


def check_look_back(answer) -> None:
    """Check ``answer(x, W_q, W_k, W_v)``: self-attention in which row i sees rows 0 … i only.

    Shapes as in `check_self_attention`. Chapter 5, exercise 3.
    """
    for sizes in SIZES:
        x, W_q, W_k, W_v = inputs = _inputs(*sizes)
        k, v, n, root = x @ W_k, x @ W_v, len(x), W_q.shape[-1] ** 0.5
        scores = (x @ W_q) @ k.T / root
        causal = causal_mask(n)
        off = torch.zeros(n, n).masked_fill(~causal, -torch.inf)

        def seen(mask, scores=scores):
            return scores.masked_fill(~mask, -torch.inf).softmax(-1)

        result = output_of(call(answer, *(t.clone() for t in inputs)))
        slips = {
            "the mask is not used: row 0 sees what comes after it": scores.softmax(-1) @ v,
            "the mask is inverted: True = may be attended to, and later rows may not": (
                seen(~causal) @ v
            ),
            "the mask is transposed: row i must see rows up to i, not from i on": (
                seen(causal.T) @ v
            ),
            "a row must see itself, too: j ≤ i, not j < i": seen(causal.tril(-1)) @ v,
            "the weights are masked after the softmax, so rows no longer sum to 1": (
                scores.softmax(-1) * causal @ v
            ),
            "masked scores are set to 0, and exp(0) is 1: use minus infinity": (
                (scores * causal).softmax(-1) @ v
            ),
            "the 0/1 mask is added to the scores: that hardly moves them": (
                (scores + causal.float()).softmax(-1) @ v
            ),
            "the softmax runs over the queries: it must run over the keys, the last axis": (
                (scores + off).softmax(0) @ v
            ),
            "row i sees one row too many: j ≤ i, not j ≤ i + 1": (
                seen(torch.ones(n, n, dtype=torch.bool).tril(1)) @ v
            ),
            "a hidden score is finite, and lets a little through: use minus infinity": tuple(
                (scores + (~causal) * low).softmax(-1) @ v for low in (-1.0, -5.0, -10.0)
            )
            + tuple(
                scores.masked_fill(~causal, low).softmax(-1) @ v for low in (-1.0, -5.0, -10.0)
            ),
            "the scores are not divided by √d_k": seen(causal, scores * root) @ v,
            "divided by d_k: divide by its square root, √d_k": seen(causal, scores / root) @ v,
            "V is built from the keys: values have a matrix of their own, W_v": seen(causal) @ k,
            "V is x itself: the values are x W_v": seen(causal) @ x,
            "queries and keys are x itself: project with W_q and W_k first": (
                seen(causal, x @ x.T / x.shape[-1] ** 0.5) @ v
            ),
        }
        if x.shape[-1] != W_q.shape[-1]:
            slips["divided by √d_model, the width of x: divide by √d_k, the width of a key"] = (
                seen(causal, scores * root / x.shape[-1] ** 0.5) @ v
            )
        if isinstance(result, Tensor):  # rows that see nothing are NaN, which equals nothing
            shown = result.detach().nan_to_num(9e3)
            for sentence, wrong in slips.items():
                for one in wrong if isinstance(wrong, tuple) else (wrong,):
                    if close(shown, one.nan_to_num(9e3)):
                        slip(sentence)
            if result.isnan().all():
                slip("everything is NaN: 0 times minus infinity is NaN, so use masked_fill instead")
        compare(result, masked_softmax(scores, causal) @ v, slips={}, what="the output")

        steep = 1e6 * W_q  # row 0 scores itself about -1e12, and may see nobody else
        low = output_of(call(answer, x.clone(), steep, -steep, W_v.clone()))
        if not close(low[0].detach(), v[0]):
            slip(
                "a finite 'minus infinity' leaks: with visible scores below it, hidden rows get weight; use -inf"
            )
    passed("no row sees what comes after it, and every row sees itself")
