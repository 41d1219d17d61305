r"""Spellings that a user may not give: those that read as something else that is printed.

``A^{\top}``, ``2 A`` and ``\sigma(A)`` are expressions of ``A`` where ``A`` is another symbol; ``I_{n}`` and ``0`` are
constants. A subscript, a prime, an accent or a letter of one's own makes a name: ``A_{1}``, ``A'``, ``\Delta A``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..core.boxes import (
    Accent,
    Box,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Text,
    fold,
)
from ..errors import NamingError
from .media.latex import latex

_UNSEEN = ("\\phantom", "\\hphantom", "\\vphantom", "\\strut", "\\mathstrut", "\\null", "\\relax")
_ALIKE = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο" + "АВЕКМНОРСТХаеорсух",  # Greek, then Cyrillic
    "ABEZHIKMNOPTYXo" + "ABEKMHOPCTXaeopcyx",
)


def by_shape(written: str) -> str:
    """Text with the letters of other alphabets that look like Latin ones as these."""
    return written.translate(_ALIKE)


def ink(box: Box) -> str:
    """The letters and digits of a formula, as they are read: what looks alike in some medium has the same."""
    letters, pending = "", [box]
    while pending:
        part = pending.pop()
        if kids := part.kids:
            pending += kids[::-1]
            letters += "d" * isinstance(part, Differential)
            continue
        match part:
            case Name(written) | Number(written) | Sign(written) | Text(written) | Code(written):
                letters += written
    plain = letters if letters.isascii() else by_shape(unicodedata.normalize("NFKD", letters))
    return "".join(filter(str.isalnum, plain))


def is_unseen(box: Box) -> bool:
    """Whether nothing of a formula is to be seen."""

    def unseen(part: Box, kids: Sequence[bool]) -> bool:
        if isinstance(part, Code):
            return part.source.startswith(_UNSEEN)
        return isinstance(part, Space) or (isinstance(part, (Row, Script)) and all(kids))

    return fold(box, unseen)


def check_spellings(spelled: Mapping[str, Box], printed: Mapping[str, Box], sizes: Collection[str]) -> None:
    """No spelling is a constant, or an expression of other symbols; raises NamingError."""
    written = {name: latex(box) for name, box in printed.items()}
    below = {written[name] for name in sizes}
    for name, box in spelled.items():
        shown = latex(box)
        if _is_constant(box, below):
            raise NamingError(f"names spells {name!r} as {shown}, which is a constant: spell it otherwise")
        others = {other for other in written.values() if other != shown}
        if _reads(box, others):
            raise NamingError(f"names spells {name!r} as {shown}, an expression of other symbols: spell it otherwise")


def _is_constant(box: Box, sizes: Collection[str]) -> bool:
    r"""Whether it is a number, ``e``, ``\pi``, or ones or the identity with a size."""
    match box:
        case Number() | Name(letters="π", style="italic") | Name(letters="e", style="upright"):
            return True
        case Name(letters="0" | "1", style="bold") | Script(base=Name(letters="0" | "1", style="bold")):
            return True
        case Script(base=Name(letters="I", style="italic"), below=Box() as size, above=None):
            return isinstance(size, Number) or latex(size) in sizes
    return isinstance(box, Sign) and box.mark == "∞"


def _reads(box: Box, others: Collection[str]) -> bool:
    """Whether all of a formula means something without it, and other symbols are in it."""

    def meaning(part: Box, kids: Sequence[bool | None]) -> bool | None:
        """True for what has other symbols, False for what has no letters of its own, None for what is a name."""
        if latex(part) in others:
            return True
        match part:
            case Number() | Space() | Sign() | Name(letters="1", style="bold"):
                return False
            case Function(name=Name(style="upright") | Name(letters="σ")):
                return False
            case Script(base=Function(), above=None):
                return kids[0]
            case Script(above=Box() as power) if _is_power(power):
                return True if latex(Script(part.base, part.below)) in others else None if part.below else kids[0]
            case Row() | Fence() | Fraction() | Root():
                return None if None in kids else any(kids)
        return None

    return bool(fold(box, meaning))


def _is_power(above: Any) -> bool:
    """Whether a superscript means a transpose, an inverse or a power, and is no mark of a name."""
    match above:
        case Sign(mark="⊤" | "⊺") | Name(letters="T") | Number() | Row(parts=(Sign(), Number() | Sign(mark="⊤"))):
            return True
        case Row(parts=(Sign(mark="−"), Name(letters="T"))):
            return True
    return False


# --- words ---


def words_of(printed: Iterable[Box]) -> dict[str, set[Name]]:
    """The words by which symbols are printed, below their scripts and accents, with the boxes of each."""
    found: dict[str, set[Name]] = {}
    for box in printed:
        base = box
        while isinstance(base, (Script, Accent)):
            base = base.base
        word = base.name if isinstance(base, Function) else base
        if isinstance(word, Name) and len(word.letters) > 1:
            found.setdefault(word.letters, set()).add(word)
    return found


def check_functions(words: Mapping[str, Collection[Name]], formula: Box) -> None:
    """No function of a formula is written by the word of a symbol; raises NamingError.

    An unknown function is a symbol itself, and is written by the box of that.
    """
    pending = [formula] if words else []
    while pending:
        box = pending.pop()
        pending += box.kids
        match box:
            case Function(name=Name(letters=word) as name) if word in words and name not in words[word]:
                raise _beside(word, "function")
            case Sign(mark=word) if word in words:
                raise _beside(word, "sign")


def _beside(word: str, kind: str) -> NamingError:
    return NamingError(f"{word} is how a symbol is printed and the {kind} {word}: rename it, or spell it by names=")
