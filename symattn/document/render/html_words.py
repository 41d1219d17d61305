"""Words and formulas in HTML: a formula is several elements of MathML, between which a line may break."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise, takewhile

from ...core.boxes import Box, Sign, Space, row
from ...printing.breaking import Piece, pieces
from ...printing.media.mathml import mathml
from ...printing.media.neighbours import stand_apart
from ...printing.media.unicode import unicode_text
from ...printing.prose import MARKS, Status, Words
from ...printing.widths import width

NARROW = 13.0  # em: what every page has room for, within folds and claims as well
_WHOLE = 9.0  # em: a formula within words that is not broken
_TOUCHING = 12  # letters that stay with the formula beside them
_SHORT = 4.5  # em: what is no line by itself
_ROW = 10.0  # em: of a row whose left side is short, on a telephone
_THIN = Space(1 / 6)
_QUAD = "\u2003"  # after which a line may break


def escaped(words: str) -> str:
    """Words as they stand between tags and in attributes."""
    return escape(legal(words))


def legal(words: str) -> str:
    """Words without the characters that are not allowed in HTML at all."""
    return "".join(c if c in "\n\t" or _is_allowed(ord(c)) else "\ufffd" for c in words)


def _is_allowed(code: int) -> bool:
    """No control character, no half of a surrogate pair, no code that is never a character."""
    return code >= 0x20 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000 and code & 0xFFFE != 0xFFFE


def words_html(words: Words) -> str:
    """Words and formulas; what touches a formula, as a comma does, stays in its line."""
    written, before, taken = [], "", 0
    for part, after in zip(words, (*words, "")[1:], strict=True):
        if isinstance(part, str):
            before = _last_word(part[taken:]) if isinstance(after, Box) else ""
            written.append(escaped(part[taken : len(part) - len(before)]))
            taken = 0
        else:
            touching = _first_word(after) if isinstance(after, str) else ""
            written.append(_within_words(part, escaped(before), escaped(touching)))
            before, taken = "", len(touching)
    return "".join(written)


def _first_word(text: str) -> str:
    """What stands before the first space, as far as that is short."""
    word = "".join(takewhile(lambda c: not c.isspace(), text))
    return word if len(word) <= _TOUCHING else ""


def _last_word(text: str) -> str:
    return _first_word(text[::-1])[::-1]


def plain(words: Words) -> str:
    """Words in one line of text, as the title of a window is."""
    return " ".join("".join(part if isinstance(part, str) else unicode_text(part) for part in words).split())


def _within_words(box: Box, before: str, after: str) -> str:
    """A formula among words, broken only where it is long, and held together with what touches it."""
    parts = [Piece(0, box)] if width(box) <= _WHOLE else pieces_of(box)
    written = [_within_line(piece.box) for piece in parts]
    written[0] = before + written[0]
    written[-1] += after
    held = (span("whole", part) if before or after else part for part in written)
    return "".join(_gap(piece.price) * (k > 0) + part for k, (piece, part) in enumerate(zip(parts, held, strict=True)))


def _within_line(box: Box) -> str:
    """A piece that is never broken, and is moved within its place where the page is narrower."""
    spoken_of = Sign(box.mark) if isinstance(box, Sign) else box  # without the room for operands
    written = mathml(spoken_of, display=False)
    return span("wide", written) if width(box) > NARROW else written


def _gap(price: float) -> str:
    """What stands before a piece: a place to break, or the room between two formulas."""
    return _QUAD if price < 0 else "<wbr>"


def formula_html(box: Box) -> str:
    """A formula that a browser breaks over lines."""
    return in_line(pieces_of(box))


def pieces_of(box: Box) -> list[Piece]:
    """The pieces, of which a short one has its neighbour with it, and what was between two factors."""
    found = pieces(box, NARROW)
    for price in sorted({piece.price for piece in found[1:] if piece.price >= 0}, reverse=True):
        found = _joined(found, price)
    made = [found[0]]
    for before, piece in pairwise(found):
        apart = stand_apart(before.box, piece.box)
        made.append(Piece(piece.price, row(_THIN, piece.box)) if apart else piece)
    return made


def _joined(found: Sequence[Piece], price: float) -> list[Piece]:
    """Pieces, of which short ones are one where a break between them has this price."""
    made = [found[0]]
    for piece in found[1:]:
        if piece.price == price and _are_one(made[-1].box, piece):
            made[-1] = Piece(made[-1].price, row(made[-1].box, piece.box))
        else:
            made.append(piece)
    return made


def _are_one(before: Box, piece: Piece) -> bool:
    """Whether a line would hold too little, before a break or after it."""
    held, new = width(before), width(piece.box)
    return held + new < _ROW and (held < _SHORT or (piece.price > 0 and held < 2 * _SHORT and new < _SHORT / 2))


def in_line(parts: Sequence[Piece]) -> str:
    """Pieces side by side; those between which a break costs more are held together as long as that is possible."""
    if len(parts) == 1:
        return mathml(parts[0].box, display=False)
    cheapest = min(piece.price for piece in parts[1:])
    groups: list[list[Piece]] = []
    for piece in parts:
        if not groups or piece.price == cheapest:
            groups.append([])
        groups[-1].append(piece)
    written = (span("piece", in_line(group)) if len(group) > 1 else in_line(group) for group in groups)
    return _gap(cheapest).join(written)


def span(kind: str, inside: str) -> str:
    return f'<span class="{kind}">{inside}</span>'


def badge(status: Status, words: str) -> str:
    """What was done with a step, or with several."""
    return f'<span class="badge {status}"><b aria-hidden="true">{MARKS[status].glyph}</b> {words}</span>'
