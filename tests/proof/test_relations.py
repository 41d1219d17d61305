"""Relations of sizes that are given: one that gives a size is put for it, all others hold at every counterexample."""

from __future__ import annotations

import random

import pytest
import sympy
from sympy import Eq, Max, Min, Mod, Ne, floor

import symattn as sa
from symattn.errors import OperandError
from symattn.proof.refute.samples import Sizes
from symattn.proof.relations import Relations, solution

n, m, k = sa.sizes("n m k")
x = sa.tensor("x", n)
one = sa.ones()


@pytest.mark.parametrize(
    ("left", "right", "given"),
    [
        (sa.softmax(x), sa.ones(n), Eq((n - 1) * (n - 2), 0)),
        (m * one, one, Eq((n - 1) * (m - 1), 0)),
        (n * one, m * one, Eq((n - m) ** 2, n - m)),
        (n * one, 2 * one, Eq(n**2 + 6, 5 * n)),
        (n * one, m * one, Eq(n**2 * m, n * m**2 + n * m)),
        (n * one, 2 * m * one, Eq((n - 2 * m) * (n - 3 * m), 0)),
    ],
    ids=str,
)
def test_a_relation_with_several_roots_is_refuted_at_one_of_them(left, right, given):
    found = sa.prove(left, right, given=[given]).counterexample
    assert given.subs(found.sizes) == sympy.true
    assert found.left != found.right


def test_a_counterexample_is_one_of_what_was_asked():
    """Sizes that are put for others are among its sizes, with all that was given."""
    found = sa.prove(m * one, 3 * one, given=[Eq(n, m - 1), Eq(k, n + 1)]).counterexample
    assert found.sizes[m] > 1


@pytest.mark.parametrize(
    ("claim", "given"),
    [
        (sa.lt(one, m * one), Eq(n, m - 1)),
        (sa.lt(3 * one, m * one), Eq(m - 3, n)),
        (sa.lt(n * one, m * one), Eq(k, m - n)),
        (sa.le(2 * one, m * one), Eq(2 * m, 2 * n + 2)),
    ],
    ids=str,
)
def test_a_size_that_is_put_for_another_stays_at_least_1(claim, given):
    assert sa.prove(claim, given=[given]).status == "proved"


def test_a_size_that_may_be_put_for_another_is_not_made_larger():
    assert sa.prove(sa.lt(2 * one, m * one), given=[Eq(n, m - 1)]).counterexample.sizes[m] == 2
    assert sa.prove(sa.lt(one, m * one), given=[Eq(n, 2 * m - 3)]).status != "refuted"


@pytest.mark.parametrize("given", [Eq((n - m) ** 2, 0), Eq(n**2, m**2), Eq(n / m, 1), Eq(n * m, m**2), Eq(n**3, m**3)])
def test_an_equality_with_one_root_is_put(given):
    assert sa.prove(sa.sum(sa.ones(n)), m * one, given=[given]).status == "proved"


@pytest.mark.parametrize(
    ("relation", "found"),
    [
        (Eq(n, m - 1), (m, n + 1)),
        (Eq(n, 2 * m), (n, 2 * m)),
        (Eq(n, m / 2), (m, 2 * n)),
        (Eq(n * m, k), (k, n * m)),
        (Eq(n + m, 5), (m, 5 - n)),
        (Eq(2 * n, 3 * m), None),
        (Eq(n * m, m * k + 1), None),
        (Eq(n, floor(m / 2)), None),
        (Eq((n - 1) * (n - 2), 0), None),
        (n <= m, None),
    ],
    ids=str,
)
def test_what_gives_a_size(relation, found):
    assert solution(relation) == found


CONSTRAINTS = [
    Eq(Mod(n, 2), 0),
    Eq(Mod(n, 5), 3),
    Eq(m, floor(n / 2)),
    Eq(Max(n, m), 3),
    Eq(Min(n, m), 4),
    Eq(n**2 + m**2, 5),
    Eq(n**2 + m**2, 25),
    Eq(2 * n, 3 * m),
    Eq(n * m, 12),
    Eq(n + m, 5),
    Ne(n, m),
    n >= 40,
    (n > 6) & (m > n),
    (n > 6) | Eq(m, 7),
    sympy.Not(Eq(n, 2) | Eq(n, 3)),
    Eq(2**n, m),
]


@pytest.mark.parametrize("relation", CONSTRAINTS, ids=str)
def test_sizes_are_drawn_under_every_relation(relation):
    sizes, rng = Sizes([], [relation]), random.Random(0)
    for trial in range(20):
        drawn = sizes.draw(trial, rng)
        assert relation.subs(drawn) == sympy.true
        assert sizes._relations.hold(drawn)


@pytest.mark.parametrize("relation", CONSTRAINTS, ids=str)
def test_a_counterexample_satisfies_every_relation(relation):
    found = sa.prove((n + m) * n * one, 2 * one, given=[relation]).counterexample
    assert relation.subs(found.sizes) == sympy.true
    assert not sa.prove(sa.sum(x), (n + m) * one, given=[relation])


def test_relations_hold_for_sure_only():
    relations = Relations([Eq(n / (m - 1), 2), Ne(n, 6)])
    assert [relations.hold({n: a, m: b}) for a, b in ((2, 2), (1, 1), (6, 4), (4, 3))] == [True, False, False, True]


@pytest.mark.parametrize("given", [Eq(sympy.factorial(n), 6), n > 1.5, Eq(sympy.gamma(n), m)])
def test_relations_that_are_not_understood(given):
    with pytest.raises(OperandError, match=r"not understood: relations between sizes are equalities and inequalities"):
        sa.prove(x, x, given=[given])


@pytest.mark.parametrize(
    "given",
    [
        [n > m, m > n],
        [Eq(2 * n, 2 * m + 1)],
        [Eq(Mod(n, 2), 0), Eq(n, 3)],
        [Eq(n, m - 1), Eq(m, 1)],
        [Eq(n + m, 5), Eq(m, 7)],
        [Eq(n + m, 1)],
        [Eq(3 * n, 6 * m + 6 * k + 1), n > 3],
        [n >= 3, n < 3],
    ],
    ids=str,
)
def test_relations_that_leave_no_sizes(given):
    with pytest.raises(OperandError, match="contradicts itself"):
        sa.prove(x, x, given=given)


def test_the_error_speaks_of_what_was_given():
    with pytest.raises(OperandError, match=r"no sizes satisfy Eq\(n, m - 1\) and Eq\(m, 1\)$"):
        sa.prove(x, x, given=[Eq(n, m - 1), Eq(m, 1)])


def test_points_that_are_too_large_are_not_tried():
    W = sa.tensor("W", n, n)
    assert sa.prove(sa.softmax(W @ W), W, given=[n >= 500]).status == "unknown"


@pytest.mark.parametrize("given", [[Eq(m, 1)], [Eq(m, n), Eq(n, 1)]], ids=str)
def test_relations_that_leave_no_value_say_so(given):
    M = sa.tensor("M", n, m)
    for claim in (sa.le(M[:, 1], sa.max(M, axis=1)), sa.eq(M[:, 1:] + M[:, 1:], 2 * M[:, 1:])):
        with pytest.raises(OperandError, match="what is given leaves no value: . = 1, and index 1 is out of range"):
            sa.prove(claim, given=given)
