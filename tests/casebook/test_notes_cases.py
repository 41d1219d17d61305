"""Disputes from public threads about formulas in notes: products that do not fit, and derivations that do."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import digits
from .test_permutation_cases import proved, refuted

T, S, d = sa.sizes("T S d")
Q, K = sa.tensor("Q", T, d), sa.tensor("K", T, d)


@pytest.mark.parametrize(("text", "meant"), [
    # L01, probml/pml-book#707: weights on the left of rows
    (r"$X \in \mathbb{R}^{m \times v}$, $W_q \in \mathbb{R}^{v \times q}$. $Q = W_q X$", "Q = X W_q"),
    # L03, phlippe/uvadlc_notebooks#65: rows of the output projection
    (r"$O \in \mathbb{R}^{T \times h d_v}$, $W^O \in \mathbb{R}^{h d_k \times D}$. $Y = O W^O$", "d_{k} = d_{v}"),
    # L05, Atcold/NYU-DLSP20#779: weights of t columns
    (r"$X \in \mathbb{R}^{n \times t}$, $a \in \mathbb{R}^{n}$. $h = X a$", r"X^\top a"),
], ids=["L01", "L03", "L05"])  # fmt: skip
def test_a_product_that_does_not_fit_is_told_with_what_was_meant(text, meant):
    (found,) = sa.check_notes(text).wrong
    assert found.status == "shape"
    assert meant in found.suggestions[0]


def test_L01_the_column_convention_fits_as_well():
    text = r"$X \in \mathbb{R}^{v \times m}$, $W_q \in \mathbb{R}^{v \times q}$. $Q = W_q^\top X$"
    assert not sa.check_notes(text).wrong


def test_L07_queries_in_the_place_of_keys_make_scores_symmetric():
    """datawhalechina/learn-nlp-with-transformers#40: scores are computed as q times q."""
    refuted(Q @ Q.T, Q @ K.T)
    proved((Q @ Q.T).T, Q @ Q.T)
    proved((Q @ K.T).T, Q @ K.T, given=[sa.eq(K, Q)])
    u = sa.tensor("u", T)
    proved(u @ (Q @ Q.T) @ u, sa.sum((Q.T @ u) ** 2))  # which is not negative


def test_L09_the_frequency_is_a_quotient():
    """hkproj/pytorch-transformer#2: a comment multiplies by the power that the code divides by."""
    p = sympy.Symbol("p", real=True)
    base = sympy.Integer(10000)
    written = sa.from_index((d,), lambda i: p * sympy.exp(-2 * i / d * sympy.log(base)))
    divided = sa.from_index((d,), lambda i: p / base ** (2 * i / d))
    proved(written, divided)
    refuted(written, sa.from_index((d,), lambda i: p * base ** (2 * i / d)))
    found = sa.lambdify([], divided)(d=6, p=3.0)
    assert np.round(found[:3], 6).tolist() == digits([3.0, 0.139248, 0.006463])


def test_L11_the_five_gradients_of_attention_hold():
    """planckeon.github.io, attention as a bilinear form: a derivation that is right is not blamed."""
    report = sa.check_notes(r"""
    $Q \in \mathbb{R}^{T \times d}$, $K \in \mathbb{R}^{S \times d}$, $V \in \mathbb{R}^{S \times e}$.
    $Z = Q K^\top / \sqrt{d}$, $A = \mathrm{softmax}(Z)$, $O = A V$.
    $$ dV = A^\top dO, \quad dA = dO V^\top, \quad dQ = dZ K / \sqrt{d}, \quad dK = dZ^\top Q / \sqrt{d} $$
    """)
    assert not report.wrong
    assert [found.status for found in report.findings].count("proved") == 4
    Z = sa.tensor("Z", T, S)
    P, slope = sa.softmax(Z), sa.gradient(sa.softmax(Z), [Z])
    dP = slope.cotangent
    proved(slope[Z], P * (dP - sa.sum(P * dP, axis=-1, keepdims=True)))
