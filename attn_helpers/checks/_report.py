"""How a check answers: a short ✓, or one sentence that says what is wrong and names the slip."""

import torch
from torch import Tensor

from attn_helpers import _validate as validate


class Slip(AssertionError):
    """A wrong answer. In a notebook only its sentence is shown, without a traceback."""

    def _render_traceback_(self):  # IPython asks for this instead of printing a traceback
        return [f"✗ {self}"]


def passed(text: str) -> None:
    """Say that the answer is right."""
    print(f"✓ {text}")


def slip(text: str):
    """Say what is wrong, and stop."""
    raise Slip(text)


def call(answer, *inputs, **named):
    """Call the learner's function; an exception becomes a Slip that names the inputs."""
    if not callable(answer):
        slip(f"expected a function or class, got {validate.describe(answer)}")
    try:
        return answer(*inputs, **named)
    except Exception as error:
        given = ", ".join(validate.describe(value) for value in (*inputs, *named.values()))
        raise Slip(
            f"your answer raised {type(error).__name__}: {error} (called with {given})"
        ) from error


def close(a: Tensor, b: Tensor) -> bool:
    """Equal within rounding: relative 1e-4, absolute 1e-5. Nothing complex is: it would lose its imaginary part."""
    if a.is_complex() or a.shape != b.shape:
        return False
    return torch.allclose(a.double(), b.double(), rtol=1e-4, atol=1e-5)


def compare(
    answer, expected: Tensor, *, slips: dict[str, Tensor | tuple[Tensor, ...]], what: str
) -> None:
    """Compare a tensor with the right one, and name the slip whose result it equals.

    slips maps a sentence to the tensor that the slip would give, or to several. They come before
    the complaint about the shape, since a classic slip may have a shape of its own.
    """
    if not isinstance(answer, Tensor):
        slip(
            f"{what} should be a tensor of shape {tuple(expected.shape)}, "
            f"got {validate.describe(answer)}"
        )
    if answer.is_complex():
        slip(
            f"{what} should hold real numbers, got {answer.dtype}: take the real part where the "
            "imaginary one is 0"
        )
    answer = answer.detach()
    if close(answer, expected):
        return
    for sentence, wrong in slips.items():
        if any(
            close(answer, result) for result in (wrong if isinstance(wrong, tuple) else (wrong,))
        ):
            slip(sentence)
    if answer.shape != expected.shape:
        slip(f"{what} should have shape {tuple(expected.shape)}, got {tuple(answer.shape)}")
    if answer.isnan().any():
        slip(f"there is NaN in {what}")
    difference = (answer.double() - expected.double()).abs().max()
    slip(f"not right yet: the largest difference in {what} is {difference:.3g}")
