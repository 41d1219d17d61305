"""Columns and rows in formulas: a value of rank 1 is a column, and what is broadcast says in which direction."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa

n, m, T, S = sa.sizes("n m T S")
x, y, z = sa.tensor("x", n), sa.tensor("y", m), sa.tensor("z", n)
A, B, M = sa.tensor("A", n, m), sa.tensor("B", T, S), sa.tensor("M", n, n)
D, C, c = sa.tensor("D", T), sa.tensor("C", n, 1), sa.tensor("c")
P, dP = sa.tensor("P", T, S), sa.tensor("dP", T, S)
X, g = sa.tensor("X", "b T d"), sa.tensor("g", "d")


def rowsum(a):
    return sa.sum(a, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (x @ A, r"A^{\top} x"),
        (x @ A + y, r"A^{\top} x + y"),
        (A + y, r"A + \mathbf{1} y^{\top}"),
        (A + x[:, None], r"A + x \mathbf{1}^{\top}"),
        (A * x[:, None], r"\operatorname{diag}(x) A"),
        (A * y, r"A \, \operatorname{diag}(y)"),
        (B / rowsum(B), r"\operatorname{diag}(B \mathbf{1})^{-1} B"),
        (M / sa.sum(M, axis=1), r"M \, \operatorname{diag}(M \mathbf{1})^{-1}"),
        (B / sa.sum(B, axis=0), r"B \, \operatorname{diag}(B^{\top} \mathbf{1})^{-1}"),
        (sa.softmax(B, axis=0), r"\operatorname{softmax}_{\text{col}}(B)"),
        (A[0, 1], r"A_{0 1}"),
        (c[None] * x, r"c x"),
    ],
)
def test_formulas_read_as_the_field_writes_them(made, written):
    assert sa.latex(made) == written


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (A - 2 * y, r"A - 2 \mathbf{1} y^{\top}"),
        (A - x[:, None] / 2, r"A - \frac{x \mathbf{1}^{\top}}{2}"),
        (x[:, None] + y, r"x \mathbf{1}^{\top} + \mathbf{1} y^{\top}"),
        (x[:, None] * y, r"x y^{\top}"),
        (x[:, None] / y, r"(x \mathbf{1}^{\top}) \oslash (\mathbf{1} y^{\top})"),
        (x[:, None] / A, r"(x \mathbf{1}^{\top}) \oslash A"),
        (A * x[:, None] * y, r"\operatorname{diag}(x) A \, \operatorname{diag}(y)"),
        ((A * A) * y, r"(A \odot A) \, \operatorname{diag}(y)"),
        (C + y, r"C \mathbf{1}^{\top} + \mathbf{1} y^{\top}"),
        (C * y, r"C y^{\top}"),
        (x[:, None] < A, r"[x \mathbf{1}^{\top} < A]"),
        (sa.maximum(A, x[:, None]), r"\operatorname{maximum}(A, x \mathbf{1}^{\top})"),
        (sa.where(A > 0, y, x[:, None]), r"\operatorname{where}([A > 0], \mathbf{1} y^{\top}, x \mathbf{1}^{\top})"),
        (A**y, r"A^{\odot \mathbf{1} y^{\top}}"),
        (A / (1 + sa.exp(-y)), r"A \, \operatorname{diag}(1 + \exp(-y))^{-1}"),
        (B - sa.max(B, axis=-1, keepdims=True), r"B - \operatorname{rowmax}(B) \mathbf{1}^{\top}"),
        (B - sa.max(B, axis=0), r"B - \mathbf{1} \, \operatorname{colmax}(B)^{\top}"),
        (B - sa.max(B, axis=0, keepdims=True), r"B - \mathbf{1} \, \operatorname{colmax}(B)^{\top}"),
        (P * (dP - D[:, None]), r"P \odot (\mathrm{d}P - D \mathbf{1}^{\top})"),
        (P * (dP - rowsum(P * dP)), r"P \odot (\mathrm{d}P - (P \odot \mathrm{d}P) \mathbf{1} \mathbf{1}^{\top})"),
        (X * g, r"X^{(a)} \, \operatorname{diag}(g) \quad (a = 1, \ldots, b)"),
        (sa.softmax(M, where=sa.tensor("p", n, binary=True)), r"\operatorname{softmax}_{\mathbf{1} p^{\top}}(M)"),
        (sa.from_index((n, 1), lambda i, j: i) * A, r"\operatorname{diag}([i]_{i}) A"),
        (sa.from_index((1, m), lambda i, j: j) * A, r"A \, \operatorname{diag}([j]_{j})"),
    ],
)
def test_what_is_broadcast_is_written_out(made, written):
    assert sa.latex(made) == written


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (sa.outer(x @ A, x), r"(A^{\top} x) x^{\top}"),
        (sa.outer(y, x @ A), r"y x^{\top} A"),
        ((x @ A)[None], r"x^{\top} A"),
        ((x @ A)[:, None], r"A^{\top} x"),
        (x[None].T, "x"),
        ((-A).T, r"-A^{\top}"),
        (x @ sa.softmax(A), r"\operatorname{softmax}(A)^{\top} x"),
        (x[:, None] @ y[None], r"x y^{\top}"),
        (sa.sum(A, axis=0, keepdims=True) @ y[:, None], r"\mathbf{1}^{\top} A y"),
        ((x @ x) * A, r"(x^{\top} x) A"),
        (A * (x @ x), r"A (x^{\top} x)"),
        (sa.sum(A, keepdims=True) * x, r"\operatorname{sum}(A) x^{\top}"),
    ],
)
def test_products_conform(made, written):
    assert sa.latex(made) == written


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (A[0], r"A_{0, :}^{\top}"),
        (A[:1], r"A_{0, :}"),
        (A[:, 0], r"A_{:, 0}"),
        (A[:, :1], r"A_{:, 0}"),
        (C[:, 0], "C"),
        (A[0] @ y, r"A_{0, :} y"),
        (sa.outer(x, A[0]), r"x A_{0, :}"),
        (A[-1, 0], r"A_{n - 1, 0}"),
        (A[1:], r"A_{1:, :}"),
        (A[:, 1:-1], r"A_{:, 1:m - 1}"),
        (A.T[0], r"(A^{\top})_{0, :}^{\top}"),
        (sa.tensor("W_q", n, m)[0, 0], r"(W_{q})_{0 0}"),
        (dP[0], r"\mathrm{d}P_{0, :}^{\top}"),
        (sa.softmax(A)[:, 0], r"\operatorname{softmax}(A)_{:, 0}"),
        (sa.take(A, sa.tensor("t", T, integer=True), axis=0), r"A_{t, :}"),
        (sa.take(A, sa.tensor("t", integer=True), axis=0), r"A_{t, :}^{\top}"),
        (sa.take(x, sa.tensor("t", T, integer=True), axis=0), r"[x_{t_{i}}]_{i}"),
        (sa.take(sa.exp(x), sa.tensor("N", T, S, integer=True), axis=0), r"[\exp(x)_{N_{i j}}]_{i j}"),
    ],
)
def test_entries_rows_columns_and_blocks_of_a_matrix(made, written):
    assert sa.latex(made) == written


@pytest.mark.parametrize("reduce", [sa.max, sa.min, sa.mean, sa.logsumexp])
def test_reductions_say_what_they_go_along(reduce):
    name = reduce.__name__
    assert (
        sa.latex(reduce(A, axis=1)) == sa.latex(reduce(A, axis=1, keepdims=True)) == rf"\operatorname{{row{name}}}(A)"
    )
    assert sa.latex(reduce(A, axis=0)) == rf"\operatorname{{col{name}}}(A)"
    assert sa.latex(reduce(A, axis=0, keepdims=True)) == rf"\operatorname{{col{name}}}(A)^{{\top}}"


@pytest.mark.parametrize("normalise", [sa.softmax, sa.sparsemax, sa.entmax15, sa.cumsum])
def test_what_goes_down_the_columns_says_so(normalise):
    assert r"\text{col}" in sa.latex(normalise(A, axis=0))
    assert r"\text{col}" not in sa.latex(normalise(A, axis=1))


def test_normalising_along_the_wrong_axis_looks_different():
    right, wrong = M / sa.sum(M, axis=1)[:, None], M / sa.sum(M, axis=1)
    assert sa.latex(right) != sa.latex(wrong)
    assert sa.latex(right) == sa.latex(M / rowsum(M))


def test_constants_are_upright():
    e = sympy.Symbol("e", positive=True, integer=True)
    assert sa.latex(sympy.E / (1 + e)) == r"\frac{\mathrm{e}}{e + 1}"


# --- parts among zeros, parts of a join, like terms ---

R = sa.sizes("R")
Z_1, Z_2, V_1, V_2 = sa.tensor("Z_1", T, S), sa.tensor("Z_2", T, R), sa.tensor("V_1", S, m), sa.tensor("V_2", R, m)
W = sa.let("P", sa.softmax(sa.let("Z", sa.concat([Z_1, Z_2], axis=-1))))
OUTPUT = sa.let("O", W[:, :S] @ V_1 + W[:, S:] @ V_2)


def test_parts_that_take_a_join_apart_are_named_with_it_once():
    derivation = sa.Derivation("Two memories").extend(W, OUTPUT).say("Backward.")
    written = derivation.extend(sa.gradient(OUTPUT, [V_1, V_2, Z_1])).latex()
    defined = r"\begin{bmatrix} P_{1} & P_{2} \end{bmatrix} &:= P && \text{parts of $S$ and $R$ columns}"
    assert written.count(r":= P &") == 1
    assert defined in written
    assert written.index(defined) < written.index(r"O &:= P_{1} V_{1} + P_{2} V_{2}")
    assert r"\mathrm{d}V_{i} &= P_{i}^{\top} \, \mathrm{d}O" in written
    assert (
        r"\mathrm{d}P &= \begin{bmatrix} \mathrm{d}O \, V_{1}^{\top} & \mathrm{d}O \, V_{2}^{\top} \end{bmatrix}"
        in written
    )
    assert str(OUTPUT) == "P[:, :S] @ V_1 + P[:, S:] @ V_2"


def test_a_part_is_a_slice_where_nothing_defines_it():
    assert sa.latex(OUTPUT) == r"P_{:, :S} V_{1} + P_{:, S:} V_{2}"
    assert ":=" not in sa.gradient(OUTPUT, [V_1]).latex()


def test_a_part_whose_name_is_taken_stays_a_slice():
    P_1 = sa.tensor("P_1", T, m)
    assert ":=" not in sa.gradient(OUTPUT + P_1, [V_1, V_2, P_1]).latex()


@pytest.mark.parametrize(
    ("of", "by", "written"),
    [
        (
            sa.sum(sa.exp(A[0])),
            A,
            r"\begin{bmatrix} \exp(A_{0, :}^{\top})^{\top} \\ 0_{(n - 1) \times m} \end{bmatrix}",
        ),
        (sa.sum(sa.exp(A[:, 1:])), A, r"\begin{bmatrix} 0_{n \times 1} & \exp(A_{:, 1:}) \end{bmatrix}"),
        (sa.sum(sa.exp(x[1:-1])), x, r"\begin{bmatrix} 0_{1} \\ \exp(x_{1:n - 1}) \\ 0_{1} \end{bmatrix}"),
    ],
)
def test_a_part_among_zeros_is_a_matrix_of_blocks(of, by, written):
    assert sa.latex(sa.gradient(of, [by])[by].inputs[0]) == written


def test_parts_that_meet_are_one_matrix():
    u = sa.tensor("u", 2 * n)
    assert (
        sa.latex(sa.gradient(sa.sum(u[:n] * u[n:]), [u])[u].inputs[0])
        == r"\begin{bmatrix} u_{n:} \\ u_{:n} \end{bmatrix}"
    )


@pytest.mark.parametrize(
    ("made", "written", "text"),
    [
        (x / 2 + x / 2, "x", "x / 2 + x / 2"),
        (sa.eye(n) / 2 + sa.eye(n) / 2, "I_{n}", "eye(n) / 2 + eye(n) / 2"),
        (x - x, "0_{n}", "x - x"),
        (x + z + x, "2 x + z", "x + z + x"),
        (A + y - A, r"\mathbf{1}_{n} y^{\top}", "A + y - A"),
        (sa.exp(x + x), r"\exp(2 x)", "exp(x + x)"),
        (x + z, "x + z", "x + z"),
        (sa.concat([x, y]), r"\begin{bmatrix} x \\ y \end{bmatrix}", "concat([x, y], axis=-1)"),
    ],
)
def test_like_terms_are_added_up_where_they_are_shown(made, written, text):
    assert sa.latex(made) == written
    assert str(made) == text


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (sa.sum(sa.from_index((n, m), lambda i, j: i - j), axis=1), r"\left[ \sum_{k = 0}^{m - 1} (i - k) \right]_{i}"),
        (sa.from_index((n, m), lambda i, j: i) @ sa.from_index((m, n), lambda i, j: j), None),
    ],
)
def test_sums_over_constants_by_index_say_how_far_they_go(made, written):
    assert r"^{m - 1}" in sa.latex(made)
    assert written is None or sa.latex(made) == written


def test_a_sum_of_sizes_among_several_keeps_together():
    assert r"$W \in \mathbb{R}^{(n + 1) \times m}$" in sa.Derivation("Sizes", given=[sa.tensor("W", n + 1, m)]).latex()
    assert sa.latex(sa.ones(n + 1, m)) == r"\mathbf{1}_{(n + 1) \times m}"
    assert sa.latex(sa.zeros(n + 1)) == r"0_{n + 1}"


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (
            sa.sum((sa.tensor("Q", "T d")[:, None, :] - sa.tensor("K", "S d")) ** 2, axis=-1),
            r"\left[ \sum_{k = 0}^{d - 1} (Q_{i k} - K_{j k})^{2} \right]_{i j}",
        ),
        (sa.tensor("s", "2")[:, None, None] * A, r"[s_{a} A_{i j}]_{a i j}"),
    ],
)
def test_what_has_three_axes_by_new_ones_is_written_by_entries(made, written):
    assert sa.latex(made) == written
