"""What a page is made of, with no medium in mind: words with formulas in them, chains of steps, claims, tables.

Formulas are trees of boxes. What writes a page in some medium decides nothing but how it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, TypeVar

from ..core.boxes import Box, Sign
from .table import SymbolTable

T = TypeVar("T")
Words: TypeAlias = tuple[str | Box, ...]  # words, with formulas in the line
Status = Literal["proved", "computed", "numeric", "assumed", "refuted", "defined", "unproved", "unverified"]

EQUALS, DEFINED = Sign("=", "relation"), Sign("≔", "relation")


@dataclass(frozen=True)
class Mark:
    """How a medium shows that a step was proved, or what else was done: a glyph, and what it is called."""

    glyph: str
    word: str  # of one step
    counted: str  # behind the number of such steps
    meaning: str  # in a legend


MARKS: dict[Status, Mark] = {
    "proved": Mark("✓", "proved", "proved", "an identity for all sizes and all real values, found and checked again"),
    "computed": Mark("✓", "computed", "computed exactly", "calculated without rounding, for all sizes"),
    "refuted": Mark("✗", "false", "refuted as stated", "refuted by an exact counterexample"),
    "numeric": Mark("≈", "checked numerically", "checked numerically", "agrees in floating point, not proved"),
    "assumed": Mark("!", "assumed", "assumed", "taken as given"),
    "unproved": Mark("?", "not proved", "not proved", "said in words, without a proof"),
    "unverified": Mark("?", "not verified", "not verified", "not checked yet"),
    "defined": Mark("≔", "by definition", "by definition", "says what a symbol stands for"),
}


def sentence(text: str) -> Words:
    """Words without a formula."""
    return (text,) if text else ()


def joined(words: Words) -> Words:
    """Words of which no two texts stand side by side."""
    found: list[str | Box] = []
    for part in words:
        before = found[-1] if found else None
        if isinstance(part, str) and isinstance(before, str):
            found[-1] = before + part
        else:
            found.append(part)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Paragraph:
    """Sentences, under a ``head`` of a word or two in their line, such as "Proof" or "Hypotheses"."""

    words: Words
    head: str = ""


@dataclass(frozen=True, eq=False)
class Display:
    """Formulas between paragraphs, side by side as far as they fit."""

    formulas: tuple[Box, ...]


@dataclass(frozen=True, eq=False)
class Items:
    """A list, of which each item is a few words."""

    items: tuple[Words, ...]
    numbered: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """A row of a chain: its two sides, why, and what was done to check it; no left side goes on from the row above.

    ``each`` says for what it holds, ``i = 1, 2``, and ``detail`` under which conditions, or with which errors.
    """

    left: Box | None
    right: Box
    reason: Words = ()
    relation: Sign = EQUALS
    each: Box | None = None
    status: Status | None = None
    detail: Words = ()
    label: str = ""
    number: int = 0

    def defined(self) -> Step:
        """The row that says by itself that its left side is a name for the right one."""
        return replace(self, relation=DEFINED, reason=())


@dataclass(frozen=True, eq=False)
class Chain:
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Statement:
    """A claim with its proof, or with the counterexample that refutes it."""

    kind: str  # "Claim", "Lemma", "Proposition", "Theorem"
    number: int
    title: Words
    status: Status
    formulas: tuple[Box, ...]  # what is claimed, where that is a formula
    words: Words = ()  # what is claimed, where that is a sentence
    given: tuple[Words, ...] = ()
    parts: tuple[Part, ...] = ()
    where: tuple[Part, ...] = ()  # the equations of what is claimed


@dataclass(frozen=True, eq=False)
class Table:
    head: tuple[Words, ...]
    rows: tuple[tuple[Words, ...], ...]


def padded(table: Table) -> list[tuple[Words, ...]]:
    """The head and the rows of a table, all of as many cells."""
    lines = (table.head, *table.rows)
    most = max(map(len, lines))
    return [(*cells, *((),) * (most - len(cells))) for cells in lines]


@dataclass(frozen=True, eq=False)
class Fold:
    """What is opened by those who want it; on paper it is open, or left out where it is ``for_machines``."""

    title: Words
    parts: tuple[Part, ...]
    for_machines: bool = False


@dataclass(frozen=True, eq=False)
class Source:
    text: str
    language: str = "python"


class Drawing(Protocol):
    """A picture that is drawn when a page wants it; ``lacking`` says what has to be installed for that, or nothing."""

    @property
    def lacking(self) -> str: ...

    def svg(self) -> str: ...

    def pdf(self) -> bytes: ...


@dataclass(frozen=True, eq=False, repr=False)
class Figure:
    """A picture, what it shows in words, and the same as one formula or as lines of text where there is one.

    The picture is SVG as it stands, or a drawing, which is made where a medium can show it; ``file`` is where it stands
    beside a page that can only refer to it. ``within`` draws it by the symbols of a document, where it has any.
    """

    picture: str | Drawing
    alternative: str
    caption: Words = ()
    formula: Box | None = None
    text: str = ""
    file: str = ""
    within: Callable[[SymbolTable], Figure] | None = None

    @property
    def lacking(self) -> str:
        """What has to be installed for the picture to be drawn, or nothing."""
        return "" if isinstance(self.picture, str) else self.picture.lacking

    @property
    def told(self) -> Words:
        """The caption where the picture should stand, which says what has to be installed for it."""
        return (
            (*self.caption, f" (The picture is left out; it takes {self.lacking}.)") if self.lacking else self.caption
        )

    @property
    def svg(self) -> str:
        """The picture as SVG, for a page or a file."""
        return self.picture if isinstance(self.picture, str) else self.picture.svg()

    @property
    def pdf(self) -> bytes:
        """The picture as PDF, where it is a drawing."""
        return b"" if isinstance(self.picture, str) else self.picture.pdf()

    def __repr__(self) -> str:
        return f"<figure: {self.alternative}>"

    def _repr_html_(self) -> str | None:
        """In a notebook, as what it is; what cannot be drawn there stands in words."""
        return None if self.lacking else self.svg


Part: TypeAlias = Paragraph | Display | Items | Chain | Statement | Table | Fold | Source | Figure


def shown_on_paper(parts: Iterable[Part]) -> list[Part]:
    """The parts without what is folded for machines."""
    return [part for part in parts if not (isinstance(part, Fold) and part.for_machines)]


def unheaded(parts: Sequence[Part], head: str) -> list[Part]:
    """Parts of which the first is without this head, which stands there already."""
    first, *others = parts
    if isinstance(first, Paragraph) and first.head == head:
        return [replace(first, head=""), *others]
    return [*parts]


def led(words: Words, parts: tuple[Part, ...], head: str = "") -> tuple[Part, ...]:
    """Parts with words, or a head, in front of what they begin with, where that is a paragraph, and else above them."""
    if parts and isinstance(parts[0], Paragraph) and not parts[0].head:
        return Paragraph((*words, *parts[0].words), head), *parts[1:]
    return Paragraph(words, head), *parts


def sentence_of(words: Words) -> Words:
    """Words that begin with a capital."""
    match words:
        case (str() as first, *rest):
            return f"{first[:1].upper()}{first[1:]}", *rest
    return words


def listed(several: Iterable[tuple[str | T, ...]], between: str = "; ", last: str = "") -> tuple[str | T, ...]:
    """Words one after the other, with a mark between each two, and with another one before the last."""
    ways = [*several]
    told: list[str | T] = []
    for n, words in enumerate(ways):
        if n:
            told.append(last if last and n == len(ways) - 1 else between)
        told += words
    return tuple(told)


@dataclass(frozen=True, eq=False)
class Section:
    title: Words
    parts: tuple[Part, ...]
    anchor: str = ""


@dataclass(frozen=True, eq=False)
class Given:
    """A symbol, where it lives, and what it means."""

    symbol: Box
    where: Words
    meaning: Words = ()


@dataclass(frozen=True, eq=False)
class Document:
    """A whole page. ``tally`` counts the steps by what was done; ``command`` checks the page again."""

    title: Words
    summary: Words
    tally: tuple[tuple[Status, int], ...]
    result: tuple[Part, ...]
    given: tuple[Given, ...]
    conventions: Words
    sections: tuple[Section, ...]
    references: tuple[Words, ...] = ()
    command: str = ""
    first_index: int = 0
