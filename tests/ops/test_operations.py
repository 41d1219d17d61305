"""Gathers, scans, inverses, sparse normalisers and opaque functions: what they mean, print and refuse."""

import pickle

import numpy as np
import pytest
import scipy.linalg
import sympy

import symattn as sa
from symattn.codegen.reference import Array, numbers, values
from symattn.scalars.evaluate import Compiled
from symattn.scalars.formulas import Held, InverseEntry, Unknown

T, S, d, n, m, h = sa.sizes("T S d n m h")
i, j, k = sympy.symbols("i j k", integer=True, nonnegative=True)
X, Z, W, x, c = sa.tensor("X", T, d), sa.tensor("Z", T, S), sa.tensor("W", h, T, S), sa.tensor("x", n), sa.tensor("c")
A, B = sa.tensor("A", n, n), sa.tensor("B", n, m)
E, t, t2 = sa.tensor("E", m, d), sa.tensor("t", T, integer=True), sa.tensor("u", T, S, integer=True)


def run(y, *arrays, **keywords):
    return sa.lambdify(list(y.tensors), y)(*arrays, **keywords)


def refused(error, message, call):
    """The call fails by this error of the generated code, or by an EvaluationError that quotes it."""
    with pytest.raises((error, sa.EvaluationError)) as raised:
        call()
    cause = raised.value.__cause__ if isinstance(raised.value, sa.EvaluationError) else raised.value
    assert (type(cause), str(cause)) == (error, message)
    assert message in str(raised.value)


# --- take ---


def test_take_reads_at_the_index_and_its_gradient_adds_up_there():
    assert str(sa.take(E, t, 0)[i, j]) == "E[t[i], j]"
    assert str(sa.take(E, t2, 0)) == "take(E, u, axis=-2)"
    g = sa.gradient(sa.take(E, t, 0), [E])
    assert str(g).partition("#")[0].strip() == "dE = scatter_add(dO, t, axis=-2, size=m)"
    assert str(g[E][k, j]) == "Sum(Choice(Eq(t[_l], k), dO[_l, j], 0), (_l, 0, T - 1))"


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_equals_numpy(axis, rng):
    array, index = rng.normal(size=(3, 4, 5)), rng.integers(0, 3, (6, 7))
    places = sa.tensor("u", n, m, integer=True)
    np.testing.assert_array_equal(run(sa.take(W, places, axis), array, index), np.take(array, index, axis))


def test_take_of_loops_equals_numpy(rng):
    table, index = rng.normal(size=(4, 1, 6, 3)), rng.integers(0, 6, (2, 5))
    y = sa.lambdify([E, t], sa.take(E, t, 0))(table, index)
    want = np.array([[table[a, 0][index[b]] for b in range(2)] for a in range(4)])
    np.testing.assert_array_equal(y, want)
    g = sa.gradient(sa.take(E, t, 0), [E])
    up = rng.normal(size=want.shape)
    slope = sa.lambdify([E, t, g.cotangent], g[E])(table, index, up)
    want = np.zeros_like(table)
    for a, b, row in np.ndindex(4, 2, 5):
        want[a, 0, index[b, row]] += up[a, b, row]
    np.testing.assert_allclose(slope, want, rtol=0, atol=1e-14)


def test_an_index_may_be_a_constant_of_integers_a_number_or_what_another_take_gives():
    order = sa.from_index((T,), lambda a: T - 1 - a)
    assert sa.take(X, order, 0)[i, j] == X[T - 1 - i, j]
    assert sa.take(X, order[1:], 0)[i, j] == X[T - 2 - i, j]
    assert sa.take(X, 2, 0)[j] == X[2, j]
    assert sa.take(E, sa.take(t, t2, 0), 0).shape == (T, S, d)
    assert str(sa.take(E, sa.let("tokens", t), 0)[i, j]) == "E[t[i], j]"


@pytest.mark.parametrize("index", [X, sa.tensor("M", T, binary=True), sa.from_index((T,), lambda a: a / 2), c, 0.5])
def test_an_index_that_is_not_an_integer_is_refused(index):
    with pytest.raises(sa.OperandError) as raised:
        sa.take(E, index, 0)
    before, _, after = str(raised.value).partition(": ")
    assert before.startswith("take from E[m, d] at ")
    assert after == (
        "an index is an integer tensor; declare it by sa.tensor(..., integer=True), or give sa.from_index an integer "
        "formula"
    )


@pytest.mark.parametrize(("index", "shown"), [([0, 4, 7], "7"), ([0, -1, 2], "-1"), ([5, 0, 0], "5")])
def test_an_index_out_of_range_is_named_with_its_tensor_and_the_size(index, shown):
    y = sa.take(E, t, 0)
    message = f"index {shown} of t is not a whole number from 0 to 4: the axis has size 5"
    g = sa.gradient(y, [E])
    refused(IndexError, message, lambda: run(y, np.ones((5, 2)), np.array(index)))
    back = sa.lambdify([E, t, g.cotangent], g[E])
    refused(IndexError, message, lambda: back(np.ones((5, 2)), np.array(index), np.ones((3, 2))))


def test_an_index_that_is_not_whole_is_refused():
    with pytest.raises(sa.EvaluationError, match="t is declared integer, but has entries that are not whole"):
        run(sa.take(E, t, 0), np.ones((5, 2)), np.array([0, 1.5, 2]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sa.take(E, t, 2), "take of E[m, d]: axis 2 is out of range for 2 axes"),
        (lambda: sa.take(c, t, 0), "take of c[]: axis 0 is out of range for 0 axes"),
        (lambda: sa.shift(X, 1, axis=-3), "shift of X[T, d]: axis -3 is out of range for 2 axes"),
        (lambda: sa.shift(c, 1), "shift of c[]: axis -1 is out of range for 0 axes"),
        (lambda: sa.flip(X, axis=2), "flip of X[T, d]: axis 2 is out of range for 2 axes"),
        (lambda: sa.tile(X, 2, axis=5), "tile of X[T, d]: axis 5 is out of range for 2 axes"),
        (lambda: sa.cumsum(c), "cumsum of c[]: axis -1 is out of range for 0 axes"),
        (lambda: sa.cumsum(X, axis=1.0), "cumsum of X[T, d]: an axis is an integer, not 1.0"),
        (lambda: sa.tril(x), "tril of x[n]: it takes the last two axes of a matrix"),
        (lambda: sa.triu(x, 1), "triu of x[n]: it takes the last two axes of a matrix"),
        (lambda: sa.inv(X), "inv of X[T, d]: the last two sizes must be the same"),
        (lambda: sa.inv(x), "inv of x[n]: the last two sizes must be the same"),
        (lambda: sa.sparsemax(Z, axis=2), "sparsemax of Z[T, S]: axis 2 is out of range for 2 axes"),
        (lambda: sa.entmax15(c), "entmax15 of c[]: axis -1 is out of range for 0 axes"),
        (lambda: sa.unknown("f", c, rowwise=True), "unknown of c[]: a rank-0 tensor has no rows"),
    ],
)
def test_missing_axes_are_shape_errors(make, message):
    with pytest.raises(sa.ShapeError) as raised:
        make()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sa.shift(X, 0.5), "shift of X[T, d]: by is an integer or an integer expression of sizes, not 0.5"),
        (lambda: sa.shift(X, T / 2), "shift of X[T, d]: by is an integer or an integer expression of sizes, not T/2"),
        (lambda: sa.shift(X, c), "shift of X[T, d]: by is an integer or an integer expression of sizes, not c"),
        (lambda: sa.shift(X, True), "shift of X[T, d]: by is an integer or an integer expression of sizes, not True"),
        (lambda: sa.shift(X, lambda a: x[0, ]), "shift of X[T, d]: by is an integer or an integer expression of sizes, "
                                               "not x[0]"),
        (lambda: sa.shift(X, sympy.Symbol("o", integer=True)),
         "shift of X[T, d]: by is an integer or an integer expression of sizes, not o"),
        (lambda: sa.shift(W, lambda a: a), "shift of W[h, T, S]: by is a function of the 2 indices of the other axes"),
        (lambda: sa.shift(X, ValueError), "shift of X[T, d]: by is a function of the 1 indices of the other axes"),
        (lambda: sa.tril(A, 0.5), "tril of A[n, n]: k is an integer or an integer expression of sizes, not 0.5"),
        (lambda: sa.triu(A, "1"), "triu of A[n, n]: k is an integer or an integer expression of sizes, not '1'"),
    ],
)  # fmt: skip
def test_offsets_that_are_not_integers_are_refused(make, message):
    with pytest.raises(sa.OperandError) as raised:
        make()
    assert str(raised.value) == message


# --- shift, flip, tile ---


def test_shift_reads_further_on_and_prints_so():
    y = sa.shift(Z, lambda a: T - 1 - a, size=T)
    assert str(y) == "shift(Z, lambda i: T - i - 1, size=T)"
    written = sa.latex(sa.shift(sa.tensor("R", T, 2 * T - 1), lambda a: T - 1 - a, size=T))
    assert written == r"[R_{i, T + j - i - 1}]_{i j : j < T}"  # which is inside throughout
    for outside in (y, sa.shift(X, -2, axis=0)):
        assert r"0 & \text{otherwise}" in sa.latex(outside)
    assert str(sa.shift(X, -2, axis=0)) == "shift(X, -2, axis=-2)"
    assert y[0, j] == sa.shift(Z, T - 1, size=T)[0, j]
    assert str(y.subs({T: 4, S: 7})[1, j]) == "Choice(j + 2 < 7, Z[1, j + 2], 0)"


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_shift_by_other_indices_equals_a_loop(axis, rng):
    array = rng.normal(size=(3, 4, 5))
    y = sa.shift(W, lambda a, b: 2 * a - b + 1, axis=axis, size=6)
    got, rows = run(y, array), np.moveaxis(array, axis, 2)
    want = np.zeros((*rows.shape[:2], 6))
    for a, b, at in np.ndindex(want.shape):
        place = at + 2 * a - b + 1
        want[a, b, at] = rows[a, b, place] if 0 <= place < rows.shape[2] else 0
    np.testing.assert_array_equal(got, np.moveaxis(want, 2, axis))


def test_flip_and_tile_equal_numpy(rng):
    array = rng.normal(size=(3, 4))
    np.testing.assert_array_equal(run(sa.flip(X, 0), array), np.flip(array, 0))
    np.testing.assert_array_equal(run(sa.tile(X, 3, axis=1), array), np.tile(array, (1, 3)))
    assert str(sa.tile(X, T, axis=1)) == "tile(X, times=T, axis=-1)"
    assert sa.tile(X, 2, axis=0)[i, j] == X[sympy.Mod(i, T), j]


# --- scans and triangles ---


def test_a_running_sum_is_summed_back_from_the_other_end():
    assert str(sa.cumsum(X)[i, j]) == "Sum(X[i, _k], (_k, 0, j))"
    assert str(sa.cumsum(X, reverse=True)[i, j]) == "Sum(X[i, _k], (_k, j, d - 1))"
    assert str(sa.gradient(sa.cumsum(X, axis=0), [X])).startswith("dX = cumsum(dO, axis=-2, reverse=True)\n")
    assert str(sa.gradient(sa.cumsum(X, reverse=True), [X])).startswith("dX = cumsum(dO)  #")


def test_triangles_equal_numpy_off_the_square(rng):
    array = rng.normal(size=(4, 6))
    np.testing.assert_array_equal(run(sa.tril(Z, S - T), array), np.tril(array, 2))
    np.testing.assert_array_equal(run(sa.triu(Z, -1), array), np.triu(array, -1))
    assert (str(sa.tril(Z, S - T)), sa.latex(sa.triu(Z))) == ("tril(Z, k=S - T)", r"\operatorname{triu}(Z)")


# --- inv ---


def test_the_inverse_tidies_and_prints():
    R = sa.tensor("R", n, n, invertible=True)
    assert sa.inv(sa.inv(R)) is R
    assert sa.inv(sa.inv(A)) is not A  # which has no value where A has no inverse
    assert sa.inv(sa.eye(n)) is sa.eye(n)
    assert sa.latex(sa.inv(A + sa.eye(n)) @ B) == r"(A + I_{n})^{-1} B"
    assert sa.latex(sa.inv(A.T)) == r"(A^{\top})^{-1}"
    assert str(sa.inv(A) @ B) == "inv(A) @ B"
    g = sa.gradient(sa.inv(A), [A])
    assert str(g).splitlines()[0].partition("  #")[0] == "dA = -(Y.T @ dY @ Y.T)"
    assert g.side_conditions == ("inv: the matrix must be invertible",)


def test_a_triangular_solve_reads_the_triangle_only(rng):
    L, B = sa.tensor("L", "n n"), sa.tensor("B", "n m")
    solved = sa.inv(sa.tril(L)) @ B
    left, right = rng.normal(size=(4, 4)) + 4 * np.eye(4), rng.normal(size=(4, 3))
    f = sa.lambdify([L, B], solved)
    f.check()
    np.testing.assert_allclose(f(left, right), scipy.linalg.solve_triangular(left, right, lower=True), rtol=1e-12)
    cotangent = sa.tensor("dO", "n m")
    dL, dB = sa.lambdify([L, B, cotangent], sa.gradient(solved, [L, B]))(left, right, given := rng.normal(size=(4, 3)))
    want = scipy.linalg.solve_triangular(left, given, lower=True, trans="T")
    np.testing.assert_allclose(dB, want, rtol=1e-11)
    np.testing.assert_allclose(dL, -np.tril(want @ f(left, right).T), rtol=1e-11, atol=1e-12)


def test_the_entry_of_an_inverse_is_its_own_formula(rng):
    array = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    got = values([sa.inv(A)], {A: array}, {n: 4})[sa.inv(A)]
    np.testing.assert_allclose(got, np.linalg.inv(array), rtol=0, atol=1e-13)
    entry = sa.inv(A)[i, j]
    assert isinstance(entry, InverseEntry)
    assert entry.free_symbols >= {i, j, n}
    assert entry.subs(i, 0) == sa.inv(A)[sympy.S.Zero, j]
    assert pickle.loads(pickle.dumps(entry)) == entry
    assert sympy.diff(entry, sympy.Symbol("other")) == 0


def test_the_entry_of_an_inverse_has_the_derivative_of_the_inverse(rng):
    array = rng.normal(size=(4, 4)) + 3 * np.eye(4)
    code = Compiled([n, i, j, k], ["A"])
    slope = code.program(code.write(sympy.diff(sa.inv(A)[i, j], A[k, 0]))).function(numbers())
    moved = array.astype(complex)
    moved[2, 0] += 1e-30j
    want = np.linalg.inv(moved).imag / 1e-30
    for place in np.ndindex(4, 4):
        got = slope(Array(array), 4, *place, 2)
        assert got == pytest.approx(want[place], rel=1e-12, abs=1e-15)


def test_a_product_with_an_inverse_is_solved_for(rng):
    arrays = rng.normal(size=(4, 4)), rng.normal(size=(4, 3))
    f = sa.lambdify([A, B], sa.inv(A) @ B)
    assert "np.linalg.inv" not in f.source
    np.testing.assert_allclose(f(*arrays), np.linalg.inv(arrays[0]) @ arrays[1], rtol=1e-12)
    np.testing.assert_allclose(run(sa.inv(A) @ x, arrays[0], arrays[1][:, 0]), f(*arrays)[:, 0], rtol=1e-12)
    both = sa.lambdify([A, B], [sa.inv(A), sa.inv(A) @ B])
    assert "np.linalg.solve" not in both.source


def test_a_singular_matrix_is_numpys_error_with_its_name():
    one, error = np.ones((3, 3)), np.linalg.LinAlgError
    refused(error, "inv of A: Singular matrix", lambda: run(sa.inv(A), one))
    refused(error, "inv of A: Singular matrix", lambda: run(sa.inv(A) @ B, one, np.ones((3, 2))))
    refused(error, "inv of (A + A.T)[n, n]: Singular matrix", lambda: run(sa.inv(A + A.T), one))
    refused(error, "inv of M: Singular matrix", lambda: run(sa.inv(sa.let("M", A + A.T)), one))


# --- normalisers with zeros ---


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_sparse_normalisers_follow_masks(name, rng):
    normaliser = getattr(sa, name)
    keep = sa.tensor("M", T, S, binary=True)
    array, mask = rng.normal(size=(4, 6)), rng.random((4, 6)) < 0.5
    mask[0], mask[1] = False, True
    p = sa.lambdify([Z, keep], normaliser(sa.where(keep, Z, -sympy.oo)))(array, mask)
    assert (p[0] == 0).all()
    for row in (1, 2, 3):
        alone = run(normaliser(sa.tensor("r", S)), array[row, mask[row]])
        np.testing.assert_allclose(p[row, mask[row]], alone, rtol=0, atol=1e-15)
        assert (p[row, ~mask[row]] == 0).all()


def test_the_family_rule_is_what_prints():
    line = {p.op.name: str(sa.gradient(p, [Z])).partition("#")[0].strip() for p in (sa.sparsemax(Z), sa.entmax15(Z))}
    assert line["sparsemax"] == "dZ = (P > 0) * (dP - rowsum((P > 0) * dP) / rowsum(P > 0))"
    assert line["entmax15"] == "dZ = sqrt(P) * (dP - rowsum(sqrt(P) * dP) / rowsum(sqrt(P)))"


def test_the_zeros_of_sparse_normalisers_are_exact():
    z = np.array([[3.0, 1.0, 0.0, -2.0]])
    np.testing.assert_array_equal(run(sa.sparsemax(Z), z), [[1, 0, 0, 0]])
    np.testing.assert_array_equal(run(sa.sparsemax(Z), np.zeros((1, 4))), [[0.25] * 4])
    np.testing.assert_allclose(run(sa.entmax15(Z), np.zeros((1, 4))), [[0.25] * 4], rtol=1e-15)
    np.testing.assert_array_equal(run(sa.entmax15(Z), 2 * z), [[1, 0, 0, 0]])


# --- functions known only by name, and constants by choice ---


def test_an_unknown_function_has_derivatives_by_name():
    y = sa.unknown("phi", Z)
    assert y[i, j] == Unknown("phi", Z[i, j])
    first = sa.gradient(sa.sum(y), [Z])[Z]
    second = sa.gradient(sa.sum(first), [Z])[Z]
    assert (str(first.inputs[0]), sa.latex(first)) == ('unknown("phi\'", Z)', r"\phi'(Z)")
    assert r"\odot \phi''(Z) \\" in sa.latex(second)
    assert (str(first[i, j]), str(second[i, j])) == ("phi'(Z[i, j])", "phi''(Z[i, j])")
    assert sympy.diff(y[i, j] ** 2, Z[i, j]) == 2 * y[i, j] * first[i, j]
    assert sympy.latex(first[i, j] ** 2) == r"\left(\phi'(Z_{i j})\right)^{2}"
    assert pickle.loads(pickle.dumps(first[i, j])) == first[i, j]
    assert y.replace({y: sa.tanh(Z)}) is sa.tanh(Z)


def test_an_unknown_function_of_rows_reads_its_whole_row_and_has_no_derivative():
    y = sa.unknown("f", Z, rowwise=True)
    assert str(y) == 'unknown("f", Z, rowwise=True)'
    assert sa.latex(y) == r"f(Z)"
    assert y[i, 0].free_symbols >= {i, S}
    assert y[0, j] != y[1, j]
    message = (
        "the derivative of the unknown function f of rows, met at Z[T, S], is not known: only an unknown function "
        "of entries has a derivative by name"
    )
    for derive in (lambda: sa.gradient(sa.sum(y), [Z]), lambda: sa.jvp(y, {Z: sa.tensor("tan", T, S)})):
        with pytest.raises(sa.NoRuleError) as raised:
            derive()
        assert str(raised.value) == message
    with pytest.raises(sa.NoRuleError, match="nothing is known of f but its name: it has no derivative"):
        sympy.diff(y[i, j], Z[i, 0])
    assert sympy.diff(y[i, j], sympy.Symbol("other")) == 0


def test_code_of_an_unknown_function_says_what_is_missing():
    with pytest.raises(sa.NoRuleError) as raised:
        sa.lambdify([Z], sa.unknown("phi", Z) + 1)
    assert str(raised.value) == (
        "no code is known for phi of Z[T, S], a function known only by name: put a known one in its place by "
        'y.replace({unknown("phi", Z): ...})'
    )
    with pytest.raises(sa.NamingError):
        sa.unknown("phi(", Z)


def test_a_stopped_gradient_is_a_constant_to_every_derivative(rng):
    y = X * sa.stop_gradient(X)
    g = sa.gradient(sa.sum(y), [X])
    assert str(g).partition("#")[0].strip() == "dX = stop_gradient(X)"
    assert "what stop_gradient holds is taken as constant" in g.side_conditions
    assert sa.jvp(sa.stop_gradient(X), {X: sa.tensor("tan", T, d)}) is sa.zeros(T, d)
    array = rng.normal(size=(3, 2))
    np.testing.assert_array_equal(run(y, array), array**2)
    np.testing.assert_array_equal(sa.lambdify([X], g[X])(array), array)
    assert sa.stop_gradient(X)[i, j] == Held(X[i, j])
    assert sympy.diff(y[i, j], X[i, j]) == Held(X[i, j])
    none = sa.gradient(sa.sum(sa.stop_gradient(X)), [X])
    assert none[X].inputs[0] is sa.zeros(T, d)
