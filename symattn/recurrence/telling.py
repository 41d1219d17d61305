"""A recurrence by its equations: states ``S_t``, elements ``k_t`` of a sequence K, and ``o_t`` of an output O.

A state is counted by the steps before it: ``S_0`` is the start, and ``S_T`` the last one of T steps. What has places,
the elements of sequences and of outputs, is counted as all indices of the page are, from 0 or from 1: an
equation is ``S_{t+1} = S_t + k_t v_t^T`` for t = 0, ..., T - 1, or ``S_t = S_{t-1} + k_t v_t^T`` for t = 1, ..., T.
A loop that runs from the end of all its sequences has the state to which an element leads at the place of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sympy

from ..core.boxes import Box, Fence, Name, Row, Script, Sign
from ..core.naming import free_letters, new_name
from ..core.node import Tensor, rebuild, topological
from ..graph.names import displayed_names
from ..ops.arithmetic import multiply, split_scalar
from ..ops.gather import flip
from ..ops.index import index_op, reads_all
from ..ops.layout import merge_axis_op, split_axis_op
from ..ops.leaves import is_named, variable
from ..ops.notation import Binding, Written
from ..printing.matrix import Printer
from ..printing.prose import Step
from ..printing.ranges import ranging
from .body import Loop, Take, loop_key

_LETTERS = {("state", True): "SUWYZ", ("state", False): "smlruvw", ("output", True): "OYZ", ("output", False): "oyz"}
_PARTS = {True: "ABCFGW", False: "abcfgw"}
_TIMES = "tnmr"
_AT_LENGTH = 8  # operations that are not written again
Values = Sequence[Tensor | None]  # of the states and then of the outputs, None for those that are left out


class Letters:
    """The letters of the recurrences of one page, of which none has two meanings."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self._small = dict[str, str]()  # letters of elements, by what these are elements of

    def new(self, letters: str) -> Box:
        """One of some letters, which is taken from then on."""
        return Name(new_name(next(free_letters(letters, self.taken)), self.taken))

    def of_elements(self, name: str) -> str:
        """The name of the elements of what has a name: its small letter, where that is free."""
        small = name.lower()
        if len(name) == 1 and name not in self._small and small not in self.taken:
            self.taken.add(small)
            self._small[name] = small
        return self._small.get(name, name)


def in_blocks(x: Tensor) -> bool:
    """Whether it is something in blocks along its first axis."""
    return x.op is split_axis_op and x.params["axis"] == -x.inputs[0].rank


def merges_blocks(x: Tensor) -> bool:
    """Whether it is what something in blocks along its first axis is blocks of."""
    return x.op is merge_axis_op and x.params["axis"] == 1 - x.inputs[0].rank


def from_end(x: Tensor) -> Tensor | None:
    """What a sequence is in the other order, if that is as plain."""
    if _reads_back(x):
        return flip(x, 0)
    factor, rest = split_scalar(x)
    if factor != 1 and rest is not None:
        back = from_end(rest)
        return None if back is None else multiply(factor, back)
    return flip(x, 0) if x.op.part and any(map(_reads_back, x.inputs)) else None


def runs_back(loop: Loop) -> bool:
    """Whether a loop reads sequences, and all from the end."""
    return any(map(_reads_back, loop.sequences)) and None not in map(from_end, loop.sequences)


def in_order(loop: Loop, back: bool) -> list[Tensor]:
    """The sequences of a loop as they are written."""
    return [other if back and (other := from_end(x)) is not None else x for x in loop.sequences]


class Read(NamedTuple):
    """What a step reads, and where: the element of a sequence at a place that depends on that of the step."""

    letter: Box
    start: sympy.Expr
    stride: Any
    of_blocks: bool

    def at(self, step: sympy.Expr) -> sympy.Expr:
        """The place, counted from 0, that is read where this many elements come before."""
        return sympy.expand(self.start + self.stride * step)


class Recursion:
    """The letters of a loop, those of its values as ``labels`` have them, and its equations by these.

    ``p`` writes what stands around it, and more ``letters`` are taken than those. Its outputs are in the order of the
    steps, or ``back`` in that of the sequences.
    """

    def __init__(
        self, loop: Loop, labels: Mapping[Take, str], p: Printer, letters: Letters | None = None, back: bool = False
    ) -> None:
        self.loop, self.labels, self.p, self.back = loop, labels, p, back
        self.letters = Letters(p.taken) if letters is None else letters
        self.letters.taken |= {*p.taken, *labels.values()}
        self.told: Sequence[bool] = ()  # for which states and outputs the equations are on the page
        self.boxes = dict[Tensor, Box]()  # what tensors of its own are printed as
        self.written = dict[Tensor, Written]()  # those of them that need a fence in places
        self._whole_of = dict[Tensor, Tensor]()  # what stands for all blocks of something
        self.reads = [self._read_of(x) for x in self.sequences]
        self.states = [self._letter(("final", k), x) for k, x in enumerate(loop.step.states)]
        self.outputs = [self._letter(("output", k), x) for k, x in enumerate(loop.step.outputs)]

    @property
    def sequences(self) -> list[Tensor]:
        """The sequences in the order in which they are written."""
        return in_order(self.loop, self.back)

    def _letter(self, take: Take, x: Tensor) -> Box:
        role = "output" if take[0] == "output" else "state"
        if (label := self.labels.get(take)) is not None:
            small = role == "output" and x.rank < 2
            return _as_base(self.symbol(self.letters.of_elements(label) if small else label), True)
        return self.letters.new(_LETTERS[role, x.rank > 1])

    def _read_of(self, x: Tensor) -> Read:
        """The element of a sequence: of a part of one, that of the whole."""
        start, stride = sympy.S.Zero, 1
        while _cuts_first_axis(x):
            _, first, step, _ = x.params["items"][0]
            start, stride, x = first + step * start, step * stride, x.inputs[0]
        return Read(self._element(x), start, stride, self.in_blocks(x))

    def _element(self, x: Tensor) -> Box:
        told = self.p.table.loops.get(loop_key(x)) if x.op.equations is not None else None
        if told is not None and x not in self.p.names:  # the output of a loop with letters
            return told.outputs[x.params["take"][1]]
        name = str(x.name or "")
        small = self.letters.of_elements(name) if is_named(x) and x.rank < 3 else name
        if small != name:
            return Name(small)
        return _as_base(self.plain(x), is_named(x) or self.in_blocks(x))

    def go_on(self, other: Recursion | None) -> None:
        """Take the letters of equations that the page has of the same loop, if they count the steps as these do."""
        if other is not None and other.back is self.back:
            self.states, self.outputs, self.reads, self.told = other.states, other.outputs, other.reads, other.told

    def has_told(self, asked: Sequence[bool]) -> bool:
        """Whether the page has the equations of these states and outputs."""
        return bool(self.told) and all(told or not wanted for told, wanted in zip(self.told, asked, strict=True))

    def in_blocks(self, x: Tensor) -> bool:
        """Whether elements of a sequence are blocks of something."""
        return in_blocks(x)

    def symbol(self, name: str) -> Box:
        """A name as the page has it."""
        return self.p.letters(name)

    def plain(self, x: Tensor) -> Box:
        """A sequence as it stands before a place; one of blocks by what they are blocks of."""
        return self.p.operand(x.inputs[0] if in_blocks(x) else x, Binding.ATOM)

    def scalar(self, value: Any) -> Box:
        """A size, a place, or a number of steps."""
        return self.p.scalar(value)

    def shown(self, boxes: Sequence[Box], like: Sequence[Tensor]) -> list[Tensor]:
        """Tensors of their own that are printed as these boxes."""
        made = [variable(name=new_name("placed", self.letters.taken), shape=x.shape, hypotheses=()) for x in like]
        self.boxes.update(zip(made, boxes, strict=True))
        return made

    # --- places ---

    @property
    def base(self) -> int:
        """From where places are counted."""
        return self.p.first_index

    def place(self, steps: Any) -> Box:
        """The place of what the step after some others reads and gives."""
        behind = self.loop.length - 1 - steps if self.back else steps
        return self.scalar(sympy.expand(behind + self.base))

    def count(self, steps: Any) -> Box:
        """What counts the states after some steps."""
        return self.scalar(sympy.expand(self.loop.length + self.base - steps if self.back else sympy.sympify(steps)))

    def _element_at(self, read: Read, steps: Any) -> Box:
        behind = self.loop.length - 1 - steps if self.back else steps
        at = self.scalar(sympy.expand(read.at(behind) + self.base))
        return Script(read.letter, Fence(at, "[", "]") if read.of_blocks else at)

    # --- values ---

    def states_at(self, steps: Any) -> list[Tensor]:
        """The states after some steps, by their letters."""
        at = self.count(steps)
        return self.shown([Script(letter, at) for letter in self.states], self.loop.step.states)

    def run(self, states: Sequence[Tensor], steps: Any, given: Sequence[Tensor]) -> list[Tensor]:
        """One step more from some states after some others: the new states, and the outputs."""
        step = self.loop.step
        reads = self.shown([self._element_at(read, steps) for read in self.reads], step.reads)
        return rebuild([*step.after, *step.outputs], dict(zip(step.leaves, [*states, *reads, *given], strict=True)))

    def by_new(self, values: Sequence[Tensor], new: Sequence[Tensor]) -> list[Tensor]:
        """The values of a step, in which new states are written by their letters where others are made from them."""
        put = dict(zip(values, new, strict=False))
        put = {x: letter for x, letter in put.items() if x.inputs}
        outputs = rebuild(values[len(new) :], put)
        return [*(rebuild([x], {y: put[y] for y in put if y is not x})[0] for x in values[: len(new)]), *outputs]

    def heads(self, steps: Any) -> list[Box]:
        """The states after some steps, and the outputs of the last of these."""
        states = [Script(letter, self.count(steps)) for letter in self.states]
        return [*states, *(Script(letter, self.place(steps - 1)) for letter in self.outputs)]

    def printer(self, roots: Sequence[Tensor], bound: str = "") -> Printer:
        """What writes expressions with the tensors of its own; the letter that they bind has no other meaning."""
        return self.p.beside(displayed_names(roots), {*self.letters.taken, bound}, self.boxes, self.written)

    def plainly(self, x: Tensor) -> Tensor:
        """An expression in which all blocks of something are called as that is."""
        blocks = [y for y in topological([x]) if in_blocks(y) or (merges_blocks(y) and self._is_told(y.inputs[0]))]
        for y in blocks:
            if y not in self._whole_of:
                (inside,) = rebuild([y.inputs[0]], self._whole_of)
                printer = self.printer([inside])
                (self._whole_of[y],) = self.shown([printer.operand(inside, Binding.ATOM)], [y])
                self.written[self._whole_of[y]] = printer.box(inside), printer.binding(inside)
        return rebuild([x], {y: self._whole_of[y] for y in blocks})[0]

    def _is_told(self, x: Tensor) -> bool:
        return x in self.boxes or x in self.loop.sequences

    def rows(self, heads: Sequence[Box], values: Values) -> Iterator[Step]:
        """States and outputs under these heads, and what they are equal to."""
        pairs = [(head, self.plainly(x)) for head, x in zip(heads, values, strict=True) if x is not None]
        printer = self.printer([x for _, x in pairs])
        for head, x in pairs:
            yield Step(head, printer.box(x))

    def needed_for(self, takes: Iterable[Take]) -> list[bool]:
        """Which states and outputs matter to some values."""
        takes, step = {*takes}, self.loop.step
        outputs = [("output", k) in takes for k, _ in enumerate(step.outputs)]
        roots = [x for x, wanted in zip(step.outputs, outputs, strict=True) if wanted]
        needed = step.needed([*roots, *(x for k, x in enumerate(step.states) if ("final", k) in takes)])
        return [*(k in needed for k, _ in enumerate(step.states)), *outputs]

    def equations(self, asked: Sequence[bool]) -> Iterator[Step]:
        """The starts, and the step at t, of the states and outputs that are asked for and not told yet."""
        told = self.told or [False] * len(asked)
        self.told = [wanted or known for wanted, known in zip(asked, told, strict=True)]
        asked = [wanted and not known for wanted, known in zip(asked, told, strict=True)]
        starts = [x if wanted else None for x, wanted in zip(self.loop.first, asked, strict=False)]
        yield from self.rows(self.heads(0)[: len(starts)], starts)
        yield from self._at_any_step(asked)

    def _at_any_step(self, asked: Sequence[bool]) -> Iterator[Step]:
        """The step at t, what is made from others after these; what is long and stands there twice has a letter."""
        letter = next(free_letters(_TIMES, self.letters.taken))  # which is bound here, and free for others
        t = sympy.Symbol(letter, integer=True)
        steps = self.loop.length - 1 + self.base - t if self.back else t - self.base
        values = self.run(self.states_at(steps), steps, self.loop.given)
        order = {x: n for n, x in enumerate(topological(values[: len(self.states)]))}
        new = [*map(self.plainly, self.by_new(values, self.states_at(steps + 1)))]
        shown = [k for k, wanted in enumerate(asked) if wanted]
        shown.sort(key=lambda k: order[values[k]] if k < len(self.states) else len(order))
        printer, heads, each = self.printer(new, letter), self.heads(steps + 1), self._each(t)
        parts = [x for x in said_again([new[k] for k in shown]) if x not in self.boxes]
        for k in shown:
            for x in [x for x in parts if x in topological([new[k]])]:
                parts.remove(x)
                head = Script(self.letters.new(_PARTS[x.rank > 1]), self.scalar(t))
                yield Step(head, printer.box(x), each=each)
                printer.known[x] = head, Binding.ATOM
            yield Step(heads[k], printer.box(new[k]), each=each)

    def _each(self, t: sympy.Symbol) -> Box:
        """For which t the equations hold, in the order in which the steps are made."""
        ends = [self.scalar(self.base), self.scalar(sympy.expand(self.loop.length - 1 + self.base))]
        first, last = reversed(ends) if self.back else ends
        return ranging([self.scalar(t)], first, last, self.loop.length)

    # --- the whole ---

    def runs(self, k: int) -> Box:
        """An output whole: by its name if it has one."""
        label = self.labels.get(("output", k))
        return self.value(("output", k)) if label is None else self.symbol(label)

    def value(self, take: Take) -> Box:
        """A value as what the steps have come to: the last state, or all outputs."""
        what, k = take
        if what == "final":
            return Script(self.states[k], self.count(self.loop.length))
        first = [self.scalar(1)] if self.base else []  # what is left out is counted from 0
        return Script(self.outputs[k], Row((*first, Sign(":"), self.scalar(self.loop.length))))


def _as_base(box: Box, is_name: bool) -> Box:
    """What may have a place below it, which is told from a subscript of its own."""
    below = isinstance(box, Script) and box.below is not None
    return box if isinstance(box, (Name, Fence)) or (is_name and not below and not isinstance(box, Row)) else Fence(box)


def _reads_back(x: Tensor) -> bool:
    """Whether a tensor has the places of another along its first axis from the end."""
    return _cuts_first_axis(x) and x.params["items"][0][2] < 0


def _cuts_first_axis(x: Tensor) -> bool:
    """Whether a tensor has some of the places of another along its first axis, and all along others."""
    if x.op is not index_op or not x.rank or x.rank != x.inputs[0].rank:
        return False
    items = x.params["items"]
    if len(items) != x.rank or items[0][0] != "slice":
        return False
    return all(reads_all(item, size) for item, size in zip(items[1:], x.inputs[0].shape[1:], strict=True))


def said_again(roots: Sequence[Tensor]) -> list[Tensor]:
    """What would be written at length several times, and is none of the roots; inputs before users."""
    order = topological(roots)
    uses = Counter(x for node in order for x in node.inputs)
    size, found = dict[Tensor, int](), list[Tensor]()
    for node in order:
        inner = node.params["body"].step.roots if node.op.part else ()
        size[node] = 1 + len(topological(inner)) + sum(size[x] for x in node.inputs)
        if node in roots or (node.inputs and (uses[node] - 1) * size[node] >= _AT_LENGTH):
            found += [] if node in roots else [node]
            size[node] = 1
    return found
