"""From a derivation to the page that any medium can write: its formulas by one symbol table, its steps in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import sympy

from ..core.boxes import Box, Fence, Name, Number, Sign, Space, Text, commas, row
from ..core.naming import free_letters
from ..core.node import Tensor, topological
from ..errors import OperandError
from ..ops.leaves import cotangent_op, definition, scalar_value, variable
from ..ops.notation import Binding
from ..printing.counting import checked_first_index
from ..printing.gradients import checked_gradients, gradient_box, names_the_loss
from ..printing.matrix import Printer, printer_in, space_of
from ..printing.media.latex import latex
from ..printing.parts import Rows
from ..printing.prose import (
    DEFINED,
    EQUALS,
    MARKS,
    Chain,
    Display,
    Document,
    Fold,
    Given,
    Paragraph,
    Section,
    Source,
    Status,
    Step,
    Table,
    Words,
    led,
    listed,
)
from ..printing.prose import Part as PagePart
from ..printing.prose import Statement as PageStatement
from ..printing.stated import sentence_words
from ..printing.symbols import symbol
from ..printing.table import Spellings, SymbolTable, symbol_table
from ..probability.notation import Mean, Variance, bound_by_letters, box_writer
from ..probability.report import Moments
from ..probability.steps import ScalarLine
from ..proof.claims import RELATIONS, Claim
from ..proof.verdict import Verdict
from .checks import Check
from .completing import occurring
from .conventions import boxes_of, conventions
from .families import as_families
from .numbers import array_equation
from .on_the_way import on_the_way
from .parts import (
    Calculation,
    Cases,
    Example,
    Folded,
    Heading,
    Illustration,
    Line,
    Listing,
    Statement,
    roots,
    statuses,
    steps,
)
from .prose import Formula, Prose
from .speaking import Speaker, Spoken

if TYPE_CHECKING:
    from .derivation import Derivation

_LOSS = Name("L")
_ALIKE = "both sides are written alike"
_PROPERTIES = {"permutation": "permutation matrix", "orthogonal": "orthogonal matrix"}
_RELATIONS = {**RELATIONS, ">=": Sign("≥", "relation"), ">": Sign(">", "relation")}


class Composer:
    """Composes one derivation; ``parts`` are its parts, with what was done to check them where it was verified."""

    def __init__(
        self,
        derivation: Derivation,
        parts: Sequence[Any],
        names: Spellings | None,
        style: str,
        gradients: str,
        first_index: int,
    ) -> None:
        self.derivation, self.first_index = derivation, checked_first_index(first_index)
        self.gradients = checked_gradients(gradients)
        if first_index and any(isinstance(part, (Statement, Calculation, Cases)) for part in steps(parts)):
            raise OperandError("latex: first_index=1 is for gradients and lines: claims and moments count from 0")
        self.parts = derivation._completed(parts)
        tensors = (x for x in derivation.given if isinstance(x, Tensor))
        self.roots = [*roots(self.parts), *roots(derivation.result), *tensors]
        self.printer = printer_in(style, self.roots, names, gradients, first_index)
        self.lines = [line for line in steps(self.parts) if isinstance(line, Line)]
        self.rows = Rows(self.printer, [line.expression for line in self.lines])
        self.given = [*derivation.given, *occurring(self.roots, derivation.given)]
        self.speaker = self._speaker(plain=names is None and gradients == "d")
        self.defined = {self.printer.names[line.name] for line in self.lines if line.name is not None}
        self.asserted: list[tuple[Any, Status]] = [
            (x, "unverified" if check is None else check.status) for x, check in derivation.asserted
        ]
        self.number, self.told = 0, set[str]()

    def _speaker(self, plain: bool) -> Speaker:
        """What writes sentences; ``plain`` says that symbols are printed as a person types them."""
        table = self.printer.table
        typed = table if plain else symbol_table(self.roots)
        scalars = [Spoken(s.name, symbol(s.name), symbol(s.name)) for s in self._scalars()]
        letters = {*self.derivation.letters, *(["L"] if self._losses() else [])}
        names = (
            Spoken(s.name, typed.box(s.name), s.box, len(s.shape or ()), s.binding < Binding.ATOM)
            for s in table.values()
            if s.name in typed
        )
        return Speaker([*scalars, *names, *self._parts_of_names(typed)], letters)

    def _parts_of_names(self, typed: SymbolTable) -> Iterator[Spoken]:
        """What lines take a tensor into, which has its letter and a number."""
        for parts in self.rows.taken_apart:
            name = self.printer.names[parts.whole]
            pairs = zip(parts.boxes(typed.box(name)), parts.boxes(self.printer.table.box(name)), strict=True)
            for k, (spoken, printed) in enumerate(pairs, 1):
                yield Spoken(f"{name}_{k}", spoken, printed, parts.whole.rank)

    def _scalars(self) -> set[Any]:
        """The scalar symbols that are given or that moments speak of."""
        moments = [part.moments for part in steps(self.parts) if isinstance(part, Calculation)]
        moments += [m for part in steps(self.parts) if isinstance(part, Cases) for m in part.moments]
        found = {s for m in moments for value in (m.mean, m.variance) for s in value.free_symbols if s.is_Symbol}
        return found | {x for x in self.given if isinstance(x, sympy.Symbol)}

    def _losses(self) -> list[tuple[Tensor, Tensor]]:
        """What a loss depends on, each with its cotangent."""
        gradients = [x for x in topological(self.roots) if x.op is cotangent_op]
        pairs = dict.fromkeys(
            pair for x in gradients for pair in zip(x.inputs[2::2], x.inputs[3::2], strict=True) if pair[0].rank
        )
        return [pair for pair in pairs if pair[1].op is variable]

    # --- the whole ---

    def document(self) -> Document:
        sections = tuple(self._sections())
        result = tuple(self._result())
        boxes = boxes_of([*result, *(part for section in sections for part in section.parts)])
        return Document(
            title=self.words(self.derivation.titled),
            summary=self.words(self.derivation.summary),
            tally=self._tally(),
            result=result,
            given=tuple(map(self._row_of_given, [*self.given, *self._cotangents()])),
            conventions=conventions(
                boxes, self._further_conventions(), self._own_functions(), self.printer.table.letters()
            ),
            sections=sections,
            references=tuple(map(self.words, self.derivation.references)),
            command=self.derivation.command,
            first_index=self.first_index,
        )

    def _own_functions(self) -> set[str]:
        """The letters of functions that the derivation speaks of by a name of its own."""
        own = [s.box for s in self.printer.table.values() if s.role == "function"]
        return {box.letters for box in own if isinstance(box, Name)}

    def _further_conventions(self) -> Words:
        """What is said of gradients, and of the places of recurrences."""
        said = [words for words in (self._gradient_convention(), self._counting()) if words]
        return listed(said)

    def _counting(self) -> Words:
        """From where places are counted, where steps of a recurrence count them."""
        loops = self.printer.table.loops.values()
        states = "" if any(loop.back for loop in loops) else ", and states by the steps before them"
        return (f"places are counted from {self.first_index}{states}",) if loops else ()

    def _gradient_convention(self) -> Words:
        """What the letters of a gradient mean that does not name the loss."""
        if not self._losses() or names_the_loss(self.gradients):
            return ()
        of = Name(next(free_letters("XYABCDEFGHLMRSTUWxyab", self.printer.table.letters())))
        return gradient_box(self.gradients, of, _LOSS)[0], " is the gradient of a loss by ", of, ", of its shape"

    def words(self, said: Prose | None) -> Words:
        return () if said is None else self.speaker.words(said)

    def _sections(self) -> Iterator[Section]:
        title: Words = ()
        anchors = Counter[str]()
        inside: list[Any] = []
        for part in [*self.parts, None]:
            if part is not None and not isinstance(part, Heading):
                inside.append(part)
                continue
            if inside or title:
                name = _anchor(title)
                anchors[name] += 1
                number = f"-{anchors[name]}" if anchors[name] > 1 else ""
                yield Section(title, tuple(self._composed(inside)), name and name + number)
            title, inside = self.words(part.title) if part is not None else (), []

    def _tally(self) -> tuple[tuple[Status, int], ...]:
        counts = Counter(statuses(self.parts))
        counts.update(status for _, status in self.asserted)
        counts.update(check.status for check in self.derivation.sentences.values())
        return tuple((status, counts[status]) for status in MARKS if counts[status])

    # --- what is given ---

    def _cotangents(self) -> list[Tensor]:
        listed = {x.name for x in self.given if isinstance(x, (Tensor, sympy.Symbol))}
        shown = dict.fromkeys(cotangent for _, cotangent in self._losses())
        return [x for x in shown if x.name not in listed]

    def _row_of_given(self, x: Tensor | sympy.Symbol) -> Given:
        meaning = self.words(self.derivation.given.get(x))
        if isinstance(x, Tensor):
            of = [output for output, cotangent in self._losses() if cotangent is x and output in self.printer.names]
            if of and not meaning:
                meaning = ("gradient of the loss by ", self.printer.box(of[0]))
            return Given(self.printer.box(x), self._space(x), meaning)
        signs = ["positive" if x.is_positive else "non-negative" if x.is_nonnegative else ""]
        numbers = Name("Z" if x.is_integer else "R", "blackboard")
        return Given(self.printer.table.scalar(x), (numbers, *(f", {said}" for said in signs if said)), meaning)

    def _space(self, x: Tensor) -> Words:
        """Where a tensor lives, and what was declared of it."""
        kinds = {"binary": Fence(commas([Number("0"), Number("1")]), "{", "}"), "integer": Name("Z", "blackboard")}
        entries = kinds.get(x.kind, Name("R", "blackboard"))
        properties = [_PROPERTIES.get(said, said) for said in x.params["hypotheses"] if said not in kinds]
        return (space_of(entries, x.shape, self.printer.table), *(f", {said}" for said in properties))

    # --- the result ---

    def _result(self) -> Iterator[PagePart]:
        """What stands first: sentences, and the formulas between them side by side."""
        formulas: list[Box] = []
        for part in self.derivation.result or self._main():
            if not isinstance(part, Prose):
                formulas += self._formulas(part)
                continue
            if formulas:
                yield Display(tuple(formulas))
                formulas = []
            yield Paragraph(self._doubted(part))
        if formulas:
            yield Display(tuple(formulas))

    def _doubted(self, said: Prose) -> Words:
        """A sentence that says what holds, in which each claim that is not proved says why not."""
        checks = [self.derivation.sentences.get(x) if isinstance(x, Formula) else None for x in said.pieces]
        pairs = zip(self.words(said), checks, strict=True)
        told = (
            (word,) if check is None or check.status == "proved" else (word, f" (not proved: {check.remarks[0]})")
            for word, check in pairs
        )
        return tuple(chain.from_iterable(told))

    def _main(self) -> list[Any]:
        """The gradients by what is given, else the claims that hold, else moments."""
        found = list(steps(self.parts))
        gradients = [line.left for line in self.lines if line.left is not None and line.kind == "gradient"]
        of = [left.inputs[1] for left in gradients]  # a scalar symbol is a constant there
        by_given = [
            left for left, x in zip(gradients, of, strict=True) if x in self.given or scalar_value(x) in self.given
        ]
        proved = (part.verdict for part in found if isinstance(part, Statement) and part.verdict)
        claims = [*{(verdict.claim, verdict.given): verdict for verdict in proved}.values()]
        return by_given or claims or [part.moments for part in found if isinstance(part, Calculation)][:1]

    def _formulas(self, part: Any) -> Iterator[Box]:
        if isinstance(part, Tensor):
            line = next((line for line in self.lines if line.left is part), None)
            made = self.printer.row(self.printer.names[part], definition(part) if line is None else line.expression, "")
            heads = [] if made.each is None else [Space(1.0), Fence(made.each)]
            yield row(*([] if made.left is None else [made.left]), EQUALS, made.right, *heads, *self._doubt(part))
        elif isinstance(part, Moments):
            lines = [row(step.left, EQUALS, step.right) for step in self._moments(part) if step.left is not None]
            if part.quantity not in self.printer.names:  # a letter of the calculation, which stands further below
                name = self.printer.table.scalar(part.explanation.name)
                yield row(name, DEFINED, self._quantity(part))
            yield from (row(line, *self._doubt(part)) for line in lines)
        elif isinstance(part, Verdict):
            yield row(*(Text(piece) if isinstance(piece, str) else piece for piece in self._said(part)))
        elif isinstance(part, Claim):
            yield row(self._claim(part), *self._doubt(part))

    def _doubt(self, x: Any) -> list[Box]:
        """What is said behind a line of the result that no step proves."""
        found = next((status for part, status in self.asserted if part is x), None)
        return [] if found in (None, "proved", "computed") else [Text(f" ({MARKS[found].word})")]

    def _moments(self, moments: Moments) -> list[Step]:
        """Mean and variance."""
        values = {Mean: moments.mean, Variance: moments.variance}
        written, name = self._writer(moments, list(values.values())), moments.explanation.name
        return [Step(written(sign(name)), written(value)) for sign, value in values.items()]

    def _quantity(self, moments: Moments) -> Box:
        """What the moments are of: a tensor, or a scalar formula of entries."""
        if isinstance(moments.quantity, Tensor):
            return self.printer.box(moments.quantity)
        formula = bound_by_letters(moments.quantity)
        return self._writer(moments, [formula])(formula)

    def _writer(self, moments: Moments, values: list[Any]) -> Callable[[Any], Box]:
        """What writes values of moments; the quantity has the name under which it is shown."""
        written, x = box_writer(moments.roots, values, self.printer.table), moments.quantity
        shown = {moments.explanation.name: sympy.Symbol(self.printer.names[x])} if x in self.printer.names else {}
        return lambda value: written(value.xreplace(shown))

    def _cells_of(self, moments: Moments) -> Iterator[Words]:
        return ((step.right,) for step in self._moments(moments))

    # --- parts ---

    def _composed(self, parts: Sequence[Any]) -> Iterator[PagePart]:
        lines: list[Line] = []
        head: Tensor | None = None
        for part in [*parts, None]:
            if isinstance(part, Line):
                head = head if part.left is None else part.left
                kind = "equation" if part.left is None and not lines else part.kind
                lines.append(part if lines else part._replace(left=head, kind=kind))
                continue
            if lines:
                yield self._chain(lines)
                lines = []
            if part is not None:
                yield from self._of(part)

    def _of(self, part: Any) -> Iterator[PagePart]:
        match part:
            case Prose():
                yield Paragraph(self.words(part))
            case Statement():
                yield self._statement(part)
            case Calculation():
                yield from self._calculation(part)
            case Cases():
                rows = [tuple(map(self._cell, line)) for line in part.rows]
                for k, moments in enumerate(part.moments):
                    rows[k] = (*rows[k][:2], *self._cells_of(moments))
                yield Table(tuple(map(self.words, part.head)), tuple(rows))
            case Example():
                yield from self._example(part)
            case Illustration(figure=figure):
                caption = self.words(part.caption) or figure.caption
                drawn = figure if figure.within is None else figure.within(self.printer.table)
                yield replace(drawn, caption=caption)
            case Folded():
                yield Fold(self.words(part.title), tuple(self._composed(part.parts)))
            case Listing():
                yield Source(part.source, part.language)

    def _chain(self, lines: Sequence[Line]) -> Chain:
        made = [step for line in lines for step in self._steps(line)]
        made = [self._with_remark(step, before) for before, step in zip([None, *made], made, strict=False)]
        if isinstance(self.printer, Printer):  # an entry has letters of its own below it
            below = {ending for name in self.printer.table for ending in name.split("_")[1:]}
            made = list(as_families(made, {*self.printer.table.letters(), *below}))
        return Chain(tuple(map(self._numbered, made)))

    def _with_remark(self, step: Step, before: Step | None) -> Step:
        """A row, which says so where it is about something that is written as itself."""
        left = step.left if step.left is not None or before is None else before.right
        if not self._are_alike(left, step.right):
            return step
        return replace(step, detail=listed([*([step.detail] if step.detail else []), (_ALIKE,)]))

    def _are_alike(self, left: Box | None, right: Box) -> bool:
        """Whether two sides are printed alike, so that their equation says nothing to who reads it."""
        return type(left) is type(right) and left is not None and latex(left) == latex(right)

    def _numbered(self, step: Step) -> Step:
        self.number += 1
        return replace(step, number=self.number)

    def _steps(self, line: Line) -> Iterator[Step]:
        """The row of a line, and before it those that define the parts that it takes a tensor into, and its loops."""
        name = "" if line.name is None else self.printer.names[line.name]
        shown = [line.expression] if line.left is None or line.kind != "equation" else [line.left, line.expression]
        yield from self._equations(shown)
        *before, made = self.rows.of([(name, line.expression, "", line.is_definition, "")])
        yield from before
        yield self._finished(line, made)

    def _equations(self, shown: Sequence[Tensor]) -> Iterator[Step]:
        """The equations of the loops that expressions show, where no part before has them."""
        return (replace(step, status="defined") for step in self.printer.on_the_way(shown))

    def _finished(self, line: Line, made: Step) -> Step:
        """The row of a line with why it holds, and what was done to check it."""
        reason = self.words(line.reason) if isinstance(line.reason, Prose) else (line.reason,) * bool(line.reason)
        left = self.printer.box(line.left) if line.kind == "equation" and line.left is not None else made.left
        relation = DEFINED if line.is_definition else _RELATIONS[line.relation]
        made = replace(made, left=left, reason=reason, relation=relation, label=line.label)
        return replace(made, status=line.status, detail=self._detail(line.check))

    def _statement(self, part: Statement) -> PageStatement:
        verdict, claim = part.verdict, part.verdict.claim
        where = self._where(claim.sides)
        telling = verdict.telling(self.printer.table)
        is_formula = isinstance(claim, Claim)
        return PageStatement(
            part.kind,
            part.number,
            self.words(part.title),
            part.status,
            (self._claim(claim),) if isinstance(claim, Claim) else (),
            () if is_formula else telling.claim,
            self._premises(verdict),
            tuple(self._inside(part)),
            where,
        )

    def _where(self, shown: Sequence[Tensor]) -> tuple[PagePart, ...]:
        """The same behind a claim."""
        equations = tuple(self._equations(shown))
        return (Paragraph(("where",)), Chain(equations)) if equations else ()

    def _claim(self, claim: Claim) -> Box:
        """A claim; a side that a line defines, or that is a gradient, is written by its name."""
        by_name = any(x.op is cotangent_op or self.printer.names.get(x) in self.defined for x in claim.sides)
        if isinstance(self.printer, Printer) and not by_name:
            return self.printer.related(claim.left, RELATIONS[claim.relation], claim.right)
        return row(self.printer.box(claim.left), RELATIONS[claim.relation], self.printer.box(claim.right))

    def _inside(self, part: Statement) -> Iterator[PagePart]:
        """The steps of a claim for people, its counterexample, what holds instead, and the proof by the machine."""
        verdict, table = part.verdict, self.printer.table
        yield from self._composed(part.proof)
        if isinstance(verdict.claim, Claim) and self._are_alike(*map(self.printer.box, verdict.claim.sides)):
            yield Paragraph((f"{_ALIKE.capitalize()}.",))
        if verdict.counterexample is not None:
            ways = on_the_way(verdict.claim, verdict.counterexample, self.printer.box)
            yield from verdict.counterexample.told(table, ways)
        elif verdict.proof is not None:
            argument = verdict.proof.argument
            if argument.for_people and all(isinstance(said, Prose) for said in part.proof):
                yield from led((), argument.told(table), "" if part.proof else "Proof")
            else:
                yield Fold(("Proof by the machine",), argument.told(table), for_machines=bool(part.proof))
        for held, check in part.held:
            if isinstance(held, Prose):
                yield Paragraph(("What holds: ", *self._doubted(held)))
            else:
                where = self._where(held.claim.sides)
                yield self._held(held, check)
                yield from where

    def _held(self, verdict: Verdict, check: Check | None) -> PagePart:
        """What is true instead, with what was done to check it."""
        claim = verdict.claim
        if not isinstance(claim, Claim):
            return Paragraph(self._marked(verdict))
        left, right = map(self.printer.box, claim.sides)
        status = "proved" if check is None else check.status
        step = Step(left, right, self._given(verdict), _RELATIONS[claim.relation], None, status)
        return Chain((self._numbered(self._with_remark(step, None)),))

    def _premises(self, verdict: Verdict) -> tuple[Words, ...]:
        """What is given, and what a proof assumes besides: a claim says nothing without these."""
        table = self.printer.table
        assumed = () if verdict.proof is None else verdict.proof.premises(table)[1]
        return (*verdict.telling(table).given, *assumed)

    def _given(self, verdict: Verdict) -> Words:
        """The same behind a claim."""
        premises = self._premises(verdict)
        return ("given ", *listed(premises)) if premises else ()

    def _said(self, verdict: Verdict) -> Words:
        """A claim with its premises."""
        claim, premises = verdict.claim, self._given(verdict)
        said = (self._claim(claim),) if isinstance(claim, Claim) else verdict.telling(self.printer.table).claim
        return (*said, ", ", *premises) if premises else said

    def _marked(self, verdict: Verdict) -> Words:
        """The same, and what was found."""
        mark = MARKS["proved" if verdict else "refuted"]
        return (*self._said(verdict), f" {mark.glyph} {mark.word}")

    def _calculation(self, part: Calculation) -> Iterator[PagePart]:
        """What is assumed, and the lines; how products are dealt with is told once."""
        found = part.moments.explanation
        assumed = part.moments.assumed(found.premises, self.printer.table)
        way = (" ", *sentence_words(found.way, self.printer.table))
        yield Paragraph(assumed if found.way in self.told else (*assumed, *way))
        self.told.add(found.way)
        yield Chain(tuple(map(self._numbered, self._rows_of(part.moments, part.status, self._detail(part.check)))))

    def _rows_of(self, moments: Moments, status: Status | None = None, detail: Words = ()) -> list[Step]:
        """The lines that lead to mean and variance; the quantity has the name under which it is shown."""
        found, table = moments.explanation, self.printer.table
        written = self._writer(moments, [x for line in found.lines for x in line[:2] if isinstance(x, sympy.Expr)])

        def box(side: Any) -> Box:
            return self.printer.box(definition(side)) if isinstance(side, Tensor) else written(side)

        def step(line: ScalarLine) -> Step:
            defines = line.left == found.name
            left, reason = line.left and box(line.left), sentence_words(line.reason, table) if line.reason else ()
            made = Step(left, box(line.right), reason, status=status, detail=detail)
            return replace(made.defined(), status="defined") if defines else made

        return list(map(step, found.lines))

    def _cell(self, cell: Any) -> Words:
        match cell:
            case Prose():
                return self.words(cell)
            case Verdict():
                return self._marked(cell)
            case Tensor():
                return (self.printer.box(definition(cell)),)
        return (self.printer.table.scalar(sympy.sympify(cell)),)

    def _example(self, part: Example) -> Iterator[PagePart]:
        """What goes in, and what comes out."""
        scalar = self.printer.table.scalar
        inputs = [row(scalar(s), EQUALS, scalar(sympy.sympify(v))) for s, v in part.scalars.items()]
        inputs += [array_equation(self.printer.box(x), y) for x, y in part.values.items() if x not in part.show]
        exact = [part.exact.get(x, {}) for x in part.show]
        outputs = [
            array_equation(self.printer.box(x), part.values[x], y) for x, y in zip(part.show, exact, strict=True)
        ]
        yield from (Display(tuple(formulas)) for formulas in (inputs, outputs))

    def _detail(self, check: Check | None) -> Words:
        """Under which conditions a step holds, or with which errors it was checked."""
        if check is None:
            return ()
        table = self.printer.table
        conditions = listed((sentence_words(said, table) for said in check.conditions), ", ")
        told: list[Words] = [("where ", *conditions)] if conditions else []
        told += [(f"largest error {check.error:.0e}" if check.error else "no error seen",)] * (check.error is not None)
        return listed([*told, *(sentence_words(said, table) for said in check.remarks)])


def _anchor(title: Words) -> str:
    words = "".join(piece.lower() if isinstance(piece, str) else "-" for piece in title)
    return "-".join("".join(c if c.isalnum() else " " for c in words).split())
