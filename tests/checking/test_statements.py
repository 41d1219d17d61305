"""Documents are read statement by statement: in sections, with derivatives held against those that follow."""

from __future__ import annotations

from typing import Any

import pytest

import symattn as sa

ATTENTION = r"""
Let $Q \in \mathbb{R}^{T \times d}$, $K \in \mathbb{R}^{S \times d}$ and $V \in \mathbb{R}^{S \times e}$.
$$ Z = Q K^\top / \sqrt{d}, \quad P = \mathrm{softmax}(Z), \quad O = P V $$
"""
BACKWARD = {
    "dV": r"P^\top dO",
    "dP": r"dO V^\top",
    "dZ": r"P \odot (dP - \mathrm{rowsum}(P \odot dP))",
    "dQ": r"dZ K / \sqrt{d}",
    "dK": r"dZ^\top Q / \sqrt{d}",
}
WRONG_BACKWARD = {
    "no scale": ("dQ", r"dZ K", "refuted"),
    "no transpose": ("dK", r"dZ Q / \sqrt{d}", "shape"),
    "no sum of rows": ("dZ", r"P \odot dP", "refuted"),
    "another sign": ("dZ", r"P \odot (dP + \mathrm{rowsum}(P \odot dP))", "refuted"),
    "the sum over columns": ("dZ", r"P \odot (dP - \mathbf{1} \mathbf{1}^\top (P \odot dP))", "refuted"),
    "twice the scale": ("dK", r"dZ^\top Q / d", "refuted"),
}


def statuses(report: Any, *kinds: str) -> list[tuple[str, str]]:
    return [(one.status, one.statement) for one in report.findings if one.status in kinds]


def test_every_line_of_a_backward_pass_is_proved() -> None:
    lines = r" \\ ".join(f"{name} &= {right}" for name, right in BACKWARD.items())
    report = sa.check_notes(rf"{ATTENTION} \begin{{align}} {lines} \end{{align}}")
    assert [one.message for one in report.findings if one.status == "proved"] == [
        f"the derivative by {name[1:]}" for name in BACKWARD
    ]
    assert report.exit_code == 0


@pytest.mark.parametrize(("name", "right", "status"), WRONG_BACKWARD.values(), ids=WRONG_BACKWARD)
def test_a_wrong_line_is_found_and_the_lines_below_it_are_not_blamed(name: str, right: str, status: str) -> None:
    lines = r" \\ ".join(f"{n} &= {right if n == name else r}" for n, r in BACKWARD.items())
    report = sa.check_notes(rf"{ATTENTION} \begin{{align}} {lines} \end{{align}}")
    (wrong,) = report.wrong
    assert (wrong.status, wrong.statement.partition(" ")[0]) == (status, name)
    assert wrong.suggestions


def test_what_an_equation_says_of_a_defined_tensor_is_a_claim_and_never_taken_as_given() -> None:
    report = sa.check_notes(rf"{ATTENTION} $\sum_i P_{{ij}} = 1$ and $\sum_j P_{{ij}} = 1$")
    assert statuses(report, "refuted", "proved", "given") == [
        ("refuted", r"\sum_i P_{ij} = 1"), ("proved", r"\sum_j P_{ij} = 1"),
    ]  # fmt: skip


def test_each_statement_has_a_place_of_its_own() -> None:
    lines = ("$A, B \\in \\mathbb{R}^{n \\times n}$", r"\begin{align}", r"C &= A B \\", r"C^\top &= A^\top B^\top")
    text = "\n".join([*lines, r"\end{align}"])
    (wrong,) = sa.check_notes(text).wrong
    assert (wrong.line, wrong.column) == (4, 1)


def test_a_name_may_be_another_one_in_a_new_section_and_not_in_the_same() -> None:
    first, again = r"$X \in \mathbb{R}^{n \times d}$. $Z = X X^\top$.", r"$Z = 2 X X^\top$"
    assert statuses(sa.check_notes(f"# One\n{first}\n# Two\n{again}"), "warning", "ambiguous") == [
        ("ambiguous", again.strip("$")),
    ]  # fmt: skip
    assert statuses(sa.check_notes(f"# One\n{first}\n{again}"), "warning", "ambiguous") == [
        ("warning", again.strip("$")),
    ]  # fmt: skip


def test_a_formula_after_a_name_was_declared_again_elsewhere_is_ambiguous_where_it_does_not_fit() -> None:
    text = r"""$Q \in \mathbb{R}^{T \times d}, K \in \mathbb{R}^{S \times d}$
# Heads
$Q \in \mathbb{R}^{T \times m}$
# Scores
$Z = Q K^\top$"""
    report = sa.check_notes(text)
    assert statuses(report, "ambiguous", "shape") == [("ambiguous", r"Z = Q K^\top")]


@pytest.mark.parametrize(
    "words", ["If {} then it is small.", "It is not true that {}.", "Suppose {}.", r"Note that {} is wrong."]
)
def test_words_that_make_no_claim_of_a_formula(words: str) -> None:
    report = sa.check_notes(r"$A, B \in \mathbb{R}^{n \times n}$" + "\n\n" + words.format("$A B = B A$"))
    assert not report.wrong
    assert [one.statement for one in report.skipped] == ["A B = B A"]


def test_what_an_implication_supposes_is_no_claim() -> None:
    assert not sa.check_notes(r"$A, B \in \mathbb{R}^{n \times n}$: $A B = B A \implies A B A = A A B$").wrong


def test_what_a_declared_tensor_has_to_fulfil_is_given() -> None:
    report = sa.check_notes(r"$W \in \mathbb{R}^{d \times d}$, $W^\top W = I$, $(W X)^\top (W X) = X^\top X$ "
                            r"for $X \in \mathbb{R}^{d \times n}$")  # fmt: skip
    assert [one.status for one in report.findings if one.status != "declared"] == ["given", "proved"]


def test_sizes_that_are_equal_are_one_from_there_on() -> None:
    text = r"$q \in \mathbb{R}^{1 \times d_q}, K \in \mathbb{R}^{n \times d_k}$. {}$r = q K^\top$"
    (wrong,) = sa.check_notes(text.replace("{}", "")).wrong
    assert wrong.suggestions == ("d_{k} = d_{q}, which would have to be said",)
    assert not sa.check_notes(text.replace("{}", "$d_q = d_k$. ")).wrong


def test_a_family_below_a_sum_is_no_single_tensor() -> None:
    with pytest.raises(sa.ParseError, match="not decided"):
        sa.parse_latex(r"x_i \in \mathbb{R}^{d}; X \in \mathbb{R}^{n \times d}; s = \sum_{i=1}^n x_i")


def test_a_size_that_is_made_of_others_is_known_by_its_parts():
    report = sa.check_notes(r"$d = D/h$, $X \in \mathbb{R}^{n \times D}$, $u \in \mathbb{R}^{d}$. $Z = X W$.")
    assert any("no shape for W" in skipped.message for skipped in report.skipped)
