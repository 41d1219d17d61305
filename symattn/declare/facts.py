"""What a declaration states of its operation besides the entry, checked: masks, -oo, kinds, letters, bounds, order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from ..core.exact import as_scalar
from ..core.naming import check_name
from ..errors import OperandError, described
from .signature import Formula, Signature, scalar_function

PROVED = ("rows", "range", "monotone")  # which statements are proved, or else assumed

_OPTIONS = {
    "minus_infinity": ("refused", "kept", "absorbed"),
    "kind": ("real", "binary", "integer", "inputs"),
    "rows": ("", "probabilities", "positive probabilities"),
    "monotone": ("", "increasing", "strictly increasing", "decreasing", "strictly decreasing"),
}


def checked_facts(name: str, signature: Signature, stated: Mapping[str, Any]) -> dict[str, Any]:
    """What is stated of an operation of that name; raises OperandError for what cannot be meant."""
    for what, options in _OPTIONS.items():
        if not isinstance(stated[what], str) or stated[what] not in options:
            raise OperandError(f"{what}= of operation {name!r} is one of {options}, not {described(stated[what])}")
    if not isinstance(stated["nonsmooth"], str):
        raise OperandError(
            f"nonsmooth= of operation {name!r} says where there is no derivative, not {described(stated['nonsmooth'])}"
        )
    if stated["rows"] and not signature.output:
        raise OperandError(f"rows= of operation {name!r}: a result without an axis has no rows")
    return {
        **stated,
        "masks": _masks(name, signature, stated["masks"]),
        "letters": _letters(name, stated["letters"]),
        "range": _bounds(name, stated["range"]),
    }


def monotone_function(name: str, signature: Signature, formula: Formula) -> sympy.Lambda:
    """The function of one number that is said to be monotone; OperandError where the entry is no such function."""
    found = scalar_function(signature, formula)
    if found is None:
        raise OperandError(
            f"monotone= of operation {name!r} is said of a function of one number, applied entry by entry: shape "
            f"{str(signature)!r} and its entry are not 'n -> n' and a formula of x[index] alone"
        )
    return found


def _masks(name: str, signature: Signature, masks: Any) -> Sequence[int]:
    count = len(signature.inputs)
    places = _several(masks)
    if any(type(k) is not int or not 0 <= k < count for k in places):
        raise OperandError(
            f"masks= of operation {name!r} counts some of its {count} inputs from 0, not {described(masks)}"
        )
    return places


def _letters(name: str, letters: Any) -> Sequence[str]:
    called = _several(letters)
    if called and (len(called) != 2 or not all(isinstance(letter, str) for letter in called)):
        raise OperandError(
            f"letters= of operation {name!r} name the result and the first input, not {described(letters)}"
        )
    for letter in called:
        check_name(letter)
    return called


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _bounds(name: str, bounds: Any) -> tuple[Any, Any] | None:
    """Two numbers in order, of which either may be infinite."""
    if bounds is None:
        return None
    ends = bounds if isinstance(bounds, (tuple, list)) else ()
    ends = [sympy.oo if end in (math.inf, sympy.oo) else as_scalar(end) for end in ends]
    if len(ends) != 2 or not all(end.is_number for end in ends) or not ends[0] <= ends[1]:
        raise OperandError(
            f"range= of operation {name!r} is two numbers that the entries lie between, not {described(bounds)}"
        )
    return ends[0], ends[1]
