"""No formula is read with another meaning: what people read in two ways, or not at all, is refused."""

from __future__ import annotations

from typing import Any

import pytest

import symattn as sa
from symattn.errors import NamingError, OperandError, ParseError, ShapeError, SymattnError

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
        (r"A^\dagger", r"A_{\text{dagger}}"), ("W^Q", "W_Q"), ("A^*", r"A^\star"), (r"\mathbb{A}", "A"),
        ("W^{(1)}", "W_1"), ("v^2", "v_2"),
    ],
)  # fmt: skip
def test_two_names_are_never_one_tensor(first: str, second: str) -> None:
    for pair in ((first, second), (second, first)):
        with pytest.raises(NamingError, match="would both be the tensor"):
            sa.parse_latex(f"{first} - {second}", dict.fromkeys(pair, (n, n)))
    with pytest.raises(NamingError):
        sa.parse_latex(r"\mathbb{A} \in \mathbb{R}^{n \times n}, \quad \mathbb{A} - A", {"A": (n, n)})
    with pytest.raises(NamingError):
        sa.parse_latex("A - B", {"A": (n, n), "B": A})
    other = sa.tensor("A_other", n, n)
    assert sa.parse_latex(r"\mathcal{A} - A", {r"\mathcal{A}": other, "A": A}) == other - A


@pytest.mark.parametrize(
    ("first", "second"), [(r"\mathcal{A}", "A"), (r"\mathfrak{A}", r"\mathcal{A}"), (r"\mathcal{L}", "L")]
)
def test_a_letter_of_another_font_is_another_tensor(first: str, second: str) -> None:
    for pair in ((first, second), (second, first)):
        x = sa.parse_latex(f"{first} - {second}", dict.fromkeys(pair, (n, n)))
        assert len({y.name for y in x.tensors}) == 2
    _, x = sa.parse_latex(r"\mathcal{A} \in \mathbb{R}^{n \times n}, \quad \mathcal{A} - A", {"A": (n, n)})
    assert x == sa.tensor("Acal", n, n) - A
    made = sa.parse_latex(r"\mathcal{A} = A + B; \mathcal{A} A", NAMES)
    assert made[0].name == "Acal"
    assert sa.prove(made[1], (A + B) @ A)


def test_two_sizes_are_never_one() -> None:
    refused(r"X \in \mathbb{R}^{d_k \times d^k}")
    assert sa.parse_latex(r"X \in \mathbb{R}^{d_k \times d_k}").value.rank == 2


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
        r"\nabla_A L^2",
        r"\sum_i \nabla_A L_i",
        r"\nabla_A v_i",
        r"\nabla_A f(A)",
    ],
)
def test_a_gradient_is_of_one_loss_by_its_name(text: str) -> None:
    refused(text)


def test_a_gradient_of_a_loss_has_the_shape_of_its_variable() -> None:
    assert sa.parse_latex(r"\nabla_A L u + \frac{\partial L}{\partial v}", NAMES).shape == (n,)


@pytest.mark.parametrize(
    "text", [r"1\,000 v", "1 2", "1 0 v", "2^{1 0}", "1.5.2 v", "A_{1 0}", r"v \, 2 \, 3", "2e5 v"]
)
def test_numbers_side_by_side_are_not_multiplied(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r"A \\ + B", A + B),
        (r"A \\ &\quad - B", A - B),
        (r"A \\ \cdot B", A @ B),
        (r"A \\ \odot B \\ - A", A * B - A),
        (r"\begin{aligned} & A \\ & - B \end{aligned}", A - B),
    ],
)
def test_a_row_that_begins_with_an_operator_goes_on(text: str, meant: sa.Tensor) -> None:
    assert sa.prove(sa.parse_latex(text, NAMES), meant)
    if "begin" not in text:
        assert sa.prove(sa.parse_latex(f"Y = {text}", NAMES).value, meant)


@pytest.mark.parametrize("text", [r"Y = A \quad - B", r"A \quad + B", r"Y = A \\ - B = u", r"Y = A + \\ B"])
def test_what_may_go_on_or_begin_anew_is_refused(text: str) -> None:
    refused(text)


def test_a_plain_T_is_a_transpose_or_a_power_and_never_nothing() -> None:
    T = sa.sizes("T")
    beside = {**NAMES, "T": T, "Q": (T, n)}
    assert sa.prove(sa.parse_latex(r"A^T v", NAMES), A.T @ v)
    assert sa.parse_latex(r"Q^T", beside).shape == (n, T)
    gamma = sa.parse_latex(r"\gamma", beside)
    assert sa.prove(sa.parse_latex(r"\gamma^{T} v", beside), gamma**T * v)
    assert sa.parse_latex("2^T", beside) == 2**T
    for text in (r"\gamma^{T} v", "2^T v", r"(1 + \gamma)^T"):
        refused(text)
    for text in (r"A^T v", r"(A B)^{T}", r"A^{-T}"):
        refused(text, beside)


@pytest.mark.parametrize(
    "text", [r"1^\top v", r"1^T v", r"v - 1(1^\top v)/n", r"A\,1", r"v 1^\top", r"1^\top A 1", r"1 v^\top"]
)
def test_a_one_that_may_be_a_vector_is_no_number(text: str) -> None:
    refused(text)


def test_a_blackboard_one_is_the_vector() -> None:
    assert sa.prove(sa.parse_latex(r"\mathbb{1}^\top v", NAMES), sa.sum(v))
    assert sa.prove(sa.parse_latex(r"A \mathbb{1}", NAMES), sa.sum(A, axis=1))


@pytest.mark.parametrize(
    "text",
    [
        r"\mathbf 1^\top A + v", r"(A\mathbf 1)^\top + v", r"\mathbf 1^\top + v", r"\mathbf 1^\top A = v",
        r"\mathbf{1}_n^\top A + v", r"v - \mathbf{1}^\top", r"\mathbb{1}^\top A + v", r"\mathbf{0}^\top + v",
    ],
)  # fmt: skip
def test_a_row_and_a_column_are_not_added(text: str) -> None:
    refused(text)


@pytest.mark.parametrize(
    "text",
    [
        r"A_{1,:} u + \sum_{i=1}^n v_i", r"\sum_{i=1}^n v_i + A_{1,:} u", r"\sum_{i=1}^{n} v_i + v_0",
        r"A_{:, 0}^\top u + \sum_{i=1}^n v_i", r"A_{1:, :} u, \quad \sum_{i=1}^n v_i", r"(v_i)_{i=1}^{n} + v_0 u",
    ],
)  # fmt: skip
def test_a_text_counts_from_one_place(text: str) -> None:
    refused(text)


def test_a_text_that_counts_from_zero_is_read() -> None:
    assert sa.prove(sa.parse_latex(r"\sum_{i=0}^{n-1} v_i + v_0", NAMES), sa.sum(v) + v[0])
    refused(r"A_{1,:} u + v_i", {**NAMES, "i": "1..n"})


@pytest.mark.parametrize("text", [r"\text{if } A", r"A \text{ if } B", r"A, \text{ if } B", r"A \text{ when } B"])
def test_a_condition_in_words_is_not_left_out(text: str) -> None:
    refused(text)


def test_what_has_no_shape_and_no_name_is_refused_in_our_own_words() -> None:
    with pytest.raises(SymattnError):
        sa.parse_latex(r"[(\mathbf{1}^\top r)_{j}]_{i j}", {"r": (1, n)})
    with pytest.raises(OperandError, match="a name is text"):
        sa.parse_latex("v", {5: (n,)})  # type: ignore[dict-item]


@pytest.mark.parametrize("text", [r"\text{the transpose of } A", r"\text{if and only if } A", r"\text{not that } A"])
def test_words_in_front_are_not_left_out(text: str) -> None:
    refused(text)


def test_a_definition_does_not_take_the_name_of_another_tensor() -> None:
    for given in ((n, n), A):
        made = sa.parse_latex(r"\mathcal{A} = A + B, \quad \mathcal{A} - A", {"A": given, "B": B})
        assert made[0].value.name != "A"
        assert sa.prove(made[1], B)
