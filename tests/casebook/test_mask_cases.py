"""Disputes from public threads about masks: polarity, alignment, windows and empty rows, settled by proof and numbers.

What is claimed for all sizes is proved or refuted; what happens in floating point is run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .test_gradient_cases import DROPPED, STANDARD, compute, digits, first_difference, same
from .test_permutation_cases import proved, refuted

n, m, p, d, e, w = sa.sizes("n m p d e w")
Z, M = sa.tensor("Z", n, m), sa.tensor("M", n, m, binary=True)
Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, e)
QS, KS, VS = (sa.tensor(name, n, size) for name, size in (("Q", d), ("K", d), ("V", e)))  # as many keys as queries
SCORES = Q @ K.T / sympy.sqrt(d)
LOWER = sa.from_index((n, n), lambda i, j: j <= i)


def rowsum(x: Any) -> Any:
    return sa.sum(x, axis=-1, keepdims=True)


def renormalised(x: Any) -> Any:
    return x / rowsum(x)


def test_M01_an_empty_row_is_a_convention():
    """pytorch/pytorch#131060: fully masked rows give nan, zeros or the softmax of the raw scores."""
    row = {"Z": [[0.4, -0.2, 1.0]], "M": [[0, 0, 0]]}
    guarded, additive = sa.softmax(Z, where=M), sa.softmax(Z + sa.where(M, 0, -sympy.oo))
    proved(sa.softmax(Z, where=sa.from_index((n, m), lambda i, j: sympy.false)), sa.zeros(n, m))
    for weights in (guarded, additive):
        assert compute(weights, row).tolist() == [[0, 0, 0]]
    proved(sa.softmax(Z - 10**4), sa.softmax(Z))  # a large number on the whole row is no mask
    assert compute(sa.softmax(Z + sa.where(M, 0, -(10**4))), row) == digits([[0.296654, 0.162807, 0.540539]])
    with np.errstate(invalid="ignore"):
        assert np.isnan(compute(renormalised(sa.exp(Z) * M), row)).all()
    with pytest.raises(sa.EvaluationError, match="nothing to attend to"):
        compute(sa.softmax(Z, where=M, empty="error"), row)
    assert proved(additive, guarded).side_conditions == ()  # also on empty rows


def test_M03_true_means_take_part():
    """rasbt/LLMs-from-scratch#1061: an upper triangle is given to a function that attends where the mask is true."""
    upper = sa.from_index((n, n), lambda i, j: j > i)
    scores = QS @ KS.T

    def output(mask):
        return sa.softmax(scores, where=mask) @ VS

    def later(out, inp):
        return inp[0] > out[0]

    def now_or_before(out, inp):
        return inp[0] <= out[0]

    proved(sa.independent(output(LOWER), VS, later))
    refuted(sa.independent(output(upper), VS, later))
    proved(sa.independent(output(upper), VS, now_or_before))  # all that it should see is what it does not see
    proved(output(upper)[-1], sa.zeros(e))
    proved(output(~upper), output(LOWER))

    weights = [compute(sa.softmax(scores, where=mask), STANDARD) for mask in (upper, LOWER)]
    assert [[j for j in range(3) if x[0, j]] for x in weights] == [[1, 2], [0]]
    assert [[i for i in range(3) if not x[i].any()] for x in weights] == [[2], []]


def test_M05_the_bias_of_a_mask_has_to_be_added():
    """pytorch/pytorch#117939: the code that documents a function makes a bias of the boolean mask and leaves it out."""
    masked = sa.softmax(SCORES, where=M) @ V
    proved(sa.softmax(SCORES + sa.where(M, 0, -sympy.oo)) @ V, masked)
    refuted(sa.softmax(SCORES) @ V, masked)
    assert first_difference(masked, sa.softmax(SCORES) @ V, DROPPED).largest == digits(0.50083)


def test_M07_decoding_sees_what_the_last_rows_of_causal_attention_see():
    """pytorch/pytorch#103082: with one query and many keys, the causal flag hides all keys but the first."""

    def causal(q, k, v):
        return sa.softmax(q @ k.T, where=sa.from_index((q.shape[0],) * 2, lambda i, j: j <= i)) @ v

    def aligned(q, k, v, offset):
        return sa.softmax(q @ k.T, where=sa.from_index((q.shape[0], k.shape[0]), lambda i, j: j <= i + offset)) @ v

    full, last = causal(QS, KS, VS), QS[-1:]
    proved(full[-1:], sa.softmax(last @ KS.T) @ VS)
    found = refuted(full[-1:], aligned(last, KS, VS, 0))
    assert found.sizes[n] == 2

    q, k, v = (sa.tensor(name, p + n, size) for name, size in (("Q", d), ("K", d), ("V", e)))
    proved(causal(q, k, v)[p:], aligned(q[p:], k, v, p))  # n more queries after p cached keys
    refuted(causal(q, k, v)[p:], aligned(q[p:], k, v, 0))

    rng = np.random.default_rng(2)
    arrays = {name: rng.normal(size=(8, 3)) for name in "QKV"}
    assert first_difference(full[-1:], aligned(last, KS, VS, 0), arrays).largest == digits(1.454136)


def test_M09_masking_after_softmax_and_normalising_again_is_masking_before():
    """abisee/pointer-generator#88: called wrong, and right, until all kept weights underflow."""
    late = renormalised(sa.softmax(Z) * M)
    proved(late, sa.softmax(Z, where=M))
    assert compute(late, {"Z": [[1, -2, 0.5]], "M": [[1, 0, 1]]}) == digits([[0.622459, 0, 0.377541]])

    extreme = {"Z": [[0, 900, 1]], "M": [[1, 0, 1]]}
    assert compute(rowsum(sa.softmax(Z) * M), extreme).item() == 0
    with np.errstate(invalid="ignore"):
        assert np.isnan(compute(late, extreme)).all()
    assert compute(sa.softmax(Z, where=M), extreme) == digits([[0.268941, 0, 0.731059]])


def test_M11_a_decay_factor_is_an_added_logarithm_after_normalising_again():
    """qhfan/RMT#21: weights times a decay matrix against scores plus its logarithm."""
    decay = sa.tensor("M", n, m, positive=True)
    product, added = sa.softmax(Z) * decay, sa.softmax(Z + sa.log(decay))
    proved(added, renormalised(product))
    refuted(added, product)
    proved(product, rowsum(product) * added)  # so they are equal where rows of the product sum to 1

    steps = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    arrays = {**STANDARD, "M": 0.7**steps}
    right, wrong = (x.subs({Z: SCORES}) for x in (added, product))
    assert first_difference(right, wrong, arrays).largest == digits(0.207162)


def test_M13_masking_after_softmax_loses_weight_and_plus_infinity_is_no_fill_value():
    """lucidrains/memory-compressed-attention#2: a late mask, filled with the negative of minus infinity."""
    late = sa.sum(sa.softmax(Z) * M, axis=-1)
    refuted(late, sa.ones(n))
    missing = sa.sum(sa.softmax(Z) * (1 - M), axis=-1)
    proved(1 - late, missing)
    proved(sa.le(0, missing))
    refuted(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n))  # a row may be empty
    proved(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(n), given=[sa.le(1, sa.sum(M, axis=-1))])
    assert compute(late, {"Z": [[0.2, 0.1, -0.4]], "M": [[1, 0, 1]]}) == digits([0.631228])

    with pytest.raises(sa.OperandError, match="oo is not a real scalar"):
        sa.where(M, Z, sympy.oo)
    with np.errstate(invalid="ignore"):
        assert np.isnan(compute(sa.softmax(Z), {"Z": [[0.2, np.inf, -0.4]]})[0, 1])


def test_M15_a_window_with_both_ends_has_one_key_more():
    """huggingface/transformers#39408: a kernel takes inclusive bounds, so that a window of w sees w + 1 keys."""

    def keys_seen(extra, first):
        """Of n queries with w or more keys before them; ``extra`` is how many keys there are more than queries."""
        return sa.sum(sa.from_index((n, n + extra), lambda i, j: (j >= i + first) & (j <= i + extra)), axis=-1)

    inclusive, half_open, two_sided = keys_seen(w, 0), keys_seen(w, 1), keys_seen(2 * w, 0)
    for seen, count in ((inclusive, w + 1), (half_open, w), (two_sided, 2 * w + 1)):
        proved(seen, count * sa.ones(n))
    found = refuted(inclusive, w * sa.ones(n))
    assert found.left == found.sizes[w] + 1

    def row(condition):
        return int(compute(sa.sum(sa.from_index((20, 20), condition), axis=-1), {})[12])

    assert row(lambda i, j: (j <= i) & (j >= i - 4)) == 5
    assert row(lambda i, j: (j <= i) & (j > i - 4)) == 4
    assert row(lambda i, j: (j <= i + 4) & (j >= i - 4)) == 9


def test_M17_a_guard_against_nan_changes_rows_below_its_floor():
    """tracel-ai/burn#4697: the maximum is floored at -10^4 and the sum at 10^-6; normal rows are called unaffected."""
    z, shift = sa.tensor("z", m), sa.tensor("mu")

    def guarded(x, floor=-(10**4)):
        weights = sa.exp(x - sa.maximum(sa.max(x), floor))
        return weights / sa.maximum(sa.sum(weights), sympy.Rational(1, 10**6))

    proved(renormalised(sa.exp(z - shift)), sa.softmax(z))  # any shift will do
    total = sa.sum(sa.exp(z - sa.max(z)))
    proved(total, sa.exp(sa.logsumexp(z) - sa.max(z)))
    proved(sa.le(sa.max(z), sa.logsumexp(z)))
    proved(sa.le(1, sa.exp(sa.logsumexp(z) - sa.max(z))))  # so the floor of the sum is never reached
    refuted(guarded(z, 20), sa.softmax(z))
    refuted(guarded(-(10**4) * sa.exp(z)), sa.softmax(-(10**4) * sa.exp(z)))

    for x in ([0.4, -0.2], [-9999.5, -10010.0]):
        assert same(guarded(z), sa.softmax(z), {"z": x})
    low = {"z": [-20000.0, -20001.0]}
    assert compute(guarded(z), low).tolist() == [0, 0]
    assert compute(sa.softmax(z), low) == digits([0.731059, 0.268941])


# --- the same by the functions of sa.attention, run ---


def test_M01_evaluate_under_a_declared_convention():
    """pytorch/pytorch#131060: zeros or an error, as is asked for; a finite fill value leaves the scores as they are."""
    row = {"Z": [[0.4, -0.2, 1.0]], "M": [[0, 0, 0]]}
    assert compute(sa.attention.probabilities(Z, mask=M), row).tolist() == [[0, 0, 0]]
    assert compute(sa.attention.probabilities(Z + sa.attention.as_bias(M)), row).tolist() == [[0, 0, 0]]
    finite = sa.attention.probabilities(Z + sa.where(M, 0, -(10**4)))
    assert compute(finite, row) == digits([[0.296654, 0.162807, 0.540539]])
    with pytest.raises(sa.EvaluationError, match="nothing to attend to"):
        compute(sa.attention.probabilities(Z, mask=M, empty="error"), row)


def test_M03_evaluate_with_the_polarity_stated():
    """rasbt/LLMs-from-scratch#1061: the upper triangle is right where it says what to block."""
    upper = ~sa.attention.causal_mask(n)
    seen = {}
    for polarity in ("attend", "block"):
        square = sa.attention.scores(QS, KS)
        weights = compute(sa.attention.probabilities(square, mask=upper, mask_polarity=polarity), STANDARD)
        seen[polarity] = [np.flatnonzero(row).tolist() for row in weights]
    assert seen == {"attend": [[1, 2], [2], []], "block": [[0], [0, 1], [0, 1, 2]]}


def test_M05_evaluate_with_the_mask_and_without():
    """pytorch/pytorch#117939: as a mask and as a bias it is the same; the printed code leaves it out."""
    masked, added, left_out = (
        sa.attention.scaled_dot_product(Q, K, V, **form)
        for form in ({"mask": M}, {"bias": sa.attention.as_bias(M)}, {})
    )
    assert same(masked, added, DROPPED)
    assert first_difference(masked, left_out, DROPPED).largest == digits(0.50083)


def test_M07_evaluate_a_decoding_step():
    """pytorch/pytorch#103082: one query after seven cached keys, under both alignments, and by its offset."""
    masks = {
        align: compute(sa.attention.causal_mask(1, 8, align=align), {})[0] for align in ("top-left", "bottom-right")
    }
    assert {align: np.flatnonzero(mask).tolist() for align, mask in masks.items()} == {
        "top-left": [0],
        "bottom-right": list(range(8)),
    }
    rng = np.random.default_rng(2)
    arrays = {name: rng.normal(size=(8, 3)) for name in "QKV"}
    full = sa.attention.scaled_dot_product(QS, KS, VS, scale=1, mask=sa.attention.causal_mask(n))

    def step(**placed):
        return sa.attention.scaled_dot_product(QS[-1:], KS, VS, scale=1, mask=sa.attention.causal_mask(1, n, **placed))

    assert same(full[-1:], step(align="bottom-right"), arrays)
    assert same(full[-1:], step(offset=n - 1), arrays)
    assert first_difference(full[-1:], step(), arrays).largest == digits(1.454136)


def test_M09_evaluate_before_and_after_the_softmax():
    """abisee/pointer-generator#88: equal on ordinary scores; where all kept weights underflow, only before is right."""
    before, after = sa.attention.probabilities(Z, mask=M), renormalised(sa.attention.probabilities(Z) * M)
    ordinary = {"Z": [[1, -2, 0.5]], "M": [[1, 0, 1]]}
    assert same(before, after, ordinary)
    assert compute(before, ordinary) == digits([[0.622459, 0, 0.377541]])
    extreme = {"Z": [[0, 900, 1]], "M": [[1, 0, 1]]}
    assert compute(before, extreme) == digits([[0.268941, 0, 0.731059]])
    with np.errstate(invalid="ignore"):
        assert np.isnan(compute(after, extreme)).all()


def test_M13_evaluate_what_a_late_mask_loses():
    """lucidrains/memory-compressed-attention#2: rows of a late mask sum to less than 1, and oo is no fill value."""
    row = {"Z": [[0.2, 0.1, -0.4]], "M": [[1, 0, 1]]}
    late, early = sa.attention.probabilities(Z) * M, sa.attention.probabilities(Z, mask=M)
    assert compute(rowsum(late), row) == digits([[0.631228]])
    assert compute(rowsum(early), row) == pytest.approx(1, abs=1e-15)
    with np.errstate(invalid="ignore"):
        assert np.isnan(compute(sa.attention.probabilities(Z), {"Z": [[0.2, np.inf, -0.4]]})).any()
    with pytest.raises(sa.OperandError, match="oo is not a real scalar"):
        sa.attention.scaled_dot_product(Q, K, V, bias=sa.where(M, 0, sympy.oo))


def test_M15_evaluate_how_many_keys_a_window_sees():
    """huggingface/transformers#39408: w + 1, w and 2w + 1 keys, by the keyword that says what is counted."""

    def seen(size, **window):
        return int(compute(sa.attention.sliding_window_mask(20, left=size, **window), {})[12].sum())

    assert [seen(4, right=0), seen(4, right=0, includes_self=True), seen(4, right=4)] == [5, 4, 9]
    for count, extra, window in (
        (w + 1, w, {"right": 0}),
        (w, w, {"right": 0, "includes_self": True}),
        (2 * w + 1, 2 * w, {"right": w, "offset": w}),
    ):
        mask = sa.attention.sliding_window_mask(n, n + extra, left=w, **{"offset": extra, **window})
        proved(sa.sum(mask, axis=-1), count * sa.ones(n))


def test_M17_evaluate_rows_far_below_the_floor():
    """tracel-ai/burn#4697: a softmax needs no guard, however low its scores are."""
    q, k = {"Q": [[1.0]], "K": [[-20000.0], [-20001.0]]}, sa.tensor("K", m, 1)
    scores = sa.attention.scores(sa.tensor("Q", n, 1), k)
    assert compute(sa.attention.probabilities(scores), q) == digits([[0.731059, 0.268941]])
    assert compute(sa.attention.probabilities(Z), {"Z": [[0.4, -0.2]]}).sum() == pytest.approx(1, abs=1e-15)
