"""Like terms of sums, added up where a formula is shown: ``q / 2 + q / 2`` is ``q``. The tensor stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import sympy

from ..core.node import Tensor, topological, with_inputs
from ..ops.arithmetic import add_op, multiply, split_scalar, sum_of
from ..ops.broadcasting import broadcast_to
from ..ops.leaves import constant, zeros

Term: TypeAlias = tuple[sympy.Expr, Tensor | None]  # a number, and what it multiplies


def with_like_terms_added(x: Tensor, names: Collection[Tensor]) -> Tensor:
    """The expression in which no sum has a term twice; what has a name stays a term."""
    nodes = topological([x], stop=names)
    sums = {node for node in nodes if node.op is add_op and node not in names}
    whole = sums.difference(*(node.inputs for node in sums))
    if not any(_has_like_terms([split_scalar(term) for term in _terms(node, names)]) for node in whole):
        return x
    new: dict[Tensor, Tensor] = {}
    for node in nodes:
        total = _added_up(node, names, new) if node in whole else None
        new[node] = total if total is not None else node if node in names else with_inputs(node, new)
    return new[x]


def _is_sum(x: Tensor, names: Collection[Tensor]) -> bool:
    return x.op is add_op and x not in names


def _has_like_terms(terms: Sequence[Term]) -> bool:
    return len({rest for _, rest in terms}) < len(terms)


def _added_up(node: Tensor, names: Collection[Tensor], new: Mapping[Tensor, Tensor]) -> Tensor | None:
    """The sum with like terms added, in the order in which they come first; None where no two are alike."""
    terms = [split_scalar(new[term]) for term in _terms(node, names)]
    if not _has_like_terms(terms) or any(rest is not None and rest.holds_minus_infinity for _, rest in terms):
        return None
    totals: dict[Tensor | None, sympy.Expr] = {}
    for coefficient, rest in terms:
        totals[rest] = totals.get(rest, sympy.S.Zero) + coefficient
    kept = [constant(formula=c) if rest is None else multiply(c, rest) for rest, c in totals.items() if c != 0]
    return broadcast_to(sum_of(kept), node.shape) if kept else zeros(*node.shape)


def _terms(node: Tensor, names: Collection[Tensor]) -> list[Tensor]:
    """The terms of a sum of sums, from left to right."""
    terms, pending = [], [node]
    while pending:
        x = pending.pop()
        if _is_sum(x, names):
            pending.extend(reversed(x.inputs))
        else:
            terms.append(x)
    return terms
