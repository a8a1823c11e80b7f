"""Checks for chapter 3: kernel regression and its bandwidth."""

import math
from numbers import Real

import torch

from attn_helpers import _validate as validate
from attn_helpers.checks._gaussian import compare_outputs, wrong_bandwidths
from attn_helpers.checks._report import call, compare, passed, slip
from attn_helpers.data import noisy_curve


def _scores(queries, keys, sigma):
    return -((queries[:, None] - keys) ** 2) / (2 * sigma**2)


def check_kernel_regression(answer) -> None:
    """Check ``answer(queries, keys, values, sigma)``: Gaussian kernel regression of numbers.

    Outputs Σⱼ αᵢⱼ yⱼ with α = softmax over the keys of −(x − xⱼ)²/2σ², also far outside the data.
    Chapter 3, exercise 1.
    """
    sigma = 0.7
    keys, values = noisy_curve(7)
    near = torch.linspace(0.2, 4.9, 7)  # as many as keys, so that a swapped axis runs
    far = torch.tensor([-60.0, 1.3, 80.0])
    for queries in (near, near[:4]):
        _compare_regression(answer, queries, keys, values, sigma)
    output = call(answer, far, keys, values, 0.1)
    expected = torch.softmax(_scores(far, keys, 0.1), dim=-1) @ values
    if isinstance(output, torch.Tensor) and output.isnan().any():
        slip(
            "0/0 for a query far from all keys: every kernel value is rounded to 0; use the softmax of "
            "the scores, which compares with the nearest key"
        )
    compare(
        output,
        expected,
        slips={
            "0 for a query far from all keys: a small number added to the sum wins there; use the "
            "softmax of the scores, which compares with the nearest key": expected.where(
                (far > 0) & (far < 5), 0.0
            )
        },
        what="the output for far queries",
    )
    passed("every output is an average of the values, the nearer keys counting more")


def _compare_regression(answer, queries, keys, values, sigma):
    difference = queries[:, None] - keys
    signed = [
        sign * difference / divisor
        for sign in (1, -1)
        for divisor in (1, sigma, sigma**2, 2 * sigma, 2 * sigma**2)
    ]
    slips = {
        "a kernel of the signed distance: keys on one side of the query win, however far they are; "
        "square the difference or take its absolute value": tuple(signed),
        "the distance is not squared: use (x − xᵢ)²": (
            -difference.abs() / (2 * sigma**2),
            -difference.abs() / sigma,
        ),
    }
    scores = _scores(queries, keys, sigma)
    compare_outputs(answer, queries, keys, values, sigma, scores=scores, slips=slips)


def check_boxcar_weights(answer) -> None:
    """Check ``answer(queries, keys, sigma)``: boxcar weights, a row of zeros where the window is empty.

    Chapter 3, exercise 2.
    """
    sigma = 0.75
    keys = torch.tensor([0.0, 0.5, 1.0, 3.0, 3.5])  # the query 2.25 has one at σ exactly
    for queries in (torch.tensor([0.6, 0.2, 3.2, 2.25, 1.1]), torch.tensor([0.6, 9.0, 3.2, -5.0])):
        difference = queries[:, None] - keys
        inside = (difference.abs() <= sigma).float()
        weights = _rows(inside)
        slips = {
            "normalised over the queries instead of the keys: the weights of each query, a row, must sum to 1": (
                inside / inside.sum(0),
                _rows(inside.T).T,
            ),
            "a kernel of the signed distance: every key on one side of the query counts as near; "
            "take the absolute value": (
                _rows((difference <= sigma).float()),
                _rows((-difference <= sigma).float()),
                _rows((difference <= sigma).float(), empty=math.nan),
                _rows((-difference <= sigma).float(), empty=math.nan),
            ),
            "the kernel values are not divided by their sum: the weights of a query must sum to 1": (
                inside
            ),
            "an extra 1/n: divide by the number of keys in the window only": (
                inside / len(keys),
                weights / len(keys),
            ),
            "the square of the distance is compared with σ: compare the distance": (
                _rows((difference**2 <= sigma).float()),
                _rows((difference**2 <= sigma).float(), empty=math.nan),
            ),
            "a key at the distance σ exactly is inside: u ≤ 1": (
                _rows((difference.abs() < sigma).float()),
                _rows((difference.abs() < sigma).float(), empty=math.nan),
            ),
            "the window reaches σ to each side, not σ/2": (
                _rows((difference.abs() <= sigma / 2).float()),
                _rows((difference.abs() <= sigma / 2).float(), empty=math.nan),
            ),
            "this is a softmax of the kernel values: divide them by their sum": (
                torch.softmax(inside, dim=-1)
            ),
            "uniform weights for a query with an empty window: it gets zeros": (
                _rows(inside, empty=1 / len(keys))
            ),
            "the weights are transposed: rows are queries, columns are keys": (
                weights.T,
                _rows(inside.T),
            ),
        }
        if len(queries) == len(keys):
            slips["the sums lost an axis: with keepdim=True each row is divided by its own sum"] = (
                inside / inside.sum(-1)
            )
        result = call(answer, queries.clone(), keys.clone(), sigma)
        if isinstance(result, torch.Tensor):
            result = result.detach().double()
            if result.isnan().any():
                _name_nan(result, weights, slips)
        compare(result, weights, slips=slips, what="the matrix of weights")
    passed("equal weights inside the window, and zeros where it is empty")


def _rows(inside, *, empty=0.0):
    """Each row divided by its sum; `empty` where the sum is 0."""
    total = inside.sum(-1, keepdim=True)
    return torch.where(total > 0, inside / total.clamp(min=1), torch.full_like(inside, empty))


def _same(a, b) -> bool:
    return a.shape == b.shape and torch.allclose(
        a.double(), b.double(), rtol=1e-4, atol=1e-5, equal_nan=True
    )


def _name_nan(result, weights, slips) -> None:
    """NaN equals nothing, so `compare` cannot see which slip stands beside it."""
    empty = (weights == 0).all(-1, keepdim=True)
    if _same(result, weights.masked_fill(empty, math.nan)):
        slip("0/0 for a query with an empty window: its sum is 0; it gets a row of zeros")
    for sentence, wrong in slips.items():
        if any(_same(result, t) for t in (wrong if isinstance(wrong, tuple) else (wrong,))):
            slip(sentence)


def check_leave_one_out(answer) -> None:
    """Check ``answer(x, y, sigma)``: the mean squared error of predicting each yᵢ from the other points.

    Chapter 3, exercise 3.
    """
    sigma = 0.4
    x, y = noisy_curve(11)
    expected, slips = _losses(x, y, sigma)
    result = call(answer, x.clone(), y.clone(), sigma)
    if not isinstance(result, (Real, torch.Tensor)):
        slip(f"the loss should be one number, got {validate.describe(result)}")
    result = torch.as_tensor(result)
    if result.numel() == 1:
        result = result.reshape(())
    compare(result, expected, slips=slips, what="the loss")
    passed("each measurement is predicted from the others")


def _losses(x, y, sigma):
    """The leave-one-out loss, and what the slips would give."""
    n = len(x)
    scores = _scores(x, x, sigma)
    itself = torch.eye(n, dtype=torch.bool)
    others = scores.masked_fill(itself, -math.inf)

    def residuals(weights):
        return weights @ y - y

    left_out = residuals(torch.softmax(others, dim=-1))
    kept = residuals(torch.softmax(scores, dim=-1))
    over_queries = residuals(torch.softmax(others, dim=0))
    kernel = scores.exp().masked_fill(itself, 0.0)
    slips = {
        "the point itself is kept: it must be left out of its own prediction; a score of 0 on the "
        "diagonal keeps it, a score of −∞ leaves it out": (
            kept.square().mean(),
            kept.square().sum(),
        ),
        "the diagonal of the weights is set to 0 after the softmax: the rest of a row no longer sums "
        "to 1; leave the point out before": _zeroed_after(x, y, sigma),
        "normalised over the queries instead of the keys: the weights of each query must sum to 1": (
            over_queries.square().mean()
        ),
        "the kernel values are not divided by their sum": residuals(kernel).square().mean(),
        "an extra 1/n in the prediction: the weights sum to 1 already": ((left_out + y) / n - y)
        .square()
        .mean(),
        "the squared errors are added up: take their mean": left_out.square().sum(),
        "divided by n − 1: the mean divides by n": left_out.square().sum() / (n - 1),
        "the loss is halved: it is the mean of the squared errors": left_out.square().mean() / 2,
        "the loss is 0: each point sees only itself; it must see all the others": torch.tensor(0.0),
        "these are the squared errors of all points: take their mean": left_out.square(),
        "these are the predictions: the loss is the mean of their squared errors": left_out + y,
        "the errors are not squared": (left_out.abs().mean(), left_out.mean(), -left_out.mean()),
        "this is the root of the loss": left_out.square().mean().sqrt(),
        **wrong_bandwidths(
            others, sigma, lambda s: residuals(torch.softmax(s, dim=-1)).square().mean()
        ),
    }
    return left_out.square().mean(), slips


def _zeroed_after(x, y, sigma):
    """The loss of a learner who sets the diagonal of the weights to 0 after the softmax."""
    weights = torch.softmax(_scores(x, x, sigma), dim=-1).fill_diagonal_(0.0)
    return (weights @ y - y).square().mean()


def check_learned_bandwidth(answer) -> None:
    """Check ``answer(x, y)``: the bandwidth with the smallest leave-one-out loss, within 3 %.

    Chapter 3, exercise 4.
    """
    x, y = noisy_curve(50)
    result = call(answer, x.clone(), y.clone())
    sigma = _bandwidth(result)
    candidates = torch.logspace(-2.5, 1, 60).tolist()
    losses = [_losses(x, y, candidate)[0].item() for candidate in candidates]
    best = candidates[losses.index(min(losses))]
    loss = _losses(x, y, sigma)[0].item()
    if loss > 1.03 * min(losses):
        if sigma < best / 3:
            slip(
                f"the bandwidth collapsed to {sigma:.3g}: if the point itself is kept, it learns to look "
                "only at itself; leave it out of its own prediction (if you have, is zero_grad() missing?)"
            )
        zeroed = min(candidates, key=lambda candidate: _zeroed_after(x, y, candidate))
        if math.isclose(sigma, zeroed, rel_tol=0.15):
            slip(
                f"a bandwidth of {sigma:.3g} is too wide; it comes out where the diagonal of the weights "
                "is set to 0 after the softmax: leave the point out before"
            )
        direction = "wide" if sigma > best else "narrow"
        slip(
            f"a bandwidth of {sigma:.3g} is too {direction}: its leave-one-out loss is {loss:.3f}, and "
            f"{min(losses):.3f} can be reached; take more steps, or larger ones"
        )
    passed(f"the learned bandwidth, {sigma:.3f}, has the smallest leave-one-out loss")


def _bandwidth(result) -> float:
    """Return σ as a positive float, or say what is wrong with it."""
    if isinstance(result, torch.Tensor) and result.numel() == 1:
        result = result.item()
    if isinstance(result, bool) or not isinstance(result, Real):
        slip(f"the bandwidth should be one number, got {validate.describe(result)}")
    if math.isnan(result):
        slip("the bandwidth became NaN")
    if result <= 0 or math.isinf(result):
        slip(
            f"the bandwidth must be positive, got {result:.3g}; make log σ the parameter and return "
            "its exponential"
        )
    return float(result)
