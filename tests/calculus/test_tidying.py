"""The tidying table: every rule keeps the value, by entries, and gives the plainer form."""

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.calculus.tidying import TABLE, tidy
from symattn.codegen.check import compare, sample_point
from symattn.codegen.reference import values
from symattn.core.node import topological
from symattn.ops import RECORDS
from symattn.ops.arithmetic import add_op, divide_op, multiply_op
from symattn.ops.broadcasting import broadcast_to, broadcast_to_op, sum_op
from symattn.ops.contraction import diag_op, diagonal_op, einsum_op, matmul_op, outer_op, trace_op
from symattn.ops.index import embed_op
from symattn.ops.layout import merge_axis_op, split_axis_op, transpose
from symattn.ops.leaves import as_tensor
from symattn.ops.rows import mean_op

T, S, d, e, h = sa.sizes("T S d e h")
X, Y, B, C = sa.tensor("X", T, d), sa.tensor("Y", T, d), sa.tensor("B", d, e), sa.tensor("C", d, d)
W, R, u, v, c = sa.tensor("W", h, T, d), sa.tensor("R", h, d, e), sa.tensor("u", d), sa.tensor("v", T), sa.tensor("c")
H, M = sa.tensor("H", T, h * d), sa.tensor("M", T, d, binary=True)
tau = sympy.Symbol("tau", positive=True)


def by(factor, x):
    """The factor times x, as it stands before tidying."""
    return multiply_op(as_tensor(factor), x)


RULES = {
    "a number where a mask lets it, else 0": (sa.where(M, 3, 0), "3 * M"),
    "a factor where a mask lets it, else 0": (sa.where(M, broadcast_to(by(tau, sa.ones(T, 1)), (T, d)), 0), "tau * M"),
    "factor out of a product's left": (matmul_op(by(3, X), B, core=(2, 2)), "3 * (X @ B)"),
    "factor out of a product's right": (matmul_op(X, by(1 / sympy.sqrt(d), B), core=(2, 2)), "X @ B / sqrt(d)"),
    "factors out of both sides": (matmul_op(by(2, X), by(tau, B), core=(2, 2)), "(2*tau) * (X @ B)"),
    "factors that cancel": (matmul_op(by(2, X), by(sympy.Rational(1, 2), B), core=(2, 2)), "X @ B"),
    "factor out of a product with heads": (matmul_op(by(-1, W), R, core=(2, 2)), "-(W @ R)"),
    "factor out of a product with a vector": (matmul_op(by(3, X), u, core=(2, 1)), "3 * (X @ u)"),
    "factor out of an outer product": (outer_op(by(3, u), by(tau, v)), "(3*tau) * outer(u, v)"),
    "factor out of einsum": (
        einsum_op(by(3, X), by(tau, B), spec=(("td", "de"), "et")), '(3*tau) * einsum("td,de->et", X, B)',
    ),
    "factor out of a sum": (sum_op(by(tau, X), axes=(-1,), keepdims=True), "tau * rowsum(X)"),
    "factor out of a mean": (mean_op(by(tau, X), axes=(-1,), keepdims=True), "tau * rowmean(X)"),
    "factor out of an index": (by(3, X)[1:, None], "3 * X[1:, None, :]"),
    "factor out of a place in zeros": (
        embed_op(by(3, u), items=X[0].params["items"], core=(T, d)), None,
    ),
    "factor out of split_axis": (split_axis_op(by(3, H), axis=-1, into=(h, d)), None),
    "factor out of merge_axes": (merge_axis_op(by(3, W), axis=-1), None),
    "factor out of repeat": (sa.repeat(by(3, X), h, axis=-1), None),
    "factor out of shift": (sa.shift(by(3, X), 1), "3 * shift(X, 1)"),
    "factor out of tile": (sa.tile(by(3, X), 2, 0), None),
    "factor out of cumsum": (sa.cumsum(by(3, X)), "3 * cumsum(X)"),
    "factor out of tril": (sa.tril(by(3, C)), "3 * tril(C)"),
    "factor out of triu": (sa.triu(by(3, C)), "3 * triu(C)"),
    "factor out of a diagonal matrix": (diag_op(by(3, u)), "3 * diag(u)"),
    "factor out of a diagonal": (diagonal_op(by(3, C)), "3 * diag(C)"),
    "factor out of a trace": (trace_op(by(3, C)), "3 * trace(C)"),
    "factor out of a broadcast": (broadcast_to_op(by(3, u), shape=(T, d)), "3 * broadcast_to(u, (T, d))"),
    "factor out of a transpose": (transpose(by(3, X), (-1, -2)), "3 * X.T"),
    "factor out of an order of axes": (transpose(by(3, W), (-1, -3, -2)), None),
    "factors gathered in front of an entrywise product": (multiply_op(by(3, X), by(tau, Y)), "(3*tau) * X * Y"),
    "factors of a quotient": (divide_op(by(3, X), by(2, Y)), "3 * X / Y / 2"),
    "a broadcast that the product does itself": (multiply_op(X, broadcast_to(u, (T, d))), "X * u"),
    "a broadcast that the sum does itself": (add_op(X, broadcast_to(u, (T, d))), "X + u"),
    "a sum with zeros": (add_op(X, sa.zeros(T, d)), "X"),
    "a product with zeros": (multiply_op(X, sa.zeros(T, d)), "zeros(T, d)"),
    "a product with ones": (multiply_op(X, sa.ones(T, d)), "X"),
    "the transpose of a product": (transpose(X @ B, (-1, -2)), "B.T @ X.T"),
    "the transpose of a product of a transpose": (transpose(X @ Y.T, (-1, -2)), "Y @ X.T"),
    "the transpose of a product with heads": (transpose(W @ R, (-1, -2)), "R.mT @ W.mT"),
    "the transpose of a scaled product": (transpose(by(1 / sympy.sqrt(d), X @ B), (-1, -2)), "B.T @ X.T / sqrt(d)"),
    "the transpose of an outer product": (transpose(outer_op(u, v), (-1, -2)), "outer(v, u)"),
    "the row sum over its length": (by(1 / d, sa.sum(X, -1, True)), "rowmean(X)"),
    "a multiple of the row sum over its length": (by(-3 / d, sa.sum(X, -1, True)), "-3 * rowmean(X)"),
    "a sum over all entries over their number": (by(1 / (T * d), sa.sum(X)), "mean(X)"),
    "a broadcast row sum over its length": (
        by(1 / d, broadcast_to_op(sa.sum(X, -1, True), shape=(T, d))), "broadcast_to(rowmean(X), (T, d))",
    ),
    "the entry left of a sum over the last axis": (sa.sum(X, -1, True)[:, 0], "sum(X, axis=-1)"),
    "the entry left of a sum over several axes": (sa.sum(W, (-2, -1), True)[:, 0, 0], "sum(W, axis=(-2, -1))"),
    "the entry left of a mean over the first axis": (sa.mean(X, 0, True)[0], "mean(X, axis=-2)"),
    "nested": (
        transpose(matmul_op(by(2, X), transpose(by(3, B @ R[0].T), (-1, -2)), core=(2, 2)), (-1, -2)),
        "6 * (B @ R[0, :, :].T @ X.T)",
    ),
}  # fmt: skip
STAY = {
    "the row sum over another number": by(1 / T, sa.sum(X, -1, True)),
    "the row sum over a number": by(sympy.Rational(1, 3), sa.sum(X, -1, True)),
    "the row sum over the root of its length": by(1 / sympy.sqrt(d), sa.sum(X, -1, True)),
    "a row of a sum over a later axis": sa.sum(X, -1, True)[0],
    "a part of the entries left of a sum": sa.sum(W, (-2, -1), True)[1:, 0, 0],
    "a product of a matrix and a vector": X @ u,
    "a softmax of a multiple": sa.softmax(by(3, X)),
    "a maximum of a multiple": sa.max(by(-3, X), -1),
    "a power of a multiple": by(3, X) ** 2,
    "a user's order": Y * X + X * Y - Y,
}


def assert_same_value(x, y):
    assert x.shape == y.shape
    for seed in (0, 1):
        point = sample_point([x], x.tensors, seed)
        known = {**point.sizes, **point.scalars}
        for node in topological([y]):
            known.update({s: 0.7 for s in node.own_symbols - known.keys()})
        want, got = (values([node], point.arrays, known)[node].astype(float) for node in (x, y))
        compare("the tidied form", np.asarray(got), np.asarray(want), 1e-13, point)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_keeps_the_value(rule):
    x, _ = RULES[rule]
    assert_same_value(x, tidy(x, {}))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_gives_the_plainer_form(rule):
    x, form = RULES[rule]
    plain = tidy(x, {})
    if form is not None:
        assert str(plain) == form
    else:  # a factor is in front of the untouched operation
        assert str(plain) == f"3 * {tidy(plain.inputs[1], {})}"
        assert plain.inputs[1].op is not multiply_op
    assert tidy(plain, {}) is plain


@pytest.mark.parametrize("case", STAY)
def test_what_no_rule_fits_stays(case):
    assert tidy(STAY[case], {}) is STAY[case]


def test_every_operation_of_the_table_is_tried():
    tried = {node.op for x, _ in RULES.values() for node in topological([x])}
    assert set(TABLE) <= tried
    assert set(TABLE) <= set(RECORDS.values())


def test_what_is_said_to_stay_stays_and_what_is_known_is_used():
    part = matmul_op(by(3, X), B, core=(2, 2))
    kept = tidy(add_op(part, part), {part: part})
    assert kept.inputs == (part, part)
    L = sa.let("L", X @ B)
    assert tidy(transpose(X @ B, (-1, -2)), {X @ B: L}) is L.T


def test_a_shared_part_is_tidied_once():
    x = by(3, X)
    for _ in range(60):
        x = add_op(x, x)
    done = {}
    tidy(x, done)
    assert len(done) < 300


def test_tidying_does_not_recurse():
    x = X
    for _ in range(20000):
        x = sa.sin(x)
    assert tidy(x, {}) is x


def test_entrywise_products_keep_masks_and_signs_apart():
    allowed = sa.tensor("M", T, d, binary=True)
    x = multiply_op(by(-1, X), multiply_op(allowed, by(2, Y)))
    assert_same_value(x, tidy(x, {}))
