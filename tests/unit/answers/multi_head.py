"""Answers to the exercises of chapter 6: right variants, and the classic slips with the words that name them."""

import torch
from torch import nn

from attn_helpers import (
    MultiHeadAttention,
    check_head_contributions,
    check_multi_head,
    check_split_heads,
    check_torch_mask,
)


def split(x, h):
    return x.reshape(*x.shape[:-1], h, -1).transpose(-3, -2)


def merge(heads):
    return heads.transpose(-3, -2).flatten(-2)


def view(x, h):
    return x.reshape(h, len(x), -1)


def many(
    *, split=split, merge=merge, scale=None, axis=-1, project=None, v=None, change=None, o=True
):
    """Multi-head attention; each argument is one place to go wrong."""

    def answer(x, W_q, W_k, W_v, W_o, h):
        Q, K, V = project(x, W_q, W_k, W_v) if project else (x @ W_q, x @ W_k, x @ W_v)
        V = v(x, K, V) if v else V
        Q, K, V = (split(t, h) for t in (Q, K, V))
        s = Q.shape[-1] ** -0.5 if scale is None else scale(x.shape[-1], h)
        heads = (Q @ K.mT * s).softmax(axis) @ V
        heads = change(heads) if change else heads
        return merge(heads) @ W_o if o else merge(heads)

    return answer


def in_a_loop(x, W_q, W_k, W_v, W_o, h):
    """Head by head, adding up Z_r W_o⁽ʳ⁾."""
    d_k = x.shape[1] // h
    output = torch.zeros_like(x)
    for own in torch.arange(x.shape[1]).split(d_k):
        q, k, v = x @ W_q[:, own], x @ W_k[:, own], x @ W_v[:, own]
        output += (q @ k.T / d_k**0.5).softmax(-1) @ v @ W_o[own]
    return output


def with_layer(x, W_q, W_k, W_v, W_o, h):
    layer = MultiHeadAttention(len(W_q), h, bias=False)
    for linear, W in zip(
        (layer.W_q, layer.W_k, layer.W_v, layer.W_o), (W_q, W_k, W_v, W_o), strict=True
    ):
        linear.weight.data = W.T
    return layer(x)  # (output, weights)


def with_torch(x, W_q, W_k, W_v, W_o, h):
    layer = nn.MultiheadAttention(len(W_q), h, bias=False)
    layer.in_proj_weight.data = torch.cat([W_q.T, W_k.T, W_v.T])
    layer.out_proj.weight.data = W_o.T
    return layer(x, x, x)[0]


def without_transpose(x, W_q, W_k, W_v, W_o, h):
    q, k, v = ((x @ W).view(len(x), h, -1) for W in (W_q, W_k, W_v))
    return ((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v).flatten(1) @ W_o


def projected_again(x, W_q, W_k, W_v, W_o, h):
    heads = []
    for own in torch.arange(x.shape[1]).split(x.shape[1] // h):
        q, k, v = ((x @ W)[:, own] @ W[own][:, own] for W in (W_q, W_k, W_v))
        heads.append((q @ k.T / len(own) ** 0.5).softmax(-1) @ v)
    return torch.cat(heads, dim=-1) @ W_o


def scores_without_transpose(x, W_q, W_k, W_v, W_o, h):
    q, k, v = (split(x @ W, h) for W in (W_q, W_k, W_v))
    return merge((q @ k / q.shape[-1] ** 0.5).softmax(-1) @ v) @ W_o


def split_before_projecting(x, W_q, W_k, W_v, W_o, h):
    heads = []
    for own in torch.arange(x.shape[1]).split(x.shape[1] // h):
        q, k, v = (x[:, own] @ W[own][:, own] for W in (W_q, W_k, W_v))
        heads.append((q @ k.T / len(own) ** 0.5).softmax(-1) @ v)
    return torch.cat(heads, dim=-1) @ W_o


def stripes(x, h):
    return torch.stack([x[:, r::h] for r in range(h)])


def interleave(heads):
    return torch.stack(list(heads), dim=-1).flatten(1)


def one_average(x, W_q, W_k, W_v, W_o, h):
    q, k = split(x @ W_q, h), split(x @ W_k, h)
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).mean(0) @ (x @ W_v) @ W_o


def without_softmax(x, W_q, W_k, W_v, W_o, h):
    q, k, v = (split(x @ W, h) for W in (W_q, W_k, W_v))
    return merge(q @ k.mT / q.shape[-1] ** 0.5 @ v) @ W_o


def repeated(mask, h):
    return (~mask).repeat_interleave(h, dim=0)


RIGHT = [
    (check_split_heads, split),
    (check_split_heads, lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=-3)),
    (check_split_heads, lambda x, h: x.unflatten(-1, (h, -1)).movedim(-2, -3).contiguous()),
    (check_multi_head, many()),
    (check_multi_head, in_a_loop),
    (check_multi_head, with_layer),
    (check_multi_head, with_torch),
    (check_multi_head, lambda *a: many()(*(t.double() for t in a[:-1]), a[-1])),
    (check_head_contributions, lambda z, W: z @ W.view(len(z), -1, W.shape[-1])),
    (
        check_head_contributions,
        lambda z, W: torch.stack([a @ b for a, b in zip(z, W.chunk(len(z)), strict=True)]),
    ),
    (check_torch_mask, repeated),
    (check_torch_mask, lambda m, h: (~m)[:, None].expand(-1, h, -1, -1).flatten(0, 1)),
    (check_torch_mask, lambda m, h: torch.where(repeated(m, h), -torch.inf, 0.0)),
]

WRONG = [
    (check_split_heads, lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], -1), "reshape alone"),
    (check_split_heads, lambda x, h: x.unflatten(-1, (h, -1)), "a transpose is missing"),
    (check_split_heads, lambda x, h: x.unflatten(-1, (-1, h)).movedim(-1, -3), "every h-th column"),
    (check_split_heads, lambda x, h: split(x, x.shape[-1] // h), "changed places"),
    (check_split_heads, lambda x, h: x.unflatten(-1, (h, -1)).mT, "wrong two axes"),
    (check_split_heads, lambda x, h: x.unflatten(-1, (h, -1)).transpose(0, 1), "before the batch"),
    (check_split_heads, lambda x, h: torch.stack(x.chunk(h, dim=-1)), "before the batch"),
    (check_split_heads, lambda x, h: x, "shape"),
    (check_multi_head, many(o=False), "W_o is forgotten"),
    (check_multi_head, many(scale=lambda d, h: d**-0.5), "√d_model"),
    (check_multi_head, many(scale=lambda d, h: 1.0), "not divided by √d_k"),
    (check_multi_head, many(scale=lambda d, h: h / d), "divided by d_k"),
    (check_multi_head, many(scale=lambda d, h: 1 / d), "divided by d, the width"),
    (check_multi_head, many(scale=lambda d, h: (d / h) ** 0.5), "multiplied by √d_k"),
    (check_multi_head, without_softmax, "softmax is missing"),
    (check_multi_head, many(scale=lambda d, h: h**-0.5), "divided by √h"),
    (check_multi_head, many(axis=-2), "over the queries"),
    (check_multi_head, many(axis=-3), "over the heads"),
    (check_multi_head, many(split=view), "heads by reshape alone: view"),
    (
        check_multi_head,
        many(split=view, merge=lambda z: z.reshape(z.shape[1], -1)),
        "reshape alone, on the way in and out",
    ),
    (
        check_multi_head,
        many(merge=lambda z: z.reshape(z.shape[1], -1)),
        "put together by reshape alone",
    ),
    (check_multi_head, without_transpose, "product without the transpose"),
    (check_multi_head, lambda *a: many()(*a[:-1], 1), "one head only"),
    (
        check_multi_head,
        lambda *a: many(scale=lambda d, _: (d / a[-1]) ** -0.5)(*a[:-1], 1),
        "scores are added",
    ),
    (check_multi_head, many(v=lambda x, K, V: K), "V is built from the keys"),
    (check_multi_head, many(v=lambda x, K, V: x), "V is x itself"),
    (
        check_multi_head,
        many(project=lambda x, *Ws: [x @ W @ W for W in Ws]),
        "projected twice",
    ),
    (check_multi_head, projected_again, "projected again inside each head"),
    (check_multi_head, many(project=lambda x, *Ws: (x, x, x)), "not projected"),
    (
        check_multi_head,
        many(project=lambda x, q, k, v: (x @ k, x @ q, x @ v)),
        "changed places",
    ),
    (check_multi_head, lambda x, q, k, v, o, h: many()(x, q, k, v, o.T, h), "W_o is transposed"),
    (
        check_multi_head,
        lambda x, q, k, v, o, h: many()(x, q.T, k.T, v.T, o.T, h),
        "the matrices are transposed",
    ),
    (
        check_multi_head,
        many(change=lambda z: z.mean(0, keepdim=True).expand_as(z)),
        "averaged",
    ),
    (check_multi_head, scores_without_transpose, "scores are Q Kᵀ, not Q K"),
    (
        check_multi_head,
        lambda x, q, k, v, o, h: many()(x, q.T, k.T, v.T, o, h),
        "the matrices are transposed",
    ),
    (check_multi_head, split_before_projecting, "split before it is projected"),
    (check_multi_head, many(split=stripes), "every h-th column"),
    (check_multi_head, many(split=stripes, merge=interleave), "every h-th column"),
    (check_multi_head, many(merge=interleave), "interleaved"),
    (check_multi_head, one_average, "weights are averaged"),
    (check_multi_head, lambda x, *Ws: many()(x, *Ws) + x, "x is added"),
    (check_multi_head, many(o=False, merge=lambda z: z.flatten(0, 1)), "one below another"),
    (check_multi_head, many(o=False, merge=lambda z: torch.cat(list(z))), "one below another"),
    (check_multi_head, lambda *a: 1 / 0, "raised ZeroDivisionError"),
    (check_head_contributions, lambda z, W: (z @ W.unflatten(0, (len(z), -1))).sum(0), "the sum"),
    (check_head_contributions, lambda z, W: z @ W.unflatten(0, (len(z), -1)) / len(z), "averaged"),
    (check_head_contributions, lambda z, W: z @ W.T.unflatten(0, (len(z), -1)), "into columns"),
    (
        check_head_contributions,
        lambda z, W: torch.stack([a @ W[i :: len(z)] for i, a in enumerate(z)]),
        "every h-th row",
    ),
    (check_head_contributions, lambda z, W: z @ W[: z.shape[2]], "rows of its own"),
    (
        check_head_contributions,
        lambda z, W: torch.stack([z.transpose(0, 1).flatten(1) @ W] * len(z)),
        "once for each head",
    ),
    (
        check_head_contributions,
        lambda z, W: (z @ W.unflatten(0, (len(z), -1))).transpose(0, 1),
        "first axis must be the heads",
    ),
    (check_torch_mask, lambda m, h: m.repeat_interleave(h, dim=0), "mask is inverted"),
    (check_torch_mask, lambda m, h: (~m).repeat(h, 1, 1), "mixed up"),
    (check_torch_mask, lambda m, h: m.repeat(h, 1, 1), "neither inverted nor in order"),
    (check_torch_mask, lambda m, h: ~m, "not repeated"),
    (check_torch_mask, lambda m, h: m, "not repeated"),
    (check_torch_mask, lambda m, h: (~m).tolist(), "should be a tensor"),
    (check_torch_mask, lambda m, h: repeated(m, h) * 1, "True and False"),
    (check_torch_mask, lambda m, h: repeated(m, h).float(), "adds a float mask"),
    (check_torch_mask, lambda m, h: repeated(m, h) * -1e9, "only minus infinity"),
    (check_torch_mask, lambda m, h: torch.where(repeated(m, h), -torch.inf, 7.0), "has to be 0"),
    (check_torch_mask, lambda m, h: (~m).repeat_interleave(h, dim=1), "rows are repeated"),
    (check_torch_mask, lambda m, h: (~m)[:, None].expand(-1, h, -1, -1), "axis of their own"),
]
