"""NumPy's spelling of basic indexing, ``x[1:, None, ::k]``, as the items of an index."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.naming import free_letters
from ..core.node import Tensor
from ..core.sizes import as_integer, as_size, never_negative
from ..errors import OperandError, ShapeError, described
from .index import NEW, Item, index


def getitem(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` with integers, slices, ``None`` and ``...`` as in NumPy."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    dots = [place for place, k in enumerate(keys) if k is Ellipsis]
    if taken > x.rank or len(dots) > 1:
        raise ShapeError(f"{x.brief()} has {x.rank} axes and cannot be indexed by {_show_key(keys)}")
    place = dots[0] if dots else len(keys)
    keys[place : place + 1] = [slice(None)] * (x.rank - taken)
    sizes = iter(x.shape)
    return index(x, tuple(NEW if k is None else _item(k, next(sizes), x) for k in keys))


def _item(key: Any, size: sympy.Expr, x: Tensor) -> Item:
    if isinstance(key, slice):
        return _slice_item(key, size, x)
    return ("at", _place(_integer(key, x), size, x))


def _integer(key: Any, x: Tensor) -> sympy.Integer:
    number = as_integer(key)
    if number is None:
        allowed = "integers, slices, None, ..., or index symbols"
        raise OperandError(f"{x.brief()} is indexed by {described(key)}: use {allowed}")
    return sympy.Integer(number)


def _place(at: sympy.Expr, size: sympy.Expr, x: Tensor) -> sympy.Expr:
    place = sympy.expand(size + at) if at.is_negative else at
    if place.is_negative:
        raise ShapeError(f"index {described(at)} is out of range for the size {size} in {x.brief()}")
    return place


def _slice_item(key: slice, size: sympy.Expr, x: Tensor) -> Item:
    step = _step(key.step, x)
    first, last = (sympy.S.Zero, size) if step > 0 else (size - 1, sympy.S.NegativeOne)
    lowest, highest = (first, last) if step > 0 else (last, first)
    start = first if key.start is None else _edge(key.start, size, lowest, highest, x)
    stop = last if key.stop is None else _edge(key.stop, size, lowest, highest, x)
    length = _how_often(abs(step), sympy.expand((stop - start) * (-1 if step < 0 else 1)))
    if length is None:
        free = next(free_letters("m", {s.name for e in (size, sympy.sympify(step)) for s in e.free_symbols}))
        raise ShapeError(
            f"a slice of {x.brief()} with step {step} has a length that is no expression of sizes: "
            f"declare the size {size} as a multiple of {abs(step)}, for example {abs(step)}*{free}"
        )
    if length.is_positive is False:
        raise ShapeError(f"the slice {_show_key([key])} of {x.brief()} is empty")
    return ("slice", start, step, as_size(length))


def _step(step: Any, x: Tensor) -> Any:
    """The step of a slice: an integer, or an expression of sizes of a sign that is known."""
    if not isinstance(step, sympy.Expr) or step.is_Integer:
        number = 1 if step is None else int(_integer(step, x))
        if number == 0:
            raise ShapeError(f"a slice of {x.brief()} has step 0")
        return number
    taken = sympy.expand(step)
    if not taken.is_integer or not (taken.is_positive or taken.is_negative):
        raise ShapeError(f"a slice of {x.brief()} has the step {described(step)}, which is not seen to be positive")
    return taken


def _how_often(step: Any, room: sympy.Expr) -> sympy.Expr | None:
    """How many places there are in so much room, one every step: the quotient rounded up, where it is a size."""
    if isinstance(step, int):
        count = sympy.expand(room) if step == 1 else sympy.ceiling(sympy.expand(room / step))
        return None if count.has(sympy.ceiling, sympy.floor) else count
    for size in sorted(step.free_symbols, key=str):
        whole, rest = sympy.div(room, step, size)
        if not whole.is_integer:
            continue
        if never_negative(-rest) and never_negative(rest + step - 1):
            return sympy.expand(whole)
        if never_negative(rest - 1) and never_negative(step - rest):
            return sympy.expand(whole + 1)
    return None


def _edge(at: Any, size: sympy.Expr, lowest: sympy.Expr, highest: sympy.Expr, x: Tensor) -> sympy.Expr:
    """Where a slice begins or ends: from the end if it is negative, and cut off at the ends of the axis."""
    edge = at if isinstance(at, sympy.Expr) and at.is_integer is not False else _integer(at, x)
    from_end = never_negative(-edge - 1) or (edge != 0 and all(s.is_positive for s in edge.free_symbols))
    if from_end and never_negative(-edge):  # an offset that may be 0 would then count from the start
        edge = sympy.expand(size + edge)
    elif not never_negative(edge):
        raise ShapeError(
            f"{x.brief()} is sliced at {described(at)}, whose sign is not known, so that it may count from the start "
            "or from the end: slice from the other end, or use sizes that make it positive"
        )
    if sympy.expand(edge - highest).is_positive:
        return highest
    return lowest if sympy.expand(edge - lowest).is_negative else edge


def _show_key(keys: list[Any]) -> str:
    def show(k: Any) -> str:
        if isinstance(k, slice):
            edges = ["" if e is None else described(e) for e in (k.start, k.stop)]
            return ":".join(edges + ([described(k.step)] if k.step is not None else []))
        return "..." if k is Ellipsis else described(k)

    return "[" + ", ".join(map(show, keys)) + "]"
