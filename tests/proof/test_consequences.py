"""What follows from equalities of matrices that are given: claims proved through it, and ones that nearly follow."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import Argument, Given
from symattn.proof.engine import argued
from symattn.proof.given import applied

n, m, k, d = sa.sizes("n m k d")
A, B, C, E, M, R = (sa.tensor(name, n, n) for name in "ABCEMR")
U, S = sa.tensor("U", n, n, orthogonal=True), sa.tensor("S", n, n, symmetric=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
Turn = sa.tensor("T", n, n, permutation=True, symmetric=True)
F, G = sa.tensor("F", n, k), sa.tensor("G", k, n)
X, W_q, W_k = sa.tensor("X", n, d), sa.tensor("W_q", d, k), sa.tensor("W_k", d, k)
L, L2 = sa.tensor("L", k, k), sa.tensor("L2", k, k)
H = sa.tensor("H", d, d, orthogonal=True)
K, D = sa.tensor("K", k, k), sa.tensor("D", d, d)
W_h = sa.tensor("W_h", sa.sizes("h"), d, k)
u, v, w = (sa.tensor(name, n) for name in "uvw")
Mask = sa.tensor("M", n, n, binary=True)
c = sympy.Symbol("c", positive=True)
s = sympy.Symbol("s", real=True)
I, O, one = sa.eye(n), sa.zeros(n), sa.ones(n)
eq = sa.eq

Question = tuple[Any, Any, tuple[Any, ...]]


def stochastic(P: Any) -> Any:
    return eq(sa.sum(P, axis=-1), one)


def biased(x: Any) -> Any:
    return sa.softmax(x @ x.T + M) @ x


def rms(x: Any) -> Any:
    return x / sa.sqrt(sa.mean(x**2, axis=-1, keepdims=True))


def layer_norm(x: Any) -> Any:
    return rms(x - sa.mean(x, axis=-1, keepdims=True))


def attention(x: Any, q: Any = W_q, key: Any = W_k) -> Any:
    return sa.softmax(x @ q @ (x @ key).T) @ x


TRUE: dict[str, Callable[[], Question]] = {
    "a fixed vector of an orthogonal matrix": lambda: (U.T @ u, u, (eq(U @ u, u),)),
    "one-sided inverse": lambda: (B @ A, I, (eq(A @ B, I),)),
    "one-sided inverse of three": lambda: (C @ A @ B, I, (eq(A @ B @ C, I),)),
    "the inverse": lambda: (B, sa.inv(A), (eq(A @ B, I),)),
    "a multiple of the inverse": lambda: (B @ A, c * I, (eq(A @ B, c * I),)),
    "fixed by the inverse": lambda: (sa.inv(A) @ u, u, (eq(A @ u, u),)),
    "eigenvector of the inverse": lambda: (sa.inv(A) @ u, u / c, (eq(A @ u, c * u),)),
    "eigenvector of a square": lambda: (A @ A @ u, s**2 * u, (eq(A @ u, s * u),)),
    "left null vector": lambda: (u @ S, O, (eq(S @ u, O),)),
    "commutes with the inverse": lambda: (sa.inv(A) @ B, B @ sa.inv(A), (eq(A @ B, B @ A),)),
    "commutes with sums": lambda: (A @ (B + C), (B + C) @ A, (eq(A @ B, B @ A), eq(A @ C, C @ A))),
    "commutes with powers": lambda: (A @ B @ B @ B, B @ B @ B @ A, (eq(A @ B, B @ A),)),
    "inside a product": lambda: (E @ Pi @ X, R @ E @ X, (eq(E @ Pi, R @ E),)),
    "inside softmax": lambda: (sa.softmax(E @ Pi @ X), sa.softmax(R @ E @ X), (eq(E @ Pi, R @ E),)),
    "invariant under a permutation": lambda: (Pi @ M, M @ Pi, (eq(Pi @ M @ Pi.T, M),)),
    "invariant under its inverse": lambda: (Pi.T @ M @ Pi, M, (eq(Pi @ M @ Pi.T, M),)),
    "symmetric permutation": lambda: (Turn @ Turn @ X, X, ()),
    "permutation given as symmetric": lambda: (Pi @ Pi, I, (eq(Pi, Pi.T),)),
    "permutation given as the identity": lambda: (Pi @ X, X, (eq(Pi, I),)),
    "tied weights": lambda: (X @ W_q @ (X @ W_k).T, (X @ W_q @ (X @ W_k).T).T, (eq(W_q, W_k),)),
    "tied weights up to a rotation": lambda: (attention(X @ H, H.T @ W_q, H.T @ W_k), attention(X) @ H, ()),
    "reparametrised keys": lambda: (attention(X, W_q @ L, W_k @ L2.T), attention(X), (eq(L @ L2, sa.eye(k)),)),
    "reparametrised the other way round": lambda: (
        attention(X, W_q @ L2, W_k @ L.T),
        attention(X),
        (eq(L @ L2, sa.eye(k)),),
    ),
    "orthogonal rows of weights": lambda: ((X @ W_q) @ (W_q.T @ X.T), X @ X.T, (eq(W_q @ W_q.T, sa.eye(d)),)),
    "product of stochastic matrices": lambda: (sa.sum(A @ B, axis=-1), one, (stochastic(A), stochastic(B))),
    "stochastic matrix on a shifted input": lambda: (A @ (M + u), A @ M + u, (stochastic(A),)),
    "average of a doubly stochastic matrix": lambda: (
        sa.mean(A @ X, axis=0) * n,
        sa.sum(X, axis=0),
        (stochastic(A.T),),
    ),
    "idempotent": lambda: (A @ A @ A @ X, A @ X, (eq(A @ A, A),)),
    "complement of a projection": lambda: ((I - A) @ (I - A), I - A, (eq(A @ A, A),)),
    "reflection at a projection": lambda: ((I - 2 * A) @ (I - 2 * A), I, (eq(A @ A, A),)),
    "an invertible projection": lambda: (A, I, (eq(A @ A, A), eq(A @ B, I))),
    "symmetry of a product": lambda: ((S @ B).T, B @ S, (eq(S @ B, B @ S), eq(B, B.T))),
    "nilpotent": lambda: (sa.inv(I - A), I + A, (eq(A @ A, sa.zeros(n, n)),)),
    "push-through": lambda: (sa.inv(I + F @ G) @ F, F @ sa.inv(sa.eye(k) + G @ F), ()),
    "Woodbury": lambda: (
        sa.inv(A + F @ K @ G),
        sa.inv(A) - sa.inv(A) @ F @ sa.inv(sa.inv(K) + G @ sa.inv(A) @ F) @ G @ sa.inv(A),
        (),
    ),
    "Cayley transform is orthogonal": lambda: (
        sa.inv(I + A) @ (I - A) @ (sa.inv(I + A) @ (I - A)).T,
        I,
        (eq(A.T, -A),),
    ),
    "lengths under given isometries": lambda: ((A @ u) @ (A @ v), u @ v, (eq(A.T @ A, I),)),
    "isometries are coisometries": lambda: (A @ A.T, I, (eq(A.T @ A, I),)),
    "a form of a symmetric matrix": lambda: (u @ A @ v, v @ A @ u, (eq(A, A.T),)),
    "a form of an antisymmetric matrix": lambda: (u @ A @ u, sa.zeros(), (eq(A.T, -A),)),
    "Pythagoras": lambda: (sa.sum(u * u), sa.sum((A @ u) ** 2) + sa.sum((u - A @ u) ** 2), (eq(A @ A, A), eq(A, A.T))),
    "squares of an orthogonal matrix": lambda: (sa.sum(U * U, axis=-1), one, ()),
    "squares of an isometry": lambda: (sa.sum(A * A, axis=-1), one, (eq(A.T @ A, I),)),
    "RMSNorm of rotated rows": lambda: (rms(X @ D), rms(X) @ D, (eq(D.T @ D, sa.eye(d)),)),
    "LayerNorm of rows rotated about the vector of ones": lambda: (
        layer_norm(X @ H),
        layer_norm(X) @ H,
        (eq(H @ sa.ones(d), sa.ones(d)),),
    ),
    "rotated heads": lambda: ((X @ W_h @ L) @ (X @ W_h @ L).mT, (X @ W_h) @ (X @ W_h).mT, (eq(L.T @ L, sa.eye(k)),)),
    "scaled rows of what is conjugated": lambda: (
        w[:, None] * (sa.inv(A) @ (u[:, None] * B)), sa.inv(M) @ (u[:, None] * (w[:, None] * B)),
        (eq(sa.diag(w) @ A, M @ sa.diag(w)),)),
    "a bias that a permutation keeps": lambda: (
        biased(Pi @ X), Pi @ biased(X), (eq(Pi @ M @ Pi.T, M),)),
    "a mask that a permutation keeps": lambda: (
        sa.softmax(Pi @ A @ Pi.T, where=Mask), Pi @ sa.softmax(A, where=Mask) @ Pi.T, (eq(Pi @ Mask @ Pi.T, Mask),)),
    "tokens that a permutation keeps": lambda: (Pi @ attention(X), attention(X), (eq(Pi @ X, X),)),
    "equivariance under a given symmetry": lambda: (
        attention(Pi @ X) + M @ Pi @ X,
        Pi @ (attention(X) + M @ X),
        (eq(M @ Pi, Pi @ M),),
    ),
}

FALSE: dict[str, Callable[[], Question]] = {
    "one-sided inverse, not square": lambda: (G @ F, sa.eye(k), (eq(F @ G, I),)),
    "product of three, not square": lambda: (K @ G @ F, sa.eye(k), (eq(F @ K @ G, I),)),
    "fixed from the left": lambda: (u @ A, u, (eq(A @ u, u),)),
    "left null vector of no symmetric matrix": lambda: (u @ A, O, (eq(A @ u, O),)),
    "commuting is not transitive": lambda: (A @ C, C @ A, (eq(A @ B, B @ A), eq(B @ C, C @ B))),
    "commutes with the transpose": lambda: (A @ B.T, B.T @ A, (eq(A @ B, B @ A),)),
    "commutes with a sum of another": lambda: (A @ (B + C), (B + C) @ A, (eq(A @ B, B @ A),)),
    "a square root of the identity": lambda: (A, I, (eq(A @ A, I),)),
    "nilpotent is not zero": lambda: (A, 0 * A, (eq(A @ A, sa.zeros(n, n)),)),
    "zero divisors": lambda: (B @ A, sa.zeros(n, n), (eq(A @ B, sa.zeros(n, n)),)),
    "cancelled without an inverse": lambda: (B, C, (eq(A @ B, A @ C),)),
    "cancelled on the wrong side": lambda: (B, C, (eq(A @ B, C @ A), eq(A @ R, I))),
    "columns of a stochastic matrix": lambda: (sa.sum(A, axis=0), one, (stochastic(A),)),
    "stochastic is not its transpose": lambda: (A.T @ one, one, (stochastic(A),)),
    "sum of stochastic matrices": lambda: (sa.sum(A + B, axis=-1), one, (stochastic(A), stochastic(B))),
    "a projection is no identity": lambda: (A @ X, X, (eq(A @ A, A),)),
    "a projection is not symmetric": lambda: (A, A.T, (eq(A @ A, A),)),
    "product of projections": lambda: (A @ B @ A @ B, A @ B, (eq(A @ A, A), eq(B @ B, B))),
    "product of symmetric matrices": lambda: ((S @ B).T, S @ B, (eq(B, B.T),)),
    "intertwined is not commuting": lambda: (E @ Pi @ X, Pi @ E @ X, (eq(E @ Pi, R @ E),)),
    "invariant under half of a permutation": lambda: (Pi @ M, M, (eq(Pi @ M @ Pi.T, M),)),
    "reparametrised without a transpose": lambda: (
        attention(X, W_q @ L, W_k @ L2), attention(X), (eq(L @ L2, sa.eye(k)),)),
    "orthogonal columns of weights": lambda: (
        (X @ W_q) @ (W_q.T @ X.T), X @ X.T, (eq(W_q.T @ W_q, sa.eye(k)),)),
    "eigenvalue of the inverse": lambda: (sa.inv(A) @ u, c * u, (eq(A @ u, c * u),)),
    "Cayley of a symmetric matrix": lambda: (
        sa.inv(I + A) @ (I - A) @ (sa.inv(I + A) @ (I - A)).T, I, (eq(A.T, A),)),
    "push-through on the wrong side": lambda: (sa.inv(I + A @ B) @ B, B @ sa.inv(I + B @ A), ()),
    "a form of no symmetric matrix": lambda: (u @ A @ v, v @ A @ u, (eq(A @ A, A),)),
    "two vectors and an antisymmetric matrix": lambda: (u @ A @ v, sa.zeros(), (eq(A.T, -A),)),
    "Pythagoras in an oblique projection": lambda: (
        sa.sum(u * u), sa.sum((A @ u) ** 2) + sa.sum((u - A @ u) ** 2), (eq(A @ A, A),)),
    "LayerNorm of rotated rows": lambda: (layer_norm(X @ H), layer_norm(X) @ H, ()),
    "squares of a matrix with orthogonal columns": lambda: (sa.sum(F * F, axis=-1), one, (eq(F.T @ F, sa.eye(k)),)),
    "scaled rows of a matrix on the other side": lambda: (
        w[:, None] * (A @ B), A @ (w[:, None] * B), (eq(sa.diag(u) @ A, A @ sa.diag(u)),)),
    "a bias that another permutation keeps": lambda: (
        biased(Pi @ X), Pi @ biased(X), (eq(Turn @ M @ Turn, M),)),
    "a bias whose rows a permutation keeps": lambda: (biased(Pi @ X), Pi @ biased(X), (eq(Pi @ M, M),)),
    "tokens that another permutation keeps": lambda: (Pi @ attention(X), attention(X), (eq(Turn @ X, X),)),
    "isometry between spaces": lambda: (F @ F.T, I, (eq(F.T @ F, sa.eye(k)),)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_what_follows_is_proved(name):
    left, right, given = TRUE[name]()
    verdict = sa.prove(left, right, given=given)
    assert verdict, verdict
    assert verdict.proof.check()
    assert verdict.proof.latex()


@pytest.mark.parametrize("name", FALSE)
def test_what_nearly_follows_is_not_proved_even_where_nothing_is_tried(name):
    left, right, given = FALSE[name]()
    hypotheses, claim = applied(Given.of(given), sa.eq(left, right))
    assert not isinstance(argued(hypotheses, claim, Budget(5.0)), Argument)


@pytest.mark.parametrize("given", [
    (eq(A @ B, I), eq(A @ B, 2 * I)),
    (eq(A @ A, sa.zeros(n, n)), eq(A @ B, I)),
    (eq(U @ U, sa.zeros(n, n)),),
])  # fmt: skip
def test_hypotheses_that_nothing_meets_are_said(given):
    with pytest.raises(sa.OperandError, match="contradicts itself"):
        sa.prove(B, C, given=given)


def test_a_step_that_does_not_follow_is_seen():
    proof = sa.prove(B, sa.inv(A), given=[eq(A @ B, I)]).proof
    assert pickle.loads(pickle.dumps(proof)).check()
    found = proof.argument
    for k, rule in enumerate(found.rules):
        doubled = replace(rule, words={word: 2 * c if word == () else c for word, c in rule.words.items()})
        last = replace(rule, words={**rule.words, rule.lead + rule.lead: sympy.S.One})
        for wrong in (doubled, last):
            rules = (*found.rules[:k], wrong, *found.rules[k + 1 :])
            assert rules == found.rules or not replace(found, rules=rules).check()
    assert not replace(proof, argument=replace(found, rules=found.rules[:-1])).check()


@pytest.mark.parametrize("one", [sa.tensor("a", 1), sa.tensor("a", 1, 1)])
def test_a_single_scale_is_no_diagonal_matrix(one):
    assert sa.prove(one * (B @ A), one * I, given=[eq(A @ B, I)])


def test_what_holds_nowhere_is_not_proved():
    assert sa.prove(sa.inv(A), B, given=[eq(A @ A, sa.zeros(n, n))]).status == "unknown"


def test_a_proof_says_where_each_equality_comes_from():
    text = sa.prove(B, sa.inv(A), given=[eq(A @ B, I)]).proof.text()
    assert "(1) A @ B = eye(n): given" in text
    assert "a matrix times its inverse is the identity" in text
