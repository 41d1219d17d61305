r"""Boxes as LaTeX, of which only amsmath and amssymb are needed: ``\operatorname{softmax}(Q K^{\top})``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from itertools import pairwise
from unicodedata import name, normalize

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
from ...errors import OperandError, described
from .neighbours import edge, is_apart, is_prime, link, met
from .spelling import (
    ACCENTS,
    BOLD,
    CAPITALS,
    FONTS,
    FUNCTIONS,
    LETTERS,
    MATRICES,
    PLAIN,
    SPELLINGS,
    STRUT,
    TEXT_ACCENTS,
    THIN,
    TYPESET,
    WIDE_ACCENTS,
    Spelling,
)

_MOST_COLUMNS = 10  # of a matrix of amsmath


def latex(box: Box, safe: str = "") -> str:
    r"""The formula as LaTeX; ``safe="github"`` is spelled so that GitHub shows it.

    >>> from symattn.core.boxes import Fence, Name, function, row
    >>> formula = row(function("softmax"), Fence(Name("x"), "{", "}"))
    >>> print(latex(formula), "or", latex(formula, safe="github"))
    \operatorname{softmax}\{x\} or \mathrm{softmax}\lbrace x \rbrace
    """
    return Writer(safe).written(box)


class Writer:
    """Writes formulas that share parts: each part once."""

    def __init__(self, safe: str = "") -> None:
        self._spelling = spelling_of(safe)
        self._known: dict[Box, str] = {}

    def written(self, box: Box) -> str:
        """The formula as LaTeX."""
        return fold(box, self._of, self._known)

    def _of(self, box: Box, parts: Sequence[str]) -> str:
        return _WRITERS[type(box)](box, parts, self._spelling)


def spelling_of(safe: object) -> Spelling:
    """The spelling that somebody asked for."""
    if not isinstance(safe, str) or safe not in SPELLINGS:
        raise OperandError(f'safe= is "" or "github", for what GitHub shows, not {described(safe)}')
    return SPELLINGS[safe]


def plain_text(words: str) -> str:
    """Words as LaTeX text, with nothing left that LaTeX would read as a command, and no letter that it lacks."""
    return _worded(words, PLAIN)


def _worded(words: str, spelling: Spelling) -> str:
    parts = [typeset(c, spelling) for c in normalize("NFC", words)]
    apart = (" " if len(a) > 3 < len(b) else "" for a, b in pairwise([*parts, ""]))  # what is called by its name
    return _spelled("".join(part + gap for part, gap in zip(parts, apart, strict=True)), spelling.words)


def typeset(character: str, spelling: Spelling = PLAIN) -> str:
    """The character where every TeX has it, or others that mean the same, and else what it is called."""
    if character in spelling.words or _is_plain(character) or character in TYPESET or is_accented(character):
        return character
    if character.isspace():
        return " "
    same = normalize("NFKC", character).replace("\u2044", "/")
    if all(_is_plain(c) or c in spelling.words for c in same):
        return same
    called = name(character, "unknown sign").lower().replace("-", " ")  # which is a place to break a line
    return f"[{called}]" if character.isprintable() else ""


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isprintable()


def is_accented(character: str) -> bool:
    """Whether it is a letter of ASCII under an accent that every TeX sets."""
    base, *accents = [*normalize("NFD", character)]
    return _is_plain(base) and character < "\u0180" and len(accents) == 1 and accents[0] in TEXT_ACCENTS


@singledispatch
def _write(box: Box, parts: Sequence[str], spelling: Spelling) -> str:
    raise TypeError(f"no LaTeX for {type(box).__name__}")


@_write.register
def _(box: Row, parts: Sequence[str], spelling: Spelling) -> str:
    written = parts[0] if parts else ""
    for left, right, part in zip(box.parts, box.parts[1:], parts[1:], strict=False):
        gap = _between(left, right, spelling)
        written += (gap or " " * (written[-1:].isalpha() and part[:1].isalpha())) + part
    return written


def _between(left: Box, right: Box, spelling: Spelling) -> str:
    if isinstance(left, Sign) and left.kind == "prefix":
        return " " if spelling.signs.get(left.mark, "")[-1:].isalpha() else ""
    if (isinstance(right, Sign) and right.kind == "punctuation") or (isinstance(right, Text) and right.words == ":"):
        return ""
    if isinstance(left, Sign) and left.kind == "punctuation":
        return " "
    if _is_close(left, spelling) or _is_close(right, spelling):
        return ""
    before, after = met(left, right)
    linked = link(before, after)
    if linked == "apply" and isinstance(after, Fence):
        return ""
    return f" {spelling.spaces[THIN]} " if linked and is_apart(before, after) else " "


def _is_close(box: Box, spelling: Spelling) -> bool:
    """Whether a box has no space beside it: source text, and a mark that is no command."""
    if isinstance(box, Sign):
        return box.kind == "ordinary" and not spelling.signs.get(box.mark, "\\").startswith("\\")
    return isinstance(box, Code)


@_write.register
def _(box: Name, parts: Sequence[str], spelling: Spelling) -> str:
    letters = _spelled(box.letters, spelling.letters)
    alone = len(box.letters) == 1
    if alone and (box.style == "italic" or (box.style == "upright" and letters.startswith("\\"))):
        return letters
    return f"{BOLD if box.style == 'bold' and _slanted(box.letters) else FONTS[box.style]}{{{letters}}}"


def _slanted(letters: str) -> bool:
    r"""Whether there are letters that ``\mathbf`` leaves as they are."""
    return any(c in LETTERS and c not in CAPITALS for c in letters)


def _spelled(letters: str, table: Mapping[str, str]) -> str:
    """Characters as a table has them, with a space where a command would run into the next letter."""
    if len(letters) == 1:
        return table.get(letters, letters)
    written = ""
    for letter in letters:
        spelled = table.get(letter, letter)
        meets_command = "\\" in written and written.rpartition("\\")[2].isalpha() and spelled[:1].isalpha()
        written += " " * meets_command + spelled
    return written


@_write.register
def _(box: Number, parts: Sequence[str], spelling: Spelling) -> str:
    return box.digits


@_write.register
def _(box: Sign, parts: Sequence[str], spelling: Spelling) -> str:
    if box.kind == "large" and box.mark not in spelling.signs:
        return spelling.large % _spelled(box.mark, spelling.letters)
    halves = {"opening": spelling.left, "closing": spelling.right}.get(box.kind, {})
    spelled = halves.get(box.mark) or spelling.signs.get(box.mark)
    return spelled or "".join(spelling.signs.get(c, c) for c in box.mark)  # several primes


@_write.register
def _(box: Function, parts: Sequence[str], spelling: Spelling) -> str:
    if not (isinstance(box.name, Name) and box.name.style == "upright"):
        return parts[0]
    word = box.name.letters
    return f"\\{word}" if word in FUNCTIONS else spelling.function % _spelled(word, spelling.letters)


@_write.register
def _(box: Fraction, parts: Sequence[str], spelling: Spelling) -> str:
    return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"


@_write.register
def _(box: Root, parts: Sequence[str], spelling: Spelling) -> str:
    if box.degree is None:
        return rf"\sqrt{{{parts[0]}}}"
    degree = parts[1] if parts[1].isalnum() else f"{{{parts[1]}}}"  # which may hold brackets itself
    return rf"\sqrt[{degree}]{{{parts[0]}}}"


@_write.register
def _(box: Script, parts: Sequence[str], spelling: Spelling) -> str:
    base, *scripts = parts
    if is_labelled(box):
        return rf"\xrightarrow{{{scripts[0]}}}"
    if _needs_braces(box):
        base = f"{{{base}}}"
    if box.below is not None:
        base += f"{'_' if base[-1:].isalnum() else spelling.after_mark}{{{scripts.pop(0)}}}"
    if box.above is None:
        return base
    return base + (_primes(box.above) or f"^{{{scripts[0]}}}")


def _primes(above: Box) -> str:
    """The primes of a name, or none where a superscript is another one."""
    return "'" * len(above.mark) if isinstance(above, Sign) and is_prime(above) else ""


def _needs_braces(box: Script) -> bool:
    """Whether a script would be read as one of a part of its base."""
    base = box.base
    if isinstance(base, Script):
        same_side = (base.above and box.above) or (base.below and box.below)
        return bool(same_side) or isinstance(base.above, Sign)
    return isinstance(base, (Row, Differential))


@_write.register
def _(box: Accent, parts: Sequence[str], spelling: Spelling) -> str:
    long = isinstance(box.base, Row) or (isinstance(box.base, Name) and len(box.base.letters) > 1)
    return f"{WIDE_ACCENTS.get(box.mark, ACCENTS[box.mark]) if long else ACCENTS[box.mark]}{{{parts[0]}}}"


@_write.register
def _(box: Fence, parts: Sequence[str], spelling: Spelling) -> str:
    left, right = spelling.left.get(box.left, "."), spelling.right.get(box.right, ".")
    if box.tall or "." in (left, right):
        start = edge(box.inside, 0)
        goes_on = not box.left and isinstance(start, Sign) and start.kind in ("sum", "product")
        return rf"\left{left} {'{} ' * goes_on}{parts[0]} \right{right}"  # else its sign would be one of one operand
    return f"{left}{' ' * left[-1].isalpha()}{parts[0]}{' ' * right[-1].isalpha()}{right}"


@_write.register
def _(box: Matrix, parts: Sequence[str], spelling: Spelling) -> str:
    kind = MATRICES.get((box.left, box.right), "matrix")
    full_size = (kind == "cases" and cell.tall for cell in box.kids)  # cases are set as within a line
    cells = (r"\displaystyle " * full + part for full, part in zip(full_size, parts, strict=True))
    rows = f" {spelling.ends_row} ".join(" & ".join(next(cells) for _ in row) for row in box.rows)
    columns = max(map(len, box.rows), default=0)
    if columns > _MOST_COLUMNS:
        table = rf"\begin{{array}}{{{'c' * columns}}} {rows} \end{{array}}"
    else:
        table = rf"\begin{{{kind}}} {rows} \end{{{kind}}}"
        if kind != "matrix":
            return table
    if not (box.left or box.right):
        return table
    return rf"\left{spelling.left.get(box.left, '.')} {table} \right{spelling.right.get(box.right, '.')}"


@_write.register
def _(box: Text, parts: Sequence[str], spelling: Spelling) -> str:
    return rf"\text{{{_worded(box.words, spelling)}}}"


@_write.register
def _(box: Differential, parts: Sequence[str], spelling: Spelling) -> str:
    return rf"\mathrm{{d}}{parts[0]}"


@_write.register
def _(box: Space, parts: Sequence[str], spelling: Spelling) -> str:
    if box.is_tall:
        return rf"\vphantom{STRUT}"
    return spelling.spaces.get(box.width) or rf"\hspace{{{box.width:g}em}}"


@_write.register
def _(box: Code, parts: Sequence[str], spelling: Spelling) -> str:
    return box.source


_WRITERS = _write.registry
