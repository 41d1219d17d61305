"""What an entry of a tensor reads of others by their names: ``Z[i, j]`` reads ``Q[i, :]`` and ``K[j, :]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from ...core.naming import free_letters
from ...core.node import Tensor
from ...core.sizes import same_size
from ...graph.entries import entry_by_names, entry_size
from ...scalars.formulas import Choice

_MOST_PARTS = 300  # of a formula of which it is told what it reads
_LETTERS = "mpqrstuvw"
Index = tuple[Any, ...]  # None is any place of an axis


class Read(NamedTuple):
    """Entries of a named tensor, at some places, under conditions."""

    name: str
    places: Index
    conditions: tuple[Boolean, ...]


def reads(x: Tensor, index: Index, names: Mapping[Tensor, str], taken: set[str]) -> list[Read]:
    """What the entry of a tensor at an index reads, each once; nothing where that would be too long to say."""
    if entry_size(x, names) > _MOST_PARTS:
        return []
    shapes = {name: node.shape for node, name in names.items()}
    found = list(dict.fromkeys(_in(entry_by_names(x, index, names), (), {}, shapes)))
    told = list(dict.fromkeys(_lettered(read, taken) for read in found))
    kept = [read for read in told if not any(_holds(other, read, index) for other in told if other != read)]
    return kept or told[:1]


def _in(e: Any, conditions: tuple[Any, ...], ranges: Mapping[Any, Any], shapes: Mapping[str, Any]) -> Iterator[Read]:
    """The entries that a formula reads, with the conditions and the ranges of bound indices under which it does."""
    if isinstance(e, sympy.Indexed):
        yield _read(e, conditions, ranges, shapes[str(e.base)])
    elif isinstance(e, Choice):
        condition, a, b = e.args
        yield from _in(condition, conditions, ranges, shapes)
        for value, holds in ((a, condition), (b, sympy.Not(condition))):
            yield from _in(value, (*conditions, *_plain(holds)), ranges, shapes)
    elif e.is_Mul or e.is_Add:  # a factor 0, as a term -oo, leaves nothing of the others
        nothing = 0 if e.is_Mul else -sympy.oo
        masks = [f.args[0] for f in e.args if isinstance(f, Choice) and f.args[2] == nothing]
        more = (*conditions, *(c for condition in masks for c in _plain(condition)))
        for f in e.args:
            yield from _in(f, more, ranges, shapes)
    elif isinstance(e, ExprWithLimits):
        yield from _in(e.function, conditions, {**ranges, **{k: ends for k, *ends in e.limits}}, shapes)
    else:
        for part in e.args:
            yield from _in(part, conditions, ranges, shapes)


def _plain(condition: Any) -> tuple[Any, ...]:
    """The conditions on indices alone, each by itself."""
    parts = condition.args if isinstance(condition, sympy.And) else (condition,)
    return tuple(c for c in parts if not c.has(sympy.Indexed) and c != sympy.true)


def _read(e: Any, conditions: tuple[Any, ...], ranges: Mapping[Any, Any], shape: Sequence[Any]) -> Read:
    """One entry; a bound index that takes all places of its axis, under no condition, is any."""
    told: list[Any] = []
    limits: list[Any] = []
    for place, size in zip(e.indices, shape, strict=True):
        bound = place in ranges
        low, high = ranges.get(place, (0, 0))
        whole = bound and low == 0 and same_size(high + 1, size)
        free = whole and not any(c.has(place) for c in conditions) and e.indices.count(place) == 1
        told.append(None if free else place)
        limits += [sympy.Le(low, place, evaluate=False)] * (bound and low != 0)
        limits += [sympy.Le(place, high, evaluate=False)] * (bound and not same_size(high + 1, size))
    shown = {s for place in told if place is not None for s in place.free_symbols}
    held = (c for c in conditions if c.atoms(sympy.Dummy) <= shown)
    return Read(str(e.base), tuple(told), tuple(dict.fromkeys([*held, *limits])))


def _lettered(read: Read, taken: set[str]) -> Read:
    """The same with letters for bound indices."""
    free = dict.fromkeys(s for place in read.places if place is not None for s in sorted(place.free_symbols, key=str))
    bound = [s for s in free if isinstance(s, sympy.Dummy)]
    letters = free_letters(_LETTERS, taken)
    new = {s: sympy.Symbol(next(letters), integer=True, nonnegative=True) for s in bound}
    places = tuple(None if place is None else place.xreplace(new) for place in read.places)
    return Read(read.name, places, tuple(dict.fromkeys(_tidied(c.xreplace(new)) for c in read.conditions)))


def _tidied(condition: Any) -> Any:
    """A comparison with each term on the side where it is added."""
    if not isinstance(condition, Relational) or condition.has(sympy.Function):
        return condition
    terms = sympy.Add.make_args(sympy.expand(condition.lhs - condition.rhs))
    taken = [-term for term in terms if term.could_extract_minus_sign()]
    return condition.func(
        sympy.Add(*(t for t in terms if not t.could_extract_minus_sign())), sympy.Add(*taken), evaluate=False
    )


def _holds(other: Read, read: Read, index: Index) -> bool:
    """Whether what is read is among what another reads: a place where that has any, or a letter of its own."""
    if other.name != read.name:
        return False
    new: dict[Any, Any] = {}
    for wide, narrow in zip(other.places, read.places, strict=True):
        if wide is None or wide == narrow:
            continue
        own = narrow is not None and wide.is_Symbol and wide not in index
        if not own or new.setdefault(wide, narrow) != narrow:
            return False
    return {c.xreplace(new) for c in other.conditions} <= set(read.conditions)
