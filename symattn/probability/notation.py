"""How moments are written: E[x], Var[x], and SymPy scalars with entries and sums, as LaTeX in index style."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..core.boxes import Box, Fence, Function, Name, Sign, function, row, separated
from ..core.node import Tensor
from ..core.stated import Sentence
from ..printing.index import IndexPrinter
from ..printing.prose import Words, listed
from ..printing.stated import sentence_words
from ..printing.table import SymbolTable, symbol_table, with_laws
from ..scalars.formulas import in_latex


def moment_sign(sign: str) -> Function:
    """The letter of an expectation, the words of other moments."""
    return Function(Name("E", "blackboard")) if sign == "E" else function(sign)


class Mean(sympy.Function):  # type: ignore[misc, unused-ignore]
    """``E[x]`` as it is written; it is never worked out."""

    sign = "E"

    def _sympystr(self, printer: Any) -> str:
        return f"{self.sign}[{printer._print(self.args[0])}]"

    def _boxes(self, printer: Any) -> Box:
        return row(moment_sign(self.sign), Fence(printer.box(self.args[0]), "[", "]"))

    _latex = in_latex


class Variance(Mean):
    """``Var[x]`` as it is written."""

    sign = "Var"


class Skewness(Mean):
    """``Skew[x]`` as it is written."""

    sign = "Skew"


class Kurtosis(Mean):
    """``Kurt[x]`` as it is written."""

    sign = "Kurt"


class Difference(sympy.Function):  # type: ignore[misc, unused-ignore]
    """``a - b``, in this order."""

    _latex = in_latex

    def _sympystr(self, printer: Any) -> str:
        return " - ".join(map(printer._print, self.args))

    def _boxes(self, printer: Any) -> Box:
        return separated(Sign("−", "sum"), map(printer.box, self.args))


def box_writer(
    tensors: Sequence[Tensor], values: Sequence[sympy.Expr], table: SymbolTable | None = None
) -> Callable[[sympy.Expr], Box]:
    """A function that prints some scalars: sizes, then factors as the tensors come, sums over letters that are free."""
    sizes = {s.name for value in values for s in value.free_symbols if s.is_Symbol and s.is_integer}
    letters = {s.name for value in values for s in value.free_symbols if s.is_Symbol}
    known = with_laws(table or symbol_table(tensors), tensors, letters)
    scalars = IndexPrinter(tensors, known, known.letters() | letters).scalars
    order = [*sorted(sizes), *(f"{letter}{x.name}" for letter in ("", "mu_", "sigma_") for x in tensors)]
    return lambda value: scalars.ordered(_bound_by_dummies(value), order)


def assumed(sentences: Sequence[Sentence], tensors: Sequence[Tensor], table: SymbolTable) -> Words:
    """A sentence that says what is assumed of some tensors, by the symbols of a table."""
    if not sentences:
        return ("Nothing is assumed.",)
    lettered = with_laws(table, tensors, {letter for said in sentences for letter in said.symbols})
    return "It is assumed that ", *listed(sentence_words(said, lettered) for said in sentences), "."


def _bound_by_dummies(formula: sympy.Expr) -> sympy.Expr:
    """The formula with dummies for the letters that it sums over, as the printer wants them."""
    letters = {limit[0] for total in formula.atoms(sympy.Sum) for limit in total.limits}
    return formula.xreplace(
        {
            letter: sympy.Dummy(letter.name, integer=True, nonnegative=True, dummy_index=100 + n)
            for n, letter in enumerate(sorted(letters, key=str))
        }
    )


def bound_by_letters(formula: sympy.Expr) -> sympy.Expr:
    """The formula with plain letters for the dummies that it sums over; they have different names."""
    dummies = {limit[0] for total in formula.atoms(sympy.Sum) for limit in total.limits}
    return formula.xreplace({k: sympy.Symbol(k.name, integer=True, nonnegative=True) for k in dummies})
