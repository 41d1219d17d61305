"""Moments behind masks that leave a row empty: a softmax of it is zeros, and the answer says so."""

import numpy as np
import pytest
import sympy

import symattn as sa

T, d = sa.sizes("T d")
V, Z = sa.tensor("V", T, d), sa.tensor("Z", T, T)
i, j, k = sympy.symbols("i j k", integer=True, nonnegative=True)
LAW = {V: sa.iid(mean=0, variance=1)}

MASKS = {
    "strictly earlier": lambda i, j: j < i,
    "strictly later": lambda i, j: j > i,
    "a window of those before": lambda i, j: (j < i) & (j > i - 4),
    "from two on": lambda i, j: j < i - 1,
    "only itself, but not the first": lambda i, j: sympy.Eq(i, j) & (i > 0),
    "all earlier and itself": lambda i, j: j <= i,
}
SIZE = 6


def weights(mask, scores):
    allowed = np.array([[bool(mask(sympy.Integer(a), sympy.Integer(b))) for b in range(SIZE)] for a in range(SIZE)])
    e = np.where(allowed, np.exp(scores), 0)
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)


@pytest.mark.parametrize("name", MASKS)
def test_a_row_with_nothing_to_attend_to_has_no_variance(name):
    P = sa.softmax(sa.zeros(T, T), where=sa.from_index((T, T), MASKS[name]))
    found = sa.variance((P @ V)[i, j], LAW)
    want = (weights(MASKS[name], np.zeros((SIZE, SIZE))) ** 2).sum(-1)
    got = [float(found.subs({T: SIZE, i: row}).doit()) for row in range(SIZE)]
    np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("name", ["strictly earlier", "strictly later"])
def test_means_covariances_and_sums_of_empty_rows(name):
    P = sa.softmax(sa.zeros(T, T), where=sa.from_index((T, T), MASKS[name]))
    p = weights(MASKS[name], np.zeros((SIZE, SIZE)))
    mean = sa.expectation((P @ (V + 1))[i, j], LAW)
    got = [float(mean.subs({T: SIZE, i: row}).doit()) for row in range(SIZE)]
    np.testing.assert_allclose(got, p.sum(-1), atol=1e-12)


def test_covariances_and_sums_behind_a_strict_mask():
    P = sa.softmax(sa.zeros(T, T), where=sa.from_index((T, T), MASKS["strictly earlier"]))
    p = weights(MASKS["strictly earlier"], np.zeros((SIZE, SIZE)))
    found = sa.covariance((P @ V)[i, j], (P @ V)[k, j], LAW)
    got = [[float(found.subs({T: SIZE, i: a, k: b}).doit()) for b in range(SIZE)] for a in range(SIZE)]
    np.testing.assert_allclose(got, p @ p.T, atol=1e-12)
    total = sa.variance(sa.sum(P @ V), LAW).subs({T: SIZE, d: 2}).doit()
    np.testing.assert_allclose(float(total), 2 * (p.sum(0) ** 2).sum(), rtol=1e-12)


@pytest.mark.parametrize("name", MASKS)
def test_scores_that_are_given_stand_in_the_answer(name):
    P = sa.softmax(Z, where=sa.from_index((T, T), MASKS[name]))
    if name == "only itself, but not the first":  # out of reach
        with pytest.raises(sa.NoRuleError):
            sa.variance((P @ V)[i, j], {**LAW, Z: "constant"})
        return
    found = sa.variance((P @ V)[i, j], {**LAW, Z: "constant"})
    scores = np.random.default_rng(0).integers(-2, 3, (SIZE, SIZE))
    table = sympy.Array(scores.tolist())
    want = (weights(MASKS[name], scores) ** 2).sum(-1)
    for row in range(SIZE):
        at = found.subs({T: SIZE, i: row}).doit()
        at = at.replace(lambda e: isinstance(e, sympy.Indexed), lambda e: table[tuple(map(int, e.indices))])
        np.testing.assert_allclose(float(at.doit()), want[row], atol=1e-10)


def test_a_mask_that_is_given_may_leave_rows_empty():
    M = sa.tensor("M", T, T, binary=True)
    P = sa.softmax(sa.zeros(T, T), where=M)
    found = sa.variance((P @ V)[i, j], {**LAW, M: "constant"})
    table = sympy.Array([[1, 1, 0], [0, 0, 0], [1, 1, 1]])
    for row, want in enumerate((sympy.Rational(1, 2), 0, sympy.Rational(1, 3))):
        at = found.subs({T: 3, i: row}).doit()
        at = at.replace(lambda e: isinstance(e, sympy.Indexed), lambda e: table[tuple(map(int, e.indices))])
        assert at.doit() == want


def test_the_answer_for_an_empty_row_is_said_in_all_forms():
    P = sa.softmax(sa.zeros(T, T), where=sa.from_index((T, T), MASKS["strictly earlier"]))
    found = sa.moments((P @ V)[i, j], LAW)
    assert found.variance.subs(i, 0) == 0
    assert r"i \neq 0" in found.latex()
    assert found.check()


def test_what_a_proof_divides_by_is_not_cancelled_where_it_may_be_0():
    P = sa.softmax(sa.zeros(T, T), where=sa.from_index((T, T), MASKS["strictly earlier"]))
    some = sa.from_index((T,), lambda i: i > 0)
    assert sa.prove(sa.sum(P, axis=-1), sa.ones(T)).status == "refuted"
    assert sa.prove(sa.sum(P, axis=-1), sa.ones(T) * some).status != "refuted"
