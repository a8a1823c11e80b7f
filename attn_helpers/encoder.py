"""The encoder block of the Transformer (chapter 9): mix the tokens, then think about each one."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_helpers import _validate as validate
from attn_helpers.heads import MultiHeadAttention

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}


class EncoderBlock(nn.Module):
    """Mix the tokens, then think about each one; what came in is always added back.

    Equivalent to the following, with the layer norm after each addition (post-norm, the default)::

        x = norm_1(x + attention(x))
        x = norm_2(x + feed_forward(x))

    or, with norm_first=True, before each part (pre-norm)::

        x = x + attention(norm_1(x))
        x = x + feed_forward(norm_2(x))

    feed_forward is Linear(embed_dim, hidden_dim), the activation, Linear(hidden_dim, embed_dim):
    the same for every token, so only `attention` carries anything from one token to another.

    Args:
        embed_dim: width of a token's vector, the same going in and coming out.
        num_heads: heads of the attention; must divide embed_dim.
        hidden_dim: width inside feed_forward; four times embed_dim is usual.
        norm_first: layer norm before each part instead of after each addition.
        activation: "relu" or "gelu" (the exact one, with the error function).
        layer_norm_eps: what layer norm adds to the variance before the root.
        dropout: chance, 0 ≤ p < 1, that an attention weight or an entry of what a part adds to x is
            zeroed, in training only.

    Call: x (..., n, embed_dim), mask broadcastable to (..., n, n), True = may be attended to
    -> output (..., n, embed_dim), weights (..., heads, n, n). The mask is for the attention; the
    other steps never look beside their own token.

    Raises TypeError or ValueError for arguments of the wrong kind or range, and for an x of another
    shape; for masks as `masked_softmax`.
    Source: Vaswani et al. (2017), section 3.1; pre-norm: Xiong et al. (2020). Chapter 9.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden_dim: int,
        *,
        norm_first: bool = False,
        activation: str = "relu",
        layer_norm_eps: float = 1e-5,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embed_dim = validate.integer("embed_dim", embed_dim)
        hidden_dim = validate.integer("hidden_dim", hidden_dim)
        eps = validate.number("layer_norm_eps", layer_norm_eps, positive=True)
        dropout = validate.probability("dropout", dropout)
        validate.one_of("activation", activation, ACTIVATIONS)
        self.norm_first = validate.flag("norm_first", norm_first)
        self.attention = MultiHeadAttention(embed_dim, num_heads, dropout=dropout)
        self.norm_1 = nn.LayerNorm(embed_dim, eps=eps)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_dim, hidden_dim),
            ACTIVATIONS[activation](),
            nn.Linear(hidden_dim, embed_dim),
        )
        self.norm_2 = nn.LayerNorm(embed_dim, eps=eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "*batch n d"], *, mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch heads n n"]]:
        validate.rows("x", x, "n", self.embed_dim, self.norm_1.weight)
        if self.norm_first:
            mixed, weights = self.attention(self.norm_1(x), mask=mask)
            x = x + self.dropout(mixed)
            return x + self.dropout(self.feed_forward(self.norm_2(x))), weights
        mixed, weights = self.attention(x, mask=mask)
        x = self.norm_1(x + self.dropout(mixed))
        return self.norm_2(x + self.dropout(self.feed_forward(x))), weights
