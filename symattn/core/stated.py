"""What is said of tensors and sizes: conditions and sentences that any printer writes, and the text of them."""

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


class Sentence(str):
    """Words as text, made of ``parts``: words, tensors by their names, SymPy scalars, and formulas with their text."""

    parts: tuple[Any, ...]

    def __new__(cls, *parts: Any) -> Sentence:
        flat = tuple(x for part in parts for x in (part.parts if isinstance(part, Sentence) else (part,)))
        self = super().__new__(cls, "".join(str(x if isinstance(x, (str, sympy.Basic)) else x.name) for x in flat))
        self.parts = flat
        return self

    @property
    def symbols(self) -> set[str]:
        """The names of the symbols in its scalars."""
        return {s.name for x in self.parts if isinstance(x, sympy.Expr) for s in x.free_symbols}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.parts


class Stated(str):
    """What is stated as text, which knows what it says, and the names under which it speaks of tensors.

    ``formula`` is a condition, or, of what is given, a claim or a relation between sizes; within a sentence, a scalar.
    """

    formula: Any
    names: Mapping[Tensor, str]

    def __new__(cls, text: str, formula: Any, names: Mapping[Tensor, str] | None = None) -> Stated:
        self = super().__new__(cls, text)
        self.formula, self.names = formula, names or {}
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.formula, dict(self.names))
