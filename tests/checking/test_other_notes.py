r"""Notes as people write them, each right, and the same with one mistake: it is found, with what was meant."""

from __future__ import annotations

import pytest

import symattn as sa

BACKWARD = r"""\section{Backward}
Let $Q, K \in \mathbb{R}^{n \times d}$ and $V \in \mathbb{R}^{n \times v}$.
\begin{align} S &= Q K^\top / \sqrt{d} \\ P &= \mathrm{softmax}(S) \\ O &= P V \end{align} Then
\begin{align} dV &= P^\top dO \\ dP &= dO V^\top \\ dS &= P \odot (dP - (P \odot dP) \mathbf{1}\mathbf{1}^\top) \\
dQ &= dS K / \sqrt{d} \\ dK &= dS^\top Q / \sqrt{d} \end{align}
"""
KERNEL = r"""## Backward
$Q \in \mathbb{R}^{T \times d}$, $K \in \mathbb{R}^{S \times d}$, $V \in \mathbb{R}^{S \times e}$.
$Z = Q K^\top / \sqrt{d}$, $P = \mathrm{softmax}(Z)$, $O = P V$.
We store $D_i = \sum_j dO_{ij} O_{ij}$, and $dZ_{ij} = P_{ij} (dP_{ij} - D_i)$ where $dP = dO V^\top$.
"""
BLOG = r"""# Attention from scratch
Each token is a row of $X \in \mathbb{R}^{n \times d}$. With $W_Q, W_K \in \mathbb{R}^{d \times d_k}$ and
$W_V \in \mathbb{R}^{d \times d_v}$, $$Q = X W_Q, \quad K = X W_K, \quad V = X W_V.$$
$$O = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V.$$ Note that $Q K^\top = X W_Q W_K^\top X^\top$.
"""
LAYER = r"""Let $Z, Y \in \mathbb{R}^{n \times c}$, $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times c}$ and
$Z = X W$. Then $dW = X^\top dZ$ and $dX = dZ W^\top$."""
MOMENTS = r"""Let $q, k \in \mathbb{R}^{d}$ with independent entries $q_i \sim \mathcal{N}(0, 1)$, $k_i \sim
\mathcal{N}(0, 1)$. Then $\mathbb{E}[q^\top k] = 0$ and $\mathrm{Var}[q^\top k] = d$: for $d = 64$,
$\mathrm{Var}[q^\top k] = 64$.
"""
NORM = r"""For $x \in \mathbb{R}^{d}$ let $\mu = \frac{1}{d} \sum_i x_i$ and
$\sigma^2 = \frac{1}{d} \sum_i (x_i - \mu)^2$. Then $\sigma^2 = \frac{1}{d} \sum_i x_i^2 - \mu^2$
and $\sum_i (x_i - \mu) = 0$.
"""
MASK = r"""$Q \in \mathbb{R}^{n \times d}$, $K \in \mathbb{R}^{m \times d}$, $V \in \mathbb{R}^{m \times v}$.
The mask $M \in \mathbb{R}^{n \times m}$ is added: $A = \mathrm{softmax}(Q K^\top / \sqrt{d} + M)$, and $O = A V$."""
LSE = r"""z \in \mathbb{R}^{n}
L = \log \sum_j \exp(z_j)
p = \mathrm{softmax}(z)
\log p_i = z_i - L
"""
SHIFT = r"""Let
$z \in \mathbb{R}^n$, $c \in \mathbb{R}$ and $p = \mathrm{softmax}(z)$. Then $\mathrm{softmax}(z + c) = p$,
and $\sum_i p_i = 1$."""
PRODUCTS = r"""Let $A \in \mathbb{R}^{n \times m}$, $B \in \mathbb{R}^{m \times n}$. Then
$\operatorname{tr}(A B) = \operatorname{tr}(B A)$ and $(A B)^\top = B^\top A^\top$."""
PLAIN = r"""It takes $Q \in R^{n x d}$, $K \in R^{m x d}$ and $V \in \mathbf{R}^{m \times v}$.
We have $O = softmax(Q K^T / \sqrt{d}) V$, so $O^T = V^T softmax(Q K^T / \sqrt{d})^T$.
That it is invariant to permutations of the rows of $Q$ is false."""
RIGHT = {
    "backward": (BACKWARD, ".tex"), "kernel": (KERNEL, ".md"), "blog": (BLOG, ".md"), "layer": (LAYER, ".tex"),
    "moments": (MOMENTS, ".md"), "norm": (NORM, ".md"), "mask": (MASK, ".md"), "lse": (LSE, ".txt"),
    "products": (PRODUCTS, ".tex"), "plain": (PLAIN, ".md"), "shift": (SHIFT, ".md"),
}  # fmt: skip

MISTAKES = {
    "dK without the transpose": ("backward", r"dS^\top Q", "dS Q", "refuted", r"\mathrm{d}S^{\top} \, Q"),
    "dQ without the scale": ("backward", r"dS K / \sqrt{d}", "dS K", "refuted", r"\sqrt{d}"),
    "dP with the factors swapped": ("backward", r"dO V^\top", r"V dO^\top", "refuted", r"\mathrm{d}O \, V^{\top}"),
    "dS by the diagonal alone": (
        "backward", r"(dP - (P \odot dP) \mathbf{1}\mathbf{1}^\top)", "dP", "refuted", r"\mathbf{1} \mathbf{1}^{\top}",
    ),
    "D with another sign, by entries": ("kernel", "- D_i", "+ D_i", "refuted", r"\mathrm{d}Z ="),
    "V of the keys": ("blog", "V = X W_V", "V = X W_K", "warning", "W_V in place of W_K"),
    "the scale of tokens": ("blog", r"\sqrt{d_k}", r"\sqrt{d}", "warning", "1/sqrt(d_k) in place of 1/sqrt(d)"),
    "a projection without transpose": ("blog", r"W_K^\top X", "W_K X", "shape", r"W_K^\top X^\top"),
    "a gradient of weights transposed": ("layer", r"X^\top dZ", r"dZ^\top X", "shape", r"X^{\top} \, \mathrm{d}Z"),
    "the square of the variance": ("moments", "] = d$", "] = d^2$", "refuted", r"\mathrm{Var}[q^\top k] = d"),
    "a variance of one": ("moments", "] = d$", "] = 1$", "refuted", r"\mathrm{Var}[q^\top k] = d"),
    "the variance without its factor": ("norm", r"\frac{1}{d} \sum_i x_i^2 -", r"\sum_i x_i^2 -", "warning", "{d} -"),
    "a mask as a factor": ("mask", r"Q K^\top / \sqrt{d} + M", r"M \odot Q K^\top / \sqrt{d}", "warning", "add 0"),
    "the sign of a logarithm": ("lse", "z_i - L", "L - z_i", "refuted", "-(L - z)"),
    "weights without the transpose": ("plain", r"V^T softmax", "V softmax", "shape", r"V^\top softmax"),
    "a product transposed": ("products", r"B^\top A^\top", r"A^\top B^\top", "shape", r"B^\top A^\top"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "suffix"), RIGHT.values(), ids=RIGHT)
def test_right_notes_raise_no_alarm_and_nothing_of_them_is_left_out(text: str, suffix: str) -> None:
    report = sa.check_notes(text, suffix)
    assert {one.status for one in report.findings} <= {"declared", "defined", "given", "proved", "mention"}


@pytest.mark.parametrize(("name", "old", "new", "status", "meant"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake_is_found_with_what_was_meant(name: str, old: str, new: str, status: str, meant: str) -> None:
    text, suffix = RIGHT[name]
    assert old in text
    (found,) = [*(report := sa.check_notes(text.replace(old, new), suffix)).wrong, *report.warnings]
    assert found.status == status
    assert any(meant in one for one in found.suggestions)


def test_the_reasons_beside_rows_are_words_and_what_is_behind_them_keeps_its_place() -> None:
    text = r"""$A, B \in \mathbb{R}^{n \times n}$.
\begin{align}
(A B)^\top &= B^\top A^\top && \text{reversed, as $n$ is free} \\
\operatorname{tr}(A B) &= -\operatorname{tr}(B A) && \text{cyclic}
\end{align}
"""
    found = [one for one in sa.check_notes(text, ".tex").findings if one.status != "declared"]
    assert [(one.status, one.line, one.column) for one in found] == [("proved", 3, 1), ("refuted", 4, 1)]


def test_a_sign_that_is_explained_is_mentioned() -> None:
    report = sa.check_notes(r"Entrywise products are $\odot$, definitions $:=$ or $\mathrel{:=}$, and $=$ is a claim.")
    assert [one.status for one in report.findings] == ["mention"] * 4
