"""Operations that move entries and compute nothing: transposes, joins, heads, copies.

Every axis is counted from the end, so that extra leading axes are a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..core.boxes import Box, Code, Fence, Matrix, Script, Sign, Text, applied, commas, function, row
from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape, as_size, divisibility, same_shape, same_size
from ..errors import OperandError, ShapeError, described
from ..scalars.formulas import Choice
from .broadcasting import summed
from .index import moved, replaced, sliced
from .leaves import as_tensor, is_zero, zeros
from .notation import Binding, Written, call, flipped, is_number, source
from .rows import along, checked_axis

# --- transposes ---

Order = tuple[int, ...]


def _transpose_shape(x: Tensor, order: Order) -> Shape:
    return (*x.shape[: x.rank - len(order)], *(x.shape[axis] for axis in order))


def _transpose_entry(read: Any, index: Any, node: Tensor) -> Any:
    order = node.params["order"]
    lead = len(index) - len(order)
    at: list[Any] = [None] * len(order)
    for place, axis in enumerate(order):
        at[axis] = index[lead + place]
    return read(0, (*index[:lead], *at))


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) - len(order) for axis in range(-len(order), 0))


def swaps_last_two(order: Order) -> bool:
    """Whether an order is that of a matrix transpose."""
    return len(order) >= 2 and order == (*range(-len(order), -2), -1, -2)


def _transpose_notation(p: Any, node: Tensor) -> Written:
    x, order = node.inputs[0], node.params["order"]
    if swaps_last_two(order):
        if p.code:
            return row(p.operand(x, Binding.ATOM), Code(".T" if x.rank == 2 else ".mT")), Binding.ATOM
        return p.unfenced(x) if is_number(node) else flipped(p, x)
    moves = [axis for axis in range(-len(order), 0) if order[axis] != axis]
    for axis in moves:  # most permutations of the field move one axis
        for target in moves:
            if _moveaxis_order(len(order), axis, target) == order:
                return call(p, "moveaxis", node, source=axis, destination=target)
    return call(p, "permute", node, order=order)


transpose_op = moved(
    "transpose",
    spreads=True,
    is_view=True,
    shape=_transpose_shape,
    entry=_transpose_entry,
    back=lambda g, x, order: transpose(g, _inverse(order)),
    numpy=lambda code, node, x: code.transpose(x, node.params["order"]),
    notation=_transpose_notation,
    reason="the transpose of the cotangent",
    called="the transpose",
    build=lambda x, order: _transpose(x, order),
)


def transpose(x: Tensor, order: Order) -> Tensor:
    """The axes of x in a new order, counted from the end; axes in front of them stay."""
    return transpose_op(x, order=order)


def _transpose(x: Tensor, order: Order) -> Tensor:
    """A transpose of a transpose is one transpose, and one that changes nothing is the tensor itself."""
    if x.op is transpose_op:
        inner = x.inputs[0].rank
        first = x.params["order"]
        full = (*range(-inner, -len(order)), *order)
        x, order = x.inputs[0], tuple(first[axis] if axis >= -len(first) else axis for axis in full)
    while order and order[0] == -len(order):
        order = order[1:]
    return transpose_op.node(x, order=order) if order else x


def matrix_transpose(x: Tensor) -> Tensor:
    """``x.mT``: the last two axes swapped."""
    if x.rank < 2:
        raise ShapeError(f"{x.brief()} has no last two axes to swap: write x[:, None] for a column")
    return transpose(x, (-1, -2))


def rank_two_transpose(x: Tensor) -> Tensor:
    """``x.T``, for rank 2 only."""
    if x.rank != 2:
        raise ShapeError(f"{x.brief()}.T: .T is for rank 2; write .mT to swap the last two axes")
    return matrix_transpose(x)


def _moveaxis_order(rank: int, source: int, destination: int) -> Order:
    order = [axis for axis in range(-rank, 0) if axis != source]
    order.insert(destination + rank, source)
    return tuple(order)


def moveaxis(x: Any, source: int, destination: int) -> Tensor:
    """The axis ``source`` moved to ``destination``, the others in their order, as in NumPy.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.moveaxis(sa.tensor("X", "T h d"), 1, 0).shape
    (h, T, d)
    """
    operand = as_tensor(x)
    start = checked_axis(source, operand, "moveaxis")
    end = checked_axis(destination, operand, "moveaxis")
    return transpose(operand, _moveaxis_order(operand.rank, start, end))


# --- joins ---


def _concat_shape(*inputs: Tensor, axis: int) -> Shape:
    first = inputs[0]
    others = (replaced(x.shape, axis, first.shape[axis]) for x in inputs if x.rank == first.rank)
    if any(x.rank != first.rank for x in inputs) or not all(same_shape(other, first.shape) for other in others):
        shown = ", ".join(x.brief() for x in inputs)
        raise ShapeError(f"concat of {shown} along axis {axis}: all other sizes must be the same")
    return replaced(first.shape, axis, sympy.Add(*(x.shape[axis] for x in inputs)))


def _concat_entry(read: Any, index: Any, node: Tensor) -> Any:
    axis, end, values, ends = node.params["axis"], sympy.S.Zero, [], []
    at = index[axis]
    for k, x in enumerate(node.inputs):
        values.append(read(k, replaced(index, axis, at - end)))
        end = end + x.shape[axis]
        ends.append(end)
    return _chosen(at, ends, values)


_IN_A_ROW = 8  # choices that are made one after the other


def _chosen(at: Any, ends: Sequence[Any], values: Sequence[Any]) -> Any:
    """The first value before whose end ``at`` lies; where there are many, halved first, so that none is nested deep."""
    many = len(values) > _IN_A_ROW
    first = len(values) // 2 if many else 1
    if len(values) == 1:
        return values[0]
    # An index, which may be 0 or large, lies on neither side of an end: nothing is asked of assumptions.
    inside = sympy.Lt(at, ends[first - 1], evaluate=not at.is_Symbol or at.is_positive)
    return Choice(inside, _chosen(at, ends[:first], values[:first]), _chosen(at, ends[first:], values[first:]))


def _concat_vjp(g: Tensor, y: Tensor, *inputs: Tensor, axis: int) -> tuple[Tensor, ...]:
    parts, offset = [], sympy.S.Zero
    for x in inputs:
        parts.append(sliced(g, axis, offset, 1, x.shape[axis]))
        offset = offset + x.shape[axis]
    return tuple(parts)


def _concat_jvp(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor, axis: int) -> Tensor:
    batch = next(t.shape[: t.rank - x.rank] for t, x in zip(tangents, inputs, strict=True) if t is not None)
    moved = [zeros(*batch, *x.shape) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
    return zeros(*batch, *y.shape) if all(map(is_zero, moved)) else concat_op(*moved, axis=axis)


def _concat_notation(p: Any, node: Tensor) -> Written:
    axis, parts = node.params["axis"], [p.operand(x, Binding.OR) for x in node.inputs]
    if p.code:
        return source("concat", Fence(commas(parts), "[", "]"), Code(f"axis={axis}")), Binding.ATOM
    if (blocks := _blocks(node, parts)) is not None:
        return blocks, Binding.ATOM
    if node.rank <= 2:
        return Matrix(
            (tuple(parts),) if axis == -1 and node.rank == 2 else tuple((part,) for part in parts)
        ), Binding.ATOM
    said = row(Text("axis"), Sign("=", "relation"), p.scalar(axis))  # parts lie along it, which is no row of a matrix
    return applied(Script(function("concat"), said), parts), Binding.ATOM


def _blocks(node: Tensor, parts: Sequence[Box]) -> Matrix | None:
    """Rows of parts that meet along straight lines are one matrix of blocks."""
    if node.rank != 2 or node.params["axis"] != -2:
        return None
    rows = [box.rows[0] for box in parts if isinstance(box, Matrix)]
    if len(rows) < len(parts) or any(x.op is not concat_op or x.params["axis"] != -1 for x in node.inputs):
        return None
    first, *others = ([part.shape[-1] for part in x.inputs] for x in node.inputs)
    return Matrix(tuple(rows)) if all(widths == first for widths in others) else None


concat_op = Operation(
    "concat",
    shape=_concat_shape,
    entry=_concat_entry,
    vjp=_concat_vjp,
    jvp=_concat_jvp,
    numpy=lambda code, node, *parts: code.concat(node, parts),
    notation=_concat_notation,
    reason="each part of a join gets its part of the cotangent",
    kind="inputs",
    minus_infinity="kept",
)


def concat(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Tensors joined along an axis, as in ``np.concatenate``.

    Raises ShapeError where the other sizes differ.

    >>> import symattn as sa
    >>> K, M = sa.tensor("K", "S d"), sa.tensor("M", "m d")
    >>> sa.concat([K, M], axis=0).shape
    (S + m, d)
    """
    if not isinstance(parts, (list, tuple)) or not parts:
        raise OperandError(f"concat takes a list of tensors, not {described(parts)}")
    operands = tuple(map(as_tensor, parts))
    taken = checked_axis(axis, operands[0], "concat")
    return concat_op(*operands, axis=taken) if len(operands) > 1 else operands[0]


# --- heads: one axis into two, and back ---


def _split_shape(x: Tensor, axis: int, into: Shape) -> Shape:
    if not same_size(into[0] * into[1], x.shape[axis]):
        raise ShapeError(
            f"split_axis of {x.brief()}: axis {axis} has size {x.shape[axis]}, not {into[0]} * {into[1]}; "
            f"declare that axis as the product"
        )
    return replaced(x.shape, axis, *into)


def _split_entry(read: Any, index: Any, node: Tensor) -> Any:
    axis, (_, inner) = node.params["axis"], node.params["into"]
    place = len(index) - 1 + axis
    return read(0, (*index[:place], index[place] * inner + index[place + 1], *index[place + 2 :]))


split_axis_op: Operation = moved(
    "split_axis",
    spreads=True,
    shape=_split_shape,
    entry=_split_entry,
    back=lambda g, x, axis, into: merge_axis_op(g, axis=axis),
    numpy=lambda code, node, x: code.helper(
        "split_axis", x, str(node.params["axis"]), *map(code.size, node.params["into"])
    ),
    notation=lambda p, node: call(p, "split_axis", node, axis=node.params["axis"], into=node.params["into"]),
    reason="the cotangent is merged again",
    build=lambda x, axis, into: _split(x, axis, into),
)


def _split(x: Tensor, axis: int, into: Shape) -> Tensor:
    """What was merged, where it is split as it was."""
    merged = x.op is merge_axis_op and x.params["axis"] == axis
    if merged and all(map(same_size, into, x.inputs[0].shape[x.rank + axis :])):
        return x.inputs[0]
    return split_axis_op.node(x, axis=axis, into=into)


def split_axis(x: Any, axis: int, into: Sequence[Any]) -> Tensor:
    """One axis of size ``a * b`` into two of sizes ``(a, b)``: ``y[.., i, j, ..] = x[.., i * b + j, ..]``.

    Raises ShapeError if the sizes do not multiply to the axis.

    >>> import symattn as sa
    >>> sa.split_axis(sa.tensor("X", "T h*d"), -1, ("h", "d")).shape
    (T, h, d)
    """
    operand = as_tensor(x)
    taken = checked_axis(axis, operand, "split_axis")
    if not isinstance(into, (tuple, list)) or len(into) != 2:
        raise ShapeError(f"split_axis of {operand.brief()}: give two sizes, not {described(into)}")
    return split_axis_op(operand, axis=taken, into=tuple(map(as_size, into)))


def _merge_shape(x: Tensor, axis: int) -> Shape:
    place = x.rank + axis
    return (*x.shape[: place - 1], sympy.expand(x.shape[place - 1] * x.shape[place]), *x.shape[place + 1 :])


def _merge_entry(read: Any, index: Any, node: Tensor) -> Any:
    place, inner = len(index) + node.params["axis"], node.inputs[0].shape[node.params["axis"]]
    at = index[place]
    return read(0, (*index[:place], sympy.floor(at / inner), sympy.Mod(at, inner), *index[place + 1 :]))


merge_axis_op: Operation = moved(
    "merge_axes",
    spreads=True,
    shape=_merge_shape,
    entry=_merge_entry,
    back=lambda g, x, axis: split_axis_op(g, axis=axis, into=(x.shape[axis - 1], x.shape[axis])),
    numpy=lambda code, node, x: code.helper("merge_axes", x, str(node.params["axis"])),
    notation=lambda p, node: call(p, "merge_axes", node, axes=(node.params["axis"] - 1, node.params["axis"])),
    reason="the cotangent is split again",
    build=lambda x, axis: _merge(x, axis),
)


def _merge(x: Tensor, axis: int) -> Tensor:
    """What was split, where it is merged again and could be split."""
    split = x.op is split_axis_op and x.params["axis"] == axis and not divisibility(x.shape)
    return x.inputs[0] if split else merge_axis_op.node(x, axis=axis)


def merge_axes(x: Any, axes: Sequence[int]) -> Tensor:
    """Two neighbouring axes into one: ``y[.., k, ..] = x[.., k // b, k % b, ..]`` for sizes (a, b).

    Raises ShapeError if the axes are not neighbours in this order (``moveaxis`` brings them together).

    >>> import symattn as sa
    >>> sa.merge_axes(sa.tensor("X", "T h d"), (1, 2)).shape
    (T, d*h)
    """
    operand = as_tensor(x)
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ShapeError(f"merge_axes of {operand.brief()}: give two axes, not {described(axes)}")
    first, second = (checked_axis(axis, operand, "merge_axes") for axis in axes)
    if second != first + 1:
        raise ShapeError(
            f"merge_axes of {operand.brief()}: axes {tuple(axes)} are not neighbours in order; "
            "bring them together by sa.moveaxis"
        )
    return merge_axis_op(operand, axis=second)


# --- repetition ---


def copied(name: str, source: Callable[[Any, Any, Any], Any], back: Callable[..., Tensor], numpy: Any) -> Operation:
    """Copies along an axis: entry k is the one at ``source(k, times, size)``."""

    def entry(read: Any, index: Any, node: Tensor) -> Any:
        axis, times = node.params["axis"], node.params["times"]
        return read(0, replaced(index, axis, source(index[axis], times, node.inputs[0].shape[axis])))

    return moved(
        name,
        spreads=True,
        shape=lambda x, axis, times: replaced(x.shape, axis, sympy.expand(x.shape[axis] * times)),
        entry=entry,
        back=back,
        numpy=numpy,
        notation=lambda p, node: call(p, name, node, times=node.params["times"], axis=node.params["axis"]),
        reason="the cotangents of the copies add up",
    )


def _repeat_back(g: Tensor, x: Tensor, axis: int, times: Any) -> Tensor:
    return summed(split_axis_op(g, axis=axis, into=(x.shape[axis], times)), (axis,), False)


repeat_op = copied(
    "repeat",
    lambda k, times, size: sympy.floor(k / times),
    _repeat_back,
    numpy=lambda code, node, x: f"np.repeat({x}, {code.size(node.params['times'])}, axis={node.params['axis']})",
)


def repeat(x: Any, times: Any, axis: int) -> Tensor:
    """Each entry along an axis ``times`` times in a row: ``y[.., k, ..] = x[.., k // times, ..]``, as in NumPy.

    Grouped-query attention reads its key heads so. Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.repeat(sa.tensor("K", "g S d"), "r", axis=0).shape
    (g*r, S, d)
    """
    return along(repeat_op, x, axis, times=as_size(times))
