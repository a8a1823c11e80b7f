"""Checks for chapter 1: the operator-stat toy."""

import torch

from attn_helpers import _validate as validate
from attn_helpers.checks._gaussian import wrong_bandwidths
from attn_helpers.checks._report import call, close, compare, passed, slip


def _crew(n: int, width: int):
    """Made-up operators: stats (n, width), ability (n,), a newcomer (width,) close to some of them.

    The stats are small numbers: with hundreds, several slips would all end in copying the nearest operator.
    """
    generator = torch.Generator().manual_seed(n)
    stats = 10 + 3 * torch.randn(n, width, generator=generator)
    ability = 50 + 20 * torch.rand(n, generator=generator)
    newcomer = stats[0] + 0.75 * torch.randn(width, generator=generator)
    return stats, ability, newcomer


def check_prediction(answer) -> None:
    """Check ``answer(x, strength, ability, sigma)``: the ability predicted from one stat.

    z = Σᵢ αᵢ yᵢ with α = softmax(−(x − xᵢ)²/2σ²). Chapter 1, exercise 1.
    """
    stats, ability, newcomer = _crew(7, 1)
    strength, x, sigma = stats[:, 0], newcomer.item(), 1.5
    scores = -((x - strength) ** 2) / (2 * sigma**2)
    weights = torch.softmax(scores, dim=-1)
    result = call(answer, x, strength.clone(), ability.clone(), sigma)
    try:
        result = torch.as_tensor(result).squeeze()
    except (TypeError, ValueError, RuntimeError):
        slip(f"the prediction should be one number, got {validate.describe(result)}")
    compare(
        result,
        weights @ ability,
        slips={
            "the similarities are not divided by their sum: the weights must sum to 1": scores.exp()
            @ ability,
            "an extra 1/n: the weights sum to 1 already, nothing is left to average": (
                weights * ability
            ).mean(),
            "the sign of the score is turned: the farthest operator gets the largest weight": (
                torch.softmax(-scores, dim=-1) @ ability
            ),
            **wrong_bandwidths(scores, sigma, lambda s: torch.softmax(s, dim=-1) @ ability),
            "this is a softmax of the similarities: it raises e to the scores by itself": (
                torch.softmax(scores.exp(), dim=-1) @ ability
            ),
            "the distance is not squared: use (x − xᵢ)²": (
                torch.softmax(-(x - strength).abs() / (2 * sigma**2), dim=-1) @ ability,
                torch.softmax(-(x - strength).abs() / sigma, dim=-1) @ ability,
            ),
            "the scores themselves are not weights: put them through a softmax": scores @ ability,
            "the scores are divided by their sum: put them through a softmax": (
                scores / scores.sum() @ ability
            ),
            "these are the weights: multiply them with the abilities, and add up": weights,
            "the strengths are mixed, not the abilities": weights @ strength,
            "this copies the nearest operator: every ability counts, the nearer ones more": (
                ability[scores.argmax()]
            ),
            "this is the plain average of all abilities: the weights must depend on x": ability.mean(),
        },
        what="the prediction",
    )
    passed("the prediction is the weighted sum of the known abilities")


def check_crew_weights(answer) -> None:
    """Check ``answer(query, stats, sigma)``: one weight per operator from any number of stats.

    αᵢ = softmax over the operators of −‖q − xᵢ‖²/2σ². Chapter 1, exercise 2.
    """
    stats, _, query = _crew(7, 3)
    sigma = 2.5
    gaps = query - stats
    scores = -gaps.square().sum(-1) / (2 * sigma**2)
    compare(
        call(answer, query, stats, sigma),
        torch.softmax(scores, dim=-1),
        slips={
            "only the first stat is compared: add up the squared differences of all stats": (
                torch.softmax(-gaps[:, 0].square() / (2 * sigma**2), dim=-1)
            ),
            "the squared differences are summed over the operators: sum over the stats, the last axis": (
                torch.softmax(-gaps.square().sum(0) / (2 * sigma**2), dim=-1)
            ),
            "the differences are summed before they are squared: opposite signs cancel": (
                torch.softmax(-gaps.sum(-1).square() / (2 * sigma**2), dim=-1)
            ),
            **wrong_bandwidths(scores, sigma, lambda s: torch.softmax(s, dim=-1)),
            "these are the scores: put them through a softmax": scores,
            "this is a softmax of the similarities: it raises e to the scores by itself": (
                torch.softmax(scores.exp(), dim=-1)
            ),
            "these are dot products: compare by the squared distance": (
                torch.softmax(stats @ query, dim=-1),
                torch.softmax(stats @ query / sigma**2, dim=-1),
                torch.softmax(stats @ query / (2 * sigma**2), dim=-1),
            ),
            "each stat has weights of its own: add up the squared differences of all stats first": (
                torch.softmax(-gaps.square() / (2 * sigma**2), dim=0)
            ),
            "the distance is not squared": (
                torch.softmax(-gaps.norm(dim=-1) / (2 * sigma**2), dim=-1),
                torch.softmax(-gaps.norm(dim=-1) / sigma, dim=-1),
            ),
            "the squared differences are averaged over the stats: add them up": (
                torch.softmax(scores / 3, dim=-1)
            ),
            "the similarities are not divided by their sum: the weights must sum to 1": scores.exp(),
            "the sign of the score is turned: the farthest operator gets the largest weight": (
                torch.softmax(-scores, dim=-1)
            ),
        },
        what="the weights",
    )
    passed("one weight per operator, the nearest the largest, and all of them sum to 1")


def check_standardise(answer) -> None:
    """Check ``answer(stats)``: each stat with mean 0 and standard deviation 1 over the operators.

    Either convention of the standard deviation is right: divided by n or by n − 1.
    Chapter 1, exercise 3.
    """
    stats, _, _ = _crew(7, 3)
    result = call(answer, stats.clone())
    centred = stats - stats.mean(0)
    across = stats - stats.mean(1, keepdim=True)
    by_n, by_n_minus_1 = centred / stats.std(0, correction=0), centred / stats.std(0)
    fits = isinstance(result, torch.Tensor) and close(result.detach(), by_n_minus_1)
    compare(
        result,
        by_n_minus_1 if fits else by_n,
        slips={
            "one mean and one spread for all stats: each stat needs its own": (
                (stats - stats.mean()) / stats.std()
            ),
            "brackets are missing: without them only the mean is divided, not the difference": (
                stats - stats.mean(0) / stats.std(0, correction=0),
                stats - stats.mean(0) / stats.std(0),
            ),
            "the means are subtracted, but nothing is divided by the standard deviation": centred,
            "divided by the variance: the standard deviation is its square root": (
                centred / stats.var(0, correction=0),
                centred / stats.var(0),
            ),
            "the stats are mapped to the range from 0 to 1: divide by the standard deviation": (
                (stats - stats.amin(0)) / (stats.amax(0) - stats.amin(0))
            ),
            "the mean of each stat is not subtracted": (
                stats / stats.std(0, correction=0),
                stats / stats.std(0),
            ),
            "the mean runs over the stats of one operator: it must run over the operators, axis 0": (
                across / stats.std(1, correction=0, keepdim=True),
                across / stats.std(1, keepdim=True),
            ),
        },
        what="the standardised stats",
    )
    passed("every stat now has mean 0 and standard deviation 1 over the crew")
