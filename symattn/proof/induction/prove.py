"""The search for a proof by induction: which closed forms are proved, in which order, and what is left then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...core.node import Tensor
from ...core.sizes import same_shape
from ...ops.index import index_op
from ...ops.leaves import bare, computed
from ...printing.matrix import names_in
from ...recurrence.body import loop_of
from ...recurrence.record import scan_op
from ...recurrence.scans import is_value_of
from ..argument import Argument, Given
from ..claims import Claim
from ..generalised import Generalised
from .argument import ByInduction, inherited, is_plain, put_in
from .closed_forms import ClosedForm, Obligation, closed_form, in_steps, runs_back
from .conditions import check_meaning
from .guesses import guessed, queried
from .images import Image
from .invariants import by_invariant
from .inverses import by_blocks
from .lengths import Wider, forms_of, in_blocks, of_any_length
from .likeness import images
from .plan import Induction
from .polynomials import of_positives
from .prefixes import NoInductionError
from .steps import with_steps_made

Argued = Callable[[Given, Claim], Argument | None]


@dataclass
class Prover:
    """A proof of claims about recurrences, by what proves claims without them."""

    argued: Argued
    given: Given
    plans: list[Induction]  # that are still to be used, inputs first
    opaque: tuple[Tensor, ...] = ()  # values of loops that are not looked into any more

    def proved(self, claim: Claim) -> Argument:
        """A proof. Raises NoInductionError where there is none."""
        node = self._next(claim)
        if node is None:
            self._check_used()
            found = _argued(claim, self.given, partial(self.argued, self.given))
            if found is None:
                raise NoInductionError("the claim does not follow from the closed forms")
            return found
        if (found := self._of_a_wider_claim(claim, node)) is not None:
            return found
        if not self.plans and (found := self._by_image(claim)) is not None:
            return found
        if not self.plans and (kept := by_invariant(claim, self.given, self.argued)) is not None:
            return kept
        names = frozenset(names_in(claim.sides) | self.given.names)
        if self.plans:
            plan = self.plans.pop(0)
            form = closed_form(node, plan, names)
            return self._by(claim, form, plan.inner, form.before)
        form = closed_form(node, _of_the_claim(node, claim), names)
        try:
            return self._by(claim, form, (), form.before)
        except NoInductionError as problem:
            if problem.claim is None:
                raise
            raise NoInductionError(_tried(form, problem)) from None

    def _by_image(self, claim: Claim) -> Argument | None:
        """A proof by one recurrence as the image of another."""
        known: dict[tuple[Claim, Given], Argument | None] = {}
        for image in images(claim, self.given, partial(self._follows, known)):
            try:
                return self._by(claim, image)
            except NoInductionError:
                continue
        return None

    def _follows(self, known: dict[tuple[Claim, Given], Argument | None], image: Image, part: Obligation) -> bool:
        """Whether a part of an image is proved."""
        given = inherited(self.given, image)
        question = part.claim, given
        if question not in known:
            known[question] = _argued(*question, partial(self.argued, given))
        return known[question] is not None

    def _of_a_wider_claim(self, claim: Claim, node: Tensor) -> Argument | None:
        """A proof of a claim that says more, where an induction asks for one."""
        roots = [*claim.sides, *forms_of(self.plans)]
        blocks = in_blocks(roots, self.given)
        ways = of_any_length(roots, node, self.given) if blocks is None else iter((blocks,))
        problems = list[NoInductionError]()
        for wider in ways:
            try:
                return self._generalised(claim, wider)
            except NoInductionError as problem:
                problems.append(problem)
        if problems:
            raise problems[0]
        return None

    def _generalised(self, claim: Claim, wider: Wider) -> Argument:
        plans, opaque = list(map(wider.plan, self.plans)), tuple(wider.put(self.opaque))
        more = wider.claim(claim)
        proof = replace(self, plans=plans, opaque=opaque).proved(more)
        return Generalised(proof, more, wider.sizes_back, wider.nodes_back)

    def _by(
        self, claim: Claim, form: ClosedForm | Image, inner: Sequence[Induction] = (), before: Any = None
    ) -> Argument:
        """A proof by what a recurrence comes to, which has to be proved for every number of steps."""
        given = inherited(self.given, form)
        try:
            proofs = tuple(self._obliged(part, given, inner, before) for part in form.obligations())
        except NoInductionError as problem:
            facts = (*self.given.claims, *self.given.relations)
            left_out = [str(fact) for fact in facts if fact not in (*given.claims, *given.relations)]
            why = f"{problem}; {', '.join(left_out)} is given for one number of steps, not for all"
            raise NoInductionError(why if left_out else str(problem), problem.claim) from None
        if isinstance(form, ClosedForm):
            check_meaning(form, given)
        then = put_in(form, claim)
        if is_plain(then):
            self._check_used()
            return ByInduction(form, proofs, None, claim)
        source = [x for x in computed(then.sides) if isinstance(form, Image) and is_value_of(form.source, x)]
        return ByInduction(form, proofs, replace(self, opaque=(*self.opaque, *source)).proved(then), claim)

    def _check_used(self) -> None:
        """That nothing is given for a recurrence that the claim does not have."""
        if self.plans:
            count = f"{len(self.plans)} of them" if len(self.plans) > 1 else "one of them"
            raise NoInductionError(f"no recurrence is left for the last inductions that are given, {count}")

    def _next(self, claim: Claim) -> Tensor | None:
        """The first recurrence that is not done with; its inputs hold none."""
        return next((x for x in computed(claim.sides) if x.op is scan_op and x not in self.opaque), None)

    def _obliged(self, part: Obligation, given: Given, inner: Sequence[Induction], before: Any) -> Argument:
        """The proof of one claim of an induction."""
        argued = partial(self.argued, given)
        found: Argument | None = None if before is None else by_blocks(part.claim, before, given, argued)
        if found is None:
            found = _argued(part.claim, given, argued)
        if found is None and any(x.op is scan_op for x in computed(part.claim.sides)):
            found = Prover(self.argued, given, list(inner)).proved(part.claim)
        if found is None:
            raise NoInductionError(f"the closed form does not follow: {part.said}: {part.claim}", part.claim)
        return found


def _argued(claim: Claim, given: Given, argued: Callable[[Claim], Argument | None]) -> Argument | None:
    """A proof of a claim without recurrences."""
    return argued(claim) or of_positives(claim, given, argued)


def _of_the_claim(node: Tensor, claim: Claim) -> Induction:
    """The claim as its own invariant, where one side is the last state, or all states, of a loop with one.

    Both sides may be the same function of that. What states come to is guessed where one side is an output, and where
    the claim asks for nothing else.
    """
    loop = loop_of(node)
    step, back = loop.step, runs_back(loop)
    in_order = loop._replace(sequences=tuple(in_steps(x, back) for x in loop.sequences))
    found = guessed(in_order, back)
    for left, right in (claim.sides, claim.sides[::-1]) if claim.relation == "=" else ():
        value, form = _where_they_part(left, right)
        if back and value.rank and form.rank and value.op is index_op and is_value_of(node, in_steps(value, True)):
            value, form = in_steps(value, True), in_steps(form, True)
        if is_value_of(node, value) and same_shape(value.shape, form.shape):
            what, k = value.params["take"]
            if what == "final" and len(step.states) == 1:
                return Induction((form,))
            if what == "output" and len(step.states) == 1 and step.outputs[k] is step.after[0]:
                return Induction((form[-1],), (*(None,) * k, in_steps(form, back)))
            if what == "output":
                given = in_steps(form, back)
                state = queried(in_order, k, given, back) if found is None else None
                if found is not None or state is not None:
                    return Induction(found or (state,), (*(None,) * k, given))
    asked = {x.params["take"][0] for x in computed(claim.sides) if is_value_of(node, x)}
    if found is not None and asked == {"final"}:
        return Induction(found)
    if claim.relation != "=":
        raise NoInductionError("the bound is not seen to pass from each step to the next")
    raise NoInductionError(
        "an invariant is needed: the closed form of every state, by=sa.induction(final=...), and of the outputs"
    )


def _tried(form: ClosedForm, problem: NoInductionError) -> str:
    """Why a closed form that nobody gave is left, which says nothing of the claim."""
    shown = "; ".join(f"{value} = {x}" for value, x in form.said())
    return (
        f"what the states come to was guessed, {shown}, and is not seen to hold at every step ({problem}): give it, "
        "by=sa.induction(final=...), and the outputs"
    )


def _where_they_part(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Below names, and operations that are the same on both sides and differ in one input, that input of each."""
    left, right = bare(left), bare(right)
    while left.op is right.op and left.op is not scan_op and left.params == right.params:
        pairs = [(a, b) for a, b in zip(left.inputs, right.inputs, strict=False) if a is not b]
        if len(pairs) != 1:
            break
        left, right = map(bare, pairs[0])
    return left, right


def _once_made(argued: Argued, given: Given, claim: Claim) -> Argument | None:
    """A proof of a claim in which steps are made, which may have recurrences still."""
    if (found := argued(given, claim)) is not None:
        return found
    try:
        return Prover(argued, given, []).proved(claim)
    except NoInductionError:
        return None


def inductive_proof(claim: Claim, given: Given, plans: Sequence[Induction], argued: Argued) -> Argument:
    """A proof of a claim about recurrences for every number of steps. Raises NoInductionError where there is none."""
    try:
        found = Prover(argued, given, list(plans)).proved(claim)
    except NoInductionError:
        made = None if plans else next(with_steps_made(claim, given, partial(_once_made, argued)), None)
        if made is None:
            raise
        found = made
    if not found.proves(claim, given):
        raise NoInductionError("what was proved is not seen to be the claim")
    return found
