"""Hypotheses that are given besides the declared ones, and their plainest use: to put equal for equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy

from ..core.arguments import each_of
from ..core.budget import Budget
from ..core.node import Tensor, rebuild, topological
from ..core.sizes import as_size, same_shape
from ..errors import OperandError, ShapeError, SymattnError, described
from ..graph.names import displayed_names
from ..ops.leaves import HYPOTHESES, scalar_value, variable
from .argument import Argument, Given
from .bounds.prove import bound_proof
from .claims import Claim, Independence
from .relations import check_relations, is_relation, is_size, solution


def sorted_out(claim: Claim | Independence, given: Sequence[Any]) -> tuple[Given, Claim | Independence]:
    """What is given, sorted, and the claim with the properties that tensors are declared with again.

    Raises OperandError for what is no hypothesis, for relations that are not understood, and for hypotheses that are
    seen to contradict each other.
    """
    listed = each_of(given)
    claims = [g for g in listed if isinstance(g, Claim)]
    relations = [g for g in listed if is_relation(g)]
    declared = [g for g in listed if isinstance(g, Tensor) and g.op is variable]
    for g in listed:
        if not (isinstance(g, Claim) or is_relation(g) or (isinstance(g, Tensor) and g.op is variable)):
            raise OperandError(
                f"given holds claims (sa.eq, sa.le, sa.lt), relations between sizes, and tensors declared with "
                f"properties, not {described(g)}"
            )
    check_relations(relations, relations)
    claim, claims = _declared(claim, claims, declared)
    displayed_names([*claim.sides, *(side for c in claims for side in c.sides)])  # one name has one meaning
    facts = iter(claims)
    return Given.of([next(facts) if isinstance(g, Claim) else g for g in listed if g != sympy.true]), claim


def applied(given: Given, claim: Claim | Independence) -> tuple[Given, Claim | Independence]:
    """Given and claim with sizes that are equal, and tensors that equal others, put for each other.

    It is what proofs begin with; counterexamples are points of what was asked. Raises OperandError for relations that
    are then seen to contradict each other.
    """
    claim, given = _equal_sizes(claim, given)
    claim, given = _equal_scalars(claim, given)
    claim, claims = _equal_tensors(claim, list(given.claims))
    return replace(given, claims=tuple(claims)), claim


def contradiction(claims: Sequence[Claim], budget: Budget) -> str:
    """Which claim that is given is false wherever the others hold, and why, if a proof of that is found; else nothing.

    The claims are those with equal put for equal. Raises OutOfBudget.
    """
    for fact in claims:
        others = [g for g in claims if g is not fact]
        for opposite in _opposites(fact):
            found = bound_proof(opposite, others, budget)
            if found is not None and not found.conditions:
                where = f" where {' and '.join(map(str, others))}" if others else ""
                return f"{fact} does not hold, since {opposite}{where}"
    return ""


def _opposites(fact: Claim) -> list[Claim]:
    """Inequalities of which each would make the fact false at every entry."""
    a, b = fact.sides
    if fact.relation == "=":
        return [Claim(a, "<", b), Claim(b, "<", a)]
    return [Claim(b, "<" if fact.relation == "<=" else "<=", a)]


@dataclass(frozen=True)
class Stated(Argument):
    """The proof of a claim that is itself given."""

    claim: Claim
    facts: tuple[Claim, ...]

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return self.claim == claim and self.facts == given.claims

    def check(self) -> bool:
        sides = (self.claim.sides, self.claim.sides[::-1]) if self.claim.relation == "=" else (self.claim.sides,)
        return any(fact.relation == self.claim.relation and fact.sides in sides for fact in self.facts)

    def text(self) -> str:
        return "It is given."


def stated_in(given: Given, claim: Claim | Independence) -> Stated | None:
    """The proof that a claim is among what is given, if it is."""
    if isinstance(claim, Independence):
        return None
    found = Stated(claim, given.claims)
    return found if found.check() else None


def replaced(claim: Any, new: dict[Any, Any]) -> Any:
    """A claim with tensors or sizes replaced."""
    sizes = {k: v for k, v in new.items() if isinstance(k, sympy.Symbol)}
    tensors = {k: v for k, v in new.items() if k not in sizes}
    a, b = rebuild(claim.sides, tensors, sizes)
    if isinstance(claim, Independence):
        return Independence(a, b, claim.out, claim.inp, claim.condition.xreplace(sizes))
    return Claim(a, claim.relation, b)


def everywhere(claim: Any, given: Given, new: dict[Any, Any]) -> tuple[Any, Given]:
    """A claim and what is given with sizes replaced; relations that are then true are gone."""
    relations = tuple(left for r in given.relations if (left := r.xreplace(new)) != sympy.true)
    return replaced(claim, new), Given(tuple(replaced(c, new) for c in given.claims), relations, given.stated)


def _declared(claim: Any, claims: list[Claim], declared: list[Tensor]) -> tuple[Any, list[Claim]]:
    """Tensors take the properties with which they are declared again."""
    for x in declared:
        met = topological([*claim.sides, *(side for c in claims for side in c.sides)])
        for y in [y for y in met if y.op is variable and y.name == x.name and y is not x]:
            if not same_shape(x.shape, y.shape):
                raise ShapeError(f"{x.brief()} is given with properties; the claim holds {y.brief()}, of another shape")
            both = {*x.params["hypotheses"], *y.params["hypotheses"]}
            new = variable(name=x.name, shape=y.shape, hypotheses=tuple(h for h in HYPOTHESES if h in both))
            claim, claims = replaced(claim, {y: new}), [replaced(c, {y: new}) for c in claims]
    return claim, claims


def _equal_sizes(claim: Any, given: Given) -> tuple[Any, Given]:
    """Sizes that are given by others, replaced; that a size which is gone was at least 1 is kept as a relation."""
    stated = given.relations
    while (found := next(((r, pair) for r in given.relations if (pair := solution(r))), None)) is not None:
        relation, (symbol, value) = found
        others = [r for r in given.relations if r is not relation]
        rest = replace(given, relations=(*others, *(() if is_size(value) else (value >= 1,))))
        new = {symbol: as_size(value)}
        try:
            claim, given = everywhere(claim, rest, new)
        except SymattnError as problem:
            raise OperandError(f"what is given leaves no value: {symbol} = {value}, and {problem}") from None
        check_relations(given.relations, stated)
    return claim, given


def in_one_size(tensors: Sequence[Tensor], relations: Sequence[Any]) -> list[Tensor]:
    """Tensors with the sizes that are given by others replaced: two shapes may then agree."""
    left = [*relations]
    while (found := next((pair for r in left if (pair := solution(r))), None)) is not None:
        new = {found[0]: as_size(found[1])}
        tensors, left = rebuild(tensors, {}, new), [r for g in left if (r := g.xreplace(new)) not in (True, False)]
    return list(tensors)


def _equal_scalars(claim: Any, given: Given) -> tuple[Any, Given]:
    """Scalar symbols that are given by a value, replaced."""
    for fact in given.claims:
        a, b = map(scalar_value, fact.sides)
        if fact.relation == "=" and a is not None and b is not None and (new := _value_of(a - b)):
            rest = replace(given, claims=tuple(c for c in given.claims if c is not fact))
            return _equal_scalars(*everywhere(claim, rest, new))
    return claim, given


_SIGNS = ("positive", "negative", "nonnegative", "nonpositive", "nonzero", "integer", "real")


def _value_of(zero: sympy.Expr) -> dict[sympy.Symbol, sympy.Expr] | None:
    """A scalar symbol and its only value where an expression is 0, if it may be that value whatever the others are."""
    for s in sorted(zero.free_symbols, key=str):
        slope = zero.diff(s)
        if s.is_integer or not slope.is_number or not slope.is_nonzero:
            continue
        value = sympy.expand(s - zero / slope)
        if all(getattr(value, f"is_{sign}") for sign in _SIGNS if getattr(s, f"is_{sign}")):
            return {s: value}
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
                claim = replaced(claim, {x: y})
                pending = [replaced(c, {x: y}) for c in pending]
                rest = [replaced(c, {x: y}) for c in rest]
                break
        else:
            rest.append(fact)
    return claim, rest
