"""Recurrences of any number of positions, and averages in one pass, against loops over positions."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .decay import K, Q, V, falling
from .delta import rates, unit
from .entry import T, Variant, d, e, torch, variant


@variant
def recurrence_rwkv6():
    g, u, start = sa.tensor("g", T, d), sa.tensor("u", d), sa.tensor("S_0", d, e)

    def forward(r, k, v, g, u, state):
        out = []
        for t in range(len(r)):
            written = torch.outer(k[t], v[t])
            out.append(0.5 * r[t] @ (state + u[:, None] * written))
            state = torch.diag(torch.exp(g[t])) @ state + written
        return torch.stack(out)

    output = sa.attention.recurrence(Q, K, V, rule="rwkv6", decay=g, bonus=u, state=start, scale=0.5).output
    return Variant(output, [Q, K, V, g, u, start], forward, draw={g: falling})


@variant
def recurrence_rwkv7():
    g, beta, kappa = sa.tensor("g", T, d), sa.tensor("beta", T, d), sa.tensor("kappa", T, d)

    def forward(r, k, v, g, a, kappa):
        state, out = r.new_zeros(v.shape[-1], r.shape[-1]), []
        for t in range(len(r)):
            moved = torch.diag(torch.exp(g[t])) - torch.outer(kappa[t], a[t] * kappa[t])
            state = state @ moved + torch.outer(v[t], k[t])
            out.append(state @ r[t])
        return torch.stack(out)

    output = sa.attention.recurrence(Q, K, V, rule="rwkv7", decay=g, beta=beta, removal=kappa).output
    return Variant(output, [Q, K, V, g, beta, kappa], forward, draw={g: falling, beta: rates, kappa: unit})


@variant
def recurrence_normalised():
    g = sa.tensor("g", T)

    def forward(q, k, v, g):
        ages = torch.cumsum(g, 0)[:, None] - torch.cumsum(g, 0)
        weights = 0.5 * q @ k.T * torch.tril(torch.exp(ages))
        return weights @ v / torch.clamp(weights.sum(1, keepdim=True).abs(), min=1)

    convention = {"rule": "gated", "decay": g, "normaliser": "at_least_one", "scale": 0.5}
    return Variant(sa.attention.recurrence(Q, K, V, **convention).output, [Q, K, V, g], forward, draw={g: falling})


def averaged(average: Any) -> Any:
    return lambda x, *others: torch.stack([average(x[:t], *(y[:t] for y in others)) for t in range(1, len(x) + 1)])


@variant
def running_moments():
    _, variance = sa.attention.running(V, rule="moments").output
    return Variant(variance, [V], averaged(lambda x: x.var(0, unbiased=False)))


@variant
def running_softmax():
    z = sa.tensor("z", T)
    output = sa.attention.running(V, rule="softmax", scores=z).output
    return Variant(output, [V, z], averaged(lambda x, z: torch.softmax(z, 0) @ x))


@variant
def running_logsumexp():
    return Variant(sa.attention.running(V, rule="logsumexp").output, [V], averaged(lambda x: torch.logsumexp(x, 0)))
