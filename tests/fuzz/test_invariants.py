"""What must hold for every input: random shapes, dtypes, masks and extreme numbers.

An input is drawn as a recipe (sizes, dtype, seed, magnitude), so a failure shrinks to a short line.
"""

import math
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from attn_helpers import (
    KERNELS,
    AdditiveAttention,
    MultiHeadAttention,
    SelfAttention,
    attention,
    causal_mask,
    dot_product_scores,
    length_mask,
    masked_softmax,
    nadaraya_watson,
    sinusoidal_encoding,
)

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


class Recipe(NamedTuple):
    """Sizes of a batch of queries, keys and values, and how their numbers are drawn."""

    batch: tuple[int, ...]
    q: int
    k: int
    d: int
    v: int
    dtype: torch.dtype
    magnitude: float
    seed: int
    visible: float

    def generator(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)


def recipes(dtypes=tuple(ROUNDING), largest_exponent=4):
    sizes = st.integers(1, 7)
    return st.builds(
        Recipe,
        batch=st.lists(st.integers(1, 3), max_size=2).map(tuple),
        q=sizes,
        k=sizes,
        d=sizes,
        v=sizes,
        dtype=st.sampled_from(dtypes),
        magnitude=st.integers(-4, largest_exponent).map(lambda e: 10.0**e),
        seed=st.integers(0, 2**40),
        visible=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]),
    )


DOUBLES = recipes(dtypes=(torch.float64,), largest_exponent=1)


def numbers(recipe, generator, *shape):
    """Random numbers of the recipe's magnitude, some of them 0, equal, or the largest that exist."""
    x = recipe.magnitude * torch.randn(*recipe.batch, *shape, generator=generator).double()
    kind = torch.rand(x.shape, generator=generator)
    x = torch.where(kind < 0.1, torch.zeros_like(x), x)
    x = torch.where(kind > 0.95, x.flatten()[0], x)
    limit = torch.finfo(recipe.dtype).max
    if recipe.magnitude == 1e4:
        x = torch.where((kind > 0.5) & (kind < 0.55), limit * x.sign(), x)
    return x.clamp(-limit, limit).to(recipe.dtype)


def draw(recipe):
    """Queries, keys, values and a mask; with visible = 0 nothing may be attended to."""
    generator = recipe.generator()
    queries = numbers(recipe, generator, recipe.q, recipe.d)
    keys = numbers(recipe, generator, recipe.k, recipe.d)
    values = numbers(recipe, generator, recipe.k, recipe.v)
    mask = torch.rand(*recipe.batch, recipe.q, recipe.k, generator=generator) < recipe.visible
    return queries, keys, values, mask


def check_weights(weights, mask, dtype):
    """Rows sum to 1 or are all 0; masked weights are exactly 0; nothing is NaN or negative."""
    assert not weights.isnan().any()
    assert (weights >= 0).all()
    assert (weights.masked_select(~mask.expand(weights.shape)) == 0).all()
    expected = mask.any(-1).expand(weights.shape[:-1]).double()
    assert torch.allclose(weights.double().sum(-1), expected, atol=ROUNDING[dtype])


@given(recipes())
def test_masked_softmax(recipe):
    generator = recipe.generator()
    scores = numbers(recipe, generator, recipe.q, recipe.k)
    mask = torch.rand(*recipe.batch, recipe.q, recipe.k, generator=generator) < recipe.visible
    before, mask_before = scores.clone(), mask.clone()
    weights = masked_softmax(scores, mask)
    assert weights.dtype == recipe.dtype
    check_weights(weights, mask, recipe.dtype)
    assert torch.equal(scores, before) and torch.equal(mask, mask_before)

    order = torch.randperm(recipe.k, generator=generator)
    permuted = masked_softmax(scores[..., order], mask[..., order])
    tolerance = ROUNDING[recipe.dtype]
    assert torch.allclose(permuted.double(), weights[..., order].double(), atol=tolerance)

    leaf = scores.clone().requires_grad_()
    masked_softmax(leaf, mask).square().sum().backward()
    assert leaf.grad.isfinite().all()
    assert (leaf.grad.masked_select(~mask) == 0).all()


@given(DOUBLES)
def test_attention_agrees_with_torch(recipe):
    queries, keys, values, mask = draw(recipe)
    copies = [x.clone() for x in (queries, keys, values, mask)]
    output, weights = attention(queries, keys, values, mask=mask)
    check_weights(weights, mask, recipe.dtype)
    expected = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    seen = mask.any(-1)
    assert torch.allclose(output[seen], expected[seen], rtol=1e-9, atol=1e-9)
    assert (output[~seen] == 0).all()
    for now, then in zip((queries, keys, values, mask), copies, strict=True):
        assert torch.equal(now, then)


@given(DOUBLES)
def test_attention_is_equivariant(recipe):
    queries, keys, values, mask = draw(recipe)
    output, weights = attention(queries, keys, values, mask=mask)
    generator = recipe.generator()
    rows = torch.randperm(recipe.q, generator=generator)
    columns = torch.randperm(recipe.k, generator=generator)
    shuffled, shuffled_weights = attention(
        queries[..., rows, :],
        keys[..., columns, :],
        values[..., columns, :],
        mask=mask[..., rows, :][..., columns],
    )
    assert torch.allclose(shuffled, output[..., rows, :], atol=1e-9)
    assert torch.allclose(shuffled_weights, weights[..., rows, :][..., columns], atol=1e-9)


@given(DOUBLES, st.integers(1, 4), st.booleans())
def test_multi_head_agrees_with_torch(recipe, heads, bias):
    width = heads * recipe.d
    recipe = recipe._replace(batch=(2,), d=width, v=width, visible=max(recipe.visible, 0.2))
    torch.manual_seed(recipe.seed % 2**31)
    theirs = torch.nn.MultiheadAttention(width, heads, bias=bias, batch_first=True)
    theirs = theirs.double().eval()
    ours = MultiHeadAttention.from_torch(theirs)
    queries, keys, values, mask = draw(recipe)
    mask = mask[0]
    mask[:, 0] = True  # torch gives NaN for an empty row
    output, weights = ours(queries, keys, values, mask=mask)
    check_weights(weights, mask, recipe.dtype)
    expected, expected_weights = theirs(
        queries, keys, values, attn_mask=~mask, average_attn_weights=False
    )
    assert torch.allclose(output, expected, atol=1e-8)
    assert torch.allclose(weights, expected_weights, atol=1e-8)
    fused, none = ours(queries, keys, values, mask=mask, need_weights=False)
    assert none is None and torch.allclose(fused, output, atol=1e-8)


@given(DOUBLES)
def test_multi_head_ignores_what_is_masked(recipe):
    torch.manual_seed(recipe.seed % 2**31)
    layer = MultiHeadAttention(2 * recipe.d, 2).double()
    generator = recipe.generator()
    x = numbers(recipe, generator, recipe.k, 2 * recipe.d)
    lengths = torch.randint(0, recipe.k + 1, recipe.batch, generator=generator)
    mask = length_mask(lengths, recipe.k).unsqueeze(-2)
    other = torch.where(mask.transpose(-2, -1), x, x + 100.0)
    real = mask.transpose(-2, -1).expand(x.shape)
    for need_weights in (True, False):
        one, _ = layer(x, mask=mask, need_weights=need_weights)
        two, _ = layer(other, mask=mask, need_weights=need_weights)
        assert torch.allclose(one[real], two[real], atol=1e-8)
        assert not one.isnan().any()


@given(DOUBLES)
def test_self_attention_is_equivariant(recipe):
    torch.manual_seed(recipe.seed % 2**31)
    layer = SelfAttention(recipe.d, recipe.v).double()
    x = numbers(recipe, recipe.generator(), recipe.k, recipe.d)
    order = torch.randperm(recipe.k, generator=recipe.generator())
    output, weights = layer(x)
    shuffled, shuffled_weights = layer(x[..., order, :])
    assert torch.allclose(shuffled, output[..., order, :], atol=1e-9)
    assert torch.allclose(shuffled_weights, weights[..., order, :][..., order], atol=1e-9)


@given(DOUBLES, st.integers(1, 5))
def test_additive_scores_are_the_formula(recipe, hidden):
    torch.manual_seed(recipe.seed % 2**31)
    layer = AdditiveAttention(recipe.d, recipe.d, hidden).double()
    queries, keys, values, mask = draw(recipe)
    scores = layer.scores(queries, keys)
    w_q, w_k, w_v = layer.W_q.weight, layer.W_k.weight, layer.w_v.weight[0]
    for i in range(recipe.q):
        for j in range(recipe.k):
            inner = queries[..., i, :] @ w_q.T + keys[..., j, :] @ w_k.T
            assert torch.allclose(scores[..., i, j], torch.tanh(inner) @ w_v, atol=1e-9)
    _, weights = layer(queries, keys, values, mask=mask)
    check_weights(weights, mask, recipe.dtype)


@given(
    recipes(),
    st.sampled_from(sorted(KERNELS)),
    st.integers(-8, 4).map(lambda e: 10.0**e),
)
def test_kernel_regression(recipe, kernel, bandwidth):
    queries, keys, values, _ = draw(recipe._replace(batch=(), magnitude=min(recipe.magnitude, 1e3)))
    before = [x.clone() for x in (queries, keys, values)]
    leaf = keys.clone().requires_grad_()
    output, weights = nadaraya_watson(queries, leaf, values, kernel=kernel, bandwidth=bandwidth)
    assert output.dtype == weights.dtype == recipe.dtype
    assert output.isfinite().all() and (weights >= 0).all()
    total = weights.double().sum(-1)
    one, none = (total - 1).abs() < ROUNDING[recipe.dtype], total == 0
    assert (one | none).all()
    if kernel in ("gaussian", "constant"):
        assert one.all()
    output.sum().backward()
    assert leaf.grad.isfinite().all()
    for now, then in zip((queries, keys, values), before, strict=True):
        assert torch.equal(now, then)


@given(recipes(dtypes=(torch.float64,), largest_exponent=2), st.integers(-3, 3))
def test_the_gaussian_kernel_is_a_softmax(recipe, exponent):
    bandwidth = 10.0**exponent
    queries, keys, values, _ = draw(recipe._replace(batch=()))
    _, weights = nadaraya_watson(queries, keys, values, bandwidth=bandwidth)
    squared = (queries[:, None] - keys[None]).square().sum(-1)
    relative = squared - squared.min(-1, keepdim=True).values
    expected = torch.softmax(-relative / (2 * bandwidth**2), dim=-1)
    # The two differ by rounding of the squared distances, which a small bandwidth magnifies.
    slack = 1e-12 * (1 + squared.max().item() / bandwidth**2)
    assert torch.allclose(weights, expected, atol=min(1.0, slack))


@given(st.integers(1, 9), st.integers(0, 9))
def test_causal_masks_nest(n_queries, more):
    n_keys = n_queries + more
    mask = causal_mask(n_queries, n_keys)
    assert mask.sum(-1).tolist() == [more + i + 1 for i in range(n_queries)]
    assert torch.equal(mask, causal_mask(n_keys)[more:])


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 9), st.floats(1.0, 1e6))
def test_longer_encodings_begin_alike(length, dim, more, base):
    table = sinusoidal_encoding(length, dim, base=base)
    assert table.shape == (length, dim) and (table.abs() <= 1).all()
    longer = sinusoidal_encoding(length + more, dim, base=base)
    assert torch.equal(longer[:length], table)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@given(st.integers(1, 512), st.integers(0, 2**31))
def test_scores_in_half_precision(dtype, d, seed):
    """Scaled before the product, scores of ordinary vectors stay in range and near float64's."""
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(3, d, generator=generator).to(dtype) for _ in range(2))
    scores = dot_product_scores(queries, keys)
    exact = queries.double() @ keys.double().T / math.sqrt(d)
    assert scores.isfinite().all()
    assert torch.allclose(scores.double(), exact, atol=20 * torch.finfo(dtype).eps)
