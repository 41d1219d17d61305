r"""Printing in index style: one entry, with its sums and their limits, ``Z_{i j} = \sum_{k=0}^{d-1} Q_{i k} K_{j k}``.

What is printed is the entry formula of each operation, so it needs no notation of its own. The last two axes of a
left side have the indices i and j, axes in front of them a, b, c, and an axis of size 1 has none; indices that are
summed are k, l, m, ... None of them is the name of anything else. How far an index runs is told where what it reads
does not say so. A condition between brackets is 1 where it holds and else 0. Indices are counted from 0, or all of them
from 1. A name of several parts keeps together: ``(W_{q})_{i j}``, ``\mathrm{mask}_{i j}``, ``\mathrm{d}Q_{i j}``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import sympy

from ..core.boxes import (
    Box,
    Fence,
    Function,
    Name,
    Row,
    Script,
    Sign,
    Space,
    raised,
    row,
    separated,
    subscripts,
)
from ..core.naming import counted, free_letters
from ..core.node import Tensor, topological
from ..core.sizes import Shape, same_shape
from ..errors import OperandError
from ..graph.entries import BOUND_LETTERS, _expand, entry_size
from ..graph.names import symbol_names
from ..ops.arithmetic import multiply_op
from ..ops.broadcasting import sum_op
from ..ops.contraction import einsum_op, matmul_op, trace_op
from ..ops.gather import reads_outside, shift_op, take_op
from ..ops.index import block, index_op
from ..ops.layout import concat_op, swaps_last_two
from ..ops.leaves import constant, definition, from_index_op, indexed, is_eye, is_named
from ..ops.notation import Binding, by_indices, is_number, shows_new_axes
from ..ops.rows import REDUCTIONS
from .counting import from_one
from .gradients import at_entry
from .media.latex import latex
from .prose import Step, sentence
from .ranges import certain, ranging, untold
from .scalars import Scalars
from .symbols import symbol
from .table import SymbolTable

_SUMMING = {*REDUCTIONS, matmul_op, einsum_op, trace_op}
_SHORT = 15  # operations of what is read entry by entry where nothing forces it
LONGEST = 200  # parts of one printed entry; a larger one is asked to be named in parts
_INNER, _OUTER = "ij", "abcfghostuvwxyz"


def moves_entries(x: Tensor) -> bool:
    """Whether a node moves entries in a way for which matrix notation has no sign, or is a slice or a sum of such."""
    if x.op is shift_op and reads_outside(x):
        return True
    if block(x) is not None:
        return False
    if x.op is take_op and x.inputs[0].rank == 1 and x.inputs[1].rank:  # x_t is a name
        return True
    if x.op in _SUMMING and _is_of_indices(x):
        return True
    while x.op in (index_op, sum_op):
        x = x.inputs[0]
    return (x.op.spreads and not swaps_last_two(x.params.get("order", ()))) or _repeats_operands(x)


def multiplies_vectors_in_step(x: Tensor) -> bool:
    """Whether a product is one of several: a vector of each row, say, for which matrices have another product."""
    if x.op is not matmul_op or 1 not in x.params["core"]:
        return False
    return all(y.rank > own for y, own in zip(x.inputs, x.params["core"], strict=True))


def _repeats_operands(x: Tensor) -> bool:
    """Whether an entrywise operation of three axes or more repeats an operand in a way that no matrix shows."""
    return x.op.broadcasts and x.rank > 2 and (_repeats_within_batch(x) or _meets_new_axes(x))


def _repeats_within_batch(x: Tensor) -> bool:
    """Whether an operand has some of the axes in front of matrices, and is repeated along others."""
    batches = [y.shape[:-2] for y in x.inputs if y.rank > 2 and not is_number(y)]
    return any(batch != x.shape[:-2] for batch in batches)


def _meets_new_axes(x: Tensor) -> bool:
    """Whether an operand has new axes."""
    pending, found = [x], False
    for _ in range(_SHORT):
        if not pending:
            return found
        y = pending.pop()
        found |= shows_new_axes(y)
        pending += y.inputs if y.op.broadcasts else ()
    return False


def _is_of_indices(x: Tensor) -> bool:
    """Whether an expression is made of constants by index alone, whose sizes nothing else says."""
    pending, found = [x], False
    while pending:
        y = pending.pop()
        if is_named(y):
            return False
        found |= y.op is from_index_op and y.rank > 1 and y.params["formula"] not in (0, 1) and not is_eye(y)
        pending += y.inputs
    return found


def _is_read_through(x: Tensor) -> bool:
    """Whether an entry is made of entries of its operands: of an entrywise vector, or a number times a tensor."""
    return (x.rank == 1 and x.op.broadcasts) or (x.op is multiply_op and x.inputs[0].op is constant)


class Operands(Protocol):
    """The printer in matrix style: it writes what is read in an entry."""

    names: Mapping[Tensor, str]
    table: SymbolTable
    first_index: int

    @property
    def taken(self) -> set[str]: ...

    def symbol(self, node: Tensor) -> Box: ...

    def operand(self, x: Tensor, at_least: int) -> Box: ...


def by_entry(p: Operands, x: Tensor) -> Box:
    r"""A node that moves entries as ``[X_{i, a d + j}]_{a i j}``, within matrix style."""
    moved, read = [x], dict[Tensor, Box]()
    while moved:
        for y in moved.pop().inputs:
            if y in p.names:
                read[y] = p.symbol(y)
            elif y.op in (concat_op, index_op) or y.op.spreads or moves_entries(y) or _is_read_through(y):
                moved.append(y)
            elif y.op not in (constant, from_index_op):
                read[y] = p.operand(y, Binding.ATOM)
    placed = {y: f" {n}" for n, y in enumerate(read)}
    table = SymbolTable({**p.names, **placed}, {**p.table, **SymbolTable.spelled(placed, read)})
    return IndexPrinter([x, *read], table, p.taken | symbol_names([x], p.names), p.first_index).box(x)


class Index(NamedTuple):
    """The letter of an axis, and how many values it has."""

    letter: sympy.Symbol
    size: Any


class Entry(NamedTuple):
    """An entry, and the indices of which it does not say how far they run."""

    box: Box
    untold: Sequence[Index]


class IndexPrinter:
    """Writes tensors by one entry each; named ones are read by their names."""

    code = False

    def __init__(
        self,
        roots: Sequence[Tensor],
        table: SymbolTable,
        taken: Collection[str] | None = None,
        first_index: int = 0,
        equations: Sequence[Step] = (),
    ) -> None:
        self.table = table
        self.first_index = first_index
        self._equations = [*equations]  # of what the table names that nobody else has
        self.names = table.names
        taken = {*(symbol_names([*roots, *self.names]) if taken is None else taken), *table.letters()}
        pool = [c for c in _INNER + _OUTER if c not in taken]
        self.letters = [*pool, *(c for n in range(1, 20) if (c := f"i_{n}") not in taken)]
        shapes = {name: node.shape for node, name in self.names.items()}
        self.scalars = EntryScalars(table, shapes, taken, self.letters, first_index)

    def on_the_way(self, roots: Iterable[Tensor]) -> list[Step]:
        """Rows that define what nobody has named, where only equations say what it is, once."""
        equations, self._equations = self._equations, []
        return equations

    def written(self, box: Box) -> str:
        """A tree of boxes as LaTeX."""
        return latex(box)

    def write(self, x: Tensor) -> str:
        """The tensor by its entry, written."""
        return latex(self.shown(x))

    def shown(self, x: Tensor) -> Box:
        """``left = right`` of a named intermediate, the left side of a named tensor, and the entry of any other."""
        if definition(x) is x and is_named(x):
            return self._left(self.names[x], x)
        entry = self._entry(definition(x))
        left = [self._left(self.names[x], x), Sign("=", "relation")] if is_named(x) else []
        each = self._ranges(entry.untold)
        return row(*left, entry.box, *([] if each is None else [Space(1.0), Fence(each)]))

    def row(self, name: str, x: Tensor, reason: str) -> Step:
        """The line ``name = x``; no name continues the line above."""
        entry = self._entry(x)
        each = self._ranges(entry.untold)
        return Step(self._left(name, x) if name else None, entry.box, sentence(reason), each=each)

    def refer(self, x: Tensor) -> str:
        """The whole tensor: its name, or its entries between brackets."""
        return latex(self.box(x))

    def box(self, x: Tensor) -> Box:
        """The whole tensor: its name, or its entries between brackets."""
        if x in self.names:
            return self.scalars.name(self.names[x])
        below = [i for i in self._index(x) if i != 0]
        entry = self._entry(x)
        if not below:
            return Fence(entry.box, "[", "]")
        return by_indices(entry.box, [*map(self.scalars.small, below)], [self.scalars.end(*i) for i in entry.untold])

    def scalar(self, value: Any) -> Box:
        """A SymPy scalar or a size."""
        return self.scalars.box(value)

    def _left(self, name: str, x: Tensor) -> Box:
        return self.scalars.entry_of(name, x.shape, self._index(x))

    def _index(self, x: Tensor) -> tuple[Any, ...]:
        """One letter an axis; of one of size 1 there is only entry 0."""
        inner, outer = self.letters[:2], self.letters[2:]
        letters = [*outer[: max(0, x.rank - 2)], *inner[: x.rank]]
        return tuple(
            sympy.S.Zero if size == 1 else sympy.Symbol(letter, integer=True, nonnegative=True)
            for size, letter in zip(x.shape, letters, strict=True)
        )

    def _ranges(self, indices: Sequence[Index]) -> Box | None:
        r"""``i, j = 0, \ldots, n - 1``, those of one size together."""
        first, ranges = self.scalar(self.first_index), []
        for size, alike in groupby(indices, key=lambda index: index.size):
            letters = [symbol(index.letter.name) for index in alike]
            ranges.append(ranging(letters, first, self.scalars.small(size - 1 + self.first_index), size))
        return separated(Sign(";", "punctuation"), ranges) if ranges else None

    def _entry(self, x: Tensor) -> Entry:
        index = self._index(x)
        if x in self.names:
            return Entry(self.scalars.box(indexed(self.names[x], index)), ())
        size = entry_size(x, self.names)
        if size > LONGEST:
            shown = counted(size)
            raise OperandError(f"an entry of {x.brief()} has {shown} parts, too many to read: name parts by sa.let")
        order = [node for node in topological([x], stop=self.names) if node in self.names]
        sizes = {i: size for i, size in zip(index, x.shape, strict=True) if i != 0}
        formula = sympy.sympify(_expand(x, index, self.names))
        formula = formula.xreplace(certain(formula, sizes))
        open_ones = [Index(i, sizes[i]) for i in untold(formula, sizes, self.scalars.shapes)]
        if self.first_index:
            formula = from_one(formula, {i for i in index if i != 0})
        return Entry(self.scalars.ordered(formula, [self.names[node] for node in order]), open_ones)


class EntryScalars(Scalars):
    """Scalars with entries of named tensors, in the order of the tensor, and letters for bound indices."""

    def __init__(
        self,
        table: SymbolTable,
        shapes: Mapping[str, Shape],
        taken: Collection[str],
        letters: Collection[str],
        first_index: int = 0,
    ) -> None:
        super().__init__(table.spelling())
        self.first_index = first_index
        self.is_name, self.told_apart = table.is_name, table.told_apart
        self.shapes, self.letters = shapes, letters
        self.taken = {*taken, *letters}
        self.plain_delta = "delta" not in taken and not table.has_letter("δ")
        self.ordered(sympy.S.Zero, ())

    def ordered(self, formula: sympy.Expr, order: Sequence[str]) -> Box:
        """The formula with the factors and terms of each product and sum as the names come in ``order``."""
        self.place = {name: number for number, name in enumerate(order)}
        self.bound: dict[sympy.Dummy, str] = {}
        self.free = free_letters(BOUND_LETTERS, self.taken)
        return self.told_apart(self.box(formula))

    def name(self, name: str) -> Box:
        """A tensor's name, as a whole."""
        return self.spelling.get(name) or symbol(name)

    def family(self, term: Any, limits: Sequence[Any]) -> Box:
        """By its name, or by its entries with how far indices run where they do not say so."""
        sizes = {k: high + 1 for k, _, high in limits}
        if isinstance(term, sympy.Indexed) and term.indices == (*sizes,):
            name = str(term.base.label)
            if same_shape((*sizes.values(),), self.shapes[name]):
                return self.name(name)
        entry, indices = self.box(term), [self.box(k) for k in sizes]
        return by_indices(entry, indices, [self.end(k, sizes[k]) for k in untold(term, sizes, self.shapes)])

    def end(self, index: sympy.Symbol, size: Any) -> Box:
        """``i < n``, or counted from 1 ``i \\le n``."""
        return row(self.box(index), Sign("≤" if self.first_index else "<", "relation"), self.small(size))

    def entry_of(self, name: str, shape: Shape, index: Sequence[Any]) -> Box:
        """``Q_{i k}``; axes of size 1 have no index."""
        below = [i for i, size in zip(index, shape, strict=True) if size != 1]
        base, index = self.name(name), [self.small(i) for i in below]
        box = entry_box(base, index)
        return entry_box(Fence(base), index) if index and self.is_name(box) else box  # the entry 2 of x is not x_2

    def is_letter(self, part: Any) -> bool:
        letter = part.as_coeff_Mul()[1]
        return super().is_letter(part) or (letter.is_Symbol and letter.name in self.letters)

    def _print_Symbol(self, expr: Any) -> Box:
        """A name of several factors keeps together; a function of something is one."""
        box = super()._print_Symbol(expr)
        return Fence(box) if isinstance(box, Row) and not isinstance(box.parts[0], Function) else box

    def _print_Pow(self, expr: Any) -> Box:
        base, exponent = expr.as_base_exp()
        if base.is_Symbol and exponent.is_Integer and exponent > 1 and isinstance(box := self.box(base), Row):
            return raised(box, self.small(exponent))
        return super()._print_Pow(expr)

    def _print_Indexed(self, expr: Any) -> Box:
        name = str(expr.base.label)
        return self.entry_of(name, self.shapes[name], expr.indices)

    def _print_Dummy(self, expr: Any) -> Box:
        """A bound index, by the next letter where it is first written; the same one keeps its letter."""
        if expr not in self.bound:
            self.bound[expr] = next(self.free)
        return symbol(self.bound[expr])

    def _print_KroneckerDelta(self, expr: Any) -> Box:
        if self.plain_delta:
            return Script(Name("δ"), self.script(expr.args))
        return super()._print_KroneckerDelta(expr)

    def _print_Relational(self, expr: Any) -> Box:
        """``i < T`` for ``i - 1 < T - 1`` and ``-i > -T``: the indices alone on the left."""
        offset = sympy.Add(*(term for term in sympy.Add.make_args(expr.lhs) if not self.is_letter(term)))
        if expr.lhs.is_Add and offset != expr.lhs and not offset.has(sympy.Indexed, sympy.Dummy):
            expr = expr.func(expr.lhs - offset, expr.rhs - offset, evaluate=False)
        if not expr.lhs.is_Add and expr.lhs.could_extract_minus_sign():
            expr = expr.reversedsign
        return super()._print_Relational(expr)


def entry_box(base: Box, indices: Sequence[Box]) -> Box:
    """An entry of what has a name, ``Q_{i k}``."""
    return at_entry(base, subscripts(indices)) if indices else base
