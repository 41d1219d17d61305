"""Where expectations of nonlinear functions go wrong: equal indices, forms that depend on each other, small sizes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Rational, pi, sqrt

import symattn as sa
from symattn.attention import layer_norm

D, N = sa.sizes("d n")
A, B, Z = (sa.tensor(name) for name in "abz")
X, Y, V = sa.tensor("x", D), sa.tensor("y", D), sa.tensor("v", N)
W, ROWS = sa.tensor("W", N, D), sa.tensor("X", N, D)
I, J = sympy.symbols("i j", integer=True, nonnegative=True)
HE, FIXED = {W: sa.iid("normal", variance=2 / D)}, {X: "constant"}
NORMAL = sa.iid("normal")
ONE, TWO = {Z: NORMAL}, {A: NORMAL, B: NORMAL}
H = W @ X
UNITS = sa.relu(H)


def step(x: Any) -> sa.Tensor:
    return sa.where(x > 0, 1, 0)


def test_equal_indices_are_told_apart() -> None:
    found = sa.expectation(UNITS[I] * UNITS[J], {**HE, **FIXED})
    length = sa.expectation(X @ X, FIXED)
    assert sympy.expand(found.subs(J, I) - length / D) == 0
    assert sympy.expand(found.subs({I: 0, J: 1}) - length / (pi * D)) == 0


EXACT = {
    "equal forms": (step(A + B) * step(2 * A + 2 * B), TWO, Rational(1, 2)),
    "opposite forms": (step(A - B) * step(B - A), TWO, 0),
    "shifted forms on one line": (step(A) * step(A - 1), TWO, (1 - sympy.erf(1 / sqrt(2))) / 2),
    "an interval": (step(A + 1) * step(1 - A), TWO, sympy.erf(1 / sqrt(2))),
    "nothing between": (step(A - 1) * step(-A - 1), TWO, 0),
    "a form of two others": (sa.relu(A) * step(B) * step(A + B), TWO, 1 / (2 * sqrt(2 * pi))),
    "no variance": (sa.relu(Z), {Z: sa.iid("normal", mean=2, variance=0)}, 2),
    "no variance, negative": (sa.relu(Z), {Z: sa.iid("normal", mean=-2, variance=0)}, 0),
    "a step at 0": (sa.where(Z >= 0, 1, 0), ONE, Rational(1, 2)),
    "a step of nothing": (step(Z), {Z: sa.iid("normal", variance=0)}, 0),
    "both sides of a point": (step(Z) * step(-Z), ONE, 0),
}


@pytest.mark.parametrize("name", EXACT)
def test_forms_that_depend_on_each_other(name: str) -> None:
    quantity, law, expected = EXACT[name]
    used = {x: own for x, own in law.items() if x in quantity.tensors}
    assert sympy.simplify(sa.expectation(quantity, used) - expected) == 0


def test_a_step_says_that_its_form_must_vary() -> None:
    told = sa.moments(step(V @ sa.tensor("w", N)), {V: "constant", sa.tensor("w", N): NORMAL}).assumptions
    assert str(told[-1]) == "the answer holds where Sum(v[k]**2, (k, 0, n - 1)) is positive"


def test_what_is_cancelled_still_needs_its_divisor() -> None:
    squares = sa.sum(layer_norm(X, eps=0) ** 2)
    found = sa.moments(squares, {X: NORMAL})
    assert (found.mean, found.variance) == (D, 0)
    assert str(found.assumptions[-1]) == "the answer holds where d - 1 is positive"


RANDOM = {
    "a readout": ((V @ UNITS) ** 2, {**HE, **FIXED, V: "constant"}),
    "a square of sums": (sa.sum(UNITS) ** 2, {**HE, **FIXED}),
    "signs": (sa.sum(sa.sign(H)) ** 2 * sa.sum(H), {**HE, **FIXED}),
    "entries and exponentials": (sa.sum(H * sa.exp(H)), {**HE, **FIXED}),
    "two inputs": (sa.sum(UNITS * sa.relu(W @ Y)) * sa.sum(H), {**HE, **FIXED, Y: "constant"}),
    "a cube": (sa.sum(UNITS) ** 3, {**HE, **FIXED}),
    "a random input": (sa.sum(UNITS), {**HE, X: NORMAL}),
    "a mean": (sa.sum(sa.relu(ROWS)) ** 2, {ROWS: sa.iid("normal", mean=1)}),
    "rows": (sa.sum(sa.relu(ROWS) @ sa.relu(ROWS).T), {ROWS: NORMAL}),
    "lengths of rows": (sa.sum(sa.sqrt(sa.sum(ROWS * ROWS, axis=1))) ** 2, {ROWS: NORMAL}),
    "cosines": (sa.sum(sa.cos(H)) ** 2, {**HE, **FIXED}),
    "gelu": (sa.sum(sa.gelu(H)) * sa.sum(H), {**HE, **FIXED}),
    "absolute values": (sa.sum(sa.abs(ROWS)) * sa.sum(ROWS) ** 2, {ROWS: NORMAL}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_one_answer_holds_at_all_small_sizes(name: str) -> None:
    quantity, law = RANDOM[name]
    answer, rng, draws = sa.expectation(quantity, law), np.random.default_rng(3), 100000
    function = sa.lambdify(list(law), quantity)
    for size in itertools.product((1, 2, 3), repeat=2):
        at = dict(zip((D, N), size, strict=True))
        fixed: dict[str, np.ndarray] = {}
        arrays = []
        for x, own in law.items():
            shape = [int(sympy.sympify(s).subs(at)) for s in x.shape]
            if own == "constant":
                arrays.append(rng.normal(size=shape))
                fixed[str(x.name)] = arrays[-1]
            else:
                mean, variance = (float(own.known(order).subs(at)) for order in (1, 2))
                arrays.append(mean + variance**0.5 * rng.normal(size=(draws, *shape)))
        found = np.broadcast_to(function(*arrays), (draws,))
        told = (
            answer.subs(at)
            .doit()
            .replace(
                lambda e: isinstance(e, sympy.Indexed),
                lambda e, fixed=fixed: sympy.Float(fixed[str(e.base)][tuple(map(int, e.indices))]),
            )
        )
        told = complex(sympy.N(told)).real
        assert abs(found.mean() - told) <= 5 * found.std() / draws**0.5 + 1e-12
