"""Comparisons, logic and choice: the binary tensors that masks are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import sympy

from ..core.boxes import Fence, Sign, row
from ..core.node import Tensor, refused_minus_infinity
from ..core.operation import Notation, Operation
from ..errors import OperandError
from ..scalars.formulas import choose, compared
from .arithmetic import drop_broadcast, entrywise
from .broadcasting import broadcast, broadcast_to, unbroadcast
from .domain import vanished
from .leaves import FLAT, as_tensor, is_zero
from .notation import Binding, Written, call, infix

Binary: TypeAlias = Callable[[Any, Any], Tensor]

# --- comparisons and logic: binary tensors ---


def _bracketed(notation: Notation) -> Notation:
    """In mathematics a comparison stands between Iverson brackets, ``[x > 0]``: it is a tensor of 0 and 1."""

    def enclosed(p: Any, node: Tensor) -> Written:
        written, binding = notation(p, node)
        return (written, binding) if p.code else (Fence(written, "[", "]"), Binding.ATOM)

    return enclosed


def _indicator(name: str, formula: Any, text: str, notation: Notation, reason: str, **more: Any) -> Operation:
    def numpy(code: Any, node: Tensor, *operands: str) -> str:
        return text.format(*operands)

    return entrywise(name, formula, numpy, notation=notation, reason=reason, kind="binary", **FLAT, **more)


def _on_one_side(a: Tensor, b: Tensor) -> bool:
    """-oo is below every number; where both sides may hold it, a difference would not tell."""
    if a.holds_minus_infinity and b.holds_minus_infinity:
        raise refused_minus_infinity("the comparison", b)
    return False


def _relation(name: str, relation: Any, sign: str, mark: str) -> tuple[Operation, Binary]:
    op = _indicator(
        name,
        lambda a, b: choose(compared(relation, a, b), sympy.S.One, sympy.S.Zero),
        f"({{}}) {sign} ({{}})",
        _bracketed(infix(sign, Sign(mark, "relation"), Binding.COMPARE, associative=False)),
        "a comparison is constant between its jumps",
        called="the comparison",
        nonsmooth=f"{sign} jumps where its two sides are equal; its derivative is 0 elsewhere",
        minus_infinity=_on_one_side,
    )
    return op, lambda a, b: op(as_tensor(a), as_tensor(b))


less_op, less = _relation("less", sympy.Lt, "<", "<")
less_equal_op, less_equal = _relation("less_equal", sympy.Le, "<=", "≤")
greater_op, greater = _relation("greater", sympy.Gt, ">", ">")
greater_equal_op, greater_equal = _relation("greater_equal", sympy.Ge, ">=", "≥")
equal_op, _ = _relation("equal", sympy.Eq, "==", "=")


def equal(a: Any, b: Any) -> Tensor:
    """1 where two entries are equal, else 0, with broadcasting: a binary tensor.

    >>> import symattn as sa
    >>> sa.equal(sa.tensor("x", "n"), 0).kind
    'binary'
    """
    return equal_op(as_tensor(a), as_tensor(b))


_JUMPS = "a logical tensor is constant between its jumps"


def _logical(name: str, called: str, formula: Any, sign: str, mark: str, binding: Binding) -> tuple[Operation, Binary]:
    op = _indicator(
        name, formula, f"({{}}) {sign} ({{}})", infix(sign, Sign(mark, "product"), binding), _JUMPS, called=called
    )
    return op, lambda a, b: op(as_mask(a, sign), as_mask(b, sign))


and_op, logical_and = _logical("logical_and", "the conjunction", lambda a, b: a * b, "&", "∧", Binding.AND)
or_op, logical_or = _logical("logical_or", "the disjunction", lambda a, b: a + b - a * b, "|", "∨", Binding.OR)
not_op = _indicator(
    "logical_not",
    lambda a: 1 - a,
    "~({})",
    lambda p, node: (
        row(Sign("~" if p.code else "¬", "prefix"), p.operand(node.inputs[0], Binding.ATOM)),
        Binding.FRACTION,
    ),
    _JUMPS,
    called="the negation",
    broadcasts=False,
)


def as_mask(x: Any, what: str) -> Tensor:
    """A binary tensor as it is; anything else is an OperandError that says how to get one."""
    mask = as_tensor(x)
    if mask.kind != "binary":
        raise OperandError(
            f"{what} takes a binary tensor (True = attend), not {mask.brief()}: compare entries (x > 0), "
            "give a relation to sa.from_index, or declare sa.tensor(..., binary=True)"
        )
    return mask


def logical_not(a: Any) -> Tensor:
    return not_op(as_mask(a, "~"))


# --- choice ---


def _where_vjp(g: Tensor, y: Tensor, chosen: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor | None, ...]:
    return None, unbroadcast(where(chosen, g, 0), a.shape, y.shape), unbroadcast(where(chosen, 0, g), b.shape, y.shape)


def _where_jvp(tangents: Sequence[Tensor | None], y: Tensor, chosen: Tensor, a: Tensor, b: Tensor) -> Tensor:
    moved = [as_tensor(0) if t is None else t for t in tangents[1:]]
    return broadcast_to(where(chosen, *moved), y.shape)


where_op = entrywise(
    "where",
    lambda chosen, a, b: choose(sympy.Ne(chosen, 0), a, b),
    vjp=_where_vjp,
    jvp=_where_jvp,
    numpy=lambda code, node, chosen, a, b: f"np.where({chosen}, {code.typed(node.inputs[1:], a, b)})",
    notation=lambda p, node: call(p, "where", node),
    reason="the cotangent of a choice goes to the side that is chosen",
    minus_infinity="kept",
    masks=(0,),
    stays_whole=True,
    build=lambda chosen, a, b: _where(chosen, a, b),
)


def _where(chosen: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """A choice between zeros is zeros."""
    shape = broadcast("where", chosen, a, b)
    whole = where_op.node(*drop_broadcast((chosen, a, b), shape))
    return vanished(whole) if is_zero(a) and is_zero(b) else whole


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """``a`` where the condition is true, else ``b``, with broadcasting.

    Raises OperandError if the condition is not binary.

    >>> import symattn as sa
    >>> x = sa.tensor("x", "n")
    >>> print(sa.where(x > 0, x, 0))
    where(x > 0, x, 0)
    """
    return where_op(as_mask(condition, "where"), as_tensor(a), as_tensor(b))
