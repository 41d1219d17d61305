"""What a comparison of entries says, in one dialect: both sides, the step between them, and what is named in them."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from ...core.boxes import Box
from ...core.naming import free_letters
from ...core.node import Tensor, topological
from ...graph.names import displayed_names, tree_size
from ...normal_form.boxed import BoxWriter
from ...normal_form.indices import symbols
from ...normal_form.terms import Poly
from ...normal_form.writing import Known, TextWriter, Writer
from ...ops.leaves import bare, definition, is_named, variable
from ...printing.index import entry_box
from ...printing.matrix import Printer
from ...printing.prose import listed
from ...printing.table import SymbolTable, checked_table
from .decide import Comparison, Piece
from .meeting import Meeting, meaning, meeting

W = TypeVar("W")
_LETTERS = "ijhabcefg"
_SHORT = 12  # nodes of a tensor that says at a glance what a definition is
_MOST_NAMES = 4


class PieceTold(NamedTuple, Generic[W]):
    """One entry of both sides, the form in which they are one, and the step to it, if there is one.

    None is too long.
    """

    at: Sequence[W]
    left: W | None
    right: W | None
    form: W | None = None
    step: tuple[str | W, ...] = ()
    inside: Sequence[tuple[W, W]] = ()  # what is divided by or below a root, and the same written out


class EntriesTold(ABC, Generic[W]):
    """A comparison in one dialect; a definition has one name in all of it: that of the claim, or t_1, t_2, ..."""

    def __init__(self, comparison: Comparison, roots: Sequence[Tensor]) -> None:
        self.comparison = comparison
        self._names = displayed_names(roots)
        self._known = _known(comparison, roots, self._names)
        self._met: dict[int, str] = {}  # names of definitions that the claim has no name for, in their order
        self._written_out: dict[int, None] = {}  # definitions of which the entries are said besides
        self._sides = [self._both(piece) for piece in comparison.pieces]
        self.divisors = self._divisors()

    def pieces(self) -> Iterator[PieceTold[W]]:
        """The pieces of the ranges, of sides that are equal."""
        for number, (piece, told) in enumerate(zip(self.comparison.pieces, self._sides, strict=True)):
            found = meeting(self.comparison, number)
            if found is None:
                yield told
            elif found.form is piece.left:
                yield told._replace(right=told.left)
            else:
                yield self._met_at(found, told, self._writer(_free(piece, self.comparison.taken)))

    def _both(self, piece: Piece) -> PieceTold[W]:
        writer = self._writer(_free(piece, self.comparison.taken))
        at = [writer.index(place) for place in piece.index]
        return PieceTold(at, writer.short(piece.left), writer.short(piece.right))

    def _met_at(self, found: Meeting, told: PieceTold[W], writer: Writer[W]) -> PieceTold[W]:
        self._written_out.update(dict.fromkeys(key for key in found.written_out if key in self._known))
        how = [*self._opened(found.written_out), *self._multiplied(writer, found.times)]
        form = writer.short(found.form)
        if form is None:
            return told
        inside = [(writer.short(before), writer.short(after)) for before, after in found.inside]
        told = told._replace(inside=[(a, b) for a, b in inside if a is not None and b is not None])
        for side, end in ((told.right, "the left becomes the right"), (told.left, "the right becomes the left")):
            if side is not None and writer.key(form) == writer.key(side):
                return told._replace(step=listed([*how, (end,)], ", "))
        return told._replace(form=form, step=listed([*how, ("both are",)], ", "))

    def _opened(self, keys: Sequence[int]) -> list[tuple[str | W, ...]]:
        named = [key for key in keys if key in self._known] + [key for key in self._met if key in keys]
        if not named:
            return []
        few = len(named) <= _MOST_NAMES
        shown = _listed(list(map(self._name, named))) if few else ("what is named below",)
        return [("with ", *shown, " written out")]

    def _multiplied(self, writer: Writer[W], factors: Sequence[Poly]) -> list[tuple[str | W, ...]]:
        written = [shown for poly in factors if (shown := writer.short(poly)) is not None]
        return [("times ", *_listed(written))] if written else []

    def _name(self, key: int) -> W:
        name = self._known[key].name if key in self._known else self._met[key]
        return self._writer({}).entry(name, False, ())

    def apart(self, piece: Piece) -> tuple[W | None, W | None, W | None]:
        """Both sides of a piece that are not seen to be one, and their difference."""
        writer = self._writer(_free(piece, self.comparison.taken))
        return writer.short(piece.left), writer.short(piece.right), writer.short(piece.gap)

    def _divisors(self) -> list[tuple[W | None, str]]:
        """What is divided by and is positive, each as it is written, and why. Sizes are left out."""
        ring = self.comparison.ring
        found: dict[int, list[tuple[str, W | None, str]]] = {}  # in its several spellings
        for poly in tuple(ring.divisors.values()):
            if not _plainly_positive(poly) and ring.is_positive(poly):
                free = sorted(poly.free)
                writer = self._writer(dict(zip(free, free_letters(_LETTERS, self.comparison.taken), strict=False)))
                written = writer.short(poly)
                key = meaning(self.comparison, poly, {s: ("argument", n) for n, s in enumerate(free)})
                order = "a long sum" if written is None else writer.key(written)
                found.setdefault(key, []).append((order, written, _why_positive(poly)))
        shortest = (min(spellings, key=lambda said: len(said[0])) for spellings in found.values())
        return [(written, why) for _, written, why in sorted(shortest, key=lambda said: said[0])]

    def where(self) -> Iterator[tuple[W, W | None, W | None]]:
        """What was written by a new name or was written out: the name, the entry of what it is, and its value."""
        done: set[int] = set()
        while waiting := [key for key in (*self._met, *self._written_out) if key not in done]:
            key = waiting[0]
            done.add(key)
            known = self.comparison.definitions[key]
            writer = self._writer(dict(zip(known.symbols, free_letters(_LETTERS, self.comparison.taken), strict=False)))
            name, value = writer.defined(key, known.symbols), writer.short(known.poly)
            short = key in self._met and known.is_entry and tree_size(known.node) <= _SHORT
            yield name, self.of_node(known.node, list(map(writer.index, known.place))) if short else None, value

    def _writer(self, free: Mapping[int, str]) -> Writer[W]:
        writer = self.writer(free)
        writer.met = self._met
        return writer

    @abstractmethod
    def writer(self, free: Mapping[int, str]) -> Writer[W]:
        """What writes polynomials, with letters for their free index symbols."""

    @abstractmethod
    def of_node(self, node: Tensor, index: Sequence[W]) -> W:
        """An entry of a tensor that has no name of its own."""


class TextTold(EntriesTold[str]):
    """A comparison as text."""

    def writer(self, free: Mapping[int, str]) -> TextWriter:
        return TextWriter(free, self.comparison.taken, self._known)

    def of_node(self, node: Tensor, index: Sequence[str]) -> str:
        whole = Printer(SymbolTable(self._names), code=True).refer(node)
        return f"({whole})[{', '.join(index)}]" if index else whole


class BoxesTold(EntriesTold[Box]):
    """A comparison as mathematics, with the symbols of a document if it stands in one."""

    def __init__(self, comparison: Comparison, roots: Sequence[Tensor], within: SymbolTable | None = None) -> None:
        self.within = checked_table(within)
        super().__init__(comparison, roots)

    def writer(self, free: Mapping[int, str]) -> BoxWriter:
        writer = BoxWriter(free, self.comparison.taken, self._known)
        writer.table = self.within
        return writer

    def of_node(self, node: Tensor, index: Sequence[Box]) -> Box:
        return entry_box(Printer(self.within.over(SymbolTable(self._names)), code=False).box(node), index)


def _listed(several: Sequence[W]) -> tuple[str | W, ...]:
    """Formulas with commas and an "and"."""
    return listed([(one,) for one in several], ", ", " and ")


def _known(comparison: Comparison, roots: Sequence[Tensor], names: Mapping[Tensor, str]) -> dict[int, Known]:
    """The names that a claim has for definitions of which they are the entries."""
    mentioned = {bare(x): names[x] for x in topological(map(definition, roots)) if is_named(x) and x.op is not variable}
    found: dict[int, Known] = {}
    for key, alike in comparison.alike.items():
        for known in alike:
            if known.node in mentioned and known.is_entry:
                found.setdefault(key, Known(mentioned[known.node], known.symbols, known.place))
    return found


def _free(piece: Piece, taken: Container[str]) -> dict[int, str]:
    """Letters for the free index symbols of a piece; two digits of one index are i and i1."""
    names: dict[int, str] = {}
    for place, letter in zip(piece.index, free_letters(_LETTERS, taken), strict=False):
        digits = (digit for n in itertools.count() if (digit := f"{letter}{n or ''}") not in taken)
        names.update(zip(symbols(place), digits, strict=False))
    return names


def _plainly_positive(poly: Poly) -> bool:
    """Whether it is a size, a number, or one exponential, of which nobody asks why it is not zero."""
    return all(
        atom.kind == "exp" or (atom.kind == "scalar" and atom.name.is_positive)
        for _, term in poly.terms
        for atom, _e in term.factors
    ) and not any(term.bound for _, term in poly.terms)


def _why_positive(poly: Poly) -> str:
    kinds = {atom.kind for _, term in poly.terms for atom, _e in term.factors}
    return "a sum of exponentials" if "exp" in kinds else "a sum of positive terms"
