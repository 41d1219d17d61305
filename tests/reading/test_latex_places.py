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
]


@pytest.mark.parametrize(("text", "meant"), READ)
def test_what_is_read_is_what_is_meant(text: str, meant: sa.Tensor) -> None:
    assert sa.prove(sa.parse_latex(text, NAMES), meant)


REFUSED: list[tuple[str, str]] = [
    (r"(A + B)^{-1}_{ij}", "write ((A + B)^{-1})_{ij}, or ((A + B)_{ij})^{-1}"),
    (r"\sum_j (I + A)^{-1}_{ij} x_j", "a power of an entry"),
    (r"(A B)^2_{ij}", "a power of an entry"),
    (r"(A B)^{-\top}_{ij}", "a power of an entry"),
    (r"\exp(A)^{-1}_{ij}", "a power of an entry"),
    (r"(A B)_{ij}^\top", "whether the whole or its part is transposed"),
    (r"\operatorname{softmax}(A)^\top_{i,:} x", "whether the whole or its part is transposed"),
    (r"A^\top_{i,:} x", "a transposed entry is not decided"),
    (r"A_{i,:i}", "i is no size: i is an index here"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_has_two_meanings_is_refused(text: str, said: str) -> None:
    refused(text, said)
