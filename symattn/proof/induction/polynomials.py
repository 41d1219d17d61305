"""Identities of polynomials of numbers of any sign: they hold, since they hold where the numbers are positive."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import sympy

from ...core.naming import new_name
from ...core.node import Tensor, rebuild, topological
from ...ops.broadcasting import broadcast_to_op
from ...ops.index import index_op
from ...ops.layout import merge_axis_op, split_axis_op, transpose_op
from ...ops.leaves import computed, constant, from_index, from_index_op
from ...ops.template import Template, template
from ...printing.matrix import names_in
from ...printing.prose import Paragraph, Part, listed
from ...printing.table import SymbolTable, checked_table
from ...scalars.formulas import Choice
from ..argument import Argument, Given, Resting
from ..claims import Claim, Independence, le

Argued = Callable[[Claim], Argument | None]
Numbers = dict[sympy.Symbol, sympy.Symbol]  # those of any sign, with positive ones in their place

_MOVING = (broadcast_to_op, index_op, merge_axis_op, split_axis_op, transpose_op)
_LINEAR = (sympy.Add, sympy.Mul)


class _NoPolynomialError(Exception):
    """Something depends on a number in another way than a polynomial does."""


@dataclass(frozen=True, eq=False)
class OfPositives(Resting):
    """A proof of an equation of polynomials of some numbers where these are positive, and that it is one of these."""

    argument: Argument
    numbers: Numbers
    exponents: tuple[Argument, ...]  # why no exponent is negative

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (*self.exponents, self.argument)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if not isinstance(claim, Claim) or claim.relation != "=" or not _are_free(self.numbers, claim, given):
            return False
        try:
            asked = _exponents(claim, self.numbers)
        except _NoPolynomialError:
            return False
        return (
            len(asked) == len(self.exponents)
            and all(why.proves(part, given) for part, why in zip(asked, self.exponents, strict=True))
            and not _speaks_of(self.argument.divisors, self.numbers.values())
            and self.argument.proves(_where_positive(claim, self.numbers), given)
        )

    def text(self) -> str:
        numbers = ", ".join(map(str, self.numbers))
        return f"Both sides are polynomials of {numbers}, so that positive values are enough.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        numbers = listed(((checked_table(within).scalar(s),) for s in self.numbers), ", ")
        said = ("Both sides are polynomials of ", *numbers, ", so that positive values are enough.")
        return Paragraph(said), *self.argument.told(within)


def of_positives(claim: Claim, given: Given, argued: Argued) -> OfPositives | None:
    """A proof of an equation by that for positive numbers, where both sides are polynomials of numbers of any sign."""
    taken = names_in(claim.sides) | given.names
    held = sorted({s for x in claim.sides for s in x.free_symbols if _of_any_sign(s)}, key=str)
    numbers = {s: sympy.Symbol(new_name(s.name, taken), positive=True) for s in held}
    if not numbers or claim.relation != "=" or not _are_free(numbers, claim, given):
        return None
    try:
        exponents = [argued(part) for part in _exponents(claim, numbers)]
    except _NoPolynomialError:
        return None
    proved = tuple(why for why in exponents if why is not None)
    argument = argued(_where_positive(claim, numbers)) if len(proved) == len(exponents) else None
    if argument is None or _speaks_of(argument.divisors, numbers.values()):
        return None
    return OfPositives(argument, numbers, proved)


def _of_any_sign(s: Any) -> bool:
    return bool(s.is_real and not s.is_integer and s.is_positive is None)


def _where_positive(claim: Claim, numbers: Numbers) -> Claim:
    left, right = rebuild(claim.sides, {}, numbers)
    return Claim(left, claim.relation, right)


def _are_free(numbers: Numbers, claim: Claim, given: Given) -> bool:
    """Whether nothing is given of the numbers, and the positive ones stand for them only."""
    if not all(isinstance(s, sympy.Symbol) and s.is_positive for s in numbers.values()):
        return False
    new = {s.name for s in numbers.values()}
    told = {s.name for fact in given.claims for x in fact.sides for s in x.free_symbols}
    return (
        all(map(_of_any_sign, numbers))
        and len(new) == len(numbers)
        and not new & (names_in(claim.sides) | given.names)
        and not {s.name for s in numbers} & (told | {s.name for r in given.relations for s in r.free_symbols})
    )


def _speaks_of(roots: Collection[Tensor], numbers: Collection[sympy.Symbol]) -> bool:
    return any(s in x.free_symbols for x in roots for s in numbers)


# --- that both sides are polynomials ---


def _exponents(claim: Claim, numbers: Numbers) -> list[Claim]:
    """That no exponent of what depends on the numbers is negative. Raises _NoPolynomialError."""
    found: dict[Tensor, None] = {}
    for node in computed(claim.sides):
        if _speaks_of([node], numbers):
            entry = template(node)
            moving = {x for x, (k, _) in entry.reads.items() if _speaks_of([node.inputs[k]], numbers)}
            for power in _powers(entry.formula, moving | numbers.keys()):
                found.update(dict.fromkeys(_exponent(node, entry, power)))
    return [le(0, x) for x in found]


def _powers(formula: Any, moving: Collection[Any]) -> Iterator[Any]:
    """The powers of what depends on some symbols in a formula that is a polynomial of these."""
    pending = [formula]
    while pending:
        e = pending.pop()
        if e in moving or not e.has(*moving):
            continue
        if isinstance(e, sympy.Pow) and not e.exp.has(*moving):
            yield e
            pending.append(e.base)
        elif isinstance(e, sympy.Sum) and not any(bound.has(*moving) for limits in e.limits for bound in limits[1:]):
            pending.append(e.function)
        elif isinstance(e, Choice) and not e.args[0].has(*moving):
            pending += e.args[1:]
        elif isinstance(e, _LINEAR):
            pending += e.args
        else:
            raise _NoPolynomialError


def _exponent(node: Tensor, entry: Template, power: sympy.Pow) -> Iterator[Tensor]:
    """The exponents that have to be shown not to be negative: whole numbers."""
    exponent = power.exp
    if exponent.is_integer and exponent.is_nonnegative:
        return
    if exponent in entry.reads:
        yield _whole(node.inputs[entry.reads[exponent][0]])
    elif exponent.is_integer and exponent.free_symbols <= {*entry.index, *_sizes(node)}:
        yield from_index(node.shape, lambda *index: exponent.subs(dict(zip(entry.index, index, strict=True))))
    else:
        raise _NoPolynomialError


def _sizes(node: Tensor) -> set[sympy.Symbol]:
    return {s for s in node.free_symbols if s.is_integer and s.is_positive}


def _whole(x: Tensor) -> Tensor:
    """A tensor whose entries are whole numbers, as a formula gives them."""
    for node in topological([x]):
        is_leaf = node.op in (constant, from_index_op) and node.params["formula"].is_integer
        if not is_leaf and node.op not in _MOVING:
            raise _NoPolynomialError
    return x
