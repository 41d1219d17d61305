"""The engine: a claim is refuted, or proved by the first of several ways that reaches it, or stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from sympy.polys.polyerrors import BasePolynomialError

from ..core.arguments import each_of, seeded
from ..core.budget import Budget, OutOfBudget
from ..core.node import Tensor
from ..errors import OperandError, ShapeError, SymattnError, described
from ..normal_form.lowering import Unreached
from ..ops.leaves import as_tensor, computed
from ..recurrence.record import scan_op
from .argument import Argument, Given
from .bounds.prove import bound_proof
from .claims import Claim, Independence, eq
from .completion.consequences import consequence, no_matrices
from .completion.unfolded import unfolded
from .dependence.prove import dependence_proof
from .equality.entrywise import EntrywiseProof, Residual, entrywise_proof
from .equality.rewriting import rewrite
from .far_reads import Apart, apart
from .generalised import Generalised, generalised
from .given import applied, contradiction, in_one_size, sorted_out, stated_in
from .induction.plan import Induction, plans
from .induction.prefixes import NoInductionError
from .induction.prove import inductive_proof
from .refute.counterexample import Agreement, Counterexample
from .refute.enumeration import enumerated
from .refute.refuter import Search
from .relations import is_relation
from .settled import settled
from .size_cases import by_cases
from .slack import by_slacks
from .verdict import Proof, Proved, Refuted, Unknown, Verdict
from .witness import witness

Found = TypeVar("Found")
# What parts of the engine raise at a claim that they cannot treat: that is an answer, not a mistake in the question.
PROBLEMS = (SymattnError, ArithmeticError, ValueError, NotImplementedError, RecursionError, BasePolynomialError)


def prove(
    left: Any, right: Any = None, given: Sequence[Any] = (), *, by: Any = None, budget: float = 10.0, seed: int = 0
) -> Verdict:
    """Whether a claim is true for all sizes and all values: proved, refuted, or unknown.

    ``prove(a, b)`` asks whether two tensors are equal, entry by entry; ``prove(claim)`` takes a claim made by ``eq``,
    ``le``, ``lt`` or ``independent``. ``given`` holds more hypotheses: claims, relations between sizes such as
    ``sympy.Eq(T, S)``, and tensors declared again with properties. The answer is ``Proved`` with a proof, ``Refuted``
    with a counterexample, or ``Unknown``; only ``Proved`` is true. ``budget`` is in seconds that this thread works;
    when they are over the answer is ``Unknown``. The same ``seed`` gives the same answer. A claim about a recurrence is
    proved for every number of steps, by induction: ``by`` is its invariant, ``sa.induction(...)``, or several, one for
    each recurrence, those that others run through first. Without it the claim itself is tried, the image of one
    recurrence, sums of what the steps read, which may decay, and for outputs ``q @ S`` what these are for unit queries.
    Raises ShapeError where the shapes differ and OperandError for what is no claim.

    >>> import symattn as sa
    >>> X, Pi = sa.tensor("X", "n d"), sa.tensor("Pi", "n n", permutation=True)
    >>> sa.prove(sa.softmax(Pi @ X), Pi @ sa.softmax(X))
    <proved: softmax(Pi @ X) = Pi @ softmax(X)>
    >>> print(sa.prove(sa.softmax(2 * X), sa.softmax(X)).status)
    refuted
    """
    time, seed = Budget(budget), seeded("prove", seed)
    hypotheses, asked = sorted_out(_claim(left, right, given), given)
    if invariants := plans(by):
        return _answered(hypotheses, asked, time, seed, invariants)
    near = None if hypotheses.stated else apart(asked)
    if near is None:
        return _answered(hypotheses, asked, time, seed)
    found = _answered(hypotheses, near.claim, time, seed)
    if isinstance(found, Proved):
        proof = Proof(asked, (), Apart(found.found.argument, near.reads))
        tried = Agreement(0, 0, 0, (), "what is read lies too far away to be tried")
        return _proved(proof, hypotheses, tried, seed, time)
    if isinstance(found, Refuted):
        return Refuted(asked, replace(found.found, sizes={**found.found.sizes, **near.sizes}))
    return replace(found, claim=asked)


def _answered(
    hypotheses: Given, asked: Claim | Independence, time: Budget, seed: int, by: Sequence[Induction] = ()
) -> Verdict:
    """The verdict on a claim as it stands."""
    put = applied(hypotheses, asked)
    if isinstance(asked, Claim) and not (by or hypotheses.stated):
        if (proof := _for_all_sizes(asked, hypotheses, time)) is not None:
            return Proved(asked, proof)
    trials = _Trials(asked, hypotheses, seed)
    found = trials.run(time.part(0.3), few=True)
    if isinstance(found, Counterexample):
        return Refuted(asked, found, given=hypotheses.stated)
    if not found.points and (false := _attempted(_contradiction, put[0].claims, time.part(0.2))):
        raise OperandError(f"what is given contradicts itself: {false}")
    try:
        argument = argued(*put, time.part(0.7), by)
    except OutOfBudget as problem:
        argument = Missing(f"{problem} before a proof was found")
    except PROBLEMS as problem:
        argument = Missing(f"no proof was found: {problem}")
    if isinstance(argument, Argument):
        return _proved(Proof(asked, hypotheses.stated, argument), hypotheses, found, seed, time)
    found = trials.run(time)
    if isinstance(found, Counterexample):
        return Refuted(asked, found, given=hypotheses.stated)
    return Unknown(asked, argument.reason, argument.left_over, found, given=hypotheses.stated)


def _for_all_sizes(asked: Claim, hypotheses: Given, time: Budget) -> Proof | None:
    """A proof of a claim at large literal sizes that holds for all sizes in their place, without conditions."""
    wider = generalised(asked)
    if wider is None:
        return None
    argument = _attempted(_argued, hypotheses, wider[0], time.part(0.3))
    proof = Proof(asked, (), Generalised(argument, *wider)) if isinstance(argument, Argument) else None
    return None if proof is None or proof.side_conditions else proof


def _attempted(part: Callable[..., Found], *question: Any) -> Found | None:
    """What a part of the engine finds; None where its time is used up, or where it cannot treat the question."""
    try:
        return part(*question)
    except (OutOfBudget, *PROBLEMS):
        return None


def _contradiction(claims: Sequence[Claim], time: Budget) -> str:
    """What is false of the claims that are given, if it is seen that something is."""
    if false := contradiction(claims, time.part(0.5)):
        return false
    stated = " and ".join(str(g) for g in claims if g.relation == "=")
    return f"from {stated} follows 1 = 0" if stated and no_matrices(claims, time) else ""


def _proved(proof: Proof, given: Given, tried: Agreement, seed: int, time: Budget) -> Verdict:
    """The proof with a point that it speaks of, unless there may be none under conditions that nobody gave."""
    if tried.point is not None or given.stated or proof.side_conditions:
        proof = replace(proof, witness=_attempted(witness, proof.claim, given, tried, seed, time))
    if proof.witness is None and proof.side_conditions:
        reason = f"no point was found where both sides are defined: {'; '.join(proof.side_conditions)}"
        return Unknown(proof.claim, reason, agreement=tried, given=proof.given)
    return Proved(proof.claim, proof, given=proof.given)


def _claim(left: Any, right: Any, given: Sequence[Any]) -> Claim | Independence:
    if isinstance(left, (Claim, Independence)):
        if right is not None:
            raise OperandError("prove takes one claim, or two tensors: give hypotheses by given=[...]")
        return left
    if right is None:
        raise OperandError(f"prove takes two tensors, or a claim such as sa.eq(a, b), not {described(left)} alone")
    try:
        return eq(left, right)
    except ShapeError:
        relations = [g for g in each_of(given) if is_relation(g)]
        if not relations:
            raise
        return eq(*in_one_size([as_tensor(left), as_tensor(right)], relations))


class _Trials:
    """The search for a counterexample: a few points before a proof is looked for, the others if none was found."""

    def __init__(self, claim: Claim | Independence, given: Given, seed: int) -> None:
        self.question = (claim, given, seed)
        self.search: Search | None = None

    def run(self, time: Budget, few: bool = False) -> Counterexample | Agreement:
        try:
            self.search = self.search or Search(*self.question)
            return self.search.run(time, few)
        except PROBLEMS as problem:
            return Agreement(0, 0, 0, (), str(problem))


@dataclass(frozen=True)
class Missing:
    """Why no proof was found, and what is left of the difference of two sides."""

    reason: str
    left_over: Residual | None = None


def argued(given: Given, claim: Claim | Independence, time: Budget, by: Sequence[Induction] = ()) -> Argument | Missing:
    """A proof of a claim by any of the ways there are, or what is missing. Raises OutOfBudget and PROBLEMS."""
    found = Missing("") if by else _argued(given, claim, time)
    if isinstance(found, Argument) or not isinstance(claim, Claim):
        return found
    if by or any(x.op is scan_op for x in computed(claim.sides)):
        found = _inductive(given, claim, time, by, found)
    if isinstance(found, Missing):
        decided = partial(_decided, time)
        return (
            consequence(claim, given, time, decided)
            or enumerated(claim, time)
            or by_cases(claim, given, decided)
            or settled(claim, given, time, decided)
            or unfolded(claim, given, time, decided)
            or by_slacks(claim, given, decided)
            or found
        )
    return found


def _inductive(
    given: Given, claim: Claim, time: Budget, by: Sequence[Induction], missing: Missing
) -> Argument | Missing:
    """A proof by induction, or which claim of it is missing."""

    def found(given: Given, claim: Claim) -> Argument | None:
        argument = _argued(given, claim, time)
        return argument if isinstance(argument, Argument) else None

    try:
        return inductive_proof(claim, given, by, found)
    except NoInductionError as problem:
        false = problem.claim is not None and isinstance(
            _Trials(problem.claim, given, 0).run(time.part(0.2), few=True), Counterexample
        )
        return replace(missing, reason=f"{problem}{', which is false' if false else ''}")


def _argued(given: Given, claim: Claim | Independence, time: Budget) -> Argument | Missing:
    """A proof, by the way that fits the kind of claim."""
    if (stated := stated_in(given, claim)) is not None:
        return stated
    if isinstance(claim, Independence):
        return dependence_proof(claim, time) or Missing("the entries may depend on one another, as far as was seen")
    if claim.relation != "=":
        found = bound_proof(claim, given.claims, time, given.relations)
        return found or Missing("the inequality does not follow from the signs and bounds of its parts")
    return _equal(claim.left, claim.right, given, time)


def _decided(time: Budget, given: Given, claim: Claim) -> Argument | None:
    """A proof at sizes that a relation leaves."""
    found = _argued(given, claim, time)
    return found if isinstance(found, Argument) else enumerated(claim, time)


def _equal(left: Tensor, right: Tensor, given: Given, time: Budget) -> Argument | Missing:
    """A proof by rewriting, which people read, where a number of lemmas is enough; else the normal form decides."""
    if (readable := _attempted(rewrite, left, right, time.part(0.6), given.claims)) is not None:
        return readable
    time.check()
    try:
        found = entrywise_proof(left, right, given.claims, time)
    except Unreached as problem:
        return Missing(f"the normal form was not reached: {problem}")
    if isinstance(found, EntrywiseProof):
        return found
    roots = (left, right, *(x for fact in given.claims for x in fact.sides))
    return Missing("the two sides have different normal forms", Residual(found, roots))
