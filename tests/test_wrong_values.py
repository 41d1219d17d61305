"""Public functions given wrong values: what comes out is an error of symattn or of the caller's own object."""

import pytest

import symattn as sa

from .wrong_calls import run
from .wrong_values import Hostile


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
