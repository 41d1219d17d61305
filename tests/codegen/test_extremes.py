"""Numbers at the extremes: large offsets, tiny and empty rows, each against a value known from outside."""

import itertools

import mpmath
import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

T, n = sa.sizes("T n")
Z, X, W = (sa.tensor(name, T, n) for name in "ZXW")
y = sa.tensor("y", T, integer=True)
A = sa.attention

# --- the maximum is taken off first ---

FAR = np.array([[-1e18] * 6, [1e15, 1e15 + 0.5, 1e15 + 1, 1e15, 1e15, 1e15]])
NEAR = np.array([[0.0] * 6, [0, 0.5, 1, 0, 0, 0]])
LOGS = NEAR - np.log(np.exp(NEAR).sum(axis=-1, keepdims=True))
UNIFORM = np.full((2, 6), 1 / 6)


@pytest.mark.parametrize(
    "spelled",
    [
        lambda: A.log_softmax(Z),
        lambda: Z - sa.logsumexp(Z)[:, None],
        lambda: -(sa.logsumexp(Z, keepdims=True) - Z),
        lambda: sa.let("U", 1 * Z) - sa.let("L", sa.logsumexp(Z, keepdims=True)),
    ],
    ids=["library", "expanded", "reversed", "named"],
)
def test_log_probabilities_do_not_depend_on_an_offset(spelled):
    np.testing.assert_allclose(sa.lambdify([Z], spelled())(FAR), LOGS, rtol=1e-15)


def test_a_difference_of_logsumexps_does_not_depend_on_an_offset():
    f = sa.lambdify([Z], sa.logsumexp(Z) - sa.logsumexp(Z[:, 1:]))
    expected = np.log(np.exp(NEAR).sum(axis=-1)) - np.log(np.exp(NEAR[:, 1:]).sum(axis=-1))
    np.testing.assert_allclose(f(FAR), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "loss",
    [
        lambda: A.cross_entropy(Z, y, reduction="none"),
        lambda: A.cross_entropy(Z, y, reduction="none", weight=sa.ones(n)),
        lambda: A.cross_entropy(Z, sa.equal(sa.from_index((T, n), lambda i, j: j), y[:, None]), reduction="none"),
    ],
    ids=["classes", "weights", "a binary tensor"],
)
def test_a_cross_entropy_does_not_depend_on_an_offset(loss):
    f = sa.lambdify([Z, y], loss())
    np.testing.assert_allclose(f(FAR, [3, 1]), [-LOGS[0, 3], -LOGS[1, 1]], rtol=1e-15)
    low = f(np.full((2, 6), -1e9, np.float32), [0, 1])
    np.testing.assert_allclose(low, np.log(6), rtol=1e-6)
    assert low.dtype == np.float32


def test_a_cross_entropy_with_probabilities_does_not_depend_on_an_offset():
    f = sa.lambdify([Z, W], A.cross_entropy(Z, W, reduction="none"))
    np.testing.assert_allclose(f(FAR, UNIFORM), -(UNIFORM * LOGS).sum(axis=-1), rtol=1e-15)
    smoothed = sa.lambdify([Z, y], A.cross_entropy(Z, y, reduction="none", smoothing=1))
    np.testing.assert_allclose(smoothed(FAR, [0, 0]), -(UNIFORM * LOGS).sum(axis=-1), rtol=1e-15)


def test_a_difference_of_logsumexps_where_one_row_is_empty():
    f = sa.lambdify([Z, W], [sa.logsumexp(Z) - sa.logsumexp(W), sa.logsumexp(W) - 2 * sa.logsumexp(Z)])
    empty, far = np.full((1, 6), -np.inf), FAR[:1]
    for given, wanted in (((empty, far), [-np.inf, np.inf]), ((far, empty), [np.inf, -np.inf])):
        np.testing.assert_array_equal(f(*given), [[x] for x in wanted])
    g = sa.gradient(sa.logsumexp(Z) - sa.logsumexp(W), [Z, W])
    for d in sa.lambdify([Z, W, g.cotangent], g)(empty, empty, np.ones(1)):
        np.testing.assert_array_equal(d, 0)


# --- where one probability is nearly 1 ---

SHARP = np.array([[0, -20.0, -25, -30], [50, 0, 1, 2], [0, 0, 0, 0]])
TURNED = np.array([[1.0, -0.5, 2, 3], [0.3, 1, -1, 2], [1, 2, 3, 4]])


def exact_slopes(z, g):
    """The derivative of a softmax from the ratios of its entries."""
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p * (p[..., None, :] * (g[..., :, None] - g[..., None, :])).sum(axis=-1)


SOFTMAXES = {
    "softmax": lambda: sa.softmax(Z),
    "spelled out": lambda: sa.exp(Z) / sa.sum(sa.exp(Z), axis=-1, keepdims=True),
    "named": lambda: 1 * sa.let("P", sa.softmax(sa.let("U", Z))),
    "along columns": lambda: sa.softmax(Z.T, axis=0).T,
    "masked": lambda: sa.softmax(Z, where=sa.ones(n) > 0),
}


@pytest.mark.parametrize("name", SOFTMAXES)
def test_the_gradient_of_a_saturated_softmax_keeps_its_digits(name):
    p = SOFTMAXES[name]()
    g = sa.gradient(p, [Z])
    (found,) = sa.lambdify([Z, g.cotangent], g)(SHARP, TURNED)
    np.testing.assert_allclose(found, exact_slopes(SHARP, TURNED), rtol=1e-13)
    moved = sa.lambdify([Z, W], sa.jvp(p, {Z: W}))(SHARP, TURNED)
    np.testing.assert_allclose(moved, exact_slopes(SHARP, TURNED), rtol=1e-13)


@pytest.mark.parametrize("size", [4, 8, 9, 300])
def test_one_large_cotangent_costs_the_others_of_an_even_row_no_digits(size):
    z, g = sa.tensor("z", n), sa.tensor("g", n)
    f = sa.lambdify([z, g], sa.gradient({sa.softmax(z): g}, z))
    logits, cotangent = np.zeros(size, np.float32), np.ones(size, np.float32)
    logits[2], cotangent[2] = 0.01, 1e6  # where the probability is largest, and still small
    p = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum()
    want = p * (cotangent - (p * cotangent).sum())
    for _ in range(3):
        np.testing.assert_allclose(f(logits, cotangent)[0], want, rtol=3e-6)


CLASSES = {
    "library": lambda: A.cross_entropy(Z, y, reduction="none"),
    "mean": lambda: 3 * A.cross_entropy(Z, y),
    "spelled": lambda: sa.logsumexp(Z) - sa.sum(A.one_hot(y, n) * Z, axis=-1),
    "logs": lambda: -sa.sum(A.one_hot(y, n) * A.log_softmax(Z), axis=-1),
    "logs of a softmax": lambda: -sa.sum(A.one_hot(y, n) * sa.log(sa.softmax(Z)), axis=-1),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_loss_of_a_class_that_is_nearly_certain_keeps_its_digits(name):
    loss = CLASSES[name]()
    g = sa.gradient(loss, [Z])
    value, found = sa.lambdify([Z, y], [sa.mean(loss), sa.gradient(sa.mean(loss), [Z])])(SHARP[:1], [0])
    rest = np.exp(SHARP[0, 1:])
    scale = 3 if name == "mean" else 1
    np.testing.assert_allclose(value, scale * np.log1p(rest.sum()), rtol=1e-14)
    np.testing.assert_allclose(found, scale * np.array([[-rest.sum(), *rest]]) / (1 + rest.sum()), rtol=1e-13)
    assert len(g) == 1


def test_the_gradient_of_an_entropy_is_0_where_probabilities_are_equal():
    p = sa.softmax(Z)
    g = sa.gradient(-sa.sum(p * sa.log(p), axis=-1), [Z])
    (d,) = sa.lambdify([Z, g.cotangent], g)(np.array([[1e9, 1e9, 1e9, 1e9 - 64], [0, 0, 0, 0]]), np.ones(2))
    small = np.exp(-64.0)
    np.testing.assert_allclose(d, [[-64 * small / 9] * 3 + [64 * small / 3], [0] * 4], rtol=1e-13)


# --- rows of -inf ---


@pytest.mark.parametrize("op", [sa.sparsemax, sa.entmax15, sa.softmax])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_row_of_minus_infinity_has_the_gradient_zero(op, dtype):
    rows = np.array([[-np.inf] * 3, [-np.inf, 2, -np.inf], [1, 1, -np.inf]], dtype)
    for of, wrt in ((op(Z), Z), (op(Z.T, axis=0).T, Z), (2 * op(Z), Z)):
        g = sa.gradient(of, [wrt])
        (d,) = sa.lambdify([Z, g.cotangent], g)(rows, np.array([[1, 2, 3]] * 3, dtype))
        assert d.dtype == dtype
        assert (d[:2] == 0).all()
        assert d[2, 0] < 0 < d[2, 1]
        assert d[2, 2] == 0


# --- norms ---

ROW, COTANGENT = np.array([[1, -2, 3, 0.5]]), np.array([[1.0, 0, -1, 2]])
SPELLED = {
    "layer norm": lambda: A.layer_norm(X, eps=0),
    "rms norm": lambda: A.rms_norm(X, eps=0),
    "l2 norm": lambda: A.l2_norm(X),
    "group norm": lambda: A.group_norm(X, 1, eps=0),
    "a quotient": lambda: X / sa.sqrt(sa.sum(X * X, axis=-1, keepdims=True)),
    "a sum over n": lambda: X / sa.sqrt(sa.sum(X**2, axis=-1, keepdims=True) / n),
    "a power": lambda: X * sa.mean(X**2, axis=-1, keepdims=True) ** sympy.Rational(-1, 2),
    "a standard deviation": lambda: (
        (X - sa.mean(X, axis=-1, keepdims=True))
        / sa.sqrt(sa.mean((X - sa.mean(X, axis=-1, keepdims=True)) ** 2, axis=-1, keepdims=True))
    ),
    "one over a root": lambda: X * (1 / sa.sqrt(sa.sum(X**2, axis=-1, keepdims=True))),
}
POWERS = [(np.float16, e) for e in (-22, -20, -7, 8, 14)]
POWERS += [(np.float32, e) for e in (-147, -126, -70, 64, 126)]
POWERS += [(np.float64, e) for e in (-1072, -1022, -600, 512, 1022)]


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize(("dtype", "power"), POWERS)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_norm_is_right_at_every_scale_that_its_dtype_has(name, dtype, power):
    """Also where neither the squares, nor the mean, nor the inverse length are representable."""
    y = SPELLED[name]()
    g = sa.gradient(y, [X])
    f = sa.lambdify([X, g.cotangent], [y, g])
    by = 2.0 ** (power // 2)  # which leaves the gradient representable
    rows, turned = np.array([[1, -1.5, -1.75, 0.5], [1.5, 1.5, 1.5, -1]]), np.array([[1.0, 0, -1, 2]] * 2)
    exact = f(rows, turned)
    found = f(np.ldexp(rows, power).astype(dtype), (turned * by).astype(dtype))
    for got, wanted, scale in zip(found, exact, (1, 2.0 ** (power // 2 - power)), strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got / scale, wanted, rtol=0, atol=16 * np.finfo(dtype).eps)


def test_statistics_of_a_norm_are_right_where_they_are_representable():
    _mu, r = A.layer_norm_statistics(X, eps=0)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(sa.lambdify([X], r)(ROW * 2.0**900), sa.lambdify([X], r)(ROW) / 2.0**900, rtol=1e-15)
    np.testing.assert_allclose(sa.lambdify([X], r)(ROW * 2.0**-900), sa.lambdify([X], r)(ROW) * 2.0**900, rtol=1e-15)


def test_rows_of_any_scale_may_stand_side_by_side_and_under_loop_axes():
    f = sa.lambdify([X], A.rms_norm(X, eps=0))
    rows = np.concatenate([ROW * 1e300, ROW, ROW * 1e-300])
    np.testing.assert_allclose(f(rows), np.repeat(f(ROW), 3, axis=0), rtol=1e-15)
    g = sa.gradient(A.rms_norm(X, eps=0), [X])
    h = sa.lambdify([X, g.cotangent], g)
    (deep,) = h(rows[:, None], np.repeat(COTANGENT, 3, axis=0)[:, None])
    (flat,) = h(ROW, COTANGENT)
    np.testing.assert_allclose(deep[:, 0] * [[1e300], [1], [1e-300]], np.repeat(flat, 3, axis=0), rtol=1e-13)


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize(
    ("dtype", "scale"), [(np.float16, 2.0**-6), (np.float32, 1e16), (np.float32, 1e-15), (np.float64, 1e140)]
)
def test_the_gradient_of_a_norm_is_inverse_to_the_scale(name, dtype, scale):
    g = sa.gradient(SPELLED[name](), [X])
    f = sa.lambdify([X, g.cotangent], g)
    (exact,) = f(ROW, COTANGENT)
    (d,) = f((scale * ROW).astype(dtype), COTANGENT.astype(dtype))
    assert d.dtype == dtype
    np.testing.assert_allclose(
        d.astype(float) * scale, exact, rtol=20 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps
    )


def test_the_gradient_of_layer_norm_is_right_where_it_was_wrong():
    g = sa.gradient(A.layer_norm(X), [X])
    f = sa.lambdify([X, g.cotangent], g)
    (d,) = f((1e16 * ROW).astype(np.float32), COTANGENT.astype(np.float32))
    np.testing.assert_allclose(d, [[0.3183e-16, -0.5422e-16, -0.6055e-16, 0.8294e-16]], rtol=2e-3)
    small = (0.02 * ROW).astype(np.float16)
    (half,) = f(small, COTANGENT.astype(np.float16))
    (full,) = f(small.astype(float), COTANGENT)
    np.testing.assert_allclose(half, full, rtol=1e-2)


def test_parts_of_a_norm_that_are_asked_for_keep_their_own_derivatives():
    y, eps = A.rms_norm(X), sympy.Symbol("eps", positive=True)
    g = sa.gradient(y, [X, y.intermediates[0]])
    assert str(g["dr"].inputs[0]) == "rowsum(X * dXhat)"
    sa.lambdify([X, g.cotangent], g).check()
    soft = sa.gradient(A.rms_norm(X, eps=eps), [X, eps])
    sa.lambdify([X, soft.cotangent, eps], soft).check()
    assert "deps" in {step.name for step in soft.steps}


def test_a_tangent_through_a_norm_has_the_same_form():
    dot = sa.jvp(A.rms_norm(X, eps=0), {X: W})
    assert str(dot.inputs[0]) == "r * (W - Xhat * rowmean(Xhat * W))"
    f = sa.lambdify([X, W], dot)
    np.testing.assert_allclose(
        f(np.float32(1e16) * ROW.astype("f"), COTANGENT.astype("f")) * 1e16, f(ROW, COTANGENT), rtol=1e-5
    )


# --- plain spellings ---

u = sa.tensor("u", n)
FLAT = np.array([800.0, -800, 1e-12, 40, -40, 1, -7.5])


def exact_sigmoid(t):
    return 1 / (1 + mpmath.exp(-t))


def exact_gelu(t):
    """What is beyond 50 differs from relu by less than any normal number, and takes long at 400 digits."""
    return max(t, 0) if abs(t) > 50 else t * mpmath.erfc(-t / mpmath.sqrt(2)) / 2


SPELLINGS = {
    "sigmoid": (lambda: 1 / (1 + sa.exp(-u)), exact_sigmoid),
    "sigmoid of exponentials": (lambda: sa.exp(u) / (1 + sa.exp(u)), exact_sigmoid),
    "one less sigmoid": (lambda: 1 - sa.sigmoid(u), lambda t: exact_sigmoid(-t)),
    "silu": (lambda: u / (1 + sa.exp(-u)), lambda t: t * exact_sigmoid(t)),
    "library silu": (lambda: sa.silu(u), lambda t: t * exact_sigmoid(t)),
    "log of one less sigmoid": (lambda: sa.log(1 - sa.sigmoid(u)), lambda t: -mpmath.log(1 + mpmath.exp(t))),
    "log of sigmoid": (lambda: sa.log(1 / (1 + sa.exp(-u))), lambda t: -mpmath.log(1 + mpmath.exp(-t))),
    "softplus": (lambda: sa.log1p(sa.exp(u)), lambda t: mpmath.log(1 + mpmath.exp(t))),
    "named softplus": (lambda: sa.log1p(sa.let("E", sa.exp(u))), lambda t: mpmath.log(1 + mpmath.exp(t))),
    "sigmoid by a power": (lambda: (1 + sa.exp(-u)) ** -1, exact_sigmoid),
    "one less two sigmoids": (lambda: 3 - 3 * sa.sigmoid(u), lambda t: 3 * exact_sigmoid(-t)),
    "log of five less": (lambda: sa.log(5 - 5 * sa.sigmoid(u)), lambda t: mpmath.log(5 / (1 + mpmath.exp(t)))),
    "shifted softplus": (lambda: sa.log(3 + 2 * sa.exp(u)), lambda t: mpmath.log(3 + 2 * mpmath.exp(t))),
    "log of exp": (lambda: sa.log(5 * sa.exp(u)), lambda t: t + mpmath.log(5)),
    "one less tanh": (lambda: 1 - sa.tanh(u), lambda t: 2 * exact_sigmoid(-2 * t)),
    "half of tanh and one": (lambda: sa.tanh(u) / 2 + sympy.Rational(1, 2), lambda t: exact_sigmoid(2 * t)),
    "slope of tanh": (lambda: 2 - 2 * sa.tanh(u) * sa.tanh(u), lambda t: 2 * mpmath.sech(t) ** 2),
    "tanh": (lambda: sa.tanh(u), mpmath.tanh),
    "tanh by sigmoid": (lambda: 2 * sa.sigmoid(2 * u) - 1, mpmath.tanh),
    "tanh by exponentials": (lambda: 1 - 2 / (1 + sa.exp(2 * u)), mpmath.tanh),
    "softcap": (lambda: 5 * sa.tanh(u / 5), lambda t: 5 * mpmath.tanh(t / 5)),
    "gelu": (lambda: sa.gelu(u), exact_gelu),
    "plain gelu": (lambda: u * (1 + sa.erf(u / sympy.sqrt(2))) / 2, exact_gelu),
}
DTYPES = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize(("dtype", "name"), one_in(4, itertools.product(DTYPES, SPELLINGS)))
@pytest.mark.slow
def test_functions_of_one_number_are_as_accurate_as_their_condition_allows(name, dtype):
    """8 units in the last place times ``1 + |x f'(x) / f(x)|``; what is smaller than any normal number may be 0."""
    spelled, exact = SPELLINGS[name]
    g = sa.gradient(spelled(), [u])
    flat = np.array([*FLAT, -3, 12, 0.01, -60, 80], dtype)
    values = sa.lambdify([u], spelled())(flat)
    with np.errstate(over="ignore"):  # a square within exp(-x**2 / 2)
        (slopes,) = sa.lambdify([u, g.cotangent], g)(flat, np.ones_like(flat))
    assert values.dtype == slopes.dtype == dtype
    with mpmath.workdps(400):
        for point, value, slope in zip(flat, values, slopes, strict=True):
            at = mpmath.mpf(float(point))
            derived = [mpmath.diff(exact, at, k, h=mpmath.mpf(10) ** -60) for k in (1, 2)]
            for got, wanted, moving in ((value, exact(at), derived[0]), (slope, derived[0], derived[1])):
                info = np.finfo(dtype)
                bound = 8 * float(info.eps) * (abs(wanted) + abs(at * moving)) + 8 * float(info.smallest_normal)
                assert abs(float(got) - wanted) <= bound, (point, got, wanted)


def test_differences_of_exponentials_from_one_do_not_cancel():
    small = np.array([1e-12, -1e-9, 1e-300, 0.5])
    f = sa.lambdify([u], [(sa.exp(u) - 1) / u, 1 - sa.exp(u), sa.let("E", sa.exp(u)) - 1])
    np.testing.assert_allclose(f(small)[0], np.expm1(small) / small, rtol=1e-15)
    np.testing.assert_allclose(f(small)[1:], [-np.expm1(small), np.expm1(small)], rtol=1e-15)


def test_a_difference_that_is_0_has_the_sign_that_is_written():
    f = sa.lambdify([u], [1 / (1 - sa.exp(u)), 1 / (2 - 2 * sa.exp(u)), 1 / (sa.exp(u) - 1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(f(np.zeros(1)), np.full((3, 1), np.inf))


def test_the_logarithm_of_weights_by_their_logsumexp_has_a_gradient_everywhere():
    p = sa.exp(Z - sa.logsumexp(Z, keepdims=True))
    g = sa.gradient(sa.sum(sa.log(p)), Z)
    rows = np.array([[800.0, -800, 0, 1], [1e4, 1e4, 9999, -1e4]])
    weights = np.exp(rows - rows.max(-1, keepdims=True))
    want = 1 - 4 * weights / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(sa.lambdify([Z], g[Z])(rows), want, atol=1e-12)


RATIOS = {
    "expm1(x)/x": (lambda: (sa.exp(u) - 1) / u, lambda t: mpmath.expm1(t) / t),
    "named": (lambda: (sa.let("E", sa.exp(u)) - 1) / u, lambda t: mpmath.expm1(t) / t),
    "(1 - exp(-x))/x": (lambda: (1 - sa.exp(-u)) / u, lambda t: -mpmath.expm1(-t) / t),
    "3 (exp(2 x) - 1)/x": (lambda: 3 * (sa.exp(2 * u) - 1) / u, lambda t: 3 * mpmath.expm1(2 * t) / t),
    "tanh(x)/x": (lambda: sa.tanh(u) / u, lambda t: mpmath.tanh(t) / t),
    "tanh(x/2)/x": (lambda: sa.tanh(u / 2) / u, lambda t: mpmath.tanh(t / 2) / t),
}


@pytest.mark.parametrize("name", RATIOS)
def test_the_derivative_of_a_quotient_does_not_cancel_at_0(name):
    spelled, exact = RATIOS[name]
    at = np.array([1e-12, -1e-5, 1e-150, 0.3, -0.7, 2, -30, 40])
    g = sa.gradient(spelled(), [u])
    (found,) = sa.lambdify([u, g.cotangent], g)(at, np.full(8, 0.7))
    with mpmath.workdps(400):
        wanted = [0.7 * float(mpmath.diff(exact, mpmath.mpf(float(t)), h=mpmath.mpf(10) ** -180)) for t in at]
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_a_quotient_that_is_representable_does_not_overflow():
    f = sa.lambdify([u], [(sa.exp(u) - 1) / u, (1 - sa.exp(-u)) / u])
    np.testing.assert_allclose(f(np.array([711.0])), [[np.exp(709) / 711 * np.exp(2)], [1 / 711]], rtol=1e-13)
    np.testing.assert_allclose(sa.lambdify([u], (sa.exp(u) - 1) / u)(np.array([-800.0])), 1 / 800, rtol=1e-15)


def test_sums_of_weighed_exponentials_do_not_overflow():
    for spelled, less in (
        (sa.log(sa.sum(2 * sa.exp(u))), np.log(2)),
        (sa.log(3 * sa.sum(sa.exp(u))), np.log(3)),
        (sa.log(sa.mean(sa.exp(u))), -np.log(7)),
        (sa.log(sa.mean(sa.let("E", 2 * sa.exp(u)))), np.log(2 / 7)),
    ):
        f = sa.lambdify([u], spelled)
        np.testing.assert_allclose(f(FLAT), 800 + less, rtol=1e-15)
        assert f(np.full(7, -np.inf)) == -np.inf


# --- entropies ---

SATURATED = np.array([[0, 800.0, -800, 1], [0, 0, 0, -np.inf], [-1e9, -1e9, -1e9, -1e9], [-np.inf] * 4])
ENTROPIES = np.array([0, np.log(3), np.log(4), 0])


@pytest.mark.parametrize("named", [True, False])
def test_entropies_of_saturated_rows(named):
    p = sa.let("p", sa.softmax(Z)) if named else sa.softmax(Z)
    h = -sa.sum(p * sa.log(p), axis=-1)
    g = sa.gradient(h, [Z])
    np.testing.assert_allclose(sa.lambdify([Z], h)(SATURATED), ENTROPIES, atol=1e-15)
    (d,) = sa.lambdify([Z, g.cotangent], g)(SATURATED[:3], np.ones(3))
    np.testing.assert_allclose(d, np.zeros((3, 4)), atol=1e-15)


def test_divergences_of_saturated_rows():
    p, q = sa.softmax(Z), sa.softmax(2 * Z)
    kl = sa.lambdify([Z], sa.sum(p * (sa.log(p) - sa.log(q)), axis=-1))
    np.testing.assert_allclose(kl(SATURATED[:1]), 0, atol=1e-15)
    far = sa.lambdify([Z, W], sa.sum(sa.softmax(Z) * (sa.log(sa.softmax(Z)) - sa.log(sa.softmax(W))), axis=-1))
    np.testing.assert_allclose(far(SATURATED[:1], SATURATED[:1, ::-1]), 1600, rtol=1e-15)
    with np.errstate(invalid="ignore"):  # -inf less -inf, which has the weight 0
        np.testing.assert_allclose(far(SATURATED[1:2], SATURATED[1:2]), 0, atol=1e-15)


def test_x_log_x_is_0_at_0():
    f = sa.lambdify([u], u * sa.log(u))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(f(np.array([0, 1.0])), [0, 0])


def test_log_probabilities_of_a_masked_softmax():
    M = sa.tensor("M", T, n, binary=True)
    f = sa.lambdify([Z, M], sa.log(sa.softmax(Z, where=M)))
    mask = np.array([[True, True, False, True]])
    np.testing.assert_array_equal(f(SATURATED[:1], mask), [[-800, 0, -np.inf, -799]])


# --- what is computed otherwise than it is written ---


def test_the_source_says_what_has_another_form():
    t = u - sa.max(u)
    E = sa.let("E", sa.exp(t))
    P = sa.let("P", E / sa.sum(E))
    f = sa.lambdify([u], [E, P, sa.log(P)])
    assert "    E = np.exp(t)\n    # (E / sum(E))[n], in a form that is equal and no less accurate\n" in f.source
    assert "# log(P)[n], in a form that is equal and no less accurate" in f.source
    assert "in a form" not in sa.lambdify([u], [sa.softmax(u), sa.sigmoid(u), sa.logsumexp(u)]).source
    e, _, logs = f(np.array([0.0, -800]))
    np.testing.assert_array_equal(e, [1, 0])
    np.testing.assert_array_equal(logs, [0, -800])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logits_whose_difference_is_no_number_are_normalised_without_a_warning(dtype):
    z, top = sa.tensor("z", "n"), np.finfo(dtype).max
    logits = np.array([top, -top, 0], dtype)
    assert sa.lambdify([z], sa.softmax(z))(logits).tolist() == [1, 0, 0]
    assert sa.lambdify([z], sa.logsumexp(z))(logits) == top
