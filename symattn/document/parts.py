"""The parts of a derivation as its author gives them: sentences, lines, claims, calculations, tables, examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import sympy

from ..core.node import Tensor
from ..ops.leaves import named_by
from ..printing import prose as page
from ..printing.prose import Status
from ..probability.report import Moments
from ..proof.claims import Claim
from ..proof.induction.plan import Induction
from ..proof.verdict import Verdict
from .checks import Check
from .exactly import Exact
from .prose import Prose

Kind = Literal["definition", "where", "gradient", "equation", "further"]


class Line(NamedTuple):
    """One line: a left side (none where it goes on from the line above), what that is equal to, and why.

    A definition gives a name; "where" is one that nobody wrote. ``remarks`` say where a gradient does not exist, and
    what is taken there; by its ``label`` the line is referred to. ``check`` is what was done to verify it.
    """

    left: Tensor | None
    expression: Tensor
    kind: Kind
    reason: str | Prose = ""
    relation: str = "="
    label: str = ""
    remarks: tuple[str, ...] = ()
    by: tuple[Induction, ...] = ()
    check: Check | None = None

    @property
    def is_definition(self) -> bool:
        return self.kind in ("definition", "where")

    @property
    def status(self) -> Status:
        return self.check.status if self.check is not None else "defined" if self.is_definition else "unverified"

    @property
    def is_found(self) -> bool:
        """Whether it says what a name stands for that no user gave."""
        return self.left is not None and self.kind == "where" and bool(named_by(self.left))

    @property
    def sides(self) -> list[Tensor]:
        """What is written out: a name is not."""
        return [self.expression] if self.left is None or self.kind != "equation" else [self.left, self.expression]

    @property
    def name(self) -> Tensor | None:
        """What the line gives a name or is the gradient of."""
        return None if self.kind in ("equation", "further") else self.left


@dataclass(frozen=True, eq=False)
class Heading:
    """A section begins."""

    title: Prose


@dataclass(frozen=True, eq=False)
class Statement:
    """A claim that was proved or refuted, with steps of its author, and what holds instead."""

    verdict: Verdict
    kind: str
    title: Prose | None = None
    holds: tuple[Prose | Verdict, ...] = ()
    proof: tuple[Part, ...] = ()
    number: int = 0
    check: Check | None = None
    checks_of_holds: tuple[Check, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.kind.lower()} {self.number}"

    @property
    def status(self) -> Status:
        return self.check.status if self.check is not None else _found(self.verdict)

    @property
    def held(self) -> Iterator[tuple[Prose | Verdict, Check | None]]:
        """What holds instead, and what was done to check the claims of it."""
        checks = iter(self.checks_of_holds)
        return ((said, None if isinstance(said, Prose) else next(checks, None)) for said in self.holds)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self.verdict, *(said for said in self.holds if isinstance(said, Verdict))

    @property
    def roots(self) -> list[Tensor]:
        """The tensors that are written out."""
        return [x for verdict in self.verdicts for x in roots_of_verdict(verdict)] + roots(self.proof)


@dataclass(frozen=True, eq=False)
class Calculation:
    """Mean and variance of a quantity; the way may have been told before."""

    moments: Moments
    number: int = 0
    check: Check | None = None

    @property
    def name(self) -> str:
        return f"calculation {self.number}"

    @property
    def status(self) -> Status:
        return "unverified" if self.check is None else self.check.status

    @property
    def every(self) -> tuple[Moments, ...]:
        return (self.moments,)

    @property
    def roots(self) -> list[Tensor]:
        return self.moments.roots


Cell: TypeAlias = "Prose | Tensor | sympy.Basic | Verdict"


@dataclass(frozen=True, eq=False)
class Cases:
    """A table: under each head a sentence, a formula or a verdict; ``moments`` are what rows were read from."""

    head: tuple[Prose, ...]
    rows: tuple[tuple[Any, ...], ...]
    moments: tuple[Moments, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def every(self) -> tuple[Moments, ...]:
        return self.moments

    @property
    def statuses(self) -> list[Status]:
        """What was done for each claim and each row of moments."""
        if self.checks:
            return [check.status for check in self.checks]
        claims = [_found(cell) for row in self.rows for cell in row if isinstance(cell, Verdict)]
        moments: list[Status] = ["unverified"] * len(self.moments)
        return [*claims, *moments]

    @property
    def roots(self) -> list[Tensor]:
        cells = [cell for row in self.rows for cell in row]
        of_cells = (roots_of_verdict(x) if isinstance(x, Verdict) else [x] * isinstance(x, Tensor) for x in cells)
        return [x for found in (*of_cells, *(m.roots for m in self.moments)) for x in found]


@dataclass(frozen=True, eq=False)
class Example:
    """The lines of a document in numbers: what goes in, and the values of what is shown.

    ``exact`` are the values that floating point may have rounded, as far as they are known.
    """

    values: Mapping[Tensor, Any]
    sizes: Mapping[sympy.Symbol, int]
    scalars: Mapping[sympy.Symbol, Any]
    show: tuple[Tensor, ...]
    exact: Mapping[Tensor, Exact]

    @property
    def roots(self) -> list[Tensor]:
        return [*self.values, *self.show]


@dataclass(frozen=True, eq=False)
class Illustration:
    figure: page.Figure
    caption: Prose | None


@dataclass(frozen=True, eq=False)
class Folded:
    """What is opened by those who want it."""

    title: Prose
    parts: tuple[Part, ...]

    @property
    def roots(self) -> list[Tensor]:
        return roots(self.parts)


@dataclass(frozen=True, eq=False)
class Listing:
    source: str
    language: str


Part: TypeAlias = "Prose | Heading | Line | Statement | Calculation | Cases | Example | Illustration | Folded | Listing"


def _found(verdict: Verdict) -> Status:
    return "proved" if verdict else "refuted"


def roots(parts: Iterable[Any]) -> list[Tensor]:
    """The tensors that parts write out."""
    found = list[Tensor]()
    for part in parts:
        if isinstance(part, Line):
            found += [x for x in (part.left, part.expression) if x is not None]
        elif isinstance(part, Tensor):
            found.append(part)
        elif isinstance(part, Verdict):
            found += roots_of_verdict(part)
        elif isinstance(part, Claim):
            found += part.sides
        elif hasattr(part, "roots"):
            found += part.roots
    return found


def roots_of_verdict(verdict: Verdict) -> list[Tensor]:
    """The tensors of a claim, of what is given, and of what proves it."""
    given = [side for fact in verdict.given if isinstance(fact, Claim) for side in fact.sides]
    return [*verdict.claim.sides, *given]


def numbered(parts: Iterable[Any]) -> tuple[Any, ...]:
    """The parts with the numbers of claims, which count each kind by itself, and of calculations."""
    counts: dict[str, int] = {}

    def next_of(kind: str) -> int:
        counts[kind] = counts.get(kind, 0) + 1
        return counts[kind]

    def with_number(part: Any) -> Any:
        if isinstance(part, Statement):
            return replace(part, number=next_of(part.kind), proof=tuple(map(with_number, part.proof)))
        if isinstance(part, Calculation):
            return replace(part, number=next_of("calculation"))
        return replace(part, parts=tuple(map(with_number, part.parts))) if isinstance(part, Folded) else part

    return tuple(map(with_number, parts))


def steps(parts: Iterable[Any]) -> Iterator[Line | Statement | Calculation | Cases]:
    """What is checked, in order, within claims and folds too."""
    for part in parts:
        if isinstance(part, (Line, Statement, Calculation, Cases)):
            yield part
        if isinstance(part, Statement):
            yield from steps(part.proof)
        if isinstance(part, Folded):
            yield from steps(part.parts)


def statuses(parts: Iterable[Any]) -> Iterator[Status]:
    """What was done for each step, as often as a report has a line."""
    for part in parts:
        match part:
            case Line() | Calculation() | Statement():
                yield part.status
            case Cases():
                yield from part.statuses
        if isinstance(part, Statement):
            claims = ((said, check) for said, check in part.held if isinstance(said, Verdict))
            yield from ("proved" if check is None else check.status for _, check in claims)
            yield from statuses(part.proof)
        elif isinstance(part, Folded):
            yield from statuses(part.parts)
