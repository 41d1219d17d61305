"""Formulas of entries by the names of a claim: ``Z[i, k] <= logsumexp(Z)[i]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from ...core.boxes import Box, row
from ...core.naming import free_letters
from ...core.node import Tensor, topological
from ...graph.entries import BOUND_LETTERS, FREE_LETTERS
from ...graph.names import LONGEST, displayed_names, tree_size
from ...ops.leaves import bare, definition, indexed, is_named, variable
from ...ops.rows import REDUCTIONS, logsumexp_op
from ...printing.index import EntryScalars
from ...printing.matrix import Printer, names_in
from ...printing.prose import Words, listed
from ...printing.table import SymbolTable
from ...scalars.formulas import INDEX, Read
from ..claims import RELATIONS, condition_text
from .chain import Link
from .writing import Writing

_LONGEST = 60  # parts of a side of an inequality that somebody reads


def named_nodes(roots: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """What the names stand for that roots mention, each with its name."""
    mentioned = topological(map(definition, roots))
    return {bare(x): x for x in mentioned if is_named(x) and x.op is not variable and bare(x).inputs}


class FormulasTold:
    """Formulas of entries as text or as mathematics, in which each index has one letter."""

    def __init__(
        self, roots: Sequence[Tensor], writing: Writing, code: bool, within: SymbolTable | None = None
    ) -> None:
        self.code = code
        self.nodes = writing.nodes
        own = SymbolTable(displayed_names(roots))
        self.printer = Printer(own if within is None else within.over(own), code)
        self.named = named_nodes(roots)
        self.taken = names_in(roots)
        free = free_letters(FREE_LETTERS, self.taken)
        self.letters: dict[Any, Any] = {i: _letter(next(free)) for i in INDEX[:4]}
        self.free = free_letters(BOUND_LETTERS, {*self.taken, *(s.name for s in self.letters.values())})
        folded = (x for x in writing.nodes if x.op in (*REDUCTIONS, logsumexp_op) and x not in writing.same)
        self.folded = {writing.full[x]: Read(writing.number[x], *INDEX[: x.rank]) for x in folded if x in writing.full}

    def line(self, link: Link) -> Words:
        """A link, and why it holds."""
        where = listed(map(self._condition, link.where), " and ")
        case: Words = ("where ", *where, ", ") if where else ()
        return *case, self._statement(link), f": {link.reason}"

    def is_short(self, link: Link) -> bool:
        """Whether somebody reads it, and it says more than that something is itself."""
        sides = [self._formula(side) for side in (link.left, link.right)]
        shown = all(tree_size(x) <= LONGEST // 8 for x in self._unnamed(sides))
        parts = max(sum(1 for _ in sympy.preorder_traversal(side)) for side in sides)
        return shown and parts <= _LONGEST and sides[0] != sides[1]

    def _statement(self, link: Link) -> str | Box:
        left, right = (self._formula(side) for side in (link.left, link.right))
        if self.code:
            return f"{left} {link.relation} {right}"
        sides = [self._box(side) for side in (left, right)]
        return row(sides[0], RELATIONS[link.relation], sides[1])

    def _condition(self, condition: Any) -> Words:
        said = self._formula(condition)
        return (condition_text(said) if self.code else self._box(said),)

    def _box(self, e: Any) -> Box:
        names, boxes, shapes = dict[Tensor, str](), dict[Tensor, Box](), dict[str, Any]()
        for name, node in self._read(e):
            names[node], shapes[name] = name, node.shape
            boxes[node] = self.printer.box(self.named.get(node, node))
        table = SymbolTable.spelled(names, boxes).over(self.printer.table)
        return EntryScalars(table, shapes, self.taken, ()).box(e)

    def _formula(self, e: Any) -> Any:
        """A formula with entries by name, and letters for indices."""
        e = sympy.sympify(e).xreplace(self.folded)
        for s in sorted(e.atoms(sympy.Dummy) - self.letters.keys(), key=lambda s: s.dummy_index):
            self.letters[s] = _letter(next(self.free))
        while reads := [r for r in e.atoms(Read) if not any(place.has(Read) for place in r.args[1:])]:
            e = e.xreplace({r: self._entry(r) for r in reads})
        return e.xreplace(self.letters)

    def _entry(self, read: Any) -> Any:
        node = self.nodes[int(read.args[0])]
        return indexed(self._name(node), tuple(read.args[1:]))

    def _name(self, node: Tensor) -> str:
        known = self.named.get(node, node)
        if known in self.printer.names:
            return self.printer.names[known]
        if not self.code:
            return f" {self.nodes.index(node)}"
        whole = self.printer.refer(node)
        return whole if node.op in (*REDUCTIONS, logsumexp_op) else f"({whole})"

    def _read(self, e: Any) -> Iterator[tuple[str, Tensor]]:
        by_name: Mapping[str, Tensor] = {self._name(x): x for x in self.nodes}
        found = [str(entry.base.label) for entry in e.atoms(sympy.Indexed)] + [s.name for s in e.atoms(sympy.Symbol)]
        yield from ((name, by_name[name]) for name in found if name in by_name)

    def _unnamed(self, sides: Sequence[Any]) -> list[Tensor]:
        read = [self.named.get(node, node) for e in sides for _, node in self._read(e)]
        return [x for x in read if x not in self.printer.names]


def _letter(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, nonnegative=True)
