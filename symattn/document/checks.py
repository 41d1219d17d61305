"""What was done to check a step, and the report of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..core.displayed import Displayed
from ..printing.prose import Paragraph, Part, Status, Table, Words, listed
from ..printing.prose_latex import parts_latex
from ..printing.stated import sentence_words

PROVED, BY_DEFINITION, REFUTED, NUMERIC = "proved", "by definition", "refuted, as stated", "checked numerically only"
COMPUTED, UNPROVED = "computed again, exactly", "not proved"
_STATUS: dict[str, Status] = {
    PROVED: "proved", BY_DEFINITION: "defined", REFUTED: "refuted", NUMERIC: "numeric", COMPUTED: "computed",
    UNPROVED: "unproved",
}  # fmt: skip
_NOTHING = "there is nothing to check"


@dataclass(frozen=True)
class Check:
    """What was done for one step.

    ``how`` is "proved", "by definition", "refuted, as stated", "computed again, exactly", "checked numerically only",
    or "not proved" of what a sentence says. ``conditions`` are the side conditions of a proof; ``error`` is the
    largest error of a numeric check, and ``sizes`` are those it was made at; ``remarks`` say where the gradient
    does not exist, or why there is no proof.
    """

    name: str
    how: str
    conditions: tuple[str, ...] = ()
    error: float | None = None
    sizes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """The same as documents mark it; a proof that assumes something that was stated is marked as proved."""
        return _STATUS[self.how]

    @property
    def outcome(self) -> str:
        """How the step was checked, with its conditions or its errors."""
        where = (f", where {', '.join(self.conditions)}",) if self.conditions else ()
        return "; ".join(["".join((self._how, *where)), *self.remarks])

    def told(self) -> Words:
        """The same with mathematics in it."""
        conditions = listed(map(sentence_words, self.conditions), ", ")
        where = (", where ", *conditions) if conditions else ()
        return listed([(self._how, *where), *map(sentence_words, self.remarks)])

    @property
    def _how(self) -> str:
        if self.error is None:
            return self.how
        return f"{self.how}, largest error {self.error:.1e}, at {'; '.join(self.sizes)}"

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}"


@dataclass(frozen=True)
class Report(Displayed):
    """One check a step. Where a step is checked numerically only, it says no more than that numbers agreed.

    Claims in the sentences of a result that no step says have one too.
    """

    checks: tuple[Check, ...]

    @property
    def proved(self) -> bool:
        """Whether no step rests on numbers alone, and no sentence of the result on nothing."""
        return all(check.how not in (NUMERIC, UNPROVED) for check in self.checks)

    def text(self) -> str:
        """One line a step."""
        return "\n".join(map(str, self.checks)) or _NOTHING

    def told(self) -> tuple[Part, ...]:
        """The same as a table, with mathematics in it."""
        rows = tuple(((check.name,), check.told()) for check in self.checks)
        return (Table((), rows),) if rows else (Paragraph((f"{_NOTHING.capitalize()}.",)),)

    def latex(self) -> str:
        """The same as a ``tabular``."""
        return parts_latex(self.told())

    def __str__(self) -> str:
        return self.text()

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)
