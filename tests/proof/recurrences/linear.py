"""Linear attention: as it stands, with decays and gates, in chunks, for heads and groups."""

from __future__ import annotations

from typing import Any

import sympy

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
    X,
    a,
    b,
    beta,
    blocks,
    by,
    d,
    e,
    g,
    gamma,
    h,
    in_a_row,
)

CAUSAL = sa.tril(Q @ K.T) @ V
DECAY = attention.decay_matrix(g)
SSD = attention.decay_matrix(sa.log(a))


def linear(S: Any, read: Any) -> Any:
    q, k, v = read
    S = S + sa.outer(k, v)
    return S, q @ S


def decayed(S: Any, read: Any) -> Any:
    """By a number at each step."""
    decay, q, k, v = read
    S = decay * S + sa.outer(k, v)
    return S, q @ S


def diagonal(S: Any, read: Any) -> Any:
    """By a number for each feature of the keys."""
    decay, q, k, v = read
    S = decay[:, None] * S + sa.outer(k, v)
    return S, q @ S


def run(step: Any, *sequences: Any, start: Any = START) -> Any:
    return sa.scan(step, start, sequences)


def normalised() -> Asked:
    def step(state: Any, read: Any) -> Any:
        (S, n), (q, k, v) = state, read
        S, n = S + sa.outer(k, v), n + k
        return (S, n), q @ S / (q @ n)

    _, O = sa.scan(step, (START, sa.zeros(d)), (sa.exp(Q), sa.exp(K), V))
    whole = attention.causal_linear(Q, K, V, feature=sa.exp)
    return Asked(O, whole, by((sa.exp(K).T @ V, sa.sum(sa.exp(K), axis=0)), whole))


def heads() -> Asked:
    Qh, Kh, Vh = sa.tensor("Q", h, T, d), sa.tensor("K", h, T, d), sa.tensor("V", h, T, e)

    def step(S: Any, read: Any) -> Any:
        q, k, v = read
        S = S + k[:, :, None] * v[:, None, :]
        return S, sa.einsum("hk,hkv->hv", q, S)

    _, O = sa.scan(step, sa.zeros(h, d, e), tuple(sa.moveaxis(x, 1, 0) for x in (Qh, Kh, Vh)))
    whole = attention.causal_linear(Qh, Kh, Vh, feature=None, normalise=False)
    return Asked(sa.moveaxis(O, 0, 1), whole, by(Kh.mT @ Vh, sa.moveaxis(whole, 1, 0)))


def padding() -> Asked:
    M = sa.tensor("M", T, binary=True)
    S, _ = run(lambda S, x: (sa.where(x[2], S + sa.outer(x[0], x[1]), S), None), K, V, M)
    return Asked(S, (K * M[:, None]).T @ V)


def backwards() -> Asked:
    _, O = sa.scan(linear, START, (Q, K, V), reverse=True)

    def seen(Q: Any, K: Any, V: Any) -> Any:
        return sa.triu(Q @ K.T) @ V

    return Asked(O, seen(Q, K, V), by(lambda Q, K, V: K.T @ V, seen))


def retained(rate: Any, late: int = 0, verdict: str = "proved") -> Asked:
    """Retention at a rate that is a number, where nobody says what the states come to."""

    def step(S: Any, read: Any) -> Any:
        q, k, v = read
        S = rate * S + sa.outer(k, v)
        return S, q @ S

    weights = sa.tril(sa.from_index((T, T), lambda i, j: rate ** (i - j + late)))
    return Asked(sa.scan(step, START, (Q, K, V))[1], (weights * (Q @ K.T)) @ V, verdict=verdict)


def gated() -> Asked:
    whole = attention.gated_linear(Q, K, V, g)
    return Asked(run(decayed, sa.exp(g), Q, K, V)[1], whole, by(K.T @ (DECAY[-1][:, None] * V), whole))


def gla(decay: Any = None, keys: Any = K) -> Asked:
    """A decay of each feature, as GLA has it."""
    logs = G if decay is None else decay
    whole = attention.gla(Q, keys, V, logs)
    final = (keys * attention.decay_matrix(logs.T)[:, -1].T).T @ V
    return Asked(run(diagonal, sa.exp(logs), Q, keys, V)[1], whole, by(final, whole))


def hgrn() -> Asked:
    """Each feature by itself: h = f h + (1 - f) c."""

    def step(h: Any, read: Any) -> Any:
        forget, candidate = read
        h = forget * h + (1 - forget) * candidate
        return h, h

    _, H = sa.scan(step, sa.zeros(d), (sa.exp(G), X))
    return Asked(H, sa.einsum("dij,jd->id", attention.decay_matrix(G.T), (1 - sa.exp(G)) * X))


def retention() -> Asked:
    whole = attention.retention(Q, K, V, gamma)
    final = K.T @ (gamma ** sa.from_index((T, 1), lambda i, _: T - 1 - i) * V)
    return Asked(run(by_rate, Q, K, V)[1], whole, by(final, whole))


def by_rate(S: Any, read: Any) -> Any:
    q, k, v = read
    S = gamma * S + sa.outer(k, v)
    return S, q @ S


def normalised_retention() -> Asked:
    """Divided by the sum of the weights, or 1 if that is larger."""

    def step(state: Any, read: Any) -> Any:
        (S, n), (q, k, v) = state, read
        S, n = gamma * S + sa.outer(k, v), gamma * n + k
        return (S, n), q @ S / sa.maximum(sa.abs(q @ n), 1)

    _, O = sa.scan(step, (START, sa.zeros(d)), (Q, K, V))
    weights = Q @ K.T * sa.tril(gamma ** sa.from_index((T, T), lambda i, j: sympy.Max(i - j, 0)))
    whole = weights @ V / sa.maximum(sa.abs(sa.sum(weights, axis=-1, keepdims=True)), 1)
    fading = gamma ** sa.from_index((T, 1), lambda i, _: T - 1 - i)
    return Asked(O, whole, by((K.T @ (fading * V), K.T @ fading[:, 0]), whole))


def mlstm() -> Asked:
    """Gates of forgetting and of taking in, and a normaliser that is at least 1."""

    def step(state: Any, read: Any) -> Any:
        (C, n), (forget, take, q, k, v) = state, read
        C, n = forget * C + take * sa.outer(k, v), forget * n + take * k
        return (C, n), q @ C / sa.maximum(sa.abs(q @ n), 1)

    _, O = sa.scan(step, (START, sa.zeros(d)), (sa.exp(g), sa.exp(beta), Q, K, V))
    taken = sa.exp(beta)[:, None]
    weights = Q @ (taken * K).T * DECAY
    whole = weights @ V / sa.maximum(sa.abs(sa.sum(weights, axis=-1, keepdims=True)), 1)
    last = DECAY[-1][:, None] * taken
    return Asked(O, whole, by((K.T @ (last * V), K.T @ last[:, 0]), whole))


def rwkv6() -> Asked:
    """The value of the step itself has a weight of its own, and the state is read before it decays."""
    u = sa.tensor("u", d)

    def step(S: Any, read: Any) -> Any:
        logs, r, k, v = read
        out = r @ (S + u[:, None] * sa.outer(k, v))
        return sa.exp(logs)[:, None] * S + sa.outer(k, v), out

    _, O = run(step, G, Q, K, V)
    D = attention.decay_matrix(G.T)
    before = sa.einsum("id,jd,dij->ij", Q * sa.exp(-G), K, D)
    whole = sa.tril(before, -1) @ V + sa.sum(Q * u * K, axis=-1, keepdims=True) * V
    return Asked(O, whole, by((K * D[:, -1].T).T @ V, whole))


def ssd(start: Any = None) -> Asked:
    final = K.T @ (SSD[-1][:, None] * V)
    if start is None:
        whole = (Q @ K.T * SSD) @ V
        return Asked(run(decayed, a, Q, K, V)[1], whole, by(final, whole))
    return Asked(run(decayed, a, Q, K, V, start=start)[0], final + sa.exp(sa.sum(sa.log(a))) * start)


def mamba2_groups() -> Asked:
    """Heads in groups that share keys and queries, each head with its own decay."""
    r = sa.sizes("r")
    A, C, N, Y = sa.tensor("A", T, h, r), sa.tensor("C", T, h, d), sa.tensor("B", T, h, d), sa.tensor("X", T, h, r, e)

    def step(S: Any, read: Any) -> Any:
        logs, c, k, v = read
        S = sa.exp(logs)[:, :, None, None] * S + k[:, None, :, None] * v[:, :, None, :]
        return S, sa.einsum("gd,grde->gre", c, S)

    _, O = sa.scan(step, sa.zeros(h, r, d, e), (A, C, N, Y))
    D = attention.decay_matrix(sa.moveaxis(A, 0, -1))
    whole = sa.einsum("igd,jgd,grij,jgre->igre", C, N, D, Y)
    return Asked(O, whole, by(sa.einsum("jgd,grj,jgre->grde", N, D[:, :, -1], Y), whole))


# --- in chunks ---


def fading(size: Any) -> Any:
    return gamma ** sa.from_index((size, 1), lambda i, _: size - 1 - i)


def retained_chunk(R: Any, read: Any) -> Any:
    q, k, v = read
    out = attention.retention(q, k, v, gamma) + gamma ** sa.from_index((b, 1), lambda i, _: i + 1) * (q @ R)
    return gamma**b * R + k.T @ (fading(b) * v), out


def retention_in_chunks() -> Asked:
    whole = attention.retention(Q_ALL, K_ALL, V_ALL, gamma)
    _, O = run(retained_chunk, *blocks(Q_ALL, K_ALL, V_ALL))
    return Asked(in_a_row(O), whole, by(K_ALL.T @ (fading(B * b) * V_ALL), *blocks(whole)))


def retained_state() -> Asked:
    R, _ = run(retained_chunk, *blocks(Q_ALL, K_ALL, V_ALL))
    return Asked(R, K_ALL.T @ (fading(B * b) * V_ALL))


def another_rate() -> Asked:
    _, O = run(retained_chunk, *blocks(Q_ALL, K_ALL, V_ALL))
    return Asked(in_a_row(O), attention.retention(Q_ALL, K_ALL, V_ALL, gamma**2), verdict="refuted")


def gated_in_chunks() -> Asked:
    """The chunks of Mamba-2."""
    logs = sa.tensor("g", B * b)

    def chunk(R: Any, read: Any) -> Any:
        g, q, k, v = read
        sums, total = sa.cumsum(g), sa.sum(g)
        out = (q @ k.T * attention.decay_matrix(g)) @ v + sa.exp(sums)[:, None] * (q @ R)
        return sa.exp(total) * R + k.T @ (sa.exp(total - sums)[:, None] * v), out

    _, O = run(chunk, *blocks(logs, Q_ALL, K_ALL, V_ALL))
    whole = attention.gated_linear(Q_ALL, K_ALL, V_ALL, logs)
    final = K_ALL.T @ (sa.exp(sa.sum(logs) - sa.cumsum(logs))[:, None] * V_ALL)
    return Asked(in_a_row(O), whole, by(final, *blocks(whole)))


def linear_in_chunks() -> Asked:
    def chunk(R: Any, read: Any) -> Any:
        q, k, v = read
        return R + k.T @ v, q @ R + sa.tril(q @ k.T) @ v

    _, O = run(chunk, *blocks(Q_ALL, K_ALL, V_ALL))
    whole = sa.tril(Q_ALL @ K_ALL.T) @ V_ALL
    return Asked(in_a_row(O), whole, by(K_ALL.T @ V_ALL, *blocks(whole)))


def from_the_end(rate: Any = 1, by_what: Any = None, whole: Any = None, verdict: str = "proved") -> Asked:
    """Linear attention or retention with the last token first."""

    def step(S: Any, read: Any) -> Any:
        q, k, v = read
        S = rate * S + sa.outer(k, v)
        return S, q @ S

    weights = sa.triu(sa.from_index((T, T), lambda i, j: sympy.sympify(rate) ** (j - i)))
    found = (weights * (Q @ K.T)) @ V if whole is None else whole
    return Asked(sa.scan(step, START, (Q, K, V), reverse=True)[1], found, by_what, verdict)


def gated_from_the_end(late: bool = False, verdict: str = "proved") -> Asked:
    """Each step forgets by a number of its own, of what is read before it: of what comes behind."""
    so_far = sa.cumsum(g) - g if not late else sa.cumsum(g)
    weights = sa.exp(so_far[None, :] - so_far[:, None])
    whole = sa.triu(weights * (Q @ K.T)) @ V
    return Asked(sa.scan(decayed, START, (sa.exp(g), Q, K, V), reverse=True)[1], whole, verdict=verdict)


TABLE: Table = {
    "backwards: by nothing": lambda: from_the_end(),
    "backwards: retention": lambda: from_the_end(sympy.Rational(1, 2)),
    "backwards: gated": gated_from_the_end,
    "backwards: by tensors": lambda: from_the_end(1, by(K.T @ V, sa.triu(Q @ K.T) @ V)),
    "backwards: the last state": lambda: Asked(sa.scan(linear, START, (Q, K, V), reverse=True)[0], K.T @ V),
    "retention at a half": lambda: retained(sympy.Rational(1, 2)),
    "retention at 9/10": lambda: retained(sympy.Rational(9, 10)),
    "growth by two": lambda: retained(2),
    "retention at exp(-1)": lambda: retained(sympy.exp(-1)),
    "retention at 0.9": lambda: retained(0.9),
    "linear: the state": lambda: Asked(run(linear, Q, K, V)[0], K.T @ V),
    "linear: outputs": lambda: Asked(run(linear, Q, K, V)[1], CAUSAL, by(K.T @ V, CAUSAL)),
    "linear: from a state": lambda: Asked(run(linear, Q, K, V, start=S_0)[0], S_0 + K.T @ V),
    "linear: all are seen": lambda: Asked(run(linear, Q, K, V)[1], Q @ K.T @ V, by(K.T @ V, Q @ K.T @ V), "refuted"),
    "linear: normalised": normalised,
    "linear: heads in front": heads,
    "linear: padded places": padding,
    "linear: backwards": backwards,
    "linear: in chunks": linear_in_chunks,
    "gated: the state": lambda: Asked(run(decayed, sa.exp(g), Q, K, V)[0], K.T @ (DECAY[-1][:, None] * V)),
    "gated: outputs": gated,
    "gated: each feature": gla,
    "gated: keys are 1 - f": lambda: gla(G, 1 - sa.exp(G)),
    "gated: no keys": hgrn,
    "gated: in chunks": gated_in_chunks,
    "retention: outputs": retention,
    "retention: normalised": normalised_retention,
    "retention: the state in chunks": retained_state,
    "retention: in chunks": retention_in_chunks,
    "retention: another rate": another_rate,
    "exponential gates": mlstm,
    "a bonus for the step itself": rwkv6,
    "state space duality": ssd,
    "state space duality from a state": lambda: ssd(S_0),
    "heads in groups": mamba2_groups,
}
