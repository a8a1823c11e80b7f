"""One head and many, against loops that share no code with them. Sizes are primes where they may be."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from attn_helpers import MultiHeadAttention, SelfAttention, causal_mask

BOTH_PATHS = pytest.mark.parametrize("need_weights", [True, False], ids=["weights", "fused"])


def by_hand(layer, queries, keys, values, mask):
    """The formula, one head and one query at a time: concat(Z_1 … Z_h) W_o for inputs without batch."""

    def project(linear, x):
        return x @ linear.weight.T + (0 if linear.bias is None else linear.bias)

    q, k, v = (
        project(linear, x)
        for linear, x in zip(
            (layer.W_q, layer.W_k, layer.W_v), (queries, keys, values), strict=True
        )
    )
    d = layer.embed_dim // layer.num_heads
    rows, weights = [], torch.zeros(layer.num_heads, len(queries), len(keys), dtype=q.dtype)
    for i in range(len(queries)):
        pieces = []
        for h in range(layer.num_heads):
            own = slice(h * d, (h + 1) * d)
            seen = [j for j in range(len(keys)) if mask[i, j]]
            total = torch.zeros(d, dtype=q.dtype)
            if seen:
                scores = torch.stack([(q[i, own] * k[j, own]).sum() / d**0.5 for j in seen])
                for alpha, j in zip(scores.exp() / scores.exp().sum(), seen, strict=True):
                    weights[h, i, j] = alpha
                    total = total + alpha * v[j, own]
            pieces.append(total)
        rows.append(project(layer.W_o, torch.cat(pieces)))
    return torch.stack(rows), weights


@BOTH_PATHS
@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention_is_the_formula(need_weights, bias):
    for heads in (1, 3, 5, 15):
        layer = MultiHeadAttention(15, heads, key_dim=7, value_dim=11, bias=bias).double()
        queries, keys, values = (
            torch.randn(*size).double() for size in [(2, 15), (13, 7), (13, 11)]
        )
        mask = torch.rand(2, 13) > 0.4
        mask[1] = False
        output, weights = layer(queries, keys, values, mask=mask, need_weights=need_weights)
        expected, expected_weights = by_hand(layer, queries, keys, values, mask)
        assert torch.allclose(output, expected, atol=1e-12)
        assert weights is None or torch.allclose(weights, expected_weights, atol=1e-12)
        assert (weights is None) == (not need_weights)


def test_self_attention_is_the_formula():
    layer = SelfAttention(7, 3, bias=True).double()
    x = torch.randn(5, 7).double()
    output, weights = layer(x, mask=causal_mask(5))
    q, k, v = (x @ w.weight.T + w.bias for w in (layer.W_q, layer.W_k, layer.W_v))
    for i in range(5):
        scores = torch.stack([q[i] @ k[j] / 3**0.5 for j in range(i + 1)])
        alpha = scores.exp() / scores.exp().sum()
        assert torch.allclose(weights[i, : i + 1], alpha, atol=1e-12)
        assert weights[i, i + 1 :].eq(0).all()
        assert torch.allclose(output[i], alpha @ v[: i + 1], atol=1e-12)


def test_self_attention_defaults():
    layer = SelfAttention(7)
    assert layer.head_dim == 7
    assert layer.W_q.bias is None and layer.W_k.bias is None and layer.W_v.bias is None


@BOTH_PATHS
def test_keys_default_to_queries_and_values_to_keys(need_weights):
    layer = MultiHeadAttention(6, 2)
    x, y = torch.randn(5, 6), torch.randn(7, 6)
    alone = layer(x, need_weights=need_weights)[0]
    assert torch.equal(alone, layer(x, x, x, need_weights=need_weights)[0])
    crossed = layer(x, y, need_weights=need_weights)[0]
    assert torch.equal(crossed, layer(x, y, y, need_weights=need_weights)[0])
    assert not torch.allclose(alone, crossed)


@BOTH_PATHS
@pytest.mark.parametrize(
    "shape",
    [(5,), (1, 5), (3, 5), (3, 1), (2, 1, 5), (2, 3, 5), (7, 1, 1, 5), (7, 2, 3, 5), (1, 1)],
    ids=str,
)
def test_a_mask_broadcasts_to_batch_queries_keys(shape, need_weights):
    layer = MultiHeadAttention(6, 2)
    queries, keys = torch.randn(7, 2, 3, 6), torch.randn(7, 2, 5, 6)
    mask = torch.rand(shape) > 0.3
    mask[..., 0] = True
    output, weights = layer(queries, keys, mask=mask, need_weights=need_weights)
    full = mask.expand(7, 2, 3, 5)
    for i, j in itertools.product(range(7), range(2)):
        one, its_weights = layer(queries[i, j], keys[i, j], mask=full[i, j])
        assert torch.allclose(output[i, j], one, atol=1e-5)
        if need_weights:
            assert torch.allclose(weights[i, j], its_weights, atol=1e-6)
            assert weights[i, j][:, ~full[i, j]].eq(0).all()


@BOTH_PATHS
def test_batch_axes_broadcast(need_weights):
    layer = MultiHeadAttention(6, 3, key_dim=5, value_dim=7)
    queries, keys, values = torch.randn(2, 1, 3, 6), torch.randn(11, 4, 5), torch.randn(4, 7)
    output, weights = layer(queries, keys, values, need_weights=need_weights)
    assert output.shape == (2, 11, 3, 6)
    assert weights is None or weights.shape == (2, 11, 3, 3, 4)
    for i, j in itertools.product(range(2), range(11)):
        assert torch.allclose(output[i, j], layer(queries[i, 0], keys[j], values)[0], atol=1e-5)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("mask", [None, (5,), (5, 5), (1, 1, 5)], ids=str)
def test_the_fused_path_never_stores_the_weights(batch, mask):
    """With only the flash kernel allowed, torch raises where it would have to take another."""
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(*batch, 5, 8)
    if mask is not None:
        if len(mask) > len(batch) + 2:
            mask = mask[1:]
        mask = torch.ones(mask, dtype=torch.bool)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert layer(x, mask=mask, need_weights=False)[0].shape == x.shape


@BOTH_PATHS
def test_inputs_need_not_be_contiguous(need_weights):
    layer = MultiHeadAttention(6, 2)
    x = torch.randn(6, 5, 2).permute(2, 1, 0)
    strided = torch.randn(2, 10, 12)[:, ::2, ::2]
    output = layer(x, strided, need_weights=need_weights)[0]
    expected = layer(x.contiguous(), strided.contiguous(), need_weights=need_weights)[0]
    assert torch.allclose(output, expected, atol=1e-6)


@BOTH_PATHS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_query_with_nothing_to_see(need_weights, dtype):
    layer = MultiHeadAttention(8, 2).to(dtype)
    x = torch.randn(3, 5, 8, dtype=dtype, requires_grad=True)
    mask = torch.rand(3, 5, 5) > 0.5
    mask[0, 2] = mask[1] = False
    output, weights = layer(x, mask=mask, need_weights=need_weights)
    assert torch.equal(output[0, 2], layer.W_o.bias) and torch.equal(
        output[1], layer.W_o.bias.expand(5, 8)
    )
    if need_weights:
        assert weights[0, :, 2].eq(0).all() and weights[1].eq(0).all()
    output.float().square().sum().backward()
    for gradient in (x.grad, *(p.grad for p in layer.parameters())):
        assert gradient.isfinite().all()
    assert x.grad[1].eq(0).all()
    assert x.grad[2].abs().sum() > 0


@BOTH_PATHS
def test_no_queries_is_no_output(need_weights):
    layer = MultiHeadAttention(6, 2)
    output, _ = layer(torch.randn(0, 6), torch.randn(3, 6), need_weights=need_weights)
    assert output.shape == (0, 6)


def test_weights_are_those_before_dropout():
    layer = MultiHeadAttention(8, 2, dropout=0.5).train()
    x = torch.randn(3, 7, 8)
    output, weights = layer(x)
    assert torch.allclose(weights.sum(-1), torch.ones(3, 2, 7))
    assert (weights > 0).all()
    calm, calm_weights = layer.eval()(x)
    assert torch.equal(weights, calm_weights)
    assert not torch.allclose(output, calm)


@BOTH_PATHS
def test_dropout_acts_in_training_only_and_keeps_the_mean(need_weights):
    layer = MultiHeadAttention(8, 2, dropout=0.3).eval()
    x = torch.randn(5, 8)
    calm = layer(x, need_weights=need_weights)[0]
    assert torch.equal(calm, layer(x, need_weights=need_weights)[0])
    layer.train()
    with torch.no_grad():
        samples = layer(x.expand(4000, 5, 8), need_weights=need_weights)[0]
    assert samples.std(dim=0).min() > 0.01
    assert torch.allclose(samples.mean(dim=0), calm, atol=0.03)


def test_heads_do_not_meet():
    """Head 1's weights depend on head 1's columns only."""
    layer = MultiHeadAttention(6, 3)
    x = torch.randn(5, 6)
    before = layer(x)[1]
    with torch.no_grad():
        layer.W_k.weight[2:4] += 1.0  # columns 2 and 3 of the formula's W_k: head 1
    after = layer(x)[1]
    assert torch.equal(before[0], after[0]) and torch.equal(before[2], after[2])
    assert not torch.allclose(before[1], after[1])


def test_permuting_rows_permutes_outputs():
    layer = MultiHeadAttention(6, 2)
    x, order = torch.randn(7, 6), torch.randperm(7)
    output, weights = layer(x)
    shuffled, shuffled_weights = layer(x[order])
    assert torch.allclose(shuffled, output[order], atol=1e-6)
    assert torch.allclose(shuffled_weights, weights[:, order][:, :, order], atol=1e-6)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("own_widths", [True, False])
def test_from_torch(batch_first, bias, own_widths):
    widths = {"kdim": 5, "vdim": 7} if own_widths else {}
    theirs = nn.MultiheadAttention(6, 3, bias=bias, batch_first=batch_first, **widths)
    if bias:  # they start at 0, which would hide a bias that is not copied
        nn.init.normal_(theirs.in_proj_bias)
        nn.init.normal_(theirs.out_proj.bias)
    theirs = theirs.double().eval()
    ours = MultiHeadAttention.from_torch(theirs)
    inputs = [
        torch.randn(2, n, width).double()
        for n, width in [(3, 6), (4, widths.get("kdim", 6)), (4, widths.get("vdim", 6))]
    ]
    hidden = ~causal_mask(3, 4)
    turned = inputs if batch_first else [x.transpose(0, 1) for x in inputs]
    expected, averaged = theirs(*turned, attn_mask=hidden)
    output, weights = ours(*inputs, mask=~hidden)
    expected = expected if batch_first else expected.transpose(0, 1)
    assert torch.allclose(output, expected, atol=1e-12)
    assert torch.allclose(weights.mean(dim=-3), averaged, atol=1e-12)


def test_from_torch_copies_and_follows():
    theirs = nn.MultiheadAttention(6, 3, dropout=0.25).to(torch.bfloat16).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    assert ours.dropout == 0.25 and not ours.training
    assert {p.dtype for p in ours.parameters()} == {torch.bfloat16}
    assert all(p.requires_grad and p.is_leaf for p in ours.parameters())
    before = ours.W_q.weight.clone()
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
    assert torch.equal(ours.W_q.weight, before)


def test_state_can_be_saved_and_loaded():
    layer, other = MultiHeadAttention(6, 2), MultiHeadAttention(6, 2)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(3, 6)
    assert torch.equal(layer(x)[0], other(x)[0])
    assert set(layer.state_dict()) == {
        f"W_{name}.{part}" for name in "qkvo" for part in ("weight", "bias")
    }


# -- what is refused, and how --------------------------------------------------------------------

MHA, SA = MultiHeadAttention, SelfAttention
X = torch.zeros(2, 3, 6)


def test_other_weights_can_give_the_same_output():
    """Chapter 10's box: n keys, a head of width d_k, n > d_k + 1, and a whole space of weights fits."""
    torch.manual_seed(0)
    n, d_k = 43, 7
    values = torch.randn(n, d_k, dtype=torch.float64)
    weights = torch.randn(n, dtype=torch.float64).softmax(-1)
    # What may be added to a row: it changes neither the sum of the weights nor that of the values.
    free = torch.linalg.svd(torch.cat([values, torch.ones(n, 1)], dim=-1).T).Vh[d_k + 1 :]
    step = free[0] * (weights / free[0].abs()).min()
    other = weights + step
    assert (other >= 0).all() and torch.allclose(other.sum(), weights.sum())
    assert torch.allclose(other @ values, weights @ values)
    assert (other - weights).abs().max() > 0.001


@BOTH_PATHS
def test_shapes_alone_can_be_asked_with_a_mask(need_weights):
    """On the "meta" device, where nothing is computed: `multiply_adds` counts any size there."""
    x = torch.ones(2, 7, 6, device="meta")
    layer, mask = MultiHeadAttention(6, 2).to("meta"), causal_mask(7, device="meta")
    output, weights = layer(x, mask=mask, need_weights=need_weights)
    assert output.shape == (2, 7, 6)
    assert weights.shape == (2, 2, 7, 7) if need_weights else weights is None


@BOTH_PATHS
def test_under_autocast_layers_take_what_layers_give(need_weights):
    """There products come out in bfloat16, and torch converts what meets the weights."""
    layer = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12)
    expected = layer(layer(x)[0])[0]
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(layer(x, need_weights=need_weights)[0], need_weights=need_weights)[0]
        SelfAttention(12)(output)
    assert output.dtype == torch.bfloat16
    assert torch.allclose(output.float(), expected, atol=0.05)


@pytest.mark.messages
def test_need_weights_is_a_flag():
    with pytest.raises(TypeError, match="need_weights must be True or False, got str 'no'"):
        MultiHeadAttention(6, 2)(torch.randn(3, 6), need_weights="no")


@pytest.mark.messages
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: MHA(10, 4), ValueError, r"num_heads must divide embed_dim = 10 .*got 4"),
        (lambda: MHA(0, 1), ValueError, r"embed_dim must be an integer of at least 1, got 0"),
        (lambda: MHA(6, 0), ValueError, r"num_heads must be an integer of at least 1, got 0"),
        (lambda: MHA(6, -2), ValueError, r"num_heads .* got -2"),
        (lambda: MHA(6, 2.0), TypeError, r"num_heads must be an integer .*got float 2.0"),
        (lambda: MHA(6, True), TypeError, r"num_heads must be an integer .*got bool True"),
        (lambda: MHA(6, 2, key_dim=0), ValueError, r"key_dim .* got 0"),
        (
            lambda: MHA(6, 2, value_dim="7"),
            TypeError,
            r"value_dim must be an integer .*got str '7'",
        ),
        (
            lambda: MHA(6, 2, dropout=1.5),
            ValueError,
            r"dropout must be at least 0 and below 1, got",
        ),
        (lambda: MHA(6, 2, dropout=None), TypeError, r"dropout must be a finite number, got None"),
        (lambda: MHA(6, 2, bias="no"), TypeError, r"bias must be True or False, got str 'no'"),
        (lambda: SA(6, bias=1), TypeError, r"bias must be True or False, got int 1"),
        (lambda: SA(0), ValueError, r"embed_dim .* got 0"),
        (lambda: SA(6, 0), ValueError, r"head_dim .* got 0"),
        (
            lambda: SA(6)(torch.zeros(3, 5)),
            ValueError,
            r"x must have shape \(..., n, 6\), got float32 tensor of shape \(3, 5\)",
        ),
        (lambda: SA(6)(torch.zeros(6)), ValueError, r"x must have shape \(..., n, 6\), got"),
        (
            lambda: SA(6)(torch.zeros(3, 6).double()),
            TypeError,
            r"x must have the dtype and device of the layer, torch.float32 on cpu, got torch.float64 on cpu; convert",
        ),
        (lambda: SA(6)([[1.0] * 6]), TypeError, r"x must be a floating-point tensor .* got list"),
        (
            lambda: SA(6)(X, mask=torch.ones(3, 3)),
            TypeError,
            r"mask must be a bool tensor .*convert",
        ),
        (lambda: SA(6)(X, mask=torch.ones(2, 2).bool()), ValueError, r"mask must broadcast to"),
        (
            lambda: MHA(6, 2)(torch.zeros(3, 6).long()),
            TypeError,
            r"queries must be a floating-point tensor .* got int64 tensor of shape \(3, 6\)",
        ),
        (
            lambda: MHA(6, 2)(torch.zeros(3, 7)),
            ValueError,
            r"queries must have shape \(..., q, 6\)",
        ),
        (
            lambda: MHA(6, 2, key_dim=5)(X),
            ValueError,
            r"keys must have shape \(..., k, 5\), got float32 tensor of shape \(2, 3, 6\)",
        ),
        (lambda: MHA(6, 2, value_dim=5)(X), ValueError, r"values must have shape \(..., k, 5\)"),
        (
            lambda: MHA(6, 2)(X, torch.zeros(2, 4, 6), torch.zeros(2, 5, 6)),
            ValueError,
            r"values must agree with keys in k, the number of keys: expected 4, got 5",
        ),
        (
            lambda: MHA(6, 2)(X, torch.zeros(5, 4, 6)),
            ValueError,
            r"batch axes of queries and keys and values must broadcast .*queries \(2,\), keys \(5,\)",
        ),
        (
            lambda: MHA(6, 2)(X, torch.zeros(2, 0, 6)),
            ValueError,
            r"keys must hold at least one key",
        ),
        (
            lambda: MHA(6, 2)(X, torch.zeros(2, 4, 6).half()),
            TypeError,
            r"keys must have the dtype and device of the layer, torch.float32 on cpu, got torch.float16",
        ),
        (
            lambda: MHA(6, 2)(X, mask=torch.zeros(3, 3)),
            TypeError,
            r"mask must be a bool tensor in which True = may be attended to, got float32 tensor",
        ),
        (
            lambda: MHA(6, 2)(X, mask=torch.ones(4, 3).bool()),
            ValueError,
            r"mask must broadcast to \(..., q, k\), \(2, 3, 3\), got shape \(4, 3\)",
        ),
        (  # one axis too many: a mask is shared by the heads
            lambda: MHA(6, 2)(X, mask=torch.ones(2, 2, 3, 3).bool()),
            ValueError,
            r"mask must broadcast to \(..., q, k\), \(2, 3, 3\), got shape \(2, 2, 3, 3\)",
        ),
        (
            lambda: MHA.from_torch(nn.MultiheadAttention(6, 2, add_bias_kv=True)),
            ValueError,
            r"layer must be built without add_bias_kv, got add_bias_kv=True",
        ),
        (
            lambda: MHA.from_torch(nn.MultiheadAttention(6, 2, add_zero_attn=True)),
            ValueError,
            r"layer must be built without add_zero_attn, got add_zero_attn=True",
        ),
        (
            lambda: MHA.from_torch(nn.Linear(6, 6)),
            TypeError,
            r"layer must be a torch.nn.MultiheadAttention, got Linear",
        ),
    ],
)
@BOTH_PATHS
def test_wrong_input_is_refused(wrong, error, message, need_weights, monkeypatch):
    if not need_weights:  # the fused path refuses the same things with the same words
        usual = MultiHeadAttention.forward
        monkeypatch.setattr(
            MultiHeadAttention, "forward", lambda *a, **k: usual(*a, **k, need_weights=False)
        )
    with pytest.raises(error, match=message):
        wrong()
