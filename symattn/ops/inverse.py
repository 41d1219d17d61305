"""The inverse of a matrix."""

from __future__ import annotations

from typing import Any

from ..core.boxes import Number, Sign, power_of, row
from ..core.node import Tensor
from ..core.operation import Operation
from ..scalars.formulas import InverseEntry, bound
from .arithmetic import negative
from .contraction import _square, matmul_of
from .layout import matrix_transpose
from .leaves import INVERTIBLE, as_tensor, bare, is_eye, variable
from .notation import Binding, Written, call

_MATRICES = (2, 2)


def _inverse_entry(read: Any, index: Any, node: Tensor) -> Any:
    *lead, row, column = index
    limits = [bound(node, slot, node.shape[-1]) for slot in (0, 1)]
    return InverseEntry(read(0, (*lead, limits[0][0], limits[1][0])), limits, (row, column))


def _between(y: Tensor, x: Tensor) -> Tensor:
    """``-y x y``."""
    return negative(matmul_of(matmul_of(y, x, _MATRICES), y, _MATRICES))


def _inverse_notation(p: Any, node: Tensor) -> Written:
    x = node.inputs[0]
    if p.code:
        return call(p, "inv", node)
    return power_of(p.operand(x, Binding.ATOM), row(Sign("−", "prefix"), Number("1"))), Binding.POWER


inv_op: Operation = Operation(
    "inv",
    shape=lambda x: _square(x, "inv").shape,
    entry=_inverse_entry,
    vjp=lambda g, y, x: (_between(matrix_transpose(y), g),),
    jvp=lambda tangents, y, x: _between(y, tangents[0]),
    numpy=lambda code, node, x: code.helper("inv", x, repr(code.label(node.inputs[0]))),
    notation=_inverse_notation,
    reason="the inverse moves by minus the inverse, the change, the inverse",
    letters=("Y", "A"),
    nonsmooth="inv: the matrix must be invertible",
    build=lambda x: _inverse(x),
)


def _inverse(x: Tensor) -> Tensor:
    """The inverse of an inverse is the matrix, where that is known to have one; that of the identity is itself."""
    if x.op is inv_op and _has_inverse(x.inputs[0]):
        return x.inputs[0]
    return x if is_eye(x) else inv_op.node(x)


def _has_inverse(x: Tensor) -> bool:
    """Whether it is declared; of any other matrix the inverse of the inverse says where it is defined."""
    x = bare(x)
    return x.op is variable and bool(INVERTIBLE & set(x.params["hypotheses"]))


def inv(x: Any) -> Tensor:
    r"""The inverse of the last two axes, ``A^{-1} A = I``; ``inv(A) @ B`` is computed by solving.

    A triangular solve is ``inv(tril(L)) @ B``: it reads the triangle only, and so does its gradient.
    Raises ShapeError if they differ; the compiled function raises NumPy's LinAlgError, with the name of the matrix,
    where it is singular.

    >>> import symattn as sa
    >>> A = sa.tensor("A", "n n", invertible=True)
    >>> print(sa.latex(sa.inv(A) @ sa.tensor("B", "n m")))
    A^{-1} B
    """
    return inv_op(as_tensor(x))
