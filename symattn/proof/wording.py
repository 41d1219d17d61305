"""A claim and what is given in words: every name among them has one meaning, which is stated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import sympy

from ..core.boxes import Box, Fence, Space, row
from ..core.node import Tensor, topological
from ..core.stated import Condition, Stated
from ..errors import OperandError
from ..ops.leaves import definition, is_named, variable
from ..printing.matrix import MOST_DEFINITIONS, Printer, latex_printer, membership, text_in, text_printer
from ..printing.prose import EQUALS, Chain, Paragraph, Part, Step, Words, listed
from ..printing.prose_latex import is_short
from ..printing.scalars import scalar_box
from ..printing.stated import sentence_words
from ..printing.symbols import symbol as symbol_of
from ..printing.table import SymbolTable
from .claims import Claim, Independence


class Wording:
    """The text of a claim, of what is given, and of the intermediates that these mention."""

    def __init__(self, claim: Claim | Independence, given: Sequence[Any]) -> None:
        self.asked, self.given_facts = claim, given
        self.roots = [*claim.sides, *(x for g in given if isinstance(g, Claim) for x in g.sides)]

    @cached_property
    def _printer(self) -> Printer:
        return text_printer(self.roots)

    @property
    def claim(self) -> str:
        return self.written(self.asked)

    @property
    def given(self) -> tuple[str, ...]:
        """What was given, each as it is written."""
        return tuple(map(self._fact, self.given_facts))

    @property
    def declared(self) -> tuple[str, ...]:
        """The properties that tensors were declared with, but for those that are stated as given."""
        return tuple(map(_declared, self.declared_tensors))

    @property
    def declared_tensors(self) -> list[Tensor]:
        """The tensors that were declared with properties, but for those that are stated as given."""
        named = [x for x in topological(self.roots) if x.op is variable and x.params["hypotheses"]]
        return sorted((x for x in named if x not in self.given_facts), key=lambda x: str(x.name))

    @property
    def definitions(self) -> tuple[str, ...]:
        """What the intermediates stand for that are read by their names, the last, which stand next to the claim."""
        return (*map(self._defined, self.mentioned), *[self.more] * bool(self.more))

    @property
    def mentioned(self) -> list[Tensor]:
        """The last of the intermediates that are read by their names."""
        return self._mentioned[-MOST_DEFINITIONS:]

    @cached_property
    def _mentioned(self) -> list[Tensor]:
        sides = [x if isinstance(self.asked, Independence) else definition(x) for x in self.roots]
        mentioned = (x for x in topological(sides) if is_named(x) and x.op is not variable)
        return [*{self._defined(x): x for x in mentioned}.values()]  # each text once

    @property
    def more(self) -> str:
        """How many are left out, if any."""
        left_out = len(self._mentioned) - MOST_DEFINITIONS
        return f"and {left_out} intermediates more" if left_out > 0 else ""

    def written(self, claim: Claim | Independence) -> str:
        """A claim by the names that are common to all of it."""
        return claim.written(self._printer)

    def _fact(self, fact: Any) -> str:
        if isinstance(fact, Tensor):
            return _declared(fact)
        said = self.written(fact) if isinstance(fact, (Claim, Independence)) else _related(fact)
        return Stated(said, fact)

    def _defined(self, x: Tensor) -> str:
        return f"{self._printer.names[x]} = {text_in(self._printer, x)}"


def _related(relation: Any) -> str:
    """A relation of sizes, which are equal by an equality sign."""
    return f"{relation.lhs} = {relation.rhs}" if isinstance(relation, sympy.Eq) else str(relation)


def _declared(x: Tensor) -> str:
    said = _properties(x)
    return Stated(f"{x.brief() if x.rank else x.name} {said}", Condition(x, said))


class Telling:
    """The same as mathematics, with the symbols of a document if it stands in one.

    Where a tree is too large to be read, the text, which says so, stands for it.
    """

    def __init__(self, wording: Wording, within: SymbolTable | None = None) -> None:
        self.wording, self.within = wording, within
        self._equations: list[Step] = []  # of loops that nobody has named
        try:
            self._printer: Printer | None = latex_printer(wording.roots, within=within)
            self._equations += self._printer.on_the_way([*wording.roots, *wording.mentioned])
        except OperandError:
            self._printer = None

    @property
    def page(self) -> SymbolTable | None:
        """The symbols of what goes on from here: of the document, or of the claim where that has letters for loops."""
        return self._printer.table if self._printer is not None and self._printer.table.loops else self.within

    @property
    def defines(self) -> bool:
        """Whether there is something to be defined."""
        return bool(self.wording.definitions or self._equations)

    @property
    def claim(self) -> Words:
        return self._asked(self.wording.asked)

    @property
    def given(self) -> tuple[Words, ...]:
        """What was given."""
        return tuple(map(self._fact, self.wording.given_facts))

    @property
    def declared(self) -> tuple[Words, ...]:
        """The properties that tensors were declared with, but for those that are stated as given."""
        return tuple(map(self._declared, self.wording.declared_tensors))

    @property
    def definitions(self) -> tuple[Step, ...]:
        """What the intermediates stand for that are read by their names, the last of them."""
        if self._printer is None:
            return ()
        rows = (self._printer.row(self._printer.names[x], definition(x), "") for x in self.wording.mentioned)
        return *(replace(step, relation=EQUALS) for step in self._equations), *rows

    def notation(self, words: Words = (), head: str = "", end: str = ".") -> tuple[Part, ...]:
        """What the intermediates stand for, behind some words: in a sentence, or row by row where that is long."""
        if not self.defines:
            return (Paragraph((*words, end), head),) if words else ()
        steps, more = self.definitions, ((self.wording.more,),) if self.wording.more else ()
        formulas = list(map(_in_one, steps))
        if self._printer is None:
            return (Paragraph((*words, "; ".join(self.wording.definitions), end), head),)
        if all(map(is_short, formulas)) and not self._equations:
            return (Paragraph((*words, *listed([*((box,) for box in formulas), *more]), end), head),)
        after = (Paragraph((*listed(more), end)),) if more or end != "." else ()
        return Paragraph(words, head), Chain(steps), *after

    def sentences(self, several: Iterable[str]) -> tuple[Words, ...]:
        """Conditions and sentences."""
        return tuple(sentence_words(sentence, self.within) for sentence in several)

    def _fact(self, fact: Any) -> Words:
        if isinstance(fact, Tensor):
            return self._declared(fact)
        return self._asked(fact) if isinstance(fact, (Claim, Independence)) else (self._scalar(fact),)

    def _asked(self, claim: Claim | Independence) -> Words:
        if self._printer is None:
            return (self.wording.written(claim),)
        return (claim.box(self._printer),) if isinstance(claim, Claim) else claim.words(self._printer)

    def _scalar(self, value: Any) -> Box:
        return scalar_box(value) if self.within is None else self.within.scalar(value)

    def _declared(self, x: Tensor) -> Words:
        known = self._printer is not None and x in self._printer.names
        symbol = self._printer.symbol(x) if known and self._printer else symbol_of(str(x.name))
        return membership(symbol, x.shape, self.within), f" {_properties(x)}"


def _in_one(step: Step) -> Box:
    """A definition with what it holds for."""
    left = [] if step.left is None else [step.left, EQUALS]
    heads = [] if step.each is None else [Space(1.0), Fence(step.each)]
    return row(*left, step.right, *heads)


def _properties(x: Tensor) -> str:
    words = [f"a {word}" if word == "permutation" else word for word in x.params["hypotheses"]]
    return f"is {' and '.join(words) or 'declared without properties'}"
