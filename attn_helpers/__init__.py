"""Attention by hand: the small library behind the book's chapters."""

__version__ = "1.0.0"  # pyproject.toml reads it from here

from attn_helpers import _versions

_versions.check()  # before anything imports what it checks

from attn_helpers.attention import (
    AdditiveAttention,
    attention,
    causal_mask,
    dot_product_scores,
    length_mask,
    masked_softmax,
)
from attn_helpers.checks.comparison import (
    check_attention_cost,
    check_bidirectional,
    check_conv_layers,
)
from attn_helpers.checks.lookup import check_are_weights, check_hard_weights, check_soft_lookup
from attn_helpers.checks.multi_head import (
    check_head_contributions,
    check_multi_head,
    check_split_heads,
    check_torch_mask,
)
from attn_helpers.checks.operators import check_crew_weights, check_prediction, check_standardise
from attn_helpers.checks.positions import (
    check_add_positions,
    check_rotary_attention,
    check_shift,
    check_sinusoidal,
)
from attn_helpers.checks.regression import (
    check_boxcar_weights,
    check_kernel_regression,
    check_learned_bandwidth,
    check_leave_one_out,
)
from attn_helpers.checks.scoring import (
    check_additive_scores,
    check_bandwidth,
    check_masked_weights,
    check_scaled_scores,
)
from attn_helpers.checks.self_attention import (
    check_column_attention,
    check_look_back,
    check_self_attention,
)
from attn_helpers.checks.trained import (
    check_attention_distance,
    check_contribution,
    check_sentence_vector,
    check_sharpen,
)
from attn_helpers.checks.transformer import (
    check_cross_attention,
    check_encoder_block,
    check_layer_norm,
)
from attn_helpers.data import NOISE, SENTENCE, noisy_curve, operators, true_curve
from attn_helpers.encoder import EncoderBlock
from attn_helpers.explorer import explore, progress
from attn_helpers.heads import MultiHeadAttention, SelfAttention
from attn_helpers.kernels import KERNELS, NadarayaWatson, nadaraya_watson
from attn_helpers.measure import best_time, measured, multiply_adds, parameter_count
from attn_helpers.plots import plot_heatmap, plot_heatmaps
from attn_helpers.positions import SinusoidalEncoding, rotary, sinusoidal_encoding
from attn_helpers.trained import load_trained_encoder
from attn_helpers.views import (
    Arithmetic,
    Bars,
    Curve,
    Heatmap,
    Histogram,
    Lines,
    Points,
    Readout,
    picture,
)
