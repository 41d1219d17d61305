"""Bounds on recurrences and quantities that they keep: proved by themselves, one step earlier, or never if false."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import Argument
from symattn.proof.engine import argued
from symattn.proof.given import applied, sorted_out

T, d = sa.sizes("T d")
x, u, X, X_1 = sa.tensor("x", T), sa.tensor("u", d), sa.tensor("X", T, d), sa.tensor("X", 1, d)
P, R = sa.tensor("P", d, d, permutation=True), sa.tensor("R", d, d, orthogonal=True)
M, M_ALL = sa.tensor("M", d, d), sa.tensor("W", T, d, d)


def last(step: Callable[..., Any], start: Any = 0, xs: Any = x) -> Any:
    return sa.scan(lambda s, t: (step(s, t), None), start, xs)[0]


def rows(step: Callable[..., Any], start: Any = 0, xs: Any = x) -> Any:
    return sa.scan(lambda s, t: (step(s, t),) * 2, start, xs)[1]


def symmetric(step: Callable[..., Any], xs: Any, start: Any = None) -> tuple[Any, ...]:
    S = last(step, sa.eye(d) if start is None else start, xs)
    return (sa.eq(S, S.T),)


def summed(s: Any, t: Any) -> Any:
    return s + t


def squares(s: Any, t: Any) -> Any:
    return s + t**2


TRUE: dict[str, Callable[[], tuple[Any, ...]]] = {
    "squares": lambda: (sa.le(0, last(squares)),),
    "running squares": lambda: (sa.le(0, rows(squares)),),
    "running squares above their start": lambda: (sa.le(u + sa.zeros(T, d), rows(squares, u, X)),),
    "a bounded function": lambda: (sa.lt(last(lambda s, t: sa.tanh(s + t)), 1),),
    "from the first step on": lambda: (sa.le(last(lambda s, t: sa.minimum(s, 1), 5), 1),),
    "a positive factor": lambda: (sa.lt(0, last(lambda s, t: s * sa.sigmoid(t), 2)),),
    "an output alone": lambda: (sa.lt(0, sa.scan(lambda s, t: (s - t, sa.exp(s)), 0, x)[1]),),
    "two sums": lambda: (sa.le(last(summed), last(lambda s, t: s + sa.abs(t))),),
    "what is given of all": lambda: (sa.le(0, last(sa.maximum)), sa.le(0, x)),
    "what is given of all, running": lambda: (sa.le(0, rows(summed)), sa.le(0, x)),
    "a sum in another order": lambda: (sa.eq(sa.sum(last(lambda s, t: P @ s, u)), sa.sum(u)),),
    "a length": lambda: (sa.eq(sa.sum(last(lambda s, t: R @ s, u) ** 2), sa.sum(u**2)),),
    "an average of one thing": lambda: (
        sa.eq(last(lambda s, t: (1 - sa.sigmoid(t)) * s + sa.sigmoid(t) * u, u), u),
    ),
    "a sum of squares of vectors": lambda: symmetric(lambda S, k: S + sa.outer(k, k), X),
    "moved from both sides": lambda: symmetric(lambda S, W: W @ S @ W.T, M_ALL),
    "the last of all states": lambda: (sa.eq(rows(summed)[-1], last(summed)),),
    "the last of running sums": lambda: (sa.eq(rows(summed)[-1], sa.sum(x)),),
    "the first output": lambda: (sa.eq(rows(lambda s, t: sa.tanh(s + t))[0], sa.tanh(x[0])),),
    "one step": lambda: (sa.eq(last(lambda s, t: t, sa.zeros(d), X_1), X_1[0]),),
    "a hypothesis": lambda: (sa.eq(last(summed), 0), sa.eq(last(summed), 0)),
}  # fmt: skip
FALSE: dict[str, Callable[[], tuple[Any, ...]]] = {
    "squares are more than 0": lambda: (sa.lt(0, last(squares)),),
    "running squares are more than 0": lambda: (sa.lt(0, rows(squares)),),
    "sums": lambda: (sa.le(0, last(summed)),),
    "below the start": lambda: (sa.le(rows(squares, u, X), u + sa.zeros(T, d)),),
    "a bound of the start alone": lambda: (sa.le(last(lambda s, t: s + 1, 0), 1),),
    "a bound of later steps alone": lambda: (sa.le(last(lambda s, t: s / 2, 4), 1),),
    "two sums turned round": lambda: (sa.le(last(lambda s, t: s + sa.abs(t)), last(summed)),),
    "a bound that grows": lambda: (sa.le(rows(lambda s, t: s + 1), sa.from_index((T,), lambda i: i)),),
    "what is given of another": lambda: (sa.le(0, last(sa.maximum, -1)), sa.le(0, sa.tensor("y", T))),
    "what is given of less": lambda: (sa.le(0, last(summed)), sa.le(-1, x)),
    "what is given of the last": lambda: (sa.le(0, last(summed)), sa.le(0, x[-1])),
    "what is given of a few steps": lambda: (sa.le(last(lambda s, t: s + 1), 5), sympy.Le(T, 6)),
    "not negative but the first": lambda: (sa.eq(last(lambda s, t: s + sa.abs(t)), sa.sum(x)), sa.le(0, x[1:])),
    "not negative in sums": lambda: (sa.eq(last(lambda s, t: s + sa.abs(t)), sa.sum(x)), sa.le(0, sa.cumsum(x))),
    "not negative at the end": lambda: (sa.eq(last(lambda s, t: s + sa.abs(t)), sa.sum(x)), sa.le(0, x[-1])),
    "not negative as a whole": lambda: (sa.eq(last(lambda s, t: s + sa.abs(t)), sa.sum(x)), sa.le(0, sa.sum(x))),
    "moved from one side": lambda: symmetric(lambda S, W: W @ S, M_ALL),
    "a start that is not symmetric": lambda: symmetric(lambda S, k: S + sa.outer(k, k), X, M),
    "an outer product of two": lambda: symmetric(lambda S, k: S + sa.outer(k, u), X),
    "a sum of products": lambda: (sa.eq(sa.sum(last(lambda s, t: M @ s, u)), sa.sum(u)),),
    "a fixed point of another start": lambda: (sa.eq(last(lambda s, t: s * s * t, 1), 1),),
    "a sign": lambda: (sa.eq(last(lambda s, t: -s, 1), 1),),
    "the first of all states": lambda: (sa.eq(rows(summed)[0], last(summed)),),
    "the last but one": lambda: (sa.eq(rows(summed, 0, x)[-1], sa.sum(x[:-1])),),
    "a state for an output": lambda: (sa.eq(sa.scan(lambda s, t: (s + t, s), 0, x)[1][-1], last(summed)),),
}


def proof_of(claim: Any, *given: Any) -> Argument | None:
    """A proof without any trial of the claim."""
    hypotheses, asked = sorted_out(claim, given)
    found = argued(*applied(hypotheses, asked), Budget(10))
    return found if isinstance(found, Argument) else None


@pytest.mark.parametrize("name", TRUE)
def test_a_claim_passes_from_step_to_step(name: str) -> None:
    claim, *given = TRUE[name]()
    verdict = sa.prove(claim, given=given)
    assert verdict.status == "proved", verdict
    assert verdict.proof.check()
    assert verdict.proof.text()
    assert verdict.proof.latex()


@pytest.mark.parametrize("name", FALSE)
def test_a_false_claim_passes_nowhere(name: str) -> None:
    assert proof_of(*FALSE[name]()) is None


def test_no_reason_calls_what_is_true_false() -> None:
    for claim in (
        sa.le(last(lambda s, t: sa.sin(s) + t - t), 1),
        sa.eq(sa.sum(last(lambda s, t: sa.softmax(s), u)), sa.sum(last(lambda s, t: sa.softmax(s) + 0 * t, u))),
        sa.eq(last(lambda s, t: sa.tanh(sa.maximum(s, t))), sa.tanh(sa.maximum(sa.max(x), 0)) - 0 * x[0]),
    ):
        verdict = sa.prove(claim)
        assert "false" not in getattr(verdict, "reason", ""), verdict
