"""Entry formulas written out: through names and layout, and through what is short, in one spelling.

Bound indices are numbered from the inside of a formula, so that the same sum is the same formula wherever it is met;
what does not depend on a bound index stands before its sum.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sympy

from ...core.node import Tensor
from ...facts.linear import extreme_of, replaced, total_of
from ...ops.leaves import variable
from ...scalars.formulas import INDEX, Choice, Max, Min, Read, _OfAll, at_index, bound_index, is_short

_NUMBERED = 1_000  # numbers of bound indices that are counted from the inside, of which there are as many at most


class Writing:
    """The entry formulas of some nodes at ``INDEX``; an entry of another node is a Read of its number.

    Monotone operations may be ``kept``, and so may ``named`` nodes: they are not written out where they are read.
    """

    def __init__(self, nodes: Sequence[Tensor], kept: bool = False, named: Collection[Tensor] = ()) -> None:
        self.kept, self.named = kept, named
        self.number = {node: n for n, node in enumerate(nodes)}
        self.same: dict[Tensor, Any] = {}  # nodes that are an entry of another node, or a number, at every index
        self.own: dict[Tensor, Any] = {}  # in terms of the inputs
        self.full: dict[Tensor, Any] = {}  # with the inputs written out
        self.nodes = nodes

    def add(self, node: Tensor) -> None:
        """Write out a node; its inputs have been."""
        here = self.entry(node, INDEX[: node.rank])
        self.own[node] = self.full[node] = here
        if node.op is variable or node.rank > len(INDEX):
            return
        formula = node.op.entry(lambda k, where: self.entry(node.inputs[k], where), INDEX[: node.rank], node)
        self.own[node] = formula = sympy.sympify(formula)
        if isinstance(formula, Read) or not (formula.has(Read, -sympy.oo) or formula.atoms(sympy.Dummy)):
            self.same[node] = formula
        elif formula.has(_OfAll, -sympy.oo, sympy.oo) or node.op.rows or (self.kept and node.op.monotone):
            return
        if node in self.named:
            return
        reads = {read: self._shown(read) for read in formula.atoms(Read)}
        written = replaced(formula, reads)
        if written is not None:
            deltas = {d: Choice(sympy.Eq(*d.args[:2]), 1, 0) for d in written.atoms(sympy.KroneckerDelta)}
            self.full[node] = _in_one_spelling(written.xreplace(deltas))

    def entry(self, x: Tensor, where: Sequence[Any]) -> Any:
        """An entry as what it is an entry of, through names and layout."""
        if x in self.same:
            return at_index(self.same[x], where)
        return Read(sympy.Integer(self.number[x]), *where)

    def _shown(self, read: Any) -> Any:
        full = self.full[self.nodes[int(read.args[0])]]
        return at_index(full, read.args[1:]) if is_short(full) else read


def _in_one_spelling(formula: Any) -> Any:
    """The formula with all bound indices numbered from the inside, and with factors before their sums."""
    while True:
        raw = [fold for fold in formula.atoms(sympy.Sum, Max, Min) if not _is_numbered(fold)]
        if not raw:
            return formula
        fold = min(raw, key=lambda fold: (fold.limits[0][0].dummy_index, sympy.default_sort_key(fold)))
        formula = formula.xreplace({fold: _respelled(fold)})


def _respelled(fold: Any) -> Any:
    inner = (k.dummy_index for part in fold.atoms(sympy.Sum, Max, Min) if _is_numbered(part) for k, _, _ in part.limits)
    first = max(inner, default=_NUMBERED - 1) + 1
    new = {k: bound_index(first + n) for n, (k, _, _) in enumerate(fold.limits)}
    term, limits = fold.function.xreplace(new), [limit.xreplace(new) for limit in fold.limits]
    return total_of(term, limits) if isinstance(fold, sympy.Sum) else extreme_of(fold.func, term, limits)


def _is_numbered(fold: Any) -> bool:
    return bool(_NUMBERED <= fold.limits[0][0].dummy_index < 2 * _NUMBERED)
