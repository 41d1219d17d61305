"""Construction forgets no operand that may have no value: proofs list its condition, and code has no value either."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.ops.domain import is_total

n, m = sa.sizes("n m")
x, y, u = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("u", n, positive=True)
A, B, R = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("R", n, n, invertible=True)
M = sa.tensor("M", n, binary=True)
O = sa.zeros(n, n)


def scalar(f):
    v = sympy.Symbol("v", real=True)
    return sa.elementwise(sympy.Lambda(v, f(v)), x)


KEPT = {
    "0 / x": (0 / x, "x != 0"),
    "zeros / sum": (sa.zeros(n) / sa.sum(x), "sum(x) != 0"),
    "0 * log": (0 * sa.log(x), "x > 0"),
    "zeros * log1p": (sa.zeros(n) * sa.log1p(x), "log1p(x) is defined"),
    "0 * root": (0 * sa.sqrt(x), "x >= 0"),
    "0 * rsqrt, far above": (0 * sa.exp(1 + sa.tanh(sa.rsqrt(x))), "x > 0"),
    "0 * power": (0 * x ** sympy.Rational(1, 2), "x >= 0"),
    "0 * inverse": (0 * sa.inv(B), "B is invertible"),
    "zeros @ inverse": (O @ sa.inv(B), "B is invertible"),
    "inverse @ zeros": (sa.inv(A @ B) @ O, "A @ B is invertible"),
    "inverse @ vector of zeros": (sa.inv(B) @ sa.zeros(n), "B is invertible"),
    "outer": (sa.outer(sa.zeros(m), 1 / x), "x != 0"),
    "einsum": (sa.einsum("i,ij->j", sa.zeros(n), 1 / A), "A != 0"),
    "choice of zeros": (sa.where(1 / x > 0, 0, 0 * x), "x != 0"),
    "0 * choice": (0 * sa.where(M, sa.zeros(n), sa.log(x)), "x > 0"),
    "sum of zeros": (sa.sum(0 * (1 / x)), "x != 0"),
    "remainder": (0 * sa.mod(x, y), "y != 0"),
    "remainder of 0": (sa.mod(0, x), "x != 0"),
    "slice": (0 * x[:m], "m <= n"),
    "softmax of rows that may be empty": (
        0 * sa.softmax(x, where=M, empty="error"), 'softmax(x, where=M, empty="error") is defined',
    ),
    "powers of any number": (0 * x ** sa.from_index((n,), lambda i: n - 1 - i),),
    "powers, one of them below 0": (0 * x ** sa.from_index((n,), lambda i: n - 2 - i), "x > 0"),
    "roots": (0 * x ** sa.from_index((n,), lambda i: i / 2), "x > 0"),
    "arc sine": (0 * scalar(sympy.asin), "x >= -1", "x <= 1"),
    "area cosine": (0 * scalar(sympy.acosh), "x >= 1"),
    "area tangent": (0 * scalar(lambda v: sympy.atanh(2 * v)), "elementwise(lambda i: atanh(2*i), x) is defined"),
    "by a name": (0 * sa.let("w", sa.log(x)), "x > 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_0_where_it_has_a_value_keeps_its_condition(name):
    left, *listed = KEPT[name]
    verdict = sa.prove(left, sa.zeros(*left.shape))
    assert verdict, verdict
    assert verdict.proof.side_conditions == tuple(listed)
    assert verdict.proof.check()


def test_a_power_of_0_keeps_the_condition_of_its_base():
    for power in ((1 / x) ** 0, sa.log(x) ** 0, sa.sum(1 / x) ** 0):
        verdict = sa.prove(power, sa.ones(*power.shape))
        assert verdict.proof.side_conditions in (("x != 0",), ("x > 0",))


TOTAL = {
    "variable": 0 * x,
    "positive": 0 / u,
    "exponential": 0 / sa.exp(x),
    "sum of exponentials": sa.zeros(n) / sa.sum(sa.exp(x)),
    "logarithm of a sum": 0 * sa.log(1 + sa.exp(x)),
    "root of squares": 0 * sa.sqrt(sa.sum(x * x)),
    "softmax of a mask": 0 * sa.softmax(x, where=M),
    "declared invertible": 0 * sa.inv(R),
    "transposed": 0 * sa.inv(R.T),
    "norm": 0 * sa.attention.layer_norm(A),
    "unknown": 0 * sa.unknown("phi", x, rowwise=False),
    "slice": 0 * x[:1],
    "constant": 0 * sa.from_index((n,), lambda i: 1 / (1 + i)),
    "functions of any number": 0 * scalar(lambda v: sympy.atan(v) + sympy.asinh(v) * sympy.cosh(v)),
    "size": 0 * (x / sympy.sqrt(n)),
}


@pytest.mark.parametrize("name", TOTAL)
def test_zeros_vanish_beside_what_has_values_everywhere(name):
    assert TOTAL[name] is sa.zeros(*TOTAL[name].shape)


def test_powers_of_0_and_what_is_total():
    assert x**0 is sa.ones(n)
    assert sa.exp(x) ** 0 is sa.ones(n)
    assert is_total(sa.softmax(A @ B) @ x)
    assert not is_total(sa.softmax(A @ sa.inv(B)) @ x)
    assert not is_total(sa.from_index((n,), lambda i: 1 / (i - 3)))


@pytest.mark.parametrize(
    ("expression", "at"),
    [
        (0 / x, [0.0, 1.0]),
        (0 * sa.log(x), [-1.0, 1.0]),
        (sa.zeros(n) * (1 / x), [0.0, 1.0]),
        (0 * sa.rsqrt(x), [-4.0, 1.0]),
        (sa.mod(0, x), [0.0, 1.0]),
    ],
    ids=str,
)
def test_code_gives_no_number_where_there_is_none(expression, at):
    with np.errstate(all="ignore"):
        value = sa.lambdify([x], expression)(np.array(at))
    assert np.isnan(value[0])
    assert value[1] == 0


@pytest.mark.parametrize("expression", [O @ sa.inv(B), 0 * sa.inv(B), sa.trace(O @ sa.inv(B)), sa.inv(B) @ O], ids=str)
def test_code_refuses_a_singular_matrix(expression):
    f = sa.lambdify([B], expression)
    with pytest.raises(np.linalg.LinAlgError, match="B"):
        f(np.ones((3, 3)))
    assert not f(2 * np.eye(3)).any()


@pytest.mark.parametrize(
    ("of", "by_x"),
    [
        (0 * sa.log(x) + y, sa.zeros(n)),
        (sa.exp(0 * sa.log(x)) * y, sa.zeros(n)),
        ((1 / x) ** 0 * y, sa.zeros(n)),
        (sa.floor(1 / x) + y, sa.zeros(n)),
        (sa.sign(sa.log(x)) * y, sa.zeros(n)),
        (sa.where(1 / x > 0, 0, 0) * x + y, None),
    ],
    ids=str,
)
def test_a_derivative_that_is_0_vanishes(of, by_x):
    g = sa.gradient(of, [x, y])
    t = sa.jvp(of, {x: sa.tensor("t", n)})
    if by_x is None:
        assert str(g["dx"].inputs[0]) == "where(1 / x > 0, 0, 0) * dO"
    else:
        assert g["dx"].inputs[0] is by_x
        assert t is by_x


def test_a_matrix_that_is_an_inverse_or_declared_so_has_one():
    for matrix, listed in (
        (sa.inv(B).T, ("B is invertible",)),
        (sa.let("C", sa.inv(B)).T, ("B is invertible",)),
        (sa.inv(B.T), ("B is invertible",)),
        (R.T, ()),
    ):
        assert sa.prove(sa.inv(matrix) @ x, sa.inv(matrix) @ x + 0).proof.side_conditions == listed


def test_rows_that_may_not_be_empty_sum_to_1_where_they_have_values():
    verdict = sa.prove(sa.sum(sa.softmax(x, where=M, empty="error")), sa.ones())
    assert verdict.proof.side_conditions == ('softmax(x, where=M, empty="error") is defined',)
    assert verdict.proof.check()
    assert sa.prove(sa.sum(sa.softmax(x, where=M)), sa.ones()).status == "refuted"
