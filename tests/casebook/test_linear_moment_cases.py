"""Disputes from public threads about random features: what is unbiased, and how widely an estimate spreads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from ..enumeration import at

d, n = sa.sizes("d n")
z, x, y = (sa.tensor(name, d) for name in "zxy")
w, W, u = sa.tensor("w", d), sa.tensor("W", n, d), sa.tensor("u", d)
FIXED = {name: "constant" for name in "zxy"}


def inner(a: sa.Tensor, b: sa.Tensor) -> sympy.Expr:
    s = sympy.Symbol("k", integer=True, nonnegative=True)
    return sympy.Sum(a[s] * b[s], (s, 0, d - 1))


def test_K05_normal_rows_estimate_the_kernel_without_bias():
    """google-research/google-research#436: orthogonal features are called unbiased for their normal marginals.

    A row that is a uniform direction times a chi length has the moments of a normal row. The first column of LAPACK's
    QR factor has a first coordinate of one sign, which no such row has.
    """
    law = {w: sa.iid("normal"), z: "constant"}
    kernel = sa.expectation(sa.exp(w @ z), law)
    assert kernel == sympy.exp(inner(z, z) / 2)
    assert float(at(kernel, {d: 2}, z=[1, sympy.Rational(1, 2)])) == pytest.approx(1.8682, abs=5e-5)

    lengths = {2: d, 4: d * (d + 2)}  # E |w|^2 and E |w|^4
    for power, length in lengths.items():
        assert sa.expectation((w @ w) ** (power // 2), {w: sa.iid("normal")}).expand() == length.expand()
        normal = sa.expectation((w @ z) ** power, law)
        turned = length * sa.expectation((u @ z) ** power, {u: sa.sphere(), z: "constant"})
        assert sympy.simplify(normal - turned) == 0
    odd = sa.expectation(u[0], {u: sa.sphere()})
    assert odd == 0  # while the factor's first coordinate is negative always
    factor = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 2, 2)))[0]
    assert (factor[:, 0, 0] < 0).all()


def positive(a: Any) -> Any:
    return sa.exp(W @ a - (a @ a) / 2) / sympy.sqrt(n)


def waves(a: Any) -> Any:
    return sa.concat([sa.cos(W @ a), sa.sin(W @ a)], axis=-1) / sympy.sqrt(n)


def test_K05_positive_features_are_unbiased_and_exact_where_the_kernel_vanishes():
    """Why positive features and not waves: where exp(x.y) is near 0, only the variance of the former goes to 0."""
    law = {W: sa.iid("normal"), x: "constant", y: "constant"}
    from_exp = sa.moments(positive(x) @ positive(y), law)
    assert from_exp.mean == sympy.exp(inner(x, y))
    norms = sa.exp((x @ x + y @ y) / 2)
    from_waves = sa.moments(norms * (waves(x) @ waves(y)), law)
    opposite = {"x": [2, 0], "y": [-2, 0]}
    sizes = {d: 2, n: 16}
    kernel = np.exp(-4.0)
    means, variances = (
        [float(at(getattr(m, what), sizes, **opposite)) for m in (from_exp, from_waves)]
        for what in ("mean", "variance")
    )
    assert means == pytest.approx([kernel, kernel], rel=1e-12)
    # x + y = 0: every positive feature pair is exp(-|x|^2) exactly
    assert variances[0] == pytest.approx(0, abs=1e-18)
    assert variances[1] == pytest.approx(np.exp(8.0) * (1 - np.exp(-16.0)) ** 2 / 32, rel=1e-12)
    near = {"x": [1, 0], "y": [1, 0]}
    assert float(at(from_waves.variance, sizes, **near)) == 0  # and the other way about where x = y
    assert float(at(from_exp.variance, sizes, **near)) == pytest.approx((np.exp(6) - np.exp(2)) / 16, rel=1e-12)
