"""Counterexamples replayed by hand: in plain NumPy or exact fractions, without anything of the package."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

n, m, d = sa.sizes("n m d")
x, y = sa.tensor("x", n), sa.tensor("y", n)
A, B, Z = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("Z", n, n)
X = sa.tensor("X", n, d)
M = sa.tensor("M", n, n, binary=True)
U = sa.tensor("U", n, n, orthogonal=True, symmetric=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
c = sympy.Symbol("c", positive=True)

Sides = tuple[Any, Any]


def softmax(z: np.ndarray) -> np.ndarray:
    weights = np.exp(z)
    return weights / weights.sum(axis=-1, keepdims=True)


def masked_softmax(z: np.ndarray, mask: np.ndarray) -> np.ndarray:
    weights = np.exp(z) * mask
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


CAUSAL = sa.from_index((n, n), lambda i, j: j <= i)
CLAIMS: dict[str, tuple[Any, tuple[Any, ...], Callable[..., Sides]]] = {  # with both sides in plain NumPy
    "homogeneous": (sa.eq(sa.softmax(2 * X), sa.softmax(X)), (), lambda X: (softmax(2 * X), softmax(X))),
    "products commute": (sa.eq(A @ B, B @ A), (sympy.Le(n, 2),), lambda A, B: (A @ B, B @ A)),
    "inverse of a sum": (
        sa.eq(sa.inv(A + B), sa.inv(A) + sa.inv(B)), (),
        lambda A, B: (np.linalg.inv(A + B), np.linalg.inv(A) + np.linalg.inv(B)),
    ),
    "empty rows": (
        sa.eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (sa.le(1, sa.sum(M)),),
        lambda Z, M: (masked_softmax(Z, M).sum(-1), np.ones(len(Z))),
    ),
    "causal attention moves": (
        sa.eq(sa.softmax(Pi @ Z, where=CAUSAL), Pi @ sa.softmax(Z, where=CAUSAL)), (),
        lambda Pi, Z: (
            masked_softmax(Pi @ Z, np.tri(len(Z))), Pi @ masked_softmax(Z, np.tri(len(Z)))
        ),
    ),
    "symmetric orthogonal": (sa.eq(U, sa.eye(n)), (), lambda U: (U, np.eye(len(U)))),
    "a bound": (sa.le(x, 100), (sa.le(0, x),), lambda x: (x, np.full(len(x), 100.0))),
    "a clip": (sa.eq(sa.minimum(x, 3), x), (), lambda x: (np.minimum(x, 3), x)),
    "a scale": (sa.eq(c * x, x), (sa.lt(0, x),), lambda x, c: (c * x, x)),
    "sums of squares": (sa.le(sa.sum(x) ** 2, sa.sum(x * x)), (), lambda x: (x.sum() ** 2, (x * x).sum())),
    "logsumexp": (
        sa.le(sa.logsumexp(x), sa.max(x) + 1), (), lambda x: (np.log(np.exp(x).sum()), x.max() + 1)
    ),
    "strictly below": (sa.lt(sa.abs(x + y), sa.abs(x) + sa.abs(y)), (), lambda x, y: (abs(x + y), abs(x) + abs(y))),
}  # fmt: skip


def fails(relation: str, left: Any, right: Any) -> bool:
    if relation == "=":
        return bool(abs(left - right) > 1e-12)
    return bool(left > right + 1e-12) if relation == "<=" else bool(left >= right - 1e-12)


@pytest.mark.parametrize("seed", one_in(2, range(2)))
@pytest.mark.parametrize("name", CLAIMS)
def test_a_counterexample_gives_its_two_values_in_numpy(name, seed):
    claim, given, sides = CLAIMS[name]
    verdict = sa.prove(claim, given=given, seed=seed)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    arrays = {str(t.name): a.astype(float) for t, a in found.arrays_numpy().items()}
    scalars = {s.name: float(v) for s, v in found.scalars.items()}
    left, right = (np.asarray(side)[found.index] for side in sides(**arrays, **scalars))
    assert left == pytest.approx(float(found.left), abs=1e-12)
    assert right == pytest.approx(float(found.right), abs=1e-12)
    assert fails(claim.relation, left, right)
    assert all(relation.subs(found.sizes) == sympy.true for relation in given if isinstance(relation, sympy.Basic))


def test_rational_counterexamples_are_exact():
    """In fractions, to the last digit."""
    found = sa.prove(A @ B, B @ A).counterexample
    a, b = ([[Fraction(int(q.p), int(q.q)) for q in row] for row in found.arrays[t].tolist()] for t in (A, B))
    i, j = found.index
    left = sum(a[i][k] * b[k][j] for k in range(len(a)))
    right = sum(b[i][k] * a[k][j] for k in range(len(a)))
    assert (left, right) == (Fraction(str(found.left)), Fraction(str(found.right)))
    assert left != right


def test_closed_forms_are_exact():
    """The values of a softmax, by SymPy alone."""
    found = sa.prove(sa.softmax(2 * x), sa.softmax(x)).counterexample
    entries, (i,) = found.arrays[x].tolist(), found.index
    for factor, value in ((2, found.left), (1, found.right)):
        exact = sympy.exp(factor * entries[i]) / sympy.Add(*(sympy.exp(factor * q) for q in entries))
        assert sympy.simplify(exact - value) == 0


def test_a_counterexample_of_independence_changes_only_what_is_said_not_to_matter():
    claim = sa.independent(CAUSAL @ X, X, when=lambda out, inp: inp[0] >= out[0])
    found = sa.prove(claim).counterexample
    first, second = (np.array(a.tolist(), dtype=float) for a in found.arrays.values())
    rows, _ = np.nonzero(first != second)
    left, right = (np.tri(len(a)) @ a for a in (first, second))
    assert min(rows) >= found.index[0]
    assert (left[found.index], right[found.index]) == (float(found.left), float(found.right))
    assert left[found.index] != right[found.index]
