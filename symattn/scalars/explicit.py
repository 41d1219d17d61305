"""Scalar formulas written out: sums become terms, indices numbers, and choices the branch that is taken."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..errors import NoRuleError
from .formulas import Choice, InverseEntry, Max, Min, UnknownOfRow, compared

Element = Callable[[Any, tuple[Any, ...]], Any]  # from the base of an Indexed and the indices to the scalar
_FOLDS: dict[type, Callable[..., Any]] = {
    sympy.Sum: sympy.Add,
    Max: partial(compared, sympy.Max),
    Min: partial(compared, sympy.Min),
}
_UNFOLDED: tuple[Any, ...] = (*_FOLDS, InverseEntry, UnknownOfRow)


def written_out(formula: Any, element: Element, values: Mapping[Any, Any]) -> Any:
    """A formula with bound indices replaced by ``values``, sums over numbers as terms, and entries by ``element``.

    Only the branch of a choice that is taken is looked at, since the others may read outside of their tensor.
    """

    def again(part: Any) -> Any:
        return written_out(part, element, values)

    if formula in values:
        return values[formula]
    if isinstance(formula, _UNFOLDED) and _is_numeric(formula.limits):
        return _unfolded(formula, element, values)
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


def _is_numeric(limits: Any) -> bool:
    return all(edge.is_Integer for _, *edges in limits for edge in edges)


def _unfolded(fold: Any, element: Element, values: Mapping[Any, Any]) -> Any:
    """A sum or an extreme term by term; an entry of an inverse by Cramer's rule."""
    if isinstance(fold, UnknownOfRow):
        raise NoRuleError(f"nothing is known of {fold.args[3]} but its name: its entries cannot be written out")
    ranges = [range(int(low), int(high) + 1) for _, low, high in fold.limits]
    terms = []
    for place in itertools.product(*ranges):
        at = {k: sympy.Integer(i) for (k, *_), i in zip(fold.limits, place, strict=True)}
        terms.append(written_out(fold.function, element, {**values, **at}))
    if not isinstance(fold, InverseEntry):
        return _FOLDS[type(fold)](*terms)
    row, column = (int(written_out(at, element, values)) for at in fold.places)
    matrix = sympy.Matrix(*map(len, ranges), terms)
    return matrix.cofactor(column, row, method="berkowitz") / matrix.det(method="berkowitz")


def maybe_infinite(value: Any) -> bool:
    """Whether a choice in the formula may give -oo."""
    return any(choice.has(sympy.S.NegativeInfinity) for choice in value.atoms(Choice))
