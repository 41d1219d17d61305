"""Tensors in SymPy's form: every record's examples, SymPy's own expressions both ways, and matrices among tensors."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.check import compare, sample_point
from symattn.codegen.reference import values
from symattn.sympy_bridge import TensorExpr, TensorScalar

from ..bordering import (
    MATRICES,
    A,
    B,
    C,
    K,
    Ks,
    O,
    Q,
    Qs,
    T,
    V,
    Vs,
    c,
    column,
    d,
    elements,
    m,
    n,
    number,
    shaped,
    symbol,
    u,
    w,
    x,
)
from ..shares import one_in


def finite_point(y, seed=0):
    try:
        return sample_point([y], y.tensors, seed)
    except sa.EvaluationError:
        pytest.skip("an additive mask alone is not finite")


# --- every record, out ---


@pytest.mark.parametrize("y", one_in(3, MATRICES))
def test_lambdify_of_every_record_equals_the_entries(y):
    point = finite_point(y)
    known = {**point.sizes, **point.scalars}
    f = sympy.lambdify([*map(symbol, y.tensors), *known], y.to_sympy())
    got = np.asarray(f(*(shaped(t, point.arrays[t]) for t in y.tensors), *known.values()), float)
    want = np.asarray(values([y], point.arrays, known)[y], float)
    compare(str(y), got, shaped(y, want), 1e-12, point)


@pytest.mark.parametrize("y", MATRICES)
def test_nodes_of_every_record_are_proper_sympy_nodes(y):
    node = y.to_sympy()
    assert str(node)
    assert sympy.latex(node).count("{") == sympy.latex(node).count("}")
    assert not isinstance(node, sympy.MatrixExpr) or node.shape == (*y.shape, 1)[:2]
    if node.args:
        assert node.func(*node.args) == node
    assert pickle.loads(pickle.dumps(node)) == node
    if isinstance(node, (TensorExpr, TensorScalar)):
        assert sa.from_sympy(node) is (y if y.rank != 1 else y[:, None]) or "cotangent" in str(y.op)


def loops(y, point, rng):
    return [np.stack([np.stack([point.arrays[t]] * 2)] * 3) * rng.uniform(0.9, 1.1, (3, 2, *point.arrays[t].shape))
            if t.kind == "real" else np.stack([np.stack([point.arrays[t]] * 2)] * 3) for t in y.tensors]  # fmt: skip


@pytest.mark.parametrize("y", one_in(4, [case for case in MATRICES if case.values[0].tensors]))
def test_own_nodes_take_leading_axes_as_loops(y, rng):
    node = y.to_sympy()
    if not isinstance(node, (TensorExpr, TensorScalar)):
        pytest.skip("SymPy's own expression, for two axes")
    point = finite_point(y)
    known = {**point.sizes, **point.scalars}
    f = sympy.lambdify([*map(symbol, y.tensors), *known], node)
    arrays = loops(y, point, rng)
    got = np.asarray(f(*map(shaped, y.tensors, arrays), *known.values()), float)
    for place in np.ndindex(3, 2):
        at = {t: a[place] for t, a in zip(y.tensors, arrays, strict=True)}
        want = np.asarray(values([y], at, known)[y], float)
        compare(str(y), got[place], shaped(y, want), 1e-12, point)


@pytest.mark.parametrize("y", one_in(2, MATRICES))
def test_entries_of_nodes_are_the_entries_of_the_tensor(y):
    """At numeric sizes, entry by entry, written in SymPy's own elements."""
    if not y.rank or "sparsemax" in str(y) or "entmax" in str(y):
        pytest.skip("a scalar has no entry; the entries of sparse normalisers are slow to write out")
    point = finite_point(y, seed=1)
    node = y.subs(point.sizes).to_sympy()
    known = {s: sympy.Float(v, 30) for s, v in point.scalars.items()}
    for t in y.tensors:
        known.update(elements(t, point))
    want = shaped(y, np.asarray(values([y], point.arrays, {**point.sizes, **point.scalars})[y], float))
    for place in [(0, 0), tuple(size - 1 for size in want.shape)]:
        assert number(node[place], known) == pytest.approx(want[place], rel=1e-12, abs=1e-12)


# --- SymPy's own expressions, both ways ---

PLAIN = [
    Qs, Qs * Ks.T / sympy.sqrt(d), Qs * Ks.T, -Qs, u * Qs, A + A.T, A - 2 * B * C, sympy.HadamardProduct(A, B * C),
    sympy.HadamardProduct(A, A, A.T), sympy.HadamardProduct(A, A.T) * B, A.inv() * B, A**3, (B * C).inv(), A.T * column,
    B * C * B, (A + B * C) * B, sympy.HadamardProduct(A + B * C, A), sympy.sqrt(d) * u,
    sympy.Integer(3),
]  # fmt: skip


@pytest.mark.parametrize("expr", PLAIN, ids=str)
def test_a_round_trip_through_tensors_gives_sympys_expression_back(expr):
    assert sa.from_sympy(expr).to_sympy() == expr


@pytest.mark.parametrize("expr", PLAIN, ids=str)
def test_a_round_trip_through_sympy_is_the_same_node(expr):
    y = sa.from_sympy(expr)
    assert sa.from_sympy(y.to_sympy()) is y


def test_vectors_are_columns_in_sympy():
    a, b = sympy.MatrixSymbol("x", n, 1), sympy.MatrixSymbol("w", n, 1)
    assert x.to_sympy() == a
    assert (x + 2 * w).to_sympy() == a + 2 * b
    assert sa.outer(x, w).to_sympy() == a * b.T
    assert sa.diag(x).to_sympy() == sympy.DiagMatrix(a)
    assert (sa.tensor("A", n, n) @ x).to_sympy() == A * a
    assert (x @ sa.tensor("A", n, n)).to_sympy() == A.T * a
    assert sa.exp(x).to_sympy().shape == (n, 1)
    assert sa.from_sympy(sa.exp(x).to_sympy()).shape == (n, 1)


@pytest.mark.parametrize(
    "y",
    [
        -(Q * Q) @ K.T, sa.eye(n), sa.ones(n, m), sa.zeros(n, m), sa.exp(Q), Q - Q, Q + 1, Q + x[:1, None],
        sa.inv(sa.tensor("A", n, n)) @ sa.tensor("A", n, n), sa.tensor("M", n, m, binary=True) + sa.tensor("B", n, m),
    ],
    ids=str,
)  # fmt: skip
def test_what_sympy_would_print_or_compile_wrongly_is_a_node_of_our_own(y):
    assert isinstance(y.to_sympy(), TensorExpr)


def test_a_trace_and_a_dot_product_are_scalar_nodes():
    for y in (sa.trace(sa.tensor("A", n, n)), x @ x):
        assert isinstance(y.to_sympy(), TensorScalar)
        assert y.to_sympy().is_extended_real
    assert c.to_sympy() == sympy.Symbol("c", real=True)
    assert (2 * c + u).to_sympy() == 2 * sympy.Symbol("c", real=True) + u


def test_a_deep_or_shared_graph_is_one_node():
    y = Q
    for _ in range(5000):
        y = -y + Q
    assert isinstance(y.to_sympy(), TensorExpr)
    y = sa.tensor("A", n, n)
    for _ in range(200):
        y = y + y.T
    assert isinstance(y.to_sympy(), TensorExpr)
    assert str(y.to_sympy()).startswith("<(... + ...)[n, n]")


def test_rank_three_is_refused_and_says_what_to_do():
    with pytest.raises(sa.ShapeError, match=r"W\[2, n, n\] has 3 axes.*take a part"):
        sa.tensor("W", 2, n, n).to_sympy()


# --- at the border ---


def test_a_matrix_expression_is_taken_wherever_a_tensor_is():
    Z = Qs * Ks.T / sympy.sqrt(d)
    assert sa.softmax(Z) @ Vs is O
    assert (Z @ V) is Q @ K.T / sympy.sqrt(d) @ V
    assert sa.let("Z", Z) is sa.let("Z", Q @ K.T / sympy.sqrt(d))
    assert Q + 2 * Qs is Q + 2 * Q
    assert sa.gradient(sa.softmax(Z) @ Vs, [Qs, Ks])[Qs].shape == (T, d)
    assert str(sa.jvp(sa.tanh(Qs), {Qs: sympy.MatrixSymbol("R", T, d)})) == "R * (1 - tanh(Q)**2)"
    q, k = np.ones((2, 3)), np.ones((4, 3))
    np.testing.assert_array_equal(sa.lambdify([Qs, Ks], Qs * Ks.T)(q, k), 3 * np.ones((2, 4)))


def test_generated_names_reach_only_what_was_generated():
    from symattn.sympy_bridge import compiled

    with pytest.raises(AttributeError, match="no name '_symattn_0'"):
        getattr(compiled, "_symattn_0")  # noqa: B009
    f = sympy.lambdify([Qs, Ks, Vs], O.to_sympy())
    assert f(np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 1))).shape == (2, 1)


def test_tensors_and_sympy_need_no_numpy():
    code = (
        "import sys, symattn as sa; Q = sa.tensor('Q', 2, 2); sa.softmax(Q).to_sympy(); Q.as_explicit(); "
        "sa.from_sympy(Q.to_sympy()); print('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
