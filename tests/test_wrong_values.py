"""Public functions given wrong values: what comes out is an error of symattn or of the caller's own object."""

import numpy as np
import pytest
import sympy

import symattn as sa

from .wrong_calls import run
from .wrong_values import Hostile

c = sympy.Symbol("c", real=True)


@pytest.mark.parametrize("seed", range(4))
def test_no_call_with_wrong_values_ends_in_an_exception_of_somebody_else(seed):
    tally = run(1500, seed)
    assert not tally.wrong, tally.wrong
    assert tally.counts["refused"] > 900


@pytest.mark.parametrize("value", [Hostile(), [10**5000], {"x": Hostile()}], ids=range(3))
@pytest.mark.parametrize(
    "ask",
    [
        sa.eye, sa.sizes, lambda v: sa.sum(sa.tensor("x", "n"), axis=v), lambda v: sa.let(v, sa.tensor("x", "n")),
        lambda v: sa.concat(v, axis=0), lambda v: sa.jvp(sa.tensor("x", "n"), v),
    ],
    ids=range(6),
)  # fmt: skip
def test_what_has_no_repr_is_described(ask, value):
    with pytest.raises(sa.SymattnError):
        ask(value)


@pytest.mark.parametrize("name", ["Tensor", "Integer", "array", "dict", "int", "list", "set", "str", "tuple"])
def test_a_class_of_others_that_has_a_known_name_is_described(name):
    with pytest.raises(sa.EvaluationError, match=rf"c is a number, not <.*\.{name} object"):
        sa.lambdify([c], c / 2)(type(name, (), {})())


def test_what_is_described_takes_one_line():
    with pytest.raises(sa.EvaluationError, match=r"c is a number, not masked_array\(data=\[1, 2\], mask=False, fill"):
        sa.lambdify([c], c / 2)(np.ma.array([1, 2]))
