"""Checks for chapter 9: the parts of an encoder block, and cross-attention."""

import torch
from torch import Tensor, nn

from attn_helpers.checks._report import call, close, compare, passed, slip
from attn_helpers.heads import MultiHeadAttention


def _random(*shape: int, seed: int = 9) -> Tensor:
    """Numbers of the check's own: the reader's seed is neither used nor moved."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def check_layer_norm(answer) -> None:
    """Check ``answer(x, gain, shift, eps)``: each row of x (n, d) to mean 0 and, but for ε, variance 1.

    g ⊙ (x − μ)/√(v + ε) + b, with μ and v over the d entries of a row. Chapter 9, exercise 1.
    """
    x = 5 + 3 * _random(6, 8)
    gain, shift, eps = 1 + 0.3 * _random(8, seed=1), _random(8, seed=2), 0.5
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    unbiased = x.var(-1, keepdim=True)
    over_tokens = (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt()
    over_all = (x - x.mean()) / (x.var(correction=0) + eps).sqrt()
    right = (x - mean) / (var + eps).sqrt()
    compare(
        call(answer, x.clone(), gain.clone(), shift.clone(), eps),
        right * gain + shift,
        slips={
            "mean and variance run over the tokens: each token is normalised by itself, "
            "over its own d entries": (over_tokens * gain + shift, over_tokens),
            "one mean and one variance for all tokens: each token has its own": (
                over_all * gain + shift,
                over_all,
            ),
            "the variance is divided by d − 1: layer norm divides by d (correction=0)": (
                (x - mean) / (unbiased + eps).sqrt() * gain + shift
            ),
            "ε stands outside the root: add it to the variance, then take the root": (
                (x - mean) / (var.sqrt() + eps) * gain + shift
            ),
            "the variance is divided by d − 1, and ε stands outside the root or is missing: with "
            "correction=0 the variance is divided by d, then add ε, then take the root": (
                (x - mean) / (unbiased.sqrt() + eps) * gain + shift,
                (x - mean) / unbiased.sqrt() * gain + shift,
            ),
            "ε is missing, or is not the one that was given: without it, a token whose entries are all "
            "equal would give 0/0": ((x - mean) / var.sqrt() * gain + shift),
            "the root is missing: divide by the standard deviation, not by the variance": (
                (x - mean) / (var + eps) * gain + shift
            ),
            "the mean is not subtracted": (
                x / (var + eps).sqrt() * gain + shift,
                x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain + shift,
            ),
            "gain and shift are missing: multiply by gain and add shift at the end": right,
            "the shift is missing": right * gain,
            "the gain is missing": right + shift,
            "the shift is added before the gain multiplies": (right + shift) * gain,
        },
        what="the normalised tokens",
    )
    passed("every token has mean 0 and, but for ε, variance 1 before the gain and the shift")


def _parts(d: int = 8):
    """Two fixed maps in the place of attention and feed-forward, and two different layer norms."""
    mix, think = _random(5, 5, seed=3).softmax(-1), _random(d, d, seed=4)
    norms = []
    for seed in (5, 6):
        norm = nn.LayerNorm(d)
        with torch.no_grad():
            norm.weight.copy_(1 + 0.3 * _random(d, seed=seed))
            norm.bias.copy_(_random(d, seed=seed + 2))
        norms.append(norm.requires_grad_(False))
    return lambda x: mix @ x, lambda x: torch.tanh(x @ think), *norms


def check_encoder_block(answer) -> None:
    """Check ``answer(x, attend, think, norm_1, norm_2)``: the block with the norm after each addition.

    X' = norm_1(X + attend(X)), Z = norm_2(X' + think(X')). Chapter 9, exercise 2.
    """
    x = _random(5, 8)
    attend, think, norm_1, norm_2 = _parts()
    a = norm_1(x + attend(x))
    bare = norm_1(attend(x))
    early = x + attend(norm_1(x))
    late = x + norm_1(attend(x))
    thought = norm_1(x + think(x))
    swapped = norm_2(x + attend(x))
    plain = x + attend(x)
    compare(
        call(answer, x.clone(), attend, think, norm_1, norm_2),
        norm_2(a + think(a)),
        slips={
            "nothing is added back: both parts need a residual": norm_2(think(bare)),
            "x is not added back after the attention": norm_2(bare + think(bare)),
            "the input of the feed-forward is not added back after it": norm_2(think(a)),
            "the second residual adds the input of the block: add the input of the feed-forward": (
                norm_2(x + think(a))
            ),
            "the feed-forward reads the input of the block: it reads what the attention's half made": (
                norm_2(a + think(x))
            ),
            "this is the pre-norm block: here the norm comes after each addition": (
                early + think(norm_2(early))
            ),
            "the norm acts on the part alone: add first, then normalise": (
                late + norm_2(think(late)),
                a + norm_2(think(a)),
            ),
            "the second residual adds the sum before its norm: add the input of the feed-forward": (
                norm_2(plain + think(a))
            ),
            "the half of the feed-forward is missing: think, add, normalise once more": a,
            "the two norms are swapped: norm_1 follows the attention": norm_1(
                swapped + think(swapped)
            ),
            "norm_1 is used twice: the second addition has norm_2": norm_1(a + think(a)),
            "both parts read the block's input: the feed-forward reads what the attention's half made": (
                norm_2(norm_1(x + attend(x) + think(x)))
            ),
            "the norm after the attention is missing": norm_2(plain + think(plain)),
            "the norm after the feed-forward is missing": a + think(a),
            "the feed-forward comes before the attention: mix first, then think": (
                norm_2(thought + attend(thought))
            ),
        },
        what="the output of the block",
    )
    passed("mix, add, normalise; think, add, normalise")


def check_cross_attention(answer) -> None:
    """Check ``answer(y, memory, attend)``: the decoder's tokens y ask the encoder's output memory.

    attend is a `MultiHeadAttention`; the answer is its (output, weights). Chapter 9, exercise 3.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(9)
        attend = MultiHeadAttention(8, 2).requires_grad_(False)
    # Equally long first: then no slip ends in an error of shapes, and each can be told by its result.
    y, memory = _random(5, 8, seed=1), _random(5, 8, seed=2)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    both = torch.cat([memory, y])
    slips = {
        "queries and keys are swapped: the decoder asks, so the queries come from y": attend(
            memory, y
        ),
        "this is self-attention of y: keys and values come from memory": attend(y),
        "this is self-attention of memory: the queries come from y": attend(memory),
        "the values come from y: keys and values both come from memory": attend(y, memory, y),
        "the keys come from y: keys and values both come from memory": attend(y, y, memory),
        "a causal mask hides part of memory: the whole source is known, so nothing is hidden": (
            attend(y, memory, mask=causal)
        ),
        "y is among the keys as well: cross-attention looks at memory only": attend(y, both),
    }
    _compare_pair(call(answer, y.clone(), memory.clone(), attend), attend(y, memory), slips)
    y = _random(3, 8, seed=3)
    _compare_pair(call(answer, y.clone(), memory.clone(), attend), attend(y, memory), {})
    passed("queries from the decoder, keys and values from the encoder: 3 × 5 for each head")


def _compare_pair(result, expected, slips: dict) -> None:
    if not isinstance(result, tuple) or len(result) != 2:
        slip("return two tensors, the output and the weights, as attend does")
    output, weights = result
    compare(
        output,
        expected[0],
        slips={sentence: wrong[0] for sentence, wrong in slips.items()},
        what="the output",
    )
    if isinstance(weights, Tensor) and weights.ndim == 2 and close(weights, expected[1].mean(-3)):
        slip("the heads are averaged away: return the weights of each head")
    compare(
        weights,
        expected[1],
        slips={"the weights are transposed: rows are queries": expected[1].transpose(-2, -1)},
        what="the weights",
    )
