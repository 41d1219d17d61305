"""Entry formulas whose indices are counted from 1, as on paper; everywhere else they are counted from 0."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..errors import OperandError, described
from ..scalars.formulas import Max, Min, Ranged, _OfAll

_SHARPER = {sympy.Lt: sympy.Le, sympy.Ge: sympy.Gt}  # of integers, i - 1 < n is i <= n


def checked_first_index(first: Any, function: str = "latex") -> int:
    """From where indices are counted, or an OperandError."""
    if isinstance(first, bool) or not isinstance(first, (int, sympy.Integer)) or first not in (0, 1):
        raise OperandError(f"{function}: first_index is 0 or 1, not {described(first)}")
    return int(first)


def from_one(formula: Any, index: Collection[sympy.Symbol]) -> Any:
    """The formula of an entry at an index that is counted from 1; so are its bound indices and what it reads."""

    def places(parts: Any) -> list[Any]:
        return [from_one(part, index) + 1 for part in parts]

    if formula in index or isinstance(formula, sympy.Dummy):
        return formula - 1
    if isinstance(formula, sympy.Indexed):
        return formula.base[tuple(places(formula.indices))]
    if isinstance(formula, sympy.KroneckerDelta):
        return sympy.KroneckerDelta(*places(formula.args))
    if isinstance(formula, _OfAll):
        inside = from_one(formula.function, index)
        return formula.func(inside, formula.limits, places(formula.places), *formula.args[3:])
    if isinstance(formula, (sympy.Sum, Max, Min)):
        limits = [(k, *places(ends)) for k, *ends in formula.limits]
        return formula.func(from_one(formula.function, index), *limits)
    if isinstance(formula, Ranged):
        return from_one(formula.args[0], index)
    if not formula.args:
        return formula
    parts = [from_one(part, index) for part in formula.args]
    return _relation(formula, *parts) if isinstance(formula, Relational) else formula.func(*parts)


def _relation(relation: Relational, left: Any, right: Any) -> Relational:
    """The relation with no 1 taken from both sides, or from the left one where the next sign says the same."""
    ones = [side.as_coeff_Add()[0] for side in (left, right)]
    if ones == [-1, -1]:
        left, right = left + 1, right + 1
    elif ones == [-1, 0] and relation.func in _SHARPER and left.is_integer and right.is_integer:
        return _SHARPER[relation.func](left + 1, right, evaluate=False)
    return relation.func(left, right, evaluate=False)
