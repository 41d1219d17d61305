"""How long a question may take: one deadline that every part of the engine asks."""

from __future__ import annotations

import time

from ..errors import OperandError, described


class OutOfBudget(Exception):
    """The time that was given is used up."""


class Budget:
    """Seconds of this thread's own work from now on; ``check()`` raises OutOfBudget when they are gone.

    Time in which the machine runs something else does not count, so that a busy machine gives the same verdicts.
    """

    def __init__(self, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
            raise OperandError(f"a budget is a number of seconds above 0, not {described(seconds)}")
        self.seconds = seconds
        self._end = time.thread_time() + seconds
        self._look_at = time.monotonic() + seconds  # before that it cannot be over, and the clock is cheaper to read

    def check(self) -> None:
        """Raise OutOfBudget when the time is over."""
        if time.monotonic() > self._look_at:
            left = self._end - time.thread_time()
            if left <= 0:
                raise OutOfBudget(f"the time of {self.seconds:g} s is used up")
            self._look_at = time.monotonic() + left

    def part(self, share: float) -> Budget:
        """A share of the time that is left."""
        part = Budget(max(1e-3, (self._end - time.thread_time()) * share))
        part.seconds = self.seconds  # of which people are told
        return part
