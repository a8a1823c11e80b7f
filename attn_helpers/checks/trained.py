"""Checks for chapter 10: measuring heads, turning the knob, sentence vectors."""

import torch
from torch import Tensor

from attn_helpers.checks._report import call, close, compare, passed, slip


def _weights(heads: int, n: int) -> Tensor:
    """Made-up attention weights (heads, n, n) with some exact zeros."""
    scores = torch.randn(heads, n, n, generator=torch.Generator().manual_seed(10))
    return torch.softmax(3 * scores.masked_fill(scores < -1, -torch.inf), dim=-1)


def check_attention_distance(answer) -> None:
    """Check ``answer(weights)``: how far each head looks on average, (..., n, n) -> (...).

    The mean over the queries i of Σⱼ αᵢⱼ |i − j|. Chapter 10, exercise 1.
    """
    weights = _weights(4, 6)
    place = torch.arange(6.0)
    gap = place[:, None] - place
    right = (weights * gap.abs()).sum(-1).mean(-1)
    farthest = gap.abs().expand(4, 6, 6).gather(-1, weights.argmax(-1, keepdim=True))
    compare(
        call(answer, weights.clone()),
        right,
        slips={
            "left and right cancel: take |i − j|, without its sign": (
                (weights * gap).sum((-2, -1)) / 6,
                (weights * -gap).sum((-2, -1)) / 6,
            ),
            "the rows are added: average over the queries": (weights * gap.abs()).sum((-2, -1)),
            "averaged over all n² cells: each row already sums to 1, so sum over the keys and average "
            "over the queries": (weights * gap.abs()).mean((-2, -1)),
            "the heads are averaged away: return one number for each head": (
                right.mean(),
                (weights * gap.abs()).sum(-1).mean(0),
            ),
            "the sign goes too late: take |i − j| before the sum": (
                (weights * gap).sum(-1).abs().mean(-1)
            ),
            "only the strongest key of each query counts: weigh every distance with its weight": (
                farthest.squeeze(-1).mean(-1)
            ),
            "the distances are squared": (weights * gap.square()).sum(-1).mean(-1),
            "this is one number for each query: average over the queries": (
                (weights * gap.abs()).sum(-1)
            ),
        },
        what="the distance",
    )
    layers, each = weights.unflatten(0, (2, 2)), right.unflatten(0, (2, 2))
    compare(call(answer, layers), each, slips={}, what="the distance in two layers of two heads")
    passed("one distance for each head, in tokens")


def check_sharpen(answer) -> None:
    """Check ``answer(weights, temperature)``: the weights of softmax(scores / T) from those at T = 1.

    αᵢⱼ^(1/T), divided by the sum of its row: scores are log α, up to a constant per row.
    Chapter 10, exercise 2.
    """
    weights, temperature = _weights(3, 5), 2.5
    power = weights ** (1 / temperature)
    filled = [(weights + tiny).log() / temperature for tiny in (1e-12, 1e-9, 1e-8, 1e-6)]
    compare(
        call(answer, weights.clone(), temperature),
        power / power.sum(-1, keepdim=True),
        slips={
            "the rows do not sum to 1 any more: divide by their sum": (
                power,
                weights / temperature,
            ),
            "the exponent is T: it is 1/T, since a high temperature softens": (
                weights**temperature / (weights**temperature).sum(-1, keepdim=True)
            ),
            "a softmax of the weights: the scores are their logarithms": (
                torch.softmax(weights / temperature, dim=-1)
            ),
            "divided by T and normalised, the weights are what they were: the scores are divided, and "
            "they are logarithms": weights,
            "normalised over the queries: every row, over its keys, sums to 1": (
                power / power.sum(-2, keepdim=True)
            ),
            "normalised over more than the keys: every row, over its keys, sums to 1": (
                power / power.sum(),
                power / power.sum(0),
                power / power.sum((-2, -1), keepdim=True),
            ),
            "a weight of exactly 0 has become positive: add nothing before the logarithm, a softmax "
            "turns −∞ into 0 again": tuple(torch.softmax(scores, dim=-1) for scores in filled),
        },
        what="the weights",
    )
    layers = _weights(6, 5).unflatten(0, (2, 3))
    compare(
        call(answer, layers.clone(), 1.0), layers, slips={}, what="two layers of weights at T = 1"
    )
    even = torch.full((3, 8, 8), 1 / 8)
    if not close(call(answer, even, 0.01), even):
        slip(
            "at a very low temperature the powers of a whole row round to 0, and 0/0 follow: divide each "
            "row by its largest weight first, or take the softmax of logarithms"
        )
    passed("the same scores, another temperature, and rows that sum to 1")


def check_contribution(answer) -> None:
    """Check ``answer(weights, sizes)``: what share of the added length comes from each key.

    weights (n, n), sizes (n,): the length of what key j adds at weight 1. Returns αᵢⱼ·sizeⱼ, each row
    divided by its sum. Chapter 10, exercise 3.
    """
    weights = _weights(1, 6)[0]
    sizes = 0.1 + 5 * torch.rand(6, generator=torch.Generator().manual_seed(3))
    added = weights * sizes
    compare(
        call(answer, weights.clone(), sizes.clone()),
        added / added.sum(-1, keepdim=True),
        slips={
            "the sizes belong to the keys, the columns: here they multiply the rows, which changes "
            "nothing": weights,
            "the rows do not sum to 1: divide each by its sum": (added, weights * sizes[:, None]),
            "divided by the sums of the columns: each query's row has to sum to 1": (
                added / added.sum(-2, keepdim=True)
            ),
            "the sums of the rows divide the columns: keep their axis with keepdim=True": (
                added / added.sum(-1)
            ),
            "divided by the sum of everything: each row has to sum to 1": added / added.sum(),
            "each row has length 1: divide by its sum, so that it sums to 1": (
                added / added.norm(dim=-1, keepdim=True)
            ),
            "the sizes alone, without the weights": (
                (sizes / sizes.sum()).expand(6, 6),
                sizes / sizes.sum(),
            ),
            "a softmax is too much: these are lengths, positive already": torch.softmax(added, -1),
        },
        what="the shares",
    )
    passed("weight times size: what is really added")


def check_sentence_vector(answer) -> None:
    """Check ``answer(hidden)``: the mean of the token states (n, d), brought to length 1.

    Chapter 10, exercise 4.
    """
    hidden = 1 + torch.randn(7, 5, generator=torch.Generator().manual_seed(4))
    mean = hidden.mean(0)
    unit = hidden / hidden.norm(dim=-1, keepdim=True)
    compare(
        call(answer, hidden.clone()),
        mean / mean.norm(),
        slips={
            "the mean is not brought to length 1": mean,
            "this is the state of [CLS] alone: this model was trained to average all states": (
                hidden[0] / hidden[0].norm(),
                hidden[0],
            ),
            "the sum is not brought to length 1": hidden.sum(0),
            "the mean runs over the entries of each token: it runs over the tokens, axis 0": (
                hidden.mean(1),
                hidden.mean(1) / hidden.mean(1).norm(),
            ),
            "each token is brought to length 1 before the mean: average first": (
                unit.mean(0),
                unit.mean(0) / unit.mean(0).norm(),
            ),
            "divided by the sum of the entries, not by the length": mean / mean.sum(),
            "all tokens belong to the mean, [CLS] and [SEP] too": (
                hidden[1:-1].mean(0) / hidden[1:-1].mean(0).norm(),
                hidden[1:].mean(0) / hidden[1:].mean(0).norm(),
            ),
            "this is the largest of every entry: take the mean": (
                hidden.amax(0) / hidden.amax(0).norm()
            ),
            "divided by the squared length": mean / mean.square().sum(),
            "divided by the length of all states together: divide the mean by its own": (
                mean / hidden.norm()
            ),
        },
        what="the sentence vector",
    )
    passed("one vector of length 1 for the sentence")
