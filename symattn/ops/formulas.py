"""What entry formulas need and SymPy lacks: bound indices, bounded extremes, and a choice that folds nothing."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ..errors import OperandError
from ..tensor import Tensor


def bound(node: Tensor, slot: int, size: sympy.Expr) -> tuple[sympy.Dummy, sympy.Expr, sympy.Expr]:
    """The limits (k, 0, size - 1) of a bound index of this node.

    The index is numbered by the node's height. Indices passed down come from higher nodes, so nothing is captured,
    and the same expression has the same entry every time.
    """
    number = node.height * 64 + slot + 100
    return sympy.Dummy("k", integer=True, nonnegative=True, dummy_index=number), sympy.S.Zero, size - 1


class _Extreme(ExprWithLimits):
    r"""The extreme of a term over bound indices, unevaluated, like ``sympy.Sum``."""

    @property
    def is_real(self) -> Any:
        return self.function.is_real

    def doit(self, **hints: Any) -> Any:
        return self


class Max(_Extreme):
    r"""``\max_{k=0}^{n-1} f(k)``."""

    def _latex(self, printer: Any) -> str:
        return _latex(self, printer, r"\max")


class Min(_Extreme):
    r"""``\min_{k=0}^{n-1} f(k)``."""

    def _latex(self, printer: Any) -> str:
        return _latex(self, printer, r"\min")


def _latex(extreme: Any, printer: Any, sign: str) -> str:
    below = ", ".join(rf"{printer.doprint(k)} = {printer.doprint(low)}" for k, low, _ in extreme.limits)
    above = ", ".join(printer.doprint(high) for _, _, high in extreme.limits)
    return rf"{sign}_{{{below}}}^{{{above}}} {printer.doprint(extreme.function)}"


class Choice(sympy.Function):
    """``a`` where a condition holds, else ``b``.

    It stands for SymPy's Piecewise, which must not occur in entries: SymPy 1.14 pulls a Piecewise out of the sums
    around it, also out of those that bind an index of its condition, and so silently changes the meaning.
    """

    nargs = 3

    @classmethod
    def eval(cls, condition: Any, a: Any, b: Any) -> Any:
        if condition in (sympy.true, sympy.false):
            return a if condition == sympy.true else b
        return None

    def _eval_is_extended_real(self) -> Any:
        return True if all(x.is_extended_real for x in self.args[1:]) else None

    def _eval_derivative(self, s: Any) -> Any:
        condition, a, b = self.args
        return Choice(condition, a.diff(s), b.diff(s))

    def _latex(self, printer: Any, exp: Any = None) -> str:
        condition, a, b = map(printer.doprint, self.args)
        cases = rf"\begin{{cases}} {a} & \text{{for}}\: {condition} \\ {b} & \text{{otherwise}} \end{{cases}}"
        return cases if exp is None else rf"\left({cases}\right)^{{{exp}}}"


def choose(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the condition holds, else ``b``; "an indicator is not 0" is the condition that it indicates."""
    if isinstance(condition, sympy.Ne) and isinstance(condition.lhs, Choice) and condition.lhs.args[1:] == (1, 0):
        condition = condition.lhs.args[0] if condition.rhs == 0 else condition
    return Choice(condition, a, b)


def without_piecewise(formula: Any) -> Any:
    """The formula with every Piecewise as a choice; one without a last case is an OperandError."""
    if not formula.has(sympy.Piecewise):
        return formula
    return formula.replace(lambda part: isinstance(part, sympy.Piecewise), _as_choices)


def _as_choices(piecewise: Any) -> Any:
    value, condition = piecewise.args[-1]
    if condition != sympy.true:
        raise OperandError(f"{piecewise} has no value where none of its conditions holds: end it by (value, True)")
    for other, condition in reversed(piecewise.args[:-1]):
        value = Choice(condition, other, value)
    return value
