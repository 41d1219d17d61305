"""Scripts, limits and whole matrices beside entries: read with their one meaning, or refused with what to write."""

from __future__ import annotations

from typing import Any

import pytest

import symattn as sa
from symattn.errors import ParseError, ShapeError

n, m, d = sa.sizes("n m d")
A, B = sa.tensor("A", n, n), sa.tensor("B", n, n)
Q, K = sa.tensor("Q", n, d), sa.tensor("K", m, d)
x, y = sa.tensor("x", n), sa.tensor("y", n)


def band(condition: Any) -> sa.Tensor:
    return sa.where(sa.from_index((n, n), condition), A, 0)


NAMES: dict[str, Any] = {"A": A, "B": B, "Q": Q, "K": K, "x": x, "y": y, "n": n, "m": m, "d": d}


def refused(text: str, said: str) -> None:
    with pytest.raises((ParseError, ShapeError)) as caught:
        sa.parse_latex(text, NAMES)
    assert said in str(caught.value)


READ: list[tuple[str, sa.Tensor]] = [
    (r"(A B)^\top_{ij}", (A @ B).T),
    (r"(Q K^\top)^\top_{ij}", (Q @ K.T).T),
    (r"\operatorname{softmax}(A)^\top_{ij}", sa.softmax(A).T),
    (r"((A + B)^{-1})_{ij}", sa.inv(A + B)),
    (r"((A + B)_{ij})^{-1}", 1 / (A + B)),
    (r"(A B)_{ij}^2", (A @ B) ** 2),
    (r"(A B)^{\odot 2}_{ij}", (A @ B) ** 2),
    (r"[A_{ij}]_{ij}^{-1}", sa.inv(A)),
    (r"[A_{ij}]^\top_{ij}", A.T),
    (r"\sum_{j=1}^{n} I_{ij} A_{ij}", sa.sum(sa.eye(n) * A, axis=-1)),
    (r"W_{il} = \sum_{j=l}^{i} A_{ij} B_{jl}", sa.tril(A) @ sa.tril(B)),
    (r"\sum_{j=i}^{n} A_{ij} x_j", sa.triu(A) @ x),
    (r"\sum_{j=i+1}^{n} A_{ij} x_j", sa.triu(A, 1) @ x),
    (r"\sum_{j=0}^{i-1} A_{ij} x_j", sa.tril(A, -1) @ x),
    (r"\sum_{j=\max(1, i-2)}^{i} A_{ij} x_j", band(lambda i, j: (i - 2 <= j) & (j <= i)) @ x),
    (r"\sum_{j=\max(0, i-d)}^{\min(n-1, i+1)} A_{ij} x_j", band(lambda i, j: (i - d <= j) & (j <= i + 1)) @ x),
    (r"\sum_{j=2}^{n} A_{ij} x_j", band(lambda i, j: j >= 1) @ x),
    (r"\sum_i x_i A", sa.sum(x) * A),
    (r"\log(\sum_j \exp(x_j)/n)", sa.log(sa.sum(sa.exp(x)) / n)),
    (r"S_{ij} = A_{ij} / \sum_j A_{ij}", A / sa.sum(A, axis=-1, keepdims=True)),
    (r"s^2 = \frac{1}{n} \sum_{i=1}^{n} x_i^2", sa.sum(x * x) / n),
    (
        r"W_{ij} = \begin{cases} A_{ij} & i = j \\ 2 A_{ij} & i > j \\ 0 & i < j \end{cases}",
        2 * sa.tril(A) - sa.eye(n) * A,
    ),
    (r"W^\top = A B", (A @ B).T),
    (r"W^\top = Q \in \mathbb{R}^{n \times d}", Q.T),
    (r"(W_q)_{ij} = B_{ij}", B),
    (r"q_i^\top = Q_i^\top", Q),
]


@pytest.mark.parametrize(("text", "meant"), READ)
def test_what_is_read_is_what_is_meant(text: str, meant: sa.Tensor) -> None:
    found = sa.parse_latex(text, NAMES)
    assert sa.prove(getattr(found, "value", found), meant)


def test_limits_are_of_a_declared_range() -> None:
    counted = {**NAMES, "j": "1..n"}
    assert sa.prove(
        sa.parse_latex(r"\sum_{j=2}^{i} A_{ij}", counted), sa.sum(band(lambda i, j: (j >= 1) & (j <= i)), -1)
    )
    assert sa.prove(
        sa.parse_latex(r"\sum_{j=1}^{n-1} x_j", counted), sa.sum(x * sa.from_index((n,), lambda i: i <= n - 2))
    )
    pairs = sa.parse_latex(r"\sum_{i=1}^{n-1} \sum_{j=i+1}^{n} A_{ij}", NAMES, first_index=1)
    assert sa.prove(pairs, sa.sum(band(lambda i, j: (j > i) & (i <= n - 2))))
    found = sa.parse_latex(r"\sum_{j=1}^{n} e^{j}", counted)
    assert str(found) == "Sum(exp(j), (j, 1, n))"


REFUSED: list[tuple[str, str]] = [
    (r"(A + B)^{-1}_{ij}", "write ((A + B)^{-1})_{ij}, or ((A + B)_{ij})^{-1}"),
    (r"\sum_j (I + A)^{-1}_{ij} x_j", "a power of an entry"),
    (r"(A B)^2_{ij}", "a power of an entry"),
    (r"(A B)^{-\top}_{ij}", "a power of an entry"),
    (r"\exp(A)^{-1}_{ij}", "a power of an entry"),
    (r"(A B)_{ij}^\top", "whether the whole or its part is transposed"),
    (r"\operatorname{softmax}(A)^\top_{i,:} x", "whether the whole or its part is transposed"),
    (r"A^\top_{i,:} x", "a transposed entry is not decided"),
    (r"g_i = \sum_{j=2}^{i} A_{ij}", "where j begins is not decided"),
    (r"g_i = \sum_{j=-2}^{i} A_{ij}", "where j begins is not decided"),
    (r"\sum_{j=1}^{i+1} A_{ij}", "j = i+1 may leave its places, 1 to n: write the limit as \\min(n, i+1)"),
    (r"\sum_{j=i-2}^{n} A_{ij}", "j = i-2 may leave its places, 1 to n: write the limit as \\max(1, i-2)"),
    (r"\sum_{j=0}^{i+1} A_{ij}", "\\min(n - 1, i+1)"),
    (r"\sum_{j=1}^{n-1} x_j", "declare where it begins"),
    (r"\sum_{j=2} x_j", "no upper limit"),
    (r"\sum_{j=1}^{j} x_j", "in its own limits"),
    (r"\sum_{j=1}^{n/2} x_j", "whole number"),
    (r"W^\top_{ij} = B_{ij}", "a transpose is not declared"),
    (r"\hat{A}^\top_{ij} = A_{ij}", "a transpose is not declared"),
    (r"(W^\top)_{ij} = B_{ij}", "a transpose is not declared"),
    (r"W^\top \in \mathbb{R}^{d \times n}", "a transpose is not declared"),
    (r"W^{\odot 2} = B", "a power is not declared"),
    (r"W^2 = B", "a power is not declared"),
    (r"W^{-1} \in \mathbb{R}^{n \times n}", "a power is not declared"),
    (r"W^{-\top} = B", "a power is not declared"),
    (r"(W)^\top = B", "no shape for W"),
    (r"W_{:,j} = B_{j,:}", "write all entries"),
    (r"W_{ii} = x_i", "write all entries"),
    (r"W_{iji} = A_{ij}", "write all entries"),
    (r"W_{i,0} = x_i", "write all entries"),
    (r"\frac{\exp(A)}{\sum_j \exp(A_{ij})}", "write its entries too"),
    (r"A / \sum_j A_{ij}", "write its entries too"),
    (r"Q - x_i", "write its entries too"),
    (r"A x_i", "write its entries too"),
    (r"x - y_i", "write its entries too"),
    (r"\log \sum_j \exp(x_j)/n", "write parentheses around the argument"),
    (r"\exp \sum_j x_j / n", "write parentheses around the argument"),
    (r"\infty - \infty", "has no value"),
    (r"0 \infty", "has no value"),
    (r"A_{-1,:}", "they are 0 to n - 1"),
    (r"A - \infty [j > i]", "no index here"),
    (r"s^2 = A", "a power is not declared"),
    (r"A_{i,:i}", "i is no size: i is an index here"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_has_two_meanings_is_refused(text: str, said: str) -> None:
    refused(text, said)
