"""What cannot be read or computed ends in one message and exit code 2, never in a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symattn.cli import main

from ..command_lines import endings, is_bad


def told(capsys, *argv):
    """What the command line says on stderr, with exit code 2."""
    assert main(list(argv)) == 2
    message = capsys.readouterr().err
    assert message.startswith("symattn: error: ")
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e9999999999999999999999 * x", "more than 64 digits before or after the point"),
        ("1e-9999999999999999999999 * x", "more than 64 digits"),
        ("0e9999999999999999999999 * x", "more than 64 digits"),
        ("oo**0 * x", "an infinite number has no powers here"),
        ("(-oo)**2 * x", "an infinite number has no powers here"),
        ("2**(oo - oo) * x", "- has no value here: of real numbers, it would be nan"),
        ("oo*0 * x", "* has no value here"),
        ("exp(oo - oo) * x", "- has no value here"),
        ("log(0) * x", "log has no value here: of real numbers, it would be zoo"),
        ("sin(oo) * x", "sin has no value here"),
        ("mod(oo, 2) * x", "mod has no value here"),
        ("maximum(sqrt(-1), 2) * x", "maximum has no value here"),
        ("from_index((n,), lambda i: where(sqrt(-1) < i, 1, 0)) * x", "the comparison has no value here"),
    ],
)
def test_numbers_without_a_value_are_an_error(capsys, text, message):
    assert message in told(capsys, "grad", text, "--shape", "x: n")


@pytest.mark.parametrize("shape", ["Q: T#d", "Q: T d#", "Q: # d", "Q: \u2124 d", "Q: T \uff44", "Q: T 2\u00b2"])
def test_a_size_is_read_as_it_is_spelled(capsys, shape):
    assert "not a size: write an integer or names" in told(capsys, "grad", "Q", "--shape", shape)


@pytest.mark.parametrize("name", ["\u211a", "\U0001d410", "\uff31"])
def test_a_name_of_other_letters_is_no_name(capsys, name):
    assert "cannot be a name: use ASCII letters" in told(capsys, "grad", "Q", "--shape", f"{name}: T d")
    assert "cannot be a name: use ASCII letters" in told(capsys, "grad", "Q", "--shape", "Q: T", "--scalar", name)
    assert "is not printable ASCII" in told(capsys, "grad", name, "--shape", "Q: T d")


def test_sides_and_hypotheses_may_begin_with_a_minus(capsys):
    assert main(["prove", "abs(Z)", "-abs(Z)", "--shape", "Z: T S"]) == 1
    assert main(["prove", "-abs(Z)", "-abs(-Z)", "--shape", "Z: T S"]) == 0
    assert main(["prove", "-abs(Z)<=0", "--shape", "Z: T S"]) == 0
    assert main(["grad", "-x", "--shape", "x: n"]) == 0
    assert main(["prove", "relu(x)", "x", "--given", "-x<=0", "--shape", "x: n"]) in (0, 3)
    assert "dx = -dO" in capsys.readouterr().out


def test_singular_data_are_an_error(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", A=np.ones((3, 3)), x=np.ones(3))
    for text in ("inv(A)", "inv(A) @ x", "inv(inv(A) + A)"):
        message = told(capsys, "eval", text, "--shape", "A: n n", "--shape", "x: n", "--data", str(tmp_path / "a.npz"))
        assert "Singular matrix: at these data the expression has no value" in message


def test_a_size_that_only_a_formula_knows(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    data = ["--data", str(tmp_path / "a.npz")]
    message = told(capsys, "eval", "x * k", "--shape", "x: n", "--shape", "y: k", *data)
    assert message == "symattn: error: the arrays do not tell k: add --set k=NUMBER\n"
    message = told(capsys, "eval", "x * k", "--shape", "x: n", *data)
    assert "'k' is not declared: declared are x[n]; sizes and scalars: n; a size is declared by a shape" in message


def test_a_closed_standard_output_is_an_error():
    command = f"{sys.executable} -m symattn.cli list >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr == "symattn: error: standard output is closed: give it a file or a terminal\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_an_error():
    command = f"{sys.executable} -m symattn.cli list > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("symattn: error: ")


def test_random_command_lines_end_as_they_should(tmp_path):
    for ending in endings(3, 150, tmp_path):
        assert not is_bad(ending), ending
