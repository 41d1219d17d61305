"""What a comparison of entries says, in one dialect: both sides, the step between them, and what is named in them."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.naming import free_letters
from ...core.node import Tensor, topological
from ...graph.names import displayed_names, tree_size
from ...normal_form.indices import symbols
from ...normal_form.terms import Poly
from ...normal_form.writing import Known, Writer
from ...ops.leaves import bare, definition, is_named, variable
from ...printing.matrix import Printer
from ...printing.symbols import latex_name
from ...printing.table import SymbolTable
from .decide import Comparison, Piece
from .meeting import Meeting, meaning, meeting

_LETTERS = "ijhabcefg"
_SHORT = 12  # nodes of a tensor that says at a glance what a definition is
_MOST_NAMES = 4
TOO_LONG = "(too long to write out)"


class PieceTold(NamedTuple):
    """One entry of both sides, the form in which they are one, and the step to it; "" is too long, or no step."""

    at: str
    left: str
    right: str
    form: str = ""
    step: str = ""


class EntriesTold:
    """A comparison as text or as LaTeX; a definition has one name in all of it: that of the claim, or t_1, t_2, ..."""

    def __init__(self, comparison: Comparison, roots: Sequence[Tensor], latex: bool) -> None:
        self.comparison, self.latex = comparison, latex
        self._printer = Printer(SymbolTable(displayed_names(roots)), not latex)
        self._known = _known(comparison, roots, self._printer.names)
        self._met: dict[int, str] = {}  # names of definitions that the claim has no name for, in their order
        self._written_out: dict[int, None] = {}  # definitions of which the entries are said besides
        self._sides = [self._both(piece) for piece in comparison.pieces]
        self.divisors = self._divisors()

    def pieces(self) -> Iterator[PieceTold]:
        """The pieces of the ranges, of sides that are equal."""
        for piece, told in zip(self.comparison.pieces, self._sides, strict=True):
            found = meeting(self.comparison, piece)
            if found is None:
                yield told
            elif found.form is piece.left:
                yield told._replace(right=told.left)
            else:
                yield self._met_at(found, told, self._writer(_free(piece, self.comparison.taken)))

    def _both(self, piece: Piece) -> PieceTold:
        writer = self._writer(_free(piece, self.comparison.taken))
        at = ", ".join(map(writer.index, piece.index))
        return PieceTold(at, *map(writer.short, (piece.left, piece.right)))

    def _met_at(self, found: Meeting, told: PieceTold, writer: Writer) -> PieceTold:
        self._written_out.update(dict.fromkeys(key for key in found.written_out if key in self._known))
        how = [*self._opened(found.written_out), *self._multiplied(writer, found.times)]
        form = writer.short(found.form)
        ends = {told.right: "the left becomes the right", told.left: "the right becomes the left"}
        step = ", ".join([*how, ends.get(form, "both are")])
        return told._replace(form="" if form in ends else form, step=step if form else "")

    def _opened(self, keys: Sequence[int]) -> list[str]:
        named = [key for key in keys if key in self._known] + [key for key in self._met if key in keys]
        if not named:
            return []
        shown = _listed(list(map(self._name, named))) if len(named) <= _MOST_NAMES else "what is named below"
        return [f"with {shown} written out"]

    def _multiplied(self, writer: Writer, factors: Sequence[Poly]) -> list[str]:
        written = [self._mathematics(shown) for poly in factors if (shown := writer.short(poly))]
        return [f"times {_listed(written)}"] if written else []

    def apart(self, piece: Piece) -> tuple[str, ...]:
        """Both sides of a piece that are not seen to be one, and their difference."""
        writer = self._writer(_free(piece, self.comparison.taken))
        return tuple(map(writer.short, (piece.left, piece.right, piece.gap)))

    def _divisors(self) -> list[tuple[str, str]]:
        """What is divided by and is positive, each as it is written, and why. Sizes are left out."""
        ring = self.comparison.ring
        found: dict[int, list[tuple[str, str]]] = {}  # in its several spellings
        for poly in tuple(ring.divisors.values()):
            if not _plainly_positive(poly) and ring.is_positive(poly):
                free = sorted(poly.free)
                letters = dict(zip(free, free_letters(_LETTERS, self.comparison.taken), strict=False))
                written = self._writer(letters).short(poly) or "a long sum"
                key = meaning(self.comparison, poly, {s: ("argument", n) for n, s in enumerate(free)})
                found.setdefault(key, []).append((written, _why_positive(poly)))
        return sorted(min(spellings, key=lambda said: len(said[0])) for spellings in found.values())

    def where(self) -> Iterator[tuple[str, str]]:
        """What was written by a new name or was written out, and what that stands for, with what this names in turn."""
        done: set[int] = set()
        while waiting := [key for key in (*self._met, *self._written_out) if key not in done]:
            key = waiting[0]
            done.add(key)
            known = self.comparison.definitions[key]
            letters = dict(zip(known.symbols, free_letters(_LETTERS, self.comparison.taken), strict=False))
            writer = self._writer(letters)
            name, value = writer.defined(key, known.symbols), writer.short(known.poly)
            short = key in self._met and known.is_entry and tree_size(known.node) <= _SHORT
            yield name, f"{self._entry(known.node, map(writer.index, known.place))} = {value}" if short else value

    def _entry(self, node: Tensor, index: Iterable[str]) -> str:
        """An entry of a tensor that has no name of its own."""
        whole, at = self._printer.refer(node), ", ".join(index)
        if self.latex:
            return rf"{{\left({whole}\right)}}_{{{at}}}" if at else whole
        return f"({whole})[{at}]" if at else whole

    def _name(self, key: int) -> str:
        name = self._known[key].name if key in self._known else self._met[key]
        return self._mathematics(latex_name(name) if self.latex else name)

    def _mathematics(self, written: str) -> str:
        return f"${written}$" if self.latex else written

    def _writer(self, free: Mapping[int, str]) -> Writer:
        writer = Writer(self.latex, free, self.comparison.taken, self._known)
        writer.met = self._met
        return writer


def _listed(words: Sequence[str]) -> str:
    """Words with commas and an "and"."""
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), words[-1]])


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
