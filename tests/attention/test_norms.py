"""Norms: what they are invariant under, how they are related, their extreme inputs, and their error messages."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.attention import group_norm, l2_norm, layer_norm, layer_norm_statistics, rms_norm

T, d, h, e = sa.sizes("T d h e")
X, g, b = sa.tensor("X", T, d), sa.tensor("g", d), sa.tensor("b", d)
SHIFT, SCALES = sa.tensor("t", T, 1), sa.tensor("s", T, 1, positive=True)
EPS = sympy.Symbol("epsilon", positive=True)
c = sympy.Symbol("c", positive=True)
U = sa.tensor("U", d, d, orthogonal=True)
HEADS = sa.tensor("O", h, T, e)


def rowmean(x):
    return sa.mean(x, axis=-1, keepdims=True)


EQUAL = {
    "a shift of each row": (layer_norm(X + SHIFT, g, b), layer_norm(X, g, b)),
    "a shift of each row, for any eps": (layer_norm(X + SHIFT, eps=EPS), layer_norm(X, eps=EPS)),
    "a scale of each row, without eps": (layer_norm(SCALES * X, g, b, eps=0), layer_norm(X, g, b, eps=0)),
    "a scale and eps together": (layer_norm(c * X, eps=c**2 * EPS), layer_norm(X, eps=EPS)),
    "rms: a scale of each row": (rms_norm(SCALES * X, g, eps=0), rms_norm(X, g, eps=0)),
    "rms: a rotation of the features": (rms_norm(X @ U), rms_norm(X) @ U),
    "l2: a scale of each row": (l2_norm(SCALES * X), l2_norm(X)),
    "layer norm is rms norm of centred rows": (layer_norm(X, g, eps=EPS), rms_norm(X - rowmean(X), g, eps=EPS)),
    "rms norm is l2 norm times a root": (rms_norm(X, eps=0), sympy.sqrt(d) * l2_norm(X)),
    "its variance as the mean square less the squared mean": (
        layer_norm(X), (X - rowmean(X)) / sa.sqrt(rowmean(X**2) - rowmean(X) ** 2 + 1e-5),
    ),
    "standardised rows have the mean 0": (rowmean(layer_norm(X)), sa.zeros(T, 1)),
    "the squares of an l2 norm add up to 1": (sa.sum(l2_norm(X) ** 2, axis=-1), sa.ones(T)),
    "one feature": (layer_norm(X.subs({d: 1})), sa.zeros(T, 1)),
    "groups are heads": (group_norm(sa.attention.merge_heads(HEADS), h), sa.attention.merge_heads(layer_norm(HEADS))),
    "one group is layer norm": (group_norm(X, 1, g, b), layer_norm(X, g, b)),
}  # fmt: skip
DIFFERENT = {
    "a shift of the features": (layer_norm(X + b), layer_norm(X)),
    "a scale, with eps": (layer_norm(c * X), layer_norm(X)),
    "a change of sign": (layer_norm(-X, eps=0), layer_norm(X, eps=0)),
    "a rotation of the features": (layer_norm(X @ U), layer_norm(X) @ U),
    "rms: a shift of each row": (rms_norm(X + SHIFT), rms_norm(X)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_is_proved(name):
    assert sa.prove(*EQUAL[name]).status == "proved"


@pytest.mark.parametrize("name", DIFFERENT)
def test_is_refuted(name):
    assert sa.prove(*DIFFERENT[name]).status == "refuted"


def test_statistics_are_the_intermediates_of_the_norm():
    mean, inverse = layer_norm_statistics(X)
    N = layer_norm(X, g)
    assert {mean, inverse} < set(N.intermediates)
    source = sa.lambdify([X, g], [N, mean, inverse]).source
    assert source.count(".mean(") == 2


def test_the_gradient_has_its_three_terms():
    g_x = sa.gradient(layer_norm(X, eps=EPS), [X])
    D, (_, r), normal = g_x.cotangent, layer_norm_statistics(X, eps=EPS), layer_norm(X, eps=EPS)
    assert sa.prove(g_x[X], r * (D - rowmean(D) - normal * rowmean(normal * D))).status == "proved"
    rms = sa.gradient(rms_norm(X, eps=EPS), [X])
    D, normal = rms.cotangent, rms_norm(X, eps=EPS)
    r = sa.rsqrt(rowmean(X**2) + EPS)
    assert sa.prove(rms[X], r * (D - normal * rowmean(normal * D))).status == "proved"


# --- extreme inputs ---


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
def test_constant_rows_have_a_finite_norm_and_gradient_with_eps(norm):
    y = norm(X)
    slopes = sa.gradient(y, [X])
    f = sa.lambdify([X, slopes.cotangent], [y, slopes])
    value, slope = f(np.zeros((2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(value, 0)
    expected = 0 if norm is layer_norm else 1e-5**-0.5
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-12)


def test_a_constant_row_has_no_norm_without_eps():
    f = sa.lambdify([X], layer_norm(X, eps=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isnan(f(np.full((1, 3), 7.0))).all()


def test_rows_whose_squares_overflow_or_vanish_are_normalised_all_the_same():
    rows = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0]])
    for norm in (lambda x: layer_norm(x, eps=0), lambda x: rms_norm(x, eps=0), l2_norm):
        f = sa.lambdify([X], norm(X))
        for scale in (1e150, 1e160, 1e307, 1e-160, 1e-300):
            np.testing.assert_allclose(f(rows * scale), f(rows), rtol=1e-15, atol=1e-15)


def test_eps_is_exact_in_its_decimal_spelling():
    assert str(layer_norm(X).intermediates[2].inputs[0]) == "rsqrt(rowmean(C**2) + 1/100000)"
    f = sa.lambdify([X, EPS], layer_norm(X, eps=EPS))
    array = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(array, 1e-5), sa.lambdify([X], layer_norm(X))(array))


# --- errors ---

MESSAGES = {
    "a gain of the tokens": (lambda: layer_norm(X, sa.tensor("g", T)), "layer_norm of X[T, d]: the gain g[T]"),
    "a bias of other features": (lambda: layer_norm(X, g, sa.tensor("b", e)), "the bias b[e] does not fit"),
    "a gain of one axis for two": (lambda: layer_norm(X, g, axes=2), "it has the normalised sizes, [T, d]"),
    "a gain with more tokens than X": (lambda: rms_norm(X, sa.tensor("g", h, T, d)), "the gain g[h, T, d]"),
    "a number for a gain": (lambda: rms_norm(X, 2), "the gain 2[] does not fit"),
    "more axes than there are": (lambda: layer_norm(X, axes=3), "layer_norm: X[T, d] has 2 axes where"),
    "no axes": (lambda: layer_norm(X, axes=0), "axes is how many last axes are normalised together, 1 or more"),
    "a negative eps": (lambda: l2_norm(X, eps=-1e-5), "l2_norm: eps is 0 or more, not -1e-05"),
    "a vector for eps": (lambda: rms_norm(X, eps=b), "rms_norm: eps is a number or a scalar, not b[d]"),
    "groups that do not divide": (
        lambda: group_norm(sa.tensor("X", T, 8), 3), "group_norm: 3 groups do not divide the 8 features of X[T, 8]",
    ),
    "a name for a tensor": (lambda: rms_norm("X"), "make one by sa.tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_errors_say_what_does_not_fit(name):
    call, text = MESSAGES[name]
    with pytest.raises((sa.ShapeError, sa.OperandError)) as caught:
        call()
    assert text in str(caught.value)
