r"""Entries and parts at places: indices, numbers, places that are calculated from indices, stretches of an axis.

A place that is a number is counted from where a text says that it counts; from 1, the end of a stretch is part of it.
One that is calculated is counted from where its indices are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from ...core.exact import INDICES
from ...core.node import Tensor
from ...core.sizes import never_negative
from ...ops.classes import holds_integers
from ...ops.gather import take
from ...ops.layout import transpose
from ...ops.leaves import from_index
from .leaves import Leaves
from .names import key_of
from .shapes import Form, Slot, form_of
from .terms import Term
from .tree import Fence, Infix, Number, Product, Scripted, Slice, Symbol, Total, Tree, parts_of
from .values import is_condition, with_labels


class Places(Leaves):
    """Reads what stands at places of axes."""

    def has_numbers(self, items: Sequence[Tree]) -> bool:
        """Whether places are numbers, beside indices, and where they begin is given, or one of them is 0."""
        digits = [item.digits for item in items if isinstance(item, Number)]
        decided = self.names.first_index is not None or "0" in digits
        return bool(digits) and decided and all(map(self.is_place, items))

    def is_last(self, item: Tree) -> bool:
        """Whether a size is a place, the last one where a text is said to count from 1."""
        return self.names.first_index == 1 and key_of(item) in self.names.sizes

    def is_new_axis(self, item: Tree) -> bool:
        r"""Whether ``\text{new}`` stands in the place of an index."""
        upright = isinstance(item, Symbol) and (item.letters, item.style) == ("new", "upright")
        return upright and self.names.find(item) is None

    def size_of(self, tree: Tree) -> sympy.Expr:
        """A size, as it stands in a shape."""
        term = self.term(tree)
        indices = [letter for letter, _ in self.form(term).labels]
        if indices:
            raise self.error(f"{self.shown(tree)} is no size: {indices[0]} is an index here", tree)
        value = self.value(term)
        if isinstance(value, Tensor) or is_condition(value):
            raise self.error(f"{self.shown(tree)} is no size", tree)
        return value

    def is_part(self, items: Sequence[Tree]) -> bool:
        """Whether stretches of axes are among the items of a subscript."""
        return any(isinstance(item, Slice) for item in items)

    def entry_of(self, tree: Scripted, inside: Term, items: Sequence[Tree]) -> Term:
        """The entries, rows or blocks of a value at places of its axes, those of its heads among them."""
        form = self.form(inside)
        axes = (*form.lead, *form.core)
        told = [item for item in items if not self.is_new_axis(item)]
        whole = self.is_part(items) or not all(map(self.index_letter, items))
        if len(told) > len(axes) or (whole and len(told) != len(axes)) or not all(map(self._is_item, items)):
            hint = ": write a row as A_{i, :}, a column as A_{:, j}" if self.is_part(items) else ""
            raise self.error(
                f"{self.shown(tree)} has {len(told)} indices, and there {self.shapes.shown(form)}{hint}", tree
            )
        numbers = [item.digits for item in items if isinstance(item, Number)]
        if "0" not in numbers and (numbers or any(map(self._begins_late, items))):
            if 0 not in self.names.bases | self.names.declared_bases() and self.names.first_index is None:
                raise self.not_decided(tree)
        if numbers or any(isinstance(part, Number) for item in items for part in _ends(item)):
            self.set_base(self.names.first_place, tree)
        return _Placed(self, tree, inside, items).term()

    def _begins_late(self, item: Tree) -> bool:
        """Whether a stretch with an end begins at another place when counted from 1; ``2:`` and ``-2:`` are of code."""
        if not isinstance(item, Slice) or item.parts[0] is None or item.parts[1] is None:
            return False
        first = self.size_of(item.parts[0])
        return first != 0 and not first.is_negative

    def _is_item(self, item: Tree) -> bool:
        place = self.is_place(item) or self.is_last(item)
        return place or isinstance(item, Slice) or self.is_new_axis(item) or self.is_looked_up(item)

    def is_looked_up(self, item: Tree) -> bool:
        """Whether a place is what a declared tensor of integers has, as in ``b_{N_{ij}}``."""
        base = item.base if isinstance(item, Scripted) else item
        entry = self.names.find(item) or self.names.find(base)
        return entry is not None and isinstance(entry.value, Tensor) and holds_integers(entry.value)

    def is_calculated(self, items: Sequence[Tree]) -> bool:
        """Whether the items of a subscript are places, and not all of them plain indices and numbers."""
        return all(map(self._is_item, items)) and any(
            _is_formula(x) or self.is_looked_up(x) or self.is_last(x) for x in items
        )


class _Placed:
    """The parts of one value at the items of a subscript."""

    def __init__(self, reader: Places, tree: Tree, inside: Term, items: Sequence[Tree]) -> None:
        self.reader, self.tree, self.inside = reader, tree, inside
        self.form = reader.form(inside)
        self.sizes = (*self.form.lead, *self.form.core)
        self.items = items
        self.places: dict[int, Term] = {}  # by the items that are calculated

    def term(self) -> Term:
        """The term, whose form has a label for each index, and the axes that are kept whole or in part."""
        labels, kept, axis = dict(self.form.labels), list[bool](), 0
        for n, item in enumerate(self.items):
            if self.reader.is_new_axis(item):
                kept.append(True)
                continue
            self._label(labels, n, item, self.sizes[axis])
            gathers = n in self.places and bool(self.reader.form(self.places[n]).axes[len(self._letters(n)) :])
            kept.append(isinstance(item, Slice) or gathers)
            axis += 1
        out = replace(self._core(kept), labels=tuple(sorted(labels.items())))
        return Term(self.tree.span, Slot(out), lambda: self._value(out), (self.inside,))

    def _label(self, labels: dict[str, Any], n: int, item: Tree, size: Any) -> None:
        reader = self.reader
        letter = reader.index_letter(item)
        if isinstance(item, Slice):
            return
        if letter in reader.letters or (letter and reader.names.find(item) is None and not reader.is_looked_up(item)):
            found = {letter: size}
        else:
            self.places[n] = reader.term(item)
            found = dict(reader.form(self.places[n]).labels)
            if not reader.form(self.places[n]).is_scalar and not reader.is_looked_up(item):
                raise reader.error(f"{reader.shown(item)} is no place of an axis", item)
        for letter, reach in found.items():
            known = labels.setdefault(letter, reader.letters.get(letter, reach))
            if not reader.shapes.unify(known, reach):
                raise reader.shape_error(
                    f"the index {letter} runs over {reader.shapes.size_text(known)} and over "
                    f"{reader.shapes.size_text(reach)}",
                    self.tree,
                )

    def _letters(self, n: int) -> list[str]:
        """The indices that a place is calculated from."""
        return [letter for letter, _ in self.reader.form(self.places[n]).labels]

    def _core(self, kept: list[bool]) -> Form:
        """The form of the axes that are left: a row of a matrix whose columns are kept is a row."""
        reader, sizes = self.reader, list[Any]()
        whole = iter(self.sizes)
        for n, (item, keeps) in enumerate(zip(self.items, kept, strict=True)):
            size = sympy.S.One if reader.is_new_axis(item) else next(whole)
            if n in self.places:
                sizes += reader.form(self.places[n]).axes[len(self._letters(n)) :]
            elif keeps:
                sizes.append(self._stretch(item, size))
        rest = list(whole)
        if any(kept) or not rest:
            row = len(kept) > 1 and kept[-1] and not kept[-2]
            row |= len(kept) == 1 and self.form.rows is None
            return form_of(sizes, row and len(sizes) == 1)
        reader.uses_parts |= len(rest) == 1
        return form_of(rest, reader.conventions.parts_are_rows)

    def _stretch(self, item: Tree, size: Any) -> Any:
        """How long a stretch of an axis is: as long as the slice of a tensor is."""
        if not isinstance(item, Slice) or not any(item.parts):
            return size
        known = self.reader.known_size(size, "the axis", item.span)
        return self._sliced(from_index((known,), lambda i: i), item, 0).shape[0]

    # --- values ---

    def _value(self, out: Form) -> Tensor:
        reader, x = self.reader, self.reader.tensor(self.inside)
        tags: list[str] = [letter for letter, _ in self.form.labels]
        tags += [""] * len(self.sizes)
        axis = len(self.form.labels) + sum(not reader.is_new_axis(item) for item in self.items)
        for n in reversed(range(len(self.items))):
            item = self.items[n]
            if reader.is_new_axis(item):
                x = x[(*(slice(None),) * axis, None)]
                tags.insert(axis, "")
                continue
            axis -= 1
            if isinstance(item, Slice):
                x = self._sliced(x, item, axis)
            elif n in self.places:
                x, tags[axis : axis + 1] = self._taken(x, self.places[n], axis)
            else:
                tags[axis] = reader.index_letter(item)
        order = [n for n, tag in enumerate(tags) if tag] + [n for n, tag in enumerate(tags) if not tag]
        if order != sorted(order):
            x = transpose(x, tuple(n - x.rank for n in order))
        return with_labels(x, [tag for tag in tags if tag], out)

    def _sliced(self, x: Tensor, item: Slice, axis: int) -> Tensor:
        self._check_stretch(item)
        edges = [None if part is None else _number(self.reader.size_of(part)) for part in item.parts]
        if edges[0] is not None:  # counted from 1, the last place is part of the stretch
            edges[0] -= self.reader.names.first_place
        return x[(*(slice(None),) * axis, slice(*edges))]

    def _check_stretch(self, item: Slice) -> None:
        """That ``1:n`` up to a size is not counted from 0, as it is in code, where it may be all n places."""
        begin, end, *_ = (*item.parts, None, None)
        from_one = isinstance(begin, Number) and begin.digits == "1"
        if from_one and self.reader.names.first_index is None and key_of(end or item) in self.reader.names.sizes:
            raise self.reader.error(
                f"whether {self.reader.shown(item)} is counted from 0 or from 1 is not decided: give first_index=1, "
                "or first_index=0",
                item,
            )

    def _taken(self, x: Tensor, place: Term, axis: int) -> tuple[Tensor, list[str]]:
        """The axis at a place, and the letters of the axes that have taken its place."""
        reader = self.reader
        labels, value = reader.form(place).labels, reader.value(place)
        if isinstance(value, Tensor):
            return take(x, value, axis=axis), [letter for letter, _ in labels] + [""] * (value.rank - len(labels))
        before = (slice(None),) * axis
        if not labels:
            first = reader.names.first_place
            if (value - first).is_negative:
                raise reader.error(
                    f"{reader.shown(self.tree)} has no such place: they are {first} to {x.shape[axis] - 1 + first}",
                    self.tree,
                )
            reader.check_begins(self.tree)
            reader.set_base(first, self.tree)
            return x[(*before, slice(_number(value - first), _number(value - first + 1)))][(*before, 0)], []
        letters = [letter for letter, _ in labels]
        sizes = [reader.known_size(size, f"the index {letter}", place.span) for letter, size in labels]
        told = reader.names.bases | reader.names.declared_bases()
        counted = self._from_zero(place, value, letters)
        symbols = INDICES[: len(letters)]
        counted = counted.xreplace({reader.dummy(le): s for le, s in zip(letters, symbols, strict=True)})
        ends = dict(zip(symbols, sizes, strict=True))
        if not stays(counted, ends, sympy.S.Zero, x.shape[axis] - 1):
            raise reader.error(
                f"that the place {reader.shown(place.span)} stays within an axis of {x.shape[axis]} is not seen",
                place.span,
            )
        moved = counted.xreplace({s: s + 1 for s in symbols}) - 1  # the same, with the indices counted from 1
        differs = not told and reader.assumed.intersection(letters) and sympy.expand(moved - counted) != 0
        if differs and stays(moved, ends, sympy.S.Zero, x.shape[axis] - 1):
            raise reader.not_decided(self.tree)
        return take(x, from_index(tuple(sizes), lambda *_: counted), axis=axis), letters

    def _from_zero(self, place: Term, value: Any, letters: list[str]) -> Any:
        """The place counted from 0, of indices that are counted from 0."""
        reader = self.reader
        firsts = {reader.firsts.get(letter) for letter in letters}
        bases = reader.names.bases | reader.names.declared_bases()
        if None in firsts and len(bases) == 1:
            firsts = {first for first in firsts if first is not None} | {sympy.Integer(next(iter(bases)))}
        if firsts not in ({sympy.S.Zero}, {sympy.S.One}):
            raise reader.error(
                f"where {' and '.join(letters)} begin is not decided: declare it by names={{{letters[0]!r}: '0..n-1'}}",
                place.span,
            )
        (first,) = firsts
        reader.set_base(int(first), self.tree)
        moved = value.xreplace({reader.dummy(letter): reader.dummy(letter) + first for letter in letters})
        return moved - first


def stays(value: sympy.Expr, ends: dict[sympy.Symbol, sympy.Expr], low: sympy.Expr, high: sympy.Expr) -> bool:
    """Whether a formula of indices, each from 0 to below its end, is seen to lie between two bounds.

    >>> from symattn.core.sizes import sizes
    >>> i, n, d = sympy.Symbol("i", integer=True), *sizes("n d")
    >>> stays(sympy.floor(i / d), {i: n * d}, 0, n - 1), stays(i + 1, {i: n}, 0, n - 1)
    (True, False)
    """
    if isinstance(value, sympy.floor):
        above, below = sympy.fraction(sympy.together(value.args[0]))
        return bool(below.is_positive) and stays(above, ends, low * below, (high + 1) * below - 1)
    if isinstance(value, sympy.Mod):
        modulus = value.args[1]
        return bool(modulus.is_positive and never_negative(-low) and never_negative(sympy.expand(high - modulus + 1)))
    found = extremes(value, ends)
    if found is None:
        return False
    least, most = found
    return never_negative(sympy.expand(least - low)) and never_negative(sympy.expand(high - most))


def extremes(value: sympy.Expr, ends: dict[sympy.Symbol, sympy.Expr]) -> tuple[sympy.Expr, sympy.Expr] | None:
    """The least and the greatest value of a sum of multiples of indices, None where it is none or a sign is not known.

    >>> from symattn.core.sizes import sizes
    >>> i, n = sympy.Symbol("i", integer=True), sizes("n")
    >>> extremes(2 - i, {i: n})
    (3 - n, 2)
    """
    value = sympy.expand(value)
    least = most = value
    for index, end in ends.items():
        slope = value.coeff(index)
        if value.has(index) and (sympy.expand(value - slope * index).has(index) or slope.has(*ends)):
            return None
        if slope.is_nonnegative:
            least, most = least.xreplace({index: sympy.S.Zero}), most.xreplace({index: end - 1})
        elif slope.is_nonpositive:
            least, most = least.xreplace({index: end - 1}), most.xreplace({index: sympy.S.Zero})
        else:
            return None
    return least, most


def _is_formula(item: Tree) -> bool:
    """Whether a place is a formula of indices: a sum, a multiple, a quotient that is rounded down."""
    return isinstance(item, (Total, Product, Infix, Fence))


def _ends(item: Tree) -> list[Tree]:
    """All that is in the ends of a stretch."""
    return list(parts_of(item)) if isinstance(item, Slice) else []


def _number(value: Any) -> Any:
    """A whole number as Python's, and any other size as it is."""
    return int(value) if value.is_Integer else value
