"""One table of scalar functions: what is known of a function stands in its record, and every engine reads it there.

A function is added by one record. SymPy differentiates and prints it; from the record it is evaluated, compiled,
refuted in balls, bounded, held against its domain, brought into normal form, and read in. Its values at 0 and 1 are
worked out by SymPy. Sums, powers, relations, logic and choices are no functions: every engine has its own way of them.
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
U = sympy.Dummy("u", real=True)  # the argument in formulas of records
_POWER, _INVERSE, _TURNED, _BACK = (sympy.exp(c * U) for c in (1, -1, sympy.I, -sympy.I))


@dataclass(frozen=True)
class ScalarFunction:
    """A scalar function, ``head`` in SymPy, of one real argument unless ``arity`` says otherwise.

    ``numpy``
        its name in NumPy, or in SciPy as ``special.erf``; by default that of SymPy.
    ``torch``, ``jax``
        its name there; by default that of NumPy.
    ``math``
        its name in Python's ``math``, by default that of SymPy.
    ``ball``
        its name among FLINT's balls, or among the functions of an arithmetic; by default that of SymPy.
    ``also``
        other names by which it is read in.
    ``value``
        a number from a number, where NumPy's function would stop a complex step.
    ``values``, ``domain``
        intervals that hold all its values, and all arguments at which it is defined.
    ``partial``
        whether it is not defined at some arguments of its domain, together.
    ``poles``
        a function at whose zeros it is not defined either.
    ``normal``
        a formula in ``U`` by exponentials, powers and ``Heaviside(x, 0)`` that normal forms have instead.
    ``monotone``
        "increasing" or "decreasing", "strictly" where that is so.
    """

    head: Any
    numpy: str = ""
    math: str = ""
    ball: str = ""
    torch: str = ""
    jax: str = ""
    also: tuple[str, ...] = ()
    arity: int = 1
    value: Callable[[Any], Any] | None = None
    values: Interval = REALS
    domain: Interval = REALS
    partial: bool = False
    poles: Any = None
    normal: Any = None
    monotone: str = ""

    @property
    def name(self) -> str:
        """SymPy's name, by which it is also read in."""
        return str(self.head.__name__)

    def spelled(self, backend: str) -> str:
        """Its name in an array library: "numpy", "torch" or "jax"."""
        return str(getattr(self, backend)) or self.numpy or self.name

    def at(self, place: int) -> int | None:
        """The value of a function of one argument at a whole number, where that is a whole number too."""
        return _whole_value(self.head, place) if self.arity == 1 else None


@cache
def _whole_value(head: Any, place: int) -> int | None:
    value = head(sympy.Integer(place))
    return int(value) if value.is_Integer else None


_RECORDS = (
    ScalarFunction(sympy.exp, values=POSITIVE, monotone=RISING),
    ScalarFunction(sympy.log, domain=POSITIVE, monotone=RISING),
    ScalarFunction(sympy.sin, values=SIGNED_UNIT, normal=-sympy.I * (_TURNED - _BACK) / 2),
    ScalarFunction(sympy.cos, values=SIGNED_UNIT, normal=(_TURNED + _BACK) / 2),
    ScalarFunction(sympy.tan, poles=sympy.cos, normal=-sympy.I * (_TURNED - _BACK) / (_TURNED + _BACK)),
    ScalarFunction(sympy.sinh, monotone=RISING, normal=(_POWER - _INVERSE) / 2),
    ScalarFunction(sympy.cosh, values=Interval(1, oo), normal=(_POWER + _INVERSE) / 2),
    ScalarFunction(sympy.tanh, values=Interval.open(-1, 1), monotone=RISING, normal=1 - 2 / (sympy.exp(2 * U) + 1)),
    ScalarFunction(sympy.asin, "arcsin", values=Interval(-pi / 2, pi / 2), domain=SIGNED_UNIT, monotone=RISING),
    ScalarFunction(sympy.acos, "arccos", values=Interval(0, pi), domain=SIGNED_UNIT, monotone="strictly decreasing"),
    ScalarFunction(sympy.atan, "arctan", values=Interval.open(-pi / 2, pi / 2), monotone=RISING),
    ScalarFunction(sympy.asinh, "arcsinh", monotone=RISING),
    ScalarFunction(sympy.acosh, "arccosh", values=Interval(0, oo), domain=Interval(1, oo), monotone=RISING),
    ScalarFunction(sympy.atanh, "arctanh", domain=Interval.open(-1, 1), monotone=RISING),
    ScalarFunction(sympy.erf, "special.erf", values=Interval.open(-1, 1), monotone=RISING),
    ScalarFunction(sympy.floor, monotone="increasing"),
    ScalarFunction(sympy.ceiling, "ceil", "ceil", monotone="increasing"),
    ScalarFunction(
        sympy.Abs,
        "abs",
        ball="absolute",
        also=("abs",),
        value=lambda x: x if x.real >= 0 else -x,
        values=Interval(0, oo),
        normal=U * (1 - 2 * sympy.Heaviside(-U, 0)),
    ),
    ScalarFunction(
        sympy.sign,
        value=lambda x: int(x.real > 0) - int(x.real < 0),
        values=SIGNED_UNIT,
        normal=sympy.Heaviside(U, 0) - sympy.Heaviside(-U, 0),
        monotone="increasing",
    ),
    ScalarFunction(sympy.Max, "maximum", "max", "largest", also=("maximum",), arity=2),
    ScalarFunction(sympy.Min, "minimum", "min", "smallest", also=("minimum",), arity=2),
    ScalarFunction(sympy.Mod, "mod", ball="remainder", torch="remainder", also=("mod",), arity=2, partial=True),
    ScalarFunction(sympy.atan2, "arctan2", arity=2, partial=True),
    ScalarFunction(sympy.KroneckerDelta, "equal", ball="delta", torch="eq", arity=2, values=Interval(0, 1)),
)
FUNCTIONS: dict[Any, ScalarFunction] = {record.head: record for record in _RECORDS}
