"""Ten claims of which people read the proofs: each has to convince on its own."""

from __future__ import annotations

from typing import Any

import sympy

import symattn as sa
from symattn.proof.verdict import Verdict

T, S, d, e, n, h, r = sa.sizes("T S d e n h r")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
GRADIENT = sa.gradient(O, [Q, K, V])
X, PI = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True)
W = {name: sa.tensor(f"W_{name}", d, e) for name in "qkv"}
CAUSAL = sa.from_index((n, n), lambda i, j: j <= i)


def attention(x: sa.Tensor, **mask: Any) -> sa.Tensor:
    """One head of self-attention with all its intermediates named."""
    q, k, v = (sa.let(name.upper(), x @ w) for name, w in W.items())
    return sa.let("O", sa.let("P", sa.softmax(sa.let("Z", q @ k.T / sympy.sqrt(e)), **mask)) @ v)


def rms_norm(x: sa.Tensor) -> sa.Tensor:
    return x / sa.sqrt(sa.mean(x**2, axis=-1, keepdims=True) + sympy.Symbol("epsilon", positive=True))


def turned(x: sa.Tensor, position: Any, name: str) -> sa.Tensor:
    """A vector whose halves are turned by a position times frequencies."""
    omega, first, second = sa.tensor("omega", r), x[:r], x[r:]
    cos, sin = sa.let(f"c_{name}", sa.cos(position * omega)), sa.let(f"s_{name}", sa.sin(position * omega))
    return sa.concat([first * cos - second * sin, first * sin + second * cos])


def permutation_equivariance() -> Verdict:
    return sa.prove(attention(PI @ X), PI @ attention(X))


def rows_of_the_gradient_of_logits() -> Verdict:
    return sa.prove(sa.sum(GRADIENT["dZ"], axis=1), sa.zeros(T))


def maximum_and_logsumexp() -> Verdict:
    return sa.prove(sa.le(sa.max(Z, axis=-1), sa.logsumexp(Z)))


def causality() -> Verdict:
    return sa.prove(sa.independent(attention(X, where=CAUSAL), X, when=lambda out, inp: inp[0] > out[0]))


def rms_norm_under_an_orthogonal_change() -> Verdict:
    R = sa.tensor("R", d, d, orthogonal=True)
    return sa.prove(rms_norm(X @ R), rms_norm(X) @ R)


def shift_invariance() -> Verdict:
    c = sa.tensor("c", T)
    return sa.prove(sa.softmax(Z + c[:, None]) @ V, O)


def linear_attention() -> Verdict:
    A, B = sa.let("A", sa.exp(Q)), sa.let("B", sa.exp(K))
    weights = sa.let("S", A @ B.T)
    return sa.prove(
        weights @ V / sa.sum(weights, axis=-1, keepdims=True), A @ (B.T @ V) / (A @ sa.sum(B, axis=0))[:, None]
    )


def relative_positions() -> Verdict:
    q, k, (s, t) = sa.tensor("q", 2 * r), sa.tensor("k", 2 * r), sympy.symbols("s t", real=True)
    return sa.prove(
        sa.let("u", turned(q, s, "s")) @ sa.let("v", turned(k, t, "t")), q @ sa.let("w", turned(k, t - s, "d"))
    )


def gradient_by_hand() -> Verdict:
    dO = GRADIENT.cotangent
    return sa.prove(GRADIENT[Q], P * (dO @ V.T - sa.sum(O * dO, axis=1, keepdims=True)) @ K / sympy.sqrt(d))


def heads() -> Verdict:
    H, w = sa.tensor("H", h, n, e), sa.tensor("W", h * e, d)
    joined, parts = sa.let("C", sa.merge_axes(sa.moveaxis(H, 0, 1), (1, 2))), sa.let("U", sa.split_axis(w, 0, (h, e)))
    return sa.prove(joined @ w, sa.sum(H @ parts, axis=0))


PROOFS = {
    build.__name__: build
    for build in (
        permutation_equivariance,
        rows_of_the_gradient_of_logits,
        maximum_and_logsumexp,
        causality,
        rms_norm_under_an_orthogonal_change,
        shift_invariance,
        linear_attention,
        relative_positions,
        gradient_by_hand,
        heads,
    )
}
