"""Words and parts of a page as LaTeX: formulas stand within the line where they fit, else on lines of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import singledispatch

from ..core.boxes import Box, Row, Sign, Space, Text, row
from .align import (
    Page,
    displayed,
    displayed_formula,
    guarded,
    has_number,
    itemised,
    shown_formula,
    side_by_side,
    tex_text,
)
from .prose import Chain, Display, Figure, Items, Paragraph, Part, Table, Words, shown_on_paper
from .tabular import tabular
from .widths import Ruler, width, width_of_words

PAGE = Page("align*", "none")
_INDENT = 2.5  # em that a list takes
_WITHIN = 14.0  # em of a formula that TeX sets among words without a gap
_BROKEN = 24.0  # em of one that TeX breaks there into such pieces
_FIRST = 0.8  # of a line that a formula may fill which begins in it
_STIFF = 6.0  # em of one for which words of its line have to stand far apart
_BREAKABLE = ("relation", "sum", "product")  # the signs behind which TeX breaks a formula in a line
_PUNCTUATION = ".,;: "  # which does not follow a formula that has its own lines


def is_short(box: Box) -> bool:
    """Whether a formula may stand anywhere among words."""
    return _width(box) <= _WITHIN


def words_latex(words: Words, page: Page = PAGE) -> str:
    """Words as LaTeX text, with the formulas in it."""
    written, after_display = "", False
    for part, is_within in _placed(words, page):
        if isinstance(part, str):
            written += tex_text(f" {part.lstrip(_PUNCTUATION)}" if after_display else part)
        else:
            written += f"${page.written(part)}$" if is_within else displayed_formula(part, page)
        after_display = not is_within
    return guarded(written.rstrip())


def _placed(words: Words, page: Page) -> Iterator[tuple[str | Box, bool]]:
    """Words and formulas, and whether each stands in the line, after so many em of what is before it."""
    at = 0.0
    for part in words:
        em = width(Text(part)) if isinstance(part, str) else _width(part)
        at += em
        yield part, isinstance(part, str) or em <= _WITHIN or at <= _FIRST * page.width or _is_loose(part, em)


def _is_loose(formula: Box, em: float) -> bool:
    """Whether TeX breaks a formula of so many em in the line into pieces that are short."""
    return em <= _BROKEN and _widest_piece(formula) <= _WITHIN


def parts_latex(parts: Sequence[Part], page: Page = PAGE, end: str = "") -> str:
    """Parts one below the other: what a paragraph leads up to, and what goes on after it, belong to the paragraph.

    ``end`` is a sign at the right of the last line, such as the one that a proof ends there; what is for machines is
    left out.
    """
    paragraphs: list[list[Part]] = []
    for part in shown_on_paper(parts):
        if paragraphs and _goes_on(paragraphs[-1][-1], part):
            paragraphs[-1].append(part)
        else:
            paragraphs.append([part])
    written = [_paragraph(several, page, end * (several is paragraphs[-1])) for several in paragraphs]
    for n, several in enumerate(paragraphs[1:], 1):
        if is_display(several[0]):
            written[n] = f"\\noindent\n{written[n]}"  # else TeX sets an empty line before it
    return "\n\n".join(written)


def _goes_on(before: Part, part: Part) -> bool:
    """Whether a part belongs to the paragraph before it: a display, a list, or words that go on behind these."""
    if not isinstance(part, Paragraph):
        takes_on = isinstance(before, (Paragraph, Items)) or is_display(before)
        return takes_on and (isinstance(part, Items) or is_display(part))
    first = part.words[0] if part.words and not part.head else ""
    goes_on = isinstance(first, str) and first[:1].islower()
    return goes_on and (isinstance(before, Items) or is_display(before))


def is_display(part: Part) -> bool:
    """Whether a part is set as a display, which belongs to the paragraph before it."""
    return isinstance(part, (Display, Chain)) or (isinstance(part, Figure) and part.formula is not None)


def _paragraph(parts: Sequence[Part], page: Page, end: str) -> str:
    """One paragraph; its words may stand far apart where else a formula would stick out."""
    *most, last = parts
    text = "\n".join([*(part_latex(part, page) for part in most), part_latex(last, page, end)])
    return loosened(text) if any(_is_stiff(words, page) for part in parts for words in _running(part)) else text


def _running(part: Part) -> Sequence[Words]:
    """The words of a part that TeX breaks into lines."""
    return (part.words,) if isinstance(part, Paragraph) else part.items if isinstance(part, Items) else ()


def _is_stiff(words: Words, page: Page) -> bool:
    """Whether words of several lines hold a piece of a formula that TeX does not break, and that is long."""
    within = [part for part, is_within in _placed(words, page) if is_within]
    pieces = (_widest_piece(part) for part in within if not isinstance(part, str))
    return any(em > _STIFF for em in pieces) and width_of_words(tuple(within)) > _FIRST * page.width


def loosened(paragraph: str) -> str:
    """A paragraph of which the words may stand far apart."""
    return f"{{\\sloppy\n{paragraph}\\par}}"


@singledispatch
def part_latex(part: Part, page: Page = PAGE, end: str = "") -> str:
    """One part of a page as LaTeX."""
    raise TypeError(f"no LaTeX for {type(part).__name__} here")


@part_latex.register
def _(part: Paragraph, page: Page = PAGE, end: str = "") -> str:
    head = rf"\textbf{{{tex_text(part.head)}.}}" if part.head else ""
    return at_the_right(" ".join(filter(None, (head, words_latex(part.words, page)))), end)


@part_latex.register
def _(part: Items, page: Page = PAGE, end: str = "") -> str:
    within = replace(page, indent=page.indent + _INDENT)
    *most, last = (_item(words, within) for words in part.items)
    return itemised([*most, at_the_right(last, end)], "enumerate" if part.numbered else "itemize")


@part_latex.register
def _(part: Display, page: Page = PAGE, end: str = "") -> str:
    if len(part.formulas) == 1 and not end:
        return shown_formula(part.formulas[0], page)
    return side_by_side(part.formulas, page, end)


@part_latex.register
def _(part: Chain, page: Page = PAGE, end: str = "") -> str:
    if not end or not has_number(part.steps, page):
        return displayed(part.steps, page, end)
    return f"{displayed(part.steps, page)}\n{at_the_right('', end)}"


@part_latex.register
def _(part: Table, page: Page = PAGE, end: str = "") -> str:
    return at_the_right(tabular(part, page.width), end)


def at_the_right(text: str, end: str) -> str:
    """Text with a sign at the right end of its last line."""
    return rf"{text} \hspace*{{\fill}}{end}".lstrip() if end and end != QED_HERE else f"{text} {end}".strip()


QED_HERE = r"\qedhere"  # the sign of amsthm, which finds its place itself


def _item(words: Words, page: Page) -> str:
    """An item; a long formula in front of a sentence has a line for itself, and one of several lines ends the item."""
    match words:
        case (Box() as formula, str() as after, *rest) if after.startswith(". ") and not is_short(formula):
            reason = words_latex((after[2:], *rest), page)
            if _width(formula) <= _FIRST * page.width:
                return rf"${page.written(formula)}$.\newline {reason}"
            return f"{reason} {displayed_formula(formula, page)}"
    return words_latex(words, page)


def _width(box: Box) -> float:
    return Ruler().width(box)


def _widest_piece(box: Box) -> float:
    """The width of the widest part of a formula in a line that TeX does not break."""
    pieces: list[list[Box]] = [[]]
    for part in box.parts if isinstance(box, Row) else (box,):
        pieces[-1].append(part)
        if (isinstance(part, Sign) and part.kind in _BREAKABLE) or isinstance(part, Space):
            pieces.append([])
    return max(width_of_words((row(*piece),)) for piece in pieces if piece)
