"""Answers to the exercises of chapter 4: right variants, and the classic slips with the words that name them."""

import math

import torch
from torch.nn import functional as F

from attn_helpers import (
    AdditiveAttention,
    check_additive_scores,
    check_bandwidth,
    check_masked_weights,
    check_scaled_scores,
    dot_product_scores,
    masked_softmax,
)

INF = math.inf


def sdpa_scores(queries, keys):
    """The weights' logarithm is the score up to a constant per row; here the constant is put back."""
    identity = torch.eye(keys.shape[-2]).expand(*keys.shape[:-1], keys.shape[-2])
    weights = F.scaled_dot_product_attention(queries, keys, identity)
    shift = (queries @ keys.mT / keys.shape[-1] ** 0.5).logsumexp(-1, keepdim=True)
    return weights.log() + shift


def with_loops(queries, keys):
    flat_q, flat_k = queries.reshape(-1, *queries.shape[-2:]), keys.reshape(-1, *keys.shape[-2:])
    scores = [
        [[(q * k).sum() / len(k) ** 0.5 for k in ks] for q in qs]
        for qs, ks in zip(flat_q, flat_k, strict=True)
    ]
    return torch.tensor(scores).reshape(*queries.shape[:-1], keys.shape[-2])


SCALED_RIGHT = [
    dot_product_scores,
    lambda q, k: q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5,
    lambda q, k: torch.matmul(q, k.mT) * q.shape[-1] ** -0.5,
    lambda q, k: torch.einsum("...qd,...kd->...qk", q, k).div(math.sqrt(k.size(-1))),
    lambda q, k: (q.double() @ k.double().mT) / q.size(-1) ** 0.5,
    lambda q, k: (q / 7**0.25) @ (k / 7**0.25).mT,
    lambda q, k: (torch.nn.Parameter(q) @ k.mT) / 7**0.5,
    with_loops,
    sdpa_scores,
]


def right(q, k):
    return q @ k.mT / k.shape[-1] ** 0.5


SCALED_WRONG = [
    (lambda q, k: q @ k.mT, "not divided by √d_k"),
    (lambda q, k: q @ k.mT / k.shape[-1], "divided by d_k"),
    (lambda q, k: q @ k.mT * k.shape[-1] ** 0.5, "multiplied by √d_k"),
    (lambda q, k: q @ k.mT / k.shape[-1] ** 1 / 2, "square root is"),
    (lambda q, k: q @ k.mT / k.shape[-2] ** 0.5, "number of keys"),
    (lambda q, k: q @ k.mT / q.shape[-2] ** 0.5, "number of queries"),
    (lambda q, k: q @ k.mT / (q.shape[-1] * (len(q) if q.ndim > 2 else 1)) ** 0.5, "√d_model"),
    (lambda q, k: right(q, k).mT, "keys × queries"),
    (lambda q, k: k @ q.mT / k.shape[-1] ** 0.5, "keys × queries"),
    (lambda q, k: right(q, k).softmax(-1), "softmax"),
    (lambda q, k: torch.cdist(q, k) ** 2, "squared distances"),
    (lambda q, k: right(q, k)[..., :-1], r"shape \(5, 11\), got \(5, 10\)"),
    (lambda q, k: right(q, k) * math.nan, "NaN"),
    (lambda q, k: -right(q, k), "sign is turned"),
    (lambda q, k: right(q, k) + 0.1, "largest difference in the scores is 0.1"),
    (lambda q, k: q @ k / 7**0.5, "raised RuntimeError"),
    (lambda q, k: None, "got None"),
    (lambda q, k: right(q, k).tolist(), "got list"),
    (lambda q: q, "raised TypeError"),
    (3.0, "expected a function"),
]


def ours(scores, mask):
    return masked_softmax(scores, mask)


def nan_to_zero(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -INF), -1).nan_to_num(0.0)


def exp_and_divide(scores, mask):
    scores = torch.where(mask, scores, -INF)
    top = scores.max(-1, keepdim=True).values
    e = torch.exp(scores - torch.where(top.isinf(), 0, top))
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def lowest_number(scores, mask):
    filled = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return filled.softmax(-1) * mask.any(-1, keepdim=True)


MASKED_RIGHT = [ours, nan_to_zero, exp_and_divide, lowest_number]


def in_place(scores, mask):
    scores.masked_fill_(~mask, -INF)
    return scores.softmax(-1).nan_to_num(0.0)


MASKED_WRONG = [
    (lambda s, m: ours(s, ~m), "inverted"),
    (lambda s, m: s.masked_fill(m, -INF).softmax(-1), "inverted"),
    (lambda s, m: s.softmax(-1), "mask is not used"),
    (lambda s, m: s.masked_fill(~m, -INF).softmax(-2), "over the queries"),
    (lambda s, m: s.masked_fill(~m, -INF).flatten(-2).softmax(-1).view_as(s), "whole matrix"),
    (lambda s, m: s.softmax(-1) * m, "after the softmax"),
    (lambda s, m: (s * m).softmax(-1), "exp\\(0\\) = 1"),
    (lambda s, m: (s + m).softmax(-1), "added as 0 and 1"),
    (lambda s, m: s.exp() * m, "not divided by their sum"),
    (lambda s, m: (s + ~m * -INF).softmax(-1), "everything is NaN"),
    (in_place, "changes the scores"),
    (lambda s, m: s.masked_fill(~m, -1e9).softmax(-1), "finite 'minus infinity'"),
    (lambda s, m: s.masked_fill(~m, -1e6).softmax(-1), "finite 'minus infinity'"),
    (lambda s, m: s.masked_fill(~m, -1e9).softmax(-1) * m, "visible keys lose their weight"),
    (
        lambda s, m: s.exp() * m / (s.exp() * m).sum(-1, keepdim=True).clamp(min=1e-9),
        "visible keys lose their weight",
    ),
    (lambda s, m: s.masked_fill(~m, -INF).softmax(-1), "is NaN"),
    (lambda s, m: s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1), "spreads its weight"),
    (lambda s, m: s.softmax(-1)[0], "shape"),
]


def with_modules(queries, keys, W_q, W_k, w_v):
    layer = AdditiveAttention(7, 11, 13)
    layer.W_q.weight.data, layer.W_k.weight.data = W_q.T, W_k.T
    layer.w_v.weight.data = w_v[None]
    return layer.scores(queries, keys)


def hidden(q, k, W_q, W_k):
    return (q @ W_q).unsqueeze(-2) + (k @ W_k).unsqueeze(-3)


def concatenated(q, k, W_q, W_k, w_v):
    pairs = torch.cat(
        [
            q.unsqueeze(-2).expand(*q.shape[:-1], k.shape[-2], q.shape[-1]),
            k.unsqueeze(-3).expand(*q.shape[:-1], *k.shape[-2:]),
        ],
        dim=-1,
    )
    return (torch.tanh(pairs @ torch.cat([W_q, W_k])) * w_v).sum(-1)


ADDITIVE_RIGHT = [
    with_modules,
    concatenated,
    lambda q, k, W_q, W_k, w_v: torch.tanh(hidden(q, k, W_q, W_k)) @ w_v,
    lambda q, k, W_q, W_k, w_v: torch.einsum("...h,h->...", hidden(q, k, W_q, W_k).tanh(), w_v),
    lambda q, k, W_q, W_k, w_v: (hidden(q, k, W_q, W_k).tanh() @ w_v[:, None]).squeeze(-1),
]
ADDITIVE_WRONG = [
    (lambda q, k, a, b, w: hidden(q, k, a, b) @ w, "tanh is missing"),
    (lambda q, k, a, b, w: (hidden(q, k, a, b) @ w).tanh(), "after w_v"),
    (
        lambda q, k, a, b, w: ((q @ a).tanh().unsqueeze(-2) + (k @ b).tanh().unsqueeze(-3)) @ w,
        "apart",
    ),
    (
        lambda q, k, a, b, w: ((q @ a).unsqueeze(-2) * (k @ b).unsqueeze(-3)).tanh() @ w,
        "multiplied",
    ),
    (lambda q, k, a, b, w: hidden(q, k, a, b).tanh(), "hidden axis is still there"),
    (lambda q, k, a, b, w: hidden(q, k, a, b).tanh().sum(-1), "without w_v"),
    (lambda q, k, a, b, w: hidden(q, k, a, b).sigmoid() @ w, "another function"),
    (lambda q, k, a, b, w: hidden(q, k, a, b).relu() @ w, "another function"),
    (lambda q, k, a, b, w: hidden(q, k, a, b).tanh() @ w[:, None], "size 1"),
    (lambda q, k, a, b, w: (hidden(q, k, a, b).tanh() @ w).mT, "keys × queries"),
    (lambda q, k, a, b, w: (hidden(q, k, a, b).tanh() @ w).softmax(-1), "softmax"),
    (lambda q, k, a, b, w: hidden(q, k, a, b).tanh() @ w / 13**0.5, "√d_h"),
    (lambda q, k, a, b, w: (q @ a + k @ b).tanh() @ w, "raised RuntimeError"),
]

BANDWIDTH_RIGHT = [
    lambda d: d**0.25,
    lambda d: math.sqrt(math.sqrt(d)),
    lambda d: torch.tensor(d).sqrt().sqrt(),
    lambda d: torch.tensor([float(d)]) ** 0.25,
]
BANDWIDTH_WRONG = [
    (lambda d: d**0.5, "σ², the temperature"),
    (lambda d: d**-0.5, "factor in front"),
    (lambda d: d**-0.25, "this is 1/σ"),
    (lambda d: d, "this is d:"),
    (lambda d: d**1 / 4, "exponent in brackets"),
    (lambda d: (2 * d**0.5) ** 0.5, "factor 2 too much"),
    (lambda d: (d**0.5 / 2) ** 0.5, "factor 2 too little"),
    (lambda d: 1.0, "largest difference"),
    (lambda d: "wide", "one number, got str"),
    (lambda d: torch.ones(3), "one number, got Tensor"),
]

CHECKS = [
    (check_scaled_scores, SCALED_RIGHT, SCALED_WRONG),
    (check_masked_weights, MASKED_RIGHT, MASKED_WRONG),
    (check_additive_scores, ADDITIVE_RIGHT, ADDITIVE_WRONG),
    (check_bandwidth, BANDWIDTH_RIGHT, BANDWIDTH_WRONG),
]
RIGHT = [(check, answer) for check, answers, _ in CHECKS for answer in answers]
WRONG = [(check, *case) for check, _, cases in CHECKS for case in cases]
