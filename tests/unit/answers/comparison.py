"""Answers to the exercises of chapter 8: right variants, and the classic slips with the words that name them."""

import math

import numpy as np
import torch

from attn_helpers import check_attention_cost, check_bidirectional, check_conv_layers


def both(join):
    return lambda x, f, b: join(f(x), b(x.flip(0)).flip(0))


def by_loop(n, width):
    layers, reached = 0, 1
    while reached < n:
        layers, reached = layers + 1, reached + (width - 1) // 2
    return layers


def cat(*parts):
    return torch.cat(parts, dim=-1)


RIGHT = [
    (check_attention_cost, lambda n, d: n * d * (3 * d + 2 * n)),
    (check_attention_cost, lambda n, d: torch.tensor(3 * n * d**2 + 2 * n**2 * d)),
    (check_attention_cost, lambda n, d: np.int64(n * d * (3 * d + 2 * n))),
    (check_conv_layers, lambda n, k: math.ceil((n - 1) / ((k - 1) // 2))),
    (check_conv_layers, by_loop),
    (check_conv_layers, lambda n, k: -(-2 * (n - 1) // (k - 1))),
    (check_bidirectional, both(cat)),
    (check_bidirectional, both(lambda a, b: torch.stack([a, b], 1).flatten(1))),
]

WRONG = [
    (check_attention_cost, lambda n, d: 3 * n * d**2 + n**2 * d, "weighted sum is missing"),
    (check_attention_cost, lambda n, d: 2 * n**2 * d, "projections are missing"),
    (check_attention_cost, lambda n, d: n**2 * d, "projections are missing"),
    (check_attention_cost, lambda n, d: 3 * n * d**2, "scores and weighted sum are missing"),
    (check_attention_cost, lambda n, d: 3 * d**2 + 2 * n**2 * d, "parameters"),
    (check_attention_cost, lambda n, d: 3 * d**2, "parameters"),
    (check_attention_cost, lambda n, d: n * d**2 + 2 * n**2 * d, "there are three"),
    (check_attention_cost, lambda n, d: n * d**2 + n**2 * d, "orders of growth"),
    (check_attention_cost, lambda n, d: 2 * (3 * n * d**2 + 2 * n**2 * d), "not twice"),
    (check_attention_cost, lambda n, d: 3 * d * n**2 + 2 * d**2 * n, "swapped"),
    (check_attention_cost, lambda n, d: 4 * n * d**2 + 2 * n**2 * d, "W_o"),
    (check_attention_cost, lambda n, d: 3 * n * d**2 + 2 * n**2, "counted as one"),
    (check_attention_cost, lambda n, d: 3 * n * d**2 + n**2 * (d + 1), "counted as one"),
    (check_attention_cost, lambda n, d: 3 * n * d**2 + 2 * n**2 * d + n**2, "softmax"),
    (check_attention_cost, lambda n, d: n + d, "not right yet"),
    (check_attention_cost, lambda n, d: "much", "expected a number"),
    (check_attention_cost, lambda n: n, "raised TypeError"),
    (check_attention_cost, 7, "expected a function"),
    (check_conv_layers, lambda n, k: math.ceil((n - 1) / (k - 1)), "other way"),
    (check_conv_layers, lambda n, k: math.ceil(n / k), "not width"),
    (check_conv_layers, lambda n, k: math.ceil((n - 1) / k), "not width"),
    (check_conv_layers, lambda n, k: 2 * (n - 1) // (k - 1), "rounded down"),
    (check_conv_layers, lambda n, k: math.ceil(2 * n / (k - 1)), "n − 1 steps"),
    (check_conv_layers, lambda n, k: 2 * (n - 1) // (k - 1) + 1, "a layer too many"),
    (check_conv_layers, lambda n, k: math.ceil(math.log(n, k)), "with gaps"),
    (check_conv_layers, lambda n, k: 2 * (n - 1) / (k - 1), "whole"),
    (check_conv_layers, lambda n, k: round(2 * (n - 1) / (k - 1)), "nearest"),
    (check_bidirectional, lambda x, f, b: cat(f(x), b(x.flip(0))), "not turned back"),
    (check_bidirectional, lambda x, f, b: cat(f(x), b(x)), "reads from the front"),
    (check_bidirectional, lambda x, f, b: cat(f(x), b(x).flip(0)), "turn both"),
    (check_bidirectional, lambda x, f, b: cat(f(x), b(x.flip(-1)).flip(-1)), "flip axis 0"),
    (check_bidirectional, both(lambda a, b: a + b), "are added"),
    (check_bidirectional, both(lambda a, b: (a + b) / 2), "are added"),
    (check_bidirectional, both(lambda a, b: torch.cat([a, b])), "along the last axis"),
    (check_bidirectional, both(lambda a, b: cat(b, a)), "swapped"),
    (check_bidirectional, lambda x, f, b: f(x), "only one"),
    (check_bidirectional, lambda x, f, b: cat(f(x), f(x.flip(0)).flip(0)), "only one"),
    (check_bidirectional, lambda x, f, b: [1], "should be a tensor"),
]
