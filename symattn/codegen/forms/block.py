"""One loop over blocks while it is written: its statements, and who holds which buffer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import sympy

from ...core.node import Tensor
from ...core.sizes import ONE, Shape
from ...errors import NoRuleError
from ...ops.arithmetic import add_op, multiply_op
from ...ops.broadcasting import sum_op
from ...ops.leaves import scalar_value
from ..program.axes import axes_of
from ..program.body import Body
from ..program.columns import Columns
from ..program.records import IN_PLACE
from ..text.statements import is_atom, parsed, sum_of_rows, written_into

if TYPE_CHECKING:
    from .blocks import BlockWriter


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


class Block:
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
        self.inner += Block(code, body, self.depth + 1, into, self.first_slot + len(self.views)).lines()
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
        memory = code.slot(self.first_slot + len(self.views), times(map(code.largest_size, shape)))
        self.views[name] = f"{name} = {memory}[:{times(map(code.size, shape))}].reshape({code.shape(shape)})"
        return name

    def _release(self, n: int) -> None:
        for y, buffer in list(self.held.items()):
            if self.last.get(y, n) == n:
                del self.held[y]
                self.free[self.body.node[y].shape].append(buffer)


def times(sizes: Iterable[str]) -> str:
    """The product of sizes."""
    return " * ".join(size if re.fullmatch(r"\w+", size) else f"({size})" for size in sizes if size != "1") or "1"
