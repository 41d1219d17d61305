"""What derivatives do not look into: functions known only by name, and values taken as constant."""

from __future__ import annotations

from typing import Any

from ..core.arguments import flag
from ..core.boxes import Code, Function
from ..core.boxes import function as named_function
from ..core.naming import check_name
from ..core.node import Tensor
from ..core.operation import Operation
from ..errors import NoRuleError, ShapeError
from ..scalars.formulas import Held, Unknown, UnknownOfRow, bound
from .arithmetic import multiply
from .index import replaced
from .leaves import FLAT, as_tensor
from .notation import Binding, Written, call, function, source, told_axis

# --- functions known only by name ---


def _unknown_entry(read: Any, index: Any, node: Tensor) -> Any:
    name = node.params["function"]
    if not node.params["rowwise"]:
        return Unknown(name, read(0, index))
    limit = bound(node, 0, node.shape[-1])
    return UnknownOfRow(read(0, replaced(index, -1, limit[0])), [limit], index[-1:], name)


def _slope(x: Tensor, name: str, rowwise: bool) -> Tensor:
    """The function of the name with one more prime."""
    if rowwise:
        raise NoRuleError(
            f"the derivative of the unknown function {name} of rows, met at {x.brief()}, is not known: only an "
            "unknown function of entries has a derivative by name"
        )
    return unknown_op(x, function=f"{name}'", rowwise=False)


def _unknown_numpy(code: Any, node: Tensor, x: str) -> str:
    name, shown = node.params["function"], node.inputs[0].brief()
    raise NoRuleError(
        f"no code is known for {name} of {shown}, a function known only by name: put a known one in its place by "
        f"y.replace({{{node}: ...}})"
    )


def _unknown_notation(p: Any, node: Tensor) -> Written:
    name = node.params["function"]
    if not p.code:
        axis = told_axis(p, node, -1) if node.params["rowwise"] else None
        return call(p, name, node, Function(p.letters(name)), axis=axis)
    rowwise = [Code("rowwise=True")] * node.params["rowwise"]
    return source("unknown", Code(f'"{name}"'), p.operand(node.inputs[0], Binding.OR), *rowwise), Binding.ATOM


unknown_op: Operation = Operation(
    "unknown",
    shape=lambda x, function, rowwise: x.shape,
    entry=_unknown_entry,
    vjp=lambda g, y, x, function, rowwise: (multiply(g, _slope(x, function, rowwise)),),
    jvp=lambda tangents, y, x, function, rowwise: multiply(tangents[0], _slope(x, function, rowwise)),
    numpy=_unknown_numpy,
    notation=_unknown_notation,
    reason="chain rule, entry by entry, for any differentiable function",
    nonsmooth="an unknown function is taken to be differentiable",
)


def unknown(name: str, x: Any, rowwise: bool = False) -> Tensor:
    """A function known only by its name, for statements about all functions: ``y[i, j] = phi(x[i, j])``.

    Its derivative is ``phi'``, which is ``unknown("phi'", x)``. With ``rowwise`` the function takes and gives whole
    rows, and has no known derivative. Raises NamingError for a name that is not allowed, ShapeError for rows of a
    rank-0 tensor, and NoRuleError when code or an unknown derivative is asked for.

    >>> import symattn as sa
    >>> x = sa.tensor("x", "n")
    >>> print(sa.latex(sa.gradient(sa.sum(sa.unknown("phi", x)), [x])[x].inputs[0]))
    \\phi'(x)
    """
    operand = as_tensor(x)
    if flag("unknown", "rowwise", rowwise) and not operand.rank:
        raise ShapeError(f"unknown of {operand.brief()}: a rank-0 tensor has no rows")
    return unknown_op(operand, function=check_name(name), rowwise=rowwise)


# --- values taken as constant ---

stop_gradient_op: Operation = Operation(
    "stop_gradient",
    shape=lambda x: x.shape,
    entry=lambda read, index, node: Held(read(0, index)),
    numpy=lambda code, node, x: x,
    notation=function("stop_gradient", named_function("sg")),
    reason="by choice, nothing flows back",
    kind="inputs",
    is_view=True,
    minus_infinity="kept",
    nonsmooth="what stop_gradient holds is taken as constant",
    **FLAT,
)


def stop_gradient(x: Any) -> Tensor:
    """The tensor itself, which every derivative takes as a constant; results say so in their conditions.

    >>> import symattn as sa
    >>> x = sa.tensor("x", "n")
    >>> print(sa.gradient(sa.sum(x * sa.stop_gradient(x)), [x]))
    dx = stop_gradient(x)  # product rule, entry by entry
    """
    return stop_gradient_op(as_tensor(x))
