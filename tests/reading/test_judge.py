"""The judge of readers: it knows the meanings again in other forms, and tells edited ones from them."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa

from ..shares import one_in
from .formulas import formulas, told
from .judge import distinct, is_meant, is_refused, may_be_refused, same
from .meaning import values_of
from .meanings import all_meanings

MEANINGS = all_meanings()
VALUED = [id for id, meaning in MEANINGS.items() if values_of(meaning) and not is_refused(meaning)]
MASKS = ["x15", "x90"]  # and m27, of a window
n, m, d = sa.sizes("n m d")
Q, K = sa.tensor("Q", n, d), sa.tensor("K", m, d)


def test_values_are_one_value_in_other_forms():
    assert same(Q @ K.T, (K @ Q.T).T)
    assert same(sa.einsum("id,jd->ij", Q, K), Q @ K.T)
    assert same(sa.einsum("id,jd->ji", Q, K), Q @ K.T)  # of other sizes: the axes have other places
    assert same(sympy.sqrt(d) ** 2, d)
    assert same(sa.tensor("t") * 0 + d, d)
    assert same(d, d * sa.ones(n))


def test_values_are_two():
    square = sa.tensor("A", n, n)
    assert not same(square, square.T)
    assert not same(Q @ K.T, 2 * Q @ K.T)
    assert not same(Q, K)
    assert not same(sympy.sqrt(d), d)
    assert not same(sa.sum(Q), sa.sum(Q, axis=-1))
    i, j = sympy.symbols("i j", integer=True)
    assert not same(sympy.Piecewise((0, i >= j), (1, True)), sympy.Piecewise((0, i > j), (1, True)))


def test_repeated_values_are_one():
    assert distinct([Q @ K.T, (K @ Q.T).T, Q, Q]) == [Q @ K.T, Q]


@pytest.mark.parametrize("id", one_in(4, [id for id in VALUED if id not in (*MASKS, "m27")]))
def test_a_meaning_is_meant_and_an_altered_one_is_not(id):
    meaning = MEANINGS[id]
    values = values_of(meaning)
    assert is_meant(values, meaning)
    assert not is_meant([*values[:-1], -values[-1]], meaning)
    assert not is_meant([*values, values[-1] + 1], meaning)


@pytest.mark.parametrize("id", MASKS)
def test_masks_are_known_by_what_they_leave_over(id):
    T = sa.sizes("T")

    def mask(keep):
        return sa.from_index((T, T), lambda i, j: sympy.Piecewise((0, keep(i, j)), (-sympy.oo, True)))

    assert is_meant([mask(lambda i, j: ~(j > i))], MEANINGS[id])
    assert not is_meant([mask(lambda i, j: j >= i)], MEANINGS[id])
    assert not is_meant([mask(lambda i, j: j < i)], MEANINGS[id])
    assert not is_meant([sa.zeros(T, T)], MEANINGS[id])


def test_the_name_that_is_defined_may_be_among_the_values():
    meaning = MEANINGS["s3-08"]
    left = [sa.tensor(name, *x.shape) for name, x in zip("QK", values_of(meaning), strict=True)]
    assert is_meant([left[0], values_of(meaning)[0], left[1], values_of(meaning)[1]], meaning)
    assert not is_meant(left, meaning)


def test_what_may_be_refused():
    assert [id for id, meaning in MEANINGS.items() if is_refused(meaning)] == ["s4-06", "x19", "x40", "x45"]
    assert [id for id, meaning in MEANINGS.items() if may_be_refused(meaning)] == [
        "s4-06", "x17", "x19", "x40", "x45", "x57", "x66", "x77", "x88",
    ]  # fmt: skip
    assert not is_meant([], MEANINGS["x40"])


def test_readers_are_told_ranges():
    assert told(formulas()["x67"])["r"] == "1-n..n-1"
    assert told(formulas()["x22"]).keys() >= {"b", "t", "h", "j"}
    assert told(formulas()["x02"]).keys() == {"Q", "K", "V"}
