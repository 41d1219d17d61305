"""Layout: transposes move inward, blocks and heads of a product become sums, contractions become products."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.exact import INDICES
from ...core.node import Tensor
from ...core.sizes import same_size
from ...facts.alike import works_entrywise
from ...ops.arithmetic import sum_of
from ...ops.broadcasting import broadcast_to, broadcast_to_op, summed
from ...ops.contraction import diag_op, einsum_op, label_roles, matmul_of, matmul_op, outer_op
from ...ops.index import NEW, index, index_op
from ...ops.index import _whole as whole
from ...ops.inverse import inv_op
from ...ops.layout import concat_op, matrix_transpose, merge_axis_op, split_axis_op, transpose, transpose_op
from ...ops.leaves import from_index_op
from ...ops.rows import REDUCTIONS, softmax_op
from .permutations import declared, unpermuted
from .rule import Rule, called

_MATRICES = (2, 2)

# --- transposes ---


def _transposed(x: Tensor) -> Tensor | None:
    y, order = x.inputs[0], x.params["order"]
    order = (*range(-y.rank, -len(order)), *order)
    swap = y.rank >= 2 and order == (*range(-y.rank, -2), -1, -2)
    if swap and y.op is matmul_op and y.params["core"] == _MATRICES:
        first, second = map(matrix_transpose, y.inputs)
        return matmul_of(second, first, _MATRICES)
    if swap and y.op is outer_op:
        return outer_op(*y.inputs[::-1])
    if swap and (y.op is diag_op or declared(y, "symmetric")):
        return y
    if swap and y.op is inv_op:
        return inv_op(matrix_transpose(y.inputs[0]))
    if y.op is from_index_op:
        return _reindexed(y, order)
    if y.op is index_op:
        return _new_axes_moved(y, order)
    return _entry_by_entry(y, order)


def _why_transposed(x: Tensor, after: Tensor) -> str:
    y = x.inputs[0]
    if y.op in (matmul_op, outer_op):
        return "The transpose of a product is the product of the transposes, turned around."
    if after is y:
        return f"A {'diagonal' if y.op is diag_op else 'symmetric'} matrix is its own transpose."
    if y.op is inv_op:
        return "The transpose of the inverse is the inverse of the transpose."
    if works_entrywise(y):
        return f"{called(y, first=True)} works entry by entry, so that it may be taken after a transpose."
    return f"{called(y, first=True)} along one axis is {called(y)} along another of the transpose."


def _reindexed(y: Tensor, order: tuple[int, ...]) -> Tensor:
    renamed = {INDICES[y.rank + axis]: INDICES[place] for place, axis in enumerate(order)}
    shape = tuple(y.shape[axis] for axis in order)
    return from_index_op(formula=y.params["formula"].xreplace(renamed), shape=shape)


def _entry_by_entry(y: Tensor, order: tuple[int, ...]) -> Tensor | None:
    """Through operations that work entry by entry, or along given axes that they keep."""

    def moved(i: Tensor) -> Tensor:
        kept = [(place, axis) for place, axis in enumerate(order, -y.rank) if axis >= -i.rank]
        return _placed(transpose(i, tuple(axis for _, axis in kept)), [place for place, _ in kept])

    places = {axis: place for place, axis in enumerate(order, -y.rank)}
    params = dict(y.params)
    if y.op is softmax_op or (y.op in REDUCTIONS and params["keepdims"]):
        params["axes"] = tuple(sorted(places[axis] for axis in params["axes"]))
    elif y.op is concat_op:
        params["axis"] = places[params["axis"]]
    elif y.op is broadcast_to_op:
        params["shape"] = tuple(y.shape[axis] for axis in order)
    elif not y.inputs or not works_entrywise(y):
        return None
    return y.op(*map(moved, y.inputs), **params)


def _placed(x: Tensor, places: Sequence[int]) -> Tensor:
    """The tensor with new axes after and between its own, which stand at these places counted from the end."""
    own = iter(x.shape)
    first = min(places, default=0)
    return index(x, tuple(whole(next(own)) if place in places else NEW for place in range(first, 0)))


def _new_axes_moved(y: Tensor, order: tuple[int, ...]) -> Tensor | None:
    """The transpose of a tensor with new axes is the transpose of the tensor, with new axes elsewhere."""
    base, items = y.inputs[0], y.params["items"]
    items = (*map(whole, y.shape[: y.rank - len(items)]), *items)
    sizes = iter(base.shape)
    if len(items) != y.rank or any(item != NEW and item != whole(next(sizes)) for item in items):
        return None
    own = [axis for axis, item in enumerate(items, -y.rank) if item != NEW]
    kept = [(place, own.index(axis) - len(own)) for place, axis in enumerate(order, -y.rank) if axis in own]
    placed = _placed(transpose(base, tuple(axis for _, axis in kept)), [place for place, _ in kept])
    return broadcast_to(placed, tuple(y.shape[axis] for axis in order))


# --- blocks, heads, labels ---


def _blocks(x: Tensor) -> Tensor | None:
    """``[A B] [C; D] -> A C + B D``."""
    a, b = x.inputs
    joined = a.op is b.op is concat_op and (a.params["axis"], b.params["axis"]) == (-1, -2)
    if not joined or x.params["core"] != _MATRICES or len(a.inputs) != len(b.inputs):
        return None
    pairs = list(zip(a.inputs, b.inputs, strict=True))
    if not all(same_size(p.shape[-1], q.shape[-2]) for p, q in pairs):
        return None
    return sum_of([matmul_of(p, q, _MATRICES) for p, q in pairs])


def _heads(x: Tensor) -> Tensor | None:
    """A product over the features of all heads is the sum over heads."""
    a, b = x.inputs
    merged = a.op is merge_axis_op and a.params["axis"] == -1 and a.inputs[0].rank == 3
    if not merged or x.params["core"] != _MATRICES or b.rank != 2:
        return None
    heads = transpose(a.inputs[0], (-2, -3, -1))
    into = (heads.shape[-3], heads.shape[-1])
    whole = b.op is merge_axis_op and b.params["axis"] == -2 and b.inputs[0].shape[-3:-1] == into
    parts = b.inputs[0] if whole else split_axis_op(b, axis=-2, into=into)
    return summed(matmul_of(heads, parts, _MATRICES), (-3,), False)


def _regrouped(x: Tensor) -> Tensor | None:
    """An axis split where that is possible, and merged again."""
    y = x.inputs[0]
    return y.inputs[0] if y.op is split_axis_op and y.params["axis"] == x.params["axis"] else None


def _einsum_as_product(x: Tensor) -> Tensor | None:
    """A contraction of two factors over one label is a matrix product, head by head."""
    ins, out = x.params["spec"]
    plain = len(ins) == 2 and [*map(len, ins)] == [i.rank for i in x.inputs]
    roles = label_roles(ins[0], ins[1], out) if plain else None
    if roles is None:
        return None
    batch, inner, rows, columns = roles
    if len(inner) != 1 or len(rows) > 1 or len(columns) > 1 or (batch and not (rows and columns)):
        return None
    left = _arranged(x.inputs[0], ins[0], [*batch, *rows, *inner])
    right = _arranged(x.inputs[1], ins[1], [*batch, *inner, *columns])
    made = matmul_of(left, right, (1 + len(rows), 1 + len(columns)))
    return _arranged(made, "".join([*batch, *rows, *columns]), list(out))


def _arranged(x: Tensor, labels: str, wanted: Sequence[str]) -> Tensor:
    return transpose(x, tuple(labels.index(c) - len(labels) for c in wanted)) if wanted else x


# --- the table ---

LAYOUT = (
    Rule(
        "transpose inward",
        "The transpose of a product is the product of the transposes, turned around; "
        "what acts entry by entry may be transposed before.",
        1, unpermuted(_transposed), (transpose_op,), routine=True, says=_why_transposed,
    ),
    Rule(
        "split and merged", "An axis that is split and merged again is as before.",
        1, _regrouped, (merge_axis_op,),
    ),
    Rule(
        "contraction as a product", "A sum over one shared label is a matrix product.",
        1, _einsum_as_product, (einsum_op,), routine=True,
    ),
    Rule("blocks", "A product of blocks is the sum of the products.", 2, unpermuted(_blocks), (matmul_op,)),
    Rule(
        "heads",
        "The features are numbered head by head: a sum over all of them is one over heads of sums within each.",
        2, unpermuted(_heads), (matmul_op,),
    ),
)  # fmt: skip
