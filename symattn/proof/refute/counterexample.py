"""What a refutation shows: small sizes, exact arrays, the entry that differs and both of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ...core.boxes import Box, Fence, Function, Matrix, Script, Sign, Text, applied, raised, row, separated, subscripts
from ...core.boxes import Number as Digits
from ...core.naming import is_long, with_short_numbers
from ...core.node import Tensor
from ...ops.notation import transposed
from ...printing.index import entry_box
from ...printing.media.latex import latex
from ...printing.prose import EQUALS, Display, Paragraph, Part, Words, listed, sentence_of
from ...printing.prose_latex import is_short, parts_latex
from ...printing.scalars import scalar_box
from ...printing.symbols import symbol
from ...printing.table import SymbolTable, checked_table
from ..claims import RELATIONS
from .balls import Number, ball, exact_form
from .values import Point

_DIGITS = 10
_FEW = 20  # entries of all arrays that are told in a sentence
_SHOWN = 256  # entries of an array that is printed
_LONGEST = 14  # operations in an exact value that somebody still wants to read


@dataclass(frozen=True)
class EntryValue:
    """A value of an entry: exact where it is short, and as a decimal whose digits are all right."""

    exact: sympy.Expr | None
    decimal: str

    @property
    def value(self) -> sympy.Expr:
        """The exact value, or else the decimal as a SymPy number."""
        return sympy.Float(self.decimal) if self.exact is None else self.exact

    def __str__(self) -> str:
        if self.exact is None:
            return self.decimal
        return str(self.exact) if self.exact.is_Rational else f"{self.exact} = {self.decimal}..."

    def latex(self) -> str:
        return latex(self.box)

    @property
    def box(self) -> Box:
        """The value, and what it is about."""
        if self.exact is None:
            return Digits(self.decimal)
        exact = scalar_box(self.exact)
        return exact if self.exact.is_Rational else row(exact, Sign("≈", "relation"), Digits(self.decimal))


def entry_value(x: Number) -> EntryValue:
    """What is shown of a number."""
    exact = exact_form(x)
    if exact is not None and (exact.count_ops() > _LONGEST or any(map(is_long, exact.atoms(sympy.Rational)))):
        exact = None
    value = ball(x)
    infinite = not value.is_finite()
    return EntryValue(-sympy.oo if infinite else exact, "-oo" if infinite else value.str(_DIGITS, radius=False))


def as_array(entries: Mapping[tuple[int, ...], Number], shape: tuple[int, ...]) -> sympy.ImmutableDenseNDimArray:
    """The entries as a SymPy array; those that are not rational by their closed forms or decimals."""
    values = [entry_value(x).value for x in entries.values()]
    return sympy.ImmutableDenseNDimArray(values, shape)


def _array_text(array: sympy.ImmutableDenseNDimArray) -> str:
    return str(array) if len(array) <= _SHOWN else "..."


def _array_box(array: sympy.ImmutableDenseNDimArray) -> Box:
    """An array in brackets, a vector as a column lying down; those of more than two axes are a row of smaller ones."""
    if len(array) > _SHOWN:
        return Sign("…")
    if array.rank() == 0:
        return scalar_box(array[()])
    if array.rank() == 2:
        return Matrix(tuple(tuple(map(scalar_box, cells)) for cells in array.tolist()))
    if array.rank() == 1:
        cells = Matrix((tuple(map(scalar_box, array)),))
        return cells if len(array) == 1 else transposed(cells)
    return Matrix((tuple(map(_array_box, array)),))


@dataclass(frozen=True)
class StandIn:
    """What stands for an unknown function: a polynomial of an entry, or that of each entry of a row and its places."""

    coefficients: tuple[int, ...]
    of_row: bool

    def _polynomial(self, x: sympy.Symbol) -> sympy.Expr:
        return sympy.Add(*(c * x**n for n, c in enumerate(self.coefficients)))

    def __str__(self) -> str:
        if not self.of_row:
            return f"x -> {self._polynomial(sympy.Symbol('x'))}"
        return f"row x -> (i + 1)*({self._polynomial(sympy.Symbol('x[i]'))}) + sum_j (j + 1)*x[j]"

    def box(self, name: Box) -> Box:
        """The value of the function of that name as mathematics."""
        x, equal = sympy.Symbol("x"), Sign("=", "relation")
        value = applied(Function(name), [scalar_box(x)])
        if not self.of_row:
            return row(value, equal, scalar_box(self._polynomial(x)))
        i, j = sympy.symbols("i j")
        factors = [Fence(scalar_box(e)) for e in (i + 1, self._polynomial(sympy.Symbol("x_i")), j + 1)]
        total = row(Script(Sign("∑", "large"), scalar_box(j)), factors[2], symbol("x_j"))
        return row(entry_box(value, [scalar_box(i)]), equal, *factors[:2], Sign("+", "sum"), total)


@dataclass(frozen=True, eq=False)
class Example:
    """A point as it is shown: sizes, scalars, arrays, and what stands for the unknown functions."""

    sizes: Mapping[sympy.Symbol, int]
    scalars: Mapping[sympy.Symbol, sympy.Expr]
    arrays: Mapping[Tensor, sympy.ImmutableDenseNDimArray]
    functions: Mapping[str, StandIn]

    def _numbers(self) -> list[str]:
        """The sizes and scalars, the longest told roughly."""
        pairs = (*self.sizes.items(), *self.scalars.items())
        return [f"{s} = {with_short_numbers(sympy.sympify(v))}" for s, v in pairs]

    def _arrays(self) -> list[str]:
        return [f"{x.name} = {_array_text(array)}" for x, array in self.arrays.items()]

    def _boxes(self, table: SymbolTable) -> tuple[list[Box], list[Box]]:
        """The numbers, and the arrays and functions."""
        pairs = (*self.sizes.items(), *self.scalars.items())
        numbers = [_equation(table.scalar(s), scalar_box(sympy.sympify(v))) for s, v in pairs]
        named = {x: self._symbol(x, table) for x in self.arrays}
        arrays = [_equation(named[x], _array_box(array)) for x, array in self.arrays.items()]
        return numbers, [*arrays, *(function.box(table.box(name)) for name, function in self.functions.items())]

    def _symbol(self, x: Tensor, table: SymbolTable) -> Box:
        return table.box(table.names.get(x, str(x.name)))

    def text(self) -> str:
        """The point in one line."""
        functions = [f"{name}: {formula}" for name, formula in self.functions.items()]
        return ", ".join([*self._numbers(), *self._arrays(), *functions])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics, in a sentence if it is short, with the symbols of a document if it stands in one."""
        numbers, arrays = self._boxes(checked_table(within))
        several = [*numbers, *arrays]
        if all(map(is_short, several)) and sum(len(array) for array in self.arrays.values()) <= _FEW:
            return (Paragraph((*_beside(several), ".")),)
        return *([Paragraph((*_beside(numbers), ":"))] if numbers else []), Display(tuple(arrays))

    def latex(self, within: SymbolTable | None = None) -> str:
        """The same as LaTeX."""
        return parts_latex(self.told(within))


@dataclass(frozen=True, eq=False)
class Counterexample(Example):
    """A point at which a claim is false, for sure.

    ``sizes``, ``scalars`` and ``arrays`` are the point; ``functions`` say what stands for the unknown functions.
    At ``index``, the entry of the left side has the value ``left`` and that of the right side ``right``. For a claim
    of independence, the right side is the same output at the second value of the variable, the last of the arrays.
    ``relation`` is what the claim says of both, ``=``, ``<`` or ``<=``.
    """

    index: tuple[int, ...]
    left_value: EntryValue
    right_value: EntryValue
    twin: Tensor | None = None
    relation: str = "="

    @property
    def left(self) -> sympy.Expr:
        """The entry of the left side: exact where that is short, else a decimal."""
        return self.left_value.value

    @property
    def right(self) -> sympy.Expr:
        """The entry of the right side."""
        return self.right_value.value

    @property
    def total(self) -> int:
        """How many entries all arrays have together."""
        return sum(len(array) for array in self.arrays.values())

    def arrays_numpy(self) -> dict[Tensor, Any]:
        """The arrays as NumPy's, to run a function on."""
        kinds: dict[str, type] = {"binary": bool, "integer": int}
        return {
            x: np.array(a.reshape(len(a)).tolist()).astype(kinds.get(x.kind, float)).reshape(a.shape)
            for x, a in self.arrays.items()
        }

    @property
    def _sides(self) -> tuple[str, str]:
        return ("left", "right") if self.twin is None else ("the first", "the second")

    def text(self) -> str:
        """Sizes, arrays and the two values, line by line."""
        lines = [", ".join(numbers)] if (numbers := self._numbers()) else []
        lines += [*self._arrays(), *(f"{name} = {shown}" for name, shown in self.functions.items())]
        sides = self._sides
        if self.twin is not None:
            lines.append(f"({self.twin.name} is the second value of the variable)")
        at = f"entry {list(self.index)}: " if self.index else ""
        fails = "" if self.relation == "=" else f", so left {self.relation} right is false"
        return "\n".join([*lines, f"{at}{sides[0]} is {self.left_value}, {sides[1]} is {self.right_value}{fails}"])

    __str__ = text

    def told(
        self, within: SymbolTable | None = None, on_the_way: tuple[Sequence[Box], Sequence[Box]] = ((), ())
    ) -> tuple[Part, ...]:
        """The point, and both values of the entry, each behind equations for what is worked out on the way to it."""
        table = checked_table(within)
        numbers, arrays = self._boxes(table)
        at = ("At ", *_beside(numbers)) if numbers else ()
        entries = [self._entry(Text(side.split()[-1])) for side in self._sides]
        values = self.left_value, self.right_value
        sides = tuple(_equation(entry, value.box) for entry, value in zip(entries, values, strict=True))
        fails = self._failing(entries, table)
        shown: tuple[Part, ...] = (Display(sides),)
        if any(on_the_way):
            left, right = (Display((*way, side)) for way, side in zip(on_the_way, sides, strict=True))
            fails, between = (("on the left:",), "and on the right:") if self.relation == "=" else (fails, "and")
            shown = left, Paragraph((between,)), right
        if not arrays:
            return Paragraph((*at, ", ", *fails) if at else sentence_of(fails)), *shown
        with_arrays = Paragraph((*at, ", with") if at else ("With",)), Display(tuple(arrays))
        return *with_arrays, Paragraph(fails), *shown

    def _failing(self, entries: Sequence[Box], table: SymbolTable) -> Words:
        """What both values show."""
        if self.twin is not None:
            second = self._symbol(self.twin, table)
            return "where ", second, " is the second value of the variable, the outputs differ:"
        if self.relation == "=":
            return ("the two sides differ:",)
        return "the inequality ", separated(RELATIONS[self.relation], entries), " fails:"

    def _symbol(self, x: Tensor, table: SymbolTable) -> Box:
        """How a tensor is printed; a second value of the variable follows that, with primes."""
        name = str(x.name)
        whole = name.rstrip("'")
        if x is not self.twin or name in table or whole not in table:
            return super()._symbol(x, table)
        return raised(table.box(whole), Sign("′" * (len(name) - len(whole))))

    def _entry(self, side: Box) -> Box:
        return Script(side, subscripts([Digits(str(i)) for i in self.index])) if self.index else side


def _beside(boxes: Sequence[Box]) -> Words:
    return listed(((box,) for box in boxes), ", ")


def _equation(left: Box, right: Box) -> Box:
    return row(left, EQUALS, right)


@dataclass(frozen=True)
class Agreement:
    """No difference was found: how many points were tried, which proves nothing.

    ``trials`` counts the points at which the claim holds, as far as digits tell, and ``sizes`` are those they had;
    ``outside`` counts the points at which a side has no value, and ``undecided`` those where the values are too close
    to call. ``reason`` says why there are no trials, if so; ``point`` is the first at which the claim holds.
    """

    trials: int
    outside: int
    undecided: int
    sizes: tuple[dict[sympy.Symbol, int], ...]
    reason: str = ""
    point: Point | None = None

    @property
    def inconclusive(self) -> int:
        """How many points told nothing."""
        return self.outside + self.undecided

    @property
    def points(self) -> int:
        """How many points were found at which all holds that is given."""
        return self.trials + self.inconclusive

    def __str__(self) -> str:
        if not self.trials:
            counted = f" ({self._left_out})" if self.inconclusive else ""
            return f"nothing was compared: {self.reason}{counted}"
        sizes = sorted({n for point in self.sizes for n in point.values()})
        shown = f" of sizes {', '.join(map(str, sizes))}" if sizes else ""
        left_out = f"; {self._left_out}" if self.inconclusive else ""
        return f"the claim holds at {_points(self.trials)}{shown}{left_out}"

    @property
    def _left_out(self) -> str:
        parts = [f"{_points(self.undecided)} could not be decided"] if self.undecided else []
        parts += [f"a side has no value at {_points(self.outside)}"] if self.outside else []
        return "; ".join(parts)


def _points(n: int) -> str:
    return "1 point" if n == 1 else f"{n} points"
