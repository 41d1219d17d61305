"""What must hold at every step of an induction, said of the tensors of the claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from ...core.budget import Budget
from ...core.node import Tensor, rebuild, topological, with_inputs
from ...core.stated import Condition, Formula, Sentence, Stated
from ...ops.domain import is_total
from ...ops.index import joined
from ...ops.leaves import computed
from ..argument import Argument, Given
from ..definedness import conditions
from ..fitting import misfits
from ..refute.refuter import Search
from .closed_forms import ClosedForm, free_values
from .images import Image
from .prefixes import NoInductionError, at_length, part_of, sequences_in

_SECONDS = 1.0  # to look for values at the first step


def step_conditions(form: ClosedForm | Image, proofs: Sequence[Argument]) -> tuple[str, ...]:
    """The conditions of all parts of an induction: of its steps, and of closed forms of first parts of sequences."""
    claims = zip((part.claim for part in form.obligations()), proofs, strict=True)
    below = [c for proof in proofs for c in proof.side_conditions]
    if isinstance(form, Image):
        at_any = [c for claim, proof in claims for c in conditions(claim.sides, divisors=proof.divisors)]
        return tuple(dict.fromkeys([*(Sentence(c, " at every step") for c in at_any), *below]))
    n, T = form.before, form.steps
    found: list[str] = []
    for claim, proof in claims:
        sides, divisors = (_of_first_parts(form, xs) for xs in (claim.sides, proof.divisors))
        found += conditions(sides, Given((), (n < T,), ()), divisors)
    found += conditions((), finite=_of_first_parts(form, free_values(form)))
    return tuple(dict.fromkeys([*_for_all(found, n, T), *below]))


def check_meaning(form: ClosedForm, given: Given) -> None:
    """That the parts of an induction have values, for any number of steps. Raises NoInductionError."""
    known = computed([form.source, *form.roots])
    for part in form.obligations():
        if found := next(misfits(computed(part.claim.sides), known, form.steps), None):
            raise NoInductionError(f"{part.said}, there is no meaning unless {found}: {part.claim}")
        if part.part == "first" and not all(map(is_total, part.claim.sides)):
            if Search(part.claim, given).example(Budget(_SECONDS)) is None:
                raise NoInductionError(f"{part.said}, no values were found for {part.claim}")


def _of_first_parts(form: ClosedForm, several: Sequence[Tensor]) -> list[Tensor]:
    """The same of the first parts of the sequences of the claim."""
    n, T = form.before, form.steps
    leaves = sequences_in(form.roots, T)
    new = {at_length(x, T, length): part_of(x, T, T, length) for x in leaves for length in (1, n + 1)}
    new |= {part_of(x, T, n + 1, n): part_of(x, T, T, n) for x in leaves}
    return _joined(rebuild(rebuild(several, new), form.actual))


def _joined(roots: Sequence[Tensor]) -> list[Tensor]:
    """The same with parts of parts as one part: all places that they read are there, since n is less than T."""
    new: dict[Tensor, Tensor] = {}
    for node in topological(roots):
        new[node] = joined(with_inputs(node, new))
    return [new[root] for root in roots]


def _for_all(found: Sequence[str], n: sympy.Symbol, T: sympy.Symbol) -> Iterator[str]:
    """Each condition once: one of n + 1 places is that of n places, a step later; one of the first place as well."""
    said = {_key(c.formula, {}): c for c in found if isinstance(c, Stated) and isinstance(c.formula, Condition)}
    yield from (c for c in found if c not in said.values())
    later = {_key(c.formula, {n: n + 1}): key for key, c in said.items()}
    first = {_key(c.formula, {n: sympy.Integer(1)}): key for key, c in said.items()}
    for key, c in said.items():
        if later.get(key, key) != key or first.get(key, key) != key:
            continue
        last = T if any(later.get(other) == key and other != key for other in said) else T - 1
        yield Sentence(c, " for ", sympy.Symbol("1"), " <= ", n, " <= ", last) if n in _symbols(c.formula) else c


def _key(condition: Condition, symbols: dict[Any, Any]) -> tuple[Any, ...]:
    """What a condition says, with values for symbols, but for what its tensors are called."""
    left = condition.left
    if isinstance(left, Formula):
        left = left.expression.xreplace({s: sympy.Symbol(f"x{k}") for k, (s, _) in enumerate(left.tensors)})
    elif isinstance(left, Tensor):
        left = None
    return left, condition.relation, condition.right, *rebuild(condition.tensors, {}, symbols)


def _symbols(condition: Condition) -> set[sympy.Symbol]:
    return {s for x in condition.tensors for s in x.free_symbols}
