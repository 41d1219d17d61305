"""Exact scalars: what a number or an expression of SymPy stands for in a formula."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy

from ..errors import OperandError, described
from .naming import check_name
from .sizes import as_integer

INDICES = tuple(
    sympy.Dummy(letter, integer=True, nonnegative=True, dummy_index=n + 1) for n, letter in enumerate("ijlmnpqr")
)
ARGUMENTS = tuple(sympy.Dummy(letter, real=True, dummy_index=n + 1) for n, letter in enumerate("xyzuvw"))
_BOUND = {*INDICES, *ARGUMENTS}


def as_scalar(value: Any) -> sympy.Expr:
    """An exact SymPy scalar; a float becomes the rational of its shortest decimal spelling."""
    if type(value) is int:
        return sympy.Integer(value)
    if isinstance(value, bool):
        raise OperandError(not_an_operand(value))
    if isinstance(value, sympy.Expr):
        if value.has(sympy.Lambda) or type(value) is sympy.Expr:
            raise OperandError(f"{value} is a function, not a scalar: apply it entry by entry by sa.elementwise")
        scalar = exact(value)
        if not _is_real(scalar):
            raise _not_real(value)
        return scalar
    if isinstance(value, numbers.Integral):
        whole = as_integer(value)
        if whole is not None:  # no time of NumPy
            return sympy.Integer(whole)
    elif isinstance(value, numbers.Rational):
        return sympy.Rational(value.numerator, value.denominator)
    elif isinstance(value, numbers.Real):
        return _exact_float(repr(float(str(value))))
    raise OperandError(not_an_operand(value))


@lru_cache(maxsize=4096)
def _is_real(scalar: sympy.Expr) -> bool:
    """Whether an exact expression has real values; raises OperandError where it is not one of plain symbols."""
    if scalar.has(sympy.nan, sympy.zoo, sympy.S.Infinity, sympy.I) or scalar.is_extended_real is False:
        return False
    for symbol in scalar.free_symbols - _BOUND:
        if not isinstance(symbol, sympy.Symbol) or isinstance(symbol, sympy.Dummy):
            raise OperandError(f"the scalar {scalar} holds {symbol}: a scalar is an expression of plain symbols")
        check_name(symbol.name)
    return True


def exact(value: sympy.Expr) -> sympy.Expr:
    """The expression with its floats as the rationals of their decimal spelling."""
    if not value.has(sympy.Float):
        return value
    return value.replace(lambda part: part.is_Float, lambda part: _exact_float(str(part)))


def _exact_float(spelled: str) -> sympy.Expr:
    number = float(spelled)
    if math.isnan(number) or number == math.inf:
        raise _not_real(spelled)
    return sympy.S.NegativeInfinity if math.isinf(number) else sympy.Rational(*Fraction(spelled).as_integer_ratio())


def _not_real(value: Any) -> OperandError:
    way = ": only -oo is taken, so that a least entry is minus the largest of -x" if str(value) in ("oo", "inf") else ""
    return OperandError(f"{value} is not a real scalar{way}")


def not_an_operand(value: Any) -> str:
    if isinstance(value, str):
        return (
            f"the text {described(value)} stands where a tensor is meant: "
            f"make one by sa.tensor({described(value)}, ...)"
        )
    if type(value).__module__.partition(".")[0] in ("numpy", "torch", "jax", "jaxlib"):
        return (
            f"an array of shape {getattr(value, 'shape', ())} stands in an expression: write the formula with "
            "sa.tensor(...) and give the array to the function made by sa.lambdify"
        )
    return f"{described(value)} is neither a tensor nor a real scalar"
