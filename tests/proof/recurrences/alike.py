"""Recurrences that go along with one another, step by step: states, outputs, and what both are inside of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

import symattn as sa
from symattn import attention

from .asked import START, Asked, G, K, Q, T, Table, V, beta, d, e, g, x

c = sympy.Symbol("c", positive=True)
M, D = sa.tensor("M", T, d, d), sa.tensor("D", d, d)
R, u, A = sa.tensor("R", e, e), sa.tensor("u", d), sa.tensor("A", T, d)
Map = Callable[[Any], Any]


def outputs(step: Callable[..., Any], start: Any = START, xs: Any = (Q, K, V)) -> Any:
    return sa.scan(lambda S, read: step(S, *read), start, xs)[1]


def squared(expanded: Any, late: bool = False) -> Any:
    def step(s: Any, t: Any) -> Any:
        new = s**2 + expanded * s * t + t**2
        return new, s if late else new

    return sa.scan(step, 0, x)[1]


SQUARED = sa.scan(lambda s, t: ((s + t) ** 2,) * 2, 0, x)[1]


def seventh(S: Any, q: Any, k: Any, v: Any, w: Any, a: Any) -> Any:
    """RWKV-7, with a state of values by keys."""
    S = S @ (sa.diag(sa.exp(w)) - sa.outer(k, a * k)) + sa.outer(v, k)
    return S, S @ q


def seventh_transposed(S: Any, q: Any, k: Any, v: Any, w: Any, a: Any) -> Any:
    S = sa.exp(w)[:, None] * S - sa.outer(a * k, k @ S) + sa.outer(k, v)
    return S, q @ S


def seventh_removed_by_values(S: Any, q: Any, k: Any, v: Any, w: Any, a: Any) -> Any:
    S = sa.exp(w)[:, None] * S - sa.outer(k, (a * k) @ S) + sa.outer(k, v)
    return S, q @ S


def rwkv(step: Callable[..., Any], start: Any = START) -> Any:
    return outputs(step, start, (Q, K, V, G, A))


def householder(S: Any, q: Any, k: Any, v: Any, rate: Any) -> Any:
    """The delta rule by a product of matrices."""
    S = (sa.eye(d) - rate * sa.outer(k, k)) @ S + rate * sa.outer(k, v)
    return S, q @ S


def second(S: Any, q: Any, f: Any, v: Any) -> Any:
    """HGRN2, where what is not forgotten is written."""
    kept = sa.sigmoid(f)
    S = kept[:, None] * S + sa.outer(1 - kept, v)
    return S, q @ S


def gated(written: Any) -> Any:
    return attention.recurrence(Q, written, V, rule="gated", decay=sa.log(sa.sigmoid(G))).output


def delta(rate: Any = beta) -> Any:
    return attention.recurrence(Q, K, V, rule="delta", beta=rate).output


def linear(Q: Any = Q, K: Any = K, V: Any = V) -> Any:
    return attention.recurrence(Q, K, V).output


def normalised(Q: Any = Q, K: Any = K, V: Any = V) -> Any:
    def step(state: Any, read: Any) -> Any:
        (S, n), (q, k, v) = state, read
        S, n = S + sa.outer(k, v), n + k
        return (S, n), q @ S / (1 + (q @ n) ** 2)

    return sa.scan(step, (START, sa.zeros(d)), (Q, K, V))[1]


def product(start: Any = D, transposed: bool = False, extra: Any = 0) -> Any:
    """A product of matrices, from the right, or of their transposes from the left."""
    return sa.scan(lambda S, N: (N.T @ S if transposed else S @ N + extra, None), start, M)[0]


def turned(start: Any, several: Any) -> Any:
    return sa.scan(lambda S, N: (sa.tanh(S) * N + N, None), start, several)[0]


FORWARD, BACKWARD = product().T, product(D.T, True)


def inside(f: Map, left: Any = FORWARD) -> Asked:
    return Asked(f(left), f(BACKWARD))


LINEAR, WEIGHTED = linear(), linear(g[:, None] * Q)
TABLE: Table = {
    "alike: outputs of a square": lambda: Asked(SQUARED, squared(2)),
    "alike: sum of outputs": lambda: Asked(sa.sum(sa.exp(SQUARED)), sa.sum(sa.exp(squared(2)))),
    "alike: RWKV-7 transposed": lambda: Asked(rwkv(seventh, sa.zeros(e, d)), rwkv(seventh_transposed)),
    "alike: the delta rule by matrices": lambda: Asked(outputs(householder, xs=(Q, K, V, beta)), delta()),
    "alike: HGRN2": lambda: Asked(outputs(second, xs=(Q, G, V)), gated(1 - sa.sigmoid(G))),
    "alike: values scaled": lambda: Asked(linear(V=c * V), c * linear()),
    "alike: values moved": lambda: Asked(linear(V=V @ R), linear() @ R),
    "alike: values moved, normalised": lambda: Asked(normalised(V=V @ R), normalised() @ R),
    "alike: keys scaled": lambda: Asked(linear(Q, c * K), linear(c * Q, K)),
    "alike: a number a step": lambda: Asked(WEIGHTED, g[:, None] * LINEAR),
    "alike: rows turned round": lambda: Asked(
        sa.exp(turned(sa.flip(D, 0), sa.flip(M, 1))), sa.exp(sa.flip(turned(D, M), 0))
    ),
    "alike: minus": lambda: inside(lambda S: -S),
    "alike: twice": lambda: inside(lambda S: 2 * S),
    "alike: one more": lambda: inside(lambda S: S + 1),
    "alike: times a vector": lambda: inside(lambda S: S @ u),
    "alike: within softmax": lambda: inside(sa.softmax),
    "alike: two in a product": lambda: Asked(
        sa.softmax(FORWARD) @ product(extra=1).T,
        sa.softmax(BACKWARD) @ sa.scan(lambda S, N: (N.T @ S + 1, None), D.T, M)[0],
    ),
    "alike: of what is read twice": lambda: Asked(
        4 * sa.scan(lambda s, t: (t, None), 0, x)[0], 2 * sa.scan(lambda s, t: (2 * t, None), 0, x)[0]
    ),
}


def never(left: Any, right: Any) -> Asked:
    return Asked(left, right, verdict="unknown")


WRONG: Table = {
    "alike: outputs of another square": lambda: never(SQUARED, squared(3)),
    "alike: outputs a step late": lambda: never(SQUARED, squared(2, late=True)),
    "alike: RWKV-7 removed by values": lambda: never(rwkv(seventh, sa.zeros(e, d)), rwkv(seventh_removed_by_values)),
    "alike: the delta rule at another rate": lambda: never(outputs(householder, xs=(Q, K, V, beta)), delta(2 * beta)),
    "alike: HGRN2 that writes what it keeps": lambda: never(outputs(second, xs=(Q, G, V)), gated(sa.sigmoid(G))),
    "alike: values scaled twice": lambda: never(linear(V=c * V), c**2 * linear()),
    "alike: values moved back": lambda: never(linear(V=V @ R), linear() @ R.T),
    "alike: keys moved, normalised": lambda: never(normalised(K=c * K), c * normalised()),
    "alike: a number of another step": lambda: never(WEIGHTED, g[::-1][:, None] * LINEAR),
    "alike: rows in another order": lambda: never(LINEAR, LINEAR[::-1]),
    "alike: running sums of rows": lambda: never(WEIGHTED, sa.cumsum(LINEAR, axis=0)),
    "alike: a mean over all rows": lambda: never(WEIGHTED, LINEAR - sa.mean(LINEAR, axis=0)),
    "alike: rows turned round, but not the start": lambda: never(turned(D, sa.flip(M, 1)), sa.flip(turned(D, M), 0)),
    "alike: minus once": lambda: never(-FORWARD, BACKWARD),
    "alike: twice and thrice": lambda: never(2 * FORWARD, 3 * BACKWARD),
    "alike: another start": lambda: never(product(D).T, product(D, True)),
    "alike: in another order": lambda: never(product(sa.eye(d)), product(sa.eye(d), True)),
}
