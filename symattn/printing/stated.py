"""Conditions written by a printer, and sentences in which they stand."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.node import Tensor, topological
from ..core.stated import Condition, Formula, Stated
from ..graph.names import LONGEST, tree_size, unnamed_inputs
from ..ops.leaves import definition
from .align import SIGNS, tex_text
from .matrix import Printer

_SHORT = LONGEST // 8  # nodes of a tensor that a condition writes out
_PLACE = "is a place in"


def condition_in(printer: Printer, condition: Condition) -> str:
    """A condition as text, or as a sentence of LaTeX."""
    left = _side(condition.left, printer)
    if condition.right is None:
        return f"{_mathematics(printer, left)} {condition.relation}"
    right = _side(condition.right, printer)
    if condition.relation == _PLACE:
        return _mathematics(printer, "0", "<=", left, "<", right)
    return _mathematics(printer, left, condition.relation, right)


def stated_in(printer: Printer, condition: Condition) -> Stated:
    """A condition as text by the names of a printer, which it keeps."""
    shown = topological(condition.tensors, inputs=unnamed_inputs)
    names = {x: printer.names[x] for x in shown if x in printer.names}
    return Stated(condition_in(printer, condition), condition, names)


def tex_sentence(sentence: str) -> str:
    """A sentence, or a condition by its own names, as LaTeX text."""
    if isinstance(sentence, Stated):
        return condition_in(Printer(sentence.names, latex=True), sentence.condition)
    return tex_text(sentence)


def _mathematics(printer: Printer, *parts: str) -> str:
    if not printer.latex:
        return " ".join(parts)
    return f"${' '.join(SIGNS.get(part, part) for part in parts)}$"


def _side(side: Any, printer: Printer) -> str:
    if isinstance(side, Tensor):
        return _tensor(side, printer)
    if isinstance(side, Formula):
        return _formula(side, printer)
    return printer.scalar(side)


def _tensor(x: Tensor, printer: Printer) -> str:
    """The name that a claim has for it, or else what it is: a name that only a proof has says nothing."""
    if x in printer.names:
        return printer.refer(x)
    if tree_size(x) <= _SHORT:
        return printer.refer(definition(x))
    return rf"\texttt{{{tex_text(x.brief())}}}" if printer.latex else x.brief()


def _formula(side: Formula, printer: Printer) -> str:
    written = {s: _tensor(x, printer) for s, x in side.tensors}
    if printer.latex:
        return sympy.latex(side.expression, symbol_names=written)
    return str(side.expression.xreplace({s: sympy.Symbol(name) for s, name in written.items()}))
