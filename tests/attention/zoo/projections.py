"""Projections of tokens, one or several products, and attention of a sequence to itself or to another."""

from __future__ import annotations

import symattn as sa

from .entry import SIZES, D, S, T, Variant, d, e, f, h, variant
from .scores import M, attend

X, Y = sa.tensor("X", T, D), sa.tensor("Y", S, f)
W_q, W_k, W_v = sa.tensor("W_q", D, d), sa.tensor("W_k", D, d), sa.tensor("W_v", D, e)
U_k, U_v = sa.tensor("W_k", f, d), sa.tensor("W_v", f, e)


def by_head(x, heads):
    """The usual view and transpose."""
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


@variant
def self_attention():
    def torch_self(x, wq, wk, wv):
        return attend(x @ wq, x @ wk, x @ wv)

    return Variant(sa.attention.self_attention(X, W_q, W_k, W_v), [X, W_q, W_k, W_v], torch_self)


@variant
def cross_attention():
    def torch_cross(x, y, wq, wk, wv, keep):
        return attend(x @ wq, y @ wk, y @ wv, keep)

    output = sa.attention.cross_attention(X, Y, W_q, U_k, U_v, mask=M)
    return Variant(output, [X, Y, W_q, U_k, U_v], torch_cross, data=(M,))


@variant
def fused_projection():
    """Three blocks of different widths, without heads."""
    W = sa.tensor("W_qkv", D, 2 * d + e)

    def torch_fused(x, w):
        return attend(*(x @ w).split([SIZES[d], SIZES[d], SIZES[e]], -1))

    parts = sa.attention.fused_projection(X, W, widths=(d, d, e))
    return Variant(sa.attention.scaled_dot_product(*parts), [X, W], torch_fused)


@variant
def fused_projection_heads():
    """Three equal blocks, each of which is divided among heads: GPT-2."""
    W = sa.tensor("W_qkv", D, 3 * h * d)

    def torch_fused(x, w):
        return attend(*(by_head(part, SIZES[h]) for part in (x @ w).chunk(3, -1)))

    parts = sa.attention.fused_projection(X, W, heads=h)
    return Variant(sa.attention.scaled_dot_product(*parts), [X, W], torch_fused)


@variant
def fused_projection_per_head():
    """The query, key and value of a head side by side: GPT-NeoX."""
    W = sa.tensor("W_qkv", D, 3 * h * d)

    def torch_fused(x, w):
        return attend(*by_head(x @ w, SIZES[h]).chunk(3, -1))

    parts = sa.attention.fused_projection(X, W, heads=h, order="per-head")
    return Variant(sa.attention.scaled_dot_product(*parts), [X, W], torch_fused)
