"""Nodes that hold a tensor among SymPy's own: printed, compiled, substituted, and never differentiated to zero."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from sympy.tensor.array.expressions.arrayexpr_derivatives import array_derive

import symattn as sa

from ..bordering import A, K, Ks, O, Q, Qs, S, T, V, Vs, column, d, e, n, u, x


def test_a_node_prints_within_sympys_expressions_without_losing_brackets():
    y = (Q + Q * Q).to_sympy()
    product = -y * Ks.T
    assert str(product) == "-(Q + Q * Q)*K.T"
    assert sympy.latex(product) == r"- \left(Q + Q \odot Q\right) K^{T}"
    assert sympy.latex(y) == r"Q + Q \odot Q"
    s = sa.sum(Q * Q).to_sympy()
    assert sympy.latex((sa.sum(Q) + sa.trace(sa.tensor("A", n, n))).to_sympy() ** 2).startswith(r"\left(")
    assert str(1 + 2 * s) == "2*(sum(Q * Q)) + 1"
    assert sympy.pretty(O.to_sympy())


def test_a_node_is_compiled_within_sympys_expressions(rng):
    q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 6))
    o = sa.lambdify([Q, K, V], O)(q, k, v)
    total = sa.sum(O * O).to_sympy()
    node = O.to_sympy()
    f = sympy.lambdify([Qs, Ks, Vs], [2 * node * node.T, total + 1, node[1, 2].subs({d: 3, S: 5})], cse=True)
    square, scalar, entry = f(q, k, v)
    np.testing.assert_allclose(square, 2 * o @ o.T, rtol=1e-13)
    assert scalar == pytest.approx((o * o).sum() + 1, rel=1e-13)
    assert entry == pytest.approx(o[1, 2], rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"modules": "numpy"}, {"modules": "scipy"}, {"cse": True}, {"dummify": True}])
def test_options_of_lambdify_do_not_change_the_value(options, rng):
    q, k, v = rng.normal(size=(7, 4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(7, 5, 6))
    f = sympy.lambdify([Qs, Ks, Vs], O.to_sympy(), **options)
    np.testing.assert_allclose(f(q, k, v), sa.lambdify([Q, K, V], O)(q, k, v), rtol=1e-14)


def test_printers_that_have_no_arrays_refuse():
    for write in (sympy.ccode, sympy.fcode, sympy.octave_code):
        with pytest.raises(NotImplementedError, match="TensorExpr"):
            write(O.to_sympy())


def test_columns_and_plain_vectors_are_both_taken_by_lambdify():
    half = (x @ x / 2).to_sympy()
    f = sympy.lambdify([column], half)
    assert f(np.ones(3)) == f(np.ones((3, 1))) == 1.5
    assert f(np.ones((4, 3, 1))).shape == (4,)
    with pytest.raises(sa.EvaluationError, match=r"x has shape \(3, 2\) for x\[n, 1\]"):
        f(np.ones((3, 2)))


def test_a_size_that_no_array_shows_is_an_argument():
    y = (Q @ K.T + sa.ones(T, S) / n).to_sympy()
    q, k = np.ones((2, 3)), np.ones((4, 3))
    assert sympy.lambdify([Qs, Ks, n], y)(q, k, 4)[0, 0] == 3.25
    with pytest.raises(sa.EvaluationError, match="n is a number, not n"):
        sympy.lambdify([Qs, Ks], y)(q, k)


def test_substitution_makes_the_node_of_the_substituted_tensor():
    node = O.to_sympy()
    W = sympy.MatrixSymbol("W", T, d)
    assert node.free_symbols == {Qs, Ks, Vs, T, S, d, e}
    assert node.subs(Qs, W).tensor is sa.softmax(sa.tensor("W", T, d) @ K.T / sympy.sqrt(d)) @ V
    assert node.subs(Qs, 2 * W).tensor is sa.softmax((2 * sa.tensor("W", T, d)) @ K.T / sympy.sqrt(d)) @ V
    assert node.subs({T: 2, d: 4}).shape == (2, e)
    assert node.subs({T: 2, d: 4}).tensor is O.subs({T: 2, d: 4})
    with pytest.raises(sa.ShapeError):
        node.subs(Qs, sympy.MatrixSymbol("W", T, e))


def test_hypotheses_survive_a_substitution_of_sizes():
    M = sa.tensor("M", T, S, binary=True)
    node = sa.softmax(Q @ K.T, where=M).to_sympy().subs(T, 3)
    assert {t.name: t.kind for t in node.tensor.tensors}["M"] == "binary"


def test_symbols_of_any_kind_may_index_a_node():
    i, j = sympy.symbols("i j")
    node = O.to_sympy()
    entry = node[i, j]
    assert {i, j} <= entry.free_symbols
    assert entry.subs({i: 0, j: 1}) == node[0, 1]
    assert (Ks * Qs.T * node).doit()[i, j].has(sympy.Sum)


def test_transposes_and_nested_nodes_stay_one_tensor():
    node = O.to_sympy()
    assert node.T.T == node
    assert node.T.tensor is O.T
    assert sa.softmax(x).to_sympy().T.shape == (1, n)
    assert sa.from_sympy(2 * node + node) is 3 * O
    assert sympy.simplify(node) == node == node.doit()


def test_a_gradient_goes_out_without_what_it_came_from(rng):
    g = sa.gradient(O, [Q])
    node = g[Q].to_sympy()
    dO = sympy.MatrixSymbol("dO", T, e)
    assert node.free_symbols == {Qs, Ks, Vs, dO, T, S, d, e}
    arrays = [rng.normal(size=s) for s in ((4, 3), (5, 3), (5, 6), (4, 6))]
    want = sa.lambdify([Q, K, V, g.cotangent], g[Q])(*arrays)
    np.testing.assert_allclose(sympy.lambdify([Qs, Ks, Vs, dO], node)(*arrays), want, rtol=1e-13)


# --- derivatives are refused, never zero ---

NODE, TOTAL = O.to_sympy(), sa.sum(Q * Q).to_sympy()
DERIVATIVES = {
    "by a matrix": lambda: NODE.diff(Qs),
    "by a size": lambda: NODE.diff(d),
    "by an entry": lambda: NODE.diff(Qs[0, 0]),
    "sympy.diff": lambda: sympy.diff(NODE, Vs),
    "Derivative": lambda: sympy.Derivative(NODE, Qs),
    "of a product": lambda: (NODE * Vs.T).diff(Vs),
    "of a trace": lambda: sympy.Trace(NODE * NODE.T).diff(Qs),
    "of a trace plus a constant": lambda: (sympy.Trace(NODE * NODE.T) + 1).diff(Qs),
    "of a scalar": lambda: TOTAL.diff(Qs),
    "of a scalar plus a constant": lambda: (TOTAL + 1).diff(Qs),
    "of a function of a scalar": lambda: (sympy.log(TOTAL) ** 2 * u).diff(Qs),
    "of a scalar among others": lambda: (TOTAL + sympy.Trace(A)).diff(A),
    "twice": lambda: (TOTAL + 1).diff((Qs, 2)),
    "of a scalar by its symbol": lambda: (u * (u * sa.sum(Q)).to_sympy()).diff(u),
    "by array_derive": lambda: array_derive(NODE, Qs),
    "of a scalar by array_derive": lambda: array_derive(TOTAL, Qs),
}


@pytest.mark.parametrize("case", DERIVATIVES)
def test_a_derivative_of_a_node_is_refused(case):
    with pytest.raises(sa.NoRuleError, match=r"write sa\.gradient\(y, \[x\]\)"):
        DERIVATIVES[case]()


def test_a_derivative_by_what_does_not_occur_is_zero():
    assert TOTAL.diff(u) == 0
    assert (u * TOTAL).diff(u) == TOTAL
