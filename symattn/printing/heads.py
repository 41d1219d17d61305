r"""One head of an expression: what is printed where every operation treats the leading axis head by head.

``softmax(Q @ K.mT)`` with Q[h, T, d] and K[h, S, d] is ``softmax(Q @ K.T)`` of the matrices of each head, printed
``\operatorname{softmax}(Q^{(a)} K^{(a) \top})`` for a = 1, ..., h. That the two agree is read off their entries: with
index a on the leading axis, every operand that has the axis is read at a, and nothing else depends on a.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sympy

from ..core.boxes import Box, Fence, Number, Script, Sign, row
from ..core.node import Tensor, rebuild, topological
from ..core.sizes import Shape
from ..graph.entries import _bound_indices, _expand, entry_size
from ..ops.index import index_op
from ..ops.leaves import indexed, stand_in
from .index import LONGEST
from .scalars import outermost_first
from .symbols import symbol

_OF_MATRICES = (("matmul", (2, 2)), ("transpose", (-1, -2)))
_BY_ROWS = frozenset(("softmax", "mean", "sum", "max", "min", "logsumexp"))
HEADS = "abcfgstuvw"  # letters for the heads, of which the first is taken that is free


class Head(NamedTuple):
    """One head of an expression; ``operands`` are the operands of one head, by the ones of all heads."""

    axis: sympy.Symbol
    expression: Tensor
    operands: Mapping[Tensor, Tensor]


def one_head(x: Tensor, names: Mapping[Tensor, str]) -> Head | None:
    """The expression of one head, or None where there is no head axis or something acts across it."""
    operands = [node for node in topological([x], stop=names) if node in names]
    if x.rank < 2 or not x.shape[0].is_Symbol or max(y.rank for y in (x, *operands)) != 3:
        return None
    axis = x.shape[0]
    with_axis = [y for y in operands if y.rank and y.shape[0] == axis]
    if not with_axis or max(y.rank for y in (x, *with_axis)) != 3 or entry_size(x, names) > LONGEST:
        return None
    if x.op.spreads and min(y.rank for y in (x, *with_axis)) < 3:  # places in rows of a matrix, which are no heads
        return None
    single = {y: _of_shape(y.shape[1:], y, names) if y in with_axis else y for y in operands}
    try:
        part = _without_new_axes_of_numbers(rebuild([x], single)[0], {y: y for y in single.values()})
        agree = part.shape == x.shape[1:] and (_is_plain(x, axis, names) or _agree(x, part, single, names))
    except Exception:  # a record that names the leading axis may fail in any way where there is none
        return None
    return Head(axis, part, {y: single[y] for y in with_axis}) if agree else None


def _without_new_axes_of_numbers(x: Tensor, kept: Mapping[Tensor, Tensor]) -> Tensor:
    """A number of each head, ``b[:, None, None]``, is a plain number in the expression of one head."""
    below = topological([x], stop=kept)
    bare = {y: y.inputs[0] for y in below if y.op is index_op and not y.inputs[0].rank}
    return rebuild([x], {**kept, **bare})[0] if bare and x not in bare else x


def _of_shape(shape: Shape, like: Tensor, names: Mapping[Tensor, str]) -> Tensor:
    return stand_in(names[like], shape, like.kind, like.holds_minus_infinity)


def _is_plain(x: Tensor, axis: sympy.Symbol, names: Mapping[Tensor, str]) -> bool:
    """Whether matrices of each head meet matrices, vectors and numbers in operations that are known to be by head.

    Most are, and their entries need not be read.
    """
    of_heads = set[Tensor]()
    for node in topological([x], stop=names):
        if node in names or not node.inputs:
            has_axis = node in names and bool(node.rank) and node.shape[0] == axis
        else:
            has_axis = not of_heads.isdisjoint(node.inputs)
            if has_axis and not (_acts_on_matrices(node) and node.shape[0] == axis):
                return False
        if has_axis != (node.rank > 2):
            return False
        if has_axis:
            of_heads.add(node)
    return x in of_heads


def _acts_on_matrices(node: Tensor) -> bool:
    """Whether an operation of tensors of rank 3 does the same to each matrix in them, and keeps the rank."""
    of_matrices = (node.op.name, node.params.get("core", node.params.get("order"))) in _OF_MATRICES
    by_rows = node.op.name in _BY_ROWS and all(axis > -3 for axis in node.params["axes"])
    return node.rank == 3 and (node.op.broadcasts or of_matrices or by_rows)


def _agree(x: Tensor, part: Tensor, single: Mapping[Tensor, Tensor], names: Mapping[Tensor, str]) -> bool:
    """Whether an entry of x is that of the part, with index a in front wherever an operand has the axis."""
    leaves = {y: _of_shape(y.shape, y, names) for y in single}  # of one height, since that numbers bound indices
    parts = {y: _of_shape(one.shape, y, names) for y, one in single.items()}
    a, *rest = (sympy.Dummy(integer=True, nonnegative=True) for _ in x.shape)
    whole = _read(rebuild([x], leaves)[0], (a, *rest), {leaves[y]: names[y] for y in single})
    wanted = _read(rebuild([x], parts)[0], tuple(rest), {parts[y]: names[y] for y in single})
    shorter = {names[y]: one.rank for y, one in single.items() if one is not y}
    read = [e for e in wanted.atoms(sympy.Indexed) if str(e.base.label) in shorter]
    if any(len(e.indices) != shorter[str(e.base.label)] for e in read):  # an axis that one head does not have
        return False
    without = {
        e: e.base[e.indices[1:]] if len(e.indices) > 1 else e.base.label
        for e in whole.atoms(sympy.Indexed)
        if str(e.base.label) in shorter and e.indices[0] == a
    }
    return bool(_numbered(whole.xreplace(without)) == _numbered(wanted))


def _numbered(formula: sympy.Expr) -> sympy.Expr:
    """The formula with its bound indices numbered in their order, whatever the rank of what they run over."""
    bound = sorted(_bound_indices(formula), key=outermost_first)
    return formula.xreplace({k: sympy.Dummy("k", integer=True, dummy_index=n + 1) for n, k in enumerate(bound)})


def _read(x: Tensor, index: tuple[Any, ...], names: Mapping[Tensor, str]) -> sympy.Expr:
    if x in names:
        return indexed(names[x], index, finite=not x.holds_minus_infinity)
    return _expand(x, index, names)


# --- as it is written ---


def mark_of(letter: str) -> Box:
    """What one head has for a superscript."""
    return Fence(symbol(letter))


def sum_over(letter: str, size: Box) -> Box:
    r"""``\sum_{a = 1}^{h}``."""
    first = row(symbol(letter), Sign("=", "relation"), Number("1"))
    return Script(Sign("∑", "large"), first, size)
