"""``symattn prove`` and ``symattn verify``: exit codes, what they print, and the forms of hypotheses."""

from __future__ import annotations

import json
import re

import pytest

from symattn.cli import main, notes

X = ["--shape", "X: n d"]
PI = ["--shape", "Pi: n n"]
MOVED = ["softmax(Pi @ X)", "Pi @ softmax(X)", *X, *PI]


@pytest.fixture
def run(capsys):
    """Runs a command and gives its exit code and what it printed."""

    def runner(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as exit:
            code = exit.code
        out, err = capsys.readouterr()
        return code, out, err

    return runner


def test_proved_is_exit_code_0_with_the_proof(run):
    code, out, err = run("prove", *MOVED, "--given", "Pi: permutation")
    assert (code, err) == (0, "")
    assert out.startswith("proved\nClaim: softmax(Pi @ X) = Pi @ softmax(X)\nHypotheses: Pi[n, n] is")
    assert "Both sides are Pi @ softmax(X)." in out


def test_refuted_is_exit_code_1_with_the_counterexample(run):
    code, out, _ = run("prove", *MOVED)
    assert code == 1
    assert out.startswith("refuted: softmax(Pi @ X) = Pi @ softmax(X)\n")
    assert "left is" in out


def test_unknown_is_exit_code_3_with_the_reason(run):
    code, out, _ = run("prove", "1 + X + X**2/2 + X**3/6 <= exp(X)", *X)
    assert code == 3
    assert out.startswith("unknown: 1 + X + X**2 / 2 + X**3 / 6 <= exp(X)\n")
    assert "the claim holds at" in out


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        ("Z = X @ X.T; softmax(Z) <= 1", 0),
        ("0 < exp(X)", 0),
        ("exp(X) > 0", 0),
        ("1 >= softmax(X)", 0),
        ("softmax(X) < 0", 1),
        ("X @ X.T = X @ X.T + 0", 0),
        ("X == 2*X/2", 0),
        ("Z = X + 1\nexp(Z) == exp(X)", 1),
        ("softmax(X, where=from_index((n, d), lambda i, j: j <= i)) <= 1", 0),
    ],
)
def test_one_argument_states_a_claim(run, claim, code):
    assert run("prove", claim, *X)[0] == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["A @ B", "A @ B + 0", "--shape", "A: n T", "--shape", "B: S m", "--given", "T = S"], 0),
        (["A @ B", "(B.T @ A.T).T", "--shape", "A: n T", "--shape", "B: 2*S m", "--given", "2*S = T"], 0),
        (["A @ B", "A @ B", "--shape", "A: n T", "--shape", "B: S m", "--given", "T = r", "--given", "S = T"], 2),
        (["A @ B", "A @ B", "--shape", "A: n T", "--shape", "B: S T", "--given", "n = S", "--given", "T = n"], 0),
        (["Pi @ X", "X", "--shape", "Pi: T n", *X, "--given", "T = n", "--given", "Pi: permutation"], 1),
        (["sum(Pi @ X)", "sum(X)", "--shape", "Pi: T n", *X, "--given", "Pi: permutation", "--given", "T = n"], 0),
        (["sum(X*X)", "n", *X, "--given", "sum(X*X, axis=-1) = ones(n)"], 0),
        (["sum(X*X)", "n", *X], 1),
        (["sqrt(c**2)*X", "c*X", *X, "--scalar", "c", "--given", "c: positive"], 0),
        (["sqrt(c**2)*X", "c*X", *X, "--scalar", "c"], 1),
        (["U @ U.T", "eye(n)", "--shape", "U: n n", "--given", "U: orthogonal"], 0),
        (["sum(ones(n)) <= sum(ones(m))", "--shape", "x: n", "--shape", "y: m", "--given", "m < n"], 1),
    ],
)  # fmt: skip
def test_hypotheses_are_given_in_their_three_forms(run, arguments, code):
    assert run("prove", *arguments)[0] == code


def test_a_tensor_without_axes_is_a_number_in_json(run):
    code, out, _ = run("prove", "c*c", "c", "--shape", "c:", "--to", "json")
    assert code == 1
    assert json.loads(out)["counterexample"]["arrays"] == {"c": "-1"}


def test_latex_and_json(run):
    _, out, _ = run("prove", *MOVED, "--given", "Pi: permutation", "--to", "latex")
    assert r"\Pi \, \operatorname{softmax}(X)" in out
    _, out, _ = run("prove", *MOVED, "--given", "Pi: permutation", "--to", "json")
    proved = json.loads(out)
    assert proved["status"] == "proved"
    assert proved["proof"][-1] == "Both sides are Pi @ softmax(X)."
    assert proved["witness"]["arrays"]["Pi"] == [["0", "1"], ["1", "0"]]
    assert (proved["witness"]["sizes"], proved["assumptions"]) == ({"d": 2, "n": 2}, [])
    code, out, _ = run("prove", "softmax(2*X)", "softmax(X)", *X, "--to", "json")
    found = json.loads(out)
    assert (code, found["status"]) == (1, "refuted")
    point = found["counterexample"]
    assert point["sizes"] == {"d": 2, "n": 1}
    assert len(point["arrays"]["X"][0]) == 2
    assert point["left"]["decimal"] != point["right"]["decimal"]
    _, out, _ = run("prove", "1 + X + X**2/2 + X**3/6 <= exp(X)", *X, "--to", "json")
    assert json.loads(out)["status"] == "unknown"


def test_the_same_seed_gives_the_same_answer(run):
    assert run("prove", *MOVED, "--seed", "7") == run("prove", *MOVED, "--seed", "7")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["X", *X], "a claim has one of = <= < >= >"),
        (["X < X < X", *X], "a claim has one of"),
        (["X", "Y", *X], "'Y' is not declared"),
        (["X", "X.T", *X], "the shapes differ"),
        (["X", "X", *X, "--given", "Y: positive"], "'Y' is none of X"),
        (["X", "X", *X, "--given", "X: nice"], "'nice' is not a property"),
        (["X", "X", *X, "--given", "X:"], "name a property after the colon"),
        (["X", "X", *X, "--given", "X: permutation"], "its last two sizes differ"),
        (["c*X", "X", *X, "--scalar", "c", "--given", "c: integer"], "'integer' is not a property, which are positive"),
        (["c*X", "X", *X, "--scalar", "c", "--given", "c > 0"], "no relation of sizes"),
        (["X", "X", *X, "--given", "n"], "a claim has one of"),
        (["X", "X", *X, "--given", "n < n"], "contradicts itself"),
        (["X", "X", *X, "--budget", "0"], "a budget is a number of seconds"),
        (["X", "X", *X, "--to", "pdf"], "invalid choice"),
        (["__import__('os').system('true')", "X", *X], "only functions called by name"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, arguments, message):
    code, out, err = run("prove", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("error:") == 1


# --- verify ---


def test_verify_prints_one_line_a_step(run):
    code, out, err = run("verify", "softmax-jacobian")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "softmax-jacobian: p: by definition",
        "softmax-jacobian: dz: proved",
        "softmax-jacobian: dz (line 2): proved",
        "softmax-jacobian: J: by definition",
        "softmax-jacobian: proposition 1: proved",
        "softmax-jacobian: proposition 2: proved",
        "softmax-jacobian: equation 1: proved",
        "softmax-jacobian: equation 1 (line 2): proved",
    ]


@pytest.mark.slow
def test_verify_without_names_takes_all(run):
    code, out, _ = run("verify")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(notes.derivations())
    assert "numerically" not in out


def test_verify_of_a_false_step_is_exit_code_1_and_goes_on(run, monkeypatch, tmp_path):
    program = """
import symattn as sa

def derivation():
    x = sa.tensor("x", "n")
    return sa.Derivation("False").extend(sa.let("y", sa.exp(x))).then(x)
"""
    (tmp_path / "false.py").write_text(program)
    known = {"false": tmp_path / "false.py", "softmax-jacobian": notes.derivations()["softmax-jacobian"]}
    monkeypatch.setattr(notes, "derivations", lambda: known)
    code, out, err = run("verify")
    assert code == 1
    assert err.startswith(f"{tmp_path / 'false.py'}: step y (line 2) is false: exp(x) = x; n = 1; ")
    assert re.search(r"softmax-jacobian +\d\.\d s +6 proved, 2 by definition", out)


def test_verify_of_an_unknown_name_is_a_mistake(run):
    code, out, err = run("verify", "softmax-jacobian", "nope")
    assert (code, out) == (2, "")
    assert "there is no derivation 'nope'" in err
