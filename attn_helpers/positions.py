"""Where a token stands: sinusoidal and rotary positions (chapter 7).

Attention has no order of its own: shuffle the rows of its input and the rows of its output
are shuffled the same way, nothing else changes. Order has to be written into the vectors.

All angles are computed in float64 on the CPU and converted once, at the end. In half
precision the numbers above 2048 are no longer consecutive integers, so a position must
never be stored in the dtype of the vectors.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attn_helpers import _validate as validate


def _angles(length: int, dim: int, base: float) -> Float[Tensor, "length pairs"]:
    """i / base^(2j/dim): one row per position i, one column per pair j of columns."""
    positions = torch.arange(length, dtype=torch.float64, device="cpu")
    exponents = torch.arange(0, dim, 2, dtype=torch.float64, device="cpu") / dim
    return positions[:, None] / float(base) ** exponents


def _table(length: int, dim: int, base: float) -> Float[Tensor, "length dim"]:
    """The sinusoidal encoding in float64, before it takes on a dtype and a device."""
    angles = _angles(length, dim, base)
    # Sine and cosine side by side; an odd dim has no room for the last cosine.
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :dim]


def sinusoidal_encoding(
    length: int, dim: int, *, base: int | float = 10_000.0
) -> Float[Tensor, "{length} {dim}"]:
    """Sines and cosines that count positions, slower from column to column::

        P[i, 2j]   = sin(i / base^(2j/dim))
        P[i, 2j+1] = cos(i / base^(2j/dim))

    Pair j repeats after 2π·base^(2j/dim) positions. For an even dim, P[i] · P[ℓ] depends on
    i − ℓ only, and P[i + s] is P[i] with every pair turned by a fixed angle. An odd dim lacks
    its last cosine: the encoding works, those two identities are off (the product by up to 1).

    Args:
        length: number of positions, 0 or more; positions are 0, 1, …, length − 1.
        dim: width of each vector, 1 or more, even or odd.
        base: a finite number > 0; sets the wavelengths.

    Returns:
        (length, dim), in torch's default dtype, on its default device.

    Raises:
        TypeError: length or dim is not an integer, or base is not a number.
        ValueError: length < 0, dim < 1, or base is not finite and positive.

    Source: Vaswani et al. (2017), section 3.5. Chapter 7.
    """
    length = validate.integer("length", length, least=0)
    dim = validate.integer("dim", dim)
    base = validate.number("base", base, positive=True)
    return _table(length, dim, base).to(torch.get_default_device(), torch.get_default_dtype())


class SinusoidalEncoding(nn.Module):
    """Adds the sinusoidal encoding to a sequence: x + P, then dropout.

    There is no table to outgrow or to leave behind on another device: P is computed for the
    length that comes, and takes on the dtype and device of x.

    Args:
        dim: width of the vectors, 1 or more, even or odd.
        dropout: chance, 0 ≤ p < 1, that an entry of x + P is zeroed, in training only.
        base: see `sinusoidal_encoding`.

    Shapes: (..., length, dim) -> (..., length, dim). The sequence is the last axis but one,
    so a batch is (batch, length, dim).

    Raises:
        TypeError, ValueError: at construction, as `sinusoidal_encoding`, and for a dropout
        outside [0, 1); when called, for an x that is not a floating tensor (..., length, dim).

    Source: Vaswani et al. (2017), section 3.5. Chapter 7.
    """

    def __init__(self, dim: int, *, dropout: float = 0.0, base: int | float = 10_000.0):
        super().__init__()
        self.dim = validate.integer("dim", dim)
        self.base = validate.number("base", base, positive=True)
        self.dropout = nn.Dropout(validate.probability("dropout", dropout))

    def forward(self, x: Float[Tensor, "*batch length dim"]) -> Float[Tensor, "*batch length dim"]:
        validate.rows("x", x, "length", self.dim)
        return self.dropout(x + _table(x.shape[-2], self.dim, self.base).to(x))


def rotary(
    x: Float[Tensor, "*batch length dim"], *, base: int | float = 10_000.0
) -> Float[Tensor, "*batch length dim"]:
    """Turn each pair of columns by an angle that grows with the position::

        out[i, 2j]   = x[i, 2j]·cos θ − x[i, 2j+1]·sin θ
        out[i, 2j+1] = x[i, 2j]·sin θ + x[i, 2j+1]·cos θ      with θ = i / base^(2j/dim)

    Applied to queries and keys, before their dot product. Then the score of query i and key ℓ
    depends on their contents and on i − ℓ, and on no position by itself. Values are not turned.

    Pairs are neighbouring columns, as in the paper and in `sinusoidal_encoding`; some
    libraries pair column j with column j + dim/2, which permutes the columns.

    Args:
        x: floating tensor (..., length, dim), dim even.
        base: a finite number > 0.

    Returns:
        A new tensor of the same shape, dtype and device; each row keeps its length.

    Raises:
        TypeError: x is not a floating tensor, or base is not a number.
        ValueError: x has fewer than two axes or an odd or zero dim; base as above.

    Source: Su et al. (2021), section 3.4. Chapter 7.
    """
    validate.float_tensor("x", x, shape="(..., length, dim)", min_ndim=2)
    base = validate.number("base", base, positive=True)
    length, dim = x.shape[-2:]
    if dim == 0 or dim % 2:
        raise ValueError(f"x must have an even dim of at least 2, got {validate.describe(x)}")
    angles = _angles(length, dim, base)
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-1).flatten(-2)
