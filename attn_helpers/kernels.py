"""Kernel regression: attention whose scores are distances.

Shapes: q queries, k keys, d the width of queries and keys, v the width of values; `...` are batch axes.
A one-dimensional tensor of queries, keys or values holds one number per point.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_helpers import _validate as validate
from attn_helpers.attention import masked_softmax

KERNELS = {
    "gaussian": lambda u: torch.exp(-(u**2) / 2),
    "boxcar": lambda u: (u <= 1).to(u.dtype),
    "triangular": lambda u: (1 - u).clamp(min=0),
    "epanechnikov": lambda u: 0.75 * (1 - u**2).clamp(min=0),
    "constant": lambda u: torch.ones_like(u),
}
"""Name → function K(u) of the scaled distance u = ‖q − k‖ / σ ≥ 0: how much a key at that distance counts."""

FAR = 64.0
"""In bandwidths: a key this much farther away than the nearest one has weight 0, since exp(−64²/2) is 0 in float64."""


def nadaraya_watson(
    queries: Float[Tensor, "q"] | Float[Tensor, "*#batch q d"],
    keys: Float[Tensor, "k"] | Float[Tensor, "*#batch k d"],
    values: Float[Tensor, "k"] | Float[Tensor, "*#batch k v"],
    *,
    kernel: str = "gaussian",
    bandwidth: float | int | Float[Tensor, ""] = 1.0,
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "..."], Float[Tensor, "... q k"]]:
    """Average the values, nearer keys counting more: zᵢ = Σⱼ αᵢⱼ vⱼ, αᵢⱼ = K(uᵢⱼ) / Σₗ K(uᵢₗ), uᵢⱼ = ‖qᵢ − kⱼ‖ / σ.

    queries (q,) or (..., q, d); keys (k,) or (..., k, d); values (k,) or (..., k, v).
    kernel: a name in `KERNELS`; bandwidth: σ > 0, a number or a tensor without axes.
    mask: bool, broadcastable to (..., q, k), True = may be attended to.
    Returns (output, weights): output (..., q), or (..., q, v) if values have a width; weights (..., q, k).

    With the Gaussian kernel the weights are softmax(−‖q − k‖² / 2σ²). They are computed relative to the
    nearest key, so a far query or a tiny bandwidth never gives 0/0, and the gradients are finite.
    A query with no key inside a compact kernel gets weights 0 and output 0.
    Raises TypeError for tensors that are not floating point or differ in dtype, ValueError for NaN or
    infinity, an unknown kernel, a bandwidth that is not positive and finite, no keys, or sizes that do not fit.
    Source: Nadaraya (1964), Watson (1964). Chapter 3.
    """
    validate.one_of("kernel", kernel, KERNELS)
    sigma = validate.scalar("bandwidth", bandwidth, positive=True)
    return _regress(queries, keys, values, kernel, sigma, mask)


class NadarayaWatson(nn.Module):
    """Gaussian kernel regression whose one parameter, the bandwidth σ, is learned: see `nadaraya_watson`.

    The parameter is log σ, so σ stays positive whatever a gradient step does; `bandwidth` is σ itself.
    Chapter 3, "A bandwidth that learns".
    """

    def __init__(self, bandwidth: float | int = 1.0):
        super().__init__()
        bandwidth = validate.number("bandwidth", bandwidth, positive=True)
        limits = torch.finfo(torch.get_default_dtype())
        if not limits.tiny <= bandwidth <= limits.max / 3:
            raise ValueError(
                f"bandwidth must be between {limits.tiny:.2g} and {limits.max / 3:.2g}, got {bandwidth}"
            )
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    @property
    def bandwidth(self) -> Float[Tensor, ""]:
        """σ, a tensor without axes through which the gradient flows."""
        limits = torch.finfo(self.log_bandwidth.dtype)
        # The clamp is for a training that runs away: σ neither reaches 0 nor infinity.
        return self.log_bandwidth.clamp(math.log(limits.tiny), math.log(limits.max) - 1).exp()

    def forward(
        self,
        queries: Float[Tensor, "q"] | Float[Tensor, "*#batch q d"],
        keys: Float[Tensor, "k"] | Float[Tensor, "*#batch k d"],
        values: Float[Tensor, "k"] | Float[Tensor, "*#batch k v"],
        *,
        exclude_self: bool = False,
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "... q k"]]:
        """Return (output, weights) as `nadaraya_watson` does.

        exclude_self: query i may not look at key i (leave-one-out), for queries that are the keys.
        """
        mask = None
        if validate.flag("exclude_self", exclude_self):
            n_queries, n_keys = (
                _columns("queries", queries).shape[-2],
                _columns("keys", keys).shape[-2],
            )
            if n_queries != n_keys:
                raise ValueError(
                    "exclude_self pairs query i with key i and needs as many queries as keys, "
                    f"got {n_queries} queries and {n_keys} keys"
                )
            mask = ~torch.eye(n_keys, dtype=torch.bool, device=keys.device)
        return _regress(queries, keys, values, "gaussian", self.bandwidth, mask)

    def extra_repr(self) -> str:
        return f"bandwidth={self.bandwidth.item():.4g}"


def _regress(queries, keys, values, kernel, sigma, mask):
    """Check the tensors, weigh, average: in float64, rounded once at the end to the dtype that came."""
    one_number = isinstance(values, Tensor) and values.ndim == 1
    queries = _columns("queries", queries)
    keys = _columns("keys", keys)
    values = _columns("values", values)
    validate.same_kind(queries=queries, keys=keys, values=values)
    validate.some_keys("keys", keys, -2)
    validate.same_size("d, the dimension of the points", queries=(queries, -1), keys=(keys, -1))
    validate.same_size("k, the number of keys", keys=(keys, -2), values=(values, -2))
    validate.same_batch(queries=queries, keys=keys, values=values)
    dtype = queries.dtype
    queries, keys, values = _widen(queries), _widen(keys), _widen(values)
    distances = _distances(queries, keys)  # (..., q, k)
    if mask is not None:
        validate.mask(mask, "(..., q, k)", distances.shape, distances.device)
    limits = torch.finfo(distances.dtype)
    sigma = _widen(sigma) if isinstance(sigma, Tensor) else distances.new_tensor(sigma)
    sigma = sigma.to(distances).clamp(min=limits.tiny / limits.eps)  # so that d/σ is finite
    if kernel == "gaussian":
        weights = _gaussian_weights(distances, sigma, mask)
    else:
        weights = _ratio_weights(distances, sigma, KERNELS[kernel], mask)
    output = (weights @ values).to(dtype)
    return (output.squeeze(-1) if one_number else output), weights.to(dtype)


def _gaussian_weights(distances, sigma, mask):
    """softmax(−d²/2σ²) with d₀, the distance of the nearest key, taken out: d² − d₀² = (d − d₀)(d + d₀).

    Adding the same number to all scores of a row changes no weight, so d₀ is a constant for the gradient.
    Two bounds keep every intermediate number finite and change no weight. A σ below eps·d₀ cannot tell
    two distances that differ from equal ones any better than eps·d₀ does: the farther key gets 0 with
    both. And a key more than FAR bandwidths beyond the nearest gets 0, wherever it is.
    """
    nearest = distances.detach()
    if mask is not None:
        nearest = nearest.masked_fill(~mask, math.inf)
    nearest = nearest.amin(dim=-1, keepdim=True)  # (..., q, 1)
    nearest = nearest.masked_fill(nearest.isinf(), 0.0)  # a row that may look at nothing
    sigma = torch.maximum(sigma, torch.finfo(distances.dtype).eps * nearest)
    distances = torch.minimum(distances, nearest + FAR * sigma)
    scores = -((distances - nearest) / sigma) * ((distances + nearest) / sigma) / 2
    return masked_softmax(scores, mask)


def _ratio_weights(distances, sigma, kernel, mask):
    """K / ΣK, and 0 where the sum is 0."""
    u = torch.minimum(distances, FAR * sigma) / sigma
    closeness = kernel(u) + 0 * u  # a flat kernel has slope 0, not no slope: backward() must work
    if mask is not None:
        closeness = closeness.masked_fill(~mask, 0.0)
    total = closeness.sum(dim=-1, keepdim=True)
    return closeness / total.masked_fill(total == 0, 1.0)


def _distances(queries, keys):
    """Euclidean distances (..., q, k), the largest component taken out so that its square stays in range."""
    difference = queries.unsqueeze(-2) - keys.unsqueeze(-3)  # (..., q, k, d)
    limit = torch.finfo(difference.dtype).max / (4 * difference.shape[-1])
    difference = difference.clamp(-limit, limit)
    unit = difference.detach().abs().amax(dim=-1, keepdim=True)
    unit = unit.masked_fill(unit == 0, 1.0)
    return unit.squeeze(-1) * torch.linalg.vector_norm(difference / unit, dim=-1)


def _columns(name, tensor):
    """Return the points as (..., n, width); a one-dimensional tensor is one column."""
    width = {"queries": "q, d", "keys": "k, d", "values": "k, v"}[name]
    shape = f"({width[0]},) or (..., {width})"
    validate.float_tensor(name, tensor, shape=shape, min_ndim=1)
    if tensor.ndim == 1:
        tensor = tensor.unsqueeze(-1)
    if tensor.shape[-1] == 0:
        raise ValueError(f"{name} must have a width of at least 1, got {validate.describe(tensor)}")
    if not tensor.isfinite().all():
        kind = "NaN" if tensor.isnan().any() else "infinity"
        raise ValueError(f"{name} must hold finite numbers, got {kind}")
    return tensor


def _widen(tensor):
    """Go to float64; on the way back a gradient too large for the caller's dtype stops at its largest number."""
    wide = tensor.to(
        torch.float32 if tensor.device.type == "mps" else torch.float64
    )  # mps has no float64
    if wide.requires_grad and wide.dtype != tensor.dtype:
        largest = torch.finfo(tensor.dtype).max
        wide.register_hook(lambda gradient: gradient.clamp(-largest, largest))
    return wide
