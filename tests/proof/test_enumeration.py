"""Claims without a free size: every entry is written out and compared."""

from __future__ import annotations

import time

import pytest
import sympy

import symattn as sa
from symattn.proof.refute.enumeration import Enumeration

X, x, t = sa.tensor("X", 2, 3), sa.tensor("x", 3), sa.tensor("t", 6)
FLAT = sa.merge_axes(X, (0, 1))
Y = sa.split_axis(FLAT, 0, (3, 2))
INDEX = sa.from_index
CIRCLE = sa.take(x, INDEX((3, 3), lambda i, j: sympy.Mod(i - j, 3)), axis=0)
SLOPES = sa.attention.alibi_slopes(12, rule="geometric")
U = sa.tensor("U", 2, 2)
HEADS = sa.tensor("H", 2, 2, 3)

T = sa.sizes("T")
SHIFTED, QUERIES, DISTANCES = sa.tensor("B", 3, 5), sa.tensor("Q", 3, 2), sa.tensor("R", 5, 2)
HOW_FAR = INDEX((3, 5), lambda i, j: sympy.Max(0, 2 + i - j))  # from query i, in place i + 2, back to key j
REACHED = sa.attention.causal_mask(3, 5, align="bottom-right")


def by_padding(scores):
    """The relative shift by a column of zeros in front and a reshape, of scores by distance to scores by key."""
    rows, columns = scores.shape
    padded = sa.concat([sa.zeros(rows, 1), scores], axis=1)
    shifted = sa.split_axis(sa.merge_axes(padded, (0, 1)), 0, (columns + 1, rows))[1:]
    return sa.split_axis(sa.merge_axes(shifted, (0, 1)), 0, (rows, columns))


def halves_of(x):
    """The features of neighbouring pairs in the order of halves."""
    order = INDEX((4,), lambda j: sympy.Mod(2 * j, 4) + sympy.floor(j / 2))
    return sa.take(x, order, axis=-1)


def rotary_scores(length, layout, order=lambda x: x, size=4):
    q, k = sa.tensor("Q", length, size), sa.tensor("K", length, size)
    return sa.attention.rotary(order(q), layout=layout) @ sa.attention.rotary(order(k), layout=layout).T


def moved_columns(x):
    return sa.concat([x[:, 0::2], x[:, 1::2]], axis=1)


TRUE = {
    "rotary layouts, one row": lambda: sa.eq(rotary_scores(1, "interleaved"), rotary_scores(1, "half", halves_of)),
    "rotary layouts, three rows": lambda: sa.eq(rotary_scores(3, "interleaved"), rotary_scores(3, "half", halves_of)),
    "rotary layouts": lambda: sa.eq(rotary_scores(T, "interleaved"), rotary_scores(T, "half", halves_of)),
    "rotary layouts by slices": lambda: sa.eq(rotary_scores(T, "interleaved"), rotary_scores(T, "half", moved_columns)),
    "rotary layouts of six features": lambda: sa.eq(
        rotary_scores(T, "interleaved", size=6), rotary_scores(T, "half", moved_columns, size=6)
    ),
    "features of a free row in another order": lambda: sa.eq(
        sa.sum(halves_of(sa.tensor("Q", T, 4)) ** 2, axis=1), sa.sum(sa.tensor("Q", T, 4) ** 2, axis=1)
    ),
    "weights of a free row in another order": lambda: sa.eq(
        sa.sum(sa.take(sa.softmax(sa.tensor("Q", T, 4)), INDEX((4,), lambda j: sympy.Mod(3 * j, 4)), axis=1), axis=1),
        sa.ones(T),
    ),
    "the relative shift, first row": lambda: sa.eq(by_padding(SHIFTED)[0, :3], SHIFTED[0, 2:]),
    "the relative shift, last row": lambda: sa.eq(by_padding(SHIFTED)[2], SHIFTED[2]),
    "the relative shift": lambda: sa.eq(by_padding(SHIFTED) * REACHED, sa.shift(SHIFTED, lambda i: 2 - i) * REACHED),
    "the relative shift of scores": lambda: sa.eq(
        by_padding(QUERIES @ sa.flip(DISTANCES, 0).T) * REACHED,
        sa.sum(QUERIES[:, None] * sa.take(DISTANCES, HOW_FAR, axis=0), axis=-1) * REACHED,
    ),
}
TRUE |= {
    "reshaped, one entry": lambda: sa.eq(Y[1, 1], X[1, 0]),
    "reshaped": lambda: sa.eq(
        Y,
        sa.concat(
            [X[0, :2][None], sa.concat([X[0, 2:], X[1, :1]], axis=0)[None], X[1, 1:][None]], axis=0
        ),
    ),
    "sum of the reshaped": lambda: sa.eq(sa.sum(Y), sa.sum(X)),
    "sum of squares of the reshaped": lambda: sa.eq(sa.sum(Y * Y), sa.sum(X * X)),
    "a cubic with its zeros": lambda: sa.eq(INDEX((3,), lambda i: i * (i - 1) * (i - 2)), sa.zeros(3)),
    "a little Fermat": lambda: sa.eq(INDEX((7,), lambda i: sympy.Mod(i**7 - i, 7)), sa.zeros(7)),
    "triangular numbers": lambda: sa.eq(INDEX((5,), lambda i: i * (i + 1) / 2), sa.cumsum(INDEX((5,), lambda i: i))),
    "a place that is computed": lambda: sa.eq(sa.take(t, INDEX((6,), lambda i: sympy.Mod(5 * i, 6)), axis=0)[1], t[5]),
    "a circulant": lambda: sa.eq(sa.sum(CIRCLE, axis=1), sa.sum(x) * sa.ones(3)),
    "a softmax in another order": lambda: sa.eq(
        sa.sum(sa.take(sa.softmax(t), INDEX((6,), lambda i: sympy.Mod(5 * i, 6)), axis=0)), sa.ones()
    ),
    "stacked heads": lambda: sa.eq(sa.split_axis(sa.merge_axes(HEADS, (0, 1)), 0, (2, 2))[1, 0], HEADS[1, 0]),
    "heads apart otherwise": lambda: sa.eq(
        sa.split_axis(sa.merge_axes(HEADS, (1, 2)), 1, (3, 2))[:, 1, 0], HEADS[:, 0, 2]
    ),
    "slopes fall": lambda: sa.lt(SLOPES[1:], SLOPES[:11]),
    "powers grow": lambda: sa.lt(INDEX((8,), lambda i: i**2), INDEX((8,), lambda i: 3 * 2**i)),
    "a bound that is met": lambda: sa.le(INDEX((5,), lambda i: sympy.Mod(3 * i, 5)), 4),
    "roots": lambda: sa.le(INDEX((4,), lambda i: sympy.sqrt(i) ** 2), INDEX((4,), lambda i: i)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_finite_claims_are_decided(name):
    verdict = sa.prove(TRUE[name]())
    assert verdict, str(verdict)
    assert verdict.proof.check()


FALSE = {
    "rotary layouts without another order": lambda: sa.eq(rotary_scores(T, "interleaved"), rotary_scores(T, "half")),
    "rotary layouts by the order back": lambda: sa.eq(
        rotary_scores(T, "interleaved", size=6), rotary_scores(T, "half", lambda x: x[:, ::-1], size=6)
    ),
    "features of a free row, weighted": lambda: sa.eq(
        halves_of(sa.tensor("Q", T, 4)) @ INDEX((4,), lambda i: i), sa.tensor("Q", T, 4) @ INDEX((4,), lambda i: i)
    ),
    "the relative shift everywhere": lambda: sa.eq(by_padding(SHIFTED), sa.shift(SHIFTED, lambda i: 2 - i)),
    "reshaped": lambda: sa.eq(Y, X.T),
    "a circulant": lambda: sa.eq(CIRCLE, CIRCLE.T),
    "slopes grow": lambda: sa.lt(SLOPES[:11], SLOPES[1:]),
    "a bound": lambda: sa.lt(INDEX((5,), lambda i: sympy.Mod(3 * i, 5)), 4),
    "no zero": lambda: sa.eq(INDEX((4,), lambda i: i * (i - 1) * (i - 2)), sa.zeros(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_false_finite_claims_are_refuted(name):
    assert sa.prove(FALSE[name]()).status == "refuted"


def test_the_proof_says_how_many_entries_were_compared():
    proof = sa.prove(TRUE["a cubic with its zeros"]()).proof
    assert isinstance(proof.argument, Enumeration)
    assert proof.argument.text() == "The claim has 3 entries, each of which was written out and compared."
    one = sa.prove(TRUE["a place that is computed"]()).proof
    assert "The claim has one entry, which was written out and compared." in one.text()


def test_the_proof_says_that_axes_of_free_sizes_have_one_place():
    proof = sa.prove(TRUE["rotary layouts of six features"]()).proof
    assert "The claim has one entry at each place along the axes of free sizes, which was" in proof.text()
    rows = Enumeration(sa.eq(sa.tensor("Q", T, 4), sa.tensor("Q", T, 4)))
    assert rows.text().startswith("The claim has 4 entries at each place along the axes of free sizes, each of which")


def test_axes_of_free_sizes_have_the_same_place_on_both_sides():
    """Whatever the letters of the scalars on one side, and transposed entries are not the same."""
    i = sympy.Symbol("i", integer=True, nonnegative=True)
    A = sa.tensor("A", T, T, 4)
    left, right = i * halves_of(A), i * halves_of(A).subs({})
    assert sa.prove(left, right)
    assert sa.prove(i * halves_of(A) - i * halves_of(A), sa.moveaxis(halves_of(A) - halves_of(A), 0, 1))
    assert not sa.prove(0 * i * A + halves_of(A), sa.moveaxis(halves_of(A), 0, 1))


def test_what_is_long_when_multiplied_out_is_not_multiplied_out():
    x, y, z = sa.tensor("x", 3), sa.tensor("y", 3), sa.tensor("z", 3)
    power = (sa.sum(x) + sa.sum(y) + 1) ** 12 * (sa.sum(z) + sa.sum(x)) ** 9
    started = time.process_time()
    sa.prove(power * Y[0, 0], power * sa.sum(sa.softmax(z)) * X[0, 0], budget=1)
    assert sa.prove(power, power * (1 + Y[2, 0] * Y[0, 1] - X[0, 1] * X[1, 0]), budget=1).status != "proved"
    assert time.process_time() - started < 4


def test_what_has_no_value_is_not_proved_by_enumeration():
    for left, right in (
        (sa.log(0 * INDEX((3,), lambda i: i)), sa.log(0 * INDEX((3,), lambda i: i)) + 1),
        (sa.inv(sa.from_index((2, 2), lambda i, j: i + 2 * j)) @ U, U),
        (sa.inv(sa.from_index((2, 2), lambda i, j: 1 + 0 * i)) @ U, U + 0 * U.T),
    ):
        verdict = sa.prove(left, right)
        assert not isinstance(verdict.proof and verdict.proof.argument, Enumeration)


def test_large_literal_sizes_are_taken_as_symbols_first():
    Z, V = sa.tensor("Z", 128, 64), sa.tensor("V", 64, 32)
    for left, right in (
        (sa.sum(sa.softmax(Z), axis=-1), sa.ones(128)),
        (sa.sum(Z @ V), sa.sum(sa.sum(Z, axis=0) * sa.sum(V, axis=1))),
        ((Z @ V).T, V.T @ Z.T),
    ):
        verdict = sa.prove(left, right, budget=5)
        assert verdict
        assert verdict.proof.check()
        assert "holds for all sizes" in verdict.proof.text()
        assert "in place of 128" in verdict.proof.text()
    assert sa.prove(Z @ V, 2 * (Z @ V), budget=0.5).status != "proved"
    assert sa.prove(sa.sum(sa.softmax(Z), axis=-1), 2 * sa.ones(128), budget=0.5).status != "proved"
