"""Sinusoidal and rotary positions: the formula, the identities, the edges, the errors."""

import math

import pytest
import torch
from refusals import refused

from attn_helpers import SinusoidalEncoding, rotary, sinusoidal_encoding

EVEN_AND_ODD = [1, 2, 3, 7, 8, 64, 65]


def by_the_formula(length, dim, base):
    """One entry at a time, from Python's own sine and cosine: the independent oracle."""
    rows = []
    for position in range(length):
        row = []
        for column in range(dim):
            angle = position / base ** ((column - column % 2) / dim)
            row.append(math.cos(angle) if column % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64).reshape(length, dim)


@pytest.mark.parametrize("dim", EVEN_AND_ODD)
@pytest.mark.parametrize("base", [1, 2.5, 10_000.0])
@pytest.mark.parametrize("length", [0, 1, 11, 70])
def test_every_entry_is_the_formula(length, dim, base):
    table = sinusoidal_encoding(length, dim, base=base)
    assert table.shape == (length, dim)
    torch.testing.assert_close(table.double(), by_the_formula(length, dim, base), atol=1e-7, rtol=0)


def test_far_positions_keep_their_precision():
    """Angles taken in float32 would be off by 0.03 at position one million."""
    table = sinusoidal_encoding(1_000_001, 2)
    torch.testing.assert_close(
        table[-1].double(),
        torch.tensor([math.sin(1e6), math.cos(1e6)], dtype=torch.float64),
        atol=1e-7,
        rtol=0,
    )


def test_result_follows_the_default_dtype():
    assert sinusoidal_encoding(3, 4).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert sinusoidal_encoding(3, 4).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dim", [2, 6, 64])
def test_for_even_dim_the_dot_product_depends_on_the_offset_only(dim):
    table = sinusoidal_encoding(50, dim).double()
    products = table @ table.T
    for offset in range(50):
        diagonal = products.diagonal(offset)
        assert (diagonal.max() - diagonal.min()).abs() < 1e-5
    torch.testing.assert_close(products.diagonal(), torch.full((50,), dim / 2).double())


def test_for_odd_dim_the_dot_product_also_depends_on_the_position_a_little():
    table = sinusoidal_encoding(50, 7).double()
    diagonal = (table @ table.T).diagonal(3)
    assert 1e-5 < diagonal.max() - diagonal.min() < 0.1


def test_a_shift_rotates_each_pair():
    shift, dim = 5, 8
    table = sinusoidal_encoding(40, dim).double()
    for pair in range(dim // 2):
        angle = shift / 10_000 ** (2 * pair / dim)
        turn = torch.tensor(
            [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]],
            dtype=torch.float64,
        )
        columns = slice(2 * pair, 2 * pair + 2)
        torch.testing.assert_close(
            table[:-shift, columns] @ turn, table[shift:, columns], atol=1e-6, rtol=0
        )


def test_smallest_distance_between_positions_depends_on_the_base():
    assert torch.pdist(sinusoidal_encoding(1000, 64, base=1.0)).min() < 0.01
    assert torch.pdist(sinusoidal_encoding(1000, 64)).min() > 1


# --- the module ------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", EVEN_AND_ODD)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_module_adds_the_table_along_the_sequence(lead, dim):
    x = torch.randn(*lead, 11, dim)
    before = x.clone()
    out = SinusoidalEncoding(dim)(x)
    torch.testing.assert_close(
        out - x, sinusoidal_encoding(11, dim).expand_as(x), atol=1e-5, rtol=0
    )
    assert torch.equal(x, before)


def test_equal_batch_and_length_are_not_confused():
    """A square (batch, length) hides an encoding added along the wrong axis."""
    out = SinusoidalEncoding(6)(torch.zeros(5, 5, 6))
    for sequence in out:
        assert torch.equal(sequence, sinusoidal_encoding(5, 6))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_module_follows_the_dtype(dtype):
    x = torch.zeros(2, 4000, 6, dtype=dtype)
    out = SinusoidalEncoding(6)(x)
    assert out.dtype == dtype
    exact = by_the_formula(4000, 6, 10_000.0).expand(2, -1, -1)
    # Half precision rounds the sine, never the position it is taken of.
    torch.testing.assert_close(out.double(), exact, atol=torch.finfo(dtype).eps, rtol=0)


def test_module_follows_the_device():
    assert SinusoidalEncoding(6)(torch.zeros(2, 3, 6, device="meta")).device.type == "meta"
    assert rotary(torch.zeros(2, 3, 6, device="meta")).device.type == "meta"


def test_module_keeps_nothing_that_could_be_left_behind():
    module = SinusoidalEncoding(6)
    module(torch.zeros(9, 6))
    assert not module.state_dict()
    assert not list(module.parameters())


@pytest.mark.parametrize("length", [0, 1, 5000, 20_000])
def test_any_length(length):
    assert SinusoidalEncoding(3)(torch.zeros(1, length, 3)).shape == (1, length, 3)


def test_module_passes_the_base_on():
    out = SinusoidalEncoding(6, base=100.0)(torch.zeros(5, 6))
    assert torch.equal(out, sinusoidal_encoding(5, 6, base=100.0))


def test_dropout_acts_in_training_only_and_on_the_sum():
    module, x = SinusoidalEncoding(8, dropout=0.5), torch.ones(40, 8)
    torch.manual_seed(0)
    trained = module(x)
    assert 0 < (trained == 0).double().mean() < 1
    kept = trained != 0
    torch.testing.assert_close(trained[kept], 2 * (x + sinusoidal_encoding(40, 8))[kept])
    torch.testing.assert_close(module.eval()(x), x + sinusoidal_encoding(40, 8))


def test_gradient_is_the_identity():
    x = torch.randn(2, 5, 7, requires_grad=True)
    SinusoidalEncoding(7)(x).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


# --- rotary ----------------------------------------------------------------------------------


def test_rotary_turns_each_pair_by_the_position():
    x = torch.randn(2, 11, 6, dtype=torch.float64)
    out = rotary(x)
    # Independent oracle: pairs as complex numbers, a turn is a multiplication.
    angles = torch.arange(11.0, dtype=torch.float64)[:, None] / 10_000 ** (
        torch.arange(0, 6, 2, dtype=torch.float64) / 6
    )
    turned = torch.view_as_complex(x.reshape(2, 11, 3, 2)) * torch.polar(
        torch.ones_like(angles), angles
    )
    torch.testing.assert_close(out, torch.view_as_real(turned).reshape(2, 11, 6))


def test_rotary_scores_depend_on_content_and_offset_only():
    q, k = torch.randn(2, 8, dtype=torch.float64)
    scores = rotary(q.expand(20, 8)) @ rotary(k.expand(20, 8)).T
    for offset in range(-19, 20):
        diagonal = scores.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    torch.testing.assert_close(scores[0, 0], q @ k)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rotary_keeps_dtype_and_length_of_vectors(dtype):
    x = torch.randn(3, 5000, 4).to(dtype)
    before = x.clone()
    out = rotary(x)
    assert out.dtype == dtype and torch.equal(x, before)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(
        out.double().norm(dim=-1), x.double().norm(dim=-1), atol=4 * eps, rtol=4 * eps
    )


def test_rotary_takes_a_non_contiguous_input_and_its_gradient_turns_back():
    x = torch.randn(6, 11, dtype=torch.float64).T.requires_grad_()
    assert not x.is_contiguous()
    assert torch.equal(rotary(x), rotary(x.contiguous()))
    assert torch.autograd.gradcheck(rotary, (x,))


def test_rotary_of_an_empty_sequence():
    assert rotary(torch.zeros(2, 0, 4)).shape == (2, 0, 4)


# --- errors ----------------------------------------------------------------------------------

BAD_CALLS = [
    (lambda: sinusoidal_encoding(-1, 4), ValueError, r"length.*-1"),
    (lambda: sinusoidal_encoding(2.5, 4), TypeError, r"length.*float"),
    (lambda: sinusoidal_encoding(True, 4), TypeError, r"length.*bool"),
    (lambda: sinusoidal_encoding(torch.zeros(3, 4), 4), TypeError, r"length.*tensor"),
    (lambda: sinusoidal_encoding(4, 0), ValueError, r"dim.*0"),
    (lambda: sinusoidal_encoding(4, -2), ValueError, r"dim.*-2"),
    (lambda: sinusoidal_encoding(4, "8"), TypeError, r"dim.*str"),
    (lambda: sinusoidal_encoding(4, 8, base=0), ValueError, r"base.*0"),
    (lambda: sinusoidal_encoding(4, 8, base=-3.0), ValueError, r"base.*-3"),
    (lambda: sinusoidal_encoding(4, 8, base=math.nan), ValueError, r"base.*nan"),
    (lambda: sinusoidal_encoding(4, 8, base=math.inf), ValueError, r"base.*inf"),
    (lambda: sinusoidal_encoding(4, 8, base="10000"), TypeError, r"base.*str"),
    (lambda: SinusoidalEncoding(0), ValueError, r"dim.*0"),
    (lambda: SinusoidalEncoding(4, dropout=1.5), ValueError, r"dropout.*1\.5"),
    (lambda: SinusoidalEncoding(4, dropout=-0.1), ValueError, r"dropout.*-0\.1"),
    (lambda: SinusoidalEncoding(4, base=0.0), ValueError, r"base.*0"),
    (lambda: SinusoidalEncoding(4)(torch.zeros(3, 5)), ValueError, r"x.*4.*\(3, 5\)"),
    (lambda: SinusoidalEncoding(4)(torch.zeros(4)), ValueError, r"x.*\(4,\)"),
    (lambda: SinusoidalEncoding(4)(torch.zeros(3, 4).long()), TypeError, r"x.*int64"),
    (lambda: SinusoidalEncoding(4)([[0.0] * 4]), TypeError, r"x.*list"),
    (lambda: rotary(torch.zeros(3, 5)), ValueError, r"x.*even.*\(3, 5\)"),
    (lambda: rotary(torch.zeros(3, 0)), ValueError, r"x.*\(3, 0\)"),
    (lambda: rotary(torch.zeros(4)), ValueError, r"x.*\(4,\)"),
    (lambda: rotary(torch.zeros(3, 4).long()), TypeError, r"x.*int64"),
    (lambda: rotary(torch.zeros(3, 4), base=-1.0), ValueError, r"base.*-1"),
]


test_bad_input_says_expected_and_got = refused(BAD_CALLS)
