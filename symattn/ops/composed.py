"""What NumPy has a name for and is a composition of other operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.sizes import ONE, Shape, as_integer, as_shape, as_size, never_negative, quotient, same_size, show_shape
from ..errors import OperandError, ShapeError, described
from . import contraction, layout
from .arithmetic import subtract
from .broadcasting import broadcast_to as copied_to
from .gather import whole_number
from .index import expand_dims, placed, squeeze
from .layout import merge_axis_op, split_axis_op
from .leaves import as_tensor
from .pointwise import exp, maximum, minimum
from .rows import checked_axis

# --- shapes ---


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Copies along new and length-1 axes, as ``np.broadcast_to``: ``y[.., i, j] = x[j]`` for a vector.

    ``shape`` is a tuple of sizes, or text such as ``"T S"``. Raises ShapeError where the shapes do not broadcast.

    >>> import symattn as sa
    >>> sa.broadcast_to(sa.tensor("b", "d"), "T d").shape
    (T, d)
    """
    return copied_to(as_tensor(x), as_shape((shape,)))


def reshape(x: Any, shape: Any) -> Tensor:
    """The entries in their order, last axis first, under another shape, as ``np.reshape``; -1 stands for one size.

    It is ``merge_axes`` and ``split_axis`` of the axes that change. Raises ShapeError where the shape has another
    number of entries.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T h*d")
    >>> sa.reshape(X, ("T", "h", -1)).shape
    (T, h, d)
    >>> sa.reshape(X, "T h d") is sa.split_axis(X, -1, ("h", "d"))
    True
    """
    operand = as_tensor(x)
    given = shape.replace(",", " ").split() if isinstance(shape, str) else shape
    sizes = _sizes(operand, given if isinstance(given, (tuple, list)) else (given,))
    if not same_size(_entries(sizes), _entries(operand.shape)):
        raise ShapeError(
            f"reshape of {operand.brief()} to {show_shape(sizes)}: {_entries(operand.shape)} entries are not "
            f"{_entries(sizes)}"
        )
    for axis in reversed([k for k, size in enumerate(operand.shape) if size == 1]):
        operand = squeeze(operand, axis - operand.rank)
    place = 0
    for before, after in _blocks(operand.shape, tuple(size for size in sizes if size != 1)):
        operand = _regrouped(operand, place, len(before), after)
        place += len(after)
    for axis, size in enumerate(sizes):
        if size == 1:
            operand = expand_dims(operand, axis - operand.rank - 1)
    return operand


def _entries(shape: Shape) -> sympy.Expr:
    return sympy.expand(sympy.Mul(*shape))


def _sizes(x: Tensor, shape: Sequence[Any]) -> Shape:
    """The shape with a size in the place of -1."""
    unknown = [axis for axis, size in enumerate(shape) if size == "-1" or as_integer(size) == -1]
    if len(unknown) > 1:
        raise ShapeError(f"reshape of {x.brief()}: only one size can be -1")
    known = [None if axis in unknown else as_size(size) for axis, size in enumerate(shape)]
    rest = _entries(tuple(size for size in known if size is not None))
    return tuple(quotient(_entries(x.shape), rest) if size is None else size for size in known)


def _blocks(before: Shape, after: Shape) -> Iterator[tuple[Shape, Shape]]:
    """Neighbouring axes with as many entries before as after, as few at a time as can be."""
    ends, others = ([_entries(shape[: k + 1]) for k in range(len(shape))] for shape in (before, after))
    start = first = 0
    for stop, total in enumerate(ends, 1):
        last = next((k for k, other in enumerate(others, 1) if k > first and same_size(other, total)), None)
        if last is not None:
            yield before[start:stop], after[first:last]
            start, first = stop, last


def _regrouped(x: Tensor, place: int, count: int, after: Shape) -> Tensor:
    """The ``count`` axes from a place on as one, and that one as the axes after."""
    if count == len(after) == 1:
        return x
    for _ in range(count - 1):
        x = merge_axis_op(x, axis=place + 1 - x.rank)
    for k in range(len(after) - 1):
        x = split_axis_op(x, axis=place + k - x.rank, into=(after[k], _entries(after[k + 1 :])))
    return x


def transpose(x: Any, axes: Any = None) -> Tensor:
    """The axes in another order, as ``np.transpose``: axis k of the result is axis ``axes[k]``.

    Without ``axes`` a matrix is transposed. Raises ShapeError where ``axes`` is not each axis once.

    >>> import symattn as sa
    >>> sa.transpose(sa.tensor("X", "B T h d"), (0, 2, 1, 3)).shape
    (B, h, T, d)
    """
    operand = as_tensor(x)
    if axes is None:
        return layout.rank_two_transpose(operand)
    if not isinstance(axes, (tuple, list)):
        raise ShapeError(f"transpose of {operand.brief()}: axes are all axes in their new order, not {described(axes)}")
    order = tuple(checked_axis(axis, operand, "transpose") for axis in axes)
    if len(order) != operand.rank or len(set(order)) != operand.rank:
        raise ShapeError(f"transpose of {operand.brief()}: axes {tuple(axes)} are not each of its axes once")
    return layout.transpose(operand, order)


def matmul(a: Any, b: Any) -> Tensor:
    """``a @ b``: ``y[.., i, j] = sum_k a[.., i, k] b[.., k, j]``, leading axes broadcast, as ``np.matmul``.

    A vector is summed over its only axis. Raises ShapeError where the axes summed over differ.

    >>> import symattn as sa
    >>> A, B = sa.tensor("A", "T d"), sa.tensor("B", "d S")
    >>> sa.matmul(A, B) is A @ B
    True
    """
    return contraction.matmul(a, b)


def pad(x: Any, low: Any, high: Any = 0, interior: Any = 0, axis: int = -1) -> Tensor:
    """Zeros before, behind and between the entries of an axis: ``y[low + (interior + 1) k] = x[k]``, 0 elsewhere.

    The axis gets ``low + n + (n - 1) interior + high`` entries, as in XLA's Pad. The numbers of zeros are integers or
    integer expressions of sizes and offsets (``sympy.Symbol("s", integer=True, nonnegative=True)``); that one such as
    ``n - k`` is not negative becomes a condition. Raises ShapeError for an axis that is not there and OperandError for
    a number that is not whole, or negative.

    >>> import symattn as sa
    >>> x = sa.tensor("x", "n")
    >>> sa.pad(x, 1, 2).shape
    (n + 3,)
    >>> print(sa.pad(sa.ones(3), 1, interior=1))
    pad(ones(3), 1, 0, 1)
    """
    operand = as_tensor(x)
    taken = checked_axis(axis, operand, "pad")
    before, behind, between = (
        _count(operand, what, value) for what, value in (("low", low), ("high", high), ("interior", interior))
    )
    size = operand.shape[taken]
    step = as_integer(between + 1)
    whole = before + size + (size - 1) * between + behind
    return placed(operand, taken, before, between + 1 if step is None else step, whole)


def _count(x: Tensor, what: str, value: Any) -> sympy.Expr:
    number = whole_number(value, f"pad of {x.brief()}: {what}")
    if number != 0 and never_negative(-number):
        raise OperandError(f"pad of {x.brief()}: {what} = {number} is negative; cut an axis off by a slice")
    return number


# --- entry by entry ---


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """Entries below ``low`` and above ``high`` put there: ``min(max(x, low), high)``, as ``np.clip``.

    Either bound may be a number, a tensor that broadcasts, or None for none. Raises OperandError where both are None.

    >>> import symattn as sa
    >>> print(sa.clip(sa.tensor("x", "n"), 0, 1))
    minimum(maximum(x, 0), 1)
    """
    operand = as_tensor(x)
    if low is None and high is None:
        raise OperandError(f"clip of {operand.brief()} takes a bound: low, high or both")
    above = operand if low is None else maximum(operand, low)
    return above if high is None else minimum(above, high)


def expm1(x: Any) -> Tensor:
    """``exp(x) - 1``, which compiled functions compute without the loss of digits near 0.

    >>> import symattn as sa
    >>> print(sa.expm1(sa.tensor("x", "n")))
    exp(x) - 1
    """
    return subtract(exp(x), ONE)
