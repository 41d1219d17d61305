"""Scaled dot products, and what is done to their scores."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .entry import S, T, Variant, d, e, h, torch, variant

Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
M = sa.tensor("M", T, S, binary=True)


def weights(z: Any, keep: Any = None) -> Any:
    """A softmax over the keys that are kept; a row without any is zero."""
    if keep is None:
        return torch.softmax(z, -1)
    z = z.masked_fill(~keep, -torch.inf)
    return torch.where(keep.any(-1, keepdim=True), torch.softmax(z.masked_fill(~keep.any(-1, keepdim=True), 0), -1), 0)


def attend(q: Any, k: Any, v: Any, keep: Any = None, bias: Any = 0, scale: Any = None) -> Any:
    """Attention as PyTorch users write it."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return weights(q @ k.mT * scale + bias, keep) @ v


@variant
def scaled_dot_product():
    return Variant(sa.attention.scaled_dot_product(Q, K, V), [Q, K, V], attend)


@variant
def scaled_dot_product_masked():
    return Variant(sa.attention.scaled_dot_product(Q, K, V, mask=M), [Q, K, V], attend, data=(M,))


@variant
def single_query():
    q = sa.tensor("q", d)
    return Variant(sa.attention.scaled_dot_product(q, K, V), [q, K, V], lambda q, k, v: attend(q[None], k, v)[0])


@variant
def softcap():
    def torch_softcap(q, k, v):
        return torch.softmax(1.5 * torch.tanh(q @ k.mT * q.shape[-1] ** -0.5 / 1.5), -1) @ v

    return Variant(sa.attention.scaled_dot_product(QH, KH, VH, softcap=1.5), [QH, KH, VH], torch_softcap)
