"""Similarities of queries and keys, and scales of the dot product."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .entry import S, T, Variant, d, f, h, m, r, torch, variant
from .scores import KH, QH, VH, K, M, Q, V, attend, weights

KF = sa.tensor("K", S, f)
TAUS, GAINS = sa.tensor("tau", h, positive=True), sa.tensor("g", h, positive=True)


@variant
def temperature():
    tau = sa.tensor("tau", positive=True)
    output = sa.attention.temperature(Q, K, V, tau)
    return Variant(output, [Q, K, V, tau], lambda q, k, v, t: attend(q, k, v, scale=1 / t))


@variant
def temperature_of_heads():
    def torch_temperatures(q, k, v, t):
        return torch.stack([attend(*qkv, scale=1 / one) for *qkv, one in zip(q, k, v, t, strict=True)])

    return Variant(sa.attention.temperature(QH, KH, VH, TAUS), [QH, KH, VH, TAUS], torch_temperatures)


@variant
def mup():
    return Variant(sa.attention.mup(Q, K, V), [Q, K, V], lambda q, k, v: attend(q, k, v, scale=1 / q.shape[-1]))


@variant
def scalable_softmax():
    s = sa.tensor("s")

    def torch_ssmax(q, k, v, s):
        n = torch.tensor(float(len(k)), dtype=q.dtype)
        powers = n ** (s * (q @ k.T) / q.shape[-1] ** 0.5)
        return powers / powers.sum(-1, keepdim=True) @ v

    return Variant(sa.attention.scalable_softmax(Q, K, V, s), [Q, K, V, s], torch_ssmax)


@variant
def scalable_softmax_masked():
    s = sa.tensor("s")

    def torch_ssmax(q, k, v, s, keep):
        n = keep.sum(-1, keepdim=True).clamp(min=1).to(q.dtype)
        return weights(s * torch.log(n) * (q @ k.T) / q.shape[-1] ** 0.5, keep) @ v

    return Variant(sa.attention.scalable_softmax(Q, K, V, s, mask=M), [Q, K, V, s], torch_ssmax, data=(M,))


@variant
def scalable_softmax_of_all_keys():
    s = sa.tensor("s", h)

    def torch_ssmax(q, k, v, s, keep):
        scale = s[:, None, None] * torch.log(torch.tensor(k.shape[-2], dtype=q.dtype)) * q.shape[-1] ** -0.5
        return attend(q, k, v, keep, scale=scale)

    output = sa.attention.scalable_softmax(QH, KH, VH, s, count="keys", mask=M)
    return Variant(output, [QH, KH, VH, s], torch_ssmax, data=(M,))


def network(q: Any, k: Any, v: Any, w: Any, u: Any, a: Any) -> Any:
    """Additive attention, one query at a time."""
    return torch.stack([torch.softmax(torch.tanh(row @ w + k @ u) @ a, -1) @ v for row in q])


@variant
def additive():
    given = [Q, KF, V, sa.tensor("W", d, m), sa.tensor("U", f, m), sa.tensor("a", m)]
    return Variant(sa.attention.additive(*given), given, network)


@variant
def additive_single_query():
    given = [sa.tensor("q", d), KF, V, sa.tensor("W", d, m), sa.tensor("U", f, m), sa.tensor("a", m)]
    return Variant(sa.attention.additive(*given), given, lambda q, *others: network(q[None], *others)[0])


@variant
def luong_dot():
    return Variant(sa.attention.luong_dot(Q, K, V), [Q, K, V], lambda q, k, v: attend(q, k, v, scale=1))


@variant
def luong_general():
    W = sa.tensor("W", d, f)

    def torch_general(q, k, v, w):
        return torch.softmax(torch.einsum("ta,ab,sb->ts", q, w, k), -1) @ v

    return Variant(sa.attention.luong_general(Q, KF, V, W), [Q, KF, V, W], torch_general)


@variant
def luong_concat():
    W, a = sa.tensor("W", d + f, m), sa.tensor("a", m)

    def torch_concat(q, k, v, w, a):
        pairs = torch.cat([q[:, None].expand(-1, len(k), -1), k[None].expand(len(q), -1, -1)], -1)
        return torch.softmax(torch.tanh(pairs @ w) @ a, -1) @ v

    return Variant(sa.attention.luong_concat(Q, KF, V, W, a), [Q, KF, V, W, a], torch_concat)


@variant
def low_rank_bilinear():
    A, B = sa.tensor("A", d, r), sa.tensor("B", f, r)

    def torch_bilinear(q, k, v, a, b):
        return torch.softmax(q @ (a @ b.T) @ k.T / 16, -1) @ v

    return Variant(sa.attention.low_rank_bilinear(Q, KF, V, A, B, scale=1 / 16), [Q, KF, V, A, B], torch_bilinear)


@variant
def qk_norm():
    gain_q, gain_k = sa.tensor("g_q", d), sa.tensor("g_k", d)

    def torch_qk_norm(q, k, v, a, b):
        normed = torch.nn.functional.rms_norm
        return attend(normed(q, q.shape[-1:], a, 1e-5), normed(k, k.shape[-1:], b, 1e-5), v)

    return Variant(sa.attention.qk_norm(Q, K, V, gain_q, gain_k), [Q, K, V, gain_q, gain_k], torch_qk_norm)


@variant
def qk_norm_layer():
    gain_q, gain_k = sa.tensor("g_q", d), sa.tensor("g_k", d)

    def torch_qk_norm(q, k, v, a, b):
        normed = torch.nn.functional.layer_norm
        return attend(normed(q, q.shape[-1:], a, eps=1e-6), normed(k, k.shape[-1:], b, eps=1e-6), v)

    output = sa.attention.qk_norm(QH, KH, VH, gain_q, gain_k, norm="layer", eps=1e-6)
    return Variant(output, [QH, KH, VH, gain_q, gain_k], torch_qk_norm)


@variant
def qk_norm_l2():
    g, gain_q = sa.tensor("g"), sa.tensor("g_q", d)

    def torch_qk_norm(q, k, v, g, a):
        return attend(q / q.norm(dim=-1, keepdim=True) * a, k / k.norm(dim=-1, keepdim=True), v, scale=g)

    output = sa.attention.qk_norm(Q, K, V, gain_q, norm="l2", scale=g)
    return Variant(output, [Q, K, V, g, gain_q], torch_qk_norm)


@variant
def cosine():
    def torch_cosine(q, k, v, g):
        z = g[:, None, None] * torch.nn.functional.cosine_similarity(q[:, :, None], k[:, None], dim=-1)
        return torch.softmax(z, -1) @ v

    return Variant(sa.attention.cosine(QH, KH, VH, GAINS), [QH, KH, VH, GAINS], torch_cosine)


@variant
def l2():
    def torch_l2(q, k, v):
        return torch.softmax(-(torch.cdist(q, k) ** 2) / q.shape[-1] ** 0.5, -1) @ v

    return Variant(sa.attention.l2(Q, K, V), [Q, K, V], torch_l2)


@variant
def squared_distances():
    X, Z = sa.tensor("X", T, d), sa.tensor("Z", S, d)
    return Variant(sa.attention.squared_distances(X, Z), [X, Z], lambda x, z: torch.cdist(x, z) ** 2)
