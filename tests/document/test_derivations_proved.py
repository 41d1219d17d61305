"""The derivations that come with symattn: every step is proved, and the false claims are refuted as they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import sympy

import symattn as sa
from symattn.document.parts import Statement

from ..shares import one_in

FOLDER = Path(__file__).resolve().parents[2] / "derivations"
FILES = sorted(FOLDER.glob("[!_]*.py"))
CHECKED = {
    "attention_backward": ["dV", "dP", "dZ", "dQ", "dK"],
    "attention_second_order": [
        "dzeta_1", "dq_1", "dkbar", "dalpha_1", "dzeta_2", "dq_2", "dq_2 (line 2)", "dq_2 (line 3)", "dalpha_2",
        "dzeta_3", "dq_3", "dq_3 (line 2)", "dq_3 (line 3)", "Odot (line 2)", "dV", "dP", "dZ", "dQ", "dK",
        "c (line 2)",
    ],
    "flash_backward_identity": [
        "dV", "dP", "D (line 2)", "D (line 3)", "D (line 4)", "dZ", "dZ (line 2)", "dZ (line 3)",
    ],
    "grouped_query_backward": ["dV_r", "dV", "dP", "dZ", "dQ", "dK_r", "dK"],
    "layernorm_backward": [
        "dbeta", "dgamma", "dXhat", "dC", "dmu", "dX", "dX (line 2)", "dX (line 3)", "a (line 2)", "b (line 2)",
    ],
    "logsumexp_hessian": [
        "dz_1", "dp", "dz_2", "dz_2 (line 2)", "dz_2 (line 3)", "Ldot (line 2)", "du", "dr", "dx", "dx (line 2)",
    ],
    "masked_attention": [
        "P (line 2)", "P (line 3)", "claim 1", "dV", "dP", "dZ", "dQ", "dK", "claim 2", "R (line 2)", "L (line 2)",
    ],
    "multi_head": ["A (line 2)", "A (line 3)", "Q_f (line 2)"],
    "multi_head_backward": [
        "dW_o", "dH", "dO", "dV'", "dP", "dZ", "dQ'", "dK'", "dQ", "dW_q", "dK", "dW_k", "dV", "dX", "dW_v",
    ],
    "nadaraya_watson": [
        "F (line 2)", "D (line 2)", *(f"P (line {n})" for n in (2, 3, 4)), "claim 1", "claim 2", "claim 4",
    ],
    "online_softmax": [
        "l (line 2)", "l (line 3)", "N (line 2)", "N (line 3)", "O (line 2)", "O (line 3)", "O (line 4)",
    ],
    "permutation_equivariance": [
        "Z' (line 2)", "P' (line 2)", "P' (line 3)", "O' (line 2)", "O' (line 3)", "O' (line 4)", "A' (line 2)",
        "Y' (line 2)", "Y' (line 3)", "Y' (line 4)",
    ],
    "scaled_dot_product_variance": [],
    "softmax_jacobian": ["dz", "dz (line 2)"],
    "softmax_saturation": [
        "claim 1", "claim 2", "b (line 2)", "b (line 3)", "claim 3", "a (line 2)", "R (line 2)", "claim 4", "claim 5",
        "w (line 2)", "claim 6", "q (line 2)", "H (line 2)",
    ],
    "softmax_shift_invariance": [
        *(f"p (line {n})" for n in range(2, 7)), "q (line 2)", "q (line 3)", "l (line 2)", "r (line 2)", "claim 1",
    ],
}  # fmt: skip


def load(name: str) -> sa.Derivation:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.derivation()


def test_every_file_is_listed_here():
    assert [path.stem for path in FILES] == sorted(CHECKED)


@pytest.mark.parametrize("name", CHECKED)
def test_every_step_is_proved(name):
    note = load(name)
    report = note.verify()
    assert len(report) == len(note.steps)
    assert report.proved
    assert [check.name for check in report if check.how == "proved"] == CHECKED[name]
    assert {check.how for check in report} <= {
        "proved",
        "by definition",
        "refuted, as stated",
        "computed again, exactly",
    }
    assert not [check for check in report if check.conditions], "nothing is assumed besides what is given"


def claims(name):
    return [step.verdict for step in load(name).steps if isinstance(step, Statement)]


def test_the_false_claims_are_refuted_by_small_points():
    keys, causal, positions = claims("permutation_equivariance")
    assert {x.status for x in (keys, causal, positions)} == {"refuted"}
    assert all(x.counterexample.total <= 12 for x in (keys, causal, positions))
    shift, scale = claims("softmax_shift_invariance")
    assert (shift.status, scale.status) == ("proved", "refuted")


def test_the_identity_of_flash_attention_is_stated_as_it_is_published():
    chain = [
        str(step.expression) for step in load("flash_backward_identity").steps if getattr(step, "kind", "") == "further"
    ]
    assert chain[-3:] == ["rowsum(dO * O)", "P * (dP - D)", "P * (dP - rowsum(dO * O))"]


def test_what_cancels_in_kernel_regression_and_what_a_number_is_for_a_mask():
    positive, average, keys, one_length = claims("nadaraya_watson")
    assert (positive.status, average.status, keys.status, one_length.status) == (*["proved"] * 2, "refuted", "proved")
    scores, gradients, number = claims("masked_attention")
    assert (scores.status, gradients.status, number.status) == ("proved", "proved", "refuted")


def test_the_backward_of_layer_norm_has_its_three_terms():
    chain = [
        str(step.expression).splitlines()
        for step in load("layernorm_backward").steps
        if getattr(step, "kind", "") == "further"
    ]
    assert chain[1][0] == "r * (dXhat - rowmean(dXhat) - Xhat * rowmean(dXhat * Xhat))"


def test_second_derivatives_are_covariances():
    chain = [
        str(step.expression) for step in load("attention_second_order").steps if getattr(step, "kind", "") == "further"
    ]
    assert "(K - kbar).T * alpha @ (K - kbar) @ w / d" in chain
    assert "(K - kbar).T * alpha @ (V - o) @ do / sqrt(d)" in chain


def test_blocks_are_merged_into_attention_over_all_keys():
    assert str(load("online_softmax").steps[-1].expression) == "softmax(Z) @ V"


@pytest.mark.parametrize("name", one_in(4, CHECKED))
def test_a_derivation_does_not_change_between_runs(name):
    one, other = load(name), load(name)
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
