"""Basic indexing as in NumPy: slices, integers and ``None``, as one record, and its transpose.

An index is a tuple of items, one an axis of the input or a new axis, the leading whole axes left out:
("slice", start, step, length), ("at", i) for an integer, ("new",) for ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import sympy

from ..core.boxes import (
    Box,
    Code,
    Fence,
    Matrix,
    Number,
    Script,
    Sign,
    Text,
    commas,
    function,
    lowered,
    row,
    subscripts,
)
from ..core.late import late
from ..core.node import Tensor
from ..core.operation import Entry, Operation, ShapeRule
from ..core.sizes import ONE, Shape, as_size, never_negative, same_size
from ..errors import ShapeError, described
from ..scalars.formulas import Choice
from .leaves import constant, zeros
from .notation import Binding, Written, flipped, is_number, scaled, source, times, transposed

Item = tuple[Any, ...]
NEW: Item = ("new",)


def linear(name: str, shape: ShapeRule, entry: Entry, back: Callable[..., Tensor], **record: Any) -> Operation:
    """What is linear in its first input, itself on a tangent, where the others say how and do not move.

    ``back(g, x, *others, **params)`` is its transpose.
    """

    def vjp(g: Tensor, y: Tensor, x: Tensor, *others: Tensor, **params: Any) -> tuple[Tensor | None, ...]:
        return back(g, x, *others, **params), *(None for _ in others)

    def jvp(tangents: Sequence[Tensor | None], y: Tensor, x: Tensor, *others: Tensor, **params: Any) -> Tensor:
        return zeros(*y.shape) if tangents[0] is None else made(tangents[0], *others, **params)

    made = Operation(name, shape, entry, vjp, jvp, **record)
    return made


def moved(name: str, **record: Any) -> Operation:
    """A linear operation that moves entries as they are."""
    return linear(name, **{"kind": "inputs", "minus_infinity": "kept", **record})


def replaced(items: tuple[Any, ...], axis: int, *new: Any) -> tuple[Any, ...]:
    """The tuple with the item at an axis, counted from the end, replaced by any number of others."""
    place = len(items) + axis
    return (*items[:place], *new, *items[place + 1 :])


def _axes_read(items: tuple[Item, ...]) -> int:
    return sum(item != NEW for item in items)


def _core(x: Tensor, items: tuple[Item, ...]) -> Shape:
    """The sizes of the axes that an index reads."""
    return x.shape[x.rank - _axes_read(items) :]


def _sized(items: tuple[Item, ...], core: Shape) -> list[tuple[Item, sympy.Expr | None]]:
    """The items of an index, each with the size of the axis that it reads, if it reads one."""
    sizes = iter(core)
    return [(item, None if item == NEW else next(sizes)) for item in items]


def _whole(size: sympy.Expr) -> Item:
    return ("slice", sympy.S.Zero, 1, size)


def items_read(x: Tensor, items: tuple[Item, ...]) -> Iterator[tuple[Item, sympy.Expr]]:
    """The items of an index that read an axis, each with the size of that axis."""
    return ((item, size) for item, size in _sized(items, _core(x, items)) if size is not None)


def reads_all(item: Item, size: sympy.Expr) -> bool:
    """Whether an item of an index keeps an axis of that size as it is."""
    return item[0] == "slice" and item[1] == 0 and item[2] == 1 and same_size(item[3], size)


def edges(item: Item) -> tuple[sympy.Expr, ...]:
    """The first and the last place that an item of an index reads."""
    return item[1:2] if item[0] == "at" else (item[1], item[1] + item[2] * (item[3] - 1))


@lru_cache(maxsize=16384)  # of one slice it is asked several times, and joins and gradients are made of many
def lies_inside(item: Item, size: sympy.Expr) -> bool:
    """Whether the places that an item reads are whole numbers and seen to lie inside an axis of a size."""
    places = edges(item)
    whole = all(place.is_integer for place in (size, *places))
    return whole and all(never_negative(place) and never_negative(size - 1 - place) for place in places)


def _index_shape(x: Tensor, items: tuple[Item, ...]) -> Shape:
    for item, size in items_read(x, items):
        if not lies_inside(item, size):
            for at in edges(item):
                if sympy.expand(at).is_negative or sympy.expand(size - 1 - at).is_negative:
                    raise ShapeError(f"index {described(at)} is out of range for the size {size} in {x.brief()}")
    kept = [item[3] if item[0] == "slice" else ONE for item in items if item[0] != "at"]
    return (*x.shape[: x.rank - _axes_read(items)], *kept)


def _resized(items: tuple[Item, ...], shape: Shape) -> tuple[Item, ...]:
    """The items of an index whose slices have the lengths of another shape of the result."""
    own = iter(shape[len(shape) - sum(item[0] != "at" for item in items) :])
    return tuple(item if item[0] == "at" else _of_length(item, next(own)) for item in items)


def _of_length(item: Item, length: sympy.Expr) -> Item:
    return (*item[:3], length) if item[0] == "slice" else item


def _read_at(items: tuple[Item, ...], own: tuple[Any, ...]) -> tuple[Any, ...]:
    given = iter(own)
    at = []
    for item in items:
        if item[0] == "at":
            at.append(item[1])
        else:
            i = next(given)
            if item != NEW:
                at.append(item[1] + item[2] * i)
    return tuple(at)


def _index_entry(read: Any, index: Any, node: Tensor) -> Any:
    items = node.params["items"]
    lead = node.inputs[0].rank - _axes_read(items)
    return read(0, (*index[:lead], *_read_at(items, index[lead:])))


def _index_back(g: Tensor, x: Tensor, items: tuple[Item, ...]) -> Tensor:
    """Where the index only adds or removes axes of size 1, the way back is an index too."""
    core, back = _core(x, items), []
    for item, size in _sized(items, core):
        if item == NEW:
            back.append(("at", sympy.S.Zero))
        elif item[0] == "at" and size == 1:
            back.append(NEW)
        elif size is not None and reads_all(item, size):
            back.append(item)
        else:
            return embed_op(g, items=items, core=core)
    return index(g, tuple(back))


def _shown_edge(p: Any, at: sympy.Expr, size: sympy.Expr | None) -> Box:
    """An edge as it is written; in NumPy text one that counts from the end is a negative number."""
    back = at if size is None or at.is_Integer or not p.code else sympy.expand(at - size)
    return cast(Box, p.small(back if back.is_Integer and back.is_negative else at))


def _shown_place(p: Any, at: sympy.Expr, size: sympy.Expr | None) -> Box:
    """The place of an entry, counted as all indices are; an edge behind it counts from 0 what is the last from 1."""
    return _shown_edge(p, at + p.first_index, size)


def steps_back(x: Tensor) -> bool:
    """Whether a slice reads an axis from its end."""
    return any(item[0] == "slice" and item[2] < 0 for item in x.params["items"] if item != NEW)


def is_flip(x: Tensor) -> bool:
    """Whether a tensor is another one from the end of its first axis, and nothing else of it is moved."""
    if x.op is not index_op or not x.rank or x.rank != x.inputs[0].rank:
        return False
    whole = (("slice", 0, 1, size) for size in x.inputs[0].shape[1:])
    return x.params["items"] == (("slice", x.shape[0] - 1, -1, x.inputs[0].shape[0]), *whole)


def _shown_item(p: Any, item: Item, size: sympy.Expr | None) -> Box:
    """A part of an index as it is written between brackets."""
    if item == NEW:
        return Code("None") if p.code else Text("new")
    if item[0] == "at":
        return _shown_place(p, item[1], size)
    _, start, step, length = item
    stop = sympy.expand(start + step * length)
    to_end = size is not None and step > 0 and sympy.expand(stop - size).is_nonnegative
    first = [] if start == 0 and step > 0 else [_shown_place(p, start, size)]
    last = [] if to_end or (step < 0 and sympy.expand(stop + 1).is_nonpositive) else [_shown_edge(p, stop, size)]
    return row(*first, Sign(":"), *last, *([Sign(":"), p.scalar(step)] if step != 1 else []))


def _index_notation(p: Any, node: Tensor) -> Written:
    x, items = node.inputs[0], node.params["items"]
    lead = x.rank - _axes_read(items)
    shown = [Sign(":")] * lead + [_shown_item(p, item, size) for item, size in _sized(items, _core(x, items))]
    if p.code:
        return row(p.operand(x, Binding.ATOM), Fence(commas(shown), "[", "]")), Binding.ATOM
    if NEW in items and (written := _with_new_axes(p, node)) is not None:
        return written
    full = (*map(_whole, x.shape[:lead]), *items)
    return _part(p, x, full) if x.rank <= 2 and NEW not in full else _below(p, x, shown)


def _below(p: Any, x: Tensor, shown: Sequence[Box]) -> Written:
    """A tensor with the parts of an index below it."""
    return lowered(p.operand(x, Binding.ATOM), subscripts(shown)), Binding.ATOM


def _with_new_axes(p: Any, node: Tensor) -> Written | None:
    """A number stays one, and a vector is a column or a row; axes in front are those of a batch."""
    bare = index(node.inputs[0], tuple(item for item in node.params["items"] if item != NEW))
    own = max(bare.rank, 2)
    if is_number(bare) or (bare.rank > 1 and node.shape[-own:] == bare.shape):
        return p.unfenced(bare)
    if bare.rank > 1 or any(size != 1 for size in node.shape[:-2]):
        return None
    return p.unfenced(bare) if node.shape[-1] == 1 else flipped(p, bare)


def _part(p: Any, x: Tensor, items: tuple[Item, ...]) -> Written:
    """An entry, a row, a column or a block of a matrix: ``A_{01}``, ``A_{0,:}``, ``A_{:,1}``, ``A_{:S,:}``."""
    if x.rank == 2 and 1 in x.shape and all(reads_all(*read) or read[1] == 1 for read in items_read(x, items)):
        return flipped(p, x) if x.shape[0] == 1 != x.shape[1] else p.unfenced(x)  # one axis less, and no entry less
    sized = _sized(items, x.shape)
    taken = [("at", item[1]) if item[0] == "slice" and item[3] == 1 else item for item, _ in sized]
    shown = [_shown_item(p, item, size) for item, (_, size) in zip(taken, sized, strict=True)]
    written, binding = _below(p, x, shown)
    if x.rank == 2 and items[0][0] == "at" and taken[1][0] == "slice":  # a row, of rank 1, which is a column
        return transposed(written), Binding.POWER
    return written, binding


index_op = moved(
    "index",
    is_view=True,
    resized=lambda node, shape: {"items": _resized(node.params["items"], shape)},
    shape=_index_shape,
    entry=_index_entry,
    back=_index_back,
    numpy=lambda code, node, x: f"({x}){code.index(node.params['items'])}",
    notation=_index_notation,
    reason="the cotangent of a part stands at its place",
    called="the slice",
    build=lambda x, items: _index(x, items),
)


def index(x: Tensor, items: tuple[Item, ...]) -> Tensor:
    """The indexed tensor."""
    return index_op(x, items=items)


def _index(x: Tensor, items: tuple[Item, ...]) -> Tensor:
    """An index of an index is one index, if it asks as much of sizes, and the whole tensor is itself."""
    if x.op is constant:  # only new axes fit a number
        return late("broadcast_to")(x, _index_shape(x, items))
    if x.op is embed_op and _reads_the_part(x, items):
        return x.inputs[0]
    joined = _composed(x, items) if x.op is index_op else None
    if joined is not None and _fits_as_well(joined, x, items):
        x, items = x.inputs[0], joined
    while items and items[0] != NEW and reads_all(items[0], x.shape[x.rank - _axes_read(items)]):
        items = items[1:]
    return index_op.node(x, items=items) if items else x


def _reads_the_part(x: Tensor, items: tuple[Item, ...]) -> bool:
    """Whether an index reads from among zeros just the part that was put there, wherever that lies inside."""
    full = (*map(_whole, x.shape[: x.rank - _axes_read(items)]), *items)
    own = x.params["items"]
    lead = len(full) - len(own)
    return (
        lead >= 0
        and full[lead:] == own
        and all(reads_all(*read) for read in items_read(x, full[:lead]))
        and all(lies_inside(*read) for read in items_read(x, own))
    )


def joined(x: Tensor) -> Tensor:
    """An index of an index as one index, whatever either asks of sizes."""
    while x.op is index_op and x.inputs[0].op is index_op:
        items = _composed(x.inputs[0], x.params["items"])
        if items is None:
            break
        x = index_op(x.inputs[0].inputs[0], items=items)
    return x


def _composed(x: Tensor, outer: tuple[Item, ...]) -> tuple[Item, ...] | None:
    """The items of ``x[outer]`` on the input of ``x``, or None where a new axis is cut."""
    base, inner = x.inputs[0], x.params["items"]
    inner = (*map(_whole, base.shape[: base.rank - _axes_read(inner)]), *inner)
    outer = (*map(_whole, x.shape[: x.rank - _axes_read(outer)]), *outer)
    rest = list(outer)
    joined: list[Item] = []
    for item in inner:
        if item[0] == "at":
            joined.append(item)
            continue
        while rest[0] == NEW:
            joined.append(rest.pop(0))
        above = rest.pop(0)
        if item == NEW:
            if above[0] == "slice":
                if not reads_all(above, ONE):
                    return None
                joined.append(NEW)
        elif above[0] == "at":
            joined.append(("at", sympy.expand(item[1] + item[2] * above[1])))
        else:
            start = sympy.expand(item[1] + item[2] * above[1])
            joined.append(("slice", start, item[2] * above[2], above[3]))
    return (*joined, *rest)


def _fits_as_well(joined: tuple[Item, ...], x: Tensor, outer: tuple[Item, ...]) -> bool:
    """Whether both steps of an index of an index read inside wherever the one that joins them does."""
    known = [sympy.S.Zero, *_rooms(x.inputs[0], joined)]
    asked = (*_rooms(x.inputs[0], x.params["items"]), *_rooms(x, outer))
    return all(any(never_negative(room - other) for other in known) for room in asked)


def _rooms(x: Tensor, items: tuple[Item, ...]) -> Iterator[sympy.Expr]:
    """What may not be negative for an index to read inside."""
    for item, size in items_read(x, items):
        yield from (part for end in edges(item) for part in (end, size - 1 - end))


def without_new_axes(x: Tensor) -> Tensor:
    """The tensor before new axes were put in front of it, if that is all that was done."""
    if x.op is not index_op:
        return x
    items, count = x.params["items"], _axes_read(x.params["items"])
    in_front = NEW not in items[len(items) - count :] and count == x.inputs[0].rank
    return x.inputs[0] if in_front and only_adds_axes(x) else x


def only_adds_axes(x: Tensor) -> bool:
    """Whether the node is its input with new axes of size 1."""
    return x.op is index_op and all(reads_all(*read) for read in items_read(x.inputs[0], x.params["items"]))


def expand_dims(x: Tensor, axis: int) -> Tensor:
    """A new axis of size 1; ``axis`` counts from the end of the result."""
    kept = x.shape[x.rank + 1 + axis :]
    return index(x, (NEW, *map(_whole, kept)))


def squeeze(x: Tensor, axis: int) -> Tensor:
    """An axis of size 1 taken off."""
    return index(x, (("at", sympy.S.Zero), *map(_whole, x.shape[x.rank + axis + 1 :])))


def sliced(x: Tensor, axis: int, start: Any, step: int, length: Any) -> Tensor:
    """Entries start, start + step, ... along one axis, counted from the end."""
    item = ("slice", sympy.sympify(start), step, as_size(length))
    return index(x, (item, *map(_whole, x.shape[x.rank + axis + 1 :])))


# --- the transpose: a part at its place among zeros ---


def _embed_entry(read: Any, given: Any, node: Tensor) -> Any:
    items, core = node.params["items"], node.params["core"]
    lead = node.rank - len(core)
    at, inside = [], []
    own = iter(given[lead:])
    for item in items:
        if item == NEW:
            at.append(sympy.S.Zero)
        elif item[0] == "at":
            inside.append(sympy.Eq(next(own), item[1]))
        else:
            _, start, step, length = item
            offset = next(own) - start
            at.append(offset / step)
            inside += [sympy.Ge(offset / step, 0), sympy.Lt(offset / step, length)]
            if abs(step) != 1:
                inside.append(sympy.Eq(sympy.Mod(offset, abs(step)), 0))
    condition = sympy.And(*inside)
    if condition == sympy.false:
        return sympy.S.Zero
    return Choice(condition, read(0, (*given[:lead], *at)), sympy.S.Zero)


def _embed_notation(p: Any, node: Tensor) -> Written:
    items, core = node.params["items"], node.params["core"]
    inside = commas(_shown_item(p, item, size) for item, size in _sized(items, core))
    if p.code and (padded := _padded(node)) is not None:
        return _pad_code(p, node, padded), Binding.ATOM
    if p.code:
        at = row(Code("at=s_"), Fence(inside, "[", "]"))
        return source(
            "embed", p.operand(node.inputs[0], Binding.OR), row(Code("core="), p.scalar(core)), at
        ), Binding.ATOM
    if (join := side_by_side(p, [(sympy.S.One, node)], node)) is not None:
        return join
    operator = Script(function("embed"), Fence(inside, "[", "]"))
    return row(operator, Fence(p.operand(node.inputs[0], Binding.OR))), Binding.ATOM


class Padded(NamedTuple):
    """How many zeros stand before, behind and between the entries along one axis."""

    axis: int
    low: sympy.Expr
    high: sympy.Expr
    interior: sympy.Expr


def _padded(node: Tensor) -> Padded | None:
    """The zeros around a part that has all axes, and fills all but one of them; None for any other."""
    items, core = node.params["items"], node.params["core"]
    cut = [(k - len(core), item) for k, (item, size) in enumerate(_sized(items, core)) if not reads_all(item, size)]
    if len(items) != len(core) or len(cut) != 1 or cut[0][1][0] != "slice" or not cut[0][1][2] > 0:
        return None
    axis, item = cut[0]
    first, last = edges(item)
    return Padded(axis, first, sympy.expand(core[axis] - 1 - last), sympy.sympify(item[2]) - 1)


def _pad_code(p: Any, node: Tensor, padded: Padded) -> Box:
    numbers = [padded.low, padded.high, padded.interior]
    while numbers[1:] and numbers[-1] == 0:
        numbers.pop()
    options = [Code(f"axis={padded.axis}")] * (padded.axis != -1)
    return source("pad", p.operand(node.inputs[0], Binding.OR), *map(p.scalar, numbers), *options)


class Block(NamedTuple):
    """Where a part stands among zeros: along one axis, the others in full."""

    axis: int
    start: sympy.Expr
    stop: sympy.Expr


def block(node: Tensor) -> Block | None:
    """The place of a part that takes a piece of one axis of a vector or a matrix; None for any other."""
    if node.op is not embed_op or node.rank > 2 or NEW in node.params["items"]:
        return None
    items, core = node.params["items"], node.params["core"]
    placed = enumerate(zip(items, core, strict=True), -len(core))
    cut = [(axis, item) for axis, (item, size) in placed if not reads_all(item, size)]
    if len(cut) != 1:
        return None
    axis, item = cut[0]
    if item[0] == "at":
        return Block(axis, item[1], item[1] + 1)
    return Block(axis, item[1], item[1] + item[3]) if item[2] == 1 else None


def side_by_side(p: Any, terms: Sequence[tuple[sympy.Expr, Tensor]], whole: Tensor) -> Written | None:
    """Parts among zeros, with their factors, as one matrix of blocks; None for several that do not fill it."""
    places = {part: place for _, part in terms if (place := block(part)) is not None}
    axes = {place.axis for place in places.values()}
    if len(places) != len(terms) or len(axes) != 1:
        return None
    axis, at, cells = axes.pop(), sympy.S.Zero, []
    factors = {part: factor for factor, part in terms}
    size = whole.shape[axis]
    if len(terms) == 1:
        at = places[terms[0][1]].start
        cells += _zeros(p, whole, axis, at)
    while (part := next((x for x, place in places.items() if same_size(place.start, at)), None)) is not None:
        at = places.pop(part).stop
        cells.append(_cell(p, factors[part], part, axis))
    if len(terms) == 1:
        cells += _zeros(p, whole, axis, sympy.expand(size - at))
    elif places or not same_size(at, size):
        return None
    return Matrix((tuple(cells),) if axis == -1 and whole.rank == 2 else tuple((x,) for x in cells)), Binding.ATOM


def _cell(p: Any, factor: sympy.Expr, part: Tensor, axis: int) -> Box:
    x = part.inputs[0]
    lies = x.rank == 1 and part.rank == 2 and axis == -2  # a row, of rank 1
    return scaled(p, factor, x, flipped(p, x) if lies else p.unfenced(x))[0]


def _zeros(p: Any, whole: Tensor, axis: int, size: sympy.Expr) -> list[Box]:
    return [] if size == 0 else [Script(Number("0"), times(p, replaced(whole.shape, axis, size)))]


embed_op: Operation = moved(
    "embed",
    spreads=True,
    shape=lambda g, items, core: (*g.shape[: g.rank - sum(item[0] != "at" for item in items)], *core),
    entry=_embed_entry,
    back=lambda g, x, items, core: index(g, items),
    numpy=lambda code, node, x: code.embed(node, x),
    notation=_embed_notation,
    reason="the part of the cotangent at that place",
)


def placed(x: Tensor, axis: int, start: Any, step: Any, size: Any) -> Tensor:
    """Entries at start, start + step, ... of an axis of another size, zeros elsewhere; ``axis`` counts from the end."""
    rest = x.shape[x.rank + axis + 1 :]
    item = ("slice", sympy.sympify(start), step, x.shape[axis])
    return embed_op(x, items=(item, *map(_whole, rest)), core=(as_size(size), *rest))
