"""Answers to the exercises of chapter 1: right variants, and the classic slips with the words that name them."""

import torch

from attn_helpers import check_crew_weights, check_prediction, check_standardise


def predict(x, strength, ability, sigma):
    return torch.softmax(-((x - strength) ** 2) / (2 * sigma**2), dim=-1) @ ability


def predict_in_a_loop(x, strength, ability, sigma):
    similar = [2.718281828459045 ** (-((x - s) ** 2) / 2 / sigma**2) for s in strength.tolist()]
    return sum(r * y for r, y in zip(similar, ability.tolist(), strict=True)) / sum(similar)


def weights_of(score):
    return lambda q, stats, sigma: torch.softmax(-score(q - stats) / (2 * sigma**2), dim=-1)


RIGHT = [
    (check_prediction, predict),
    (check_prediction, predict_in_a_loop),
    (check_prediction, lambda *a: predict(*a).reshape(1)),
    (check_prediction, lambda *a: predict(*a).item()),
    (check_prediction, lambda x, *a: predict(x, *(t.double() for t in a[:2]), a[2]).numpy()),
    (check_crew_weights, weights_of(lambda gap: gap.square().sum(-1))),
    (check_crew_weights, weights_of(lambda gap: gap.norm(dim=-1) ** 2)),
    (check_standardise, lambda s: (s - s.mean(0)) / s.std(0)),
    (check_standardise, lambda s: (s - s.mean(0)) / s.std(0, correction=0)),
]

WRONG = [
    (check_prediction, lambda x, s, y, h: (-((x - s) ** 2) / (2 * h**2)).exp() @ y, "sum to 1"),
    (check_prediction, lambda x, s, y, h: predict(x, s, y, h) / len(s), "extra 1/n"),
    (check_prediction, lambda x, s, y, h: torch.softmax((x - s) ** 2 / (2 * h**2), 0) @ y, "sign"),
    (check_prediction, lambda x, s, y, h: torch.softmax(-((x - s) ** 2) / (2 * h), 0) @ y, "σ²"),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-((x - s) ** 2) / h**2, 0) @ y,
        "2 is miss",
    ),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-(x - s).abs() / (2 * h**2), 0) @ y,
        "distance is not squared",
    ),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-(((x - s) / (2 * h)) ** 2), 0) @ y,
        "2 is squared, too",
    ),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-((x - s) ** 2), 0) @ y,
        "bandwidth is missing",
    ),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax((-((x - s) ** 2) / (2 * h**2)).exp(), 0) @ y,
        "softmax of the similarities",
    ),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-(x - s).abs() / h, 0) @ y,
        "distance is not squared",
    ),
    (check_prediction, lambda x, s, y, h: -((x - s) ** 2) / (2 * h**2) @ y, "not weights"),
    (check_prediction, lambda x, s, y, h: y.mean(), "plain average"),
    (check_prediction, lambda x, s, y, h: y, "shape"),
    (check_prediction, lambda x, s, y, h: None, "one number, got NoneType"),
    (check_prediction, lambda x, s, y, h: "66.8", "one number, got str"),
    (check_prediction, lambda x, s, y, h: y[(s - x).abs().argmin()], "copies the nearest"),
    (check_prediction, lambda x, s, y, h: predict(x, s, s, h), "strengths are mixed"),
    (check_prediction, lambda x, s, y, h: predict(x, s, torch.eye(7), h), "these are the weights"),
    (
        check_prediction,
        lambda x, s, y, h: torch.softmax(-((x - s) ** 2) / 2 * h**2, 0) @ y,
        "in brackets",
    ),
    (
        check_prediction,
        lambda x, s, y, h: (x - s) ** 2 / ((x - s) ** 2).sum() @ y,
        "scores are divided by their sum",
    ),
    (check_prediction, lambda x, s, y, h: 1 / 0, "raised ZeroDivisionError"),
    (check_prediction, 3.0, "expected a function"),
    (check_crew_weights, weights_of(lambda gap: gap[:, 0].square()), "only the first stat"),
    (check_crew_weights, weights_of(lambda gap: gap.square().sum(0)), "last axis"),
    (check_crew_weights, weights_of(lambda gap: gap.sum(-1).square()), "cancel"),
    (check_crew_weights, weights_of(lambda gap: gap.norm(dim=-1)), "not squared"),
    (check_crew_weights, weights_of(lambda gap: gap.square().mean(-1)), "averaged"),
    (check_crew_weights, weights_of(lambda gap: 2 * gap.square().sum(-1)), "2 is missing"),
    (
        check_crew_weights,
        lambda q, x, h: torch.softmax(-(q - x).square().sum(-1) / (2 * h), 0),
        "not by 2σ",
    ),
    (
        check_crew_weights,
        lambda q, x, h: torch.softmax(-(q - x).square().sum(-1) / 2 * h**2, 0),
        "in brackets",
    ),
    (check_crew_weights, weights_of(lambda gap: gap.square().sum(-1) / 2), "2 is squared, too"),
    (
        check_crew_weights,
        lambda q, x, h: torch.softmax(-(q - x).square().sum(-1), 0),
        "bandwidth is missing",
    ),
    (check_crew_weights, lambda q, x, h: -(q - x).square().sum(-1) / (2 * h**2), "the scores"),
    (
        check_crew_weights,
        lambda q, x, h: torch.softmax((-(q - x).square().sum(-1) / (2 * h**2)).exp(), 0),
        "softmax of the similarities",
    ),
    (check_crew_weights, lambda q, x, h: torch.softmax(x @ q, 0), "dot products"),
    (
        check_crew_weights,
        lambda q, x, h: torch.softmax(-(q - x).square() / (2 * h**2), 0),
        "weights of its own",
    ),
    (check_crew_weights, weights_of(lambda gap: -gap.square().sum(-1)), "sign"),
    (
        check_crew_weights,
        lambda q, x, h: (-(q - x).square().sum(-1) / (2 * h**2)).exp(),
        "must sum to 1",
    ),
    (check_standardise, lambda s: (s - s.mean()) / s.std(), "its own"),
    (check_standardise, lambda s: s - s.mean(0), "nothing is divided"),
    (check_standardise, lambda s: s - s.mean(0) / s.std(0), "brackets"),
    (
        check_standardise,
        lambda s: (s - s.min(0).values) / (s.max(0).values - s.min(0).values),
        "from 0 to 1",
    ),
    (check_standardise, lambda s: (s - s.mean(0)) / s.var(0, correction=0), "variance"),
    (check_standardise, lambda s: s / s.std(0, correction=0), "not subtracted"),
    (
        check_standardise,
        lambda s: (s - s.mean(1, keepdim=True)) / s.std(1, keepdim=True),
        "axis 0",
    ),
    (
        check_standardise,
        lambda s: (s - s.mean(1, keepdim=True)) / s.std(1, correction=0, keepdim=True),
        "axis 0",
    ),
]
