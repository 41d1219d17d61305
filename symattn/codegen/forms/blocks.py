"""Writes a program as NumPy: one loop over the loop axes, in it loops over blocks whose values share a few buffers.

Records say how each operation is spelled, on nodes of one block. An operation that NumPy can write into an array does
so: into an output, into the buffer of an operand that nobody reads any more, or into a free one.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy

from ...core.node import Tensor
from ...errors import NoRuleError
from ...ops.leaves import computed, constant, cotangent_op
from ..call.takes import Takes
from ..graph import Graph
from ..program.body import Body
from ..program.build import GAP, Program
from ..program.nesting import LEAST_ROWS, is_by_places, largest_of
from ..text.loop_axes import LoopAxes, arguments_below, without_real_numbers
from ..text.source import Writer
from ..text.spelling import Spelling
from ..text.statements import is_atom, parsed, tidied, written_into
from .block import Block, Letters, Mask, times

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
                self.body += Block(self, stage).lines()
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
        a_row = f"{itemsize} * {times(map(self.largest_size, row))}"
        if is_by_places(loop, largest):
            return ast.unparse(ast.parse(f"min({length}, max(1, {BUDGET} // ({a_row})))"))
        whole = max(loop.whole(), key=extent.of, default=None)
        limits = [[f"{LEAST_ROWS}", f"{BUDGET} // ({a_row})"]]
        if loop.columns is not None:
            limits.append([f"{LEAST_ROWS // 2}", f"({length}) // 8"])  # or there is little to skip
        if whole is not None and whole.rank:
            far = f"({itemsize} * {times(map(self.largest_size, whole.shape))} - {BUDGET}) // {_READ_PER_ROW}"
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


def _names(graph: Graph, outputs: Sequence[Tensor]) -> dict[Tensor, str]:
    """The names of lowered outputs that are computed."""
    pairs = zip(graph.outputs, outputs, strict=True)
    return {node: graph.names.get(y) or y.name or "y" for y, node in pairs if node.inputs}


def _largest(lengths: Sequence[str]) -> str:
    return lengths[0] if len(lengths) == 1 else f"max({', '.join(lengths)})"
