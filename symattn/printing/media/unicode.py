"""Unicode text in one line: ``Q Kᵀ / √d``, ``∑ₖ₌₀ᵈ⁻¹ Qᵢₖ Kⱼₖ``.

Small letters stand for a script where all of it can be written so, else ``^(...)`` and ``_(...)``. A transpose is
``ᵀ``; a size T in an exponent is ``^T``, so that the two are told apart.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from ...core.boxes import (
    Accent,
    Box,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Text,
    fold,
    is_labelled,
)
from .alphabets import in_font, letters_of
from .neighbours import MINUS, Level, edge, is_prime, least, level_of, link, met, opens_fence

_RAISED = dict(
    zip(
        "abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRUVWβγδθϕχ0123456789+-−=′⊤⊺",
        "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵁⱽᵂᵝᵞᵟᶿᵠᵡ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼′ᵀᵀ",
        strict=True,
    )
)  # no T, which is a transpose
_LOWERED = dict(zip("aehijklmnoprstuvxβγρϕχ0123456789+-−=", "ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ₀₁₂₃₄₅₆₇₈₉₊₋₋₌", strict=True))
_COMBINING = {
    "^": "\u0302", "~": "\u0303", "‾": "\u0304", "˙": "\u0307", "¨": "\u0308", "→": "\u20d7", "ˇ": "\u030c",
    "˘": "\u0306", "´": "\u0301", "ˋ": "\u0300", "_": "\u0332",
}  # fmt: skip
_ACCENTS = {
    "^": "hat", "~": "tilde", "‾": "bar", "˙": "dot", "¨": "ddot", "→": "vec", "ˇ": "check", "˘": "breve",
    "´": "acute", "ˋ": "grave", "_": "underline",
}  # fmt: skip
_CONSTANTS = {"e": "ℯ", "i": "ⅈ", "G": "𝖦"}  # upright letters, which text does not tell from a size e
_ROOTS = {"2": "√", "3": "∛", "4": "∜"}


@dataclass(frozen=True, slots=True)
class Written:
    """A text, how tightly it holds together, and itself in small letters, above and below, where these exist."""

    text: str
    level: Level = Level.ATOM
    raised: str | None = None
    lowered: str | None = None

    def at_least(self, level: Level) -> str:
        """The text, between parentheses where it is looser than its place needs."""
        return self.text if self.level >= level else f"({self.text})"


def unicode_text(box: Box) -> str:
    """The formula in one line of Unicode text."""
    return fold(box, in_one_line).text


class Writer:
    """Writes formulas that share parts: each part once."""

    def __init__(self) -> None:
        self._known: dict[Box, Written] = {}

    def written(self, box: Box) -> str:
        """The formula in one line of Unicode text."""
        return fold(box, in_one_line, self._known).text


def in_one_line(box: Box, inside: Sequence[Written]) -> Written:
    """A box from what is inside it."""
    return _WRITERS[type(box)](box, inside)


def _small(text: str, table: dict[str, str]) -> str | None:
    return "".join(table[c] for c in text) if text and all(c in table for c in text) else None


def _token(text: str) -> Written:
    return Written(text, Level.ATOM, _small(text, _RAISED), _small(text, _LOWERED))


def gap(before: Box, after: Box) -> str:
    """The space between neighbours of a row."""
    left, right = met(before, after)
    kinds = [box.kind if isinstance(box, Sign) else "" for box in (left, right)]
    if isinstance(left, Space) or isinstance(right, Space) or _has_space(left, -1) or _has_space(right, 0):
        return ""
    if kinds[1] == "punctuation":
        return ""
    if {"relation", "sum", "product"} & {*kinds} or kinds[0] in ("punctuation", "large"):
        return " "
    if isinstance(left, Text) or isinstance(right, Text):
        return ""
    if kinds[1] in ("prefix", "large"):
        return " " if kinds[0] != "prefix" else ""
    linked = link(left, right)
    if not linked and isinstance(before, Script) and not isinstance(right, Sign):
        return " "  # a script of a sign: ∇_S L
    return " " if linked == "times" or (linked and not opens_fence(right)) else ""


def _has_space(box: Box, end: Literal[0, -1]) -> bool:
    """Whether words bring the space between them and what is next to them."""
    return isinstance(box, Text) and (not box.words or box.words[end].isspace())


def _row(box: Row, inside: Sequence[Written]) -> Written:
    seen = [(part, written) for part, written in zip(box.parts, inside, strict=True) if written.text]
    parts = [part for part, _ in seen]
    if len(seen) < 2:
        return seen[0][1] if seen else Written("")
    text = ""
    for k, (part, written) in enumerate(seen):
        text += (gap(parts[k - 1], part) if k else "") + written.at_least(least(parts, k))
    if any(isinstance(a, Number) and isinstance(b, Number) for a, b in pairwise(parts)):
        return Written(text, level_of(parts))  # small digits would run together
    raised, lowered = _joined(w.raised for _, w in seen), _joined(w.lowered for _, w in seen)
    return Written(text, level_of(parts), raised, lowered)


def _joined(small: Iterable[str | None]) -> str | None:
    letters = [*small]
    return None if None in letters else "".join(filter(None, letters))


def _name(box: Name, inside: Sequence[Written]) -> Written:
    if box.style == "upright" and box.letters in _CONSTANTS:
        return Written(_CONSTANTS[box.letters])
    if box.style in ("italic", "upright"):
        return _token(box.letters) if len(box.letters) == 1 else Written(box.letters)
    return Written(in_font(box.letters, box.style))


def _number(box: Number, inside: Sequence[Written]) -> Written:
    return _token(box.digits.translate(MINUS))


def _sign(box: Sign, inside: Sequence[Written]) -> Written:
    return _token(box.mark.translate(MINUS))


def _function(box: Function, inside: Sequence[Written]) -> Written:
    return Written(inside[0].text, inside[0].level)


def _fraction(box: Fraction, inside: Sequence[Written]) -> Written:
    above, below = inside
    large = isinstance(edge(box.above, 0), Sign)  # a sum would take in what it is divided by
    over = above.at_least(Level.ATOM if large else Level.FACTORS)
    return Written(f"{over} / {below.at_least(Level.ROOT)}", Level.PRODUCT)


def _root(box: Root, inside: Sequence[Written]) -> Written:
    base = inside[0].text if is_token(box.inside) else f"({inside[0].text})"
    degree = "2" if box.degree is None else inside[1].text
    if degree in _ROOTS:
        return Written(_ROOTS[degree] + base, Level.ROOT)
    return Written(f"{base}^(1 / {inside[1].at_least(Level.ROOT)})")


def is_token(box: Box) -> bool:
    """Whether a box is one letter, word or number, with a subscript and primes at most."""
    while isinstance(box, Script) and (box.above is None or is_prime(box.above)):
        box = box.base
    return isinstance(box, (Name, Number, Accent, Differential))


def _script(box: Script, inside: Sequence[Written]) -> Written:
    if is_labelled(box):
        return Written(f"──{inside[1].text.replace(' / ', '/')}──→")
    base = f"({inside[0].text})" if is_scripted(box) else inside[0].at_least(Level.ATOM)
    return Written(base + scripts(box, inside[1:]))


def is_scripted(box: Script) -> bool:
    """Whether the base has a script already that would run into this one."""
    base = box.base
    if not isinstance(base, Script) or (base.below is None and is_prime(base.above)):
        return False
    return base.above is not None or box.below is not None


def scripts(box: Script, inside: Sequence[Written]) -> str:
    """What stands behind the base."""
    written = [*inside]
    below = "" if box.below is None else _scripted("_", written[0].lowered, box.below, written.pop(0))
    return below + ("" if box.above is None else _scripted("^", written[0].raised, box.above, written[0]))


def has_small_letters(script: Box) -> bool:
    """Whether all of a subscript can be written in small letters."""
    return fold(script, in_one_line).lowered is not None


def _scripted(mark: str, small: str | None, box: Box, written: Written) -> str:
    if small is not None:
        return small
    box = _sole(box)
    fenced = isinstance(box, Fence) and (box.left, box.right) in (("(", ")"), ("[", "]"))
    alone = isinstance(box, (Name, Number, Sign, Accent, Code)) or fenced
    return mark + (written.text if alone else f"({written.text})")


def _sole(box: Box) -> Box:
    """The one box that a row shows, where it has only spaces beside it."""
    shown = [part for part in box.parts if not isinstance(part, Space)] if isinstance(box, Row) else [box]
    return shown[0] if len(shown) == 1 else box


def _accent(box: Accent, inside: Sequence[Written]) -> Written:
    mark = _COMBINING.get(box.mark, "")
    if isinstance(box.base, Name) and len(box.base.letters) == 1 and mark:
        return Written(unicodedata.normalize("NFC", inside[0].text + mark))
    return Written(f"{_ACCENTS.get(box.mark, box.mark)}({inside[0].text})")


def _fence(box: Fence, inside: Sequence[Written]) -> Written:
    text = f"{box.left}{inside[0].text}{box.right}"
    if not (box.left or box.right):
        return Written(text, inside[0].level)
    if (box.left, box.right) != ("(", ")"):  # or half of one that is broken over two lines
        return Written(text)
    raised, lowered = inside[0].raised, inside[0].lowered
    return Written(text, Level.ATOM, raised and f"⁽{raised}⁾", lowered and f"₍{lowered}₎")


def _matrix(box: Matrix, inside: Sequence[Written]) -> Written:
    cells = iter(inside)
    rows = ["".join(_cell(cell, next(cells).text, k) for k, cell in enumerate(row)) for row in box.rows]
    left, right = box.left or "[", box.right or ("}" if box.left == "{" else "]")
    return Written(f"{left}{'; '.join(rows)}{right}")


def _cell(box: Box, text: str, k: int) -> str:
    words = isinstance(edge(box, 0), Text)
    return text if not k else f" {text.lstrip()}" if words else f", {text}"


def _text(box: Text, inside: Sequence[Written]) -> Written:
    return Written(box.words, Level.ATOM if box.words.isalpha() else Level.LIST)


def _differential(box: Differential, inside: Sequence[Written]) -> Written:
    of = box.of.base if isinstance(box.of, Script) else box.of  # the scripts are those of the whole
    return Written(f"d{inside[0].text}" if is_token(of) else f"d({inside[0].text})")


def _space(box: Space, inside: Sequence[Written]) -> Written:
    return Written(" " * round(2 * box.width), Level.LIST)


def _code(box: Code, inside: Sequence[Written]) -> Written:
    return Written(letters_of(box.source))


_WRITERS: dict[type[Box], Callable[[Any, Sequence[Written]], Written]] = {
    Row: _row, Name: _name, Number: _number, Sign: _sign, Function: _function, Fraction: _fraction, Root: _root,
    Script: _script, Accent: _accent, Fence: _fence, Matrix: _matrix, Text: _text, Differential: _differential,
    Space: _space, Code: _code,
}  # fmt: skip
