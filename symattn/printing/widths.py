"""How wide a formula is that TeX sets in display style: an estimate, from classes of letters and TeX's spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise, zip_longest
from typing import Any, Literal

from ..core.boxes import (
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
    SignKind,
    Space,
    Style,
    Text,
    fold,
    is_large,
)
from .media.latex import typeset
from .media.neighbours import edges, is_apart, link
from .prose import Words

Widths = tuple[float, float, float, float]  # in em: in display style, in text style, and in the two sizes of scripts
Atom = Literal["ord", "op", "bin", "rel", "open", "close", "punct", "inner"]

_SIZES: Widths = (1.0, 1.0, 0.79, 0.67)  # small letters are wider than their size says
_DISPLAY, _TEXT, _SCRIPT, _TINY = range(4)
_THIN, _MEDIUM, _THICK = 3 / 18, 4 / 18, 5 / 18
_CLASSES = (  # letters that are about as wide, slanted and upright
    ("ijltιℓ", 0.36, 0.30),
    ("bceoqrsτθ", 0.47, 0.46),
    ("adgvyzγδνσηεϵςρξζIp", 0.52, 0.48),
    ("fhknuxαβκλπφχωψϕμ", 0.59, 0.52),
    ("JLSΓ", 0.67, 0.59),
    ("wFTZ", 0.75, 0.68),
    ("ABCEGOPQRUVYΔΘΛΞΠΣΥΦΨΩ", 0.79, 0.72),
    ("mDHKNX", 0.88, 0.78),
    ("MW", 1.04, 0.95),
    ("0123456789", 0.5, 0.5),
)
_LEANING = "FJMNPTUVWY"  # below which a subscript is tucked
_SLANTED = {letter: slanted for letters, slanted, _ in _CLASSES for letter in letters}
_UPRIGHT = {letter: upright for letters, _, upright in _CLASSES for letter in letters}
_STYLES: dict[Style, float] = {"bold": 1.15, "sans": 0.96, "blackboard": 1.0, "calligraphic": 1.0, "fraktur": 1.0}
_MARKS = {
    **dict.fromkeys(".,;:!⋅·'′", 0.28),
    **dict.fromkeys("()⌊⌋⌈⌉⟨⟩", 0.39),
    **dict.fromkeys("[]|∣", 0.28),
    **dict.fromkeys("{}/‖∗*√−-", 0.5),
    **dict.fromkeys("∈∧∨¬∪∩∂", 0.62),
    **dict.fromkeys("→←⇒⇔↦≔∞", 1.03),
    **dict.fromkeys("…⋯", 1.17),
    "−": 0.78,
    "-": 0.78,
    " ": 0.33,
}
_ATOMS: dict[SignKind, Atom] = {
    "relation": "rel",
    "sum": "bin",
    "product": "bin",
    "prefix": "ord",
    "punctuation": "punct",
    "large": "op",
    "opening": "open",
    "closing": "close",
    "ordinary": "ord",
}
_LARGE = {"∑": (1.44, 1.06), "∏": (1.28, 0.94), "∫": (1.0, 0.66)}


def width(box: Box) -> float:
    """The width of a formula, in em of Computer Modern."""
    return fold(box, _widths)[_DISPLAY]


def width_of_words(words: Words) -> float:
    """The width of words with formulas in the line, in em."""
    return sum((_said(part) if isinstance(part, str) else fold(part, _widths))[_TEXT] for part in words)


class Ruler:
    """Measures formulas that share parts: each part once."""

    def __init__(self) -> None:
        self._known: dict[Box, Widths] = {}

    def width(self, box: Box) -> float:
        """The width of a formula, in em."""
        return fold(box, _widths, self._known)[_DISPLAY]


def _widths(box: Box, kids: Sequence[Widths]) -> Widths:
    return _WIDTHS[type(box)](box, kids)


def _of_sign(box: Sign, kids: Sequence[Widths]) -> Widths:
    if box.kind == "large":
        return _large(box.mark)
    return _letters("o mod" if box.mark == "mod" else box.mark, "upright")


def _of_fraction(box: Fraction, kids: Sequence[Widths]) -> Widths:
    _, text, script, tiny = map(max, *kids)
    return text + 0.24, script + 0.24, tiny + 0.24, tiny + 0.24


def _of_root(box: Root, kids: Sequence[Widths]) -> Widths:
    degree = 0.0 if len(kids) == 1 else max(0.0, kids[1][_TINY] - 0.28)
    return _together(kids[0], _sized(1.0 if box.tall else 0.83), (degree,) * 4)


def _of_fence(box: Fence, kids: Sequence[Widths]) -> Widths:
    tall = box.tall
    return _beside(_beside(kids[0], _mark(box.left, tall)), _mark(box.right, tall))


def _beside(a: Widths, b: Widths) -> Widths:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


def _together(*widths: Widths) -> Widths:
    display, text, script, tiny = map(sum, zip(*widths, strict=True))
    return display, text, script, tiny


def _sized(em: float) -> Widths:
    """What scales with the size of letters."""
    display, text, script, tiny = _SIZES
    return em * display, em * text, em * script, em * tiny


_D = _sized(0.556)  # of a gradient


@lru_cache(maxsize=4096)
def _said(words: str) -> Widths:
    """Words, of which LaTeX says what it lacks by its name."""
    return _letters(words if words.isascii() else "".join(map(typeset, words)), "upright")


@lru_cache(maxsize=4096)
def _letters(letters: str, style: Style) -> Widths:
    """Letters in a row; where no class has one it is a mark."""
    of_class = _SLANTED if style == "italic" else _UPRIGHT
    return _sized(_STYLES.get(style, 1.0) * sum(of_class.get(c) or _MARKS.get(c, 0.78) for c in letters))


def _ink(source: str) -> str:
    """The signs of LaTeX source, one for a command."""
    ink, in_command = "", False
    for c in source:
        if not (in_command and c.isalpha()):
            ink += "" if c in "\\{}^_ " else c
            ink += "o" if c == "\\" else ""
            in_command = c == "\\"
    return ink


def _large(mark: str) -> Widths:
    """A large sign, in display style larger than in a line; one that is a word is as wide in both."""
    if mark not in _LARGE:
        return _letters(mark, "upright")
    display, in_line = _LARGE[mark]
    _, text, script, tiny = _sized(in_line)
    return display, text, script, tiny


def _of_script(box: Script, kids: Sequence[Widths]) -> Widths:
    base, *scripts = kids
    script, tiny = (max(widths[size] for widths in scripts) for size in (_SCRIPT, _TINY))
    leans = isinstance(box.base, Name) and box.base.style == "italic" and box.base.letters in _LEANING
    gap = 0.05 - (0.13 if leans and box.above is None else 0.0)  # where a letter leans, a subscript is tucked
    whole = _beside(base, (script + gap, script + gap, tiny + gap, tiny + gap))
    display = max(base[_DISPLAY], script) if is_large(box.base) else whole[_DISPLAY]
    return display, whole[_TEXT], whole[_SCRIPT], whole[_TINY]


@lru_cache(maxsize=4096)
def _mark(mark: str, grown: bool) -> Widths:
    """A mark of a fence: one that grows is wider, and none leaves a little room."""
    if not mark:
        return (0.12,) * 4
    em = _MARKS[mark]
    return (1.9 * em, 1.5 * em, 1.5 * em, 1.5 * em) if grown else _sized(em)


def _of_matrix(box: Matrix, kids: Sequence[Widths]) -> Widths:
    """Cells are set in text style, tall ones of cases in display style, and columns stand an em apart."""
    cases = (box.left, box.right) == ("{", "")
    cells = (kid[_DISPLAY if cases and cell.tall else _TEXT] for kid, cell in zip(kids, box.kids, strict=True))
    rows = [[next(cells) for _ in row] for row in box.rows]
    em = sum(map(max, zip_longest(*rows, fillvalue=0.0))) + max(map(len, rows)) - 1.0
    em += sum(_mark(mark, grown=True)[_DISPLAY] for mark in (box.left, box.right))
    return (em,) * 4


# --- the space between parts of a row ---


def _of_row(row: Row, kids: Sequence[Widths]) -> Widths:
    ends = [edges(part) for part in row.parts if not isinstance(part, Space)]
    sides = [(_side(first, 0), _side(last, -1)) for first, last in ends]
    in_line = in_scripts = 0.0  # where only names of functions and words stand apart
    for k, ((_, left), (right, _)) in enumerate(pairwise(ends)):
        touching = sides[k][1], sides[k + 1][0]
        if touching != ("ord", "ord"):
            em = _between(_met(sides, k, 1), _met(sides, k + 1, 0))
            in_line += em
            in_scripts += em if "op" in touching else 0.0
        if link(left, right) and is_apart(left, right):
            in_line += _THIN
            in_scripts += _THIN
    return _together(*kids, (in_line, in_line, in_scripts * _SIZES[_SCRIPT], in_scripts * _SIZES[_TINY]))


def _side(box: Box, end: Literal[0, -1]) -> Atom:
    """What TeX takes an edge for that is the left or the right end of a box."""
    if isinstance(box, Name):
        return "ord"
    if isinstance(box, Sign):
        return _ATOMS[box.kind]
    if isinstance(box, Fence):
        return "inner" if box.tall else "close" if end else "open"
    if isinstance(box, Function):
        return "op" if isinstance(box.name, Name) and box.name.style == "upright" else "ord"
    return "inner" if isinstance(box, Matrix) else "ord"


def _met(sides: Sequence[tuple[Atom, Atom]], k: int, end: Literal[0, 1]) -> Atom:
    """The end of a part where it stands: a sign of a sum or a product that lacks an operand is a mark."""
    atom = sides[k][end]
    if atom != "bin":
        return atom
    before = sides[k - 1][1] if k else None
    after = sides[k + 1][0] if k + 1 < len(sides) else None
    lacks = before in (None, "bin", "op", "rel", "open", "punct") or after in (None, "rel", "close", "punct")
    return "ord" if lacks else "bin"


@cache
def _between(left: Atom, right: Atom) -> float:
    """The space between two atoms (The TeXbook, chapter 18)."""
    if "bin" in (left, right):
        return _MEDIUM
    if left == "open" or right == "close" or (left, right) == ("rel", "rel"):
        return 0.0
    if "rel" in (left, right):
        return 0.0 if right == "punct" else _THICK
    if left == "punct" or "inner" in (left, right):
        return _THIN
    return _THIN if right == "op" or (left == "op" and right == "ord") else 0.0


_WIDTHS: Mapping[type[Box], Callable[[Any, Sequence[Widths]], Widths]] = {
    Row: _of_row,
    Name: lambda box, kids: _letters(box.letters, box.style),
    Number: lambda box, kids: _letters(box.digits, "upright"),
    Text: lambda box, kids: _said(box.words),
    Sign: _of_sign,
    Fraction: _of_fraction,
    Root: _of_root,
    Script: _of_script,
    Accent: lambda box, kids: kids[0],
    Function: lambda box, kids: kids[0],
    Fence: _of_fence,
    Matrix: _of_matrix,
    Differential: lambda box, kids: _beside(kids[0], _D),
    Space: lambda box, kids: (box.width,) * 4,
    Code: lambda box, kids: _letters(_ink(box.source), "italic"),
}
