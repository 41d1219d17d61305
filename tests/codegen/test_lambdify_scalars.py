"""Sizes and scalars of compiled functions: what is refused when they are called, and what checks draw."""

import numpy as np
import pytest
import sympy

import symattn as sa


def test_an_integer_scalar_that_is_no_size_may_be_zero_or_negative():
    c, x = sympy.Symbol("c", integer=True), sa.tensor("x", "T S")
    f = sa.lambdify([x], sa.softmax(x, where=sa.from_index(("T", "S"), lambda i, j: j <= i + c)))
    np.testing.assert_array_equal(f(np.ones((2, 3)), c=-1), [[0, 0, 0], [1, 0, 0]])
    assert "error" in f.check()
    with pytest.raises(sa.EvaluationError, match=r"c is an integer, not 0\.5"):
        f(np.ones((2, 3)), c=0.5)


def test_check_draws_sizes_for_which_slices_lie_inside():
    C, T = sa.sizes("C T")
    assert "error" in sa.lambdify([sa.tensor("W", C, 2)], sa.tensor("W", C, 2)[: 3 * T] * 2).check()


def test_check_is_silent_about_the_logarithm_of_an_empty_row():
    Z, M = sa.tensor("Z", "T S"), sa.tensor("M", "T S", binary=True)
    assert "error" in sa.lambdify([Z, M], sa.logsumexp(sa.where(M, Z, -sympy.oo))).check()


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("positive", -1.0), ("positive", 0), ("negative", 2.0), ("nonnegative", -0.5), ("nonpositive", 1),
        ("nonzero", 0.0), ("even", 3), ("odd", 2),
    ],
)  # fmt: skip
def test_a_scalar_is_held_against_what_is_declared_of_it(declared, value):
    c, x = sympy.Symbol("c", **{declared: True}), sa.tensor("x", "T")
    f = sa.lambdify([x], sympy.sqrt(c**2) * (-1) ** c * x)  # simplified by what is declared
    with pytest.raises(sa.EvaluationError, match=r"c is declared \w+, and cannot be|c is a"):
        f(np.ones(2), c=value)


def test_a_misfit_of_a_size_that_is_a_number_says_it_once():
    f = sa.lambdify([sa.tensor("A", 6)], sa.tensor("A", 6))
    with pytest.raises(sa.EvaluationError, match=r"axis -1 must be 6, not 7"):
        f(np.ones(7))


@pytest.mark.parametrize("numbers", [(2.5, 0), (-3, 1), (1, 7)])
def test_numbers_that_integers_alone_choose_compile(numbers):
    y = sa.tensor("y", "T", integer=True)
    f = sa.lambdify([y], sa.where(sa.equal(y, 1), *numbers))
    np.testing.assert_array_equal(f([1, 0]), numbers)
    assert f([1, 0]).dtype == float
