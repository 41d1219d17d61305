"""Moments with symbolic sizes, each against an independent way: all values of all entries at small sizes.

See ``tests/enumeration.py``; random draws prove nothing and are not taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy
import sympy.stats

import symattn as sa
from symattn.probability.laws import NAMED as NAMES

from .. import enumeration
from ..enumeration import (
    CENTRED,
    HALF,
    PAIRS,
    SIGNS,
    TAILS,
    THREE,
    Drawn,
    Finite,
    coin,
    cumulants,
    dot,
    hermite,
    joint_cumulants,
    laplace,
    laws_of,
    legendre,
    same,
    settled,
    vectors,
)

d, n, T = sa.sizes("d n T")
i, j, l, m = sympy.symbols("i j l m", integer=True, nonnegative=True)
mq, mk, rho = sympy.symbols("m_q m_k rho", real=True)
vq, vk, kappa = sympy.symbols("v_q v_k kappa", positive=True)
q, k, x, y = (sa.tensor(name, d) for name in "qkxy")
Q = sa.tensor("Q", T, d)
iid = sa.iid
WIDTHS = (1, 2, 3)


# --- the dot product ---


NAMED: dict[str, Finite] = {
    "normal": hermite(3), "rademacher": SIGNS, "uniform": legendre(3), "laplace": laplace(3), "bernoulli": coin(HALF),
}  # fmt: skip


def test_every_named_law_has_nodes():
    assert set(NAMED) == {*NAMES} - {"constant"}


@pytest.mark.parametrize("order", [3, 4, 5])
@pytest.mark.parametrize("name", [*NAMED])
def test_moments_of_a_named_law_are_sums_over_its_nodes(name, order):
    found = sa.expectation(q[0] ** order, {q: iid(name)})
    assert float(found) == pytest.approx(float(enumeration.moment(NAMED[name], order)), abs=1e-12)


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("other", ["rademacher", "bernoulli"])
def test_variance_of_a_dot_product_of_named_laws(name, other):
    found = sa.variance(q @ k, {q: iid(name), k: iid(other)})
    for width in WIDTHS[: 2 if len(NAMED[name]) > 3 else 3]:
        settled(found, enumeration.variance(dot, *vectors(width, NAMED[name], NAMED[other])), {d: width})


def test_variance_is_the_width_for_any_law_of_mean_0_and_variance_1():
    unknown = sa.variance(q @ k, {q: iid(), k: iid()})
    assert unknown == d
    assert sa.variance(q @ k / sympy.sqrt(d), {q: iid(), k: iid("laplace")}) == 1
    for width, laws in itertools.product(WIDTHS, ((SIGNS, TAILS), (TAILS, TAILS))):
        settled(unknown, enumeration.variance(dot, *vectors(width, *laws)), {d: width})


def test_means_and_variances():
    law = {q: iid(mean=mq, variance=vq), k: iid(mean=mk, variance=vk)}
    found = sa.moments(q @ k, law)
    same(found.mean, d * mq * mk)
    same(found.variance, d * (vq * vk + vq * mk**2 + vk * mq**2))
    known = cumulants(THREE, 2), cumulants(coin(Fraction(1, 3)), 2)
    values = dict(zip((mq, vq, mk, vk), (*known[0], *known[1]), strict=True))
    for width in WIDTHS:
        drawn = vectors(width, THREE, coin(Fraction(1, 3)))
        settled(found.mean, enumeration.mean(dot, *drawn), {d: width, **values})
        settled(found.variance, enumeration.variance(dot, *drawn), {d: width, **values})


def jointly_normal(correlation: float) -> Finite:
    nodes = hermite(3)
    root = np.sqrt(1 - correlation**2)
    return [((a, correlation * a + root * b), p * w) for (a, p), (b, w) in itertools.product(nodes, nodes)]


def test_correlated_queries_and_keys():
    law = {(q, k): sa.iid_pair(correlation=rho)}
    found = sa.moments(q @ k, law)
    assert found.mean == d * rho  # grows like d, so that 1/sqrt(d) does not hold it
    same(found.variance, d * (1 + rho**2))
    for width in (1, 2):
        drawn = Drawn((width,), jointly_normal(0.5), pairs=True)
        settled(found.mean, enumeration.mean(dot, drawn), {d: width, rho: 0.5})
        settled(found.variance, enumeration.variance(dot, drawn), {d: width, rho: 0.5})


def test_pairs_that_are_not_normal():
    known = joint_cumulants(PAIRS, 4)
    mean, variance = (known[1, 0], known[0, 1]), (known[2, 0], known[0, 2])
    correlation = known[1, 1] / sympy.sqrt(variance[0] * variance[1])
    pair = partial(sa.iid_pair, None, correlation=correlation, mean=mean, variance=variance)
    higher = {key: value for key, value in known.items() if sum(key) > 2}
    found = sa.moments(q @ k, {(q, k): pair(cumulants=higher)})
    cubes = sa.expectation(sa.sum(q * q * k) * sa.sum(k), {(q, k): pair(cumulants=higher)})
    for width in WIDTHS:
        drawn = Drawn((width,), PAIRS, pairs=True)
        settled(found.mean, enumeration.mean(dot, drawn), {d: width})
        settled(found.variance, enumeration.variance(dot, drawn), {d: width})
        settled(cubes, enumeration.mean(lambda a, b: np.sum(a * a * b) * np.sum(b), drawn), {d: width})
    with pytest.raises(sa.NoRuleError, match=r"joint cumulant \(2, 1\) of q and k"):
        sa.expectation(sa.sum(q * q * k), {(q, k): pair()})


def test_a_vector_with_itself():
    assert sa.expectation(q @ q, {q: iid()}) == d
    found = sa.variance(q @ q, {q: iid(kurtosis=kappa)})
    same(found, d * (kappa - 1))
    assert sa.variance(q @ q, {q: iid("normal")}) == 2 * d
    assert sa.variance(q @ q, {q: iid("rademacher")}) == 0
    for width in WIDTHS:
        settled(found, enumeration.variance(lambda a: a @ a, *vectors(width, TAILS)), {d: width, kappa: 4})
    told = laws_of(THREE)
    for width in WIDTHS:
        settled(
            sa.variance(q @ q, {q: told}), enumeration.variance(lambda a: a @ a, *vectors(width, THREE)), {d: width}
        )


POWERS = {4: 3 * d * (d + 2), 6: 15 * d * (d + 2) * (d + 4)}


@pytest.mark.parametrize("power", POWERS)
def test_even_powers_of_a_normal_dot_product(power):
    found = sa.expectation((q @ k) ** power, {q: iid("normal"), k: iid("normal")})
    same(found, POWERS[power])
    for width in (1, 2):
        drawn = vectors(width, hermite(power // 2 + 1), hermite(power // 2 + 1))
        settled(found, enumeration.mean(lambda a, b: (a @ b) ** power, *drawn), {d: width})


def test_powers_of_dot_products_of_other_laws():
    fourth = sa.expectation((q @ k) ** 4, {q: iid(skewness=0, kurtosis=kappa), k: iid(skewness=0, kurtosis=kappa)})
    same(fourth, d * kappa**2 + 3 * d * (d - 1))
    sixth = sa.expectation((q @ k) ** 6, {q: iid("rademacher"), k: laws_of(TAILS)})
    third = sa.expectation((q @ k) ** 3, {q: laws_of(CENTRED), k: laws_of(THREE)})
    for width in WIDTHS:
        signs = vectors(width, SIGNS, SIGNS)
        settled(fourth, enumeration.mean(lambda a, b: (a @ b) ** 4, *signs), {d: width, kappa: 1})
        tails = vectors(width, SIGNS, TAILS)
        settled(sixth, enumeration.mean(lambda a, b: (a @ b) ** 6, *tails), {d: width})
        skewed = vectors(width, CENTRED, THREE)
        settled(third, enumeration.mean(lambda a, b: (a @ b) ** 3, *skewed), {d: width})
    tails = vectors(2, TAILS, TAILS)
    settled(fourth, enumeration.mean(lambda a, b: (a @ b) ** 4, *tails), {d: 2, kappa: 4})


def test_skewness_and_kurtosis():
    normal = sa.moments(q @ k, {q: iid("normal"), k: iid("normal")})
    assert (normal.skewness, normal.kurtosis) == (0, 3 + 6 / d)
    law = {q: laws_of(CENTRED), k: laws_of(THREE)}
    found = sa.moments(q @ k, law)
    for width in (1, 2):
        drawn = vectors(width, CENTRED, THREE)
        centre, spread = enumeration.mean(dot, *drawn), enumeration.variance(dot, *drawn)
        third, fourth = (enumeration.mean(lambda a, b, o=o, c=centre: (a @ b - c) ** o, *drawn) for o in (3, 4))
        settled(found.kurtosis, fourth / spread**2, {d: width})
        settled(found.skewness**2, third**2 / spread**3, {d: width})


def test_against_sympy_stats():
    first, second = ([sympy.stats.Rademacher(f"{name}{t}") for t in range(2)] for name in "qk")
    total = sum(a * b for a, b in zip(first, second, strict=True))
    law = {q: iid("rademacher"), k: iid("rademacher")}
    assert sympy.stats.variance(total) == sa.variance(q @ k, law).subs(d, 2)
    assert sympy.stats.E(total**4) == sa.expectation((q @ k) ** 4, law).subs(d, 2)
    a, b = (sympy.stats.Normal(name, 0, 1) for name in "ab")
    assert sympy.stats.E((a * b) ** 4) == POWERS[4].subs(d, 1)


# --- random features ---


W = sa.tensor("W", n, d)


def inner(a: sa.Tensor, b: sa.Tensor) -> sympy.Expr:
    s = sympy.Symbol("k", integer=True, nonnegative=True)
    return sympy.Sum(a[s] * b[s], (s, 0, d - 1))


def positive(a: Any) -> Any:
    return sa.exp(W @ a - (a @ a) / 2) / sympy.sqrt(n)


def waves(a: Any) -> Any:
    return sa.concat([sa.cos(W @ a), sa.sin(W @ a)], axis=-1) / sympy.sqrt(n)


def estimate(a: np.ndarray, b: np.ndarray, kind: str) -> Callable[[np.ndarray], float]:
    def positive_features(w: np.ndarray) -> float:
        w = w.astype(float)
        return float(np.mean(np.exp(w @ (a + b) - (a @ a + b @ b) / 2)))

    return positive_features if kind == "positive" else lambda w: float(np.mean(np.cos(w.astype(float) @ (a - b))))


FEATURES = {
    "positive": (positive, lambda: sympy.exp(inner(x, y))),
    "waves": (waves, lambda: sympy.exp(inner(x, y) - inner(x, x) / 2 - inner(y, y) / 2)),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_random_features_are_unbiased_and_their_variance(kind):
    """Positive features estimate exp(x.y); cosines and sines exp(-|x - y|^2 / 2)."""
    features, kernel = FEATURES[kind]
    law = {W: iid("normal"), x: "constant", y: "constant"}
    found = sa.moments(features(x) @ features(y), law)
    assert found.mean == kernel()
    arrays = {"x": np.array([0.5, -0.25]), "y": np.array([0.25, 0.75])}
    for count, width in ((1, 1), (2, 1), (1, 2)):
        given = {name: array[:width] for name, array in arrays.items()}
        drawn = Drawn((count, width), hermite(28))
        f = estimate(given["x"], given["y"], kind)
        settled(found.mean, enumeration.mean(f, drawn), {n: count, d: width}, **given)
        settled(found.variance, enumeration.variance(f, drawn), {n: count, d: width}, **given)


def test_exponentials_of_normal_entries_with_polynomials():
    pair = {(q, k): sa.iid_pair(correlation=rho, mean=(mq, 0), variance=(2, 1))}
    found = sa.expectation(q[0] ** 2 * k[0] * sa.exp(k[0] - q[0] / 2), pair)
    nodes = hermite(30)
    states = [
        ((0.3 + np.sqrt(2) * a, 0.5 * a + np.sqrt(0.75) * b), p * w)
        for (a, p), (b, w) in itertools.product(nodes, nodes)
    ]
    wanted = sum(p * a**2 * b * np.exp(b - a / 2) for (a, b), p in states)
    settled(found, float(wanted), {mq: 0.3, rho: 0.5})
    lognormal = sa.variance(sa.sum(sa.exp(q)), {q: iid("normal", mean=mq, variance=vq)})
    drawn = vectors(2, hermite(40, 0.1, 0.5))
    settled(
        lognormal,
        float(enumeration.variance(lambda a: np.sum(np.exp(a.astype(float))), *drawn)),
        {d: 2, mq: 0.1, vq: 0.5},
    )


def test_normal_rows():
    mu, Sigma, A = sa.tensor("mu", d), sa.tensor("Sigma", d, d, symmetric=True), sa.tensor("A", d, d)
    law = {q: sa.normal(mean=mu, covariance=Sigma), A: "constant"}
    mean, variance = sa.expectation(q @ A @ q, law), sa.variance(q @ A @ q, law)
    root = np.array([[1.0, 0.0], [0.5, 0.25]])  # Sigma = root root^T
    centre, form = np.array([0.5, -1.0]), np.array([[1.0, 2.0], [-0.5, 3.0]])
    arrays = {"mu": centre, "Sigma": root @ root.T, "A": form}
    drawn = Drawn((2,), hermite(3))

    def quadratic(z: np.ndarray) -> float:
        row = centre + root @ z.astype(float)
        return float(row @ form @ row)

    settled(mean, enumeration.mean(quadratic, drawn), {d: 2}, **arrays)
    settled(variance, enumeration.variance(quadratic, drawn), {d: 2}, **arrays)
    X_rows = sa.tensor("X", T, d)
    between = sa.covariance(X_rows[i, l], X_rows[j, m], {X_rows: sa.normal(mean=mu, covariance=Sigma)})
    assert between.subs({i: 0, j: 1}) == 0
    scaled = sa.covariance(X_rows[i, l], X_rows[j, m], {X_rows: sa.normal(covariance=3)})
    assert scaled == 3 * sympy.KroneckerDelta(i, j) * sympy.KroneckerDelta(l, m)


def test_masked_scores_and_slices():
    """Sums over a part of the places, in closed form."""
    square = sa.tensor("K", T, d)
    law = {Q: iid(), square: iid()}
    found = sa.variance(sa.sum(sa.tril(Q @ square.T)), law)
    same(found, d * T * (T + 1) / 2)
    general = sa.expectation(sa.sum(sa.tril(Q @ square.T)), {Q: iid(mean=mq), square: iid(mean=mk)})
    same(general, mq * mk * d * T * (T + 1) / 2)
    neighbours = sa.variance(q[1:] @ q[:-1], {q: iid(mean=mq, variance=vq)})
    for rows in (1, 2):
        drawn = [Drawn((rows, 1), THREE), Drawn((rows, 1), CENTRED)]
        wanted = enumeration.variance(lambda a, b: np.sum(np.tril(a @ b.T)), *[Drawn((rows, 1), SIGNS)] * 2)
        settled(found, wanted, {T: rows, d: 1})
        told = dict(zip((mq, mk), (cumulants(law_, 1)[0] for law_ in (THREE, CENTRED)), strict=True))
        settled(general, enumeration.mean(lambda a, b: np.sum(np.tril(a @ b.T)), *drawn), {T: rows, d: 1, **told})
    for width in (1, 2, 3, 4):
        first, second = cumulants(THREE, 2)
        wanted = enumeration.variance(lambda a: a[1:] @ a[:-1], *vectors(width, THREE))
        settled(neighbours, Fraction(wanted), {d: width, mq: first, vq: second})
