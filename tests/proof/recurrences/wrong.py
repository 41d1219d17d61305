"""False claims, and closed forms that are none: no proof is found, though nobody looks for a counterexample."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa

from . import deltas, linear, softmax
from .asked import K_ALL, START, V_ALL, Asked, K, Q, T, Table, V, a, beta, blocks, by, g, in_a_row, x, z
from .small import RATE, average, averaged, s_0
from .softmax import MINUS, WITH_LARGEST


def asked(value: Any, whole: Any, final: Any) -> Asked:
    return Asked(value, whole, by(final, whole), "unknown")


def linear_outputs(whole: Any, final: Any = K.T @ V) -> Asked:
    return asked(linear.run(linear.linear, Q, K, V)[1], whole, final)


def gated_outputs(weights: Any) -> Asked:
    last = K.T @ (linear.DECAY[-1][:, None] * V)
    return asked(linear.run(linear.decayed, sa.exp(g), Q, K, V)[1], (Q @ K.T * weights) @ V, last)


def delta_state(overlaps: Any) -> Asked:
    written = sa.inv(sa.eye(T) + overlaps) @ (beta[:, None] * V)
    state, _ = deltas.run(deltas.delta, beta, Q, K, V)
    return Asked(state, K.T @ written, verdict="unknown")


def online(old_l: Any, old_n: Any, weight: Any, start: Any) -> Asked:
    """Online softmax with other factors of what was summed, and another weight."""

    def step(state: Any, read: Any) -> Any:
        (m, l, N), (s, v) = state, read
        new = sa.maximum(m, s)
        w = weight(s, new)
        return (new, old_l(m, new) * l + w, old_n(m, new) * N + sa.exp(s - new) * v), None

    _, l, N = softmax.key_by_key(step, start)
    return Asked(N / l, sa.softmax(z) @ V, WITH_LARGEST, "unknown")


def rescaled(m: Any, new: Any) -> Any:
    return sa.exp(m - new)


def kept(m: Any, new: Any) -> Any:
    return 1


def relative(s: Any, new: Any) -> Any:
    return sa.exp(s - new)


def absolute(s: Any, new: Any) -> Any:
    return sa.exp(s)


def chunked(without_inverse: bool, diagonal: int) -> Asked:
    """The chunked delta rule with something left out."""

    def step(R: Any, read: Any) -> Any:
        rate, q, k, v = read
        kept = rate[:, None] * k if without_inverse else deltas.solved(k @ k.T, k, rate)
        u = deltas.solved(k @ k.T, v, rate) - kept @ R
        return R + k.T @ u, q @ R + sa.tril(q @ k.T, diagonal) @ u

    asked = deltas.in_chunks()
    _, O = deltas.run(step, *blocks(deltas.RATES, deltas.Q_ALL, K_ALL, V_ALL))
    return asked._replace(left=in_a_row(O), verdict="unknown")


def started() -> Asked:
    """The largest of all and 0 is not the largest of all."""
    m, _, _ = softmax.key_by_key(softmax.online(), 0)
    return Asked(m, sa.max(z), WITH_LARGEST, "unknown")


def sums_of_blocks() -> Asked:
    """The first of each block alone."""
    state, _ = sa.scan(lambda S, x: (S + sa.outer(x[0][0], x[1][0]), None), START, blocks(K_ALL, V_ALL))
    return Asked(state, K_ALL.T @ V_ALL, verdict="unknown")


STRICT = sa.tril(Q @ K.T, -1) @ V
OVERLAPS = beta[:, None] * (K @ K.T)
TABLE: Table = {
    "backwards: as if forwards": lambda: linear.from_the_end(1, by(K.T @ V, linear.CAUSAL), linear.CAUSAL, "unknown"),
    "backwards: without the step itself": lambda: linear.from_the_end(1, None, sa.triu(Q @ K.T, 1) @ V, "unknown"),
    "backwards: a decay of another step": lambda: linear.gated_from_the_end(True, "unknown"),
    "retention at a half, a step late": lambda: linear.retained(sympy.Rational(1, 2), 1, "unknown"),
    "growth by two, a step early": lambda: linear.retained(2, -1, "unknown"),
    "without the step itself": lambda: linear_outputs(STRICT),
    "with what is to come": lambda: linear_outputs(Q @ K.T @ V),
    "only what is to come": lambda: linear_outputs(sa.triu(Q @ K.T) @ V),
    "the state twice": lambda: Asked(linear.run(linear.linear, Q, K, V)[0], 2 * K.T @ V, verdict="unknown"),
    "another state": lambda: linear_outputs(linear.CAUSAL, 2 * K.T @ V),
    "a decay too many": lambda: Asked(
        linear.run(linear.decayed, sa.exp(g), Q, K, V)[0],
        K.T @ ((linear.DECAY[-1] * sa.exp(g))[:, None] * V),
        verdict="unknown",
    ),
    "a decay too few": lambda: gated_outputs(linear.DECAY * sa.exp(-g)[:, None]),
    "a decay of another step": lambda: gated_outputs(linear.DECAY * sa.exp(g)[None, :]),
    "delta with the diagonal": lambda: delta_state(sa.tril(OVERLAPS)),
    "delta without rates": lambda: delta_state(sa.tril(K @ K.T, -1)),
    "delta with rates of keys": lambda: delta_state(sa.tril((K @ K.T) * beta[None, :], -1)),
    "delta that adds": lambda: delta_state(-sa.tril(OVERLAPS, -1)),
    "the sum is not rescaled": lambda: online(kept, rescaled, relative, MINUS),
    "the sum is not rescaled, from 0": lambda: online(kept, rescaled, relative, 0),
    "the values are not rescaled": lambda: online(rescaled, kept, relative, MINUS),
    "the values are not rescaled, from 0": lambda: online(rescaled, kept, relative, 0),
    "a weight without reference": lambda: online(rescaled, rescaled, absolute, MINUS),
    "a weight without reference, from 0": lambda: online(rescaled, rescaled, absolute, 0),
    "the largest, from 0": started,
    "an average a step late": lambda: Asked(averaged(RATE)[0], average(RATE, 1), verdict="unknown"),
    "an average by a size": lambda: Asked(
        averaged(RATE)[0], average(RATE) + (sa.abs(RATE * sa.ones()) ** T - RATE**T) * s_0, verdict="unknown"
    ),
    "chunks without an inverse": lambda: chunked(True, 0),
    "chunks without the diagonal": lambda: chunked(False, -1),
    "one of each block": sums_of_blocks,
    "a product as a sum": lambda: Asked(
        sa.scan(lambda s, x: (s * x, None), 1, a)[0], 1 + sa.sum(sa.log(a)), verdict="unknown"
    ),
    "agrees up to 5": lambda: Asked(
        sa.scan(lambda s, x: (s + 1, None), 0, x)[0],
        (T + (T - 1) * (T - 2) * (T - 3) * (T - 4) * (T - 5)) * sa.ones(),
        verdict="unknown",
    ),
}
