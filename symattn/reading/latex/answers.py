"""What a statement in LaTeX is, besides a tensor, a scalar or a claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...core.node import Tensor
from ...core.sizes import Shape, show_shape


@dataclass(frozen=True)
class Definition:
    """``name(parameters) = value``; a tensor that is defined has the name, where symattn allows it.

    ``indices`` are those of its entries, ``("i", "j")`` in ``S_{ij} = ...``: the first axes of the value.
    """

    name: str
    value: Any
    parameters: tuple[str, ...] = ()
    indices: tuple[str, ...] = ()

    def __str__(self) -> str:
        called = f"({', '.join(self.parameters)})" if self.parameters else ""
        return f"{self.name}{called} = {self.value}"

    __repr__ = __str__


@dataclass(frozen=True)
class Declaration:
    """What a name is said to be: a tensor of a shape, or a size."""

    name: str
    value: Any

    def __str__(self) -> str:
        return (
            f"{self.name}{show_shape(self.value.shape)}" if isinstance(self.value, Tensor) else f"{self.name}, a size"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Distribution:
    """The law of the entries of a name, for ``sa.variance`` and the others."""

    name: str
    law: Any

    def __str__(self) -> str:
        return f"{self.name} ~ {self.law}"

    __repr__ = __str__


@dataclass(frozen=True)
class Signature:
    """The shapes that a function takes, and the shape that it gives."""

    name: str
    arguments: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(map(show_shape, self.arguments))} to {show_shape(self.result)}"

    __repr__ = __str__
