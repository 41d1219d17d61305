"""From SymPy's matrix expressions to tensors: one function for each kind of node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import sympy
from sympy.core.function import AppliedUndef
from sympy.matrices.expressions.applyfunc import ElementwiseApplyFunction
from sympy.matrices.expressions.diagonal import DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.slice import MatrixSlice
from sympy.tensor.array.expressions import ArraySymbol

from ..core.exact import as_scalar
from ..core.node import Tensor
from ..core.sizes import same_size
from ..errors import OperandError, ShapeError, described
from ..ops import pointwise
from ..ops.arithmetic import add, divide, multiply
from ..ops.contraction import diag, einsum, matmul, trace
from ..ops.inverse import inv
from ..ops.layout import concat, matrix_transpose, merge_axes
from ..ops.leaves import as_tensor, constant, eye, from_index, ones, tensor, zeros
from ..ops.opaque import unknown
from ..ops.pointwise import power
from ..ops.slicing import getitem
from ..scalars.functions import FUNCTIONS

Reader = Callable[[Any], Tensor]  # from a part of the expression to its tensor


def from_sympy(expr: Any) -> Tensor:
    """The tensor that a SymPy matrix expression, explicit matrix or scalar stands for.

    A MatrixSymbol becomes the tensor of its name and shape, ``A*B`` the matrix product, ``HadamardProduct`` the
    entrywise one, ``applyfunc`` an entrywise function; columns stay of shape (n, 1). Matrices are real. Raises
    OperandError for a node that has no counterpart, with what to write instead, and ShapeError for sizes that are no
    positive integers or do not fit, which SymPy accepts while they are symbols.

    >>> import sympy, symattn as sa
    >>> T, S, d = sa.sizes("T S d")
    >>> Q, K = sympy.MatrixSymbol("Q", T, d), sympy.MatrixSymbol("K", S, d)
    >>> print(sa.from_sympy(Q * K.T / sympy.sqrt(d)))
    Q @ K.T / sqrt(d)
    """
    known: dict[Any, Tensor] = {}

    def read(part: Any) -> Tensor:
        if part not in known:
            known[part] = _read(part, read)
        return known[part]

    if isinstance(expr, Tensor):
        return as_tensor(expr)
    if not isinstance(expr, (sympy.Basic, sympy.MatrixBase)):
        raise OperandError(f"from_sympy takes a SymPy expression, not {described(expr)}")
    return read(sympy.ImmutableMatrix(expr) if isinstance(expr, sympy.MatrixBase) else expr)


def _read(expr: Any, read: Reader) -> Tensor:
    held = getattr(expr, "tensor", None)
    if isinstance(held, Tensor):
        return held if held.rank != 1 else getitem(held, (slice(None), None))
    if isinstance(expr, sympy.MatrixBase):
        return _explicit(expr)
    reader = _READERS.get(type(expr))
    if reader is not None:
        return reader(expr, read)
    if isinstance(expr, sympy.Expr) and not getattr(expr, "is_Matrix", False):
        if not expr.has(sympy.MatrixExpr):
            return constant(formula=as_scalar(expr))
        if isinstance(expr, sympy.Function) and len(expr.args) == 1:
            return _applied(expr.func, _number(read(expr.args[0]), expr))
    kind = type(expr).__name__
    raise OperandError(f"from_sympy knows no {kind}, met in {expr}: {_INSTEAD.get(kind, _OTHERWISE)}")


def _number(x: Tensor, expr: Any) -> Tensor:
    """The argument of a scalar function, which of a matrix means a matrix function and not the entries' one."""
    if x.rank != 0:
        raise OperandError(
            f"{expr} is a function of the matrix itself: write the argument's applyfunc(sympy.{expr.func.__name__}) "
            "for the function of each entry; symattn has no matrix functions"
        )
    return x


_OTHERWISE = "write it with tensors, for example by sa.einsum, sa.elementwise or sa.from_index"
_INSTEAD = {
    "Determinant": "symattn has no determinant",
    "PermutationMatrix": "write sa.tensor(name, n, n, permutation=True)",
    "DotProduct": "write (x.T * y)[0, 0]",
    "ArrayDerivative": "write sa.gradient(y, [x])",
    "Derivative": "write sa.gradient(y, [x])",
    "RandomMatrixSymbol": "write sa.tensor(name, ...) for it; a tensor's law is stated apart from it",
}


# --- names and constants ---


def _explicit(matrix: Any) -> Tensor:
    """An explicit matrix of scalars as a constant by index: each entry at its place."""

    def formula(i: Any, j: Any) -> Any:
        at = sympy.KroneckerDelta
        places = itertools.product(range(matrix.rows), range(matrix.cols))
        return sympy.Add(*(as_scalar(matrix[r, c]) * at(i, r) * at(j, c) for r, c in places))

    return from_index(matrix.shape, formula)


# --- sums, products, powers ---


def _joined(join: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Any, Reader], Tensor]:
    return lambda expr, read: reduce(join, map(read, expr.args))


def _product(expr: Any, read: Reader) -> Tensor:
    coefficient, matrices = expr.as_coeff_matrices()
    return multiply(read(coefficient), reduce(matmul, map(read, matrices)))


def _matrix_power(expr: Any, read: Reader) -> Tensor:
    base, exponent = expr.args
    if not exponent.is_Integer:
        raise OperandError(f"{expr} is a matrix power with the exponent {exponent}: only fixed integers are known")
    if exponent == 0:
        return eye(base.rows)
    factor = read(base) if exponent > 0 else inv(read(base))
    return reduce(matmul, [factor] * abs(int(exponent)))


def _kronecker(expr: Any, read: Reader) -> Tensor:
    def pair(a: Tensor, b: Tensor) -> Tensor:
        return merge_axes(merge_axes(einsum("ab,cd->acbd", a, b), (2, 3)), (0, 1))

    return reduce(pair, map(read, expr.args))


# --- entrywise functions ---


def _applied(function: Any, x: Tensor) -> Tensor:
    """A SymPy function or Lambda of a tensor, by symattn's own name for it where there is one."""
    u = sympy.Dummy(real=True)
    body = function(u)
    if isinstance(body, AppliedUndef):
        return unknown(body.func.__name__, x)
    own = getattr(pointwise, body.func.__name__.lower(), None) if body.func in FUNCTIONS else None
    if body.args == (u,) and own is not None:
        return own(x)
    if body == sympy.sqrt(u):
        return pointwise.sqrt(x)
    return pointwise.elementwise(sympy.Lambda(u, body), x)


# --- diagonals, blocks, parts ---


def _diag_matrix(expr: Any, read: Reader) -> Tensor:
    vector = read(expr.args[0])
    return diag(getitem(vector, (slice(None), 0) if vector.shape[1] == 1 else (0, slice(None))))


def _only_diagonal(expr: Any, read: Reader) -> Tensor:
    square = _square(read(expr.arg), expr)
    return multiply(square, eye(square.shape[0]))


def _square(x: Tensor, expr: Any) -> Tensor:
    if not same_size(*x.shape):
        raise ShapeError(f"{expr}: the diagonal of {x.brief()} is only known for a square matrix")
    return x


def _blocks(expr: Any, read: Reader) -> Tensor:
    rows, columns = expr.blockshape
    return concat([concat([read(expr.blocks[i, j]) for j in range(columns)], axis=1) for i in range(rows)], axis=0)


def _slice(expr: Any, read: Reader) -> Tensor:
    def cut(limits: Iterable[Any]) -> slice:
        return slice(*(int(edge) if sympy.sympify(edge).is_Integer else edge for edge in limits))

    return getitem(read(expr.parent), (cut(expr.rowslice), cut(expr.colslice)))


def _element(expr: Any, read: Reader) -> Tensor:
    if not (expr.i.is_Integer and expr.j.is_Integer):
        raise OperandError(
            f"{expr} is an entry at a symbolic index, which is a scalar formula and no tensor: convert {expr.parent} "
            "and read the entry off the result"
        )
    return getitem(read(expr.parent), (int(expr.i), int(expr.j)))


# --- scalars made from matrices ---


def _contraction(expr: Any, read: Reader) -> Tensor:
    """A sum of a product of entries over whole axes, as SymPy writes ``(x.T * A * x)[0, 0]``."""
    bound = {limit[0] for limit in expr.limits}
    if any(len(limit) != 3 or bound & sympy.Tuple(*limit[1:]).free_symbols for limit in expr.limits):
        raise _no_contraction(expr)
    sizes = {k: high - low + 1 for k, low, high in expr.limits}
    letters = {k: chr(ord("a") + n) for n, k in enumerate(sizes)}
    coefficient, factors, labels = sympy.S.One, [], []
    for factor in sympy.Mul.make_args(expr.function):
        if factor.has(*letters):
            x, label = _along(factor, letters, expr, read)
            factors.append(x)
            labels.append(label)
        else:
            coefficient = coefficient * factor
    for k, letter in letters.items():
        if not any(letter in label for label in labels):
            coefficient = coefficient * sizes[k]  # the same term as often as the index runs
    return multiply(read(coefficient), einsum(",".join(labels) + "->", *factors)) if factors else read(coefficient)


def _along(factor: Any, letters: dict[Any, str], total: Any, read: Reader) -> tuple[Tensor, str]:
    """A factor of a sum as a tensor, and the letters of its axes: an entry, or a function of one."""
    if isinstance(factor, MatrixElement) and all(i.is_Integer or i in letters for i in (factor.i, factor.j)):
        return _entries(factor, letters, total, read)
    if isinstance(factor, sympy.Function) and len(factor.args) == 1:
        x, label = _along(factor.args[0], letters, total, read)
        return _applied(factor.func, x), label
    base, exponent = factor.as_base_exp()
    if exponent != 1 and not exponent.has(*letters):
        x, label = _along(base, letters, total, read)
        return power(x, read(exponent)), label
    raise _no_contraction(total)


def _entries(element: Any, letters: dict[Any, str], total: Any, read: Reader) -> tuple[Tensor, str]:
    indices = (element.i, element.j)
    for i, size in zip(indices, element.parent.shape, strict=True):
        for k, low, high in total.limits:
            if i == k and not (low == 0 and same_size(high + 1, size)):
                raise _no_contraction(total)
    at = tuple(int(i) if i.is_Integer else slice(None) for i in indices)
    return getitem(read(element.parent), at), "".join(letters.get(i, "") for i in indices)


def _no_contraction(total: Any) -> OperandError:
    return OperandError(
        f"{total} is not a sum of a product of entries over whole axes: write sa.sum or sa.einsum of tensors"
    )


def _unless_number(reader: Callable[[Any, Reader], Tensor]) -> Callable[[Any, Reader], Tensor]:
    """A reader of what holds matrices; without them it is a number."""
    return lambda expr, read: reader(expr, read) if expr.has(sympy.MatrixExpr) else constant(formula=as_scalar(expr))


def _scalar_power(expr: Any, read: Reader) -> Tensor:
    base, exponent = expr.as_base_exp()
    if exponent == sympy.S.Half:
        return pointwise.sqrt(read(base))
    raised = power(read(base), read(abs(exponent) if exponent == -1 else exponent))
    return divide(1, raised) if exponent == -1 else raised


_READERS: dict[type, Callable[[Any, Reader], Tensor]] = {
    sympy.MatrixSymbol: lambda expr, read: tensor(expr.name, *expr.shape),
    ArraySymbol: lambda expr, read: tensor(expr.name, *expr.shape),
    sympy.Identity: lambda expr, read: eye(expr.rows),
    sympy.OneMatrix: lambda expr, read: ones(*expr.shape),
    sympy.ZeroMatrix: lambda expr, read: zeros(*expr.shape),
    sympy.FunctionMatrix: lambda expr, read: from_index(expr.shape, expr.lamda),
    sympy.MatAdd: _joined(add),
    sympy.MatMul: _product,
    sympy.MatPow: _matrix_power,
    sympy.Inverse: lambda expr, read: inv(read(expr.arg)),
    sympy.HadamardProduct: _joined(multiply),
    sympy.HadamardPower: _joined(power),
    sympy.KroneckerProduct: _kronecker,
    sympy.Transpose: lambda expr, read: matrix_transpose(read(expr.arg)),
    sympy.Adjoint: lambda expr, read: matrix_transpose(read(expr.arg)),
    ElementwiseApplyFunction: lambda expr, read: _applied(expr.function, read(expr.expr)),
    sympy.DiagMatrix: _diag_matrix,
    DiagonalMatrix: _only_diagonal,
    DiagonalOf: lambda expr, read: getitem(diag(_square(read(expr.arg), expr)), (slice(None), None)),
    sympy.BlockMatrix: _blocks,
    sympy.BlockDiagMatrix: _blocks,
    MatrixSlice: _slice,
    MatrixElement: _element,
    sympy.Trace: lambda expr, read: trace(read(expr.arg)),
    sympy.Sum: _contraction,
    sympy.Add: _unless_number(_joined(add)),
    sympy.Mul: _unless_number(_joined(multiply)),
    sympy.Pow: _unless_number(_scalar_power),
}
