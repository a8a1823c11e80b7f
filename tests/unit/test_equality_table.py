"""Each helper against its torch counterpart, forward and backward, over one grid of cases.

Every test prints a row of the table: what was compared, how many cases, the largest difference.
Rows that may attend to nothing are left out: there torch gives NaN, we give 0 (tested elsewhere).
"""

import itertools

import pytest
import torch
from torch.nn import functional as F

from attn_helpers import attention, causal_mask, length_mask, masked_softmax

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


def row(capsys, name, dtype, differences):
    """Print the row, then hold it to the tolerance of the dtype. NaN fails, too."""
    worst = max(differences)
    dtype_name = str(dtype).removeprefix("torch.")
    with capsys.disabled():
        print(
            f"\n{name:42s} {dtype_name:9s} {len(differences):4d} cases  largest {worst:.1e}", end=""
        )
    assert all(d <= TOLERANCE[dtype] for d in differences)


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
