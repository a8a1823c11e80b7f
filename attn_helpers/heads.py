"""Attention with learned projections: one head, and many side by side.

Shapes: q queries, k keys, n rows of a sequence, d = embed_dim, h heads of width d_k = d / h; `...` are
batch axes. `nn.Linear` stores the transpose of the W of the formulas: ``W_q(x)`` is x W_q.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_helpers import _validate as validate
from attn_helpers.attention import attention, rows_that_see, scaled_products, softmax_of_own


class SelfAttention(nn.Module):
    """One head that reads queries, keys and values from the same rows::

        Q = X W_q,  K = X W_k,  V = X W_v
        Z = softmax(Q Kᵀ / √d_k) V

    X is (..., n, d), each matrix (d, d_k), and Q, K, V and Z are (..., n, d_k), with d = embed_dim and
    d_k = head_dim, which is embed_dim unless given. bias: each projection adds a learned vector.

    Call with x (..., n, d) and a mask broadcastable to (..., n, n), True = may be attended to; returns
    the output Z (..., n, d_k) and the weights (..., n, n). A row that may look at nothing has weights,
    and an output, of 0.

    Raises TypeError for an x of another dtype than the layer and for a mask that is not bool,
    ValueError for an x of another width and for a mask that does not broadcast.
    Source: Vaswani et al. (2017), equation 1. Chapter 5.
    """

    def __init__(self, embed_dim: int, head_dim: int | None = None, *, bias: bool = False):
        super().__init__()
        self.embed_dim = validate.integer("embed_dim", embed_dim)
        self.head_dim = embed_dim if head_dim is None else validate.integer("head_dim", head_dim)
        bias = validate.flag("bias", bias)
        self.W_q = nn.Linear(self.embed_dim, self.head_dim, bias=bias)
        self.W_k = nn.Linear(self.embed_dim, self.head_dim, bias=bias)
        self.W_v = nn.Linear(self.embed_dim, self.head_dim, bias=bias)

    def forward(
        self, x: Float[Tensor, "*batch n d"], *, mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "*batch n d_k"], Float[Tensor, "*batch n n"]]:
        validate.rows("x", x, "n", self.embed_dim, self.W_q.weight)
        return attention(self.W_q(x), self.W_k(x), self.W_v(x), mask=mask)


class MultiHeadAttention(nn.Module):
    """h heads side by side, each with projections of its own, mixed by W_o::

        Z_r    = softmax(X W_q⁽ʳ⁾ (Y W_k⁽ʳ⁾)ᵀ / √d_k) Y' W_v⁽ʳ⁾        for the heads r = 1 … h
        output = concat(Z_1, …, Z_h) W_o

    X holds the rows that ask, Y those that are compared with them, Y' those that are mixed; in
    self-attention all three are X. d = embed_dim, h = num_heads, d_k = d / h. The heads' matrices
    stand beside one another in one W_q (W_k, W_v): counting heads from 0, head r owns the columns
    from r·d_k up to (r+1)·d_k. Batch axes come first, as with `batch_first=True` in torch.

    embed_dim: width of X and of the output. key_dim, value_dim: width of Y and of Y', embed_dim unless
    given (`kdim`, `vdim` in torch). bias: each of the four products adds a learned vector. dropout:
    share of the weights that is dropped on the way to the values, in training only.

    Call with queries X (..., q, d), keys Y (..., k, key_dim), values Y' (..., k, value_dim), which the
    layer projects. Without keys, Y = X; without values, Y' = Y. mask: bool, broadcastable to
    (..., q, k), True = may be attended to (the opposite of `torch.nn.MultiheadAttention`), the same
    for all heads. Returns the output (..., q, d) and the weights (..., h, q, k) before dropout, or
    None in their place with `need_weights=False`, which takes torch's fused kernel. A query whose
    keys are all masked has weights of 0: its output is that of a row of zeros, the bias of W_o.

    Raises ValueError for sizes that do not fit (num_heads must divide embed_dim), TypeError for
    tensors of another dtype than the layer and for masks that are not bool.
    Source: Vaswani et al. (2017), section 3.2.2. Chapter 6.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embed_dim = validate.integer("embed_dim", embed_dim)
        self.num_heads = validate.integer("num_heads", num_heads)
        if self.embed_dim % self.num_heads:
            raise ValueError(
                f"num_heads must divide embed_dim = {embed_dim} without remainder, got {num_heads}"
            )
        self.head_dim = self.embed_dim // self.num_heads
        self.key_dim = embed_dim if key_dim is None else validate.integer("key_dim", key_dim)
        self.value_dim = (
            embed_dim if value_dim is None else validate.integer("value_dim", value_dim)
        )
        self.dropout = validate.probability("dropout", dropout)
        bias = validate.flag("bias", bias)
        self.W_q = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)
        self.W_k = nn.Linear(self.key_dim, self.embed_dim, bias=bias)
        self.W_v = nn.Linear(self.value_dim, self.embed_dim, bias=bias)
        self.W_o = nn.Linear(self.embed_dim, self.embed_dim, bias=bias)

    @classmethod
    def from_torch(cls, layer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy a `torch.nn.MultiheadAttention`: weights, biases, dropout, dtype, device and mode.

        The copy takes batch axes first, whatever the `batch_first` of the original. Masks have to be
        inverted (``~mask``): torch's True means "leave out".

        Raises TypeError for another layer, ValueError for one with `add_bias_kv` or `add_zero_attn`,
        which attends to keys that are in no input. Chapter 6, "The same layer in torch".
        """
        if not isinstance(layer, nn.MultiheadAttention):
            raise TypeError(
                f"layer must be a torch.nn.MultiheadAttention, got {validate.describe(layer)}"
            )
        for option, used in (
            ("add_bias_kv", layer.bias_k is not None),
            ("add_zero_attn", layer.add_zero_attn),
        ):
            if used:
                raise ValueError(f"layer must be built without {option}, got {option}=True")
        ours = cls(
            layer.embed_dim,
            layer.num_heads,
            key_dim=layer.kdim,
            value_dim=layer.vdim,
            bias=layer.in_proj_bias is not None,
            dropout=layer.dropout,
        ).to(layer.out_proj.weight)
        if layer.in_proj_weight is not None:
            weights = layer.in_proj_weight.chunk(3)
        else:  # kdim or vdim given: torch keeps three matrices
            weights = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        linears = (ours.W_q, ours.W_k, ours.W_v, ours.W_o)
        with torch.no_grad():
            for linear, weight in zip(linears, (*weights, layer.out_proj.weight), strict=True):
                linear.weight.copy_(weight)
            if layer.in_proj_bias is not None:
                biases = (*layer.in_proj_bias.chunk(3), layer.out_proj.bias)
                for linear, bias in zip(linears, biases, strict=True):
                    linear.bias.copy_(bias)
        return ours.train(layer.training)

    def forward(
        self,
        queries: Float[Tensor, "... q d"],
        keys: Float[Tensor, "... k key_dim"] | None = None,
        values: Float[Tensor, "... k value_dim"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "... q d"], Float[Tensor, "... h q k"] | None]:
        keys = queries if keys is None else keys
        values = keys if values is None else values
        validate.rows("queries", queries, "q", self.embed_dim, self.W_q.weight)
        # In self-attention one check serves all three: at 64 rows the others would take some per cent.
        if not (queries is keys is values and self.embed_dim == self.key_dim == self.value_dim):
            validate.rows("keys", keys, "k", self.key_dim, self.W_k.weight)
            validate.rows("values", values, "k", self.value_dim, self.W_v.weight)
            validate.same_size("k, the number of keys", keys=(keys, -2), values=(values, -2))
            validate.same_batch(queries=queries, keys=keys, values=values)
        validate.some_keys("keys", keys, -2)
        if mask is not None:
            batch = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
            scores = torch.Size((*batch, queries.shape[-2], keys.shape[-2]))
            validate.mask(mask, "(..., q, k)", scores, queries.device)
            if mask.ndim > 2:
                mask = mask.unsqueeze(-3)  # (..., 1, q, k): the same for every head

        q = self._split(self.W_q(queries))  # (..., h, q, d_k)
        k = self._split(self.W_k(keys))  # (..., h, k, d_k)
        v = self._split(self.W_v(values))  # (..., h, k, d_k)
        if validate.flag("need_weights", need_weights):
            scores = scaled_products(q, k, 1 / math.sqrt(self.head_dim))
            weights = softmax_of_own(scores, mask)  # (..., h, q, k)
            dropped = F.dropout(weights, self.dropout) if self.training else weights
            heads = dropped @ v  # (..., h, q, d_k)
        else:
            weights = None
            heads = _fused(q, k, v, mask, self.dropout if self.training else 0.0)
        output = self.W_o(heads.transpose(-3, -2).flatten(-2))  # (..., q, h, d_k) -> (..., q, d)
        return output, weights

    def _split(self, x: Tensor) -> Tensor:
        """(..., n, d) -> (..., h, n, d_k): cut each row into h pieces, then bring the heads forward."""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(-3, -2)


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    """torch's kernel, which never stores the weights; a query that may look at nothing gets 0."""
    # The kernel is used for exactly one batch axis; torch falls back to storing the weights otherwise.
    shapes = {x.shape[:-3] for x in (q, k, v)}
    batch = shapes.pop() if len(shapes) == 1 else torch.broadcast_shapes(*shapes)

    def flat(x: Tensor) -> Tensor:
        if len(batch) == 1 and x.shape[:-3] == batch:  # the usual case; expand takes its time
            return x
        return x.expand(*batch, *x.shape[-3:]).reshape(math.prod(batch), *x.shape[-3:])

    q, k, v = flat(q), flat(k), flat(v)
    if mask is None:
        output = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
    else:
        mask = flat(mask) if mask.ndim > 2 else torch.atleast_2d(mask)
        # What the kernels give for an empty row differs between devices, so they never see one.
        seen, all_see = rows_that_see(mask)
        visible = mask if all_see else mask | ~seen
        output = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=dropout)
        output = output if all_see else torch.where(seen, output, 0.0)
    return output if len(batch) == 1 else output.reshape(*batch, *output.shape[-3:])
