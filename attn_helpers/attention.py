"""Scores, masks, softmax, weighted sum: attention in a few functions.

Shapes: q queries, k keys, d the width of queries and keys, v that of values; `...` are batch axes.
Every weight matrix is queries × keys, and every row sums to 1, or is all 0.
"""

import math

import torch
from jaxtyping import Bool, Float, Integer
from torch import Tensor, nn

from attn_helpers import _validate as validate

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def masked_softmax(
    scores: Float[Tensor, "*batch keys"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch keys"]:
    """Turn scores into weights: αᵢⱼ = exp(sᵢⱼ) / Σₗ exp(sᵢₗ), summing over the keys that i may see.

    scores: (..., keys), any floating dtype; the weights keep shape and dtype, scores stays as is.
    mask: bool, broadcastable to scores, True = may be attended to, as in
    `torch.nn.functional.scaled_dot_product_attention` (`torch.nn.MultiheadAttention` has it the
    other way round).

    A masked key gets exactly 0. A row that may look at nothing is all 0, and so is its gradient.
    Raises TypeError for scores that are not floating point or a mask that is not bool, ValueError
    for a mask that does not broadcast or scores without keys.
    Chapter 4, "Masks".
    """
    validate.float_tensor("scores", scores, shape="(..., keys)", min_ndim=1)
    validate.some_keys("scores", scores, -1)
    if mask is None:
        return torch.softmax(scores, dim=-1)
    validate.mask(mask, "scores", scores.shape, scores.device)
    # Masking with -inf, not with a large negative number, makes masked weights exactly 0. An empty
    # row would be softmax(-inf, …, -inf) = NaN: it is softened as zeros and set to 0 afterwards.
    visible = torch.where(mask, scores, -math.inf)
    seen, all_see = rows_that_see(mask)
    if all_see:  # the usual case, and it saves two passes over the weights
        return torch.softmax(visible, dim=-1)
    weights = torch.softmax(torch.where(seen, visible, 0.0), dim=-1)
    return torch.where(seen, weights, 0.0)


def rows_that_see(mask: Tensor) -> tuple[Tensor, bool]:
    """Which rows (..., q, 1) of a mask may look at something, and whether all of them may.

    On the "meta" device and inside vmap nobody knows: there it is not taken for granted.
    """
    seen = mask.any(dim=-1, keepdim=True)
    try:
        return seen, bool(seen.all())
    except RuntimeError:
        return seen, False


def softmax_of_own(scores: Tensor, mask: Tensor | None) -> Tensor:
    """masked_softmax of scores that the caller made and no longer needs.

    Where no gradient is recorded the weights take their place: half the memory, two thirds of the time.
    """
    if mask is None and not torch.is_grad_enabled():
        try:
            return torch.softmax(scores, dim=-1, out=scores)
        except RuntimeError:  # torch cannot inside vmap and in forward-mode differentiation
            pass
    return masked_softmax(scores, mask)


def length_mask(lengths: Integer[Tensor, "*batch"], n_keys: int) -> Bool[Tensor, "*batch {n_keys}"]:
    """Mark the keys that are real in padded sequences: maskⱼ = (j < length).

    lengths: integers between 0 and n_keys, shape (...); returns (..., n_keys).
    Queries are an axis of every mask, so a batch of sequences uses
    ``length_mask(lengths, n).unsqueeze(-2)``, of shape (batch, 1, n)::

        length_mask(torch.tensor([2, 0]), 3)  ->  [[True, True, False], [False, False, False]]

    Raises TypeError for lengths that are not integers, ValueError for one outside 0 … n_keys.
    Chapter 4, "Masks".
    """
    n_keys = validate.integer("n_keys", n_keys)
    if not isinstance(lengths, Tensor) or lengths.dtype not in INTEGERS:
        raise TypeError(f"lengths must be an integer tensor, got {validate.describe(lengths)}")
    lengths = lengths.long()  # an n_keys beyond the dtype would wrap in the comparison
    wrong = lengths[(lengths < 0) | (lengths > n_keys)]
    if wrong.numel():
        raise ValueError(f"lengths must lie between 0 and n_keys = {n_keys}, got {wrong[0].item()}")
    return torch.arange(n_keys, device=lengths.device) < lengths.unsqueeze(-1)


def causal_mask(
    n_queries: int, n_keys: int | None = None, *, device: torch.device | str | None = None
) -> Bool[Tensor, "queries keys"]:
    """Let query i see the keys up to its own: j ≤ i + n_keys − n_queries.

    The mask is aligned at the end, as when earlier keys are cached and the queries are the newest::

        causal_mask(2, 3)  ->  [[True, True, False], [True, True, True]]

    `is_causal=True` in `torch.nn.functional.scaled_dot_product_attention` aligns at the start
    instead; the two agree for n_keys = n_queries, the default.
    Raises ValueError for fewer keys than queries: some query would see nothing.
    Chapter 4, "Masks".
    """
    n_queries = validate.integer("n_queries", n_queries)
    n_keys = n_queries if n_keys is None else validate.integer("n_keys", n_keys)
    if n_keys < n_queries:
        raise ValueError(f"n_keys must be at least n_queries = {n_queries}, got {n_keys}")
    ones = torch.ones(n_queries, n_keys, dtype=torch.bool, device=device)
    return ones.tril(diagonal=n_keys - n_queries)


def dot_product_scores(
    queries: Float[Tensor, "*#batch q d"],
    keys: Float[Tensor, "*#batch k d"],
    *,
    scale: float | Float[Tensor, ""] | None = None,
) -> Float[Tensor, "... q k"]:
    """Score every query against every key: S = scale · Q Kᵀ, with scale = 1/√d unless given.

    queries (..., q, d), keys (..., k, d) -> scores (..., q, k); batch axes broadcast. A scale that is a
    tensor without axes can be learned.
    Raises TypeError for tensors that are not floating point or differ in dtype, ValueError for
    widths, devices or batch axes that do not fit, a width of 0, or no keys.
    Source: Vaswani et al. (2017), equation 1. Chapter 4, "Scaled dot product".
    """
    validate.float_tensor("queries", queries, shape="(..., q, d)", min_ndim=2)
    validate.float_tensor("keys", keys, shape="(..., k, d)", min_ndim=2)
    validate.same_kind(queries=queries, keys=keys)
    validate.same_size("d, the width", queries=(queries, -1), keys=(keys, -1))
    validate.same_batch(queries=queries, keys=keys)
    validate.some_keys("keys", keys, -2)
    d = queries.shape[-1]
    if d == 0:
        raise ValueError(f"queries must be at least 1 wide, got {validate.describe(queries)}")
    scale = 1 / math.sqrt(d) if scale is None else validate.scalar("scale", scale)
    return scaled_products(queries, keys, scale)


def scaled_products(queries: Tensor, keys: Tensor, scale: float | Tensor) -> Tensor:
    """The scores of queries and keys that have been checked already."""
    # Scaling the queries, not the scores, touches q·d numbers instead of q·k, and keeps half
    # precision from overflowing before the division.
    return (queries * scale) @ keys.transpose(-2, -1)


def attention(
    queries: Float[Tensor, "*#batch q d"],
    keys: Float[Tensor, "*#batch k d"],
    values: Float[Tensor, "*#batch k v"],
    *,
    mask: Bool[Tensor, "..."] | None = None,
    scale: float | Float[Tensor, ""] | None = None,
) -> tuple[Float[Tensor, "... q v"], Float[Tensor, "... q k"]]:
    """Scaled dot-product attention: output = A V with weights A = softmax(Q Kᵀ / √d).

    queries (..., q, d), keys (..., k, d), values (..., k, v), mask broadcastable to (..., q, k),
    True = may be attended to -> output (..., q, v), weights (..., q, k).

    A query whose keys are all masked gets an output of zeros. Raises as `dot_product_scores` and
    `masked_softmax` do, and ValueError where keys and values differ in number.
    Source: Vaswani et al. (2017), equation 1. Chapter 4.
    """
    scores = dot_product_scores(queries, keys, scale=scale)
    _check_values(values, keys, scores)
    weights = softmax_of_own(scores, mask)
    return weights @ values, weights


def _check_values(values: Tensor, keys: Tensor, scores: Tensor) -> None:
    """There is one value per key, and the scores can weigh them."""
    validate.float_tensor("values", values, shape="(..., k, v)", min_ndim=2)
    validate.same_kind(keys=keys, values=values)
    validate.same_size("k, the number of keys", keys=(keys, -2), values=(values, -2))
    validate.same_batch(scores=scores, values=values)


class AdditiveAttention(nn.Module):
    """Additive attention: sᵢⱼ = tanh(qᵢ W_q + kⱼ W_k) w_v, for queries and keys of any two widths.

    Exists because a dot product needs queries and keys of one width, and because the score itself
    is learned: a hidden layer of `hidden_dim` units compares a query with a key.

    query_dim, key_dim, hidden_dim: widths of queries, keys and the hidden layer, each at least 1.
    dropout: 0 ≤ p < 1; acts in training, on a copy of the weights, never on the weights returned.

    `W_q` (query_dim → hidden), `W_k` (key_dim → hidden) and `w_v` (hidden → 1) are `nn.Linear`
    without bias; `nn.Linear` stores the transpose, so W_q of the formula is `W_q.weight.T`.
    Source: Bahdanau et al. (2015), appendix A.1.2. Chapter 4, "Additive scoring".
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, *, dropout: float = 0.0):
        super().__init__()
        self.query_dim = validate.integer("query_dim", query_dim)
        self.key_dim = validate.integer("key_dim", key_dim)
        hidden_dim = validate.integer("hidden_dim", hidden_dim)
        self.W_q = nn.Linear(self.query_dim, hidden_dim, bias=False)
        self.W_k = nn.Linear(self.key_dim, hidden_dim, bias=False)
        self.w_v = nn.Linear(hidden_dim, 1, bias=False)
        self.dropout = nn.Dropout(validate.probability("dropout", dropout))

    def scores(
        self,
        queries: Float[Tensor, "*#batch q query_dim"],
        keys: Float[Tensor, "*#batch k key_dim"],
    ) -> Float[Tensor, "... q k"]:
        """Score queries against keys: (..., q, query_dim), (..., k, key_dim) -> (..., q, k).

        Builds a tensor (..., q, k, hidden) on the way, which a dot product does not.
        Raises TypeError for tensors that are not floating point or not of the dtype of the
        weights, ValueError for widths or batch axes that do not fit, or no keys.
        """
        validate.rows("queries", queries, "q", self.query_dim, self.W_q.weight)
        validate.rows("keys", keys, "k", self.key_dim, self.W_k.weight)
        validate.same_batch(queries=queries, keys=keys)
        validate.some_keys("keys", keys, -2)
        projected_queries = self.W_q(queries).unsqueeze(-2)  # (..., q, 1, hidden)
        projected_keys = self.W_k(keys).unsqueeze(-3)  # (..., 1, k, hidden)
        # The largest tensor of all: tanh writes into the sum, so there is one of it and not two.
        hidden = (projected_queries + projected_keys).tanh_()  # (..., q, k, hidden)
        return self.w_v(hidden).squeeze(-1)  # (..., q, k)

    def forward(
        self,
        queries: Float[Tensor, "*#batch q query_dim"],
        keys: Float[Tensor, "*#batch k key_dim"],
        values: Float[Tensor, "*#batch k v"],
        *,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "... q v"], Float[Tensor, "... q k"]]:
        """Return (output, weights) as `attention` does; the weights are those before dropout."""
        scores = self.scores(queries, keys)
        _check_values(values, keys, scores)
        weights = softmax_of_own(scores, mask)
        return self.dropout(weights) @ values, weights
