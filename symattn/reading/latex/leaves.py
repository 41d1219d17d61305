r"""Leaves of formulas: numbers, signs, names, and entries of declared tensors at indices, ``A_{ij}`` and ``Q_i``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy

from ...core.node import Tensor
from ...core.sizes import Shape, never_negative, same_size
from ...ops.gather import take
from ...ops.leaves import eye, ones, zeros
from ..formulas import LARGEST
from .names import Entry, Range, items_of, key_of, name_of
from .parser import INDICES as LETTERS
from .shapes import Form, Slot, Unknown, form_of
from .terms import Term, Terms
from .text import Span
from .tree import Fence, Fraction, Infix, Mark, Number, Product, Scripted, Symbol, Total, Tree
from .unknown import why_unknown
from .values import Value, with_labels

_CONSTANTS = {"π": sympy.pi, "e": sympy.E}


class Leaves(Terms):
    """Reads what has no operation inside: numbers, names, entries."""

    def number(self, tree: Number) -> Term:
        if tree.bold and tree.digits in ("0", "1"):
            size = Unknown(self.shown(tree))
            maker = ones if tree.digits == "1" else zeros
            slot = Slot(form_of((size,), self.conventions.vectors_are_rows))
            return Term(tree.span, slot, lambda: maker(self.known_size(size, self.shown(tree), tree.span)))
        digits = tree.digits
        if len(digits) > 64 or sympy.Rational(digits) > LARGEST:
            raise self.error("the number has too many digits", tree)
        return self.scalar(tree.span, sympy.Rational(digits))

    def symbol(self, tree: Symbol) -> Term:
        return self.named(tree, tree)

    def mark(self, tree: Mark) -> Term:
        if tree.sign == "∞":
            return self.scalar(tree.span, sympy.oo)
        if tree.sign == "…":
            raise self.error("dots are not read: write all of it, or a sum with limits", tree)
        raise self.error(f"{tree.sign} has nothing to stand at", tree)

    def named(self, tree: Tree, base: Symbol) -> Term:
        """A name that is written without indices."""
        if base.letters == "e" and base.style == "upright" and tree is base:
            return self.scalar(tree.span, sympy.E)
        entry, letter = self.names.find(tree), key_of(tree)
        if entry is not None and (letter not in self.letters or isinstance(entry.value, Tensor)):
            if letter in self.bound_letters:
                raise self.undecided(
                    f"{letter} stands below a sign as an index, and is declared as {entry.value.brief()}: take another "
                    "letter for the index",
                    tree,
                )
            return self.entry(tree, entry)
        if letter in self.letters:
            size = self.letters[letter]
            return Term(tree.span, Slot(Form(labels=((letter, size),))), lambda: self.dummy(letter))
        if self.is_derivative(tree):
            return self.named(tree, base)
        if base.letters in ("I", *_CONSTANTS):
            self.wait_for(key_of(tree), tree)
        constant = _CONSTANTS.get(base.letters) if isinstance(tree, Symbol) else None
        if constant is not None:
            return self.scalar(tree.span, constant)
        if base.letters == "I" and isinstance(tree, Symbol):
            return self._identity(tree, None)
        return self.unknown(tree)

    def is_derivative(self, tree: Tree) -> bool:
        r"""Whether a name is that of a derivative by a declared tensor, ``\mathrm{d}Q``; it is declared then."""
        raise NotImplementedError

    def _identity(self, tree: Tree, size: sympy.Expr | None) -> Term:
        n = Unknown(self.shown(tree)) if size is None else size
        return Term(tree.span, Slot(Form(rows=n, cols=n)), lambda: eye(self.known_size(n, self.shown(tree), tree.span)))

    def unknown(self, tree: Tree) -> Term:
        """A name that is not declared: its form may follow, for the message that asks for it."""
        problem = why_unknown(self.names, tree)
        if problem:
            raise self.error(problem, tree)
        name = name_of(tree)
        slot = self.undeclared.setdefault(name, (tree, Slot()))[1]

        def make() -> Value:
            self.report_undeclared()
            raise self.error(f"no shape for {name}", tree)

        return Term(tree.span, slot, make)

    def entry(self, tree: Tree, entry: Entry) -> Term:
        value = entry.value
        if entry.is_function:
            raise self.error(f"{entry.name} is a function: write {self.shown(tree)}(...)", tree)
        if value is None:
            raise self.error(f"{entry.name} is declared as a loss: only derivatives of it are read", tree)
        if not isinstance(value, Tensor):
            return self.scalar(tree.span, value)
        self.use(entry, tree)
        if isinstance(tree, Scripted) and tree.below is not None and not entry.family:
            self._check_one_for_all(tree, tree.below)
        if entry.family:
            return self.indexed_by(tree, value, [Symbol(tree.span, letter) for letter in entry.family], tree)
        return self._leaf(tree.span, value)

    def _check_one_for_all(self, tree: Tree, below: Tree) -> None:
        r"""That ``x_i`` below a sum over i is no single tensor that has this name."""
        bound = sorted(self.bound_letters.intersection(map(key_of, items_of(below))))
        if bound:
            shown, letter = self.shown(tree), bound[0]
            raise self.undecided(
                f"{shown} is declared as one tensor, and stands below a sign over {letter}: whether there is one for "
                f"each {letter} is not decided: say where {letter} runs first, as {letter} = 1, \\ldots, n",
                tree,
            )

    def wait_for(self, key: str, where: Tree) -> None:
        """Has this statement wait for the one that defines a name."""
        if key in self.names.waiting:
            raise self.error(f"{key} is defined by what needs it in turn: write what it is first", where)

    def use(self, entry: Entry, tree: Tree) -> None:
        """Notes that a declared tensor stands here, which the text must not define besides."""
        self.names.used.add(entry.name)
        if entry.name in self.names.defined_again:
            raise self.error(f"{entry.name} is declared, and the text defines it: leave it out of names", tree)

    def _leaf(self, span: Span, x: Tensor) -> Term:
        self.uses_vectors |= x.rank == 1
        return self.of_tensor(span, x, self.conventions.vectors_are_rows)

    def is_place(self, tree: Tree) -> bool:
        """Whether a subscript says where an entry stands: an index, a number, or a sum of them."""
        match tree:
            case Number():
                return True
            case Symbol() | Scripted():
                key = key_of(tree)
                return (
                    key in self.letters
                    or key in self.ranges
                    or key in self.names.quantified
                    or (key.rstrip("′") in LETTERS and self.names.find(tree) is None)
                )
            case Total(terms=terms):
                return all(self._is_factor(x) for _, x in terms) and any(self.is_place(x) for _, x in terms)
            case Product(factors=factors):
                return all(self._is_factor(x) for x in factors)
            case Fence(left="⌊", items=(inside,)):
                return self._is_factor(inside)
            case Infix(sign="mod" | "/", left=left, right=right) | Fraction(above=left, below=right):
                return self._is_factor(left) and self._is_factor(right)
        return False

    def _is_factor(self, tree: Tree) -> bool:
        """Whether a place may be calculated from it: an index, a number or a size."""
        return self.is_place(tree) or key_of(tree) in self.names.sizes

    def index_letter(self, tree: Tree) -> str:
        """The letter of an index; "" for a place that is calculated."""
        key = key_of(tree)
        return key if key and (isinstance(tree, Symbol) or isinstance(tree, Scripted)) else ""

    def indexed_by(self, tree: Tree, x: Tensor, items: list[Tree], where: Tree) -> Term:
        """The entries, or rows, of a tensor at indices: its first axes are labelled by them."""
        labels: dict[str, Any] = {}
        letters = []
        for axis, (item, size) in enumerate(zip(items, x.shape, strict=False)):
            letter = self.index_letter(item)
            if not letter:
                return self._at_places(tree, x, items)
            letters.append(letter)
            if self._is_shorter(letter, size):
                size = self.ranges[letter].size
                x = x[(*(slice(None),) * axis, slice(size))]
            known = labels.setdefault(letter, self.letters.get(letter, size))
            if not self.shapes.unify(known, size):
                raise self.shape_error(
                    f"the index {letter} runs over {self.shapes.size_text(known)}, and this axis has {size}", where
                )
            reach = self.ranges.get(letter)
            if reach is not None and not self.shapes.unify(reach.size, size):
                raise self.shape_error(f"the index {letter} runs over {reach.size}, and this axis has {size}", where)
        return self._labelled(tree.span, x, letters, labels, declared=self.names.family(tree) is not None)

    def _is_shorter(self, letter: str, size: sympy.Expr) -> bool:
        """Whether an index is said to run over the first places of an axis only, ``i = 0, \\ldots, n - 2``."""
        reach = self.ranges.get(letter)
        if reach is None or reach.first != (self.names.first_index or 0):
            return False
        return not same_size(reach.size, size) and never_negative(sympy.expand(size - reach.size))

    def _core(self, shape: Shape, declared: bool) -> Form:
        """Rows and columns of an entry: of a family they are declared, of a matrix they are a part of it."""
        self.uses_vectors |= declared and len(shape) == 1
        self.uses_parts |= not declared and len(shape) == 1
        rows = self.conventions.vectors_are_rows if declared else self.conventions.parts_are_rows
        return form_of(shape, rows)

    def _labelled(self, span: Span, x: Tensor, letters: list[str], labels: dict[str, Any], declared: bool) -> Term:
        rest = x.shape[len(letters) :]
        core = self._core(rest, declared)
        form = replace(core, labels=tuple(sorted(labels.items())))
        return Term(span, Slot(form), lambda: with_labels(x, letters, form))

    def _at_places(self, tree: Tree, x: Tensor, items: list[Tree]) -> Term:
        """``R_{i - j}``: a family at a place that is calculated from indices."""
        found = self.names.family(tree)
        if found is None or len(items) != 1 or not isinstance(items[0], Total):
            raise self.error(
                f"{self.shown(tree)}: where its indices begin is not decided: give first_index=0 or first_index=1, or "
                "declare it, if it is a name",
                tree,
            )
        place, reach = self.term(items[0]), self.ranges[found[0].family[0]]
        core = self._core(x.shape[1:], declared=True)
        counted = Term(tree.span, place.slot, lambda: self.value(place) - reach.first)

        def make() -> Tensor:
            self._check_reach(tree, place, reach)
            return take(x, self.tensor(counted), axis=0)

        return Term(tree.span, Slot(replace(core, labels=self.form(place).labels)), make)

    def _check_reach(self, tree: Tree, place: Term, reach: Range) -> None:
        """That a calculated place is one of the family's for all places of its indices."""
        value = self.value(place)
        low = high = value
        for letter, size in self.form(place).labels:
            begin = self.firsts.get(letter, sympy.S.Zero)
            ends = begin, begin + self.known_size(size, f"the index {letter}", tree.span) - 1
            rises = bool(value.coeff(self.dummy(letter)) > 0)
            low = low.xreplace({self.dummy(letter): ends[not rises]})
            high = high.xreplace({self.dummy(letter): ends[rises]})
        last = reach.first + reach.size - 1
        if not (never_negative(sympy.expand(low - reach.first)) and never_negative(sympy.expand(last - high))):
            raise self.error(f"{self.shown(tree)} leaves the range of the family, {reach.first} to {last}", tree)
