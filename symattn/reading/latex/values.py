"""What terms are worth: SymPy scalars, of indices too, as long as no tensor takes part; else tensors, axis by axis.

The axes of a tensor are those of its form: labelled ones in the order of their letters, leading ones, rows, columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import sympy
from sympy.logic.boolalg import Boolean

from ...core.node import Tensor
from ...ops.broadcasting import broadcast_to
from ...ops.contraction import einsum, matmul_of, outer
from ...ops.layout import transpose
from ...ops.leaves import as_tensor, from_index_op
from ...ops.pointwise import exp
from .shapes import Form

Value: TypeAlias = Any  # a Tensor, or a SymPy scalar or condition


def is_condition(value: Value) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, Boolean) and not isinstance(value, sympy.Symbol)


def as_number(value: Value) -> Value:
    """A condition as 1 where it holds, else 0."""
    return sympy.Piecewise((1, value), (0, True)) if is_condition(value) else value


def plain(value: Value) -> Tensor:
    """A tensor of a value that has no index."""
    return value if isinstance(value, Tensor) else as_tensor(as_number(value))


def spread(x: Tensor, form: Form, out: Form, core: bool) -> Tensor:
    """The tensor with axes of size 1 for those of the result that it has not; ``core``: also rows and columns."""
    own = {letter for letter, _ in form.labels}
    key: list[Any] = [slice(None) if letter in own else None for letter, _ in out.labels]
    key += [None] * (len(out.lead) - len(form.lead)) + [slice(None)] * len(form.lead)
    pairs = ((form.rows, out.rows), (form.cols, out.cols))
    key += [
        None if mine is None else slice(None)
        for mine, whole in pairs
        if mine is not None or (core and whole is not None)
    ]
    while key and key[0] is None:  # NumPy puts these in front by itself
        key.pop(0)
    return x[tuple(key)] if None in key else x


def entrywise(function: Callable[[Any, Any], Any], a: Tensor, of_a: Form, b: Tensor, of_b: Form, out: Form) -> Tensor:
    """A function of two tensors entry by entry, each axis at its place."""
    return function(
        a if not of_a.axes else spread(a, of_a, out, core=True), b if not of_b.axes else spread(b, of_b, out, core=True)
    )


def product(a: Tensor, of_a: Form, b: Tensor, of_b: Form, out: Form) -> Tensor:
    """The product of two that are no scalars: the columns of the left meet the rows of the right."""
    outside = bool(out.labels or out.lead)
    left, right = (spread(x, form, out, core=False) for x, form in ((a, of_a), (b, of_b)))
    meets = of_a.cols is not None, of_b.rows is not None
    if meets == (False, False) and not outside and "binary" in (a.kind, b.kind):
        for x, repeated in ((a, b[None]), (b, a[:, None])):
            if is_ones(x):  # a mask, which is repeated
                return broadcast_to(repeated, (*a.shape, *b.shape))
    if meets == (False, False):
        return left[..., None] * right[..., None, :] if outside else outer(left, right)
    if meets == (False, True):
        return matmul_of(left[..., None], right, (2, 2 if of_b.cols is not None else 1))
    own = 2 if of_a.rows is not None else 1
    if meets == (True, False):
        return matmul_of(left, right[..., None, :], (own, 2))
    return matmul_of(left, right, (own, 2 if of_b.cols is not None else 1))


def is_ones(x: Tensor) -> bool:
    """Whether a tensor is one of ones."""
    return x.op is from_index_op and bool(x.params["formula"] == 1)


def axis_of(form: Form, letter: str) -> int:
    """The place of a labelled axis."""
    return [name for name, _ in form.labels].index(letter)


def with_labels(x: Tensor, letters: Sequence[str], form: Form) -> Tensor:
    """A tensor whose first axes have these letters, in the order of the form; one that comes twice is a diagonal."""
    wanted = [letter for letter, _ in form.labels]
    if list(letters) == wanted:
        return x
    if len(set(letters)) == len(letters):
        rest = range(len(letters), x.rank)
        order = [*(letters.index(letter) for letter in wanted), *rest]
        return transpose(x, tuple(n - x.rank for n in order))
    short = {letter: chr(ord("a") + n) for n, letter in enumerate(wanted)}
    rest_letters = "".join(chr(ord("a") + len(short) + n) for n in range(x.rank - len(letters)))
    spec = "".join(short[letter] for letter in letters) + rest_letters
    return einsum(f"{spec}->{''.join(short.values())}{rest_letters}", x)


def shifts(value: Value, letters: tuple[sympy.Symbol, ...]) -> bool:
    """Whether a value stays as it is when all indices are counted from another place."""
    moved = value.xreplace({letter: letter + 1 for letter in letters})
    return bool(_told(_by_difference(moved)) == _told(_by_difference(value)))


def _by_difference(value: Any) -> Any:
    """With each delta of two indices by their difference."""
    delta = sympy.Function("delta")
    return value.replace(sympy.KroneckerDelta, lambda a, b: delta(sympy.Abs(sympy.expand(a - b))))


def _told(value: Any) -> Any:
    """With every relation by the difference of its sides, so that equal ones look equal."""
    if isinstance(value, sympy.core.relational.Relational):
        return type(value).__name__, sympy.expand(value.lhs - value.rhs)
    if isinstance(value, (sympy.Piecewise, Boolean)) or value.has(sympy.Piecewise):
        return type(value).__name__, tuple(map(_told, value.args))
    if isinstance(value, sympy.Tuple):
        return tuple(map(_told, value.args))
    return sympy.expand(value)


def exponential(value: Value) -> Value:
    """``exp`` of a scalar or of the entries of a tensor."""
    return exp(value) if isinstance(value, Tensor) else sympy.exp(as_number(value))
