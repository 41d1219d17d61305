"""Words and parts of a page as LaTeX: formulas stand within the line where they fit, else on lines of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from ..core.boxes import Box, Sign, Space, Text, row
from .align import Page, displayed, displayed_formula, tex_text
from .prose import Chain, Display, Items, Paragraph, Part, Table, Words
from .widths import Ruler, width

PAGE = Page("align*", "none")
_INDENT = 2.5  # em that a list takes
_WITHIN = 14.0  # em of a formula that TeX sets among words without a gap
_FIRST = 0.8  # of a line that a formula may fill which begins in it
_PUNCTUATION = ".,;: "  # which does not follow a formula that has its own lines


def is_short(box: Box) -> bool:
    """Whether a formula may stand anywhere among words."""
    return _width(box) <= _WITHIN


def words_latex(words: Words, page: Page = PAGE) -> str:
    """Words as LaTeX text, with the formulas in it."""
    written, at, apart = "", 0.0, False
    for part in words:
        if isinstance(part, str):
            part = f" {part.lstrip(_PUNCTUATION)}".rstrip() if apart else part
            written, at, apart = written + tex_text(part), at + width(Text(part)), False
            continue
        at, apart = at + _width(part), not (is_short(part) or at + _width(part) <= _FIRST * page.width)
        written += displayed_formula(part, page) if apart else f"${page.written(part)}$"
    return written


def parts_latex(parts: Sequence[Part], page: Page = PAGE, end: str = "") -> str:
    """Parts one below the other: what a paragraph leads up to, and what goes on after it, belong to the paragraph.

    ``end`` is set in the last line, as the sign that a proof ends there is.
    """
    written = ""
    for before, part in zip([None, *parts], parts, strict=False):
        between = "" if before is None else "\n\n" if _begins(part, before) else "\n"
        written += between + part_latex(part, page, end if part is parts[-1] else "")
    return written


def _begins(part: Part, before: Part) -> bool:
    """Whether a new paragraph begins."""
    return isinstance(part, Paragraph) and (isinstance(before, Paragraph) or bool(part.head))


@singledispatch
def part_latex(part: Part, page: Page = PAGE, end: str = "") -> str:
    """One part of a page as LaTeX."""
    raise TypeError(f"no LaTeX for {type(part).__name__} here")


@part_latex.register
def _(part: Paragraph, page: Page = PAGE, end: str = "") -> str:
    head = rf"\textbf{{{tex_text(part.head)}.}}" if part.head else ""
    return " ".join(filter(None, (head, words_latex(part.words, page), end)))


@part_latex.register
def _(part: Items, page: Page = PAGE, end: str = "") -> str:
    kind = "enumerate" if part.numbered else "itemize"
    within = replace(page, width=page.width - _INDENT)
    lines = [rf"  \item {_item(words, within)}" for words in part.items]
    lines[-1:] = [" ".join(filter(None, (line, end))) for line in lines[-1:]]
    return "\n".join([rf"\begin{{{kind}}}", *lines, rf"\end{{{kind}}}"])


@part_latex.register
def _(part: Display, page: Page = PAGE, end: str = "") -> str:
    lines = [page.written(_beside(several)) for several in _abreast(part.formulas, page)]
    if len(part.formulas) == 1:
        written = displayed_formula(part.formulas[0], page)
    elif len(lines) == 1:
        written = rf"\[ {lines[0]} \]"
    else:
        written = "\\[\n\\begin{aligned}\n" + " \\\\\n".join(f"  & {line}" for line in lines) + "\n\\end{aligned}\n\\]"
    return _with_below(written, end)


@part_latex.register
def _(part: Chain, page: Page = PAGE, end: str = "") -> str:
    return _with_below(displayed(part.steps, page), end)


@part_latex.register
def _(part: Table, page: Page = PAGE, end: str = "") -> str:
    head, *rows = (" & ".join(words_latex(cell, page) for cell in cells) for cells in (part.head, *part.rows))
    above = rf"  {head} \\ \hline" + "\n" if head else ""
    below = " \\\\\n".join(f"  {cells}" for cells in rows)
    columns = "l" * max(map(len, (part.head, *part.rows)))
    return _with_below(rf"\begin{{tabular}}{{{columns}}}" + f"\n{above}{below}\n" + r"\end{tabular}", end)


def _with_below(block: str, end: str) -> str:
    return "\n".join(filter(None, (block, end)))


def _item(words: Words, page: Page) -> str:
    """An item; a long formula in front of a sentence has a line for itself, and one of several lines ends the item."""
    match words:
        case (Box() as formula, str() as after, *rest) if after.startswith(". ") and not is_short(formula):
            reason = words_latex((after[2:], *rest), page)
            if _width(formula) <= _FIRST * page.width:
                return rf"${page.written(formula)}$.\newline {reason}"
            return f"{reason} {displayed_formula(formula, page)}"
    return words_latex(words, page)


def _abreast(boxes: Sequence[Box], page: Page) -> list[list[Box]]:
    """Formulas in rows, of which each takes as many as fit."""
    rows: list[list[Box]] = [[]]
    for box in boxes:
        if rows[-1] and _width(_beside([*rows[-1], box])) > _FIRST * page.width:
            rows.append([])
        rows[-1].append(box)
    return [several for several in rows if several]


def _beside(boxes: Sequence[Box]) -> Box:
    apart = [part for box in boxes[1:] for part in (Sign(",", "punctuation"), Space(1.0), box)]
    return row(*boxes[:1], *apart)


def _width(box: Box) -> float:
    return Ruler().width(box)
