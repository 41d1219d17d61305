"""Where SymPy's matrices fall short in public threads, each settled through the public API.

For each: what is right, in closed form and in the numbers that were verified once (six digits), beside what SymPy 1.14
returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

k, m, n = sa.sizes("k m n")
A = sympy.MatrixSymbol("A", k, k)
SQUARE = np.array([[1.0, 0.5], [-0.3, 0.8]])
LOGITS = np.array([0.5, -1.0, 2.0])
SOFTMAX = [[0.144564, -0.006856, -0.137708], [-0.006856, 0.037583, -0.030727], [-0.137708, -0.030727, 0.168434]]


def digits(values: Any) -> Any:
    """Equal to the verified numbers in the six decimals they are kept in."""
    return pytest.approx(np.array(values), rel=0, abs=6e-7)


def compute(x: sa.Tensor, *arrays: Any) -> np.ndarray:
    return np.asarray(sa.lambdify(list(x.tensors), x)(*arrays))


def complex_step(y: sa.Tensor, at: np.ndarray) -> np.ndarray:
    """All first derivatives of a tensor of one variable: output axes, then input axes."""
    f = sa.lambdify(list(y.tensors), y)
    columns = []
    for place in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[place] += 1e-30j
        columns.append(np.asarray(f(moved)).imag / 1e-30)
    return np.moveaxis(np.array(columns), 0, -1).reshape(*columns[0].shape, *at.shape)


def test_S01_gradient_of_a_sum_of_two_squared_norms():
    """sympy/sympy#27406: d/dA [tr(A^T A) + tr(B^T B)] is 2A; SymPy returned 0."""
    B = sympy.MatrixSymbol("B", k, k)
    y = sa.from_sympy(sympy.Trace(A.T * A) + sympy.Trace(B.T * B))
    g = sa.gradient(y, [A])[A]
    b = np.array([[2.0, -1.0], [0.5, 3.0]])
    np.testing.assert_allclose(sa.lambdify([A, B], g)(SQUARE, b), 2 * SQUARE, rtol=1e-15)
    with pytest.raises(sa.NoRuleError, match=r"sa\.gradient"):
        y.to_sympy().diff(A)


def test_S03_jacobian_of_softmax_keeps_the_derivative_of_the_normaliser():
    """sympy/sympy#21347: diag(s) - s s^T; SymPy returned diag(s)."""
    z = sa.tensor("z", n)
    s = sa.let("s", sa.softmax(z))
    J = sa.jacobian(s, z)
    assert str(J) == "diag(s) - outer(s, s)"
    assert compute(J, LOGITS) == digits(SOFTMAX)

    x = sympy.MatrixSymbol("x", n, 1)
    E = x.applyfunc(sympy.exp)
    by_hand = sa.from_sympy(E * (1 / (sympy.OneMatrix(1, n) * E)[0, 0]))
    assert compute(sa.jacobian(by_hand, x), LOGITS[:, None]).reshape(3, 3) == digits(SOFTMAX)

    diagonal_only = compute(sa.jacobian(s, z) + sa.outer(s, s), LOGITS)  # what SymPy returned
    assert diagonal_only == digits(np.diag([0.17529, 0.039113, 0.785597]))
    assert np.abs(diagonal_only - np.array(SOFTMAX)).max() > 0.1


def test_S05_code_of_a_matrix_plus_an_identity_of_symbolic_size():
    """sympy/sympy#17006: n is read off the array; SymPy raises, and once took I for the imaginary unit."""
    a = np.array([[1, 2], [3, 4]])
    y = sa.from_sympy(A + sympy.Identity(k))
    for f in (sa.lambdify([A], y), sympy.lambdify([A], y.to_sympy())):
        np.testing.assert_array_equal(f(a), [[2, 2], [3, 5]])
        assert np.asarray(f(a)).dtype.kind == "f"
    with pytest.raises(sa.EvaluationError, match=r"A has shape \(2, 3\)"):
        sa.lambdify([A], y)(np.ones((2, 3)))


def test_S07_a_matrix_power_is_no_entrywise_power():
    """sympy/sympy#15650: d tr(A^n)/dA is n (A^T)^(n-1); SymPy used entrywise powers."""
    g = sa.gradient(sa.from_sympy(sympy.Trace(A**3)), [A])[A]
    got = compute(g, SQUARE)
    np.testing.assert_allclose(got, 3 * np.linalg.matrix_power(SQUARE.T, 2), rtol=1e-14)
    np.testing.assert_allclose(got, complex_step(sa.from_sympy(sympy.Trace(A**3)), SQUARE), rtol=1e-13)
    assert np.abs(got - 3 * SQUARE.T**2).max() == digits(1.95)

    cube, entrywise = sa.from_sympy(A**3), sa.from_sympy(sympy.HadamardPower(A, 3))
    assert sa.latex(cube) == "A A A"
    assert sa.latex(entrywise) == r"A^{\odot 3}"
    with pytest.raises(sa.OperandError, match="exponent n: only fixed integers"):
        sa.from_sympy(A**n)


@pytest.mark.parametrize(
    "text", ["Q K^T", "K Q", r"Q K^{\top}", r"\mathrm{softmax}(Q K^{\top}) V", r"A \odot B", "W^Q"]
)
def test_S09_text_of_notes_is_never_taken_for_an_expression(text):
    """OrangeX4/Latex-Sympy-Calculator#13: SymPy's readers commute the factors; here text is no expression."""
    with pytest.raises(sa.OperandError, match="takes a SymPy expression, not"):
        sa.from_sympy(text)
    Q, K = sa.tensor("Q", k, k), sa.tensor("K", k, k)
    assert Q @ K is not K @ Q
    assert sa.latex(Q @ K) == "Q K"
    assert sa.latex(Q @ K.T) == r"Q K^{\top}"
    difference = (Q @ K - K @ Q).as_explicit({k: 2}).expand()
    assert not difference.is_zero_matrix


def test_S11_derivative_of_a_product_by_one_factor_is_a_collapsed_delta():
    """A question on a derivative by indices: d (A B)[l, h] / d A[i, j] = delta_il B[j, h]."""
    left, right = sa.tensor("A", n, m), sa.tensor("B", m, 1)
    J = sa.jacobian(left @ right, left)
    assert J.shape == (n, 1, n, m)
    l, h, i, j = sympy.symbols("l h i j", integer=True)
    B = sympy.IndexedBase(sympy.Symbol("B", real=True))
    expected = np.einsum("li,jh->lhij", np.eye(2), [[0.5], [-1.0], [2.0]])
    np.testing.assert_array_equal(sa.lambdify([right], J)(np.array([[0.5], [-1.0], [2.0]]), n=2), expected)
    explicit = J.as_explicit({n: 2, m: 3})
    for place in np.ndindex(2, 1, 2, 3):
        want = sympy.KroneckerDelta(l, i) * B[j, h]
        assert explicit[place] == want.subs(dict(zip((l, h, i, j), place, strict=True)))


def test_S13_a_transpose_permutes_the_axes_of_a_jacobian():
    """sympy/sympy#21597: of a transposed column, an error once and then a rank-4 array expression."""
    W = np.array([[0.4, -1.0, 0.7], [1.1, 0.2, -0.3], [-0.6, 0.9, 0.5]])
    weights, u = sympy.MatrixSymbol("W", m, m), sympy.MatrixSymbol("u", m, 1)
    f = (weights * u).applyfunc(sympy.tanh)
    at = LOGITS[:, None]
    column, row = (sa.lambdify([weights, u], sa.jacobian(sa.from_sympy(y), u))(W, at) for y in (f, f.T))
    assert column.shape == (3, 1, 3, 1)
    assert row.shape == (1, 3, 3, 1)
    np.testing.assert_array_equal(row, np.swapaxes(column, 0, 1))
    want = (1 - np.tanh(W @ LOGITS) ** 2)[:, None] * W
    np.testing.assert_allclose(column[:, 0, :, 0], want, rtol=1e-14)

    vector = sa.tensor("u", m)  # without the axis of size 1 it is a matrix from the start
    J = sa.jacobian(sa.tanh(sa.tensor("W", m, m) @ vector), vector)
    assert J.shape == (m, m)
    np.testing.assert_allclose(sa.lambdify([weights, vector], J)(W, LOGITS), want, rtol=1e-14)


@pytest.mark.parametrize(
    ("power", "right"), [(1, lambda e: np.eye(3)), (2, lambda e: 2 * np.trace(e) * np.eye(3))], ids=["trace", "square"]
)
def test_S15_an_additive_constant_does_not_make_the_gradient_zero(power, right):
    """sympy/sympy#26561: d/dE [tr(E) + 1] is I and d/dE [tr(E)^2 + 1] is 2 tr(E) I; SymPy returned 0 for both."""
    E = sympy.MatrixSymbol("E", 3, 3)
    y = sa.from_sympy(sympy.Trace(E) ** power + 1)
    at = np.array([[0.4, -1.0, 0.7], [1.1, 0.2, -0.3], [-0.6, 0.9, 0.5]])
    g = sa.lambdify([E], sa.gradient(y, [E])[E])(at)
    np.testing.assert_allclose(g, right(at), rtol=1e-15)
    np.testing.assert_allclose(g, complex_step(y, at), rtol=1e-14)
