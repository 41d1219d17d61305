"""How an induction is told: the recursion, what it comes to, the first step, and the step from n to n + 1.

States are ``S_t``, the first n places of a sequence ``K_{:n}``, and the next one ``k_{n+1}``. A state of whose closed
form another one is made stands in that by its letter, as the running maximum in the sums of online softmax.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from ...core.boxes import Box, Fence, Row, Script, Sign, commas, row
from ...core.naming import free_letters, new_name
from ...core.node import Tensor, rebuild, topological
from ...ops.gather import flip
from ...ops.leaves import definition, is_named, let_op
from ...ops.notation import Binding, fenced
from ...printing.matrix import Printer, latex_printer, names_in
from ...printing.prose import EQUALS, Chain, Paragraph, Part, Step, Words, listed
from ...printing.table import SymbolTable, checked_table
from ...recurrence.body import Loop, Take, loop_key, loop_of, without_labels
from ...recurrence.record import scan_op
from ...recurrence.scans import is_value_of, states_and_outputs
from ...recurrence.telling import Letters, Recursion, in_blocks, merges_blocks
from ..claims import RELATIONS, Claim
from .closed_forms import ClosedForm, in_steps
from .images import Image
from .prefixes import at_length, sequences_in

_BY_HYPOTHESIS: Words = ("by hypothesis",)
Line = Sequence[tuple[Tensor, Words]]  # what something is equal to, one after the other, each with why


class Told(Recursion):
    """The parts of an induction as mathematics."""

    def __init__(self, form: ClosedForm, claim: Claim, within: SymbolTable | None) -> None:
        p = latex_printer(form.roots, within=within)
        self.form, self.within = form, within
        self._blocks = {x.inputs[0] for x in topological([*claim.sides, *form.roots]) if merges_blocks(x)}
        told = _told_as(form.source, within)
        letters = Letters(names_in(form.roots) | _letters_of(told))
        super().__init__(form.loop, labels_of(form.source, claim, within), p, letters, form.back)
        self.go_on(told)
        self.n, self.last = self.scalar(form.before), self.scalar(form.steps)
        self.free = dict(form.free)
        self.forms = [*form.states, *form.outputs, *[None] * (len(self.outputs) - len(form.outputs))]
        self.asked = [k in self.free or x is not None for k, x in enumerate(self.forms)]
        below = {k: set(topological([x])) for k, x in enumerate(self.forms) if x is not None}
        self.named = self._named(claim)
        self.by_letter = {k: self.free.keys() | {j for j in self._states if self.forms[j] in xs} - {k}
                          for k, xs in below.items()}  # fmt: skip

    def in_blocks(self, x: Tensor) -> bool:
        """The same of what stands for something in blocks."""
        return in_blocks(x) or x in self._blocks

    def _named(self, claim: Claim) -> dict[Tensor, Box]:
        """The parts of closed forms that the document, or the claim, has names for."""
        known = _names(claim, self.within)
        lets = [x for x in known if x.op is let_op and self.form.steps in x.free_symbols]
        bare = dict(zip(lets, without_labels([definition(x) for x in lets]), strict=True))
        parts = set(topological([x for x in self.forms if x is not None])) - {*self.forms}
        return {inside: self.symbol(known[x]) for x, inside in bare.items() if inside in parts and inside.inputs}

    @property
    def _states(self) -> list[int]:
        """The states that are more than one symbol in closed form."""
        return [k for k, x in enumerate(self.form.states) if x is not None and x.inputs]

    def _closed(self, k: int, length: Any, letters: Sequence[Tensor], places: Mapping[Tensor, Tensor]) -> Tensor:
        """The closed form of a state or an output for a number of steps, by the letters of others there."""
        form = self.forms[k]
        assert form is not None
        put = {self.free.get(j, self.forms[j]): letters[j] for j in self.by_letter[k]}
        stood = rebuild([form], {x: y for x, y in put.items() if x is not None and x is not form})[0]
        return rebuild([at_length(stood, self.form.steps, length)], places)[0]

    def _places(self, length: Any) -> dict[Tensor, Tensor]:
        """The sequences of a number of places, as the first ones of their own."""
        leaves = sequences_in(self.form.roots, self.form.steps)
        whole = {**{x: self.plain(x) for x in leaves}, **self.named}
        short = [at_length(x, self.form.steps, length) for x in whole]
        boxes = [self._first(x, box, length) for x, box in whole.items()]
        return dict(zip(short, self.shown(boxes, short), strict=True))

    def _first(self, x: Tensor, box: Box, length: Any) -> Box:
        """The first places of what has a place for each step, or the first blocks of what has one for each."""
        first = Row((Sign(":"), self.scalar(length)))
        if self.back:
            first = Row((self.scalar(sympy.expand(self.form.steps - length + self.base)), Sign(":")))
        in_blocks = self.in_blocks(x) or self.form.steps not in x.shape
        return Script(box, Fence(first, "[", "]") if in_blocks else first)

    @property
    def _whole(self) -> dict[Tensor, Tensor]:
        """What has a name, by that."""
        return dict(zip(self.named, self.shown([*self.named.values()], [*self.named]), strict=True))

    def _given(self, length: Any) -> list[Tensor]:
        return [at_length(x, self.form.steps, length) for x in self.loop.given]

    def _rows(self, steps: Any, lines: Mapping[int, Sequence[tuple[Tensor, Words]]]) -> Iterator[Step]:
        """Each state and output after some steps, equal to one thing after the other, each with why."""
        lines = {k: [(self.plainly(x), why) for x, why in line] for k, line in lines.items()}
        printer = self.printer([x for line in lines.values() for x, _ in line])
        heads, at = self.heads(steps), self.scalar(self.base) if self.back else self.place(steps - 1)
        for k, line in lines.items():
            met = dict[Tensor, Words]()
            for x, why in line:
                met.setdefault(x, why)
            for n, (x, why) in enumerate(met.items()):
                box = printer.box(x)
                if k >= len(self.states) and x.rank > self.loop.step.outputs[k - len(self.states)].rank:
                    box = Script(fenced((box, printer.binding(x)), Binding.ATOM), at)  # of all outputs
                yield Step(heads[k] if n == 0 else None, box, why)

    @property
    def _read(self) -> list[Tensor]:
        """The sequences that matter to what is asked."""
        step = self.loop.step
        asked = zip((*step.after, *step.outputs), self.asked, strict=True)
        below = set(topological([x for x, wanted in asked if wanted]))
        return [x for leaf, x in zip(step.reads, self.form.sequences, strict=True) if leaf in below]

    @property
    def names(self) -> Words:
        """What the first places of the sequences are called: ``K_{:n} and V_{:n}``."""
        whole = {**{x.inputs[0] if in_blocks(x) else x: self.plain(x) for x in self._read}, **self.named}
        shown = [(self._first(x, box, self.form.before),) for x, box in whole.items()]
        which = ", so for the last " if self.back else ", so for the first "
        return (which, self.n, " of each: ", *listed(shown, ", ", " and ")) if shown else ()

    @property
    def whatever(self) -> Words:
        """Of which states nothing is said."""
        free = [(self.heads(self.form.steps)[k],) for k in self.free]
        return (" and whatever ", *listed(free, ", ", " and "), " is" if len(free) == 1 else " are") if free else ()

    # --- the parts ---

    def recursion(self) -> Chain:
        """What the loop is."""
        return Chain(tuple(self.equations(self.asked)))

    def result(self) -> Chain:
        """What it comes to."""
        letters, T = self.states_at(self.form.steps), self.form.steps
        whole = [None if x is None else self._closed(k, T, letters, self._whole) for k, x in enumerate(self.forms)]
        heads = [*self.heads(self.form.steps)[: len(self.states)], *map(self.runs, range(len(self.outputs)))]
        return Chain(tuple(self.rows(heads, whole)))

    def first_step(self) -> Chain:
        """One step from the start."""
        letters = self.states_at(1)
        first = [at_length(x, self.form.steps, 1) for x in self.loop.first]
        made = self.by_new(self.run(first, 0, self._given(1)), letters)
        places = self._places(1)
        lines = {
            k: [(made[k], ()), (self._closed(k, 1, letters, places), ())]
            for k, x in enumerate(self.forms)
            if x is not None
        }
        return Chain(tuple(self._rows(1, lines)))

    def next_step(self) -> Chain:
        """One step from n of them: by the recursion, with the closed forms of n steps, and of n + 1 steps."""
        n = self.form.before
        before, now = self.states_at(n), self.states_at(n + 1)
        values = self.run(before, n, self._given(n + 1))
        by_letters = self.by_new(values, now)
        first, all_places = self._places(n), self._places(n + 1)
        lines: dict[int, list[tuple[Tensor, Words]]] = {}
        for k in range(len(self.forms)):
            if self.forms[k] is None:
                continue
            known = [j for j in range(len(before)) if j not in self.by_letter[k] and self.forms[j] is not None]
            put = {before[j]: self._closed(j, n, before, first) for j in known}
            put |= {values[j]: now[j] for j in self.by_letter[k] if values[j].inputs}
            put |= {values[j]: self._closed(j, n + 1, now, all_places) for j in known if values[j].inputs}
            put.pop(values[k], None)
            closed = self._closed(k, n + 1, now, all_places)
            lines[k] = [(by_letters[k], ()), (rebuild([values[k]], put)[0], _BY_HYPOTHESIS), (closed, ())]
        return Chain(tuple(self._rows(n + 1, lines)))

    def conclusion(self, claim: Claim) -> Iterator[Part]:
        """The claim by the letters of the states, and with what these come to, unless that is what was shown."""
        sides = [definition(x) for x in claim.sides]
        values = {x: definition(x) for x in topological(sides) if is_value_of(self.form.source, definition(x))}
        places = {x: self._place(value) for x, value in values.items()}
        boxes = [*self.heads(self.form.steps)[: len(self.states)], *map(self.runs, range(len(self.outputs)))]
        letters = self.shown(boxes, [*self.loop.step.states, *self._whole_outputs])
        kept = {*self.free, *(j for others in self.by_letter.values() for j in others)}
        T, whole = self.form.steps, self._whole
        named = {k: in_steps(letters[k], self.back and k >= len(self.states)) for k in places.values()}
        closed = {
            k: in_steps(self._closed(k, T, letters, whole), self.back and k >= len(self.states))
            for k in places.values()
            if k not in kept
        }
        forms = {x: closed.get(k, named[k]) for x, k in places.items()}
        by_letters = rebuild(sides, {x: named[k] for x, k in places.items() if x is values[x]})
        left, right, into, end = map(self.plainly, (*by_letters, *rebuild(sides, forms)))
        chain = [(left, EQUALS), (into, EQUALS), (end, RELATIONS[claim.relation]), (right, EQUALS)]
        printer = self.printer([x for x, _ in chain])
        texts = [printer.written(printer.box(x)) for x, _ in chain]
        shown = [*sides, *(flip(x, 0) for x in sides if self.back and x.rank)]
        if texts[1] == texts[2] and not places.keys().isdisjoint(shown):
            return
        told = [chain[k] for k in (1, 2, 3) if texts[k] != texts[k - 1]]
        first = (printer.box(left), *(None for _ in told[1:]))
        yield Paragraph(("So, for every ", self.last, ","))
        yield Chain(tuple(Step(a, printer.box(x), relation=sign) for a, (x, sign) in zip(first, told, strict=True)))

    def _place(self, value: Tensor) -> int:
        what, k = value.params["take"]
        return int(k) if what == "final" else len(self.states) + int(k)

    @property
    def _whole_outputs(self) -> list[Tensor]:
        return list(states_and_outputs(self.form.source)[1])


def _names(claim: Claim, within: SymbolTable | None) -> dict[Tensor, str]:
    """What the document, or a claim on its own, calls tensors: not by a name that the document has numbered."""
    own = {x: str(x.name) for x in topological(claim.sides) if x.name}
    if within is None:
        return own
    return {**{x: name for x, name in own.items() if name in within}, **within.names}


def labels_of(source: Tensor, claim: Claim, within: SymbolTable | None) -> dict[Take, str]:
    """What the document, or the claim, calls the values of the loop, or of one with the same step."""
    known = _names(claim, within)
    named = [(definition(x), str(name)) for x, name in known.items() if is_named(x) and definition(x).op is scan_op]
    exact = [pair for pair in named if is_value_of(source, pair[0])]
    alike = [pair for pair in named if _are_alike(loop_of(source), loop_of(pair[0]))]
    return {value.params["take"]: name for value, name in (*alike, *exact)}


def _are_alike(one: Loop, other: Loop) -> bool:
    """Whether a loop is another one for blocks, or for another length, of sequences of the same names."""
    names = [[x.inputs[0].name if in_blocks(x) else x.name for x in loop.sequences] for loop in (one, other)]
    return one.step == other.step and one.first == other.first and names[0] == names[1]


def _told_as(source: Tensor, within: SymbolTable | None) -> Recursion | None:
    """The equations that the page has of a loop, or of one with the same step."""
    loops, loop = checked_table(within).loops, loop_of(source)
    alike = (other for other in loops.values() if _are_alike(loop, other.loop))
    return loops.get(loop_key(source)) or next(alike, None)


def _letters_of(*told: Recursion | None) -> set[str]:
    """The letters that stand for something in equations of the page."""
    return {letter for each in told if each is not None for letter in each.letters.taken}


def is_told(recursion: Recursion, within: SymbolTable | None, asked: Sequence[bool] = ()) -> bool:
    """Whether the document says itself what the recursion is, by names for all that is asked, unless given all."""
    states, outputs = len(recursion.states), len(recursion.outputs)
    takes: list[Take] = [*(("final", k) for k in range(states)), *(("output", k) for k in range(outputs))]
    known = checked_table(within)
    wanted = asked or _states(recursion)
    return all(recursion.labels.get(take) in known for take, is_wanted in zip(takes, wanted, strict=True) if is_wanted)


def _states(recursion: Recursion) -> list[bool]:
    return [True] * len(recursion.states) + [False] * len(recursion.outputs)


def closed_form_told(form: ClosedForm, claim: Claim, within: SymbolTable | None) -> tuple[Part, ...]:
    """The induction, and the claim that follows, unless it is what was shown."""
    told = Told(form, claim, within)
    T = told.last
    steps = "By induction on ", T, ", the number of steps"
    known = told.has_told(told.asked) or is_told(told, within, told.asked)
    return (
        Paragraph((*steps, "." if known else " of")),
        *(() if known else (told.recursion(),)),
        Paragraph(("To be shown: for every ", row(T, Sign("≥", "relation"), told.scalar(1)), *told.whatever, ",")),
        told.result(),
        Paragraph(("For ", row(T, EQUALS, told.scalar(1)), ", one step from the start gives")),
        told.first_step(),
        Paragraph(
            ("Let it hold for ", told.n, " steps", *told.names, ". One step more gives")
        ),
        told.next_step(),
        *told.conclusion(claim),
    )  # fmt: skip


def image_told(image: Image, claim: Claim, within: SymbolTable | None) -> tuple[Part, ...]:
    """The induction for two recurrences of which one is the image of the other."""
    roots, loops = [*image.final, *claim.sides], (loop_of(image.source), loop_of(image.value))
    if not image.is_for_any_element:
        return _steps_told(image, within)
    told_as = [_told_as(x, within) for x in (image.source, image.value)]
    letters, p = Letters(names_in(roots) | _letters_of(*told_as)), latex_printer(roots, within=within)
    one = Recursion(loops[0], labels_of(image.source, claim, within), p, letters)
    other = Recursion(loops[1], labels_of(image.value, claim, within), p, letters)
    for recursion, told in zip((one, other), told_as, strict=True):
        recursion.go_on(told)
    n = sympy.Symbol(new_name(next(free_letters("nkmr", letters.taken)), letters.taken), integer=True)
    begun, now, then = (one.states_at(steps) for steps in (0, n, n + 1))
    made, step = one.run(now, n, loops[0].given), other.run(image.of(now), n, loops[1].given)
    count = len(now)
    at_start: list[Line] = [[(x, ()), (y, ())] for x, y in zip(loops[1].first, image.of(begun), strict=True)]
    ends = zip(step, image.of(made[:count]), image.of(then), strict=False)
    later: list[Line] = [[(x, _BY_HYPOTHESIS), (y, ()), (z, ("one step",))] for x, y, z in ends]
    given = one.shown(one.heads(n + 1)[count:], loops[0].step.outputs)
    for new, form in zip(step[len(image.final) :], image.outputs, strict=True):
        k = None if form is None else image.rows.index(form)
        later.append([] if k is None else [(new, _BY_HYPOTHESIS), (made[count + k], ()), (given[k], ("one step",))])
    one.boxes |= other.boxes
    printer = one.printer([*image.of(now), *(x for line in (*at_start, *later) for x, _ in line)])
    shown = [Step(head, printer.box(x)) for head, x in zip(other.heads(n), image.of(now), strict=False)]
    heads, states = other.heads(n + 1), len(image.final)
    lasting = zip(heads[states:], later[states:], strict=True)
    shown += [Step(head, printer.box(line[-1][0])) for head, line in lasting if line]
    asked = ([True] * count + [x in image.outputs for x in image.rows],
             [True] * states + [x is not None for x in image.outputs])  # fmt: skip
    both = [*zip((one, other), asked, strict=True)]
    known = all(x.has_told(wanted) or is_told(x, within, wanted) for x, wanted in both)
    equations = () if known else (Chain(tuple(step for x, wanted in both for step in x.equations(wanted))),)
    return (
        Paragraph(("By induction on the number of steps", "." if known else " of")),
        *equations,
        Paragraph(("To be shown: for every ", row(one.scalar(n), Sign("≥", "relation"), one.scalar(0)), ",")),
        Chain(tuple(shown)),
        Paragraph(("It holds at the start,",)),
        Chain(tuple(_chains(printer, other.heads(0), at_start))),
        Paragraph(("and if it holds after ", one.scalar(n), " steps, one step more gives")),
        Chain(tuple(_chains(printer, heads, later))),
    )


def _chains(printer: Printer, heads: Sequence[Box], lines: Sequence[Line]) -> Iterator[Step]:
    """The chains of several heads, but for those of which nothing is said."""
    for head, line in zip(heads, lines, strict=False):
        yield from _chain(printer, head, line)


def _chain(printer: Printer, head: Box, lines: Line) -> Iterator[Step]:
    """One thing equal to several, of which those are left out that read as the one before."""
    texts = [printer.written(printer.box(x)) for x, _ in lines]
    kept = [k for k in range(len(lines)) if k == 0 or texts[k] != texts[k - 1]]
    for k in kept:
        yield Step(head if k == 0 else None, printer.box(lines[k][0]), lines[k][1])


def _steps_told(image: Image, within: SymbolTable | None) -> tuple[Part, ...]:
    """The claims of an image of which the sequences differ."""
    claims = [(part, rebuild(part.claim.sides, {}, next(image.meanings(part)).sizes)) for part in image.obligations()]
    roots = [*image.final, *image.states, *(x for _, sides in claims for x in sides)]
    printer = latex_printer(roots, within=within)
    states, forms = (commas([printer.box(x) for x in several]) for several in (image.states, image.final))
    said_of = (part.said[0].lower() + part.said[1:] for part, _ in claims)
    pairs = ([printer.box(x) for x in sides] for _, sides in claims)
    steps = (Step(left, right, (why,)) for (left, right), why in zip(pairs, said_of, strict=True))
    said = ("By induction on the number of steps: when one recurrence has come to ", states, ", the other has come to ")
    return Paragraph((*said, forms, ". So it is, since")), Chain(tuple(steps))
