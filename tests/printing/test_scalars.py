"""Scalars in LaTeX: what is printed is read again and has the value of the expression."""

from __future__ import annotations

import math

import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from symattn.printing.scalars import scalar_latex
from symattn.probability.notation import Difference, Mean

from .test_index_style import Reader

a, b, c, n = sympy.symbols("a b c n", positive=True)
VALUES = {"a": 1.25, "b": 0.5, "c": 3.0, "n": 5.0, "e": math.e}
NUMBERS = [sympy.Integer(k) for k in (-3, -1, 0, 1, 2, 7)] + [sympy.Rational(*pq) for pq in ((1, 2), (-2, 3), (5, 4))]
LEAVES = st.sampled_from([a, b, c, n, *NUMBERS])


def expressions(inner):
    """One operation more, also such as SymPy would put together at once."""
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda xy: xy[0] + xy[1]),
        pairs.map(lambda xy: xy[0] - xy[1]),
        pairs.map(lambda xy: xy[0] * xy[1]),
        pairs.map(lambda xy: sympy.Mul(*xy, evaluate=False)),
        pairs.map(lambda xy: xy[0] / xy[1] if xy[1] != 0 else xy[0]),
        st.tuples(inner, st.sampled_from([2, 3, -1, -2, sympy.Rational(1, 2)])).map(lambda xk: abs(xk[0] + 1) ** xk[1]),
        pairs.map(lambda xy: (abs(xy[0]) + 1) ** xy[1]),
        inner.map(lambda x: sympy.exp(x / 7)),
        inner.map(lambda x: sympy.log(x**2 + 2)),
        inner.map(lambda x: sympy.sin(x) ** 2),
        inner.map(lambda x: sympy.floor(x / 2)),
        pairs.map(lambda xy: sympy.Piecewise((xy[0], a > b), (xy[1], True))),
        pairs.map(lambda xy: sympy.Mod(sympy.floor(xy[0]), 3) * xy[1]),
    )


@settings(max_examples=100, deadline=None)
@given(st.recursive(LEAVES, expressions, max_leaves=8))
def test_what_is_printed_has_the_value_of_the_expression(expression):
    value = sympy.N(expression.subs({s: VALUES[s.name] for s in (a, b, c, n)}, simultaneous=True))
    assume(value.is_real and value.is_finite and abs(value) < 1e6)
    read = Reader(scalar_latex(expression), {}, VALUES).read()({})
    assert read == pytest.approx(float(value), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        (sympy.exp(1) / (1 + sympy.exp(1)), r"\frac{\mathrm{e}}{1 + \mathrm{e}}"),
        (sympy.Symbol("e") * sympy.E, r"\mathrm{e} e"),
        (sympy.I * a, r"\mathrm{i} a"),
        (a ** (n - 1), "a^{n - 1}"),
        ((-a) ** n, "(-a)^{n}"),
        (sympy.Float("1e-7") * a, r"1.0 \cdot 10^{-7} a"),
        (2 * sympy.Integer(3) ** n, r"2 \cdot 3^{n}"),
        (sympy.sqrt(a) ** 3, r"a^{3/2}"),
        (sympy.Abs(a - b), r"\lvert a - b \rvert"),
        (sympy.Or(sympy.And(a > b, b > c), c > n), r"(a > b \wedge b > c) \vee c > n"),
        (sympy.Mod(a, b) + 1, r"(a \bmod b) + 1"),
        (sympy.oo, r"\infty"),
        (sympy.factorial(n - 1), "(n - 1)!"),
        (sympy.UnevaluatedExpr(a + b) * c, "(a + b) c"),
        (c / sympy.UnevaluatedExpr(a + b), r"\frac{c}{a + b}"),
        (sympy.Sum(sympy.UnevaluatedExpr(a + b), (c, 1, n)), r"\sum_{c = 1}^{n} (a + b)"),
    ],
    ids=str,
)
def test_scalars_are_written_as_people_write_them(expression, written):
    assert scalar_latex(expression) == written


def test_sympy_prints_moments_as_they_are_written():
    assert sympy.latex(Mean(a) ** 2) == r"\left(\mathbb{E}[a]\right)^{2}"
    assert sympy.latex(Difference(a, b)) == "a - b"


def test_a_number_of_many_digits_is_told_roughly():
    assert scalar_latex(sympy.Integer(10) ** 2000 * a) == r"(\approx 1.00000 \cdot 10^{2000}) a"
    assert scalar_latex(sympy.Rational(1, 7**2000)) == r"(\approx 6.36678 \cdot 10^{-1691})"
