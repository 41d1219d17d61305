"""Sequences of n + 1 places and their first n: what an induction on the number of steps goes through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy

from ...core.node import Tensor, rebuild, topological
from ...ops.leaves import variable

_INHERITED = {"binary", "integer", "positive", "constant", "symmetric"}  # properties that a first part has as well


class NoInductionError(Exception):
    """Why an induction does not apply, or which claim of it was not proved."""

    def __init__(self, reason: str, claim: Any = None) -> None:
        super().__init__(reason)
        self.claim = claim


def at_length(x: Tensor, T: sympy.Symbol, length: Any) -> Tensor:
    """The tensor for another number of steps."""
    return x.subs({T: length}) if T in x.free_symbols else x


def cut(x: Tensor, T: sympy.Symbol, n: sympy.Symbol, back: bool = False) -> Tensor:
    """The tensor at T = n, of the first n places of the named tensors at T = n + 1, or of the last ones."""
    if T not in x.free_symbols:
        return x
    first = {at_length(leaf, T, n): _kept_part(leaf, T, n, back) for leaf in sequences_in([x], T)}
    return rebuild([at_length(x, T, n)], first)[0]


def place(x: Tensor, at: Any) -> Tensor:
    """The element of a sequence at a place, which may be a symbol."""
    return x[at:][0]


def sequences_in(roots: Iterable[Tensor], T: sympy.Symbol) -> list[Tensor]:
    """The named tensors that have the number of steps in their shape."""
    return [leaf for leaf in topological(roots) if leaf.op is variable and T in leaf.own_symbols]


def part_of(leaf: Tensor, T: sympy.Symbol, whole: Any, length: Any, back: bool = False) -> Tensor:
    """The first part of a named tensor at T = whole, as long as it is at T = length; or the last."""
    counts = (sympy.expand(s.subs(T, length)) if T in s.free_symbols else None for s in leaf.shape)
    kept = (slice(None) if k is None else slice(-k, None) if back else slice(None, k) for k in counts)
    return at_length(leaf, T, whole)[tuple(kept)]


def _kept_part(leaf: Tensor, T: sympy.Symbol, n: sympy.Symbol, back: bool) -> Tensor:
    lost = [h for h in leaf.params["hypotheses"] if h not in _INHERITED]
    if lost:
        raise NoInductionError(f"{leaf.brief()} is {lost[0]}, which its first n places are not")
    return part_of(leaf, T, n + 1, n, back)
