"""Places of the loop axes in threads: the same numbers, each run alike, and nothing that one thread tells another."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
P = sa.softmax(Q @ K.T / sympy.sqrt(d))
CORES = ((200, 12), (201, 12), (201, 10), (200, 10))  # large enough for blocks


@cache
def with_gradients(threads=1):
    G = sa.tensor("G", T, e)
    return sa.lambdify([Q, K, V, G], [P @ V, sa.gradient({P @ V: G}, [Q, K, V])], threads=threads)


def arrays(rng, *loops, dtype=np.float64):
    return [rng.normal(size=(*lead, *core)).astype(dtype) for lead, core in zip(loops, CORES, strict=True)]


@pytest.mark.parametrize("threads", [2, 5, 40])
def test_every_place_is_computed_once_as_by_one_thread(threads, rng):
    values = arrays(rng, *[(2, 7)] * 4)
    one, several = map(with_gradients, (1, threads))
    assert f"in_threads(work, {threads}," in several.plan(T=200, S=201).source
    for got, want in zip(several(*values), one(*values), strict=True):
        np.testing.assert_array_equal(got, want)


LOOPS = [  # loop axes of queries, keys, values and the cotangent
    ((2, 5), (5,), (), (2, 5)),
    ((2, 1), (1, 5), (5,), (2, 5)),
    ((), (), (7,), (7,)),
]


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_loop_axes_are_right_and_the_same_in_each_run(loops, dtype, rng):
    values = arrays(rng, *loops, dtype=dtype)
    one, several = map(with_gradients, (1, 3))
    first, again, want = several(*values), several(*values), one(*values)
    near = 2e-5 if dtype == np.float32 else 1e-12
    for x, y, z in zip(first, again, want, strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == dtype
        np.testing.assert_allclose(x, z, rtol=0, atol=near * np.abs(z).max())


def test_stored_values_are_those_of_the_own_place(rng):
    X, W = sa.tensor("X", T, d), sa.tensor("W", d, d)
    y = sa.softmax((X @ W) @ X.T) @ X
    y = sa.softmax((y @ W) @ y.T) @ y
    x, w = rng.normal(size=(6, 160, 8)), rng.normal(size=(8, 8)) / 4
    one, several = (sa.lambdify([X, W], [y, sa.gradient(sa.sum(y**2), [X, W])], threads=n) for n in (1, 3))
    for got, want in zip(several(x, w), one(x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


def test_many_callers_share_one_function_of_several_threads(rng):
    f = with_gradients(3)
    given = [arrays(rng, (5,), (5,), (), (5,)) for _ in range(4)]
    wanted = [with_gradients()(*values) for values in given]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda k: f(*given[k % 4]), range(16)))
    for k, found in enumerate(results):
        for got, want in zip(found, wanted[k % 4], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12 * np.abs(want).max())


def test_what_is_not_finite_in_a_thread_warns_no_more_than_in_one(rng):
    values = arrays(rng, *[(6,)] * 3, ())[:3]
    values[0][4, 3] = np.inf
    results, told = [], []
    for threads in (1, 2):
        f = sa.lambdify([Q, K, V], P @ V, threads=threads)
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            results += [f(*values) for _ in range(3)]
        told.append({str(w.message) for w in met})
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            f(*values)
    assert told[0] == told[1]
    for x in results:
        np.testing.assert_array_equal(x, results[0])


def test_an_error_in_a_thread_is_told_as_in_one(rng):
    M = sa.tensor("M", T, S, binary=True)
    y = sa.softmax(Q @ K.T, where=M, empty="error") @ V
    values = [*arrays(rng, *[(6,)] * 3, ())[:3], rng.random((6, 200, 201)) < 0.9]
    values[3][5, 7] = False
    told = []
    for threads in (1, 2):
        with pytest.raises(sa.EvaluationError) as raised:
            sa.lambdify([Q, K, V, M], y, threads=threads)(*values)
        told.append(str(raised.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("threads", [0, -1, True, "2", 2.0, None, 10**6])
def test_other_numbers_of_threads_are_refused(threads):
    with pytest.raises(sa.OperandError, match=r"lambdify: threads is a whole number from 1 to 1024, not "):
        sa.lambdify([Q, K, V], P @ V, threads=threads)


def test_the_number_of_threads_is_kept_and_told():
    f = pickle.loads(pickle.dumps(sa.lambdify([Q, K, V], P @ V, threads=np.int64(2))))
    assert f.threads == 2
    plan, alone = f.plan(T=512, S=512), sa.lambdify([Q, K, V], P @ V).plan(T=512, S=512)
    assert "which 2 threads share" in str(plan)
    assert plan.memory == 2 * alone.memory
