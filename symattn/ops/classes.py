"""Classes as rows of the identity matrix, and which tensors hold integers."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.boxes import Script, function
from ..core.node import Tensor, topological
from ..core.operation import Operation
from ..core.sizes import as_size
from ..errors import OperandError
from ..scalars.formulas import choose
from .arithmetic import add_op, multiply_op
from .broadcasting import sum_op
from .leaves import FLAT, as_tensor
from .logic import where_op
from .notation import Written, call
from .pointwise import floor_op, maximum_op, minimum_op
from .scans import cumsum_op

_KEEP_INTEGERS = {add_op, multiply_op, maximum_op, minimum_op, sum_op, cumsum_op, where_op}


def _one_hot_notation(p: Any, node: Tensor) -> Written:
    if p.code:
        return call(p, "one_hot", node, size=node.params["size"])
    return call(p, "one_hot", node, Script(function("onehot"), p.scalar(node.params["size"])))


one_hot_op = Operation(
    "one_hot",
    shape=lambda index, size: (*index.shape, size),
    entry=lambda read, index, node: choose(sympy.Eq(read(0, index[:-1]), index[-1]), sympy.S.One, sympy.S.Zero),
    numpy=lambda code, node, index: code.helper(
        "one_hot", index, code.size(node.params["size"]), repr(code.label(node.inputs[0]))
    ),
    notation=_one_hot_notation,
    reason="classes do not move",
    kind="binary",
    places=(0,),
    **FLAT,
)


def one_hot(index: Any, size: Any) -> Tensor:
    """Rows of the identity matrix, ``y[.., j] = 1 if j == index[..] else 0``: a binary tensor.

    ``index`` holds integers from 0 to size - 1, by declaration (``integer=True``) or by how it is made. Raises
    OperandError for an index that is not an integer; the compiled function raises EvaluationError for an index that is
    not from 0 to size - 1.

    >>> import symattn as sa
    >>> sa.attention.one_hot(sa.tensor("y", "T", integer=True), "n").shape
    (T, n)
    """
    by = as_tensor(index)
    if not holds_integers(by):
        raise OperandError(f"one_hot of {by.brief()}: classes are integers; declare them by integer=True")
    return one_hot_op(by, size=as_size(size))


def holds_integers(x: Tensor) -> bool:
    """Whether all entries are integers by declaration, by the formula of a constant, or by how they are made."""

    def below(node: Tensor) -> tuple[Tensor, ...]:
        return node.inputs if node.op in _KEEP_INTEGERS or node.op.kind == "inputs" else ()

    def leaf(node: Tensor) -> bool:
        formula = node.params.get("formula")
        return node.kind != "real" or node.op is floor_op or bool(getattr(formula, "is_integer", False))

    return x.kind != "binary" and all(below(node) or leaf(node) for node in topological([x], inputs=below))
