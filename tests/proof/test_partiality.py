"""Claims that are not defined everywhere: conditions are stated, and an empty row is never forgotten."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.errors import OperandError, ShapeError
from symattn.proof.definedness import conditions
from symattn.scalars.formulas import Max, Min

T, S, d, e, n = sa.sizes("T S d e n")
oo, third = sympy.oo, sympy.Rational(1, 3)
Z, ZZ, M = sa.tensor("Z", T, S), sa.tensor("Z", T, T), sa.tensor("M", T, S, binary=True)
V, b, A = sa.tensor("V", S, e), sa.tensor("b", e), sa.tensor("A", n, n)
x, u = sa.tensor("x", n), sa.tensor("u", n, positive=True)
R, U = sa.tensor("R", n, n, invertible=True), sa.tensor("U", n, n, orthogonal=True)


def relation(shape, formula):
    return sa.from_index(shape, formula)


def additive(mask):
    return sa.where(mask, 0, -oo)


def rows(p):
    return sa.sum(p, -1)


WINDOW = relation((T, S), lambda i, j: i - j < 4)  # empties rows where there are few keys
BAND = relation((T, T), lambda i, j: (j <= i) & (i - j < 3))
CAUSAL = relation((T, T), lambda i, j: j <= i)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (rows(sa.softmax(Z + additive(WINDOW))), sa.ones(T)),
        (rows(sa.softmax(Z, where=WINDOW)), sa.ones(T)),
        (sa.softmax(Z + additive(WINDOW)) @ (V + b), sa.softmax(Z + additive(WINDOW)) @ V + b),
        (sa.mean(sa.softmax(Z + additive(WINDOW))), sa.ones() / S),
        (sa.sum(sa.softmax(sa.where(x > -100, x, -oo))), sa.ones()),
        (sa.softmax(Z, where=relation((T, S), lambda i, j: sympy.Ne(i, 5))), sa.softmax(Z)),
        (rows(sa.softmax(ZZ, where=relation((T, T), lambda i, j: j < i))), sa.ones(T)),
        (sa.inv(A) @ R, sa.eye(n)),
    ],
    ids=str,
)
def test_what_fails_on_an_empty_row_or_elsewhere_is_not_proved(left, right):
    assert not sa.prove(left, right)


@pytest.mark.parametrize("mask", [CAUSAL, BAND, relation((T, T), lambda i, j: sympy.Eq(i, j))], ids=str)
def test_a_constant_mask_that_leaves_the_diagonal_has_no_empty_row(mask):
    for p in (sa.softmax(ZZ, where=mask), sa.softmax(ZZ + additive(mask))):
        verdict = sa.prove(rows(p), sa.ones(T))
        assert verdict
        assert verdict.proof.side_conditions == ()


STRICT = relation((T, T), lambda i, j: j < i)
SQUARE, OTHER = sa.tensor("M", T, T, binary=True), sa.tensor("N", T, T, binary=True)


@pytest.mark.parametrize("p", [sa.softmax(Z, where=M), sa.softmax(Z + additive(M)), sa.softmax(sa.where(M, Z, -oo))])
def test_a_declared_mask_may_leave_nothing_unless_it_is_given_that_it_does(p):
    shifted = p @ (V + b), p @ V + b
    empty = sa.prove(rows(p), sa.ones(T))
    assert empty.status == "refuted"
    assert (empty.counterexample.left, empty.counterexample.right) == (0, 1)
    assert sa.prove(*shifted).status == "refuted"
    for given in (
        sa.le(1, sa.sum(M, -1)), sa.lt(0, sa.sum(M, -1)), sa.eq(sa.max(M, -1), sa.ones(T)), sa.eq(sa.sum(M, -1), 1),
    ):  # fmt: skip
        for claim in ((rows(p), sa.ones(T)), shifted):
            verdict = sa.prove(*claim, given=given)
            assert verdict
            assert verdict.proof.side_conditions == ()
            assert verdict.proof.check()


@pytest.mark.parametrize(
    ("mask", "given"),
    [
        (SQUARE, sa.eq(SQUARE, sa.zeros(T, T))),
        (SQUARE, sa.le(1, sa.sum(SQUARE, 0))),  # every column holds something
        (SQUARE, sa.le(1, sa.sum(SQUARE))),
        (SQUARE, sa.le(0, sa.sum(SQUARE, -1))),
        (SQUARE, sa.le(1, sa.sum(SQUARE, -1)[:1])),
        (SQUARE, sa.le(1, sa.sum(OTHER, -1))),
        (SQUARE & OTHER, sa.le(1, sa.sum(SQUARE, -1))),
        (STRICT & SQUARE, sa.eq(sa.diag(SQUARE), sa.ones(T))),
        (sa.tril(SQUARE, -1), sa.le(1, sa.diag(SQUARE))),
        (STRICT.T & SQUARE, ()),
    ],
    ids=str,
)
def test_what_is_given_of_other_places_leaves_rows_empty(mask, given):
    assert not sa.prove(rows(sa.softmax(ZZ, where=mask)), sa.ones(T), given=given)


@pytest.mark.parametrize(
    ("mask", "given"),
    [
        (CAUSAL & SQUARE, sa.le(1, sa.sum(CAUSAL & SQUARE, -1))),
        (SQUARE & OTHER, sa.le(1, sa.sum(SQUARE & OTHER, -1))),
        (SQUARE.T, sa.le(1, sa.sum(SQUARE, 0))),
        (SQUARE, sa.eq(sa.diag(SQUARE), sa.ones(T))),
        (CAUSAL & SQUARE, sa.le(1, sa.diag(SQUARE))),
    ],
    ids=str,
)
def test_what_is_given_of_a_mask_fills_its_rows(mask, given):
    assert sa.prove(rows(sa.softmax(ZZ, where=mask)), sa.ones(T), given=given)


CONDITIONS = {
    "quotient": (x * (1 / x), sa.ones(n), ["x != 0"]),
    "quotient of equals": (x / x, sa.ones(n), ["x != 0"]),
    "root": (sa.sqrt(x) ** 2, x, ["x >= 0"]),
    "cube root": ((x**3) ** third, x, ["x**3 >= 0"]),
    "logarithm": (sa.exp(sa.log(x)), x, ["x > 0"]),
    "both sides undefined": (sa.log(x) - sa.log(x), 0 * x, ["x > 0"]),
    "inverse": (sa.inv(A) @ A, sa.eye(n), ["A is invertible"]),
    "inverse of what has one at size 1": (
        sa.inv(sa.outer(x, x)) @ sa.outer(x, x), sa.eye(n), ["outer(x, x) is invertible"],
    ),
    "declared invertible": (sa.inv(R) @ R, sa.eye(n), []),
    "orthogonal": (sa.inv(U) @ U, sa.eye(n), []),
    "positive": (sa.exp(sa.log(u)), u, []),
    "a sum of squares and something": (x / (x * x + 1), x * (1 / (1 + x * x)), []),
    "an absolute value": (sa.sqrt(sa.abs(x)) ** 2, sa.abs(x), []),
    "a logarithm of a mask": (
        sa.softmax(Z + sa.log(M)), sa.softmax(Z, where=M), ["M > 0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions(name):
    left, right, wanted = CONDITIONS[name]
    verdict = sa.prove(left, right)
    assert verdict, str(verdict)
    found = list(verdict.proof.side_conditions)
    assert [c for c in found if c in wanted] == wanted
    assert wanted or not found


k = sympy.Symbol("k", integer=True)
PARTS = {
    "before": lambda i, z: sympy.Sum(sympy.exp(z[k]), (k, 0, i[0] - 1)),
    "after": lambda i, z: sympy.Sum(z[k] ** 2 + 1, (k, i[0] + 1, n - 1)),
    "far before": lambda i, z: sympy.Sum(sympy.exp(z[k]), (k, 0, i[0] - 3)),
    "largest before": lambda i, z: Max(sympy.exp(z[k]), (k, 0, i[0] - 1)),
    "smallest before": lambda i, z: Min(sympy.exp(z[k]), (k, 0, i[0] - 1)),
    "up to here": lambda i, z: sympy.Sum(sympy.exp(z[k]), (k, 0, i[0])),
    "largest up to here": lambda i, z: Max(sympy.exp(z[k]), (k, 0, i[0])),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_range_that_may_be_empty_has_the_sign_of_its_empty_value_too(name):
    y = sa.operation("part", shape="n -> n", entry=PARTS[name])(x)
    found = conditions([sa.log(y)])
    assert found == (() if "up to here" in name else ("part(x) > 0",))
    assert ("up to here" in name) == bool(sa.prove(sa.lt(0, y)))


def test_layer_norm_divides_by_what_is_positive():
    X = sa.tensor("X", T, d)

    def norm(X):
        gap = X - sa.mean(X, -1, keepdims=True)
        return gap * sa.rsqrt(sa.mean(gap**2, -1, keepdims=True) + sympy.Rational(1, 10**5))

    assert sa.prove(norm(X + 1), norm(X)).proof.side_conditions == ()


# --- hypotheses that do not fit ---


def test_properties_of_another_tensor_of_that_name():
    for given in (sa.tensor("x", T, T, binary=True), sa.tensor("x", T, T, permutation=True)):
        with pytest.raises(ShapeError, match="of another shape"):
            sa.prove(x * x, x, given=[given])


@pytest.mark.parametrize(
    ("given", "count", "value"),
    [
        ([sympy.Eq(T, S), sympy.Eq(T, 2)], S, 2),
        ([sympy.Eq(T, 2), sympy.Eq(T, S)], S, 2),
        ([sympy.Eq(T, 2 * S), sympy.Eq(T, 2)], S, 1),
        ([sympy.Eq(T, d / 2)], d, 2 * T),
    ],
)
def test_several_relations_of_sizes(given, count, value):
    assert sa.prove(sa.sum(sa.ones(count)), value * sa.ones(), given=given)


def test_relations_that_leave_no_sizes():
    with pytest.raises(OperandError, match="contradicts itself"):
        sa.prove(sa.sum(sa.ones(T)), 2 * sa.ones(), given=[sympy.Eq(T, S), sympy.Eq(T, S + 1)])


@pytest.mark.parametrize("given", [sympy.Eq(n, sympy.Symbol("n")), sympy.Symbol("s") > 0])
def test_relations_of_what_is_no_size(given):
    with pytest.raises(OperandError, match="is no size"):
        sa.prove(x, x + 0, given=[given])


def test_time_is_kept_on_deep_graphs():
    import time

    left, right = x, x * 1
    for _ in range(3000):
        left, right = sa.tanh(left), sa.tanh(right)
    start = time.monotonic()
    verdict = sa.prove(left, sa.tanh(right), budget=0.3)
    assert verdict.status in ("unknown", "refuted")
    assert time.monotonic() - start < 8


def test_counterexamples_with_unknown_functions_of_rows_can_be_checked_by_hand():
    X = sa.tensor("X", T, d)
    verdict = sa.prove(sa.unknown("phi", X, rowwise=True), X)
    assert "row x ->" in str(verdict.counterexample)


def test_one_hypothesis_needs_no_list():
    fact = sa.eq(A @ x, x)
    assert sa.prove(A @ x, x, given=fact).proof.hypotheses == (str(fact),)
    assert sa.prove(sa.sum(sa.ones(T)), S * sa.ones(), given=sympy.Eq(T, S))


def test_a_guard_is_not_cancelled():
    safe = sa.operation(
        "safe",
        shape="n, n -> n",
        entry=lambda index, a, b: sympy.Piecewise(
            (0, sympy.Eq(a[index] * b[index], 0)), (1 / (a[index] * b[index]), True)
        ),
    )
    y = sa.tensor("y", n)
    assert not sa.prove(safe(x, y) * x * y, sa.ones(n))


def test_what_is_given_is_proved():
    for left, right in ((A @ x, x), (A, A.T), (sa.sum(sa.exp(x)), 2 * sa.ones())):
        assert sa.prove(left, right, given=[sa.eq(left, right)])
        assert sa.prove(right, left, given=[sa.eq(left, right)])
    assert sa.prove(sa.le(x, u), given=[sa.le(x, u)])
    assert not sa.prove(sa.le(u, x), given=[sa.le(x, u)])


EVERYWHERE = {
    "a square and 1": 1 + x**2,
    "softplus": sa.softplus(x),
    "2 + tanh": 2 + sa.tanh(x),
    "2 - softmax": 2 - sa.softmax(Z),
    "exp(x) - x": sa.exp(x) - x,
    "negative": -1 - x**2,
    "3 - sin": 3 - sa.sin(x),
    "a weight": sa.softmax(Z),
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_what_is_seen_not_to_be_0_is_no_condition(name):
    q = EVERYWHERE[name]
    assert sa.prove(q / q, sa.ones(*q.shape)).proof.side_conditions == ()


def test_what_is_given_settles_conditions():
    assert sa.prove(x / x, sa.ones(n), given=sa.lt(0, x)).proof.side_conditions == ()
    assert sa.prove(x / x, sa.ones(n), given=sa.lt(x, -1)).proof.side_conditions == ()
    assert sa.prove(x / x, sa.ones(n), given=sa.le(0, x)).proof.side_conditions == ("x != 0",)
    assert sa.prove(sa.exp(sa.log(x)), x, given=sa.le(1, x)).proof.side_conditions == ()


@pytest.mark.parametrize("matrix", [A, A @ A, sa.let("B", A + A.T), 2 * A], ids=str)
def test_the_inverse_of_an_inverse_is_the_matrix_where_it_has_one(matrix):
    (condition,) = sa.prove(sa.inv(sa.inv(matrix)), matrix).proof.side_conditions
    assert condition.endswith("is invertible")
    assert sa.inv(sa.inv(R)) is R


def test_a_tangent_and_a_quotient_of_sizes_have_their_conditions():
    D, h = sa.sizes("D h")
    t, z = sympy.Symbol("t", real=True), sa.tensor("z", D)
    assert conditions([sa.elementwise(sympy.Lambda(t, sympy.tan(t)), x)]) == ("cos(x) != 0",)
    assert conditions([sa.elementwise(sympy.Lambda(t, sympy.tan(2 * t)), x)])[0].endswith("is defined")
    merged = sa.merge_axes(sa.split_axis(z, 0, (h, D / h)), (0, 1))
    assert sa.prove(merged, z).proof.side_conditions == ("h divides D",)


_S, _n = sa.sizes("S n")
_s = sympy.Symbol("s", integer=True, nonnegative=True)
_y = sa.tensor("y", _n)


@pytest.mark.parametrize(
    ("left", "right", "listed"),
    [
        (_y[:_S], _y[:_S] * sa.ones(_S), ("S <= n",)),
        (_y[_s : _s + _S] + _y[_s : _s + _S], 2 * _y[_s : _s + _S], ("S + s <= n",)),
        (sa.sum(sa.softmax(_y[1:])), sa.ones(), ("2 <= n",)),
        (sa.sum(sa.softmax(_y[:-3])), sa.ones(), ("4 <= n",)),
        (sa.flip(_y, 0)[1:], sa.flip(_y[:-1], 0), ("2 <= n",)),
        (sa.concat([_y[:_S], _y[_S:]]), _y, ("S + 1 <= n",)),
        (sa.concat([_y, _y])[:_n], _y, ()),
        (sa.shift(_y, 1) + sa.flip(_y, 0), sa.flip(_y, 0) + sa.shift(_y, 1), ()),
        (sa.tensor("w", _n + 1)[1:] * sa.ones(_n), sa.tensor("w", _n + 1)[1:], ()),
    ],
)
def test_that_an_index_lies_inside_is_a_condition(left, right, listed):
    verdict = sa.prove(left, right)
    assert verdict.status == "proved"
    assert verdict.proof.side_conditions == listed
    assert verdict.proof.witness is not None
    assert verdict.proof.check()


SPLIT = sa.split_axis(x, 0, (sa.sizes("h"), n / sa.sizes("h")))


@pytest.mark.parametrize(
    ("part", "fits"),
    [(SPLIT, ()), (SPLIT[:, 1:], ("2*h <= n",)), (SPLIT[:, :-1], ("2*h <= n",)), (SPLIT[:, 1:-1], ("3*h <= n",))],
    ids=["whole", "first", "last", "both"],
)
def test_a_slice_of_a_part_leaves_an_entry(part, fits):
    proof = sa.prove(sa.exp(part) * sa.exp(-part), sa.ones(*part.shape)).proof
    assert proof.side_conditions == ("h divides n", *fits)
