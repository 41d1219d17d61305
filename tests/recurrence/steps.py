"""Steps of recurrences, and the tensors that the tests of these run over."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa

T, d, e = sa.sizes("T d e")
K, V, Q = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("Q", T, d)
A, B, x, m = sa.tensor("A", d, d), sa.tensor("B", d), sa.tensor("x", T), sa.tensor("m", T, binary=True)
gamma = sympy.Symbol("gamma", real=True)


def linear(S: Any, read: Any) -> Any:
    k, v, q = read
    S = gamma * S + sa.outer(k, v)
    return S, q @ S


def cell(s: Any, k: Any) -> Any:
    return sa.tanh(A @ s) + k, s


def online(state: Any, z: Any) -> Any:
    top, total = state
    new = sa.maximum(top, z)
    return (new, total * sa.exp(top - new) + sa.exp(z - new)), new


def pair(state: Any, read: Any) -> Any:
    (s, t), (k, u) = state, read
    s = sa.tanh(A @ s + k * t)
    return (s, t + u * sa.sum(s)), (s * u, t)


def every_value(final: Any, outputs: Any) -> Any:
    (s, t), (rows, numbers) = final, outputs
    return rows * numbers[:, None] + sa.sin(s) * t


def online_mean(state: Any, read: Any) -> Any:
    (top, total, mean), (z, v) = state, read
    new = sa.maximum(top, z)
    return (new, total * sa.exp(top - new) + sa.exp(z - new), mean * sa.exp(top - new) + sa.exp(z - new) * v), None
