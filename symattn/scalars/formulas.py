"""What entry formulas need and SymPy lacks: bound indices, bounded extremes, and a choice that folds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.relational import Relational
from sympy.core.symbol import Str

from ..core.boxes import (
    Box,
    Fence,
    Function,
    Number,
    Script,
    Sign,
    applied,
    commas,
    function,
    power_of,
    row,
    subscripts,
)
from ..core.late import late
from ..core.node import Tensor
from ..errors import EvaluationError, NoRuleError, OperandError


def bound(node: Tensor, slot: int, size: sympy.Expr) -> tuple[sympy.Dummy, sympy.Expr, sympy.Expr]:
    """The limits (k, 0, size - 1) of a bound index of this node.

    The index is numbered by the node's height. Indices passed down come from higher nodes, so nothing is captured,
    and the same expression has the same entry every time.
    """
    return bound_index(node.height * 64 + slot + 100), sympy.S.Zero, size - 1


def bound_index(number: int) -> sympy.Dummy:
    """The bound index of a number, the same one every time."""
    return sympy.Dummy("k", integer=True, nonnegative=True, dummy_index=number)


_LONGEST = 60  # parts of a formula that is written out where it is read

# The index of an entry whose inputs are reads.
INDEX = tuple(sympy.Dummy(f"i{n}", integer=True, nonnegative=True, dummy_index=n + 1) for n in range(16))


def at_index(formula: Any, where: Sequence[Any]) -> Any:
    """An entry formula at ``INDEX``, at another index."""
    return formula.xreplace(dict(zip(INDEX, where, strict=False)))


def is_short(formula: Any) -> bool:
    """Whether a formula is written out where it is read."""
    return sum(1 for _ in sympy.preorder_traversal(formula)) <= _LONGEST


class Read(sympy.Function):
    """An entry of an input in an entry formula: the number of the input, then the index."""

    def _eval_is_extended_real(self) -> bool:
        return True


def in_latex(x: Any, printer: Any, exp: Any = None) -> str:
    """What SymPy's printer is told: the boxes of the expression in LaTeX."""
    written: str = late("scalar_latex")(x)
    return written if exp is None else rf"\left({written}\right)^{{{exp}}}"


class _Extreme(ExprWithLimits):
    r"""The extreme of a term over bound indices, unevaluated, like ``sympy.Sum``."""

    @property
    def is_real(self) -> Any:
        return self.function.is_real

    def doit(self, **hints: Any) -> Any:
        return self

    _latex = in_latex


class Max(_Extreme):
    r"""``\max_{k=0}^{n-1} f(k)``."""


class Min(_Extreme):
    r"""``\min_{k=0}^{n-1} f(k)``."""


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

    def _eval_is_integer(self) -> Any:
        return True if all(x.is_integer for x in self.args[1:]) else None

    def _eval_derivative(self, s: Any) -> Any:
        condition, a, b = self.args
        return Choice(condition, a.diff(s), b.diff(s))

    def _pythoncode(self, printer: Any) -> str:
        condition, a, b = map(printer.doprint, self.args)
        return f"(({a}) if ({condition}) else ({b}))"

    def _numpycode(self, printer: Any) -> str:
        where = printer._module_format("numpy.where")
        return f"{where}({', '.join(map(printer.doprint, self.args))})"

    _latex = in_latex


class Ranged(sympy.Function):
    """An index in the condition of a choice, which runs from 0 to a size less 1; it is written as the index."""

    nargs = 2
    is_integer = True

    @classmethod
    def eval(cls, index: Any, size: Any) -> Any:
        return index if index.is_number or isinstance(index, Ranged) else None

    def _written(self, printer: Any) -> str:
        return str(printer.doprint(self.args[0]))

    _sympystr = _pretty = _pythoncode = _numpycode = _lambdacode = _written
    _latex = in_latex

    def _boxes(self, printer: Any) -> Any:
        return printer.box(self.args[0])


def ranged(formula: Any, ranges: Mapping[sympy.Symbol, sympy.Expr]) -> Any:
    """The formula with conditions that know how far their free indices run, which nothing else in it may tell."""
    if not formula.has(Choice) or not formula.has(sympy.Indexed):
        return formula
    told = {i: Ranged(i, size) for i, size in ranges.items()}

    def named(relation: Any) -> Any:  # which says no more of the index than before, so nothing is evaluated
        return relation.func(*(side.xreplace(told) for side in relation.args), evaluate=False)

    conditions = {choice.args[0] for choice in formula.atoms(Choice)}
    told_of = {c: c.xreplace({part: named(part) for part in c.atoms(Relational)}) for c in conditions}
    return formula.xreplace(told_of)


def without_ranges(formula: Any) -> Any:
    """The formula with plain indices in its conditions."""
    return formula.xreplace({part: part.args[0] for part in formula.atoms(Ranged)})


def choose(condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the condition holds, else ``b``; "an indicator is not 0" is the condition that it indicates."""
    if isinstance(condition, sympy.Ne) and isinstance(condition.lhs, Choice) and condition.lhs.args[1:] == (1, 0):
        condition = condition.lhs.args[0] if condition.rhs == 0 else condition
    return Choice(condition, a, b)


def compared(relation: Any, *entries: Any) -> Any:
    """A relation or an extreme of entries; EvaluationError where one of them is no real number, as log(-1) is none."""
    try:
        return relation(*entries)
    except (TypeError, ValueError):  # of SymPy, which orders real numbers only
        found = next((x for x in entries if x.is_extended_real is False), entries[0])
        raise EvaluationError(f"{found} is compared, which is no real number: entries are real numbers") from None


def without_piecewise(formula: Any) -> Any:
    """The formula with every Piecewise as a choice; one without a last case is an OperandError."""
    if not formula.has(sympy.Piecewise):
        return formula
    return formula.replace(lambda part: isinstance(part, sympy.Piecewise), _as_choices)


_JOINED = (sympy.ITE, sympy.Xor, sympy.Implies, sympy.Equivalent)


def plainly_joined(formula: Any) -> Any:
    """The formula with its conditions joined by and, or and not alone: SymPy makes others of nested choices."""
    if not formula.has(*_JOINED):
        return formula
    return formula.replace(lambda part: isinstance(part, _JOINED), lambda part: part.to_nnf(simplify=False))


def _as_choices(piecewise: Any) -> Any:
    value, condition = piecewise.args[-1]
    if condition != sympy.true:
        raise OperandError(f"{piecewise} has no value where none of its conditions holds: end it by (value, True)")
    for other, condition in reversed(piecewise.args[:-1]):
        value = Choice(plainly_joined(condition), other, value)
    return value


class Held(sympy.Function):
    """Its argument, taken as a constant by every derivative."""

    nargs = 1

    def _eval_is_extended_real(self) -> Any:
        return self.args[0].is_extended_real

    def _eval_derivative(self, s: Any) -> Any:
        return sympy.S.Zero

    _latex = in_latex

    def _boxes(self, printer: Any) -> Box:
        return applied(function("stop"), [printer.box(self.args[0])])


class Unknown(sympy.Function):
    """A value of a function known only by name; a prime is a derivative."""

    nargs = 2

    def __new__(cls, name: Any, argument: Any) -> Any:
        return super().__new__(cls, Str(str(name)), argument)

    def _eval_is_extended_real(self) -> Any:
        return True

    def _eval_derivative(self, s: Any) -> Any:
        name, argument = self.args
        return Unknown(f"{name}'", argument) * argument.diff(s)

    def _sympystr(self, printer: Any) -> str:
        return f"{self.args[0]}({printer.doprint(self.args[1])})"

    _latex = in_latex

    def _boxes(self, printer: Any) -> Box:
        name, argument = self.args
        return applied(Function(printer.box(sympy.Symbol(str(name)))), [printer.box(argument)])


# --- entries that depend on every entry of a row or a matrix ---


class _OfAll(_Extreme):
    """One entry, at ``places``, of what depends on all entries of a term over bound indices."""

    def __new__(cls, term: Any, limits: Any, places: Any, *more: Any) -> Any:
        ranges = sympy.Tuple(*(sympy.Tuple(*limit) for limit in limits))
        made = sympy.Expr.__new__(cls, term, ranges, sympy.Tuple(*places), *more)
        made.is_commutative = True
        return made

    @property
    def limits(self) -> Any:
        return self.args[1]

    @property
    def places(self) -> Any:
        return self.args[2]

    @property
    def bound_symbols(self) -> Any:
        return [k for k, _, _ in self.limits]

    @property
    def free_symbols(self) -> Any:
        ends = (end.free_symbols for _, *edges in self.limits for end in edges)
        return (self.function.free_symbols - set(self.bound_symbols)).union(self.places.free_symbols, *ends)

    def _eval_subs(self, old: Any, new: Any) -> Any:
        return self if old in self.bound_symbols else None

    def _family(self, printer: Any) -> Box:
        return cast("Box", printer.family(self.function, self.limits))

    def _at(self, printer: Any) -> Box:
        return subscripts([*map(printer.box, self.places)])


class InverseEntry(_OfAll):
    """One entry of the inverse of the matrix of a term over two bound indices."""

    def _eval_derivative(self, s: Any) -> Any:
        """``-A^{-1} A' A^{-1}``, entry by entry."""
        inner = sympy.Dummy("k", integer=True, nonnegative=True), sympy.Dummy("l", integer=True, nonnegative=True)
        slope = self.function.diff(s).xreplace(dict(zip(self.bound_symbols, inner, strict=True)))
        (k, m), (row, column) = inner, self.places
        left, right = (self.func(self.function, self.limits, at) for at in ((row, k), (m, column)))
        return -sympy.Sum(left * slope * right, *((i, *limit[1:]) for i, limit in zip(inner, self.limits, strict=True)))

    def _boxes(self, printer: Any) -> Box:
        inverse = power_of(self._family(printer), row(Sign("−", "prefix"), Number("1")))
        return Script(Fence(inverse), self._at(printer))


class ScanEntry(_OfAll):
    """One entry of what a recurrence gives, of all entries of its inputs, which are terms over bound indices.

    ``name`` tells recurrences apart, beside their ``sizes``; ``total`` says whether a step has a value for all values.
    Of the places of an output the first is the step, and what is read at a later place than it by a ``timed`` index,
    or one more than an index, does not matter to it.
    """

    def __new__(cls, terms: Any, limits: Any, places: Any, name: Any, sizes: Any, total: Any, timed: Any) -> Any:
        more = Str(str(name)), sympy.Tuple(*sizes), sympy.true if total else sympy.false, sympy.Tuple(*timed)
        return super().__new__(cls, sympy.Tuple(*terms), limits, places, *more)

    @property
    def name(self) -> str:
        return f"{self.args[3]} of {', '.join(str(sympy.expand(size)) for size in self.args[4])}"

    @property
    def is_real(self) -> Any:
        return True

    @property
    def is_total(self) -> bool:
        return bool(self.args[5])

    @property
    def timed(self) -> Any:
        return self.args[6]

    def _eval_derivative(self, s: Any) -> Any:
        if all(term.diff(s) == 0 for term in self.function):
            return sympy.S.Zero
        raise NoRuleError("an entry of a recurrence has no derivative as a formula: take sa.gradient of the tensor")

    def _boxes(self, printer: Any) -> Box:
        families = Fence(commas(map(printer.box, self.function)), "[", "]")
        inside = Script(families, commas(map(printer.box, self.bound_symbols))) if self.bound_symbols else families
        return Script(Fence(applied(function(str(self.args[3])), [inside])), self._at(printer))

    def _sympystr(self, printer: Any) -> str:
        terms, places = (", ".join(map(printer.doprint, part)) for part in (self.function, self.places))
        return f"{self.args[3]}([{terms}])[{places}]"


class UnknownOfRow(_OfAll):
    """One entry of an unknown function of a row, which is a term over one bound index."""

    def __new__(cls, term: Any, limits: Any, places: Any, name: Any) -> Any:
        return super().__new__(cls, term, limits, places, Str(str(name)))

    @property
    def is_real(self) -> Any:
        return True

    def _eval_derivative(self, s: Any) -> Any:
        if self.function.diff(s) == 0:
            return sympy.S.Zero
        raise NoRuleError(f"nothing is known of {self.args[3]} but its name: it has no derivative")

    def _boxes(self, printer: Any) -> Box:
        head = Function(printer.box(sympy.Symbol(str(self.args[3]))))
        return Script(Fence(applied(head, [self._family(printer)])), self._at(printer))
