"""Entries written out at given sizes: sums become terms, and indices numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import sympy
from sympy.core.relational import Relational

from ..core.node import Tensor
from ..errors import NoRuleError, ShapeError
from ..graph.entries import too_deep
from ..graph.names import displayed_names
from ..ops.leaves import computed, indexed, operands, variable
from ..scalars.formulas import Choice, InverseEntry, Max, Min, UnknownOfRow, compared

Element = Callable[[Any, tuple[Any, ...]], Any]  # from the base of an Indexed and the indices to the scalar
_FOLDS: dict[type, Callable[..., Any]] = {
    sympy.Sum: sympy.Add,
    Max: partial(compared, sympy.Max),
    Min: partial(compared, sympy.Min),
}


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
    fixed = x.subs({} if sizes is None else sizes)
    order = computed([fixed])
    lacking = {s for node in order for size in node.shape for s in size.free_symbols}
    if lacking:
        names = ", ".join(sorted(map(str, lacking)))
        raise ShapeError(f"the entries of {x.brief()} are only written out at numbers: give a number for {names}")
    for node in order:
        if not all(size.is_Integer for size in node.shape):
            raise ShapeError(f"the entries of {x.brief()}: at these sizes {node.brief()} has a size that is not whole")
    displayed_names([fixed])  # one name, one meaning: otherwise the entries of two tensors would look alike
    try:
        entries = _explicit_entries(fixed, order)
    except RecursionError:
        raise too_deep(x) from None
    if not fixed.rank:
        return entries[0]
    if fixed.rank > 2:
        return sympy.Array(entries, tuple(map(int, fixed.shape)))
    rows, columns = (*map(int, fixed.shape), 1)[:2]
    return sympy.Matrix(rows, columns, entries)


def _explicit_entries(x: Tensor, order: Sequence[Tensor]) -> list[Any]:
    known: dict[Tensor, dict[tuple[Any, ...], Any]] = {}
    for node in order:
        known[node] = _entries(node, known)
    return [_with_cases(value) for value in known[x].values()]


def _entries(node: Tensor, known: Mapping[Tensor, Mapping[tuple[Any, ...], Any]]) -> dict[tuple[Any, ...], Any]:
    """Every entry of one node, from those of its inputs."""

    scalars = {_input(k): known[x][()] for k, x in enumerate(operands(node)) if not x.rank}

    def read(k: int, index: tuple[Any, ...]) -> Any:
        return sympy.IndexedBase(_input(k))[index] if index else _input(k)

    def element(base: Any, index: tuple[Any, ...]) -> Any:
        x = node.inputs[int(base.name.removeprefix("input"))]
        return _at(x, known[x], index)

    masked = any(map(_maybe_infinite, itertools.chain.from_iterable(known[x].values() for x in operands(node))))
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


def _maybe_infinite(value: Any) -> bool:
    return any(choice.has(sympy.S.NegativeInfinity) for choice in value.atoms(Choice))


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


_UNFOLDED: tuple[Any, ...] = (*_FOLDS, InverseEntry, UnknownOfRow)


def written_out(formula: Any, element: Element, values: Mapping[Any, Any]) -> Any:
    """A formula with bound indices replaced by ``values``, sums over numbers as terms, and entries by ``element``.

    Only the branch of a choice that is taken is looked at, since the others may read outside of their tensor.
    """

    def again(part: Any) -> Any:
        return written_out(part, element, values)

    if formula in values:
        return values[formula]
    if isinstance(formula, _UNFOLDED) and _is_numeric(formula.limits):
        return _unfolded(formula, element, values)
    if isinstance(formula, Choice):
        condition = again(formula.args[0])
        if condition in (sympy.true, sympy.false):
            return again(formula.args[1] if condition == sympy.true else formula.args[2])
        return Choice(condition, again(formula.args[1]), again(formula.args[2]))
    if isinstance(formula, sympy.Indexed):
        return element(formula.base.label, tuple(map(again, formula.indices)))
    if isinstance(formula, sympy.exp):
        return _exp(again(formula.args[0]))
    if isinstance(formula, Relational):
        return compared(formula.func, *map(again, formula.args))
    return formula.func(*map(again, formula.args)) if formula.args else formula


def _exp(exponent: Any) -> Any:
    """The exponential, within the choices that may give -oo: elsewhere SymPy takes it to be positive."""
    for choice in exponent.atoms(Choice):
        if _maybe_infinite(choice):
            condition, a, b = choice.args
            return Choice(condition, _exp(exponent.xreplace({choice: a})), _exp(exponent.xreplace({choice: b})))
    return sympy.exp(exponent)


def _is_numeric(limits: Any) -> bool:
    return all(edge.is_Integer for _, *edges in limits for edge in edges)


def _unfolded(fold: Any, element: Element, values: Mapping[Any, Any]) -> Any:
    """A sum or an extreme term by term; an entry of an inverse by Cramer's rule."""
    if isinstance(fold, UnknownOfRow):
        raise NoRuleError(f"nothing is known of {fold.args[3]} but its name: its entries cannot be written out")
    ranges = [range(int(low), int(high) + 1) for _, low, high in fold.limits]
    terms = []
    for place in itertools.product(*ranges):
        at = {k: sympy.Integer(i) for (k, *_), i in zip(fold.limits, place, strict=True)}
        terms.append(written_out(fold.function, element, {**values, **at}))
    if not isinstance(fold, InverseEntry):
        return _FOLDS[type(fold)](*terms)
    row, column = (int(written_out(at, element, values)) for at in fold.places)
    matrix = sympy.Matrix(*map(len, ranges), terms)
    return matrix.cofactor(column, row, method="berkowitz") / matrix.det(method="berkowitz")


def _with_cases(formula: Any) -> Any:
    """Choices as SymPy's Piecewise, but for those on choices, of which SymPy would try every combination."""
    if not formula.has(Choice) or (isinstance(formula, Choice) and formula.args[0].has(Choice)):
        return formula
    parts = list(map(_with_cases, formula.args))
    if isinstance(formula, Choice):
        condition, a, b = parts
        return sympy.Piecewise((a, condition), (b, True))
    return formula.func(*parts)
