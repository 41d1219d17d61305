"""How identity and diagonal matrices act: what turns one-hot cotangents into closed forms.

Each rule takes the inputs of one operation and gives the same tensor in a plainer form, or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import same_size
from ..ops.arithmetic import add, add_op, multiply, multiply_op, split_scalar
from ..ops.broadcasting import sum_op
from ..ops.contraction import diag_op, matmul_of, matmul_op, outer_op
from ..ops.index import NEW, expand_dims, index_op
from ..ops.layout import matrix_transpose, transpose_op
from ..ops.leaves import is_eye, ones


def _column(x: Tensor) -> Tensor | None:
    """The vector whose column ``v[:, None]`` this is."""
    new_last = x.op is index_op and x.params["items"] == (NEW,) and x.inputs[0].rank == 1
    return x.inputs[0] if new_last else None


def _scaled_identity(x: Tensor) -> bool:
    _, rest = split_scalar(x)
    return rest is not None and (is_eye(rest) or (rest.op is diag_op and rest.rank == 2))


def _multiply(a: Tensor, b: Tensor) -> Tensor | None:
    for x, y in ((a, b), (b, a)):
        if is_eye(y):  # p * I -> diag(p)
            vector = _column(x) if x.rank == 2 else x if x.rank == 1 else None
            if vector is not None and same_size(vector.shape[0], y.shape[0]):
                return diag_op(vector)
        if y.op is add_op and any(map(_scaled_identity, y.inputs)):  # p * (I - q) -> p * I - p * q
            return _sum_of_products(x, y)
        column = _column(y)
        if column is not None and x.rank == 1:  # a[:, None] * b -> outer(a, b)
            return outer_op(column, x)
    return None


def _sum_of_products(x: Tensor, total: Tensor) -> Tensor:
    terms = []
    for term in total.inputs:
        c, rest = split_scalar(term)
        plain = x if rest is None else _multiply(x, rest)
        terms.append(multiply(c, multiply(x, rest) if plain is None else plain))
    return add(*terms)


def _matmul(a: Tensor, b: Tensor, core: tuple[int, int]) -> Tensor | None:
    if core == (2, 2):
        if is_eye(a) and b.rank == 2:
            return b
        return a if is_eye(b) and a.rank == 2 else None
    if core == (2, 1) and a.rank == 2 and b.rank == 2:  # a batch of vectors is a matrix
        return _product(b, matrix_transpose(a))
    if core == (1, 2) and a.rank == 2 and b.rank == 2:
        return _product(a, b)
    if core == (1, 1) and {a.rank, b.rank} == {1, 2}:
        matrix, vector = (a, b) if a.rank == 2 else (b, a)
        return vector if is_eye(matrix) else matmul_of(matrix, vector, (2, 1))
    return a if core == (1, 2) and is_eye(b) else b if core == (2, 1) and is_eye(a) else None


def _product(a: Tensor, b: Tensor) -> Tensor:
    plain = _matmul(a, b, (2, 2))
    return matmul_of(a, b, (2, 2)) if plain is None else plain


def _sum(x: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor | None:
    if x.rank != 2 or axes not in ((-1,), (-2,)) or not (is_eye(x) or x.op is diag_op):
        return None
    vector = ones(x.shape[0]) if is_eye(x) else x.inputs[0]
    return expand_dims(vector, axes[0]) if keepdims else vector


def _transpose(x: Tensor, order: tuple[int, ...]) -> Tensor | None:
    symmetric = x.rank == 2 and (is_eye(x) or x.op is diag_op)
    return x if symmetric and order == (-1, -2) else None


IDENTITIES: Mapping[Operation, Any] = {
    multiply_op: _multiply,
    matmul_op: _matmul,
    sum_op: _sum,
    transpose_op: _transpose,
}
