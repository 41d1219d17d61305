"""Scalar formulas written out: sums become terms, indices numbers, and choices the branch that is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..errors import NoRuleError
from .formulas import Choice, InverseEntry, Max, Min, ScanEntry, UnknownOfRow, compared

Element = Callable[[Any, tuple[Any, ...]], Any]  # from the base of an Indexed and the indices to the scalar
_FOLDS: dict[type, Callable[..., Any]] = {
    sympy.Sum: sympy.Add,
    Max: partial(compared, sympy.Max),
    Min: partial(compared, sympy.Min),
}
_UNFOLDED: tuple[Any, ...] = (*_FOLDS, InverseEntry, UnknownOfRow, ScanEntry)


def written_out(formula: Any, element: Element, values: Mapping[Any, Any]) -> Any:
    """A formula with bound indices replaced by ``values``, sums over numbers as terms, and entries by ``element``.

    Only the branch of a choice that is taken is looked at, since the others may read outside of their tensor.
    """

    def again(part: Any) -> Any:
        return written_out(part, element, values)

    if formula in values:
        return values[formula]
    if isinstance(formula, _UNFOLDED) and (places := _places(formula.limits, element, values)) is not None:
        return _unfolded(formula, element, values, places)
    if isinstance(formula, Choice):
        condition = again(formula.args[0])
        if condition in (sympy.true, sympy.false):
            return again(formula.args[1] if condition == sympy.true else formula.args[2])
        return Choice(condition, again(formula.args[1]), again(formula.args[2]))
    if isinstance(formula, sympy.Indexed):
        return element(formula.base.label, tuple(map(again, formula.indices)))
    if isinstance(formula, sympy.exp):
        return _exp(again(formula.args[0]))
    if isinstance(formula, Relational):
        return compared(formula.func, *map(again, formula.args))
    return formula.func(*map(again, formula.args)) if formula.args else formula


def _exp(exponent: Any) -> Any:
    """The exponential, within the choices that may give -oo: elsewhere SymPy takes it to be positive."""
    for choice in exponent.atoms(Choice):
        if maybe_infinite(choice):
            condition, a, b = choice.args
            return Choice(condition, _exp(exponent.xreplace({choice: a})), _exp(exponent.xreplace({choice: b})))
    return sympy.exp(exponent)


def _places(limits: Any, element: Element, values: Mapping[Any, Any]) -> list[Mapping[Any, Any]] | None:
    """The values with each place of the bound indices, the last of them outermost; None where an end is no number."""
    if not limits:
        return [values]
    *inner, (k, *edges) = limits
    low, high = (written_out(edge, element, values) for edge in edges)
    if not low.is_Integer or not high.is_Integer:
        return None
    found = [_places(inner, element, {**values, k: sympy.Integer(i)}) for i in range(int(low), int(high) + 1)]
    return None if None in found else [at for places in found if places is not None for at in places]


def _unfolded(fold: Any, element: Element, values: Mapping[Any, Any], places: list[Mapping[Any, Any]]) -> Any:
    """A sum or an extreme term by term; an entry of an inverse by Cramer's rule."""
    if isinstance(fold, ScanEntry):
        raise NoRuleError("the entries of a recurrence are written out from its tensor, by as_explicit")
    if isinstance(fold, UnknownOfRow):
        raise NoRuleError(f"nothing is known of {fold.args[3]} but its name: its entries cannot be written out")
    terms = [written_out(fold.function, element, at) for at in places]
    if not isinstance(fold, InverseEntry):
        return _FOLDS[type(fold)](*terms)
    row, column = (int(written_out(at, element, values)) for at in fold.places)
    size = math.isqrt(len(terms))
    matrix = sympy.Matrix(size, size, terms).T  # its rows are the inner index
    return matrix.cofactor(column, row, method="berkowitz") / matrix.det(method="berkowitz")


def maybe_infinite(value: Any) -> bool:
    """Whether a choice in the formula may give -oo."""
    return any(choice.has(sympy.S.NegativeInfinity) for choice in value.atoms(Choice))
