"""Conditions on sizes: what divides what, and what fits into what, without what is given and what others imply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from ..core.node import Tensor
from ..core.sizes import divisibility, inequality, never_negative
from ..ops.domain import rooms, sizes_of
from .dependence.formula_walk import FormulaWalk
from .dependence.index_constraints import negated, possible
from .relations import solution


def fitting(nodes: Sequence[Tensor], relations: Sequence[Boolean]) -> list[str]:
    """What must hold of sizes for the axes of nodes to have entries, and for what is read to lie inside of them."""
    stated = []
    values = _values(relations)
    for size in dict.fromkeys(size for node in nodes for size in sizes_of(node)):
        if divisibility([sympy.cancel(size.subs(values))]) and not _divides(size, relations):
            stated += divisibility([size])
    return list(dict.fromkeys([*stated, *_inequalities(rooms(nodes), relations)]))


def misfits(nodes: Sequence[Tensor], known: Sequence[Tensor], apart: sympy.Symbol) -> Iterator[str]:
    """What must hold of the sizes of nodes that does not follow from those of known nodes in which a size is not."""
    own, sizes = ([size for node in several for size in sizes_of(node)] for several in (nodes, known))
    granted = divisibility(size for size in sizes if apart not in size.free_symbols)
    yield from (c for c in divisibility(own) if c not in granted)
    others = [room for room in rooms(known) if apart not in room.free_symbols]
    yield from filter(None, (inequality(room) for room in rooms(nodes) if not follows(room, others, ())))


def _values(relations: Sequence[Boolean]) -> dict[sympy.Symbol, sympy.Expr]:
    """The sizes that equalities give by others."""
    values: dict[sympy.Symbol, sympy.Expr] = {}
    for relation in relations:
        if (found := solution(relation.xreplace(values))) is not None:
            values = {size: value.subs(*found) for size, value in values.items()} | dict([found])
    return values


def _divides(size: sympy.Expr, relations: Sequence[Boolean]) -> bool:
    above, below = sympy.fraction(sympy.together(size))
    return bool(relations) and implied(sympy.Eq(sympy.Mod(above, below), 0), relations)


def _inequalities(needed: list[sympy.Expr], relations: Sequence[Boolean]) -> Iterator[str]:
    for room in list(needed):
        others = [other for other in needed if other != room]
        if (others or relations) and follows(room, others, relations):
            needed = others
    yield from filter(None, map(inequality, needed))


def follows(room: sympy.Expr, others: Sequence[sympy.Expr], relations: Sequence[Boolean]) -> bool:
    """Whether an expression of sizes is never negative where others are not, under what is given."""
    if any(never_negative(apart) for apart in _by_distance(room, relations)):
        return True
    offsets = sorted((s for e in (room, *others) for s in e.free_symbols if not s.is_positive), key=str)
    walk = FormulaWalk((), {s: f"v.{s.name}" for s in offsets})  # a name of what is never negative
    wanted, known = walk.not_negative(room), walk.not_negative(*others)
    if not wanted:
        return False
    (below,) = negated(*wanted)
    return not any(possible([*case, *known, below]) for case in _cases(relations, walk))


def _by_distance(room: sympy.Expr, relations: Sequence[Boolean]) -> Iterator[sympy.Expr]:
    """The expression with n + 1 and any number for a size m where n < m is given, which products are decided by."""
    for relation in relations:
        if isinstance(relation, (sympy.StrictLessThan, sympy.StrictGreaterThan)) and relation.gts.is_Symbol:
            further = sympy.Symbol("further", integer=True, nonnegative=True)
            yield sympy.expand(room.subs(relation.gts, relation.lts + 1 + further))


def implied(c: Any, relations: Sequence[Boolean]) -> bool:
    """Whether a comparison of sizes follows from what is given of them."""
    return not any(map(possible, _cases([*relations, sympy.Not(c)])))


def _cases(relations: Sequence[Any], walk: FormulaWalk | None = None) -> Any:
    return (walk or FormulaWalk((), {})).condition(sympy.And(*relations))
