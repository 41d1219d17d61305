"""Reductions over axes, and the two normalisers of attention: softmax and logsumexp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from ..core.arguments import flag, one_of
from ..core.boxes import Box, Code, Sign, Text, applied, function, row
from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import as_integer
from ..errors import ShapeError, described
from ..scalars.formulas import Max, Min, bound, choose
from .arithmetic import divide, multiply, subtract
from .broadcasting import (
    Axes,
    broadcast,
    broadcast_index,
    broadcast_to,
    copied,
    expand_axes,
    reduction,
    sum_op,
    summed,
    unbroadcast,
)
from .index import linear
from .leaves import as_tensor
from .logic import as_mask, equal
from .notation import COLUMNS, ROWS, Binding, Written, fitted, source, told_axis, with_options


def checked_axis(axis: Any, x: Tensor, what: str) -> int:
    """An axis of x, counted from the end."""
    number = as_integer(axis)
    if number is None:
        raise ShapeError(f"{what} of {x.brief()}: an axis is an integer, not {described(axis)}")
    if not -x.rank <= number < x.rank:
        raise ShapeError(f"{what} of {x.brief()}: axis {described(number)} is out of range for {x.rank} axes")
    return number if number < 0 else number - x.rank


def checked_axes(axis: Any, x: Tensor, what: str) -> Axes:
    """Axes of x, counted from the end, in order; None means all."""
    if axis is None:
        return tuple(range(-x.rank, 0))
    listed = axis if isinstance(axis, (list, tuple)) else (axis,)
    axes = tuple(sorted(checked_axis(a, x, what) for a in listed))
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{what} of {x.brief()}: an axis is given twice in {described(axis)}")
    return axes


def along(op: Operation, x: Any, axis: Any, **params: Any) -> Tensor:
    """An operation along one axis of x."""
    operand = as_tensor(x)
    return op(operand, axis=checked_axis(axis, operand, op.name), **params)


# --- reductions ---


def _count(x: Tensor, axes: Axes) -> sympy.Expr:
    return sympy.Mul(*(x.shape[axis] for axis in axes))


mean_op = reduction(
    "mean",
    lambda term, *limits: sympy.Sum(term, *limits) / sympy.Mul(*(last + 1 for _, _, last in limits)),
    linear,
    back=lambda g, x, axes, keepdims: divide(copied(g, x, axes, keepdims), _count(x, axes)),
    reason="each term of a mean gets its share of the cotangent",
    bounded="a mean lies between the smallest and the largest entry",
)


def _winners(y: Tensor, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """Indicator of the extreme entries, shared evenly at a tie."""
    hit = equal(x, y if keepdims else expand_axes(y, axes))
    return divide(hit, summed(hit, axes, True))


def _sloped(name: str, fold: Any, slope: Callable[..., Tensor], **record: Any) -> Operation:
    """A reduction that moves by ``slope(y, x, axes, keepdims)`` times what each entry does."""

    def vjp(g: Tensor, y: Tensor, x: Tensor, axes: Axes, keepdims: bool) -> tuple[Tensor]:
        return (multiply(g if keepdims else expand_axes(g, axes), slope(y, x, axes, keepdims)),)

    def jvp(tangents: Any, y: Tensor, x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
        return summed(multiply(slope(y, x, axes, keepdims), tangents[0]), axes, keepdims)

    return reduction(name, fold, vjp=vjp, jvp=jvp, minus_infinity="absorbed", **record)


def _extreme(name: str, fold: Any) -> Operation:
    return _sloped(
        name,
        fold,
        _winners,
        reason=f"the cotangent of a {name} goes to the entry that attains it",
        stays_whole=True,
        bounded="it is one of the entries",
        nonsmooth=f"{name} is not differentiable where several entries attain it; they share the cotangent there",
    )


max_op = _extreme("max", Max)
min_op = _extreme("min", Min)


def _reduce(op: Operation, x: Any, axis: Any, keepdims: bool) -> Tensor:
    operand = as_tensor(x)
    axes = checked_axes(axis, operand, op.name)
    kept = flag(op.name, "keepdims", keepdims)
    return op(operand, axes=axes, keepdims=kept) if axes else operand


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over an axis, several axes, or all of them.

    ``y[i] = sum_j x[i, j]`` for ``axis=-1``. Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T d")
    >>> sa.sum(X, axis=-1).shape, sa.sum(X, axis=-1, keepdims=True).shape, sa.sum(X).shape
    ((T,), (T, 1), ())
    """
    return _reduce(sum_op, x, axis, keepdims)


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over an axis, several axes, or all of them: the sum over the number of terms.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.mean(sa.tensor("X", "T d"), axis=-1).shape
    (T,)
    """
    return _reduce(mean_op, x, axis, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest entry over an axis, several axes, or all of them; at a tie the entries share the derivative.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.max(sa.tensor("X", "T d"), axis=0).shape
    (d,)
    """
    return _reduce(max_op, x, axis, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest entry over an axis, several axes, or all of them; at a tie the entries share the derivative.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.min(sa.tensor("X", "T d")).shape
    ()
    """
    return _reduce(min_op, x, axis, keepdims)


# --- softmax ---


def _softmax_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    axes, z = node.params["axes"], node.inputs[0]
    limits = [bound(node, slot, node.shape[axis]) for slot, axis in enumerate(axes)]

    def weight(at: tuple[Any, ...]) -> sympy.Expr:
        value = sympy.exp(read(0, broadcast_index(z.shape, at)))
        for mask in node.inputs[1:]:
            value = value * read(1, broadcast_index(mask.shape, at))
        return value

    over = list(index)
    for axis, (k, _, _) in zip(axes, limits, strict=True):
        over[axis] = k
    total = sympy.Sum(weight(tuple(over)), *limits)
    always = len(node.inputs) == 1 and not z.holds_minus_infinity
    if always or node.params["empty"] == "error":
        return weight(index) / total
    return choose(sympy.Eq(total, 0), sympy.S.Zero, weight(index) / total)


def _softmax_rule(g: Tensor, p: Tensor, axes: Axes) -> Tensor:
    return multiply(p, subtract(g, summed(multiply(p, g), axes, True)))


def _softmax_vjp(g: Tensor, p: Tensor, z: Tensor, *mask: Tensor, axes: Axes, empty: str) -> tuple[Tensor | None, ...]:
    return unbroadcast(_softmax_rule(g, p, axes), z.shape, p.shape), *(None for _ in mask)


def _softmax_notation(p: Any, node: Tensor) -> Written:
    x, *masks = (fitted(p, node, y, Binding.OR) for y in node.inputs)
    axes = node.params["axes"]
    axis = [] if axes == (-1,) else [p.scalar(axes[0] if len(axes) == 1 else axes)]
    if p.code:
        options = [row(Code("axis="), shown) for shown in axis] + [row(Code("where="), mask) for mask in masks]
        options += [Code('empty="error"')] * (node.params["empty"] == "error")
        return source("softmax", x, *options), Binding.ATOM
    whole = node.rank > 1 and len(axes) == node.rank
    of_one = axes == (-1,) and told_axis(p, node, -1) is not None
    named: list[Box] = [COLUMNS] if axes == (-2,) else [ROWS] if of_one else [Text("all")] if whole else []
    below = named or [row(Text("axis"), Sign("=", "relation"), shown) for shown in axis]
    return applied(with_options(function("softmax"), [*below, *masks]), [x]), Binding.ATOM


def _softmax_numpy(code: Any, node: Tensor, *operands: str) -> str:
    z, *mask = code.aligned(node, operands)
    if node.params["empty"] == "error":
        seen = f"np.where({mask[0]}, {z}, -np.inf)" if mask else z
        z, mask = code.of_rows("full_rows", node, seen), []
    return code.of_rows("masked_softmax" if mask else "softmax", node, z, *mask)


softmax_op = Operation(
    "softmax",
    shape=lambda z, *mask, axes, empty: broadcast("softmax", z, *mask),
    entry=_softmax_entry,
    vjp=_softmax_vjp,
    jvp=lambda tangents, p, z, *mask, axes, empty: _softmax_rule(broadcast_to(tangents[0], p.shape), p, axes),
    numpy=_softmax_numpy,
    notation=_softmax_notation,
    reason="softmax, row by row",
    letters=("P", "Z"),
    minus_infinity="absorbed",
    masks=(1,),
    rows="positive probabilities",
)


def softmax(z: Any, axis: Any = -1, where: Any = None, empty: str = "zero") -> Tensor:
    """Softmax over an axis, or several, by default the last: ``p[i, j] = exp(z[i, j]) / sum_k exp(z[i, k])``.

    ``where`` is a binary tensor (True = attend) that broadcasts with z; adding -oo to z means the same. A row with
    nothing to attend to gives zeros, with gradient zero (``empty="zero"``), or a ValueError when it is run
    (``empty="error"``). Raises ShapeError for an axis that is not there and OperandError for a mask that is not binary.

    >>> import symattn as sa
    >>> Z = sa.tensor("Z", "T S")
    >>> print(sa.softmax(Z, where=sa.from_index(("T", "S"), lambda i, j: j <= i)))
    softmax(Z, where=from_index((T, S), lambda i, j: j <= i))
    """
    operand = as_tensor(z)
    one_of("softmax", "empty", empty, "zero", "error")
    masks: tuple[Tensor, ...] = () if where is None else (as_mask(where, "softmax"),)
    if not operand.rank and not masks:
        raise ShapeError(f"softmax of {operand.brief()}: a rank-0 tensor has no axis")
    taken = checked_axes(axis, operand if operand.rank else masks[0], "softmax")
    return softmax_op(operand, *masks, axes=taken, empty=empty)


logsumexp_op = _sloped(
    "logsumexp",
    lambda term, *limits: sympy.log(sympy.Sum(sympy.exp(term), *limits)),
    lambda y, z, axes, keepdims: softmax_op(z, axes=axes, empty="zero"),
    numpy=lambda code, node, z: code.of_rows("logsumexp", node, z),
    reason="the derivative of logsumexp is softmax",
    letters=("L", "Z"),
)


REDUCTIONS = (sum_op, mean_op, max_op, min_op, logsumexp_op)


def logsumexp(z: Any, axis: Any = -1, keepdims: bool = False) -> Tensor:
    """``log(sum_j exp(z[i, j]))`` over an axis, by default the last; None is all axes. Large z do not overflow.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.logsumexp(sa.tensor("Z", "T S")).shape
    (T,)
    """
    return _reduce(logsumexp_op, z, axis, keepdims)
