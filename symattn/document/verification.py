"""Checking the steps of a derivation: each is proved, or at least held against numbers, and the report says which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..codegen import lambdify
from ..codegen.check import Point, compare, difference_gradient, sample_point
from ..codegen.reference import values
from ..core.budget import Budget, OutOfBudget
from ..core.node import Tensor, topological
from ..errors import EvaluationError
from ..ops.leaves import computed, cotangent_op, variable, zeros
from ..printing.prose import Part, Table, Words, listed
from ..printing.prose_latex import parts_latex
from ..printing.stated import sentence_words
from ..probability.report import Moments
from ..proof.claims import Claim, Independence
from ..proof.definedness import conditions
from ..proof.engine import prove
from ..proof.equality import gradients
from ..proof.refute.counterexample import Counterexample
from ..proof.verdict import Verdict

PROVED, BY_DEFINITION, REFUTED, NUMERIC = "proved", "by definition", "refuted, as stated", "checked numerically only"
COMPUTED = "computed again, exactly"
_TOLERANCE = 1e-6  # of numeric agreement, relative to the largest entry


@dataclass(frozen=True)
class Check:
    """What was done for one step.

    ``how`` is "proved", "by definition", "refuted, as stated", "computed again, exactly" or "checked numerically
    only". ``conditions`` are the side conditions of a proof; ``error`` is the largest error of a numeric check, and
    ``sizes`` are those it was made at; ``remarks`` say where the gradient does not exist.
    """

    name: str
    how: str
    conditions: tuple[str, ...] = ()
    error: float | None = None
    sizes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """How the step was checked, with its conditions or its errors."""
        where = (f", where {', '.join(self.conditions)}",) if self.conditions else ()
        return "; ".join(["".join((self._how, *where)), *self.remarks])

    def told(self) -> Words:
        """The same with mathematics in it."""
        conditions = listed(map(sentence_words, self.conditions), ", ")
        where = (", where ", *conditions) if conditions else ()
        return listed([(self._how, *where), *map(sentence_words, self.remarks)])

    @property
    def _how(self) -> str:
        if self.error is None:
            return self.how
        return f"{self.how}, largest error {self.error:.1e}, at {'; '.join(self.sizes)}"

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}"


@dataclass(frozen=True)
class Report:
    """One check a step. Where a step is checked numerically only, it says no more than that numbers agreed."""

    checks: tuple[Check, ...]

    @property
    def proved(self) -> bool:
        """Whether no step rests on numbers alone."""
        return all(check.how != NUMERIC for check in self.checks)

    def text(self) -> str:
        """One line a step."""
        return "\n".join(map(str, self.checks))

    def told(self) -> tuple[Part, ...]:
        """The same as a table, with mathematics in it."""
        return (Table((), tuple(((check.name,), check.told()) for check in self.checks)),)

    def latex(self) -> str:
        """The same as a ``tabular``."""
        return parts_latex(self.told())

    def __str__(self) -> str:
        return self.text()

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)


class Checker:
    """Checks steps that share tensors; ``roots`` are all their expressions and ``seconds`` the budget of one proof."""

    def __init__(self, roots: Sequence[Tensor], seconds: float) -> None:
        self._roots, self._seconds = list(roots), seconds

    def chain(self, name: str, before: Tensor, after: Tensor) -> Check:
        """``before = after``. Raises EvaluationError with the point at which it is false."""
        verdict = prove(before, after, budget=self._seconds)
        if verdict.proof is not None:
            return Check(name, PROVED, verdict.proof.side_conditions)
        if verdict.counterexample is not None:
            raise EvaluationError(f"step {name} is false: {verdict.claim}\n{verdict.counterexample}")
        tried = []
        for point in self._points:
            claimed, wanted = _values([after, before], point)
            tried.append((point, claimed, wanted))
        return _agreement(name, tried)

    def gradient(self, name: str, gradient: Tensor) -> Check:
        """A gradient against the derivative of the entries, else against central differences."""
        try:
            proved = gradients.is_proved(gradient, Budget(self._seconds))
        except OutOfBudget:
            proved = False
        if proved:
            return Check(name, PROVED, conditions([gradient]))
        return _agreement(name, [(point, *_differences(gradient, point)) for point in self._points])

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


# --- numbers ---

Comparison = tuple[Point, np.ndarray, np.ndarray]  # where, what is claimed, what is right


def _agreement(name: str, tried: Sequence[Comparison]) -> Check:
    worst = max(compare(f"step {name}", claimed, wanted, _TOLERANCE, point) for point, claimed, wanted in tried)
    return Check(name, NUMERIC, error=worst, sizes=tuple(str(point) for point, *_ in tried))


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
        assert slope is not None
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
