"""Conditions by the names of a printer, as words with mathematics in them, and the text of them."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.boxes import Box, Code, Sign, Text, row
from ..core.node import Tensor, topological
from ..core.stated import Condition, Formula, Sentence, Stated
from ..graph.names import LONGEST, tree_size, unnamed_inputs
from ..ops.leaves import definition
from .matrix import Printer
from .prose import Words
from .scalars import Scalars
from .table import SymbolTable, checked_table

_SHORT = LONGEST // 8  # nodes of a tensor that a condition writes out
_PLACE = "is a place in"
_MARKS = {"!=": "≠", ">=": "≥", "<=": "≤", "divides": "∣"}


def condition_words(printer: Printer, condition: Condition) -> Words:
    """What a condition says."""
    left = _side(condition.left, printer)
    if condition.right is None:
        return left, f" {condition.relation}"
    right = _side(condition.right, printer)
    if condition.relation == _PLACE:
        return (row(printer.scalar(0), _sign("<=", printer), left, _sign("<", printer), right),)
    return (row(left, _sign(condition.relation, printer), right),)


def stated_in(printer: Printer, condition: Condition) -> Stated:
    """A condition as text by the names of a printer of text, which it keeps."""
    shown = topological(condition.tensors, inputs=unnamed_inputs)
    names = {x: printer.names[x] for x in shown if x in printer.names}
    words = condition_words(printer, condition)
    text = "".join(part if isinstance(part, str) else printer.written(part) for part in words)
    return Stated(text, condition, names)


def sentence_words(sentence: str, within: SymbolTable | None = None) -> Words:
    """A sentence with what it names as mathematics, or a condition, by its own names or by those of a document."""
    if isinstance(sentence, Sentence):
        return tuple(word for part in sentence.parts for word in _part(part, within))
    if isinstance(sentence, Stated) and isinstance(sentence.formula, Condition):
        own = SymbolTable(sentence.names)
        return condition_words(Printer(own if within is None else within.over(own), code=False), sentence.formula)
    return (str(sentence),) if sentence else ()


def _part(part: Any, within: SymbolTable | None) -> Words:
    table = checked_table(within)
    if isinstance(part, Stated):
        return (table.scalar(part.formula),) if isinstance(part.formula, sympy.Basic) else sentence_words(part, within)
    if isinstance(part, str):
        return (part,)
    return (table.box(table.names.get(part, str(part.name))) if isinstance(part, Tensor) else table.scalar(part),)


def _sign(relation: str, printer: Printer) -> Sign:
    return Sign(relation if printer.code else _MARKS.get(relation, relation), "relation")


def _side(side: Any, printer: Printer) -> Box:
    if isinstance(side, Tensor):
        return _tensor(side, printer)
    if isinstance(side, Formula):
        return _formula(side, printer)
    return printer.scalar(side)


def _tensor(x: Tensor, printer: Printer) -> Box:
    """The name that a claim has for it, or else what it is: a name that only a proof has says nothing."""
    if x in printer.names:
        return printer.box(x)
    if tree_size(x) <= _SHORT:
        return printer.box(definition(x))
    return Code(x.brief()) if printer.code else Text(x.brief())


def _formula(side: Formula, printer: Printer) -> Box:
    written = {s.name: _tensor(x, printer) for s, x in side.tensors}
    if not printer.code:
        return Scalars(written).box(side.expression)
    names = {s: sympy.Symbol(printer.written(written[s.name])) for s, _ in side.tensors}
    return Code(str(side.expression.xreplace(names)))
