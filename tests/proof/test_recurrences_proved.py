"""Claims about recurrences of attention, for every number of steps: proved with their proofs checked, or refuted."""

from __future__ import annotations

import pytest

import symattn as sa

from .recurrences import linear, softmax

CLAIMS = linear.TABLE | softmax.TABLE
QUICK = {"linear: normalised", "heads in groups", "FlashAttention: any reference", "merging logarithms of sums"}


def _rows() -> list[object]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CLAIMS]


@pytest.mark.parametrize("name", _rows())
def test_a_claim_is_decided_for_every_number_of_steps(name: str) -> None:
    asked = CLAIMS[name]()
    verdict = sa.prove(asked.left, asked.right, by=asked.by)
    assert verdict.status == asked.verdict, verdict
    assert not verdict or verdict.proof.check()
