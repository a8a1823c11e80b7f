"""Answers to the exercises of chapter 5: right variants, and the classic slips with the words that name them."""

import torch
from torch.nn import functional as F

from attn_helpers import (
    SelfAttention,
    attention,
    causal_mask,
    check_column_attention,
    check_look_back,
    check_self_attention,
)


def rows(change=lambda s: s, *, scale=None, axis=-1, q=None, k=None, v=None, end=None):
    """Self-attention in rows; each argument is one place to go wrong."""

    def answer(x, W_q, W_k, W_v):
        Q = q(x, W_q) if q else x @ W_q
        K = k(x, W_k) if k else x @ W_k
        V = v(x, W_k, W_v) if v else x @ W_v
        d_k = Q.shape[-1]
        scores = Q @ K.T * (d_k**-0.5 if scale is None else scale(x, d_k))
        weights = torch.softmax(change(scores), dim=axis)
        return end(weights, V, x) if end else weights @ V

    return answer


def one_at_a_time(x, W_q, W_k, W_v):
    outputs = []
    for row in x:
        scores = torch.stack([(row @ W_q) @ (other @ W_k) for other in x]) / W_q.shape[1] ** 0.5
        weights = scores.exp() / scores.exp().sum()
        outputs.append(sum(w * (other @ W_v) for w, other in zip(weights, x, strict=True)))
    return torch.stack(outputs)


def with_a_layer(x, W_q, W_k, W_v):
    layer = SelfAttention(x.shape[1], W_q.shape[1])
    layer.W_v = torch.nn.Linear(x.shape[1], W_v.shape[1], bias=False)
    for linear, W in [(layer.W_q, W_q), (layer.W_k, W_k), (layer.W_v, W_v)]:
        linear.weight.data = W.T
    return layer(x)


def columns(Q, K, V):
    return V @ torch.softmax(K.T @ Q / Q.shape[0] ** 0.5, dim=0)


def causal(change):
    """Causal self-attention in which `change(scores, mask)` gives the weights."""

    def answer(x, W_q, W_k, W_v):
        scores = (x @ W_q) @ (x @ W_k).T / W_q.shape[1] ** 0.5
        return change(scores, torch.ones(len(x), len(x), dtype=torch.bool).tril()) @ (x @ W_v)

    return answer


def softened(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


RIGHT = [
    (check_self_attention, rows()),
    (check_self_attention, one_at_a_time),
    (check_self_attention, with_a_layer),
    (check_self_attention, lambda x, q, k, v: attention(x @ q, x @ k, x @ v)),
    (
        check_self_attention,
        lambda x, q, k, v: F.scaled_dot_product_attention((x @ q)[None], (x @ k)[None], x @ v)[0],
    ),
    (check_self_attention, rows(lambda s: s - s.max())),
    (check_self_attention, lambda *a: rows()(*(t.double() for t in a))),
    (check_column_attention, columns),
    (check_column_attention, lambda q, k, v: attention(q.T, k.T, v.T)[0].T),
    (check_column_attention, lambda q, k, v: v @ (q.T @ k / len(q) ** 0.5).softmax(1).T),
    (check_look_back, causal(softened)),
    (check_look_back, causal(lambda s, m: (s + torch.where(m, 0.0, -torch.inf)).softmax(-1))),
    (
        check_look_back,
        lambda x, q, k, v: attention(x @ q, x @ k, x @ v, mask=causal_mask(len(x))),
    ),
    (
        check_look_back,
        lambda x, q, k, v: torch.stack(
            [attention(x[: i + 1] @ q, x[: i + 1] @ k, x[: i + 1] @ v)[0][i] for i in range(len(x))]
        ),
    ),
]

WRONG = [
    (check_self_attention, rows(scale=lambda x, d: 1.0), "not divided by √d_k"),
    (check_self_attention, rows(scale=lambda x, d: 1 / d), "divided by d_k"),
    (
        check_self_attention,
        lambda x, q, k, v: attention(x @ q, x @ k, x @ v, scale=v.shape[1] ** -0.5)[0],
        "√d_v",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: attention(x @ q, x @ q, x @ v)[0],
        "the scores are Q Qᵀ",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: attention(x @ q, x @ k, x @ v, scale=1.0)[0] / q.shape[1] ** 0.5,
        "divide the scores",
    ),
    (check_self_attention, rows(end=lambda A, V, x: A @ V / len(A)), "sum to 1 already"),
    (check_self_attention, lambda x, q, k, v: x @ q @ (x @ k).T, "these are the scores"),
    (check_column_attention, lambda q, k, v: attention(q, k, v)[0], "columns are taken for rows"),
    (check_column_attention, lambda q, k, v: (k.T @ q / len(q) ** 0.5).softmax(0) @ v, "wrong side"),
    (check_column_attention, lambda q, k, v: (k.T @ q / len(q) ** 0.5).softmax(0), "the weights"),
    (check_column_attention, lambda q, k, v: v @ (k.T @ q / len(v) ** 0.5).softmax(0), "√d_v"),
    (check_look_back, causal(lambda s, m: (s + ~m * -10.0).softmax(-1)), "a little through"),
    (check_look_back, causal(lambda s, m: s.masked_fill(~m, -1e9).softmax(-1)), "leaks"),
    (check_look_back, causal(lambda s, m: s.masked_fill(~m, -1.0).softmax(-1)), "a little through"),
    (check_look_back, causal(lambda s, m: softened(s, m | m.roll(-1, 0))), "one row too many"),
    (check_look_back, causal(lambda s, m: (s + ~m * -torch.inf).softmax(-1)), "everything is NaN"),
    (
        check_look_back,
        lambda x, q, k, v: attention(
            x @ q, x @ k, x @ v, mask=causal_mask(len(x)), scale=1 / q.shape[1]
        ),
        "divided by d_k",
    ),
    (
        check_look_back,
        lambda x, q, k, v: attention(x @ q, x @ k, x @ k, mask=causal_mask(len(x))),
        "V is built from the keys",
    ),
    (
        check_look_back,
        lambda x, q, k, v: attention(x, x, x @ v, mask=causal_mask(len(x))),
        "queries and keys are x itself",
    ),
    (
        check_look_back,
        lambda x, q, k, v: attention(x @ q, x @ k, x, mask=causal_mask(len(x))),
        "V is x itself",
    ),
    (check_self_attention, rows(scale=lambda x, d: d**0.5), "multiplied by √d_k"),
    (check_self_attention, rows(scale=lambda x, d: x.shape[1] ** -0.5), "√d_model"),
    (check_self_attention, rows(scale=lambda x, d: len(x) ** -0.5), "number of rows"),
    (check_self_attention, rows(axis=0), "over the queries"),
    (check_self_attention, rows(end=lambda A, V, x: A.T @ V), "weights are transposed"),
    (check_self_attention, rows(end=lambda A, V, x: A), "these are the weights"),
    (check_self_attention, rows(end=lambda A, V, x: A @ V + (x if x.shape == V.shape else 0)), "added"),
    (check_self_attention, rows(v=lambda x, W_k, W_v: x @ W_k), "V is built from the keys"),
    (check_self_attention, rows(v=lambda x, W_k, W_v: x @ W_k @ W_v), "V is K W_v"),
    (check_self_attention, rows(end=lambda A, V, x: V @ A), "values stand on the wrong side"),
    (check_self_attention, rows(scale=lambda x, d: 1 / d / 2), "square root is"),
    (
        check_self_attention,
        lambda x, q, k, v: attention(q @ x, k @ x, v @ x)[0],
        "x stands on the wrong side",
    ),
    (check_self_attention, rows(v=lambda x, W_k, W_v: x), "V is x itself"),
    (check_self_attention, rows(q=lambda x, W: x, k=lambda x, W: x), "queries and keys are x itself"),
    (check_self_attention, rows(lambda s: s.T), "changed places"),
    (
        check_self_attention,
        lambda x, q, k, v: (x @ q) @ (x @ k).T / q.shape[1] ** 0.5 @ (x @ v),
        "no softmax",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: ((x @ q) @ (x @ k).T / q.shape[1] ** 0.5)
        .flatten()
        .softmax(0)
        .view(len(x), -1)
        @ (x @ v),
        "whole matrix",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: ((x @ q) @ (x @ k) / q.shape[1] ** 0.5).softmax(-1) @ (x @ v),
        "a transpose is missing",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: rows()(x, q.T, k.T, v.T),
        "matrices are transposed",
    ),
    (
        check_self_attention,
        lambda x, q, k, v: rows(
            q=lambda x, W: x @ W @ W,
            k=lambda x, W: x @ W @ W,
            v=lambda x, W_k, W_v: x @ W_v @ W_v,
        )(x, q, k, v),
        "projected twice",
    ),
    (check_self_attention, lambda *a: rows()(*a) + 1, "largest difference .*is 1"),
    (check_self_attention, lambda *a: None, "should be a tensor of shape"),
    (check_self_attention, "no function", "expected a function"),
    (check_column_attention, lambda q, k, v: v @ (k.T @ q / len(q) ** 0.5).softmax(1), "along the rows"),
    (
        check_column_attention,
        lambda q, k, v: v @ (q.T @ k / len(q) ** 0.5).softmax(1),
        "a transpose is missing: your matrix",
    ),
    (check_column_attention, lambda q, k, v: v @ (q.T @ k / len(q) ** 0.5).softmax(0), "Kᵀ Q"),
    (check_column_attention, lambda q, k, v: v @ (k.T @ q).softmax(0), "not divided by √d_k"),
    (check_column_attention, lambda q, k, v: v @ (k.T @ q / len(q)).softmax(0), "divided by d_k"),
    (
        check_column_attention,
        lambda q, k, v: v @ (k.T @ q / q.shape[1] ** 0.5).softmax(0),
        "divided by √n",
    ),
    (check_column_attention, lambda q, k, v: columns(q, k, v).T, "this is the transpose"),
    (check_column_attention, lambda q, k, v: columns(q, k, k), "V is built from the keys"),
    (
        check_column_attention,
        lambda q, k, v: v @ (k @ q / len(q) ** 0.5).softmax(0),
        "the scores are Kᵀ Q, not K Q",
    ),
    (check_look_back, rows(), "mask is not used"),
    (check_look_back, causal(lambda s, m: softened(s, ~m)), "mask is inverted"),
    (check_look_back, causal(lambda s, m: softened(s, m.T)), "mask is transposed"),
    (check_look_back, causal(lambda s, m: softened(s, m.tril(-1))), "must see itself"),
    (check_look_back, causal(lambda s, m: s.softmax(-1) * m), "masked after the softmax"),
    (check_look_back, causal(lambda s, m: (s * m).softmax(-1)), "set to 0"),
    (check_look_back, causal(lambda s, m: (s + m).softmax(-1)), "0/1 mask is added"),
    (
        check_look_back,
        causal(lambda s, m: s.masked_fill(~m, -torch.inf).softmax(0)),
        "over the queries",
    ),
    (
        check_look_back,
        lambda x, q, k, v: attention(
            x @ q, x @ k, x @ v, mask=causal_mask(len(x)), scale=x.shape[1] ** -0.5
        ),
        "√d_model",
    ),
    (
        check_look_back,
        lambda x, q, k, v: attention(x @ q, x @ k, x @ v, mask=causal_mask(len(x)), scale=1.0),
        "not divided",
    ),
]  # fmt: skip
