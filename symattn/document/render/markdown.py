"""A page as Markdown for GitHub and Jupyter: formulas between dollar signs, tables, and folds of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from ...core.boxes import Box, Text, row
from ...printing.align import Page, displayed, displayed_formula, side_by_side
from ...printing.media.unicode import unicode_text
from ...printing.prose import (
    MARKS,
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Given,
    Items,
    Paragraph,
    Part,
    Source,
    Statement,
    Step,
    Table,
    Words,
    joined,
    padded,
    unheaded,
)

_PAGE = Page("aligned", "none", width=44.0, safe="github")
_SET_APART = ("$", "\\")  # which begin formulas, where nothing keeps them from what follows
_ESCAPED = frozenset("`*_[]#|~")
_BEGINS = frozenset("+-=:")  # a list or a rule, at the beginning of a line


def markdown(document: Document) -> str:
    """The page as Markdown, of which GitHub and Jupyter make the same."""
    return "\n\n".join(_written(document)) + "\n"


def _written(document: Document) -> Iterator[str]:
    yield f"# {_words(document.title)}"
    if document.summary:
        yield f"*{_words(document.summary)}*"
    if document.tally:
        yield " · ".join(f"{MARKS[status].glyph} {number} {MARKS[status].counted}" for status, number in document.tally)
    if document.result:
        yield "## Result"
        yield from map(_part, document.result)
    if document.given or document.conventions:
        yield "## Given"
        yield from _given(document.given)
        yield _paragraph(document.conventions)
    for section in document.sections:
        yield f"## {_words(section.title)}" if section.title else "---"  # else it would belong to what is given
        yield from map(_part, section.parts)
    if document.references:
        yield "## References"
        yield _items(document.references)
    yield from _footer(document)


def _given(given: Sequence[Given]) -> Iterator[str]:
    if given:
        head = (("Symbol",), ("Where it lives",), ("Meaning",))
        columns = 3 if any(each.meaning for each in given) else 2
        yield _table(
            Table(head[:columns], tuple(((each.symbol,), each.where, each.meaning)[:columns] for each in given))
        )


def _footer(document: Document) -> Iterator[str]:
    meanings = [
        f"{mark.glyph} {mark.word}: {mark.meaning}." for mark in (MARKS[status] for status, _ in document.tally)
    ]
    command = [f"Check again: {_code(document.command)}"] if document.command else []
    if meanings or command:
        yield "---"
        yield " ".join([*meanings, *command])


# --- parts ---


def parts_markdown(parts: Iterable[Part]) -> str:
    """Parts of a page, one below the other."""
    return "\n\n".join(map(_part, parts)) + "\n"


def _part(part: Part) -> str:
    match part:
        case Paragraph(words, head):
            return f"**{_escaped(head)}.** {_words(words)}" if head else _paragraph(words)
        case Display(formulas):
            return displayed_formula(formulas[0], _PAGE) if len(formulas) == 1 else side_by_side(formulas, _PAGE)
        case Chain(steps):
            return displayed(map(_with_doubt, steps), _PAGE)
        case Statement():
            return "\n\n".join(_statement(part))
        case Fold(title, parts):
            inside = "\n\n".join(map(_part, parts))
            return f"<details><summary>{_as_html(title)}</summary>\n\n{inside}\n\n</details>"
        case Items(items, numbered):
            return _items(items, numbered)
        case Table():
            return _table(part)
        case Source(text, language):
            return _fenced(text, language)
        case Figure():
            return _figure(part)


def _with_doubt(step: Step) -> Step:
    """A step, which says behind its reason that nobody has checked it."""
    if step.status != "unverified":
        return step
    mark = f"({MARKS[step.status].glyph})"
    return replace(step, reason=joined((*step.reason, f"\u00a0{mark}")) if step.reason else (mark,))


def _statement(claim: Statement) -> Iterator[str]:
    mark = MARKS[claim.status]
    title = f" {_words(claim.title)}." if claim.title else ""
    yield f"**{claim.kind} {claim.number}.**{title} **{mark.glyph} {mark.word}**"
    if claim.words:
        yield _paragraph(claim.words)
    if claim.formulas:
        yield _part(Display(claim.formulas))
    yield from map(_part, claim.where)
    if claim.given:
        yield f"It is given that {'; '.join(map(_words, claim.given))}."
    parts = [*map(_part, unheaded(claim.parts, "Proof"))] if claim.parts else []
    name = "*Counterexample.*" if claim.status == "refuted" else "*Proof.*"
    if claim.parts and isinstance(claim.parts[0], Paragraph):
        parts[0] = f"{name} {parts[0]}"
    elif parts and not isinstance(claim.parts[0], Fold):  # which says itself what it holds
        yield name
    yield from parts


def _items(items: Iterable[Words], numbered: bool = False) -> str:
    return "\n".join(f"{f'{n}.' if numbered else '-'} {_paragraph(words)}" for n, words in enumerate(items, 1))


def _table(table: Table) -> str:
    head, *rows = padded(table)
    lines = [[*map(_words, head)], ["---"] * len(head), *([*map(_words, cells)] for cells in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _figure(figure: Figure) -> str:
    """The picture where there is a file of it; else a formula, or lines of text, or what it shows in words."""
    if figure.file:
        shown = f"![{_escaped(figure.alternative)}]({figure.file})"
    elif figure.formula is not None:
        shown = displayed_formula(figure.formula, _PAGE)
    else:
        shown = _fenced(figure.text, "") if figure.text else f"*Figure.* {_paragraph((figure.alternative,))}"
    return "\n\n".join([shown, *([_paragraph(figure.caption)] if figure.caption else [])])


def _fenced(text: str, language: str) -> str:
    """Source text between more backticks than it holds."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _code(text: str) -> str:
    marks = "`"
    while marks in text:
        marks += "`"
    space = " " * (text[:1] == "`" or text[-1:] == "`")
    return f"{marks}{space}{text}{space}{marks}"


# --- words ---


def _paragraph(words: Words) -> str:
    """Words as a line that is no list, whatever it begins with."""
    text = _words(words).strip()
    number = "".join(takewhile(str.isdigit, text))
    if text[:1] in _BEGINS:
        return f"\\{text}"
    return f"{number}\\{text[len(number) :]}" if number and text[len(number) :][:1] in (".", ")") else text


def _words(words: Words) -> str:
    """Words with formulas between dollar signs, which may touch no letter: such letters are within the formula."""
    text, parts = "", [*_without_neighbours(words)]
    for part in parts:
        text += _escaped(part) if isinstance(part, str) else f"${_PAGE.written(part)}$"
    return text


def _without_neighbours(words: Words) -> Iterator[str | Box]:
    """Words in which each formula stands between spaces or marks: what touches it is part of it."""
    merged: list[str | Box] = []
    for part in words:
        before = merged[-1] if merged else ""
        if isinstance(part, str):
            taken = "" if isinstance(before, str) else "".join(takewhile(str.isalnum, part))
            if taken and not isinstance(before, str):
                merged[-1] = row(before, Text(taken))
            merged.append(part[len(taken) :])
        elif isinstance(before, str):
            taken = "".join(takewhile(str.isalnum, reversed(before)))[::-1]
            merged[-1:] = [before[: len(before) - len(taken)]]
            merged.append(row(Text(taken), part) if taken else part)
        else:
            merged[-1] = row(before, part)
    return (part for part in merged if part != "")


def _escaped(text: str) -> str:
    return "".join(map(_character, " ".join(text.split("\n"))))


def _character(c: str) -> str:
    if c in _SET_APART:
        return f"<span>&#{ord(c)};</span>"  # Markdown takes a backslash off before a formula is looked for
    if c in _ESCAPED:
        return f"\\{c}"
    return html.escape(c, quote=False)


def _as_html(words: Words) -> str:
    """Words where Markdown reads no formulas: these are in Unicode."""
    text = "".join(part if isinstance(part, str) else unicode_text(part) for part in words)
    return "".join(
        _character(c) if c in _SET_APART else html.escape(c, quote=False) for c in " ".join(text.split("\n"))
    )
