r"""Printing: LaTeX in matrix style and NumPy-like text, from the tree, by precedence.

Matrix style follows the field: ``Q K^{\top}``, ``\odot`` for entrywise products, ``X \mathbf{1}`` for the sums of
rows, ``\operatorname{diag}(x) A`` for scaled rows. Only amsmath and amssymb are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import sympy

from ..core.boxes import Box, Code, Fence, Name, Number, Script, Sign, Space, Text, commas, row, separated
from ..core.naming import counted, free_letters, in_python, spelled_in_python, with_short_numbers
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..graph.names import LONGEST, displayed_names, mentioned_names, symbol_names, tree_size
from ..ops.arithmetic import add_op
from ..ops.index import index_op, is_flip, steps_back
from ..ops.leaves import definition, is_named, named_by
from ..ops.notation import Binding, Written, fenced, sizes_apart
from .counting import checked_first_index, from_one
from .gradients import checked_gradients, of_head
from .heads import HEADS, Head, mark_of, one_head, sum_over
from .index import IndexPrinter, by_entry, moves_entries, multiplies_vectors_in_step
from .media.latex import latex as latex_text
from .media.numpy import numpy_text
from .prose import Step, sentence
from .ranges import ranging
from .scalars import is_loose, scalar_box
from .symbols import symbol
from .table import Spellings, SymbolTable, checked_table, symbol_table
from .terms import with_like_terms_added

_LETTERS = "ijlmnpqrtuvwxyz"
MOST_DEFINITIONS = 12  # that somebody still reads
_BRIEF, _PART = 30, 12  # characters of a text that still serves as a name in messages, and of an operand in it


class Within(NamedTuple):
    """The operands of one head: how they are printed, their names, and the letters that are taken by then."""

    heads: Mapping[Tensor, Box]
    names: Mapping[Tensor, str]
    taken: set[str]


class Printer:
    """Builds the boxes of nodes in one dialect, mathematics or NumPy text; records call it back for their operands."""

    def __init__(self, table: SymbolTable, code: bool, within: Within | None = None, first_index: int = 0) -> None:
        self.code = code
        self.first_index = first_index
        self.table = table
        self.heads = {} if within is None else within.heads
        self.names = {**table.names, **within.names} if within else table.names
        self._taken = None if within is None else within.taken
        self.known: dict[Tensor, Written] = {}

    @property
    def taken(self) -> set[str]:
        """The names of tensors, sizes and scalar symbols, and their letters; indices have others."""
        if self._taken is None:
            self._taken = self.table.letters() | symbol_names(self.names)
        return self._taken

    def beside(
        self,
        names: Mapping[Tensor, str],
        taken: set[str],
        boxes: Mapping[Tensor, Box],
        written: Mapping[Tensor, Written],
    ) -> Printer:
        """What writes other expressions of the same page, of which named ones are printed as these boxes."""
        within = Within({**self.heads, **boxes}, {**names, **self.names}, taken)
        printer = Printer(self.table, self.code, within, self.first_index)
        printer.known |= {**self.known, **written}
        return printer

    def on_the_way(self, roots: Iterable[Tensor]) -> list[Step]:
        """Rows that define what expressions show and nobody has named, where only equations say what it is.

        It has a name from then on.
        """
        shown = [definition(x) for x in roots]
        ops = {x.op for x in topological(shown, stop=self.names)}
        return [step for op in ops if op.equations is not None for step in op.equations(self, shown)]

    # --- as it is written ---

    def written(self, box: Box) -> str:
        """A tree of boxes in the dialect of the printer."""
        return numpy_text(box) if self.code else latex_text(box)

    def write(self, root: Tensor) -> str:
        """The node's own expression, written."""
        return self.written(self.shown(root))

    def refer(self, x: Tensor) -> str:
        """The node as it stands in an expression: a named one by its name."""
        return self.written(self.box(x))

    # --- as boxes ---

    def shown(self, root: Tensor) -> Box:
        """The node's own expression: a named intermediate is shown by what it stands for."""
        return self.box(definition(root)) if self.code else self._whole(definition(root))

    def box(self, x: Tensor) -> Box:
        """The node as it stands in an expression: a named one by its name."""
        for node in topological([x], stop=self.names):
            if node not in self.known:
                self.known[node] = self._notation(node)
        box = self.known[x][0]
        return box if self.code else self.table.told_apart(box)

    def row(self, name: str, x: Tensor, reason: str) -> Step:
        """The line ``name = x``; no name continues the line above."""
        left = self.table.box(name) if name else None
        x = with_like_terms_added(x, self.names)
        head = self._one_head(x)
        if head is None:
            return Step(left, self.box(x), sentence(reason))
        letter = self._letter_of_heads()
        each = ranging([symbol(letter)], Number("1"), self.scalar(head.axis))
        return Step(left and of_head(left, mark_of(letter)), self._of_one(head, letter), sentence(reason), each=each)

    def _whole(self, x: Tensor) -> Box:
        """The expression; of one head, with the heads for which it holds, where nothing acts across them."""
        x = with_like_terms_added(x, self.names)
        head = self._one_head(x)
        return self.box(x) if head is None else self._for_heads(head.axis, lambda letter: self._of_one(head, letter))

    def _one_head(self, x: Tensor) -> Head | None:
        """The expression of one head, looked for only where something has an axis for them."""
        return one_head(x, self.names) if x.rank == 3 or self._has_three_axes else None

    @cached_property
    def _has_three_axes(self) -> bool:
        return any(y.rank == 3 for y in self.names)

    def _for_heads(self, axis: sympy.Symbol, of_one: Callable[[str], Box]) -> Box:
        letter = self._letter_of_heads()
        return row(of_one(letter), Space(1.0), Fence(ranging([symbol(letter)], Number("1"), self.scalar(axis))))

    def related(self, left: Tensor, sign: Sign, right: Tensor) -> Box:
        """Two expressions with a sign between them: of one head where both are, and then for the same heads."""
        sides = [definition(x) for x in (left, right)]  # as they were asked: q + q = 2 q is a statement
        heads = [head for x in sides if (head := self._one_head(x)) is not None]
        if len(heads) < 2 or heads[0].axis != heads[1].axis:
            return separated(sign, map(self.box, sides))
        return self._for_heads(
            heads[0].axis, lambda letter: separated(sign, (self._of_one(head, letter) for head in heads))
        )

    def _of_one(self, head: Head, letter: str) -> Box:
        heads = {one: of_head(self.symbol(y), mark_of(letter)) for y, one in head.operands.items()}
        names = {one: self.names[y] for y, one in head.operands.items()}
        within = Within(heads, names, {*self.taken, letter})
        return Printer(self.table, False, within, self.first_index).box(head.expression)

    def _letter_of_heads(self) -> str:
        return next(free_letters(HEADS, self.taken))

    def sum_over_heads(self, x: Tensor, axes: tuple[int, ...]) -> Written | None:
        """The sum over the leading axis, or None where x is not an expression head by head."""
        head = self._one_head(x) if axes == (-x.rank,) else None
        if head is None:
            return None
        letter = self._letter_of_heads()
        each, several = self._of_one(head, letter), head.expression.op is add_op
        return row(sum_over(letter, self.scalar(head.axis)), Fence(each) if several else each), Binding.SUM

    def operand(self, x: Tensor, at_least: int, alone: bool = False) -> Box:
        """An operand, between parentheses if it binds less tightly than its place needs."""
        return fenced(self.unfenced(x), at_least, alone)

    def binding(self, x: Tensor) -> int:
        """How tightly an operand binds."""
        return self.unfenced(x)[1]

    def unfenced(self, x: Tensor) -> Written:
        """An operand as it stands, with how tightly it binds."""
        if x not in self.known:  # a notation may ask for a node of its own making: a term without its sign
            self.known[x] = self._notation(x)
        return self.known[x]

    def _notation(self, x: Tensor) -> Written:
        if (written := self.from_end(x)) is not None:
            return written
        is_name = self.code or is_named(x)
        if not is_name and self._is_by_entry(x):
            return by_entry(self, x), Binding.ATOM
        box, binding = x.op.notation(self, x)
        if isinstance(box, Script) and not is_name and self.table.is_name(box):
            box = Script(Fence(box.base), box.below, box.above)
        return box, binding

    def _is_by_entry(self, x: Tensor) -> bool:
        if self.first_index and x.op is index_op and steps_back(x):  # of which NumPy's slices count from 0
            return True
        return moves_entries(x) or multiplies_vectors_in_step(x)

    def from_end(self, x: Tensor) -> Written | None:
        """What is another tensor from the end of its first axis, where that has a notation of its own."""
        if not is_flip(x) or is_named(x.inputs[0]) or x.inputs[0].op.from_end is None:
            return None
        return x.inputs[0].op.from_end(self, x.inputs[0])

    def symbol(self, node: Tensor) -> Box:
        """The name under which a node is shown."""
        return self.by_name(node)[0]

    def by_name(self, node: Tensor) -> Written:
        """The same, and how tightly it holds together."""
        name = self.names[node]
        if self.code:
            return Name(in_python(name)), Binding.ATOM
        box, binding = self.table.written(name)
        return self.heads.get(node, box), binding

    def letters(self, name: str) -> Box:
        """A name that is none of a node: of an unknown function."""
        return self.table.box(name)

    def scalar(self, value: Any) -> Box:
        """A SymPy scalar, a size, or a tuple of them."""
        if isinstance(value, tuple):
            inside = commas(map(self.scalar, value))
            return Fence(row(inside, Code(",")) if self.code and len(value) == 1 else inside)
        if self.code:
            return Code(str(value) if isinstance(value, (bool, int, str)) else _scalar_text(value))
        return Text(str(value)) if isinstance(value, (bool, str)) else self.table.scalar(sympy.sympify(value))

    def small(self, value: sympy.Expr) -> Box:
        """A scalar on one line, as in scripts."""
        return self.scalar(value) if self.code else self.table.scalars().small(value)

    def factor(self, value: sympy.Expr) -> Box:
        """A scalar as a factor of a product."""
        box = self.scalar(value)
        loose = value.is_Add or value.is_Mul or (value.is_Rational and not value.is_Integer) or value.is_Piecewise
        if self.code:
            return Fence(box) if loose or value.could_extract_minus_sign() else box
        return Fence(box) if is_loose(box) else box

    def at_letters(self, formula: Any, letters: Sequence[sympy.Symbol]) -> Any:
        """A formula of indices that are written by letters: these count as all indices do."""
        return from_one(formula, letters) if self.first_index else formula

    def index_names(self, node: Tensor, formula: sympy.Expr, indices: Sequence[sympy.Symbol]) -> list[sympy.Symbol]:
        """Readable letters for the indices of a node's formula, which are no names of anything else that is shown."""
        taken = {symbol.name for symbol in {*formula.free_symbols, *node.own_symbols} if symbol not in indices}
        taken |= self.taken
        letters: list[sympy.Symbol] = []
        for index in indices:
            free = next(free_letters(index.name + _LETTERS, taken))
            taken.add(free)
            letters.append(sympy.Symbol(free, **index.assumptions0))
        return letters


@lru_cache(maxsize=4096)
def _scalar_text(value: sympy.Basic) -> str:
    return str(sympy.sstr(spelled_in_python(with_short_numbers(value))))


def text(x: Tensor) -> str:
    """NumPy-like text of the node's own expression; a tree too large to read is summed up."""
    return text_in(text_printer([x]), x)


def text_and_names(x: Tensor) -> str:
    """The text, and in comments below it what its names stand for where a derivative gave one of them on its way."""
    mentioned = mentioned_names([definition(x)])
    if not any(named_by(y) == "derivative" for y in mentioned):
        return text(x)
    printer = text_printer([x])
    by_name = {printer.names[y]: y for y in mentioned}
    defined = [f"# where {name} = {text_in(printer, y)}" for name, y in [*by_name.items()][-MOST_DEFINITIONS:]]
    left_out = len(by_name) - len(defined)
    return "\n".join([text_in(printer, x), *defined, *([f"# and {left_out} intermediates more"] if left_out else [])])


def text_in(printer: Printer, x: Tensor) -> str:
    """The same by a printer, so that names agree among several expressions."""
    if tree_size(x) > LONGEST:
        return f"<{definition(x).brief()}, {len(topological([x]))} nodes>"
    return printer.write(x)


def outline(x: Tensor) -> str:
    """The text of a tensor for messages, with ``...`` for operands that would make it long."""
    if not x.has_more_nodes(_BRIEF) and len(whole := text(x)) <= _BRIEF:
        return whole
    names: dict[Tensor, str] = {}
    printer = Printer(SymbolTable(names), code=True)
    for part in _upper(x):
        if part.name:
            names[part] = part.name
        elif part is not x and (part.has_more_nodes(_PART) or len(printer.refer(part)) > _PART):
            names[part] = "..."
            printer.known[part] = Code("..."), Binding.POWER  # as in (...).T and (...)[0]
    shown = printer.refer(x)
    function, called, _ = shown.partition("(")
    if len(shown) <= _BRIEF:
        return shown
    return f"{function}(...)" if called and function.isidentifier() else f"{shown[: _BRIEF - 3]}..."


def _upper(x: Tensor) -> list[Tensor]:
    """What the notation of a tensor may look at: some levels of operands, and what is short; inputs before users."""
    levels = [{x}]
    for _ in range(3):
        levels.append({y for node in levels[-1] for y in node.inputs})
    near = set().union(*levels)

    def inputs(node: Tensor) -> Sequence[Tensor]:
        return () if node.name or (node not in near and node.has_more_nodes(_PART)) else node.inputs

    return topological([x], inputs=inputs)


def text_printer(roots: Iterable[Tensor]) -> Printer:
    """One printer of text for several expressions."""
    return Printer(SymbolTable(displayed_names(roots)), code=True)


def names_in(roots: Sequence[Tensor]) -> set[str]:
    """The names of tensors, intermediates, functions, sizes and scalar symbols, of which a new one is none."""
    inner = (x.params[key] for x in topological(roots) for key in ("name", "function") if key in x.params)
    return {*displayed_names(roots).values(), *inner, *symbol_names(roots)}


def checked_style(style: str) -> str:
    if not isinstance(style, str) or style not in ("matrix", "index"):
        raise OperandError(f'latex has the styles "matrix" and "index", not {described(style)}')
    return style


def latex_printer(
    roots: Sequence[Tensor],
    names: Spellings | None = None,
    gradients: str = "d",
    first_index: int = 0,
    within: SymbolTable | None = None,
) -> Printer:
    """One printer in matrix style for several expressions, so that names agree among them and within a document."""
    for root in roots:
        if definition(root).has_more_nodes(LONGEST):
            size = counted(tree_size(root))
            raise OperandError(f"{root.brief()} is a tree of {size} nodes, too large to read: name its parts by sa.let")
    table = symbol_table(roots, names, checked_gradients(gradients))
    return Printer(table if within is None else checked_table(within).over(table), code=False, first_index=first_index)


def printer_in(
    style: str, roots: Sequence[Tensor], names: Spellings | None = None, gradients: str = "d", first_index: int = 0
) -> Printer | IndexPrinter:
    """One printer in the style for several expressions."""
    first = checked_first_index(first_index)
    if checked_style(style) == "matrix":
        return latex_printer(roots, names, gradients, first)
    whole = latex_printer(roots, names, gradients, first)
    equations = whole.on_the_way(roots)
    return IndexPrinter(roots, _with_loops(roots, whole), first_index=first, equations=equations)


def _with_loops(roots: Sequence[Tensor], p: Printer) -> SymbolTable:
    """The symbols with loops among them, of which index style has entries: their equations are those of matrices."""
    boxes: dict[Tensor, Box] = {}
    for x in topological(roots):
        from_end = p.from_end(x)
        if from_end is not None or (x.op.part and not is_named(x)):
            boxes[x] = p.operand(x, Binding.ATOM) if from_end is None or x in p.known else from_end[0]
    if not boxes:
        return p.table
    placed = {x: f" {n}" for n, x in enumerate(boxes)}
    return SymbolTable({**p.names, **placed}, {**p.table, **SymbolTable.spelled(placed, boxes)}, p.table.loops)


def membership(name: Box, shape: Sequence[Any], table: SymbolTable | None = None) -> Box:
    r"""``Q \in \mathbb{R}^{T \times d}``: what a tensor is."""
    return row(name, Sign("∈", "relation"), space_of(Name("R", "blackboard"), shape, table))


def space_of(entries: Box, shape: Sequence[Any], table: SymbolTable | None = None) -> Box:
    r"""``\mathbb{R}^{T \times d}``: where a tensor lives that has such entries."""
    sizes = map(scalar_box if table is None else table.scalar, shape)
    return Script(entries, above=sizes_apart(shape, sizes)) if shape else entries
