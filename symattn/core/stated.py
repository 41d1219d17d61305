"""Conditions on tensors and on sizes: formulas that any printer writes, and the text of them that people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

if TYPE_CHECKING:
    from .node import Tensor


@dataclass(frozen=True)
class Formula:
    """A SymPy expression in which symbols stand for tensors, entry by entry."""

    expression: sympy.Expr
    tensors: tuple[tuple[sympy.Symbol, Tensor], ...]


@dataclass(frozen=True)
class Condition:
    """``left relation right``, entry by entry, of tensors, sizes, numbers and formulas.

    The relation is a sign of comparison, "divides", "is a place in" an axis of a size, or, with nothing to the right
    of it, a property: "is invertible".
    """

    left: Any
    relation: str
    right: Any = None

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it speaks of."""
        if isinstance(self.left, Formula):
            return tuple(x for _, x in self.left.tensors)
        return () if isinstance(self.left, sympy.Basic) else (self.left,)


class Stated(str):
    """What is stated as text, which knows what it says, and the names under which it speaks of tensors.

    ``formula`` is a condition, or, of what is given, a claim or a relation between sizes.
    """

    formula: Any
    names: Mapping[Tensor, str]

    def __new__(cls, text: str, formula: Any, names: Mapping[Tensor, str] | None = None) -> Stated:
        self = super().__new__(cls, text)
        self.formula, self.names = formula, names or {}
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.formula, dict(self.names))
