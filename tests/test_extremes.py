"""Numbers at the extremes: large offsets, tiny and empty rows, each against a value known from outside."""

import numpy as np
import pytest
import sympy

import symattn as sa

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
}


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
