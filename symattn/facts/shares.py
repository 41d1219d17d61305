"""The range of a part over a whole: at most 1, or a mean where both are sums over the same indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import sympy

from .linear import depends
from .ranges import ANYTHING, UNIT, Range, at_most, is_positive, meet, times

if TYPE_CHECKING:
    from .formula_ranges import FormulaRange


def share(walk: FormulaRange, factors: Sequence[Any], whole: Any) -> Range:
    """A product over a whole that is never negative, where some of the factors are a part of it."""
    found = ANYTHING
    for picked in _selections([f for f in factors if depends(f)]):
        part = sympy.Mul(*picked)
        over = _mean(walk, part, whole) or _fraction(walk, part, whole)
        if over is not None:
            found = meet(found, times(over, walk.product([f for f in factors if f not in picked])))
    return found


def _selections(factors: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Some of a few factors: all of them first."""
    sizes = range(len(factors), 0, -1) if len(factors) <= 3 else (len(factors), 1)
    return chain.from_iterable(combinations(factors, n) for n in sizes)


def _fraction(walk: FormulaRange, part: Any, whole: Any) -> Range | None:
    """``a / b`` with ``0 <= a <= b``."""
    if not at_most(sympy.S.Zero, walk.of(part).low):
        return None
    excess = walk.difference(whole, part)
    return Range(*UNIT[:3], is_positive(excess)) if at_most(sympy.S.Zero, excess.low) else None


def _mean(walk: FormulaRange, part: Any, whole: Any) -> Range | None:
    """``sum_k w(k) x(k) / sum_k w(k)`` with ``w >= 0``."""
    if not (isinstance(part, sympy.Sum) and isinstance(whole, sympy.Sum)):
        return None
    if [ends for _, *ends in part.limits] != [ends for _, *ends in whole.limits]:
        return None
    inside, (term, weight) = walk.at_term(part, whole)
    weights, factors = sympy.Mul.make_args(weight), sympy.Mul.make_args(term)
    if not set(weights) <= set(factors) or not at_most(sympy.S.Zero, inside.of(weight).low):
        return None
    return inside.of(sympy.Mul(*(f for f in factors if f not in weights)))
