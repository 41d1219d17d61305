"""The derivations that come with symattn: every step is proved, and the false claims are refuted as they say."""

from __future__ import annotations

from collections import Counter

import pytest
import sympy

import symattn as sa
from symattn.document.parts import Statement

from ..shares import one_in
from ..shipped import SHIPPED, fresh, shipped


def continued(name: str) -> list[str]:
    """The lines of a derivation that go on from others."""
    return [str(step.expression) for step in shipped(name).steps if getattr(step, "kind", "") == "further"]


@pytest.mark.parametrize("name", one_in(2, SHIPPED))
def test_every_step_is_proved(name):
    report = shipped(name).verify()
    assert report.proved
    assert Counter(check.status for check in report) == dict(shipped(name).composed().tally)
    assert {check.how for check in report} <= {
        "proved",
        "by definition",
        "refuted, as stated",
        "computed again, exactly",
    }
    assert any(check.how != "by definition" for check in report)


def claims(name):
    return [step.verdict for step in shipped(name).steps if isinstance(step, Statement)]


def test_the_false_claims_are_refuted_by_small_points():
    keys, causal, positions = claims("permutation_equivariance")
    assert {x.status for x in (keys, causal, positions)} == {"refuted"}
    assert all(x.counterexample.total <= 12 for x in (keys, causal, positions))
    safe, shift, scale = claims("softmax_shift_invariance")
    assert (safe.status, shift.status, scale.status) == ("proved", "proved", "refuted")


def test_the_identity_of_flash_attention_is_stated_as_it_is_published():
    chain = continued("flash_backward_identity")
    assert chain == [f"sum({x}, axis=-1)" for x in ("dO * (P @ V)", "P * (dO @ V.T)", "P * dP")]


def test_what_cancels_in_kernel_regression_and_what_a_number_is_for_a_mask():
    statuses = [verdict.status for verdict in claims("nadaraya_watson")]
    assert statuses == ["proved", "proved", "refuted", "refuted", "proved"]
    scores, gradients, number = claims("masked_attention")
    assert (scores.status, gradients.status, number.status) == ("proved", "proved", "refuted")


def test_the_backward_of_layer_norm_has_its_three_terms():
    chain = [line.splitlines() for line in continued("layernorm_backward")]
    assert chain[1][0] == "r * (dXhat - rowmean(dXhat) - Xhat * rowmean(dXhat * Xhat))"


def test_second_derivatives_are_covariances():
    chain = continued("attention_second_order")
    assert "(K - kbar).T * alpha @ (K - kbar) @ w / d" in chain
    assert "(K - kbar).T * alpha @ (V - o) @ do / sqrt(d)" in chain


def test_blocks_are_merged_into_attention_over_all_keys():
    output = [step for step in shipped("online_softmax")["The output"].steps if not isinstance(step, Statement)]
    assert str(output[-1].expression) == "softmax(Z) @ V"
    assert [x.status for x in claims("online_softmax")] == ["refuted"], "the sums of two blocks are rescaled"


@pytest.mark.parametrize("name", one_in(8, SHIPPED))
@pytest.mark.slow
def test_a_derivation_does_not_change_between_runs(name):
    one, other = fresh(name), fresh(name)
    assert one.text() == other.text()
    assert one.latex() == other.latex()


def test_steps_stay_proved_where_terms_become_simpler_beside_others():
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V, b, c = (sa.tensor(*x) for x in (("Q", T, d), ("K", S, d), ("V", S, e), ("b", T, S), ("c",)))
    keys = K / sa.sqrt(sa.sum(K * K, -1, True) + 1)
    weights = sa.exp(Q / c @ keys.T / sympy.sqrt(d) + b)
    P = weights / (1 + sa.sum(weights, -1, True))
    penalty = sa.sum(sa.log(1 + P * P), axis=-1)
    g = sa.gradient({P @ V: sa.tensor("dO", T, e), penalty: sa.tensor("dL", T)}, [c])
    report = sa.Derivation("Scaled keys", given=[Q, K, V, b, c]).extend(g).verify()
    assert "numerically" not in str(report), str(report)
