"""A page for a terminal: Unicode, matrices drawn over several lines, everything within a width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ...core.boxes import Box, Fence, Sign, Space, row
from ...errors import OperandError, described
from ...printing.breaking import broken
from ...printing.layout import Equation, Line, Room, laid_out
from ...printing.media.drawing import columns, unicode_lines
from ...printing.media.unicode import Writer, unicode_text
from ...printing.prose import (
    MARKS,
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Items,
    Paragraph,
    Part,
    Source,
    Statement,
    Step,
    Table,
    Words,
)
from .subscripts import evened

WIDTH = 88
_NARROWEST = 40
_SECOND = "\ue000"  # stands for the second column of a letter
_NARROW = 16  # columns in which sentences are still read
_APART = 2  # columns between a formula and its reason


def text(document: Document, width: int = WIDTH) -> str:
    """The page in lines of at most ``width`` columns.

    Raises OperandError for a width that is no number of columns, 40 at least, and for one that is less than the usual
    and in which a word or a name does not fit.
    """
    if not isinstance(width, int) or isinstance(width, bool) or width < _NARROWEST:
        raise OperandError(f"text: width is a number of columns, {_NARROWEST} at least, not {described(width)}")
    document = evened(document)
    title = _filled(document.title, width)
    blocks = [f"{title}\n{'═' * max(map(columns, title.splitlines()))}"]
    blocks += [_filled(document.summary, width)] if document.summary else []
    if document.result:
        blocks += ["RESULT", *_parts(document.result, width)]
    if document.given:
        blocks += ["GIVEN", _given(document, width)]
    blocks += [_filled(document.conventions, width)] if document.conventions else []
    for section in document.sections:
        blocks += [_filled(_capitals(section.title), width)] if section.title else []
        blocks += _parts(section.parts, width)
    if document.references:
        blocks += ["REFERENCES", "\n".join(_filled(x, width, "  ") for x in document.references)]
    page = "\n\n".join([*blocks, *_foot(document, width)]) + "\n"
    lines = [line for line in page.splitlines() if not (document.command and line.endswith(document.command))]
    if (most := max(map(columns, lines))) > width < WIDTH:
        raise OperandError(f"text: a line of this page needs {most} columns, and width is {width}")
    return page


def said(words: Words) -> str:
    """Words with their formulas in one line."""
    return "".join(piece if isinstance(piece, str) else unicode_text(piece) for piece in words)


def _capitals(title: Words) -> Words:
    """A title in capitals, but for its formulas, in which these would be other symbols."""
    return tuple(piece.upper() if isinstance(piece, str) else piece for piece in title)


def _padded(line: str, width: int) -> str:
    return line + " " * (width - columns(line))


def _filled(words: Words, width: int, margin: str = "") -> str:
    """A paragraph; a formula is not broken where it fits a line."""
    kept = "".join(p if isinstance(p, str) else unicode_text(p).replace(" ", "\u00a0") for p in words)
    return "\n".join(_broken(kept, width, margin, margin))


def _foot(document: Document, width: int) -> Iterator[str]:
    counted = [
        f"{MARKS[status].glyph} {n} {MARKS[status].counted}".replace(" ", "\u00a0") for status, n in document.tally
    ]
    lines = [_filled(("\u00a0· ".join(counted),), width)] if counted else []
    lines += [_checked_by(document.command, width)] if document.command else []
    if lines:
        yield "\n".join(lines)


def _checked_by(command: str, width: int) -> str:
    """The command in one line, so that it can be copied."""
    line = f"Check again: {command}"
    return line if columns(line) <= width else f"Check again:\n  {command}"


def _wrapped(line: str, width: int, hang: int = 0) -> str:
    """A line that is broken between words where it has to be, and goes on further to the right."""
    if columns(line) <= width:
        return line
    text = line.lstrip()
    margin = " " * (len(line) - len(text))
    more = " " * max(hang, len(margin) + 4)
    return "\n".join(_broken(text, width, margin, more, whole=True))


def _broken(text: str, width: int, margin: str, more: str, whole: bool = False) -> list[str]:
    """Words in lines; ``whole`` ones are not broken themselves. A letter of two columns counts as two."""
    fill = textwrap.TextWrapper(
        width, initial_indent=margin, subsequent_indent=more, break_on_hyphens=False, break_long_words=not whole
    )
    lines = fill.wrap("".join(c + _SECOND * (columns(c) - 1) for c in text))
    return [line.replace(_SECOND, "").replace("\u00a0", " ") for line in lines]


def _given(document: Document, width: int) -> str:
    """A table, with meanings below each other; where it has no room for these, each below what it is of."""
    rows = [(unicode_text(x.symbol), said(x.where), x.meaning) for x in document.given]
    widths = [max(columns(str(cells[k])) for cells in rows) for k in range(2)]
    start = sum(widths) + 8
    beside = start + _NARROW <= width or all(start + columns(said(meaning)) <= width for *_, meaning in rows)
    lines = list[str]()
    for symbol, where, meaning in rows:
        line = f"  {_padded(symbol, widths[0])}   {_padded(where, widths[1] if beside else 0)}"
        told = _filled(meaning, width, " " * (start if beside else 6))
        lines += [f"{line}   {told.lstrip()}".rstrip()] if beside else [_wrapped(line, width), *told.splitlines()]
    return "\n".join(lines)


# --- parts ---


def _parts(parts: Iterable[Part], width: int) -> list[str]:
    return [block for part in parts if (block := _part(part, width))]


def _part(part: Part, width: int) -> str:
    match part:
        case Paragraph():
            return _filled((f"{part.head}. ", *part.words) if part.head else part.words, width)
        case Display():
            return _display(part.formulas, width)
        case Items():
            return "\n".join(_filled(item, width, "  ") for item in part.items)
        case Chain():
            return _chain(part.steps, width)
        case Statement():
            return _statement(part, width)
        case Table():
            return _table(part, width)
        case Fold(for_machines=False):
            return "\n\n".join(
                [_filled(part.title, width), *(_indented(block) for block in _parts(part.parts, width - 2))]
            )
        case Source():
            return "\n".join(piece for line in part.text.splitlines() for piece in _code(line, width - 4))
        case Figure():
            return _figure(part, width)
    return ""


def _code(line: str, room: int) -> Iterator[str]:
    """A line of source text, which is broken where it has to be, with a sign there."""
    while columns(line) > room:
        yield f"    {line[: room - 1]}↩"
        line = line[room - 1 :]
    yield f"    {line}".rstrip()


def _figure(part: Figure, width: int) -> str:
    """The picture in lines of text where it has such that fit, else what it shows; and its caption."""
    fits = part.text and max(map(columns, part.text.splitlines())) <= width - 2
    shown = textwrap.indent(part.text, "  ") if fits else _filled((part.alternative,), width)
    return "\n\n".join([shown, *([_filled(part.caption, width)] if part.caption else [])])


def _indented(block: str) -> str:
    return textwrap.indent(block, "  ")


def _statement(part: Statement, width: int) -> str:
    mark = MARKS[part.status]
    title = f" {said(part.title)}." if part.title else ""
    lines = [_filled((f"{mark.glyph} {part.kind} {part.number} ({mark.word}).{title}",), width)]
    lines += [_filled(part.words, width, "  ")] if part.words else []
    lines += [_display((formula,), width) for formula in part.formulas]
    lines += map(_indented, _parts(part.where, width - 2))
    lines += [_filled(("Given: ", *_listed(part.given), "."), width, "  ")] if part.given else []
    return "\n".join([*lines, *(_indented(block) for block in _parts(part.parts, width - 2))])


def _listed(items: Sequence[Words]) -> Words:
    return tuple(piece for k, words in enumerate(items) for piece in ((*(("; ",) * bool(k)), *words)))


def _display(formulas: Sequence[Box], width: int) -> str:
    """Formulas side by side as far as they fit, and those with matrices over several lines."""
    lines: list[list[Box]] = []
    for formula in formulas:
        if not lines or _columns([*lines[-1], formula]) > width - 4:
            lines.append([])
        lines[-1].append(formula)
    blocks = [_side_by_side(several, width) for several in lines]
    between = "\n\n" if any(len(block) > 1 for block in blocks) else "\n"  # matrices one above the other stand apart
    return between.join("\n".join(block) for block in blocks)


def _columns(formulas: Sequence[Box]) -> int:
    return sum(max(map(columns, unicode_lines(box))) for box in formulas) + 5 * (len(formulas) - 1)


def _side_by_side(formulas: Sequence[Box], width: int) -> list[str]:
    if len(formulas) == 1 and _columns(formulas) > width - 4:
        first, *rest = broken(formulas[0], width - 8, 4, lambda box: columns(unicode_text(box)))
        lines = [f"    {unicode_text(first)}", *(f"        {unicode_text(line)}" for line in rest)]
        return [_wrapped(line, width) for line in lines]
    after = (part for box in formulas[1:] for part in (Sign(",", "punctuation"), Space(2.0), box))
    return [f"    {line}".rstrip() for line in unicode_lines(row(formulas[0], *after))]


def _table(part: Table, width: int) -> str:
    rows = [[said(cell) for cell in cells] for cells in ([part.head] if part.head else []) + list(part.rows)]
    widths = [max(columns(cells[k]) for cells in rows) for k in range(len(rows[0]))]
    if sum(widths) + 3 * len(widths) <= width:
        return "\n".join("  " + "   ".join(map(_padded, cells, widths)).rstrip() for cells in rows)
    listed = (line for cells in rows[bool(part.head) :] for line in _as_list(rows[0], cells, bool(part.head)))
    return "\n".join(_wrapped(line, width) for line in listed)


def _as_list(head: Sequence[str], cells: Sequence[str], is_headed: bool) -> Iterator[str]:
    """A row of a table that is wider than the page."""
    heads = head[1:] if is_headed else [""] * (len(cells) - 1)
    most = max(map(columns, heads), default=0)
    yield f"  {cells[0]}"
    yield from (f"      {_padded(name, most)}   {cell}" for name, cell in zip(heads, cells[1:], strict=True))


# --- chains ---


def _chain(steps: Sequence[Step], width: int) -> str:
    """Rows with their relation signs below each other, marks in front and reasons behind."""
    equations = [Equation(step.left, row(step.relation, step.right, *_each(step)), _told(step)) for step in steps]
    write = Writer().written
    room = Room(width - 3, lambda box: columns(write(box)), _columns_of_words, indent=2, apart=_APART, narrow=24)
    block = laid_out(equations, room)
    left, marks = int(block.left), iter(steps)
    lines = []
    for line in block.lines:
        mark = _mark(next(marks)) if line.kind == "first" else " "
        before = write(line.left) if line.left is not None else ""
        rest = "  " * (line.kind == "more") + write(line.right)
        lines.append((f"{mark} {' ' * (left - columns(before))}{before} {rest}".rstrip(), line))
    lines = [(_wrapped(written, width, left + 7), line) for written, line in lines]
    start = max((_end(written) for written, line in lines if line.reason and line.kind != "reason"), default=0)
    return "\n".join(_with_reason(written, line, start, width) for written, line in lines)


def _each(step: Step) -> list[Box]:
    return [] if step.each is None else [Space(2.0), Fence(step.each)]


def _mark(step: Step) -> str:
    return MARKS[step.status].glyph if step.status not in (None, "defined") else " "


def _told(step: Step) -> Words:
    """Why a step holds, and under which conditions."""
    if not step.detail:
        return step.reason
    return (*step.reason, " (", *step.detail, ")") if step.reason else step.detail


def _columns_of_words(words: Words) -> float:
    return columns(said(words))


def _end(written: str) -> int:
    """The columns of the last line."""
    return columns(written.rpartition("\n")[2])


def _with_reason(written: str, line: Line, start: int, width: int) -> str:
    reason = said(line.reason)
    if not reason:
        return written
    if line.kind != "reason" and start + _APART + columns(reason) <= width:
        return f"{written}{' ' * (start - _end(written))}  {reason}"
    if line.kind != "reason" and _end(written) + 4 + columns(reason) <= width:
        return f"{written}  — {reason}"
    margin = " " * 8
    below = "\n".join(_broken(f"— {reason}", width, margin, margin + "  "))
    return below if line.kind == "reason" else f"{written}\n{below}"
