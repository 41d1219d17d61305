"""Relations that leave finitely many sizes: a claim is decided by all of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import sympy
from sympy import Eq, Ge, Le, Lt, Max, Mod

import symattn as sa
from symattn.proof.size_cases import SizeCases, sizes_left

n, m, k = sa.sizes("n m k")
x, y, A, one = sa.tensor("x", n), sa.tensor("y", m), sa.tensor("A", n, n), sa.ones()
WINDOW, CAUSAL = sa.attention.sliding_window_mask, sa.attention.causal_mask
INDEX = sa.from_index((n,), lambda i: i * (i - 1) * (i - 2))
SQUARES, FACTORS = Eq(n**2 + m**2, 5), Eq(n * m, 6)


@pytest.mark.parametrize(
    "relations",
    [
        [SQUARES],
        [FACTORS],
        [Le(n, 3)],
        [Lt(n + m, 5)],
        [Eq((n - 1) * (n - 2), 0)],
        [Le(n**2, 5 * n)],
        [Eq(Max(n, m), 3)],
        [Le(n, 3), Le(m, n)],
        [Le(n * m + 2 * n, 9), Ge(m, 2)],
        [Le(2 * n - m, 1), Le(m, 3)],
        [Le(n, 6), Eq(Mod(n, 2), 0)],
        [(n <= 2) & (m <= 2), sympy.Ne(n, m)],
        [Le(n / 2 + m / 3, 2)],
    ],
    ids=str,
)
def test_the_sizes_that_are_left_are_all_there_are(relations):
    found = sizes_left(relations)
    symbols = sorted({s for r in relations for s in r.free_symbols}, key=str)
    every = (dict(zip(symbols, values, strict=True)) for values in itertools.product(range(1, 14), repeat=len(symbols)))
    assert found == [sizes for sizes in every if all(r.subs(sizes) == sympy.true for r in relations)]


@pytest.mark.parametrize(
    "relations",
    [[Ge(n, 2)], [Eq(n, m)], [Le(n, m)], [Eq(n**2, m**2 + 1)], [Le(n - m, 3)], [Le(n, 3) | Eq(m, 1)], [Le(n, 1000)]],
    ids=str,
)
def test_sizes_that_are_not_bounded_or_are_many(relations):
    assert sizes_left(relations) is None


def test_a_size_that_is_not_bounded_stays_free():
    assert sizes_left([Le(n, 2), Ge(m, 2)]) == [{n: 1}, {n: 2}]
    verdict = sa.prove(sa.sum(x[:, None] * y) * (n - 1) * (n - 2), 0 * one, given=[Le(n, 2), Ge(m, 2)])
    assert verdict
    assert verdict.proof.check()


TRUE = {
    "a product of roots": (sa.eq(n * (n - 1) * (n - 2) * (n - 3) * one, 0 * one), [Le(n, 3)]),
    "a sum of squares": (sa.eq((n + m) * one, 3 * one), [SQUARES]),
    "a product of squares": (sa.eq(n * m * x, 2 * x), [SQUARES]),
    "divisors": (sa.eq((n - 1) * (n - 2) * (n - 3) * (n - 6) * x, 0 * x), [FACTORS]),
    "a bound of divisors": (sa.le((n + m) * one, 7 * one), [FACTORS]),
    "two roots": (sa.eq((n - 1) * (n - 2) * x, 0 * x), [Eq((n - 1) * (n - 2), 0)]),
    "entries": (sa.eq(INDEX, sa.zeros(n)), [Le(n, 3)]),
    "weights": (sa.eq(sa.softmax(x), sa.softmax(x + n * (n - 1) * (n - 2) * INDEX)), [Le(n, 2)]),
    "a window": (sa.eq(WINDOW(n, n, left=3, right=0), CAUSAL(n, n)), [Le(n, 4)]),
    "diagonals": (sa.eq(sa.triu(A, 4), 0 * A), [Le(n, 4)]),
    "a maximum": (sa.eq(sa.sum(x) * (n - 1) * (n - 2) * (n - 3), 0 * one), [Eq(Max(n, m), 3)]),
    "one score": (sa.eq(sa.softmax(x), sa.ones(n)), [Le(n**2, n)]),
    "matrices of one entry": (sa.eq(A @ A.T, A.T @ A), [Lt(n, 2)]),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_claim_that_holds_at_all_of_them_is_proved(name):
    claim, given = TRUE[name]
    verdict = sa.prove(claim, given=given)
    assert verdict, str(verdict)
    assert verdict.proof.check()
    assert verdict.proof.witness.check()


FALSE = {
    "a product of roots": (sa.eq(n * (n - 1) * (n - 2) * (n - 3) * one, 0 * one), [Le(n, 4)]),
    "a sum of squares": (sa.eq((2 * n + m) * one, 4 * one), [SQUARES]),
    "divisors": (sa.eq((n - 1) * (n - 2) * (n - 6) * x, 0 * x), [FACTORS]),
    "a bound of divisors": (sa.le((n + m) * one, 6 * one), [FACTORS]),
    "entries": (sa.eq(INDEX, sa.zeros(n)), [Le(n, 4)]),
    "a window": (sa.eq(WINDOW(n, n, left=3, right=0), CAUSAL(n, n)), [Le(n, 5)]),
    "diagonals": (sa.eq(sa.triu(A, 3), 0 * A), [Le(n, 4)]),
    "one score": (sa.eq(sa.softmax(x), sa.ones(n)), [Le(n, 2)]),
    "matrices": (sa.eq(A @ A.T, A.T @ A), [Le(n, 2)]),
    "the other size": (sa.eq((m - 1) * (m - 2) * one, 0 * one), [Le(n, 3)]),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_that_fails_at_one_of_them_is_refuted(name):
    claim, given = FALSE[name]
    found = sa.prove(claim, given=given).counterexample
    assert all(relation.subs(found.sizes) == sympy.true for relation in given)


def test_the_proof_says_at_which_sizes_it_was_proved():
    proof = sa.prove(*TRUE["a sum of squares"][:1], given=[SQUARES]).proof
    assert isinstance(proof.argument, SizeCases)
    assert "What is given leaves finitely many sizes, and the claim holds at each.\nAt m = 1, n = 2:\n" in proof.text()
    assert "At $m = 2$, $n = 1$: " in proof.latex()


def test_a_proof_that_leaves_out_a_size_does_not_check():
    proof = sa.prove(*TRUE["entries"][:1], given=[Le(n, 3)]).proof
    cases = proof.argument.cases
    assert proof.check()
    assert not replace(proof, argument=SizeCases(cases[1:])).check()
    assert not replace(proof, argument=SizeCases((*cases[:2], (cases[2][0], cases[0][1])))).check()
    assert not replace(proof, given=(Le(n, 4),)).check()
