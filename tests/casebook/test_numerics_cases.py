"""Disputes from public threads about how attention is computed: blocks, shifts, scales and overflow.

Identities are proved for all sizes, the printed or reported forms refuted; overflow is run in its floating-point type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import LOGITS, STANDARD, compute, digits, first_difference
from .test_permutation_cases import proved, refuted

n, m, k, d, e = sa.sizes("n m k d e")
Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, e)


def rowsum(x: Any) -> Any:
    return sa.sum(x, axis=-1, keepdims=True)


def rowmax(x: Any) -> Any:
    return sa.max(x, axis=-1, keepdims=True)


# --- two blocks of keys, one after the other ---

Z1, Z2 = sa.tensor("Z_1", n, m), sa.tensor("Z_2", n, k)
V1, V2 = sa.tensor("V_1", m, e), sa.tensor("V_2", k, e)
JOINED = sa.concat([Z1, Z2], axis=1)
WANTED = sa.softmax(JOINED) @ sa.concat([V1, V2])

OLD_MAX = rowmax(Z1)
NEW_MAX = sa.maximum(OLD_MAX, rowmax(Z2))
FACTOR = sa.exp(OLD_MAX - NEW_MAX)
OLD_SUM = rowsum(sa.exp(Z1 - OLD_MAX))
NEW_SUM = FACTOR * OLD_SUM + rowsum(sa.exp(Z2 - NEW_MAX))
SECOND = sa.exp(Z2 - NEW_MAX) @ V2  # what the second block adds

BLOCKS = {  # the maximum of the first row is in the first block, that of the second row in the second
    "Z_1": [[0.5, 2.0], [1.0, -0.4]],
    "Z_2": [[-1.0, 0.3], [3.0, 0.2]],
    "V_1": [[1.0, 2.0], [-1.0, 0.5]],
    "V_2": [[0.3, -0.4], [0.8, 0.1]],
}


def test_N01_the_accumulator_is_rescaled_by_the_factor_and_not_by_its_inverse():
    """Dao-AILab/flash-attention#991: the printed forward pass divides by exp(m_old - m_new)."""
    accumulated = sa.exp(Z1 - OLD_MAX) @ V1
    right, printed = ((scale * accumulated + SECOND) / NEW_SUM for scale in (FACTOR, 1 / FACTOR))
    proved(right, WANTED)
    proved(NEW_MAX + sa.log(NEW_SUM), sa.logsumexp(JOINED, keepdims=True))
    found = refuted(printed, WANTED)
    first, second = (np.max(array) for x, array in found.arrays_numpy().items() if x.name.startswith("Z"))
    assert second > first

    assert compute(right, BLOCKS) == digits([[-0.423047, 0.648951], [0.366493, -0.08667]])
    apart = first_difference(WANTED, printed, BLOCKS)
    assert apart.entry == (1, 0)  # the row whose maximum grows
    assert apart.largest == digits(12.526703)


def test_N03_a_normalised_block_is_weighted_by_the_ratio_of_sums_and_the_exponential():
    """Dao-AILab/flash-attention#897: the recap of an algorithm prints the inverse ratio, without the exponential."""
    normalised = sa.softmax(Z1) @ V1
    ratio = OLD_SUM / NEW_SUM

    def combined(coefficient):
        return coefficient * normalised + SECOND / NEW_SUM

    proved(combined(ratio * FACTOR), WANTED)
    for coefficient, largest in ((1 / ratio, 1.446226), (ratio, 1.49322)):  # as printed; turned around only
        refuted(combined(coefficient), WANTED)
        assert first_difference(WANTED, combined(coefficient), BLOCKS).largest == digits(largest)
    refuted(combined(FACTOR / ratio), WANTED)


def test_N05_the_rescaling_factor_is_at_most_one():
    """deepseek-ai/FlashMLA#177: a write-up prints exp(m_new - m_old)."""
    proved(sa.le(FACTOR, 1))
    proved(sa.lt(0, FACTOR))
    printed = sa.exp(NEW_MAX - OLD_MAX)
    proved(sa.le(1, printed))
    assert refuted(sa.le(printed, 1)).left > 1
    refuted(printed * (sa.exp(Z1 - OLD_MAX) @ V1) + SECOND, NEW_SUM * WANTED)
    assert compute(FACTOR, BLOCKS).ravel() == digits([1, 0.135335])
    assert compute(printed, BLOCKS).ravel() == digits([1, 7.389056])


def test_N07_logsumexp_of_two_blocks_is_no_sum():
    """zhuzilin/ring-flash-attention#20: the sum of two logsumexp belongs to the product of two partition sums."""
    a, b = sa.tensor("a", n), sa.tensor("b", m)
    first, second, both = sa.logsumexp(a), sa.logsumexp(b), sa.logsumexp(sa.concat([a, b]))
    proved(both, first + sa.log1p(sa.exp(second - first)))
    proved(sa.exp(first + second), sa.sum(sa.exp(a)) * sa.sum(sa.exp(b)))
    refuted(both, first + second)
    arrays = {"a": [0.5, 2.0], "b": [-1.0, 0.3]}
    assert compute(both, arrays) == digits(2.375419)
    assert compute(first + second, arrays) == digits(2.742422)


# --- shifts and signs ---


def test_N09_keys_without_their_mean_shift_logsumexp_and_nothing_else():
    """ROCm/aiter#3334: outputs stay right, and the saved logsumexp is wrong when devices are merged."""
    mean, scale = sa.mean(K, axis=0), 1 / sympy.sqrt(d)

    def output(keys):
        return sa.softmax(scale * (Q @ keys.T)) @ V

    def saved(keys):
        return sa.logsumexp(scale * (Q @ keys.T))

    for shift in (sa.tensor("c", d), mean):
        proved(output(K - shift), output(K))
        proved(saved(K - shift) + scale * (Q @ shift), saved(K))
        refuted(saved(K - shift), saved(K))
        shifted, plain = (sa.gradient(output(keys), [Q, K]) for keys in (K - shift, K))
        for x in (Q, K):
            proved(shifted[x], plain[x])
    assert compute(saved(K) - saved(K - mean), STANDARD) == digits([0.153206, 0.068354, -0.188562])


def test_N13_softmax_as_a_reciprocal_subtracts_its_own_logit():
    """fastmachinelearning/hls4ml#42: a table-based softmax has the difference the other way around."""
    x = sa.tensor("x", n)
    right, reported = (1 / sa.sum(sa.exp(y), axis=-1) for y in (x[None] - x[:, None], x[:, None] - x[None]))
    proved(right, sa.softmax(x))
    refuted(reported, sa.softmax(x))
    proved(reported, sa.softmax(-x))
    assert compute(right, {"x": LOGITS}) == digits([0.17529, 0.039113, 0.785597])
    assert compute(reported, {"x": LOGITS}) == digits([0.17529, 0.785597, 0.039113])


# --- overflow ---


def test_N11_scaling_the_query_first_helps_half_precision_only_so_far():
    """pytorch/pytorch#119131: scores overflow before they are scaled; exactly, the order does not matter."""
    q, key = sa.tensor("q", d), sa.tensor("k", d)
    scale, root = 1 / sympy.sqrt(d), 1 / sympy.root(d, 4)
    late, early, split = scale * (q @ key), (scale * q) @ key, (root * q) @ (root * key)
    proved(late, early)
    proved(late, split)
    refuted(late, (scale * q) @ (scale * key))

    def is_infinite(scores, scaled, product):
        """In half precision, step by step: the scores of two vectors of 64 entries whose product is given."""
        vector = np.zeros(64)
        vector[0] = np.sqrt(product)
        with np.errstate(over="ignore"):
            half = compute(scaled, {"q": vector, "k": vector}, np.float16)
            return bool(np.isinf(compute(scores, {"q": half, "k": vector}, np.float16)))

    scores = q @ key
    assert [is_infinite(scores, x, 1e5) for x in (1 * q, scale * q)] == [True, False]
    assert [is_infinite(scores, x, 784449.0) for x in (1 * q, scale * q)] == [True, True]


def test_N15_a_factorised_decay_is_exact_and_overflows():
    """cpcp1998/PermuteFormer#2: r^i on the queries and r^-j on the keys, for 8192 positions."""
    r = sympy.Symbol("r", positive=True)
    rising, falling = (sa.from_index((n,), lambda i, sign=sign: r ** (sign * i)) for sign in (1, -1))
    decay = sa.from_index((n, n), lambda i, j: r ** (i - j))
    keys = sa.tensor("K", n, d)
    proved(sa.outer(rising, falling), decay)
    proved((rising[:, None] * Q) @ (falling[:, None] * keys).T, decay * (Q @ keys.T))
    refuted(sa.outer(rising, rising), decay)

    i, j = sympy.symbols("i j", integer=True, nonnegative=True)
    values = {r: sympy.Rational(9, 10), n: 8192}
    assert decay[i, j].subs({i: 8191, j: 8190, **values}) == values[r]
    with np.errstate(over="ignore"):
        up, down = (compute(x.subs(values), {}) for x in (rising, falling))
    assert (up[8191], down[8190]) == (0, np.inf)
    with np.errstate(invalid="ignore"):
        assert np.isnan(up[8191] * down[8190])


# --- the same by the functions of sa.attention ---


def test_N01_N03_N05_blockwise_attention_rescales_what_it_has():
    keys, values = [sa.tensor("K_1", m, d), sa.tensor("K_2", k, d)], [V1, V2]
    blocks = sa.attention.blockwise(Q, keys, values, scale=1)
    whole = sa.attention.scaled_dot_product(Q, sa.concat(keys), sa.concat(values), scale=1)
    proved(blocks, whole)
    identity = {"Q": np.eye(2), **{f"K_{b}": np.transpose(BLOCKS[f"Z_{b}"]) for b in (1, 2)}}  # so that Z is Q @ K.T
    given = {**identity, "V_1": BLOCKS["V_1"], "V_2": BLOCKS["V_2"]}
    for output in (blocks, whole):
        assert compute(output, given) == digits([[-0.423047, 0.648951], [0.366493, -0.08667]])


def test_N09_attention_of_keys_without_their_mean():
    plain, shifted = (sa.attention.scaled_dot_product(Q, keys, V) for keys in (K, K - sa.mean(K, axis=0)))
    proved(shifted, plain)
    assert compute(shifted, STANDARD) == digits(compute(plain, STANDARD))


def test_N11_scores_scale_after_the_product_unless_the_query_is_scaled():
    query = sa.tensor("q", n, d)
    late = sa.attention.scores(query, K)
    early = sa.attention.scores(query / sympy.sqrt(d), K, scale=1)
    proved(late, early)
    vector = np.zeros((1, 64), np.float16)
    vector[0, 0] = np.sqrt(1e5)
    with np.errstate(over="ignore"):
        found = [compute(z, {"q": vector, "K": vector}, np.float16).item() for z in (late, early)]
    assert found == [np.inf, pytest.approx(1e5 / 8, rel=1e-3)]


def test_N15_a_decay_by_differences_of_logarithms_does_not_overflow():
    g = sa.tensor("g", n)
    gates = np.full(1024, np.log(0.9), np.float32)  # 0.9**-1023 is above the largest number of single precision
    decay = compute(sa.attention.decay_matrix(g), {"g": gates}, np.float32)
    assert np.isfinite(decay).all()
    assert decay[1023, 1022] == pytest.approx(0.9, rel=1e-4)
    assert decay[1022, 1023] == 0
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(-np.cumsum(gates))[-1])
