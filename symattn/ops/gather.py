"""Reading an axis at other places: by an index tensor, by an offset, backwards, and over again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import sympy

from ..core.boxes import Box, Code, Script, Sign, commas, lowered, row
from ..core.exact import INDICES
from ..core.node import Tensor
from ..core.operation import Operation
from ..core.sizes import Shape, as_integer, as_size
from ..errors import OperandError, ShapeError, described
from ..scalars.formulas import Choice, bound
from .broadcasting import summed
from .index import linear, moved, replaced, sliced
from .layout import copied, split_axis_op
from .leaves import as_tensor, constant, from_index_op
from .notation import Binding, Written, by_indices, call, source, transposed
from .rows import along, checked_axis

# --- take, and its transpose ---


def _around(index: tuple[Any, ...], axis: int, own: int) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """What stands before, in and behind the place of an axis that ``own`` axes have replaced."""
    end = len(index) + axis + 1
    return index[: end - own], index[end - own : end], index[end:]


def _take_entry(read: Any, index: Any, node: Tensor) -> Any:
    before, own, behind = _around(index, node.params["axis"], node.inputs[1].rank)
    return read(0, (*before, read(1, own), *behind))


def _take_numpy(code: Any, node: Tensor, x: str, index: str) -> str:
    of, by = node.inputs
    return code.helper("take", x, index, str(node.params["axis"]), f"({of.rank}, {by.rank})", repr(code.label(by)))


def _take_notation(p: Any, node: Tensor) -> Written:
    x, index = node.inputs
    if p.code:
        return call(p, "take", node, axis=node.params["axis"])
    items: list[Box] = [Sign(":")] * x.rank
    items[node.params["axis"]] = p.operand(index, Binding.OR)
    written = lowered(p.operand(x, Binding.ATOM), commas(items))
    if x.rank == 2 and node.params["axis"] == -2 and not index.rank:  # a row, of rank 1, which is a column
        return transposed(written), Binding.POWER
    return written, Binding.ATOM


take_op = linear(
    "take",
    shape=lambda x, index, axis: replaced(x.shape, axis, *index.shape),
    entry=_take_entry,
    back=lambda g, x, index, axis: scatter_op(g, index, axis=axis, size=x.shape[axis]),
    numpy=_take_numpy,
    places=(1,),
    notation=_take_notation,
    reason="the cotangents of an entry that is taken several times add up",
    stays_whole=True,
    minus_infinity="kept",
)


def _scatter_shape(g: Tensor, index: Tensor, axis: int, size: Any) -> Shape:
    before, _, behind = _around(g.shape, axis, index.rank)
    return (*before, size, *behind)


def _scatter_entry(read: Any, index: Any, node: Tensor) -> Any:
    by, axis = node.inputs[1], node.params["axis"]
    limits = [bound(node, slot, size) for slot, size in enumerate(by.shape)]
    own = tuple(k for k, _, _ in limits)
    term = Choice(sympy.Eq(read(1, own), index[axis]), read(0, replaced(index, axis, *own)), sympy.S.Zero)
    return sympy.Sum(term, *limits) if limits else term


def _scatter_numpy(code: Any, node: Tensor, g: str, index: str) -> str:
    of, by = node.inputs
    axis, size, ranks = str(node.params["axis"]), code.size(node.params["size"]), f"({of.rank}, {by.rank})"
    return code.helper("scatter_add", code.array(of, g), index, axis, size, ranks, repr(code.label(by)))


scatter_op: Operation = linear(
    "scatter_add",
    shape=_scatter_shape,
    entry=_scatter_entry,
    back=lambda g, x, index, axis, size: take_op(g, index, axis=axis),
    numpy=_scatter_numpy,
    places=(1,),
    notation=lambda p, node: call(p, "scatter_add", node, axis=node.params["axis"], size=node.params["size"]),
    reason="the cotangent of a sum, at the place that each term went to",
)


def take(x: Any, index: Any, axis: int) -> Tensor:
    """The entries along an axis at the places that ``index`` gives, as ``np.take``: rows of a table by token.

    ``y[.., i, j, .., ..] = x[.., index[i, j, ..], ..]``. ``index`` is a tensor declared ``integer=True``, or a
    constant by index whose formula is an integer. Its gradient adds up cotangents by ``scatter_add``. Raises
    OperandError for an index that is not an integer and ShapeError for an axis that is not there; the compiled
    function raises EvaluationError for an index that is not from 0 to the size - 1.

    >>> import symattn as sa
    >>> table, tokens = sa.tensor("E", "n d"), sa.tensor("t", "T", integer=True)
    >>> sa.take(table, tokens, axis=0).shape
    (T, d)
    """
    operand, by = as_tensor(x), as_tensor(index)
    if not _is_whole(by):
        raise OperandError(
            f"take from {operand.brief()} at {by.brief()}: an index is an integer tensor; declare it by "
            "sa.tensor(..., integer=True), or give sa.from_index an integer formula"
        )
    return take_op(operand, by, axis=checked_axis(axis, operand, "take"))


def _is_whole(x: Tensor) -> bool:
    """Whether all entries are integers by declaration, or by the formula of a constant, however they are moved."""
    while x.kind != "integer" and x.inputs and (x.op is take_op or (x.op.kind == "inputs" and len(x.inputs) == 1)):
        x = x.inputs[0]
    formula = x.params.get("formula") if x.op in (constant, from_index_op) else None
    return x.kind == "integer" or bool(isinstance(formula, sympy.Expr) and formula.is_integer)


# --- shift ---


def whole_number(value: Any, what: str) -> sympy.Expr:
    """An integer or an integer expression of sizes, offsets and indices; anything else is an OperandError."""
    number = value if isinstance(value, sympy.Expr) else None
    if (whole := as_integer(value)) is not None:
        number = sympy.Integer(whole)
    symbols = number.free_symbols.difference(INDICES) if number is not None else ()
    if number is None or not number.is_integer or not all(s.is_integer and s.is_nonnegative for s in symbols):
        raise OperandError(f"{what} is an integer or an integer expression of sizes, not {described(value)}")
    return sympy.expand(number)


def _others(count: int) -> tuple[sympy.Dummy, ...]:
    """The indices of the other axes in order, numbered from the end, so that leading axes change nothing."""
    return INDICES[:count][::-1]


def _shift_entry(read: Any, index: Any, node: Tensor) -> Any:
    axis, x = node.params["axis"], node.inputs[0]
    others = dict(zip(_others(len(index) - 1), replaced(index, axis), strict=True))
    at = index[axis] + node.params["by"].xreplace(others)
    inside = sympy.And(sympy.Ge(at, 0), sympy.Lt(at, x.shape[axis]))
    return sympy.S.Zero if inside == sympy.false else Choice(inside, read(0, replaced(index, axis, at)), sympy.S.Zero)


def reads_outside(node: Tensor) -> bool:
    """Whether a shift is not seen to read inside at the corners of its indices, between which it is affine."""
    axis, x, by = node.params["axis"], node.inputs[0], node.params["by"]
    others, size = _others(x.rank - 1), x.shape[axis]
    ranges = zip(others, replaced(x.shape, axis), strict=True)
    corners = list(product(*(((index, 0), (index, n - 1)) for index, n in ranges)))
    places = [by.subs(corner) + here for corner in corners for here in (0, node.shape[axis] - 1)]
    return not all((at.is_nonnegative and (size - 1 - at).is_nonnegative) for at in map(sympy.expand, places))


def _shift_numpy(code: Any, node: Tensor, x: str) -> str:
    axis, by = node.params["axis"], node.params["by"]
    used = [k for k in range(node.rank - 1) if INDICES[k] in by.free_symbols]
    behind = {k: k + (k >= -1 - axis) for k in used}  # how many axes of x stand behind this one
    grids = {INDICES[k]: (node.shape[-1 - behind[k]], behind[k]) for k in used}
    return code.helper("shift", x, code.on_grids(by, grids), str(axis), code.size(node.params["size"]))


def _shift_notation(p: Any, node: Tensor) -> Written:
    x, by, axis, size = node.inputs[0], node.params["by"], node.params["axis"], node.params["size"]
    used = _others(x.rank - 1)
    if p.code:
        return _shift_code(p, node, used)
    *letters, here = p.index_names(node, by, [*used, *INDICES[x.rank - 1 :][:1]])
    at = p.at_letters(by.xreplace(dict(zip(used, letters, strict=True))), letters)
    place = x.rank + axis
    read = [*letters[:place], here + at, *letters[place:]]
    given = [*letters[:place], here, *letters[place:]]
    inside = Script(p.operand(x, Binding.ATOM), commas(map(p.scalar, read)))
    limit = p.scalar(p.at_letters(sympy.Lt(here, size), [here]))
    return by_indices(inside, [*map(p.scalar, given)], [limit]), Binding.ATOM


def _shift_code(p: Any, node: Tensor, used: Sequence[sympy.Symbol]) -> Written:
    x, by, axis, size = node.inputs[0], node.params["by"], node.params["axis"], node.params["size"]
    shown = p.scalar(by)
    if by.has(*used):
        letters = p.index_names(node, by, used)
        body = p.scalar(by.xreplace(dict(zip(used, letters, strict=True))))
        shown = row(Code(f"lambda {', '.join(map(str, letters))}: "), body)
    options: list[Box] = [Code(f"axis={axis}")] * (axis != -1)
    options += [row(Code("size="), p.scalar(size))] * (size != x.shape[axis])
    return source("shift", p.operand(x, Binding.OR), shown, *options), Binding.ATOM


shift_op: Operation = moved(
    "shift",
    shape=lambda x, by, axis, size: replaced(x.shape, axis, size),
    entry=_shift_entry,
    back=lambda g, x, by, axis, size: shift_op(g, by=-by, axis=axis, size=x.shape[axis]),
    numpy=_shift_numpy,
    notation=_shift_notation,
    reason="the cotangent is shifted back",
    minus_infinity="refused",
)


def shift(x: Any, by: Any, axis: int = -1, size: Any = None) -> Tensor:
    """Entries along an axis read further on: ``y[.., j, ..] = x[.., j + by, ..]``, and 0 outside.

    ``by`` is an integer, an expression of sizes, or a function of the indices of the other axes, in order; ``size``
    is the new size of the axis, by default the old one. Relative positions are read so: with the distances j - i
    from 1 - T to T - 1 in the columns of R, ``shift(R, lambda i: T - 1 - i, size=T)`` has them at [i, j]. Raises
    ShapeError for an axis that is not there and OperandError where ``by`` is not an integer.

    >>> import symattn as sa
    >>> T = sa.sizes("T")
    >>> R = sa.tensor("R", T, 2 * T - 1)
    >>> sa.shift(R, lambda i: T - 1 - i, size=T).shape
    (T, T)
    """
    operand = as_tensor(x)
    taken = checked_axis(axis, operand, "shift")
    what = f"shift of {operand.brief()}: by"
    offset = whole_number(_of_others(by, operand, what) if callable(by) else by, what)
    return shift_op(operand, by=offset, axis=taken, size=operand.shape[taken] if size is None else as_size(size))


def _of_others(by: Callable[..., Any], x: Tensor, what: str) -> Any:
    if x.rank > 1 + len(INDICES):
        raise ShapeError(f"shift takes at most {1 + len(INDICES)} axes, not {x.rank}")
    letters: Sequence[sympy.Dummy] = _others(x.rank - 1)
    try:
        inspect.signature(by).bind(*letters)
    except (TypeError, ValueError):  # ValueError: what shows no signature, as int, is none of indices either
        raise OperandError(f"{what} is a function of the {len(letters)} indices of the other axes") from None
    return by(*letters)


# --- flip and tile ---


def flip(x: Any, axis: int) -> Tensor:
    """An axis backwards: ``y[.., j, ..] = x[.., n - 1 - j, ..]``, as ``x[:, ::-1]``.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> X = sa.tensor("X", "T d")
    >>> sa.flip(X, axis=1) is X[:, ::-1]
    True
    """
    operand = as_tensor(x)
    taken = checked_axis(axis, operand, "flip")
    return sliced(operand, taken, operand.shape[taken] - 1, -1, operand.shape[taken])


def _tile_back(g: Tensor, x: Tensor, axis: int, times: Any) -> Tensor:
    return summed(split_axis_op(g, axis=axis, into=(times, x.shape[axis])), (axis - 1,), False)


tile_op = copied(
    "tile",
    lambda k, times, size: sympy.Mod(k, size),
    _tile_back,
    numpy=lambda code, node, x: (
        f"np.concatenate([{x}] * ({code.size(node.params['times'])}), axis={node.params['axis']})"
    ),
)


def tile(x: Any, times: Any, axis: int) -> Tensor:
    """An axis ``times`` times over: ``y[.., k, ..] = x[.., k % n, ..]`` for a size n; ``repeat`` copies entry by entry.

    Raises ShapeError for an axis that is not there.

    >>> import symattn as sa
    >>> sa.tile(sa.tensor("X", "T d"), 3, axis=0).shape
    (3*T, d)
    """
    return along(tile_op, x, axis, times=as_size(times))
