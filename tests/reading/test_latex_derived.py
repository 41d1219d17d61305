"""LaTeX in: moments under laws, and derivatives of what a text defines."""

from __future__ import annotations

from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ParseError

n, d, m = sa.sizes("n d m")
A, B, X = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("X", n, d)
z, q, k = sa.tensor("z", n), sa.tensor("q", d), sa.tensor("k", d)
sigma, rho = sympy.Symbol("sigma", positive=True), sympy.Symbol("rho", real=True)
NAMES: dict[str, Any] = {**{x.name: x for x in (A, B, X, z, q, k)}, "sigma": sigma, "rho": rho, "W": (m, n)}
STANDARD = r"q, k \sim \mathcal{N}(0, I); "


def last(text: str, **more: Any) -> Any:
    read = sa.parse_latex(text, NAMES, **more)
    return read[-1] if isinstance(read, tuple) else read


@pytest.mark.parametrize(
    "text",
    [
        r"\mathbb{E}[q^\top k] = 0",
        r"\mathbb{E}[(q^\top k)^2] = d",
        r"\operatorname{Var}(q^\top k) = d",
        r"\operatorname{Var}\left[\frac{q^\top k}{\sqrt{d}}\right] = 1",
        r"\mathbb{V}(q_i) = 1",
        r"\mathbb{E}[q_i q_j] = \delta_{ij}",
        r"\operatorname{Cov}(q_i, q_j) = \delta_{ij}",
        r"\operatorname{Cov}(q_i, k_j) = 0",
        r"\mathbb{E}[q q^\top] = I",
        r"\mathrm{E}[q + k_i] = 0",
        r"\mathbb{E}[q_i^2] \ge \mathbb{E}[q_i]^2",
    ],
)
def test_moments_are_those_under_the_laws_of_a_text(text: str) -> None:
    assert sa.prove(last(STANDARD + text))


def test_laws_are_stated_or_given() -> None:
    assert last(r"q \sim \mathcal{N}(\mathbf{0}, \sigma^2 I_d); \operatorname{Var}(q^\top q)") == 2 * d * sigma**4
    assert last(r"q \sim \mathcal{N}(0, I/d); \mathbb{E}[q^\top q]") == 1
    assert last(r"q \sim \mathcal{N}(0, \frac{1}{d} I); \mathbb{E}[q^\top q]") == 1
    assert sa.parse_latex(r"q \sim \mathcal{N}(0, I); \mathbb{E}[q^\top q]", {"q": q, "I": 2})[1] == 2 * d
    assert last(r"\mathbb{E}[q^\top k]", law={(q, k): sa.iid_pair(correlation=rho)}) == d * rho
    assert last(r"\operatorname{Var}(q^\top k)", law={q: sa.iid(), k: sa.iid("rademacher")}) == d
    constant = last(r"\operatorname{Var}(q^\top k)", law={q: sa.iid(), k: "constant"})
    assert constant.has(sympy.Indexed)
    with pytest.raises(ParseError, match=r"no law of k\[d\]: give it by law=\{k: sa.iid\(\)\}"):
        last(r"q \sim \mathcal{N}(0, 1); \mathbb{E}[q^\top k]")
    with pytest.raises(ParseError, match="has a law already"):
        last(r"q \sim \mathcal{N}(0, 1); q \sim \mathcal{N}(0, 2); \mathbb{E}[q^\top q]")
    with pytest.raises(ParseError, match="is read of numbers only"):
        last(STANDARD + r"\operatorname{Var}(q)")
    with pytest.raises(ParseError, match="is read of one number only"):
        last(r"\operatorname{Var}(X_{ij} q_j)", law={q: sa.iid(), X: "constant"})


def test_a_name_that_is_declared_is_no_moment() -> None:
    assert sa.prove(sa.parse_latex(r"\mathbb{E} x", {r"\mathbb{E}": A, "x": z}), A @ z)
    with pytest.raises(ParseError, match="no shape for E"):
        last(STANDARD + r"E[q^\top k]")


@pytest.mark.parametrize(
    "text",
    [
        r"p = \mathrm{softmax}(z) \\ \frac{\partial p_i}{\partial z_j} = p_i (\delta_{ij} - p_j)",
        r"p = \mathrm{softmax}(z) \\ \frac{\partial p}{\partial z} = \mathrm{diag}(p) - p p^\top",
        r"y = W z \\ \frac{\partial y}{\partial z^\top} = W",
        r"y = W z \\ \frac{\partial y^\top}{\partial z} = W^\top",
        r"y = W z \\ \frac{\partial y_i}{\partial z_j} = W_{ij}",
        r"y = W z \\ \frac{\partial y_j}{\partial z_i} = W_{ji}",
        r"f = z^\top A z \\ \nabla_z f = (A + A^\top) z",
        r"f = z^\top A z \\ \nabla_z^2 f = A + A^\top",
        r"f = \operatorname{tr}(A^\top B) \\ \frac{\partial f}{\partial A} = B",
        r"f = \operatorname{tr}(A^\top B) \\ \frac{\partial f}{\partial A_{ij}} = B_{ij}",
        r"Y = A B \\ \frac{\partial Y_{ij}}{\partial A_{rs}} = \delta_{ir} B_{sj}",
    ],
)
def test_derivatives_of_what_is_defined_are_calculated(text: str) -> None:
    assert sa.prove(last(text))


@pytest.mark.parametrize(
    "text",
    [
        r"y = W z \\ \frac{\partial y_i}{\partial z_j} = 2 W_{ij}",
        r"y = A z \\ \frac{\partial y_i}{\partial z_j} = A_{ji}",
        r"y = A z \\ \frac{\partial y^\top}{\partial z} = A",
        r"f = z^\top A z \\ \nabla_z f = 2 A z",
    ],
)
def test_other_derivatives_are_refuted(text: str) -> None:
    assert sa.prove(last(text)).status == "refuted"


def test_the_layout_of_a_jacobian_is_declared() -> None:
    text = r"y = W z \\ \frac{\partial y}{\partial z}"
    W = sa.tensor("W", m, n)
    assert sa.prove(last(text, layout="numerator"), W)
    assert sa.prove(last(text, layout="denominator"), W.T)
    for way in (text, text.replace("W", "A")):
        with pytest.raises(ParseError, match="which way this Jacobian lies is not decided"):
            last(way)
    with pytest.raises(ParseError, match="leave one of them out"):
        last(r"y = W z \\ \frac{\partial y}{\partial z^\top}", layout="numerator")
    with pytest.raises(OperandError, match="a layout is numerator or denominator"):
        last(text, layout="rows")
    with pytest.raises(ParseError, match="write its entries"):
        last(r"Y = A B \\ \frac{\partial Y}{\partial A}")
    with pytest.raises(ParseError, match="is a Jacobian: say what z is"):
        last(r"\frac{\partial z}{\partial q}")


def test_derivatives_by_heads_and_families_have_their_axes() -> None:
    names = {"W_o": (m, n, d), "Q": (m, n, d), "q_i": (d,), "i": "1..n", "X": (n, d)}
    for text in (r"Q^{(a)} - \nabla_{W_{o}^{(a)}} L", r"Q^{(a)} - \mathrm{d}W_{o}^{(a)}"):
        read = sa.parse_latex(text, names)
        assert sa.prove(read, sa.tensor("Q", m, n, d) - sa.tensor("dW_o", m, n, d))
    assert sa.parse_latex(r"X_i - \nabla_{q_i} L", names).shape == (n, d)
    made = sa.parse_latex(r"\mathrm{d}W_{o}^{(a)} = 2 Q^{(a)} \quad (a = 1, \ldots, m)", names)
    assert made.name == "dW_o_a"


@pytest.mark.parametrize(
    "text",
    [
        r"f = z^\top A z \\ \frac{\partial f^2}{\partial z}",
        r"f = z^\top A z \\ \frac{\partial f}{\partial z^2}",
        r"f = z^\top A z \\ \frac{\partial f'}{\partial z}",
        r"f = z^\top A z \\ \frac{\partial \log f}{\partial z}",
        r"f = z^\top A z \\ \nabla_z^3 f",
        r"p = \mathrm{softmax}(z) \\ \frac{\partial p_1}{\partial z_1}",
        r"p = \mathrm{softmax}(z) \\ \frac{\partial p}{\partial z_j}",
        r"p = \mathrm{softmax}(z) \\ \nabla_z p",
    ],
)
def test_a_derivative_of_something_else_is_refused(text: str) -> None:
    with pytest.raises((ParseError, OperandError)):
        last(text)
