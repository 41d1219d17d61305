"""Disputes from public threads about the scale and the variance of scores, each settled by exact moments.

For each: what holds for all sizes, what was claimed or run instead, and the numbers that were verified once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from ..enumeration import SIGNS, Drawn, settled, variance
from .test_gradient_cases import STANDARD, compute, digits, first_difference
from .test_permutation_cases import proved, refuted

T, S, d, D, C, e, n = sa.sizes("T S d D C e n")
i, j = sympy.symbols("i j", integer=True, nonnegative=True)
q, k = sa.tensor("q", d), sa.tensor("k", d)
Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
UNIT = {q: sa.iid(mean=0, variance=1), k: sa.iid(mean=0, variance=1)}
SCORES = {Q: sa.iid(), K: sa.iid()}


def test_V01_the_variance_is_over_draws_and_not_over_the_entries_of_one_product():
    """ai.stackexchange.com 39617: the entries of one 2 x 2 product spread by 1.6, and d is doubted."""
    assert sa.variance(q @ k, UNIT) == d
    Z = Q @ K.T
    spread = sa.mean(Z**2) - sa.mean(Z) ** 2  # what numpy.var computes
    expected = sa.expectation(spread, SCORES)
    assert sympy.simplify(expected - d * (1 - 1 / (T * S))) == 0
    two = {T: 2, S: 2, d: 2}
    assert expected.subs(two) == sympy.Rational(3, 2)
    unbiased = sa.expectation(spread * T * S / (T * S - 1), SCORES)
    assert sympy.simplify(unbiased - d) == 0
    law = {Q: sa.iid("rademacher"), K: sa.iid("rademacher")}
    assert sa.variance(spread, law).subs(two) > 1  # so that 1.6 is no surprise


def test_V03_means_do_not_drop_out():
    """chengzhilin.notion.site: the formula for products is quoted with means, and used without."""
    mq, mk = sympy.symbols("m_q m_k", real=True)
    vq, vk = sympy.symbols("v_q v_k", positive=True)
    law = {q: sa.iid(mean=mq, variance=vq), k: sa.iid(mean=mk, variance=vk)}
    found = sa.moments(q @ k, law)
    assert sympy.expand(found.variance - d * (vq * vk + vq * mk**2 + vk * mq**2)) == 0
    assert found.mean == d * mq * mk
    values = {d: 3, mq: sympy.Rational(1, 2), mk: -1, vq: 1, vk: 4}
    assert (found.variance.subs(values), found.mean.subs(values)) == (18, sympy.Rational(-3, 2))
    assert (d * vq * vk).subs(values) == 12
    scaled = sa.moments(q @ k / sympy.sqrt(d), law)
    assert sympy.simplify(scaled.mean - sympy.sqrt(d) * mq * mk) == 0  # grows still
    assert d not in scaled.variance.free_symbols
    proved(sa.softmax(K @ q + sa.tensor("c")), sa.softmax(K @ q))  # one shift of all keys is harmless
    refuted(sa.softmax(K @ q + sa.tensor("c", S)), sa.softmax(K @ q))


def test_V05_the_scale_comes_from_the_contracted_width():
    """Graylab/DL4Proteins-notebooks#12: scores of heads of width 16 are scaled by the embedding width 64."""
    wrong, right = (sa.variance(q @ k / sympy.sqrt(size), UNIT) for size in (C, d))
    assert (wrong, right) == (d / C, 1)
    assert sympy.sqrt(wrong.subs({d: 16, C: 64})) == sympy.Rational(1, 2)
    drawn = [Drawn((2,), SIGNS), Drawn((2,), SIGNS)]
    settled(wrong, variance(lambda a, b: a @ b, *drawn) / 8, {d: 2, C: 8})


def test_V07_the_variance_knows_nothing_of_the_numbers_of_tokens_or_the_value_width():
    """phlippe/uvadlc_notebooks#72: a reader takes the scale for that of another dimension, and withdraws."""
    found = sa.variance((Q @ K.T)[i, j], SCORES)
    assert found == d
    assert found.free_symbols == {d}
    V = sa.tensor("V", S, e)
    out = sa.variance(((Q @ K.T) @ V)[i, j], {**SCORES, V: sa.iid()})  # without softmax, to see where e goes: nowhere
    assert out.free_symbols == {S, d}


def test_V09_scores_of_channels_are_scaled_by_the_number_of_tokens():
    """microsoft/mup#18: which dimension scales Q^T K."""
    keys = sa.tensor("K", T, d)
    law = {Q: sa.iid(), keys: sa.iid("uniform")}
    assert sa.variance((Q.T @ keys)[i, j], law) == T
    assert sa.variance((Q.T @ keys / sympy.sqrt(T))[i, j], law) == 1
    assert sa.variance((Q.T @ keys / sympy.sqrt(d))[i, j], law) == T / d
    found = variance(lambda a, b: (a.T @ b)[0, 1], Drawn((3, 2), SIGNS), Drawn((3, 2), SIGNS))
    assert found == 3


def test_V11_two_scales_that_cancel():
    """NVIDIA/Megatron-LM#317: what looks like a second scale is removed from the fused softmax."""
    layer = sympy.Symbol("l", positive=True)
    Z = Q @ K.T
    wanted, halfway = sa.softmax(Z / sympy.sqrt(d)), Z / (layer * sympy.sqrt(d))
    proved(sa.softmax(layer * halfway), wanted)
    refuted(sa.softmax(halfway), wanted)
    assert sa.variance((layer * halfway)[i, j], SCORES) == 1
    assert sa.variance(halfway[i, j], SCORES) == 1 / layer**2  # flatter in deep layers
    one = sa.softmax(halfway).subs({layer: 8})
    assert first_difference(wanted, one, STANDARD).largest == digits(0.269579)


def test_V13_a_scale_that_is_divided_by():
    """AI-Hypercomputer/maxtext#1370: the scale has the exponent -1/2, and scores are divided by it."""
    scale = d ** sympy.Rational(-1, 2)
    inverted = sa.variance(q @ k / scale, UNIT)
    assert (sa.variance(q @ k * scale, UNIT), inverted) == (1, d**2)
    assert sympy.sqrt(inverted.subs(d, 192)) == 192
    settled(inverted, 3 * variance(lambda a, b: a @ b, Drawn((3,), SIGNS), Drawn((3,), SIGNS)), {d: 3})


def test_V15_unit_vectors_have_scores_within_the_scale():
    """lucidrains/x-transformers#190: one path multiplies cosines by 10, the other divides by 10 sqrt(d)."""
    unit = [sa.eq(q @ q, 1), sa.eq(k @ k, 1)]
    proved(2 * (1 - q @ k), (q - k) @ (q - k), given=unit)  # so that q.k <= 1, and -1 <= q.k below
    proved(2 * (1 + q @ k), (q + k) @ (q + k), given=unit)
    proved(sa.le(0, (q - k) @ (q - k)))
    law = {q: sa.sphere(), k: sa.sphere()}
    assert sa.variance(10 * (q @ k), law) == 100 / d
    assert sympy.simplify(sa.variance(q @ k / (10 * sympy.sqrt(d)), law) - 1 / (100 * d**2)) == 0

    cosines, z = np.array([1, -1, -1, -1]), sa.tensor("z", n)
    right, wrong = (compute(sa.softmax(z), {"z": cosines * scale})[0] for scale in (10, 1 / 80))
    assert right == pytest.approx(0.9999999938165389, rel=1e-12)
    assert wrong == digits(0.254717)


def test_V17_unscaled_scores_of_64_features_are_within_tens():
    """lzwjava.github.io: unscaled scores are said to span -500 to 500, and scaled ones -2 to 2."""
    deviations = [sympy.sqrt(sa.variance(z, UNIT)).subs(d, 64) for z in (q @ k, q @ k / sympy.sqrt(d))]
    assert deviations == [8, 1]
    assert 500 / deviations[0] > 62
    eighth = sa.expectation((q @ k) ** 8, {q: sa.iid("normal"), k: sa.iid("normal")})
    assert eighth.subs(d, 64) / sympy.Integer(500) ** 8 < 1e-11  # Markov: how likely a score of 500 is at most

    z = sa.tensor("z", n)
    slope = sa.let("p", sa.softmax(z))
    largest = sa.diag(sa.jacobian(slope, z))
    for gap, wanted in ((0, 0.25), (1, 0.197), (8, 0.000335), (24, 3.78e-11)):
        assert compute(largest, {"z": [gap, 0]})[0] == pytest.approx(wanted, rel=2e-3)
    proved(sa.le(4 * slope * (1 - slope), 1))


def test_V19_without_the_scale_scores_are_too_large_by_its_root():
    """mlc-ai/mlc-llm#3426: scores without the scale are called head_dim times too large."""
    without, scaled = (sa.variance(z, UNIT) for z in (q @ k, q @ k / sympy.sqrt(d)))
    assert without / scaled == d  # true of the variance
    proved(q @ k, sympy.sqrt(d) * (q @ k / sympy.sqrt(d)))
    refuted(q @ k, d * (q @ k / sympy.sqrt(d)))
    assert (sympy.sqrt(d).subs(d, 64), (without / scaled).subs(d, 64)) == (8, 64)


# --- claims of notes ---


def test_dividing_by_the_root_makes_the_variance_1_only_for_independent_entries_of_variance_1():
    """The division is said to make sure of variance 1, whatever the queries and keys are."""
    z = q @ k / sympy.sqrt(d)
    given = sa.moments(z, UNIT)
    assert given.variance == 1
    assert "q and k are independent" in given.assumptions
    assert {"mean of q: 0", "variance of q: 1", "mean of k: 0", "variance of k: 1"} <= set(given.assumptions)
    with pytest.raises(sa.OperandError, match="nothing is assumed of it"):
        sa.variance(z, {q: sa.iid()})

    itself = sa.moments(q @ q / sympy.sqrt(d), {q: sa.iid("normal")})
    assert (itself.mean, itself.variance) == (sympy.sqrt(d), 2)
    assert itself.mean.subs(d, 64) == 8
    rho = sympy.Symbol("rho", real=True)
    correlated = sa.moments(z, {(q, k): sa.iid_pair(correlation=rho)})
    assert sympy.simplify(correlated.mean - rho * sympy.sqrt(d)) == 0
    assert sympy.expand(correlated.variance - 1 - rho**2) == 0
    assert sa.variance(z, {q: sa.iid(variance=2), k: sa.iid()}) == 2


def test_the_width_under_the_root_is_that_of_a_head():
    """Scores of queries of width 64 are divided by the root of the model's 512."""
    assert sa.variance(q @ k / sympy.sqrt(D), UNIT).subs({d: 64, D: 512}) == sympy.Rational(1, 8)
    assert sa.variance(q @ k / sympy.sqrt(d), UNIT) == 1


def test_scores_grow_with_the_root_of_the_width_and_their_variance_with_the_width():
    """Products of queries and keys are said to grow with the width."""
    assert sa.expectation(q @ k, UNIT) == 0
    assert sa.variance(q @ k, UNIT) == d
    equal = sa.softmax(sa.tensor("c") * sa.ones(n))
    proved(equal, sa.ones(n) / n)  # large scores alone do no harm: their differences do


def test_noise_of_deviation_one_half_has_variance_one_quarter():
    """Noise is written as normal with 0.5 squared."""
    noise: Any = sa.tensor("epsilon", n)
    law = {noise: sa.iid("normal", variance=sympy.Rational(1, 2) ** 2)}
    assert sa.variance(noise[i], law) == sympy.Rational(1, 4)
    assert sa.variance(sa.mean(noise), law) == 1 / (4 * n)
