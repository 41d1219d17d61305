"""Inequalities that are given, used as equalities: what is at least another thing is that and a slack more.

A size ``n <= k`` is ``k = n + r`` or ``k = n``, a tensor ``0 <= x`` is ``x = y**2``, and ``y < x`` is ``x = y + p`` for
positive p: all values that are allowed are reached, so that what holds of all slacks holds of all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from ..core.boxes import row
from ..core.naming import new_name
from ..core.node import Tensor, topological
from ..core.sizes import same_shape, sizes
from ..ops.arithmetic import add, negative
from ..ops.leaves import scalar_value, variable
from ..printing.matrix import latex_printer, names_in, text_printer
from ..printing.prose import EQUALS, Paragraph, Part, Words, led, listed
from ..printing.table import SymbolTable, checked_table
from .argument import Argument, Given, Resting
from .claims import Claim, Independence
from .generalised import is_finite
from .given import everywhere
from .relations import in_order, is_polynomial, is_size

_MOST = 4  # substitutions of one kind

Stage = dict[Any, Any]  # what is put for a size, for a scalar or for a tensor


@dataclass(frozen=True, eq=False)
class Slacks(Resting):
    """A proof for each way in which inequalities hold, of the claim with slacks in it."""

    cases: tuple[tuple[tuple[Stage, ...], Argument], ...]

    @property
    def parts(self) -> Iterator[Argument]:
        return (argument for _, argument in self.cases)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if not isinstance(claim, Claim) or ways(claim, given) != [stages for stages, _ in self.cases]:
            return False
        return all(argument.proves(*_after(stages, claim, given)) for stages, argument in self.cases)

    def text(self) -> str:
        parts = []
        for stages, argument in self.cases:
            printer = text_printer([x for stage in stages for pair in stage.items() for x in pair if _is_tensor(x)])
            put = [f"{_text(printer, k)} = {_text(printer, v)}" for stage in stages for k, v in stage.items()]
            parts.append(f"By what is given, let {', '.join(put)}.\n{argument.text()}")
        return "\n".join(parts)

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        table = checked_table(within)
        parts: list[Part] = []
        for stages, argument in self.cases:
            tensors = [x for stage in stages for pair in stage.items() for x in pair if _is_tensor(x)]
            printer = latex_printer(tensors, within=within)
            put: list[Words] = []
            for k, v in (pair for stage in stages for pair in stage.items()):
                left, right = (printer.box(x) if _is_tensor(x) else table.scalar(x) for x in (k, v))
                put.append((row(left, EQUALS, right),))
            first = Paragraph(("By what is given, let ", *listed(put, ", "), "."))
            parts += [first, *led((), argument.told(within))]
        return tuple(parts)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


def _text(printer: Any, x: Any) -> str:
    return str(printer.refer(x)) if _is_tensor(x) else str(x)


def by_slacks(claim: Claim, given: Given, argued: Callable[[Given, Claim], Argument | None]) -> Slacks | None:
    """The proof of a claim with slacks for the inequalities that are given; ``argued`` proves it in one of the ways."""
    cases = []
    for stages in ways(claim, given):
        at, under = _after(stages, claim, given)
        argument = argued(under, at)
        if argument is None or argument.divisors or argument.side_conditions:
            return None
        cases.append((stages, argument))
    return Slacks(tuple(cases)) if cases else None


def _after(stages: Sequence[Stage], claim: Claim, given: Given) -> tuple[Claim, Given]:
    for stage in stages:
        claim, given = everywhere(claim, given, stage)
    return claim, given


def ways(claim: Claim, given: Given) -> list[tuple[Stage, ...]]:
    """The substitutions of each way in which inequalities hold, one of which is true of any values; none if none is."""
    taken = names_in([*claim.sides, *(x for g in given.claims for x in g.sides)])
    taken |= {s.name for r in given.relations for s in r.free_symbols}
    found = []
    for chosen in _of_sizes(claim, given, taken):
        at, under = _after(chosen, claim, given)
        found.append((*chosen, *_of_values(at, under, set(taken))))
    return found if all(found) else []


def _of_sizes(claim: Claim, given: Given, taken: set[str], depth: int = _MOST) -> Iterator[tuple[Stage, ...]]:
    """The ways in which sizes are what they are given to be at least, or more."""
    for stage in _bounded_below(given, taken) if depth else [{}]:
        if not stage:
            yield ()
            return
        at, under = everywhere(claim, given, stage)
        for more in _of_sizes(at, under, set(taken), depth - 1):
            yield stage, *more


def _bounded_below(given: Given, taken: set[str]) -> list[Stage]:
    """That a size is what the first inequality gives it to be at least, and that it is more; nothing if none does."""
    for less, more in (pair for relation in given.relations for pair in in_order(relation)):
        for s in sorted((more - less).free_symbols, key=str):
            least = sympy.expand(s - (more - less))
            if s in least.free_symbols or not is_polynomial(least) or least == 1:
                continue
            if is_size(least - 1):
                return [{s: least - 1 + sizes(new_name("r", taken))}]
            if is_size(least):
                return [{s: least}, {s: least + sizes(new_name("r", taken))}]
    return [{}]


def _of_values(claim: Claim, given: Given, taken: set[str]) -> Iterator[Stage]:
    """For tensors and scalars that are given to be at least, or at most, something else, that and a slack."""
    for _ in range(_MOST):
        stages = (stage for g in given.claims if g.relation != "=" for stage in [_slack(g, taken)] if stage)
        stage = next(stages, None)
        if stage is None:
            return
        yield stage
        claim, given = everywhere(claim, given, stage)


def _slack(fact: Claim, taken: set[str]) -> Stage | None:
    for x, y, sign in ((fact.right, fact.left, 1), (fact.left, fact.right, -1)):
        value = scalar_value(x)
        if value is not None and value.is_Symbol and _is_plain(value):
            other = scalar_value(y)
            if other is None or not other.is_real or value in other.free_symbols:
                continue
            kind = {"positive": True} if fact.relation == "<" else {"nonnegative": True}
            return {value: other + sign * sympy.Symbol(new_name(value.name, taken), **kind)}
        free = x.op is variable and not x.params["hypotheses"] and x not in topological([y])
        if free and is_finite(y) and same_shape(x.shape, y.shape):
            own = variable(
                name=new_name(str(x.name), taken),
                shape=x.shape,
                hypotheses=("positive",) if fact.relation == "<" else (),
            )
            slack = own if fact.relation == "<" else own**2
            return {x: add(y, slack if sign > 0 else negative(slack))}
    return None


def _is_plain(s: sympy.Symbol) -> bool:
    """Whether a scalar is any real number."""
    return bool(s.is_real) and not any((s.is_integer, s.is_nonnegative, s.is_nonpositive, s.is_nonzero))
