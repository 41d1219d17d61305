"""Delta rules: states that forget what they are about to write over, in one formula by the inverse of a triangle."""

from __future__ import annotations

from typing import Any

import symattn as sa
from symattn import attention

from .asked import (
    K_ALL,
    Q_ALL,
    S_0,
    START,
    V_ALL,
    Asked,
    B,
    G,
    K,
    Q,
    T,
    Table,
    V,
    b,
    beta,
    blocks,
    by,
    d,
    g,
    in_a_row,
)

RATES = sa.tensor("beta", B * b)


def delta(S: Any, read: Any) -> Any:
    rate, q, k, v = read
    S = S + sa.outer(k, rate * (v - k @ S))
    return S, q @ S


def gated(S: Any, read: Any) -> Any:
    decay, *others = read
    return delta(decay * S, others)


def gated_features(S: Any, read: Any) -> Any:
    decay, *others = read
    return delta(decay[:, None] * S, others)


def solved(overlaps: Any, right: Any, rates: Any = beta) -> Any:
    """What is written at each step, where each looks at what was written before."""
    size = overlaps.shape[-1]
    return sa.inv(sa.eye(size) + sa.tril(rates[:, None] * overlaps, -1)) @ (rates[:, None] * right)


def run(step: Any, *sequences: Any, start: Any = START) -> Any:
    return sa.scan(step, start, sequences)


WRITTEN = solved(K @ K.T, V)
DECAY, DECAYS = attention.decay_matrix(g), attention.decay_matrix(G.T)


def outputs() -> Asked:
    whole = attention.delta_rule(Q, K, V, beta)
    return Asked(run(delta, beta, Q, K, V)[1], whole, by(K.T @ WRITTEN, whole))


def gated_outputs() -> Asked:
    whole = attention.gated_delta_rule(Q, K, V, g, beta)
    final = K.T @ (DECAY[-1][:, None] * solved(K @ K.T * DECAY, V))
    return Asked(run(gated, sa.exp(g), beta, Q, K, V)[1], whole, by(final, whole))


def kimi_outputs() -> Asked:
    whole = attention.kimi_delta(Q, K, V, G, beta)
    final = (K * DECAYS[:, -1].T).T @ solved(sa.einsum("in,jn,nij->ij", K, K, DECAYS), V)
    return Asked(run(gated_features, sa.exp(G), beta, Q, K, V)[1], whole, by(final, whole))


def backwards() -> Asked:
    """From the last step to the first one, with nothing said of the state."""
    _, rows = sa.scan(delta, START, (beta, Q, K, V), reverse=True)
    turned = (sa.flip(x, 0) for x in (Q, K, V, beta))
    return Asked(rows, sa.flip(attention.delta_rule(*turned), 0))


def of_values_by_keys() -> Asked:
    """With the state the other way round, with nothing said of it."""

    def step(S: Any, read: Any) -> Any:
        rate, q, k, v = read
        S = S + sa.outer(rate * (v - S @ k), k)
        return S, S @ q

    return Asked(run(step, beta, Q, K, V, start=START.T)[1], attention.delta_rule(Q, K, V, beta))


def from_a_state() -> Asked:
    """What is written is U - W S_0."""
    whole = S_0 + K.T @ (WRITTEN - solved(K @ K.T, K) @ S_0)
    return Asked(run(delta, beta, Q, K, V, start=S_0)[0], whole)


def descent() -> Asked:
    """A step of gradient descent on half the squared error of the state as a map from keys to values."""

    def descend(S: Any, read: Any) -> Any:
        rate, k, v = read
        error = k @ S - v
        return S - rate * sa.gradient(sa.sum(error * error) / 2, [S])[S], None

    return Asked(run(descend, beta, K, V)[0], K.T @ WRITTEN)


def without_beta(final: Any) -> Asked:
    return Asked(run(delta, beta, Q, K, V)[0], final, verdict="refuted")


def chunk(R: Any, read: Any) -> Any:
    """The writings of a chunk by those before, and its outputs."""
    rate, q, k, v = read
    u = solved(k @ k.T, v, rate) - solved(k @ k.T, k, rate) @ R
    return R + k.T @ u, q @ R + sa.tril(q @ k.T) @ u


IN_CHUNKS = K_ALL.T @ solved(K_ALL @ K_ALL.T, V_ALL, RATES)


def in_chunks() -> Asked:
    _, O = run(chunk, *blocks(RATES, Q_ALL, K_ALL, V_ALL))
    whole = attention.delta_rule(Q_ALL, K_ALL, V_ALL, RATES)
    return Asked(in_a_row(O), whole, by(IN_CHUNKS, *blocks(whole)))


def gated_in_chunks() -> Asked:
    logs = sa.tensor("g", B * b)

    def step(R: Any, read: Any) -> Any:
        g, rate, q, k, v = read
        D, sums = attention.decay_matrix(g), sa.cumsum(g)
        fades = sa.exp(sums)[:, None]
        u = solved(k @ k.T * D, v, rate) - solved(k @ k.T * D, fades * k, rate) @ R
        out = fades * (q @ R) + (q @ k.T * D) @ u
        return sa.exp(sums[-1]) * R + k.T @ (D[-1][:, None] * u), out

    _, O = run(step, *blocks(logs, RATES, Q_ALL, K_ALL, V_ALL))
    whole = attention.gated_delta_rule(Q_ALL, K_ALL, V_ALL, logs, RATES)
    D = attention.decay_matrix(logs)
    final = K_ALL.T @ (D[-1][:, None] * solved(K_ALL @ K_ALL.T * D, V_ALL, RATES))
    return Asked(in_a_row(O), whole, by(final, *blocks(whole)))


def rwkv7() -> Asked:
    """S (diag(w) - k a k^T) + k v^T, with a rate for each feature and a direction of its own."""
    Z, A = sa.tensor("Z", T, d), sa.tensor("A", T, d)  # directions, and these times the rates

    def step(S: Any, read: Any) -> Any:
        decay, z, a, r, k, v = read
        S = decay[:, None] * S - sa.outer(a, z @ S) + sa.outer(k, v)
        return S, r @ S

    _, O = run(step, sa.exp(G), Z, A, Q, K, V)
    earlier = Z * sa.exp(-G)  # z looks at the state before it decays

    def seen(left: Any, right: Any) -> Any:
        return sa.einsum("in,jn,nij->ij", left, right, DECAYS)

    read = sa.inv(sa.eye(T) + sa.tril(seen(earlier, A), -1)) @ (sa.tril(seen(earlier, K), -1) @ V)
    whole = sa.tril(seen(Q, K)) @ V - sa.tril(seen(Q, A)) @ read
    last = DECAYS[:, -1].T
    return Asked(O, whole, by((K * last).T @ V - (A * last).T @ read, whole))


TABLE: Table = {
    "delta rule: the state": lambda: Asked(run(delta, beta, Q, K, V)[0], K.T @ WRITTEN),
    "delta rule: outputs": outputs,
    "delta rule: from a state": from_a_state,
    "delta rule: as gradient descent": descent,
    "delta rule: the state in chunks": lambda: Asked(run(chunk, *blocks(RATES, Q_ALL, K_ALL, V_ALL))[0], IN_CHUNKS),
    "delta rule: in chunks": in_chunks,
    "delta rule: with the diagonal": lambda: without_beta(
        K.T @ sa.inv(sa.eye(T) + sa.tril(beta[:, None] * (K @ K.T))) @ (beta[:, None] * V)
    ),
    "delta rule: that is gated": lambda: Asked(
        run(delta, beta, Q, K, V)[1], attention.gated_delta_rule(Q, K, V, g, beta), verdict="refuted"
    ),
    "gated delta rule: outputs": gated_outputs,
    "gated delta rule: by unit queries": lambda: gated_outputs()._replace(by=None),
    "gated delta rule: in chunks": gated_in_chunks,
    "delta rule with gated features": kimi_outputs,
    "delta rule with gated features: by unit queries": lambda: kimi_outputs()._replace(by=None),
    "delta rule: backwards": backwards,
    "delta rule: a state of values by keys": of_values_by_keys,
    "delta rule with another direction": rwkv7,
}
