"""What a proof argues from, and what every kind of argument tells of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy.logic.boolalg import Boolean

from ..core.node import Tensor
from ..printing.matrix import names_in
from ..printing.prose import Paragraph, Part, Words
from ..printing.prose_latex import parts_latex
from ..printing.table import SymbolTable
from .claims import Claim, Independence


@dataclass(frozen=True)
class Given:
    """The claims and the relations between sizes that are given; ``stated`` is all of it as it was given, in order."""

    claims: tuple[Claim, ...]
    relations: tuple[Boolean, ...]
    stated: tuple[Any, ...]

    @classmethod
    def of(cls, stated: Sequence[Any]) -> Given:
        """What is stated, sorted by its kind."""
        claims = tuple(g for g in stated if isinstance(g, Claim))
        return cls(claims, tuple(g for g in stated if isinstance(g, Boolean)), tuple(stated))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of what it speaks of: what a proof brings in has none of them, or this would be given of it."""
        sizes = {s.name for relation in self.relations for s in relation.free_symbols}
        return frozenset(sizes | names_in([x for fact in self.claims for x in fact.sides]))


NOTHING = Given((), (), ())


class Argument(ABC):
    """One kind of proof: by rewriting, by entries, by bounds, by what entries depend on, or by other arguments."""

    @property
    def for_people(self) -> bool:
        """Whether it is told as people prove it, and not only for who wants to know what was done."""
        return False

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        """What must have no entry 0 for it to hold."""
        return ()

    @property
    def side_conditions(self) -> tuple[str, ...]:
        """What must hold besides, on the way, of what the claim itself does not show."""
        return ()

    def restated(self, sides: Sequence[Tensor]) -> list[Tensor]:
        """The sides of its claim, with what recurrences come to: where these have values is asked step by step."""
        return list(sides)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is stated of operations and not proved."""
        return ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is divided by and is different from zero, with the reason, as text."""
        return ()

    def reasons_told(self, within: SymbolTable | None = None) -> tuple[Words, ...]:
        """The same as mathematics, with the symbols of a document if it stands in one."""
        return ()

    @abstractmethod
    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        """Whether it is about this claim under what is given."""

    @abstractmethod
    def check(self) -> bool:
        """Whether every step of it holds, gone through again without search."""

    @abstractmethod
    def text(self) -> str:
        """The steps, and the conclusion."""

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics, with the symbols of a document if it stands in one."""
        return (Paragraph((self.text(),)),)

    def latex(self, within: SymbolTable | None = None) -> str:
        """The same as LaTeX."""
        return parts_latex(self.told(within))

    def __str__(self) -> str:
        return self.text()


class Resting(Argument):
    """An argument that rests on others, of which it takes what these divide by and assume."""

    @property
    @abstractmethod
    def parts(self) -> Iterable[Argument]:
        """The arguments on which it rests."""

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        return tuple(dict.fromkeys(x for part in self.parts for x in part.divisors))

    @property
    def side_conditions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(said for part in self.parts for said in part.side_conditions))

    @property
    def assumptions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(said for part in self.parts for said in part.assumptions))

    def check(self) -> bool:
        return all(part.check() for part in self.parts)
