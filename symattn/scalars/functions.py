"""One table of scalar functions: what is known of a function stands in its record, and every engine reads it there.

A function is added by one record. SymPy differentiates and prints it; from the record it is evaluated, compiled,
refuted in balls, bounded, held against its domain, and read in. Its values at 0 and 1 are worked out by SymPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy
from sympy import Interval, oo, pi

REALS = Interval(-oo, oo)
POSITIVE = Interval.open(0, oo)
SIGNED_UNIT = Interval(-1, 1)
RISING = "strictly increasing"


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function of one real argument, ``head`` in SymPy.

    ``numpy``
        its name in NumPy, or in SciPy as ``special.erf``; by default that of SymPy.
    ``math``
        its name in Python's ``math``, by default that of SymPy.
    ``ball``
        its name among FLINT's balls, or among the functions of exact numbers; by default that of SymPy.
    ``value``
        a number from a number, where NumPy's function would stop a complex step.
    ``values``, ``domain``
        intervals that hold all its values, and all arguments at which it is defined.
    ``poles``
        a function at whose zeros it is not defined either.
    ``monotone``
        "increasing" or "decreasing", "strictly" where that is so.
    """

    head: Any
    numpy: str = ""
    math: str = ""
    ball: str = ""
    value: Callable[[Any], Any] | None = None
    values: Interval = REALS
    domain: Interval = REALS
    poles: Any = None
    monotone: str = ""

    @property
    def name(self) -> str:
        """SymPy's name, by which it is also read in."""
        return str(self.head.__name__)

    def at(self, place: int) -> int | None:
        """The value at a whole number, where that is a whole number too."""
        return _whole_value(self.head, place)


@cache
def _whole_value(head: Any, place: int) -> int | None:
    value = head(sympy.Integer(place))
    return int(value) if value.is_Integer else None


_RECORDS = (
    ScalarFunction(sympy.exp, values=POSITIVE, monotone=RISING),
    ScalarFunction(sympy.log, domain=POSITIVE, monotone=RISING),
    ScalarFunction(sympy.sin, values=SIGNED_UNIT),
    ScalarFunction(sympy.cos, values=SIGNED_UNIT),
    ScalarFunction(sympy.tan, poles=sympy.cos),
    ScalarFunction(sympy.sinh, monotone=RISING),
    ScalarFunction(sympy.cosh, values=Interval(1, oo)),
    ScalarFunction(sympy.tanh, values=Interval.open(-1, 1), monotone=RISING),
    ScalarFunction(sympy.asin, "arcsin", values=Interval(-pi / 2, pi / 2), domain=SIGNED_UNIT, monotone=RISING),
    ScalarFunction(sympy.acos, "arccos", values=Interval(0, pi), domain=SIGNED_UNIT, monotone="strictly decreasing"),
    ScalarFunction(sympy.atan, "arctan", values=Interval.open(-pi / 2, pi / 2), monotone=RISING),
    ScalarFunction(sympy.asinh, "arcsinh", monotone=RISING),
    ScalarFunction(sympy.acosh, "arccosh", values=Interval(0, oo), domain=Interval(1, oo), monotone=RISING),
    ScalarFunction(sympy.atanh, "arctanh", domain=Interval.open(-1, 1), monotone=RISING),
    ScalarFunction(sympy.erf, "special.erf", values=Interval.open(-1, 1), monotone=RISING),
    ScalarFunction(sympy.floor, monotone="increasing"),
    ScalarFunction(sympy.ceiling, "ceil", "ceil", monotone="increasing"),
    ScalarFunction(sympy.Abs, ball="absolute", values=Interval(0, oo), value=lambda x: x if x.real >= 0 else -x),
    ScalarFunction(
        sympy.sign, monotone="increasing", values=SIGNED_UNIT, value=lambda x: int(x.real > 0) - int(x.real < 0)
    ),
)
FUNCTIONS: dict[Any, ScalarFunction] = {record.head: record for record in _RECORDS}
