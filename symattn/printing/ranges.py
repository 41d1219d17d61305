"""How far indices run, where what they read does not say so: ``X_{i j}`` for i = 0, ..., n - 2 are rows of X."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sympy

from ..core.boxes import Box, Sign, commas, row
from ..core.sizes import ONE, Shape, same_size
from ..scalars.formulas import InverseEntry, Max, Min, UnknownOfRow

Sizes = Mapping[sympy.Symbol, Any]
_STRICT = (sympy.StrictLessThan, sympy.StrictGreaterThan)


class Place(NamedTuple):
    """An index of an entry, and the size of the axis that it is read along."""

    at: Any
    size: Any


def untold(formula: Any, sizes: Sizes, shapes: Mapping[str, Shape]) -> list[sympy.Symbol]:
    """The indices that read less than an axis, or nothing at all; ``sizes`` are how many values each has."""
    entries = formula.atoms(sympy.Indexed)
    places = [Place(*place) for entry in entries for place in zip(entry.indices, shapes[_name(entry)], strict=True)]
    for entry in formula.atoms(InverseEntry, UnknownOfRow):
        places += [Place(at, high + 1) for at, (_, _, high) in zip(entry.places, entry.limits, strict=True)]
    read = [place for place in places if place.size is not ONE]
    whole = {at for at, size in read if at in sizes and same_size(sizes[at], size)}
    rest = [i for i in sizes if i not in whole]
    if not rest:
        return []
    unread = {i for place in places if place.size is ONE for i in place.at.free_symbols}
    read += _ends_of_sums(formula, read, sizes)
    return [i for i in rest if _is_untold(i, sizes, read, not formula.has(i) or i in unread)]


def certain(formula: Any, sizes: Sizes) -> dict[Any, Any]:
    """The relations of a formula that hold for all values of the indices."""
    ordered = (sympy.StrictLessThan, sympy.LessThan, sympy.StrictGreaterThan, sympy.GreaterThan)
    return dict.fromkeys((r for r in formula.atoms(*ordered) if _is_certain(r, sizes)), sympy.true)


def _is_certain(relation: Any, sizes: Sizes) -> bool:
    least = sympy.expand(relation.gts - relation.lts)
    for i in least.free_symbols & sizes.keys():
        slope = least.coeff(i)
        if not slope.is_number or (least - slope * i).has(i):
            return False
        least = sympy.expand(least.xreplace({i: sizes[i] - 1 if slope.is_negative else sympy.S.Zero}))
    return bool(least.is_positive if isinstance(relation, _STRICT) else least.is_nonnegative)


def _name(entry: sympy.Indexed) -> str:
    return str(entry.base.label)


def _ends_of_sums(formula: Any, read: Sequence[Place], sizes: Sizes) -> Iterator[Place]:
    """What the last term of a sum reads that goes as far as an index says."""
    limits = [limit for total in formula.atoms(sympy.Sum, Max, Min) for limit in total.limits]
    ends = {k: end for k, *edges in limits for end in edges if not sizes.keys().isdisjoint(end.free_symbols)}
    yield from (Place(at.xreplace(ends), size) for at, size in read if not ends.keys().isdisjoint(at.free_symbols))


def _is_untold(i: sympy.Symbol, sizes: Sizes, places: Iterable[Place], without: bool) -> bool:
    """``without`` says what holds of an index that reads nothing: a constant of indices may have it all the same."""
    read = [place for place in places if place.at.has(i)]
    if not read:
        return without
    return not any(same_size(sizes[i], place.size) or _ends_with(place, i, sizes) for place in read)


def _ends_with(place: Place, i: sympy.Symbol, sizes: Sizes) -> bool:
    """Whether the last value of an index reads the last entry or the first, and one more would read none."""
    if any(remainder.has(i) for remainder in place.at.atoms(sympy.Mod)):
        return False
    last = {j: many - 1 for j, many in sizes.items()}
    at = place.at.replace(sympy.floor, lambda inside: inside)  # which is as far below 0, or from a size on
    end, beyond = (sympy.expand(at.xreplace(values)) for values in (last, {**last, i: sizes[i]}))
    if same_size(end, place.size - 1):
        return True
    if beyond.is_negative and end.is_nonnegative:
        return True
    return bool(sympy.expand(beyond - place.size).is_nonnegative and sympy.expand(place.size - end).is_positive)


def ranging(letters: Sequence[Box], first: Box, last: Box, many: Any = None) -> Box:
    r"""``a = 1, \ldots, h``, of two values ``a = 1, 2``, and of one ``a = 1``."""
    rest = [] if many == 1 else [last] if many == 2 else [Sign("…"), last]
    return commas([row(commas(letters), Sign("=", "relation"), first), *rest])
