"""Rows: softmax, logsumexp and sums, what is constant along an axis, new axes, joins."""

from __future__ import annotations

import sympy

from ...core.node import Tensor
from ...core.sizes import ONE, same_shape, same_size
from ...facts.alike import facts, is_own, works_entrywise
from ...ops.arithmetic import add, divide, multiply, sum_of
from ...ops.broadcasting import broadcast_to, broadcast_to_op, sum_op, summed
from ...ops.contraction import matmul_of, matmul_op
from ...ops.index import expand_dims, index_op, replaced, squeeze
from ...ops.layout import concat_op
from ...ops.leaves import let_op, ones
from ...ops.pointwise import exp
from ...ops.rows import REDUCTIONS, _count, logsumexp_op, mean_op, softmax_op
from .algebra import Term, factors, product, term, terms, total
from .permutations import peel, unpermuted
from .rule import Rule, bare, called, constant_along, new_in_front, one_of, size_at

Axes = tuple[int, ...]


def _constant_over(x: Tensor, axes: Axes) -> bool:
    """Whether a tensor without what broadcasting does is the same at all places along the axes."""
    return all(size_at(x, axis) == 1 or constant_along(x, axis) for axis in axes)


def _squeezed(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """What is constant along the axes, with these of size 1, or without them."""
    for axis in sorted(axes):
        if constant_along(x, axis):
            x = one_of(x, axis)
    for axis in () if keepdims else sorted(axes):
        if x.rank >= -axis:
            x = squeeze(x, axis)
    return x


# --- softmax and logsumexp ---


def _split_shift(x: Tensor, axes: Axes) -> tuple[list[Term], list[Term]]:
    """The terms that are constant along the axes, and the others."""
    shift: list[Term] = []
    rest: list[Term] = []
    for c, t in terms(x):
        constant = t is None or (not t.holds_minus_infinity and _constant_over(t, axes))
        (shift if constant else rest).append((c, t))
    return shift, rest


def _shift_invariant(x: Tensor) -> Tensor | None:
    z, *mask = x.inputs
    shift, rest = _split_shift(z, x.params["axes"])
    if not shift or (not rest and all(c == 0 for c, _ in shift)):
        return None
    return x.op(total(rest, z.shape), *mask, **x.params)


def _shift_out(x: Tensor) -> Tensor | None:
    """``logsumexp(Z + c) -> logsumexp(Z) + c``."""
    z, axes, keepdims = x.inputs[0], x.params["axes"], x.params["keepdims"]
    shift, rest = _split_shift(z, axes)
    if not shift or (not rest and all(c == 0 for c, _ in shift)):
        return None
    out = sum_of([term(c, None if t is None else _squeezed(t, axes, keepdims)) for c, t in shift])
    return broadcast_to(add(x.op(total(rest, z.shape), **x.params), out), x.shape)


def _rows_sum_to_one(x: Tensor) -> Tensor | None:
    p = x.inputs[0]
    whole = p.op is softmax_op and len(p.inputs) == 1 and not p.inputs[0].holds_minus_infinity
    return ones(*x.shape) if whole and p.params["axes"] == x.params["axes"] else None


def _softmax_defined(x: Tensor) -> Tensor | None:
    z = x.inputs[0]
    if len(x.inputs) > 1 or z.holds_minus_infinity:
        return None
    return divide(exp(z), summed(exp(z), x.params["axes"], True))


# --- sums ---


def _sum_of_constant(x: Tensor) -> Tensor | None:
    """The sum over an axis along which nothing changes is the size of the axis times one entry."""
    y, axes = x.inputs[0], x.params["axes"]
    still = tuple(axis for axis in axes if constant_along(y, axis))
    if not still:
        return None
    count = _count(y, still) if x.op is sum_op else ONE
    for axis in still:
        y = one_of(y, axis)
    return multiply(count, x.op(y, **x.params))


def _sum_of_one(x: Tensor) -> Tensor | None:
    """A sum over axes of size 1."""
    y, axes = x.inputs[0], x.params["axes"]
    if all(y.shape[axis] == 1 for axis in axes):
        return _squeezed(y, axes, x.params["keepdims"])
    return None


def _sum_of_vector(x: Tensor) -> Tensor | None:
    """The sum of a vector that keeps its axis is a number with a new axis."""
    y = x.inputs[0]
    return expand_dims(x.op(y, axes=(-1,), keepdims=False), -1) if y.rank == 1 and x.params["keepdims"] else None


def _sum_of_product(x: Tensor) -> Tensor | None:
    """``rowsum(A B) -> A rowsum(B)``, and likewise for columns."""
    y, axes, keepdims = x.inputs[0], x.params["axes"], x.params["keepdims"]
    if y.op is not matmul_op or y.params["core"] != (2, 2) or peel(y)[1]:
        return None
    a, b = y.inputs
    if axes == (-1,):
        return broadcast_to(matmul_of(a, summed(b, axes, keepdims), (2, 2 if keepdims else 1)), x.shape)
    if axes == (-2,):
        return broadcast_to(matmul_of(summed(a, axes, keepdims), b, (2 if keepdims else 1, 2)), x.shape)
    return None


def _factor_out_of_sum(x: Tensor) -> Tensor | None:
    y, axes, keepdims = x.inputs[0], x.params["axes"], x.params["keepdims"]
    number, listed = factors(y)
    out = [(f, n) for f, n in listed if _constant_over(f, axes)]
    if not out:
        return None
    inside = product(number, [(f, n) for f, n in listed if not _constant_over(f, axes)])
    shape = [size_at(inside, axis) for axis in range(-max([inside.rank, *(-axis for axis in axes)]), 0)]
    for axis in axes:
        shape[axis] = y.shape[axis]
    inner = x.op(broadcast_to(inside, tuple(shape)), **x.params)
    return product(sympy.S.One, [(inner, 1), *((_squeezed(f, axes, keepdims), n) for f, n in out)], x.shape)


def _mean_defined(x: Tensor) -> Tensor | None:
    return divide(summed(x.inputs[0], **x.params), _count(x.inputs[0], x.params["axes"]))


# --- constant along an axis ---


def _constant_out(x: Tensor) -> Tensor | None:
    """What works position by position on inputs that are all constant along an axis is constant along it."""
    if x.op in (broadcast_to_op, let_op) or not is_own(x):
        return None
    if not any(i.op is broadcast_to_op for i in x.inputs):
        return None
    for group in facts(x).groups:
        if group.plain and group.inputs and all(constant_along(x.inputs[k], axis) for k, axis in group.inputs):
            inputs = list(x.inputs)
            for k, axis in group.inputs:
                inputs[k] = one_of(inputs[k], axis)
            part = x.op(*inputs, **x.params)
            if same_shape(part.shape, replaced(x.shape, group.outputs[0], ONE)):
                return broadcast_to(part, x.shape)
    return None


# --- new axes ---


def _new_axis(x: Tensor) -> Tensor | None:
    """One new axis goes into what works entry by entry; one taken off a sum that keeps its axes leaves it."""
    y = x.inputs[0]
    for axis in range(-x.rank, 0):
        if x.rank == y.rank + 1 and expand_dims(y, axis) is x:
            return _expanded(y, axis)
    if y.op in REDUCTIONS and y.params["keepdims"] and len(axes := y.params["axes"]) == 1 and x is squeeze(y, axes[0]):
        return y.op(y.inputs[0], axes=axes, keepdims=False)
    return None


def _front_axis(x: Tensor) -> Tensor | None:
    """A new axis in front is what broadcasting adds."""
    return broadcast_to(bare(x), x.shape) if new_in_front(x) else None


def _expanded(y: Tensor, axis: int) -> Tensor | None:
    reduced = y.op in REDUCTIONS and y.rank  # the sum of a vector stays a number
    if reduced and not y.params["keepdims"] and y.params["axes"] == (axis,):
        return y.op(y.inputs[0], axes=(axis,), keepdims=True)
    if works_entrywise(y) and y.inputs:
        # an input that ends before the new axis is aligned from the end without it
        return y.op(*(expand_dims(i, axis) if i.rank >= -axis - 1 and i.rank else i for i in y.inputs), **y.params)
    return None


def _why_new_axis(x: Tensor, after: Tensor) -> str:
    y = x.inputs[0]
    if y.op in REDUCTIONS:
        return f"{called(y, first=True)} with its axis kept is the same with a new axis."
    return f"{called(y, first=True)} works entry by entry, so that a new axis may be added before."


# --- joins ---


def _joined(x: Tensor) -> Tensor | None:
    """A function of joins and of what is constant along them, entry by entry, is the join of it on their parts."""
    join = next((y for y in x.inputs if y.op is concat_op), None)
    if join is None or not works_entrywise(x):
        return None
    cut = [_cut_alike(y, join) for y in x.inputs]
    if any(parts is None for parts in cut):
        return None
    return concat_op(*(x.op(*parts, **x.params) for parts in zip(*filter(None, cut), strict=True)), **join.params)


def _cut_alike(y: Tensor, join: Tensor) -> tuple[Tensor, ...] | None:
    """The part of an operand that meets each part of a join, if it is cut at the same places or constant along it."""
    axis = join.params["axis"]
    if y.op is concat_op and y.params["axis"] == axis:
        sizes = [[part.shape[axis] for part in x.inputs] for x in (y, join)]
        return y.inputs if len(sizes[0]) == len(sizes[1]) and all(map(same_size, *sizes)) else None
    return (y,) * len(join.inputs) if size_at(y, axis) == 1 else None


def _sum_of_join(x: Tensor) -> Tensor | None:
    y = x.inputs[0]
    if y.op is not concat_op or x.params["axes"] != (y.params["axis"],):
        return None
    return sum_of([x.op(part, **x.params) for part in y.inputs])


# --- the table ---

ROWS = (
    Rule(
        "shift of a row", "Adding a number to a whole row of logits changes nothing.",
        1, _shift_invariant, (softmax_op,),
    ),
    Rule("shift of logsumexp", "A number added to a whole row comes out of logsumexp.", 1, _shift_out, (logsumexp_op,)),
    Rule("rows of softmax", "The rows of a softmax sum to 1.", 1, _rows_sum_to_one, (sum_op,)),
    Rule(
        "sum of equal entries", "A sum of equal entries is their number times one of them.",
        1, _sum_of_constant, (sum_op, mean_op),
    ),
    Rule("sum of one term", "A sum of one term is that term.", 1, _sum_of_one, (sum_op, mean_op)),
    Rule("sum of a vector", "The sum of a vector is one number.", 1, _sum_of_vector, REDUCTIONS),
    Rule(
        "row sums of a product", "A product is summed over its columns by summing the right factor.",
        1, _sum_of_product, (sum_op,),
    ),
    Rule(
        "equal entries stay equal", "What works position by position gives equal entries for equal entries.",
        1, unpermuted(_constant_out),
        says=lambda x, after: f"{called(x, first=True)} gives equal entries for equal entries.",
    ),
    Rule(
        "new axis in front", "A new axis in front is what broadcasting adds.",
        1, _front_axis, (index_op,), routine=True,
    ),
    Rule(
        "new axis inward", "What works entry by entry may be made a column before or after.",
        1, _new_axis, (index_op,), routine=True, says=_why_new_axis,
    ),
    Rule(
        "function of joins", "What works entry by entry works on each part of joins.", 2, _joined,
        says=lambda x, after: f"{called(x, first=True)} works entry by entry, and so on each part of a join.",
    ),
    Rule("sum of a join", "A sum over a join is the sum over its parts.", 2, _sum_of_join, (sum_op,)),
    Rule(
        "factor out of a sum", "A factor that is constant along a sum comes out of it.",
        2, _factor_out_of_sum, (sum_op,),
    ),
    Rule("mean", "A mean is the sum over the number of terms.", 2, _mean_defined, (mean_op,)),
    Rule(
        "definition of softmax", "By definition; a sum of exponentials is never 0.",
        3, _softmax_defined, (softmax_op,),
    ),
)  # fmt: skip
