"""Gradients of recurrences against PyTorch's of the loop by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

import symattn as sa

T, d, e = sa.sizes("T d e")
K, V, Q = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("Q", T, d)
A, B, z, g, b = (
    sa.tensor("A", d, d),
    sa.tensor("B", d),
    sa.tensor("z", T),
    sa.tensor("g", T),
    sa.tensor("b", T),
)
WIDTHS = {T: 6, d: 3, e: 2}


class Recurrence(NamedTuple):
    """A step of our operations, where it begins, what it reads and takes; and the outputs of all steps by PyTorch."""

    step: Callable[[Any, Any], Any]
    begin: Any
    read: tuple[Any, ...]
    takes: tuple[Any, ...]
    by_hand: Callable[..., Any]


def linear(S: Any, read: Any) -> Any:
    k, v, q = read
    S = S + sa.outer(k, v)
    return S, q @ S


def gated(S: Any, read: Any) -> Any:
    k, v, q, g = read
    S = sa.sigmoid(g) * S + sa.outer(k, v)
    return S, q @ S


def delta(S: Any, read: Any) -> Any:
    k, v, q, b = read
    S = S + b * sa.outer(k, v - k @ S)
    return S, q @ S


def cell(s: Any, read: Any) -> Any:
    s = sa.tanh(A @ s + read[0])
    return s, s


def gated_cell(s: Any, read: Any) -> Any:
    k, f = read
    s = sa.sigmoid(f) * s + (1 - sa.sigmoid(f)) * sa.tanh(A @ s + k)
    return s, s


def online(state: Any, read: Any) -> Any:
    (top, total, sums), (z, v) = state, read
    new = sa.maximum(top, z)
    total, sums = total * sa.exp(top - new) + sa.exp(z - new), sums * sa.exp(top - new) + sa.exp(z - new) * v
    return (new, total, sums), sums / total


def begins(torch: Any, *shape: int) -> Any:
    return torch.zeros(shape, dtype=torch.float64)


def linear_by_hand(torch: Any, k: Any, v: Any, q: Any, g: Any = None, b: Any = None) -> Any:
    S, rows = begins(torch, k.shape[1], v.shape[1]), []
    for t in range(len(k)):
        S = S if g is None else torch.sigmoid(g[t]) * S
        change = v[t] if b is None else b[t] * (v[t] - k[t] @ S)
        S = S + torch.outer(k[t], change)
        rows.append(q[t] @ S)
    return torch.stack(rows)


def cell_by_hand(torch: Any, k: Any, start: Any, a: Any) -> Any:
    rows = []
    for x in k:
        start = torch.tanh(a @ start + x)
        rows.append(start)
    return torch.stack(rows)


def gated_cell_by_hand(torch: Any, k: Any, f: Any, start: Any, a: Any) -> Any:
    rows = []
    for x, gate in zip(k, torch.sigmoid(f), strict=True):
        start = gate * start + (1 - gate) * torch.tanh(a @ start + x)
        rows.append(start)
    return torch.stack(rows)


def online_by_hand(torch: Any, z: Any, v: Any) -> Any:
    return torch.stack([torch.softmax(z[: t + 1], 0) @ v[: t + 1] for t in range(len(z))])


RECURRENCES = {
    "linear": Recurrence(linear, sa.zeros(d, e), (K, V, Q), (), linear_by_hand),
    "gated": Recurrence(gated, sa.zeros(d, e), (K, V, Q, g), (), linear_by_hand),
    "delta": Recurrence(
        delta, sa.zeros(d, e), (K, V, Q, b), (), lambda torch, k, v, q, b: linear_by_hand(torch, k, v, q, b=b)
    ),
    "tanh": Recurrence(cell, B, (K,), (B, A), cell_by_hand),
    "gated cell": Recurrence(gated_cell, B, (K, Q), (B, A), gated_cell_by_hand),
    "online softmax": Recurrence(online, (-sympy.oo, 0, sa.zeros(e)), (z, V), (), online_by_hand),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", RECURRENCES)
def test_values_and_gradients_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    made = RECURRENCES[name]
    y = sa.scan(made.step, made.begin, made.read)[1]
    given = [*made.read, *made.takes]
    rng = np.random.default_rng(4)
    arrays = [rng.normal(size=[WIDTHS[size] for size in x.shape]) for x in given]
    found = sa.lambdify(given, [y, sa.gradient(sa.sum(sa.cos(y)), given)])(*arrays)
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    out = made.by_hand(torch, *theirs)
    out.cos().sum().backward()
    for mine, other in zip(found, [out.detach(), *(x.grad for x in theirs)], strict=True):
        np.testing.assert_allclose(mine, other.numpy(), rtol=1e-12, atol=1e-12)
