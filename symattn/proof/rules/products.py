"""Matrix products: brackets, inverses, identity and diagonal matrices, sums and scaled rows as factors."""

from __future__ import annotations

from collections.abc import Callable

import sympy

from ...core.node import Tensor
from ...core.sizes import same_size
from ...ops.arithmetic import add_op, multiply, split_all, sum_of
from ...ops.broadcasting import broadcast_to, broadcast_to_op, sum_op, summed
from ...ops.contraction import diag_op, einsum_op, matmul_of, matmul_op, outer_op
from ...ops.index import expand_dims, index_op, squeeze
from ...ops.inverse import inv_op
from ...ops.layout import matrix_transpose, merge_axis_op, split_axis_op, transpose_op
from ...ops.leaves import eye, is_eye
from ...ops.rows import mean_op
from .algebra import factors, product, term, terms
from .permutations import declared, is_permutation, unpermuted
from .rule import Rule, bare, called, constant_along, one_of, size_at

Core = tuple[int, int]  # how many axes of each factor are its own: 2 of a matrix, 1 of a vector

_MATRICES = (2, 2)


# --- brackets, inverses, identities ---


def _left_nested(x: Tensor, a: Tensor, right: Tensor, core: Core) -> Tensor | None:
    """``A (B C) -> (A B) C``; a permutation stays outermost."""
    if right.op is not matmul_op or right.params["core"] != (2, core[1]) or (core[0] == 2 and is_permutation(a)):
        return None
    b, c = right.inputs
    return matmul_of(matmul_of(a, b, (core[0], 2)), c, core)


def _orthogonal(a: Tensor, b: Tensor) -> bool:
    return declared(a, "orthogonal", "permutation") and matrix_transpose(a) is b


def _inverse(a: Tensor, b: Tensor) -> bool:
    return (a.op is inv_op and a.inputs[0] is b) or (b.op is inv_op and b.inputs[0] is a)


def _cancelling(opposite: Callable[[Tensor, Tensor], bool]) -> Callable[..., Tensor | None]:
    """``A U U^T -> A`` for neighbours in a product whose product is the identity."""

    def apply(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
        if core[1] != 2:  # U^T (U v) stands as (U^T U) v
            return None
        if core[0] == 2 and opposite(a, b):
            return broadcast_to(eye(x.shape[-1]), x.shape)
        if a.op is matmul_op and a.params["core"][1] == 2 and opposite(a.inputs[1], b):
            return broadcast_to(a.inputs[0], x.shape)
        return None

    return apply


def _inverse_moved(x: Tensor) -> Tensor | None:
    a = x.inputs[0]
    if declared(a, "orthogonal", "permutation"):
        return matrix_transpose(a)
    if a.op is matmul_op and a.params["core"] == _MATRICES:
        left, right = a.inputs
        if all(y.rank >= 2 and same_size(y.shape[-1], y.shape[-2]) for y in (left, right)):
            return broadcast_to(matmul_of(inv_op(right), inv_op(left), _MATRICES), x.shape)
    return None


def _inverse_undone(x: Tensor) -> Tensor | None:
    return x.inputs[0].inputs[0] if x.inputs[0].op is inv_op else None


def _identity(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    if is_eye(a) and core[0] == 2:
        return broadcast_to(b, x.shape)
    return broadcast_to(a, x.shape) if is_eye(b) and core[1] == 2 else None


def _scalar_out(x: Tensor) -> Tensor | None:
    """``(c A) B -> c (A B)``: scalars come out of whatever is linear in each input."""
    found = split_all(x.inputs)
    return None if found is None else multiply(found[0], x.op(*found[1], **x.params))


# --- products with what is constant, thin or diagonal ---


def _thin(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """A contraction over an axis of size 1 is a product entry by entry."""
    return broadcast_to(multiply(a, b), x.shape) if a.shape[-1] == 1 and core == _MATRICES else None


def _constant_factor(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """``A 1 u^T -> rowsum(A) u^T`` and ``u 1^T B -> u colsum(B)``."""
    if core == _MATRICES and constant_along(b, -2):
        return broadcast_to(multiply(summed(a, (-1,), True), one_of(b, -2)), x.shape)
    if core == _MATRICES and constant_along(a, -1):
        return broadcast_to(multiply(one_of(a, -1), summed(b, (-2,), True)), x.shape)
    return None


def _diagonal(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """``diag(v) M`` scales the rows of M, ``M diag(v)`` its columns."""
    if a.op is diag_op and core[0] == 2:
        scale = a.inputs[0] if core[1] == 1 else expand_dims(a.inputs[0], -1)
        return broadcast_to(multiply(scale, b), x.shape)
    if b.op is diag_op and core[1] == 2:
        v = b.inputs[0]
        return broadcast_to(multiply(a, v if core[0] == 1 or v.rank == 1 else expand_dims(v, -2)), x.shape)
    return None


def _dot(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """A single row times a single column is a sum of products."""
    if core == (1, 1):
        return summed(multiply(a, b), (-1,), False)
    if core == (1, 2) and b.rank == 2 and b.shape[-1] == 1:
        return expand_dims(summed(multiply(a, squeeze(b, -1)), (-1,), False), -1)
    return None


def _vector(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """A product with one row or one column is a product with a vector."""
    if core != _MATRICES or a.rank != 2 or b.rank != 2:
        return None
    row, column = bare(a), squeeze(b, -1) if b.shape[-1] == 1 else b
    if a.shape[0] == 1 and row.rank == 1 and same_size(row.shape[0], a.shape[1]):
        return expand_dims(matmul_of(row, b, (1, 2)), -2)
    return expand_dims(matmul_of(a, column, (2, 1)), -1) if expand_dims(column, -1) is b else None


def _outer(x: Tensor) -> Tensor | None:
    a, b = x.inputs
    return multiply(expand_dims(a, -1), b if b.rank == 1 else expand_dims(b, -2))


def _factors_out(x: Tensor, a: Tensor, b: Tensor, core: Core) -> Tensor | None:
    """``(u * A) B -> u * (A B)`` for a column u, ``A (B * v) -> (A B) * v`` for a row v."""
    (ca, fa), (cb, fb) = factors(a), factors(b)
    left = [f for f in fa if core[0] == 2 and size_at(f[0], -1) == 1]
    right = [f for f in fb if core[1] == 2 and size_at(f[0], -2) == 1]
    if not (left or right):
        return None
    first = _filled(product(ca, [f for f in fa if f not in left]), a, -1, core[0])
    second = _filled(product(cb, [f for f in fb if f not in right]), b, -core[1], core[1])
    outside = [(squeeze(f, -1) if core[1] == 1 and f.rank else f, n) for f, n in left]
    outside += [(squeeze(f, -2) if core[0] == 1 and f.rank > 1 else f, n) for f, n in right]
    return product(sympy.S.One, [(matmul_of(first, second, core), 1), *outside], x.shape)


def _filled(part: Tensor, like: Tensor, contracted: int, core: int) -> Tensor:
    """What is left of a factor, with the axes that a product needs."""
    shape = [size_at(part, axis) for axis in range(-max(part.rank, core), 0)]
    shape[contracted] = like.shape[contracted]
    return broadcast_to(part, tuple(shape))


# --- sums ---


def _distributed(x: Tensor) -> Tensor | None:
    for k, i in enumerate(x.inputs):
        if i.op is add_op or (i.op is broadcast_to_op and i.inputs[0].op is add_op):
            parts = [broadcast_to(term(c, t), i.shape) for c, t in terms(i)]
            return sum_of([x.op(*x.inputs[:k], part, *x.inputs[k + 1 :], **x.params) for part in parts])
    return None


# --- the table ---

_LINEAR = (
    matmul_op, outer_op, einsum_op, sum_op, mean_op, split_axis_op, merge_axis_op, transpose_op, diag_op, index_op,
)  # fmt: skip


def _product(name: str, reason: str, phase: int, apply: Callable[..., Tensor | None], routine: bool = False) -> Rule:
    """A rule for matrix products, of which it is given the factors."""
    return Rule(name, reason, phase, lambda x: apply(x, *x.inputs, x.params["core"]), (matmul_op,), routine=routine)


PRODUCTS = (
    _product(
        "orthogonal matrix cancels", "The inverse of an orthogonal matrix is its transpose.",
        1, _cancelling(_orthogonal),
    ),
    _product("inverse cancels", "A matrix times its inverse is the identity.", 1, _cancelling(_inverse)),
    Rule(
        "inverse of a product",
        "The inverse of a product of square matrices is the product of the inverses, turned around.",
        1, _inverse_moved, (inv_op,),
    ),
    Rule("inverse of an inverse", "The inverse of the inverse is the matrix.", 1, _inverse_undone, (inv_op,)),
    _product("identity", "The identity changes nothing.", 1, _identity),
    Rule(
        "scalar out", "A scalar factor comes out of what is linear.",
        1, unpermuted(_scalar_out), _LINEAR, routine=True,
        says=lambda x, after: f"A scalar factor comes out of {called(x)}, which is linear.",
    ),
    _product("product over one index", "A sum of one term is that term.", 1, unpermuted(_thin)),
    _product(
        "product with equal rows", "A product with equal rows sums each row.", 1, unpermuted(_constant_factor)
    ),
    _product(
        "product with a vector", "A product with one column is a product with a vector.", 1, unpermuted(_vector)
    ),
    _product("brackets", "A matrix product is associative.", 1, _left_nested, routine=True),
    Rule("outer product", "The outer product, entry by entry.", 2, _outer, (outer_op,)),
    _product(
        "diagonal matrix", "A diagonal matrix scales rows from the left and columns from the right.",
        2, unpermuted(_diagonal),
    ),
    _product("dot product", "A row times a column is a sum of products.", 2, unpermuted(_dot)),
    _product(
        "factor of a row or column out", "A factor of each row comes out on the left, one of each column on the right.",
        2, unpermuted(_factors_out),
    ),
    Rule(
        "linear", "What is linear may be applied term by term.", 2, unpermuted(_distributed), _LINEAR,
        says=lambda x, after: f"{called(x, first=True)} is linear, and is taken term by term.",
    ),
)  # fmt: skip
