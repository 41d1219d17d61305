"""The derivations that come with symattn: every step is proved, and the false claims are refuted as they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import symattn as sa
from symattn.statements import Statement

FOLDER = Path(__file__).resolve().parent.parent / "derivations"
GOLDEN = Path(__file__).parent / "golden" / "derivations"
FILES = sorted(FOLDER.glob("[!_]*.py"))
CHECKED = {
    "attention_backward": ["dV", "dP", "dZ", "dQ", "dK"],
    "flash_backward_identity": [
        "dV", "dP", "D (line 2)", "D (line 3)", "D (line 4)", "dZ", "dZ (line 2)", "dZ (line 3)",
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
    chain = [str(step.expression) for step in load("flash_backward_identity").steps if step.named is None]
    assert chain[-3:] == ["rowsum(dO * O)", "P * (dP - D)", "P * (dP - rowsum(dO * O))"]


def test_blocks_are_merged_into_attention_over_all_keys():
    assert str(load("online_softmax").steps[-1].expression) == "softmax(Z) @ V"


@pytest.mark.parametrize("name", ["flash_backward_identity", "online_softmax", "scaled_dot_product_variance"])
def test_a_derivation_prints_as_its_golden_file(name):
    assert load(name).latex() + "\n" == (GOLDEN / f"{name}.tex").read_text()


@pytest.mark.parametrize("name", CHECKED)
def test_a_derivation_does_not_change_between_runs(name):
    assert load(name).text() == load(name).text()
    assert load(name).latex() == load(name).latex()
