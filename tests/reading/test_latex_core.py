"""LaTeX in: what is read, what is refused, and how it is said."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ParseError, ShapeError
from symattn.reading.latex.answers import Declaration, Definition, Signature

T, S, d, e, n, h = sa.sizes("T S d e n h")
Q, K, V, M = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("M", T, S)
A, B, X = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("X", n, d)
x, y, w, u = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("w", d), sa.tensor("u", d)
Y = sa.tensor("Y", n, d)
H = sa.tensor("H", h, T, d)
beta = sympy.Symbol("beta", real=True)
MASK = sa.tensor("B_m", T, S, binary=True)
g = sa.tensor("g", 3)
F, INTEGERS = sa.tensor("F", n, h * d), sa.tensor("t", T, integer=True)
NAMES: dict[str, Any] = {
    **{t.name: t for t in (Q, K, V, M, A, B, X, x, y, w, u, Y, H, F, g, INTEGERS, MASK)},
    "beta": beta,
    "f": lambda z: sa.unknown("f", z),
}
P = sa.softmax(Q @ K.T / sympy.sqrt(d))
ROWS = sa.sum(A, axis=-1)

READ: list[tuple[str, Any]] = [
    # products, transposes, quotients
    (r"Q K^\top", Q @ K.T),
    (r"\mathbf{Q}\mathbf{K}^{T}", Q @ K.T),
    (r"\mathbf{Q K^T}", Q @ K.T),
    (r"{Q}{K}^{\intercal}", Q @ K.T),
    (r"QK^{\mathsf T}", Q @ K.T),
    (r"Q \cdot K^\top", Q @ K.T),
    (r"2 Q K^\top", 2 * (Q @ K.T)),
    (r"-Q K^\top", -(Q @ K.T)),
    (r"(Q K^\top)^\top", K @ Q.T),
    (r"\frac{Q K^\top}{\sqrt{d}}", Q @ K.T / sympy.sqrt(d)),
    (r"Q K^\top / \sqrt d", Q @ K.T / sympy.sqrt(d)),
    (r"\frac{1}{\sqrt{d}} Q K^\top", Q @ K.T / sympy.sqrt(d)),
    (r"\frac12 Q", Q / 2),
    (r"0.5 \, Q", Q / 2),
    (r"\beta Q K^\top", beta * (Q @ K.T)),
    (r"A^{-1} X", sa.inv(A) @ X),
    (r"A^{-\top}", sa.inv(A).T),
    (r"A^2", A @ A),
    (r"X^{\odot 2}", X**2),
    (r"I_n + A", sa.eye(n) + A),
    (r"I + A", sa.eye(n) + A),
    # vectors lie as they fit
    (r"x^\top y", x @ y),
    (r"x \cdot y", x @ y),
    (r"\langle x, y \rangle", x @ y),
    (r"x w^\top", sa.outer(x, w)),
    (r"x \otimes w", sa.outer(x, w)),
    (r"X w", X @ w),
    (r"x X", x @ X),
    (r"x^\top X w", x @ X @ w),
    (r"w K^\top", K @ w),
    (r"\|x\|", sa.sqrt(sa.sum(x**2))),
    (r"\|x - y\|^2", sa.sum((x - y) ** 2)),
    (r"\mathbf{1}_n^\top x", sa.sum(x)),
    (r"A \mathbf{1}", ROWS),
    (r"\mathbf{1}^\top A \mathbf{1}", sa.sum(A)),
    (r"x \mathbf{1}^\top + A", A + x[:, None]),
    (r"\mathbf{1} w^\top + X", X + w),
    # entry by entry
    (r"A \odot B", A * B),
    (r"A \circ B", A * B),
    (r"A \oslash B", A / B),
    (r"M \odot Q K^\top", M * (Q @ K.T)),
    (r"\exp(A)", sa.exp(A)),
    (r"\log \sigma(A)", sa.log(sa.sigmoid(A))),
    (r"\tanh(A) x", sa.tanh(A) @ x),
    (r"\operatorname{ReLU}(X)", sa.relu(X)),
    (r"\sqrt{A}", sa.sqrt(A)),
    (r"f(A)^\top", sa.unknown("f", A).T),
    (r"\mathrm{e}^{\beta} A", sympy.exp(beta) * A),
    # rows and matrices
    (r"\mathrm{softmax}(QK^\top/\sqrt{d})V", P @ V),
    (r"\text{Softmax}\left(\frac{QK^T}{\sqrt{d}}\right) V", P @ V),
    (r"softmax\left(\frac{QK^T}{\sqrt{d}} + M\right)V", sa.softmax(Q @ K.T / sympy.sqrt(d) + M) @ V),
    (r"\operatorname{softmax}_{B_m}(M)", sa.softmax(M, where=MASK)),
    (r"\operatorname{softmax}_{\text{axis} = -2}(M)", sa.softmax(M, axis=-2)),
    (r"\mathrm{diag}(A \mathbf{1}_n)", sa.diag(ROWS)),
    (r"\operatorname{diag}(x)^{-1} A", A / x[:, None]),
    (r"\operatorname{tr}(A B)", sa.trace(A @ B)),
    (r"\operatorname{diag}(\operatorname{rowsum}(A)) X", sa.sum(A, axis=-1, keepdims=True) * X),
    (r"A - \operatorname{rowmax}(A) \mathbf{1}^\top", A - sa.max(A, axis=-1, keepdims=True)),
    (r"A - \mathbf{1} \operatorname{colmean}(A)^\top", A - sa.mean(A, axis=0)),
    (r"A \odot (B - \operatorname{rowsum}(A \odot B))", A * (B - sa.sum(A * B, axis=1, keepdims=True))),
    (r"\operatorname{rowlogsumexp}(M)", sa.logsumexp(M)),
    (r"\operatorname{cumsum}_{\text{col}}(M)", sa.cumsum(M, axis=0)),
    (r"M + 1", M + 1),
    (r"A_{0, :}", A[0]),
    (r"A_{:, 0} + x", A[:, 0] + x),
    (r"A_{:, 1:}", A[:, 1:]),
    (r"x_0 A", x[0] * A),
    (r"\operatorname{tril}(A)", sa.tril(A)),
    # at places: stretches, new axes, calculated places, entries of integers
    (r"A_{i, :}", A),
    (r"A_{:, i}", A.T),
    (r"\sum_i A_{:, i}", ROWS),
    (r"H^{(a)}_{:, 2:} \quad (a = 1, \ldots, h)", H[:, :, 2:]),
    (r"A_{:, \text{new}, :}", A[:, None, :]),
    (r"X_{t, :}", sa.take(X, INTEGERS, axis=0)),
    (r"[x_{t_i}]_i", sa.take(x, INTEGERS, axis=0)),
    (r"[x_{\lfloor \frac{i}{2} \rfloor}]_i \in \mathbb{R}^{2 n}", sa.repeat(x, 2, axis=0)),
    (r"[X_{n - i - 1, j}]_{i j} \in \mathbb{R}^{n \times d}", X[::-1]),
    (r"[F_{i, a d + j}]_{a i j} \in \mathbb{R}^{h \times n \times d}",
     sa.moveaxis(sa.split_axis(F, -1, (h, d)), 1, 0)),
    (r"[H_{\lfloor j/d \rfloor, i, j \bmod d}]_{i j} \in \mathbb{R}^{T \times h d}",
     sa.merge_axes(sa.moveaxis(H, 0, 1), (-2, -1))),
    # dots, products
    (r"x_1 + \dots + x_n", sa.sum(x)),
    (r"x_1 y_1 + x_2 y_2 + \cdots + x_n y_n", x @ y),
    (r"\mathrm{softmax}([1, \ldots, d]) w", sa.softmax(sa.from_index((d,), lambda i: i + 1)) @ w),
    (r"[0, 2, \ldots, 2 d - 2] w", sa.from_index((d,), lambda i: 2 * i) @ w),
    (r"[-(d - 1), \dots, -1, 0] w", sa.from_index((d,), lambda i: i - d + 1) @ w),
    (r"[d, d - 1, \ldots, 1] w", sa.from_index((d,), lambda i: d - i) @ w),
    (r"1 + 2 + \dots + n", n * (n + 1) / 2),
    (r"\prod_i g_i", g[0] * g[1] * g[2]),
    (r"(g_1 \cdots g_3) A", g[0] * g[1] * g[2] * A),
    (r"\prod_{j=1}^{3} x_i g_j", x**3 * g[0] * g[1] * g[2]),
    # the shape that is said decides what the formula leaves open
    (r"A \mathbf{1} \in \mathbb{R}^{n \times 1}", ROWS[:, None]),
    (r"\mathbf{1}^\top A \in \mathbb{R}^{1 \times n}", sa.sum(A, axis=0)[None]),
    (r"[i - j]_{ij} \in \mathbb{R}^{n \times d}", sa.from_index((n, d), lambda i, j: i - j)),
    (r"\operatorname{onehot}_{n}(t)", sa.attention.one_hot(INTEGERS, n)),
    (r"\operatorname{entmax}_{1.5}(M)", sa.entmax15(M)),
    # entries and sums
    (r"\sum_{k} Q_{ik} K_{jk}", Q @ K.T),
    (r"\sum_{k=1}^{d} Q_{ik} K_{jk}", Q @ K.T),
    (r"\sum_{k=0}^{d-1} Q_{ik} K_{jk}", Q @ K.T),
    (r"A_{ji}", A.T),
    (r"\sum_i A_{ii}", sa.trace(A)),
    (r"(Q K^\top)_{ij} + M_{ij}", Q @ K.T + M),
    (r"\mathrm{softmax}_j(M_{ij})", sa.softmax(M)),
    (r"\mathrm{softmax}_i(M_{ij})", sa.softmax(M, axis=0)),
    (r"\frac{\exp(M_{ij})}{\sum_k \exp(M_{ik})}", sa.softmax(M)),
    (r"\max_j M_{ij}", sa.max(M, axis=1)),
    (r"\sum_i^n x_i", sa.sum(x)),
    (r"\frac{1}{n} \sum_{i=1}^n x_i", sa.mean(x)),
    (r"\sum_i \sum_{j \le i} A_{ij}", sa.sum(sa.tril(A))),
    (r"\sum_{j=1}^{i} A_{ij}", sa.sum(sa.tril(A), axis=1)),
    (r"\sum_j M_{ij} V_j", M @ V),
    (r"\langle Q_i, K_j \rangle", Q @ K.T),
    (r"\sum_{k=1}^{n} 1", n),
    (r"H^{(h)} w", H @ w),
    (r"H^{(a)} w \quad (a = 1, \ldots, h)", H @ w),
    (r"\operatorname{diag}(H^{(a)} w)^{-1} H^{(a)} \quad (a = 1, \ldots, h)", H / (H @ w)[..., None]),
    # constants by index, conditions, cases
    (r"\operatorname{softmax}(M + [i - j]_{ij})", sa.softmax(M + sa.from_index((T, S), lambda i, j: i - j))),
    (r"A \odot [j \le i]_{i j}", sa.tril(A)),
    (r"\sum_j \mathbf{1}[j \le i] A_{ij}", sa.sum(sa.tril(A), axis=1)),
    (r"\sum_j \mathbb{1}[j \le i] A_{ij}", sa.sum(sa.tril(A), axis=1)),
    (r"(\sum_i x_i) + y_i", sa.sum(x) + y),
    (r"\lvert x \rvert", abs(x)),
    (r"\sum_j [j \le i] A_{ij}", sa.sum(sa.tril(A), axis=1)),
    (r"\left[\begin{cases} 1 & \text{if } j \le i \\ 0 & \text{otherwise} \end{cases}\right]_{ij} \odot A", sa.tril(A)),
    # blocks
    (r"[X, Y]", sa.concat([X, Y], axis=1)),
    (r"[X; Y]", sa.concat([X, Y], axis=0)),
    (r"\begin{bmatrix} X & Y \\ Y & X \end{bmatrix}",
     sa.concat([sa.concat([X, Y], axis=1), sa.concat([Y, X], axis=1)], axis=0)),
    (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}^\top", sa.from_sympy(sympy.Matrix([[1, 3], [2, 4]]))),
    # scalars
    (r"\frac{1}{\sqrt{d}}", 1 / sympy.sqrt(d)),
    (r"\exp(-\beta^2/2)", sympy.exp(-(beta**2) / 2)),
    (r"\sin^2(\beta)", sympy.sin(beta) ** 2),
    # derivatives have the shape of what they are by
    (r"M \frac{\partial L}{\partial V}", M @ sa.tensor("dV", S, e)),
    (r"\frac{d L}{d w}", sa.tensor("dw", d)),
    (r"M dV", M @ sa.tensor("dV", S, e)),
    (r"A [x - y]", A @ (x - y)),
    (r"M \nabla_V L", M @ sa.tensor("dV", S, e)),
    (r"M \, \mathrm{d}V", M @ sa.tensor("dV", S, e)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meant"), READ)
def test_formulas_are_read_as_they_are_meant(text: str, meant: Any) -> None:
    got = sa.parse_latex(text, NAMES)
    if isinstance(meant, sa.Tensor):
        assert tuple(got.shape) == tuple(meant.shape)
        assert got is meant or sa.prove(got, meant)
    else:
        assert sympy.simplify(got - meant) == 0


REFUSED: list[tuple[str, str]] = [
    (r"Q K", "the product: the left is T×d, the right is S×d"),
    (r"Q + K", "the sum: T×d and S×d"),
    (r"A + 1", "a scalar"),
    (r"x_1 A", "not decided"),
    (r"x + w", "the sum: a column of n and a column of d"),
    (r"Q K^\top + N", "no shape for N; it must be T×S. Add: N \\in \\mathbb{R}^{T \\times S}"),
    (r"M Z", "no shape for Z"),
    (r"\phi(Q)", "is not declared"),
    (r"\sum_i^T x_i", "another range"),
    (r"\operatorname{softmax}_{\text{axis} = -2, B_m}(M)", "below softmax is not read"),
    (r"M := Q Q^\top", "the formula says"),
    (r"f^2(x)", "f^2 is not declared"),
    (r"f'(x)", "f' is not declared"),
    (r"f_{1}(x)", "f_{1} is not declared"),
    (r"\operatorname{softmax}(\langle Q_i, K_j \rangle)", "over which index"),
    (r"\sqrt{-1}", "no value among real numbers"),
    (r"(-8)^{1/3}", "no value among real numbers"),
    (r"\sum_i x_i + y_i", "where the sum over i ends"),
    (r"|x|", "not decided"),
    (r"\sum_{i < j} A_{ij}", "whether the sum is over j as well"),
    (r"A^2_{ij}", "not decided"),
    (r"[A_{i, 2 j}]_{ij} \in \mathbb{R}^{n \times n}", "stays within an axis of n is not seen"),
    (r"(A B)_{1, 2}", "counted from 0 or from 1"),
    (r"A \mathbf{1} \in \mathbb{R}^{1 \times n}", "the formula says"),
    (r"\operatorname{entmax}(M)", "its power 1.5"),
    (r"A \text{ is symmetric}", "these words are not read"),
    (r"A^{-1}_{ij}", "not decided"),
    (r"A^\top_{ij}", "not decided"),
    (r"A^{(i)}", "is not declared"),
    (r"H^{(a)} w \quad (a = 1, \ldots, n)", "a runs over n"),
    (r"x_n", "no shape for x_n"),
    (r"\mathcal{A} x", "no shape for Acal"),
    (r"tr(A)^{-1} \cdot det(A)", "is not declared"),
    (r"\begin{cases} \end{cases}", "nothing in it"),
    (r"\frac{A}{B}", "is no scalar"),
    (r"X^2", "not decided"),
    (r"\mathrm{e}^{A}", "not decided"),
    (r"A / 2 X", "not decided"),
    (r"\log \beta A", "not decided"),
    (r"\cos (\beta - 1) \beta", "not decided"),
    (r"\mathrm{softmax}(M_{ij})", "over which index"),
    (r"\sum A", "without an index"),
    (r"Q_i K_j^\top", "not decided"),
    (r"|A|", "not decided"),
    (r"A \times B", "not decided"),
    (r"[X, \dots, Y]", "these dots are not read"),
    (r"x_1 - x_2 + \dots + x_n", "these dots are not read"),
    (r"1 + \dots + \beta^n", "these dots are not read"),
    (r"1 + \beta + \dots + \beta^n", "these dots are not read"),
    (r"A_{\text{new}}", "no shape for A_new"),
    (r"x_1 + \dots + x_d", "runs over n places, and the limits say d"),
    (r"[n, \dots, 1]", "these dots are not read"),
    (r"[1, 3, \dots, n]", "these dots are not read"),
    (r"\prod_i x_i", "has no operation here"),
    (r"\prod_i A_i", "with all of its factors only"),
    (r"\operatorname{diag}(X)", "takes a vector"),
    (r"\operatorname{diag}(A)", "takes a vector"),
    (r"x_{W}", "no shape for x_W"),
    (r"\frac{1}{0}", "division by zero"),
    (r"\log(-1)", "no value among real numbers"),
    (r"\int_0^1 x", "no differential"),
    (r"n \le I", "how long I is"),
    (r"M_{ij} = \begin{cases} 0 & j \le i \\ 1 & ji \end{cases}", "do not cover"),
    (r"M_{ij} = \begin{cases} 0 & ji \\ 1 & \text{otherwise} \end{cases}", "is no condition"),
    (r"\sum_{k=1}^{T} x_k", "n places"),
    (r"[j]_{ij} + A_{ij}", ""),
    (r"\frac{\partial A}{\partial X}", "Jacobian"),
    (r"M d V", "d is declared as well"),
    (r"x[1]", "written as x_i"),
    (r"A[i, j]", "written as x_i"),
    (r"e^{\beta}", "e is declared"),
    (r"Q K^{\top", "{ is not closed"),
    (r"(Q K^\top", "expected ) for the ( at character 1"),
    (r"Q^a^b", "a second ^"),
    (r"\left( Q", "expected )"),
    (r"\begin{bmatrix} X & Y", "needs its \\end"),
    (r"\foo Q", "is not read"),
    (r"", "nothing to read"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_what_is_not_decided_is_refused_with_a_caret(text: str, said: str) -> None:
    with pytest.raises((ParseError, ShapeError)) as caught:
        sa.parse_latex(text, NAMES)
    assert said in str(caught.value)
    assert str(caught.value).rstrip().endswith("^")


def test_the_caret_stands_under_the_place() -> None:
    with pytest.raises(ParseError) as caught:
        sa.parse_latex(r"\mathrm{softmax}(Q K^\top + N) V", NAMES)
    line, caret = str(caught.value).splitlines()[1:]
    assert line[caret.index("^")] == "N"


def test_statements_are_definitions_claims_and_declarations() -> None:
    claim = sa.parse_latex(r"(A B)^\top = B^\top A^\top", NAMES)
    assert sa.prove(claim)
    made = sa.parse_latex(r"Z = \frac{Q K^\top}{\sqrt{d}}, \quad R = \mathrm{softmax}(Z), \quad O = R V", NAMES)
    assert all(isinstance(part, Definition) for part in made)
    assert str(made[2]) == "O = R @ V"
    assert sa.prove(made[2].value, P @ V)
    defined = sa.parse_latex(r"\mathrm{Attn}(Q, K, V) := \mathrm{softmax}(Q K^\top) V", NAMES)
    assert (defined.name, defined.parameters) == ("Attn", ("Q", "K", "V"))
    entries = sa.parse_latex(r"G_{ij} = \sum_k M_{jk} V_{ki}", NAMES)
    assert entries.indices == ("i", "j")
    assert sa.prove(entries.value, (M @ V).T)
    chain = sa.parse_latex(r"\begin{aligned} G &= A (B + I) \\ &= A B + A \end{aligned}", NAMES)
    assert isinstance(chain[0], Definition)
    assert sa.prove(chain[1])
    assert sa.parse_latex(r"W_Q \in \mathbb{R}^{d \times 2 e}") == Declaration("W_Q", sa.tensor("W_Q", d, 2 * e))
    both = sa.parse_latex(r"W_{q/k} \in \mathbb{R}^{d \times e}")
    assert [part.name for part in both] == ["W_q", "W_k"]
    signature = sa.parse_latex(r"\text{Attn}: (T, d) \times (S, d) \to (T, d)")
    assert signature == Signature("Attn", ((T, d), (S, d)), (T, d))
    for text in (r"Q K^\top \in \mathbb{R}^{T \times T}", r"Q K^\top = M \in \mathbb{R}^{S \times T}"):
        with pytest.raises(ShapeError, match="the formula says"):
            sa.parse_latex(text, NAMES)
    assert sa.prove(sa.parse_latex(r"A \mathbf{1} = \operatorname{rowsum}(A) \in \mathbb{R}^{n \times 1}", NAMES))


def test_a_bound_is_a_claim() -> None:
    assert sa.prove(sa.parse_latex(r"\mathrm{softmax}(M) \le 1", NAMES))


def test_families_have_an_axis_for_their_index() -> None:
    names = {"q_i": (d,), "k_j": (d,), "W_i^Q": (e, d), "i": "1..T", "j": "1..S", "X": (n, e)}
    assert sa.parse_latex(r"q_i^\top k_j", names).shape == (T, S)
    assert sa.parse_latex(r"q_i^\top k_r", names).shape == (T, S)
    assert sa.parse_latex(r"X W_i^Q", names).shape == (T, n, d)
    assert sa.parse_latex(r"X W^Q_i", names).shape == (T, n, d)
    for text in (r"q_n", r"q_1", r"q_{i+1}"):
        with pytest.raises(ParseError):
            sa.parse_latex(text, names)
    with pytest.raises(ParseError, match="over which index"):
        sa.parse_latex(r"\operatorname{softmax}(q_i^\top k_j)", names)


def test_dots_run_over_a_family() -> None:
    heads = sa.tensor("H_i", h, T, d)
    names = {"H_i": heads, "W": (h * d, e), "q_i": (d,), "i": "1..h", "w_i": (e,)}
    side = sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2))
    for text in (r"[H_1, \ldots, H_h]", r"\mathrm{Concat}(H_1, H_2, \dots, H_h)"):
        assert sa.prove(sa.parse_latex(text, names), side)
    assert sa.prove(sa.parse_latex(r"\mathrm{Concat}(H_1, \dots, H_h) W", names), side @ sa.tensor("W", h * d, e))
    below = sa.parse_latex(r"[q_1; \ldots; q_h]", names)
    assert sa.prove(below, sa.merge_axes(sa.tensor("q_i", h, d), (0, 1)))
    stacked = sa.parse_latex(r"\begin{bmatrix} q_1^\top \\ \vdots \\ q_h^\top \end{bmatrix}", names)
    assert sa.prove(stacked, sa.tensor("q_i", h, d))
    for text in (r"[H_1, \ldots, w_h]", r"[H_1, H_3, \ldots, H_h]", r"[H_1, \ldots, H_T]", r"[H_2, \ldots, H_h]"):
        with pytest.raises((ParseError, ShapeError)):
            sa.parse_latex(text, names)


def test_a_bar_is_a_gradient_only_where_that_is_said() -> None:
    mean = sa.parse_latex(r"\bar{x} = \frac{1}{n} \sum_i x_i", NAMES, gradients="d")
    assert (mean.name, mean.value.inputs[0]) == ("xbar", sa.parse_latex(r"\frac{1}{n} \sum_i x_i", NAMES))
    declared = sa.parse_latex(r"A \bar{x}", {**NAMES, "xbar": (n,)}, gradients="bar")
    assert sa.prove(declared, A @ sa.tensor("xbar", n))
    assert sa.prove(sa.parse_latex(r"A \bar{x}", NAMES, gradients="bar"), A @ sa.tensor("dx", n))
    with pytest.raises(ParseError, match="no shape for xbar"):
        sa.parse_latex(r"A \bar{x}", NAMES)
    with pytest.raises(OperandError, match="gradients are spelled"):
        sa.parse_latex(r"A \bar{x}", NAMES, gradients="dot")


SAID = sa.parse_latex(r"x_i \ge y_i", NAMES)


@pytest.mark.parametrize(
    "text",
    [
        r"\forall i: x_i \ge y_i",
        r"\forall i, x_i \ge y_i",
        r"x_i \ge y_i \quad \forall i",
        r"x_i \ge y_i \quad \text{for all } i",
        r"x_i \ge y_i \text{ for every row } i",
        r"x_i \ge y_i, \quad i = 1, \ldots, n",
        r"x_i \ge y_i \quad \text{for } i \in \{1, \ldots, n\}",
        r"x_i \ge y_i \quad \forall i \in [n]",
        r"x_i \ge y_i \quad (1 \le i \le n)",
        r"\forall i = 1, \ldots, n, x_i \ge y_i",
        r"\text{for all } x, y: x_i \ge y_i",
        r"x_i \ge y_i \quad \text{for all } i, x",
    ],
)
def test_what_is_said_for_all_values_is_a_claim(text: str) -> None:
    claim = sa.parse_latex(text, NAMES)
    assert claim.sides == SAID.sides


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"\forall i < j: A_{ij} = 0", "for which values"),
        (r"A_{ij} = A_{ji} \quad \text{for all } i \ne j", "for which values"),
        (r"A = B \quad \text{for symmetric } A", "for which values"),
        (r"x_i \ge y_i \quad \forall i \in \{1, \ldots, d\}", "i runs over d"),
        (r"x_i \ge 0 \ \forall i = 1, \ldots, n; y_i \ge 0 \ \forall i = 1, \ldots, d", "runs from 1 over d places"),
        (r"\exists i: x_i \ge y_i", "cannot begin"),
    ],
)
def test_a_condition_on_values_is_not_passed_over(text: str, said: str) -> None:
    with pytest.raises((ParseError, ShapeError), match=said):
        sa.parse_latex(text, NAMES)


def test_a_range_behind_a_statement_may_be_its_own() -> None:
    heads = {"C": (h, T, d), "D": (n, d, e)}
    text = r"U^{(a)} = 2 C^{(a)} \quad (a = 1, \ldots, h) \\ W_o^{(a)} = 3 D^{(a)} \quad (a = 1, \ldots, n)"
    read = sa.parse_latex(text, heads)
    assert [part.value.shape for part in read] == [(h, T, d), (n, d, e)]
    with pytest.raises((ParseError, ShapeError)):
        sa.parse_latex(text.replace("(a = 1, \\ldots, n)", "(a = 1, \\ldots, d)"), heads)


def test_rows_go_on_where_a_parenthesis_is_open() -> None:
    text = r"\begin{align} Z &= 2 (A && \text{by the rule} \\ & \quad - B) \\ & \text{by another} \\ G &= A \end{align}"
    read = sa.parse_latex(text, NAMES)
    assert [part.name for part in read] == ["Z", "G"]
    assert sa.prove(read[0].value, 2 * A - 2 * B)
    with pytest.raises(ParseError, match="these words are not read|condition in words"):
        sa.parse_latex(text.replace("by another", "if A is symmetric"), NAMES)


def test_semicolons_end_statements() -> None:
    read = sa.parse_latex(r"Z = Q K^\top; \mathcal{A} = \mathrm{softmax}(Z); \mathcal{A} V", NAMES)
    assert [part.name for part in read[:2]] == ["Z", "Acal"]
    assert sa.prove(read[2], sa.softmax(Q @ K.T) @ V)


def test_functions_of_indices_are_declared_as_families() -> None:
    score, alpha = sa.tensor("s", T, S), sa.tensor("a", T, S)
    names = {"score(i,j)": score, r"\alpha(q_i, K, j)": alpha, "i": "1..T", "j": "1..S", "V": V}
    shares = sa.parse_latex(r"\frac{\exp(\text{score}(i,j))}{\sum_{r=1}^S \exp(\text{score}(i,r))}", names)
    assert sa.prove(shares, sa.softmax(score))
    assert sa.prove(sa.parse_latex(r"\sum_j \alpha(\mathbf{q}_i, \mathbf{K}, j) V_j", names), alpha @ V)
    for text in (r"\text{score}(i)", r"\alpha(q_i, V, j)", r"\text{score}(V, j)"):
        with pytest.raises(ParseError):
            sa.parse_latex(text, names)


def test_what_is_defined_later_is_known_before() -> None:
    made = sa.parse_latex(r"O = P V \text{ where } P = \mathrm{softmax}(M)", NAMES)
    assert [part.name for part in made] == ["O", "P"]
    assert sa.prove(made[0].value, sa.softmax(M) @ V)


@pytest.mark.parametrize("gradients", ["d", "bar", "nabla", "partial"])
def test_printed_gradients_are_read_with_their_reasons(gradients: str) -> None:
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    g = sa.gradient(O, [Q, K, V])
    names = {"Q": Q, "K": K, "V": V, "Z": Z, "P": P, "O": O}
    read = {part.name: part.value for part in sa.parse_latex(g.latex(gradients=gradients), names, gradients=gradients)}
    assert read.keys() == {"dV", "dP", "dZ", "dQ", "dK"}
    assert sa.prove(read["dV"], P.T @ sa.tensor("dO", T, e))
    dP = sa.tensor("dO", T, e) @ V.T
    assert sa.prove(read["dZ"], P * (dP - sa.sum(P * dP, axis=1, keepdims=True)))


def test_one_convention_holds_for_all_of_a_text() -> None:
    names = {"S_{t-1}": (d, d), "k_t": (d,), "v_t": (d,), "q_t": (d,)}
    with pytest.raises(ShapeError):
        sa.parse_latex(r"S_t = S_{t-1} + k_t v_t^\top, \quad o_t = q_t S_t", names)
    read = sa.parse_latex(r"S_t = S_{t-1} + k_t v_t^\top, \quad o_t = q_t^\top S_t", names)
    assert read[1].value.shape == (d,)


def test_a_name_is_found_however_it_is_written() -> None:
    names = {"W^Q": (d, e), "d_k": sympy.Symbol("d_k", positive=True), "\\alpha": (n,), "xhat": (n,), "mask": (n, n)}
    for text, shape in ((r"W^Q", (d, e)), (r"\mathbf{W}^{Q}", (d, e)), (r"\alpha", (n,)), (r"\hat{x}", (n,))):
        assert sa.parse_latex(text, names).shape == shape
    assert sa.parse_latex(r"\mathrm{mask} \hat{x}", names).shape == (n,)
    assert sa.parse_latex(r"d_{\text{k}}", names) == names["d_k"]


def test_a_formula_is_read_in_about_a_millisecond() -> None:
    """The median; three are allowed where the machine is busy."""
    taken = []
    for text, _ in READ * 2:
        began = time.perf_counter()
        sa.parse_latex(text, NAMES)
        taken.append(time.perf_counter() - began)
    assert statistics.median(taken) < 0.003


@pytest.mark.parametrize(
    "text",
    [
        "(" * 40 + "x" + ")" * 40,
        r"\frac{1}{" * 40 + "2" + "}" * 40,
    ],
)
def test_forty_levels_are_read(text: str) -> None:
    assert sa.parse_latex(text, NAMES) is not None
