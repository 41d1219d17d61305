"""Checks of arguments that mean the same in every function: conventions by name, flags, lists, seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from inspect import signature
from numbers import Integral
from typing import Any

from ..errors import OperandError, described


def one_of(what: str, keyword: str, value: Any, *allowed: str) -> Any:
    """The value of a keyword that names a convention, or an OperandError with the names there are."""
    if not isinstance(value, str) or value not in allowed:
        known = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise OperandError(f"{what}: {keyword} is {known}, not {described(value)}")
    return value


def flag(what: str, keyword: str, value: Any) -> bool:
    """The value of a keyword that says yes or no, or an OperandError."""
    if not isinstance(value, bool):
        raise OperandError(f"{what}: {keyword} is True or False, not {described(value)}")
    return value


def text_of(what: str, keyword: str, value: Any) -> str:
    """The value of a keyword that is text, or an OperandError."""
    if not isinstance(value, str):
        raise OperandError(f"{what}: {keyword} is text, not {described(value)}")
    return value


def whole_number(what: str, keyword: str, value: Any, least: int, most: int) -> int:
    """The value of a keyword that counts something, or an OperandError."""
    whole = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if not least <= whole <= most:
        raise OperandError(f"{what}: {keyword} is a whole number from {least} to {most}, not {described(value)}")
    return whole


def seeded(what: str, seed: Any) -> int:
    """The seed of random draws, or an OperandError."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OperandError(f"{what}: seed is a whole number, 0 or more, not {described(seed)}")
    return seed


def few(what: str, count: Any, of: str, most: int) -> None:
    """Raise OperandError for a count of what is made one by one that nothing could hold."""
    if count > most:
        raise OperandError(f"{what}: {described(count)} {of} are made one by one, and there are at most {most}")


def each_of(value: Any) -> list[Any]:
    """What was given as a list, tuple, set or iterator, in order; anything else is the only one."""
    return list(value) if isinstance(value, (list, tuple, Set, Iterator)) else [value]


def check_takes(what: str, f: Callable[..., Any], count: int) -> None:
    """Raise OperandError for a function that is seen not to take so many arguments."""
    if not callable(f):
        raise OperandError(f"{what}: {described(f)} is not a function")
    try:
        signature(f).bind(*range(count))
    except TypeError as problem:
        shown = re.sub(" at 0x[0-9a-f]+", "", described(f))  # where a function lies in memory tells nobody anything
        raise OperandError(f"{what}: {shown} does not take {count} arguments: {problem}") from None
    except ValueError:  # written in C, without a signature
        return
