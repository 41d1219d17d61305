"""Linear attention, and softmax attention block by block."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import symattn as sa

from .entry import S, T, Variant, d, e, h, m, torch, variant
from .scores import attend

Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
QT, KT, VT = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)


def phi(x: Any) -> Any:
    return torch.nn.functional.elu(x) + 1


def recurrent(feature: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Causal linear attention from left to right."""

    def forward(q, k, v):
        q, k = feature(q), feature(k)
        state, total, out = q.new_zeros(q.shape[-1], v.shape[-1]), q.new_zeros(q.shape[-1]), []
        for t in range(len(q)):
            state, total = state + torch.outer(k[t], v[t]), total + k[t]
            out.append(q[t] @ state / (q[t] @ total))
        return torch.stack(out)

    return forward


def weighted(a: Any, v: Any) -> Any:
    return a @ v / a.sum(-1, keepdim=True)


@variant
def linear():
    return Variant(sa.attention.linear(Q, K, V), [Q, K, V], lambda q, k, v: weighted(phi(q) @ phi(k).mT, v))


@variant
def linear_weights_masked():
    M = sa.tensor("M", T, S, binary=True)

    def forward(q, k, v, keep):
        a = phi(q) @ phi(k).mT * keep
        return torch.stack([r @ v / r.sum() if kept.any() else 0 * r @ v for r, kept in zip(a, keep, strict=True)])

    return Variant(sa.attention.linear(Q, K, V, form="weights", mask=M), [Q, K, V], forward, data=(M,))


@variant
def linear_padded_keys():
    pad = sa.tensor("pad", S, binary=True)
    output = sa.attention.linear(QH, KH, VH, mask=pad, mask_polarity="block")

    def forward(q, k, v, out):
        return weighted(phi(q) @ phi(k[:, ~out]).mT, v[:, ~out])

    return Variant(
        output, [QH, KH, VH], forward, data=(pad,), draw={pad: lambda rng, shape: np.arange(*shape) % 3 == 1}
    )


@variant
def linear_unnormalised():
    output = sa.attention.linear(QH, KH, VH, feature=None, normalise=False)
    return Variant(output, [QH, KH, VH], lambda q, k, v: torch.einsum("htd,hsd,hse->hte", q, k, v))


@variant
def causal_linear():
    return Variant(sa.attention.causal_linear(QT, KT, VT), [QT, KT, VT], recurrent(phi))


@variant
def causal_linear_states():
    return Variant(sa.attention.causal_linear(QT, KT, VT, form="state"), [QT, KT, VT], recurrent(phi))


@variant
def performer():
    W = sa.tensor("W", m, d)

    def features(x, w):
        x = x / x.shape[-1] ** 0.25
        return torch.exp(x @ w.T) * torch.exp(-x.square().sum(-1, keepdim=True) / 2)

    output = sa.attention.linear(Q, K, V, feature=lambda x: sa.attention.performer_features(x, W))
    return Variant(output, [Q, K, V, W], lambda q, k, v, w: weighted(features(q, w) @ features(k, w).T, v))


def torch_taylor(q: Any, k: Any, v: Any) -> Any:
    z = q @ k.mT / math.sqrt(q.shape[-1])
    return weighted(1 + z + z.square() / 2, v)


@variant
def taylor():
    return Variant(sa.attention.taylor(QH, KH, VH), [QH, KH, VH], torch_taylor)


@variant
def taylor_state():
    output = sa.attention.linear(Q, K, V, feature=sa.attention.taylor_features)
    return Variant(output, [Q, K, V], torch_taylor)


def torch_cosformer(q: Any, k: Any, v: Any) -> Any:
    i, j = (torch.arange(x.shape[-2], dtype=x.dtype) for x in (q, k))
    angle = math.pi / 2 * (i[:, None] - j) / max(len(i), len(j))
    a = torch.relu(q) @ torch.relu(k).mT * torch.cos(angle)
    return a @ v / a.sum(-1, keepdim=True).clamp_min(1e-6)


@variant
def cosformer():
    return Variant(sa.attention.cosformer(QH, KH, VH), [QH, KH, VH], torch_cosformer)


@variant
def cosformer_state():
    return Variant(sa.attention.cosformer(QT, KT, VT, form="state"), [QT, KT, VT], torch_cosformer)


@variant
def blockwise():
    blocks = [(sa.tensor(f"K_{b}", n, d), sa.tensor(f"V_{b}", n, e)) for b, n in ((1, S), (2, 2), (3, 3))]
    keys, values = zip(*blocks, strict=True)

    def forward(q, k_1, k_2, k_3, v_1, v_2, v_3):
        return attend(q, torch.cat([k_1, k_2, k_3]), torch.cat([v_1, v_2, v_3]))

    return Variant(sa.attention.blockwise(Q, keys, values), [Q, *keys, *values], forward)


@variant
def blockwise_scaled():
    tau = sa.tensor("tau", positive=True)
    blocks = [(sa.tensor(f"K_{b}", h, n, d), sa.tensor(f"V_{b}", h, n, e)) for b, n in ((1, S), (2, 2))]
    keys, values = zip(*blocks, strict=True)

    def forward(q, k_1, k_2, v_1, v_2, tau):
        return attend(q, torch.cat([k_1, k_2], 1), torch.cat([v_1, v_2], 1), scale=tau)

    return Variant(sa.attention.blockwise(QH, keys, values, scale=tau), [QH, *keys, *values, tau], forward)
