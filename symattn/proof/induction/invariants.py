"""What holds after every step since it holds after the first one and passes from each step to the next.

The claim is its own hypothesis: a bound on states, or a quantity of theirs that does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any, NamedTuple

import sympy

from ...core.exact import INDICES
from ...core.naming import new_name
from ...core.node import Tensor, rebuild
from ...core.sizes import sizes
from ...errors import SymattnError
from ...ops.broadcasting import broadcast_to, broadcast_to_op
from ...ops.leaves import bare, computed, from_index, from_index_op, variable
from ...printing.matrix import latex_printer, names_in
from ...printing.prose import Chain, Fold, Paragraph, Part, Step
from ...printing.table import SymbolTable
from ...recurrence.body import loop_key, loop_of
from ...recurrence.record import scan_op
from ..argument import Argument, Given, Resting
from ..claims import RELATIONS, Claim, Independence
from ..definedness import conditions
from ..generalised import any_tensor
from ..given import replaced
from .prefixes import at_length, place

Argued = Callable[[Given, Claim], Argument | None]


class _Passed(NamedTuple):
    """One claim of the induction, under what is given there, and what it is about."""

    said: str
    claim: Claim
    given: Given
    before: Sequence[Claim] = ()  # what is supposed


@dataclass(frozen=True, eq=False)
class ByInvariant(Resting):
    """The proofs that a claim on states holds after the first step, and after one more if it holds after some."""

    claim: Claim
    proofs: tuple[Argument, ...]

    @property
    def parts(self) -> tuple[Argument, ...]:
        return self.proofs

    @property
    def for_people(self) -> bool:
        return True

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        if claim != self.claim or (passed := _passed(self.claim, given)) is None:
            return False
        return len(passed) == len(self.proofs) and all(map(_is_proved, self.proofs, passed))

    def text(self) -> str:
        lines = ["By induction on the number of steps: it holds after the first one, and passes on."]
        for part, proof in zip(_passed(self.claim, _NOTHING) or (), self.proofs, strict=True):
            supposed = "".join(f", if {fact}" for fact in part.before)
            lines += [f"{part.said}{supposed}: {part.claim}", *(f"  {line}" for line in proof.text().split("\n"))]
        return "\n".join(lines)

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        passed = _passed(self.claim, _NOTHING) or ()
        shown, details = list[Part](), list[Part]()
        for part, proof in zip(passed, self.proofs, strict=True):
            for said, claim in (*(("If", fact) for fact in part.before), (f"{part.said},", part.claim)):
                printer = latex_printer(claim.sides, within=within)
                left, right = map(printer.box, claim.sides)
                shown += [Paragraph((said,)), Chain((Step(left, right, relation=RELATIONS[claim.relation]),))]
            details += [Paragraph((f"{part.said}.",)), *proof.told(within)]
        begin = Paragraph(("By induction on the number of steps.",))
        return begin, *shown, Fold(("Why each line holds",), tuple(details), for_machines=True)


_NOTHING = Given((), (), ())
_LETTERS = "suvpqrw"  # of the states before a step: two of one letter would be numbered, as states after steps are


def by_invariant(claim: Claim, given: Given, argued: Argued) -> ByInvariant | None:
    """A proof of a claim on states by itself, one step earlier."""
    proofs = []
    for part in _passed(claim, given) or ():
        proof = argued(part.given, part.claim)
        if proof is None or not _is_proved(proof, part):
            return None
        proofs.append(proof)
    return ByInvariant(claim, tuple(proofs)) if proofs else None


def _is_proved(proof: Argument, part: _Passed) -> bool:
    """Whether a part is proved, without any condition."""
    plain = not (proof.side_conditions or proof.divisors or conditions(part.claim.sides, part.given))
    return plain and proof.proves(part.claim, part.given)


def _passed(claim: Claim, given: Given) -> list[_Passed] | None:
    """What has to be proved; None where the claim speaks of anything else that depends on the number of steps."""
    values = [x for x in computed(claim.sides) if x.op is scan_op]
    lengths = {loop_of(x).length for x in values}
    if len(lengths) != 1 or not all(x.params["body"].is_total for x in values):
        return None
    (T,) = lengths
    taken = names_in(claim.sides) | given.names
    n, m = sizes(new_name("n", taken)), sizes(new_name("m", taken))
    any_values = {x: any_tensor(new_name("r", taken), _made(x)) for x in values}
    try:
        about = _at_a_step(claim, any_values, n)
        if about is None or not T.is_Symbol or {T, n} & {s for x in about.sides for s in x.free_symbols}:
            return None
        letters = chain(_LETTERS, repeat("s"))
        loops = {loop_key(x): loop_of(x).step.states for x in values}
        states = {key: [any_tensor(new_name(next(letters), taken), s) for s in loops[key]] for key in loops}
        before = {any_values[x]: s for x in values if (s := _before(x, states[loop_key(x)])) is not None}
        known = [replaced(about, before)] if len(before) == len(values) else []
        symmetric = {s: _declared(s) for fact in known for s in fact.sides if _says_symmetric(fact, s)}
        first = {any_values[x]: _run(x, loop_of(x).first, 0, m) for x in values}
        later = {any_values[x]: _run(x, states[loop_key(x)], n, n + m) for x in values}
        return [
            _Passed("After the first step", replaced(about, first), _of_length(given, T, m)),
            _Passed(
                "after one more step",
                replaced(replaced(about, later), symmetric),
                _of_length(given, T, n + m, [] if symmetric else known),
                known,
            ),
        ]
    except SymattnError:
        return None


def _at_a_step(claim: Claim, any_values: Mapping[Tensor, Tensor], n: sympy.Symbol) -> Claim | None:
    """The claim on what values are after some steps; of outputs, that on a row of both sides."""
    if all(x.params["take"][0] == "final" for x in any_values):
        return replaced(claim, {**any_values})
    sides = []
    for x in map(bare, claim.sides):
        if x not in any_values and any(y in any_values for y in computed([x])):
            return None
        sides.append(any_values[x] if x in any_values else _row(x, n))
    return Claim(sides[0], claim.relation, sides[1])


def _says_symmetric(fact: Claim, s: Tensor) -> bool:
    """Whether a claim is that a tensor is its own transpose."""
    return fact.relation == "=" and s.op is variable and s.rank == 2 and {*fact.sides} == {s, s.T}


def _declared(s: Tensor) -> Tensor:
    """The tensor, declared to be symmetric."""
    return variable(name=s.name, shape=s.shape, hypotheses=(*s.params["hypotheses"], "symmetric"))


def _row(x: Tensor, n: sympy.Symbol) -> Tensor:
    """A row, without its place where all rows are one."""
    if x.op is from_index_op and not x.params["formula"].free_symbols & {*INDICES}:
        return from_index(x.shape[1:], lambda *_: x.params["formula"])
    if x.op is broadcast_to_op and x.inputs[0].rank < x.rank:
        return broadcast_to(x.inputs[0], x.shape[1:])
    return place(x, n)


def _made(x: Tensor) -> Tensor:
    """What a step gives for a value of its loop."""
    step, (what, k) = loop_of(x).step, x.params["take"]
    return (step.after if what == "final" else step.outputs)[k]


def _before(x: Tensor, states: Sequence[Tensor]) -> Tensor | None:
    """Which of the states before a step a value is of, if it is that of a state."""
    after = loop_of(x).step.after
    return states[after.index(_made(x))] if _made(x) in after else None


def _run(x: Tensor, states: Sequence[Tensor], at: Any, length: Any) -> Tensor:
    """What a step gives for a value from some states, at a place of sequences of a length."""
    T = loop_of(x).length
    loop = loop_of(at_length(x, T, length))
    first = [at_length(s, T, length) for s in states]
    leaves = [*first, *(place(y, at) for y in loop.sequences), *loop.given]
    return rebuild([_made(x)], dict(zip(loop_of(x).step.leaves, leaves, strict=True)))[0]


def _of_length(given: Given, T: sympy.Symbol, length: Any, known: Sequence[Claim] = ()) -> Given:
    """What is given, with the number of steps called another way, and more."""
    facts = (replaced(fact, {T: length}) for fact in given.claims)
    relations = (r.xreplace({T: length}) for r in given.relations)
    return replace(given, claims=(*facts, *known), relations=tuple(r for r in relations if r != sympy.true))
