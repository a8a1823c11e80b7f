"""Each helper against its torch counterpart, forward and backward, over one grid of cases.

Every test prints a row of the table: what was compared, how many cases, the largest difference.
Rows that may attend to nothing are left out: there torch gives NaN, we give 0 (tested elsewhere).
"""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attn_helpers import (
    MultiHeadAttention,
    SelfAttention,
    attention,
    causal_mask,
    length_mask,
    masked_softmax,
)

TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 1e-2,
    torch.bfloat16: 8e-2,
}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda d: str(d).removeprefix("torch."))
BATCHES = [(), (2,), (2, 3)]
LENGTHS = [(5, 5), (3, 7), (7, 3), (1, 5)]  # queries, keys
WIDTHS = [(11, 11), (11, 13)]  # keys, values
MASKS = [None, "causal", "padding", "both"]


def make_mask(kind, batch, q, k):
    """None, or a bool mask in which every query may attend to something."""
    if kind is None or (kind != "padding" and k < q):
        return None
    lengths = torch.randint(1, k + 1, batch)
    padding = length_mask(lengths, k).unsqueeze(-2).expand(*batch, q, k)
    if kind == "padding":
        return padding
    causal = causal_mask(q, k)
    return causal if kind == "causal" else causal & padding


def forward_and_backward(function, inputs, cotangent=None):
    """Output and gradients, in float64 so that comparing adds no rounding of its own."""
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    output = function(*inputs)
    output.backward(torch.ones_like(output) if cotangent is None else cotangent)
    return [x.double() for x in (output.detach(), *(x.grad for x in inputs))]


def difference(ours, theirs, inputs):
    """Largest absolute difference between two functions, over output and all gradients."""
    cotangent = torch.randn_like(ours(*inputs))
    pairs = zip(
        forward_and_backward(ours, inputs, cotangent),
        forward_and_backward(theirs, inputs, cotangent),
        strict=True,
    )
    return max((a - b).abs().max().item() for a, b in pairs)


def row(capsys, name, dtype, differences, *, roundings=1):
    """Print the row, then hold it to the tolerance of the dtype. NaN fails, too.

    roundings: how many such tolerances a longer computation may use up.
    """
    worst = max(differences)
    dtype_name = str(dtype).removeprefix("torch.")
    with capsys.disabled():
        print(
            f"\n{name:42s} {dtype_name:9s} {len(differences):4d} cases  largest {worst:.1e}", end=""
        )
    assert all(d <= roundings * TOLERANCE[dtype] for d in differences)


@DTYPES
def test_attention(dtype, capsys):
    differences = []
    for batch, (q, k), (d, v), kind in itertools.product(BATCHES, LENGTHS, WIDTHS, MASKS):
        inputs = [torch.randn(*batch, *size).to(dtype) for size in [(q, d), (k, d), (k, v)]]
        mask = make_mask(kind, batch, q, k)
        differences.append(
            difference(
                lambda *qkv, m=mask: attention(*qkv, mask=m)[0],
                lambda *qkv, m=mask: F.scaled_dot_product_attention(*qkv, attn_mask=m),
                inputs,
            )
        )
    row(capsys, "attention / scaled_dot_product_attention", dtype, differences)


@DTYPES
def test_causal_attention(dtype, capsys):
    """is_causal is aligned at the start, ours at the end: they agree for equal lengths."""
    differences = []
    for batch, n, scale in itertools.product(BATCHES, [1, 5, 7], [None, 0.3]):
        inputs = [torch.randn(*batch, n, 11).to(dtype) for _ in range(3)]
        differences.append(
            difference(
                lambda *qkv, s=scale: attention(*qkv, mask=causal_mask(qkv[0].shape[-2]), scale=s)[
                    0
                ],
                lambda *qkv, s=scale: F.scaled_dot_product_attention(*qkv, is_causal=True, scale=s),
                inputs,
            )
        )
    row(capsys, "attention / sdpa(is_causal, scale)", dtype, differences)


@DTYPES
def test_masked_softmax(dtype, capsys):
    differences = []
    for batch, (q, k), kind in itertools.product(BATCHES, LENGTHS, MASKS):
        scores = 10 * torch.randn(*batch, q, k).to(dtype)
        mask = make_mask(kind, batch, q, k)
        hidden = torch.zeros(q, k, dtype=torch.bool) if mask is None else ~mask
        differences.append(
            difference(
                lambda s, m=mask: masked_softmax(s, m),
                lambda s, h=hidden: s.masked_fill(h, -torch.inf).softmax(-1),
                [scores],
            )
        )
    row(capsys, "masked_softmax / softmax of -inf", dtype, differences)


def layers(heads, key_dim, value_dim, dtype, train):
    """torch's layer, biases not 0 as after training, and ours with the same weights."""
    theirs = nn.MultiheadAttention(16, heads, kdim=key_dim, vdim=value_dim, batch_first=True)
    for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
        nn.init.normal_(bias)
    theirs = theirs.to(dtype).train(train)
    return theirs, MultiHeadAttention.from_torch(theirs)


def torch_mask(mask, batch, heads):
    """Our mask for torch's layer: True means "leave out", and 3-D masks are repeated per head."""
    if mask is None:
        return None
    if not batch:
        return ~mask
    return ~mask.expand(*batch, *mask.shape[-2:]).repeat_interleave(heads, dim=0)


def gradients_of(output, inputs, layer):
    """Gradients of the inputs, and a mapping from parameter to gradient."""
    cotangent = torch.linspace(-1, 1, output.numel()).view_as(output).to(output)
    wanted = (*inputs, *layer.parameters())
    gradients = torch.autograd.grad((output * cotangent).sum(), wanted)
    return gradients[: len(inputs)], dict(
        zip(layer.parameters(), gradients[len(inputs) :], strict=True)
    )


def layer_pairs(ours, theirs, inputs, mask, hidden, need_weights):
    """Everything of our layer beside the same thing of torch's."""
    output, weights = ours(*inputs, mask=mask, need_weights=need_weights)
    expected, expected_weights = theirs(*inputs, attn_mask=hidden, average_attn_weights=False)
    yield output, expected
    if need_weights:
        yield weights, expected_weights
    else:
        assert weights is None
    mine, my_parameters = gradients_of(output, inputs, ours)
    others, their_parameters = gradients_of(expected, inputs, theirs)
    yield from zip(mine, others, strict=True)
    if theirs.in_proj_weight is not None:
        in_weights = their_parameters[theirs.in_proj_weight].chunk(3)
    else:
        in_weights = [
            their_parameters[w]
            for w in (theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight)
        ]
    in_biases = their_parameters[theirs.in_proj_bias].chunk(3)
    for linear, weight, bias in zip(
        (ours.W_q, ours.W_k, ours.W_v, ours.W_o),
        (*in_weights, their_parameters[theirs.out_proj.weight]),
        (*in_biases, their_parameters[theirs.out_proj.bias]),
        strict=True,
    ):
        yield my_parameters[linear.weight], weight
        yield my_parameters[linear.bias], bias
    with torch.no_grad():  # in eval torch takes another, faster path here
        yield ours(*inputs, mask=mask)[0], theirs(*inputs, attn_mask=hidden)[0]


def relative(pair):
    """Largest difference, in units of the largest entry where that is above 1."""
    a, b = (x.detach().double() for x in pair)
    assert a.shape == b.shape
    return ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()


@DTYPES
@pytest.mark.parametrize("need_weights", [True, False], ids=["weights", "fused"])
def test_multi_head_attention(dtype, need_weights, capsys):
    differences = []
    grid = itertools.product(
        [1, 2, 4, 8], [(), (3,)], LENGTHS, [(None, None), (11, 13)], MASKS, [False, True]
    )
    for heads, batch, (q, k), (key_dim, value_dim), kind, train in grid:
        theirs, ours = layers(heads, key_dim, value_dim, dtype, train)
        inputs = [
            torch.randn(*batch, *size).to(dtype).requires_grad_()
            for size in [(q, 16), (k, key_dim or 16), (k, value_dim or 16)]
        ]
        mask = make_mask(kind, batch, q, k)
        hidden = torch_mask(mask, batch, heads)
        pairs = layer_pairs(ours, theirs, inputs, mask, hidden, need_weights)
        differences.extend(map(relative, pairs))
    name = "MultiHeadAttention / nn.MultiheadAttention"
    name = name if need_weights else "  the same, need_weights=False"
    row(capsys, name, dtype, differences, roundings=2)  # projections in, and one out


@DTYPES
def test_self_attention(dtype, capsys):
    differences = []
    for batch, head_dim, kind in itertools.product(BATCHES, [None, 7], MASKS):
        layer = SelfAttention(11, head_dim).to(dtype)
        mask = make_mask(kind, batch, 5, 5)

        def theirs(x, layer=layer, mask=mask):
            projected = (x @ w.weight.mT for w in (layer.W_q, layer.W_k, layer.W_v))
            return F.scaled_dot_product_attention(*projected, attn_mask=mask)

        inputs = [torch.randn(*batch, 5, 11).to(dtype)]
        differences.append(difference(lambda x, f=layer, m=mask: f(x, mask=m)[0], theirs, inputs))
    row(capsys, "SelfAttention / projections + sdpa", dtype, differences)
