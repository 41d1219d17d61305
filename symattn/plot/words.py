"""Formulas as text of a drawing: letters slanted or upright, scripts raised and lowered, fractions in the line."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple, TypeAlias

from ..core.boxes import (
    Box,
    Differential,
    Fence,
    Fraction,
    Function,
    Name,
    Root,
    Row,
    Script,
    Sign,
    fold,
)
from ..printing.media.unicode import gap, is_token, unicode_text

_SMALL, _UP, _DOWN = 0.72, 0.36, -0.2  # the size of scripts, and by how many em they are raised
_LEAST = 10.0  # pixels, below which a script is hard to read
_LETTER = 0.56  # em of a letter, on average
_THIN = "\u2009"


class Run(NamedTuple):
    """Letters of one kind: their size and how far above the line they stand, in em of the formula."""

    letters: str
    is_slanted: bool = False
    size: float = 1.0
    up: float = 0.0


Runs: TypeAlias = tuple[Run, ...]


def runs_of(box: Box) -> Runs:
    """A formula as letters in one line."""
    return fold(box, _runs)


def columns_of(runs: Runs) -> float:
    """About how many em they take."""
    return sum(_LETTER * run.size * len(run.letters) for run in runs)


def svg_text(runs: Runs, x: float, y: float, size: float, attributes: str = "") -> str:
    """Letters around a point of a drawing."""
    written, at = "", 0.0
    for run in runs:
        lifted = f' dy="{(at - run.up) * size:.2f}"' if run.up != at else ""
        small = f' font-size="{max(run.size * size, _LEAST):.3g}"' if run.size != 1.0 else ""
        slanted = ' font-style="italic"' if run.is_slanted else ""
        written += f"<tspan{slanted}{small}{lifted}>{escape(run.letters)}</tspan>"
        at = run.up
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{attributes}>{written}</text>'


def _runs(box: Box, inside: Sequence[Runs]) -> Runs:
    match box:
        case Name(style="italic"):
            return (Run(box.letters, True),)
        case Row():
            return _row(box, inside)
        case Script():
            return _script(box, inside)
        case Fraction():
            return (*_fenced(box.above, inside[0], "sum"), Run("/"), *_fenced(box.below, inside[1]))
        case Root(degree=None):
            return (Run("√"), *_fenced(box.inside, inside[0]))
        case Differential():
            return (Run("d"), *inside[0])
        case Function():
            return inside[0]
        case Fence():
            return (Run(box.left), *inside[0], Run(box.right))
    return (Run(unicode_text(box)),)


def _row(box: Row, inside: Sequence[Runs]) -> Runs:
    written: list[Run] = []
    for k, runs in enumerate(inside):
        between = box.parts[k - 1 : k + 1] if k else ()
        space = gap(*between) if k else ""
        if space and not any(isinstance(part, Sign) for part in between):
            space = _THIN  # between factors
        written += [*([Run(space)] if space else []), *runs]
    return tuple(written)


def _script(box: Script, inside: Sequence[Runs]) -> Runs:
    base, *scripts = inside
    lowered = _moved(scripts.pop(0), _DOWN) if box.below is not None else ()
    return (*base, *lowered, *(_moved(scripts[0], _UP) if scripts else ()))


def _moved(runs: Runs, up: float) -> Runs:
    return tuple(run._replace(size=run.size * _SMALL, up=_SMALL * run.up + up) for run in runs)


def _fenced(box: Box, runs: Runs, looser: str = "") -> Runs:
    """What stands beside a stroke: several parts between parentheses, or only sums."""
    parts = box.parts if isinstance(box, Row) else (box,)
    is_sum = any(isinstance(part, Sign) and part.kind in ("sum", "relation") for part in parts)
    apart = is_sum if looser else not (is_token(box) or isinstance(box, (Root, Fence, Script)))
    return (Run("("), *runs, Run(")")) if apart else runs
