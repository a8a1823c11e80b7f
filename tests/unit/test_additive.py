"""Additive attention: the formula entry by entry, masks, dropout, dtypes, edges, errors."""

import math

import pytest
import torch
from refusals import refused

from attn_helpers import AdditiveAttention, length_mask

# All sizes differ and are prime, so that no swapped axis can pass.
BATCH, Q, K, QUERY_DIM, KEY_DIM, HIDDEN, V = 2, 3, 5, 7, 11, 13, 17


def example(dtype=torch.float64, lead=(BATCH,)):
    torch.manual_seed(0)
    layer = AdditiveAttention(QUERY_DIM, KEY_DIM, HIDDEN).to(dtype)
    queries = torch.randn(*lead, Q, QUERY_DIM).to(dtype)
    keys = torch.randn(*lead, K, KEY_DIM).to(dtype)
    values = torch.randn(*lead, K, V).to(dtype)
    return layer, queries, keys, values


def score_by_hand(layer, query, key):
    """One query, one key, plain Python sums in the row convention: tanh(q W_q + k W_k) w_v."""
    W_q, W_k = layer.W_q.weight.T.tolist(), layer.W_k.weight.T.tolist()
    w_v = layer.w_v.weight[0].tolist()
    total = 0.0
    for unit in range(HIDDEN):
        inside = sum(x * row[unit] for x, row in zip(query.tolist(), W_q, strict=True))
        inside += sum(x * row[unit] for x, row in zip(key.tolist(), W_k, strict=True))
        total += math.tanh(inside) * w_v[unit]
    return total


def test_scores_are_the_formula():
    layer, queries, keys, _ = example()
    scores = layer.scores(queries, keys)
    assert scores.shape == (BATCH, Q, K)
    for b in range(BATCH):
        for i in range(Q):
            for j in range(K):
                by_hand = score_by_hand(layer, queries[b, i], keys[b, j])
                assert scores[b, i, j].item() == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_output_is_the_weighted_sum(lead):
    layer, queries, keys, values = example(lead=lead)
    output, weights = layer(queries, keys, values)
    assert weights.shape == (*lead, Q, K) and output.shape == (*lead, Q, V)
    torch.testing.assert_close(weights, layer.scores(queries, keys).softmax(-1))
    torch.testing.assert_close(output, torch.einsum("...qk,...kv->...qv", weights, values))


def test_batch_axes_broadcast():
    layer, queries, keys, values = example(lead=())
    many = torch.stack([queries, 2 * queries])
    output, weights = layer(many, keys, values)
    one_by_one = torch.stack([layer(q, keys, values)[1] for q in many])
    torch.testing.assert_close(weights, one_by_one)
    assert output.shape == (2, Q, V)


def test_masked_keys_get_exactly_zero_and_an_empty_row_is_zero():
    layer, queries, keys, values = example()
    values.requires_grad_()
    mask = length_mask(torch.tensor([2, 0]), K).unsqueeze(-2)
    output, weights = layer(queries, keys, values, mask=mask)
    assert (weights[0, :, 2:] == 0).all() and (weights[1] == 0).all() and (output[1] == 0).all()
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(Q).double())
    short = layer(queries[0], keys[0, :2], values[0, :2])[0]
    torch.testing.assert_close(output[0], short)
    output.square().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
    assert (values.grad[1] == 0).all()


def test_weights_are_those_before_dropout():
    layer, queries, keys, values = example()
    dropping = AdditiveAttention(QUERY_DIM, KEY_DIM, HIDDEN, dropout=0.5).double()
    dropping.load_state_dict(layer.state_dict())
    expected, expected_weights = layer(queries, keys, values)
    output, weights = dropping(queries, keys, values)
    torch.testing.assert_close(weights, expected_weights)
    assert not torch.allclose(output, expected)  # dropout acted, on the output only
    torch.testing.assert_close(dropping.eval()(queries, keys, values)[0], expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_and_single_precision_agree_with_double(dtype):
    layer, queries, keys, values = example(dtype)
    output, weights = layer(queries, keys, values)
    assert output.dtype == weights.dtype == dtype
    exact, _ = layer.double()(queries.double(), keys.double(), values.double())
    torch.testing.assert_close(output.double(), exact, atol=20 * torch.finfo(dtype).eps, rtol=0)


def test_follows_the_device():
    layer = AdditiveAttention(7, 11, 13).to("meta")
    q, k, v = (torch.zeros(size, device="meta") for size in [(3, 7), (5, 11), (5, 17)])
    output, weights = layer(q, k, v)
    assert output.device.type == weights.device.type == "meta"


def test_has_three_maps_and_no_bias():
    layer = AdditiveAttention(QUERY_DIM, KEY_DIM, HIDDEN)
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == {
        "W_q.weight": (HIDDEN, QUERY_DIM),
        "W_k.weight": (HIDDEN, KEY_DIM),
        "w_v.weight": (1, HIDDEN),
    }


def test_every_parameter_learns_and_gradients_are_right():
    layer, queries, keys, values = example()
    inputs = tuple(x.requires_grad_() for x in (queries, keys, values))
    assert torch.autograd.gradcheck(lambda *x: layer(*x)[0], inputs)
    layer(*inputs)[0].square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in layer.parameters())


def test_non_contiguous_inputs_and_no_queries():
    layer, queries, keys, values = example(lead=())
    strided = [x.T.contiguous().T for x in (queries, keys, values)]
    assert not any(x.is_contiguous() for x in strided)
    torch.testing.assert_close(layer(*strided)[0], layer(queries, keys, values)[0])
    assert layer(queries[:0], keys, values)[0].shape == (0, V)


def z(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype)


LAYER = AdditiveAttention(7, 11, 13)
BAD_CALLS = [
    (lambda: AdditiveAttention(0, 3, 4), ValueError, "query_dim.*0"),
    (lambda: AdditiveAttention(3, -1, 4), ValueError, "key_dim.*-1"),
    (lambda: AdditiveAttention(3, 4, 0), ValueError, "hidden_dim.*0"),
    (lambda: AdditiveAttention(3, 4, 2.0), TypeError, "hidden_dim.*float"),
    (lambda: AdditiveAttention(3, 4, 2, dropout=1.0), ValueError, r"dropout.*1\.0"),
    (lambda: AdditiveAttention(3, 4, 2, dropout="no"), TypeError, "dropout.*'no'"),
    (lambda: LAYER.scores(z(3, 8), z(5, 11)), ValueError, "queries.*7.*8"),
    (lambda: LAYER.scores(z(3, 7), z(5, 7)), ValueError, "keys.*11.*7"),
    (lambda: LAYER.scores(z(7), z(5, 11)), ValueError, r"queries.*\(7,\)"),
    (lambda: LAYER.scores(z(3, 7), z(11)), ValueError, r"keys.*\(11,\)"),
    (lambda: LAYER.scores([[0.0]], z(5, 11)), TypeError, "queries.*list"),
    (lambda: LAYER.scores(z(3, 7), z(5, 11).long()), TypeError, "keys.*int64"),
    (lambda: LAYER.scores(z(3, 7).double(), z(5, 11).double()), TypeError, "queries.*float32.*64"),
    (lambda: LAYER.scores(z(2, 3, 7), z(4, 5, 11)), ValueError, r"queries \(2,\), keys \(4,\)"),
    (lambda: LAYER.scores(z(3, 7), z(0, 11)), ValueError, "keys.*at least one"),
    (lambda: LAYER(z(3, 7), z(5, 11), z(4, 2)), ValueError, "values.*5.*4"),
    (lambda: LAYER(z(3, 7), z(5, 11), z(5)), ValueError, r"values.*\(5,\)"),
    (lambda: LAYER(z(3, 7), z(5, 11), z(5, 2).double()), TypeError, "values.*float32.*float64"),
    (lambda: LAYER(z(2, 3, 7), z(5, 11), z(4, 5, 2)), ValueError, r"scores \(2,\), values \(4,\)"),
    (
        lambda: LAYER(z(3, 7), z(5, 11), z(5, 2), mask=z(3, 5)),
        TypeError,
        r"mask.*bool.*float32.*mask\.bool\(\)",
    ),
    (
        lambda: LAYER(z(3, 7), z(5, 11), z(5, 2), mask=z(3, 4).bool()),
        ValueError,
        r"mask.*\(3, 5\).*\(3, 4\)",
    ),
]


test_bad_input_says_expected_and_got = refused(BAD_CALLS)
