"""Equations in the sentences that say what holds: which of them are claims, and what was done to check them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import sympy

import symattn

from ..core.boxes import Accent, Differential, Name, Row, Script, Sign
from ..core.node import Tensor, topological, with_inputs
from ..errors import ShapeError, SymattnError
from ..ops.leaves import variable
from ..printing.media.latex import latex
from ..printing.symbols import symbol
from ..proof.claims import Claim
from ..reading.latex.answers import Definition
from .checks import UNPROVED, Check
from .leading import is_said
from .prose import Formula, Prose, every
from .verification import Checker

_RELATIONS = frozenset("=≤≥<>")
_BEFORE_CONDITIONS = frozenset(
    "as assume assuming for given if let provided suppose that unless when whenever while with write".split()
)
_NAMES = (Name, Script, Accent, Differential)
_UNREAD = "it is not read as a claim"


def asserted(
    sentences: Iterable[Prose], parts: Sequence[Any], names: Mapping[str, Any], checker: Checker
) -> dict[Formula, Check]:
    """What was done for each claim in some sentences that no line or claim of the parts says."""
    found = dict[Formula, Check]()
    for said in sentences:
        for formula, claims in _claims(said, names):
            name = f"{said.where}, ${formula.source}$"
            if claims is None:
                found[formula] = Check(name, UNPROVED, remarks=(_UNREAD,))
            elif left := [claim for claim in claims if not is_said(claim, parts)]:
                found[formula] = checker.stated(name, left)
    return found


def names_of(names: Mapping[Tensor, str], symbols: Sequence[sympy.Symbol]) -> dict[str, Any]:
    """What formulas of sentences may speak of: tensors by the names under which they are shown, and scalars."""
    own = chain.from_iterable(x.own_symbols for x in topological(names))
    return {s.name: s for s in (*own, *symbols)} | {name: x for x, name in names.items()}


def _claims(said: Prose, names: Mapping[str, Any]) -> Iterator[tuple[Formula, list[Claim] | None]]:
    """The formulas of a sentence that claim something; None for one that is not read.

    A formula behind a word such as "if" says where something holds, and claims nothing. A function that one defines is
    known to those after it.
    """
    known, before = {**names}, ""
    tensors = {latex(symbol(name)) for name, x in names.items() if isinstance(x, Tensor) and x.rank}
    for piece in said.pieces:
        if isinstance(piece, str):
            before = piece
            continue
        is_claim = _relates(piece) and any(latex(box) in tensors for box in every(piece.box) if isinstance(box, _NAMES))
        answers = _read(piece, known) if is_claim else []
        for defined in (x for x in answers or () if isinstance(x, Definition) and x.parameters):
            known[defined.name] = _function(defined, known)
        if is_claim and not _is_condition(before):
            yield piece, None if answers is None else [x for x in answers if isinstance(x, Claim) and _is_of_tensors(x)]


def _relates(formula: Formula) -> bool:
    parts = formula.box.parts if isinstance(formula.box, Row) else ()
    return any(isinstance(part, Sign) and part.mark in _RELATIONS for part in parts)


def _is_condition(before: str) -> bool:
    words = before.split()
    return bool(words) and words[-1].lower() in _BEFORE_CONDITIONS


def _read(formula: Formula, names: Mapping[str, Any]) -> list[Any] | None:
    """What a formula says; None where it is not read."""
    try:
        read = symattn.parse_latex(formula.source, names)
    except SymattnError:
        return None
    return list(read) if isinstance(read, tuple) else [read]


def _is_of_tensors(claim: Claim) -> bool:
    """Whether a claim is about more than numbers, of which an equation is a condition."""
    return any(x.op is variable and x.rank for x in topological(claim.sides))


def _function(defined: Definition, names: Mapping[str, Any]) -> Callable[..., Tensor]:
    """A function that a formula defines, of arguments of the same shapes."""
    parameters = [names[name] for name in defined.parameters]

    def applied(*given: Tensor) -> Tensor:
        if [x.shape for x in given] != [x.shape for x in parameters]:
            raise ShapeError(f"{defined.name} takes tensors of the shapes for which it is defined")
        made = dict(zip(parameters, given, strict=True))
        for x in topological([defined.value]):
            if x not in made:
                made[x] = with_inputs(x, made)
        return made[defined.value]

    return applied
