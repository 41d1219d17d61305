"""Attention that forgets, against loops over positions."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa

from .entry import S, T, Variant, d, e, h, torch, variant

Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e)
QH, KH, VH = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, e)
Q4, K4, V4 = sa.tensor("Q", 4, d), sa.tensor("K", 4, d), sa.tensor("V", 4, e)


def recurrent(q: Any, k: Any, v: Any, g: Any = None, scale: Any = 1, state: Any = None) -> Any:
    """Outputs and last state of linear attention; g is the logarithm of a decay, one a position or one a channel."""
    state, out = q.new_zeros(q.shape[-1], v.shape[-1]) if state is None else state, []
    for t in range(len(q)):
        if g is not None:
            state = torch.exp(g[t]).reshape(-1, 1) * state
        state = state + torch.outer(k[t], v[t])
        out.append(scale * (q[t] @ state))
    return torch.stack(out), state


def falling(rng: Any, shape: Any) -> Any:
    """Logarithms of decays between 0 and 1."""
    return -abs(rng.normal(size=shape))


@variant
def forgetting():
    gates = sa.tensor("f", h, T)

    def forward(q, k, v, gates):
        rows = []
        for i in range(q.shape[1]):
            kept = [torch.nn.functional.logsigmoid(gates[:, j + 1 : i + 1]).sum(1) for j in range(i + 1)]
            z = torch.einsum("hd,hjd->hj", q[:, i], k[:, : i + 1]) / q.shape[-1] ** 0.5 + torch.stack(kept, 1)
            rows.append(torch.einsum("hj,hjv->hv", torch.softmax(z, -1), v[:, : i + 1]))
        return torch.stack(rows, 1)

    return Variant(sa.attention.forgetting(QH, KH, VH, gates), [QH, KH, VH, gates], forward)


@variant
def forgetting_masked():
    gates, M = sa.tensor("f", T), sa.tensor("M", T, T, binary=True)

    def forward(q, k, v, gates, keep):
        c = torch.nn.functional.logsigmoid(gates).cumsum(0)
        z = 0.7 * q @ k.T + c[:, None] - c
        keep = (keep & torch.ones_like(keep).tril()).to(z.dtype)
        e = torch.exp(z) * keep
        return e @ v / (e.sum(1, keepdim=True) + (keep.sum(1, keepdim=True) == 0))

    output = sa.attention.forgetting(Q, K, V, gates, scale=0.7, mask=M)
    return Variant(output, [Q, K, V, gates], forward, data=(M,))


@variant
def retention():
    gamma = sa.tensor("gamma", positive=True)

    def forward(q, k, v, gamma):
        return recurrent(q, k, v, gamma.log().expand(len(q)))[0]

    return Variant(sa.attention.retention(Q, K, V, gamma), [Q, K, V, gamma], forward)


@variant
def retention_of_heads():
    gamma = sa.tensor("gamma", h, positive=True)

    def forward(q, k, v, gamma):
        one = [recurrent(*x, c.log().expand(len(x[0])), 0.5)[0] for *x, c in zip(q, k, v, gamma, strict=True)]
        return torch.stack(one)

    output = sa.attention.retention(QH, KH, VH, gamma, scale=0.5)
    return Variant(output, [QH, KH, VH, gamma], forward)


@variant
def chunked_retention():
    sizes, gamma = ((1, T), (2, S)), sa.tensor("gamma", positive=True)
    Qs, Ks, Vs = ([sa.tensor(f"{name}_{b}", n, w) for b, n in sizes] for name, w in (("Q", d), ("K", d), ("V", e)))

    def forward(q_1, q_2, k_1, k_2, v_1, v_2, gamma):
        q, k, v = torch.cat([q_1, q_2]), torch.cat([k_1, k_2]), torch.cat([v_1, v_2])
        return recurrent(q, k, v, gamma.log().expand(len(q)))[0]

    draw = {gamma: lambda rng, shape: rng.uniform(0.7, 1, shape)}
    output = sa.attention.chunked_retention(Qs, Ks, Vs, gamma)
    return Variant(output, [*Qs, *Ks, *Vs, gamma], forward, draw=draw)


@variant
def gated_linear():
    g = sa.tensor("g", h, T)

    def forward(q, k, v, g):
        return torch.stack([recurrent(*x)[0] for x in zip(q, k, v, g, strict=True)])

    return Variant(sa.attention.gated_linear(QH, KH, VH, g), [QH, KH, VH, g], forward, draw={g: falling})


def per_channel(**convention: Any) -> Variant:
    g = sa.tensor("g", T, d)
    forward = lambda q, k, v, g: recurrent(q, k, v, g, q.shape[-1] ** -0.5)[0]  # noqa: E731
    output = sa.attention.gla(Q, K, V, g, scale=1 / sympy.sqrt(d), **convention)
    return Variant(output, [Q, K, V, g], forward, draw={g: falling})


@variant
def gla():
    return per_channel()


@variant
def gla_factored():
    return per_channel(form="factored")


@variant
def recurrence_linear():
    start = sa.tensor("S_0", d, e)
    output = sa.attention.recurrence(Q4, K4, V4, state=start).output
    return Variant(output, [Q4, K4, V4, start], lambda q, k, v, s: recurrent(q, k, v, state=s)[0])


@variant
def recurrence_gated():
    g = sa.tensor("g", 4, d)
    output = sa.attention.recurrence(Q4, K4, V4, rule="gated", decay=g, scale=0.5).output
    return Variant(output, [Q4, K4, V4, g], lambda q, k, v, g: recurrent(q, k, v, g, 0.5)[0], draw={g: falling})
