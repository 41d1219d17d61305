"""Writes a program as NumPy: one loop over the loop axes, in it loops over blocks whose values share a few buffers.

Records say how each operation is spelled, on nodes of one block. An operation that NumPy can write into an array does
so: into an output, into the buffer of an operand that nobody reads any more, or into a free one.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sympy

from ...core.node import Tensor
from ...core.sizes import ONE, Shape
from ...errors import NoRuleError
from ...ops.arithmetic import add_op, multiply_op
from ...ops.broadcasting import sum_op
from ...ops.leaves import computed, constant, cotangent_op, scalar_value
from ..call.takes import Takes
from ..graph import Graph
from ..program.axes import axes_of
from ..program.body import Body
from ..program.build import GAP, Program
from ..program.columns import Columns
from ..program.nesting import LEAST_ROWS, is_by_places, largest_of
from ..program.records import IN_PLACE
from ..text.loop_axes import LoopAxes, arguments_below, without_real_numbers
from ..text.source import Writer
from ..text.spelling import Spelling
from ..text.statements import is_atom, parsed, sum_of_rows, tidied, written_into

BUDGET = 1 << 20  # bytes of the largest value of a block
_READ_PER_ROW = 1 << 11  # bytes that every block reads from far memory, for which it has one row more


class Output(NamedTuple):
    """An output: its name, whose loop axes it has, and over whose it is summed, if it is a gradient."""

    node: Tensor
    name: str
    own: int
    full: int | None


class BlockWriter(Spelling):
    """The source of a program."""

    writer = Writer

    def __init__(
        self, name: str, takes: Takes, graph: Graph, program: Program, rows: int | None = None, threads: int = 1
    ) -> None:
        named = _names(graph, program.outputs)
        super().__init__(takes, graph, named)
        self.name, self.program, self.rows_given, self.threads = name, program, rows, threads
        order = computed(program.outputs)
        below = arguments_below(takes, program.outputs)
        self.whole = without_real_numbers(order, below)
        self.needs_dtype = True
        self.fixed = {name: self.identifier(name) for name in ("at", "loops", "p", "q")}
        self.letters: dict[tuple[int, bool], Letters] = {}  # of loops inside of so many others, one by one or not
        self.outputs = self._outputs(graph)
        self.targets = {y.node: y.name for y in reversed(self.outputs)}
        self.head: list[str] = []
        self.kept: list[str] = []  # the arrays of what is stored between stages
        self.body: list[str] = []
        self.ones: dict[str, str] = {}
        self.rows: dict[int, tuple[str, str]] = {}  # of each loop, the name and the text of the rows of a block
        self.most: dict[sympy.Symbol, str] = {}  # of lengths that differ from block to block, the largest
        self.masks: dict[Tensor, Mask] = {}  # choices that are the same for all columns but few
        self.slots: list[list[str]] = []  # of each buffer, the lengths that it must have
        self.slot_names: list[str] = []

    def _outputs(self, graph: Graph) -> list[Output]:
        axes, found, taken = LoopAxes(self.takes, graph), list[Output](), set[str]()
        for y, node in zip(graph.outputs, self.program.outputs, strict=True):
            name = self.names.get(node, "")
            if not name or name in taken or not node.inputs:
                name = self.identifier(graph.names.get(y) or y.name or "y")
            taken.add(name)
            own, full = axes.read[y] | axes.beyond(y), None
            if y.op is cotangent_op:
                loops = axes.of_gradient(y)
                if loops is None:
                    raise NoRuleError("the loop axes of a gradient are not known")
                full, own = loops
            if not graph.numeric[len(found)]:
                raise NoRuleError("the outputs of a program are numbers")
            found.append(Output(node, name, own, full))
        return found

    # --- the function ---

    def write(self, as_tuple: bool) -> tuple[str, str]:
        """The imports and the helpers that the function needs, and the function."""
        for a in self.takes.tensors:
            self.text[a] = self.names[a]
        self._constants()
        for stage in self.program.stages:
            if isinstance(stage, Body):
                self.body += _Block(self, stage).lines()
            else:
                self._whole_stage(stage)
        self._copies()
        lines = self._function(as_tuple)
        text = f"def {self.name}({self.signature()}):\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
        return self.needed(text), text

    def _function(self, as_tuple: bool) -> list[str]:
        loops = self.fixed["loops"]
        alls = {a: self.identifier(f"{self.names[a]}_all") for a in self.takes.tensors}
        shown = ", ".join(x.brief() for x in self.takes.tensors)
        lines = textwrap.wrap(f'"""{shown}, block by block; loop axes may stand in front."""', 100)
        given = self._given(alls)
        made = [self._made(y) for y in self.outputs]
        slots = zip(self.slot_names, self.slots, strict=True)
        buffers = [f"{name} = np.empty({_largest(lengths)}, dtype)" for name, lengths in slots]
        shapes = ", ".join(self._loop_text(a) for a in self.takes.tensors)
        lines += [*self.sizes_read(), self.dtype_read(), f"{loops} = np.broadcast_shapes({shapes})"]
        lines += [*given, *self.head, *(line for part in made for line in part[0])]
        memory = [*self.kept, *buffers, *(line for part in made for line in part[1])]
        inner = [f"{self.names[a]} = {self._part(alls[a], a)}" for a in self.takes.tensors]
        inner += [line for part in made for line in part[2]]
        inner += [*self.body, *(line for part in made for line in part[3])]
        lines += self._at_places(memory, inner)
        returned = [f"{y.name}_all" + "[()]" * (not y.node.rank) for y in self.outputs]
        result = "(" + ", ".join(returned) + ",)" if len(returned) == 1 else ", ".join(returned)
        return [*lines, f"return {result if as_tuple else returned[0]}"]

    def _at_places(self, memory: Sequence[str], inner: Sequence[str]) -> list[str]:
        """The loop over the places of the loop axes; a thread has memory of its own, also for what it adds up."""
        loops, at = self.fixed["loops"], self.fixed["at"]
        if self.threads == 1:
            return [*memory, f"for {at} in np.ndindex(*{loops}):", *("    " + line for line in inner)]
        work, places = self.identifier("work"), self.identifier("places")
        added = [f"{y.name}_all" for y in self.outputs if y.full is not None]
        listed = ", ".join(f"({y.name}_all, {y.node.rank})" for y in self.outputs if y.full is not None)
        lines = [*memory, f"for {at} in {places}:", *("    " + line for line in inner)]
        call = self.helper("in_threads", work, str(self.threads), loops, f"[{listed}]")
        return [f"def {work}({', '.join([places, *added])}):", *("    " + line for line in lines), call]

    def _given(self, alls: dict[Tensor, str]) -> list[str]:
        numbers = {a for a in alls if a.kind == "real" and not a.rank}
        texts = {a: f"np.asarray({self.names[a]}, dtype)" if a in numbers else self.names[a] for a in alls}
        return [f"{name} = {texts[a]}" for a, name in alls.items()]

    def _loop_text(self, a: Tensor) -> str:
        return f"np.shape({self.names[a]})" if not a.rank else f"{self.names[a]}.shape[:-{a.rank}]"

    def _part(self, name: str, a: Tensor) -> str:
        text = self.helper("part", name, self.fixed["at"], str(a.rank))
        return f"{text}.item()" if not a.rank and a.kind != "binary" else text

    def _made(self, y: Output) -> tuple[list[str], list[str], list[str], list[str]]:
        """Once, in each thread, at each place, and after it: the array of an output, and its part."""
        at, loops, whole = self.fixed["at"], self.fixed["loops"], f"{y.name}_all"
        self.taken.add(whole)
        tensors = [a for k, a in enumerate(self.takes.tensors) if y.own >> k & 1]
        own = f"np.broadcast_shapes({', '.join(map(self._loop_text, tensors))})" if tensors else "()"
        core, part = self.shape(y.node.shape), self.helper("part", whole, at, str(y.node.rank))
        if y.full is None:
            return [f"{whole} = np.empty({own} + {core}, dtype)"], [], [f"{y.name} = {part}"], []
        summed = self.identifier(f"{y.name}_part")
        once = [f"{whole} = np.zeros({own} + {core}, dtype)"]
        is_own = f"{whole}.shape[: {whole}.ndim - {y.node.rank}] == {loops}"
        before = [f"{summed} = None if {is_own} else np.empty({core}, dtype)"]
        here = [f"{y.name} = {part} if {summed} is None else {summed}"]
        return once, before, here, [f"if {summed} is not None:", f"    {part}[...] += {summed}"]

    def dtype_of(self, x: Tensor) -> str:
        """The type of the entries of a node."""
        return "bool" if x.kind == "binary" else "np.int64" if x.kind == "integer" else self.dtype_in(x)

    def dtype_in(self, x: Tensor) -> str:
        """The floating type in which a node is computed."""
        return "np.float64" if x in self.whole else "dtype"

    def _copies(self) -> None:
        """Outputs that another output is as well, and outputs that are arguments or constants."""
        for y in self.outputs:
            if self.targets[y.node] != y.name:
                self.body.append(f"{y.name}[...] = {self.targets[y.node]}")
            elif y.node in self.program.constants or y.node in self.program.diagonals or not y.node.inputs:
                self.body.append(f"{y.name}[...] = {self._text_of(y.node)}")

    def _text_of(self, y: Tensor) -> str:
        if y not in self.text:
            self.text[y] = self._expression(y, y, self.body)
        return self.text[y]

    # --- text of nodes ---

    def _expression(self, x: Tensor, node: Tensor, lines: list[str]) -> str:
        """The record's own NumPy for a node that stands for x, after the lines that it needs."""
        self.writing_whole = x in self.whole
        for y in node.inputs:
            if y not in self.text and not y.inputs:
                self.text[y] = self._expression(y, y, lines)
        text = node.op.numpy(self, node, *(self.operand(node, k) for k in range(len(node.inputs))))
        lines += self.lines
        self.lines = []
        if self.is_number(node) and node.op is not constant and "(" in text:
            text = f"np.asarray({text}).item()"
        elif self.compares_numbers(node):
            text = f"np.bool_({text})"
        return tidied(text)

    def _constants(self) -> None:
        """What no argument makes, before the loop axes."""
        for x in self.program.constants:
            name = self.identifier("c")
            self.head.append(f"{name} = {self._expression(x, x, self.head)}")
            self.text[x] = name
        for x, formula in self.program.diagonals.items():
            self._diagonal(x, formula)

    def _diagonal(self, x: Tensor, formula: Any) -> None:
        """A constant of the column less the row, as a view of one vector."""
        rows, columns = (self.size(size) for size in x.shape)
        letter, name = self.identifier("r"), self.identifier("c")
        real = "" if x.kind == "binary" else ", dtype=float"
        self.head.append(f"{letter} = np.arange(1 - ({rows}), {columns}{real})")
        text = self._scalar_code(formula, arrays=True, names={GAP: letter})
        typed = f"np.asarray({text})" if x.kind == "binary" else f"np.asarray({text}, dtype)"
        view = f"np.lib.stride_tricks.sliding_window_view({typed}, {columns})[::-1]"
        self.head.append(ast.unparse(ast.parse(f"{name} = {view}")))
        self.text[x] = name

    def _whole_stage(self, nodes: Sequence[Tensor]) -> None:
        """Nodes as whole arrays, a line each."""
        for x in nodes:
            if x.op is constant:
                continue
            text = self._expression(x, x, self.body)
            target = self.targets.get(x)
            if target is not None:
                self.body += written_into(text, target) or [f"{target}[...] = {text}"]
                self.text[x] = target
            elif is_atom(parsed(text)):
                self.text[x] = text
            else:
                self.text[x] = self.identifier("t")
                self.body.append(f"{self.text[x]} = {text}")

    # --- loops over blocks ---

    def letters_at(self, depth: int, one_by_one: bool) -> Letters:
        """The names of what a loop counts, which loops one after the other share."""
        if (key := (depth, one_by_one)) in self.letters:
            return self.letters[key]
        if one_by_one:
            k = self.identifier("k")
            self.letters[key] = Letters(k, f"{k} + 1", "1", "", "", "")
        else:
            self.letters[key] = Letters(*map(self.identifier, Letters._fields))
        return self.letters[key]

    def largest_size(self, size: Any) -> str:
        """A size as it is in the largest block."""
        given = self.symbols
        self.symbols = {**given, **self.most}
        try:
            return tidied(self._whole(size))
        finally:
            self.symbols = given

    def row_ones(self, size: str) -> str:
        """A vector of ones, made once."""
        if size not in self.ones:
            self.ones[size] = self.identifier("ones")
            self.head.append(f"{self.ones[size]} = np.ones({size}, dtype)")
        return self.ones[size]

    def block_rows(self, body: Body) -> str:
        """The name of the number of rows of a block, which is found from the sizes."""
        if body.one_by_one:
            return "1"
        name = self.identifier("rows")
        text = str(self.rows_given) if self.rows_given is not None else self._rows(body)
        self.rows[id(body.loop)] = name, text
        self.head.append(f"{name} = {text}")
        return name

    def _rows(self, body: Body) -> str:
        """How many rows a block has: as many as near memory holds, but not so few that all wait for what is far."""
        loop, extent = body.loop, body.extent
        length, itemsize = self.largest_size(loop.length), "dtype.itemsize"
        largest = largest_of(loop, extent)
        row = [size for k, size in enumerate(largest.shape, -largest.rank) if k != loop.axes[largest]]
        a_row = f"{itemsize} * {_times(map(self.largest_size, row))}"
        if is_by_places(loop, largest):
            return ast.unparse(ast.parse(f"min({length}, max(1, {BUDGET} // ({a_row})))"))
        whole = max(loop.whole(), key=extent.of, default=None)
        limits = [[f"{LEAST_ROWS}", f"{BUDGET} // ({a_row})"]]
        if loop.columns is not None:
            limits.append([f"{LEAST_ROWS // 2}", f"({length}) // 8"])  # or there is little to skip
        if whole is not None and whole.rank:
            far = f"({itemsize} * {_times(map(self.largest_size, whole.shape))} - {BUDGET}) // {_READ_PER_ROW}"
            for limit in limits:
                limit.append(f"min({4 * LEAST_ROWS}, {far}, {4 * BUDGET} // ({a_row}))")
        extremes = ", ".join(f"max({', '.join(limit)})" for limit in limits)
        return ast.unparse(ast.parse(f"min({length}, {extremes})"))

    def slot(self, number: int, length: str) -> str:
        """The name of the memory of a buffer, of at least that length."""
        while len(self.slots) <= number:
            self.slots.append([])
            self.slot_names.append(self.identifier("buffer"))
        if length not in self.slots[number]:
            self.slots[number].append(length)
        return self.slot_names[number]


class Letters(NamedTuple):
    """The names of what a loop counts: where a block begins and ends and how long it is, and the same of columns."""

    i0: str
    i1: str
    n: str
    j0: str
    j1: str
    m: str


class Mask(NamedTuple):
    """A condition of a choice, the columns of the loop that goes along its rows, and the names in that loop."""

    condition: Tensor
    columns: Columns
    letters: Letters


class _Block:
    """One loop while it is written: who holds which buffer.

    A loop inside of another writes what it stores into arrays of that one, and has buffers behind those of that one.
    """

    def __init__(
        self, code: BlockWriter, body: Body, depth: int = 0, into: Mapping[Tensor, str] | None = None, slots: int = 0
    ) -> None:
        self.code, self.body, self.loop, self.depth = code, body, body.loop, depth
        self.into, self.first_slot = into, slots
        self.letters = code.letters_at(depth, body.one_by_one)
        self.rows = code.block_rows(body)
        self._begin()
        self.inner: list[str] = []
        self.views: dict[str, str] = {}
        self.free: dict[Shape, list[str]] = {}
        self.held: dict[Tensor, str] = {}
        self.begun: list[str] = []
        self.users: dict[Tensor, list[Tensor]] = {x: [] for x in self.loop.order}
        for u in self.loop.order:
            for x in dict.fromkeys(u.inputs):
                if x in self.users:
                    self.users[x].append(u)
        of = {node: x for x, node in body.node.items()}
        loops = [step for step in body.steps if isinstance(step, Body)]
        self.inside = {id(loop): [of[y] for y in loop.reads() if y in of] for loop in loops}
        self.read_inside = {x for read in self.inside.values() for x in read}
        self.inlined = {x for x in body.steps if not isinstance(x, Body) and self._is_inlined(x)}
        self.last = self._last_uses()

    def _begin(self) -> None:
        """What the symbols of this loop are called, and which of its choices are the same for most columns."""
        code, block, letters, columns = self.code, self.body.block, self.letters, self.loop.columns
        code.symbols.update({block.start: letters.i0, block.stop: letters.i1, block.rows: letters.n})
        code.symbols.update({block.first: letters.j0, block.width: letters.m})
        code.most.update({block.rows: self.rows, block.width: f"({code.largest_size(self._width())})"})
        for x, node in self.body.node.items():
            if columns is not None and x in columns.masks:
                code.masks[node] = Mask(x.inputs[0], columns, letters)
            elif x in code.masks:
                code.masks[node] = code.masks[x]
            if x in code.whole:
                code.whole = {*code.whole, node}

    def _is_inlined(self, x: Tensor) -> bool:
        """Whether a node is written inside of others: a view, what is subtracted, and a product that is summed."""
        if x in self.loop.stored:
            return False
        if x.op.is_view:
            return True
        users = self.users[x]
        if x.op is not multiply_op or not users or x in self.read_inside:
            return False
        if scalar_value(x.inputs[0]) == -1:
            return all(u.op is add_op and u.inputs[1] is x and u.inputs[0] is not x for u in users)
        summed = len(users) == 1 and users[0].op is sum_op and users[0].params["axes"] == (-1,)
        return summed and x.rank > 1 and x.inputs[0].shape == x.inputs[1].shape and users[0] not in self.loop.added

    def _last_uses(self) -> dict[Tensor, int]:
        """The place of the last statement that reads the memory of each node, also through what may share it."""
        last: dict[Tensor, int] = {}
        for n, step in reversed(list(enumerate(self.body.steps))):
            if not isinstance(step, Body):
                last.setdefault(step, n)
            if step in self.inlined:
                continue
            waiting = self.inside[id(step)] if isinstance(step, Body) else list(step.inputs)
            while waiting:
                y = waiting.pop()
                last[y] = max(last.get(y, n), n)
                if y in self.inlined or y.op.kind == "inputs":
                    waiting += y.inputs
        return last

    def lines(self) -> list[str]:
        """The loop as text."""
        code, letters = self.code, self.letters
        for node in self.body.nodes():
            code.text.pop(node, None)
        named = [self._part(leaf) for leaf in self.body.parts]
        for n, step in enumerate(self.body.steps):
            if isinstance(step, Body):
                self._write_loop(n, step)
            else:
                self._write_node(n, step)
            self._release(n)
        for x in self.loop.stored:
            code.text[x] = self._whole(x)
        size = code.size(self.loop.length)
        head = [f"for {letters.i0} in range({size}):"]
        if not self.body.one_by_one:
            head = [
                f"for {letters.i0} in range(0, {size}, {self.rows}):",
                f"    {letters.i1} = min({letters.i0} + {self.rows}, {size})",
                f"    {letters.n} = {letters.i1} - {letters.i0}",
            ]
        block = [*self._columns(), *filter(None, named), *self.views.values(), *self.inner]
        return [*self.begun, *head, *("    " + line for line in block)]

    def _part(self, leaf: Tensor) -> str:
        """The line that names a part of a whole array; none where its text is short and read in few places."""
        of, axis, column = self.body.parts[leaf]
        code = self.code
        code.text[leaf] = f"{code._text_of(of)}{self._slice(axis, column, of.rank)}"
        if not self.body.one_by_one:
            return ""
        name = code.identifier(code.names.get(of, "t"))
        line = f"{name} = {code.text[leaf]}"
        code.text[leaf] = name
        return line

    def _slice(self, axis: int | None, column: int | None, rank: int) -> str:
        """The index of a block along an axis, at the columns that are seen along another."""
        letters, items = self.letters, [":"] * rank
        if axis is not None:
            items[axis] = f"{letters.i0}:{letters.i1}"
        if column is not None:
            items[column] = f"{letters.j0}:{letters.j1}"
        while items[-1] == ":":
            items.pop()
        return f"[{', '.join(items)}]"

    def _write_loop(self, n: int, body: Body) -> None:
        """A loop inside, which writes into parts of what is stored here, or into buffers."""
        code, added = self.code, list[tuple[Tensor, str]]()
        of = {node: x for x, node in self.body.node.items()}
        into = dict[Tensor, str]()
        for node in body.loop.stored:
            x = of[node]
            if x in self.loop.stored and x not in self.loop.added:
                into[node] = code.identifier(code.names.get(x, "t"))
                self.inner.append(f"{into[node]} = {self._stored_part(x)}")
                continue
            into[node] = self._buffer(node.shape)
            if x in self.loop.added:
                added.append((node, self._total(x)))
            else:
                self.held[x] = into[node]
        self.inner += _Block(code, body, self.depth + 1, into, self.first_slot + len(self.views)).lines()
        for node, total in added:
            self.inner.append(f"{total} += {into[node]}")
            self.free[node.shape].append(into[node])

    def _columns(self) -> list[str]:
        """The lines that find the columns which a block sees."""
        columns, code = self.loop.columns, self.code
        if columns is None:
            return []
        _, _, _, j0, j1, m = self.letters
        first = code.scalar(sympy.Max(0, columns.bounds.first))
        stop = code.scalar(sympy.Min(columns.size, columns.bounds.stop))
        lines = [f"{j0} = min({first}, {code.size(columns.size)})", f"{j1} = max({j0}, {stop})", f"{m} = {j1} - {j0}"]
        return [ast.unparse(ast.parse(line)) for line in lines]

    def _write_node(self, n: int, x: Tensor) -> None:
        code, node = self.code, self.body.node[x]
        text = code._expression(x, node, self.inner)
        if x in self.inlined:
            code.text[node] = text
            return
        if node.shape and node.op is sum_op:
            text = sum_of_rows(text, lambda: self._ones(node.inputs[0].shape[-1])) or text
        if x in self.loop.added:
            code.text[node] = self._added(x, node, text)
        elif x in self.loop.stored:
            code.text[node] = self._stored(x, text)
        else:
            code.text[node] = self._value(n, x, node, text)

    def _ones(self, size: Any) -> str:
        """A vector of ones, which is longer than what it is needed for where that differs from block to block."""
        longest = self.code.most.get(size)
        if longest is None:
            return self.code.row_ones(self.code.size(size))
        return f"{self.code.row_ones(longest)}[:{self.code.symbols[size]}]"

    def _width(self) -> Any:
        return self.loop.columns.size if self.loop.columns is not None else ONE

    def _total(self, x: Tensor) -> str:
        """Where the sum of all blocks is, once it is 0: the columns of it that this block sees."""
        total, column = self._whole(x), self.body.column(x)
        self.begun.append(f"{total}[...] = 0")
        return total if column is None else total + self._slice(None, column, x.rank)

    def _added(self, x: Tensor, node: Tensor, text: str) -> str:
        """The first block is written, the others are added."""
        i0, column = self.letters.i0, self.body.column(x)
        buffer = self._buffer(node.shape) if node.rank else ""
        lines = written_into(text, "_out_") if buffer else None
        total = self._whole(x)
        if column is None and lines is not None and len(lines) == 1:
            self.inner.append(lines[0].replace("out=_out_", f"out={total} if {i0} == 0 else {buffer}"))
            self.inner += [f"if {i0}:", f"    {total} += {buffer}"]
        elif buffer and column is not None:
            total = self._total(x)
            self.inner += [*(written_into(text, buffer) or [f"{buffer}[...] = {text}"]), f"{total} += {buffer}"]
        else:
            total = self._total(x)
            self.inner.append(f"{total}[...] += {text}")
        if buffer:
            self.free[node.shape].append(buffer)
        return total

    def _stored_part(self, x: Tensor) -> str:
        """The part of what is stored that this block makes."""
        column = self.body.column(x)
        if column is not None:
            self.begun.append(f"{self._whole(x)}[...] = 0")
        return f"{self._whole(x)}{self._slice(self.loop.axes[x], column, x.rank)}"

    def _stored(self, x: Tensor, text: str) -> str:
        out = self._stored_part(x)
        self.inner += written_into(text, out) or [f"{out} = {text}"]
        return out

    def _whole(self, x: Tensor) -> str:
        """The whole array of what is stored: an output, or one of its own."""
        code = self.code
        if self.into is not None:
            return self.into[x]
        if x in code.targets:
            return code.targets[x]
        if x not in code.names:
            code.names[x] = code.identifier("t")
            code.kept.append(f"{code.names[x]} = np.empty({code.shape(x.shape)}, {code.dtype_of(x)})")
        return code.names[x]

    def _value(self, n: int, x: Tensor, node: Tensor, text: str) -> str:
        """A value of one block: in place of an operand, in a buffer, or in memory of its own."""
        if is_atom(parsed(text)):
            raise NoRuleError("a value that shares the memory of another is none of a block")
        if node.kind == "real" and x not in self.code.whole and ONE not in node.shape and node.rank > 1:
            dying = self._dying(n, x, node)
            if written_into(text, dying or "_out_") is not None:
                out = dying or self._buffer(node.shape)
                if node in self.code.masks:
                    self.inner += self._masked(node, out, self.code.masks[node])
                else:
                    self.inner += written_into(text, out) or []
                self.held = {y: held for y, held in self.held.items() if held != dying} | {x: out}
                return out
        name = self.code.identifier("t")
        self.inner.append(f"{name} = {text}")
        return name

    def _masked(self, node: Tensor, out: str, mask: Mask) -> list[str]:
        """A choice that is made only at the columns which some rows see and others do not."""
        code, bounds = self.code, mask.columns.bounds
        i0, i1, _, j0, j1, _ = mask.letters
        p, q = code.fixed["p"], code.fixed["q"]
        value, rest = (code.operand(node, k) for k in (1, 2))
        first, stop = code.scalar(sympy.Max(0, bounds.first_of_all)), code.scalar(bounds.stop_of_all)
        seen = f"{code._text_of(mask.condition)}[{i0}:{i1}, {p}:{q}]"
        strips = f"(({j0}, min({j1}, {first})), (max({j0}, {first}, {stop}), {j1}))"
        strip = f"np.copyto({out}[..., {p} - {j0}:{q} - {j0}], {rest}, where=~{seen})"
        lines = ast.unparse(ast.parse(f"for {p}, {q} in {strips}:\n if {p} < {q}:\n  {strip}")).split("\n")
        return lines if value == out else [f"np.copyto({out}, {value})", *lines]

    def _dying(self, n: int, x: Tensor, node: Tensor) -> str | None:
        """The buffer of an operand that this node is the last to read, if it can be written over."""
        for k, y in enumerate(x.inputs):
            last = y in self.held and self.last[y] == n and self.body.node[y].shape == node.shape
            if last and (k in IN_PLACE.get(x.op, ()) or axes_of(x).reads_entrywise(k, y)):
                return self.held[y]
        return None

    def _buffer(self, shape: Shape) -> str:
        """A free array of that shape; its memory is made before the loops."""
        if self.free.setdefault(shape, []):
            return self.free[shape].pop()
        code, name = self.code, self.code.identifier("a")
        memory = code.slot(self.first_slot + len(self.views), _times(map(code.largest_size, shape)))
        self.views[name] = f"{name} = {memory}[:{_times(map(code.size, shape))}].reshape({code.shape(shape)})"
        return name

    def _release(self, n: int) -> None:
        for y, buffer in list(self.held.items()):
            if self.last.get(y, n) == n:
                del self.held[y]
                self.free[self.body.node[y].shape].append(buffer)


def _names(graph: Graph, outputs: Sequence[Tensor]) -> dict[Tensor, str]:
    """The names of lowered outputs that are computed."""
    pairs = zip(graph.outputs, outputs, strict=True)
    return {node: graph.names.get(y) or y.name or "y" for y, node in pairs if node.inputs}


def _times(sizes: Iterable[str]) -> str:
    """The product of sizes."""
    return " * ".join(size if re.fullmatch(r"\w+", size) else f"({size})" for size in sizes if size != "1") or "1"


def _largest(lengths: Sequence[str]) -> str:
    return lengths[0] if len(lengths) == 1 else f"max({', '.join(lengths)})"
