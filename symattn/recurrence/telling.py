"""A recurrence by its equations: states ``S_t``, elements ``k_t`` of a sequence K, and ``o_t`` of an output O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.boxes import Box, Name, Number, Row, Script, Sign, commas, row
from ..core.naming import free_letters, fresh_name, new_name
from ..core.node import Tensor, rebuild, topological
from ..ops.layout import merge_axis_op, split_axis_op
from ..ops.leaves import is_named, variable
from ..ops.notation import Binding
from ..printing.matrix import Printer, latex_printer
from ..printing.prose import EQUALS, Step
from ..printing.table import SymbolTable, checked_table
from .body import Take
from .record import Loop

_LETTERS = {("state", True): "SUWYZ", ("state", False): "smlruvw", ("output", True): "OYZ", ("output", False): "oyz"}
ZERO, ONE = Number("0"), Number("1")
Values = Sequence[Tensor | None]  # of the states and then of the outputs, None for those that are left out


def lower(name: str, taken: set[str]) -> str:
    """The name of the elements of what has a name: its small letter, where that is free."""
    small = name.lower()
    return small if len(name) == 1 and small not in taken - {name} else name


def in_blocks(x: Tensor) -> bool:
    """Whether it is something in blocks along its first axis."""
    return x.op is split_axis_op and x.params["axis"] == -x.inputs[0].rank


class Recursion:
    """The letters of a loop, those of its values as ``labels`` have them, and its equations by these.

    ``taken`` are names that mean something else; ``within`` are the symbols of a document if it stands in one.
    """

    def __init__(self, loop: Loop, labels: Mapping[Take, str], taken: set[str], within: SymbolTable | None) -> None:
        self.loop, self.labels, self.within = loop, labels, within
        self.taken = {*taken, *checked_table(within).letters(), *labels.values()}
        self.boxes: dict[Tensor, Box] = {}  # what tensors of its own are printed as
        self.states = [self._letter(("final", k), x) for k, x in enumerate(loop.step.states)]
        self.outputs = [self._letter(("output", k), x) for k, x in enumerate(loop.step.outputs)]
        self.elements = [self._element(x) for x in loop.sequences]

    def _letter(self, take: Take, x: Tensor) -> Box:
        role = "output" if take[0] == "output" else "state"
        if (label := self.labels.get(take)) is not None:
            return self.symbol(lower(label, self.taken) if role == "output" and x.rank < 2 else label)
        return Name(new_name(next(free_letters(_LETTERS[role, x.rank > 1], self.taken)), self.taken))

    def _element(self, x: Tensor) -> Box:
        name = str(x.name or "")
        small = lower(name, self.taken)
        return Name(small) if is_named(x) and small != name and x.rank < 3 else self.plain(x)

    def symbol(self, name: str) -> Box:
        """A name as the document has it."""
        return checked_table(self.within).box(name)

    def plain(self, x: Tensor) -> Box:
        """A sequence as it stands before a place; one of blocks by what they are blocks of."""
        whole = x.inputs[0] if in_blocks(x) else x
        return latex_printer([whole], within=self.within).operand(whole, Binding.ATOM)

    def scalar(self, value: Any) -> Box:
        """A size, or a number of steps."""
        return checked_table(self.within).scalar(value)

    def shown(self, boxes: Sequence[Box], like: Sequence[Tensor]) -> list[Tensor]:
        """Tensors of their own that are printed as these boxes."""
        made = [variable(name=new_name("x", self.taken), shape=x.shape, hypotheses=()) for x in like]
        self.boxes.update(zip(made, boxes, strict=True))
        return made

    def states_at(self, at: Box) -> list[Tensor]:
        """The states at a place, by their letters."""
        return self.shown([Script(letter, at) for letter in self.states], self.loop.step.states)

    def run(self, states: Sequence[Tensor], at: Box, given: Sequence[Tensor]) -> list[Tensor]:
        """A step from some states at a place: the new states, and the outputs."""
        step = self.loop.step
        reads = self.shown([Script(element, at) for element in self.elements], step.reads)
        return rebuild([*step.after, *step.outputs], dict(zip(step.leaves, [*states, *reads, *given], strict=True)))

    def by_new(self, values: Sequence[Tensor], new: Sequence[Tensor]) -> list[Tensor]:
        """The values of a step, in which new states are written by their letters where others are made from them."""
        put = dict(zip(values, new, strict=False))
        put = {x: letter for x, letter in put.items() if x.inputs}
        return [rebuild([x], {y: letter for y, letter in put.items() if y is not x})[0] for x in values]

    def rows(self, heads: Sequence[Box], values: Values) -> Iterator[Step]:
        """States and outputs under these heads, and what they are equal to."""
        printer = self.printer([x for x in values if x is not None])
        for head, x in zip(heads, values, strict=True):
            if x is not None:
                yield Step(head, printer.box(x))

    def heads(self, at: Box) -> list[Box]:
        """The states and the outputs at a place."""
        return [Script(letter, at) for letter in (*self.states, *self.outputs)]

    def printer(self, roots: Sequence[Tensor]) -> Printer:
        """What writes expressions with the tensors of its own."""
        printer = latex_printer(roots, within=self.within)
        printer.known.update((x, (box, Binding.ATOM)) for x, box in self.boxes.items())
        for x in topological(roots):  # all blocks of something are called as it is
            merged = x.op is merge_axis_op and x.params["axis"] == 1 - x.inputs[0].rank
            if in_blocks(x) or (merged and (x.inputs[0] in self.boxes or x.inputs[0] in self.loop.sequences)):
                printer.known[x] = printer.box(x.inputs[0]), printer.binding(x.inputs[0])
        return printer

    def equations(self, asked: Sequence[bool]) -> Iterator[Step]:
        """The starts, and the step at t, of the states and outputs that are asked for."""
        t = Name(fresh_name("t", self.taken))  # which these equations bind, and others again
        values = self.run(self.states_at(row(t, Sign("−", "sum"), ONE)), t, self.loop.given)
        now: Values = self.by_new(values, self.states_at(t))
        starts = [x if wanted else None for x, wanted in zip(self.loop.first, asked, strict=False)]
        yield from self.rows(self.heads(ZERO), [*starts, *[None] * len(self.outputs)])
        each = row(t, EQUALS, commas([ONE, Sign("…"), self.scalar(self.loop.length)]))
        now = [x if wanted else None for x, wanted in zip(now, asked, strict=True)]
        yield from (replace(step, each=each) for step in self.rows(self.heads(t), now))

    def runs(self, k: int) -> Box:
        """An output whole: by its name if it has one."""
        label = self.labels.get(("output", k))
        return self.value(("output", k)) if label is None else self.symbol(label)

    def value(self, take: Take) -> Box:
        """A value as what the steps have come to: the last state, or all outputs."""
        last = self.scalar(self.loop.length)
        if take[0] == "final":
            return Script(self.states[take[1]], last)
        return Script(self.outputs[take[1]], Row((ONE, Sign(":"), last)))
