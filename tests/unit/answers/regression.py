"""Answers to the exercises of chapter 3: right variants, and the classic slips with the words that name them."""

import math

import numpy as np
import torch

from attn_helpers import (
    NadarayaWatson,
    check_boxcar_weights,
    check_kernel_regression,
    check_learned_bandwidth,
    check_leave_one_out,
    nadaraya_watson,
)


def gaps(q, k):
    return q[:, None] - k


def scores(q, k, h):
    return -(gaps(q, k) ** 2) / (2 * h**2)


def regression(score, dim=-1):
    return lambda q, k, y, h: torch.softmax(score(gaps(q, k), h), dim=dim) @ y


def right(q, k, y, h):
    return torch.softmax(scores(q, k, h), dim=-1) @ y


def ratio(q, k, y, h):
    kernel = scores(q, k, h).exp()
    return kernel @ y / kernel.sum(-1)


def relative_ratio(q, k, y, h):
    s = scores(q, k, h)
    kernel = (s - s.amax(-1, keepdim=True)).exp()
    return (kernel @ y) / kernel.sum(-1)


def boxcar(inside, empty=0.0, dim=-1):
    def answer(q, k, h):
        kernel = inside(gaps(q, k), h).float()
        return torch.nan_to_num(kernel / kernel.sum(dim, keepdim=True), nan=empty)

    return answer


def within(d, h):
    return d.abs() <= h


def left_out(fill, *, h_power=2, dim=-1):
    def answer(x, y, h):
        s = -(gaps(x, x) ** 2) / (2 * h**h_power)
        weights = torch.softmax(fill(s), dim=dim)
        return (weights @ y - y).square().mean()

    return answer


def without_diagonal(s):
    return s.clone().fill_diagonal_(-math.inf)


def deleting(x, y, h):
    total = 0.0
    for i in range(len(x)):
        rest = torch.arange(len(x)) != i
        total += (right(x[i : i + 1], x[rest], y[rest], h)[0].item() - y[i].item()) ** 2
    return total / len(x)


def shortcut(x, y, h):
    """The residual with the point divided by 1 − its weight on itself is the one without it."""
    weights = torch.softmax(scores(x, x, h), dim=-1)
    return ((weights @ y - y) / (1 - weights.diagonal())).square().mean().reshape(1)


def renormalised(x, y, h):
    weights = torch.softmax(scores(x, x, h), dim=-1).clone().fill_diagonal_(0)
    return torch.nn.functional.mse_loss((weights / weights.sum(-1, keepdim=True)) @ y, y)


def kept(x, y, h):
    return (right(x, x, y, h) - y).square().mean()


def zeroed(x, y, h):
    weights = torch.softmax(scores(x, x, h), dim=-1).clone().fill_diagonal_(0)
    return (weights @ y - y).square().mean()


def prediction(x, y, h):
    return torch.softmax(without_diagonal(scores(x, x, h)), dim=-1) @ y


def zeroed_after(x, y, h):
    weights = torch.softmax(scores(x, x, h), dim=-1)
    return ((weights * (1 - torch.eye(len(x)))) @ y - y).square().mean()


def learn(loss, start=1.0, steps=150):
    def answer(x, y):
        log_sigma = torch.tensor(math.log(start), requires_grad=True)
        optimizer = torch.optim.Adam([log_sigma], lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss(x, y, log_sigma.exp()).backward()
            optimizer.step()
        return log_sigma.exp().item()

    return answer


def learn_without_zero_grad(x, y):
    log_sigma = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([log_sigma], lr=0.1)
    for _ in range(100):
        deleting_fast(x, y, log_sigma.exp()).backward()
        optimizer.step()
    return log_sigma.exp().item()


def learn_with_the_module(x, y):
    model = NadarayaWatson()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        (model(x, x, y, exclude_self=True)[0] - y).square().mean().backward()
        optimizer.step()
    return model.bandwidth


def search(x, y):
    return min(torch.logspace(-2, 1, 200), key=lambda h: deleting_fast(x, y, h))


deleting_fast = left_out(without_diagonal)

RIGHT = [
    (check_leave_one_out, lambda *a: np.float32(deleting(*a))),
    (check_learned_bandwidth, lambda x, y: np.float32(0.22)),
    (check_kernel_regression, right),
    (check_kernel_regression, relative_ratio),
    (check_kernel_regression, lambda q, k, y, h: (torch.softmax(scores(q, k, h), -1) * y).sum(-1)),
    (check_kernel_regression, lambda q, k, y, h: y @ torch.softmax(scores(q, k, h).T, 0)),
    (check_kernel_regression, lambda q, k, y, h: torch.softmax(scores(k, q, h), 0).T @ y),
    (check_kernel_regression, lambda q, k, y, h: nadaraya_watson(q, k, y, bandwidth=h)[0]),
    (
        check_kernel_regression,
        lambda q, k, y, h: torch.stack([right(x[None], k, y, h)[0] for x in q]),
    ),
    (check_boxcar_weights, boxcar(within)),
    (check_boxcar_weights, boxcar(lambda d, h: d**2 <= h**2)),
    (
        check_boxcar_weights,
        lambda q, k, h: (
            within(gaps(q, k), h) / within(gaps(q, k), h).sum(-1, keepdim=True).clamp(min=1)
        ),
    ),
    (
        check_boxcar_weights,
        lambda q, k, h: nadaraya_watson(q, k, k, kernel="boxcar", bandwidth=h)[1],
    ),
    (check_leave_one_out, left_out(without_diagonal)),
    (check_leave_one_out, deleting),
    (check_leave_one_out, shortcut),
    (check_leave_one_out, renormalised),
    (
        check_leave_one_out,
        lambda x, y, h: (NadarayaWatson(h)(x, x, y, exclude_self=True)[0] - y).square().mean(),
    ),
    (check_learned_bandwidth, learn(left_out(without_diagonal))),
    (check_learned_bandwidth, learn(left_out(without_diagonal), start=0.05)),
    (check_learned_bandwidth, learn(deleting_fast, start=4.0)),
    (check_learned_bandwidth, learn_with_the_module),
    (check_learned_bandwidth, search),
]

SIGNED = "kernel of the signed distance"
QUERIES = "over the queries instead of the keys"

WRONG = [
    (check_kernel_regression, regression(lambda d, h: -((d / (2 * h)) ** 2)), "2 is squared, too"),
    (
        check_kernel_regression,
        lambda q, k, y, h: scores(q, k, h).exp() / scores(q, k, h).exp().sum(-1) @ y,
        "keepdim=True",
    ),
    (
        check_kernel_regression,
        lambda q, k, y, h: torch.softmax(scores(q, k, h).exp(), -1) @ y,
        "softmax of the kernel values",
    ),
    (
        check_boxcar_weights,
        lambda q, k, h: within(gaps(q, k), h) / within(gaps(q, k), h).sum(-1).clamp(min=1),
        "keepdim=True",
    ),
    (check_boxcar_weights, lambda q, k, h: boxcar(within)(k, q, h), "transposed"),
    (check_leave_one_out, lambda x, y, h: deleting_fast(x, y, h * 2**0.5), "2 is squared, too"),
    (check_learned_bandwidth, learn_without_zero_grad, "zero_grad"),
    (check_kernel_regression, regression(lambda d, h: -(d**2) / 2 * h**2), "in brackets"),
    (
        check_kernel_regression,
        lambda q, k, y, h: scores(q, k, h).exp() @ y / (scores(q, k, h).exp().sum(-1) + 1e-9),
        "a small number added",
    ),
    (check_leave_one_out, lambda *a: deleting(*a) / 2, "halved"),
    (check_leave_one_out, lambda x, y, h: deleting(x, y, h) * len(x) / (len(x) - 1), "n − 1"),
    (check_leave_one_out, lambda x, y, h: torch.tensor(0.0), "sees only itself"),
    (check_kernel_regression, lambda q, k, y, h: right(q, k, y, h) / len(k), "extra 1/n"),
    (
        check_kernel_regression,
        lambda q, k, y, h: (torch.softmax(scores(q, k, h), -1) * y).mean(-1),
        "extra 1/n",
    ),
    (check_kernel_regression, lambda q, k, y, h: torch.softmax(scores(q, k, h), 0) @ y, QUERIES),
    (check_kernel_regression, lambda q, k, y, h: scores(q, k, h).exp() @ y, "divided by their sum"),
    (
        check_kernel_regression,
        regression(lambda d, h: -(d**2) / (2 * h)),
        "bandwidth is not squared",
    ),
    (check_kernel_regression, regression(lambda d, h: -(d**2) / h**2), "2 is missing"),
    (check_kernel_regression, regression(lambda d, h: -d / (2 * h**2)), SIGNED),
    (check_kernel_regression, regression(lambda d, h: d / h), SIGNED),
    (check_kernel_regression, regression(lambda d, h: -d), SIGNED),
    (
        check_kernel_regression,
        regression(lambda d, h: -d.abs() / (2 * h**2)),
        "distance is not squared",
    ),
    (check_kernel_regression, regression(lambda d, h: -(d**2) / 2), "bandwidth is missing"),
    (check_kernel_regression, regression(lambda d, h: d**2 / (2 * h**2)), "sign of the score"),
    (check_kernel_regression, lambda q, k, y, h: right(q, k, k, h), "keys are mixed"),
    (
        check_kernel_regression,
        lambda q, k, y, h: torch.softmax(scores(q, k, h), -1),
        "are the weights",
    ),
    (
        check_kernel_regression,
        lambda q, k, y, h: torch.softmax(scores(k, q, h), -1) @ y,
        "transposed",
    ),
    (
        check_kernel_regression,
        lambda q, k, y, h: y @ torch.softmax(scores(q, k, h), -1),
        "transposed",
    ),
    (check_kernel_regression, ratio, "0/0 for a query far"),
    (check_kernel_regression, lambda q, k, y, h: y.mean().expand(len(q)), "largest difference"),
    (check_kernel_regression, lambda q, k, y, h: 1.0, "should be a tensor"),
    (check_boxcar_weights, boxcar(within, dim=0), QUERIES),
    (check_boxcar_weights, boxcar(lambda d, h: d <= h), SIGNED),
    (check_boxcar_weights, boxcar(lambda d, h: -d <= h), SIGNED),
    (check_boxcar_weights, boxcar(lambda d, h: d <= h, empty=math.nan), SIGNED),
    (check_boxcar_weights, lambda q, k, h: within(gaps(q, k), h), "divided by their sum"),
    (check_boxcar_weights, lambda q, k, h: within(gaps(q, k), h) / len(k), "extra 1/n"),
    (check_boxcar_weights, boxcar(lambda d, h: d**2 <= h), "square of the distance"),
    (check_boxcar_weights, boxcar(lambda d, h: d.abs() <= h / 2), "not σ/2"),
    (check_boxcar_weights, boxcar(lambda d, h: d.abs() < h), "exactly is inside"),
    (check_boxcar_weights, boxcar(lambda d, h: d.abs() < h, empty=math.nan), "exactly is inside"),
    (
        check_boxcar_weights,
        lambda q, k, h: torch.softmax(within(gaps(q, k), h).float(), -1),
        "softmax",
    ),
    (check_boxcar_weights, boxcar(within, empty=math.nan), "0/0 for a query with an empty window"),
    (check_boxcar_weights, boxcar(within, empty=0.2), "uniform"),
    (check_boxcar_weights, lambda q, k, h: boxcar(within)(q, k, h).T, "transposed"),
    (check_boxcar_weights, lambda q, k, h: None, "should be a tensor"),
    (check_leave_one_out, kept, "point itself is kept"),
    (check_leave_one_out, left_out(lambda s: s.clone().fill_diagonal_(0)), "point itself is kept"),
    (check_leave_one_out, zeroed, "no longer sums"),
    (check_leave_one_out, left_out(without_diagonal, dim=0), QUERIES),
    (
        check_leave_one_out,
        lambda x, y, h: (scores(x, x, h).exp().fill_diagonal_(0) @ y - y).square().mean(),
        "divided by their sum",
    ),
    (
        check_leave_one_out,
        lambda x, y, h: (prediction(x, y, h) / len(x) - y).square().mean(),
        "extra 1/n",
    ),
    (check_leave_one_out, lambda x, y, h: (prediction(x, y, h) - y).square().sum(), "added up"),
    (check_leave_one_out, lambda x, y, h: (prediction(x, y, h) - y).square(), "take their mean"),
    (check_leave_one_out, lambda x, y, h: prediction(x, y, h), "are the predictions"),
    (check_leave_one_out, lambda x, y, h: (prediction(x, y, h) - y).abs().mean(), "not squared"),
    (check_leave_one_out, lambda x, y, h: (prediction(x, y, h) - y).square().mean().sqrt(), "root"),
    (check_leave_one_out, left_out(without_diagonal, h_power=1), "bandwidth is not squared"),
    (check_leave_one_out, left_out(lambda s: 2 * without_diagonal(s)), "2 is missing"),
    (check_leave_one_out, lambda x, y, h: "small", "one number"),
    (check_learned_bandwidth, learn(kept), "collapsed.*itself"),
    (check_learned_bandwidth, lambda x, y: 1.0, "too wide"),
    (check_learned_bandwidth, learn(zeroed_after), "0 after the softmax"),
    (check_learned_bandwidth, lambda x, y: 0.1, "too narrow"),
    (check_learned_bandwidth, lambda x, y: -0.2, "must be positive"),
    (check_learned_bandwidth, lambda x, y: math.inf, "must be positive"),
    (check_learned_bandwidth, lambda x, y: math.nan, "became NaN"),
    (check_learned_bandwidth, lambda x, y: x, "one number"),
    (check_learned_bandwidth, lambda x: 0.2, "raised TypeError"),
    (check_learned_bandwidth, 0.22, "expected a function"),
]
