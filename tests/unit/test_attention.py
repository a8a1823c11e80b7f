"""Scores, masks and weights against oracles that share no code with them.

Sizes are primes, so that a swapped axis shows.
"""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from attn_helpers import attention, causal_mask, dot_product_scores, length_mask, masked_softmax

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


def softmax_by_hand(scores, mask):
    """The definition, one row at a time, in Python floats."""
    rows = []
    for row, visible in zip(scores.tolist(), mask.tolist(), strict=True):
        kept = [s for s, see in zip(row, visible, strict=True) if see]
        total = sum(math.exp(s - max(kept)) for s in kept)
        rows.append(
            [
                math.exp(s - max(kept)) / total if see else 0.0
                for s, see in zip(row, visible, strict=True)
            ]
        )
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_softmax_is_the_definition(dtype):
    scores = torch.randn(7, 11).to(dtype)
    mask = torch.rand(7, 11) > 0.4
    mask[3] = False
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert torch.allclose(weights.double(), softmax_by_hand(scores, mask), atol=ROUNDING[dtype])
    assert (weights[~mask] == 0).all()


def test_a_row_with_nothing_to_see_is_zero_with_zero_gradient():
    scores = torch.randn(3, 5, requires_grad=True)
    mask = torch.tensor([[True] * 5, [False] * 5, [True, False, True, False, False]])
    weights = masked_softmax(scores, mask)
    (weights * torch.randn(3, 5)).sum().backward()
    assert weights[1].tolist() == [0.0] * 5
    assert scores.grad[1].tolist() == [0.0] * 5
    assert scores.grad.isfinite().all()
    assert scores.grad[0].abs().sum() > 0


@pytest.mark.parametrize("padding", [math.nan, math.inf, -math.inf])
def test_what_stands_in_masked_places_reaches_neither_weights_nor_gradient(padding):
    scores = torch.tensor([[padding, 1.0], [padding, padding]], requires_grad=True)
    weights = masked_softmax(scores, scores.detach() == 1)
    (weights * torch.tensor([3.0, 5.0])).sum().backward()
    assert weights.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert scores.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_largest_finite_scores_give_no_nan(dtype):
    big = torch.finfo(dtype).max
    scores = torch.tensor([[big, -big, big], [-big, -big, -big]], dtype=dtype)
    assert masked_softmax(scores).sum(-1).tolist() == [1.0, 1.0]
    mask = torch.tensor([[False, True, False], [True, False, False]])
    assert masked_softmax(scores, mask).tolist() == [[0, 1, 0], [1, 0, 0]]


def test_nan_in_nan_out():
    scores = torch.tensor([[0.0, math.nan], [0.0, 1.0]])
    weights = masked_softmax(scores)
    assert weights[0].isnan().all() and not weights[1].isnan().any()


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31))
def test_rows_sum_to_one_or_are_zero_and_the_input_is_kept(n_queries, n_keys, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = 50 * torch.randn(2, n_queries, n_keys, generator=generator, dtype=torch.float64)
    mask = torch.rand(n_queries, n_keys, generator=generator) > 0.5
    before = scores.clone()
    weights = masked_softmax(scores, mask)
    expected = mask.any(-1).double().expand(2, n_queries)
    assert torch.allclose(weights.sum(-1), expected)
    assert (weights >= 0).all() and (weights.masked_select(~mask) == 0).all()
    assert torch.equal(scores, before)


def test_length_mask_marks_the_first_keys():
    lengths = torch.tensor([[0, 2, 5], [1, 3, 4]])
    mask = length_mask(lengths, 5)
    assert mask.shape == (2, 3, 5) and mask.dtype == torch.bool
    for i, j, k in itertools.product(range(2), range(3), range(5)):
        assert mask[i, j, k] == (k < lengths[i, j])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_lengths_of_a_small_dtype_count_keys_beyond_it(dtype):
    n_keys = torch.iinfo(dtype).max + 1
    mask = length_mask(torch.tensor([3, n_keys - 1], dtype=dtype), n_keys)
    assert mask.sum(-1).tolist() == [3, n_keys - 1]


def test_a_batch_of_padded_sequences():
    x = torch.randn(3, 7, 5, dtype=torch.float64)
    lengths = torch.tensor([7, 0, 4])
    output, weights = attention(x, x, x, mask=length_mask(lengths, 7).unsqueeze(-2))
    alone, alone_weights = attention(x[2], x[2, :4], x[2, :4])
    assert torch.allclose(output[2], alone) and torch.allclose(weights[2, :, :4], alone_weights)
    assert (weights[2, :, 4:] == 0).all() and (output[1] == 0).all()


@pytest.mark.parametrize("n_queries, n_keys", [(5, 5), (3, 7), (1, 11)])
def test_causal_mask_is_aligned_at_the_end(n_queries, n_keys):
    mask = causal_mask(n_queries, n_keys)
    assert mask.shape == (n_queries, n_keys)
    for i, j in itertools.product(range(n_queries), range(n_keys)):
        assert mask[i, j] == (j <= i + n_keys - n_queries)
    assert torch.equal(
        mask, causal_mask(n_keys)[-n_queries:]
    )  # the newest queries of the full square


def test_scores_are_scaled_dot_products():
    queries, keys = torch.randn(2, 3, 5).double(), torch.randn(2, 7, 5).double()
    scores, raw = dot_product_scores(queries, keys), dot_product_scores(queries, keys, scale=1.0)
    for b, i, j in itertools.product(range(2), range(3), range(7)):
        dot = sum(a * c for a, c in zip(queries[b, i].tolist(), keys[b, j].tolist(), strict=True))
        assert raw[b, i, j].item() == pytest.approx(dot)
        assert scores[b, i, j].item() == pytest.approx(dot / math.sqrt(5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_agrees_with_torch_forward_and_backward(dtype, masked):
    ours = [
        torch.randn(*s).to(dtype).requires_grad_()
        for s in ((2, 3, 5, 7), (3, 11, 7), (2, 1, 11, 13))
    ]
    theirs = [x.detach().clone().requires_grad_() for x in ours]
    mask = torch.rand(5, 11) > 0.3 if masked else None
    if masked:
        mask[:, 0] = True
    output, weights = attention(*ours, mask=mask)
    batch = torch.broadcast_shapes(*(x.shape[:-2] for x in theirs))
    full = [x.expand(*batch, *x.shape[-2:]) for x in theirs]
    expected = torch.nn.functional.scaled_dot_product_attention(*full, attn_mask=mask)
    assert weights.shape == (2, 3, 5, 11) and output.shape == (2, 3, 5, 13)
    assert torch.allclose(output.double(), expected.double(), atol=ROUNDING[dtype])
    upstream = torch.randn(output.shape).to(dtype)
    output.backward(upstream)
    expected.backward(upstream)
    for a, b in zip(ours, theirs, strict=True):
        scale = b.grad.abs().max().item()
        assert torch.allclose(a.grad.double(), b.grad.double(), atol=10 * scale * ROUNDING[dtype])


def test_permuting_keys_and_values_changes_nothing():
    q, k, v = torch.randn(3, 5).double(), torch.randn(7, 5).double(), torch.randn(7, 2).double()
    order = torch.randperm(7)
    output, weights = attention(q, k, v)
    shuffled, shuffled_weights = attention(q, k[order], v[order])
    assert torch.allclose(output, shuffled) and torch.allclose(weights[:, order], shuffled_weights)


def test_non_contiguous_inputs():
    q, k, v = torch.randn(5, 3).T, torch.randn(5, 7).T, torch.randn(2, 7).T
    output, weights = attention(q, k, v)
    expected, expected_weights = attention(q.contiguous(), k.contiguous(), v.contiguous())
    assert torch.allclose(output, expected) and torch.allclose(weights, expected_weights)


def test_the_same_without_a_record_of_gradients():
    """There the softmax overwrites its scores: never what the caller holds, and not where torch cannot."""
    torch.manual_seed(0)
    x, mask = torch.randn(3, 4, 5, 6, dtype=torch.float64), causal_mask(5)
    kept = x.clone()
    for each in (None, mask):
        expected = attention(x, x, x, mask=each)
        with torch.no_grad():
            torch.testing.assert_close(attention(x, x, x, mask=each), expected, rtol=0, atol=0)
            scores = dot_product_scores(x, x)
            before = scores.clone()
            masked_softmax(scores, each)
            assert torch.equal(scores, before)
            mapped = torch.vmap(lambda one, each=each: attention(one, one, one, mask=each))(x)
            torch.testing.assert_close(mapped, expected)
    masks = torch.stack([mask, mask.T, mask & mask.T])  # mapped themselves
    mapped = torch.vmap(lambda one, each: attention(one, one, one, mask=each))(x, masks)
    torch.testing.assert_close(mapped, attention(x, x, x, mask=masks[:, None]))
    assert torch.equal(x, kept)


def test_forward_mode_differentiation():
    torch.manual_seed(0)
    x, direction = torch.randn(2, 5, 6, dtype=torch.float64), torch.randn(2, 5, 6).double()

    def output(x):
        return attention(x, x, x)[0]

    expected = torch.autograd.functional.jacobian(output, x).flatten(-3) @ direction.flatten()
    with torch.no_grad():
        _, along = torch.func.jvp(output, (x,), (direction,))
    torch.testing.assert_close(along, expected)


MESSAGES = [
    (lambda: masked_softmax([1.0, 2.0]), TypeError, r"scores .*floating-point.*got list"),
    (
        lambda: masked_softmax(torch.ones(2, 3, dtype=torch.long)),
        TypeError,
        r"scores .*got int64.*\(2, 3\)",
    ),
    (
        lambda: masked_softmax(torch.tensor(1.0)),
        ValueError,
        r"scores must have shape \(\.\.\., keys\).*\(\)",
    ),
    (lambda: masked_softmax(torch.ones(2, 0)), ValueError, r"scores must hold at least one key"),
    (
        lambda: masked_softmax(torch.ones(2, 3), torch.ones(2, 3)),
        TypeError,
        r"mask must be a bool.*got float32",
    ),
    (
        lambda: masked_softmax(torch.ones(2, 3), torch.ones(3, 2).bool()),
        ValueError,
        r"mask .*\(2, 3\).*\(3, 2\)",
    ),
    (
        lambda: masked_softmax(torch.ones(3), torch.ones(2, 3).bool()),
        ValueError,
        r"mask .*\(3,\).*\(2, 3\)",
    ),
    (
        lambda: length_mask(torch.tensor([4]), 3),
        ValueError,
        r"lengths .*between 0 and n_keys = 3, got 4",
    ),
    (lambda: length_mask(torch.tensor([-1]), 3), ValueError, r"lengths .*got -1"),
    (
        lambda: length_mask(torch.tensor([1.0]), 3),
        TypeError,
        r"lengths must be an integer tensor.*float32",
    ),
    (
        lambda: length_mask(torch.tensor([1j]), 3),
        TypeError,
        r"lengths must be an integer tensor.*complex64",
    ),
    (
        lambda: length_mask(torch.tensor([1]), True),
        TypeError,
        r"n_keys must be an integer.*bool True",
    ),
    (lambda: causal_mask(3, 2), ValueError, r"n_keys must be at least n_queries = 3, got 2"),
    (lambda: causal_mask(0), ValueError, r"n_queries must be an integer of at least 1, got 0"),
    (lambda: causal_mask(2.0), TypeError, r"n_queries must be an integer.*float 2\.0"),
    (
        lambda: dot_product_scores(torch.ones(2, 3), torch.ones(2, 5)),
        ValueError,
        r"keys .*width.*expected 3, got 5",
    ),
    (
        lambda: dot_product_scores(torch.ones(3), torch.ones(2, 3)),
        ValueError,
        r"queries must have shape",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 3), torch.ones(0, 3)),
        ValueError,
        r"keys must hold at least one key",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 0), torch.ones(2, 0)),
        ValueError,
        r"at least 1 wide",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 3), torch.ones(2, 3).double()),
        TypeError,
        r"keys .*float32.*float64",
    ),
    (
        lambda: attention(torch.ones(2, 3), torch.ones(2, 3, device="meta"), torch.ones(2, 3)),
        ValueError,
        r"keys must be on the device of queries, cpu, got meta",
    ),
    (
        lambda: masked_softmax(torch.ones(2, 3), torch.ones(3, device="meta").bool()),
        ValueError,
        r"mask must be on the device of the scores, cpu, got meta",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 3), torch.ones(2, 3), scale=math.inf),
        ValueError,
        r"scale .*inf",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 3), torch.ones(2, 3), scale="x"),
        TypeError,
        r"scale .*'x'",
    ),
    (
        lambda: dot_product_scores(torch.ones(2, 2, 3), torch.ones(5, 2, 3)),
        ValueError,
        r"batch axes of queries and keys.*\(2,\).*\(5,\)",
    ),
    (
        lambda: attention(torch.ones(2, 3), torch.ones(5, 3), torch.ones(7, 3)),
        ValueError,
        r"values .*number of keys.*expected 5, got 7",
    ),
    (
        lambda: attention(torch.ones(2, 3), torch.ones(5, 3), torch.ones(5)),
        ValueError,
        r"values must have shape \(\.\.\., k, v\)",
    ),
]


def test_a_scale_can_be_learned():
    x, scale = torch.randn(5, 3, dtype=torch.float64), torch.tensor(0.5, requires_grad=True)
    dot_product_scores(x, x, scale=scale).sum().backward()
    assert scale.grad.item() == pytest.approx((x @ x.T).sum().item())


test_wrong_input_is_named = refused(MESSAGES)
