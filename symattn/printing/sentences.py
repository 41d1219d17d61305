"""Mathematics in paragraphs of LaTeX: within the line where it is short, else on lines of its own that fit a page."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.boxes import Box, Fence, Space, row
from .align import Page, align, displayed_formula
from .media.latex import latex
from .prose import EQUALS, Step
from .widths import Ruler

PAGE = Page("align*", "none")
_LIST = Page("align*", "none", width=PAGE.width - 2.5)  # of items
_WITHIN = 14.0  # em of a formula that TeX sets among words without a gap


def is_short(box: Box, room: float = _WITHIN) -> bool:
    """Whether a formula may stand among words, or after a few where ``room`` is larger."""
    return Ruler().width(box) <= room


def stated(box: Box) -> str:
    """A formula after a word or two, such as a claim."""
    return f"${latex(box)}$" if is_short(box, 0.8 * PAGE.width) else displayed_formula(box, PAGE)


def ending(box: Box) -> str:
    """A formula that ends a sentence."""
    return f"${latex(box)}$." if is_short(box) else displayed_formula(box, PAGE)


def item(box: Box, reason: str) -> str:
    """A formula and its reason as an item of a list: beside it, below it, or below lines of their own."""
    if is_short(box):
        return rf"\item ${latex(box)}$. {reason}"
    if is_short(box, 0.8 * _LIST.width):
        return rf"\item ${latex(box)}$.\newline {reason}"
    return rf"\item {reason} {displayed_formula(box, _LIST)}"


def defined(rows: Sequence[Step], more: str = "") -> str:
    """What names stand for, in a sentence or row by row."""
    formulas = list(map(_in_one, rows))
    if all(map(is_short, formulas)):
        return "; ".join([*(f"${latex(formula)}$" for formula in formulas), *[more] * bool(more)]) + "."
    return align(rows, PAGE) + (f"\n{more}." if more else "")


def _in_one(line: Step) -> Box:
    left = [] if line.left is None else [line.left]
    heads = [] if line.each is None else [Space(1.0), Fence(line.each)]
    return row(*left, EQUALS, line.right, *heads)
