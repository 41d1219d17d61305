"""A limit on the processor time of a call, so that what hangs is found and named."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LONGEST = 2.0  # seconds of processor time that a wrong call or a command line may take
_STOPPED = 5 * LONGEST


class TooLong(BaseException):
    """The call is stopped; no handler of the package takes this for its own."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise TooLong inside of what takes far longer than it may."""

    def stop(number: int, frame: Any) -> None:
        raise TooLong(f"stopped after {_STOPPED:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _STOPPED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
