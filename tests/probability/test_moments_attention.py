"""Moments of scores and outputs of attention with symbolic sizes, against all values of all entries at small sizes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .. import enumeration
from ..enumeration import CENTRED, HALF, SIGNS, TAILS, THREE, Drawn, cumulants, dot, laws_of, same, settled, vectors

d, r, T, S, D, e = sa.sizes("d r T S D e")
i, j, l, m = sympy.symbols("i j l m", integer=True, nonnegative=True)
mq, mk = sympy.symbols("m_q m_k", real=True)
vq, vk = sympy.symbols("v_q v_k", positive=True)
q, k, c = (sa.tensor(name, d) for name in "qkc")
Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
iid = sa.iid
WIDTHS = (1, 2, 3)


# --- scores of projected inputs ---


X, W_q, W_k = sa.tensor("X", T, D), sa.tensor("W_q", D, d), sa.tensor("W_k", D, d)
SCORES = (X @ W_q) @ (X @ W_k).T


def score(a: np.ndarray, b: np.ndarray, w: np.ndarray, row: int, column: int) -> Any:
    return (a @ b)[row] @ (a @ w)[column]


def test_scores_of_fixed_inputs_with_random_weights():
    found = sa.variance(SCORES[i, j], {X: "constant", W_q: iid(variance=1 / D), W_k: iid(variance=1 / D)})
    inner = sympy.Symbol("k", integer=True, nonnegative=True)
    norms = [sympy.Sum(X[row, inner] ** 2, (inner, 0, D - 1)) for row in (i, j)]
    same(found, d * norms[0] * norms[1] / D**2)  # x_i . x_i and x_j . x_j, and nothing of x_i . x_j
    raw = sa.variance(SCORES[i, j], {X: "constant", W_q: iid(), W_k: iid()})
    array = np.array([[1, -2], [3, 1]], dtype=object)
    for width, (row, column) in itertools.product((1, 2), ((0, 0), (0, 1))):
        weights = [Drawn((2, width), SIGNS)] * 2
        wanted = enumeration.variance(lambda w, u, at=(row, column): score(array, w, u, *at), *weights)
        settled(raw, wanted, {d: width, D: 2, i: row, j: column}, X=array)
    keys = sa.covariance(SCORES[i, j], SCORES[i, l], {X: "constant", W_q: iid(), W_k: iid()})
    weights = [Drawn((2, 1), TAILS)] * 2
    wanted = enumeration.covariance(
        lambda w, u: score(array, w, u, 0, 0), lambda w, u: score(array, w, u, 0, 1), *weights
    )
    settled(keys, wanted, {d: 1, D: 2, i: 0, j: 0, l: 1}, X=array)


def test_scores_of_random_inputs_with_random_weights():
    law = {W_q: iid(variance=vq), W_k: iid(variance=vk)}
    normal = sa.variance(SCORES[i, j], {X: iid("normal"), **law})
    same(normal, vq * vk * d * D * (D + 2 * sympy.KroneckerDelta(i, j)))
    with pytest.raises(sa.NoRuleError, match="fourth cumulant of X"):
        sa.variance(SCORES[i, j], {X: iid(), **law})
    apart = sa.variance(SCORES[0, 1], {X: iid(), **law})  # entries of two rows: nothing more is needed
    same(apart, vq * vk * d * D**2)
    given = sa.variance(SCORES[i, j], {X: laws_of(TAILS), W_q: laws_of(SIGNS), W_k: laws_of(SIGNS)})
    for inner, width, (row, column) in itertools.product((1, 2), (1, 2), ((0, 0), (0, 1))):
        if inner * width > 2:
            continue
        drawn = [Drawn((2, inner), TAILS), *[Drawn((inner, width), SIGNS)] * 2]
        wanted = enumeration.variance(lambda a, w, u, at=(row, column): score(a, w, u, *at), *drawn)
        settled(given, wanted, {D: inner, d: width, i: row, j: column})


def test_initial_scales_by_fan_in_and_fan_out():
    """Scaled scores of two tokens, 512 features to a head of 64: Xavier for the head alone, and fused for q, k, v."""

    def scaled(variance: sympy.Expr) -> sympy.Expr:
        law = {X: iid("normal"), W_q: iid(variance=variance), W_k: iid(variance=variance)}
        return sa.variance(SCORES[0, 1] / sympy.sqrt(d), law)

    assert scaled(1 / D) == 1
    assert scaled(2 / D) == 4  # He
    same(scaled(2 / (D + d)), 4 * D**2 / (D + d) ** 2)
    head = scaled(2 / (D + d)).subs({D: 512, d: 64})
    assert (head, round(float(head), 2)) == (sympy.Rational(256, 81), 3.16)
    assert scaled(2 / (D + 3 * D)).subs({D: 512, d: 64}) == sympy.Rational(1, 4)
    limit = 1 / sympy.sqrt(D)  # the uniform law of torch.nn.Linear, on [-1/sqrt(D), 1/sqrt(D)], has a third of 1/D
    assert scaled(limit**2 / 3) == sympy.Rational(1, 9)
    array = [Drawn((2, 2), SIGNS), *[Drawn((2, 2), SIGNS)] * 2]
    exact = sa.variance(SCORES[0, 1], {X: iid("rademacher"), W_q: iid("rademacher"), W_k: iid("rademacher")})
    settled(exact, enumeration.variance(lambda a, w, u: score(a, w, u, 0, 1), *array), {D: 2, d: 2})


def test_squared_norm_of_all_scores():
    found = sa.expectation(sa.sum((Q @ K.T) ** 2), {Q: iid(), K: iid()})
    same(found, S * T * d)
    law = {Q: laws_of(THREE), K: laws_of(CENTRED)}
    general = sa.expectation(sa.sum((Q @ K.T) ** 2), law)
    for rows, columns, width in ((1, 1, 2), (2, 1, 1), (2, 1, 2), (1, 2, 2)):
        for answer, laws in ((found, (SIGNS, TAILS)), (general, (THREE, CENTRED))):
            drawn = [Drawn((rows, width), laws[0]), Drawn((columns, width), laws[1])]
            wanted = enumeration.mean(lambda a, b: np.sum((a @ b.T) ** 2), *drawn)
            settled(answer, wanted, {T: rows, S: columns, d: width})


# --- two scores, and coincidences ---


def test_covariance_of_two_scores_that_share_a_query():
    other = sa.tensor("k_2", d)
    found = sa.covariance(q @ k, q @ other, {q: iid(variance=vq), k: iid(mean=mk), other: iid(mean=mq)})
    assert found == d * mk * mq * vq
    assert sa.covariance(q @ k, q @ other, {q: iid(), k: iid(), other: iid()}) == 0
    known = cumulants(THREE, 1)[0]
    for width in WIDTHS[:2]:
        drawn = vectors(width, TAILS, THREE, THREE)
        wanted = enumeration.covariance(lambda a, b, _: a @ b, lambda a, _, b: a @ b, *drawn)
        settled(found, wanted, {d: width, vq: 1, mk: known, mq: known})


def test_all_coincidences_of_four_indices():
    Z = Q @ K.T
    centred = sa.expectation(Z[i, j] * Z[l, m], {Q: iid(), K: iid()})
    assert centred == d * sympy.KroneckerDelta(i, l) * sympy.KroneckerDelta(j, m)
    general = sa.expectation(Z[i, j] * Z[l, m], {Q: laws_of(THREE), K: laws_of(CENTRED)})
    for places in itertools.product(range(2), repeat=4):
        a, b, u, v = places
        for answer, laws, width in ((centred, (SIGNS, SIGNS), 2), (general, (THREE, CENTRED), 1)):
            drawn = [Drawn((2, width), laws[0]), Drawn((2, width), laws[1])]
            wanted = enumeration.mean(lambda s, t, p=places: (s[p[0]] @ t[p[1]]) * (s[p[2]] @ t[p[3]]), *drawn)
            settled(answer, wanted, {d: width, **dict(zip((i, j, l, m), (a, b, u, v), strict=True))})


def test_coincidences_of_scores_of_a_sequence_with_itself():
    """Queries are the keys here, so that i = j counts too; with fixed places a delta has a value."""
    law = {Q: laws_of(THREE)}
    Z = Q @ Q.T
    found = sa.expectation(Z[i, j] * Z[l, m], law)
    for places in itertools.product(range(2), repeat=4):
        wanted = enumeration.mean(lambda s, p=places: (s[p[0]] @ s[p[1]]) * (s[p[2]] @ s[p[3]]), Drawn((2, 2), THREE))
        settled(found, wanted, {d: 2, **dict(zip((i, j, l, m), places, strict=True))})
    assert sa.expectation(Z[0, 1], {Q: iid()}) == 0
    assert sa.expectation(Z[1, 1], {Q: iid()}) == d
    assert sa.covariance(Z[0, 1], Z[0, j], {Q: iid("normal")}) == d * sympy.KroneckerDelta(1, j)
    assert sa.covariance(q[i], q[i + 1], {q: iid()}) == 0
    assert sa.covariance(q[-1], q[i], {q: iid()}) == sympy.KroneckerDelta(i, d - 1)


# --- what attention does to variances ---


def rope(a: Any, layout: str, width: Any = r, rows: Any = T) -> Any:
    def table(f: Any) -> Any:
        return sa.from_index((rows, width), lambda s, t: f(s * 10000 ** (-t / width)))

    split = {"halves": lambda: (a[:, :width], a[:, width:]), "neighbours": lambda: (a[:, 0::2], a[:, 1::2])}
    first, second = split[layout]()
    turned = (
        first * table(sympy.cos) - second * table(sympy.sin),
        first * table(sympy.sin) + second * table(sympy.cos),
    )
    if layout == "halves":
        return sa.concat(list(turned), axis=-1)
    return sa.merge_axes(sa.concat([part[:, :, None] for part in turned], axis=2), (1, 2))


@pytest.mark.parametrize("layout", ["halves", "neighbours"])
def test_rotary_positions_leave_the_variance_of_scores(layout):
    queries, keys = sa.tensor("Q", T, 2 * r), sa.tensor("K", T, 2 * r)
    Z = rope(queries, layout) @ rope(keys, layout).T
    found = sa.variance(Z[i, j], {queries: iid(), keys: iid("rademacher")})
    same(found, 2 * r)

    def turned(a: np.ndarray, place: int) -> np.ndarray:
        half = len(a) // 2
        places = (slice(half), slice(half, None)) if layout == "halves" else (slice(0, None, 2), slice(1, None, 2))
        angle = place * 10000.0 ** (-np.arange(half) / half)
        out, (first, second) = np.empty(len(a)), places
        out[first] = a[first] * np.cos(angle) - a[second] * np.sin(angle)
        out[second] = a[first] * np.sin(angle) + a[second] * np.cos(angle)
        return out

    for half, (a, b) in itertools.product((1, 2), ((0, 0), (2, 1), (0, 3))):
        drawn = vectors(2 * half, SIGNS, SIGNS)
        wanted = enumeration.variance(lambda s, t, p=(a, b): turned(s, p[0]) @ turned(t, p[1]), *drawn)
        settled(found, float(wanted), {r: half, i: a, j: b})


def test_unit_norms():
    law = {q: sa.sphere(), k: sa.sphere()}
    found, fourth = sa.variance(q @ k, law), sa.expectation((q @ k) ** 4, law)
    assert found == 1 / d
    same(fourth, 3 / (d * (d + 2)))
    weighted = sa.variance(sa.sum(c * q * q), {q: sa.sphere(), c: "constant"})
    assert sa.expectation(q @ q, {q: sa.sphere()}) == 1
    assert sa.variance(q @ q, {q: sa.sphere()}) == 0
    for width in WIDTHS:
        rows = [Drawn((width,), enumeration.sphere(width), rows=True) for _ in range(2)]
        settled(found, float(enumeration.variance(dot, *rows)), {d: width})
        settled(fourth, float(enumeration.mean(lambda a, b: (a @ b) ** 4, *rows)), {d: width})
        fixed = np.array([2, -1, 3][:width], dtype=object)
        wanted = enumeration.variance(lambda a, w=fixed: np.sum(w * a * a), rows[0])
        settled(weighted, float(wanted), {d: width}, c=fixed)
    unit = [sa.eq(q @ q, 1), sa.eq(k @ k, 1)]  # the range: 1 - q.k and 1 + q.k are half of squared norms
    assert sa.prove(2 * (1 - q @ k), (q - k) @ (q - k), given=unit)
    assert sa.prove(2 * (1 + q @ k), (q + k) @ (q + k), given=unit)
    assert sa.prove(sa.le(0, (q - k) @ (q - k)))


def test_rows_on_the_sphere_are_independent():
    U = sa.tensor("U", T, d)
    gram = U @ U.T
    found = sa.expectation(gram[i, j] * gram[l, m], {U: sa.sphere()})
    for places in itertools.product(range(2), repeat=4):
        wanted = enumeration.mean(
            lambda s, p=places: (s[p[0]] @ s[p[1]]) * (s[p[2]] @ s[p[3]]),
            Drawn((2, 2), enumeration.sphere(2), rows=True),
        )
        settled(found, float(wanted), {d: 2, **dict(zip((i, j, l, m), places, strict=True))})


def test_scales_that_are_wrong():
    law = {q: iid(), k: iid()}
    z = q @ k
    root = sympy.sqrt(d)
    assert [sa.variance(w, law) for w in (z / root, z / root / root, z / d, z * root, z / (1 / root))] == [
        1, 1 / d, 1 / d, d**2, d**2,
    ]  # fmt: skip
    features = Q.T @ sa.tensor("K", T, d)  # contracted along the sequence
    assert sa.variance(features[i, j], {Q: iid(), sa.tensor("K", T, d): iid()}) == T
    wrong_width = sa.variance((Q @ K.T / sympy.sqrt(S))[i, j], {Q: iid(), K: iid()})
    assert wrong_width == d / S
    wanted = enumeration.variance(lambda a, b: (a.T @ b)[0, 1], *[Drawn((3, 2), SIGNS)] * 2)
    assert wanted == 3


def test_the_output_of_attention():
    p, V = sa.tensor("p", S), sa.tensor("V", S, e)
    out = p @ V
    found = sa.variance(out[j], {p: "constant", V: iid(variance=vk)})
    uniform = sa.variance((sa.softmax(sa.zeros(T, S)) @ V)[i, j], {V: iid(variance=vk)})
    assert uniform == vk / S
    assert sa.variance(sa.softmax(sa.zeros(S)) @ sa.tensor("v", S), {sa.tensor("v", S): iid("rademacher")}) == 1 / S
    assert sa.variance((sa.eye(S)[0] @ V)[j], {V: iid(variance=vk)}) == vk  # all weight on one value
    for weights in ([1, 0, 0], [Fraction(1, 3)] * 3, [HALF, Fraction(1, 4), Fraction(1, 4)]):
        array = np.array(weights, dtype=object)
        wanted = enumeration.variance(lambda v, w=array: w @ v, *vectors(3, TAILS))
        settled(found, wanted, {S: 3, vk: 1}, p=array)
        assert wanted == sum(w * w for w in weights)
