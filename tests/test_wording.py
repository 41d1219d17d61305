"""What a verdict says: the claim, what was given, and what the names in it stand for, in print, repr and LaTeX."""

from __future__ import annotations

import re

import pytest
import sympy

import symattn as sa

n, m, d = sa.sizes("n m d")
A, x = sa.tensor("A", n, n), sa.tensor("x", n)
X, Z, Y = sa.tensor("X", n, d), sa.tensor("Z", n, m), sa.tensor("Y", n, m)
lam = sympy.Symbol("lam", positive=True)


@pytest.mark.parametrize(
    ("claim", "given", "text", "tex"),
    [
        (sa.le(sa.softmax(Z) - lam * sa.softmax(Y), 1), sa.le(0, lam), "0 <= lam", r"0 \le lam"),
        (sa.eq(A.T @ A @ x, x), sa.tensor("A", n, n, orthogonal=True), "A[n, n] is orthogonal", "is orthogonal"),
        (sa.eq(sa.sum(x), m * sa.ones()), sympy.Eq(n, m), "n = m", "n = m"),
        (sa.eq(A @ x, x), sympy.Mod(n, 2) > 0, "Mod(n, 2) > 0", r"n \bmod 2 > 0"),
        (sa.lt(x + x, 0), sa.lt(x, 0), "x < zeros(n)", r"x < 0_{n}"),
    ],
    ids=["bound", "property", "sizes", "parity", "sign"],
)
def test_a_verdict_states_what_was_given(claim, given, text, tex):
    verdict = sa.prove(claim, given=[given])
    assert f"\ngiven {text}" in str(verdict)
    assert repr(verdict).endswith(f" given {text}>")
    assert tex in verdict.latex()
    if verdict:
        assert text in verdict.proof.hypotheses


def test_several_hypotheses_are_stated_in_order():
    verdict = sa.prove(sa.lt(x, 3), given=[sa.le(x, 1), n >= 2, sympy.Eq(m, d)])
    assert str(verdict) == "proved: x < broadcast_to(3, (n,))\ngiven x <= ones(n); n >= 2; m = d"


def test_nothing_is_said_where_nothing_was_given():
    assert "given" not in str(sa.prove(x, x + 1)) + repr(sa.prove(x, x))


def test_intermediates_are_told_apart_and_defined():
    verdict = sa.prove(*(sa.attention.scaled_dot_product(X, X, X, scale=s) for s in (2, 1)))
    claim, definitions, *_ = str(verdict).splitlines()
    assert claim == "refuted: P_1 @ X = P_2 @ X"
    assert definitions == "with Z_1 = 2 * (X @ X.T); P_1 = softmax(Z_1); Z_2 = X @ X.T; P_2 = softmax(Z_2)"
    assert r"$P_{1} X = P_{2} X$, where $Z_{1} = 2 \, X X^{\top}$;" in verdict.latex()
    assert repr(verdict) == "<refuted: P_1 @ X = P_2 @ X>"


def test_one_quantity_has_one_name():
    O = sa.attention.scaled_dot_product(X, X, X, scale=2)
    proof = sa.prove(O, O + X - X).proof
    assert "Notation: Z = 2 * (X @ X.T); P = softmax(Z); O = P @ X" in proof.text()
    assert r"\textbf{Notation.} $Z = 2 \, X X^{\top}$;" in proof.latex()


@pytest.mark.parametrize(
    "claim",
    [
        lambda P: sa.eq(P @ X[:1], 2 * P @ X[:1]),
        lambda P: sa.lt(2, P + P * P),
        lambda P: sa.independent(sa.cumsum(P, axis=0), X),
        lambda P: sa.eq(sa.gradient(sa.sum(P**2), [X])[X], X),
    ],
    ids=["product", "bound", "independence", "gradient"],
)
def test_a_claim_defines_what_it_mentions(claim):
    text = str(sa.prove(claim(sa.let("P", sa.softmax(X @ X[0])[:, None]))))
    assert re.search(r"^with .*\bP = (softmax\(X @ X\[0, :\]\)|P_1)\[:, None\]", text, re.MULTILINE)


def test_facts_and_the_claim_share_their_names():
    P, R = sa.let("P", sa.softmax(Z)), sa.let("P", sa.softmax(Y))
    verdict = sa.prove(sa.le(P + R, 2), given=[sa.le(P * R, 1)])
    assert "given P_1 * P_2 <= ones(n, m)\nwith P_1 = softmax(Z); P_2 = softmax(Y)" in str(verdict)


def test_many_definitions_are_counted():
    y = x
    for k in range(30):
        y = sa.let(f"h_{k}", sa.tanh(y + k))
    assert "; and 17 intermediates more" in str(sa.prove(y, x))
