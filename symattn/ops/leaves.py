"""Where expressions begin: named tensors, scalars, constants given by index; and the names of intermediates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean

from ..core.boxes import Box, Code, Fence, Name, Number, Script, row
from ..core.comparisons import check_comparisons
from ..core.exact import INDICES, as_scalar
from ..core.late import late
from ..core.naming import check_name
from ..core.node import Tensor, check_open, topological
from ..core.operation import Operation
from ..core.sizes import Shape, as_shape, same_shape, show_shape
from ..errors import NamingError, OperandError, ShapeError, described
from ..scalars.formulas import Choice, plainly_joined, without_piecewise
from .notation import ONES, Binding, Written, scaled, source, times, transposed

HYPOTHESES = ("permutation", "orthogonal", "invertible", "binary", "integer", "positive", "symmetric", "constant")
INVERTIBLE = frozenset({"invertible", "orthogonal", "permutation"})  # hypotheses under which a matrix has an inverse
_SQUARE = {"permutation", "orthogonal", "invertible", "symmetric"}


FLAT: dict[str, Any] = {  # the derivatives of what does not move
    "vjp": lambda g, y, *inputs, **params: tuple(None for _ in inputs),
    "jvp": lambda tangents, y, *inputs, **params: zeros(*y.shape),
}


def _by_name(p: Any, node: Tensor) -> Written:
    written: Written = p.by_name(node)
    return written


# --- named tensors ---


def _tensor_kind(name: str, shape: Any, hypotheses: tuple[str, ...]) -> str:
    return next((h for h in ("binary", "integer") if h in hypotheses), "real")


def indexed(name: str, index: tuple[sympy.Expr, ...], finite: bool = True) -> sympy.Expr:
    """``Q[i, j]`` as a SymPy scalar, real, or extended real if not finite; a rank-0 tensor is a symbol of its name."""
    symbol = sympy.Symbol(name, real=True) if finite else sympy.Symbol(name, extended_real=True)
    return sympy.IndexedBase(symbol)[index] if index else symbol


variable = Operation(
    "tensor",
    shape=lambda name, shape, hypotheses: shape,
    entry=lambda read, index, node: indexed(node.params["name"], index),
    numpy=lambda code, node: node.params["name"],
    notation=_by_name,
    reason="a given tensor",
    kind=_tensor_kind,
    **FLAT,
)


def tensor(name: str, *shape: Any, **hypotheses: bool) -> Tensor:
    """A named tensor of the given shape.

    ``tensor("Q", T, d)`` and ``tensor("Q", "T d")`` are the same; no sizes make a rank-0 tensor. Hypotheses are
    declared by keyword: permutation, orthogonal, invertible, binary, integer, positive, symmetric, constant.
    Raises NamingError for a name that is not allowed and ShapeError for a size that is not one.

    >>> import symattn as sa
    >>> sa.tensor("Q", "T d").shape
    (T, d)
    """
    dims = as_shape(shape)
    check_name(name)
    for key, value in hypotheses.items():
        if key not in HYPOTHESES or not isinstance(value, bool):
            raise OperandError(
                f"{key}={described(value)} is not a property of a tensor; declare by True one of {HYPOTHESES}"
            )
    declared = tuple(h for h in HYPOTHESES if hypotheses.get(h))
    if _SQUARE & set(declared) and (len(dims) < 2 or not same_shape(dims[-1:], dims[-2:-1])):
        raise ShapeError(f"{name}{show_shape(dims)} cannot be {declared[0]}: its last two sizes differ")
    if name in {s.name for size in dims for s in size.free_symbols}:
        raise NamingError(f"{name!r} names both the tensor {name}{show_shape(dims)} and one of its sizes: rename one")
    return variable(name=name, shape=dims, hypotheses=declared)


def stand_in(name: str, shape: Shape, kind: str = "real", infinite: bool = False) -> Tensor:
    """A leaf of that name and shape, for a tensor of that kind that may hold -oo."""
    if infinite:
        return let_op(from_index_op(formula=sympy.S.NegativeInfinity, shape=shape), name=name)
    return variable(name=name, shape=shape, hypotheses=() if kind == "real" else (kind,))


# --- scalars ---


def as_tensor(value: Any) -> Tensor:
    """A tensor as it is, a SymPy matrix expression by what it stands for, a scalar as a constant."""
    if isinstance(value, Tensor):
        if value.tracings:
            check_open(value)
        return value
    if isinstance(value, (sympy.MatrixBase, sympy.NDimArray)):
        raise OperandError(f"{value} is an explicit SymPy matrix: make a constant of it by sa.from_sympy, or a tensor")
    if getattr(value, "is_Matrix", False):
        return late("from_sympy")(value)
    return constant(formula=as_scalar(value))


def _constant_notation(p: Any, node: Tensor) -> Written:
    value = node.params["formula"]
    loose = value.is_Add or value.could_extract_minus_sign()
    atom = value.is_Symbol or value.is_Integer or value.is_NumberSymbol
    return p.scalar(value), Binding.SUM if loose else Binding.ATOM if atom else Binding.PRODUCT


constant = Operation(
    "constant",
    shape=lambda formula: (),
    entry=lambda read, index, node: node.params["formula"],
    numpy=lambda code, node: code.scalar(node.params["formula"]),
    notation=_constant_notation,
    reason="a scalar",
    **FLAT,
)


# --- constants by index ---


def _is_condition(formula: Any) -> bool:
    """Whether a formula is a relation or built of relations; a SymPy symbol is a Boolean too, but none of these."""
    return isinstance(formula, Boolean) and not isinstance(formula, sympy.Symbol)


def _from_index_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    formula = without_piecewise(node.params["formula"]).xreplace(dict(zip(INDICES, index, strict=False)))
    return Choice(formula, sympy.S.One, sympy.S.Zero) if node.kind == "binary" else formula


def _from_index_notation(p: Any, node: Tensor) -> Written:
    formula, shape = node.params["formula"], node.shape
    if formula in (0, 1):
        return _repeated_number(p, "ones" if formula == 1 else "zeros", shape), Binding.ATOM
    if is_eye(node):
        size = p.scalar(shape[0])
        return (source("eye", size) if p.code else Script(Name("I"), size)), Binding.ATOM
    if formula == -sympy.oo and not p.code:
        return p.scalar(formula), Binding.SUM
    used = INDICES[: len(shape)]
    letters = p.index_names(node, formula, used)
    given = letters if p.code else [letter if size != 1 else 0 for letter, size in zip(letters, shape, strict=True)]
    value = formula.xreplace(dict(zip(used, given, strict=True)))
    if not p.code and value in (sympy.true, sympy.false):
        value = Choice(value, sympy.S.One, sympy.S.Zero)
    shown = p.scalar(p.at_letters(value, letters))
    if p.code:
        rule = row(Code(f"lambda {', '.join(map(str, letters))}: "), shown)
        return source("from_index", p.scalar(shape), rule), Binding.ATOM
    if len(shape) != 2 or 1 not in shape:
        return Script(Fence(shown, "[", "]"), row(*map(p.scalar, letters))), Binding.ATOM
    over = [p.scalar(letter) for letter, size in zip(letters, shape, strict=True) if size != 1]
    if not over:
        return Fence(shown), Binding.ATOM
    vector = Script(Fence(shown, "[", "]"), over[0])
    return (transposed(vector), Binding.POWER) if shape[0] == 1 else (vector, Binding.ATOM)


def _repeated_number(p: Any, name: str, shape: Shape) -> Box:
    if p.code:
        return source(name, *map(p.scalar, shape))
    return Script(ONES if name == "ones" else Number("0"), times(p, shape))


from_index_op = Operation(
    "from_index",
    shape=lambda formula, shape: shape,
    entry=_from_index_entry,
    numpy=lambda code, node: code.from_index(node),
    notation=_from_index_notation,
    reason="a constant",
    bounded="by the formula of its entries",
    kind=lambda formula, shape: "binary" if _is_condition(formula) else "real",
    **FLAT,
)


def from_index(shape: Any, formula: Callable[..., Any]) -> Tensor:
    """A constant given by its indices: masks, slopes, angles, positions.

    ``A[i, j] = formula(i, j)``, with a SymPy expression, or a relation for a boolean mask, of the indices (from 0),
    sizes and scalar symbols; that two indices are equal is ``sympy.Eq(i, j)``. Raises OperandError where the formula
    holds a tensor's entry (multiply by the tensor instead) or compares by ``==``, and ShapeError for a size that is
    not one.

    >>> import sympy, symattn as sa
    >>> T, S = sa.sizes("T S")
    >>> sa.from_index((T, S), lambda i, j: j <= i).kind
    'binary'
    """
    dims = as_shape(shape if isinstance(shape, (tuple, list)) else (shape,))
    if len(dims) > len(INDICES):
        raise ShapeError(f"from_index takes at most {len(INDICES)} axes, not {len(dims)}")
    try:
        value = formula(*INDICES[: len(dims)])
    except TypeError as problem:
        raise OperandError(
            f"from_index: the formula of {len(dims)} indices failed ({problem}); it takes one argument an axis, joins "
            "conditions by & and |, and chooses by sympy.Piecewise((value, condition), (other, True))"
        ) from None
    if isinstance(value, bool):
        value = sympy.true if value else sympy.false
    check_comparisons("from_index", formula, INDICES[: len(dims)], dims, value)
    if isinstance(value, Tensor) or (isinstance(value, sympy.Basic) and value.has(sympy.Indexed)):
        raise OperandError("a tensor's entry inside from_index: multiply the tensor by a from_index constant instead")
    if not _is_condition(value):
        value = as_scalar(value)
    without_piecewise(value)  # which must have a value everywhere
    return from_index_op(formula=plainly_joined(value), shape=dims)


def eye(n: Any) -> Tensor:
    """The identity matrix, ``I[i, j] = 1 if i == j else 0``.

    >>> import symattn as sa
    >>> print(sa.eye(sa.sizes("n")))
    eye(n)
    """
    return from_index((n, n), lambda i, j: sympy.KroneckerDelta(i, j))


def ones(*shape: Any) -> Tensor:
    """All entries 1, of the given shape.

    >>> import symattn as sa
    >>> print(sa.ones(*sa.sizes("T d")))
    ones(T, d)
    """
    return _filled(1, shape)


def zeros(*shape: Any) -> Tensor:
    """All entries 0, of the given shape.

    >>> import symattn as sa
    >>> print(sa.zeros(3, 4))
    zeros(3, 4)
    """
    return _filled(0, shape)


def _filled(value: int, shape: Any) -> Tensor:
    dims = as_shape(shape)
    number = sympy.Integer(value)
    return from_index_op(formula=number, shape=dims) if dims else constant(formula=number)


def is_fixed(x: Tensor) -> bool:
    """Whether derivatives take a tensor as constant: a mask, integers, a formula of indices, or by declaration."""
    return x.kind != "real" or x.op in (constant, from_index_op) or "constant" in x.params.get("hypotheses", ())


def is_zero(x: Tensor) -> bool:
    """Whether the node is a constant 0 of any shape."""
    return x.params.get("formula") == 0


def is_minus_infinity(x: Tensor) -> bool:
    """Whether the node is a constant -oo of any shape."""
    return x.params.get("formula") == sympy.S.NegativeInfinity


def is_eye(x: Tensor) -> bool:
    """Whether the node is an identity matrix."""
    return x.op is from_index_op and x.rank == 2 and x.params["formula"] == sympy.KroneckerDelta(*INDICES[:2])


def scalar_value(x: Tensor) -> sympy.Expr | None:
    """The SymPy scalar of a rank-0 constant, else None."""
    return x.params["formula"] if x.op is constant else None


# --- names of intermediates ---

# ``by`` says who gave the name: the user (""), a function of the "library", a "gradient", which says itself what its
# names stand for, or a "derivative", whose text has to say it; "number" is a name of the user with a number.
let_op = Operation(
    "let",
    shape=lambda x, name, by="": x.shape,
    entry=lambda read, index, node: read(0, index),
    vjp=lambda g, result, x, name, by="": (g,),
    jvp=lambda tangents, result, x, name, by="": tangents[0],
    numpy=lambda code, node, x: x,
    notation=_by_name,
    reason="by definition",
    kind="inputs",
    is_view=True,
    minus_infinity="kept",
)


def let(name: str, x: Any) -> Tensor:
    """Name an intermediate: it prints, differentiates and compiles by that name.

    The name is a label: two different intermediates may share it, and are numbered where both occur. What has the name
    already stays as it is, such as the result of a function that names it.
    Raises NamingError for a name that is not allowed.

    >>> import symattn as sa
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
    >>> Z = sa.let("Z", Q @ K.T)
    >>> print(sa.softmax(Z))
    softmax(Z)
    """
    x, name = as_tensor(x), check_name(name)
    return x if x.op is let_op and x.params["name"] == name else let_op(x, name=name)


def named(name: str, x: Tensor, by: str = "library") -> Tensor:
    """The same with a name that the user did not give: gradients and claims that mention it say what it stands for."""
    return x if x.op is let_op and x.params["name"] == name else let_op(x, name=name, by=by)


def named_by(x: Tensor) -> str:
    """Who named an intermediate, "" for the user."""
    if x.op is cotangent_op:
        return "gradient"
    by = str(x.params.get("by", "")) if x.op is let_op else ""
    return "" if by == "number" else by


def number_given(x: Tensor, name: str) -> dict[str, str]:
    """The parameter of a name that is that of the user with a number, which tells it from others."""
    return {"by": "number"} if x.op is let_op and not named_by(x) and x.params["name"] != name else {}


def is_numbered(x: Tensor) -> bool:
    """Whether the name is that of the user with a number."""
    return x.op is let_op and x.params.get("by") == "number"


def by_derivative(x: Tensor) -> dict[str, str]:
    """The parameter of a name that a gradient gave, where the gradient is the first step of another derivative."""
    return {"by": "derivative"} if x.op is let_op and named_by(x) == "gradient" else {}


# The result of a gradient is its expression, named, which also knows what it is the gradient of (input 1), and of
# which outputs under which cotangents (the pairs after it): generated code needs that for loop axes.
cotangent_op = Operation(
    "cotangent",
    shape=lambda x, *of, name: x.shape,
    entry=lambda read, index, node: read(0, index),
    vjp=lambda g, result, x, *of, name: (g, *(None for _ in of)),
    jvp=lambda tangents, result, x, *of, name: tangents[0] if tangents[0] is not None else zeros(*x.shape),
    numpy=lambda code, node, x, *of: x,
    notation=_by_name,
    reason="by definition",
    minus_infinity="absorbed",  # only outputs may hold it: a gradient never does
)


def operands(node: Tensor) -> tuple[Tensor, ...]:
    """The inputs whose values a node needs: a gradient knows what it belongs to, but is computed from its body."""
    return node.inputs[:1] if node.op is cotangent_op else node.inputs


def computed(roots: Iterable[Tensor]) -> list[Tensor]:
    """The nodes whose values the roots need, inputs before users."""
    return topological(roots, inputs=operands)


def definition(x: Tensor) -> Tensor:
    """What a named intermediate stands for; any other tensor stands for itself."""
    return x.inputs[0] if x.op in (let_op, cotangent_op) else x


def bare(x: Tensor) -> Tensor:
    """What a named intermediate stands for, through any number of names."""
    while (inside := definition(x)) is not x:
        x = inside
    return x


def is_named(x: Tensor) -> bool:
    """Whether the node is written by a name: a tensor, a named intermediate or a gradient."""
    return x.op in (variable, let_op, cotangent_op)


def scale_notation(p: Any, node: Tensor) -> Written:
    """A product whose first factor is a scalar constant."""
    return scaled(p, node.inputs[0].params["formula"], node.inputs[1])
