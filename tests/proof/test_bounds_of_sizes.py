"""Bounds in sizes are compared by the relations between sizes that are given."""

from dataclasses import replace

import pytest

import symattn as sa
from symattn.proof.given import Given

k, m, n = sa.sizes("k m n")
x, one = sa.tensor("x", n), sa.ones()

TRUE = {
    "a number": (sa.le(n * one, 1000 * one), [n <= 1000]),
    "strictly": (sa.lt(n * one, 1001 * one), [n <= 1000]),
    "another size": (sa.lt(n * one, m * one), [n < m]),
    "the next whole number": (sa.le((n + 1) * one, m * one), [n < m]),
    "two relations": (sa.le(2 * n * one, m * one), [k + n <= m, n <= k]),
    "a quotient": (sa.le(one / n, one / 3), [n >= 3]),
    "quotients": (sa.lt(one / n, one / m), [n > m]),
    "a fraction of a size": (sa.lt(n * one / 2, 1000 * one), [n < 2000]),
    "a sum": (sa.le(sa.sum(sa.sigmoid(x)), m * one), [n <= m]),
    "a mean": (sa.le(sa.mean(sa.sigmoid(x)), n * one / 5), [n >= 5]),
    "beside a claim": (sa.le(sa.sum(x), m * one), [n <= m, sa.le(x, 1)]),
    "a difference of sizes": (sa.le(0, (n - 3) * one), [n >= 4]),
    "joined": (sa.le(n * one, 1000 * one), [(n <= 500) & (m <= 3)]),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_relations_of_sizes_imply_is_proved(name):
    claim, given = TRUE[name]
    verdict = sa.prove(claim, given=given)
    assert verdict.status == "proved"
    assert verdict.proof.check()
    assert "compared by" in verdict.proof.text()
    assert "compared by" in verdict.proof.latex()
    assert not sa.prove(claim)


FALSE = {
    "one too many": (sa.le(n * one, 999 * one), [n <= 1000]),
    "not strictly": (sa.lt(n * one, 1000 * one), [n <= 1000]),
    "a fraction of a size": (sa.le(n * one / 2, 1000 * one), [n <= 2001]),
    "the other way": (sa.lt(m * one, n * one), [n <= m]),
    "quotients": (sa.lt(one / n, one / m), [n >= m]),
    "a sum": (sa.le(sa.sum(x), m * one), [n <= m + 1, sa.le(x, 1)]),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_they_do_not_imply_is_not(name):
    claim, given = FALSE[name]
    assert sa.prove(claim, given=given).status == "refuted"


def test_a_proof_rests_on_the_relations_that_it_names():
    proof = sa.prove(*TRUE["a number"][:1], given=TRUE["a number"][1]).proof
    argument = proof.argument
    assert argument.proves(proof.claim, Given((), (n <= 1000,), (n <= 1000,)))
    assert not argument.proves(proof.claim, Given((), (n <= 2000,), (n <= 2000,)))
    assert not argument.proves(proof.claim, Given((), (), ()))
    assert not replace(argument, relations=(n <= 2000,)).check()
    assert not replace(argument, relations=()).check()


def test_a_condition_that_follows_from_sizes_is_not_listed():
    log = sa.log(x * 0 + (n - 3))
    assert sa.prove(log + 0 * x, log, given=[n >= 4]).proof.side_conditions == ()
    assert sa.prove(log + 0 * x, log, given=[n >= 3]).proof.side_conditions != ()
