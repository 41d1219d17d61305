"""Attention as it is published: scores, masks, positions, heads, normalisers, linear forms, norms and blocks.

Every function composes operations of symattn and names its intermediates, so that what it returns prints,
differentiates, compiles and is proved like anything else. Conventions on which implementations differ are keywords.
"""
# ruff: noqa: F401  what is imported here is what there is

from __future__ import annotations

from ..language import attach as _attach  # operators and printing come with any tensor
from ..ops.classes import one_hot
from .biases import (
    alibi,
    alibi_slopes,
    fire,
    kerple,
    log_cpb,
    relative_rows,
    sandwich,
    shaw,
    t5_bias,
    t5_bucket,
    transformer_xl,
)
from .blocks import gelu_tanh, glu, mlp, post_norm_block, pre_norm_block, swiglu
from .blockwise import blockwise
from .decay import decay_matrix, forgetting, gated_linear, gla, retention
from .delta import delta_rule, gated_delta_rule, kimi_delta
from .dot_product import attention_pooling, capped, probabilities, scaled_dot_product, scores, weights
from .gpt2 import gpt, gpt_parameters, parameter_count
from .heads import (
    differential,
    differential_lambda,
    differential_v2,
    gated,
    grouped_query,
    lambda_init,
    multi_head,
    multi_query,
    talking_heads,
)
from .kernels import aft, average_pooling, compatibility, hopfield, kernel_regression, kernel_regression_dot
from .latent import latent, latent_absorbed
from .linear_forms import (
    causal_linear,
    cosformer,
    elu_plus_one,
    linear,
    normalised,
    performer_features,
    taylor,
    taylor_features,
)
from .losses import cross_entropy, log_softmax
from .masks import (
    as_bias,
    causal_mask,
    dilated_mask,
    document_mask,
    global_mask,
    key_padding_mask,
    prefix_mask,
    sliding_window_mask,
)
from .normalisers import (
    entmax15_attention,
    relu_attention,
    sigmoid_attention,
    sink,
    softmax1,
    softpick,
    sparsemax_attention,
)
from .norms import group_norm, l2_norm, layer_norm, layer_norm_statistics, rms_norm
from .positions import embed, rotary, rotate, sinusoidal, yarn_frequencies, yarn_scale
from .projections import cross_attention, fused_projection, merge_heads, project, self_attention, split_heads
from .recurrences import chunked_retention, recurrence
from .running import running
from .similarities import (
    additive,
    cosine,
    l2,
    low_rank_bilinear,
    luong_concat,
    luong_dot,
    luong_general,
    mup,
    qk_norm,
    scalable_softmax,
    squared_distances,
    temperature,
)

__all__ = sorted(name for name, value in vars().items() if callable(value) and not name.startswith("_"))
