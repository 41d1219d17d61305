"""Delta rules, in closed form and step by step, against loops over positions."""

from __future__ import annotations

from typing import Any

import symattn as sa

from .decay import K4, KH, Q4, QH, V4, VH, K, Q, V, falling
from .entry import T, Variant, d, e, h, torch, variant


def recurrent(q: Any, k: Any, v: Any, beta: Any, g: Any = None, scale: Any = 1, state: Any = None) -> Any:
    """Outputs and last state of a delta rule; g is the logarithm of a decay, one a position or one a channel."""
    state, out = q.new_zeros(q.shape[-1], v.shape[-1]) if state is None else state, []
    for t in range(len(q)):
        if g is not None:
            state = torch.exp(g[t]).reshape(-1, 1) * state
        state = state - beta[t] * torch.outer(k[t], k[t] @ state - v[t])
        out.append(scale * (q[t] @ state))
    return torch.stack(out), state


def unit(rng: Any, shape: Any) -> Any:
    """Keys of norm 1."""
    rows = rng.normal(size=shape)
    return rows / (rows**2).sum(-1, keepdims=True) ** 0.5


def rates(rng: Any, shape: Any) -> Any:
    return rng.uniform(0.1, 0.9, shape)


@variant
def delta_rule():
    beta = sa.tensor("beta", T)
    output = sa.attention.delta_rule(Q, K, V, beta)
    draw = {K: unit, beta: rates}
    return Variant(output, [Q, K, V, beta], lambda *x: recurrent(*x)[0], draw=draw)


@variant
def delta_rule_of_heads():
    beta = sa.tensor("beta", h, T)

    def forward(q, k, v, beta):
        return torch.stack([recurrent(*x, scale=0.5)[0] for x in zip(q, k, v, beta, strict=True)])

    output = sa.attention.delta_rule(QH, KH, VH, beta, scale=0.5)
    return Variant(output, [QH, KH, VH, beta], forward, draw={KH: unit, beta: rates})


@variant
def gated_delta_rule():
    g, beta = sa.tensor("g", T), sa.tensor("beta", T)
    forward = lambda q, k, v, g, beta: recurrent(q, k, v, beta, g)[0]  # noqa: E731
    output = sa.attention.gated_delta_rule(Q, K, V, g, beta)
    return Variant(output, [Q, K, V, g, beta], forward, draw={K: unit, beta: rates, g: falling})


@variant
def kimi_delta():
    g, beta = sa.tensor("g", T, d), sa.tensor("beta", T)
    forward = lambda q, k, v, g, beta: recurrent(q, k, v, beta, g)[0]  # noqa: E731
    output = sa.attention.kimi_delta(Q, K, V, g, beta)
    return Variant(output, [Q, K, V, g, beta], forward, draw={K: unit, beta: rates, g: falling})


@variant
def recurrence_delta():
    beta = sa.tensor("beta", 4)
    output = sa.attention.recurrence(Q4, K4, V4, rule="delta", beta=beta).output
    return Variant(output, [Q4, K4, V4, beta], lambda *x: recurrent(*x)[0], draw={K4: unit, beta: rates})


@variant
def recurrence_gated_delta_state():
    start, beta, g = sa.tensor("S_0", d, e), sa.tensor("beta", 4), sa.tensor("g", 4)
    output = sa.attention.recurrence(Q4, K4, V4, rule="gated_delta", decay=g, beta=beta, state=start, scale=0.5).state
    forward = lambda k, v, g, b, s: recurrent(k, k, v, b, g, state=s)[1]  # noqa: E731
    return Variant(output, [K4, V4, g, beta, start], forward, draw={K4: unit, beta: rates, g: falling})
