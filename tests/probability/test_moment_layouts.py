"""Random chains of layouts, masks and sums: moments of any entry against all values of all entries at small sizes."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Eq, Mod, floor

import symattn as sa

from ..shares import one_in

T, d, S = sa.sizes("T d S")
X, x = sa.tensor("X", T, d), sa.tensor("x", T)
INDICES = sympy.symbols("i j k", integer=True, nonnegative=True), sympy.symbols("p q r", integer=True, nonnegative=True)
COIN = ((0, 2 / 3), (1, 1 / 3))
SMALL = ({T: 2, d: 2, S: 3}, {T: 3, d: 2, S: 2}, {T: 4, d: 1, S: 1})


def step(rng: random.Random, y: sa.Tensor) -> sa.Tensor:
    axis, by = rng.randrange(y.rank), rng.choice([1, -1, 2])
    size, rest = y.shape[axis], (slice(None),) * axis
    blank = sa.zeros(*(S if k == axis else s for k, s in enumerate(y.shape)))
    chosen = rng.choice([lambda *i: i[0] < 1, lambda *i: i[0] >= i[-1], lambda *i: Eq(Mod(i[-1], 2), 1)])
    places = rng.choice([lambda i: 0 * i, lambda i: floor(i / 2), lambda i: Mod(i, 2)])
    steps = (
        lambda: sa.concat([y, blank], axis=axis),
        lambda: sa.concat([blank, 2 * y], axis=axis),
        lambda: sa.concat([y, sa.flip(y, axis)], axis=axis),
        lambda: sa.tile(y, S, axis=axis),
        lambda: sa.repeat(y, 2, axis=axis),
        lambda: sa.shift(y, by, axis=axis),
        lambda: sa.shift(y, by, axis=axis, size=size + 1),
        lambda: sa.cumsum(y, axis=axis, reverse=rng.random() < 0.5),
        lambda: sa.repeat(y, 2, axis=axis)[(*rest, slice(None, None, 2))],
        lambda: y - sa.mean(y, axis=axis, keepdims=True),
        lambda: sa.where(sa.from_index(y.shape, chosen), y, sa.flip(y, axis)),
        lambda: sa.take(y, sa.from_index((size,), places), axis=axis),
        lambda: sa.split_axis(sa.tile(y, 2, axis=axis), axis, (2, size)),
        lambda: sa.merge_axes(y.mT, (y.rank - 2, y.rank - 1)) if y.rank > 1 else sa.diag(y),
        lambda: sa.triu(y, by) if y.rank > 1 else sa.outer(y, y),
    )
    return rng.choice(steps)()


def drawn(y: sa.Tensor, variable: sa.Tensor, at: dict[Any, int]) -> tuple[np.ndarray, np.ndarray]:
    """The values of all entries for all values of the variable, and their probabilities."""
    shape = [int(size.subs(at)) for size in variable.shape]
    f = sa.lambdify([variable.subs(at)], y.subs(at))
    points = list(itertools.product(COIN, repeat=int(np.prod(shape))))
    values = [f(np.array([v for v, _ in point], float).reshape(shape)) for point in points]
    return np.array(values), np.array([np.prod([p for _, p in point]) for point in points])


REFUSED = {3, 9, 12, 17, 28, 30}  # out of reach; a refusal beside these is a fault


@pytest.mark.parametrize("seed", one_in(4, range(36)))
def test_covariances_of_entries(seed):
    rng = random.Random(seed)
    variable = y = rng.choice([X, x])
    for _ in range(rng.choice([1, 2, 3])):
        made = step(rng, y)
        y = made if made.rank <= 3 else y
    one, other = (names[: y.rank] for names in INDICES)
    law = {variable: sa.iid("bernoulli", probability=sympy.Rational(1, 3))}
    if seed in REFUSED:
        with pytest.raises(sa.NoRuleError):
            sa.covariance(y[one], y[other], law)
        return
    found = sa.covariance(y[one], y[other], law)
    checked = 0
    for at in SMALL:
        values, weights = drawn(y, variable, at)
        means = np.tensordot(weights, values, 1)
        pairs = list(itertools.product(np.ndindex(means.shape), repeat=2))
        for a, b in rng.sample(pairs, min(6, len(pairs))):
            right = weights @ (values[:, *a] * values[:, *b]) - means[a] * means[b]
            told = found.subs({**at, **dict(zip((*one, *other), (*a, *b), strict=True))}).doit()
            assert float(told) == pytest.approx(right, abs=1e-9), (y, at, a, b)
            checked += 1
    assert checked
