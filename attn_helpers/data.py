"""The running examples of the book: the crew, the six-token sentence and the noisy curve."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attn_helpers import _validate as validate

SENTENCE = ("the", "cat", "saw", "the", "dog", ".")
"""The sentence of chapters 5 to 10: six tokens, one of them twice, the last a full stop."""


class Crew(NamedTuple):
    """Operators whose ability is known. All numbers are points of the game.

    names: n names; strength, intelligence: (n,), the two stats;
    ability: (n,), the score while only strength counted; reassessed: (n,), the score on both stats.
    """

    names: tuple[str, ...]
    strength: Float[Tensor, "n"]
    intelligence: Float[Tensor, "n"]
    ability: Float[Tensor, "n"]
    reassessed: Float[Tensor, "n"]


def operators() -> Crew:
    """The crew of chapter 1: six known operators, weakest first."""
    return Crew(
        names=("Arrow", "Basalt", "Cinder", "Dune", "Ember", "Flint"),
        strength=torch.tensor([120.0, 180.0, 200.0, 215.0, 260.0, 310.0]),
        intelligence=torch.tensor([240.0, 150.0, 310.0, 120.0, 100.0, 270.0]),
        ability=torch.tensor([42.0, 58.0, 66.0, 71.0, 80.0, 93.0]),
        reassessed=torch.tensor([52.0, 46.0, 73.0, 49.0, 50.0, 84.0]),
    )


NOISE = 0.3
"""Standard deviation of the noise that `noisy_curve` adds to `true_curve`."""


def true_curve(x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The curve of chapter 3 before noise: f(x) = sin(2x) + x/2."""
    validate.float_tensor("x", x, shape="(...)")
    return torch.sin(2 * x) + x / 2


def noisy_curve(n: int = 50, *, seed: int = 0) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    """Sample n points of chapter 3's data: x uniform on [0, 5], sorted; y = f(x) + 0.3 · N(0, 1).

    The same seed gives the same points, and the global random state is not touched.
    Returns (x, y), each (n,).
    """
    n = validate.integer("n", n)
    generator = torch.Generator().manual_seed(validate.integer("seed", seed, least=0))
    x = (5 * torch.rand(n, generator=generator)).sort().values
    return x, true_curve(x) + NOISE * torch.randn(n, generator=generator)
