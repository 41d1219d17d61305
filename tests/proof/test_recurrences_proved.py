"""Claims about recurrences of attention, for every number of steps: proved with their proofs checked, or refuted."""

from __future__ import annotations

import pytest

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import NOTHING, Argument
from symattn.proof.engine import argued
from symattn.proof.induction.plan import plans

from ..recurrences import Question, of_steps
from .recurrences import alike, deltas, depth, gradients, linear, small, softmax, wrong

CLAIMS = small.TABLE | linear.TABLE | softmax.TABLE | deltas.TABLE | gradients.TABLE | depth.TABLE | alike.TABLE
FALSE = wrong.TABLE | alike.WRONG
QUICK = {
    "alike: outputs of a square",
    "alike: values scaled",
    "an exponential average at any rate",
    "depth: blocks with norms",
    "FlashAttention: any reference",
    "gradient of linear attention: by V",
    "heads in groups",
    "linear: normalised",
    "merging logarithms of sums",
    "running sums within running sums",
}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CLAIMS]
)
def test_a_claim_is_decided_for_every_number_of_steps(name: str) -> None:
    asked = CLAIMS[name]()
    verdict = sa.prove(asked.left, asked.right, by=asked.by, budget=60)
    assert verdict.status == asked.verdict, verdict
    assert not verdict or verdict.proof.check()


LITERAL = {
    "Welford's variance",
    "FlashAttention: any reference",
    "backwards: retention",
    "delta rule: the state",
    "exponential averages",
    "gated: each feature",
    "gated delta rule: outputs",
    "retention: normalised",
    "state space duality from a state",
    "the largest so far",
}


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("gated: each feature", "the largest so far") else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(LITERAL)
    ],
)
def test_a_claim_is_decided_for_sixteen_steps(name: str) -> None:
    """Also where it states them: in the last place, in a mean, in a decay."""
    asked = CLAIMS[name]()
    question = of_steps(Question(asked.left, asked.right, asked.by), 16)
    verdict = sa.prove(question.left, question.right, by=question.how, budget=60)
    assert verdict.status == asked.verdict, verdict
    assert verdict.proof.check()


@pytest.mark.slow
@pytest.mark.parametrize("name", FALSE)
def test_no_proof_of_what_is_false_is_found(name: str) -> None:
    asked = FALSE[name]()
    found = argued(NOTHING, sa.eq(asked.left, asked.right), Budget(60), plans(asked.by))
    assert not isinstance(found, Argument)
