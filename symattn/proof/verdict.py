"""The three answers to a claim, and what each carries: a proof, a counterexample, or what is missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from ..core.displayed import Displayed
from ..printing.prose import Paragraph, Part, Words, led, listed, sentence_of
from ..printing.prose_latex import parts_latex
from ..printing.table import SymbolTable
from .argument import Argument, Given
from .claims import Claim, Independence
from .definedness import conditions
from .equality.entrywise import Residual
from .given import applied
from .induction.conditions import not_said_for_all
from .refute.counterexample import Agreement, Counterexample
from .witness import Witness
from .wording import Telling, Wording

_TITLES = ("Hypotheses", "Side conditions", "Divided by")


class _Worded(Displayed):
    """What speaks of a claim and of what is given, in the words of either language."""

    claim: Claim | Independence
    given: tuple[Any, ...]

    @cached_property
    def wording(self) -> Wording:
        return Wording(self.claim, self.given)

    def telling(self, within: SymbolTable | None = None) -> Telling:
        """The same words with mathematics in them, with the symbols of a document if they stand in one."""
        return Telling(self.wording, within)


@dataclass(frozen=True, eq=False)
class Proof(_Worded):
    """Why a claim holds for all sizes and all values, under the hypotheses and side conditions that are listed."""

    claim: Claim | Independence
    given: tuple[Any, ...]
    argument: Argument
    witness: Witness | None = None

    @property
    def hypotheses(self) -> tuple[str, ...]:
        """What was declared of the tensors, and what was given."""
        return (*self.wording.declared, *self.wording.given, *self.assumptions)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What declared operations are stated to be, and was not proved by ``sa.verify``."""
        return self.argument.assumptions

    @cached_property
    def side_conditions(self) -> tuple[str, ...]:
        """What must hold besides: for the two sides to have values, and what the argument divides by."""
        sides = self.claim.sides if isinstance(self.claim, Claim) else (self.claim.output,)
        own = conditions(self.argument.restated(sides), Given.of(self.given), self.argument.divisors, fit=sides)
        listed = self.argument.side_conditions
        return tuple(dict.fromkeys([*not_said_for_all(own, listed), *listed]))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why what is divided by is not zero, where that is known."""
        return self.argument.reasons

    def check(self) -> bool:
        """Go through the proof again, without search.

        Whether it is a proof of this claim under what is given, every step of it holds, and its point is one.
        """
        stated = Given.of(self.given)
        given, claim = applied(stated, self.claim)
        if not (self.argument.proves(claim, given) and self.argument.check()):
            return False
        if self.witness is None:
            return not self.side_conditions
        return (self.witness.claim, self.witness.given) == (self.claim, stated) and self.witness.check()

    @property
    def assumes_something(self) -> bool:
        """Whether there are hypotheses or side conditions, of which an example is shown."""
        return bool(self.hypotheses or self.side_conditions)

    def premises(self, within: SymbolTable | None = None) -> tuple[tuple[Words, ...], ...]:
        """What the proof rests on as mathematics: hypotheses, side conditions, and what is divided by and is not 0."""
        telling = self.telling(within)
        assumed = telling.sentences(self.assumptions)
        conditions = telling.sentences(self.side_conditions)
        return (*telling.declared, *telling.given, *assumed), conditions, self.argument.reasons_told(within)

    def text(self) -> str:
        """The claim, what it rests on, and the argument."""
        lines = [f"Claim: {self.wording.claim}"]
        lines += [f"Notation: {'; '.join(self.wording.definitions)}"] * bool(self.wording.definitions)
        premises = (self.hypotheses, self.side_conditions, self.reasons)
        lines += [f"{title}: {'; '.join(said)}" for title, said in zip(_TITLES, premises, strict=True) if said]
        if self.assumes_something:
            lines.append("Example: " + ("not found" if self.witness is None else self.witness.text()))
        return "\n".join([*lines, self.argument.text()])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics."""
        telling = self.telling(within)
        premises = zip(_TITLES, self.premises(within), strict=True)
        found = (Paragraph(("not found.",)),) if self.witness is None else self.witness.shown.told(within)
        return (
            Paragraph(telling.claim, "Claim"),
            *telling.notation(head="Notation"),
            *(Paragraph((*listed(said), "."), title) for title, said in premises if said),
            *(led((), found, "Example") if self.assumes_something else ()),
            *led((), self.argument.told(telling.page), "Proof"),
        )

    def latex(self) -> str:
        """The same as a LaTeX fragment (amsmath, amssymb)."""
        return parts_latex(self.told())

    def __str__(self) -> str:
        return self.text()


def _said(*lists: tuple[str, Sequence[str]]) -> list[str]:
    return [f"{word} {'; '.join(said)}" for word, said in lists if said]


@dataclass(frozen=True, eq=False)
class Verdict(_Worded, ABC):
    """An answer to a claim. Only Proved is true."""

    claim: Claim | Independence
    given: tuple[Any, ...] = field(default=(), kw_only=True)
    status: ClassVar[str]

    def _headed(self, *lines: str) -> str:
        """The lines below the claim, what was given, and the intermediates that are mentioned."""
        said = _said(("given", self.wording.given), ("with", self.wording.definitions))
        return "\n".join([f"{self.status}: {self.wording.claim}", *said, *lines])

    def __bool__(self) -> bool:
        return self.status == "proved"

    @property
    def proof(self) -> Proof | None:
        """The proof of a claim that is proved."""
        return None

    @property
    def counterexample(self) -> Counterexample | None:
        """The point at which a refuted claim is false."""
        return None

    @property
    def residual(self) -> str:
        """What is left of the difference of the two sides, where nothing is proved."""
        return ""

    @abstractmethod
    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The verdict as mathematics, with the symbols of a document if it stands in one."""

    def latex(self) -> str:
        """The verdict as a LaTeX fragment (amsmath, amssymb)."""
        return parts_latex(self.told())

    def _answered(self, head: str, answer: str, within: SymbolTable | None) -> tuple[Part, ...]:
        """The claim, what is said of it, what is given, and what the claim mentions."""
        telling = self.telling(within)
        given = (", given ", *listed(telling.given)) if self.given else ()
        where = (", where ",) if telling.defines else ()
        return telling.notation((*telling.claim, answer, *given, *where), head)

    def __repr__(self) -> str:
        given = f" given {', '.join(self.wording.given)}" if self.given else ""
        return f"<{self.status}: {self.wording.claim}{given}>"


@dataclass(frozen=True, eq=False, repr=False)
class Proved(Verdict):
    """The claim holds, for all sizes and values; ``proof`` says why."""

    found: Proof
    status: ClassVar[str] = "proved"

    @property
    def proof(self) -> Proof:
        return self.found

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        return self.found.told(within)

    def __str__(self) -> str:
        said = _said(("where", self.found.side_conditions), ("assumed:", self.found.assumptions))
        unseen = ["no example of what is given was found"] * bool(self.found.given and self.found.witness is None)
        return self._headed(*said, *unseen)


@dataclass(frozen=True, eq=False, repr=False)
class Refuted(Verdict):
    """The claim is false; ``counterexample`` shows it at a point."""

    found: Counterexample
    status: ClassVar[str] = "refuted"

    @property
    def counterexample(self) -> Counterexample:
        return self.found

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        return *self._answered("Refuted", " fails", within), *self.found.told(within)

    def __str__(self) -> str:
        return self._headed(str(self.found))


@dataclass(frozen=True, eq=False, repr=False)
class Unknown(Verdict):
    """Neither proved nor refuted: why, the normal forms of both sides, their difference, and what was tried."""

    reason: str
    left_over: Residual | None = None
    agreement: Agreement | None = None
    status: ClassVar[str] = "unknown"

    @property
    def forms(self) -> tuple[str, str]:
        """The normal forms of both sides, where they were reached."""
        return ("", "") if self.left_over is None else self.left_over.text()[0][:2]

    @property
    def residual(self) -> str:
        return "" if self.left_over is None else self.left_over.text()[0][2]

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        return (
            *self._answered("Unknown", " is not decided", within),
            Paragraph(sentence_of((f"{self.reason}.",))),
            *(() if self.left_over is None else self.left_over.told(within)),
            *(() if self.agreement is None else (Paragraph((f"Tried: {self.agreement}.",)),)),
        )

    def __str__(self) -> str:
        lines = [self.reason]
        if self.left_over is not None:
            (left, right, difference), definitions = self.left_over.text()
            lines += [f"left: {left}", f"right: {right}", f"left - right: {difference}"]
            lines += [f"where {definition}" for definition in definitions]
        if self.agreement is not None:
            lines.append(f"tried: {self.agreement}")
        return self._headed(*lines)
