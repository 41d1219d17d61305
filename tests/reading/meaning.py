"""What a formula may mean: statements in terms of symattn, and how far its text decides on them.

Indices of a formula are axes: ``A_{ij} = ...`` for all i and j defines the tensor A, with the axes i and j.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import sympy

import symattn as sa

READ, ONCE_DECLARED, WRONG, UNDECIDABLE = "read", "read once declared", "wrong at source", "undecidable"


class Declared(NamedTuple):
    """Names have shapes: those of a family for every index in its range."""

    shapes: dict[str, tuple[Any, ...]]
    ranges: dict[str, Any] = {}  # noqa: RUF012


class Natural(NamedTuple):
    """A name is a natural number."""

    name: str


class Space(NamedTuple):
    """A set of real tensors of one shape, of which nothing is said."""

    shape: tuple[Any, ...]


class Signature(NamedTuple):
    """A function takes arguments of these shapes and gives a result of that one."""

    name: str
    arguments: list[tuple[Any, ...]]
    result: tuple[Any, ...]


class Distributed(NamedTuple):
    """A name is random, with independent entries of a law."""

    name: str
    law: Any


class Defined(NamedTuple):
    """A name, or a function of parameters, stands for a value; ``shape`` is what the formula itself says of it."""

    name: str
    value: Any
    parameters: tuple[Any, ...] = ()
    shape: tuple[Any, ...] | None = None


class Stated(NamedTuple):
    """A claim, and what the prover says of it where ``given`` holds: that may say what the formula leaves unsaid."""

    claim: Any
    status: str = "proved"
    given: tuple[Any, ...] = ()


class Refused(NamedTuple):
    """What has no value as it stands, such as a product of shapes that do not fit, and why."""

    why: str


class Meaning(NamedTuple):
    """The statements of a formula, how far it decides on them, and why no further."""

    id: str
    verdict: str
    reason: str
    statements: tuple[Any, ...]


REGISTERED: dict[str, tuple[str, str, Callable[..., Any]]] = {}  # verdict, reason, and what builds the statements
Register = Callable[[Callable[..., Any]], Callable[..., Any]]


def _registered(id: str, verdict: str, reason: str) -> Register:
    def keep(build: Callable[..., Any]) -> Callable[..., Any]:
        assert id not in REGISTERED, id
        REGISTERED[id] = verdict, reason, build
        return build

    return keep


def reads(id: str, note: str = "") -> Register:
    """The formula is decided by what its source declares, and by nothing but the shapes of the names in it."""
    return _registered(id, READ, note)


def once_declared(id: str, needed: str) -> Register:
    """The formula is decided once something is said of its names that is not in its source."""
    return _registered(id, ONCE_DECLARED, needed)


def wrong(id: str, why: str) -> Register:
    """The formula is mistaken; what is meant here is what it says as it stands."""
    return _registered(id, WRONG, why)


def undecidable(id: str, why: str) -> Register:
    """The text has several readings that no declaration decides between; what is meant here is the author's."""
    return _registered(id, UNDECIDABLE, why)


def values_of(meaning: Meaning) -> list[Any]:
    """What its expressions and definitions stand for, and both sides of its claims: tensors and scalars, in order."""
    values: list[Any] = []
    for statement in meaning.statements:
        if isinstance(statement, (sa.Tensor, sympy.Basic)):
            values.append(statement)
        elif isinstance(statement, Defined):
            values.append(statement.value)
        elif isinstance(statement, Stated):
            values += statement.claim.sides
    return values
