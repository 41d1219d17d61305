"""Disputes from public threads about linear attention, kernels and feature maps, settled by proof and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention as A

from .test_gradient_cases import STANDARD, compute, digits, first_difference
from .test_permutation_cases import proved, refuted

n, m, d, e, B, T, H = sa.sizes("n m d e B T H")
Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, e)


def rowsum(x: Any) -> Any:
    return sa.sum(x, axis=-1, keepdims=True)


def weighted(weights: Any, values: Any) -> Any:
    return weights / rowsum(weights) @ values


def linear(a: Any, b: Any, values: Any) -> Any:
    """Linear attention of features, with keys and values contracted first."""
    return A.linear(a, b, values, feature=None)


def test_K01_the_normaliser_of_causal_linear_attention_divides():
    """lucidrains/performer-pytorch#40: the reciprocal is missing, so that outputs are multiplied by the sum."""
    keys, values = sa.tensor("K", n, d), sa.tensor("V", n, e)
    a, b = A.elu_plus_one(Q), A.elu_plus_one(keys)
    normaliser = rowsum(a * sa.cumsum(b, axis=0))

    def summed(v):
        return A.causal_linear(Q, keys, v, form="state", normalise=False)

    wanted, ones = weighted(sa.tril(a @ b.T), values), sa.ones(n, e)
    proved(summed(values) / normaliser, wanted)
    for form in ("weights", "state"):
        proved(A.causal_linear(Q, keys, values, form=form), wanted)
        proved(A.causal_linear(Q, keys, ones, form=form), ones)
    refuted(summed(values) * normaliser, wanted)
    proved(summed(ones) / normaliser, ones)  # the property that shows the mistake
    refuted(summed(ones) * normaliser, ones)

    assert first_difference(wanted, summed(values) * normaliser, STANDARD).largest == digits(102.971401)
    product = compute((summed(ones) * normaliser).subs({e: 1}), STANDARD)
    assert product.ravel() == digits([17.749886, 69.815398, 37.450097])


def test_K03_the_running_sum_goes_along_time_in_every_layout():
    """fla-org/flash-linear-attention#594: a fixed axis sums over heads, and again after the layout is changed."""
    keys = sa.tensor("K", B, T, H, d)
    right, wrong = sa.cumsum(keys, axis=1), sa.cumsum(keys, axis=2)

    def later(out, inp):
        return inp[1] > out[1]

    def other_head(out, inp):
        return sympy.Ne(inp[2], out[2])

    proved(sa.independent(right, keys, later))
    proved(sa.independent(right, keys, other_head))
    refuted(sa.independent(wrong, keys, other_head))
    refuted(sa.independent(wrong, keys, lambda out, inp: inp[1] >= out[1]))

    other_layout = sa.moveaxis(keys, 1, 2)
    proved(sa.cumsum(other_layout, axis=2), sa.moveaxis(right, 1, 2))
    refuted(sa.cumsum(other_layout, axis=1), sa.moveaxis(right, 1, 2))

    arrays = {"K": np.random.default_rng(3).normal(size=(1, 3, 2, 2))}
    right, wrong = (x.subs({keys: A.elu_plus_one(keys)}) for x in (right, wrong))
    assert first_difference(right, wrong, arrays).largest == digits(3.67686)


def test_K05_columns_of_a_QR_factor_need_a_sign_correction():
    """google-research/google-research#436: orthogonal features from LAPACK's QR are called marginally Gaussian."""
    U, R, signs = sa.tensor("U", d, d, orthogonal=True), sa.tensor("R", d, d), sa.tensor("s", d)
    corrected, unit = U @ sa.diag(signs), [sa.eq(signs * signs, 1)]
    proved(corrected.T @ corrected, sa.eye(d), given=unit)
    proved(corrected @ (sa.diag(signs) @ R), U @ R, given=unit)  # a factorisation of the same matrix

    x, y = (sa.tensor(name, m) for name in "xy")  # what is estimated: exp(x y), here by positive features
    features = sa.tensor("W", m, m)
    terms = sa.exp(features @ x - x @ x / 2) * sa.exp(features @ y - y @ y / 2)
    by_name = [A.performer_features(m ** sympy.Rational(1, 4) * z[None], features)[0] for z in (x, y)]
    proved(by_name[0] * by_name[1], terms / m)
    proved(terms, sa.exp(-(x @ x + y @ y) / 2) * sa.exp(features @ (x + y)))

    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(200_000, 2, 2))
    factor, upper = np.linalg.qr(matrices)
    norms = np.sqrt(rng.chisquare(2, size=(200_000, 2)))
    assert (factor[:, 0, 0] < 0).all()

    estimate = sa.lambdify([features, x], sa.mean(sa.exp(features @ x)))
    z = np.array([1.0, 0.5])
    wanted = np.exp(z @ z / 2)
    haar = factor * np.sign(np.einsum("nii->ni", upper))[:, None, :]
    for columns, mean, is_biased in ((factor, 1.591, True), (haar, 1.867, False)):
        drawn = estimate(norms[:, :, None] * columns.swapaxes(1, 2), z)
        assert drawn.mean() == pytest.approx(mean, rel=0, abs=6e-4)
        assert (abs(drawn.mean() - wanted) > 8 * drawn.std() / np.sqrt(200_000)) == is_biased


def test_K07_a_key_is_masked_by_its_features():
    """lucidrains/performer-pytorch#89: which of features, keys and values to zero for a padding mask."""
    kept = sa.tensor("M", m, binary=True)[:, None]
    a = A.elu_plus_one(Q)
    wanted = weighted((a @ A.elu_plus_one(K).T) * kept.T, V)
    masked_features, masked_keys, masked_values = (
        linear(a, A.elu_plus_one(K) * kept, V),
        linear(a, A.elu_plus_one(K * kept), V),
        linear(a, A.elu_plus_one(K), V * kept),
    )
    proved(masked_features, wanted)
    by_name = [A.linear(Q, K, V, mask=kept[:, 0], form=form) for form in ("state", "weights")]
    proved(*by_name)  # as wanted, where a key is left
    proved(
        linear(a, sa.concat([A.elu_plus_one(K), 0 * Q]), sa.concat([V, sa.tensor("U", n, e)])),
        linear(a, A.elu_plus_one(K), V),
    )
    proved(A.elu_plus_one(0 * K), sa.ones(m, d))  # why a key of zeros still counts
    refuted(masked_keys, wanted)
    refuted(masked_values, wanted)

    arrays = {**STANDARD, "M": [1, 1, 0]}
    without = {name: np.asarray(rows)[:2] if name in "KV" else rows for name, rows in STANDARD.items()}
    for right in (masked_features, *by_name):
        assert compute(right, arrays) == pytest.approx(compute(linear(a, A.elu_plus_one(K), V), without), rel=1e-14)
    for wrong, largest in ((masked_keys, 0.599694), (masked_values, 0.63032)):
        assert first_difference(wanted, wrong, arrays).largest == digits(largest)


def test_K09_elu_plus_one_is_positive_and_a_feature_map_with_signs_is_not():
    """LeapLabTHU/MLLA#19: why one is added to elu."""
    x, q = sa.tensor("x", n), sa.tensor("q", d)
    elu = sa.where(x > 0, x, sa.exp(x) - 1)
    proved(elu + 1, A.elu_plus_one(x))
    proved(sa.lt(0, A.elu_plus_one(x)))
    refuted(sa.le(0, elu))

    positive, signed = A.elu_plus_one(q) @ A.elu_plus_one(K).T, q @ K.T
    proved(sa.lt(0, sa.sum(positive)))
    proved(sa.lt(0, positive / sa.sum(positive)))
    proved(sa.sum(positive / sa.sum(positive)), 1)
    refuted(sa.lt(0, sa.sum(signed)))
    assert refuted(sa.le(0, signed / sa.sum(signed))).right < 0
    weights = compute(signed / sa.sum(signed), {"q": STANDARD["Q"][0], "K": STANDARD["K"]})
    assert weights == digits([0, -1.230769, 2.230769])


def test_K11_a_point_among_its_own_keys_gets_the_largest_weight():
    """discuss.d2l.ai/t/1599: a learner takes exp(0) for 0, and others ask why a training point is left out."""
    x, y, w = sa.tensor("x", n), sa.tensor("y", n), sympy.Symbol("w", real=True)
    kernel = sa.exp(-(((x[:, None] - x) * w) ** 2) / 2)
    weights = kernel / rowsum(kernel)
    proved(sa.diag(kernel), sa.ones(n))
    proved(sa.le(kernel, 1))
    refuted(sa.diag(weights), sa.zeros(n))
    proved(weights, sa.softmax(-(((x[:, None] - x) * w) ** 2) / 2))

    arrays = {"x": [0.0, 1.0, 2.5], "y": [1.0, -1.0, 0.5]}
    loss = sa.mean((weights @ y - y) ** 2)
    assert compute(sa.diag(weights).subs({w: 1}), arrays) == digits([0.605889, 0.517817, 0.730679])
    assert compute(loss.subs({w: 1}), arrays) == digits(0.483444)
    assert compute(loss.subs({w: 10}), arrays) < 1e-12  # what leaving the point out forbids


def test_K13_a_gaussian_kernel_is_dot_product_attention_for_keys_of_one_norm():
    """probml/pml-book#583: kernel regression against attention, with vectors as keys."""
    distances = sa.sum((Q[:, None] - K) ** 2, axis=-1)
    kernel, attention = sa.softmax(-distances / 2), sa.softmax(Q @ K.T)
    proved(kernel, sa.softmax(Q @ K.T - sa.sum(K**2, axis=1) / 2))
    refuted(kernel, attention)
    rho = sa.tensor("rho")
    proved(kernel, attention, given=[sa.eq(sa.sum(K**2, axis=-1), rho)])
    refuted(kernel, attention, given=[sa.eq(sa.sum(Q**2, axis=-1), rho)])  # queries of one norm are not enough
    unit = {K: K / sa.sqrt(rowsum(K**2))}
    proved(kernel.subs(unit), attention.subs(unit))
    assert first_difference(attention, kernel, STANDARD).largest == digits(0.10802)
