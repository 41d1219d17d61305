"""Documents with mistakes as people make them, and documents without any."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import symattn as sa
from symattn.cli import main

ATTENTION = r"""
<!-- symattn: Q: T d; K: S d; V: S e -->
The scores are $Z = Q K^\top / \sqrt{d}$ and the output is $O = \mathrm{softmax}(Z) V$.
"""
# What people write, what is said of it, and a word of what was meant.
WRONG = {
    "a transpose": (
        r"$A \in \mathbb{R}^{n \times n}, B \in \mathbb{R}^{n \times n}$: $(A B)^\top = A^\top B^\top$",
        "refuted", r"B^{\top} A^{\top}",
    ),
    "another projection, by its shape": (
        r"$X \in \mathbb{R}^{n \times d}$, $W^K \in \mathbb{R}^{d \times k}$, $W^V \in \mathbb{R}^{d \times v}$, "
        r"$V \in \mathbb{R}^{n \times v}$. $V = X W^K$", "shape", "V = X W^V",
    ),
    "another projection, of the same shape": (
        r"$X \in \mathbb{R}^{n \times d}$, $W^K \in \mathbb{R}^{d \times k}$, $W^V \in \mathbb{R}^{d \times k}$. "
        r"$K = X W^K$. $V = X W^K$", "warning", "W_V in place of W_K",
    ),
    "the width of something else": (
        r"$Q \in \mathbb{R}^{T \times k}, K \in \mathbb{R}^{S \times k}, V \in \mathbb{R}^{S \times d}$. "
        r"$O = \mathrm{softmax}(Q K^\top / \sqrt{d}) V$", "warning", "1/sqrt(k) in place of 1/sqrt(d)",
    ),
    "a mask as a factor": (
        r"$Q \in \mathbb{R}^{T \times k}, K \in \mathbb{R}^{S \times k}, M \in \mathbb{R}^{T \times S}$. "
        r"$P = \mathrm{softmax}(M \odot (Q K^\top))$", "warning", "add 0 where a score is kept",
    ),
    "invariant for equivariant": (
        "Self-attention does not change when the tokens are permuted: it is invariant.", "warning", "equivariant",
    ),
    "invariant for equivariant, in a formula": (
        r"$X \in \mathbb{R}^{n \times d}$ <!-- symattn: P: n n, permutation -->"
        r" $A(X) = \mathrm{softmax}(X X^\top) X$. $A(P X) = A(X)$", "refuted", "",
    ),
    "one index for two": (r"$\alpha(x_i) = \sum_{i=1}^n K(x - x_i)$", "warning", "another letter"),
    "a softmax of one score": (r"$\mathrm{softmax}(z_i) = \frac{e^{z_i}}{\sum_j e^{z_j}}$", "warning", "softmax(z)_i"),
    "weights that do not add up": (r"$0.2 \times v_1 + 0.4 v_2 + 0.2 \cdot v_3$", "warning", "a softmax may give"),
    "widths that do not agree": (
        r"$q \in \mathbb{R}^{1 \times a}, K \in \mathbb{R}^{n \times b}$. $r = q K^\top$", "shape", "",
    ),
    "a variance without a law": (
        r"$q \in \mathbb{R}^d, k \in \mathbb{R}^d$. $\mathrm{Var}(q^\top k) = d$", "warning", r"\mathcal{N}",
    ),
    "the softmax Jacobian": (
        r"$z \in \mathbb{R}^n$. $p = \mathrm{softmax}(z)$. "
        r"$\frac{\partial p}{\partial z} = \mathrm{diag}(p) + p p^\top$", "refuted", r"p p^{\top}",
    ),
}  # fmt: skip
RIGHT = [
    ATTENTION,
    r"$A \in \mathbb{R}^{n \times n}, B \in \mathbb{R}^{n \times n}$: $(A B)^\top = B^\top A^\top$",
    r"$X \in \mathbb{R}^{n \times d}$ <!-- symattn: P: n n, permutation -->"
    r" $A(X) = \mathrm{softmax}(X X^\top) X$. $A(P X) = P A(X)$",
    r"$Q \in \mathbb{R}^{T \times d}$. $Q \in \mathbb{R}^{T \times k}$, $K \in \mathbb{R}^{S \times k}$. $Q K^\top$",
    r"The weights are such that $\sum_j w_j = 1$ for $w \in \mathbb{R}^n$.",
    "Attention is permutation equivariant: where tokens are permuted the outputs are permuted alike, not invariant.",
    "Pay $5 for 3 apples and $6 for 4.",
    "| $P$ | $\\mathbb{R}^{n \\times n}$ | a permutation |\n| $X$ | $\\mathbb{R}^{n \\times d}$ | tokens |\n\n"
    "$\\mathrm{softmax}(P X) = P \\thinspace \\mathrm{softmax}(X)$ at $n = 2$ and "
    "$X = \\begin{bmatrix} 1 \\cr 0 \\end{bmatrix}$",
    r"$X \in \mathbb{R}^{n \times E}, A \in \mathbb{R}^{E \times d}, B \in \mathbb{R}^{E \times d}$: "
    r"$P = \mathrm{softmax}(X A B^\top X^\top / \sqrt{d})$",
]


@pytest.mark.parametrize(("text", "status", "meant"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_found_and_what_was_meant_is_told(text, status, meant):
    report = sa.check_notes(text)
    found = [finding for finding in report.findings if finding.status == status]
    assert found, report
    assert report.exit_code == 1
    assert any(meant in suggestion for finding in found for suggestion in finding.suggestions) or not meant


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_raises_no_alarm(text):
    report = sa.check_notes(text)
    assert not report.wrong
    assert not report.warnings
    assert report.exit_code in (0, 3)


def test_everything_is_counted_and_what_is_skipped_has_a_reason():
    text = ATTENTION + r" and $x$, and $f(u, v) = \spadesuit$, and $Q K^\top = (K Q^\top)^\top$"
    report = sa.check_notes(text)
    status = [finding.status for finding in report.findings]
    assert sorted(status) == ["declared"] * 3 + ["defined"] * 2 + ["mention", "proved", "skipped"]
    assert all(finding.message for finding in report.skipped)
    assert str(report).splitlines()[-1] == (
        "3 checked, 0 wrong, 0 warned of (3 declared, 2 defined, 1 mention, 1 proved, 1 skipped)"
    )


def test_shapes_that_do_not_fit_are_told_with_where_they_were_declared():
    report = sa.check_notes("$q \\in \\mathbb{R}^{1 \\times a}$\n$K \\in \\mathbb{R}^{n \\times b}$\n\n$r = q K^\\top$")
    (finding,) = report.wrong
    assert (finding.line, finding.column) == (4, 2)
    assert finding.message == (
        "the product: the left is 1×a, the right is b×n; q[1, a] is declared in line 1; K[n, b] is declared in line 2"
    )


def test_reports_are_json_and_sarif():
    report = sa.check_notes(WRONG["a transpose"][0], name="notes.md")
    told = json.loads(json.dumps(report.json()))
    assert (told["version"], told["file"]) == (1, "notes.md")
    assert [one["status"] for one in told["findings"]] == ["declared", "declared", "refuted"]
    (result,) = report.sarif()["results"]
    assert result["level"] == "error"
    location = result["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": "notes.md"}, "region": {"startLine": 1, "startColumn": 66}}


@pytest.mark.parametrize(("arguments", "said"), [
    ((3,), "takes the text of a document, not 3"),
    (("$a$", ".doc"), "suffix is '.md', '.tex', '.txt' or '.ipynb', not '.doc'"),
    (("{}", ".ipynb"), "JSON with a list of cells"),
])  # fmt: skip
def test_what_is_no_document_is_said(arguments, said):
    with pytest.raises(sa.OperandError, match=said):
        sa.check_notes(*arguments)


# --- the command line ---


@pytest.mark.parametrize(("text", "code"), [
    (ATTENTION, 0), (WRONG["a transpose"][0], 1), ("no mathematics", 3),
], ids=["clean", "wrong", "nothing to decide"])  # fmt: skip
def test_check_exits_with_what_was_found(tmp_path: Path, capsys, text, code):
    path = tmp_path / "notes.md"
    path.write_text(text, encoding="utf-8")
    assert main(["check", str(path)]) == code
    assert "checked" in capsys.readouterr().out


def test_check_writes_json_and_sarif_of_several_files(tmp_path: Path, capsys):
    names = [str(tmp_path / name) for name in ("a.md", "b.tex")]
    for name in names:
        Path(name).write_text(WRONG["a transpose"][0], encoding="utf-8")
    assert main(["check", *names, "--json"]) == 1
    assert [one["file"] for one in json.loads(capsys.readouterr().out)] == names
    assert main(["check", *names, "--sarif"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == "2.1.0"
    assert len(told["runs"]) == 2


def test_a_file_that_is_not_there_is_a_mistake_in_the_call(tmp_path: Path, capsys):
    assert main(["check", str(tmp_path / "absent.md")]) == 2
    assert "there is no such file" in capsys.readouterr().err


# --- hostile documents ---

PIECES = [
    "$", "$$", "\\[", "\\]", "\\frac{", "}", "{", "^", "_", "\\sum_{i=1}^n", "Q", "K^\\top", "=", "\\in",
    "\\mathbb{R}^{n \\times d}", "\\softmax(", ")", "\\begin{align}", "\\end{align}", "&", "\\\\", "9^{9^{9}}",
    "__import__('os')", "\n", " ", "x_i", "\\left(", "<!-- symattn: Q: T d -->", "<!-- symattn: ; : -->", "\\right)",
    "\\text{", "é", "\x00", "%", "`", "10**10**10", "'",
]  # fmt: skip


def hostile(seed: int) -> str:
    return "".join(random.Random(seed).choices(PIECES, k=40))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_hostile_documents_are_read_to_their_end(first):
    for seed in range(first, first + 20):
        for suffix in (".md", ".tex"):
            assert str(sa.check_notes(hostile(seed), suffix)).endswith(")")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_many_hostile_documents_are_read_to_their_end(first):
    for seed in range(first, first + 50):
        assert str(sa.check_notes(hostile(seed))).endswith(")")
