"""Answers to the exercises of chapter 9: right variants, and the classic slips with the words that name them."""

import torch
import torch.nn.functional as F

from attn_helpers import check_cross_attention, check_encoder_block, check_layer_norm


def norm(axis=-1, correction=0, outside=0, inside=1, root=True, centre=True, gain=True, shift=True):
    """A layer norm with one thing wrong."""

    def answer(x, g, b, eps):
        axes = tuple(range(x.ndim)) if axis == "all" else axis
        mean = x.mean(axes, keepdim=True) if centre else 0
        var = x.var(axes, keepdim=True, correction=correction) + inside * eps
        z = (x - mean) / ((var.sqrt() if root else var) + outside * eps)
        return z * (g if gain else 1) + (b if shift else 0)

    return answer


def block(change):
    """The block of the exercise, its steps given by `change`."""
    return lambda x, attend, think, n1, n2: change(x, attend, think, n1, n2)


def right_block(x, attend, think, n1, n2):
    a = n1(x + attend(x))
    return n2(a + think(a))


def with_a(finish):
    return lambda x, at, th, n1, n2: finish(x, n1(x + at(x)), th, n1, n2)


def through_parts(y, memory, attend):
    """Cross-attention from the pieces of the layer, without calling it."""
    q, k, v = (
        w(t).unflatten(-1, (2, 4)).transpose(0, 1)
        for w, t in ((attend.W_q, y), (attend.W_k, memory), (attend.W_v, memory))
    )
    weights = torch.softmax(q @ k.transpose(-2, -1) / 2, dim=-1)
    return attend.W_o((weights @ v).transpose(0, 1).flatten(1)), weights


RIGHT = [
    (check_layer_norm, norm()),
    (check_layer_norm, lambda x, g, b, eps: F.layer_norm(x, x.shape[-1:], g, b, eps)),
    (check_layer_norm, lambda x, g, b, e: torch.stack([norm()(row, g, b, e) for row in x])),
    (check_encoder_block, right_block),
    (check_cross_attention, lambda y, m, attend: attend(y, m)),
    (check_cross_attention, lambda y, m, attend: attend(y, m, m)),
    (check_cross_attention, through_parts),
]

WRONG = [
    (check_layer_norm, norm(axis=0), "over the tokens"),
    (check_layer_norm, norm(axis="all"), "each token has its own"),
    (check_layer_norm, norm(correction=1), "correction=0"),
    (check_layer_norm, norm(inside=0, outside=1), "outside the root"),
    (check_layer_norm, norm(inside=0), "ε is missing"),
    (check_layer_norm, lambda x, g, b, e: norm()(x, g, b, 1e-5), "not the one"),
    (check_layer_norm, norm(correction=1, inside=0, outside=1), "d − 1, and ε stands outside"),
    (check_layer_norm, norm(correction=1, inside=0), "or is missing"),
    (check_layer_norm, norm(root=False), "root is missing"),
    (check_layer_norm, lambda x, g, b, e: F.rms_norm(x, x.shape[-1:], g, e) + b, "not subtracted"),
    (check_layer_norm, norm(centre=False), "not subtracted"),
    (check_layer_norm, norm(gain=False, shift=False), "gain and shift are missing"),
    (check_layer_norm, norm(shift=False), "shift is missing"),
    (check_layer_norm, norm(gain=False), "gain is missing"),
    (check_layer_norm, lambda x, g, b, e: (norm()(x, 1, 0, e) + b) * g, "before the gain"),
    (check_layer_norm, lambda x, g, b, e: x[0], "shape"),
    (check_encoder_block, lambda x, at, th, n1, n2: n2(th(n1(at(x)))), "nothing is added back"),
    (check_encoder_block, lambda x, at, th, n1, n2: n2(n1(x + at(x) + th(x))), "both parts read"),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: right_block(0 * x, lambda _: at(x), th, n1, n2),
        "after the attention",
    ),
    (check_encoder_block, with_a(lambda x, a, th, n1, n2: n2(th(a))), "after it"),
    (check_encoder_block, with_a(lambda x, a, th, n1, n2: n2(x + th(a))), "second residual"),
    (check_encoder_block, with_a(lambda x, a, th, n1, n2: n2(a + th(x))), "reads the input"),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: (y := x + at(n1(x))) + th(n2(y)),
        "pre-norm",
    ),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: (y := x + n1(at(x))) + n2(th(y)),
        "add first",
    ),
    (check_encoder_block, with_a(lambda x, a, th, n1, n2: a + n2(th(a))), "add first"),
    (check_encoder_block, with_a(lambda x, a, th, n1, n2: a), "half of the feed-forward"),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: n2(x + at(x) + th(n1(x + at(x)))),
        "sum before its norm",
    ),
    (check_encoder_block, lambda x, at, th, n1, n2: right_block(x, at, th, n2, n1), "swapped"),
    (check_encoder_block, lambda x, at, th, n1, n2: right_block(x, at, th, n1, n1), "used twice"),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: right_block(x, at, th, lambda y: y, n2),
        "norm after the attention is missing",
    ),
    (
        check_encoder_block,
        lambda x, at, th, n1, n2: right_block(x, at, th, n1, lambda y: y),
        "norm after the feed-forward is missing",
    ),
    (check_encoder_block, lambda x, at, th, n1, n2: right_block(x, th, at, n1, n2), "mix first"),
    (check_encoder_block, lambda x, at, th, n1, n2: 7, "should be a tensor"),
    (check_cross_attention, lambda y, m, attend: attend(m, y), "queries and keys are swapped"),
    (check_cross_attention, lambda y, m, attend: attend(y), "self-attention of y"),
    (check_cross_attention, lambda y, m, attend: attend(m), "self-attention of memory"),
    (check_cross_attention, lambda y, m, attend: attend(y, m, y), "values come from y"),
    (check_cross_attention, lambda y, m, attend: attend(y, y, m), "keys come from y"),
    (
        check_cross_attention,
        lambda y, m, attend: attend(y, m, mask=torch.ones(len(y), len(m)).tril().bool()),
        "causal mask",
    ),
    (
        check_cross_attention,
        lambda y, m, attend: attend(y, torch.cat([m, y])),
        "among the keys as well",
    ),
    (check_cross_attention, lambda y, m, attend: attend(y, m)[0], "return two tensors"),
    (
        check_cross_attention,
        lambda y, m, attend: (attend(y, m)[0], attend(y, m)[1].mean(0)),
        "averaged away",
    ),
    (
        check_cross_attention,
        lambda y, m, attend: (attend(y, m)[0], attend(y, m)[1].transpose(-1, -2)),
        "transposed",
    ),
]
