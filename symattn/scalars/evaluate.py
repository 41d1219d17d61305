"""Scalar formulas as Python functions, to be run by any arithmetic: numbers, exact numbers, balls.

A formula is written as the text of an expression, which holds only names and numbers that are made here. What the
names mean is told by a table of functions, the arithmetic that the text is run by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..core.naming import is_long
from ..errors import NoRuleError
from .formulas import Choice, Held, InverseEntry, Max, Min, Unknown, UnknownOfRow
from .functions import FUNCTIONS

_CALLS: dict[Any, str] = {
    sympy.Not: "negation", sympy.And: "conjunction", sympy.Or: "disjunction", Held: "held",
}  # fmt: skip
_RELATIONS = {  # between numbers that may be balls
    "<": "less({0}, {1})", ">": "less({1}, {0})", "<=": "at_most({0}, {1})", ">=": "at_most({1}, {0})",
    "==": "equal({0}, {1})", "!=": "negation(equal({0}, {1}))",
}  # fmt: skip
_LOGIC: dict[Any, str] = {sympy.And: " and ", sympy.Or: " or "}
_FOLDS: dict[Any, str] = {sympy.Sum: "sum", Max: "largest", Min: "smallest"}
FOLDS = (*_FOLDS, UnknownOfRow, InverseEntry)  # what depends on many entries


@dataclass(frozen=True)
class Program:
    """Python code for a formula, to be run by any arithmetic, with its numbers under names of their own."""

    code: CodeType
    constants: Mapping[str, Any]

    def function(self, arithmetic: Mapping[str, Any]) -> Callable[..., Any]:
        """The code as a function; a fraction becomes a ``number`` of the arithmetic."""
        number = arithmetic["number"]
        own = {name: number(x) if isinstance(x, sympy.Rational) else x for name, x in self.constants.items()}
        return eval(self.code, {**arithmetic, **own})  # names and numbers made here


class Compiled:
    """A formula, or several, as a Python function of symbols; ``reads`` are arrays by the names that formulas use."""

    def __init__(self, given: Sequence[sympy.Symbol] = (), reads: Sequence[str] = ()) -> None:
        self._names: dict[Any, str] = {s: f"v{n}" for n, s in enumerate(given)}
        self._arguments = [*reads, *self._names.values()]
        self._reads = set(reads)
        self._constants: dict[str, Any] = {}
        self.symbols: list[sympy.Symbol] = []  # those that the point gives, in the order of the arguments

    def program(self, body: str) -> Program:
        """The code of the function of the arrays, the given symbols, and then ``symbols``."""
        arguments = [*self._arguments, *(self._names[s] for s in self.symbols)]
        source = f"lambda {', '.join(arguments)}: {body}"
        return Program(compile(source, "<entry formula>", "eval"), self._constants)

    def write(self, e: Any) -> str:
        """The formula as Python text, between parentheses where it needs them."""
        if e.is_Symbol:
            return f"{e.name}[()]" if e.name in self._reads else self._name(e)
        if e.is_Integer:
            return self.constant(int(e)) if is_long(e) else f"({e})" if e < 0 else str(e)
        if isinstance(e, sympy.Indexed):
            return f"{e.base}[{' '.join(self._whole(i) + ',' for i in e.indices)}]"
        for kind, writer in _WRITERS:
            if isinstance(e, kind):
                return writer(self, e)
        known = FUNCTIONS.get(type(e))
        call = _CALLS.get(type(e)) if known is None else known.ball or known.name
        if call is None:
            raise NoRuleError(f"no value is known for {type(e).__name__} in {e}")
        return f"{call}({', '.join(map(self.write, e.args))})"

    def _name(self, s: sympy.Symbol) -> str:
        if s not in self._names:
            self._names[s] = f"s{len(self.symbols)}"
            self.symbols.append(s)
        return self._names[s]

    def bind(self, s: sympy.Symbol) -> str:
        """A name for a bound index; one that is bound twice, side by side, may keep its name."""
        return self._names.setdefault(s, f"k{len(self._names)}")

    def _whole(self, e: Any) -> str:
        """An index or a bound: an integer."""
        written = self.write(e)
        return written if _is_integral(e) else f"whole({written})"

    def rows(self, limits: Sequence[Any]) -> str:
        """``for k in range(..)`` for limits whose last is outermost: the bounds of the others may hold its index."""
        loops = []
        for k, low, high in limits[::-1]:
            ends = self._whole(low), self._whole(high + 1)
            loops.append(f"for {self.bind(k)} in range({', '.join(ends)})")
        return " ".join(loops)

    def constant(self, value: Any) -> str:
        """A number under a name of its own."""
        name = f"c{len(self._constants)}"
        self._constants[name] = value
        return name

    def _joined(self, sign: str, e: Any) -> str:
        return "(" + sign.join(map(self.write, e.args)) + ")"

    def _power(self, e: Any) -> str:
        if e.exp == 2 and e.base.is_Symbol:
            return f"({self.write(e.base)} * {self.write(e.base)})"
        return self._called("power", e)

    def _called(self, name: str, e: Any) -> str:
        return f"{name}({', '.join(map(self.write, e.args))})"

    def _fold(self, e: Any) -> str:
        loops = self.rows(e.limits)
        return f"{_FOLDS[type(e)]}([{self.write(e.function)} {loops}])"

    def _largest(self, e: Any) -> str:
        return f"{FUNCTIONS[type(e)].ball}([{', '.join(map(self.write, e.args))}])"

    def _unknown(self, e: Any) -> str:
        return f"unknown({str(e.args[0])!r}, {self.write(e.args[1])})"

    def _unknown_of_row(self, e: Any) -> str:
        loops = self.rows(e.limits)
        row = f"[{self.write(e.function)} {loops}]"
        return f"unknown_of_row({str(e.args[3])!r}, {row}, {self.write(e.places[0])})"

    def _inverse(self, e: Any) -> str:
        outer, inner = self.rows(e.limits[:1]), self.rows(e.limits[1:])
        matrix = f"[[{self.write(e.function)} {inner}] {outer}]"
        arrays = {x.base.label for x in e.function.atoms(sympy.Indexed)}
        bound = {k for k, _, _ in e.limits}
        symbols = e.function.atoms(sympy.Symbol).union(*(end.free_symbols for limit in e.limits for end in limit[1:]))
        others = sorted(symbols - arrays - bound, key=str)
        parts = [self.constant(e), *sorted(map(str, arrays)), *map(self.write, others)]
        return f"inverse_entry(({', '.join(parts)},), lambda: {matrix}, {', '.join(map(self.write, e.places))})"

    def _choice(self, e: Any) -> str:
        condition, a, b = map(self.write, e.args)
        if _is_decided(e.args[0]):
            return f"({a} if {condition} else {b})"
        return f"choose({condition}, lambda: {a}, lambda: {b})"

    def _relation(self, e: Any) -> str:
        form = f"{{0}} {e.rel_op} {{1}}" if _is_decided(e) else _RELATIONS[e.rel_op]
        return "(" + form.format(*map(self.write, e.args)) + ")"

    def _logic(self, e: Any) -> str:
        return self._joined(_LOGIC[type(e)], e) if _is_decided(e) else self._called(_CALLS[type(e)], e)


_WRITERS: tuple[tuple[Any, Callable[[Compiled, Any], str]], ...] = (
    (sympy.Add, lambda code, e: code._joined(" + ", e)),
    (sympy.Mul, lambda code, e: code._joined(" * ", e)),
    (sympy.Pow, Compiled._power),
    ((sympy.Sum, Max, Min), Compiled._fold),
    ((sympy.Max, sympy.Min), Compiled._largest),
    (Choice, Compiled._choice),
    (Unknown, Compiled._unknown),
    (UnknownOfRow, Compiled._unknown_of_row),
    (InverseEntry, Compiled._inverse),
    (Relational, Compiled._relation),
    ((sympy.And, sympy.Or), Compiled._logic),
    (sympy.Rational, lambda code, e: code.constant(e)),
    (type(sympy.pi), lambda code, e: "pi()"),
    (type(sympy.E), lambda code, e: "exp(1)"),
    (type(sympy.S.NegativeInfinity), lambda code, e: "minus_infinity"),
    (type(sympy.true), lambda code, e: "True"),
    (type(sympy.false), lambda code, e: "False"),
)


def _is_integral(e: Any) -> bool:
    """Whether the text of an expression gives a Python integer: sums and products of indices and sizes."""
    if e.is_Add or e.is_Mul:
        return all(map(_is_integral, e.args))
    return bool(e.is_Integer or (e.is_Symbol and e.is_integer and e.is_nonnegative))


def _is_decided(condition: Any) -> bool:
    """Whether a condition is about integers, and so either True or False."""
    if isinstance(condition, Relational):
        return all(map(_is_integral, condition.args))
    return isinstance(condition, (sympy.And, sympy.Or)) and all(map(_is_decided, condition.args))


def inverted(
    matrix: Sequence[Sequence[Any]], pivot: Callable[[Sequence[Any]], int], reciprocal: Callable[[Any], Any]
) -> list[list[Any]]:
    """The inverse of a matrix, by Gauss and Jordan; ``pivot`` picks what is divided by from the rest of a column."""
    n = len(matrix)
    lines = [[*line, *(int(i == j) for j in range(n))] for i, line in enumerate(matrix)]
    for k in range(n):
        best = k + pivot([line[k] for line in lines[k:]])
        lines[k], lines[best] = lines[best], lines[k]
        scale = reciprocal(lines[k][k])
        lines[k] = [x * scale for x in lines[k]]
        for i, line in enumerate(lines):
            if i != k:
                factor = -1 * line[k]
                lines[i] = [x + factor * y for x, y in zip(line, lines[k], strict=True)]
    return [line[n:] for line in lines]
