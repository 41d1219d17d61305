"""Which nodes of a loop need be computed at the columns alone that a mask lets a block of rows see.

A choice by a condition of indices is 0 or -oo outside of it. The axis of the columns is followed through the loop, and
the value outside through entry formulas: exp(-oo) is 0, and 0 times anything. All is well if every sum over columns
meets terms that are 0 there, every largest entry -oo, and what is kept is 0.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits

from ...core.node import Tensor
from ...core.sizes import same_shape
from ...ops.leaves import from_index_op, is_minus_infinity, is_zero
from ...ops.logic import where_op
from ...ops.template import template
from ...scalars.formulas import Choice, Max
from .axes import Places, axes_of
from .columns import Columns, Marks, bounds_of
from .schedule import Loop

_OUTSIDE = (sympy.S.Zero, sympy.S.NegativeInfinity)
_NEUTRAL = {sympy.Sum: sympy.S.Zero, Max: sympy.S.NegativeInfinity}


def columns_of(loop: Loop, known: Collection[Tensor], block: Marks) -> Columns | None:
    """The columns that the first mask of a loop lets be seen; ``known`` are conditions that are there whole."""
    masks = [x for x in loop.order if _is_mask(x) and x.inputs[0] in known and loop.axes.get(x) == -2]
    if not masks:
        return None
    condition, size = masks[0].inputs[0], masks[0].shape[-1]
    bounds = bounds_of(condition.params["formula"], size, block)
    if bounds is None:
        return None
    masks = [x for x in masks if x.inputs[0] is condition]
    try:
        followed = _Followed(loop, masks)
    except _Needed:
        return None
    return Columns(masks, size, bounds, followed.axes, followed.reads)


def _is_mask(x: Tensor) -> bool:
    """Whether a node is chosen by a matrix of indices, and is 0 or -oo elsewhere."""
    if x.op is not where_op or x.inputs[0].op is not from_index_op or x.inputs[0].rank != 2:
        return False
    rest = x.inputs[2]
    return (is_zero(rest) or is_minus_infinity(rest)) and same_shape(x.inputs[0].shape, x.shape[-2:])


def _is_empty(part: Any) -> bool:
    """Whether a part of a formula is a sum of zeros."""
    return isinstance(part, sympy.Sum) and part.function == 0


def _is_no_choice(part: Any) -> bool:
    """Whether a part of a formula is a choice between two that are the same."""
    return isinstance(part, Choice) and part.args[1] == part.args[2]


class _Needed(Exception):
    """Something is needed at columns that are not seen."""


class _Followed:
    """The axis of the columns in each node of a loop, and what each is outside of them."""

    def __init__(self, loop: Loop, masks: list[Tensor]) -> None:
        self.loop, self.masks = loop, masks
        self.users: dict[Tensor, list[Tensor]] = {x: [] for x in loop.order}
        for x in loop.order:
            for y in dict.fromkeys(x.inputs):
                if y in self.users:
                    self.users[y].append(x)
        self.axes: dict[Tensor, int] = {}
        self.places: dict[Tensor, Places] = {}
        self.work: list[Tensor] = []
        for x in masks:
            self._cut(x, -1)
        while self.work:
            self._follow(self.work.pop())
        self.reads = {x: dict(places) for x, places in self.places.items()}
        self.outside: dict[Tensor, Any] = {}
        for x in loop.order:
            if x in self.places:
                self._value(x)

    def _cut(self, x: Tensor, axis: int) -> None:
        if self.axes.setdefault(x, axis) != axis or self.loop.axes.get(x) == axis:
            raise _Needed
        if x not in self.work:
            self.work.append(x)

    def _follow(self, x: Tensor) -> None:
        if x not in self.places:
            end = next((row for row in axes_of(x).rows if row[0] == self.axes[x]), None)
            if end is None:
                raise _Needed
            self._read(x, end[1])
        if x in self.loop.added:
            return
        for user in self.users[x]:
            for k, y in enumerate(user.inputs):
                if y is x:
                    self._meet(user, k)

    def _meet(self, user: Tensor, k: int) -> None:
        end = axes_of(user).along((k, self.axes[user.inputs[k]]))
        if end is None or (user in self.places and self.places[user] != end[1]):
            raise _Needed
        if end[0] is not None and self.axes.get(user) is None:
            self._cut(user, end[0])
        if user not in self.places:
            self._read(user, end[1])

    def _read(self, x: Tensor, places: Places) -> None:
        """The inputs that a node reads at these positions are cut there as well."""
        self.places[x] = places
        if len({k for k, _ in places}) < len(places):
            raise _Needed
        for k, axis in places:
            y = x.inputs[k]
            if y in self.users and y not in self.loop.added and y not in self.axes:
                self._cut(y, axis)
            elif self.axes.get(y, axis) != axis:
                raise _Needed

    def _value(self, x: Tensor) -> None:
        """What a node is outside of the columns; every fold over them has to meet what changes nothing."""
        entry = template(x)
        at = {symbol: (k, where) for symbol, (k, where) in entry.reads.items()}
        known = {symbol: value for symbol, (k, _) in at.items() if (value := self._outside(x, k)) is not None}
        for part in entry.formula.atoms(ExprWithLimits):
            bound = {k for k, *_ in part.limits}
            reads = [at[s] for s in part.function.free_symbols if s in at]
            if any(where[x.inputs[k].rank + self.reads[x][k]] in bound for k, where in reads if k in self.reads[x]):
                neutral = _NEUTRAL.get(type(part))
                if neutral is None or part.function.xreplace(known) != neutral:
                    raise _Needed
        if x in self.axes:
            value = entry.formula.xreplace(known).replace(_is_empty, lambda part: sympy.S.Zero)
            value = value.replace(_is_no_choice, lambda part: part.args[1])
            self.outside[x] = value if value in _OUTSIDE else None
            if x in self.loop.stored and value != 0:
                raise _Needed

    def _outside(self, x: Tensor, k: int) -> Any:
        """What an input is outside of the columns, if it is known."""
        if x in self.masks and k == 0:
            return sympy.S.Zero
        return self.outside.get(x.inputs[k]) if k in self.reads[x] else None
