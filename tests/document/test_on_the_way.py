"""Counterexamples show scores, weights and named tensors between the arrays and the values that differ."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z = sa.let("Z", Q @ K.T)


def told(left: sa.Tensor, right: sa.Tensor, **options: object) -> str:
    """What a document says of a false claim, behind its arrays."""
    text = sa.Derivation("A").claim(sa.prove(left, right, **options)).text()
    return " ".join(text[text.index("On the left" if "On the left" in text else "on the left") :].split())


def test_scores_and_weights_of_each_side_are_shown():
    text = told(sa.softmax(Q @ (2 * K).T) @ V, sa.softmax(Z) @ V)
    assert text.startswith("on the left: Q (2 Kᵀ) = [0, 2], softmax(Q (2 Kᵀ)) ≈ [0.119, 0.881] left_(0 0) = ")
    assert "and on the right: Z = [0, 1], softmax(Z) ≈ [0.269, 0.731] right_(0 0) = " in text


def test_what_both_sides_have_is_shown_once():
    text = told(sa.let("P", sa.softmax(Z)) @ V, 2 * sa.let("P", sa.softmax(Z)) @ V)
    assert text.count("P = [") == 1


def test_of_many_steps_the_last_are_shown_and_a_side_that_is_one():
    text = told(sum((sa.softmax(k * Z) for k in range(2, 7)), sa.softmax(Z)), sa.softmax(Z))
    left, right = text.split("and on the right:")
    assert left.count(" = [") == 4
    assert right.startswith(" Z = [0], softmax(Z) = [1], right_(0 0) = ")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Q @ K.T, 2 * Q @ K.T),
        (sa.softmax(sa.unknown("phi", Z)), sa.softmax(Z)),
        (sa.softmax(sa.tensor("H", 2, T, d)), 2 * sa.softmax(sa.tensor("H", 2, T, d))),
        (sympy.Integer(1) * sa.ones(T), sa.zeros(T)),
    ],
)
def test_nothing_is_shown_where_nothing_is_on_the_way_or_it_is_too_large(left, right):
    assert "the two sides differ:" in sa.Derivation("A").claim(sa.prove(left, right)).text().replace("The", "the")


def test_functions_of_others_are_not_taken_for_known_ones():
    x = sa.tensor("x", "n")
    known, other = (sa.Derivation("A").extend(sa.let("y", f)).text() for f in (sa.sigmoid(x), sa.unknown("sigma", x)))
    assert "σ(z) is 1/(1 + ℯ⁻ᶻ)" in known
    assert "y ≔ σ(x)" in other
    assert "ℯ" not in other


def test_sums_of_rows_in_all_places_are_explained():
    X = sa.tensor("X", T, d)
    repeated = sa.Derivation("A").extend(sa.let("Y", X - sa.sum(X, axis=1, keepdims=True))).text()
    assert "A 𝟏 𝟏ᵀ has the sum of each row" in " ".join(repeated.split())
    assert "A 𝟏 𝟏ᵀ" not in sa.Derivation("A").extend(sa.let("y", sa.sum(X, axis=1))).text()


def test_letters_of_conventions_stand_for_nothing_else():
    A, x = sa.tensor("A", T, d), sa.tensor("x", T)
    text = sa.Derivation("A").extend(sa.let("Y", A - sa.sum(A, axis=1, keepdims=True) + sa.diag(x) @ A)).text()
    assert "B 𝟏 𝟏ᵀ has the sum of each row of B" in " ".join(text.split())
    assert "diag(y) has y on its diagonal" in " ".join(text.split())
