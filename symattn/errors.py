"""Every error symattn raises on purpose: one base, typed children, texts that say what to do.

Each child also derives from the built-in error a Python user would expect, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any


class SymattnError(Exception):
    """Base of all errors raised by symattn."""


class ShapeError(SymattnError, ValueError):
    """Sizes that do not fit: the message names the tensors, their shapes, the axis and a likely fix."""


class NamingError(SymattnError, ValueError):
    """A name that is not allowed, or that would mean two things in one expression."""


class OperandError(SymattnError, TypeError):
    """Something that is not a tensor or a scalar where one is meant."""


class NoRuleError(SymattnError, NotImplementedError):
    """A derivative, printed form or code that is not known; it is never taken to be zero."""


class EvaluationError(SymattnError, ValueError):
    """Arrays that cannot be used, or numbers that disagree."""


class TypesettingError(SymattnError, RuntimeError):
    """A page that no installed program can set."""


class FileError(SymattnError, OSError):
    """A file or a folder that cannot be written or read: the message says why, and the way out."""

    def __init__(self, problem: str, number: int | None = None, path: str | None = None) -> None:
        super().__init__(problem)
        self.problem = self.strerror = problem
        self.errno, self.filename = number, path

    def __str__(self) -> str:
        return self.problem  # an OSError shows its number and the repr of its path

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.errno, self.filename)


class AbsentError(SymattnError, KeyError):
    """A key that results do not have: the message names those they have."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows the repr of its message


class ParseError(SymattnError, ValueError):
    """Text that cannot be read, with a caret under the place."""

    def __init__(self, problem: str, source: str = "", column: int = 0) -> None:
        self.problem, self.source, self.column = problem, source, column
        place = f"\n  {source}\n  {' ' * column}^" if source else ""
        super().__init__(problem + place)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.source, self.column)


_HOMES = {"array", "builtins", "collections", "sympy", "symattn"}


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 120

    def repr1(self, x: Any, level: int) -> str:
        """Python chooses by the name of the class alone, and others have a Tensor, an Integer or an array too."""
        home = str(type(x).__module__).partition(".")[0]  # None of the functions that SymPy makes
        return super().repr1(x, level) if home in _HOMES else self.repr_instance(x, level)

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() < 256 else f"an integer of {x.bit_length()} bits"

    def repr_Integer(self, x: Any, level: int) -> str:  # of SymPy
        return self.repr_int(int(x), level)

    def repr_Tensor(self, x: Any, level: int) -> str:
        return str(x.brief() if x.shape else x)


def described(value: Any) -> str:
    """What somebody gave, in one line: a tensor with its shape, else the repr, which may be long, or fail."""
    return " ".join(line.strip() for line in _Brief().repr(value).splitlines())


def listed(values: Iterable[Any]) -> str:
    """Several of these, with commas between them."""
    return ", ".join(map(described, values))
