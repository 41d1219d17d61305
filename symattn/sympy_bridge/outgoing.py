"""From tensors to SymPy: plain matrix expressions where SymPy is right, else nodes that hold the tensor.

SymPy 1.14 drops brackets, cannot compile entrywise functions, traces and identities, and knows no row operations; its
own nodes are used only where what it prints and compiles is right.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.tensor.array.expressions import ArraySymbol
from sympy.tensor.array.expressions.arrayexpr_derivatives import array_derive

from ..core.node import Tensor, check_open, with_inputs
from ..core.operation import Operation
from ..errors import NoRuleError, ShapeError
from ..graph.entries import entry
from ..ops.arithmetic import add_op, divide_op, multiply_op
from ..ops.contraction import diag_op, matmul_op, outer_op
from ..ops.index import expand_dims, squeeze
from ..ops.inverse import inv_op
from ..ops.layout import matrix_transpose, transpose_op
from ..ops.leaves import computed, constant, cotangent_op, definition, let_op, operands, variable
from ..ops.notation import Binding
from ..printing.matrix import latex_printer, text
from ..scalars.explicit import written_out
from .incoming import from_sympy

PLAIN_SIZE = 100  # nodes of the largest tree that is handed to SymPy, which copies and recurses


def to_sympy(x: Tensor) -> Any:
    """A tensor of rank <= 2 as a SymPy expression: a scalar, a column of shape (n, 1), or a matrix.

    Matrix products, sums, transposes, entrywise products, scalar multiples, inverses and diagonal matrices of named
    tensors are SymPy's own expressions. Anything else is one node, a ``TensorExpr`` (``TensorScalar`` for rank 0),
    which prints, gives entries and is compiled by ``sympy.lambdify`` as symattn does it, also for arrays with leading
    loop axes, and whose ``.diff`` is refused. Named tensors are its arguments: MatrixSymbols (rank 0: real symbols,
    rank > 2: ArraySymbols). In SymPy's own expressions, a size that stands as a factor is an argument of ``lambdify``
    like any symbol. Raises ShapeError for rank > 2.

    >>> import sympy, symattn as sa
    >>> T, S, d = sa.sizes("T S d")
    >>> Q, K = sa.tensor("Q", T, d), sa.tensor("K", S, d)
    >>> (Q @ K.T / sympy.sqrt(d)).to_sympy()
    1/sqrt(d)*Q*K.T
    >>> P = sa.softmax(Q @ K.T / sympy.sqrt(d)).to_sympy()
    >>> P, P.shape
    (softmax(Q @ K.T / sqrt(d)), (T, S))
    """
    check_open(x)
    if x.rank > 2:
        raise ShapeError(f"{x.brief()} has {x.rank} axes: SymPy's matrices have two, so take a part, such as x[0]")
    plain = _plain(x)
    return held(x) if plain is None else plain


# --- SymPy's own expressions ---

_RIGHT = (
    sympy.MatrixSymbol, sympy.MatAdd, sympy.MatMul, sympy.MatPow, sympy.Transpose, sympy.HadamardProduct,
    sympy.Inverse, sympy.DiagMatrix,
)  # fmt: skip


def _plain(x: Tensor) -> Any:
    """SymPy's own expression, or None where it has none or would print or compile it wrongly."""
    order = computed([x])
    trees: dict[Tensor, int] = {}
    made: dict[Tensor, Any] = {}
    for node in order:
        trees[node] = 1 + sum(trees[i] for i in operands(node))
        rule = _PLAIN.get(node.op)
        counted = node.op is variable and node.kind != "real" and node is not x  # SymPy adds True and True to True
        if rule is None or counted or node.rank > 2 or trees[node] > PLAIN_SIZE:
            return None
        made[node] = rule(node, *(made[i] for i in operands(node)))
        if made[node] is None:
            return None
    return made[x] if _is_right(made[x]) else None


def _is_right(expr: Any) -> bool:
    parts = list(sympy.preorder_traversal(expr))
    if any(isinstance(part, sympy.MatrixExpr) and not isinstance(part, _RIGHT) for part in parts):
        return False
    if any(isinstance(part, sympy.MatMul) and _loses_brackets(part) for part in parts):
        return False
    return "+ -" not in sympy.latex(expr)


def _loses_brackets(product: Any) -> bool:
    r"""SymPy writes ``-(A o B) C`` as ``- A \circ B C``."""
    coefficient, factors = product.as_coeff_matrices()
    entrywise = any(isinstance(factor, sympy.HadamardProduct) for factor in factors)
    return len(factors) > 1 and entrywise and coefficient.could_extract_minus_sign()


def _symbol(node: Tensor) -> Any:
    """The SymPy symbol of a named tensor: real, a column, a matrix, or an array."""
    name = node.params["name"]
    if not node.rank:
        return sympy.Symbol(name, real=True)
    return sympy.MatrixSymbol(name, *(*node.shape, 1)[:2]) if node.rank <= 2 else ArraySymbol(name, node.shape)


def _plain_product(node: Tensor, a: Any, b: Any) -> Any:
    left, right = node.inputs
    if left.rank and right.rank:
        return sympy.HadamardProduct(*_factors(a), *_factors(b)) if left.shape == right.shape else None
    return a * b


def _factors(x: Any) -> tuple[Any, ...]:
    return x.args if isinstance(x, sympy.HadamardProduct) else (x,)


def _plain_matmul(node: Tensor, a: Any, b: Any) -> Any:
    core = tuple(x.rank for x in node.inputs)
    if core != node.params["core"] or core == (1, 1):
        return None
    return b.T * a if core == (1, 2) else a * b  # a row is kept as the column that every vector is


_PLAIN: dict[Operation, Callable[..., Any]] = {
    variable: _symbol,
    let_op: lambda node, a: a,
    cotangent_op: lambda node, a: a,
    constant: lambda node: node.params["formula"],
    add_op: lambda node, a, b: a + b if node.inputs[0].shape == node.inputs[1].shape else None,
    multiply_op: _plain_product,
    divide_op: lambda node, a, b: None if node.inputs[1].rank else a / b,
    transpose_op: lambda node, a: a.T if node.params["order"] == (-1, -2) else None,
    matmul_op: _plain_matmul,
    outer_op: lambda node, a, b: a * b.T,
    diag_op: lambda node, a: sympy.DiagMatrix(a),
    inv_op: lambda node, a: sympy.Inverse(a),
}


# --- nodes that hold a tensor ---


class TensorAtom(sympy.Atom):
    """A tensor as an atom of a SymPy tree, with the symbols that stand for what it is made from."""

    def __new__(cls, tensor: Tensor) -> TensorAtom:
        self = super().__new__(cls)
        self.tensor = tensor
        order = computed([tensor])
        self.variables = tuple(node for node in order if node.op is variable)
        self.scalars = tuple(sorted({s for node in order for s in node.own_symbols}, key=str))
        return self

    @cached_property
    def compiled(self) -> Any:
        """The NumPy function of the tensor."""
        from .compiled import Compiled  # which needs NumPy

        return Compiled(self.tensor, self.variables)

    def _hashable_content(self) -> tuple[int]:
        return (id(self.tensor),)  # tensors are interned, and this one lives as long as the atom

    def __reduce_ex__(self, protocol: Any) -> Any:
        return TensorAtom, (self.tensor,)

    def _sympystr(self, printer: Any) -> str:
        return text(self.tensor)


class _Node(sympy.Basic):
    """What matrices and scalars that hold a tensor share: ``args`` are the held tensor, its symbols, its variables.

    With other symbols in their places (as ``subs`` puts them) the node of the substituted tensor is made.
    """

    def __new__(cls, held_tensor: Any, *parts: Any) -> Any:
        own = (*held_tensor.scalars, *map(_symbol, held_tensor.variables))
        if parts in ((), own) or any(map(_is_provisional, parts)):
            return super().__new__(cls, held_tensor, *(parts or own))
        count = len(held_tensor.scalars)
        changed = {s: v for s, v in zip(held_tensor.scalars, parts[:count], strict=True) if s != v}
        nodes = {v: _operand(v, part) for v, part in zip(held_tensor.variables, parts[count:], strict=True)}
        return held(held_tensor.tensor.subs({**changed, **nodes}))

    @property
    def tensor(self) -> Tensor:
        """The tensor that the node stands for."""
        return self.args[0].tensor

    @property
    def free_symbols(self) -> set[Any]:
        _refuse_derivative(self.tensor)
        return super().free_symbols

    def _eval_derivative(self, s: Any) -> Any:
        raise _no_derivative(self.tensor, s)

    def doit(self, **hints: Any) -> Any:
        return self

    def _eval_simplify(self, **hints: Any) -> Any:
        return self

    def _latex(self, printer: Any, exp: Any = None) -> str:
        own = latex_printer([self.tensor])
        x = definition(self.tensor)
        written = own.refer(x)
        if exp is not None or (printer._print_level > 1 and own.binding(x) < Binding.ATOM):
            written = rf"\left({written}\right)"
        return written if exp is None else f"{written}^{{{exp}}}"

    def _sympystr(self, printer: Any) -> str:
        written = text(self.tensor)
        return f"({written})" if printer._print_level > 1 and " " in written else written

    def _numpycode(self, printer: Any) -> str:
        compiled = self.args[0].compiled
        printer.module_imports["symattn.sympy_bridge.compiled"].add(compiled.name)
        scalars = dict(zip(self.args[0].scalars, self.args[1:], strict=False))
        given = (*self.args[1 + len(scalars) :], *(scalars[s] for s in compiled.scalars))
        return f"{compiled.name}({', '.join(map(printer._print, given))})"

    _pythoncode = _numpycode


class TensorExpr(_Node, sympy.MatrixExpr):
    """A tensor of rank 1 (as a column) or 2 as a SymPy matrix expression."""

    @property
    def shape(self) -> tuple[Any, Any]:
        rows, columns = (*self.tensor.shape, sympy.S.One)[:2]
        return rows, columns

    def _entry(self, i: Any, j: Any, **hints: Any) -> Any:
        return _entry(self.args[0], (i, j)[: self.tensor.rank])

    def _eval_transpose(self) -> Any:
        x = self.tensor
        return held(matrix_transpose(expand_dims(x, -1) if x.rank == 1 else x))


class TensorScalar(_Node, sympy.Expr):
    """A tensor of rank 0 as a SymPy scalar."""

    is_commutative = True
    is_extended_real = True


def held(x: Tensor) -> Any:
    """The node that holds a tensor of rank <= 2."""
    return (TensorExpr if x.rank else TensorScalar)(TensorAtom(_without_origins(x)))


def _without_origins(x: Tensor) -> Tensor:
    """Gradients as plain named intermediates: what they are the gradient of is no part of a SymPy tree."""
    new: dict[Tensor, Tensor] = {}
    for node in computed([x]):
        if node.op is cotangent_op:
            new[node] = let_op(new[node.inputs[0]], name=node.params["name"])
        else:
            new[node] = with_inputs(node, new)
    return new[x]


def _is_provisional(part: Any) -> bool:
    """Whether SymPy has put a dummy that it will replace again: for an argument of ``lambdify``, or within ``subs``."""
    return any(isinstance(s, sympy.Dummy) or "Dummy_" in s.name for s in part.atoms(sympy.Symbol))


def _operand(v: Tensor, part: Any) -> Tensor:
    """What is put for a named tensor; another MatrixSymbol of its name keeps its hypotheses."""
    x = from_sympy(part)
    if x.op is variable and x.params["name"] == v.params["name"]:
        return variable(name=x.params["name"], shape=x.shape[: v.rank], hypotheses=v.params["hypotheses"])
    return squeeze(x, -1) if v.rank == 1 else x


def _entry(atom: TensorAtom, index: tuple[Any, ...]) -> Any:
    """One entry as a formula of the entries of SymPy's symbols; any index symbol is taken, as SymPy does."""
    symbols = {s for i in index for s in sympy.sympify(i).free_symbols if not s.is_integer}
    integer = {s: sympy.Dummy(s.name, integer=True) for s in symbols}
    formula = entry(atom.tensor, tuple(sympy.sympify(i).xreplace(integer) for i in index))
    operands = {v.params["name"]: _symbol(v) for v in atom.variables}

    def element(base: Any, at: tuple[Any, ...]) -> Any:
        array = operands[base.name]
        if isinstance(array, sympy.MatrixSymbol):
            return MatrixElement(array, *(*at, sympy.S.Zero)[:2])
        return array[at]

    return written_out(formula, element, {dummy: s for s, dummy in integer.items()})


# --- derivatives, which SymPy would answer by a silent zero ---


def _no_derivative(x: Tensor, variable: Any) -> NoRuleError:
    return NoRuleError(
        f"SymPy has no derivative of {x.brief()} by {variable}: write sa.gradient(y, [x]) or sa.jvp(y, {{x: dx}}) "
        "with the tensors, and take .to_sympy() of the result"
    )


def _array_derivative(node: Any, variable: Any) -> Any:
    raise _no_derivative(node.tensor, variable)


array_derive.register(TensorExpr, _array_derivative)
array_derive.register(TensorScalar, _array_derivative)


def _refuse_derivative(x: Tensor) -> None:
    """Raise if the caller differentiates an expression around this node by a matrix or an entry.

    SymPy takes such a derivative of any scalar that it does not know to be zero and asks the node nothing; its first
    step is to collect the free symbols, so the question is met there.
    """
    frame: Any = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("sympy."):
        if frame.f_code is sympy.Derivative.__new__.__code__:
            for given in frame.f_locals["variables"]:
                v = given[0] if isinstance(given, (tuple, list, sympy.Tuple)) else given
                if not isinstance(v, (sympy.Symbol, sympy.Integer, int)):
                    raise _no_derivative(x, v)
        frame = frame.f_back
