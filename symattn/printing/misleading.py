r"""Spellings that a user may not give: those that read as something else that is printed.

``A^{\top}``, ``2 A`` and ``\sigma(A)`` are expressions of ``A`` where ``A`` is another symbol, and ``A^{(1)}`` is one
of its heads where it has any; ``I_{n}`` and ``0`` are constants, ``\odot`` is an operator. A subscript, a prime, an
accent or a letter of one's own makes a name: ``A_{1}``, ``A'``, ``\Delta A``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
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
    boxes_in,
    fold,
    rebuilt,
    row,
)
from ..errors import NamingError
from .media.latex import latex

_UNSEEN = ("\\phantom", "\\hphantom", "\\vphantom", "\\strut", "\\mathstrut", "\\null", "\\relax")
_MEANINGS = {
    ("π", "italic"): "a constant", ("e", "upright"): "a constant", ("0", "bold"): "a constant",
    ("1", "bold"): "a constant", ("d", "upright"): "the d of a gradient", ("E", "blackboard"): "an expectation",
    ("R", "blackboard"): "the set of real numbers",
}  # fmt: skip
_READ: Mapping[type[Box], Callable[[Any], str]] = {
    Name: attrgetter("letters"), Number: attrgetter("digits"), Sign: attrgetter("mark"), Text: attrgetter("words"),
    Code: attrgetter("source"), Differential: lambda part: "d",
}  # fmt: skip
_OPERATORS = "⊤⊺⊥∂∇′/!…⋯⋮⋱|‖"
_JOINING = frozenset("=<>≤≥+*/,;()[]{}")  # in words
_ALIKE = str.maketrans(
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο" + "АВЕКМНОРСТХаеорсух",  # Greek, then Cyrillic
    "ABEZHIKMNOPTYXo" + "ABEKMHOPCTXaeopcyx",
)


def by_shape(written: str) -> str:
    """Text with the letters of other alphabets that look like Latin ones as these."""
    return written.translate(_ALIKE)


@lru_cache(maxsize=4096)
def ink(box: Box) -> str:
    """The letters and digits of a formula, as they are read: what looks alike in some medium has the same."""
    letters = box.letters if isinstance(box, Name) else "".join(map(_ink, boxes_in(box)))
    plain = letters if letters.isascii() else by_shape(unicodedata.normalize("NFKD", letters))
    return plain if plain.isalnum() else "".join(filter(str.isalnum, plain))


def _ink(part: Box) -> str:
    read = _READ.get(type(part))
    return "" if read is None else read(part)


def as_shown(spelled: Box) -> Box:
    r"""A name by what is seen of it: ``{B}_{} \,`` is B, and ``\operatorname{mask}`` a word."""
    box = fold(spelled, _as_shown)
    return Script(_as_name(box.base), box.below, box.above) if isinstance(box, Script) else _as_name(box)


def _as_shown(part: Box, kids: Sequence[Box]) -> Box:
    match part:
        case Row():
            seen = [k for k, kid in enumerate(kids) if not is_unseen(kid)]
            return row(*kids[seen[0] : seen[-1] + 1]) if seen else part
        case Script(below=below, above=above):
            base, *scripts = kids
            below, above = (scripts.pop(0) if old is not None else None for old in (below, above))
            below, above = (None if new is None or is_unseen(new) else new for new in (below, above))
            return base if below is above is None else Script(base, below, above)
    return rebuilt(part, kids)


def _as_name(box: Box) -> Box:
    match box:
        case Function(name=name):
            return name
        case Sign(mark=word, kind="large") | Text(words=word) if word.isalnum():
            return Name(word, "upright")
    return box


def is_unseen(box: Box) -> bool:
    """Whether nothing of a formula is to be seen."""

    def unseen(part: Box, kids: Sequence[bool]) -> bool:
        if isinstance(part, Code):
            return part.source.startswith(_UNSEEN)
        return isinstance(part, Space) or (isinstance(part, (Row, Script)) and all(kids))

    return fold(box, unseen)


def check_spellings(
    spelled: Mapping[str, Box], printed: Mapping[str, Box], sizes: Collection[str], with_heads: Collection[str]
) -> None:
    """No spelling means something by itself, or is an expression of other symbols; raises NamingError."""
    written = {name: latex(box) for name, box in printed.items()}
    below, of_heads = ({written[name] for name in names} for names in (sizes, with_heads))
    for name, box in spelled.items():
        shown = latex(box)
        if meaning := _meaning(box, below):
            raise NamingError(f"names spells {name!r} as {shown}, which is {meaning}: spell it otherwise")
        if isinstance(box, Script) and isinstance(box.above, Fence) and _without_mark(box) in of_heads - {shown}:
            raise NamingError(
                f"names spells {name!r} as {shown}, which is one head of another symbol: spell it otherwise"
            )
        if _reads(box, {other for other in written.values() if other != shown}):
            raise NamingError(f"names spells {name!r} as {shown}, an expression of other symbols: spell it otherwise")
        if unknown := _unknown_command(box):
            raise NamingError(f"names spells {name!r} as {shown}, and {unknown} is no command that is known here")
        if _is_expression(box):
            raise NamingError(
                f"names spells {name!r} as {shown}, which is an expression and no symbol: spell it otherwise"
            )


def _without_mark(box: Script) -> str:
    return latex(box.base if box.below is None else Script(box.base, box.below))


def _meaning(box: Box, sizes: Collection[str]) -> str:
    r"""What it means by itself: a number, ``\pi``, ones or the identity with a size, or an operator."""
    match box:
        case Number() | Sign(mark="∞") | Script(base=Name(letters="0" | "1", style="bold")):
            return "a constant"
        case Name(letters, style):
            is_number = letters.isdigit() and style in ("italic", "upright")
            return "a constant" if is_number else _MEANINGS.get((letters, style), "")
        case Script(base=Name(letters="I", style="italic"), below=Box() as size, above=None):
            return "a constant" if isinstance(size, Number) or latex(size) in sizes else ""
        case Sign(mark, kind):
            return "an operator" if kind != "ordinary" or mark in _OPERATORS else ""
    return ""


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
            case Script(above=Box() as power) if _is_power(power) or kids[-1]:
                return True if latex(Script(part.base, part.below)) in others else None if part.below else kids[0]
            case Row() | Fence() | Fraction() | Root():
                return None if None in kids else any(kids)
        return None

    return bool(fold(box, meaning))


def _unknown_command(box: Box) -> str:
    """A command that is printed as it stands, which only LaTeX may have."""
    sources = (part.source for part in boxes_in(box) if isinstance(part, Code) and not is_unseen(part))
    return next((source.partition("{")[0] for source in sources if source.startswith("\\")), "")


def _is_expression(box: Box) -> bool:
    r"""Whether an operator or a comma stands between letters; those of scripts, accents and arguments are theirs."""

    def joins(part: Box, kids: Sequence[bool]) -> bool:
        match part:
            case Sign(kind=kind):
                return kind not in ("ordinary", "large")
            case Text(words=words):
                return not _JOINING.isdisjoint(words)
            case Row(parts=parts):
                return any(kid and not _is_argument(parts, k) for k, kid in enumerate(kids))
            case Script() | Fence():
                return kids[0]
        return False

    return fold(box, joins)


def _is_argument(parts: Sequence[Box], k: int) -> bool:
    before = parts[k - 1] if k else None
    function = before.base if isinstance(before, Script) else before
    return isinstance(parts[k], Fence) and isinstance(function, Function)


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
    for box in boxes_in(formula) if words else ():
        match box:
            case Function(name=Name(letters=word) as name) if word in words and name not in words[word]:
                raise _beside(word, "function")
            case Sign(mark=word) | Text(words=word) if word in words:
                raise _beside(word, "sign")


def _beside(word: str, kind: str) -> NamingError:
    return NamingError(f"a name and the {kind} {word} would both print as {word}: rename it, or spell it by names=")
