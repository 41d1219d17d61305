"""How far the free indices of an entry run: what its formula says of them, and no more.

A formula that reads ``X[i, j]`` in any case has a value only where i is below the size of that axis. What it reads in
one case only, ``X[i, j]`` for ``i < T`` and else 0, says nothing of i: the entry may be one of a longer axis, of which
only conditions of entries know the size. Without them such an index has a range without a known end. What holds for
every end holds for the least one, which answers are written with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..core.node import Tensor
from ..core.sizes import never_negative
from ..normal_form.indices import divided
from ..scalars.affine import affine, ends
from ..scalars.formulas import Choice, Ranged, _Extreme

Limits = dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]
_CONDITIONS = (Relational, sympy.KroneckerDelta, sympy.Mod, sympy.floor)


def index_ranges(formula: sympy.Expr, tensor: Callable[[str], Tensor]) -> dict[sympy.Symbol, sympy.Expr]:
    """The free index symbols of a formula of entries, each with the size of its range."""
    reads = list(_reads(formula, tensor, True, {}))
    sizes = {s for _, size, *_ in reads for s in size.free_symbols}
    limits = {k: edges for total in formula.atoms(sympy.Sum, _Extreme) for k, *edges in total.limits}
    places, edges = [i for i, *_ in reads], [edge for pair in limits.values() for edge in pair]
    compared = [side for part in formula.atoms(*_CONDITIONS) for side in part.args]
    indices = {i for i in places if i.is_Symbol}
    indices |= {s for e in (*places, *edges) for s in _loose(e) if not s.is_positive}
    indices |= {s for e in compared for s in _loose(e) if s.is_integer and not s.is_positive}
    free = sorted(indices - sizes - limits.keys(), key=str)
    known = {part.args[0]: part.args[1] for part in sorted(formula.atoms(Ranged), key=str)}
    for (place, size, always, over), s in product(reads, free):
        end = _end(s, place, size, over, free) if always else None
        if end is not None and (s not in known or never_negative(known[s] - end)):
            known[s] = end
    return {s: known[s] if s in known else _endless(s, formula) for s in free}


def _loose(e: sympy.Expr) -> set[sympy.Symbol]:
    """The symbols of an index, without those at which entries in it are read."""
    return set(e.xreplace(dict.fromkeys(e.atoms(sympy.Indexed), sympy.S.Zero)).free_symbols)


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
