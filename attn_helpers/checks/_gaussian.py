"""What the exercises with a Gaussian kernel share: the slips in 2σ² (chapters 1 to 3), and those of a lookup (2 and 3)."""

import torch
from torch import Tensor

from attn_helpers.checks._report import call, compare


def wrong_bandwidths(scores: Tensor, sigma: float, output) -> dict[str, tuple[Tensor, ...]]:
    """What ``output`` makes of scores = −distance²/2σ² with a slip in 2σ², by the sentence that names it."""
    slips = {
        "the bandwidth is not squared: divide by 2σ², not by 2σ": [sigma],
        "the 2 is missing: divide by 2σ², not by σ²": [2],
        "the 2 is squared, too: divide by 2σ², not by (2σ)²": [1 / 2],
        "the bandwidth is missing: divide by 2σ²": [sigma**2, 2 * sigma**2],
        "/ 2 * sigma**2 divides by 2 and multiplies by σ²: put 2 * sigma**2 in brackets": [
            sigma**4
        ],
    }
    return {
        sentence: tuple(output(factor * scores) for factor in factors)
        for sentence, factors in slips.items()
    }


def compare_outputs(
    answer, queries: Tensor, keys: Tensor, values: Tensor, sigma: float, *, scores: Tensor, slips
) -> None:
    """Compare ``answer(queries, keys, values, sigma)`` with softmax(scores) V, scores = −distance²/2σ².

    slips maps a sentence to the wrong scores, or to several, that it is about; the slips that do not
    depend on what a distance is are known here.
    """

    def output(of_scores):
        return torch.softmax(of_scores, dim=-1) @ values

    weights = torch.softmax(scores, dim=-1)
    over_queries = torch.softmax(scores, dim=0)
    wrong = {
        sentence: tuple(map(output, one if isinstance(one, tuple) else (one,)))
        for sentence, one in slips.items()
    }
    wrong |= wrong_bandwidths(scores, sigma, output)
    wrong |= {
        "an extra 1/n: the weights sum to 1 already, nothing is left to average": (
            weights @ values / len(keys),
            weights @ values / len(queries),
        ),
        "normalised over the queries instead of the keys: the weights of each query must sum to 1, "
        "so the sum or softmax runs over the last axis": over_queries @ values,
        "the kernel values are not divided by their sum: the weights of a query must sum to 1": (
            scores.exp() @ values
        ),
        "this is a softmax of the kernel values: it raises e to the scores by itself": (
            output(scores.exp())
        ),
        "the sign of the score is turned: the farthest key gets the largest weight": output(
            -scores
        ),
        "the keys are mixed, not the values": weights @ keys,
        "these are the weights: multiply them with the values": weights,
    }
    if len(queries) == len(keys):
        wrong["the weights are transposed: rows are queries, columns are keys"] = (
            weights.T @ values,
            over_queries.T @ values,
        )
        kernel = scores.exp()
        wrong["the sums lost an axis: with keepdim=True each row is divided by its own sum"] = (
            kernel / kernel.sum(dim=-1) @ values
        )
    compare(
        call(answer, queries.clone(), keys.clone(), values.clone(), sigma),
        weights @ values,
        slips=wrong,
        what="the output",
    )
