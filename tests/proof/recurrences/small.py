"""Sums, averages, products and extremes, one element after the other; sums within sums; and where induction may not."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa
from symattn import attention

from .asked import S_0, START, Asked, K, Q, S, T, Table, V, X, a, by, d, gamma, x

ALPHA = sympy.Symbol("alpha", positive=True)
RATE = sympy.Symbol("alpha", real=True)
s_0 = sa.tensor("s_0")
Z = sa.tensor("Z", T, S)


def summed(sequence: Any, start: Any = 0) -> Any:
    return sa.scan(lambda s, x: (s + x, s + x), start, sequence)


def largest() -> Any:
    return sa.scan(lambda s, x: ((m := sa.maximum(s, x)), m), -sympy.oo, x)[1]


LARGEST = sa.max(sa.where(attention.causal_mask(T), x[None, :], -sympy.oo), axis=-1)
FIRST_BEFORE = sa.max(sa.where(sa.from_index((T, T), lambda i, j: j < i), x[None, :], -sympy.oo), axis=-1)


def averaged(rate: Any) -> Any:
    """An exponential average."""

    def step(s: Any, x: Any) -> Any:
        s = rate * s + (1 - rate) * x
        return s, s

    return sa.scan(step, s_0, x)


def average(rate: Any, late: int = 0) -> Any:
    return rate**T * s_0 + (1 - rate) * sa.sum(rate ** sa.from_index((T,), lambda i: T - 1 - i + late) * x)


def averages() -> Asked:
    weights = sa.where(attention.causal_mask(T), ALPHA ** sa.from_index((T, T), lambda i, j: i - j), 0)
    whole = ALPHA ** sa.from_index((T,), lambda i: i + 1) * s_0 + (1 - ALPHA) * (weights @ x)
    return Asked(averaged(ALPHA)[1], whole)


def without_bias() -> Asked:
    """From 0, divided by the sum of the weights, as Adam has it: the mean of what stays the same."""
    s, _ = sa.scan(lambda s, x: (ALPHA * s + (1 - ALPHA) * s_0, None), 0, x)
    return Asked(s, (1 - ALPHA**T) * s_0)


def geometric() -> Asked:
    s, _ = sa.scan(lambda s, _: (gamma * s + 1, None), 0, length=T)
    return Asked(s, (1 - gamma**T) / (1 - gamma) * sa.ones())


def horner() -> Asked:
    """A polynomial from its coefficients, the highest first."""
    s, _ = sa.scan(lambda s, x: (gamma * s + x, None), 0, x)
    return Asked(s, sa.sum(gamma ** sa.from_index((T,), lambda i: T - 1 - i) * x))


def welford() -> tuple[Any, ...]:
    def step(state: Any, x: Any) -> Any:
        count, mean, squares = state
        new = mean + (x - mean) / (count + 1)
        return (count + 1, new, squares + (x - mean) * (x - new)), None

    return sa.scan(step, (0, 0, 0), x)[0]


MEANS = by((T, sa.sum(x) / T, sa.sum((x - sa.sum(x) / T) ** 2)))


def covariance() -> Asked:
    """Of vectors, in one pass."""

    def step(state: Any, x: Any) -> Any:
        count, mean, C = state
        new = mean + (x - mean) / (count + 1)
        return (count + 1, new, C + sa.outer(x - mean, x - new)), None

    (_, _, C), _ = sa.scan(step, (0, sa.zeros(d), sa.zeros(d, d)), X)
    mean = sa.sum(X, axis=0) / T
    centred = X - mean
    return Asked(C, centred.T @ centred, by((T, mean, centred.T @ centred)))


def twice() -> Asked:
    """A sum of running sums."""
    (_, t), _ = sa.scan(lambda s, x: ((s[0] + x, s[1] + s[0] + x), None), (0, 0), x)
    return Asked(t, sa.sum(sa.from_index((T,), lambda i: T - i) * x), by((sa.sum(x), sa.sum(sa.cumsum(x)))))


def within() -> Asked:
    """The rows of a matrix, each summed by a recurrence of its own."""
    total, _ = sa.scan(lambda s, row: (s + summed(row)[0], None), 0, Z)
    return Asked(total, sa.sum(Z), by(sa.sum(Z), inner=by(lambda row: sa.sum(row))))


def running_within() -> Asked:
    """Sums over all rows so far, and all columns so far."""
    _, out = sa.scan(lambda s, row: ((new := s + summed(row)[1]), new), sa.zeros(S), Z)
    whole = sa.cumsum(sa.cumsum(Z, axis=0), axis=1)
    inner = by(lambda row: sa.sum(row), lambda row: sa.cumsum(row))
    return Asked(out, whole, by(sa.cumsum(sa.sum(Z, axis=0)), whole, inner=inner))


def counted(length: Any, verdict: str = "proved") -> Asked:
    return Asked(sa.scan(lambda s, x: (s + 1, None), 0, x)[0], length * sa.ones(), verdict=verdict)


def reordered() -> Asked:
    Pi = sa.tensor("Pi", T, T, permutation=True)
    plan = by(lambda X: sa.sum(X, axis=0))
    return Asked(summed(Pi @ X, sa.zeros(d))[0], summed(X, sa.zeros(d))[0], (plan, plan))


def queries_as_many() -> Asked:
    whole, _ = sa.scan(lambda s, x: (s + Q @ sa.outer(*x), None), sa.zeros(T, V.shape[1]), (K, V))
    return Asked(whole, Q @ K.T @ V)


def divided() -> Asked:
    s, _ = sa.scan(lambda s, x: (s / (1 + x * s), None), s_0, x)
    return Asked(s, s_0 / (1 + s_0 * sa.sum(x)))


TABLE: Table = {
    "sums": lambda: Asked(summed(x)[0], sa.sum(x)),
    "running sums": lambda: Asked(summed(X, sa.zeros(d))[1], sa.cumsum(X, axis=0)),
    "the largest so far": lambda: Asked(largest(), LARGEST),
    "the largest so far, by hand": lambda: Asked(largest(), LARGEST, by(sa.max(x), LARGEST)),
    "the largest before": lambda: Asked(largest(), FIRST_BEFORE, by(sa.max(x), FIRST_BEFORE), "refuted"),
    "an exponential average": lambda: Asked(averaged(ALPHA)[0], average(ALPHA)),
    "an exponential average at any rate": lambda: Asked(averaged(RATE)[0], average(RATE)),
    "an exponential average a step late": lambda: Asked(averaged(RATE)[0], average(RATE, 1), verdict="refuted"),
    "exponential averages": averages,
    "an average without its bias": without_bias,
    "a geometric sum": geometric,
    "Horner's rule": horner,
    "a product": lambda: Asked(sa.scan(lambda s, x: (s * x, None), 1, a)[0], sa.exp(sa.sum(sa.log(a)))),
    "products": lambda: Asked(sa.scan(lambda s, x: (s * x, s * x), 1, a)[1], sa.exp(sa.cumsum(sa.log(a)))),
    "Welford's mean": lambda: Asked(welford()[1], sa.mean(x), MEANS),
    "Welford's variance": lambda: Asked(welford()[2] / T, sa.mean((x - sa.mean(x)) ** 2), MEANS),
    "a covariance in one pass": covariance,
    "sums of sums": twice,
    "sums within sums": within,
    "running sums within running sums": running_within,
    "the number of steps": lambda: counted(T),
    "a number that agrees up to 5": lambda: counted(T + (T - 1) * (T - 2) * (T - 3) * (T - 4) * (T - 5), "refuted"),
    "a number that differs at 1 only": lambda: Asked(
        summed(x)[0], sa.sum(x) + sa.where(sa.equal(T, 1), 1, 0), verdict="refuted"
    ),
    "a start that is read": lambda: Asked(summed(x, x[0])[0], sa.sum(x) + x[0]),
    "a start that depends on the length": lambda: Asked(summed(x, x[-1])[0], sa.sum(x) + x[-1], verdict="unknown"),
    "sums in another order": reordered,
    "as many queries": queries_as_many,
    "a quotient": divided,
    "a number undone": lambda: Asked(sa.scan(lambda s, x: (s * x / x, None), s_0, x)[0], s_0),
    "another invariant": lambda: Asked(summed(x)[0], sa.sum(x), by(sa.sum(x) + 1), "unknown"),
    "a state and a start": lambda: Asked(
        sa.scan(lambda S, x: (S + sa.outer(*x), None), S_0, (K, V))[0] - S_0, K.T @ V, by(S_0 + K.T @ V)
    ),
    "a function of a state": lambda: Asked(
        sa.softmax(sa.scan(lambda S, x: (S + sa.outer(*x), None), START, (K, V))[0]), sa.softmax(K.T @ V)
    ),
}
