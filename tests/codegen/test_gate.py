"""What goes into a compiled function: numbers of every type become the common floating type, or an error names them."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy

import symattn as sa

n = sa.sizes("n")
x, a = sa.tensor("x", n), sa.tensor("a")
I, M = sa.tensor("I", n, integer=True), sa.tensor("M", n, binary=True)
c = sympy.Symbol("c", real=True)
ENTRYWISE = ["abs", "cos", "erf", "exp", "floor", "gelu", "log", "log1p", "relu", "rsqrt", "sigmoid", "sign", "silu",
             "sin", "softplus", "sqrt", "tanh"]  # fmt: skip
HALVES = [0.5, Fraction(1, 2), Decimal("0.5"), sympy.Rational(1, 2), sympy.Float("0.5"), np.float16(0.5),
          np.float32(0.5), np.float64(0.5), np.longdouble(0.5), np.array(0.5)]  # fmt: skip


# --- numbers ---


@pytest.mark.parametrize("half", HALVES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_number_of_any_type_leaves_the_dtype_alone(half, dtype):
    values = np.arange(1, 4, dtype=dtype)
    results = [sa.lambdify([x], c * x)(values, c=half), sa.lambdify([c, x], x / (1 + c))(half, values) * 0.75]
    if not isinstance(half, (np.generic, np.ndarray)):  # arrays of rank 0 bring their own dtype
        results.append(sa.lambdify([x, a], a * x)(values, half))
    for got in results:
        assert got.dtype == dtype
        np.testing.assert_allclose(got, values / 2, rtol=1e-3)


def test_numbers_of_sympy_that_are_no_rationals_are_taken():
    assert sa.lambdify([c], c / 2)(sympy.pi) == np.pi / 2
    assert sa.lambdify([a], a / 2)(sympy.sqrt(2)) == np.sqrt(2) / 2
    assert sa.lambdify([x], c * x)(np.ones(1), c=-sympy.oo) == [-np.inf]
    assert sa.lambdify([a], a)(2 * sympy.I) == 2j


@pytest.mark.parametrize("name", ENTRYWISE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_scalar_symbols_and_sizes_compile(name, dtype):
    function, values = getattr(sa, name), np.arange(1, 4, dtype=dtype)
    want = sa.lambdify([x], function(x))(np.array([0.25, 3.0]))
    of_symbol, of_size = sa.lambdify([x], x * function(c)), sa.lambdify([x], x * function(n))
    twice = sa.lambdify([x], x * function(sa.exp(c)))
    for got, factor in ((of_symbol(values, c=0.25), want[0]), (of_size(values), want[1])):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, factor * values, rtol=1e-6)
    again = sa.lambdify([x], function(x))(np.exp([0.25]))
    np.testing.assert_allclose(twice(values, c=0.25), again * values, rtol=1e-6)


@pytest.mark.parametrize("function", [sa.relu, lambda c: sa.maximum(c, 1), sa.abs, sa.gelu, sa.erf, sa.softplus])
def test_gradients_by_a_scalar_symbol_compile(function):
    f = sa.lambdify([x], sa.gradient(sa.sum(x * function(c)), [c]))
    values, step = np.array([1.0, 2.0, -0.5]), 1e-6
    forward = sa.lambdify([x], sa.sum(x * function(c)))
    for at in (0.4, 1.7):
        slope = (forward(values, c=at + step) - forward(values, c=at - step)) / (2 * step)
        np.testing.assert_allclose(f(values, c=at)[0], slope, rtol=1e-6, atol=1e-8)
        assert f(values.astype(np.float32), c=at)[0].dtype == np.float32


def test_comparisons_of_numbers_are_truth_values():
    above = sa.from_index((), lambda: c > 1)
    for mask in (above, sa.exp(c) > sympy.E):
        f = sa.lambdify([x], [mask * x, ~mask * x, sa.where(~mask, x, 0), (mask & ~mask) * x])
        for value in (0.5, 2):
            got = f(np.ones(2), c=value)
            np.testing.assert_array_equal(got, np.outer([value > 1, value <= 1, value <= 1, 0], [1, 1]))


def test_an_index_or_cotangent_that_is_a_number_compiles():
    t = sa.tensor("t", integer=True)
    f = sa.lambdify([x, t], sa.gradient(sa.take(x, t, axis=0), x))
    np.testing.assert_array_equal(f(np.ones(3), 1)[0], [0, 1, 0])
    f = sa.lambdify([x, t], sa.gradient(c * sa.take(x, t, axis=0), x))
    got = f(np.ones(3, np.float32), 2, c=0.5)[0]
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, [0, 0, 0.5])
    np.testing.assert_array_equal(sa.lambdify([x], sa.gradient(x[1], x))(np.ones(3))[0], [0, 1, 0])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "c is a number, not None"), ("1", "c is a number, not '1'"), (True, "c is a number, not True"),
        (np.ones(1), r"c is a number, not array\(\[1\.\]\)"), (sympy.zoo, "c is a number, not zoo"), (c, "not c"),
        (10**5000, "c is beyond the largest float64: an integer of 16610 bits"),
        
        (Fraction(10**400), "c is beyond the largest float64"), (sympy.Integer(10) ** 400, "c is beyond the largest"),
        (np.ma.array(1.0, mask=True), "c is a number, not masked"),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_number_is_refused_by_name(value, problem):
    f = sa.lambdify([x], c * x)
    with pytest.raises(sa.EvaluationError, match=problem):
        f(np.ones(2), c=value)


def test_numbers_beyond_the_common_type_are_refused_by_name():
    f = sa.lambdify([x, a], a * x)
    for value in (100_000, np.int64(100_000), Fraction(10**6)):
        with pytest.raises(sa.EvaluationError, match="a has entries beyond float16, the type of the other arguments"):
            f(np.ones(2, np.float16), value)
    with pytest.raises(sa.EvaluationError, match="a is beyond the largest float64: an integer of 1329 bits"):
        f(np.ones(2), 10**400)
    assert np.isinf(f(np.ones(2, np.float16), np.inf)).all()


# --- arrays ---


@pytest.mark.parametrize(
    ("tensor", "value"),
    [
        (x, np.ma.array([1, 2, 1e9], mask=[0, 0, 1])), (x, np.ma.array([1.0, 2])),
        (I, np.ma.array([1, 2], mask=[0, 1])), (M, np.ma.array([1, 0], mask=[1, 0])),
        (x, [np.ma.array(1.0, mask=True), 2]), (a, np.ma.masked),
        (x, [np.ma.array([1.0, 2], mask=[0, 1]), [1, 2]]),
    ],
)  # fmt: skip
def test_masked_arrays_are_refused_with_the_way_out(tensor, value):
    with pytest.raises(sa.EvaluationError, match=rf"{tensor.name} is a masked array, whose mask .*where=.*filled"):
        sa.lambdify([tensor], tensor)(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (np.array([2**63 + 5], np.uint64), "I is declared integer, but has the entry 9223372036854775813, which"),
        ([1e300], "has the entry 1e\\+300, which int64 does not hold"), ([2.0**63], "which int64 does not hold"),
        ([np.inf], "not whole"), ([np.nan], "not whole"), ([2.5], "not whole"), ([1 + 1j], "not whole"),
        ([2**70], r"I has dtype object.*dtype=np\.int64"),
    ],
)  # fmt: skip
def test_integers_that_do_not_fit_are_refused(value, problem):
    with pytest.raises(sa.EvaluationError, match=problem):
        sa.lambdify([I], I < 0)(value)


def test_integers_at_the_ends_of_the_range_are_taken():
    f = sa.lambdify([I], I < 0)
    np.testing.assert_array_equal(f(np.array([2**63 - 1, 0], np.uint64)), [False, False])
    np.testing.assert_array_equal(f([-(2.0**63), 2.0**62]), [True, False])


@pytest.mark.parametrize("value", [[1, np.nan, 0], np.array([np.nan], np.float16)])
def test_nan_in_a_mask_is_refused_by_name(value):
    with pytest.raises(sa.EvaluationError, match="M is declared binary, but has NaN"):
        sa.lambdify([M], M)(value)


@pytest.mark.parametrize("value", [[Fraction(1, 2)], np.array([1.0], object), [None], [10**30], sympy.Matrix([1, 2])])
def test_object_arrays_are_refused_with_the_way_out(value):
    with pytest.raises(sa.EvaluationError, match=r"x has dtype object: .* as in np\.array\(x, dtype=float\)"):
        sa.lambdify([x], x)(value)


def test_what_numpy_cannot_read_is_refused_by_name():
    class Unwilling:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("not on this device")

    for value in (Unwilling(), [[1, 2], [3]], x):
        with pytest.raises(sa.EvaluationError, match=r"x is no array for x\[n\]"):
            sa.lambdify([x], x)(value)


# --- sizes that only a sum or product of sizes shows ---


def test_sizes_inside_compound_sizes_are_solved_for():
    T, h = sa.sizes("T h")
    B, W = sa.tensor("B", T, n + 1), sa.tensor("W", 2 * n)
    f = sa.lambdify([B], sa.shift(B.T, lambda i: -i))
    np.testing.assert_array_equal(f(np.arange(8.0).reshape(2, 4)), [[0, 4], [0, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(sa.lambdify([W], sa.flip(sa.shift(W, 1), axis=0))(np.arange(4.0)), [0, 3, 2, 1])
    assert "error" in f.check()
    product = sa.lambdify([sa.tensor("W", h * n)], sa.shift(sa.tensor("W", h * n), 1))
    with pytest.raises(sa.EvaluationError, match=r"give .*h=\.\.\."):
        product(np.arange(6.0))
    np.testing.assert_array_equal(product(np.arange(6.0), h=2, n=3), [1, 2, 3, 4, 5, 0])


# --- gradients and loop axes ---


@pytest.mark.parametrize(
    ("loss", "slope"),
    [
        (a, 1), (3 * a, 3), (c * a, 2), (a * sa.exp(c), np.exp(2)),
        (sa.where(sa.from_index((), lambda: c > 1), a, 0), 1), (sa.sum(3 * a * sa.ones(4)), 12),
        (sa.stop_gradient(a), 0),
    ],
    ids=range(7),
)  # fmt: skip
def test_the_gradient_of_a_linear_function_has_the_loop_axes_of_its_argument(loss, slope):
    f = sa.lambdify([a], sa.gradient(loss, [a]))
    for loops in ((3,), (2, 3), ()):
        got = f(np.ones(loops, np.float32), **({"c": 2.0} if f.keywords else {}))[0]
        assert got.shape == loops
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, slope, rtol=1e-6)


# --- bfloat16 ---


def test_bfloat16_is_computed_in_float32_and_given_back():
    narrow = pytest.importorskip("ml_dtypes").bfloat16
    f = sa.lambdify([x, a], [sa.softmax(c * a * x), x > 0, sa.sum(x)])
    values = np.array([0.5, -3.0, 2.25], narrow)
    got = f(values, narrow(2), c=0.5)
    assert [r.dtype for r in got] == [narrow, bool, narrow]
    wide = f(values.astype(np.float32), np.float32(2), c=0.5)
    np.testing.assert_array_equal(got[0], wide[0].astype(narrow))
    assert f(values, 2, c=0.5)[0].dtype == narrow
    assert f(values, np.float32(2), c=0.5)[0].dtype == np.float32
    np.testing.assert_array_equal(sa.lambdify([M], M)(np.array([1, 0], narrow)), [True, False])


def test_other_narrow_types_are_refused_with_the_way_out():
    narrow = pytest.importorskip("ml_dtypes").float8_e4m3fn
    with pytest.raises(sa.EvaluationError, match=r"x has dtype float8_e4m3fn: .* np\.array\(x, dtype=float\)"):
        sa.lambdify([x], x)(np.ones(2, narrow))


# --- integer tensors among real numbers ---

MADE_OF_INTEGERS = {
    "abs": sa.abs(I), "cumsum": sa.cumsum(I), "dot": I @ I, "einsum": sa.einsum("i,i->", I, I), "exp": sa.exp(I / 9),
    "layer_norm": sa.attention.layer_norm(I), "logsumexp": sa.logsumexp(I), "max": sa.max(I), "mean": sa.mean(I),
    "mod": sa.mod(I, 2), "outer": sa.outer(I, I)[0], "relu": sa.relu(I - 2), "sigmoid": sa.sigmoid(I),
    "sign": sa.sign(I), "softmax": sa.softmax(I), "sqrt": sa.sqrt(I * I), "sum": sa.sum(I), "trace": sa.trace(
    sa.outer(I, I)), "where": sa.where(I < 2, I, 7), "elementwise": sa.elementwise(sympy.Lambda(c, c**2 + 1), I),
    "inv": sa.inv(9 * sa.eye(n) + sa.outer(I, I))[0], "take": sa.take(I, sa.from_index((n,), lambda i: n - 1 - i), 0),
    "less": 1 - I, "scaled": c * I, "gelu": sa.gelu(I), "sparsemax": sa.sparsemax(I), "divided": I / 3,
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_OF_INTEGERS)
def test_integers_take_the_type_of_the_real_numbers_they_meet(name):
    y = MADE_OF_INTEGERS[name]
    factor = x if y.rank else sa.sum(x)
    f = sa.lambdify([I, x], [y * factor, y + sa.sum(x)])
    want = f([1, 2, 0], np.array([1, 2, 3.0]), **({"c": 0.5} if "c" in f.binding.keywords else {}))
    for dtype in (np.float16, np.float32):
        got = f([1, 2, 0], np.array([1, 2, 3], dtype), **({"c": 0.5} if "c" in f.binding.keywords else {}))
        for found, exact in zip(got, want, strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, exact, rtol=4e-3 if dtype == np.float16 else 1e-5)


@pytest.mark.parametrize(
    ("made", "of"),
    [
        (sa.sum(I), sum), (sa.abs(I)[0], lambda v: abs(v[0])), (sa.cumsum(I)[-1], sum), (sa.trace(sa.outer(I, I)),
        lambda v: sum(k * k for k in v)), (sa.einsum("i,j->", I, I), lambda v: sum(v) ** 2), (sa.max(I) - sa.min(I),
        lambda v: max(v) - min(v)), (sa.sum(sa.repeat(I, 2, axis=0)), lambda v: 2 * sum(v)),
        (sa.sum(sa.elementwise(sympy.Lambda(c, c**2 + 1), I)), lambda v: sum(k * k + 1 for k in v)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("values", [[2**62, 2**62, 2**62 + 1], [-(2**63), -1, -1]])
def test_integers_near_the_end_of_the_range_do_not_wrap(made, of, values):
    got = sa.lambdify([I], made)(np.array(values))
    assert got == pytest.approx(float(of(values)), rel=1e-15)


def test_positions_are_compared_exactly_whatever_the_type_of_the_real_numbers_is():
    places = np.arange(4000)
    count = sa.from_index((n,), lambda i: i)
    masks = [
        sa.equal(I[:, None] + 1, I[None, :]), I[:, None] - I[None, :] < 1, count < I[7] + 2045, sa.equal(count, I),
        sa.shift(count, 1) <= count, sa.equal(sa.mod(count, 7), 2),
        sa.equal(sa.mod(3 * I + 1, 7), 2), sa.abs(I - I[-1]) <= 3, sa.equal(sa.floor((I + 1) / 3), 700),
    ]  # fmt: skip
    for mask in masks:
        row = mask if mask.rank == 1 else mask[2500]
        f = sa.lambdify([I, x], [row, row * x])
        want, weighed = f(places, np.ones(4000))
        got = f(places, np.ones(4000, np.float16))
        assert got[1].dtype == np.float16
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], weighed)


def test_gradients_that_are_integers_are_numbers():
    for loss, want in ((sa.sum(x * I), [1, 2, 0]), (sa.sum(x * sa.sum(I)), [3, 3, 3]), (I @ x, [1, 2, 0])):
        got = sa.lambdify([x, I], sa.gradient(loss, x))(np.ones(3, np.float32), [1, 2, 0])[0]
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, want)


# --- types that NumPy, or a part of it, does not compute in ---


def test_linear_algebra_in_half_precision_is_done_in_single():
    A, b = sa.tensor("A", n, n), np.float16([[4, 1], [2, 3]])
    f = sa.lambdify([A, x], [sa.inv(A), sa.inv(A.T) @ x, sa.gradient(sa.sum(sa.inv(A) @ x), A)[A]])
    for got, want in zip(f(b, np.ones(2, np.float16)), f(b.astype(float), np.ones(2)), strict=True):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, want, rtol=2e-3)
    with pytest.raises(sa.EvaluationError, match="failed on these values: .*unsupported in linalg"):
        f(b.astype(np.longdouble), np.ones(2, np.longdouble))


@pytest.mark.parametrize("name", ["floor", "relu"])
def test_complex_numbers_where_numpy_has_none_are_an_error(name):
    f = sa.lambdify([x], sa.mod(getattr(sa, name)(x), 2))
    with pytest.raises(sa.EvaluationError, match="failed on these values: ufunc"):
        f(np.ones(2, complex))


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "int4", "float4_e2m1fn"])
def test_narrow_types_are_refused_with_the_way_out(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1, 2]).astype(getattr(ml_dtypes, name))
    with pytest.raises(sa.EvaluationError, match=rf"x has dtype {name}: .*convert it first"):
        sa.lambdify([x], sa.softmax(x))(values)


def test_arrays_of_the_other_byte_order_are_brought_into_this_one():
    f = sa.lambdify([x], [x, x[::-1], 2 * x])
    for got in f(np.array([1, 2], ">f4")):
        assert got.dtype == np.float32
        assert got.dtype.isnative


@pytest.mark.parametrize("problem", [KeyError, AttributeError, ZeroDivisionError, NotImplementedError])
def test_an_array_of_others_that_fails_is_refused_by_name(problem):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            raise problem("not here")

    with pytest.raises(sa.EvaluationError, match=r"x is no array for x\[n\]: .*not here"):
        sa.lambdify([x], x)(Foreign())


@pytest.mark.parametrize(
    "factor",
    [
        sympy.Rational(44715, 10**6), sympy.Rational(10**6, 44715), sympy.Rational(100001, 10**5),
        sympy.Rational(10**40, 10**40 + 1), sympy.pi / 3000, c * sympy.Rational(70001, 70000), sympy.Rational(-4099, 3),
    ],
)  # fmt: skip
def test_a_fraction_is_a_number_of_its_own_in_half_precision(factor):
    u = sympy.Symbol("u")
    made = [factor * x, x / factor, sa.elementwise(sympy.Lambda(u, factor.subs(c, 2) * u + u), x)]
    f = sa.lambdify([x], made)
    given = {"c": 2} if "c" in f.binding.keywords else {}
    values = np.array([0.5, 8, -12])
    for got, want in zip(f(values.astype(np.float16), **given), f(values, **given), strict=True):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, want, rtol=5e-3)


def test_a_size_that_no_shape_gives_names_the_sizes_so_far_only_where_there_are_some():
    w = sa.tensor("w", "2*n")
    with pytest.raises(sa.EvaluationError, match=r"no n makes axis -1, 2\*n, the size 3$"):
        sa.lambdify([w], w)(np.ones(3))
    x = sa.tensor("x", "T")
    with pytest.raises(sa.EvaluationError, match=r"no n makes axis -1, 2\*n, the size 3; sizes so far: T = 5$"):
        sa.lambdify([x, w], [x, w])(np.ones(5), np.ones(3))
