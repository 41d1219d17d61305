"""SymPy scalars as Python code: with ``math`` for numbers, with ``np`` for arrays of indices or entries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import sympy
from sympy.core.relational import Relational

from ...core.naming import is_long
from ...errors import NoRuleError, described
from ...ops.arithmetic import is_wide
from ...scalars.functions import FUNCTIONS
from .helpers import HELPERS


def _is_size(e: sympy.Expr) -> bool:
    return all(s.is_integer for s in e.free_symbols) and e.is_nonnegative is not False


class ScalarCode:
    """Writes one expression; ``names`` gives the Python text of each symbol, ``arrays`` those that are arrays.

    What holds no array is written as a Python number, which does not change the dtype of arrays.
    """

    def __init__(self, names: Mapping[sympy.Symbol, str], array_symbols: Collection[sympy.Symbol] = ()) -> None:
        self.names, self.array_symbols = names, set(array_symbols)
        self.arrays = bool(array_symbols)
        self.helpers: set[str] = set()

    def write(self, e: Any) -> str:
        """Python text, with every operand between parentheses."""
        if e in self.names:
            return self.names[e]
        outer, self.arrays = self.arrays, bool(e.free_symbols & self.array_symbols)
        try:
            for kinds, writer in _WRITERS:
                if isinstance(e, kinds):
                    return writer(self, e)
            if type(e) in FUNCTIONS:
                return self._function(e)
        finally:
            self.arrays = outer
        raise NoRuleError(f"no code is known for the scalar {e} ({type(e).__name__}): write it by known functions")

    @property
    def module(self) -> str:
        return "np" if self.arrays else "math"

    def _add(self, e: Any) -> str:
        first, *others = map(self._part, e.args)
        return first + "".join(f" - {part[1:]}" if part.startswith("-") else f" + {part}" for part in others)

    def _part(self, e: Any) -> str:
        return f"({self.write(e)})"

    def _truth(self, value: bool) -> str:
        return f"np.bool_({value})" if self.arrays else str(value)

    def _mul(self, e: sympy.Expr) -> str:
        number, rest = e.as_coeff_Mul()
        if self.arrays and is_wide(number):
            return f"{self._part(number)} * {self._part(rest)}"
        above, below = sympy.fraction(e)
        factors = above.args if above.is_Mul else (above,)
        if factors[0] == -1 and len(factors) > 1:
            product = "-" + " * ".join(map(self._part, factors[1:]))
        else:
            product = " * ".join(map(self._part, factors))
        return product if below == 1 else f"({product}) / {self._part(below)}"

    def _pow(self, e: sympy.Expr) -> str:
        base, exponent = e.as_base_exp()
        if exponent.is_negative and exponent.is_Rational:
            return f"1 / {self._part(sympy.Pow(base, -exponent, evaluate=False) if exponent != -1 else base)}"
        if exponent == sympy.Rational(1, 2):
            return self._call("sqrt", "sqrt", [base])
        if not self.arrays and not exponent.is_Integer and not _is_size(e):
            return f"np.float_power({self.write(base)}, {self.write(exponent)}).item()"
        base_text = f"{float(base)!r}" if self.arrays and base.is_Integer else self.write(base)
        return f"({base_text}) ** {self._part(exponent)}"

    def _function(self, e: sympy.Expr) -> str:
        f = FUNCTIONS[type(e)]
        module, _, name = f.spelled("numpy").rpartition(".")
        number = f.math or f.name
        if not module:
            return self._call(name, number, e.args)
        if not self.arrays:
            return f"math.{number}({self.write(e.args[0])})"
        inside = self.write(e.args[0])
        if name in HELPERS:
            self.helpers.add(name)
            return f"{name}({inside})"
        return f"special.{name}({inside}).astype(np.result_type({inside}, 0.0))"

    def _call(self, of_arrays: str, of_numbers: str, arguments: Sequence[Any]) -> str:
        """A function: of arrays by np, of sizes by math, of other scalars by np, which also takes complex ones."""
        inside = ", ".join(map(self.write, arguments))
        if self.arrays:
            return f"np.{of_arrays}({inside})"
        return f"math.{of_numbers}({inside})" if all(map(_is_size, arguments)) else f"np.{of_arrays}({inside}).item()"

    def _sign(self, e: sympy.Expr) -> str:
        if self.arrays:
            return f"np.sign({self.write(e.args[0])})"
        part = self._part(e.args[0])
        return f"({part} > 0) - ({part} < 0)"

    def _folded(self, e: Any) -> str:
        """An extreme, or a condition joined by and or or, of two at a time; a Python number has its own extremes."""
        f, parts = FUNCTIONS.get(type(e)), list(map(self.write, e.args))
        if f is not None and not self.arrays:
            return f"{f.math}({', '.join(parts)})"
        name = f"logical_{type(e).__name__.lower()}" if f is None else f.numpy
        return reduce(lambda total, part: f"np.{name}({total}, {part})", parts)

    def _piecewise(self, e: sympy.Expr) -> str:
        value, condition = e.args[-1]
        if condition != sympy.true:
            raise NoRuleError(f"{e} has no value where none of its conditions holds: end it by (value, True)")
        total = self.write(value)
        for value, condition in reversed(e.args[:-1]):
            if self.arrays:
                total = f"np.where({self.write(condition)}, {self.write(value)}, {total})"
            else:
                total = f"({self.write(value)}) if ({self.write(condition)}) else ({total})"
        return total


def _number(q: sympy.Rational) -> str:
    """A number as it is, or, with too many digits to be written out, as the nearest float64."""
    if not is_long(q):
        return str(q.p) if q.q == 1 else f"{q.p} / {q.q}"
    try:
        return repr(int(q.p) / int(q.q))
    except OverflowError:
        raise NoRuleError(f"{described(q)} is beyond the largest float64, in which code computes") from None


_WRITERS: tuple[tuple[Any, Callable[[ScalarCode, Any], str]], ...] = (
    (sympy.Rational, lambda code, e: _number(e)),
    (type(sympy.pi), lambda code, e: f"{code.module}.pi"),
    (type(sympy.E), lambda code, e: f"{code.module}.e"),
    (type(-sympy.oo), lambda code, e: f"-{code.module}.inf"),
    (type(sympy.true), lambda code, e: code._truth(True)),
    (type(sympy.false), lambda code, e: code._truth(False)),
    (sympy.Add, ScalarCode._add),
    (sympy.Mul, ScalarCode._mul),
    (sympy.Pow, ScalarCode._pow),
    (sympy.Abs, lambda code, e: f"abs({code.write(e.args[0])})"),
    (sympy.sign, ScalarCode._sign),
    (sympy.Mod, lambda code, e: f"{code._part(e.args[0])} % {code._part(e.args[1])}"),
    ((sympy.Max, sympy.Min, sympy.And, sympy.Or), ScalarCode._folded),
    (sympy.KroneckerDelta, lambda code, e: f"1 * ({code._part(e.args[0])} == {code._part(e.args[1])})"),
    (sympy.Piecewise, ScalarCode._piecewise),
    (Relational, lambda code, e: f"{code._part(e.lhs)} {e.rel_op} {code._part(e.rhs)}"),
    (sympy.Not, lambda code, e: f"np.logical_not({code.write(e.args[0])})"),
)
