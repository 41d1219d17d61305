"""What two boxes side by side mean to each other, for every medium: a product, an application, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Literal

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
)

Link = Literal["", "times", "apply"]
_FACTORS = frozenset((Name, Number, Function, Fraction, Root, Accent, Fence, Matrix, Differential, Code))
MINUS = str.maketrans("-*", "−∗")  # as they stand in a formula


def edge(box: Box, end: Literal[0, -1]) -> Box:
    """The first or the last box of rows within rows, without its scripts."""
    while True:
        if isinstance(box, Row) and box.parts:
            box = box.parts[end]
        elif isinstance(box, Script):
            box = box.base
        else:
            return box


def edges(box: Box) -> tuple[Box, Box]:
    """The first and the last box: itself where there are no others inside."""
    return (edge(box, 0), edge(box, -1)) if isinstance(box, (Row, Script)) else (box, box)


def met(left: Box, right: Box) -> tuple[Box, Box]:
    """The two edges that meet where neighbours stand side by side."""
    return edge(left, -1), edge(right, 0)


def link(before: Box, after: Box) -> Link:
    """What stands unwritten between two edges that meet."""
    if not (_is_factor(before, "closing") and _is_factor(after, "opening")):
        return ""
    expected = isinstance(before, Name) and before.style == "blackboard" and opens_fence(after)
    return "apply" if isinstance(before, Function) or expected else "times"


def is_apart(before: Box, after: Box) -> bool:
    """Whether linked edges need a thin space, since a word or a differential would run into the other.

    A word and the fence that it is multiplied by would be read as a function and its argument.
    """
    if opens_fence(after) or isinstance(after, Matrix):
        return isinstance(before, Name) and len(before.letters) > 1
    return _is_word(before) or _is_word(after)


def stand_apart(left: Box, right: Box) -> bool:
    """Whether neighbours are linked and need a thin space."""
    before, after = met(left, right)
    return is_apart(before, after) and bool(link(before, after))


def opens_fence(box: Box) -> bool:
    """Whether a box is a fence, or the first half of one that is broken over two lines."""
    return isinstance(box, Fence) or (isinstance(box, Sign) and box.kind == "opening")


def _is_factor(box: Box, half: Literal["opening", "closing"]) -> bool:
    return type(box) in _FACTORS or (isinstance(box, Sign) and box.kind == half)


def _is_word(box: Box) -> bool:
    return isinstance(box, (Function, Differential)) or (isinstance(box, Name) and len(box.letters) > 1)


def is_prime(box: Box | None) -> bool:
    """Whether a superscript is only primes, which belong to a name."""
    return isinstance(box, Sign) and set(box.mark) == {"′"}


class Level(IntEnum):
    """How tightly a text holds together; a script or a root needs what is one thing."""

    LIST = 0
    SUM = 1
    PRODUCT = 2
    FACTORS = 3
    ROOT = 4
    ATOM = 5


_LEVELS = {"relation": Level.LIST, "punctuation": Level.LIST, "sum": Level.SUM, "prefix": Level.SUM,
           "product": Level.PRODUCT, "large": Level.PRODUCT, "opening": Level.LIST,
           "closing": Level.LIST, "ordinary": Level.FACTORS}  # fmt: skip


def least(parts: Sequence[Box], k: int) -> Level:
    """How tight a part of a row has to be among its neighbours."""
    if isinstance(parts[k], (Sign, Text, Space)):
        return Level.LIST
    near = [(parts[k - 1], parts[k])] if k else []
    near += [(parts[k], parts[k + 1])] if k + 1 < len(parts) else []
    if any(link(*met(*pair)) for pair in near):
        return Level.FACTORS
    signs = [edge(parts[k - 1], -1)] if k else []
    signs += [edge(parts[k + 1], 0)] if k + 1 < len(parts) else []
    kinds = {sign.kind for sign in signs if isinstance(sign, Sign)}
    after = signs[-1] if k + 1 < len(parts) else None
    if "product" in kinds or (isinstance(after, Sign) and after.kind == "large"):
        return Level.FACTORS
    return Level.PRODUCT if kinds & {"sum", "prefix", "large"} else Level.LIST


def level_of(parts: Sequence[Box]) -> Level:
    """How tightly a row of several parts holds together."""
    if len(parts) == 2:
        before, after = met(*parts)
        if link(before, after) == "apply" and isinstance(after, Fence):
            return Level.ATOM
    ends = [edge(part, 0) for part in parts]
    if any(isinstance(end, (Text, Space)) for end in ends):
        return Level.LIST
    return min([Level.FACTORS, *(_LEVELS[end.kind] for end in ends if isinstance(end, Sign))])
