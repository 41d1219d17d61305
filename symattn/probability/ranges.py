"""How far the free indices of an entry run: what its formula says of them, and no more.

A formula that reads ``X[i, j]`` in any case has a value only where i is below the size of that axis. What it reads in
one case only, ``X[i, j]`` for ``i < T`` and else 0, says nothing of i: the entry may be one of a longer axis, of which
only conditions of entries know the size. Without them such an index has a range without a known end. What holds for
every end holds for the least one, which answers are written with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.sizes import never_negative
from ..normal_form.indices import divided
from ..scalars.affine import affine, ends
from ..scalars.formulas import Choice, Ranged, _Extreme

Limits = dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]
_CONDITIONS = (Choice, sympy.KroneckerDelta, sympy.Mod, sympy.floor)


def index_ranges(formula: sympy.Expr, tensor: Callable[[str], Tensor]) -> dict[sympy.Symbol, sympy.Expr]:
    """The free index symbols of a formula of entries, each with the size of its range."""
    reads = list(_reads(formula, tensor, True, {}))
    sizes = {s for _, size, *_ in reads for s in size.free_symbols}
    indices = [i for i, *_ in reads if i.is_Symbol] + [s for i, *_ in reads for s in _loose(i) if not s.is_positive]
    conditions = [c for kind in _CONDITIONS for part in formula.atoms(kind) for c in _compared(part)]
    indices += [s for c in conditions for s in _loose(c) if s.is_integer and not s.is_positive]
    limits = {k: edges for total in formula.atoms(sympy.Sum, _Extreme) for k, *edges in total.limits}
    indices += [s for edges in limits.values() for e in edges for s in _loose(e) if not s.is_positive]
    free = sorted({s for s in indices if s not in sizes and s not in limits}, key=str)
    ends = {part.args[0]: part.args[1] for part in sorted(formula.atoms(Ranged), key=str)}
    for place, size, over in ((i, size, over) for i, size, always, over in reads if always):
        for s in free:
            end = _end(s, place, size, over, free)
            if end is not None and (s not in ends or never_negative(ends[s] - end)):
                ends[s] = end
    return {s: ends[s] if s in ends else _endless(s, formula) for s in free}


def _loose(e: sympy.Expr) -> set[sympy.Symbol]:
    """The symbols of an index, without those at which entries in it are read."""
    return {s for s in e.replace(lambda part: isinstance(part, sympy.Indexed), lambda _: sympy.S.Zero).free_symbols}


def _compared(part: Any) -> Iterator[sympy.Expr]:
    """What a condition compares, or what is divided."""
    if isinstance(part, Choice):
        for relation in part.args[0].atoms(sympy.core.relational.Relational):
            yield from relation.args
    else:
        yield from part.args


def _reads(
    e: Any, tensor: Callable[[str], Tensor], always: bool, over: Limits
) -> Iterator[tuple[sympy.Expr, sympy.Expr, bool, Limits]]:
    """Where entries are read: the index, the size of the axis, whether in any case, and the sums around."""
    if isinstance(e, sympy.Indexed):
        for i, size in zip(e.indices, tensor(str(e.base)).shape, strict=True):
            yield i, size, always, over
        parts, inside = e.indices, over
    elif isinstance(e, (sympy.Sum, _Extreme)):
        parts, inside = (e.function,), {**over, **{k: (low, high) for k, low, high in reversed(e.limits)}}
    else:
        parts, inside = e.args, over
    for n, part in enumerate(parts):
        yield from _reads(part, tensor, always and not (n and isinstance(e, Choice)), inside)


def _end(
    s: sympy.Symbol, place: sympy.Expr, size: sympy.Expr, over: Limits, free: list[sympy.Symbol]
) -> sympy.Expr | None:
    """The size of the range that a place from 0 to size - 1 leaves to a symbol, None if it leaves all."""
    if isinstance(place, sympy.floor):
        above, below = sympy.fraction(sympy.together(place.args[0]))
        return None if below.has(*free) else _end(s, above, sympy.expand(size * below), over, free)
    for edge, sign in ((_edge(place, over, 1), 1), (_edge(place, over, -1), -1)):
        found = None if edge is None or edge.has(sympy.Mod, sympy.floor, sympy.Indexed) else affine(edge, [s])
        if found is None or found[1][s] == 0:
            continue
        rest, slope = found[0], found[1][s]
        others = [t for t in free if rest.has(t)]
        if any(not never_negative(sign * rest.coeff(t)) for t in others):
            continue
        start = rest.subs(dict.fromkeys(others, 0))
        if sign == 1 and slope == 1:
            return sympy.expand(size - start)
        if sign == 1 and start == 0 and never_negative(slope - 1):
            return divided(size, slope)
        if sign == -1 and slope == -1 and not others:
            return sympy.expand(start + 1)
    return None


def _edge(place: sympy.Expr, over: Limits, sign: int) -> sympy.Expr | None:
    """The largest place (the least for the sign -1) over the sums around; None if that is not known.

    A sum from an index on may be empty, and then reads nothing.
    """
    for k, (low, high) in reversed(over.items()):
        found = affine(place, [k]) if low == 0 else None
        edges = None if found is None else ends(*found, {k: high + 1})
        if edges is None:
            return None
        place = edges[sign == 1]
    return place


def _endless(s: sympy.Symbol, formula: sympy.Expr) -> sympy.Expr:
    """A range without a known end, a multiple of all that the symbol is divided by."""
    below = {part.args[1] for part in formula.atoms(sympy.Mod) if part.args[0].has(s)}
    below |= {sympy.fraction(sympy.together(part.args[0]))[1] for part in formula.atoms(sympy.floor) if part.has(s)}
    return sympy.Mul(_unknown_size(s.name), *sorted(below, key=str))


def least_end(s: sympy.Symbol, size: sympy.Expr) -> dict[sympy.Symbol, sympy.Expr]:
    """The least value of the unknown end of a range, by the index that is inside; nothing where the end is known."""
    end = _unknown_size(s.name)
    return {end: sympy.floor(s / (size / end)) + 1} if size.has(end) else {}


@lru_cache(maxsize=256)
def _unknown_size(name: str) -> sympy.Dummy:
    """One symbol for the unknown end of an index of a name, also when a calculation begins again."""
    return sympy.Dummy(f"N_{name}", integer=True, positive=True)
