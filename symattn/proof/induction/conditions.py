"""What must hold at every step of an induction, said of the tensors of the claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy

from ...core.budget import Budget, OutOfBudget
from ...core.node import Tensor, rebuild, topological, with_inputs
from ...core.sizes import same_shape
from ...core.stated import Condition, Formula, Sentence, Stated
from ...errors import SymattnError
from ...ops.domain import is_total
from ...ops.index import NEW, index, index_op, joined
from ...ops.leaves import computed, definition, let_op, scalar_value
from ...printing.matrix import text_printer
from ...printing.stated import stated_in
from ...recurrence.body import loop_of
from ..argument import Argument, Given
from ..claims import Claim
from ..definedness import conditions, put_back
from ..equality.decide import compare
from ..fitting import misfits
from ..refute.refuter import Search
from .closed_forms import ClosedForm, Meaning, free_values, uncancelled, uncancelled_steps
from .images import Image
from .prefixes import NoInductionError, at_length, part_of, sequences_in

_SECONDS = 1.0  # to look for values at the first step, and to hold conditions against each other
_PARTS = 4  # of that, for one pair of conditions
Nodes = dict[Tensor, Tensor]


def step_conditions(form: ClosedForm | Image, proofs: Sequence[Argument]) -> tuple[str, ...]:
    """The conditions of all parts of an induction: of its steps, and of closed forms of first parts of sequences."""
    n, T = (form.lengths[0], loop_of(form.source).length) if isinstance(form, Image) else (form.before, form.steps)
    earlier, parts, found = Given((), (n < T,), ()), () if isinstance(form, Image) else _first_parts(form), []
    for part, proof in zip(form.obligations(), proofs, strict=True):
        sides, divisors = (_put(several, parts) for several in (part.claim.sides, proof.divisors))
        found += _in_the_claim(form, conditions(sides, earlier, divisors), form.meanings(part))
    for part, values in () if isinstance(form, Image) else free_values(form):
        several = _put(values, parts)
        found += _in_the_claim(form, conditions(several, earlier, finite=several), form.meanings(part))
    for part, values in () if isinstance(form, Image) else uncancelled_steps(form):
        several = _put(values, parts)
        found += _in_the_claim(form, _of_numbers(several, earlier), form.meanings(part))
    for part, proof in zip(form.obligations(), proofs, strict=True):
        found += _in_the_claim(form, proof.side_conditions, form.meanings(part), parts)
    return _without_weaker(_for_all(found, n, T, _roots(form)))


def claim_conditions(form: ClosedForm | Image, claim: Claim) -> tuple[str, ...]:
    """What the claim divides by, where that is a number of steps in the end, with which SymPy cancels."""
    put = {x: uncancelled(value) for x, value in form.put(claim.sides).items()}
    if not any(x.op is let_op for x in put.values()):
        return ()
    return _of_numbers(rebuild(claim.sides, put), Given((), (), ()))


def _of_numbers(sides: Sequence[Tensor], given: Given) -> tuple[str, ...]:
    """The conditions of sides that hold numbers under names, said of the numbers."""
    numbers = {x: definition(x) for x in computed(sides) if scalar_value(definition(x)) is not None}
    return tuple(put_back(c, [], numbers, {}) for c in conditions(sides, given))


def _roots(form: ClosedForm | Image) -> list[Tensor]:
    return form.roots if isinstance(form, ClosedForm) else [form.value, form.source]


def _in_the_claim(
    form: ClosedForm | Image, said: Sequence[str], meanings: Iterable[Meaning], parts: Sequence[Nodes] = ()
) -> list[str]:
    """Conditions on what a part of an induction speaks of, as conditions on values of the loop."""
    roots, found = _roots(form), []
    for sizes, tensors in meanings:
        these = [put_back(c, roots, {}, sizes) for c in said]
        for nodes in (*parts, tensors):
            these = [put_back(c, roots, nodes, {}) for c in these]
        found += these
    return found


def check_meaning(form: ClosedForm, given: Given) -> None:
    """That the parts of an induction have values, for any number of steps. Raises NoInductionError."""
    known = computed([form.source, *form.roots])
    for part in form.obligations():
        if found := next(misfits(computed(part.claim.sides), known, form.steps), None):
            raise NoInductionError(f"{part.said}, there is no meaning unless {found}: {part.claim}")
        if part.part == "first" and not all(map(is_total, part.claim.sides)):
            if Search(part.claim, given).example(Budget(_SECONDS)) is None:
                raise NoInductionError(f"{part.said}, no values were found for {part.claim}")


def _first_parts(form: ClosedForm) -> tuple[Nodes, Nodes]:
    """What stands for the sequences of a part of an induction, as first parts of those of the claim."""
    n, T = form.before, form.steps
    leaves = sequences_in(form.roots, T)
    back = form.back
    new = {at_length(x, T, length): part_of(x, T, T, length, back) for x in leaves for length in (1, n + 1)}
    return new | {part_of(x, T, n + 1, n, back): part_of(x, T, T, n, back) for x in leaves}, form.actual


def _put(several: Sequence[Tensor], parts: Sequence[Nodes]) -> list[Tensor]:
    for nodes in parts:
        several = rebuild(several, nodes)
    return _joined(several)


def _joined(roots: Sequence[Tensor]) -> list[Tensor]:
    """The same with parts of parts as one part: all places that they read are there, since n is less than T."""
    new: dict[Tensor, Tensor] = {}
    for node in topological(roots):
        new[node] = joined(with_inputs(node, new))
    return [new[root] for root in roots]


def _for_all(found: Sequence[str], n: sympy.Symbol, T: sympy.Symbol, roots: Sequence[Tensor]) -> Iterator[str]:
    """Each condition once: one of n + 1 places is that of n places, a step later; one of the first place as well."""
    said = {_key(c.formula, {}): c for c in found if isinstance(c, Stated) and isinstance(c.formula, Condition)}
    yield from (_ranged(c, n, T - 1) for c in found if c not in said.values())
    later = {_key(c.formula, {n: n + 1}): key for key, c in said.items()}
    first = {_key(c.formula, {n: sympy.Integer(1)}): key for key, c in said.items()}
    to_the_end = {other for key, other in later.items() if key in said and key != other}
    listed = {}
    for key, c in said.items():
        if later.get(key, key) != key or (first.get(key, key) != key and first[key] in to_the_end):
            continue
        listed[c] = T if key in to_the_end else T - 1
    time = Budget(_SECONDS)
    for c in [c for c, last in listed.items() if last != T and _is_said_by(c, listed, n, T, time)]:
        del listed[c]
    for c, last in listed.items():
        whole = _of_all_places(c, listed, n, T)
        yield _ranged(c, n, last) if whole is None else stated_in(text_printer([*roots, *whole.tensors]), whole)


def _is_said_by(c: Stated, listed: Mapping[Stated, Any], n: sympy.Symbol, T: sympy.Symbol, time: Budget) -> bool:
    """Whether a condition is another one, which is for all 1 <= n <= T: a step later, or at the first step."""
    for other, last in listed.items():
        if last == T and (c.formula.relation, c.formula.right) == (other.formula.relation, other.formula.right):
            x, y = c.formula.left, other.formula.left
            if not isinstance(x, Tensor) or not isinstance(y, Tensor):
                continue
            later = at_length(y, n, n + 1 if n in x.free_symbols else 1)
            try:
                if any(compare(*pair, (), time.part(1 / _PARTS)).equal for pair in _ways(c, x, y, later)):
                    return True
            except (OutOfBudget, SymattnError):
                continue
    return False


def _ways(c: Stated, x: Tensor, y: Tensor, later: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs that are equal only if one tensor has an entry 0 where the other one has, or is as large."""
    if same_shape(x.shape, later.shape):
        yield x, later
        if c.formula.relation == "!=" and c.formula.right == 0 and same_shape(x.shape, y.shape):
            yield x * y, later
    elif same_shape(x.shape, later.shape[1:]):
        yield from ((x, later[at]) for at in (-1, 0))


def not_said_for_all(own: Sequence[str], listed: Sequence[str]) -> list[str]:
    """The conditions of a claim but for those that a condition for every n is at the last one."""
    at_the_end = set()
    for said in listed:
        match said.parts if isinstance(said, Sentence) else ():
            case (Stated(formula=Condition() as formula), " for ", _, " <= ", sympy.Symbol() as n, " <= ", last):
                at_the_end.add(_key(formula, {n: last}))
    return [c for c in own if not (isinstance(c, Stated) and _key_of(c) in at_the_end)]


def _without_weaker(found: Iterable[str]) -> tuple[str, ...]:
    """Each condition once, and none that something is not 0 that is positive by another."""
    listed = {_parted(c): c for c in found}
    return tuple(c for (x, sign, *rest), c in listed.items() if sign != "!=" or (x, ">", *rest) not in listed)


def _parted(c: str) -> tuple[Any, ...]:
    """What a condition is about, its sign, and the rest of it."""
    first, *others = c.parts if isinstance(c, Sentence) else (c,)
    if not isinstance(first, Stated) or not isinstance(first.formula, Condition):
        return c, ""
    left, sign, *rest = _key(first.formula, {})
    return (left, *rest), sign, *others


def _key_of(c: Stated) -> Any:
    return _key(c.formula, {}) if isinstance(c.formula, Condition) else None


def _ranged(c: str, n: sympy.Symbol, last: sympy.Expr) -> str:
    """A condition, for which n if it speaks of n."""
    return Sentence(c, " for ", sympy.Symbol("1"), " <= ", n, " <= ", last) if n in _symbols(c) else c


def _of_all_places(c: Stated, listed: Mapping[Stated, Any], n: sympy.Symbol, T: sympy.Symbol) -> Condition | None:
    """The condition on all places of a sequence, where those that are listed on its parts come to that."""
    here = _part(c.formula, T)
    if here is None:
        return None
    whole, _ = here
    found = [(part, last) for other, last in listed.items() if (part := _part(other.formula, T)) is not None]
    parts = [(item, last) for (other, item), last in found if other == whole]
    places = {item[:2] for item, _ in parts if item[0] == "at"}
    first = any(item == ("slice", 0, 1, n) and last == T for item, last in parts)
    each = {("at", 0), ("at", n)} <= places or any(item == ("at", n - 1) and last == T for item, last in parts)
    return Condition(whole[0], *whole[1:]) if first or each else None


def _part(condition: Condition, T: sympy.Symbol) -> tuple[tuple[Any, ...], Any] | None:
    """The condition on a whole sequence, and which part of it one is about, by the item of its index."""
    x = condition.left
    if not isinstance(x, Tensor) or x.op is not index_op:
        return None
    base, items = x.inputs[0], x.params["items"]
    if NEW in items or len(items) < base.rank or base.shape[0] != T:
        return None
    whole = index(base, (("slice", sympy.S.Zero, 1, T), *items[1:]))
    item = items[0][:2] if items[0][0] == "at" else items[0]
    return (whole, condition.relation, condition.right), item


def _key(condition: Condition, symbols: dict[Any, Any]) -> tuple[Any, ...]:
    """What a condition says, with values for symbols, but for what its tensors are called."""
    left = condition.left
    if isinstance(left, Formula):
        left = left.expression.xreplace({s: sympy.Symbol(f"x{k}") for k, (s, _) in enumerate(left.tensors)})
    elif isinstance(left, Tensor):
        left = None
    return left, condition.relation, condition.right, *rebuild(condition.tensors, {}, symbols)


def _symbols(c: Any) -> set[sympy.Symbol]:
    """The sizes that a condition or a sentence speaks of."""
    if isinstance(c, Sentence):
        return {s for part in c.parts for s in _symbols(part)}
    if isinstance(c, Stated) and isinstance(c.formula, Condition):
        return {s for x in c.formula.tensors for s in x.free_symbols}
    return set(c.free_symbols) if isinstance(c, sympy.Expr) else set()
