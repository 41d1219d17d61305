"""Products of matrices of which something is given, held against matrices that satisfy it.

In each world the hypotheses have general solutions in numbers. All products up to a length are brought to their forms
by what follows from the hypotheses: those of one form have to be one matrix in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.completion.consequences import Reading, completed

n, m = sa.sizes("n m")
A, B, C = (sa.tensor(name, n, n) for name in "ABC")
S = sa.tensor("S", n, n, symmetric=True)
U = sa.tensor("U", n, n, orthogonal=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
F, G = sa.tensor("F", n, m), sa.tensor("G", m, n)
u = sa.tensor("u", n)
I, ones = sa.eye(n), sa.ones(n)
Arrays = dict[str, np.ndarray[Any, Any]]
World = tuple[tuple[Any, ...], tuple[sa.Tensor, ...], Callable[[np.random.Generator], Arrays]]
N, M = 5, 3


def square(rng: np.random.Generator) -> Any:
    return rng.normal(size=(N, N))


def orthogonal(rng: np.random.Generator) -> Any:
    return np.linalg.qr(square(rng))[0]


def permutation(rng: np.random.Generator) -> Any:
    return np.eye(N)[[1, 2, 0, 4, 3]] if rng.random() < 0.5 else np.eye(N)[[1, 2, 3, 4, 0]]


def projection(rng: np.random.Generator) -> Any:
    x = square(rng)
    return x @ np.diag([1, 1, 1, 0, 0]) @ np.linalg.inv(x)


def polynomial(x: Any, rng: np.random.Generator) -> Any:
    return sum(c * np.linalg.matrix_power(x, k) for k, c in enumerate(rng.normal(size=3)))


def inverses(rng: np.random.Generator) -> Arrays:
    a = square(rng)
    return {"A": a, "B": np.linalg.inv(a), "C": square(rng)}


def general(rng: np.random.Generator) -> Arrays:
    return {"A": square(rng), "B": square(rng)}


def commuting(rng: np.random.Generator) -> Arrays:
    a = square(rng)
    return {"A": a, "B": polynomial(a, rng), "C": square(rng)}


def intertwined(rng: np.random.Generator) -> Arrays:
    e, p = square(rng), permutation(rng)
    return {"A": e, "B": e @ p @ np.linalg.inv(e), "Pi": p, "C": square(rng)}


def invariant(rng: np.random.Generator) -> Arrays:
    p = permutation(rng)
    x = square(rng)
    powers = [np.linalg.matrix_power(p, k) for k in range(30)]
    return {"A": sum(q @ x @ q.T for q in powers) / 30, "Pi": p, "B": square(rng)}


def projecting(rng: np.random.Generator) -> Arrays:
    a, s = projection(rng), square(rng)
    return {"A": a, "S": s + s.T, "U": orthogonal(rng)}


def one_sided(rng: np.random.Generator) -> Arrays:
    f = rng.normal(size=(M, N)).T  # n = 5, m = 3: G F = I of size m
    return {
        "F": f,
        "G": np.linalg.pinv(f) + rng.normal(size=(M, N)) @ (np.eye(N) - f @ np.linalg.pinv(f)),
        "A": square(rng),
    }


def stochastic(rng: np.random.Generator) -> Arrays:
    a, b = np.abs(square(rng)), np.abs(square(rng))
    return {"A": a / a.sum(1, keepdims=True), "B": b / b.sum(1, keepdims=True), "C": square(rng), "u": square(rng)[0]}


def fixed(rng: np.random.Generator) -> Arrays:
    q, v = orthogonal(rng), square(rng)[0]
    a = np.eye(N) + (square(rng) @ (np.eye(N) - np.outer(v, v) / (v @ v)))
    plane = np.linalg.qr(np.column_stack([v, square(rng)[:, :4]]))[0]
    turn = plane @ np.block([[np.eye(1), np.zeros((1, 4))], [np.zeros((4, 1)), np.linalg.qr(q[:4, :4])[0]]]) @ plane.T
    return {"A": a, "U": turn, "u": v}


def antisymmetric(rng: np.random.Generator) -> Arrays:
    a = square(rng)
    return {"A": a - a.T, "S": np.eye(N), "B": square(rng)}


WORLDS: dict[str, World] = {
    "inverses": ((sa.eq(A @ B, I),), (A, B, C), inverses),
    "commuting": ((sa.eq(A @ B, B @ A),), (A, B, sa.inv(A)), commuting),
    "intertwined": ((sa.eq(A @ Pi, B @ A),), (A, B, Pi, sa.inv(B)), intertwined),
    "invariant": ((sa.eq(Pi @ A @ Pi.T, A),), (A, Pi, B), invariant),
    "projection": ((sa.eq(A @ A, A),), (A, S, U), projecting),
    "one-sided": ((sa.eq(G @ F, sa.eye(m)),), (F, G, A), one_sided),
    "stochastic": ((sa.eq(sa.sum(A, axis=-1), ones), sa.eq(B @ ones, ones)), (A, B, C, u, ones), stochastic),
    "fixed": ((sa.eq(A @ u, u), sa.eq(U @ u, u)), (A, U, u), fixed),
    "pushed through": ((), (A, B, sa.inv(I + A @ B), sa.inv(I + B @ A)), general),
    "antisymmetric": ((sa.eq(A.T, -A),), (A, B, sa.inv(I + A)), antisymmetric),
}


def products(letters: Sequence[sa.Tensor], longest: int) -> list[sa.Tensor]:
    """All products of up to so many letters, transposed or not."""
    turned = [y for x in letters for y in ([x, x.T] if x.rank == 2 else [x])]
    rows = [turned]
    for _ in range(longest - 1):
        rows.append([x @ y for x in rows[-1] if x.rank == 2 for y in turned if x.shape[1] == y.shape[0]])
    return list(dict.fromkeys(x for row in rows for x in row))


def value(x: sa.Tensor, at: Arrays, known: dict[sa.Tensor, Any]) -> Any:
    """A product in numbers."""
    if x not in known:
        below = [value(y, at, known) for y in x.inputs]
        known[x] = OPERATIONS[x.op.name](*below) if x.inputs else at[x.name]
    return known[x]


OPERATIONS = {"matmul": np.matmul, "transpose": np.transpose, "inv": np.linalg.inv, "add": np.add}


def classes(world: World, longest: int, seed: int) -> tuple[dict[Any, set[Any]], int]:
    """For each form to which products come what they are in numbers, and how many forms there are for equal numbers."""
    given, letters, sample = world
    asked = products(letters, longest)
    reading = Reading([*asked, *(x for g in given for x in g.sides)])
    found = completed(given, reading, Budget(20.0))
    again = Reading(asked, found.rules, sorted(k for k, _ in found.leads))
    known: dict[sa.Tensor, Any] = {I: np.eye(N), ones: np.ones(N)}
    at = sample(np.random.default_rng(seed))
    forms: dict[Any, set[Any]] = {}
    for x in asked:
        form = (x.shape, frozenset((again.words[x] or {}).items()))
        number = value(x, at, known)
        forms.setdefault(form, set()).add((number.shape, *(np.round(number.ravel(), 5) + 0.0)))
    numbers = {number for held in forms.values() for number in held}
    return forms, len(forms) - len(numbers)


@pytest.mark.parametrize("longest", [3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WORLDS)
def test_products_of_one_form_are_equal_in_numbers(name, longest):
    forms, _ = classes(WORLDS[name], longest, 0)
    assert all(len(numbers) == 1 for numbers in forms.values())
