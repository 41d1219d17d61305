"""Running sums along an axis, and the lower and upper triangle that causal forms are made of."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.arguments import flag
from ..core.node import Tensor
from ..core.operation import Operation
from ..errors import ShapeError
from ..scalars.formulas import Choice, bound
from .gather import whole_number
from .index import linear, moved, replaced
from .leaves import as_tensor
from .notation import Written, call, told_axis
from .rows import along

# --- running sums ---


def _cumsum_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    axis = node.params["axis"]
    k, first, last = bound(node, 0, node.shape[axis])
    here = index[axis]
    return sympy.Sum(read(0, replaced(index, axis, k)), (k, here, last) if node.params["reverse"] else (k, first, here))


def _cumsum_numpy(code: Any, node: Tensor, x: str) -> str:
    axis = node.params["axis"]
    if node.params["reverse"]:
        return f"np.flip(np.cumsum(np.flip({x}, {axis}), axis={axis}), {axis})"
    return f"np.cumsum({x}, axis={axis})"


def _cumsum_notation(p: Any, node: Tensor) -> Written:
    axis = told_axis(p, node, node.params["axis"])
    return call(p, "cumsum", node, axis=axis, reverse=node.params["reverse"] or None)


cumsum_op: Operation = linear(
    "cumsum",
    shape=lambda x, axis, reverse: x.shape,
    entry=_cumsum_entry,
    back=lambda g, x, axis, reverse: cumsum_op(g, axis=axis, reverse=not reverse),
    numpy=_cumsum_numpy,
    notation=_cumsum_notation,
    reason="the cotangent of a running sum is summed from the other end",
)


def cumsum(x: Any, axis: int = -1, reverse: bool = False) -> Tensor:
    """The running sum along an axis, by default the last: ``y[i] = x[0] + ... + x[i]``.

    With ``reverse`` it runs from the end: ``y[i] = x[i] + ... + x[n-1]``. Raises ShapeError for an axis that is not
    there.

    >>> import symattn as sa
    >>> print(sa.cumsum(sa.log(sa.sigmoid(sa.tensor("f", "T")))))
    cumsum(log(sigmoid(f)))
    """
    return along(cumsum_op, x, axis, reverse=flag("cumsum", "reverse", reverse))


# --- triangles ---


def _triangle(name: str, relation: Any) -> Operation:
    def entry(read: Any, index: Any, node: Tensor) -> Any:
        inside = relation(index[-1] - index[-2], node.params["k"])
        return sympy.S.Zero if inside == sympy.false else Choice(inside, read(0, index), sympy.S.Zero)

    record: Operation = moved(
        name,
        shape=lambda x, k: x.shape,
        entry=entry,
        back=lambda g, x, k: record(g, k=k),
        numpy=lambda code, node, x: f"np.{name}({x}, {code.size(node.params['k'])})",
        notation=lambda p, node: call(p, name, node, k=node.params["k"] or None),
        reason="only the triangle of the cotangent counts",
    )
    return record


tril_op = _triangle("tril", sympy.Le)
triu_op = _triangle("triu", sympy.Ge)


def _part(op: Operation, x: Any, k: Any) -> Tensor:
    operand = as_tensor(x)
    if operand.rank < 2:
        raise ShapeError(f"{op.name} of {operand.brief()}: it takes the last two axes of a matrix")
    return op(operand, k=whole_number(k, f"{op.name} of {operand.brief()}: k"))


def tril(x: Any, k: Any = 0) -> Tensor:
    """The lower triangle of the last two axes, ``y[i, j] = x[i, j] if j - i <= k else 0``, as ``np.tril``.

    ``k`` is an integer or an expression of sizes. Raises ShapeError below rank 2 and OperandError for another k.

    >>> import symattn as sa
    >>> print(sa.tril(sa.tensor("A", "T S"), -1))
    tril(A, k=-1)
    """
    return _part(tril_op, x, k)


def triu(x: Any, k: Any = 0) -> Tensor:
    """The upper triangle of the last two axes, ``y[i, j] = x[i, j] if j - i >= k else 0``, as ``np.triu``.

    ``k`` is an integer or an expression of sizes. Raises ShapeError below rank 2 and OperandError for another k.

    >>> import symattn as sa
    >>> print(sa.triu(sa.tensor("A", "T S")))
    triu(A)
    """
    return _part(triu_op, x, k)
