"""What the words of LaTeX mean, for who reads it: the tables of spelling, from the other side."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.boxes import (
    Accent,
    Box,
    Differential,
    Fence,
    Function,
    Name,
    Number,
    Row,
    Script,
    Sign,
    Space,
    Style,
    function,
    row,
)
from .neighbours import edge, stand_apart
from .spelling import (
    ACCENTS,
    ALIKE,
    FONTS,
    FONTS_ALIKE,
    FUNCTIONS,
    LEFT,
    LETTERS,
    MATRICES,
    RIGHT,
    SIGNS,
    SPACES,
    THIN,
    WIDE_ACCENTS,
    WORDS,
)

_KINDS = {mark: kind for kind, marks in SIGNS.items() for mark in marks}
_MARKS = {word: mark for marks in SIGNS.values() for mark, word in marks.items()} | ALIKE
_LETTERS = {word: letter for letter, word in LETTERS.items()}
_SPACES = {word: em for em, word in SPACES.items()} | {"~": 1 / 3, r"\thinspace": THIN, r"\enspace": 0.5}
_CHARACTERS = {written: character for character, written in WORDS.items()} | {"~": "\u00a0", r"\ ": " "}
STYLES = {word: style for style, word in FONTS.items()} | FONTS_ALIKE
ACCENTED = {word: mark for table in (ACCENTS, WIDE_ACCENTS) for mark, word in table.items()}
OPENING = {word: mark for mark, word in LEFT.items()} | {r"\lbrace": "{", r"\lbrack": "["}
CLOSING = {word: mark for mark, word in RIGHT.items()} | {r"\rbrace": "}", r"\rbrack": "]"}
BARS = {"|": "|", r"\vert": "|", r"\|": "‖", r"\Vert": "‖"}
DELIMITERS = {**OPENING, **CLOSING, **BARS, ".": ""}
ENVIRONMENTS = {name: marks for marks, name in MATRICES.items()}
SIZES = {rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")} | {
    r"\limits", r"\nolimits", r"\displaystyle", r"\textstyle",
}  # fmt: skip
LARGE = frozenset(SIGNS["large"])
UNSEEN = frozenset(rf"\math{kind}" for kind in ("ord", "op", "bin", "rel", "open", "close", "punct", "inner")) | {
    r"\smash", r"\ensuremath",
}  # fmt: skip
"""What sets its argument as it is, with other space around it."""
TEXT_STYLES: dict[str, Style] = {r"\textit": "italic", r"\textbf": "bold", r"\textsf": "sans", r"\texttt": "typewriter"}
MEANT = {
    "\\": "a backslash needs a command behind it",
    "$": "a name stands within a formula: leave out the $ signs",
    "%": r"% begins a comment in LaTeX: write \%",
    "#": r"# is not allowed here: write \#",
    "&": r"& ends a cell of a matrix: write \&",
    r"\over": r"\over takes all of its group: write \frac{...}{...}",
    r"\bf": r"\bf takes all of its group: write \mathbf{...}",
    r"\rm": r"\rm takes all of its group: write \mathrm{...}",
    r"\cal": r"\cal takes all of its group: write \mathcal{...}",
}
"""What somebody meant who wrote what has no place here."""


def leaf(word: str, style: Style) -> Box | None:
    """The box of a word that stands for itself, or None where it is not known."""
    if word in _LETTERS or word in LETTERS or (len(word) == 1 and word.isascii() and word.isalpha()):
        return Name(_LETTERS.get(word, word), style)
    if word[0].isdecimal() and word.isascii():
        return Number(word)
    if word[0] == "\\" and word[1:] in FUNCTIONS:
        return function(word[1:])
    if word in _SPACES:
        return Space(_SPACES[word])
    if word == "*":
        return Sign("*", "product")
    mark = _MARKS.get(word, word)
    return Sign(mark, _KINDS[mark]) if mark in _KINDS else None


def as_word(box: Box, style: Style) -> Box:
    """Letters and digits side by side in one font are one name."""
    letters = [_letters(part, style) for part in (box.parts if isinstance(box, Row) else (box,))]
    return Name("".join(letters), style) if letters and all(letters) else box


def _letters(box: Box, style: Style) -> str:
    if isinstance(box, Name) and box.style == style:
        return box.letters
    if isinstance(box, Number):
        return box.digits
    return "_" if isinstance(box, Sign) and box.mark == "_" else ""


def words_of(source: str) -> str | None:
    r"""The words of ``\text{...}``, or None where it holds more than words."""
    words, at = "", 0
    while at < len(source):
        found = next((written for written in _CHARACTERS if source.startswith(written, at)), source[at])
        if found in ("\\", "$", "{", "}"):
            return None
        words += _CHARACTERS.get(found, found)
        at += len(found)
    return words


def side_by_side(parts: Sequence[Box], in_word: bool) -> Box:
    """The row of parts that have been read one after the other; the d of an upright word is only a letter."""
    told = _with_prefixes(parts)
    return row(*_without_thin_spaces(told if in_word else _with_differentials(told)))


def _with_prefixes(parts: Sequence[Box]) -> list[Box]:
    """A plus or a minus with nothing before it is a sign of what follows."""
    told: list[Box] = []
    for part in parts:
        if isinstance(part, Sign) and part.mark in "+−±∓" and _awaits(told[-1:]):
            part = Sign(part.mark, "prefix")
        told.append(part)
    return told


def _awaits(before: Sequence[Box]) -> bool:
    last = edge(before[0], -1) if before else Sign("", "prefix")
    return isinstance(last, Sign) and (last.kind != "ordinary" or last.mark in (":", "/"))


def _with_differentials(parts: Sequence[Box]) -> list[Box]:
    """An upright d in front of a name or a fence is the one of a gradient."""
    told: list[Box] = []
    for part in parts:
        before = told[-1] if told else None
        is_d = isinstance(before, Name) and (before.letters, before.style) == ("d", "upright")
        if is_d and isinstance(edge(part, 0), (Name, Accent, Fence)):
            told[-1] = Differential(part)
        else:
            told.append(part)
    return told


def _without_thin_spaces(parts: Sequence[Box]) -> list[Box]:
    """Thin spaces that stand between words anyway are none of their own."""
    return [
        part
        for k, part in enumerate(parts)
        if not (isinstance(part, Space) and part.width == THIN and 0 < k < len(parts) - 1)
        or not stand_apart(parts[k - 1], parts[k + 1])
    ]


def with_script(base: Script, word: str, box: Box) -> Script:
    """A base with one more script, which ``_`` or ``^`` has in front."""
    inside = base.base
    if isinstance(inside, Function) and isinstance(inside.name, Name) and inside.name.letters in LARGE:
        inside = Sign(inside.name.letters, "large")  # its scripts are limits
    if word == "_":
        return Script(inside, box, base.above)
    return Script(inside, base.below, box if base.above is None else row(base.above, box))
