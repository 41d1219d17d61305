"""Entries written out at given sizes: sums become terms, and indices numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from ..core.arguments import few
from ..core.node import Tensor
from ..errors import NoRuleError, ShapeError
from ..graph.entries import MOST_PARTS, count_parts, too_large, too_long
from ..graph.names import displayed_names
from ..ops.leaves import computed, indexed, operands, variable
from ..recurrence.unrolled import unrolled
from ..scalars.explicit import maybe_infinite, written_out
from ..scalars.formulas import Choice, Max, Min

_MOST = 10**6  # entries that are written out


def as_explicit(x: Tensor, sizes: Mapping[Any, Any] | None = None) -> Any:
    """The entries of a tensor at the given sizes, as SymPy: a scalar, a column, a matrix, or an Array from rank 3 on.

    Sums are written out, and the entries of named tensors stay symbols ``Q[i, j]``. ``sizes`` may also give values
    for scalar symbols. Raises ShapeError for a size that has no number, or one that does not fit, and OperandError for
    a formula nested deeper than SymPy can go.

    >>> import symattn as sa
    >>> T, d = sa.sizes("T d")
    >>> Q = sa.tensor("Q", T, d)
    >>> (Q @ Q.T).as_explicit({T: 1, d: 2})
    Matrix([[Q[0, 0]**2 + Q[0, 1]**2]])
    """
    fixed = unrolled(x.subs({} if sizes is None else sizes))
    order = computed([fixed])
    lacking = {s for node in order for size in node.shape for s in size.free_symbols}
    if lacking:
        names = ", ".join(sorted(map(str, lacking)))
        raise ShapeError(f"the entries of {x.brief()} are only written out at numbers: give a number for {names}")
    for node in order:
        if not all(size.is_Integer for size in node.shape):
            raise ShapeError(f"the entries of {x.brief()}: at these sizes {node.brief()} has a size that is not whole")
    for node in order:
        few(f"as_explicit of {x.brief()}", sympy.Mul(*node.shape), f"entries of {node.brief()}", _MOST)
    displayed_names([fixed])  # one name, one meaning: otherwise the entries of two tensors would look alike
    try:
        entries = _explicit_entries(fixed, order)
    except RecursionError:
        raise too_long(x) from None
    if not fixed.rank:
        return entries[0]
    if fixed.rank > 2:
        return sympy.Array(entries, tuple(map(int, fixed.shape)))
    rows, columns = (*map(int, fixed.shape), 1)[:2]
    return sympy.Matrix(rows, columns, entries)


def _explicit_entries(x: Tensor, order: Sequence[Tensor]) -> list[Any]:
    known: dict[Tensor, dict[tuple[Any, ...], Any]] = {}
    parts: dict[sympy.Basic, int] = {}
    for node in order:
        known[node] = _entries(node, known)
        for value in known[node].values():
            if (count := count_parts(value, parts)) > MOST_PARTS:
                raise too_large(x, count)
    return [_with_cases(value) for value in known[x].values()]


def _entries(node: Tensor, known: Mapping[Tensor, Mapping[tuple[Any, ...], Any]]) -> dict[tuple[Any, ...], Any]:
    """Every entry of one node, from those of its inputs."""

    scalars = {_input(k): known[x][()] for k, x in enumerate(operands(node)) if not x.rank}

    def read(k: int, index: tuple[Any, ...]) -> Any:
        return sympy.IndexedBase(_input(k))[index] if index else _input(k)

    def element(base: Any, index: tuple[Any, ...]) -> Any:
        x = node.inputs[int(base.name.removeprefix("input"))]
        return _at(x, known[x], index)

    masked = any(map(maybe_infinite, itertools.chain.from_iterable(known[x].values() for x in operands(node))))
    entries = {}
    for place in itertools.product(*map(range, map(int, node.shape))):
        index = tuple(map(sympy.Integer, place))
        if node.op is variable:
            entries[index] = indexed(node.params["name"], index)
        else:
            formula = sympy.sympify(node.op.entry(read, index, node))
            if masked and node.op.minus_infinity == "absorbed":
                _check_masked(formula, node)
            entries[index] = written_out(formula, element, scalars)
    return entries


def _input(k: int) -> sympy.Symbol:
    return sympy.Symbol(f"input{k}", extended_real=True)  # and not finite: masks hold -oo


def _check_masked(formula: Any, node: Tensor) -> None:
    """SymPy cancels ``x - x`` also where x may be -oo, so only formulas that keep masked entries apart are taken."""
    kept_apart = formula.replace(lambda part: isinstance(part, (sympy.exp, Max, Min)), lambda part: sympy.S.Zero)
    if kept_apart.has(sympy.Indexed):
        raise NoRuleError(
            f"the entries of {node.brief()} are not written out for a mask whose entries are symbols: "
            "give the mask as a constant, by sa.from_index"
        )


def _at(x: Tensor, entries: Mapping[tuple[Any, ...], Any], index: tuple[Any, ...]) -> Any:
    """An entry of x; an index that is itself an entry of an integer tensor picks one of them."""
    if all(i.is_Integer for i in index):
        if index not in entries:
            raise ShapeError(f"the entry {list(index)} of {x.brief()} is out of range at these sizes")
        return entries[index]
    if x.op is variable:
        return indexed(x.params["name"], index)
    value = sympy.S.Zero
    for place, here in entries.items():
        value = Choice(sympy.And(*map(sympy.Eq, index, place)), here, value)
    return value


def _with_cases(formula: Any) -> Any:
    """Choices as SymPy's Piecewise, but for those on choices, of which SymPy would try every combination."""
    if not formula.has(Choice) or (isinstance(formula, Choice) and formula.args[0].has(Choice)):
        return formula
    parts = list(map(_with_cases, formula.args))
    if isinstance(formula, Choice):
        condition, a, b = parts
        return sympy.Piecewise((a, condition), (b, True))
    return formula.func(*parts)
