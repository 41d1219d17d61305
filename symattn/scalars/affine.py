"""Affine forms: what stands before each base, such as a monomial or an index, and a constant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import sympy

from ..core.sizes import never_negative

Form = Mapping[Any, Any]


@lru_cache(maxsize=8192)
def expanded(value: Any) -> Any:
    """A coefficient, multiplied out."""
    return value if value.is_Integer or value.is_Symbol else sympy.expand(value)


@lru_cache(maxsize=8192)
def coefficients(e: Any) -> Form:
    """The number before each monomial of an expression; that of 1 is the constant."""
    return sympy.expand(e).as_coefficients_dict()


def combined(form: Form, share: Any, other: Form) -> dict[Any, Any]:
    """``form + share * other``, without what cancels."""
    total = dict(form)
    for base, c in other.items():
        total[base] = expanded(total.get(base, sympy.S.Zero) + share * c)
    return {base: c for base, c in total.items() if c != 0}


def affine(e: Any, symbols: Iterable[Any]) -> tuple[Any, dict[Any, Any]] | None:
    """The constant and the slopes of an expression that is affine in symbols, None for another."""
    e = expanded(e)
    slopes = {s: e.coeff(s) for s in symbols}
    start = expanded(e - sympy.Add(*(c * s for s, c in slopes.items())))
    return (start, slopes) if not any(part.has(*slopes) for part in (start, *slopes.values())) else None


def solved(e: Any, symbol: Any) -> Any:
    """The whole number for which an expression is 0, where it is affine in it with the slope 1 or -1; else None."""
    found = affine(e, [symbol])
    if found is None or found[1][symbol] not in (1, -1):
        return None
    return expanded(-found[1][symbol] * found[0])


def ends(start: Any, slopes: Form, sizes: Mapping[Any, Any]) -> tuple[Any, Any] | None:
    """The least and the largest value where each base runs from 0 to its size less 1; None if they are not known."""
    low = high = start
    for base, c in slopes.items():
        last = None if sizes[base] is None else c * (sizes[base] - 1)
        if last is not None and never_negative(c):
            high = high + last
        elif last is not None and never_negative(-c):
            low = low + last
        else:
            return None
    return expanded(low), expanded(high)
