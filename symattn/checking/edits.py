"""The mistakes that people make in attention mathematics, as one table of edits of a formula.

An edit takes one node of a formula and gives what a person may have written there instead, with words that say so:
"without the factor 1/sqrt(d)", "with K in place of V". What would not have shapes that fit is passed over. Nothing
here knows what a formula is used for: the table serves printed formulas and backward kernels alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

import sympy
from sympy.core.relational import Relational

from ..core.exact import INDICES
from ..core.node import Tensor, topological
from ..core.operation import Operation
from ..core.sizes import show_shape
from ..errors import SymattnError
from ..ops.arithmetic import add_op, divide_op, multiply_op, split_scalar
from ..ops.broadcasting import sum_op
from ..ops.contraction import matmul_op
from ..ops.gather import tile_op
from ..ops.layout import matrix_transpose, merge_axis_op, repeat_op, split_axis_op, swaps_last_two, transpose_op
from ..ops.leaves import bare, constant, from_index_op, is_named, scalar_value, zeros
from ..ops.logic import where_op
from ..ops.pointwise import power_op
from ..ops.rows import mean_op, softmax_op
from ..printing.matrix import outline


class Formula(NamedTuple):
    """What an edit may draw on: the sizes, and the tensors and named intermediates, of what is edited."""

    sizes: tuple[sympy.Symbol, ...]
    named: tuple[Tensor, ...]


class Edited(NamedTuple):
    """What may have been written in place of a node, and in which words that is told."""

    words: str
    tensor: Tensor


Written = Iterator[Edited]
Edit = Callable[[Tensor, Formula], Written]


def _if_it_fits(words: str, written: Callable[[], Tensor]) -> Written:
    try:
        yield Edited(words, written())
    except SymattnError:  # its shapes do not fit, or there is no such operation on these operands
        return


def told(x: Tensor) -> str:
    """A tensor by its name, or in a few words."""
    return x.name or outline(x)


# --- products of matrices ---


def _swapped(node: Tensor, formula: Formula) -> Written:
    """``Q @ dZ.T`` for ``dZ.T @ Q``: well-typed only where sizes agree by accident."""
    a, b = node.inputs
    yield from _if_it_fits(f"with the factors of {told(node)} swapped", lambda: b @ a)


def _one_transposed(node: Tensor, formula: Formula) -> Written:
    """An operand transposed, or one without its transpose."""
    for k, x in enumerate(node.inputs):
        if x.rank > 1 and not x.shape[-2:].count(sympy.S.One) and scalar_value(node.inputs[0]) is None:
            turned = matrix_transpose(x)
            words = f"without the transpose of {told(turned)}" if _is_transpose(x) else f"with {told(x)} transposed"
            yield from _if_it_fits(words, partial(_with_input, node, k, turned))


# --- factors ---


def _other_scale(node: Tensor, formula: Formula) -> Written:
    """A scale that is missing, stands twice, is turned over, or has the width of something else."""
    scale, rest = split_scalar(node)
    if rest is None or scale == 1:
        return
    if scale.could_extract_minus_sign():
        yield Edited("with the opposite sign", -1 * node)
        scale, rest = -scale, -1 * rest
    if scale == 1:
        return
    yield Edited(f"without the factor {_number(scale)}", rest)
    yield Edited(f"with the factor {_number(scale)} twice", scale**2 * rest)
    others = (1 / scale, *_without_one(scale), *_with_other_widths(scale, formula))
    for other in dict.fromkeys(others):
        yield Edited(f"with the factor {_number(other)} in place of {_number(scale)}", other * rest)


def _without_one(scale: sympy.Expr) -> Iterator[sympy.Expr]:
    factors = sympy.Mul.make_args(scale)
    yield from (scale / factor for factor in factors if len(factors) > 1)


def _with_other_widths(scale: sympy.Expr, formula: Formula) -> Iterator[sympy.Expr]:
    for size in sorted(scale.free_symbols.intersection(formula.sizes), key=str):
        yield from (scale.xreplace({size: other}) for other in formula.sizes if other != size)


def _scaled_outside(node: Tensor, formula: Formula) -> Written:
    """``a * tanh(x)`` for ``tanh(a * x)``: a scale on the other side of a function."""
    if len(node.inputs) == 1 and node.inputs[0].shape == node.shape and node.op not in _LINEAR:
        scale, rest = split_scalar(node.inputs[0])
        for factor in sympy.Mul.make_args(scale) if rest is not None and scale != 1 else ():
            words = f"with the factor {_number(factor)} outside of {node.op.name}"
            yield from _if_it_fits(words, partial(_moved_outside, node, scale / factor * rest, factor))


_LINEAR = {transpose_op, split_axis_op, merge_axis_op, repeat_op, tile_op, sum_op, mean_op}


def _moved_outside(node: Tensor, x: Tensor, factor: sympy.Expr) -> Tensor:
    return factor * node.op(x, **node.params)


def _without_factor(node: Tensor, formula: Formula) -> Written:
    """A factor of an entrywise product that was left out, such as a mask or a derivative, or that stands twice."""
    if scalar_value(node.inputs[0]) is not None:
        return
    for kept, missing in (node.inputs, node.inputs[::-1]):
        if kept.shape == node.shape:
            yield Edited(f"without the factor {told(missing)}", kept)
            yield Edited(f"with the factor {told(missing)} twice", node * missing)


def _not_divided(node: Tensor, formula: Formula) -> Written:
    above, below = node.inputs
    if above.shape == node.shape:
        yield Edited(f"without the division by {told(below)}", above)
        yield Edited(f"with the factor {told(below)} in place of the division by it", above * below)


def _without_power(node: Tensor, formula: Formula) -> Written:
    base, exponent = node.inputs
    if (value := scalar_value(exponent)) is not None and base.shape == node.shape:
        yield Edited(f"without the power {_number(value)} of {told(base)}", base)


# --- terms ---


def _without_term(node: Tensor, formula: Formula) -> Written:
    """A term that was left out, or that has the other sign."""
    for kept, term in (node.inputs, node.inputs[::-1]):
        unsigned = -1 * term if split_scalar(term)[0].could_extract_minus_sign() else term
        if kept.shape == node.shape:
            yield Edited(f"without the term {told(unsigned)}", kept)
        yield Edited(f"with the opposite sign of the term {told(unsigned)}", kept - term)


# --- rows and columns ---


def _along_another_axis(node: Tensor, formula: Formula) -> Written:
    """A reduction or a softmax along the other of the last two axes."""
    axes, x = node.params["axes"], node.inputs[0]
    for axis in (-1, -2) if len(axes) == 1 and x.rank > 1 and axes[0] >= -2 else ():
        if axis not in axes:
            words = f"with the {node.op.name} of {told(x)} over {_OVER[axis]}, not {_OVER[axes[0]]}"
            yield from _if_it_fits(words, partial(node.op, *node.inputs, **{**node.params, "axes": (axis,)}))


_OVER = {-1: "each row", -2: "each column"}


def _spread_as_row(node: Tensor, formula: Formula) -> Written:
    """A column of sums of rows that is spread as a row, as NumPy does without ``keepdims`` where sizes agree."""
    if node.params["keepdims"] and node.params["axes"] == (-1,) and node.rank > 1:
        yield Edited(f"with {told(node)} spread as a row, not as a column (no keepdims)", matrix_transpose(node))


def _sum_or_mean(node: Tensor, formula: Formula) -> Written:
    count = sympy.Mul(*(node.inputs[0].shape[axis] for axis in node.params["axes"]))
    if node.op is sum_op:
        yield Edited(f"with the mean in place of {told(node)}", node / count)
    else:
        yield Edited(f"with the sum in place of {told(node)}", node * count)


def _not_summed(node: Tensor, formula: Formula) -> Written:
    """Terms that are not added up, or one member of a group where all are."""
    x, axes = node.inputs[0], node.params["axes"]
    yield Edited(f"without the sum over {told(x)}", x)
    if len(axes) == 1 and not node.params["keepdims"]:
        for place, which in ((0, "first"), (-1, "last")):
            at = tuple(place if axis == axes[0] else slice(None) for axis in range(-x.rank, 0))
            yield Edited(f"with the {which} of {told(x)} alone, where all are added up", x[at])


# --- softmax and masks ---


def _diagonal_alone(node: Tensor, formula: Formula) -> Written:
    """``P * (1 - P) * dP``: the Jacobian of softmax without what is off its diagonal."""
    for p, centred in (node.inputs, node.inputs[::-1]):
        if bare(p).op is softmax_op and centred.op is add_op:
            yield Edited("with the diagonal of the softmax Jacobian alone", p * (1 - p) * centred.inputs[0])


def _other_mask(node: Tensor, formula: Formula) -> Written:
    if len(node.inputs) == 2:
        z, mask = node.inputs
        yield Edited("without the mask", node.op(z, **node.params))
        yield from _if_it_fits("with the mask as a factor of the scores", lambda: node.op(z * mask, **node.params))
        yield from _if_it_fits("with the mask turned round", lambda: node.op(z, ~mask, **node.params))
    yield Edited(f"without the softmax of {told(node.inputs[0])}", node.inputs[0])


def _not_chosen(node: Tensor, formula: Formula) -> Written:
    for kept in node.inputs[1:]:
        if kept.shape == node.shape:
            yield Edited(f"without the condition {told(node.inputs[0])}", kept)


def _other_edge(node: Tensor, formula: Formula) -> Written:
    """A window or a causal edge that is one off, a condition that is turned round, exchanged or left out."""
    if node.kind != "binary":
        return
    condition = node.params["formula"]
    edges = sorted(condition.atoms(Relational), key=sympy.default_sort_key)
    for edge in edges:
        for moved in (edge.func(edge.lhs, edge.rhs + 1), edge.func(edge.lhs, edge.rhs - 1)):
            words = f"with the mask {_condition(moved)} in place of {_condition(edge)}"
            yield Edited(words, _of_formula(node, condition.xreplace({edge: moved})))
        if len(edges) > 1:
            without = condition.xreplace({edge: sympy.true})
            yield Edited(f"without the mask {_condition(edge)}", _of_formula(node, without))
    yield Edited("with the mask turned round", _of_formula(node, sympy.Not(condition)))
    if node.rank > 1:
        i, j = INDICES[node.rank - 2 : node.rank]
        exchanged = condition.xreplace({i: j, j: i})
        if exchanged != condition:
            yield Edited("with rows and columns of the mask exchanged", _of_formula(node, exchanged))


def _other_angle(node: Tensor, formula: Formula) -> Written:
    """Angles with the other sign, of positions that are one off, or laid out for the other pairing of channels."""
    value = node.params["formula"]
    if node.rank < 2 or not value.has(sympy.sin, sympy.cos):
        return
    position, channel = INDICES[node.rank - 2 : node.rank]
    if value.has(sympy.sin):
        yield Edited("with the opposite sign of the sine", -1 * node)
    later = value.xreplace({position: position + 1})
    yield Edited("with positions that are one too large", _of_formula(node, later))
    in_pairs = value.xreplace({channel: sympy.floor(channel / 2)})
    yield Edited("with angles for neighbouring pairs of channels, not for halves", _of_formula(node, in_pairs))


# --- heads ---


def _other_copies(node: Tensor, formula: Formula) -> Written:
    """``tile`` for ``repeat``: which query head reads which key head."""
    (x,) = node.inputs
    other, words = (tile_op, "tiled, not repeated") if node.op is repeat_op else (repeat_op, "repeated, not tiled")
    yield from _if_it_fits(words, lambda: other(x, **node.params))


def _other_groups(node: Tensor, formula: Formula) -> Written:
    """Heads that are grouped the other way: [g, h] where [h, g] is right."""
    (x,), axis, into = node.inputs, node.params["axis"], node.params["into"]

    def turned() -> Tensor:
        groups = split_axis_op(x, axis=axis, into=into[::-1])
        order = list(range(-groups.rank, 0))
        order[axis - 1], order[axis] = order[axis], order[axis - 1]
        return transpose_op(groups, order=tuple(order))

    yield from _if_it_fits(f"with {told(x)} grouped as {show_shape(into[::-1])}, not {show_shape(into)}", turned)


def _reshaped(node: Tensor, formula: Formula) -> Written:
    """A reshape, which reads entries in the order in which they lie, where axes have to be moved."""
    moved = node.shape[-len(node.params["order"]) :]

    def reshaped() -> Tensor:
        x = node.inputs[0]
        for _ in moved[1:]:
            x = merge_axis_op(x, axis=-1)
        for k in range(1, len(moved)):
            x = split_axis_op(x, axis=-1, into=(moved[k - 1], sympy.Mul(*moved[k:])))
        return x

    yield from _if_it_fits(f"with {told(node.inputs[0])} reshaped, where axes are moved", reshaped)


# --- what is taken ---


def _another(node: Tensor, formula: Formula) -> Written:
    """Another tensor of the same shape in place of one that is named: W_K for W_V, Z for P."""
    for k, x in enumerate(node.inputs):
        for other in formula.named if is_named(x) else ():
            if other is not x and other.shape == x.shape and other.kind == x.kind and other.height < node.height:
                words = f"with {told(other)} in place of {told(x)}"
                yield from _if_it_fits(words, partial(_with_input, node, k, other))


# --- the right side of an equation, whole ---


def _negated(node: Tensor, formula: Formula) -> Written:
    yield Edited("with the opposite sign", -1 * node)


def _whole_transposed(node: Tensor, formula: Formula) -> Written:
    if node.rank > 1:
        yield Edited("transposed", matrix_transpose(node))


def _left_out(node: Tensor, formula: Formula) -> Written:
    yield Edited("left out, as zeros", zeros(*node.shape))


def _through_softmax_again(node: Tensor, formula: Formula) -> Written:
    """``P * (dZ - rowsum(P * dZ))``: a gradient by scores that is taken for one by their softmax."""
    for p in topological([node]):
        if bare(p).op is softmax_op and p.shape == node.shape and not is_named(p):
            centred = node - sum_op(p * node, axes=p.params["axes"], keepdims=True)
            yield Edited(f"with the Jacobian of {told(p)} once more", p * centred)


_OF_OPERATIONS: dict[Operation, tuple[Edit, ...]] = {
    matmul_op: (_one_transposed, _swapped),
    multiply_op: (_other_scale, _without_factor, _diagonal_alone, _one_transposed),
    divide_op: (_not_divided,),
    power_op: (_without_power,),
    add_op: (_without_term, _one_transposed),
    sum_op: (_sum_or_mean, _along_another_axis, _spread_as_row, _not_summed),
    mean_op: (_sum_or_mean, _along_another_axis, _spread_as_row),
    softmax_op: (_other_mask, _along_another_axis),
    where_op: (_not_chosen,),
    from_index_op: (_other_edge, _other_angle),
    repeat_op: (_other_copies,),
    tile_op: (_other_copies,),
    split_axis_op: (_other_groups,),
    transpose_op: (_reshaped,),
}

_OF_ALL: tuple[Edit, ...] = (_scaled_outside, _another)
_OF_A_WHOLE: tuple[Edit, ...] = (_negated, _whole_transposed, _left_out, _through_softmax_again)


def edits_at(node: Tensor, formula: Formula) -> Written:
    """What may have been written in place of a node."""
    return chain.from_iterable(edit(node, formula) for edit in (*_OF_OPERATIONS.get(node.op, ()), *_OF_ALL))


def edits_of_whole(right: Tensor, formula: Formula) -> Written:
    """What may have been written in place of the right side of an equation, beside edits within it."""
    return chain.from_iterable(edit(right, formula) for edit in _OF_A_WHOLE)


def _number(value: sympy.Expr) -> str:
    return outline(constant(formula=value))


def _condition(condition: sympy.Basic) -> str:
    return str(condition.xreplace(dict(zip(INDICES, sympy.symbols("i j k l"), strict=False))))


def _is_transpose(x: Tensor) -> bool:
    return x.op is transpose_op and swaps_last_two(x.params["order"])


def _with_input(node: Tensor, k: int, x: Tensor) -> Tensor:
    return node.op(*node.inputs[:k], x, *node.inputs[k + 1 :], **node.params)


def _of_formula(node: Tensor, formula: sympy.Basic) -> Tensor:
    return node.op(**{**node.params, "formula": formula})
