"""Calls of a signature that is known: what passes without checks, and that no error is missed or said otherwise."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen import function

from ..compiled import ALLOWED, K, Q, S, T, V, X, compile_attention, d, e, h, normal, x

TAU, LAMBDA = sympy.Symbol("tau", positive=True), sympy.Symbol("lambda", real=True)
INDEX = sa.tensor("index", T, integer=True)
ONE = np.ones((4, 5))
CALLS = {  # functions, calls that they know, and calls that are wrong after these
    "arrays": (
        lambda: sa.lambdify([Q, K], Q @ K.T),
        [((np.ones((4, 3)), np.ones((5, 3))), {})],
        [
            ((np.ones((4, 3)),), {}),
            ((np.ones((4, 3)), np.ones((5, 2))), {}),
            ((np.ones((4, 3)), np.ones((5, 3)), 1), {}),
            ((np.ones((4, 3)), np.ones(3)), {}),
            ((np.ones((4, 3)), np.ones((5, 3)).astype(str)), {}),
            ((np.ones((4, 3)), np.ma.ones((5, 3))), {}),
            ((np.ones((4, 3)), [[np.ma.masked] * 3] * 5), {}),
            ((np.ones((4, 3)), object()), {}),
            ((np.ones((4, 3)), np.ones((5, 3))), {"n": 2}),
            ((np.ones((2, 4, 3)), np.ones((3, 5, 3))), {}),
        ],
    ),
    "scalars": (
        lambda: sa.lambdify([x, TAU, LAMBDA], x / TAU + LAMBDA),
        [((np.ones(3), 2.0, -1.0), {}), ((np.ones(3), 0.5, 0.0), {})],
        [((np.ones(3), -2.0, 1.0), {}), ((np.ones(3), 0.0, 1.0), {}), ((np.ones(3), float("nan"), 1.0), {}),
         ((np.ones(3), True, 1.0), {}), ((np.ones(3), np.ones(3), 1.0), {}), ((np.ones(3), 2.0, "a"), {})],
    ),
    "keywords": (
        lambda: sa.lambdify([x], sa.ones(h, 1) * x / TAU),
        [((np.ones(3),), {"h": 2, "tau": 4.0}), ((np.ones(3),), {"tau": 4.0, "h": 2})],
        [((np.ones(3),), {"h": 0, "tau": 4.0}), ((np.ones(3),), {"h": 2.0, "tau": 4.0}), ((np.ones(3),), {"h": 2}),
         ((np.ones(3),), {"h": True, "tau": -4.0}), ((np.ones(3),), {"h": 2, "tau": 4.0, "mu": 1}),
         ((np.ones(3),), {"h": [2], "tau": 4.0}), ((np.ones(3),), {"tau": 4.0})],
    ),
    "masks": (
        lambda: sa.lambdify([X, ALLOWED], sa.softmax(X, where=ALLOWED)),
        [((ONE, ONE > 0), {}), ((ONE, ONE), {})],
        [((ONE, 2 * ONE), {}), ((ONE, np.full((4, 5), np.nan)), {}), ((ONE, ONE[0] > 0), {})],
    ),
    "indices": (
        lambda: sa.lambdify([V, INDEX], sa.take(V, INDEX, 0)),
        [((ONE, np.array([1, 3])), {}), ((ONE, np.array([1.0, 3.0])), {})],
        [((ONE, np.array([1, 4])), {}), ((ONE, np.array([1.5, 3.0])), {}), ((ONE, np.array([1, -1])), {})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_errors_are_those_of_a_function_that_knows_no_signature(name):
    make, good, wrong = CALLS[name]
    f = make()
    for arrays, keywords in good * 3:
        np.testing.assert_array_equal(f(*arrays, **keywords), make()(*arrays, **keywords))
    for arrays, keywords in wrong:
        with pytest.raises(sa.EvaluationError) as said:
            make()(*arrays, **keywords)
        with pytest.raises(sa.EvaluationError) as again:
            f(*arrays, **keywords)
        assert str(again.value) == str(said.value)
        assert type(again.value.__context__) is type(said.value.__context__)


def test_sizes_by_keyword_are_part_of_the_signature():
    f = sa.lambdify([x], sa.ones(h, 1) * x * h)
    for times in (2, 3, 2, 3):
        np.testing.assert_array_equal(f(np.ones(3), h=times), np.full((times, 3), float(times)))


def test_results_are_the_callers_own_however_often_a_function_was_called():
    f = sa.lambdify([Q], [Q, Q.T, Q + 1, Q[::-1], Q + 1, sa.ones(2, 2) * d, sa.sum(Q)])
    q = np.ones((2, 3))
    for _ in range(4):
        results = f(q)
        for k, one in enumerate(results[:-1]):
            one += 100
            assert not any(np.may_share_memory(one, other) for other in (q, *results[:k]))
        np.testing.assert_array_equal(q, 1)
        np.testing.assert_array_equal(f(q)[5], 3)
        assert type(results[-1]) is np.float64


def test_signatures_are_bounded(monkeypatch):
    monkeypatch.setattr(function, "_MOST", 4)
    f = sa.lambdify([x], 2 * x)
    for size in (*range(1, 12), *range(1, 12)):
        np.testing.assert_array_equal(f(np.ones(size)), np.full(size, 2.0))
        assert len(f._known) <= 4


def test_threads_may_call_one_function(rng):
    f = compile_attention()
    calls = [[normal(rng, *axes) for axes in ((T, d), (S, d), (S, e), (T, e))] for _ in range(8)]
    calls += [[np.stack([a, a]) for a in arrays] for arrays in calls]
    wanted = [compile_attention()(*arrays) for arrays in calls]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for got, want in zip(pool.map(lambda arrays: f(*arrays), calls), wanted, strict=True):
                for one, other in zip(got, want, strict=True):
                    np.testing.assert_array_equal(one, other)
