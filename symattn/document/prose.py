r"""Sentences with mathematics between dollar signs, ``"The output is a product, $O = P V$."``.

Formulas are read when a sentence is given, and written by the symbols of its document when that is composed. So they
follow ``names=`` and ``gradients=``, and a letter that the document does not know is an error with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.boxes import (
    Accent,
    Box,
    Code,
    Differential,
    Fence,
    Function,
    Name,
    Number,
    Row,
    Script,
    Sign,
    fold,
    raised,
    rebuilt,
    row,
)
from ..core.naming import nearest
from ..errors import NamingError, OperandError, described
from ..printing.media.latex import latex
from ..printing.media.read_latex import box_of_latex
from ..printing.media.spelling import LETTERS
from ..printing.prose import Words
from .families import with_letter

_CONSTANTS = {"upright": "eid", "italic": "I"}  # which every derivation has


@dataclass(frozen=True)
class Formula:
    """A formula of a sentence: its LaTeX, and that as a tree of boxes."""

    source: str
    box: Box


@dataclass(frozen=True)
class Prose:
    """A sentence, or several, with formulas; ``where`` says what it is, for messages."""

    source: str
    pieces: tuple[str | Formula, ...]
    where: str

    @property
    def formulas(self) -> Iterator[Formula]:
        return (piece for piece in self.pieces if isinstance(piece, Formula))

    @cached_property
    def indices(self) -> frozenset[str]:
        """Letters that stand below something, and so are indices in all of the sentence."""
        return frozenset(letters for formula in self.formulas for letters in _below(formula.box))


def prose(source: Any, where: str) -> Prose:
    """A sentence that is read. Raises OperandError for what is none, and for a formula that is none."""
    if not isinstance(source, str):
        raise OperandError(f"{where} is a sentence with mathematics between dollar signs, not {described(source)}")
    source = " ".join(source.split())
    plain, *rest = _between_dollars(source)
    pieces: list[str | Formula] = [plain] if plain else []
    if len(rest) % 2:
        raise OperandError(f"{where} has a dollar sign that is not closed: {_cited(source)}")
    for formula, words in zip(rest[::2], rest[1::2], strict=True):
        try:
            pieces.append(Formula(formula, _known(box_of_latex(formula))))
        except OperandError as problem:
            raise OperandError(f"{where} has a formula that does not read, ${formula}$: {problem}") from None
        pieces += [words] if words else []
    return Prose(source, tuple(pieces), where)


def _known(formula: Box) -> Box:
    """The formula, of which every command is understood: what is not would go into LaTeX as it stands."""
    for box in _all(formula):
        if isinstance(box, Code):
            raise OperandError(f"{box.source} is not known here")
    return formula


def _between_dollars(source: str) -> list[str]:
    r"""Words and formulas in turns; ``\$`` is a dollar sign."""
    parts, start, at = list[str](), 0, 0
    while (at := source.find("$", at)) >= 0:
        if at and source[at - 1] == "\\" and not len(parts) % 2:
            at += 1
            continue
        parts.append(source[start:at])
        start = at = at + 1
    parts.append(source[start:])
    return [part if k % 2 else part.replace("\\$", "$") for k, part in enumerate(parts)]


def _cited(source: str) -> str:
    return repr(source if len(source) <= 60 else f"{source[:57]}...")


def _below(box: Box) -> Iterator[str]:
    """The letters below a base, below a large sign too."""
    pending = [box]
    while pending:
        one = pending.pop()
        pending += one.kids
        if isinstance(one, Script) and one.below is not None:
            yield from (part.letters for part in _all(one.below) if isinstance(part, Name) and len(part.letters) == 1)


def _all(box: Box) -> Iterator[Box]:
    pending = [box]
    while pending:
        one = pending.pop()
        pending += one.kids
        yield one


class Speaker:
    """Writes sentences by the symbols of a document; ``plain`` has them as a person types them."""

    def __init__(self, plain: Mapping[str, Box], printed: Mapping[str, Box], letters: Iterable[str]) -> None:
        self._symbols = {latex(box): printed[name] for name, box in plain.items()}
        self._names = {latex(box): name for name, box in plain.items()}
        self._letters = frozenset(letters)

    def words(self, said: Prose) -> Words:
        """The sentence, with the formulas by the document's symbols. Raises NamingError for a letter it lacks."""
        return tuple(self._formula(piece, said) if isinstance(piece, Formula) else piece for piece in said.pieces)

    def _formula(self, formula: Formula, said: Prose) -> Box:
        known = self._letters | said.indices

        def written(box: Box, inside: Sequence[_Found]) -> _Found:
            return self._written(box, inside, known, formula, said)

        alone = self._symbol(formula.box)
        if isinstance(alone, Fence):  # which keeps a gradient together among others
            return alone.inside
        found = fold(formula.box, written)
        if found.unknown:
            raise self._unknown(found.unknown, formula, said)
        return found.box

    def _written(
        self, box: Box, inside: Sequence[_Found], known: frozenset[str], formula: Formula, said: Prose
    ) -> _Found:
        """A box by the symbols of the document: the whole of it where it is one, else what it holds."""
        symbol = self._symbol(box)
        if symbol is not None:
            return _Found(symbol)
        if isinstance(box, Name) and not self._is_free(box, known):
            return _Found(box, box.letters)
        if isinstance(box, Accent) and not _letters_of(box) & known:
            return _Found(box, latex(box))
        for part in inside:
            if part.unknown and not isinstance(box, Function):  # which is a letter that is applied: σ(x)
                raise self._unknown(part.unknown, formula, said)
        return _Found(rebuilt(box, [part.box for part in inside]))

    def _symbol(self, box: Box) -> Box | None:
        if not isinstance(box, (Name, Script, Accent, Differential)):
            return None
        if (known := self._symbols.get(latex(box))) is not None:
            return known
        if (member := self._symbols.get(latex(_first_of_family(box)))) is not None:
            several = with_letter(member, 1, _letter_below(box))
            if latex(several) != latex(member):  # else the first one has a spelling of its own
                return several
        match box:
            case Script(above=Row(parts=(Sign(mark="′") as prime, *rest))):  # a primed name, and a mark above it
                known = self._symbols.get(latex(Script(box.base, box.below, prime)))
                return None if known is None else raised(known, row(*rest))
        if isinstance(box, Script) and box.above is not None:
            bare = Script(box.base, box.below) if box.below is not None else box.base
            return None if (known := self._symbol(bare)) is None else raised(known, box.above)
        if isinstance(box, Differential) and isinstance(box.of, Script) and box.of.above is not None:
            bare = Script(box.of.base, box.of.below) if box.of.below is not None else box.of.base
            return None if (known := self._symbol(Differential(bare))) is None else raised(known, box.of.above)
        return None

    def _is_free(self, name: Name, known: frozenset[str]) -> bool:
        """Whether a name needs no document: a word, a constant, an index, or a letter that stands for anything."""
        if len(name.letters) != 1 or name.letters.isdigit() or name.letters in known:
            return True
        return (name.letters in _CONSTANTS[name.style]) if name.style in _CONSTANTS else name.style == "blackboard"

    def _unknown(self, letters: str, formula: Formula, said: Prose) -> NamingError:
        spelled = LETTERS.get(letters, letters).removeprefix("\\")
        names = self._names.values()
        numbered = ", ".join(name for name in names if name.rpartition("_")[0] == spelled and name[-1].isdigit())
        known = f"of that letter there are {numbered}" if numbered else nearest(spelled, names)
        return NamingError(
            f"{said.where} speaks of {spelled!r}, in ${formula.source}$, which is no name of the derivation: {known}; "
            f"a letter that stands for anything is declared by letters={spelled!r}"
        )


def _letters_of(box: Box) -> set[str]:
    return {part.letters for part in _all(box) if isinstance(part, Name)}


def _letter_below(box: Box) -> Box:
    """The letter for one of several numbered symbols, as in ``Z_{i}``; the box itself where there is none."""
    inner = box.of if isinstance(box, Differential) else box
    match inner:
        case Script(below=Name() as letter) if len(letter.letters) == 1:
            return letter
    return box


def _first_of_family(box: Box) -> Box:
    """The first of the numbered symbols that a letter stands for."""
    match box:
        case Differential(of=Script(below=Name()) as inner):
            return Differential(_first_of_family(inner))
        case Script(below=Name(), above=None):
            return Script(box.base, Number("1"))
    return box


@dataclass(frozen=True, eq=False)
class _Found:
    """A box that was written, or a letter that nobody knows unless it is part of what is known."""

    box: Box
    unknown: str = ""
