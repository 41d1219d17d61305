"""Disputes from public threads about positions: rotary layouts and signs, slopes and sinusoids, settled by proof.

Rotations are proved for any frequencies and any real positions; the numbers that were verified once are for four
features with the frequencies 1 and 1/100.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention

from .test_gradient_cases import compute, digits, first_difference
from .test_permutation_cases import proved, refuted

n, m, r, u, T, h = sa.sizes("n m r u T h")
i, j, s = sympy.symbols("i j s", real=True)
OMEGA = sa.tensor("omega", r)
q, k = sa.tensor("q", 2 * r), sa.tensor("k", 2 * r)
FOUR = {"q": [1, 2, 3, 4], "k": [0.5, -1, 2, 1], "omega": [1, 0.01]}


def turned(first: Any, second: Any, t: Any) -> tuple[Any, Any]:
    """A pair of features at position t, turned by its frequency."""
    cos, sin = sa.cos(t * OMEGA), sa.sin(t * OMEGA)
    return first * cos - second * sin, first * sin + second * cos


def halves(x: Any, t: Any) -> Any:
    """Feature a makes a pair with feature r + a."""
    return sa.concat([*turned(x[:r], x[r : 2 * r], t)])


def neighbours(x: Any, t: Any) -> Any:
    """Feature 2a makes a pair with feature 2a + 1."""
    return interleaved(*turned(x[0::2], x[1::2], t))


def interleaved(first: Any, second: Any) -> Any:
    return sa.merge_axes(sa.concat([first[:, None], second[:, None]], axis=1), (0, 1))


def mixed(x: Any, t: Any) -> Any:
    """The angles of neighbours with the pairs of halves."""
    angle = sa.repeat(t * OMEGA, 2, axis=0)
    return x * sa.cos(angle) + sa.concat([-x[r:], x[:r]]) * sa.sin(angle)


def rotation(t: Any) -> Any:
    """The matrix of ``halves``."""
    cos, sin = sa.diag(sa.cos(t * OMEGA)), sa.diag(sa.sin(t * OMEGA))
    return sa.concat([sa.concat([cos, -sin], axis=1), sa.concat([sin, cos], axis=1)])


def score(x: sa.Tensor, **places: float) -> float:
    return float(compute(x.subs({i: places["at"], j: places["to"]}), FOUR))


def rotary(x: sa.Tensor, t: Any, **conventions: Any) -> sa.Tensor:
    """Four features at position t, as the library rotates them."""
    return attention.rotary(x.subs({r: 2})[None], offset=t, **conventions)[0]


def rotary_product(s: float, t: float) -> sa.Tensor:
    """``R(s).T @ R(t)`` for four features: the rotated unit vectors are the columns of R."""
    left, right = (attention.rotary(sa.eye(4), positions=sa.from_index((4,), lambda _, at=at: at)) for at in (s, t))
    return left @ right.T


def test_R01_angles_and_pairs_belong_to_one_layout():
    """raiyanyahya/how-to-train-your-gpt#6: angles expanded for neighbours, features rotated by halves."""
    for layout in (halves, neighbours):
        proved(layout(q, i) @ layout(k, j), q @ layout(k, j - i))
        proved(sa.sum(layout(q, i) ** 2), sa.sum(q**2))
    scores = mixed(q, i) @ mixed(k, j)
    found = refuted(scores, mixed(q, i + s) @ mixed(k, j + s))
    assert found.sizes[r] == 2  # four features: with two there is one frequency
    refuted(sa.sum(mixed(q, i) ** 2), sa.sum(q**2))

    assert [score(scores, at=3, to=1), score(scores, at=7, to=5)] == digits([15.602184, 6.849442])
    right = neighbours(q, i) @ neighbours(k, j)
    library = rotary(q, i, layout="interleaved") @ rotary(k, j, layout="interleaved")
    for x in (right, library):
        assert [score(x, at=3, to=1), score(x, at=7, to=5)] == digits([8.703632, 8.703632])
    cos, sin = (sa.diag(f(sa.repeat(i * OMEGA, 2, axis=0))) for f in (sa.cos, sa.sin))
    quarter = sa.concat([sa.concat([0 * sa.eye(r), -sa.eye(r)], axis=1), sa.concat([sa.eye(r), 0 * sa.eye(r)], axis=1)])
    matrix = cos + sin @ quarter
    refuted(matrix @ matrix.T, sa.eye(2 * r))
    apart = first_difference(sa.eye(4), (matrix @ matrix.T).subs({i: 3, r: 2}), FOUR)
    assert apart.largest == digits(0.170752)


@pytest.mark.slow
def test_R03_rotating_both_by_the_transpose_keeps_the_relative_property():
    """karpathy/nanochat#489: a transposed rotation is to be corrected; it is right, up to one sign in each pair."""
    proved(rotation(-i).T @ rotation(-j), rotation(i - j))

    def flipped(x):
        return sa.concat([x[:r], -x[r:]])

    proved(flipped(halves(flipped(q), s)), halves(q, -s))
    proved(halves(q, -i) @ halves(k, -j), halves(flipped(q), i) @ halves(flipped(k), j))
    textbook = rotation(i).T @ rotation(j)
    proved(textbook, rotation(j - i))
    refuted(rotation(-i).T @ rotation(-j), textbook)  # so trained weights cannot be kept
    places = {i: 3, j: 7}
    apart = first_difference(textbook.subs(places), (rotation(-i).T @ rotation(-j)).subs(places), FOUR)
    assert apart.largest == digits(1.513605)

    apart = first_difference(rotary_product(3, 7), rotary_product(-3, -7), FOUR)
    assert apart.largest == digits(1.513605)


def test_R05_rotating_halves_is_the_formula_for_features_in_another_order():
    """rasbt/LLMs-from-scratch#838: the block matrix of a paper, for four channels, against c1 c2 c1 c2."""

    def by_halves(x):
        return sa.concat([x[0::2], x[1::2]])

    proved(halves(by_halves(q), s), by_halves(neighbours(q, s)))
    proved(neighbours(interleaved(q[:r], q[r:]), s), interleaved(*turned(q[:r], q[r:], s)))
    refuted(halves(q, s), neighbours(q, s))
    cosines, sines = sa.cos(s * OMEGA)[None], sa.sin(s * OMEGA)[None]
    for layout, rotated in (("half", halves), ("interleaved", neighbours)):
        proved(attention.rotate(q[None], cosines, sines, layout=layout)[0], rotated(q, s))

    a, b, c, d, t1, t2 = sympy.symbols("a b c d t1 t2")
    values = dict(zip([*q.as_explicit({r: 2}), *OMEGA.as_explicit({r: 2})], (a, b, c, d, t1, t2), strict=True))
    rows = [entry.subs(values) for entry in halves(q, sympy.Integer(1)).as_explicit({r: 2})]
    cos, sin = sympy.cos, sympy.sin
    wanted = [
        a * cos(t1) - c * sin(t1),
        b * cos(t2) - d * sin(t2),
        c * cos(t1) + a * sin(t1),
        d * cos(t2) + b * sin(t2),
    ]
    assert rows == wanted


def test_R07_two_inverse_rotations_are_relative_and_one_is_not():
    """ngxson/llama.cpp#59: an operator always runs with its inverse flag, so that the sine changes sign."""
    right = neighbours(q, i) @ neighbours(k, j)
    both, one = neighbours(q, -i) @ neighbours(k, -j), neighbours(q, i) @ neighbours(k, -j)
    proved(both, q @ neighbours(k, i - j))
    refuted(both, right)
    proved(one, q @ neighbours(k, -i - j))  # by the sum of the positions
    refuted(one, neighbours(q, i + s) @ neighbours(k, -j - s))
    assert score(right, at=3, to=7) == digits(9.658808)
    assert score(both, at=3, to=7) == score(both, at=10, to=14) == digits(12.286125)
    assert abs(score(one, at=3, to=7) - score(one, at=10, to=14)) == digits(2.097769)

    def library(a, b):
        return score(rotary(q, a * i, layout="interleaved") @ rotary(k, b * j, layout="interleaved"), at=3, to=7)

    assert [library(1, 1), library(-1, -1)] == digits([9.658808, 12.286125])


def test_R09_positions_are_renumbered_on_both_sides_or_not_at_all():
    """rajveer43/VeloxQuant-MLX#389: after eviction new queries are counted from the keys that are left."""
    evicted = sympy.Symbol("e", real=True)
    seen = rotation(i).T @ rotation(j)
    proved(rotation(i - evicted).T @ rotation(j - evicted), seen)
    proved(rotation(i - evicted).T @ rotation(j), rotation(j - i + evicted))
    refuted(rotation(i - evicted).T @ rotation(j), seen)
    places = {i: 12, j: 2, evicted: 5}
    apart = first_difference(seen.subs(places), (rotation(i - evicted).T @ rotation(j)).subs(places), FOUR)
    assert apart.largest == digits(1.122734)
    assert first_difference(rotary_product(12, 2), rotary_product(7, 2), FOUR).largest == digits(1.122734)


def test_R11_floor_division_takes_the_whole_quotient():
    """zju3dv/LoFTR#41: -log(10000) / d // 2 for -log(10000) / (d // 2), in the frequencies of an encoding."""
    pairs = sa.from_index((r,), lambda a: sympy.exp(-a * sympy.log(10000) / r))  # d = 2 r
    proved(pairs, sa.from_index((r,), lambda a: sympy.Integer(10000) ** (-a / r)))
    floored = sa.from_index((r,), lambda a: sympy.exp(a * sympy.floor(-sympy.log(10000) / (2 * r) / 2)))
    assert refuted(floored, pairs).index != (0,)
    found = [compute(x.subs({r: 128}), {})[:3] for x in (floored, pairs)]
    assert [np.log(x[1]) for x in found] == digits([-1, -0.071956])
    assert [x[2] for x in found] == pytest.approx([0.1353, 0.866], rel=0, abs=6e-5)
    encoding = compute(attention.sinusoidal(2, 256)[1], {})
    assert np.arctan2(encoding[4], encoding[5]) == pytest.approx(0.866, rel=0, abs=6e-5)


def test_R13_features_may_stay_unrotated():
    """lucidrains/RETRO-pytorch#12: only a part of each head is rotated; it is asked whether that is correct."""
    query, key = sa.tensor("q", 2 * r + u), sa.tensor("k", 2 * r + u)

    def partly(x, t):
        return sa.concat([halves(x, t), x[2 * r :]])

    scores = partly(query, i) @ partly(key, j)
    proved(scores, query @ partly(key, j - i))
    proved(scores, halves(query, i) @ halves(key, j) + query[2 * r :] @ key[2 * r :])

    def matrix(t):
        beside = sa.zeros(2 * r, u)
        return sa.concat([sa.concat([rotation(t), beside], axis=1), sa.concat([beside.T, sa.eye(u)], axis=1)])

    proved(matrix(i).T @ matrix(j), matrix(j - i))

    X, Y = sa.tensor("X", n, 2 * r + u), sa.tensor("Y", m, 2 * r + u)

    def rotated(x, t):
        return attention.rotary(x, width=2 * r, offset=t)

    proved(rotated(X, s) @ rotated(Y, s).T, rotated(X, 0) @ rotated(Y, 0).T)


def test_R15_a_constant_in_the_bias_of_a_row_cancels():
    """vllm-project/vllm#945: a slope times j - length or j - length + 1; the code is right, logsumexp moves."""
    Z, slope, c = sa.tensor("Z", n, m), sa.tensor("slope"), sa.tensor("c", n, 1)

    def biased(start):
        return Z + slope * (sa.from_index((m,), lambda j: j) - start)

    proved(sa.softmax(biased(c)), sa.softmax(biased(c - 1)))
    proved(sa.softmax(biased(c)), sa.softmax(biased(0)))
    difference = sa.logsumexp(biased(c - 1)) - sa.logsumexp(biased(c))
    proved(difference, slope * sa.ones(n))
    scores = [Z + attention.alibi(n, m, slopes=slope, offset=o) for o in (1, 0)]
    proved(sa.softmax(scores[0]), sa.softmax(scores[1]))
    proved(sa.logsumexp(scores[1]) - sa.logsumexp(scores[0]), slope * sa.ones(n))
    refuted(sa.softmax(biased(sa.tensor("c", m))), sa.softmax(biased(0)))  # a constant of each column does not
    assert compute(difference, {"Z": [[0.5, 2, -1, 0.3, 0.1]], "slope": 0.25, "c": [[5]]}) == digits([0.25])


def test_R17_the_slopes_of_heads_start_at_exponent_one():
    """paiml/aprender#2143: head 0 gets the slope 1."""
    right, reported = (sa.from_index((h,), lambda a, first=first: 2 ** (-8 * (a + first) / h)) for first in (1, 0))
    proved(reported, 2 ** (8 / h) * right)
    assert refuted(reported, right).left == 1
    assert compute(right.subs({h: 8}), {}).tolist() == [2.0**-a for a in range(1, 9)]
    proved(attention.alibi_slopes(h, rule="geometric"), right)
    assert compute(attention.alibi_slopes(8), {}).tolist() == [2.0**-a for a in range(1, 9)]
    assert compute(reported.subs({h: 8}), {}).tolist() == [2.0**-a for a in range(8)]


def test_R19_sine_and_cosine_of_a_pair_share_their_frequency():
    """datawhalechina/happy-llm#23: a worked example of sinusoids is said to contradict the formula, and does not."""

    def table(f):
        return sa.from_index((T, r), lambda p, a: f(p * sympy.Integer(10000) ** (-2 * a / (2 * r))))

    def entry(p, c):
        angle = p * sympy.Integer(10000) ** (-2 * sympy.floor(c / 2) / (2 * r))
        return sympy.Piecewise((sympy.sin(angle), sympy.Eq(sympy.Mod(c, 2), 0)), (sympy.cos(angle), True))

    pairs = sa.concat([table(sympy.sin)[..., None], table(sympy.cos)[..., None]], axis=-1)
    encoding = sa.merge_axes(pairs, (1, 2))
    proved(encoding, sa.from_index((T, 2 * r), entry))
    proved(encoding, attention.sinusoidal(T, 2 * r))
    example = encoding[1].subs({T: 2, r: 2})
    for x in (example, attention.sinusoidal(2, 4)[1]):
        assert compute(x, {}) == digits([0.841471, 0.540302, 0.01, 0.99995])
    assert list(example.as_explicit()) == [
        sympy.sin(1),
        sympy.cos(1),
        sympy.sin(sympy.Rational(1, 100)),
        sympy.cos(sympy.Rational(1, 100)),
    ]
