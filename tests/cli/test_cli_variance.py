"""``symattn variance``: what it prints in each form, how laws are written, and that mistakes are one message."""

from __future__ import annotations

import json

import pytest

from symattn.cli import main

QK = ["--shape", "q: d", "--shape", "k: d"]
MATRICES = ["--shape", "Q: T d", "--shape", "K: S d"]


@pytest.fixture
def run(capsys):
    """Runs a command and gives its exit code and what it printed."""

    def runner(*arguments):
        try:
            code = main(["variance", *map(str, arguments)])
        except SystemExit as exit:
            code = exit.code
        out, err = capsys.readouterr()
        return code, out, err

    return runner


@pytest.fixture
def found(run):
    """Runs a command with ``--to json`` and gives what it found."""

    def runner(*arguments):
        code, out, err = run(*arguments, "--to", "json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return runner


def test_the_question_of_the_field(run):
    code, out, err = run("q @ k / sqrt(d)", *QK, "--law", "q: iid", "--law", "k: iid mean=mu")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "mean: 0",
        "variance: mu**2 + 1",
        "assumed:",
        "  the entries of q are independent and identically distributed",
        "  the entries of k are independent and identically distributed",
        "  q and k are independent",
        "  mean of q: 0",
        "  mean of k: mu",
        "  variance of q: 1",
        "  variance of k: 1",
    ]


def test_skewness_and_kurtosis_are_printed_where_laws_tell_them(found):
    known = found("q @ k", *QK, "--law", "q: iid normal", "--law", "k: iid normal")
    assert [known[name] for name in ("mean", "variance", "skewness", "kurtosis")] == ["0", "d", "0", "3 + 6/d"]
    unknown = found("q @ k", *QK, "--law", "q: iid normal", "--law", "k: iid")
    assert unknown["kurtosis"] is None


@pytest.mark.parametrize(
    ("laws", "mean", "variance"),
    [
        (["q: iid", "k: iid rademacher"], "0", "d"),
        (["q: iid mean=m variance=v", "k: iid mean = 2"], "2*d*m", "d*(m**2 + 5*v)"),
        (["q: iid variance=1/d", "k: iid"], "0", "1"),
        (["q: iid bernoulli probability=1/4", "k: iid mean=1"], "d/4", "7*d/16"),
        (["q: iid cumulants=(0, 4)", "k: iid"], "0", "4*d"),
        (["q, k: iid_pair correlation=rho"], "d*rho", "d*rho**2 + d"),
        (["q, k: iid_pair correlation=0.5 mean=(1, 0) variance=(4, 1)"], "d", "6*d"),
        (["q: constant", "k: iid variance=s"], "0", "s*Sum(q[l]**2, (l, 0, d - 1))"),
        (["q: constant mean=2", "k: iid"], "0", "4*d"),
        (["q: sphere", "k: sphere"], "0", "1/d"),
        (["q: normal", "k: iid"], "0", "d"),
    ],
)
def test_laws_are_written_by_kind_and_values(found, laws, mean, variance):
    known = found("q @ k", *QK, *(part for law in laws for part in ("--law", law)))
    assert (known["mean"], known["variance"]) == (mean, variance)


def test_parameters_of_rows_are_declared_tensors(found):
    shapes = ["--shape", "x: d", "--shape", "w: d", "--shape", "m: d", "--shape", "C: d d, symmetric"]
    known = found("x @ w", *shapes, "--law", "x: normal mean=m covariance=C", "--law", "w: constant")
    assert known["mean"] == "Sum(m[k]*w[k], (k, 0, d - 1))"
    assert "covariance of x: C" in known["assumptions"]
    assert "w is not random" in known["assumptions"]


def test_a_declared_scalar_keeps_its_meaning(found):
    known = found("c * q @ k", *QK, "--scalar", "c", "--law", "q: iid mean=c", "--law", "k: iid")
    assert known["variance"] == "c**4*d + c**2*d"


@pytest.mark.parametrize(
    ("expression", "entry", "variance"),
    [
        ("Q @ K.T / sqrt(d)", "i,j", "1"),
        ("Q @ K.T / sqrt(d)", "0, j", "1"),
        ("Q @ Q.T", "i,j", "d*KroneckerDelta(i, j) + d"),
        ("Z = Q @ Q.T; Z / sqrt(d)", "i,i", "2"),
    ],
)
def test_an_entry_is_named_by_its_indices(found, expression, entry, variance):
    laws = [f"{name}: iid normal" for name in "QK" if name in expression]
    known = found(expression, *MATRICES, "--entry", entry, *(part for law in laws for part in ("--law", law)))
    assert (known["variance"], known["entry"]) == (variance, entry)


def test_latex_is_a_fragment(run):
    _, out, _ = run("q @ k", *QK, "--law", "q: iid", "--law", "k: iid", "--to", "latex")
    assert r"\operatorname{Var}[x] &= d" in out
    assert "It is assumed that the entries of $q$ are" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q @ k", *QK, "--law", "q: iid"], "k[d] has no law, and nothing is assumed of it"),
        (["q @ k", *QK, "--law", "q: nope"], "a law is written as"),
        (["q @ k", *QK, "--law", "q iid"], "a law is written as"),
        (["q @ k", *QK, "--law", "z: iid"], "'z' is not declared by --shape"),
        (["q @ k", *QK, "--law", "d: iid"], "'d' is not declared by --shape"),
        (["q @ k", *QK, "--scalar", "c", "--law", "c: iid"], "'c' is not declared by --shape"),
        (["q @ k", *QK, "--law", "q: iid cauchy"], "iid knows the laws normal, rademacher"),
        (["q @ k", *QK, "--law", "q: iid normal 3"], "iid takes mean, variance"),
        (["q @ k", *QK, "--law", "q: iid colour=3"], "iid takes mean, variance"),
        (["q @ k", *QK, "--law", "q: sphere mean=1"], "sphere takes nothing"),
        (["q @ k", *QK, "--law", "q: iid variance=-1"], "no law has the variance -1"),
        (["q @ k", *QK, "--law", "q: iid kurtosis=0"], "no law has the kurtosis 0"),
        (["q @ k", *QK, "--law", "q, k: iid_pair correlation=2"], "between -1 and 1"),
        (["q @ k", *QK, "--law", "q: iid_pair correlation=1"], "law of a pair"),
        (["q @ k", *QK, "--law", "q: iid mean=k"], "mean is a finite number or a scalar symbol"),
        (["q @ k", *QK, "--law", "q: iid mean="], "by values, as in mean=mu"),
        (["q @ k", *QK, "--law", "q: iid mean=class"], "Python keyword"),
        (["q @ k", *QK, "--law", "q: iid mean=__import__('os')"], "unknown function"),
        (["q @ k", *QK, "--law", "q: iid", "--law", "q: iid"], "gives two to the same"),
        (["q * k", *QK, "--law", "q: iid", "--law", "k: iid"], "(q * k)[d] has axes"),
        (["q * k", *QK, "--law", "q: iid", "--law", "k: iid", "--entry", "k"], "'k' is a name already"),
        (["q * k", *QK, "--law", "q: iid", "--law", "k: iid", "--entry", "d"], "'d' is a name already"),
        (["q * k", *QK, "--law", "q: iid", "--law", "k: iid", "--entry", "i,j"], "has 1 indices, not 2"),
        (["q * k", *QK, "--law", "q: iid", "--law", "k: iid", "--entry", "i+1"], "takes letters and numbers"),
        (["q @ q", *QK, "--law", "q: iid"], "give kurtosis="),
        (["sum(q * softmax(q))", "--shape", "q: d", "--law", "q: iid"], "the exact expectation reaches polynomials"),
        (["q @", *QK, "--law", "q: iid"], "cannot be read"),
        (["q @ k", *QK, "--to", "pdf"], "invalid choice"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("symattn: error: ")
    assert err.count("error:") == 1
    assert message in err
