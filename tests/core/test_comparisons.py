"""Formulas of indices that compare by == or != mean what no formula of symbols says, and are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa

T, S = sa.sizes("T S")
c = sympy.Symbol("c", positive=True)
x = sa.tensor("x", T)

WRONG: dict[str, Callable[..., Any]] = {
    "the diagonal": lambda i, j: i == j,
    "all but the diagonal": lambda i, j: i != j,
    "causal, without itself": lambda i, j: (j <= i) & (i != j),
    "a window, and the first": lambda i, j: (j <= i - 2) | (j == 0),
    "the one before": lambda i, j: i - j == 1,
    "two of a block": lambda i, j: i // 2 == j // 2,
    "each second": lambda i, j: i % 2 == 0,
    "the last row": lambda i, j: i == T - 1,
    "the last of both": lambda i, j: (i == T - 1) & (j == S - 1),
    "from the end": lambda i, j: (j < i) | (S - j == T - i),
    "numbers": lambda i, j: 1 if i == j else 0,
    "numbers of Python": lambda i, j: 0.5 if i != j else 1.5,
    "a scalar": lambda i, j: c if i == j else 0,
    "in a piecewise": lambda i, j: sympy.Piecewise((-1, i == j), (i, True)),
}
RIGHT: dict[str, Callable[..., Any]] = {
    "what is true either way": lambda i, j: (j <= i) | (j == 0),
    "a relation": lambda i, j: sympy.Eq(i, j),
    "a delta": lambda i, j: c * sympy.KroneckerDelta(i, j),
    "always": lambda i, j: True,
    "a float": lambda i, j: 0.1 * (i + 3 * j) / 0.7,
    "a choice outside": lambda i, j: i if S != T else j,
    "no value at 0": lambda i, j: (i + 1) / (j + 1),
    "a function": lambda i, j: sympy.cos(i / 10000 ** (2 * j / T)),
    "a question that hangs on a size": lambda i, j: i if (i >= 0) else j,
    "a sign": lambda i, j: (-1) ** (i + j) * sympy.sqrt((i - j) ** 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_comparison_by_python_is_refused_with_the_way_to_write_it(name):
    with pytest.raises(sa.OperandError, match=r"from_index: the formula is .* at \[.*write sympy.Eq\(i, j\)"):
        sa.from_index((T, S), WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_formulas_are_read(name):
    assert sa.from_index((T, S), RIGHT[name]).shape == (T, S)


def test_the_message_says_where_the_two_readings_differ():
    with pytest.raises(sa.OperandError) as failure:
        sa.from_index((3, 4), lambda i, j: i == j)
    assert str(failure.value) == (
        "from_index: the formula is True at [0, 0], but as a formula of indices it says False there: of symbols, == "
        "and != ask whether they are written alike; write sympy.Eq(i, j), sympy.Ne(i, j) or sympy.KroneckerDelta(i, j)"
    )


@pytest.mark.parametrize(
    "when", [lambda out, inp: out[0] == inp[0], lambda out, inp: out[0] != inp[0]], ids=["same", "another"]
)
def test_a_claim_of_independence_compares_by_relations_too(when):
    with pytest.raises(sa.OperandError, match=r"independent: when: the formula is .*write sympy.Eq"):
        sa.independent(x * x, x, when=when)
    apart = sa.independent(x * x, x, when=lambda out, inp: sympy.Ne(out[0], inp[0]))
    assert sa.prove(apart).status == "proved"
