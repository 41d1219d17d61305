r"""Mistakes of notes on attention that formulas can show: each is found, and most with the formula that was meant.

Numbers are those of a list of 28, in which the others are mistakes of sentences. Beside each stands the right form,
which raises no alarm.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

import symattn as sa


class Mistake(NamedTuple):
    """A document, what is found in it, a part of what is offered, and the document without the mistake."""

    wrong: str
    status: str
    meant: str
    right: str


SELF = r"$\mathbf{X} \in {\mathbb{R}}^{L \times d}$, ${\mathbf{W}}_{q/k/v} \in {\mathbb{R}}^{d \times d^{\prime}}$. " \
    r"$$\begin{array}{rl}\mathbf{Q}& =\mathbf{X}{\mathbf{W}}_q\\ \mathbf{K}& =\mathbf{X}{\mathbf{W}}_k\\ " \
    r"\mathbf{V}& =\mathbf{X}{\mathbf{W}}_v\end{array}$$ "  # fmt: skip
SCALED = r"$A := \mathrm{softmax}(\mathbf{Q} \mathbf{K}^\top / \sqrt{%s}) \mathbf{V}$"
WIDTHS = r"$X \in \mathbb{R}^{n \times d}$, $W^Q \in \mathbb{R}^{d \times d_q}$, " \
    r"$W^K \in \mathbb{R}^{d \times d_k}$, $W^V \in \mathbb{R}^{d \times d_v}$. " \
    r"$Q = X \cdot W^Q$, $K = X \cdot W^K$, "  # fmt: skip
ROW = r"$x_i \in \mathbb{R}^{1 \times d}$, $q_i = x_i \cdot W^Q$, $r_i = q_i \cdot K^T$"
TOKENS = r"$X \in \mathbb{R}^{n \times d}$ <!-- symattn: P: n n, permutation -->" \
    r"$A(X) = \mathrm{softmax}(X X^\top) X$. "  # fmt: skip
PROJECTIONS = r"$V = X \cdot %s \in \mathbb{R}^{n \times d_v}$"
KERNEL = r"$\alpha(q, k_i) = \alpha(x, x_i) = %s\frac{K(x - x_i)}{\sum_{j=1}^n K(x - x_j)}$"
LAW = r"$q \in \mathbb{R}^d, k \in \mathbb{R}^d$. %s $\mathrm{Var}(q^\top k / \sqrt{d}) = 1$"
PAIRS = r"$Q \in \mathbb{R}^{T \times d}, K \in \mathbb{R}^{S \times d}, V \in \mathbb{R}^{S \times e}$ " \
    r"<!-- symattn: P: S S, permutation --> $f(K, V) = \mathrm{softmax}(Q K^\top) V$. "  # fmt: skip
HEADS = r"$D = h e$, $H \in \mathbb{R}^{T \times h e}$, $W^O \in \mathbb{R}^{%s \times D}$. $O = H W^O$"

MISTAKES = {
    1: Mistake(SELF + SCALED % "d", "warning", "1/sqrt(d') in place of 1/sqrt(d)", SELF + SCALED % r"d^{\prime}"),
    2: Mistake(TOKENS + "$A(P X) = A(X)$", "refuted", "", TOKENS + "$A(P X) = P A(X)$"),
    7: Mistake(
        r"$X \in \mathbb{R}^{L \times d}$, $x \in \mathbb{R}^D$", "warning", "d in place of D",
        r"$X \in \mathbb{R}^{L \times d}$, $x \in \mathbb{R}^d$",
    ),
    9: Mistake(LAW % "", "warning", r"\mathcal{N}", LAW % r"$q \sim \mathcal{N}(0, I)$, $k \sim \mathcal{N}(0, I)$."),
    14: Mistake(HEADS % r"h m", "shape", "", HEADS % "h e"),
    15: Mistake(
        r"$\mathrm{softmax}(z_i) = \frac{e^{z_i}}{\sum_{j=1}^n e^{z_j}}$", "warning", "softmax(z)_i",
        r"$z \in \mathbb{R}^n$: $\mathrm{softmax}(z)_i = \frac{e^{z_i}}{\sum_{j=1}^n e^{z_j}}$",
    ),
    16: Mistake(KERNEL % r"\sum_{i=1}^n", "warning", "no sum", KERNEL % ""),
    17: Mistake(
        r"$o = 0.2 \times v_1 + 0.4 \times v_2 + 0.2 \times v_3$", "warning", "a softmax may give",
        r"$o = 0.2 \times v_1 + 0.4 \times v_2 + 0.4 \times v_3$",
    ),
    18: Mistake(
        r"$f = \sum_{i=1}^n \mathrm{softmax}(-\frac{1}{2} (x - x_i)^2) y_i$", "warning", "softmax(z)_i",
        r"$f = \sum_{i=1}^n \mathrm{softmax}(z)_i y_i$",
    ),
    21: Mistake(
        r"$Q \in \mathbb{R}^{T \times d}, K \in \mathbb{R}^{S \times d}$. $Z = Q K^\top / \sqrt{d} + M$", "skipped",
        r"M \in \mathbb{R}^{T \times S}",
        r"$Q \in \mathbb{R}^{T \times d}, K \in \mathbb{R}^{S \times d}, M \in \mathbb{R}^{T \times S}$. "
        r"$Z = Q K^\top / \sqrt{d} + M$",
    ),
    22: Mistake(PAIRS + "$f(P K, V) = f(K, V)$", "refuted", "", PAIRS + "$f(P K, P V) = f(K, V)$"),
    25: Mistake(WIDTHS + PROJECTIONS % "W^K", "shape", "W^V", WIDTHS + PROJECTIONS % "W^V"),
    26: Mistake(
        WIDTHS + "$V = X W^V$, " + ROW, "shape", "d_{k} = d_{q}", "$d_q = d_k$. " + WIDTHS + "$V = X W^V$, " + ROW,
    ),
}  # fmt: skip


@pytest.mark.parametrize("number", MISTAKES)
def test_a_mistake_is_found_with_what_was_meant(number: int) -> None:
    mistake = MISTAKES[number]
    found = [one for one in sa.check_notes(mistake.wrong).findings if one.status == mistake.status]
    assert found
    assert any(mistake.meant in offered for one in found for offered in (one.message, *one.suggestions))


@pytest.mark.parametrize("number", MISTAKES)
def test_the_right_form_raises_no_alarm(number: int) -> None:
    report = sa.check_notes(MISTAKES[number].right)
    assert not report.wrong
    assert not report.warnings
