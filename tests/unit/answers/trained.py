"""Answers to the exercises of chapter 10: right variants, and the classic slips with the words that name them."""

import torch

from attn_helpers import (
    check_attention_distance,
    check_contribution,
    check_sentence_vector,
    check_sharpen,
)


def gap(n):
    place = torch.arange(float(n))
    return place[:, None] - place


def by_loop(weights):
    n = weights.shape[-1]
    heads = weights.reshape(-1, n, n)
    found = [sum(w[i, j] * abs(i - j) for i in range(n) for j in range(n)) / n for w in heads]
    return torch.stack(found).view(weights.shape[:-2])


def far(weights):
    return weights * gap(weights.shape[-1]).abs()


def shares(added):
    return added / added.sum(-1, keepdim=True)


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


RIGHT = [
    (check_attention_distance, lambda w: far(w).sum(-1).mean(-1)),
    (check_attention_distance, lambda w: far(w).sum((-2, -1)) / w.shape[-1]),
    (check_attention_distance, by_loop),
    (check_sharpen, lambda w, t: torch.softmax(w.log() / t, dim=-1)),
    (check_sharpen, lambda w, t: shares((w / w.amax(-1, keepdim=True)) ** (1 / t))),
    (check_contribution, lambda w, s: shares(w * s)),
    (check_contribution, lambda w, s: (w @ torch.diag(s)) / (w @ s)[:, None]),
    (check_sentence_vector, lambda h: unit(h.mean(0))),
    (check_sentence_vector, lambda h: unit(h.sum(0))),
    (check_sentence_vector, lambda h: torch.nn.functional.normalize(h.mean(0), dim=0)),
]

WRONG = [
    (check_attention_distance, lambda w: (w * gap(6)).sum(-1).mean(-1), "without its sign"),
    (check_attention_distance, lambda w: (w * gap(6).T).sum(-1).mean(-1), "without its sign"),
    (check_attention_distance, lambda w: far(w).sum((-2, -1)), "rows are added"),
    (check_attention_distance, lambda w: far(w).mean((-2, -1)), "n² cells"),
    (check_attention_distance, lambda w: far(w).sum(-1).mean(), "heads are averaged"),
    (
        check_attention_distance,
        lambda w: (torch.arange(6) - w.argmax(-1)).abs().float().mean(-1),
        "only the strongest",
    ),
    (check_attention_distance, lambda w: (w * gap(6) ** 2).sum(-1).mean(-1), "squared"),
    (check_attention_distance, lambda w: far(w).sum(-1), "for each query"),
    (check_attention_distance, lambda w: far(w).sum(-1).mean(0), "heads are averaged"),
    (check_attention_distance, lambda w: (w * gap(6)).sum(-1).abs().mean(-1), "too late"),
    (check_sharpen, lambda w, t: w ** (1 / t), "divide by their sum"),
    (check_sharpen, lambda w, t: shares(w ** (1 / t)), "0/0 follow"),
    (check_sharpen, lambda w, t: torch.softmax(w.log() / t, 2), "two layers"),
    (check_attention_distance, lambda w: (w * gap(6).abs()).sum(2).mean(1), "two layers"),
    (check_sharpen, lambda w, t: w ** (1 / t) / (w ** (1 / t)).sum(), "more than the keys"),
    (check_sharpen, lambda w, t: w ** (1 / t) / (w ** (1 / t)).sum(0), "more than the keys"),
    (check_sharpen, lambda w, t: torch.softmax((w + 1e-9).log() / t, -1), "has become positive"),
    (check_sharpen, lambda w, t: torch.softmax((w + 1e-6).log() / t, -1), "has become positive"),
    (check_sharpen, lambda w, t: w / t, "divide by their sum"),
    (check_sharpen, lambda w, t: shares(w**t), "exponent is T"),
    (check_sharpen, lambda w, t: torch.softmax(w.log() * t, -1), "exponent is T"),
    (check_sharpen, lambda w, t: torch.softmax(w / t, -1), "softmax of the weights"),
    (check_sharpen, lambda w, t: shares(w / t), "what they were"),
    (check_sharpen, lambda w, t: torch.softmax(w.log() / t, -2), "over the queries"),
    (check_sharpen, lambda w, t: (w + 1e-9).log() * float("nan"), "NaN"),
    (check_contribution, lambda w, s: shares(w * s[:, None]), "belong to the keys"),
    (check_contribution, lambda w, s: w * s, "do not sum to 1"),
    (check_contribution, lambda w, s: w * s / (w @ s), "keepdim=True"),
    (check_contribution, lambda w, s: w * s / (w * s).sum(0), "sums of the columns"),
    (check_contribution, lambda w, s: w * s / (w * s).sum(), "sum of everything"),
    (check_contribution, lambda w, s: unit(w * s), "has length 1"),
    (check_contribution, lambda w, s: s / s.sum(), "without the weights"),
    (check_contribution, lambda w, s: torch.softmax(w * s, -1), "too much"),
    (check_sentence_vector, lambda h: h.mean(0), "length 1"),
    (check_sentence_vector, lambda h: unit(h[0]), "CLS"),
    (check_sentence_vector, lambda h: h[0], "CLS"),
    (check_sentence_vector, lambda h: h.sum(0), "sum is not brought"),
    (check_sentence_vector, lambda h: unit(h.mean(1)), "axis 0"),
    (check_sentence_vector, lambda h: unit(h).mean(0), "average first"),
    (check_sentence_vector, lambda h: unit(unit(h).mean(0)), "average first"),
    (check_sentence_vector, lambda h: h.mean(0) / h.mean(0).sum(), "sum of the entries"),
    (check_sentence_vector, lambda h: h.mean(0) / h.mean(0).square().sum(), "squared length"),
    (check_sentence_vector, lambda h: h.mean(0) / h.norm(), "all states together"),
    (check_sentence_vector, lambda h: unit(h[1:-1].mean(0)), "SEP"),
    (check_sentence_vector, lambda h: unit(h.amax(0)), "take the mean"),
    (check_sentence_vector, lambda h: h, "shape"),
]
