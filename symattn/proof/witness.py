"""A point that shows a proof to be about something: both sides have values there, and all that is given holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..core.budget import Budget
from .argument import Given
from .claims import Claim, Independence
from .far_reads import apart
from .refute.counterexample import Agreement, Example
from .refute.refuter import Search
from .refute.values import Point


@dataclass(frozen=True, eq=False)
class Witness:
    """Sizes, exact entries and instances of unknown functions, at which the claim holds and everything is defined."""

    claim: Claim | Independence
    given: Given
    point: Point

    def check(self) -> bool:
        """Whether both sides have values at the point, and all that is given and declared holds there."""
        return _search(self.claim, self.given).is_example(self.point)

    @cached_property
    def shown(self) -> Example:
        """The point with its exact arrays."""
        return _search(self.claim, self.given).shown_example(self.point)

    def text(self) -> str:
        """The point in one line."""
        return self.shown.text()

    __str__ = text


def _search(claim: Claim | Independence, given: Given, seed: int = 0) -> Search:
    """The search for points of a claim; what is read at far places is a tensor of its own, if nothing else is asked."""
    near = None if given.claims or given.relations else apart(claim)
    return Search(claim if near is None else near.claim, given, seed)


def witness(claim: Claim | Independence, given: Given, tried: Agreement, seed: int, budget: Budget) -> Witness | None:
    """The first point at which the claim was seen to hold, or else one that is looked for; None if none is found."""
    point = tried.point or _search(claim, given, seed).example(budget)
    return None if point is None else Witness(claim, given, point)
