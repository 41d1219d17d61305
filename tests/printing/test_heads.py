r"""Matrix style where there are heads: one head where nothing acts across them, and layout by indices."""

from __future__ import annotations

import pytest

import symattn as sa
from symattn.ops.contraction import matmul_of
from symattn.printing import heads

T, S, d, e, h, n, D = sa.sizes("T S d e h n D")
Q, K, X = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("X", T, d)
q, k, v = (sa.tensor(name, h, T, d) for name in ("Q", "K", "V"))
W, W_q, L = sa.tensor("W", d, e), sa.tensor("W_q", h, d, e), sa.tensor("L", h, T)


@pytest.mark.parametrize(
    ("x", "written"),
    [
        (q @ k.mT, r"Q^{(a)} K^{(a) \top}"),
        (q @ W, "Q^{(a)} W"),
        (q @ W_q, "Q^{(a)} W_{q}^{(a)}"),
        (X @ W_q, "X W_{q}^{(a)}"),
        (W_q.mT, r"W_{q}^{(a) \top}"),
        (sa.softmax(q @ k.mT, where=sa.from_index((T, T), lambda i, j: j <= i)),
         r"\operatorname{softmax}_{[j \le i]_{i j}}(Q^{(a)} K^{(a) \top})"),
        (q - L[:, :, None], r"Q^{(a)} - L^{(a)} \mathbf{1}^{\top}"),
        (sa.logsumexp(q), r"\operatorname{rowlogsumexp}(Q^{(a)})"),
        (q**2, r"(Q^{(a)})^{\odot 2}"),
        (sa.let("Z", q @ k.mT) @ v, "Z^{(a)} V^{(a)}"),
        (sa.sum(q, axis=0), r"\sum_{a = 1}^{h} Q^{(a)}"),
        (sa.sum(q @ k.mT, axis=0), r"\sum_{a = 1}^{h} Q^{(a)} K^{(a) \top}"),
        (2 * sa.sum(q + k, axis=0), r"2 \left( \sum_{a = 1}^{h} (Q^{(a)} + K^{(a)}) \right)"),
        (sa.sum(matmul_of(q, sa.tensor("w", d), (2, 1)), axis=0), r"\sum_{a = 1}^{h} Q^{(a)} w"),
        (sa.sum(matmul_of(q.mT, L, (2, 1)), axis=0), r"\sum_{a = 1}^{h} Q^{(a) \top} L^{(a)}"),
        (sa.sum(sa.let("F", q * 2), axis=-2), r"F^{(a) \top} \mathbf{1}"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_done_head_by_head_is_written_for_one_head(x, written):
    whole = written if "sum_{a" in written else written + r" \quad (a = 1, \ldots, h)"
    assert sa.latex(x) == whole


def test_products_of_vectors_in_step_are_no_product_of_matrices():
    rows = matmul_of(Q, sa.tensor("Y", T, d), (1, 1))
    assert sa.latex(1 + rows) == r"1 + \left[ \sum_{k = 0}^{d - 1} Q_{i k} Y_{i k} \right]_{i}"
    stacked = sa.softmax(matmul_of(q.mT, L, (2, 1))).T
    assert r"\left[ \sum_{k = 0}^{T - 1} Q_{i k j} L_{i k} \right]_{i j}" in sa.latex(stacked)


@pytest.mark.parametrize(
    "x",
    [
        sa.softmax(q, axis=0),
        sa.sum(q * sa.from_index((h, 1, 1), lambda i, j, m: i), axis=0),
        q[0] @ k.mT,
        q[::-1] * k,
        sa.concat([q, k], axis=0),
        sa.einsum("htd,hsd->hts", q, k),
        q * sa.from_index((h, 1, 1), lambda i, j, m: i),
        sa.tensor("B", 2, T, d) @ W,
        sa.tensor("X", h, d) @ W,
        sa.moveaxis(sa.tensor("A", h, h, d), 0, 1) * sa.tensor("A", h, h, d),
    ],
    ids=str,
)
def test_what_acts_across_heads_is_written_whole(x):
    assert "(a)" not in sa.latex(x)
    assert "ldots" not in sa.Derivation("Whole").extend(sa.let("y", x)).latex()


def test_every_line_of_a_head_says_for_which_heads_it_holds():
    written = sa.gradient(sa.let("y", q @ sa.let("M", k.mT @ v)), [q]).latex()
    assert r"\mathrm{d}Q^{(a)} &= \mathrm{d}y^{(a)} \, M^{(a) \top} \quad (a = 1, \ldots, h) && \text" in written
    B = sa.tensor("B", n, T, d)
    assert r"\quad (a = 1, \ldots, n)" in sa.gradient(B @ W, [B]).latex()
    result = sa.Derivation("Result").extend(sa.gradient(sa.let("Y", B @ W), [B])).latex().split("Given")[0]
    assert r"\mathrm{d}B^{(a)} = \mathrm{d}Y^{(a)} \, W^{\top} \quad (a = 1, \ldots, n)" in result
    assert "ldots" not in sa.gradient(Q @ K.T, [Q]).latex()


def test_layout_is_written_by_indices_in_matrix_style():
    assert sa.latex(sa.moveaxis(q, 0, 1)) == r"[Q_{i a j}]_{a i j}"
    assert sa.latex(sa.merge_axes(q, (0, 1))) == r"[Q_{\lfloor i/T \rfloor, i \bmod T, j}]_{i j}"
    heads = sa.moveaxis(sa.split_axis(sa.tensor("X", T, D) @ sa.tensor("W_q", D, h * d), -1, (h, d)), 1, 0)
    assert sa.latex(heads) == r"[(X W_{q})_{i, a d + j}]_{a i j}"
    assert sa.latex(sa.repeat(X, 2, axis=0) - 1) == r"[X_{\lfloor i/2 \rfloor, j}]_{i j} - 1"
    pairs = sa.split_axis(sa.tensor("R", T, 2 * n), -1, (n, 2))
    assert sa.latex(pairs[:, :, 1]) == r"[R_{i, 2 j + 1}]_{i j}"


def test_an_operand_that_is_repeated_among_some_axes_of_a_batch_is_written_by_entries():
    B, u = sa.tensor("B", n, h, T, d), sa.tensor("u", "1 T d")
    assert sa.latex(B + q) == r"[B_{a b i j} + Q_{b i j}]_{a b i j}"
    assert sa.latex(B + sa.tensor("k", "n 1 1 d")) == r"[B_{a b i j} + k_{a j}]_{a b i j}"
    assert sa.latex(q + u) == r"[Q_{a i j} + u_{i j}]_{a i j}"
    assert [sa.latex(B + X), sa.latex(B * 2)] == ["B + X", "2 B"]  # in each of the batch


def test_rows_of_a_matrix_are_no_heads_of_it():
    assert sa.latex(sa.split_axis(sa.tensor("Z", T, h * d), -1, (h, d))) == r"[Z_{a, i d + j}]_{a i j}"


def test_a_head_has_a_letter_that_nothing_else_has():
    a, b_1 = sa.tensor("a", T, d), sa.sizes("b_1")
    assert "Q^{(c)}" in sa.latex(b_1 * (q + sa.tensor("a_1", h, T, d)) * a)
    assert sa.latex(sa.sum(sa.tensor("Y", b_1, T, d), axis=0)) == r"\sum_{a = 1}^{b_{1}} Y^{(a)}"
    assert sa.latex(q - sa.sum(sa.tensor("Y", n, T, d), axis=0)) == (
        r"Q^{(a)} - \left( \sum_{b = 1}^{n} Y^{(b)} \right) \quad (a = 1, \ldots, h)"
    )
    assert (
        r"Z^{(a)} &= Q^{(a)} K^{(a) \top} \quad (a = 1, \ldots, h)"
        in sa.prove(sa.softmax(sa.let("Z", q @ k.mT)), sa.softmax(sa.let("Z", q @ k.mT) + 1)).latex()
    )


def test_what_is_taken_along_the_axis_of_heads_is_written_whole():
    B, t = sa.tensor("B", "b d"), sa.tensor("t", "T", integer=True)
    X = sa.tensor("X", "b T d") * sa.take(B, t, axis=0)
    assert sa.latex(X) == r"X \odot B_{t, :}"


SHARED, ONE_EACH = sa.tensor("C", T, d), sa.tensor("t", h, 1, 1)
ACROSS = sa.tensor("B", h, h, d)
BY_HEAD = {
    "products": q @ k.mT @ SHARED,
    "rows of them": sa.softmax(q @ k.mT) - sa.mean(q @ k.mT, axis=-1, keepdims=True),
    "columns of them": sa.max(q, axis=-2, keepdims=True) * q,
    "with a vector": sa.exp(q + sa.tensor("x", d)),
    "with a number of each": q * ONE_EACH,
    "over the heads": q - sa.sum(q, axis=0),
    "a softmax over the heads": sa.softmax(q, axis=0),
    "heads in reverse": sa.flip(q, axis=0) + q,
    "a row of each": q + sa.tensor("u", h, d)[:, None, :],
    "rows that are as many as heads": ACROSS.mT,
    "heads in the columns": ACROSS + sa.tensor("u", h, d),
}  # fmt: skip


@pytest.mark.parametrize("what", BY_HEAD)
def test_what_is_known_to_be_by_head_is_so_by_its_entries(what, monkeypatch):
    fast = _printed(BY_HEAD[what])
    monkeypatch.setattr(heads, "_is_plain", lambda x, axis, names: False)
    assert fast == _printed(BY_HEAD[what])


def _printed(x):
    try:
        return sa.latex(x)
    except sa.SymattnError as refused:
        return str(refused)
