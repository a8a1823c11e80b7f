"""Answers to the exercises of chapter 2: right variants, and the classic slips with the words that name them."""

import torch

from attn_helpers import check_are_weights, check_hard_weights, check_soft_lookup, nadaraya_watson


def scores_of(q, k, h):
    return -(q[:, None] - k).square().sum(-1) / (2 * h**2)


def soft(q, k, v, h):
    return torch.softmax(scores_of(q, k, h), dim=-1) @ v


def soft_in_a_loop(q, k, v, h):
    rows = []
    for query in q:
        similar = torch.exp(-((query - k).norm(dim=-1) ** 2) / (2 * h**2))
        rows.append((similar / similar.sum()) @ v)
    return torch.stack(rows)


def soft_with_transposed_weights(q, k, v, h):
    weights = torch.softmax(scores_of(q, k, h).T, dim=0)  # keys × queries, each column a query
    return (v.T @ weights).T


def other_score(score):
    return lambda q, k, v, h: torch.softmax(score(q[:, None] - k, h), dim=-1) @ v


def one_hot(index, scores):
    return torch.nn.functional.one_hot(index, scores.shape[-1])


def in_place(scores):
    best = scores.argmax(-1, keepdim=True)
    return scores.zero_().scatter_(-1, best, 1)


def numpy_are_weights(m):
    import numpy as np

    a = m.numpy()
    sums = a.sum(1)
    return np.all(a >= 0) and np.all(np.isclose(sums, 1, atol=1e-4) | (a == 0).all(1))


def are_weights(m):
    sums = m.sum(-1)
    return bool((m >= 0).all() and (torch.isclose(sums, torch.ones(len(m))) | (sums == 0)).all())


RIGHT = [
    (check_soft_lookup, soft),
    (check_soft_lookup, soft_in_a_loop),
    (check_soft_lookup, soft_with_transposed_weights),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(-(torch.cdist(q, k) ** 2) / 2 / h**2, 1) @ v,
    ),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax((q @ k.T - k.square().sum(-1) / 2) / h**2, 1) @ v,
    ),
    (check_soft_lookup, lambda q, k, v, h: nadaraya_watson(q, k, v, bandwidth=h)[0]),
    (check_hard_weights, lambda s: one_hot(s.argmax(-1), s)),
    (check_hard_weights, lambda s: (s == s.amax(-1, keepdim=True)).float()),
    (check_hard_weights, lambda s: s == s.amax(-1, keepdim=True)),
    (check_hard_weights, lambda s: torch.eye(s.shape[-1])[s.argmax(-1)]),
    (check_hard_weights, lambda s: torch.softmax(s * 1e6, -1)),
    (check_hard_weights, in_place),
    (check_are_weights, are_weights),
    (check_are_weights, numpy_are_weights),
    (check_are_weights, lambda m: torch.tensor(are_weights(m))),
    (
        check_are_weights,
        lambda m: all(min(r) >= 0 and (abs(sum(r) - 1) < 1e-5 or not any(r)) for r in m.tolist()),
    ),
]

WRONG = [
    (check_soft_lookup, other_score(lambda d, h: -(d**2).sum(-1) / 2 * h**2), "in brackets"),
    (check_soft_lookup, lambda q, k, v, h: torch.softmax(q @ k.T, -1) @ v, "dot products"),
    (check_soft_lookup, lambda q, k, v, h: torch.softmax(q @ k.T / h**2, -1) @ v, "dot products"),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(q @ k.T / k.shape[-1] ** 0.5, -1) @ v,
        "dot products",
    ),
    (
        check_soft_lookup,
        other_score(lambda d, h: -(d / (2 * h)).square().sum(-1)),
        "2 is squared, too",
    ),
    (check_soft_lookup, other_score(lambda d, h: -d.square().sum(-1)), "bandwidth is missing"),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(scores_of(q, k, h).exp(), -1) @ v,
        "softmax of the kernel values",
    ),
    (check_soft_lookup, lambda q, k, v, h: soft(q, k, v, h) / len(k), "extra 1/n"),
    (
        check_soft_lookup,
        lambda q, k, v, h: (torch.softmax(scores_of(q, k, h), -1)[:, :, None] * v).mean(1),
        "extra 1/n",
    ),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(scores_of(q, k, h), 0) @ v,
        "over the queries instead of the keys",
    ),
    (check_soft_lookup, lambda q, k, v, h: scores_of(q, k, h).exp() @ v, "divided by their sum"),
    (
        check_soft_lookup,
        other_score(lambda g, h: -g.square().sum(-1) / (2 * h)),
        "not squared: divide by 2σ²",
    ),
    (check_soft_lookup, other_score(lambda g, h: -g.square().sum(-1) / h**2), "2 is missing"),
    (
        check_soft_lookup,
        other_score(lambda g, h: -g.norm(dim=-1) / (2 * h**2)),
        "distance is not squared",
    ),
    (check_soft_lookup, other_score(lambda g, h: -g.sum(-1).square() / (2 * h**2)), "cancel"),
    (check_soft_lookup, other_score(lambda g, h: -g.square().mean(-1) / (2 * h**2)), "averaged"),
    (check_soft_lookup, other_score(lambda g, h: g.square().sum(-1) / (2 * h**2)), "sign"),
    (check_soft_lookup, lambda q, k, v, h: v[scores_of(q, k, h).argmax(-1)], "hard lookup"),
    (check_soft_lookup, lambda q, k, v, h: soft(q, k, k, h), "keys are mixed"),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(scores_of(q, k, h), -1),
        "these are the weights",
    ),
    (
        check_soft_lookup,
        lambda q, k, v, h: torch.softmax(scores_of(q, k, h), -1).T @ v,
        "transposed",
    ),
    (check_soft_lookup, lambda q, k, v, h: torch.softmax(scores_of(k, q, h), 0) @ v, "transposed"),
    (check_soft_lookup, lambda q, k, v, h: torch.softmax(scores_of(k, q, h), -1) @ v, "transposed"),
    (check_soft_lookup, lambda q, k, v, h: soft(q, k, v, h)[0], "should have shape"),
    (check_soft_lookup, lambda q, k, v, h: soft(q, k, v, h) + 0.1, "largest difference"),
    (check_soft_lookup, lambda q, k, v, h: soft(q, k, v, h).tolist(), "should be a tensor"),
    (
        check_soft_lookup,
        lambda q, k, v, h: v[: len(q)] + q[:, :9] * k,
        "raised RuntimeError|largest",
    ),
    (check_soft_lookup, "soft", "expected a function"),
    (check_hard_weights, lambda s: one_hot(s.argmax(0), s.T).T, "runs over the queries"),
    (check_hard_weights, lambda s: one_hot(s.argmax(0), s.T), "transposed"),
    (check_hard_weights, lambda s: one_hot(s.argmax(-1), s).T, "transposed"),
    (check_hard_weights, lambda s: s == s.max(), "whole matrix"),
    (check_hard_weights, lambda s: s.argmax(-1), "positions"),
    (check_hard_weights, lambda s: torch.nn.functional.one_hot(s.argmax(-1)), "how many keys"),
    (check_hard_weights, lambda s: s.amax(-1), "best scores"),
    (check_hard_weights, lambda s: s * one_hot(s.argmax(-1), s), "best scores"),
    (check_hard_weights, lambda s: torch.softmax(s, -1), "soft lookup"),
    (check_hard_weights, lambda s: one_hot(s.argmin(-1), s), "worst key"),
    (check_are_weights, lambda m: True, "1.8 and 0.2"),
    (
        check_are_weights,
        lambda m: are_weights(m) or bool((m.sum(0) == 1).all()),
        "columns sum to 1, but not its rows",
    ),
    (check_are_weights, lambda m: False, "0.5, 0.5 and 0 was refused"),
    (check_are_weights, lambda m: are_weights(m.T), "refused|columns"),
    (
        check_are_weights,
        lambda m: m.shape[0] != 3 and are_weights(m),
        "columns were summed",
    ),
    (check_are_weights, lambda m: bool(torch.allclose(m.sum(-1), torch.ones(len(m)))), "negative"),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and torch.isclose(m.sum(-1), torch.ones(len(m))).any()),
        "sums to 0.4",
    ),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and torch.isclose(m.sum(), torch.tensor(float(len(m))))),
        "1.8 and 0.2",
    ),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and torch.allclose(m.sum(-1), torch.ones(len(m)))),
        "row of zeros was refused",
    ),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and all(s in (0.0, 1.0) for s in m.sum(-1).tolist())),
        "compared exactly",
    ),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and all(s < 1.2 and s > 0.8 or s == 0 for s in m.sum(-1))),
        "1.05",
    ),
    (
        check_are_weights,
        lambda m: (
            bool(all(min(r) >= 0 or sum(r) == 0 for r in m.tolist()))
            and all(abs(s - 1) < 1e-5 or s == 0 for s in m.sum(-1).tolist())
        ),
        "without being all 0",
    ),
    (
        check_are_weights,
        lambda m: bool((m >= 0).all() and all(r.sum() > 0.9 or (r == 0).any() for r in m)),
        "0.4 and 0",
    ),
    (check_are_weights, lambda m: m >= 0, "one answer is needed"),
    (check_are_weights, lambda m: "yes", "True or False"),
]
