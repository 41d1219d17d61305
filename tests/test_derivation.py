"""Derivations: what they print, that they compile, and that a wrong step is told apart."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
import sympy

import symattn as sa

FOLDER = Path(__file__).resolve().parent.parent / "derivations"
FILES = sorted(FOLDER.glob("[!_]*.py"))


def load(path: Path) -> sa.Derivation:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.derivation()


@pytest.fixture
def attention():
    Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    return Q, K, V, sa.softmax(Q @ K.T / sympy.sqrt(sa.sizes("d"))) @ V


# --- the files ---


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_step_of_a_derivation_agrees_numerically(path):
    report = load(path).verify()
    assert len(report) == len(load(path).steps)
    assert any(check.error is not None for check in report)
    assert all(check.error is None or check.error < 1e-8 for check in report)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_derivation_file_is_short_and_uses_public_names_only(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 90
    assert "._" not in text
    imports = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert set(imports) <= {"from __future__ import annotations", "import sympy", "import symattn as sa"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_the_latex_compiles_in_a_minimal_article(path, tmp_path):
    packages = r"\usepackage{amsmath,amssymb}"
    (tmp_path / "note.tex").write_text(
        rf"\documentclass{{article}}{packages}\begin{{document}}{load(path).latex()}\end{{document}}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "note.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:]


def test_attention_backward_has_the_five_lines_with_a_reason_each():
    steps = load(FOLDER / "attention_backward.py").steps[-5:]
    assert [(s.named.name, str(s.expression)) for s in steps] == [
        ("dV", "P.T @ dO"),
        ("dP", "dO @ V.T"),
        ("dZ", "P * (dP - rowsum(P * dP))"),
        ("dQ", "dZ @ K / sqrt(d)"),
        ("dK", "dZ.T @ Q / sqrt(d)"),
    ]
    assert all(s.reason for s in steps)


def test_the_softmax_jacobian_ends_in_the_matrix():
    last = load(FOLDER / "softmax_jacobian.py").steps[-1]
    assert str(last.expression) == "(diag(p) - outer(p, p)) @ dp"


# --- writing one ---


def test_automatic_definitions_come_before_the_steps_that_use_them(attention):
    *variables, O = attention
    text = sa.Derivation("A").extend(sa.gradient(O, variables)).text()
    assert text.index("Z  = Q @ K.T / sqrt(d)") < text.index("P  = softmax(Z)") < text.index("dV = P.T @ dO")


def test_paragraphs_and_blocks_alternate_in_latex(attention):
    *variables, O = attention
    D = sa.Derivation("50% of $ & _", given=[*variables, "that d is large"])
    D.text("First.").extend(sa.let("O", O)).text("Then, as x < y.").extend(sa.gradient(O, variables))
    latex = D.latex()
    assert latex.startswith(r"\section*{50\% of \$ \& \_}")
    assert r"$Q \in \mathbb{R}^{T \times d}$" in latex
    assert latex.count(r"\begin{align}") == latex.count(r"\end{align}") == 2
    assert latex.index("First.") < latex.index(r"\begin{align}") < latex.index("Then, as x $<$ y.")


def test_a_chain_leaves_its_left_side_empty_and_says_it_again_after_a_paragraph():
    x = sa.tensor("x", "n")
    y = sa.let("y", sa.sum(x * x))
    D = sa.Derivation("A").extend(y).then(x @ x, because="a dot product").text("So:").then(sa.sum(x**2))
    assert D.text().splitlines()[3:] == [
        "  y = sum(x * x)  # by definition",
        "    = x @ x       # a dot product",
        "",
        "So:",
        "",
        "  y = sum(x**2)",
    ]
    assert r"   &= x^{\top} x" in D.latex()


def test_two_gradients_of_one_name_are_numbered(attention):
    Q, K, _, O = attention
    D = sa.Derivation("A").extend(sa.gradient(sa.let("O", O), Q), sa.gradient(sa.let("R", Q @ K.T), Q))
    assert "dQ_1 = " in D.text()
    assert "dQ_2 = " in D.text()


def test_hypotheses_are_part_of_what_is_given():
    M = sa.tensor("M", "T S", binary=True)
    assert "Given M[T, S] (binary)." in sa.Derivation("A", given=[M]).text()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda D, x: D.then(x), "begin with extend"),
        (lambda D, x: D.extend(x), r"not x\[n\]"),
        (lambda D, x: D.extend(sa.let("y", x)).then(x, relation="<="), "equalities"),
        (lambda D, x: sa.Derivation(""), "title"),
        (lambda D, x: sa.Derivation("A", given=[3]), "given"),
    ],
)
def test_misuse_is_an_operand_error_that_says_what_is_meant(act, message):
    with pytest.raises(sa.OperandError, match=message):
        act(sa.Derivation("A"), sa.tensor("x", "n"))


def test_a_chain_keeps_its_shape():
    x = sa.tensor("x", "n")
    with pytest.raises(sa.ShapeError, match="shapes differ"):
        sa.Derivation("A").extend(sa.let("y", x)).then(sa.sum(x))


# --- verify ---


def test_a_wrong_line_of_a_chain_is_named_with_its_sizes_and_entry():
    p, dp = sa.tensor("p", "n"), sa.tensor("dp", "n")
    D = sa.Derivation("A").extend(sa.let("y", p * (dp - p @ dp))).then((sa.diag(p) + sa.outer(p, p)) @ dp)
    with pytest.raises(sa.EvaluationError, match=r"step y \(line 2\) at n = \d+: entry \[0\] is .* but"):
        D.verify()


def test_a_wrong_gradient_is_told_apart_from_central_differences():
    from symattn.ops import RECORDS

    rule = RECORDS["matmul"].vjp
    halved = lambda g, y, a, b, core: (rule(g, y, a, b, core)[0] / 2, rule(g, y, a, b, core)[1])  # noqa: E731
    object.__setattr__(RECORDS["matmul"], "vjp", halved)
    try:
        Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "S d")
        D = sa.Derivation("A").extend(sa.gradient(Q @ K.T, [Q, K]))
    finally:
        object.__setattr__(RECORDS["matmul"], "vjp", rule)
    with pytest.raises(sa.EvaluationError, match="step dQ at .*entry"):
        D.verify()


def test_verify_covers_intermediates_scalars_masks_and_losses():
    Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    M = sa.tensor("M", "T S", binary=True)
    c = sympy.Symbol("c", real=True)
    Z = sa.let("Z", c * sa.tanh(Q @ K.T / c))
    P = sa.let("P", sa.softmax(Z, where=M))
    loss = sa.let("L", sa.sum((P @ V) ** 2))
    report = sa.Derivation("A").extend(Z, P, loss, sa.gradient(loss, [Q, K, V, c, Z, P])).verify()
    checked = {check.name for check in report if check.error is not None}
    assert {"dQ", "dK", "dV", "dc", "dZ", "dP"} <= checked
    assert all(len(check.sizes) == 2 for check in report if check.error is not None)


def test_the_report_claims_no_proof():
    text = str(load(FOLDER / "softmax_jacobian.py").verify())
    assert "checked numerically" in text
    assert "prove" not in text.lower()
