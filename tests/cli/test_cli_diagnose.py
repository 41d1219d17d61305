"""``symattn diagnose``: arrays in files, and what explains them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from symattn.cli import main

ATTENTION = ["c * softmax(Q @ K.T / sqrt(d)) @ V", "--shape", "Q: T d", "--shape", "K: S d", "--shape", "V: S e"]
ATTENTION += ["--scalar", "c", "--set", "c=1.5"]


@pytest.fixture
def files(tmp_path: Path):
    """Writes the arguments and what was found, and gives the options that name them."""
    rng = np.random.default_rng(2)
    shapes = {"Q": (4, 3), "K": (5, 3), "V": (5, 2), "dO": (4, 2)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    np.savez(tmp_path / "data.npz", **arrays)

    def written(factor: float, found: str = "dV") -> list[str]:
        q, k, _, do = arrays.values()
        p = np.exp(q @ k.T / 3**0.5)
        p /= p.sum(axis=1, keepdims=True)
        np.savez(tmp_path / "found.npz", **{found: factor * p.T @ do})
        return [*ATTENTION, "--data", str(tmp_path / "data.npz"), "--found", str(tmp_path / "found.npz")]

    return written


def test_what_is_right_agrees(files, capsys):
    assert main(["diagnose", *files(1.5)]) == 0
    assert capsys.readouterr().out == "dV agrees\n"


def test_what_is_wrong_is_explained_and_exits_with_1(files, capsys):
    assert main(["diagnose", *files(1.0)]) == 1
    assert capsys.readouterr().out == "dV is the right one without the factor c\n"


def test_json_holds_the_same(files, capsys):
    assert main(["diagnose", *files(1.0), "--to", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["mistakes"][0]["mistake"] == "dV is the right one without the factor c"
    assert told["mistakes"][0]["places"] == told["mistakes"][0]["explains"] == ["dV"]
    assert (told["right"], list(told["wrong"])) == ([], ["dV"])


@pytest.mark.parametrize(("found", "more", "said"), [
    ("dJ", [], "dJ is none of"),
    ("dV", ["--found", "absent.npz"], "absent.npz"),
    ("dV", ["--tolerance", "x"], "invalid float value"),
])  # fmt: skip
def test_mistakes_of_the_call_are_one_message(files, capsys, found, more, said):
    try:
        code = main(["diagnose", *files(1.0, found), *more])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert said in capsys.readouterr().err
