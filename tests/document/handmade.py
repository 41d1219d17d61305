"""Pages written by hand in ``pages/*.txt``, of which every medium has to make good ones.

A line is a paragraph, with ``$formulas$`` in it, or begins with what it is; cells stand between bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from symattn.core.boxes import Box, Sign
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.prose import (
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Given,
    Paragraph,
    Part,
    Section,
    Source,
    Statement,
    Status,
    Step,
    Table,
    Words,
)

PAGES = Path(__file__).parent / "pages"
NAMES = sorted(path.stem for path in PAGES.glob("*.txt"))
SVG = '<svg viewBox="0 0 520 40" xmlns="http://www.w3.org/2000/svg"><path d="M40 20h400" stroke="currentColor"/></svg>'


def page(name: str) -> Document:
    """The page of a file."""
    return document((PAGES / f"{name}.txt").read_text())


def document(text: str) -> Document:
    """The page that lines describe."""
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("## ")]
    ends = [*starts[1:], len(lines)]
    head = [line for line in lines[: starts[0] if starts else len(lines)] if line]
    return Document(
        title=words(_of(head, "# ")[0]),
        summary=words(_of(head, "> ")[0]),
        tally=tuple(_counted(count) for count in _of(head, "tally ")[0].split(", ")),
        result=parts(
            line for line in head if not line.startswith(("# ", "> ", "tally ", "command ", "given ", "conv"))
        ),
        given=tuple(_given(*_cells(line)) for line in _of(head, "given ")),
        conventions=words("".join(_of(head, "conventions "))),
        sections=tuple(_section(lines[start:end]) for start, end in zip(starts, ends, strict=True)),
        references=tuple(words(line) for line in _of(lines, "- ")),
        command="".join(_of(head, "command ")),
    )


def words(text: str) -> Words:
    """Words with formulas between dollar signs."""
    written = (box_of_latex(part) if n % 2 else part for n, part in enumerate(text.split("$")))
    return tuple(part for part in written if part != "")


def parts(lines: Iterator[str]) -> tuple[Part, ...]:
    """The parts that lines describe, to the line that ends them."""
    found: list[tuple[str, Any]] = []
    for line in lines:
        if line == "end":
            break
        if line:
            found.append(_part(line, lines))
    several = ((kind, [part for _, part in group]) for kind, group in groupby(found, key=lambda pair: pair[0]))
    return tuple(part for kind, group in several for part in _GATHERED.get(kind, list[Any])(group))


def _part(line: str, lines: Iterator[str]) -> tuple[str, Any]:
    start, _, rest = line.partition(" ")
    match start:
        case "=" | ":=":
            return "step", _step(start, *_cells(rest))
        case "|":
            return "row", tuple(map(words, _cells(line.removeprefix("|"))))
        case "[]":
            return "", Display(tuple(map(box_of_latex, _cells(rest))))
        case "@":
            return "", _figure(*_cells(rest))
        case "```":
            return "", Source("\n".join(iter(lambda: next(lines), "```")) + "\n")
        case "fold":
            return "", Fold(words(rest), parts(lines))
        case "Claim" | "Proposition":
            number, title, status, *formulas = _cells(rest)
            claimed = tuple(map(box_of_latex, formulas))
            return "", Statement(start, int(number), words(title), cast(Status, status), claimed, parts=parts(lines))
    return "", Paragraph(words(line))


_GATHERED: dict[str, Callable[[list[Any]], list[Any]]] = {
    "step": lambda steps: [Chain(tuple(steps))],
    "row": lambda rows: [Table(rows[0], tuple(rows[1:]))],
}


def _step(sign: str, left: str, right: str, reason: str, status: str, each: str = "") -> Step:
    relation = Sign("≔" if sign == ":=" else "=", "relation")
    holds_for: Box | None = box_of_latex(each) if each else None
    name = box_of_latex(left) if left else None
    return Step(name, box_of_latex(right), words(reason), relation, holds_for, cast(Status, status))


def _figure(caption: str, formula: str, text: str) -> Figure:
    return Figure(SVG, "What flows where.", words(caption), box_of_latex(formula) if formula else None, text)


def _section(lines: list[str]) -> Section:
    title, *rest = lines
    return Section(words(title.removeprefix("## ")), parts(line for line in rest if not line.startswith("- ")))


def _given(symbol: str, where: str, meaning: str) -> Given:
    return Given(box_of_latex(symbol), words(where), words(meaning))


def _counted(count: str) -> tuple[Status, int]:
    number, status = count.split()
    return cast(Status, status), int(number)


def _of(lines: list[str], start: str) -> list[str]:
    return [line.removeprefix(start) for line in lines if line.startswith(start)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(" | ")] if " | " in line else [line.strip()]
