r"""What may be read with another meaning than the author's is read with the common one, or refused."""

from __future__ import annotations

import time
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.errors import SymattnError

T, S, d, c, n = sa.sizes("T S d c n")
NAMES: dict[str, Any] = {
    **{"Q": (T, d), "K": (S, d), "V": (S, c), "M": (T, S), "P": (T, S), "A": (n, n), "B": (n, n)},
    **{"X": (n, d), "Y": (n, d), "x": (n,), "y": (n,), "z": (n,), "u": (d,), "w": (d,), "L": None},
    **{"a": (3 * n,), "b": (2 * n,)},
    r"\beta": sympy.Symbol("b", real=True),
}


def _read(text: str) -> str:
    found = sa.parse_latex(text, NAMES)
    return "; ".join(map(str, found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (r"X u^\top w", "X * (u @ w)"),
        (r"A x^\top y", "A * (x @ y)"),
        (r"A x^\top y + x^\top y A", "A * (x @ y) + x @ y * A"),
        (r"\operatorname{softmax}(A) x^\top y", "softmax(A) * (x @ y)"),
        (r"x^\top y; A x^\top y", "x @ y; A * (x @ y)"),
        (r"x y^\top z", "outer(x, y) @ z"),
        (r"x^\top A x^\top y", "x @ A * (x @ y)"),
        (r"x A; x^\top y + A", "x @ A; outer(x, y) + A"),  # by the first of them, vectors are rows
        (r"x A; M \odot x y^\top", "x @ A; M * (x @ y)"),
        (r"X + 1 - \beta + \operatorname{tr}(A)", "X + 1 - b + trace(A)"),
        (r"x + x^\top y + s; s = x^\top x; X + s", "x + x @ y + s; s = x @ x; X + s"),
        (r"X + x^\top y \mathbf{1} \mathbf{1}^\top", "X + outer(broadcast_to(x @ y, (n,)), ones(d))"),
        (r"x A + x y^\top z", "x @ A + x @ y * z"),  # by its first term
        (r"\mu = X^\top \mathbf{1} / n; X - \mathbf{1} \mu^\top", "mu = X.T @ ones(n) / n; X - outer(ones(n), mu)"),
        (r"\frac{\partial L}{\partial M_{ij}} = P_{ij}; \nabla_Q L = \nabla_M L K", "dM = P; dQ = dM @ K"),
        (r"\frac{\partial L}{\partial x_i} = y_i; \sum_i \frac{\partial L}{\partial x_i} x_i", "dx = y; sum(dx * x)"),
        (r"\mathrm{d}M_{ij} = P_{ij}; \nabla_Q L = \nabla_M L K", "dM = P; dQ = dM @ K"),
        (r"\operatorname{Concat}(x, y)", "concat([x, y], axis=-1)"),
        (r"\operatorname{Concat}(X, Y)", "concat([X, Y], axis=-1)"),
        (r"[x \| y]", "concat([x, y], axis=-1)"),
        (r"[A B]_{ij}", "A @ B"),
        (r"A \odot [j \le i]_{ij}", "A * from_index((n, n), lambda i, j: j <= i)"),
        (r"x_0 ([i]_i + x); x_{n-1}", "x[0] * (from_index((n,), lambda i: i) + x); x[-1]"),
        (r"x_{:2}; x_{-2:}", "x[:2]; x[-2:]"),
        (r"[b_{2 i + 1}]_i + x", "take(b, from_index((n,), lambda i: 2*i + 1), axis=-1) + x"),  # from 1 it leaves b
        (r"M dV", "M @ dV"),
        (r"2 \mathrm{d}x", "2 * dx"),
        (r"\frac{1}{d n} x", "x / (d*n)"),
        (r"\frac{d^2 \beta}{d n}; \frac{d^2 \cdot n}{d \cdot \beta^2}", "b*d/n; d*n/b**2"),
        (r"x_i / \sum_j y_j x_j", "x / sum(y * x)"),
        (r"x_i / \sum_{jk} 2 A_{jk} / x_k", "x / sum(sum(2 * A / x, axis=-2))"),
        (r"x_i / (\sum_j y_j x_i)", "x / sum(y * x[:, None], axis=-1)"),
        (r"x \cdot A y", "x @ (A @ y)"),
        (r"A x \cdot y", "A @ x @ y"),
        (r"s^2 = x^\top x; x / s^2", "s_2 = x @ x; x / s_2"),
        (r"2 d \cdot x", "(2*d) * x"),
        (r"x^\top \cdot y^\top", "x @ y"),
        (r"{A}^\top + {A^\top}^{-1}", "A.T + inv(A.T)"),
        (r"P \odot Q K^\top", "P * (Q @ K.T)"),
        (r"A \odot 2 B", "2 * A * B"),
        (r"A_{:, 1:}", "A[:, 1:]"),
        (r"A_{:, 0} + A_{1, :}^\top", "A[:, 0] + A[1, :]"),
        (r"z_i = i x_i, \quad i = 0, 1, 2, \ldots, n - 1", "z = from_index((n,), lambda i: i) * x"),
        (r"G_{ij} = i - j, \quad \forall i, j \in [n]", "G = from_index((n, n), lambda i, j: i - j)"),
        (r"G_{ij} = i - j \quad (i, j = 1, \ldots, n)", "G = from_index((n, n), lambda i, j: i - j)"),
        (r"f_i = i \beta, i \in \{1, \ldots, n\}", "f = from_index((n,), lambda i: b*(i + 1))"),
        (r"\begin{bmatrix} \beta \\ 0 \end{bmatrix}", "from_index((2,), lambda i: b*KroneckerDelta(0, i))"),
        (r"f = \operatorname{tr}(A^\top B); \frac{\partial f}{\partial A^\top} + A", "f = trace(A.T @ B); dA.T + A"),
        (r"e^\beta = \exp(\beta); n^2 = n n", "exp(b) = exp(b); n**2 = n**2"),  # no names
        (r"s_i^2 = x_i; f_i = y_i / \sqrt{s_i^2}", "s_2 = x; f = y / sqrt(s_2)"),
        (r"f_i^{(1)} = x_i; f_i^{(1)} + y_i", "f_1 = x; f_1 + y"),
        (r"\max_j M_{ij} / \sqrt{d}", "max(M / sqrt(d), axis=-1)"),
        (r"$\displaystyle A x$.", "A @ x"),
        (r"x_{\text{new}} = A x; x_{\text{new}} - x", "x_new = A @ x; x_new - x"),
        (r"f(x) = A x; f(x) = B x", "f(x) = A @ x; A @ x = B @ x"),
        (r"G_{ij} = 0 \quad (i, j = 1, \ldots, n); G x", "G = zeros(n, n); G @ x"),
        (
            r"G_{ij} = \left\{ \begin{array}{ll} A_{ij}, & j \le i \\ 0 & \text{otherwise.} \end{array} \right.",
            "G = where(from_index((n, n), lambda i, j: j + 1 <= i + 1), A, 0)",
        ),
        (r"\exp(-\infty) + e^{-\infty} + \exp(0)", "1"),
        (r"\max_i \exp(x_i) + \max_i \min_j A_{ij}", "max(exp(x)) + max(min(A, axis=-1))"),
        (r"A^* = B; A^* x + A x", "A_star = B; A_star @ x + A @ x"),  # another name than A
        (r"A^*_{ij} = B_{ji}; (A^*)^\top x", "A_star = B.T; A_star.T @ x"),
        (r"Z_{i j} = 0 \quad (i = 0, \ldots, n - 1; j = 0, \ldots, d - 1)", "Z = zeros(n, d)"),
        (r"Z_{ij} = X_{ij} \quad (i = 0, \ldots, n - 2)", "Z = X[:-1, :]"),
        (r"[x_i + j]_{i j : j < d}", "x[:, None] + from_index((d,), lambda i: i)"),
        (r"||x||^2 + |x_i||y_i|", "sqrt(sum(x * x))**2 + abs(x) * abs(y)"),
        (r"(A^\top)_{ij} = A_{ij}", "A.T = A"),
        (r"\cos(\pi (n - 1))", "(-1)**(n - 1)"),
        (r"\sum_{i, j = 1}^n A_{ij}", "sum(sum(A, axis=-1))"),
        (
            r"f = \sum_i s_i; s = y \odot x; \nabla_x f = y",
            "f = sum(s); s = y * x; y * ds = y",
        ),  # a claim of f, not of a loss
        (r"\frac{\partial f}{\partial x_i} = x_i; f = x^\top x", "x + x = x; f = x @ x"),
        (r"dQ = dM K; dM = P; dQ = P K", "P @ K = dM @ K; dM = P; dQ = P @ K"),
        (r"f = e x + I x; e = n; I = A", "f = n * x + I @ x; e = n; I = A"),  # no constants
        (r"x = 0; 0 \le x", "x = zeros(n); zeros(n) <= x"),
        (r"S' = Q K^\top \implies P' = \operatorname{softmax}(S')", "S' = Q @ K.T; P' = softmax(S')"),
    ],
)
def test_the_common_meaning(text: str, meaning: str) -> None:
    assert _read(text) == meaning


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (r"A - x^\top y", "a scalar"),
        (r"x^\top x + \beta I", "a scalar"),
        (r"X + x^\top y", "n×d and a scalar"),
        (r"X - \exp(2 x^\top A y) / n", "n×d and a scalar"),
        (r"M + \frac{\beta}{x \cdot y}", "T×S and a scalar"),
        (r"[x^\top y, x^\top x]", "blocks"),
        (r"\operatorname{softmax}(x^\top y) A", "a scalar"),
        (r"x^\top u", "a row of n, the right is a column of d"),
        (r"w^\top x", "a row of d, the right is a column of n"),
        (r"X + x y^\top", "the sum: n×d and n×n"),
        (r"Q K^\top + \mathbf{1} z^\top", "T×S and T×n"),
        (r"P \odot (M - x \mathbf{1}^\top)", "T×S and n×S"),
        (r"M \odot x y^\top", "T×S and n×n"),
        (r"X + x y^\top = X + y x^\top", "n×d and n×n"),
        (r"m = X^\top \mathbf{1}; X - m \mathbf{1}^\top", "n×d and d×d"),
        (r"y x^\top w", "the left is n×n, the right is a column of d"),
        (r"X u^\top z", "the product"),
        (r"\operatorname{rowsum}(A) x", "a column of n"),
        (r"\min_w \lVert X w - x \rVert^2", "w stands below a sign as an index, and is declared as w"),
        (r"f = \min_{u, w} X u + X w", "u stands below a sign"),
        (r"\max_A \operatorname{tr}(A B)", "A stands below a sign"),
        (r"\max_x (x^\top A x) = \min_x (x^\top A x)", "x stands below a sign"),
        (r"\sum_{x=1}^n x^\top y", "x stands below a sign"),
        (r"\max_i \beta", "no index of what stands behind it"),
        (r"\max_\lambda x_i", "no index of what stands behind it"),
        (r"\operatorname{rowmax}_w(A)", "what stands below rowmax"),
        (r"\operatorname{maximum}_w(A, B)", "what stands below maximum"),
        (r"\operatorname{Concat}_w(x, y)", "what stands below Concat"),
        (r"G_t = G_{t-1} + K_t V_t^\top", "recurrence"),
        (r"S_t = S_{t-1} + K_t V_t^\top", "recurrence"),
        (r"G_{t+1} = G_t + K_t V_t^\top", "recurrence"),
        (r"G_{t-1} \in \mathbb{R}^{d \times c}; G_t = G_{t-1} + K_t V_t^\top", "recurrence"),
        (r"\operatorname{Concat}(X; Y)", "side by side"),
        (r"[A B]", "blocks or factors"),
        (r"[A\ B]", "blocks or factors"),
        (r"2dx", "d is declared as well"),
        (r"2dX", "d is declared as well"),
        (r"dx^\top y", "d is declared as well"),
        (r"\frac{x^\top y}{dx^\top x}", "d is declared as well"),
        (r"x = y \Rightarrow A x = A y", "implication"),
        (r"\sum_{j=1}^{n} x_j - x_{n-1}", "from 0 in one place and from 1"),
        (r"x_{n-1} - \sum_{j=1}^{n} x_j", "from 0 in one place and from 1"),
        (r"[\sum_{j=1}^{n} j A_{ij} + i]_i", "from 0 in one place and from 1"),
        (r"[i]_i + x; \sum_{j=1}^n x_j + x_{n-1}", "counted from 0 or from 1"),
        (r"\sum_{j=1}^n x_j; [i]_i + x", "from 0 in one place and from 1"),
        (r"A \odot [i + j \le n]_{ij}", "counted from 0 or from 1"),
        (r"A \odot [j \le 2]_{ij}", "counted from 0 or from 1"),
        (r"[2^{-8 i / n}]_i + x", "counted from 0 or from 1"),
        (r"[\beta i x_i]_i", "counted from 0 or from 1"),
        (r"x_{n-1}", "counted from 0 or from 1"),
        (r"A_{n-1, n-1}", "counted from 0 or from 1"),
        (r"A_{n-2, :} x", "counted from 0 or from 1"),
        (r"x_{n-2:n}", "counted from 0 or from 1"),
        (r"x_{d:2 d}", "counted from 0 or from 1"),
        (r"[a_{2 i + 1}]_i + x", "counted from 0 or from 1"),
        (r"x_{1:2}; \sum_{j=1}^n x_j", "counted from 0 or from 1"),
        (r"x^\top x + \sum_i i x_i", "where i begin"),
        (r"x_1", "not decided"),
        (r"x_{1:n}", "counted from 0 or from 1"),
        (r"x_{1:d}", "counted from 0 or from 1"),
        (r"x \cdot y A", "where this"),
        (r"\mathbb{E} \|x\|^2", "stands in brackets"),
        (r"\mathbb{E}_x[x^\top x]", "stands in brackets"),
        (r"\operatorname{argmax}_j A_{ij}", "argmax is not read"),
        (r"x \overset{iid}{\sim} N(0, I)", "a label at a relation"),
        (r"\mathbb{A} x", "the blackboard A is another name"),
        (r"\operatorname{softmax}(A, \text{axis}=0)", "write the axis as"),
        (r"\frac{1}{d x}", "d is declared as well"),
        (r"{A B}^\top", "braces do not show"),
        (r"\mathbf{AB}^\top", "braces do not show"),
        (r"{A + B}^{-1} x", "braces do not show"),
        (r"{\log \beta}^2", "braces do not show"),
        (r"A_{ij}^T", "its transpose"),
        (r"x_i^T", "its transpose"),
        (r"x \cdot y^\top", "a number or a matrix"),
        (r"A_{:, i} \cdot B_{j, :}", "a number or a matrix"),
        (r"A \odot B z y^\top", "comes first"),
        (r"A \odot B A", "comes first"),
        (r"A B \odot A", "comes first"),
        (r"x_{1:3}", "counted from 0 or from 1"),
        (r"A_{1, :}", "counted from 0 or from 1"),
        (r"A = \beta", "a number beside a vector or matrix"),
        (r"A A^{-1} = 1", "a number beside a vector or matrix"),
        (r"\operatorname{softmax}(P) \mathbf{1} = 1", "a number beside a vector or matrix"),
        (r"S = Q K^\top", "a number beside a vector or matrix"),
        (r"x(1) + x", "the value of a function"),
        (r"x(n)", "the value of a function"),
        (r"\beta(x)", "the value of a function"),
        (r"f = x_i", "free on the right, and not on the left"),
        (r"f = x_i y_i", "free on the right, and not on the left"),
        (r"f_j = x_i", "free on the right, and not on the left"),
        (r"f(x) = \exp(x_i)", "free on the right, and not on the left"),
        (r"f_i = \sum_i x_i", "bound by a sum"),
        (r"s^{-1} = n", "a power is not declared"),
        (r"s^{n + 1} = n", "a power is not declared"),
        (r"f(x) = A x; f(y)", "f is not declared"),
        (r"f(2 x) = A x; f(3 y)", "f is not declared"),
        (r"\langle x, y \rangle_A", "another subscript than F"),
        (r"\left| \begin{array}{c} X \\ Y \end{array} \right|", "a determinant"),
        (r"\begin{align} f &= A x \end{gather}", "cannot begin"),
        (r"\operatorname{softmax}(M - \infty)", "what a mask leaves out"),
        (r"\sin(\infty)", "no value"),
        (r"A^* x", r"what \^∗ means here is not decided"),
        (r"A^\dagger = B", r"what \^† means here is not decided"),
        (r"A B = B A \quad \text{if they commute}", "a condition in words"),
        (r"A B = B A, \text{ only in this case}", "a condition in words"),
        (r"\begin{align} A B &= B A && \text{not in general} \end{align}", "a condition in words"),
        (r"A B = B A, \text{ approximately}", "several things where one"),
        (r"x = y \quad \text{(almost surely)}", "these words are not read"),
        (
            r"z_i = \begin{cases} x_i & \text{if not } x_i > 0 \\ 0 & \text{else} \end{cases}",
            "these words are not read",
        ),
        (r"\sum_i _j x_i", "a second _ behind one sign"),
        (r"Z_{ij} = X_{ij} \quad (i = 1, \ldots, n - 1)", "runs over n - 1, and this axis has n"),
        (r"\pi(n)", "the value of a function"),
        (r"A_{i:} x", "write a row as"),
        (r"A := B; A x", "the text defines it"),
        (r"A_{ij} := B_{ij}; A_{ij} x_j", "the text defines it"),
        (r"x := A x", "is declared, and defined here"),
        (r"\sqrt 16 x", "stands in braces"),
        (r"\sin \pi / 2", "where the argument of sin ends"),
        (r"\log n / d", "where the argument of log ends"),
        (r"\sum_{i, i = 1}^n A_{ij}", "an index stands twice"),
        (r"\sum_{ii} A_{ii}", "the limits"),
        (r"2^10 x", "several digits"),
        (r"x_10", "several digits"),
        (r"\max_i x_i \sum_j y_j", "is a part of what"),
        (r"\max_i x_i \beta", "is a part of what"),
        (r"f_i = \sum_{j \le i} \operatorname{softmax}_j(A_{ij}) x_j", "softmax runs over"),
        (r"\frac{d^2 \beta}{d\beta^2}", "a derivative or a product with d"),
        (r"\frac{d^3 \beta}{d\beta\, d\beta^2}", "a derivative or a product with d"),
        (r"\frac{d^2}{d\beta\, d n} \beta", "a derivative or a product with d"),
        (r"\exp(x_i) / \sum_j \exp(x_j) \cdot y_i", "y_i is a part of what stands below"),
        (r"A_{ij} / \sum_k A_{ik} x_j", "x_j is a part of what stands below"),
        (r"x_i / \sum_{j \le i} y_j x_i", "x_i is a part of what stands below"),
        (r"x_i / \sum_j \sum_k A_{jk} x_i", "x_i is a part of what stands below"),
        (r"x_i / \sum_j y_j \sum_k A_{jk} x_i", "x_i is a part of what stands below"),
        (r"A / \sum_j x_j \odot B", "B is a part of what stands below"),
        (r"x_i / \sum_j y_j / \beta", "beta is a part of what stands below"),
        (r"x_i / \max_j x_j n", "n is a part of what stands below"),
        (r"x_i / -y_i \beta", "beta is a part of what stands below"),
        (r"\mathbb{E}(x_i - y_i)^2", "this power is of the moment"),
        (r"\mathbb{E}\left(x^\top y\right)^{2}", "this power is of the moment"),
        (r"\operatorname{Var}(x_i)^2", "this power is of the moment"),
        (r"\operatorname{Cov}(x_i, x_j)^{-1}", "this power is of the moment"),
        (r"\begin{bmatrix} & A \\ B & \end{bmatrix}", "an empty cell"),
        (r"\frac{\partial P_{ik}}{\partial M_{ij}} = P_{ik} (\delta_{jk} - P_{ij})", "a diagonal only"),
        (r"[\lvert x_i - y_j \rvert]_{jj}", "an index twice"),
        (r"\frac{\partial L}{\partial P^\top} = M^\top", "by a transpose"),
        (r"z_i = x_i, i = 1, 3, \ldots, n", "several things"),
        (r"z_i = x_i \quad \forall i \in \{1, 3, \ldots, n\}", "for which values"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SymattnError, match=reason):
        _read(text)


def test_a_sum_of_thousands_of_terms_is_read_in_time() -> None:
    began = time.process_time()
    assert sa.parse_latex("x+" * 4500 + "x", NAMES).shape == (n,)
    assert time.process_time() - began < 2


H, X, x, A = sa.tensor("H", c, n, d), sa.tensor("X", n, d), sa.tensor("x", n), sa.tensor("A", n, n)
i_th = sa.from_index((n,), lambda i: i)
COUNTED = [
    *(X[0] @ sa.tensor("u", d), X[1:, :], X[:-1, :], X[2:5], x[3], x[-1], x[1:3], X[-1, 0], H[1, 2:, 0]),
    *(A - sa.from_index((n, n), lambda i, j: i * j), sa.where(i_th >= 2, x, 0), x * i_th + x),
]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("value", COUNTED, ids=str)
def test_what_is_printed_with_a_first_index_is_read_with_it(value: sa.Tensor, first: int) -> None:
    read = sa.parse_latex(sa.latex(value, first_index=first), {**NAMES, "H": H}, first_index=first)
    assert read.shape == value.shape
    assert sa.prove(read, value)


def test_a_first_index_decides() -> None:
    assert str(sa.parse_latex(r"x_1 + x_{1:2}^\top x_{2:3}", NAMES, first_index=1)) == "x[0] + x[:2] @ x[1:3]"
    with pytest.raises(SymattnError, match="first_index is 0 or 1"):
        sa.parse_latex("x", NAMES, first_index=2)
    with pytest.raises(SymattnError, match="from 0 in one place and from 1"):
        sa.parse_latex(r"\sum_{j=0}^{n-1} x_j", NAMES, first_index=1)
