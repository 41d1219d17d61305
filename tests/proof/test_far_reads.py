"""Claims at places that no array of a trial reaches: what is read there is a tensor of its own."""

import pytest

import symattn as sa
from symattn.proof.given import Given

n, m = sa.sizes("n m")
x, W = sa.tensor("x", n), sa.tensor("W", n, m)
FAR = 10**20

TRUE = {
    "itself": lambda: (x[FAR], x[FAR]),
    "twice": lambda: (2 * x[FAR], x[FAR] + x[FAR]),
    "neighbours": lambda: (x[FAR] + x[FAR + 1], x[FAR + 1] + x[FAR]),
    "beside a near one": lambda: (x[FAR] * x[0], x[0] * x[FAR]),
    "a slice": lambda: (2 * x[FAR : FAR + 3], x[FAR : FAR + 3] + x[FAR : FAR + 3]),
    "a row": lambda: (sa.sum(sa.softmax(W[FAR])), 1 * sa.ones()),
    "an entry": lambda: (sa.exp(W[FAR, 3]) * sa.exp(W[3, FAR]), sa.exp(W[FAR, 3] + W[3, FAR])),
    "a quotient": lambda: (x[FAR] / x[FAR], 1 * sa.ones()),
    "a name": lambda: (sa.let("u", sa.exp(x[FAR])) ** 2, sa.exp(2 * x[FAR])),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_holds_of_any_entry_is_proved_of_a_far_one(name):
    verdict = sa.prove(*TRUE[name]())
    assert verdict.status == "proved"
    assert f"{FAR}" in str(verdict)
    assert any("<= n" in condition for condition in verdict.proof.side_conditions)
    assert verdict.proof.witness.check()
    assert verdict.proof.check()
    assert "The places that are read differ" in verdict.proof.text()
    assert r"\textbf{Proof.}" in verdict.latex()


FALSE = {
    "twice": lambda: (2 * x[FAR], x[FAR]),
    "a neighbour": lambda: (x[FAR], x[FAR + 1]),
    "a near one": lambda: (x[FAR], x[0]),
    "a slice": lambda: (x[FAR : FAR + 3], x[FAR + 3 : FAR + 6]),
    "a row": lambda: (sa.sum(W[FAR]), 1 * sa.ones()),
}


@pytest.mark.parametrize("name", FALSE)
def test_what_fails_is_refuted_at_a_size_that_reaches_it(name):
    verdict = sa.prove(*FALSE[name]())
    assert verdict.status == "refuted"
    assert verdict.counterexample.sizes[n] > FAR
    assert verdict.counterexample.left != verdict.counterexample.right


def test_inequalities_read_far_entries_as_well():
    assert sa.prove(sa.le(0, x[FAR] ** 2))
    assert sa.prove(sa.lt(0, x[FAR] ** 2)).status == "refuted"
    assert sa.prove(sa.lt(0, sa.tensor("p", n, positive=True)[FAR]))


APART = {
    "the whole is read": lambda: (x[FAR] + sa.sum(x), sa.sum(x) + x[FAR]),
    "parts overlap": lambda: (sa.sum(x[FAR : FAR + 2]), x[FAR] + x[FAR + 1]),
    "its size is read": lambda: (x[FAR] + n, n + x[FAR]),
    "another has the size": lambda: (x[FAR] + sa.sum(sa.tensor("y", n)), sa.sum(sa.tensor("y", n)) + x[FAR]),
    "it is no list of free entries": lambda: (
        sa.tensor("A", n, n, symmetric=True)[FAR, 0], sa.tensor("A", n, n, symmetric=True)[0, FAR],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_parts_that_are_not_free_are_not_taken_apart(name):
    assert sa.prove(*APART[name]()).status == "unknown"


def test_a_proof_of_far_reads_is_of_its_own_claim_only():
    proof, other = sa.prove(2 * x[FAR], x[FAR] + x[FAR]).proof, sa.prove(2 * x[FAR + 1], x[FAR + 1] * 2).proof
    assert not proof.argument.proves(other.claim, Given((), (), ()))
    assert proof.argument.proves(proof.claim, Given((), (), ()))


def test_a_place_of_more_digits_than_python_writes_is_told_roughly():
    far = x[10**5000]
    verdict = sa.prove(2 * far, far + far)
    assert verdict.status == "proved"
    assert "where (about 1.00000e5000) <= n" in str(verdict)
    assert "5000" in verdict.latex()
    assert "x_far" in verdict.proof.text()
    assert sa.prove(far, 2 * far).status == "refuted"
    assert str(sa.prove(far, 2 * far))
    assert sa.prove(far, 2 * far).latex()
