"""Claims that are false by a little: near misses of true ones, under hypotheses that do not suffice or say nothing.

Sizes at the edge 1 and 2, relations with several roots, masks with empty rows, and properties that are close to one
another. None may be proved, with the search for counterexamples or without it, and nearly all are refuted.
"""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Eq, Ge, Le, Mod, Ne, floor

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.proof.engine import PROBLEMS, Missing, argued
from symattn.proof.given import applied, sorted_out

from ..shares import one_in

n, m, d = sa.sizes("n m d")
a, c, one = sympy.Symbol("a", real=True), sympy.Symbol("c", positive=True), sa.ones()
x, y, z, u = (*(sa.tensor(name, n) for name in "xyz"), sa.tensor("u", m))
p, b = sa.tensor("p", n, positive=True), sa.tensor("b", n, binary=True)
t = sa.tensor("t", n, integer=True)
X, Y, Z, Zm = sa.tensor("X", n, d), sa.tensor("Y", n, d), sa.tensor("Z", n, n), sa.tensor("Z", n, m)
A, B, M = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("M", n, n, binary=True)
Ai, Bi = sa.tensor("A", n, n, invertible=True), sa.tensor("B", n, n, invertible=True)
P, P2 = sa.tensor("P", n, n, permutation=True), sa.tensor("P2", n, n, permutation=True)
Ps = sa.tensor("P", n, n, permutation=True, symmetric=True)
U, Us = sa.tensor("U", n, n, orthogonal=True), sa.tensor("U", n, n, orthogonal=True, symmetric=True)
W = sa.tensor("W", n, n, symmetric=True)
INDEX = sa.from_index
CAUSAL, STRICT = INDEX((n, n), lambda i, j: j <= i), INDEX((n, n), lambda i, j: j < i)
LATER, WINDOW = INDEX((n, n), lambda i, j: j > i), INDEX((n, n), lambda i, j: (j <= i) & (i - j < 3))
MASKS = (
    STRICT, LATER, M, M & CAUSAL, STRICT | (M & STRICT), STRICT & M, LATER | (LATER & M), M & M.T,
    INDEX((n, n), lambda i, j: Ne(i, 1)), INDEX((n, n), lambda i, j: i < n - 1), INDEX((n, n), lambda i, j: j < 0),
)  # fmt: skip
RELATIONS = (
    Eq((n - 1) * (n - 2), 0), Eq(n**2 + m**2, 5), Eq(n * m, 6), Le(n, 3), Eq(Mod(n, 2), 0), Eq((n - m) ** 2, n - m),
    Ge(n, 2), Ne(n, 1), Eq(n, m + 1), Eq(floor(n / 2), m), Eq(sympy.Max(n, m), 3), Eq(2 * n, 3 * m),
    Le(n, 2) | Eq(m, 1),
)  # fmt: skip

Question = tuple[Any, tuple[Any, ...]]


def eq(left: Any, right: Any) -> Any:
    """``left = right``, where a tensor without axes stands for one with that entry everywhere."""
    return sa.eq(left - right, 0)


def le(left: Any, right: Any) -> Any:
    return sa.le(left - right, 0)


def lt(left: Any, right: Any) -> Any:
    return sa.lt(left - right, 0)


def of_sizes(relation: Any) -> list[Question]:
    """What a relation of sizes does not suffice for."""
    claims = (
        sa.eq(sa.softmax(x), sa.ones(n)), sa.eq(n * one, one), sa.eq(sa.sum(sa.ones(n)), 2 * one),
        sa.eq(sa.sum(x), sa.sum(x) * n), sa.eq(x, x * n), sa.le(n * one, one), sa.eq(A.T, A),
        sa.eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), sa.eq(sa.triu(A, 1), 0 * A),
        sa.eq(sa.cumsum(x), sa.sum(x) * sa.ones(n)), sa.eq(sa.mean(x) * m, sa.sum(x)),
    )  # fmt: skip
    return [(claim, (relation,)) for claim in claims]


def of_masks(mask: Any) -> list[Question]:
    """What fails where a row attends to nothing."""
    weights = sa.softmax(Z, where=mask)
    claims = (
        sa.eq(sa.sum(weights, axis=-1), sa.ones(n)), sa.eq(weights @ (Y + 1), weights @ Y + 1),
        sa.eq(sa.sum(weights), n * one), sa.lt(0, sa.sum(weights, axis=-1)),
        sa.eq(weights @ sa.ones(n, n), sa.ones(n, n)), sa.eq(weights, sa.softmax(Z)),
        sa.eq(sa.sum(weights * Z, axis=-1) + 1, sa.sum(weights * (Z + 1), axis=-1)),
    )  # fmt: skip
    return [(claim, ()) for claim in claims]


FALSE: list[Question] = [
    *(question for relation in RELATIONS for question in of_sizes(relation)),
    *(question for mask in MASKS for question in of_masks(mask)),
    (eq(A @ B, B @ A), ()),
    (eq(A @ B @ x, A @ x), (eq(B @ x, y),)),
    (eq(A @ x, B @ x), (eq(A @ y, B @ y),)),
    (eq(x, y), (eq(A @ x, A @ y),)),
    (eq(x, 0 * x), (eq(A @ x, 0 * x),)),
    (eq(B @ A, sa.eye(n)), (eq(A @ B, A),)),
    (eq(A @ A, A), (eq(A @ x, x),)),
    (eq(x * y, 0 * x), (eq(x * z, 0 * x),)),
    (eq(x, sa.ones(n)), (eq(x * x, sa.ones(n)),)),
    (eq(x, p), (eq(x * x, p * p),)),
    (eq(sa.abs(x), x), (eq(x * x, p * p),)),
    (eq(sa.relu(x), x), (le(-1, x),)),
    (eq(sa.relu(x), x), (lt(x, 1),)),
    (eq(sa.sum(x), one), (eq(sa.sum(x * x), one),)),
    (eq(sa.softmax(Zm), sa.softmax(Zm + u[None, :])), (eq(sa.sum(u), 0 * one),)),
    (eq(sa.softmax(x), sa.softmax(y)), (eq(sa.sum(x), sa.sum(y)),)),
    (eq(sa.logsumexp(x), sa.logsumexp(y)), (eq(sa.max(x), sa.max(y)),)),
    (eq(A @ x, x), (eq(A.T @ x, x),)),
    (eq(sa.inv(A) @ x, x), (eq(A @ x, 2 * x),)),
    (eq(sa.inv(A), A.T), (eq(A, A.T),)),
    (eq(sa.inv(A + B), sa.inv(A) + sa.inv(B)), ()),
    (eq(sa.trace(A @ B), sa.trace(A) * sa.trace(B)), ()),
    (eq(sa.trace(A @ B @ A), sa.trace(B @ A)), (eq(A @ A, 2 * A),)),
    (eq(A @ x, 0 * x), (eq(x @ A, 0 * x),)),
    (eq(x @ x * one, one), (eq(x, sa.ones(n)),)),
    (eq(sa.sum(X, axis=0), sa.sum(Y, axis=0)), (eq(sa.sum(X), sa.sum(Y)),)),
    (eq(sa.outer(x, y), sa.outer(y, x)), (eq(sa.sum(x), sa.sum(y)),)),
    (eq(U @ x, x), (eq(sa.sum((U @ x) ** 2), sa.sum(x ** 2)),)),
    (eq(U.T, U), ()),
    (eq(U @ U, sa.eye(n)), ()),
    (eq(Us, sa.eye(n)), ()),
    (eq(Us @ x, x), ()),
    (eq(Us @ A @ Us, A), ()),
    (eq(sa.trace(Us), n * one), ()),
    (eq(Us * Us, Us), ()),
    (le(0, Us), ()),
    (le(Us, 0.5), ()),
    (le(U @ x, sa.max(x)), ()),
    (eq(sa.relu(U @ x), U @ sa.relu(x)), ()),
    (eq(sa.softmax(U @ x), U @ sa.softmax(x)), ()),
    (eq(sa.sum(U @ x), sa.sum(x)), ()),
    (eq(sa.sum(U), n * one), ()),
    (eq(sa.sum(U * U, axis=-1) * 2, sa.ones(n)), ()),
    (eq(P, P.T), ()),
    (eq(P @ P, sa.eye(n)), ()),
    (eq(P @ P @ P, sa.eye(n)), ()),
    (eq(P @ P2, P2 @ P), ()),
    (eq(sa.trace(P), one), ()),
    (eq(P @ A @ P.T, A), ()),
    (eq(P @ A, A @ P), ()),
    (eq(sa.diag(x) @ P, P @ sa.diag(x)), ()),
    (eq(Ps @ x, x), ()),
    (eq(Ps, sa.eye(n)), ()),
    (eq(Ps @ P2, P2 @ Ps), ()),
    (eq(Ps @ P2 @ Ps, P2.T), ()),
    (eq(P @ x, x), (eq(sa.sum(P @ x), sa.sum(x)),)),
    (eq(sa.cumsum(P @ x), P @ sa.cumsum(x)), ()),
    (eq(sa.tril(P @ A @ P.T), P @ sa.tril(A) @ P.T), ()),
    (eq(P * P2, P), ()),
    (eq(P @ P.T, P), ()),
    (le(P, sa.eye(n)), ()),
    (eq(W @ A, A @ W), ()),
    (eq(W @ W, W), ()),
    (eq(sa.inv(W), W), ()),
    (eq(x @ W @ y, x @ W @ x), ()),
    (eq(W @ x, x @ (W + sa.eye(n))), ()),
    (eq(Ai @ x, x), (eq(Ai @ y, y),)),
    (eq(sa.inv(Ai) @ Bi, Bi @ sa.inv(Ai)), ()),
    (eq(sa.inv(Ai @ Bi), sa.inv(Ai) @ sa.inv(Bi)), ()),
    (eq(sa.inv(Ai.T), sa.inv(Ai)), ()),
    (eq(sa.inv(2 * Ai), 2 * sa.inv(Ai)), ()),
    (eq(sa.inv(Ai) * Ai, sa.ones(n, n)), ()),
    (eq(b, sa.ones(n)), ()),
    (eq(b, 0 * b), ()),
    (eq(b * b, 1 - b), ()),
    (eq(b * x, x), ()),
    (eq(sa.sum(b), sa.max(b)), ()),
    (lt(0, sa.sum(b)), ()),
    (lt(sa.sum(b), n * one), ()),
    (le(sa.sum(b), one), ()),
    (eq(M @ M, M), ()),
    (eq(M @ M.T, n * sa.eye(n)), ()),
    (eq(M * M.T, M), ()),
    (eq((M & M.T) * 1, M * 1), ()),
    (eq((M | M.T) * 1, M * 1), ()),
    (eq(~M * M, M), ()),
    (eq(sa.sum(M, axis=-1), sa.sum(M, axis=0)), ()),
    (le(1, sa.sum(M, axis=0)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(M, sa.ones(n, n)), (le(1, sa.sum(M, axis=-1)),)),
    (le(2, sa.sum(M, axis=-1)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.softmax(Z, where=M), sa.softmax(Z, where=CAUSAL)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z, where=M & CAUSAL), axis=-1), sa.ones(n)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z, where=M & ~M.T), axis=-1), sa.ones(n)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z.T, where=M.T), axis=-1), sa.ones(n)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z, where=~M), axis=-1), sa.ones(n)), (le(1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (le(1, sa.sum(M)),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (lt(-1, sa.sum(M, axis=-1)),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (le(sa.sum(M, axis=-1), 1),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (eq(sa.sum(M, axis=-1), sa.sum(M, axis=0)),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (eq(M, M.T),)),
    (eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n)), (le(0, sa.sum(M * Z, axis=-1)),)),
    (eq(sa.softmax(Z, where=WINDOW), sa.softmax(Z, where=CAUSAL)), (Le(n, 4),)),
    (eq(WINDOW, CAUSAL), (Ge(n, 2),)),
    (eq(WINDOW, CAUSAL), (Le(n, 4),)),
    (le(x * y, 0.5 * (x * x + y * y) - 1), ()),
    (lt(x * y, 0.5 * (x * x + y * y)), ()),
    (lt(0, x * x), ()),
    (lt(0, sa.relu(x)), ()),
    (lt(sa.softmax(x), 1), ()),
    (le(sa.softmax(x), 0.5), ()),
    (lt(sa.max(x), sa.logsumexp(x)), ()),
    (le(sa.logsumexp(x), sa.max(x) + 1), ()),
    (le(sa.sum(x) ** 2, sa.sum(x * x)), ()),
    (le(x, sa.sum(x)), ()),
    (le(p, sa.sum(p) / 2), ()),
    (lt(p, sa.sum(p)), ()),
    (le(1, p), ()),
    (le(p, p * p), ()),
    (le(1 / p, p), ()),
    (le(sa.sigmoid(x), 0.5), (le(x, 1),)),
    (le(0, sa.tanh(x)), (le(-1, x),)),
    (le(sa.exp(x), 1 + x), ()),
    (lt(1 + x, sa.exp(x)), ()),
    (lt(sa.log(p), p - 1), ()),
    (le(sa.gelu(x), sa.relu(x) - sympy.Rational(1, 5)), ()),
    (le(0, sa.gelu(x)), ()),
    (le(sa.abs(x + y), sa.abs(x)), ()),
    (lt(sa.abs(x + y), sa.abs(x) + sa.abs(y)), ()),
    (le(sa.mean(x) ** 2, sa.mean(x * x) - 1), ()),
    (lt(x, z), (le(x, y), le(y, z))),
    (le(x * z, y * z), (le(x, y),)),
    (le(x * x, y * y), (le(x, y),)),
    (le(1 / x, 1 / y), (le(y, x),)),
    (le(a * x, a * y), (le(x, y),)),
    (le(sa.softmax(x), sa.softmax(y)), (le(x, y),)),
    (lt(0, x * y), (le(0, x), lt(0, y))),
    (le(c * one, 1 * one), ()),
    (le(x, c * x), ()),
    (le(0, A @ x), (le(0, x),)),
    (le(A @ x, sa.sum(x)), (le(A, 1), le(-5, x))),
    (le(sa.softmax(Zm) @ u, 1), (le(u, 2),)),
    (lt(sa.softmax(Zm) @ u, 1), (le(u, 1),)),
    (eq(x, y), (le(x, x),)),
    (eq(x, y), (eq(x * 0, 0 * y),)),
    (eq(x, y), (le(0, x * x),)),
    (eq(x, 0 * x), (le(x * x, sa.sum(x * x)),)),
    (eq(sa.max(x), sa.min(x)), (Le(n, 2),)),
    (eq(sa.max(x), sa.sum(x)), (Le(n, 2),)),
    (eq(x, sa.flip(x, 0)), (Le(n, 2),)),
    (eq(sa.shift(x, 1), 0 * x), (Le(n, 2),)),
    (eq(x * (n - 1), 0 * x), (Le(n, 2),)),
    (eq(x * (n - 1) * (n - 2), 0 * x), ()),
    (eq(x * (n - 1) * (n - 2) * (n - 3), 0 * x), (Le(n, 4),)),
    (eq(sa.softmax(X[:1]), X[:1]), ()),
    (eq(A @ A, A), (Eq(n, 1),)),
    (eq(A @ B, B @ A), (Eq(n, 2),)),
    (eq(A @ B, B @ A), (Le(n, 2),)),
    (eq(U @ U, sa.eye(n)), (Eq(n, 2),)),
    (eq(P @ P, sa.eye(n)), (Le(n, 3),)),
    (eq(P, P.T), (Eq(n, 3),)),
    (eq(sa.inv(A), A), (Eq(n, 1),)),
    (eq(U, sa.eye(n)), (Eq(n, 1),)),
    (eq(P, sa.eye(n)), (Eq(n, 2),)),
    (eq(sa.tril(A), A), (Eq(n, 2),)),
    (eq(A * sa.eye(n), A), (Le(n, 2),)),
    (eq(sa.tril(A) @ sa.tril(B), sa.tril(A @ B)), ()),
    (eq(sa.floor(x), x), (eq(sa.floor(2 * x), 2 * x),)),
    (eq(sa.take(x, t, axis=0), x), (le(0, t), lt(t, n))),
    (eq(sa.floor(t / 2) * 2, t), ()),
    (eq(t, 0 * t), (lt(t, 2), le(0, t))),
    (eq(sa.where(x > y, x, y), x), (le(y, x + 1),)),
    (eq(sa.sign(x), sa.ones(n)), (le(0, x),)),
    (eq(sa.equal(x, y) * 1, 1 * sa.ones(n)), (le(x, y),)),
    (eq(x / y * y / x, 2 * sa.ones(n)), ()),
    (eq(sa.sqrt(x * x), x), ()),
    (eq(sa.log(x * y), sa.log(x) + sa.log(y) + 1), ()),
    (eq(sa.log(x * x), 2 * sa.log(p)), ()),
    (eq((x * y) ** 2 / x, y * y), ()),
    (eq(sa.exp(sa.log(sa.abs(x))), x), ()),
    (eq(sa.sum(x / sa.sum(x)), 2 * one), ()),
    (eq(sa.rsqrt(x) * x, sa.sqrt(sa.abs(x)) + 1), ()),
    (sa.independent(sa.cumsum(X, axis=0), X, when=lambda o, i: i[0] >= o[0]), ()),
    (sa.independent(sa.softmax(Z, where=CAUSAL) @ X, X, when=lambda o, i: Ne(i[0], o[0])), ()),
    (sa.independent(STRICT @ X, X, when=lambda o, i: i[0] < o[0]), ()),
    (sa.independent(P @ X, X, when=lambda o, i: Ne(i[0], o[0])), ()),
    (sa.independent(X @ X.T, X, when=lambda o, i: Ne(i[0], o[0])), ()),
    (sa.independent(WINDOW @ X, X, when=lambda o, i: i[0] < o[0] - 1), ()),
]  # fmt: skip
SHARE = 30


@pytest.mark.parametrize("first", range(0, len(FALSE), SHARE))
def test_false_claims_are_refuted(first):
    verdicts = [sa.prove(claim, given=given, budget=5) for claim, given in FALSE[first : first + SHARE]]
    assert not [str(verdict) for verdict in verdicts if verdict]
    assert sum(verdict.status == "refuted" for verdict in verdicts) >= len(verdicts) - 1


@pytest.mark.parametrize("first", one_in(3, range(0, len(FALSE), SHARE)))
def test_false_claims_are_not_proved_without_the_search_for_counterexamples(first):
    for claim, given in FALSE[first : first + SHARE]:
        hypotheses, asked = sorted_out(claim, given)
        try:
            found = argued(*applied(hypotheses, asked), Budget(2))
        except (OutOfBudget, *PROBLEMS):
            continue
        assert isinstance(found, Missing), f"{claim} given {given}: {found.text()}"


def test_there_are_hundreds():
    assert len(FALSE) > 300
