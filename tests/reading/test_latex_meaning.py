"""No formula is read with another meaning: what people read in two ways, or not at all, is refused."""

from __future__ import annotations

from typing import Any

import pytest

import symattn as sa
from symattn.errors import NamingError, ParseError, ShapeError, SymattnError

n = sa.sizes("n")
A, B = sa.tensor("A", n, n), sa.tensor("B", n, n)
v, u = sa.tensor("v", n), sa.tensor("u", n)
NAMES: dict[str, Any] = {"A": A, "B": B, "v": v, "u": u, "L": None, "M": None, r"\gamma": ()}


def refused(text: str, names: Any = None) -> SymattnError:
    with pytest.raises((ParseError, ShapeError)) as caught:
        sa.parse_latex(text, NAMES if names is None else names)
    return caught.value


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (r"\mathcal{A}", "A"), (r"A^\dagger", "A"), ("W^Q", "W_Q"), ("A^*", "A"), (r"\mathbb{A}", "A"),
        (r"\mathfrak{A}", r"\mathcal{A}"), (r"\mathcal{L}", "L"), ("W^{(1)}", "W_1"), ("v^2", "v_2"),
    ],
)  # fmt: skip
def test_two_names_are_never_one_tensor(first: str, second: str) -> None:
    for pair in ((first, second), (second, first)):
        with pytest.raises(NamingError, match="would both be the tensor"):
            sa.parse_latex(f"{first} - {second}", dict.fromkeys(pair, (n, n)))
    with pytest.raises(NamingError):
        sa.parse_latex(r"\mathcal{A} \in \mathbb{R}^{n \times n}, \quad \mathcal{A} - A", {"A": (n, n)})
    with pytest.raises(NamingError):
        sa.parse_latex("A - B", {"A": (n, n), "B": A})
    other = sa.tensor("A_other", n, n)
    assert sa.parse_latex(r"\mathcal{A} - A", {r"\mathcal{A}": other, "A": A}) == other - A


@pytest.mark.parametrize(
    "text",
    [
        r"\nabla_A L - \nabla_A M",
        r"\frac{\partial L}{\partial A} - \frac{\partial M}{\partial A}",
        r"\nabla_A L + \frac{\partial M}{\partial A}",
        r"\nabla_A(v^\top A u)",
        r"\nabla_A v^\top A u",
        r"\nabla_A L M",
        r"\frac{\partial v^\top A u}{\partial A}",
        r"\frac{\partial (v^\top A u)}{\partial A}",
        r"\nabla_A n",
    ],
)
def test_a_gradient_is_of_one_loss_by_its_name(text: str) -> None:
    refused(text)


def test_a_gradient_of_a_loss_has_the_shape_of_its_variable() -> None:
    assert sa.parse_latex(r"\nabla_A L u + \frac{\partial L}{\partial v}", NAMES).shape == (n,)


@pytest.mark.parametrize("text", [r"1\,000 v", "1 2", "1 0 v", "2^{1 0}", "1.5.2 v", "A_{1 0}", r"v \, 2 \, 3"])
def test_numbers_side_by_side_are_not_multiplied(text: str) -> None:
    refused(text)
