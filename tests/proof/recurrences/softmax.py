"""Softmax attention: online, by blocks as FlashAttention has it, forwards and backwards, and merged from parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

import symattn as sa

from .asked import K_ALL, V_ALL, Asked, B, S, Table, V, b, blocks, by, d, e, h, in_a_row, z

MINUS = -sympy.oo
SCALE = 1 / sympy.sqrt(d)
Qs, dO = sa.tensor("Q", S, d), sa.tensor("dO", S, e)
BIAS, ALLOWED = sa.tensor("A", S, B * b), sa.tensor("M", S, B * b, binary=True)
CAUSAL = sa.from_index((S, B * b), lambda i, j: j <= i)
SCORES = Qs @ K_ALL.T * SCALE
NONE, EMPTY, ZEROS = sa.from_index((S,), lambda i: MINUS), sa.zeros(S), sa.zeros(S, e)
Reference = Callable[[Any, Any], Any]


# --- key by key ---


def online(reference: Reference = sa.maximum) -> Any:
    def step(state: Any, read: Any) -> Any:
        (m, l, N), (s, v) = state, read
        new = reference(m, s)
        old, weight = sa.exp(m - new), sa.exp(s - new)
        return (new, old * l + weight, old * N + weight * v), None

    return step


def key_by_key(step: Any, start: Any) -> tuple[Any, ...]:
    final, _ = sa.scan(step, (start, 0, sa.zeros(e)), (z, V))
    return final


LARGEST = sa.exp(z - sa.max(z))
WITH_LARGEST = by((sa.max(z), sa.sum(LARGEST), LARGEST @ V))
RELATIVE = by(lambda m, z, V: (None, sa.sum(sa.exp(z - m)), sa.exp(z - m) @ V), free=0)


def softmax_by(reference: Reference, start: Any, how: Any = RELATIVE) -> Asked:
    _, l, N = key_by_key(online(reference), start)
    return Asked(N / l, sa.softmax(z) @ V, how)


def logsumexp_by(how: Any) -> Asked:
    m, l, _ = key_by_key(online(), MINUS)
    return Asked(m + sa.log(l), sa.logsumexp(z), how)


def forgetful(state: Any, read: Any) -> Any:
    (m, l, N), (s, v) = state, read
    new = sa.maximum(m, s)
    old, weight = sa.exp(m - new), sa.exp(s - new)
    return (new, old * l + weight, N + weight * v), None


def forgotten() -> Asked:
    _, l, N = key_by_key(forgetful, MINUS)
    return Asked(N / l, sa.softmax(z) @ V, RELATIVE, "refuted")


def sink() -> Asked:
    """One more score, of 0, whose value is 0."""
    final, _ = sa.scan(online(), (0, 1, sa.zeros(e)), (z, V))

    def closed(m: Any, z: Any, V: Any) -> Any:
        return None, sa.exp(-m) + sa.sum(sa.exp(z - m)), sa.exp(z - m) @ V

    return Asked(final[2] / final[1], sa.exp(z) @ V / (1 + sa.sum(sa.exp(z))), by(closed, free=0))


def logarithms() -> Asked:
    """The logarithms of running sums of exponentials, each from the one before."""

    def step(m: Any, s: Any) -> Any:
        new = sa.log(sa.exp(m) + sa.exp(s))
        return new, new

    first = sa.tensor("s")
    _, out = sa.scan(step, first, z)
    whole = sa.log(sa.exp(first) + sa.cumsum(sa.exp(z)))
    return Asked(out, whole, by(whole[-1], whole))


# --- block by block ---


def flash(scores: Callable[..., Any], reference: Reference = sa.maximum) -> Any:
    """A step over a block of keys and values; what else it reads goes to the scores."""

    def step(state: Any, read: Any) -> Any:
        (m, l, N), (k, v, *others) = state, read
        Z = scores(k, *others)
        new = reference(m, sa.max(Z, axis=-1))
        P, old = sa.exp(Z - new[:, None]), sa.exp(m - new)
        return (new, old * l + sa.sum(P, axis=-1), old[:, None] * N + P @ v), None

    return step


def plain(k: Any) -> Any:
    return Qs @ k.T * SCALE


def biased(k: Any, bias: Any) -> Any:
    return Qs @ k.T * SCALE + bias


def masked(k: Any, allowed: Any) -> Any:
    return sa.where(allowed, Qs @ k.T * SCALE, MINUS)


def capped(k: Any) -> Any:
    return 5 * sa.tanh(Qs @ k.T * SCALE / 5)


def columns(M: Any) -> Any:
    """The columns of a matrix of S rows, in blocks."""
    return sa.moveaxis(sa.split_axis(M, 1, (B, b)), 1, 0)


def by_blocks(step: Any, *others: Any, start: Any = NONE) -> tuple[Any, ...]:
    final, _ = sa.scan(step, (start, EMPTY, ZEROS), (*blocks(K_ALL, V_ALL), *others))
    return final


def with_largest(Z: Any) -> Any:
    m = sa.max(Z, axis=-1)
    E = sa.exp(Z - m[:, None])
    return by((m, sa.sum(E, axis=-1), E @ V_ALL))


def relative(scores: Callable[..., Any]) -> Any:
    """The sums by whatever the last reference is, of blocks of keys and values."""

    def closed(m: Any, K: Any, V: Any, *others: Any) -> Any:
        whole = (sa.merge_axes(sa.moveaxis(x, 0, 1), (1, 2)) for x in others)
        E = sa.exp(scores(in_a_row(K), *whole) - m[:, None])
        return None, sa.sum(E, axis=-1), E @ in_a_row(V)

    return by(closed, free=0)


def attended(Z: Any, where: Any = None) -> Any:
    return (sa.softmax(Z) if where is None else sa.softmax(Z, where=where)) @ V_ALL


def forward(scores: Callable[..., Any], whole: Any, how: Any, *others: Any, **options: Any) -> Asked:
    reference = options.pop("reference", sa.maximum)
    _, l, N = by_blocks(flash(scores, reference), *others, **options)
    return Asked(N / l[:, None], whole, how)


def lazy(m: Any, largest: Any) -> Any:
    """A reference that moves where a score is much larger."""
    return sa.where(largest > m + 8, largest, m)


def lse(how: Any) -> Asked:
    m, l, _ = by_blocks(flash(plain))
    return Asked(m + sa.log(l), sa.logsumexp(SCORES), how)


def heads_in_front() -> Asked:
    Qh, Kh, Vh = sa.tensor("Q", h, S, d), sa.tensor("K", h, B * b, d), sa.tensor("V", h, B * b, e)

    def step(state: Any, read: Any) -> Any:
        (m, l, N), (k, v) = state, read
        Z = Qh @ k.mT * SCALE
        new = sa.maximum(m, sa.max(Z, axis=-1))
        P, old = sa.exp(Z - new[..., None]), sa.exp(m - new)
        return (new, old * l + sa.sum(P, axis=-1), old[..., None] * N + P @ v), None

    run = tuple(sa.moveaxis(sa.split_axis(x, 1, (B, b)), 1, 0) for x in (Kh, Vh))
    (_, l, N), _ = sa.scan(step, (sa.zeros(h, S), sa.zeros(h, S), sa.zeros(h, S, e)), run)

    def closed(m: Any, K: Any, V: Any) -> Any:
        K, V = (sa.merge_axes(sa.moveaxis(x, 0, 1), (1, 2)) for x in (K, V))
        E = sa.exp(Qh @ K.mT * SCALE - m[..., None])
        return None, sa.sum(E, axis=-1), E @ V

    return Asked(N / l[..., None], sa.softmax(Qh @ Kh.mT * SCALE) @ Vh, by(closed, free=0))


# --- backwards, from what was saved ---

LSE, D = sa.tensor("lse", S), sa.tensor("D", S)  # of each query


def weights(K: Any, where: Any = None) -> Any:
    P = sa.exp(Qs @ K.T * SCALE - LSE[:, None])
    return P if where is None else sa.where(where, P, 0)


def slopes(P: Any, V: Any) -> Any:
    return P * (dO @ V.T - D[:, None]) * SCALE


def backward(k: int, where: Any = None) -> Asked:
    """The cotangent of the queries, keys or values, by blocks and at once."""

    def step(dQ: Any, read: Any) -> Any:
        K, V, *others = read
        P = weights(K, *others)
        dS = slopes(P, V)
        return dQ + dS @ K, (dS.T @ Qs, P.T @ dO)

    others = () if where is None else (columns(where),)
    dQ, (dK, dV) = sa.scan(step, sa.zeros(S, d), (*blocks(K_ALL, V_ALL), *others))
    P = weights(K_ALL, where)
    dS = slopes(P, V_ALL)
    whole = dS @ K_ALL, dS.T @ Qs, P.T @ dO
    return Asked((dQ, in_a_row(dK), in_a_row(dV))[k], whole[k], by(whole[0], blocks(*whole[1:])))


def saved(k: int, where: Any = None) -> Asked:
    """What is computed from the saved numbers is the gradient of attention."""
    Z = SCORES if where is None else sa.where(where, SCORES, MINUS)
    O = sa.softmax(Z) @ V_ALL
    P = weights(K_ALL, where)
    dS = slopes(P, V_ALL)
    whole = dS @ K_ALL, dS.T @ Qs, P.T @ dO
    made = whole[k].replace({LSE: sa.logsumexp(Z, axis=-1), D: sa.sum(dO * O, axis=-1)})
    inputs = Qs, K_ALL, V_ALL
    return Asked(made, sa.gradient({O: dO}, inputs)[inputs[k]])


def without_d() -> Asked:
    def step(dQ: Any, read: Any) -> Any:
        K, V = read
        return dQ + (weights(K) * (dO @ V.T) * SCALE) @ K, None

    dQ, _ = sa.scan(step, sa.zeros(S, d), blocks(K_ALL, V_ALL))
    return Asked(dQ, slopes(weights(K_ALL), V_ALL) @ K_ALL, verdict="refuted")


# --- merged from parts ---


def merged() -> Asked:
    """Attention to each of several parts of the keys, and the logarithms of the sums, merged one after the other."""
    logs, parts = sa.tensor("l", B, S), sa.tensor("O", B, S, e)

    def step(state: Any, read: Any) -> Any:
        (total, O), (more, N) = state, read
        new = sa.log(sa.exp(total) + sa.exp(more))
        return (new, sa.exp(total - new)[:, None] * O + sa.exp(more - new)[:, None] * N), None

    first, O_0 = sa.tensor("l_0", S), sa.tensor("O_0", S, e)
    (_, O), _ = sa.scan(step, (first, O_0), (logs, parts))
    total = sa.exp(first) + sa.sum(sa.exp(logs), axis=0)
    whole = (sa.exp(first)[:, None] * O_0 + sa.einsum("bs,bse->se", sa.exp(logs), parts)) / total[:, None]
    return Asked(O, whole, by((sa.log(total), whole)))


TABLE: Table = {
    "online softmax: by the largest": lambda: softmax_by(sa.maximum, MINUS, WITH_LARGEST),
    "online softmax: any reference, from -oo": lambda: softmax_by(sa.maximum, MINUS),
    "online softmax: any reference, from 0": lambda: softmax_by(sa.maximum, 0),
    "online softmax: a lazy reference": lambda: softmax_by(lambda m, s: sa.where(s > m + 8, s, m), 0),
    "online softmax: an unknown reference": lambda: softmax_by(lambda m, s: sa.unknown("f", m + 2 * s), 0),
    "online softmax: a rescaling forgotten": forgotten,
    "online softmax: another temperature": lambda: softmax_by(sa.maximum, MINUS, WITH_LARGEST)._replace(
        right=sa.softmax(2 * z) @ V, verdict="refuted"
    ),
    "online softmax: a sink": sink,
    "online logsumexp": lambda: logsumexp_by(WITH_LARGEST),
    "online logsumexp, any reference": lambda: logsumexp_by(RELATIVE),
    "merging logarithms of sums": logarithms,
    "merging parts of softmax": merged,
    "FlashAttention": lambda: forward(plain, attended(SCORES), with_largest(SCORES)),
    "FlashAttention: logsumexp": lambda: lse(with_largest(SCORES)),
    "FlashAttention: any reference": lambda: forward(plain, attended(SCORES), relative(plain)),
    "FlashAttention: logsumexp, any reference": lambda: lse(relative(plain)),
    "FlashAttention: lazy": lambda: forward(plain, attended(SCORES), relative(plain), reference=lazy, start=EMPTY),
    "FlashAttention: a bias": lambda: forward(
        biased, attended(SCORES + BIAS), with_largest(SCORES + BIAS), columns(BIAS)
    ),
    "FlashAttention: capped scores": lambda: forward(capped, attended(capped(K_ALL)), relative(capped)),
    "FlashAttention: causal": lambda: forward(
        masked, attended(SCORES, where=CAUSAL), relative(masked), columns(CAUSAL)
    ),
    "FlashAttention: any mask": lambda: forward(
        masked, attended(SCORES, where=ALLOWED), relative(masked), columns(ALLOWED), start=EMPTY
    ),
    "FlashAttention: heads in front": heads_in_front,
    "FlashAttention backward: queries": lambda: backward(0),
    "FlashAttention backward: keys": lambda: backward(1),
    "FlashAttention backward: values": lambda: backward(2),
    "FlashAttention backward: causal, queries": lambda: backward(0, CAUSAL),
    "FlashAttention backward: causal, keys": lambda: backward(1, CAUSAL),
    "FlashAttention backward: causal, values": lambda: backward(2, CAUSAL),
    "FlashAttention backward: without D": without_d,
    "FlashAttention backward is the gradient: queries": lambda: saved(0),
    "FlashAttention backward is the gradient: keys": lambda: saved(1),
    "FlashAttention backward is the gradient: values": lambda: saved(2),
    "FlashAttention backward is the gradient: causal, queries": lambda: saved(0, CAUSAL),
    "FlashAttention backward is the gradient: causal, keys": lambda: saved(1, CAUSAL),
    "FlashAttention backward is the gradient: causal, values": lambda: saved(2, CAUSAL),
}
