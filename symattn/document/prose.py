r"""Sentences with mathematics between dollar signs, ``"The output is a product, $O = P V$."``.

Formulas are read when a sentence is given, and written by the symbols of its document when that is composed. So they
follow ``names=`` and ``gradients=``, and a letter that the document does not know is an error with its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.boxes import Box, Code, Name, Script, Sign
from ..errors import OperandError, described
from ..printing.media.read_latex import box_of_latex

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
    for box in every(formula):
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
    """The letters below a base, below a large sign too; below ∇ stands what a gradient is by."""
    pending = [box]
    while pending:
        one = pending.pop()
        pending += one.kids
        of_gradient = isinstance(one, Script) and isinstance(one.base, Sign) and one.base.mark == "∇"
        if isinstance(one, Script) and one.below is not None and not of_gradient:
            yield from (part.letters for part in every(one.below) if isinstance(part, Name) and len(part.letters) == 1)


def every(box: Box) -> Iterator[Box]:
    """A box and all that it holds."""
    pending = [box]
    while pending:
        one = pending.pop()
        pending += one.kids
        yield one
