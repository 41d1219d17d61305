"""Examples in numbers: values that do not fit what is declared are refused, and arrays are shown as they are."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.boxes import Name
from symattn.document.exactly import exact_values
from symattn.document.numbers import array_equation
from symattn.printing.media.latex import latex
from symattn.printing.media.unicode import unicode_text

N, M = sa.sizes("n m")
TAU = sympy.Symbol("tau", positive=True)
NAN, INF = float("nan"), float("inf")


def shown(*properties: str, values: object) -> sa.Derivation:
    x = sa.tensor("X", N, N, **dict.fromkeys(properties, True))
    return sa.Derivation("D").extend(sa.let("Y", x + 1)).example({x: values})


@pytest.mark.parametrize(
    ("declared", "values", "problem"),
    [
        ("orthogonal", [[1, 1], [0, 1]], r"orthogonal, but in the product of its transpose and it entry \[0, 1\] is 1"),
        ("permutation", [[1, 0], [1, 0]], r"permutation, but column \[0\] has 2 ones"),
        ("permutation", [[0, 2], [1, 0]], r"permutation, but entry \[0, 1\] is 2"),
        ("positive", [[1, 1], [0, 1]], r"positive, but entry \[1, 0\] is 0"),
        ("binary", [[0, 0.5], [1, 1]], r"binary, but entry \[0, 1\] is 0.5"),
        ("integer", [[0, 2], [1, 1.5]], r"integer, but entry \[1, 1\] is 1.5"),
        ("integer", [[0, 2], [1, INF]], r"integer, but entry \[1, 1\] is inf"),
        ("invertible", [[1, 2], [2, 4]], "invertible, but it has rank 1 of 2"),
        ("invertible", [[1, INF], [2, 4]], r"invertible, but entry \[0, 1\] is infinite"),
        ("symmetric", [[1, 2], [1, 1]], r"symmetric, but entry \[0, 1\] is 2, and the one across from it 1"),
        ("constant", [[1, NAN], [1, 1]], r"X\[n, n\], of which entry \[0, 1\] is not a number"),
    ],
)
def test_values_that_lack_what_is_declared_are_refused(declared, values, problem):
    with pytest.raises(sa.OperandError, match=problem):
        shown(declared, values=values)


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        (["orthogonal"], [[0.6, 0.8], [-0.8, 0.6]]),
        (["permutation"], [[0, 1], [1, 0]]),
        (["binary"], [[True, False], [False, True]]),
        (["symmetric", "positive"], [[1, 2], [2, 1]]),
        (["invertible"], [[0, 1], [1, 1]]),
        (["integer"], [[-3, 0], [2, 9]]),
    ],
)
def test_values_that_have_what_is_declared_are_taken(declared, values):
    assert "X = " in shown(*declared, values=values).text()


@pytest.mark.parametrize("value", [-1, 0, "a", None, 1j, NAN, sympy.oo, [1], True])
def test_a_scalar_that_is_none_or_lacks_what_is_declared_is_refused(value):
    x = sa.tensor("x", N)
    with pytest.raises(sa.OperandError, match="tau = .*, which is declared positive|a real number for tau, not"):
        sa.Derivation("D").extend(sa.let("y", TAU * x)).example({x: [1], TAU: value})


def test_sizes_are_those_of_the_arrays_and_may_be_given_as_values():
    x, w = sa.tensor("x", N, M), sa.tensor("w", 2, 2)
    note = sa.Derivation("D").extend(sa.let("y", 2 * x))
    assert note.example({N: 2, M: 3}).text() == note.example(sizes={N: 2, M: 3}).text()
    with pytest.raises(sa.OperandError, match="has sizes by their symbols, .T: 2., and 'n' is none"):
        note.example(sizes={"n": 2})
    with pytest.raises(sa.OperandError, match=r"a size is 2, but w\[2, 2\] has 3 there"):
        sa.Derivation("D").extend(sa.let("y", 2 * w)).example({w: np.ones((3, 3))})


def test_values_that_are_not_finite_are_shown_without_a_warning(recwarn):
    x = sa.tensor("x", N)
    text = sa.Derivation("D").extend(sa.let("y", sa.log(x))).example({x: [0, -1, 1]}).text()
    assert "undefined" in text
    assert "−∞" in text
    assert not recwarn.list


@pytest.mark.parametrize(
    ("array", "written"),
    [
        ([1, -2, 30], "[1; −2; 30]"), ([-0.0, 0.5], "[0; 0.500]"), ([1e10, -1e10, 2.5e7], "[10¹⁰; −10¹⁰; 2.5 ⋅ 10⁷]"),
        ([1e-5, 1.25], "[10⁻⁵; 1.250]"), ([123456.7], "[123456.700]"), ([INF, -INF, NAN], "[∞; −∞; undefined]"),
        (3.14159, "3.14159"), (-2, "−2"), ([[1234567.891, 0.1]], "[1234567.891, 0.100]"), ([1.5e-9], "[1.5 ⋅ 10⁻⁹]"),
        ([1.23456e-7], "[1.23456 ⋅ 10⁻⁷]"), (12345678, "12345678"),
        (np.ones((2, 2, 3)), "an array of 2 × 2 × 3 numbers"),
        (np.arange(9), "[0; 1; 2; 3; 4; 5; ⋮; 8] (9 entries)"), (np.arange(8), "[0; 1; 2; 3; 4; 5; 6; 7]"),
        (np.arange(20).reshape(2, 10), "[0, 1, 2, 3, 4, 5, ⋯, 9; 10, 11, 12, 13, 14, 15, ⋯, 19] (2 × 10)"),
        (np.full((1, 8), -0.25), "[−0.250, −0.250, −0.250, −0.250, −0.250, ⋯, −0.250] (1 × 8)"),
    ],
)  # fmt: skip
def test_arrays_that_are_given_are_written_with_all_digits_and_large_ones_in_part(array, written):
    box = array_equation(Name("A"), np.array(array, dtype=float))
    assert unicode_text(box) == f"A = {written}"
    assert latex(box).isascii()


@pytest.mark.parametrize(
    ("make", "values", "written"),
    [
        (lambda x: x / 8, [1, 4], "[0.125; 0.500]"), (lambda x: x / 16, [1, 4], None),
        (sa.softmax, [0, 0], "[0.500; 0.500]"), (sa.softmax, [0, 1e4], None), (sa.softmax, [0, 40], None),
        (sa.sqrt, [4, 9], "[2; 3]"), (sa.exp, [0, -1e4], None),
        (lambda x: x * 1.2345678, [1e6, 0], None), (lambda x: x + sa.exp(-x), [50, 60], None), (sa.tanh, [30, 0], None),
    ],
)  # fmt: skip
def test_what_is_computed_is_equal_only_where_it_is_exact(make, values, written):
    x, array = sa.tensor("x", N), np.array(values, dtype=float)
    y = make(x)
    (value,) = sa.lambdify([x], [y])(array)
    text = unicode_text(array_equation(Name("y"), value, exact_values([y], {N: 2}, {}, {x: array})[y]))
    assert text.startswith("y ≈ ") if written is None else text == f"y = {written}"


def test_a_number_with_more_digits_than_are_read_is_rounded():
    assert unicode_text(array_equation(Name("A"), np.array([1 / 3]))) == "A ≈ [0.333]"


def test_an_array_that_a_narrow_page_does_not_hold_is_refused():
    x = sa.tensor("x", N, M)
    note = sa.Derivation("D").extend(sa.let("y", 2 * x)).example({x: [[-0.125] * 6]})
    assert r"\begin{bmatrix}" in note.latex(width=28)
    with pytest.raises(sa.OperandError, match="width=20 does not hold a line of about 27 em"):
        note.latex(width=20)
