"""Hypotheses that are given besides the declared ones, and their plainest use: to put equal for equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from ..errors import OperandError
from ..latex import displayed_names
from ..ops.leaves import HYPOTHESES, variable
from ..tensor import Tensor, rebuild, topological
from .claims import Claim, Independence


@dataclass(frozen=True)
class Given:
    """The claims and the relations between sizes that were given, after what is equal has been put for equal."""

    claims: tuple[Claim, ...]
    relations: tuple[Relational, ...]


def applied(claim: Claim | Independence, given: Sequence[Any]) -> tuple[Given, Claim | Independence]:
    """What is given, sorted, and the claim with sizes that are equal, and tensors that equal others, replaced.

    Raises OperandError for what is no hypothesis, and for hypotheses that contradict each other.
    """
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    claims = [g for g in listed if isinstance(g, Claim)]
    relations = [g for g in listed if isinstance(g, (Relational, BooleanTrue, BooleanFalse))]
    declared = [g for g in listed if isinstance(g, Tensor) and g.op is variable]
    for g in listed:
        if g not in claims and g not in relations and g not in declared:
            shown = g.brief() if isinstance(g, Tensor) else repr(g)
            raise OperandError(
                f"given holds claims (sa.eq, sa.le, sa.lt), relations between sizes, and tensors declared with "
                f"properties, not {shown}"
            )
    if sympy.And(*relations) == sympy.false:
        raise OperandError(
            "what is given contradicts itself: no sizes satisfy "
            + " and ".join(map(str, relations)).replace("False", "it")
        )
    claim, claims = _declared(claim, claims, declared)
    displayed_names([*claim.sides, *(side for c in claims for side in c.sides)])  # one name has one meaning
    claim, claims, rest = _equal_sizes(claim, claims, [r for r in relations if r != sympy.true])
    claim, claims = _equal_tensors(claim, claims)
    return Given(tuple(claims), tuple(rest)), claim


def _replaced(claim: Any, new: dict[Any, Any]) -> Any:
    """A claim with tensors or sizes replaced."""
    sizes = {k: v for k, v in new.items() if isinstance(k, sympy.Symbol)}
    tensors = {k: v for k, v in new.items() if k not in sizes}
    a, b = rebuild(claim.sides, tensors, sizes)
    if isinstance(claim, Independence):
        return Independence(a, b, claim.out, claim.inp, claim.condition.xreplace(sizes))
    return Claim(a, claim.relation, b)


def _declared(claim: Any, claims: list[Claim], declared: list[Tensor]) -> tuple[Any, list[Claim]]:
    """Tensors take the properties with which they are declared again."""
    for x in declared:
        met = [y for y in topological([*claim.sides, *(s for c in claims for s in c.sides)]) if y.op is variable]
        for y in met:
            if y.name == x.name and y is not x:
                both = {*x.params["hypotheses"], *y.params["hypotheses"]}
                joined = tuple(h for h in HYPOTHESES if h in both)
                new = variable(name=x.name, shape=y.shape, hypotheses=joined)
                claim, claims = _replaced(claim, {y: new}), [_replaced(c, {y: new}) for c in claims]
    return claim, claims


def _equal_sizes(
    claim: Any, claims: list[Claim], relations: list[Relational]
) -> tuple[Any, list[Claim], list[Relational]]:
    rest = []
    for relation in relations:
        sides = (relation.lhs, relation.rhs)
        symbol = next((s for s in sides if s.is_Symbol), None) if isinstance(relation, sympy.Eq) else None
        if symbol is None or symbol in (other := sides[1 - sides.index(symbol)]).free_symbols:
            rest.append(relation)
            continue
        claim = _replaced(claim, {symbol: other})
        claims = [_replaced(c, {symbol: other}) for c in claims]
    return claim, claims, rest


def _equal_tensors(claim: Any, claims: list[Claim]) -> tuple[Any, list[Claim]]:
    """A named tensor without properties that equals an expression without it gives way to it."""
    rest: list[Claim] = []
    pending = list(claims)
    while pending:
        fact = pending.pop(0)
        for x, y in (fact.sides, fact.sides[::-1]):
            free = x.op is variable and not x.params["hypotheses"] and x not in topological([y])
            if fact.relation == "=" and free and not (isinstance(claim, Independence) and x is claim.variable):
                claim = _replaced(claim, {x: y})
                pending = [_replaced(c, {x: y}) for c in pending]
                rest = [_replaced(c, {x: y}) for c in rest]
                break
        else:
            rest.append(fact)
    return claim, rest
