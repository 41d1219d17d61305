"""Fuzz of inequalities: what is proved is evaluated, at kinks, under masks and at sizes of one too."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.reference import values
from symattn.core.budget import Budget, OutOfBudget
from symattn.core.node import rebuild
from symattn.proof.bounds.prove import bound_proof
from symattn.proof.claims import Claim, eq, le, lt

from ..shares import one_in

T = sa.sizes("T")
QUARTER = sympy.Rational(1, 4)
X, Y, C = sa.tensor("X", T, T), sa.tensor("Y", T, T), sa.tensor("C", T, T, positive=True)
B, R = sa.tensor("B", T, T, binary=True), sa.tensor("R", T, T)
CAUSAL = sa.where(sa.from_index((T, T), lambda i, j: j <= i), 0, -sympy.oo)
LOWER = sa.from_index((T, T), lambda i, j: j <= i)
BOUNDS = (-2, -1, -QUARTER, 0, QUARTER, 1, 2, T, -T)
GIVEN = [le(X, Y), le(0, R), eq(sa.sum(R, -1), 1), le(-1, X.T), le(sa.max(Y, axis=0), 2)]


def _random(rng: random.Random, leaves: tuple[sa.Tensor, ...]) -> sa.Tensor:
    def some() -> sa.Tensor:
        return rng.choice([*made, *leaves])

    def axis() -> int:
        return rng.choice([0, 1])

    def condition() -> sa.Tensor:
        tested = [some() > 0, some() >= rng.choice([-1, 1]), some() < some(), LOWER, B, ~(some() <= 0)]
        return rng.choice([*tested, tested[0] & tested[2], tested[1] | tested[3]])

    made: list[sa.Tensor] = [sa.softmax(X)]
    ways: list[Callable[[], sa.Tensor]] = [
        lambda: some() + some(),
        lambda: some() - some(),
        lambda: some() * some(),
        lambda: 1 - some(),
        lambda: some() * rng.choice([-2, -1, Fraction(1, 2), 3]),
        lambda: sa.exp(some() / 4),
        lambda: sa.relu(some()),
        lambda: sa.abs(some()),
        lambda: sa.tanh(some()),
        lambda: sa.sigmoid(some()),
        lambda: sa.softmax(some(), axis=axis()),
        lambda: sa.softmax(some(), where=B),
        lambda: sa.softmax(some() + CAUSAL),
        lambda: some() @ some(),
        lambda: some() @ some().T,
        lambda: some() - sa.max(some(), axis=axis(), keepdims=True),
        lambda: some() * 0 + sa.logsumexp(some(), keepdims=True) - sa.max(some(), axis=-1, keepdims=True),
        lambda: sa.ones(T, T) * sa.mean(some(), axis=axis(), keepdims=True),
        lambda: sa.ones(T, T) * sa.sum(some(), axis=-1)[:, None],
        lambda: sa.cumsum(some(), axis=axis()),
        lambda: sa.maximum(some(), some()),
        lambda: sa.minimum(some(), rng.choice([some(), sa.ones(T, T)])),
        lambda: sa.where(condition(), some(), some()),
        lambda: sa.tril(some()),
        lambda: sa.floor(some()),
        lambda: some() ** 2,
        lambda: sa.exp(some() + CAUSAL),
        lambda: sa.log(sa.softplus(some()) + 1),
        lambda: some() / (1 + some() ** 2),
        lambda: some().T,
        lambda: (part := sa.exp(some() / 4)) / sa.sum(part, axis=axis(), keepdims=True),
        lambda: (part := B * sa.exp(some() / 4)) / sa.sum(part, axis=-1, keepdims=True),
        lambda: some() / sa.sum(C, axis=axis(), keepdims=True),
        lambda: sa.ones(T, T) * sa.log(sa.sum(sa.exp(some() - sa.max(some())))),
        lambda: sa.shift(some(), 1),
        lambda: sa.ones(T, T) * sa.max(some()[:, :1]),
        lambda: some() + sa.from_index((T, T), rng.choice([lambda i, j: i - j, lambda i, j: sympy.floor(i / 2)])),
        lambda: sa.diag(sa.sum(some(), axis=axis())),
    ]
    for _ in range(rng.randint(1, 5)):
        made.append(rng.choice(ways)())
    return made[-1]


def _points(rng: np.random.Generator) -> Iterator[tuple[int, dict[sa.Tensor, Any]]]:
    """Points at which what is given holds, with equal entries too."""
    for size in (1, 2, 3):
        for kind in range(3):
            real = rng.normal(size=(size, size)) if kind else np.zeros((size, size))
            x = np.clip(real.round(kind), -1, 2)
            y = np.minimum(x + rng.choice([0.0, 0.5, 2.0], (size, size)), 2) if kind else x
            mask = rng.random((size, size)) < (0.5 if kind < 2 else 0)
            rows = rng.integers(0, 3, (size, size)) + np.eye(size)
            weights = rows / rows.sum(-1, keepdims=True)
            yield size, {X: x, Y: y, C: rng.uniform(0.1, 2, (size, size)), B: mask.astype(int), R: weights}


def _is_proved(claim: Claim, given: list[Claim]) -> bool:
    try:
        return bound_proof(claim, given, Budget(0.5)) is not None
    except OutOfBudget:
        return False


def _assert_holds(claims: list[Claim], rng: np.random.Generator) -> None:
    sides = [side for claim in claims for side in claim.sides]
    for size, arrays in _points(rng) if claims else ():
        with np.errstate(all="ignore"):
            found = values(sides, arrays, {T: size})
        for claim in claims:
            left, right = (np.broadcast_to(found[side], (size, size)).astype(float) for side in claim.sides)
            exists = ~(np.isnan(left) | np.isnan(right))
            left, right = left[exists], right[exists]
            rounded = np.isclose(left, right, rtol=1e-9, atol=1e-9) & (claim.relation == "<=")
            holds = rounded | (left <= right if claim.relation == "<=" else left < right)
            assert holds.all(), (str(claim), size, left, right)


def limits_proved(seed: int) -> list[Claim]:
    """What is proved of a random term against numbers."""
    t = _random(random.Random(seed), (X, C, B))
    limits = [sa.ones(T, T) * bound for bound in BOUNDS]
    asked = [claim for limit in limits for claim in (le(t, limit), lt(t, limit), le(limit, t), lt(limit, t))]
    return [claim for claim in asked if _is_proved(claim, [])]


def orders_proved(seed: int) -> list[Claim]:
    """What is proved of two random terms, one of them the other with larger parts, from what is given."""
    rng = random.Random(seed)
    a = _random(rng, (X, C, B, R))
    b = rebuild([a], {X: Y}, {})[0]
    others = [_random(rng, (X, Y, C, B, R)), sa.relu(a), R @ b, sa.ones(T, T) * sa.max(a), sa.maximum(a, Y), b + 1]
    pairs = [(a, b), (a + CAUSAL, b + CAUSAL), *((rng.choice([a, b]), other) for other in others)]
    asked = [made(*sides) for pair in pairs for sides in (pair, pair[::-1]) for made in (le, lt)]
    return [claim for claim in asked if _is_proved(claim, GIVEN)]


@pytest.mark.parametrize("seed", one_in(5, range(15)))
@pytest.mark.slow
def test_proved_limits_hold_at_points(seed: int, rng: np.random.Generator) -> None:
    _assert_holds(limits_proved(seed), rng)


@pytest.mark.parametrize("seed", one_in(15, [8, *range(8), *range(9, 15)]))
def test_proved_orders_hold_at_points(seed: int, rng: np.random.Generator) -> None:
    _assert_holds(orders_proved(seed), rng)
