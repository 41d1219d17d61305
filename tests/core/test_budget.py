"""The time that a question is given: what takes long is given up within twice of it, and printing takes no longer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.proof.claims import Claim

from ..shares import one_in

T, d, n = sa.sizes("T d n")
x, y, X = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("X", T, d)
M, N = sa.tensor("M", 20, 20), sa.tensor("N", 20, 20)
LARGE = sa.tensor("L", 100, 100)


def clamped(times: int) -> sa.Tensor:
    found = x
    for k in range(times):
        found = sa.minimum(sa.maximum(found, -k - 1), k + 1)
    return found


def quotients(times: int, whole: Callable[[int], sa.Tensor]) -> sa.Tensor:
    found = x
    for k in range(times):
        found = found + x / whole(k)
    return found


def layers(depth: int) -> sa.Tensor:
    found = X
    for k in range(depth):
        q, v = sa.tensor(f"A_{k}", d, d), sa.tensor(f"B_{k}", d, d)
        found = found + sa.softmax(found @ q @ found.T) @ (found @ v)
    return found


def powers() -> Claim:
    z = sa.tensor("z", 3, 3)
    power = z[1, 1] ** 12 * (sa.sum(z) + sa.sum(sa.tensor("w", 3))) ** 9
    return sa.eq(power, power * sa.sum(sa.softmax(z[0])))


HEAVY: dict[str, Callable[[], Claim]] = {
    "clamps": lambda: sa.eq(clamped(3), clamped(1)),
    "many clamps": lambda: sa.eq(clamped(12), clamped(1)),
    "inverses": lambda: sa.eq(sa.inv(M @ N), sa.inv(N) @ sa.inv(M) + 0 * M),
    "an inverse by its entries": lambda: sa.eq(sa.inv(M) @ sa.tensor("x", 20), sa.tensor("x", 20)),
    "a large inverse": lambda: sa.eq(sa.inv(LARGE) @ LARGE.T @ LARGE, LARGE),
    "an inverse of exponentials": lambda: sa.eq(sa.inv(sa.exp(LARGE)) @ LARGE, LARGE),
    "powers of sums": powers,
    "quotients": lambda: sa.eq(
        quotients(40, lambda k: sa.exp(y) - k * x + sa.sum(x * y)),
        quotients(40, lambda k: sa.exp(y) - k * x + sa.sum(y * x)),
    ),
    "a stack, false": lambda: sa.eq(layers(20), layers(20) * (1 + sa.relu(X) * sa.relu(-X) + X[:1, :1])),
    "squares": lambda: sa.le(0, sum(((x - k * y) ** 2 for k in range(40)), 0 * x)),
    "products of sums": lambda: sa.eq(
        sympy.prod(sa.sum(x * (x + k * y)) for k in range(40)), sa.sum(x * x) ** 40 + sa.sum(y)
    ),
}


def test_time_in_which_the_machine_runs_something_else_does_not_count():
    started, budget = time.thread_time(), Budget(0.02)
    part = budget.part(0.5)
    time.sleep(0.05)
    budget.check()
    part.check()
    while time.thread_time() < started + 0.03:
        pass
    with pytest.raises(OutOfBudget, match=r"the time of 0\.02 s is used up"):
        part.check()
    Budget(math.inf).part(0.5).check()


@pytest.mark.parametrize("name", one_in(2, HEAVY))
def test_the_time_that_is_given_is_kept(name):
    claim = HEAVY[name]()
    started = time.process_time()
    verdict = sa.prove(claim, budget=1)
    assert time.process_time() - started < 2
    assert str(verdict)
    assert time.process_time() - started < 4  # with the conditions that are shown
