"""How an induction is told: the recursion, what it comes to, the first step, and the step from n to n + 1.

States are ``S_t``, the first n places of a sequence ``K_{:n}``, and the last of n + 1 places ``k_{n+1}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ...core.boxes import Box, Name, Number, Row, Script, Sign, commas, row
from ...core.naming import free_letters, new_name
from ...core.node import Tensor, rebuild
from ...ops.leaves import variable
from ...ops.notation import Binding
from ...printing.matrix import Printer, latex_printer, names_in
from ...printing.prose import EQUALS, Chain, Paragraph, Part, Step, Words, listed
from ...printing.table import SymbolTable, checked_table
from .closed_forms import ClosedForm
from .images import Image
from .prefixes import at_length, sequences_in

_LETTERS = {("state", True): "SUWYZ", ("state", False): "smlruvw", ("output", True): "OYZ", ("output", False): "oyz"}
_ZERO, _ONE = Number("0"), Number("1")


class Told:
    """The parts of an induction as mathematics, with the symbols of a document if it stands in one."""

    def __init__(self, form: ClosedForm, within: SymbolTable | None) -> None:
        self.form, self.loop, self.within = form, form.loop, within
        self.taken = names_in(form.roots) | set(checked_table(within))
        self.boxes: dict[Tensor, Box] = {}  # what tensors of its own are printed as
        step = self.loop.step
        self.states = [self._letter("state", x) for x in step.states]
        self.outputs = [self._letter("output", x) for x in step.outputs]
        self.elements = [self._element(x) for x in self.loop.sequences]
        n = self._scalar(form.before)
        self.n, self.next, self.last = n, row(n, Sign("+", "sum"), _ONE), self._scalar(form.steps)

    def _letter(self, role: str, x: Tensor) -> Box:
        return Name(new_name(next(free_letters(_LETTERS[role, x.rank > 1], self.taken)), self.taken))

    def _element(self, x: Tensor) -> Box:
        """The letter of the elements of a sequence: its small one, where that is free."""
        name = str(x.name or "")
        small = x.op is variable and len(name) == 1 and name.lower() not in self.taken - {name}
        return Name(name.lower()) if small else self._plain(x)

    def _plain(self, x: Tensor) -> Box:
        return latex_printer([x], within=self.within).operand(x, Binding.ATOM)

    def _scalar(self, value: Any) -> Box:
        return checked_table(self.within).scalar(value)

    def _shown(self, letters: Sequence[Box], like: Sequence[Tensor], at: Box) -> list[Tensor]:
        """Tensors of their own that are printed as a letter at a place."""
        made = [variable(name=new_name("x", self.taken), shape=x.shape, hypotheses=()) for x in like]
        self.boxes.update(zip(made, (Script(letter, at) for letter in letters), strict=True))
        return made

    def _run(self, states: Sequence[Tensor], at: Box, length: Any = None) -> list[Tensor]:
        """A step from some states: the new ones, and the outputs."""
        step, T = self.loop.step, self.form.steps
        given = [x if length is None else at_length(x, T, length) for x in self.loop.given]
        leaves = [*states, *self._shown(self.elements, step.reads, at), *given]
        return rebuild([*step.after, *step.outputs], dict(zip(step.leaves, leaves, strict=True)))

    def _rows(self, at: Box, *several: Sequence[Tensor | None], reasons: Sequence[Words] = ()) -> Iterator[Step]:
        """Each state and output at a place, equal to one thing after the other."""
        letters = [*self.states, *self.outputs]
        lines = [[x for x in values if x is not None] for values in zip(*several, strict=True)]
        printer = self._printer([x for line in lines for x in line])
        for letter, line in zip(letters, lines, strict=True):
            boxes = [*dict.fromkeys(map(printer.box, line if len(line) == len(several) else []))]
            for k, box in enumerate(boxes):
                yield Step(Script(letter, at) if k == 0 else None, box, reasons[k] if reasons else ())

    def _printer(self, roots: Sequence[Tensor]) -> Printer:
        printer = latex_printer(roots, within=self.within)
        printer.known.update((x, (box, Binding.ATOM)) for x, box in self.boxes.items())
        return printer

    def _forms(self, length: Any, free: Mapping[Tensor, Tensor], last: bool = True) -> list[Tensor | None]:
        """The closed forms for a number of steps, of states and then of outputs: of the last, or of all of them."""
        missing = len(self.outputs) - len(self.form.outputs)
        states = self.form.states
        made = [self._at(x, length, free) for x in (*states, *self.form.outputs, *[None] * missing)]
        return [x[-1] if last and x is not None and k >= len(states) else x for k, x in enumerate(made)]

    def _at(self, x: Tensor | None, length: Any, free: Mapping[Tensor, Tensor]) -> Tensor | None:
        return None if x is None else rebuild([at_length(x, self.form.steps, length)], free)[0]

    def _free(self, at: Box) -> dict[Tensor, Tensor]:
        """The free states at a place."""
        own = [x for _, x in self.form.free]
        return dict(zip(own, self._shown([self.states[k] for k, _ in self.form.free], own, at), strict=True))

    def _asked(self, values: Sequence[Tensor]) -> list[Tensor | None]:
        """Of new states and outputs those of which something is said."""
        said = self._forms(self.form.steps, {})
        free = [k for k, _ in self.form.free]
        return [x if k in free or y is not None else None for k, (x, y) in enumerate(zip(values, said, strict=True))]

    # --- the parts ---

    def recursion(self) -> Chain:
        """What the loop is."""
        t = Name(new_name("t", self.taken))
        before = self._shown(self.states, self.loop.step.states, row(t, Sign("−", "sum"), _ONE))
        now = self._asked(self._run(before, t))
        starts = self._rows(_ZERO, [*self.loop.first, *[None] * len(self.outputs)])
        each = row(t, EQUALS, commas([_ONE, Sign("…"), self.last]))
        return Chain((*starts, *(replace(step, each=each) for step in self._rows(t, now))))

    def result(self) -> Chain:
        """What it comes to."""
        whole = self._forms(self.form.steps, self._free(self.last), last=False)
        states = len(self.states)
        runs = Row((_ONE, Sign(":"), self.last))
        first = self._rows(self.last, [*whole[:states], *[None] * len(self.outputs)])
        return Chain((*first, *self._rows(runs, [*[None] * states, *whole[states:]])))

    def first_step(self) -> Chain:
        """One step from the start."""
        T = self.form.steps
        first = [at_length(x, T, 1) for x in self.loop.first]
        free = self._free(_ONE)
        made = self._with_free(self._asked(self._run(first, _ONE, 1)), free)
        return Chain(tuple(self._rows(_ONE, made, self._forms(1, free))))

    def next_step(self) -> Chain:
        """One step from n of them: by the recursion, with the closed forms of n steps, and of n + 1 steps."""
        n = self.form.before
        letters = self._shown(self.states, self.loop.step.states, self.n)
        now = self._asked(self._run(letters, self.next, n + 1))
        cut = {**self._cut, **{x: letters[k] for k, x in self.form.free}}
        closed = [self._at(x, n, cut) for x in self.form.states]
        before = [letters[k] if x is None else x for k, x in enumerate(closed)]
        then = self._asked(self._run(before, self.next, n + 1))
        after = self._free(self.next)
        now, then = (self._with_free(values, after) for values in (now, then))
        reasons = (("one step",), ("by hypothesis",), ())
        return Chain(tuple(self._rows(self.next, now, then, self._forms(n + 1, after), reasons=reasons)))

    def _with_free(self, values: Sequence[Tensor | None], free: Mapping[Tensor, Tensor]) -> list[Tensor | None]:
        """The values with letters for new free states, which may be anything; nothing is said of these."""
        new = {values[k]: free[x] for k, x in self.form.free}
        put = {x: y for x, y in new.items() if x is not None and x.inputs}
        numbers = dict(self.form.free)
        return [None if x is None or k in numbers else rebuild([x], put)[0] for k, x in enumerate(values)]

    @cached_property
    def _cut(self) -> dict[Tensor, Tensor]:
        """The sequences of n places, as the first n."""
        T, n = self.form.steps, self.form.before
        leaves = sequences_in(self.form.roots, T)
        short = [at_length(x, T, n) for x in leaves]
        shown = self._shown([*map(self._plain, leaves)], short, Row((Sign(":"), self.n)))
        return dict(zip(short, shown, strict=True))

    @property
    def names(self) -> Words:
        """What the places of the sequences are called: ``K_{:n} and k_{n+1}``."""
        first = Row((Sign(":"), self.n))
        pairs = zip(self.loop.sequences, self.elements, strict=True)
        return listed(((row(Script(self._plain(x), first)), " and ", Script(e, self.next)) for x, e in pairs), ", ")


def closed_form_told(form: ClosedForm, within: SymbolTable | None) -> tuple[Part, ...]:
    """The induction."""
    told = Told(form, within)
    T = told.last
    return (
        Paragraph(("By induction on ", T, ", the number of steps of")),
        told.recursion(),
        Paragraph(("To be shown: for every ", row(T, Sign("≥", "relation"), _ONE), ",")),
        told.result(),
        Paragraph(("For ", row(T, EQUALS, _ONE), " one step from the start gives")),
        told.first_step(),
        Paragraph(
            ("Let it hold for ", told.n, " steps. Of ", told.next, " places the first ", told.n, " and the last are ",
             *told.names, ", and one step more gives")
        ),
        told.next_step(),
    )  # fmt: skip


def image_told(image: Image, within: SymbolTable | None) -> tuple[Part, ...]:
    """The induction for two recurrences of which one is the image of the other."""
    claims = image.obligations()
    roots = [image.form, *image.states, *(x for part in claims for x in part.claim.sides)]
    printer = latex_printer(roots, within=within)
    states = commas([printer.box(x) for x in image.states])
    steps = (Step(printer.box(c.claim.left), printer.box(c.claim.right), (c.what,)) for c in claims)
    said = ("By induction on the number of steps: when one recurrence has come to ", states, ", the other has come to ")
    return Paragraph((*said, printer.box(image.form), ". So it is, since")), Chain(tuple(steps))
