"""Hypotheses that are given besides the declared ones, and their plainest use: to put equal for equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from ..errors import OperandError, ShapeError
from ..latex import displayed_names
from ..ops.leaves import HYPOTHESES, variable
from ..sizes import as_size, same_shape
from ..tensor import Tensor, rebuild, topological
from .claims import Claim, Independence


@dataclass(frozen=True)
class Given:
    """The claims and the relations between sizes that were given, after what is equal has been put for equal.

    ``stated`` is all of it as it was given.
    """

    claims: tuple[Claim, ...]
    relations: tuple[Relational, ...]
    stated: tuple[Any, ...]


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
    _check_relations(relations)
    claim, claims = _declared(claim, claims, declared)
    displayed_names([*claim.sides, *(side for c in claims for side in c.sides)])  # one name has one meaning
    claim, claims, rest = _equal_sizes(claim, claims, [r for r in relations if r != sympy.true])
    claim, claims = _equal_tensors(claim, claims)
    return Given(tuple(claims), tuple(rest), tuple(listed)), claim


@dataclass(frozen=True)
class Stated:
    """The proof of a claim that is itself given."""

    claim: Claim
    facts: tuple[Claim, ...]
    conditions: tuple[str, ...] = ()

    def check(self) -> bool:
        sides = (self.claim.sides, self.claim.sides[::-1]) if self.claim.relation == "=" else (self.claim.sides,)
        return any(fact.relation == self.claim.relation and fact.sides in sides for fact in self.facts)

    def text(self) -> str:
        return "It is given."

    latex = text


def stated_in(given: Given, claim: Claim | Independence) -> Stated | None:
    """The proof that a claim is among what is given, if it is."""
    if isinstance(claim, Independence):
        return None
    found = Stated(claim, given.claims)
    return found if found.check() else None


def _check_relations(relations: Sequence[Any]) -> None:
    """Relations are between sizes, and leave some sizes."""
    for relation in relations:
        for symbol in sorted(relation.free_symbols, key=str):
            if not (symbol.is_integer and symbol.is_positive):
                raise OperandError(
                    f"{relation} is given, and {symbol} is no size: relations are between sizes made by sa.sizes; "
                    f"declare properties of scalars by sympy.Symbol({str(symbol)!r}, positive=True)"
                )
    if sympy.And(*relations) == sympy.false:
        written = " and ".join(str(r) for r in relations if r not in (sympy.true, sympy.false))
        raise OperandError(
            "what is given contradicts itself: "
            + (f"no sizes satisfy {written}" if written else "a relation of sizes is false")
        )


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
                if not same_shape(x.shape, y.shape):
                    raise ShapeError(
                        f"{x.brief()} is given with properties; the claim holds {y.brief()}, of another shape"
                    )
                both = {*x.params["hypotheses"], *y.params["hypotheses"]}
                joined = tuple(h for h in HYPOTHESES if h in both)
                new = variable(name=x.name, shape=y.shape, hypotheses=joined)
                claim, claims = _replaced(claim, {y: new}), [_replaced(c, {y: new}) for c in claims]
    return claim, claims


def _equal_sizes(
    claim: Any, claims: list[Claim], relations: list[Relational]
) -> tuple[Any, list[Claim], list[Relational]]:
    rest: list[Relational] = []
    pending = list(relations)
    while pending:
        relation = pending.pop(0)
        found = _solved(relation)
        if found is None:
            rest.append(relation)
            continue
        new = {found[0]: as_size(found[1])}
        claim, claims = _replaced(claim, new), [_replaced(c, new) for c in claims]
        pending, rest = ([r.xreplace(new) for r in part if r.xreplace(new) != sympy.true] for part in (pending, rest))
        _check_relations([*pending, *rest])
    return claim, claims, rest


def _solved(relation: Relational) -> tuple[sympy.Symbol, sympy.Expr] | None:
    """A size, and what an equality says that it is, where that is an expression of sizes without quotients."""
    if not isinstance(relation, sympy.Eq):
        return None
    sides = (relation.lhs, relation.rhs)
    symbols = dict.fromkeys([*(s for s in sides if s.is_Symbol), *sorted(relation.free_symbols, key=str)])
    for symbol in symbols:
        for value in sympy.solve(relation.lhs - relation.rhs, symbol):
            if symbol not in value.free_symbols and sympy.fraction(sympy.together(value))[1] == 1:
                return symbol, value
    return None


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
