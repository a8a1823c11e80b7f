"""Attention by hand: the small library behind the book's chapters."""

__version__ = "1.0.0"  # pyproject.toml reads it from here

from attn_helpers.attention import (
    AdditiveAttention,
    attention,
    causal_mask,
    dot_product_scores,
    length_mask,
    masked_softmax,
)
from attn_helpers.data import NOISE, SENTENCE, noisy_curve, operators, true_curve
from attn_helpers.heads import MultiHeadAttention, SelfAttention
from attn_helpers.positions import SinusoidalEncoding, rotary, sinusoidal_encoding
