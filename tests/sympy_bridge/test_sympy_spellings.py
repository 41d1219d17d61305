"""SymPy at the border: what raises and which spelling it names, and what works; and the same for NumPy."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

import symattn as sa

T, S, d = sa.sizes("T S d")
Q = sa.tensor("Q", T, d)
M = sympy.MatrixSymbol("M", T, d)
a = sympy.Symbol("a", real=True)
i = sympy.Symbol("i", integer=True)


@pytest.mark.parametrize("name", "exp log tanh sin cos erf floor sign sqrt".split())
def test_a_sympy_function_of_a_tensor_names_the_function_of_symattn(name):
    with pytest.raises(
        sympy.SympifyError, match=rf"sympy\.{name} was given the tensor Q\[T, d\].*write sa\.{name}\(x\)"
    ):
        getattr(sympy, name)(Q)


REFUSED = {
    "Eq": (lambda: sympy.Eq(Q, 0), r"sa\.equal\(a, b\)"),
    "Eq to itself": (lambda: sympy.Eq(Q, Q), r"sa\.equal\(a, b\)"),
    "Ne": (lambda: sympy.Ne(Q, 0), r"~sa\.equal\(a, b\)"),
    "Sum": (lambda: sympy.Sum(Q, (i, 0, 3)), r"sa\.sum\(x\)"),
    "Product": (lambda: sympy.Product(Q, (i, 0, 3)), r"sa\.exp\(sa\.sum\(sa\.log\(x\)\)\)"),
    "Max": (lambda: sympy.Max(Q, 0), r"sa\.maximum\(a, b\), or sa\.max\(x\)"),
    "Min": (lambda: sympy.Min(Q, 0), r"sa\.minimum\(a, b\), or sa\.min\(x\)"),
    "Abs": (lambda: sympy.Abs(Q), r"sa\.abs\(x\)"),
    "Mod": (lambda: sympy.Mod(Q, 2), r"sa\.mod\(a, b\)"),
    "Pow": (lambda: sympy.Pow(Q, 2), r"x\*\*n"),
    "Add": (lambda: sympy.Add(Q, 1), r"a \+ b"),
    "Mul": (lambda: sympy.Mul(2, Q), r"a \* b"),
    "Trace": (lambda: sympy.Trace(Q), r"sa\.trace\(x\)"),
    "Transpose": (lambda: sympy.Transpose(Q), r"x\.T"),
    "MatMul": (lambda: sympy.MatMul(M, Q), r"a @ b"),
    "HadamardProduct": (lambda: sympy.HadamardProduct(M, Q), r"a \* b"),
    "diff": (lambda: sympy.diff(Q, a), r"sa\.gradient\(y, \[x\]\)"),
    "Derivative": (lambda: sympy.Derivative(Q, a), r"sa\.gradient\(y, \[x\]\)"),
    "simplify": (lambda: sympy.simplify(Q), "symattn tidies"),
    "expand": (lambda: sympy.expand(Q), "symattn tidies"),
    "gamma": (lambda: sympy.gamma(Q), r"sa\.elementwise\(sympy\.Lambda"),
    "Heaviside": (lambda: sympy.Heaviside(Q), r"sa\.elementwise\(sympy\.Lambda"),
    "an unknown function": (lambda: sympy.Function("f")(Q), r"sa\.elementwise\(sympy\.Lambda"),
    "sympify": (lambda: sympy.sympify(Q), "not a SymPy scalar"),
    "S": (lambda: sympy.S(Q), "not a SymPy scalar"),
    "Matrix of tensors": (lambda: sympy.Matrix([Q]), "not a SymPy scalar"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_other_names_of_sympy_raise_and_say_what_to_write(call):
    make, said = REFUSED[call]
    with pytest.raises(sympy.SympifyError, match=rf"Q\[T, d\].*{said}"):
        make()


def test_advice_never_names_a_function_that_symattn_does_not_have():
    for name in ("solve", "factor", "integrate", "det", "conjugate", "re", "gamma", "limit"):
        with pytest.raises(sympy.SympifyError) as error:
            getattr(sympy, name)(*((Q, d, 0) if name == "limit" else (Q, d) if name == "integrate" else (Q,)))
        assert f"sa.{name}" not in str(error.value)


@pytest.mark.parametrize("relation", [sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge])
def test_a_sympy_inequality_of_a_tensor_is_no_relation(relation):
    try:
        made = relation(Q, 0)  # SymPy swallows the refusal and returns NotImplemented
    except TypeError:
        return
    assert not isinstance(made, sympy.Basic)


@pytest.mark.parametrize(
    "make", [lambda: Q * M, lambda: M * Q, lambda: Q / M, lambda: M / Q], ids="Q*M M*Q Q/M M/Q".split()
)
def test_star_and_slash_with_a_sympy_matrix_are_refused_as_ambiguous(make):
    with pytest.raises(sa.OperandError, match="SymPy matrix M are ambiguous.*write @"):
        make()


@pytest.mark.parametrize(
    "make", [lambda A: A * Q, lambda A: Q * A, lambda A: A @ Q, lambda A: Q @ A, lambda A: A + Q], ids=range(5)
)
def test_an_explicit_sympy_matrix_is_refused_by_our_error(make):
    with pytest.raises(sa.OperandError, match="SymPy matrix|a formula, not an array"):
        make(sympy.Matrix([[1, 2], [3, 4]]))


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (lambda: sympy.sqrt(d) * Q, "sqrt(d) * Q"),
        (lambda: Q / sympy.sqrt(d), "Q / sqrt(d)"),
        (lambda: sympy.Integer(2) * Q, "2 * Q"),
        (lambda: sympy.Rational(1, 2) * Q, "Q / 2"),
        (lambda: sympy.pi * Q, "pi * Q"),
        (lambda: a * Q, "a * Q"),
        (lambda: a + Q, "a + Q"),
        (lambda: a - Q, "a - Q"),
        (lambda: a / Q, "a / Q"),
        (lambda: a**Q, "a**Q"),
        (lambda: a < Q, "Q > a"),
        (lambda: 2 - Q, "2 - Q"),
        (lambda: Q - 2, "Q - 2"),
        (lambda: 1 / Q, "1 / Q"),
        (lambda: 2**Q, "2**Q"),
        (lambda: Q**2, "Q**2"),
        (lambda: M @ Q.T, "M @ Q.T"),
        (lambda: Q.T @ M, "Q.T @ M"),
        (lambda: M + Q, "M + Q"),
        (lambda: Q - M, "Q - M"),
        (lambda: sa.softmax(M), "softmax(M)"),
        (lambda: Q * Fraction(1, 3), "Q / 3"),
        (lambda: Fraction(2, 3) * Q, "2 * Q / 3"),
        (lambda: np.int64(3) * Q, "3 * Q"),
        (lambda: abs(Q), "abs(Q)"),
        (lambda: +Q, "Q"),
        (lambda: sum([Q, Q]), "Q + Q"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_scalars_and_matrix_symbols_of_sympy_work_on_either_side(make, written):
    assert str(make()) == written


def test_a_matrix_symbol_is_the_tensor_of_its_name_and_shape_and_keys_results():
    assert M @ Q.T is sa.tensor("M", T, d) @ Q.T
    g = sa.gradient(M @ Q.T, [M, Q])
    assert g[M] is g[sa.tensor("M", T, d)]


def test_a_matrix_symbol_of_a_foreign_size_is_refused():
    with pytest.raises(sa.ShapeError, match=r"sa\.sizes"):
        sympy.MatrixSymbol("N", sympy.Symbol("n"), d) @ Q.T


@pytest.mark.parametrize(
    ("number", "exact"),
    [
        (0.1, (1, 10)),
        (1e-7, (1, 10**7)),
        (1e22, (10**22, 1)),
        (0.5, (1, 2)),
        (-0.25, (-1, 4)),
        (1 / 3, (3333333333333333, 10**16)),
        (np.float64(0.1), (1, 10)),
        (np.float32(0.1), (1, 10)),
        (sympy.Float(0.1), (1, 10)),
        (3.0, (3, 1)),
    ],
    ids=repr,
)
def test_floats_become_the_exact_rational_of_their_shortest_spelling(number, exact):
    assert number * Q is sympy.Rational(*exact) * Q
    assert Q + number is Q + sympy.Rational(*exact)


def test_floats_inside_a_sympy_scalar_become_exact_too():
    assert (0.1 * a) * Q is (a / 10) * Q


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        sympy.nan,
        sympy.oo,
        sympy.zoo,
        sympy.I,
        1j,
        None,
        [1, 2],
        (1,),
        True,
        np.True_,
        {},
        "a",
        b"a",
    ],
    ids=lambda value: f"{type(value).__module__} {value!r}",
)
@pytest.mark.parametrize(
    "combine", [lambda v: Q * v, lambda v: v + Q, lambda v: sa.where(Q > 0, v, Q)], ids=["*", "+", "where"]
)
def test_what_is_no_real_scalar_is_refused(combine, value):
    with pytest.raises((sa.OperandError, TypeError)):
        combine(value)


@pytest.mark.parametrize(
    "make",
    [lambda: Q * "K", lambda: "K" @ Q, lambda: sa.exp("Q"), lambda: sa.let("P", "Q"), lambda: sa.einsum(Q, "ij")],
    ids=range(5),
)
def test_a_string_where_a_tensor_is_meant_says_how_to_make_one(make):
    with pytest.raises(sa.OperandError, match=r"the text '\w+' stands where a tensor is meant: make one by sa\.tensor"):
        make()


def test_sympy_prints_a_tensor():
    Z = Q @ Q.T / sympy.sqrt(d)
    assert sympy.latex(Z) == sa.latex(Z) == r"\frac{Q Q^{\top}}{\sqrt{d}}"
    assert sympy.sstr(Z) == str(Z) == repr(Z)
    assert sympy.latex([Q, Z]).count(r"\top") == 1
    assert "Q @ Q.T" in sympy.pretty(Z)
    assert Z._repr_latex_() == rf"$\displaystyle {sa.latex(Z)}$"


def test_a_tensor_is_no_sympy_expression():
    assert not isinstance(Q, sympy.Basic)


@pytest.mark.parametrize("name", "exp tanh sqrt maximum multiply matmul".split())
def test_a_numpy_ufunc_of_a_tensor_raises(name):
    arguments = (Q, Q) if name in ("maximum", "multiply", "matmul") else (Q,)
    with pytest.raises(TypeError, match="Tensor.*ufunc"):
        getattr(np, name)(*arguments)


NUMPY = {
    "asarray": lambda: np.asarray(Q),
    "array": lambda: np.array([Q, Q]),
    "dot": lambda: np.dot(Q, Q),
    "sum": lambda: np.sum(Q),
    "transpose": lambda: np.transpose(Q),
    "einsum": lambda: np.einsum("ij->ji", Q),
    "concatenate": lambda: np.concatenate([Q, Q]),
    "outer": lambda: np.outer(Q, Q),
    "vdot": lambda: np.vdot(Q, Q),
    "where": lambda: np.where(True, Q, Q),
}


@pytest.mark.parametrize("name", NUMPY)
def test_a_numpy_function_never_makes_an_array_of_a_tensor(name):
    with pytest.raises(TypeError):
        NUMPY[name]()


@pytest.mark.parametrize(
    "combine",
    [
        lambda x: x * Q,
        lambda x: Q * x,
        lambda x: x @ Q,
        lambda x: Q @ x,
        lambda x: x + Q,
        lambda x: x - Q,
        lambda x: x / Q,
        lambda x: x < Q,
    ],
    ids="x*Q Q*x x@Q Q@x x+Q x-Q x/Q x<Q".split(),
)
@pytest.mark.parametrize("array", [np.ones((3, 3)), np.ones(3), np.array(2.0)], ids=["rank 2", "rank 1", "rank 0"])
def test_an_array_in_an_expression_says_to_use_lambdify(combine, array):
    with pytest.raises(sa.OperandError, match=r"an array of shape .* stands in an expression.*sa\.lambdify"):
        combine(array)


@pytest.mark.parametrize(
    "convert",
    [math.exp, float, int, len, list, iter, round, lambda x: 1 in x, lambda x: x // 2, lambda x: x % 2],
    ids=range(10),
)
def test_python_s_conversions_refuse_a_tensor(convert):
    with pytest.raises(TypeError):
        convert(Q)


def test_a_decimal_is_exact_or_refused_but_never_rounded():
    try:
        product = Q * Decimal("0.1")
    except sa.OperandError:
        return
    assert product is Q / 10
