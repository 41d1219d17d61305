"""How long a question may take: one deadline that every part of the engine asks."""

from __future__ import annotations

import math
import time

from ..errors import OperandError, described


class OutOfBudget(Exception):
    """The time that was given is used up."""


class Budget:
    """Seconds from now on; ``check()`` raises OutOfBudget when they are gone."""

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
            raise OperandError(f"a budget is a number of seconds above 0, not {described(seconds)}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds if math.isfinite(seconds) else math.inf

    def check(self) -> None:
        """Raise OutOfBudget when the time is over."""
        if time.monotonic() > self._end:
            raise OutOfBudget(f"the time of {self.seconds:g} s is used up")

    def part(self, share: float) -> Budget:
        """A share of the time that is left."""
        if math.isinf(self._end):
            return Budget(math.inf)
        part = Budget(max(1e-3, (self._end - time.monotonic()) * share))
        part.seconds = self.seconds  # of which people are told
        return part
