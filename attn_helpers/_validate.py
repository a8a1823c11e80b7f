"""Argument checks that every public function shares.

A message names the argument, what was expected and what came. Shapes that depend on one another are
checked where they meet; what a single argument must be is checked here.
"""

import math
from numbers import Integral, Real

import torch
from torch import Tensor


def describe(value) -> str:
    """What came: ``float32 tensor of shape (2, 3)``, ``list``, ``int 3``."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"{type(value).__name__} {value!r}"
    return type(value).__name__


def float_tensor(name: str, value, *, shape: str, min_ndim: int = 0) -> Tensor:
    """Return `value` if it is a floating tensor with the right axes; `shape` is for the message."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        raise TypeError(
            f"{name} must be a floating-point tensor of shape {shape}, got {describe(value)}"
        )
    if value.ndim < min_ndim:
        raise ValueError(f"{name} must have shape {shape}, got {describe(value)}")
    return value


def rows(name: str, tensor, size: str, width: int, weight: Tensor | None = None) -> None:
    """`tensor` is (..., size, width), and has dtype and device of the `weight` that will multiply it.

    Under autocast torch converts the dtype.
    """
    shape = f"(..., {size}, {width})"
    float_tensor(name, tensor, shape=shape, min_ndim=2)
    if tensor.shape[-1] != width:
        raise ValueError(f"{name} must have shape {shape}, got {describe(tensor)}")
    if weight is not None and (tensor.dtype, tensor.device) != (weight.dtype, weight.device):
        if tensor.device == weight.device and torch.is_autocast_enabled(tensor.device.type):
            return
        raise TypeError(
            f"{name} must have the dtype and device of the layer, {weight.dtype} on {weight.device}, "
            f"got {tensor.dtype} on {tensor.device}; convert one of them, as in layer.to({name})"
        )


def same_kind(**tensors: Tensor) -> None:
    """All tensors have the dtype and the device of the first: torch would refuse, promote or read nonsense."""
    (first, reference), *others = tensors.items()
    for name, tensor in others:
        if tensor.dtype != reference.dtype:
            raise TypeError(
                f"{name} must have the dtype of {first}, {reference.dtype}, got {tensor.dtype}"
            )
        if tensor.device != reference.device:
            raise ValueError(
                f"{name} must be on the device of {first}, {reference.device}, got {tensor.device}"
            )


def same_size(axis: str, **sizes: tuple[Tensor, int]) -> None:
    """The axis is equally long in all: ``same_size("width", queries=(q, -1), keys=(k, -1))``."""
    (first, (reference, i)), *others = sizes.items()
    for name, (tensor, j) in others:
        if tensor.shape[j] != reference.shape[i]:
            raise ValueError(
                f"{name} must agree with {first} in {axis}: expected {reference.shape[i]}, "
                f"got {tensor.shape[j]} "
                f"({first}: {describe(reference)}, {name}: {describe(tensor)})"
            )


def some_keys(name: str, tensor: Tensor, axis: int) -> None:
    """There is at least one key: a softmax over nothing has no meaning."""
    if tensor.shape[axis] == 0:
        raise ValueError(f"{name} must hold at least one key, got {describe(tensor)}")


def same_batch(**tensors: Tensor) -> None:
    """The axes before the last two broadcast with one another."""
    shapes = {tensor.shape[:-2] for tensor in tensors.values()}
    if len(shapes) == 1:  # the usual case; torch takes longer to say so than a small layer to run
        return
    try:
        torch.broadcast_shapes(*shapes)
    except RuntimeError:
        came = ", ".join(f"{name} {tuple(tensor.shape[:-2])}" for name, tensor in tensors.items())
        raise ValueError(
            f"the batch axes of {' and '.join(tensors)} must broadcast with one another, got {came}"
        ) from None


def mask(mask, axes: str, shape: torch.Size, device: torch.device) -> None:
    """A mask is boolean and broadcasts to `shape` without enlarging it.

    0/1 numbers and additive masks mean different things: we do not guess.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            "mask must be a bool tensor in which True = may be attended to, "
            f"got {describe(mask)}; convert with mask.bool() if 1 means attend, "
            "with mask == 0 if it holds 0 and -inf to be added, with ~mask if it comes from "
            "torch.nn.MultiheadAttention"
        )
    if mask.device != device:
        raise ValueError(f"mask must be on the device of the scores, {device}, got {mask.device}")
    try:
        fits = torch.broadcast_shapes(mask.shape, shape) == shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask must broadcast to {axes}, {tuple(shape)}, got shape {tuple(mask.shape)}"
        )


def integer(name: str, value, *, least: int = 1) -> int:
    """Return `value` as an int of at least `least`; True is not a number here."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer of at least {least}, got {describe(value)}")
    if value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value}")
    return int(value)


def number(name: str, value, *, positive: bool = False) -> float:
    """Return `value` as a finite float; with `positive`, above zero."""
    expected = "a positive finite number" if positive else "a finite number"
    if isinstance(value, Tensor) and value.ndim == 0 and value.dtype != torch.bool:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {expected}, got {describe(value)}")
    try:
        result = float(value)
    except OverflowError:  # an integer or a fraction, perhaps of more digits than Python writes
        raise ValueError(f"{name} must be {expected}, got one beyond float64") from None
    if not math.isfinite(result) or (positive and result <= 0):
        raise ValueError(f"{name} must be {expected}, got {value}")
    return result


def scalar(name: str, value, *, positive: bool = False) -> float | Tensor:
    """Check as `number` does; a tensor comes back as it is, so that what it stands for can be learned."""
    checked = number(name, value, positive=positive)
    return value if isinstance(value, Tensor) else checked


def probability(name: str, value) -> float:
    """Return `value` as a dropout rate: 0 ≤ p < 1."""
    rate = number(name, value)
    if not 0 <= rate < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {value}")
    return rate


def one_of(name: str, value, known) -> None:
    """`value` is one of the known names; the message lists them."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, known))}, got {describe(value)}"
        )


def flag(name: str, value) -> bool:
    """Return `value` if it is True or False: a 0 or a "no" that passes for one hides a mistake."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return value
