"""Rows as a block of LaTeX that fits the page: environments, numbers, reasons; and sentences as LaTeX text."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import inf
from typing import Any, Literal

from ..core.arguments import one_of
from ..core.boxes import Box, Fence, Sign, Space, Text, row
from ..errors import OperandError, described
from .breaking import broken
from .layout import Block, Equation, Line, Room, laid_out
from .media.latex import Writer, latex, plain_text, spelling_of
from .media.neighbours import edge
from .prose import MARKS, Step, Words, joined
from .stacking import stacked
from .widths import Ruler, width, width_of_words

Environment = Literal["align*", "align", "gather*", "aligned", "equation"]
Numbered = Literal["none", "referenced", "all"]

TEXT_WIDTH = 34.5  # em: of an article in 10pt on letter paper
ENVIRONMENTS = ("align*", "align", "gather*", "aligned", "equation")
_ROUNDING = 1e-9  # em that adding widths up in another order may make
_SURE = 0.9  # of the room: the estimate of widths may be a tenth too small
_NARROWEST = 10.0
_ON_A_PAGE = 30  # lines of a block that may still be kept together
_SMALL = 0.9  # the size of reasons below rows
_BESIDE = 4.0  # em of what is said beside each of several rows, such as ``i = 1, 2``
_APART = 2.0  # em between formulas side by side
_NEED = 1.1  # times the room, which may still fit, a line is wide that is broken where that is not nice
_CHECKED = Sign("✓")
_UNMARKED = ("defined", "unverified")


@dataclass(frozen=True, slots=True)
class Page:
    """How blocks of rows are set, with the width of the text in em."""

    environment: Environment = "align"
    numbered: Numbered = "all"
    width: float = TEXT_WIDTH
    safe: str = ""  # for what reads the LaTeX: see ``sa.latex``
    theorems: bool = False  # whether claims are environments of amsthm
    indent: float = 0.0  # of what stands in a list

    def written(self, box: Box) -> str:
        return latex(box, self.safe)

    def display(self, formula: str) -> str:
        """A formula that stands between paragraphs."""
        return f"$$\n{formula.strip()}\n$$" if self.safe else rf"\[{formula}\]"

    def room(self) -> Room:
        """What rows may take: a number for which no room is left stands below its row."""
        sure = _SURE * (self.width - self.indent)
        return Room(sure, Ruler().width, width_of_words, 2.0, apart=2.0, narrow=14.0, need=_NEED)


def page_of(environment: Any = "align", numbered: Any = None, width: Any = TEXT_WIDTH, safe: str = "") -> Page:
    """The page that ``.latex(environment=, numbered=, width=)`` asks for, or an OperandError.

    Without ``numbered``, the environments that number their rows do so.
    """
    one_of("latex", "environment", environment, *ENVIRONMENTS)
    has_numbers = environment in ("align", "equation")
    if numbered is None:
        numbered = "all" if has_numbers else "none"
    one_of("latex", "numbered", numbered, "none", "referenced", "all")
    if numbered != "none" and not has_numbers:
        raise OperandError(f"latex: {environment} has no numbers: numbered={numbered!r} needs environment='align'")
    is_number = isinstance(width, (int, float)) and not isinstance(width, bool)
    if not is_number or not width >= _NARROWEST or inf > width > sys.float_info.max:  # an integer has no such limit
        raise OperandError(
            f"latex: width is that of the text in em, {TEXT_WIDTH} in a plain article and at least {_NARROWEST:g}, "
            f"not {described(width)}"
        )
    return Page(environment, numbered, float(width), safe)


def align(rows: Iterable[Step], page: Page, last: str = "") -> str:
    """Rows as a block of LaTeX that fits the page; what they hold for stands above several rows, and beside one.

    What is ``last`` stands at the right of the last row, in the place of its number.
    """
    equations = [*_equations(rows)]
    if page.numbered == "none" or (page.numbered == "referenced" and not any(e.label for e in equations)):
        page = replace(page, numbered="none")
    name, setter = page.environment, _Setter(page)
    if name in ("gather*", "equation"):
        written = [setter.in_one(chain) for chain in _chains(equations)]
    else:
        written = setter.lines(laid_out(equations, setter.room))
    if name == "equation" and len(written) > 1:
        raise OperandError(
            f"latex: an equation holds one row, and there are {len(written)}: environment='align' holds them"
        )
    written[-1] += rf" \tag*{{{last}}}" if last else ""
    starred = page.numbered == "none" and name in ("align", "equation")
    return environment(f"{name}*" if starred else name, written, page)


def unnumbered(equations: Sequence[Equation], page: Page) -> str:
    """Rows of any kind as a block of LaTeX that fits the page."""
    return environment(page.environment, _Setter(page).lines(laid_out(equations, page.room())), page)


def has_number(rows: Sequence[Step], page: Page) -> bool:
    """Whether the last row has one."""
    return page.numbered == "all" or (page.numbered == "referenced" and bool(rows[-1].label))


def displayed(rows: Iterable[Step], page: Page, last: str = "") -> str:
    """The same between paragraphs."""
    if page.environment != "aligned":
        return align(rows, page, last)
    mark = rf" \tag*{{{last}}}" if last else ""
    return page.display(f"{align(rows, page)}{mark}")


def displayed_formula(box: Box, page: Page) -> str:
    """A formula between paragraphs, without a number."""
    room = page.room()
    first, *rest = _lines(box, room.indent, room)
    if not rest:
        return page.display(f" {page.written(first)} ")
    written = [f"  & {page.written(first)}", *(rf"  & \qquad {page.written(line)}" for line in rest)]
    if page.environment != "aligned":
        return environment("align*", written, page)
    return page.display(environment("aligned", written, page))


def _lines(formula: Box, indent: float, room: Room) -> list[Box]:
    """The lines of a formula, in which cases go below their values where they are too wide."""
    lines = broken(formula, room.width, indent, room.measure, need=room.need)
    return [line if room.measure(line) <= room.width else stacked(line) for line in lines]


def shown_formula(box: Box, page: Page) -> str:
    """The same where it is a part of its own. Raises OperandError where a narrow page does not hold it."""
    room = page.room()
    _check_fits(max(room.indent * (n > 0) + room.measure(line) for n, line in enumerate(_lines_of(box, room))), page)
    return displayed_formula(box, page)


def _lines_of(box: Box, room: Room) -> list[Box]:
    """A formula in lines, of which those that cannot be broken as much as they need are stacked."""
    lines = broken(box, room.width, room.indent, room.measure, need=room.need)
    return [line if room.measure(line) <= room.width else stacked(line) for line in lines]


def side_by_side(formulas: Iterable[Box], page: Page, last: str = "") -> str:
    """Formulas between paragraphs, as many in a line as fit; what is ``last`` stands at the right of the last line."""
    room = page.room()
    *most, end = formulas
    listed = [*map(_with_comma, most), end]
    several = [_lines(line, 0.0, room) for line in _abreast(listed, room)]
    _check_fits(max(room.measure(part) for pieces in several for part in pieces), page)
    lines = ["{} " * (n > 0) + page.written(part) for pieces in several for n, part in enumerate(pieces)]
    mark = rf" \tag*{{{last}}}" if last else ""
    if len(lines) == 1:
        return page.display(f" {lines[0]}{mark} ")
    indented = [f"  {line}" for line in lines]
    if page.environment != "aligned":
        return environment("gather*", [*indented[:-1], indented[-1] + mark], page)
    return page.display(environment("gathered", indented, page) + mark)


def _with_comma(formula: Box) -> Box:
    end = edge(formula, -1)
    has_one = isinstance(end, Sign) and end.kind == "punctuation"
    return formula if has_one else row(formula, Sign(",", "punctuation"))


def _abreast(formulas: Sequence[Box], room: Room) -> list[Box]:
    """Formulas in as few lines as can hold them, which are about as wide as each other."""
    widths = [room.measure(formula) for formula in formulas]
    spans = [sum(widths[a:b]) + _APART * (b - a - 1) for a in range(len(widths)) for b in range(a + 1, len(widths) + 1)]
    fewest = len(_filled(widths, room.width))
    lines = next(lines for limit in sorted(spans) if len(lines := _filled(widths, limit)) <= fewest)
    apart = ([part for n in line for part in (Space(_APART), formulas[n])] for line in lines)
    return [row(*parts[1:]) for parts in apart]


def _filled(widths: Sequence[float], room: float) -> list[list[int]]:
    """The numbers of formulas in lines, of which each takes as many as fit."""
    lines, used = list[list[int]](), 0.0
    for n, em in enumerate(widths):
        if not lines or used + _APART + em > room + _ROUNDING:
            lines.append([])
            used = -_APART
        lines[-1].append(n)
        used += _APART + em
    return lines


def _equations(rows: Iterable[Step]) -> Iterator[Equation]:
    for _, group in groupby(rows, key=lambda row: "" if row.each is None else latex(row.each)):
        several = [*group]
        holds_for = several[0].each
        above = holds_for is not None and len(several) > 1 and width(holds_for) > _BESIDE
        if holds_for is not None and above:
            yield Equation(None, row(Text("for "), holds_for, Text(":")), is_heading=True)
        beside = [Space(1.0), Fence(holds_for)] if holds_for is not None and not above else []
        for line in several:
            yield Equation(line.left, row(line.relation, line.right, *beside), told(line), line.label)


def told(step: Step) -> Words:
    """Why a step holds, and what was done to check it."""
    if step.status is None or step.status in _UNMARKED:
        return step.reason
    before = (*step.reason, "\u00a0") if step.reason else ()
    if MARKS[step.status].glyph == _CHECKED.mark:
        after = (" (", *step.detail, ")") if step.detail else ()
        return joined((*before, _CHECKED, *after))
    detail = (": ", *step.detail) if step.detail else ()
    return joined((*before, f"({MARKS[step.status].word}", *detail, ")"))


def _chains(equations: Iterable[Equation]) -> list[list[Equation]]:
    """Rows, each with those that go on from it."""
    chains: list[list[Equation]] = []
    for equation in equations:
        if equation.left is not None or equation.is_heading or not chains:
            chains.append([])
        chains[-1].append(equation)
    return chains


def environment(name: str, lines: Sequence[str], page: Page) -> str:
    """Lines of LaTeX between the begin and the end of an environment."""
    ends = f" {spelling_of(page.safe).ends_row}\n"
    block = rf"\begin{{{name}}}" + "\n" + ends.join(lines) + "\n" + rf"\end{{{name}}}"
    if len(lines) > _ON_A_PAGE and name != "aligned" and not page.safe:
        return "{\\allowdisplaybreaks" + f"\n{block}\n}}"  # else what does not fit on the page is cut off
    return block


class _Setter:
    """Sets the lines of one block on a page."""

    def __init__(self, page: Page) -> None:
        self.page, self.room = page, page.room()
        self._written = Writer(page.safe).written

    def in_one(self, chain: Sequence[Equation]) -> str:
        """A row and what goes on from it, as one line of a display that has no columns."""
        laid = laid_out(chain, self.room)
        label = self._number(chain[-1])
        if len(laid.lines) > 1:
            inner = replace(self.page, environment="aligned", numbered="none")
            block = environment("aligned", _Setter(inner).lines(laid), inner)
            return textwrap.indent(block, "  ") + label
        first = laid.lines[0]
        left = "" if first.left is None else self._written(first.left) + " "
        return f"  {left}{self._written(first.right)}{self._reason(first.reason, False)}{label}"

    def lines(self, block: Block) -> list[str]:
        """The lines of a display whose relations stand below each other."""
        return [self._line(line, block) + self._number(line.ends) for line in block.lines]

    def _line(self, line: Line, block: Block) -> str:
        room = self.room
        if line.kind == "reason":
            return rf"  & \qquad {self._note(line.reason, room.width - block.left - room.indent)}"
        indent = r"\qquad " if line.kind == "more" else ""
        right, needed = line.right, room.measure(line.right)
        if block.left + needed > room.width:
            right = stacked(line.right)
            needed = room.measure(right)
        _check_fits(block.left + room.indent * (line.kind == "more") + needed, self.page)
        start = edge(right, 0)
        is_related = isinstance(start, Sign) and start.kind == "relation" and line.kind == "first"
        left = "" if line.left is None else self._written(line.left)
        before = f"  {left} &" if left or is_related else "  &"
        space = "" if is_related else " "
        return f"{before}{space}{indent}{self._written(right)}{self._reason(line.reason, block.beside)}"

    def _number(self, row: Equation | None) -> str:
        """What gives the line on which a row ends its number and its label, and other lines none."""
        if self.page.numbered == "none" or self.page.environment not in ("align", "equation"):
            return ""
        if row is None or (self.page.numbered == "referenced" and not row.label):
            return r" \notag"
        return rf" \label{{{row.label}}}" if row.label else ""

    def _reason(self, reason: Words, beside: bool) -> str:
        if not reason:
            return ""
        return f" && {self._text(reason)}" if beside else rf" \qquad {self._note(reason, inf)}"

    def _text(self, reason: Words) -> str:
        if not self.page.safe:
            return rf"\text{{{tex_words(reason)}}}"
        written = (self._written(Text(part) if isinstance(part, str) else part) for part in reason)
        tall = (not isinstance(part, str) and part.tall for part in reason)
        return "".join(rf"{{\textstyle {text}}}" if large else text for text, large in zip(written, tall, strict=True))

    def _note(self, reason: Words, room: float) -> str:
        """A reason in small type, in several lines where one is too long; who reads safe LaTeX knows neither."""
        if self.page.safe:
            return self._text(reason)
        if _SMALL * width_of_words(reason) <= room:
            return rf"\text{{\small {tex_words(reason)}}}"
        return rf"\parbox[t]{{{room:.1f}em}}{{\small\raggedright {tex_words(reason)}}}"


def _check_fits(needed: float, page: Page) -> None:
    """A narrow page that was asked for holds each line; what has no place for a break may be named."""
    if page.width < min(page.indent + needed, TEXT_WIDTH):
        raise OperandError(
            f"latex: width={page.width:g} does not hold a line of about {needed:.0f} em that has no place for a break: "
            "ask for more, or name its parts by sa.let"
        )


_SIGNS = {"!=": r"\neq", ">=": r"\ge", "<=": r"\le"}


def itemised(lines: Iterable[str], name: str = "itemize") -> str:
    """Lines of LaTeX as a list."""
    return "\n".join([rf"\begin{{{name}}}", *(rf"  \item {line}" for line in lines), rf"\end{{{name}}}"])


def tex_words(words: Words) -> str:
    """Words as LaTeX text, with their formulas in the line."""
    return guarded("".join(tex_text(part) if isinstance(part, str) else f"${latex(part)}$" for part in words))


def guarded(text: str) -> str:
    """Text that is no option of a command in front of it, or of the end of a row, though it begins as one does."""
    return f"{{}}{text}" if text.lstrip()[:1] in ("[", "*") else text


@lru_cache(maxsize=4096)
def tex_text(sentence: str) -> str:
    """A sentence as LaTeX text, with nothing left that LaTeX would read as a command."""
    parts = re.split("(!=|[<>]=?)", sentence)
    parts[1::2] = (f"${_SIGNS.get(sign, sign)}$" for sign in parts[1::2])
    parts[::2] = map(plain_text, parts[::2])
    return "".join(parts)
