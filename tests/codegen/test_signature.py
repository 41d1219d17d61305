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


def test_a_number_for_a_tensor_without_axes_is_an_array_at_every_call():
    tau = sa.tensor("tau")
    f = sa.lambdify([x, tau], [*sa.gradient(sa.sum(sa.sin(tau * x)), [tau, x]).values(), tau[None], tau + 0 * x])
    first = f(np.ones(3, np.float32), 0.3)
    for _ in range(3):
        for one, other in zip(f(np.ones(3, np.float32), 0.3), first, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


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


# --- the form for small arrays ---


def masked(z):
    return sa.softmax(sa.where(sa.from_index((T, S), lambda i, j: j <= i), z, -sympy.oo))


SMALL = {  # arguments, outputs, keywords
    "causal": lambda: ([Q, K, V], masked(Q @ K.T / sympy.sqrt(d)) @ V, {}),
    "positions": lambda: ([Q, K], sa.softmax(Q @ K.T + sa.from_index((T, S), lambda i, j: (j - i) / T)), {}),
    "given mask": lambda: ([Q, K, ALLOWED], sa.softmax(Q @ K.T, where=ALLOWED), {}),
    "columns": lambda: ([Q, K, V], sa.softmax(Q @ K.T, axis=0) @ V, {}),
    "sizes by keyword": lambda: ([Q, K], sa.tile(sa.softmax(Q @ K.T), h, 0) / h, {"h": 2}),
    "scalars": lambda: ([Q, K, TAU], sa.softmax(TAU * Q @ K.T), {}),
    "scalars by keyword": lambda: ([Q, K], sa.tile(sa.softmax(TAU * Q @ K.T), h, 0), {"h": 2, "tau": 0.5}),
    "norm": lambda: ([Q], (Q - sa.mean(Q, -1, True)) * sa.rsqrt(sa.mean(Q * Q, -1, True) + 1), {}),
    "constants": lambda: ([Q, K], [Q @ K.T, sa.ones(T, S) / S, sa.eye(T), sa.mean(Q @ K.T), sa.softmax(Q.T)], {}),
    "views": lambda: ([Q], [Q.T, Q[::-1], Q, Q, sa.logsumexp(Q), sa.merge_axes(Q, (0, 1)), sa.sum(Q)], {}),
}


def compiled_small(name):
    """The function with its gradients, its arguments, and its keywords."""
    arguments, outputs, keywords = SMALL[name]()
    if isinstance(outputs, list):
        return sa.lambdify(arguments, outputs), arguments, keywords
    g = sa.gradient(outputs, [a for a in arguments if a in (Q, K, V, TAU)])
    return sa.lambdify([*arguments, g.cotangent], [outputs, g]), [*arguments, g.cotangent], keywords


def drawn(a, rng, dtype, loops):
    if a is TAU:
        return 0.7
    x = normal(rng, *loops, *a.shape)
    return x > 0 if a is ALLOWED else x.astype(dtype)


@pytest.mark.parametrize("name", SMALL)
def test_the_form_for_small_arrays_gives_the_same_bits_and_results_of_their_own(name, rng):
    f, arguments, keywords = compiled_small(name)
    for dtype, loops in ((np.float64, ()), (np.float32, (2,)), (np.complex128, ()), (np.float16, ()), (np.float32, ())):
        given = [drawn(a, rng, dtype, loops) for a in arguments]
        before = [np.copy(x) for x in given]
        first = f(*given, **keywords)
        for _ in range(3):
            again = f(*given, **keywords)
            for k, (one, other) in enumerate(zip(again, first, strict=True)):
                assert type(one) is type(other)
                np.testing.assert_array_equal(one, other, strict=True)
                assert not any(np.may_share_memory(one, other) for other in (*given, *again[:k]))
            for one in again:
                if isinstance(one, np.ndarray):
                    one += 1  # which changes nobody else's
            for one, was in zip(given, before, strict=True):
                np.testing.assert_array_equal(one, was)


def test_names_of_the_form_for_small_arrays_are_taken_from_nobody():
    f, quick = sa.sizes("f quick")
    make = sa.tensor("make", f, quick)
    g = sa.lambdify([make], sa.softmax(make[: f - 1]) / sympy.sqrt(f) + quick)
    for _ in range(3):
        np.testing.assert_allclose(g(np.zeros((4, 2))), np.full((3, 2), 2.25))


def test_a_loop_axis_that_an_argument_lacks_is_summed_over_in_every_form(rng):
    f = compile_attention()
    arrays = [normal(rng, *axes) for axes in ((3, T, d), (S, d), (S, e), (3, T, e))]
    same = [np.stack([a] * 3) if a.ndim == 2 else a for a in arrays]
    for _ in range(3):
        for got, want in zip(f(*arrays), f(*same), strict=True):
            np.testing.assert_allclose(got, want.sum(0) if got.ndim < want.ndim else want, atol=1e-13)


def test_what_is_computed_before_a_call_is_bounded():
    f = sa.lambdify([Q, K], masked(Q @ K.T))
    q, k = np.ones((360, 1)), np.ones((360, 1))
    for _ in range(3):
        f(q, k)
    (known,) = f._known.values()
    assert getattr(known, "func", None) == f._run  # a mask of 360 by 360 is not kept
