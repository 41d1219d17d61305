"""NumPy's broadcasting, as shapes, as indices, and as what a derivative has to undo."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape, broadcast_shapes, same_shape, same_size, show_shape
from ..errors import ShapeError
from .leaves import constant, ones, zeros
from .notation import Binding, Written


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


def unbroadcast(cotangent: Tensor, shape: Shape, full: Shape, core: int = 0) -> Tensor:
    """Sum a cotangent of shape (batch..., *full) over the axes along which an input of ``shape`` was broadcast.

    The last ``core`` axes belong to the operation itself and are not broadcast.
    """
    if shape == full:
        return cotangent
    from .rows import summed  # the only place where broadcasting needs a sum

    missing = len(full) - len(shape)
    stretched = tuple(axis for axis in range(-len(shape), -core) if shape[axis] == 1 and full[axis] != 1)
    if stretched:
        cotangent = summed(cotangent, stretched, True)
    if missing:
        cotangent = summed(cotangent, tuple(range(-len(full), -len(shape))), False)
    return cotangent


def _broadcast_to_shape(x: Tensor, shape: Shape) -> Shape:
    joined = broadcast_shapes(x.shape, shape)
    if joined is None or not same_shape(joined, shape):
        raise ShapeError(f"broadcast_to: {x.brief()} does not broadcast to {show_shape(shape)}")
    return shape


def _broadcast_to_notation(p: Any, node: Tensor) -> Written:
    x = node.inputs[0]
    if not p.latex:
        dims = ", ".join(map(p.scalar, node.shape)) + ("," if node.rank == 1 else "")
        return f"broadcast_to({p.operand(x, Binding.OR)}, ({dims}))", Binding.ATOM
    one = r"\mathbf{1}"
    if x.rank == 0 and node.rank in (1, 2):
        sizes = r" \times ".join(map(p.scalar, node.shape))
        return rf"{p.operand(x, Binding.PRODUCT)} \, {one}_{{{sizes}}}", Binding.PRODUCT
    if node.rank == x.rank == 2 and x.shape[1] == 1 and x.shape[0] == node.shape[0]:
        return rf"{p.operand(x, Binding.PRODUCT)} \, {one}_{{{p.scalar(node.shape[1])}}}^{{\top}}", Binding.PRODUCT
    sizes = r" \times ".join(map(p.scalar, node.shape))
    return rf"\operatorname{{broadcast}}_{{{sizes}}}\left({p.operand(x, Binding.OR)}\right)", Binding.ATOM


broadcast_to_op = Operation(
    "broadcast_to",
    shape=_broadcast_to_shape,
    entry=lambda read, index, node: read(0, broadcast_index(node.inputs[0].shape, index)),
    vjp=lambda g, result, x, shape: (unbroadcast(g, x.shape, shape),),
    jvp=lambda tangents, result, x, shape: broadcast_to(tangents[0], shape),
    numpy=lambda code, node, x: code.broadcast_to(node, x),
    notation=_broadcast_to_notation,
    reason="each copy of a broadcast entry adds its cotangent",
    kind="inputs",
    minus_infinity="kept",
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
