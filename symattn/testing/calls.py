"""Calls of somebody's own function: with fresh copies of arrays, in the form that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Adaptation:
    """How fresh copies of arrays, and the cotangents after them, become the arguments of a call."""

    def __init__(self, adapt: Callable[..., Any] | None, count: int) -> None:
        self.adapt = adapt
        self.together = adapt is not None and count > 1 and _takes_several(adapt)

    def __call__(self, arrays: Sequence[Any], cotangents: Sequence[Any] = ()) -> list[Any]:
        if self.together:
            assert self.adapt is not None
            return [*self.adapt(*map(_copied, arrays)), *map(_copied, cotangents)]
        return [self._each(_copied(x)) for x in (*arrays, *cotangents)]

    def _each(self, x: Any) -> Any:
        return self.adapt(x) if self.adapt is not None and isinstance(x, np.ndarray) else x


def _copied(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _takes_several(adapt: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(adapt).parameters.values()
    except ValueError:  # a built-in such as torch.from_numpy shows no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return len(required) > 1 or (not required and any(p.kind is p.VAR_POSITIONAL for p in parameters))


def called(what: str, function: Callable[..., Any], arguments: Sequence[Any], where: str) -> Any:
    """The result of a call, in which what overflows shows by its value; AssertionError that says where it raises."""
    __tracebackhide__ = True
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except Exception as problem:  # somebody's own code may fail in any way; the test fails with it
        raise AssertionError(f"{what} raised {type(problem).__name__} at {where}: {problem}") from problem
