"""The axes and the entry formula of a declared operation: ``"T d, S d -> T S"`` and a function of an index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sympy

from .errors import NoRuleError, OperandError, ShapeError
from .naming import check_name
from .ops.broadcasting import broadcast_index
from .ops.formulas import Max, Min, bound, without_piecewise
from .sizes import Shape, broadcast_shapes, same_size
from .tensor import Tensor

Axes = tuple[str, ...]
Formula = Callable[[tuple[Any, ...], tuple[Shape, ...]], Any]  # of an index and the core shapes of the inputs


class Signature:
    """Named axes of the inputs and of the output; axes further left broadcast among the inputs."""

    def __init__(self, text: str) -> None:
        left, arrow, right = text.partition("->") if isinstance(text, str) else ("", "", "")
        if not arrow:
            raise OperandError(f"shape names the axes, for example 'T d, S d -> T S' or 'n ->', not {text!r}")
        self.inputs: tuple[Axes, ...] = tuple(tuple(part.split()) for part in left.split(","))
        self.output: Axes = tuple(right.split())
        for axis in (a for axes in (*self.inputs, self.output) for a in axes):
            check_name(axis)
        unknown = set(self.output) - {a for axes in self.inputs for a in axes}
        if unknown:
            raise ShapeError(f"the output axis {sorted(unknown)[0]} of {text!r} is an axis of no input")

    def __str__(self) -> str:
        return ", ".join(map(" ".join, self.inputs)) + " -> " + " ".join(self.output)

    def differentiated(self, k: int) -> Signature:
        """The signature of all derivatives by input k: output axes, then input axes."""
        return Signature(f"{self} {' '.join(self.inputs[k])}")

    def cores(self, inputs: tuple[Tensor, ...]) -> tuple[Shape, ...]:
        """The declared axes of each input."""
        return tuple(x.shape[x.rank - len(axes) :] for x, axes in zip(inputs, self.inputs, strict=True))

    def shape(self, *inputs: Tensor) -> Shape:
        """The shape of the result; raises ShapeError."""
        shown = ", ".join(x.brief() for x in inputs)
        if len(inputs) != len(self.inputs) or any(x.rank < len(a) for x, a in zip(inputs, self.inputs, strict=False)):
            raise ShapeError(f"{shown} do not have the axes of {self}")
        sizes: dict[str, sympy.Expr] = {}
        for core, axes in zip(self.cores(inputs), self.inputs, strict=True):
            for axis, size in zip(axes, core, strict=True):
                if not same_size(sizes.setdefault(axis, size), size):
                    raise ShapeError(f"{shown} for {self}: the axis {axis} is both {sizes[axis]} and {size}")
        loops = broadcast_shapes(*(x.shape[: x.rank - len(a)] for x, a in zip(inputs, self.inputs, strict=True)))
        if loops is None:
            raise ShapeError(f"{shown} for {self}: the axes in front do not broadcast")
        return loops + tuple(sizes[axis] for axis in self.output)


class Reader:
    """An input inside an entry formula: ``x[i, j]`` is an entry and ``x.shape`` the declared sizes."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.name, self.shape = name, shape

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            raise ShapeError(f"an input of {len(self.shape)} axes is read at {len(index)} indices")
        return placeholder(self.name, index)


def placeholder(name: str, index: tuple[Any, ...]) -> Any:
    """The entry of an input before it is read."""
    return sympy.Indexed(sympy.IndexedBase(name), *index) if index else sympy.Symbol(name, real=True)


def user_formula(name: str, signature: Signature, entry: Callable[..., Any]) -> Formula:
    """The user's entry as a checked SymPy scalar of placeholders."""

    def formula(index: tuple[Any, ...], shapes: tuple[Shape, ...]) -> Any:
        readers = [Reader(f"input{k}", shape) for k, shape in enumerate(shapes)]
        value = entry(index, *readers)
        if isinstance(value, (Tensor, bool)) or not isinstance(value, (sympy.Expr, int)):
            raise OperandError(f"the entry of {name} is a SymPy scalar, not {value!r}")
        return without_piecewise(sympy.sympify(value))

    return formula


def derivative_formula(formula: Formula, k: int) -> Formula:
    """The derivative of a formula by an entry of input k: its index ends with the indices of that entry."""

    def slope(index: tuple[Any, ...], shapes: tuple[Shape, ...]) -> Any:
        place = len(index) - len(shapes[k])
        value = formula(index[:place], shapes)
        if value.has(Max, Min):
            raise NoRuleError("the derivative of a largest or smallest entry is not derived: give vjp and jvp")
        found = sympy.diff(value, placeholder(f"input{k}", index[place:]))
        if found.has(sympy.Derivative, sympy.Subs):
            raise NoRuleError(f"SymPy knows no derivative of {value}: give vjp and jvp")
        return without_piecewise(found)

    return slope


def formula_entry(signature: Signature, formula: Formula) -> Callable[..., Any]:
    """The entry function of a record: bound indices renamed by the node, then placeholders read."""

    def entry(read: Any, index: Any, node: Tensor) -> Any:
        out = len(signature.output)
        loops = index[: node.rank - out]
        places = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(out))
        value = formula(places, signature.cores(node.inputs))
        value = value.xreplace(bound_names(node, value))
        value = value.xreplace(dict(zip(places, index[node.rank - out :], strict=True)))
        for k, (x, axes) in enumerate(zip(node.inputs, signature.inputs, strict=True)):
            lead = broadcast_index(x.shape[: x.rank - len(axes)], loops)
            value = _read(value, f"input{k}", partial(_at, read, k, lead))
        return value

    return entry


def _at(read: Any, k: int, lead: tuple[Any, ...], own: tuple[Any, ...]) -> Any:
    return read(k, (*lead, *own))


def bound_names(node: Tensor, value: Any) -> dict[Any, Any]:
    """The bound indices of a formula, each by the numbered index of the node, so that nothing is captured."""
    found: dict[Any, Any] = {}
    for total in sympy.preorder_traversal(value):
        if isinstance(total, (sympy.Sum, Max, Min)):
            for symbol, *_ in total.limits:
                found.setdefault(symbol, bound(node, len(found), sympy.S.One)[0])
    return found


def _read(value: Any, name: str, read: Callable[[tuple[Any, ...]], Any]) -> Any:
    if not value.has(sympy.Symbol(name, real=True), sympy.IndexedBase(name)):
        return value
    value = value.replace(
        lambda part: isinstance(part, sympy.Indexed) and str(part.base) == name, lambda part: read(part.indices)
    )
    symbol = sympy.Symbol(name, real=True)
    return value.xreplace({symbol: read(())}) if value.has(symbol) else value
