"""The arrays that a loop fills are of the type of all that goes into it, whatever its first step gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import symattn as sa

x, r, A, w = sa.tensor("x", "T"), sa.tensor("r"), sa.tensor("A", "T d"), sa.tensor("w", "d")


def handed_on(s: Any, row: Any) -> tuple[Any, Any]:
    """A loop over a row that begins with the state of the loop around it."""
    last, before = sa.scan(lambda u, v: (u + v, u), s, row)
    return last, (before, s)


LOOPS = {
    "the state before": sa.scan(lambda s, t: (s + t, s), r, x),
    "a tuple that is turned": sa.scan(lambda s, t: ((s[1], s[0] + t), s), (r, 1), x),
    "a state that is put aside": sa.scan(lambda s, t: (t, s), r, x),
    "a first output that reads nothing": sa.scan(lambda s, t: (s * t, s), 1, x + r),
    "backwards": sa.scan(lambda s, t: (s + t, s), r, x, reverse=True),
    "a loop in a loop": sa.scan(handed_on, w[0], A),
}
TYPES = (np.int64, np.float32, np.float64, np.complex64, np.complex128)


def listed(made: Any) -> list[Any]:
    final, outputs = made
    return [*(final if isinstance(final, tuple) else [final]), *(outputs if isinstance(outputs, tuple) else [outputs])]


def array(rank: int, dtype: Any) -> Any:
    rng = np.random.default_rng(rank)
    shape = (3, 3)[:rank]
    values = rng.integers(-9, 9, shape) / 4 + (1j * rng.integers(-9, 9, shape) if np.dtype(dtype).kind == "c" else 0)
    return (values.round() if dtype is np.int64 else values).astype(dtype)


@pytest.mark.parametrize("name", LOOPS)
def test_values_and_gradients_do_not_lose_what_one_argument_has(name: str) -> None:
    values = listed(LOOPS[name])
    wanted = [t for t in (x, r, A, w) if any(t in v.tensors for v in values)]
    gradients = sa.gradient(sum(sa.sum(v * v) for v in values), wanted)
    f = sa.lambdify(wanted, [*values, *gradients.values()])
    for types in itertools.product(TYPES, repeat=len(wanted)):
        given = [array(t.rank, dtype) for t, dtype in zip(wanted, types, strict=True)]
        for got, want in zip(f(*given), f(*(a.astype(np.complex128) for a in given)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, err_msg=str(types))


def test_a_narrow_start_does_not_overflow() -> None:
    last, before = sa.lambdify([x, r], list(LOOPS["the state before"]))(np.array([1e300, 1, 1]), np.float32(1))
    np.testing.assert_array_equal(before, [1, 1e300, 1e300])
    assert last == 1e300


def test_an_index_that_is_handed_on_stays_whole() -> None:
    n, first = sa.tensor("n", "T", integer=True), sa.tensor("first", integer=True)
    (last, _), (before, sums) = sa.scan(lambda s, t: ((t[0], s[1] + t[1]), s), (first, r), (n, x))
    found = sa.lambdify([n, first, x, r], [last, before, sums])(np.array([1, 2, 3]), 7, np.array([1j, 1, 1]), 0)
    assert [y.dtype.kind for y in found] == ["i", "i", "c"]
    np.testing.assert_array_equal(found[1], [7, 1, 2])
    np.testing.assert_array_equal(found[2], [0, 1j, 1 + 1j])


def test_numbers_are_taken_at_every_call() -> None:
    last, before = LOOPS["the state before"]
    f = sa.lambdify([x, r], [before + 0 * (r + x[0]), last])
    for _ in range(3):
        found = f(np.ones(2, np.float32), 0.5)
        np.testing.assert_array_equal(found[0], [0.5, 1.5])
        assert [y.dtype for y in found] == [np.float32] * 2
