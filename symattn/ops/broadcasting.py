"""NumPy's broadcasting, as shapes and as indices: copies along axes, and sums over them, which undo each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import sympy

from ..core.boxes import Fence, Script, function, juxtaposed, row
from ..core.node import Tensor
from ..core.operation import Notation, NumPyText, Operation
from ..core.sizes import ONE, Shape, broadcast_shapes, same_shape, same_size, show_shape
from ..errors import ShapeError
from ..scalars.formulas import bound
from .index import expand_dims, linear, moved
from .leaves import constant, ones, zeros
from .notation import (
    ONES,
    Binding,
    Written,
    as_row,
    call,
    fenced,
    flipped,
    is_number,
    repeated,
    source,
    times,
    transposed,
)

Axes = tuple[int, ...]


def broadcast(what: str, *inputs: Tensor) -> Shape:
    """The broadcast shape of the inputs, or a ShapeError that names the first axis that does not fit."""
    shape = broadcast_shapes(*(x.shape for x in inputs))
    if shape is None:
        raise ShapeError(_misfit(what, inputs))
    return shape


def _misfit(what: str, inputs: tuple[Tensor, ...]) -> str:
    shown = ", ".join(x.brief() for x in inputs)
    for axis in range(1, 1 + min(x.rank for x in inputs if x.rank)):
        met = {x.shape[-axis] for x in inputs if x.rank >= axis and x.shape[-axis] != 1}
        if len(met) > 1:
            sizes = " and ".join(sorted(map(str, met)))
            fixes = [f"{b.brief()}.T" for b in inputs[1:] if b.rank == 2 and same_shape(b.shape[::-1], inputs[0].shape)]
            if inputs[0].rank == 2 and any(b.rank == 1 and same_size(b.shape[0], inputs[0].shape[0]) for b in inputs):
                fixes.append("a column: v[:, None]")
            hint = f"; did you mean {fixes[0]}?" if fixes else ""
            return f"{what} of {shown}: axis -{axis} has the sizes {sizes}, which differ{hint}"
    return f"{what} of {shown}: the shapes do not broadcast"


def broadcast_index(shape: Shape, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where an input of this shape is read for an entry of the broadcast result."""
    own = index[len(index) - len(shape) :]
    return tuple(sympy.S.Zero if size == 1 else i for size, i in zip(shape, own, strict=True))


def loops_of(inputs: Sequence[Tensor], cores: Iterable[int]) -> Shape | None:
    """The broadcast axes in front of the last ones of each input, which are its own; None if they misfit."""
    return broadcast_shapes(*(x.shape[: x.rank - own] for x, own in zip(inputs, cores, strict=True)))


def named_sizes(
    inputs: Sequence[Tensor], names: Sequence[Sequence[str]], what: Callable[[], str]
) -> dict[str, sympy.Expr]:
    """The sizes of the last axes of inputs by their names; ShapeError if one name has two."""
    sizes: dict[str, sympy.Expr] = {}
    for x, axes in zip(inputs, names, strict=True):
        for name, size in zip(axes, x.shape[x.rank - len(axes) :], strict=True):
            if not same_size(sizes.setdefault(name, size), size):
                raise ShapeError(f"{what()} {name} is both {sizes[name]} and {size}")
    return sizes


def _broadcast_to_shape(x: Tensor, shape: Shape) -> Shape:
    joined = broadcast_shapes(x.shape, shape)
    if joined is None or not same_shape(joined, shape):
        raise ShapeError(f"broadcast_to: {x.brief()} does not broadcast to {show_shape(shape)}")
    return shape


def _broadcast_to_notation(p: Any, node: Tensor) -> Written:
    x = node.inputs[0]
    if p.code:
        return source("broadcast_to", p.operand(x, Binding.OR), p.scalar(node.shape)), Binding.ATOM
    if is_number(x) and node.rank in (1, 2):
        return juxtaposed(p.operand(x, Binding.PRODUCT), Script(ONES, times(p, node.shape))), Binding.PRODUCT
    side = repeated(x, node) if node.rank == 2 else ""
    if side == "column":
        ones = transposed(Script(ONES, p.scalar(node.shape[1])))
        return juxtaposed(p.operand(x, Binding.PRODUCT), ones), Binding.PRODUCT
    if side == "row":
        above = [Script(ONES, p.scalar(node.shape[0]))] * (node.shape[0] != 1)
        return juxtaposed(*above, fenced(as_row(p, x), Binding.PRODUCT)), Binding.PRODUCT
    operator = Script(function("broadcast"), times(p, node.shape))
    return row(operator, Fence(p.operand(x, Binding.OR))), Binding.ATOM


broadcast_to_op = moved(
    "broadcast_to",
    is_view=True,
    resized=lambda node, shape: {"shape": shape},
    shape=_broadcast_to_shape,
    entry=lambda read, index, node: read(0, broadcast_index(node.inputs[0].shape, index)),
    back=lambda g, x, shape: unbroadcast(g, x.shape, shape),
    numpy=lambda code, node, x: code.broadcast_to(node, x),
    notation=_broadcast_to_notation,
    reason="each copy of a broadcast entry adds its cotangent",
    build=lambda x, shape: _broadcast_to(x, shape),
)


def _broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """Nothing where ``x`` has the shape already; two broadcasts are one; 1 and 0 become ones and zeros."""
    if same_shape(x.shape, shape):
        return x
    if x.op is constant and x.params["formula"] in (0, 1):
        return ones(*shape) if x.params["formula"] == 1 else zeros(*shape)
    return broadcast_to_op.node(x.inputs[0] if x.op is broadcast_to_op else x, shape=shape)


def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """``x`` repeated to the shape by NumPy's rule."""
    return broadcast_to_op(x, shape=shape)


def spread(x: Tensor, core: Shape) -> Tensor:
    """``x`` of shape (batch..., *something that broadcasts to core) over the last axes, keeping the batch."""
    batch = x.shape[: max(0, x.rank - len(core))]
    return broadcast_to(x, batch + core)


# --- sums, into which copies go back ---


def _reduced_shape(x: Tensor, axes: Axes, keepdims: bool) -> Shape:
    shape = enumerate(x.shape, -x.rank)
    return tuple(ONE if axis in axes else size for axis, size in shape if keepdims or axis not in axes)


def _over(node: Tensor, index: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any]]:
    """The index into the input of a reduction, and the limits of its bound indices."""
    x, axes, keepdims = node.inputs[0], node.params["axes"], node.params["keepdims"]
    given, at, limits = iter(index), [], []
    for axis in range(-x.rank, 0):
        if axis in axes:
            limits.append(bound(node, axis + x.rank, x.shape[axis]))
            at.append(limits[-1][0])
            if keepdims:
                next(given)
        else:
            at.append(next(given))
    return tuple(at), limits


def expand_axes(x: Tensor, axes: Axes) -> Tensor:
    """Put size-1 axes where ``axes`` (counted from the end of the result) were reduced away; a number needs none."""
    if x.op is constant:
        return x
    for axis in sorted(axes, reverse=True):  # the innermost first, so that later positions are final
        x = expand_dims(x, axis)
    return x


def _reduction_notation(name: str) -> Notation:
    def notation(p: Any, node: Tensor) -> Written:
        x, axes, keepdims = node.inputs[0], node.params["axes"], node.params["keepdims"]
        usual = (-1,) if name == "logsumexp" else tuple(range(-x.rank, 0))  # what no axis at all means
        if not p.code and (written := _in_matrices(p, name, node)) is not None:
            return written
        if axes == (-1,) and keepdims:
            return call(p, f"row{name}", node)
        axis = None if axes == usual else axes[0] if len(axes) == 1 else axes
        return call(p, name, node, axis=axis, keepdims=keepdims or None)

    return notation


def _in_matrices(p: Any, name: str, node: Tensor) -> Written | None:
    """What is made of all entries, of each row or of each column of a matrix; None where it is none of these."""
    x, axes, keepdims = node.inputs[0], node.params["axes"], node.params["keepdims"]
    if is_number(node) and len(axes) == x.rank:
        return call(p, name, node)
    if name == "sum" and not keepdims and (heads := cast("Written | None", p.sum_over_heads(x, axes))) is not None:
        return heads
    if x.rank != 2 and not (x.rank > 2 and keepdims and axes in ((-1,), (-2,))):
        return None
    if name == "sum":
        return _product_with_ones(p, x, axes, keepdims)
    if axes == (-1,):
        return call(p, f"row{name}", node)
    written, binding = call(p, f"col{name}", node)
    return (transposed(written), Binding.POWER) if keepdims else (written, binding)


def _product_with_ones(p: Any, x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Written:
    """The sums of rows as a column ``X 1``; those of columns as a column ``X^T 1``, or where it is kept as a row."""
    if axes == (-1,):
        return juxtaposed(p.operand(x, Binding.PRODUCT), ONES), Binding.PRODUCT
    if keepdims:
        return juxtaposed(transposed(ONES), p.operand(x, Binding.PRODUCT + 1)), Binding.PRODUCT
    return juxtaposed(fenced(flipped(p, x), Binding.PRODUCT), ONES), Binding.PRODUCT


def _reduction_numpy(name: str) -> NumPyText:
    def numpy(code: Any, node: Tensor, x: str) -> str:
        axes = node.params["axes"]
        keep = ", keepdims=True" if node.params["keepdims"] else ""
        return f"({x}).{name}(axis={axes[0] if len(axes) == 1 else axes}{keep})"

    return numpy


def reduction(name: str, fold: Any, make: Callable[..., Operation] = Operation, **record: Any) -> Operation:
    """What is made of all entries along axes: ``fold(term, *limits)`` is its entry."""

    def entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
        at, limits = _over(node, index)
        return fold(read(0, at), *limits)

    written = {"numpy": _reduction_numpy(name), "notation": _reduction_notation(name)}
    return make(name, shape=_reduced_shape, entry=entry, **{**written, **record})


def copied(g: Tensor, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    return spread(g if keepdims else expand_axes(g, axes), x.shape)


sum_op = reduction(
    "sum",
    sympy.Sum,
    linear,
    back=copied,
    reason="each term of a sum gets its cotangent",
    bounded="each term of the sum, or weights that sum to 1",
)


def summed(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """The sum over axes counted from the end."""
    return sum_op(x, axes=axes, keepdims=keepdims) if axes else x


def unbroadcast(cotangent: Tensor, shape: Shape, full: Shape, core: int = 0) -> Tensor:
    """Sum a cotangent of shape (batch..., *full) over the axes along which an input of ``shape`` was broadcast.

    The last ``core`` axes belong to the operation itself and are not broadcast.
    """
    if shape == full:
        return cotangent
    stretched = tuple(axis for axis in range(-len(shape), -core) if shape[axis] == 1 and full[axis] != 1)
    missing = tuple(range(-len(full), -len(shape)))
    return summed(summed(cotangent, stretched, True), missing, False)
