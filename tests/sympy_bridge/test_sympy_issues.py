"""What goes wrong in public SymPy threads, forty rows of it: right here, or a clear error.

Each test is named by its row and states what symattn does. Gradients are held against complex steps and the closed
form; nothing is asked of SymPy's own calculus. LaTeX (row 39) is only read where there is a reader for it, and laws of
random matrices (rows 36 and 37) are stated apart from the tensors, so those rows are refusals here.
"""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from sympy.stats import GaussianOrthogonalEnsemble, MatrixNormal, Normal

import symattn as sa
from symattn.reading import read

k, m, n, d = sa.sizes("k m n d")
A, B, Q = (sa.tensor(name, k, k) for name in "ABQ")
As, Bs, Xs = (sympy.MatrixSymbol(name, k, k) for name in "ABX")
x, w = sa.tensor("x", n), sa.tensor("w", n)
s = sympy.Symbol("s", real=True)
SIZES = {k: 4, m: 5, n: 3, d: 6}
RNG = np.random.default_rng(7)


def arrays_of(y, positive=False):
    made = RNG.uniform(0.5, 1.5, 10_000)
    shapes = [tuple(int(size.subs(SIZES)) for size in t.shape) for t in y.tensors]
    drawn = [RNG.choice(made, shape) - (0 if positive else 1) for shape in shapes]
    return dict(zip(y.tensors, drawn, strict=True))


def compute(y, arrays, **scalars):
    return np.asarray(sa.lambdify(list(y.tensors), y)(*(arrays[t] for t in y.tensors), **scalars))


def assert_gradient(y, variable, closed):
    """The gradient of a rank-0 tensor against its complex step, and against a closed form."""
    arrays = arrays_of(y)
    got = compute(sa.gradient(y, [variable])[variable], arrays)
    stepped = np.zeros(got.shape)
    for place in np.ndindex(got.shape):
        moved = arrays[variable].astype(complex)
        moved[place] += 1e-30j
        stepped[place] = compute(y, {**arrays, variable: moved}).imag / 1e-30
    assert np.abs(stepped).max() > 1e-3
    np.testing.assert_allclose(got, stepped, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got, closed(*(arrays[t] for t in y.tensors)), rtol=1e-12, atol=1e-12)


def norm2(a):
    return sa.trace(a.T @ a)


EYE = np.eye(4)


# --- derivatives ---


def test_row_01_the_gradient_of_a_sum_of_two_squared_norms_is_2A():
    assert_gradient(norm2(A) + norm2(B), A, lambda a, b: 2 * a)


def test_row_02_the_gradient_of_a_trace_plus_a_constant_is_the_identity():
    assert_gradient(sa.trace(A) + 1, A, lambda a: EYE)


def test_row_03_the_gradient_of_a_norm_of_a_difference_plus_a_norm_is_4B_minus_2A():
    assert_gradient(norm2(A - B) + norm2(B), B, lambda a, b: 4 * b - 2 * a)


def test_row_04_the_gradient_of_a_trace_plus_the_trace_of_a_square_and_of_a_matrix_plus_an_identity():
    assert_gradient(sa.trace(A) + sa.trace(A @ A), A, lambda a: EYE + 2 * a.T)
    J = sa.jacobian(A + sa.eye(k), A)
    assert J is sa.jacobian(A, A)
    np.testing.assert_array_equal(compute(J, {}, k=4), np.einsum("il,jm->ijlm", EYE, EYE))


def test_row_05_the_gradient_of_a_sum_of_entries_is_ones():
    assert sa.gradient(x @ sa.ones(n), [x])[x].inputs[0] is sa.ones(n)
    assert_gradient(sa.sum(x), x, lambda a: np.ones(3))


def test_row_06_the_gradient_of_an_affine_form_and_the_derivative_by_a_scalar_mean():
    assert_gradient(x @ w + sa.tensor("b"), w, lambda a, b, c: a)
    mean = sympy.Symbol("mu", real=True)
    slope = sa.gradient((x - mean) @ (x - mean), [mean])[mean]
    a = np.array([0.5, -1.0, 2.0])
    assert compute(slope, {x: a}, mu=0.25) == pytest.approx(2 * 3 * 0.25 - 2 * a.sum())


def test_row_07_the_gradient_of_a_frobenius_norm_is_A_over_the_norm():
    assert_gradient(sa.sqrt(norm2(A)), A, lambda a: a / np.linalg.norm(a))
    assert sa.from_sympy(sympy.sqrt(sympy.Trace(As.T * As))) is sa.sqrt(norm2(A))


def test_row_08_a_determinant_is_refused_by_name():
    for expr in (sympy.Determinant(As), sympy.Determinant(As**2), 2 * sympy.Determinant(As) + 1):
        with pytest.raises(sa.OperandError, match="knows no Determinant.*no determinant"):
            sa.from_sympy(expr)


def test_row_09_gradients_of_functions_of_a_trace():
    assert_gradient(sa.sin(sa.trace(A)), A, lambda a: np.cos(np.trace(a)) * EYE)
    assert_gradient(sa.exp(sa.trace(A)), A, lambda a: np.exp(np.trace(a)) * EYE)
    assert_gradient(sa.log(norm2(A)), A, lambda a: 2 * a / (a * a).sum())


def test_row_10_the_gradient_of_the_trace_of_an_entrywise_product_keeps_two_axes():
    X = sa.from_sympy(Xs)
    assert_gradient(sa.trace(A * X), X, lambda a, b: a * EYE)
    assert sa.gradient(sa.from_sympy(sympy.Trace(sympy.HadamardProduct(As, Xs))), [Xs])[Xs].shape == (k, k)


def test_row_11_the_derivative_of_one_entry_is_a_unit_matrix_in_both_directions():
    unit = np.zeros((4, 4))
    unit[1, 1] = 1
    np.testing.assert_array_equal(compute(sa.gradient(A[1, 1], [A])[A], {A: 0 * unit}), unit)
    along = sa.from_index((k, k), lambda i, j: sympy.KroneckerDelta(i, 1) * sympy.KroneckerDelta(j, 1))
    assert sa.jvp(A, {A: along}) is along
    with pytest.raises(sa.OperandError, match="intermediate"):
        sa.gradient(sa.sum(A), [A[1, 1]])


def test_row_12_the_gradient_of_a_matrix_power_is_no_entrywise_power():
    cube = sa.from_sympy(As**3)
    assert_gradient(sa.trace(cube), A, lambda a: 3 * (a @ a).T)
    a = RNG.normal(size=(4, 4))
    want = sum(
        np.einsum("il,mj->ijlm", np.linalg.matrix_power(a, r), np.linalg.matrix_power(a, 2 - r)) for r in range(3)
    )
    np.testing.assert_allclose(compute(sa.jacobian(cube, A), {A: a}), want, rtol=1e-12)
    with pytest.raises(sa.OperandError, match="exponent n: only fixed integers"):
        sa.from_sympy(As**n)


def test_row_13_derivatives_through_entrywise_functions_of_products():
    M, X, a, b = sa.tensor("M", m, n), sa.tensor("X", k, k), sa.tensor("a", m), sa.tensor("b", d)
    got = sa.jacobian(sa.exp(M @ x), x)
    arrays = arrays_of(got)
    mat, vec = arrays[M], arrays[x]
    np.testing.assert_allclose(compute(got, arrays), np.exp(mat @ vec)[:, None] * mat, rtol=1e-13)
    L, R = sa.tensor("L", m, k), sa.tensor("R", k, d)

    def closed(a, lhs, x, r, b):
        return lhs.T @ (np.cos(lhs @ x @ r) * np.outer(a, b)) @ r.T

    assert_gradient(a @ sa.sin(L @ X @ R) @ b, X, closed)


def test_row_14_gradients_through_entrywise_softmax_and_logsumexp_rows():
    E = As.applyfunc(sympy.exp)
    rows = E * sympy.OneMatrix(k, k)
    softmax = sa.from_sympy(sympy.HadamardProduct(E, sympy.HadamardPower(rows, -1)))
    assert_gradient(sa.sum(B * softmax), A, softmax_rows_backward)
    lse = sa.from_sympy((E * sympy.OneMatrix(k, 1)).applyfunc(sympy.log))
    assert_gradient(sa.sum(lse), A, lambda a: np.exp(a) / np.exp(a).sum(1, keepdims=True))


def softmax_rows_backward(b, a):
    p = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    return p * (b - (p * b).sum(1, keepdims=True))


def test_row_15_the_jacobian_of_x_xT_x():
    got = sa.jacobian(sa.outer(x, x) @ x, x)
    a = RNG.normal(size=3)
    np.testing.assert_allclose(compute(got, {x: a}), (a @ a) * np.eye(3) + 2 * np.outer(a, a), rtol=1e-12)


def test_row_16_the_derivative_by_a_scalar_of_a_scaled_square():
    a = RNG.normal(size=(4, 4))
    np.testing.assert_allclose(compute(sa.jvp((s * Q) @ (s * Q), {s: 1}), {Q: a}, s=0.7), 1.4 * a @ a, rtol=1e-13)


def test_row_17_the_derivative_of_an_adjugate_entry_along_a_direction():
    """For 2 x 2, adj(A) = tr(A) I - A, which is linear in A + s U."""
    a, v = sa.tensor("A", 2, 2), sa.tensor("U", 2, 2)
    moved = a + s * v
    got = sa.jvp(sa.trace(moved) * sa.eye(2) - moved, {s: 1})
    explicit = (sympy.Matrix(a.as_explicit()) + s * v.as_explicit()).adjugate().diff(s)
    assert (got.as_explicit() - explicit).expand().is_zero_matrix


# --- NumPy code ---


def test_row_18_code_of_entrywise_product_power_and_trace_and_no_determinant():
    a, b = RNG.normal(size=(2, 4, 4)), RNG.normal(size=(2, 4, 4))
    np.testing.assert_array_equal(sa.lambdify([As, Bs], sympy.HadamardProduct(As, Bs))(a, b), a * b)
    np.testing.assert_array_equal(sa.lambdify([As], sympy.HadamardPower(As, 2))(a), a**2)
    np.testing.assert_allclose(sa.lambdify([As], sa.from_sympy(sympy.Trace(As)))(a), np.trace(a, axis1=1, axis2=2))
    np.testing.assert_array_equal(sympy.lambdify([As], (A**2).to_sympy())(a[0]), a[0] ** 2)
    assert sympy.lambdify([As], sa.trace(A).to_sympy())(a[0]) == np.trace(a[0])
    with pytest.raises(sa.OperandError, match="Determinant"):
        sa.lambdify([As], sa.from_sympy(sympy.Determinant(As)))


def test_row_19_code_of_an_entrywise_function_of_a_product():
    a, b = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    expr = (As * Bs).applyfunc(sympy.exp)
    np.testing.assert_allclose(sa.lambdify([As, Bs], expr)(a, b), np.exp(a @ b), rtol=1e-13)
    node = sa.from_sympy(expr).to_sympy()
    np.testing.assert_allclose(sympy.lambdify([As, Bs], node)(a, b), np.exp(a @ b), rtol=1e-13)


def test_row_20_code_of_a_quadratic_form_takes_a_vector():
    assert sa.lambdify([x], x @ x / 2)(np.ones(3)) == 1.5
    column = sympy.MatrixSymbol("x", n, 1)
    with pytest.raises(sa.EvaluationError, match=r"x has shape \(3,\), of 1 axes: x\[n, 1\] has 2"):
        sa.lambdify([column], column.T * column)(np.ones(3))


def test_row_21_code_of_a_matrix_plus_an_identity_reads_the_size_off_the_array():
    a = RNG.normal(size=(4, 4))
    for f in (sa.lambdify([As], As + sympy.Identity(k)), sympy.lambdify([As], (A + sa.eye(k)).to_sympy())):
        np.testing.assert_array_equal(f(a), a + np.eye(4))


def test_row_22_code_of_a_matrix_of_scalars_broadcasts_a_vector_and_a_number():
    p, q = sa.tensor("p"), sa.tensor("q")
    top, low = (sa.from_index((2, 2), lambda i, j, r=r: sympy.KroneckerDelta(i, r)) for r in (0, 1))
    f = sa.lambdify([p, q], p * top + q * low)
    np.testing.assert_array_equal(f(np.array([1.0, 2.0, 3.0]), 5.0)[2], [[3, 3], [5, 5]])
    symbols = sympy.symbols("p q", real=True)
    g = sa.lambdify(list(symbols), sa.from_sympy(sympy.Matrix([[symbols[0], 1], [0, symbols[1]]])))
    np.testing.assert_array_equal(g(2.5, 4), [[2.5, 1], [0, 4]])


def test_row_23_code_of_a_sum_over_a_contracted_index_is_no_python_loop():
    source = sa.lambdify([A, B], sa.einsum("ij,jl->il", A, B)).source
    assert " for " not in source.split('"""')[-1]
    assert "@" in source or "einsum" in source
    i, j = sympy.symbols("i j")
    total = sa.from_sympy(sympy.Sum(As[i, j] * Bs[j, i], (i, 0, k - 1), (j, 0, k - 1)))
    a, b = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    assert sa.lambdify([A, B], total)(a, b) == pytest.approx(np.trace(a @ b))


def test_row_24_code_of_minus_a_tensor_of_three_axes():
    W = sa.tensor("W", 2, 3, 4)
    a = RNG.normal(size=(2, 3, 4))
    np.testing.assert_array_equal(sa.lambdify([W], -1 * W)(a), -a)


# --- indices, entries, substitution ---


def test_row_25_the_square_of_each_entry_has_the_axes_of_the_vector():
    assert (x**2).shape == (x * x).shape == (n,)
    i = sympy.Symbol("i", integer=True)
    assert (x**2)[i] == x[i] ** 2
    assert sa.diag(sa.outer(x, x)).as_explicit({n: 2}) == (x**2).as_explicit({n: 2})


def test_row_26_a_sum_with_a_delta_keeps_its_free_index():
    got = sa.einsum("ij,j,j->i", sa.eye(n), x, w)
    assert got.shape == (n,)
    assert got.as_explicit({n: 3}) == (x * w).as_explicit({n: 3})


def test_row_27_sizes_tensors_and_scalars_are_substituted_at_once_and_arrays_are_refused():
    y = s * A @ B
    got = y.subs({k: 2, A: sa.tensor("C", 2, 2), s: 3})
    assert got is 3 * sa.tensor("C", 2, 2) @ sa.tensor("B", 2, 2)
    assert (A @ B + A).subs({A: B}) is B @ B + B
    node = sa.exp(A @ B).to_sympy()
    assert node.subs({k: 2, As: sympy.MatrixSymbol("C", 2, 2)}, simultaneous=True).shape == (2, 2)
    with pytest.raises(sa.OperandError, match="array|tensor of its rank"):
        y.subs({A: np.ones((2, 2))})


def test_row_28_a_smaller_matrix_under_an_entry_is_refused():
    two = sa.tensor("A", 2, 2)
    with pytest.raises(sa.ShapeError, match="out of range"):
        two[1, 1].subs({two: sa.tensor("b", 1, 1)})


def test_row_29_the_entries_of_an_identity_sum_to_its_size():
    total = sa.sum(sa.eye(k))
    assert sa.lambdify([], total)(k=4) == 4
    assert [total.as_explicit({k: size}) for size in (1, 2, 3)] == [1, 2, 3]
    assert total.to_sympy().subs(k, 3).tensor.as_explicit() == 3


def test_row_30_a_further_sum_over_a_free_index_multiplies():
    i, j = sympy.symbols("i j")
    got = sa.from_sympy(sympy.Sum(As[i, i], (i, 0, k - 1), (j, 0, 1)))
    assert (got - 2 * sa.trace(A)).as_explicit({k: 3}).expand() == 0
    for odd in (sympy.Sum(As[i, i] * sympy.KroneckerDelta(i, j), (i, 0, k - 1), (j, 0, k - 1)),
                sympy.Sum(As[i, i], (j, 0, i), (i, 0, k - 1)), sympy.Sum(As[i, i], (i, 1, k - 1))):  # fmt: skip
        with pytest.raises(sa.OperandError, match=r"whole axes: write sa\.sum or sa\.einsum"):
            sa.from_sympy(odd)


def test_row_31_the_trace_of_a_commutator_is_zero_in_its_entries():
    difference = sa.from_sympy(sympy.Trace(As * Bs) - sympy.Trace(Bs * As))
    for size in (1, 2, 3):
        assert difference.as_explicit({k: size}).expand() == 0


# --- LaTeX ---


def test_row_32_brackets_of_negative_factors_are_kept():
    assert sa.latex(A @ (-B)) == r"A (-B)"
    assert sa.latex(-((A * B) @ Q)) == r"-(A \odot B) Q"
    product = (-sympy.HadamardProduct(As, Bs)) * Xs
    assert sympy.latex(sa.from_sympy(product).to_sympy()) == r"-(A \odot B) X"
    kronecker = sa.from_sympy(-sympy.MatrixSymbol("X", 1, 4) * sympy.KroneckerProduct(*(
        sympy.MatrixSymbol(name, 2, 2) for name in "AB")))  # fmt: skip
    written = sa.latex(kronecker)
    assert written.startswith(r"-X [")
    assert written.endswith("]_{i j}")


def test_row_33_the_entrywise_product_is_written_as_the_field_writes_it():
    assert sa.latex(A * B) == r"A \odot B"


def test_row_34_no_bound_name_meets_a_size_and_ones_are_bold():
    d_root = sa.exp(sa.tensor("A", d, d) / sympy.sqrt(d))
    assert sa.latex(d_root) == sympy.latex(d_root.to_sympy()) == r"\exp\left( \frac{A}{\sqrt{d}} \right)"
    bound = sympy.Symbol("d")
    cubed = sa.elementwise(sympy.Lambda(bound, bound**3), sa.tensor("A", d, d) / sympy.sqrt(d))
    assert r"[x \mapsto x^{3}]" in sa.latex(cubed)
    assert sa.latex(A @ sa.ones(k)) == sympy.latex((A @ sa.ones(k)).to_sympy()) == r"A \mathbf{1}_{k}"


# --- softmax, moments, norms, text ---


def test_row_35_softmax_by_a_scalar_denominator_keeps_its_second_term():
    column = sympy.MatrixSymbol("x", n, 1)
    E = column.applyfunc(sympy.exp)
    total = (sympy.OneMatrix(1, n) * E)[0, 0]
    p = sa.from_sympy(E * (1 / total))
    a = np.array([0.5, -1.0, 2.0])
    s = np.exp(a) / np.exp(a).sum()
    got = compute(sa.jacobian(p, column), {sa.from_sympy(column): a[:, None]}).reshape(3, 3)
    np.testing.assert_allclose(got, np.diag(s) - np.outer(s, s), rtol=1e-13)
    lse = sa.gradient(sa.from_sympy(sympy.log(total)), [column])[column]
    np.testing.assert_allclose(compute(lse, {sa.from_sympy(column): a[:, None]})[:, 0], s, rtol=1e-13)


@pytest.mark.parametrize("row", [36, 37])
def test_rows_36_and_37_random_symbols_are_no_tensors(row):
    drawn = Normal("z", 0, 1) if row == 36 else MatrixNormal("W", [[0, 0]], [[1]], [[1, 0], [0, 1]])
    with pytest.raises(sa.OperandError, match="plain symbols|knows no RandomMatrixSymbol"):
        sa.from_sympy(drawn)
    with pytest.raises(sa.OperandError, match="plain symbols|RandomMatrixSymbol"):
        sa.tensor("Y", 2, 3) @ drawn if row == 37 else sa.tensor("Y", 2, 3) + drawn
    with pytest.raises(sa.OperandError, match="RandomMatrixSymbol"):
        sa.softmax(GaussianOrthogonalEnsemble("H", 3))


def test_row_38_the_norm_and_the_explicit_trace_exist():
    norm = sa.sqrt(sa.sum(A * A))
    a = RNG.normal(size=(4, 4))
    assert compute(norm, {A: a}) == pytest.approx(np.linalg.norm(a))
    assert sa.trace(sa.tensor("A", 2, 2)).as_explicit() == sa.tensor("A", 2, 2).as_explicit().trace()


@pytest.mark.parametrize("text", [r"A^T", r"Q K^T", r"\mathrm{softmax}(Q K^{\top}) V", r"A \odot B"])
def test_row_39_latex_is_never_read_as_something_else(text):
    with pytest.raises(sa.OperandError, match="takes a SymPy expression"):
        sa.from_sympy(text)
    names = {name: sa.tensor(name, k, k) for name in "AKQV"}
    with pytest.raises((sa.ParseError, sa.OperandError)):
        read(text, names)


HOSTILE = "__import__('os').system('touch hostile')"


def test_row_40_hostile_strings_and_names_are_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    symbol, matrix = sympy.Symbol(HOSTILE, real=True), sympy.MatrixSymbol(HOSTILE, k, k)
    attempts = [
        lambda: sa.sizes(HOSTILE), lambda: sa.tensor(HOSTILE, k), lambda: sa.tensor("A", HOSTILE), lambda: A + HOSTILE,
        lambda: sa.let(HOSTILE, A), lambda: A * symbol, lambda: A @ matrix, lambda: sa.from_sympy(HOSTILE),
        lambda: sa.from_sympy(matrix), lambda: sa.from_sympy(symbol * As), lambda: A.subs(k, HOSTILE),
        lambda: A.as_explicit({k: HOSTILE}), lambda: sa.lambdify([HOSTILE], A),
        lambda: read(HOSTILE, {"A": A}), lambda: sa.exp(A).to_sympy().subs(As, matrix),
        lambda: sa.from_sympy(As.applyfunc(sympy.Function(HOSTILE))), lambda: sa.einsum(HOSTILE, A),
    ]  # fmt: skip
    ran = []
    for number, attempt in enumerate(attempts):
        try:
            attempt()
        except (sa.SymattnError, sympy.SympifyError):
            continue
        ran.append(number)
    assert ran == []
    assert not list(tmp_path.iterdir())


def test_row_40_the_name_of_an_argument_is_not_pasted_into_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argument = sympy.Symbol("a=open(chr(120), chr(119))", real=True)
    with pytest.raises(sa.NamingError, match="cannot be a name"):
        sa.lambdify([A, argument], A)
    assert not list(tmp_path.iterdir())


def test_row_40_the_name_of_a_size_is_checked_like_any_other():
    size = sympy.Symbol(HOSTILE, integer=True, positive=True)
    for make in (lambda: sa.tensor("A", size), lambda: sa.from_sympy(sympy.Identity(size)), lambda: A.subs(k, size)):
        with pytest.raises(sa.NamingError, match="cannot be a name"):
            make()
