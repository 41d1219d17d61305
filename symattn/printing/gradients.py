r"""How the gradient of a loss L by S is written: ``\mathrm{d}S``, ``\bar{S}``, ``\nabla_{S} L``, or as a quotient."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, get_args

from ..core.arguments import one_of
from ..core.boxes import (
    Accent,
    Box,
    Differential,
    Fence,
    Fraction,
    Name,
    Row,
    Script,
    Sign,
    commas,
    lowered,
    raised,
    row,
)
from ..ops.notation import Binding, Written

Gradients = Literal["d", "bar", "nabla", "partial"]
_NABLA, _PARTIAL = Sign("∇"), Sign("∂")


def checked_gradients(value: Any) -> Gradients:
    """The way of writing gradients that ``gradients=`` asks for, or an OperandError."""
    checked: Gradients = one_of("latex", "gradients", value, *get_args(Gradients))
    return checked


def names_the_loss(way: Gradients) -> bool:
    """Whether gradients say which loss they are of."""
    return way in ("nabla", "partial")


@lru_cache(maxsize=4096)
def gradient_box(way: Gradients, by: Box, loss: Box) -> Written:
    """The gradient of a loss by what has the name ``by``, and how tightly it holds together."""
    match way:
        case "d":
            return differential(by), Binding.ATOM
        case "bar":
            return accented(by, "‾"), Binding.ATOM
        case "nabla":
            return row(Script(_NABLA, by), loss), Binding.PREFIX
    return Fraction(row(_PARTIAL, loss), row(_PARTIAL, _held(by))), Binding.FRACTION


def differential(name: Box) -> Differential:
    """The d of a name, which is held together where it is several boxes."""
    return Differential(_held(name))


def _held(name: Box) -> Box:
    return Fence(name) if isinstance(name, Row) else name


def accented(name: Box, mark: str) -> Box:
    """A name under a mark, which stands on its letter."""
    return Script(Accent(name.base, mark), name.below, name.above) if isinstance(name, Script) else Accent(name, mark)


def subscripted(name: Box, below: Box) -> Box:
    """A name with one more subscript."""
    match name:
        case Differential(of=inner):
            return Differential(subscripted(inner, below))
        case Script(below=None):
            return Script(name.base, below, name.above)
        case Script(below=Box() as first):
            return Script(name.base, commas([first, below]), name.above)
        case Name() | Accent() | Fence():
            return Script(name, below)
    return Script(Fence(name), below)


def of_head(name: Box, mark: Box) -> Box:
    r"""The name for one head, ``Q^{(a)}``; of a gradient it is what it is by, ``\nabla_{Q^{(a)}} L``."""
    return _by(name, lambda by: raised(by, mark)) or raised(name, mark)


def at_entry(name: Box, index: Box) -> Box:
    """An entry; what is a gradient has the index at what it is by."""
    partial = _by(name, lambda by: lowered(by, index)) if isinstance(name, Fraction) else None
    return lowered(name, index) if partial is None else partial


def _by(gradient: Box, change: Callable[[Box], Box]) -> Box | None:
    """A gradient of a loss with a change to what it is by; None for any other name."""
    match gradient:
        case Row(parts=(Script(base=Sign(mark="∇"), below=Box() as by) as nabla, *loss)):
            return Row((Script(nabla.base, change(by)), *loss))
        case Fraction(below=Row(parts=(Sign(mark="∂") as mark, *by))):
            return Fraction(gradient.above, row(mark, change(row(*by))))
    return None
