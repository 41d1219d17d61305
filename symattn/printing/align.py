"""Rows of an ``align`` block, and sentences as LaTeX text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ..core.boxes import Box, Text
from .media.latex import latex, plain_text, spelling_of

_ON_A_PAGE = 30  # lines of a block that may still be kept together


class Row(NamedTuple):
    """A line of an ``align`` block: its two sides, why, and for each of what it holds."""

    left: Box | None
    right: Box
    reason: str = ""
    each: Box | None = None


def align(rows: Iterable[Row], environment: str = "align", safe: str = "") -> str:
    """Rows as an ``align`` or ``aligned`` block with a reason column; what they hold for stands above several rows."""
    lines = []
    for each, group in groupby(rows, key=lambda row: "" if row.each is None else latex(row.each, safe)):
        several = list(group)
        if each and len(several) > 1:
            lines.append(rf"  & {each}\text{{:}}")
        beside = rf" \quad {each}" if each and len(several) == 1 else ""
        for left, right, reason, _ in several:
            why = f" && {_reason(reason, safe)}" if reason else ""
            lines.append(f"  {'' if left is None else latex(left, safe)} &= {latex(right, safe)}{beside}{why}")
    ends = f" {spelling_of(safe).ends_row}\n"
    block = rf"\begin{{{environment}}}" + "\n" + ends.join(lines) + "\n" + rf"\end{{{environment}}}"
    if len(lines) > _ON_A_PAGE and environment != "aligned" and not safe:
        return "{\\allowdisplaybreaks" + f"\n{block}\n}}"  # else what does not fit on the page is cut off
    return block


def _reason(reason: str, safe: str) -> str:
    return latex(Text(reason), safe) if safe else rf"\text{{{tex_text(reason)}}}"


_SIGNS = {"!=": r"\neq", ">=": r"\ge", "<=": r"\le"}


def itemised(lines: Iterable[str]) -> str:
    """Lines of LaTeX as a list."""
    return "\\begin{itemize}\n" + "\n".join(rf"  \item {line}" for line in lines) + "\n\\end{itemize}"


def tex_text(sentence: str) -> str:
    """A sentence as LaTeX text, with nothing left that LaTeX would read as a command."""
    parts = re.split("(!=|[<>]=?)", sentence)
    parts[1::2] = (f"${_SIGNS.get(sign, sign)}$" for sign in parts[1::2])
    parts[::2] = map(plain_text, parts[::2])
    return "".join(parts)
