"""Kernel regression against oracles in Python numbers: the definition, the softmax form, every edge of both."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_helpers import KERNELS, NadarayaWatson, nadaraya_watson, noisy_curve

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}
COMPACT = ["boxcar", "triangular", "epanechnikov"]

PROFILES = {  # the textbook formulas, in Python floats
    "gaussian": lambda u: math.exp(-u * u / 2),
    "boxcar": lambda u: 1.0 if u <= 1 else 0.0,
    "triangular": lambda u: max(0.0, 1 - u),
    "epanechnikov": lambda u: 0.75 * max(0.0, 1 - u * u),
    "constant": lambda u: 1.0,
}


def by_the_definition(queries, keys, values, kernel, bandwidth):
    """f(x) = Σ K(x, xᵢ) yᵢ / Σ K(x, xⱼ), point by point; points and values are lists of lists."""
    outputs, rows = [], []
    for q in queries:
        k = [PROFILES[kernel](math.dist(q, key) / bandwidth) for key in keys]
        total = math.fsum(k)
        row = [v / total if total else 0.0 for v in k]
        rows.append(row)
        outputs.append(
            [
                math.fsum(w * value[c] for w, value in zip(row, values, strict=True))
                for c in range(len(values[0]))
            ]
        )
    return torch.tensor(outputs, dtype=torch.float64), torch.tensor(rows, dtype=torch.float64)


def exact_softmax_form(queries, keys, bandwidth):
    """softmax(−(x − xᵢ)²/2σ²) with the exponents in exact fractions: right however far the query is."""
    rows = []
    for q in queries.tolist():
        scores = [
            -((Fraction(q) - Fraction(k)) ** 2) / (2 * Fraction(bandwidth) ** 2)
            for k in keys.tolist()
        ]
        best = max(scores)
        terms = [math.exp(max(-1e4, float(s - best))) for s in scores]
        total = math.fsum(terms)
        rows.append([t / total for t in terms])
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_the_textbook_functions(kernel):
    u = torch.tensor([0.0, 0.25, 0.5, 1.0, 1.0001, 2.0, 1e30, math.inf], dtype=torch.float64)
    expected = torch.tensor([PROFILES[kernel](x) for x in u.tolist()], dtype=torch.float64)
    assert KERNELS.keys() == PROFILES.keys()
    torch.testing.assert_close(KERNELS[kernel](u), expected, atol=1e-15, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_estimator_is_the_definition(kernel, dtype):
    queries = torch.randn(7, 3).to(dtype)
    keys = torch.randn(11, 3).to(dtype)
    values = torch.randn(11, 5).to(dtype)
    output, weights = nadaraya_watson(queries, keys, values, kernel=kernel, bandwidth=1.7)
    expected = by_the_definition(queries.tolist(), keys.tolist(), values.tolist(), kernel, 1.7)
    assert output.dtype == weights.dtype == dtype
    torch.testing.assert_close(output.double(), expected[0], atol=3 * ROUNDING[dtype], rtol=0)
    torch.testing.assert_close(weights.double(), expected[1], atol=ROUNDING[dtype], rtol=0)


@pytest.mark.parametrize("bandwidth", [10.0**e for e in (-4, -3, -2, -1, -0.5, 0, 0.5, 1, 2)])
@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0, 1e6])
def test_gaussian_is_the_softmax_of_scaled_squared_distances(bandwidth, offset):
    keys, values = noisy_curve()
    keys, values = keys.double(), values.double()
    queries = torch.cat([keys[:9], torch.linspace(-1, 6, 23, dtype=torch.float64)])
    for side in (offset, -offset):
        output, weights = nadaraya_watson(queries + side, keys, values, bandwidth=bandwidth)
        expected = exact_softmax_form(queries + side, keys, bandwidth)
        torch.testing.assert_close(weights, expected, atol=2e-14, rtol=0)
        torch.testing.assert_close(output, expected @ values, atol=2e-13, rtol=0)


@pytest.mark.parametrize("bandwidth", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_the_exact_result_rounded_once(dtype, bandwidth):
    keys, values = (t.to(dtype) for t in noisy_curve())
    queries = torch.tensor([-6e4, -100.0, -1.0, 0.3, 2.5, 7.0, 1000.0, 6e4]).to(dtype)
    output, weights = nadaraya_watson(queries, keys, values, bandwidth=bandwidth)
    expected = exact_softmax_form(queries.double(), keys.double(), bandwidth)
    half_a_step = torch.finfo(dtype).eps / 2
    smallest = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    torch.testing.assert_close(weights.double(), expected, atol=smallest, rtol=1.01 * half_a_step)
    torch.testing.assert_close(
        output.double(), expected @ values.double(), atol=1e-9, rtol=1.01 * half_a_step
    )


@pytest.mark.parametrize("kernel", COMPACT)
def test_an_empty_window_gives_zeros_and_finite_gradients(kernel):
    queries = torch.tensor([0.5, 9.0], requires_grad=True)
    keys = torch.tensor([0.0, 0.4, 1.0], requires_grad=True)
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    bandwidth = torch.tensor(0.7, requires_grad=True)
    output, weights = nadaraya_watson(queries, keys, values, kernel=kernel, bandwidth=bandwidth)
    assert weights[1].tolist() == [0, 0, 0] and output[1] == 0
    assert weights[0].sum().item() == pytest.approx(1)
    output.sum().backward()
    for tensor in (queries, keys, values, bandwidth):
        assert tensor.grad.isfinite().all()
    assert queries.grad[1] == 0


def test_a_far_query_looks_at_the_nearest_key_where_the_ratio_would_be_zero_over_zero():
    keys, values = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([5.0, 7.0, 11.0])
    assert KERNELS["gaussian"](torch.tensor(98.0) / 0.1) == 0
    output, weights = nadaraya_watson(torch.tensor([100.0]), keys, values, bandwidth=0.1)
    assert weights.tolist() == [[0, 0, 1]] and output.tolist() == [11]


def test_equally_near_keys_share_the_weight_at_any_bandwidth():
    for bandwidth in (1e-300, 1e-4, 1.0, 1e300):
        _, weights = nadaraya_watson(
            torch.tensor([1.0]), torch.tensor([0.0, 2.0]), torch.zeros(2), bandwidth=bandwidth
        )
        assert weights.tolist() == [[0.5, 0.5]]


def extreme_numbers(dtype):
    limits = torch.finfo(dtype)
    sizes = [0, limits.tiny, 1e-4, 0.5, 1, 1 + limits.eps, 3, 1000, limits.max / 3, limits.max]
    return torch.tensor(sizes + [-s for s in sizes], dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bandwidth", [1e-320, 1e-38, 1e-20, 1e-4, 0.3, 1e2, 1e30, 1e308])
def test_nothing_overflows_forward_or_backward(dtype, kernel, bandwidth):
    numbers = extreme_numbers(dtype)
    for width in (1, 3):
        queries = numbers[torch.randint(len(numbers), (13, width))].requires_grad_()
        keys = numbers[torch.randint(len(numbers), (11, width))].requires_grad_()
        values = torch.randn(11, 2).to(dtype).requires_grad_()
        sigma = torch.tensor(bandwidth, dtype=torch.float64, requires_grad=True)
        output, weights = nadaraya_watson(queries, keys, values, kernel=kernel, bandwidth=sigma)
        (output * torch.randn(13, 2).to(dtype)).sum().backward()
        for tensor in (output, weights, queries.grad, keys.grad, values.grad, sigma.grad):
            assert tensor.isfinite().all()
        sums = weights.double().sum(-1)
        near_one = (sums - 1).abs() < 3 * ROUNDING[dtype]
        assert (near_one | ((sums == 0) & (kernel in COMPACT))).all()


@pytest.mark.parametrize("kernel", ["gaussian", "triangular", "epanechnikov"])
def test_gradients_are_those_of_the_formula(kernel):
    """torch's own finite differences, for queries, keys, values and bandwidth at once."""
    keys = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    queries = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    values = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    sigma = torch.tensor(2.9, dtype=torch.float64, requires_grad=True)

    def function(q, k, v, s):
        return nadaraya_watson(q, k, v, kernel=kernel, bandwidth=s)

    assert torch.autograd.gradcheck(function, (queries, keys, values, sigma))


def test_batch_axes_broadcast_and_the_caller_keeps_his_tensors():
    queries, keys, values = torch.randn(3, 1, 7, 5), torch.randn(2, 11, 5), torch.randn(1, 11, 13)
    copies = [t.clone() for t in (queries, keys, values)]
    output, weights = nadaraya_watson(queries, keys, values, bandwidth=0.8)
    assert output.shape == (3, 2, 7, 13) and weights.shape == (3, 2, 7, 11)
    for i in range(3):
        for j in range(2):
            alone = nadaraya_watson(queries[i, 0], keys[j], values[0], bandwidth=0.8)
            torch.testing.assert_close(output[i, j], alone[0])
            torch.testing.assert_close(weights[i, j], alone[1])
    for tensor, copy in zip((queries, keys, values), copies, strict=True):
        assert torch.equal(tensor, copy)


def test_numbers_are_points_of_one_dimension():
    x, y = noisy_curve(11)
    queries = torch.linspace(0, 5, 7)
    output, weights = nadaraya_watson(queries, x, y, bandwidth=0.5)
    column = nadaraya_watson(queries[:, None], x[:, None], y[:, None], bandwidth=0.5)
    assert output.shape == (7,) and column[0].shape == (7, 1)
    assert torch.equal(output, column[0].squeeze(-1)) and torch.equal(weights, column[1])


def test_tensors_that_are_not_contiguous_work():
    keys, queries = torch.randn(3, 11).T, torch.randn(3, 14).T[::2]
    values = torch.randn(5, 11).T
    output, _ = nadaraya_watson(queries, keys, values)
    expected, _ = nadaraya_watson(queries.contiguous(), keys.contiguous(), values.contiguous())
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_masked_key_is_as_good_as_absent(kernel):
    queries, keys, values = torch.randn(7, 3), torch.randn(11, 3), torch.randn(11, 2)
    mask = torch.rand(7, 11) > 0.5
    mask[4] = False
    output, weights = nadaraya_watson(queries, keys, values, kernel=kernel, bandwidth=2, mask=mask)
    assert (weights[~mask] == 0).all() and (output[4] == 0).all()
    for i in (0, 1, 2, 3, 5, 6):
        seen = mask[i]
        alone, _ = nadaraya_watson(
            queries[i : i + 1], keys[seen], values[seen], kernel=kernel, bandwidth=2
        )
        torch.testing.assert_close(output[i : i + 1], alone)


points = st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=13)


@settings(deadline=None)
@given(points, points, st.sampled_from(list(KERNELS)), st.floats(1e-3, 1e3))
def test_rows_are_weights_and_the_output_lies_among_the_values(queries, keys, kernel, bandwidth):
    queries, keys = torch.tensor(queries), torch.tensor(keys)
    values = torch.sin(keys)
    output, weights = nadaraya_watson(queries, keys, values, kernel=kernel, bandwidth=bandwidth)
    sums = weights.sum(-1)
    assert (weights >= 0).all()
    assert (((sums - 1).abs() < 1e-5) | ((sums == 0) & (kernel in COMPACT))).all()
    full = sums > 0
    assert (output[full] <= values.max() + 1e-5).all()
    assert (output[full] >= values.min() - 1e-5).all()
    assert (output[~full] == 0).all()


@settings(deadline=None)
@given(points, points, st.sampled_from([0.125, 0.25, 2.0, 4.0]), st.sampled_from(list(KERNELS)))
def test_only_the_ratio_of_distance_and_bandwidth_counts(queries, keys, unit, kernel):
    queries, keys = (
        torch.tensor(queries, dtype=torch.float64),
        torch.tensor(keys, dtype=torch.float64),
    )
    _, weights = nadaraya_watson(queries, keys, keys, kernel=kernel, bandwidth=0.5)
    _, scaled = nadaraya_watson(
        unit * queries, unit * keys, keys, kernel=kernel, bandwidth=0.5 * unit
    )
    torch.testing.assert_close(weights, scaled)


def test_a_permutation_of_the_keys_permutes_the_columns():
    queries, keys, values = torch.randn(7, 3), torch.randn(11, 3), torch.randn(11, 5)
    order = torch.randperm(11)
    output, weights = nadaraya_watson(queries, keys, values)
    moved, moved_weights = nadaraya_watson(queries, keys[order], values[order])
    torch.testing.assert_close(moved, output)
    torch.testing.assert_close(moved_weights, weights[:, order])


# The module


def test_the_module_is_the_function_with_one_parameter():
    model = NadarayaWatson(0.4)
    assert [p.numel() for p in model.parameters()] == [1]
    assert model.bandwidth.item() == pytest.approx(0.4, rel=1e-6)
    assert "bandwidth=0.4" in repr(model)
    x, y = noisy_curve(13)
    queries = torch.linspace(-1, 6, 7)
    for got, expected in zip(
        model(queries, x, y), nadaraya_watson(queries, x, y, bandwidth=0.4), strict=True
    ):
        torch.testing.assert_close(got, expected)


def test_exclude_self_is_leave_one_out():
    x, y = noisy_curve(11)
    output, weights = NadarayaWatson(0.3)(x, x, y, exclude_self=True)
    assert (weights.diagonal() == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(11))
    for i in range(11):
        others = torch.arange(11) != i
        alone, _ = nadaraya_watson(x[i : i + 1], x[others], y[others], bandwidth=0.3)
        torch.testing.assert_close(output[i : i + 1], alone)


def test_the_only_point_left_out_leaves_zeros():
    model = NadarayaWatson(0.3)
    output, weights = model(torch.ones(1), torch.ones(1), torch.ones(1), exclude_self=True)
    output.sum().backward()
    assert output.tolist() == [0] and weights.tolist() == [[0]]
    assert model.log_bandwidth.grad == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_module_follows_the_dtype(dtype):
    model = NadarayaWatson(0.5).to(dtype)
    x, y = (t.to(dtype) for t in noisy_curve(13))
    output, weights = model(x, x, y, exclude_self=True)
    output.sum().backward()
    assert output.dtype == weights.dtype == model.bandwidth.dtype == dtype
    assert model.log_bandwidth.grad.isfinite()


def test_the_bandwidth_stays_positive_and_finite_when_training_runs_away():
    for log in (-1e4, 1e4):
        model = NadarayaWatson()
        with torch.no_grad():
            model.log_bandwidth.fill_(log)
        output, _ = model(torch.zeros(2), torch.tensor([0.0, 1.0]), torch.tensor([3.0, 5.0]))
        output.sum().backward()
        assert 0 < model.bandwidth < math.inf
        assert output[0].item() == (3 if log < 0 else 4)
        assert model.log_bandwidth.grad.isfinite()


def train(seed, *, start=1.0, exclude_self=True, steps=100):
    """Fit σ to 50 points; return the model and the mean squared errors on 200 new ones, before and after."""
    x, y = noisy_curve(seed=seed)
    new_x, new_y = noisy_curve(200, seed=1000 + seed)
    model = NadarayaWatson(start)

    def held_out():
        with torch.no_grad():
            return (model(new_x, x, y)[0] - new_y).square().mean().item()

    before = held_out()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss = (model(x, x, y, exclude_self=exclude_self)[0] - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, before, held_out()


@pytest.mark.parametrize("seed", range(5))
def test_the_learned_bandwidth_beats_the_starting_one_on_new_points(seed):
    model, before, after = train(seed)
    assert after < 0.6 * before
    assert 0.03 < model.bandwidth < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_without_leave_one_out_the_bandwidth_collapses(seed):
    model, _, after = train(seed, exclude_self=False, steps=300)
    kept, _, kept_after = train(seed)
    x, y = noisy_curve(seed=seed)
    _, weights = model(x, x, y)
    assert model.bandwidth < kept.bandwidth / 5
    assert weights.diagonal().median() > 0.99  # most points look only at themselves
    assert after > 1.05 * kept_after


# What is refused, and how it says so

X, Y = torch.zeros(3), torch.zeros(3)

REFUSED = [
    (dict(bandwidth=0), ValueError, r"bandwidth must be a positive finite number, got 0"),
    (dict(bandwidth=-0.5), ValueError, r"bandwidth must be .*got -0\.5"),
    (dict(bandwidth=math.nan), ValueError, r"bandwidth must be .*got nan"),
    (dict(bandwidth=math.inf), ValueError, r"bandwidth must be .*got inf"),
    (dict(bandwidth=torch.tensor(-1.0)), ValueError, r"bandwidth must be .*got -1\.0"),
    (dict(bandwidth=torch.ones(2)), TypeError, r"bandwidth must be .*shape \(2,\)"),
    (dict(bandwidth="wide"), TypeError, r"bandwidth must be .*got str 'wide'"),
    (
        dict(kernel="gauss"),
        ValueError,
        r"kernel must be one of 'gaussian', 'boxcar', 'triangular', 'epanechnikov', 'constant', got str 'gauss'",
    ),
    (dict(queries=[0.0]), TypeError, r"queries must be a floating-point tensor .*got list"),
    (dict(keys=torch.arange(3)), TypeError, r"keys must be a floating-point tensor .*got int64"),
    (
        dict(values=torch.tensor(1.0)),
        ValueError,
        r"values must have shape \(k,\) or \(\.\.\., k, v\)",
    ),
    (dict(values=Y.double()), TypeError, r"values must have the dtype of queries"),
    (
        dict(values=torch.zeros(4)),
        ValueError,
        r"values must agree with keys in k.*expected 3, got 4",
    ),
    (
        dict(queries=torch.zeros(3, 2)),
        ValueError,
        r"keys must agree with queries in d.*expected 2, got 1",
    ),
    (dict(keys=X[:0], values=Y[:0]), ValueError, r"keys must hold at least one key"),
    (dict(queries=torch.zeros(3, 0)), ValueError, r"queries must have a width of at least 1"),
    (dict(queries=X + math.nan), ValueError, r"queries must hold finite numbers, got NaN"),
    (dict(keys=X + math.nan), ValueError, r"keys must hold finite numbers, got NaN"),
    (dict(values=Y + math.inf), ValueError, r"values must hold finite numbers, got infinity"),
    (dict(mask=torch.ones(3, 3)), TypeError, r"mask must be a bool tensor"),
    (
        dict(mask=torch.ones(2, 3) > 0),
        ValueError,
        r"mask must broadcast to \(\.\.\., q, k\), \(3, 3\)",
    ),
    (
        dict(queries=torch.zeros(2, 3, 1), keys=torch.zeros(5, 3, 1)),
        ValueError,
        r"batch axes .*queries \(2,\), keys \(5,\)",
    ),
]


@pytest.mark.messages
@pytest.mark.parametrize("wrong, error, message", REFUSED)
def test_wrong_input_is_named(wrong, error, message):
    given = dict(queries=X, keys=X, values=Y) | wrong
    with pytest.raises(error, match=message):
        nadaraya_watson(given.pop("queries"), given.pop("keys"), given.pop("values"), **given)


@pytest.mark.messages
def test_the_module_refuses_what_it_cannot_pair():
    with pytest.raises(ValueError, match="as many queries as keys, got 2 queries and 3 keys"):
        NadarayaWatson()(X[:2], X, Y, exclude_self=True)
    for bandwidth in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match="bandwidth must be a positive finite number"):
            NadarayaWatson(bandwidth)
    for bandwidth in (1e-300, 1e39):  # it would be another one in single precision
        with pytest.raises(ValueError, match="bandwidth must be between 1.2e-38 and 1.1e"):
            NadarayaWatson(bandwidth)
    with pytest.raises(ValueError, match="queries must hold finite numbers, got NaN"):
        NadarayaWatson()(X + math.nan, X, Y)


def test_no_queries_is_no_error():
    output, weights = nadaraya_watson(X[:0], X, Y)
    assert output.shape == (0,) and weights.shape == (0, 3)
