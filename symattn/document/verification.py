"""Checking the steps of a derivation: each is proved, or at least held against numbers, and the report says which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ..codegen import lambdify
from ..codegen.check import Point, compare, difference_gradient, sample_point
from ..codegen.reference import values
from ..core.budget import Budget, OutOfBudget
from ..core.node import Tensor, topological
from ..errors import EvaluationError, NoRuleError
from ..ops.leaves import computed, cotangent_op, variable, zeros
from ..probability.report import Moments
from ..proof.claims import Claim, Independence, eq, le, lt
from ..proof.definedness import conditions
from ..proof.engine import prove
from ..proof.equality import gradients
from ..proof.induction.plan import Induction
from ..proof.refute.counterexample import Counterexample
from ..proof.verdict import Verdict
from .checks import BY_DEFINITION, COMPUTED, NUMERIC, PROVED, REFUTED, UNPROVED, Check
from .parts import Calculation, Cases, Folded, Line, Statement

_ROUNDING = 1e-13  # in which numbers that are equal differ
_TOLERANCE = 1e-6  # of numeric agreement, relative to the largest entry


class Checker:
    """Checks steps that share tensors; ``roots`` are all their expressions and ``seconds`` the budget of one proof.

    ``given`` are the facts under which steps hold that are the proof of a claim.
    """

    def __init__(self, roots: Sequence[Tensor], seconds: float, given: Sequence[Any] = ()) -> None:
        self._roots, self._seconds, self._given = list(roots), seconds, tuple(given)

    def under(self, given: Sequence[Any]) -> Checker:
        """What checks the steps of a proof under what is given for its claim."""
        return Checker(self._roots, self._seconds, (*self._given, *given)) if given else self

    def related(self, name: str, before: Tensor, relation: str, after: Tensor, by: Sequence[Induction] = ()) -> Check:
        """``before = after``, or another relation. Raises EvaluationError with the point at which it is false."""
        claim = _CLAIMS[relation](before, after)
        verdict = prove(claim, given=self._given, by=by or None, budget=self._seconds)
        if verdict.proof is not None:
            return Check(name, PROVED, verdict.proof.side_conditions)
        if verdict.counterexample is not None:
            raise EvaluationError(f"step {name} is false: {verdict.claim}\n{verdict.counterexample}")
        if self._given:
            raise NoRuleError(f"step {name} is not proved under what is given, where numbers are not drawn")
        tried = []
        with _has_numbers(name):
            for point in self._points:
                claimed, wanted = _values([after, before], point)
                if relation in ("<", ">"):
                    _check_apart(name, claimed, wanted, point)
                claimed = claimed if relation == "=" else _nearest(wanted, relation, claimed)
                tried.append((point, claimed, wanted))
        return _agreement(name, tried)

    def stated(self, name: str, claims: Sequence[Claim]) -> Check:
        """What a sentence says: proved, or else why not. Words around it may say where it holds, so it is not false."""
        verdicts = [prove(claim, budget=self._seconds) for claim in claims]
        if not all(verdicts):
            refuted = any(verdict.counterexample is not None for verdict in verdicts)
            return Check(
                name, UNPROVED, remarks=("it does not hold for all values" if refuted else "no proof is found",)
            )
        proofs = [verdict.proof for verdict in verdicts if verdict.proof is not None]
        return Check(name, PROVED, tuple(dict.fromkeys(said for proof in proofs for said in proof.side_conditions)))

    def gradient(self, name: str, gradient: Tensor) -> Check:
        """A gradient against the derivative of the entries, else against central differences."""
        try:
            proved = gradients.is_proved(gradient, Budget(self._seconds))
        except OutOfBudget:
            proved = False
        if proved:
            return Check(name, PROVED, conditions([gradient]))
        with _has_numbers(name):
            tried = [(point, *_differences(gradient, point)) for point in self._points]
        return _agreement(name, tried)

    def verdict(self, name: str, verdict: Verdict) -> Check:
        """A proof again, without search, or a counterexample in floating point."""
        if verdict.proof is not None:
            if not verdict.proof.check():
                raise EvaluationError(f"the proof of {name} does not hold: {verdict.claim}")
            return Check(name, PROVED, (*verdict.proof.side_conditions, *verdict.proof.assumptions))
        assert verdict.counterexample is not None
        if not _is_confirmed(verdict.claim, verdict.counterexample):
            raise EvaluationError(f"{name} has other values there: {verdict.claim}\n{verdict.counterexample}")
        return Check(name, REFUTED)

    def moments(self, name: str, moments: Moments) -> Check:
        """Mean, variance and all lines once more."""
        if not moments.check():
            raise EvaluationError(f"{name} comes out otherwise when it is done again: {moments!r}")
        return Check(name, COMPUTED)

    @cached_property
    def _points(self) -> list[Point]:
        """Two generic points: distinct sizes, random arrays that have the declared properties."""
        tensors = [x for x in topological(self._roots) if x.op is variable]
        outputs = [x for x in self._roots if not x.holds_minus_infinity]
        return [sample_point(outputs, tensors, seed) for seed in (0, 1)]


_CLAIMS: Mapping[str, Any] = {
    "=": eq,
    "<=": le,
    "<": lt,
    ">=": lambda a, b: le(b, a),
    ">": lambda a, b: lt(b, a),
}
RELATIONS = tuple(_CLAIMS)


# --- a whole derivation ---


def verified(parts: Iterable[Any], checker: Checker, names: Mapping[Tensor, str]) -> Iterator[Any]:
    """The parts with what was done to check them. Raises EvaluationError at the first that is false."""
    chain = _Chain(checker, names)
    for part in parts:
        if isinstance(part, Line):
            yield chain.checked(part)
        elif isinstance(part, Statement):
            held = tuple(said for said in part.holds if isinstance(said, Verdict))
            yield replace(
                part,
                check=checker.verdict(part.name, part.verdict),
                checks_of_holds=tuple(checker.verdict(f"{part.name}, what holds", verdict) for verdict in held),
                proof=tuple(verified(part.proof, checker.under(part.verdict.given), names)),
            )
        elif isinstance(part, Calculation):
            yield replace(part, check=checker.moments(part.name, part.moments))
        elif isinstance(part, Cases):
            cells = [cell for row in part.rows for cell in row if isinstance(cell, Verdict)]
            checks = [checker.verdict(f"case {k}", cell) for k, cell in enumerate(cells, 1)]
            checks += [checker.moments(f"case {k}", moments) for k, moments in enumerate(part.moments, 1)]
            yield replace(part, checks=tuple(checks))
        elif isinstance(part, Folded):
            yield replace(part, parts=tuple(verified(part.parts, checker, names)))
        else:
            yield part


def checks_of(parts: Iterable[Any], names: Mapping[Tensor, str]) -> Iterator[Check]:
    """What was done, step by step; a definition that nobody wrote is a step too."""
    for part in parts:
        if isinstance(part, (Line, Calculation, Statement)) and part.check is not None:
            yield part.check
        elif isinstance(part, Line) and part.left is not None:
            yield Check(names[part.left], BY_DEFINITION)
        if isinstance(part, Statement):
            yield from (*part.checks_of_holds, *checks_of(part.proof, names))
        elif isinstance(part, Cases):
            yield from part.checks
        elif isinstance(part, Folded):
            yield from checks_of(part.parts, names)


class _Chain:
    """The lines of a derivation one after the other, of which each may go on from the one before."""

    def __init__(self, checker: Checker, names: Mapping[Tensor, str]) -> None:
        self._checker, self._names = checker, names
        self._before: Line | None = None
        self._name, self._number, self._equations = "", 1, 0

    def checked(self, line: Line) -> Line:
        check = self._check(line)
        self._before = line
        return line._replace(check=replace(check, remarks=line.remarks))

    def _check(self, line: Line) -> Check:
        if line.left is None:
            assert self._before is not None  # ``then`` sees to that
            self._number += 1
            name = f"{self._name} (line {self._number})"
            return self._checker.related(name, self._before.expression, line.relation, line.expression, line.by)
        self._name, self._number = self._called(line.left), 1
        if line.kind == "gradient":
            return self._checker.gradient(self._name, line.left)
        if line.is_definition:
            return Check(self._name, BY_DEFINITION)
        return self._checker.related(self._name, line.left, line.relation, line.expression, line.by)

    def _called(self, left: Tensor) -> str:
        if left in self._names:
            return self._names[left]
        self._equations += 1
        return f"equation {self._equations}"


# --- numbers ---

Comparison = tuple[Point, np.ndarray, np.ndarray]  # where, what is claimed, what is right


@contextmanager
def _has_numbers(name: str) -> Iterator[None]:
    """What has no proof and no numbers is said of a step."""
    try:
        yield
    except NoRuleError as problem:
        raise NoRuleError(f"step {name} is not proved, and has no numbers to compare: {problem}") from None


def _agreement(name: str, tried: Sequence[Comparison]) -> Check:
    worst = max(compare(f"step {name}", claimed, wanted, _TOLERANCE, point) for point, claimed, wanted in tried)
    return Check(name, NUMERIC, error=worst, sizes=tuple(str(point) for point, *_ in tried))


def _nearest(wanted: np.ndarray, relation: str, bound: np.ndarray) -> np.ndarray:
    """What is nearest to the values that are to be bounded, on the right side of the bound."""
    return np.minimum(wanted, bound) if relation in ("<=", "<") else np.maximum(wanted, bound)


def _check_apart(name: str, bound: np.ndarray, wanted: np.ndarray, point: Point) -> None:
    """A strict inequality has no equal sides; raises EvaluationError, up to what is rounded."""
    equal = np.isclose(bound, wanted, rtol=_ROUNDING, atol=0)
    if equal.any():
        place = np.argwhere(equal)[0]
        raise EvaluationError(
            f"step {name} at {point}: entry {place.tolist()} of both sides is {wanted[tuple(place)]:.12g}"
        )


def _values(roots: Sequence[Tensor], point: Point) -> list[np.ndarray]:
    return point.called(lambdify(list(point.arrays), list(roots)))


def _differences(gradient: Tensor, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """The gradient, and what central differences give; of a batch of cotangents, one after the other."""
    claimed, *weights = _values([gradient, *gradient.inputs[3::2]], point)
    wanted = difference_gradient(gradient, point)
    if wanted is not None:
        return claimed, wanted
    _, of, *pairs = gradient.inputs
    single = [variable(name=f"cotangent{k}", shape=y.shape, hypotheses=()) for k, y in enumerate(pairs[::2])]
    one = cotangent_op(
        zeros(*of.shape), of, *(x for pair in zip(pairs[::2], single, strict=True) for x in pair), name="one"
    )
    batch = weights[0].shape[: weights[0].ndim - single[0].rank]
    wanted = np.zeros_like(claimed, dtype=float)
    for place in np.ndindex(batch):
        arrays = dict(zip(single, (weight[place] for weight in weights), strict=True))
        slope = difference_gradient(one, point.with_arrays(arrays))
        if slope is None:
            raise EvaluationError(f"{gradient.name}: differences pass through what the step of a recurrence stops")
        wanted[place] = slope
    return claimed, wanted


def _is_confirmed(claim: Claim | Independence, found: Counterexample) -> bool:
    """Whether both sides have the recorded values at the point, in floating point.

    A point that leaves something out (a function known only by name, or what was given as equal to something else)
    is not run again: it was exact when it was found.
    """
    arrays = found.arrays_numpy()
    known = {**found.sizes, **{s: float(value) for s, value in found.scalars.items()}}
    sides, moved = list(claim.sides), arrays
    if isinstance(claim, Independence):
        assert found.twin is not None
        sides, moved = [claim.output, claim.output], {**arrays, claim.variable: arrays[found.twin]}
    order = computed(sides)
    used = {s for x in order for s in x.own_symbols}
    if found.functions or used - known.keys() or {x for x in order if x.op is variable} - arrays.keys():
        return True
    with np.errstate(all="ignore"):
        ran = [values([side], at, known)[side][found.index] for side, at in zip(sides, (arrays, moved), strict=True)]
    recorded = [float(found.left), float(found.right)]
    return bool(np.allclose(ran, recorded, rtol=_TOLERANCE, atol=_TOLERANCE))
