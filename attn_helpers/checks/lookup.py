"""Checks for chapter 2: lookups as weighted sums."""

import torch

from attn_helpers import _validate as validate
from attn_helpers.checks._gaussian import compare_outputs
from attn_helpers.checks._report import call, compare, passed, slip


def check_soft_lookup(answer) -> None:
    """Check ``answer(queries, keys, values, sigma)``: the outputs of a soft lookup, one row per query.

    Z = A V with A = softmax over the keys of −‖qᵢ − kⱼ‖²/2σ². Chapter 2, exercise 1.
    """
    # As many queries as keys, and values as wide as keys: a swapped axis runs, and is told by its result.
    generator = torch.Generator().manual_seed(2)
    square = [torch.randn(5, 3, generator=generator) for _ in range(3)]
    _compare_soft_lookup(answer, *square, sigma=1.5)
    uneven = [torch.randn(shape, generator=generator) for shape in ((3, 2), (7, 2), (7, 5))]
    _compare_soft_lookup(answer, *uneven, sigma=1.5)
    passed("every query mixes the values with weights of its own that sum to 1")


def _compare_soft_lookup(answer, queries, keys, values, sigma):
    differences = queries[:, None] - keys
    squared = differences.square().sum(-1)
    scores = -squared / (2 * sigma**2)
    hard = torch.full_like(scores, -torch.inf).scatter(-1, scores.argmax(-1, keepdim=True), 0.0)
    slips = {
        "the scores are dot products: score by the squared distance": (
            queries @ keys.T,
            queries @ keys.T / (2 * sigma**2),
            queries @ keys.T / sigma**2,
            queries @ keys.T / keys.shape[-1] ** 0.5,
        ),
        "the distance is not squared": -squared.sqrt() / (2 * sigma**2),
        "the differences are summed before they are squared: opposite signs cancel": (
            -differences.sum(-1).square() / (2 * sigma**2)
        ),
        "the squared differences are averaged over the axis of the numbers: add them up": (
            scores / keys.shape[-1]
        ),
        "this is a hard lookup: every value counts, the nearer ones more": hard,
    }
    compare_outputs(answer, queries, keys, values, sigma, scores=scores, slips=slips)


def check_hard_weights(answer) -> None:
    """Check ``answer(scores)``: one-hot weights, 1 on the best key of every query.

    Any dtype of the weights is right, also bool. Chapter 2, exercise 2.
    """
    generator = torch.Generator().manual_seed(2)
    for shape in ((5, 5), (3, 7)):
        scores = torch.randn(shape, generator=generator)
        if shape == (3, 7):
            scores[:, -1] = -9.0  # nobody's best: one_hot by itself would leave this key out
        hard = torch.zeros(shape).scatter(-1, scores.argmax(-1, keepdim=True), 1.0)
        over_queries = torch.zeros(shape).scatter(0, scores.argmax(0, keepdim=True), 1.0)
        compare(
            call(answer, scores.clone()),
            hard,
            slips={
                "the arg max runs over the queries: every query, a row, must choose its best key": (
                    over_queries
                ),
                "one best cell of the whole matrix: every query must choose its own best key": (
                    (scores == scores.max()).float()
                ),
                "a key that nobody prefers is missing: tell one_hot how many keys there are": (
                    torch.nn.functional.one_hot(scores.argmax(-1))
                ),
                "these are the positions of the best keys: turn each into a row of 0s and a single 1": (
                    scores.argmax(-1)
                ),
                "these are the best scores: the weights are 1 and 0": (
                    scores.amax(-1),
                    scores * hard,
                ),
                "this is a soft lookup: all weight belongs to the best key": (
                    torch.softmax(scores, dim=-1)
                ),
                "the worst key gets the weight: the best one has the largest score": (
                    torch.zeros(shape).scatter(-1, scores.argmin(-1, keepdim=True), 1.0)
                ),
                "the weights are transposed: rows are queries, columns are keys": (
                    hard.T,
                    over_queries.T,
                ),
            },
            what="the matrix of weights",
        )
    passed("every query puts all its weight on its best key")


def check_are_weights(answer) -> None:
    """Check ``answer(matrix)``: whether a matrix, queries × keys, can hold attention weights.

    The weights are at least 0 and every row sums to 1, within rounding, or is all 0. Chapter 2, exercise 3.
    """
    generator = torch.Generator().manual_seed(2)
    soft = torch.softmax(torch.randn(7, 50, generator=generator), dim=-1)
    half = torch.tensor([[0.5, 0.5, 0.0]])
    cases = [
        (half, True, "a row of 0.5, 0.5 and 0 was refused, and it is a row of weights"),
        (torch.eye(5), True, "the identity matrix was refused: every query may look at one key"),
        (
            torch.tensor([[0.1, 0.9], [1.0, 0.0], [0.3, 0.7]]),
            True,
            "the columns were summed: each row, a query, must sum to 1, and the columns need not",
        ),
        (
            torch.tensor([[1.0, 0.8], [0.1, 0.1]]),
            False,
            "a matrix whose rows sum to 1.8 and 0.2 was accepted: each row by itself must sum to 1",
        ),
        (
            torch.tensor([[0.5, 0.9], [0.5, 0.1]]),
            False,
            "a matrix whose columns sum to 1, but not its rows, was accepted: rows are queries",
        ),
        (
            torch.tensor([[2.0, -1.0], [0.5, 0.5]]),
            False,
            "a negative entry was accepted: weights are at least 0",
        ),
        (
            torch.tensor([[0.2, 0.2], [0.5, 0.5]]),
            False,
            "a row that sums to 0.4 was accepted: every row must sum to 1, not only some",
        ),
        (
            torch.tensor([[0.4, 0.0], [0.5, 0.5]]),
            False,
            "a row of 0.4 and 0 was accepted: only a row that is all 0 may sum to less than 1",
        ),
        (
            torch.tensor([[0.5, 0.5], [0.0, 0.0]]),
            True,
            "a row of zeros was refused: a query that may look at nothing has it",
        ),
        (
            torch.tensor([[1.0, -1.0], [0.5, 0.5]]),
            False,
            "a row that sums to 0 without being all 0 was accepted",
        ),
        (soft, True, "the sums were compared exactly: allow for rounding, with torch.isclose"),
        (soft * 1.05, False, "rows that sum to 1.05 were accepted: that is more than rounding"),
    ]
    for matrix, expected, sentence in cases:
        result = call(answer, matrix.clone())
        if getattr(result, "ndim", 0):  # a tensor or an array with one answer per row or cell
            slip(
                "one answer is needed for the whole matrix, True or False, "
                f"got {validate.describe(result)}; all() joins many answers"
            )
        if result is None or isinstance(result, (str, float, list)):
            slip(f"the answer must be True or False, got {validate.describe(result)}")
        if bool(result) != expected:
            slip(sentence)
    passed("at least 0, and each row sums to 1 or is all 0")
