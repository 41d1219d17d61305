"""Sums over indices that indicators compare: equal where they are so in each order of the indices, and nowhere else."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.equality.decide import compare

n = sa.sizes("n")
A, x = sa.tensor("A", n, n), sa.tensor("x", n)
WEAK = sa.from_index((n, n), lambda i, j: i <= j)
STRICT = sa.from_index((n, n), lambda i, j: i < j)
SAME = sa.eye(n)
LETTERS = "tij"


def same(a: Any, b: Any) -> bool:
    return compare(a, b, (), Budget(20)).equal


def summed(*gates: tuple[Any, str]) -> Any:
    """The sum over i and j of A_ij x_t, and of indicators of pairs of t, i and j."""
    matrices, pairs = zip(*gates, strict=True)
    return sa.einsum(",".join(["ij", "t", *pairs]) + "->t", A, x, *matrices)


TRUE = {
    "a chain": (summed((WEAK, "it"), (WEAK, "tj"), (WEAK, "ij")), summed((WEAK, "it"), (WEAK, "tj"))),
    "a circle": (summed((WEAK, "it"), (WEAK, "tj"), (WEAK, "ji")), summed((SAME, "it"), (SAME, "tj"))),
    "a strict circle": (summed((STRICT, "it"), (WEAK, "tj"), (WEAK, "ji")), sa.zeros(n)),
    "the later of two": (
        summed((WEAK, "ij"), (WEAK, "it")),
        summed((WEAK, "ij"), (WEAK, "jt")) + summed((WEAK, "it"), (STRICT, "tj")),
    ),
}
FALSE = {
    "a chain of two that meet": (summed((WEAK, "it"), (WEAK, "jt"), (WEAK, "ij")), summed((WEAK, "it"), (WEAK, "jt"))),
    "a circle with a way out": (summed((WEAK, "it"), (WEAK, "tj"), (WEAK, "ij")), summed((SAME, "it"), (SAME, "tj"))),
    "a weak circle": (summed((WEAK, "it"), (WEAK, "tj"), (WEAK, "ji")), sa.zeros(n)),
    "the later of two, counted twice": (
        summed((WEAK, "ij"), (WEAK, "it")),
        summed((WEAK, "ij"), (WEAK, "jt")) + summed((WEAK, "it"), (WEAK, "tj")),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_orders_that_agree(name: str) -> None:
    assert same(*TRUE[name])


@pytest.mark.parametrize("name", FALSE)
def test_orders_that_differ(name: str) -> None:
    assert not same(*FALSE[name])


def in_orders(gates: list[tuple[Any, str]]) -> list[tuple[Any, ...]]:
    """The orders of t, i and j in which indicators are 1, each as a chain of indicators."""
    compared = {WEAK: int.__le__, STRICT: int.__lt__, SAME: int.__eq__}
    ranks = (dict(zip(LETTERS, r, strict=True)) for r in itertools.product(range(3), repeat=3))
    ranks = [r for r in ranks if sorted({*r.values()}) == list(range(max(r.values()) + 1))]
    held = [r for r in ranks if all(compared[gate](r[a], r[b]) for gate, (a, b) in gates)]
    return [tuple(_chain(r)) for r in held]


def _chain(rank: dict[str, int]) -> Any:
    order = sorted(LETTERS, key=rank.__getitem__)
    for a, b in itertools.pairwise(order):
        yield (STRICT if rank[a] < rank[b] else SAME), a + b


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow) if k > 5 else k for k in range(60)])
def test_a_sum_is_that_of_its_orders_and_of_no_fewer(seed: int) -> None:
    draw = random.Random(seed)
    pairs = list(map("".join, itertools.permutations(LETTERS, 2)))
    gates = [(draw.choice([WEAK, WEAK, STRICT, SAME]), pair) for pair in draw.sample(pairs, 3)]
    cases = in_orders(gates)
    total = sum((summed(*case) for case in cases), sa.zeros(n))
    assert same(summed(*gates), total)
    if cases:
        assert not same(summed(*gates), total - summed(*draw.choice(cases)))
        assert not same(summed(*gates), total * sympy.Rational(3, 2))
