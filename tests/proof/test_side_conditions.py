"""Side conditions are listed once, in one spelling, and only where nothing else says them."""

from __future__ import annotations

import pickle

import pytest
import sympy

import symattn as sa
from symattn.core.stated import Condition

n, m, S, D, h = sa.sizes("n m S D h")
x, y, z = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("z", D)
X, B = sa.tensor("X", n, m), sa.tensor("B", n, n)
t, u = sa.tensor("t", m, integer=True), sa.tensor("u", m, integer=True)
w, C = sa.let("w", x + y), sa.let("C", B)


def listed(left, right=None, given=()):
    verdict = sa.prove(left, right, given=given)
    assert verdict, verdict
    assert verdict.proof.check()
    return verdict.proof.side_conditions


def itself(a):
    """The conditions under which a tensor has values."""
    return listed(a * sa.ones(*a.shape) + a, 2 * a)


def by_index(formula):
    return sa.from_index((m,), formula)


PLACES = {
    "declared": (sa.take(x, t, axis=0), ("0 <= t < n",)),
    "rows": (sa.take(X, t, axis=0), ("0 <= t < n",)),
    "columns": (sa.take(B, t, axis=1), ("0 <= t < n",)),
    "of a longer axis": (sa.take(sa.tensor("v", 2 * n + 1), t, axis=0), ("0 <= t < 2*n + 1",)),
    "named": (sa.take(x, sa.let("places", t), axis=0), ("0 <= places < n",)),
    "of a table of places": (sa.take(x, sa.take(sa.tensor("p", n, integer=True), t, axis=0), axis=0),
                             ("0 <= t < n", "0 <= take(p, t, axis=-1) < n")),
    "from 3 on": (sa.take(x, by_index(lambda i: i + 3), axis=0), ("m + 3 <= n",)),
    "from a size on": (sa.take(x, by_index(lambda i: i + S), axis=0), ("S + m <= n",)),
    "every second": (sa.take(x, by_index(lambda i: 2 * i), axis=0), ("2*m <= n + 1",)),
    "backwards": (sa.take(x, by_index(lambda i: m - 1 - i), axis=0), ("m <= n",)),
    "backwards from the end": (sa.take(x, sa.from_index((n,), lambda i: n - 1 - i), axis=0), ()),
    "one place": (sa.take(X, by_index(lambda i: S), axis=0), ("S + 1 <= n",)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_that_places_lie_inside_is_a_condition(name):
    taken, wanted = PLACES[name]
    assert itself(taken) == wanted


def test_what_is_given_of_places_settles_the_condition():
    taken = sa.take(x, t, axis=0)
    twice = taken + taken, 2 * taken
    assert listed(*twice, given=[sa.le(0, t), sa.lt(t, n)]) == ()
    assert listed(*twice, given=[sa.le(0, t)]) == ("0 <= t < n",)
    assert listed(*twice, given=[sa.le(0, t), sa.le(t, S - 1), S <= n]) in ((), ("0 <= t < n",))


def test_a_declared_operation_that_reads_at_a_place_has_the_condition():
    gather = sa.operation("gather", shape="n, m -> m", entry=lambda i, a, p: a[sympy.floor(p[i[0]])])
    after = sa.operation("after", shape="n, m -> m", entry=lambda i, a, p: a[2 * sympy.floor(p[i[0]]) + 1])
    assert itself(gather(x, t)) == ("0 <= t < n",)
    assert itself(after(x, t)) == ("after(x, t) is defined",)


PARTS = sa.concat([x[:S], x[S:]])
SPLIT = sa.merge_axes(sa.split_axis(z, 0, (h, D / h)), (0, 1))


@pytest.mark.parametrize(
    ("left", "right", "given", "wanted"),
    [
        (x[:S] + x[:S], 2 * x[:S], [], ("S <= n",)),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Le(S, n)], ()),
        (x[:S] + x[:S], 2 * x[:S], [S < n], ()),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Eq(n, 2 * S)], ()),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Eq(n, S + m)], ()),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Le(S, m), sympy.Le(m, n)], ()),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Le(n, S)], ("S <= n",)),
        (x[:S] + x[:S], 2 * x[:S], [sympy.Le(S, n + 1)], ("S <= n",)),
        (PARTS, x, [], ("S + 1 <= n",)),
        (PARTS, x, [sympy.Le(S, n)], ("S + 1 <= n",)),
        (PARTS, x, [sympy.Le(S + 1, n)], ()),
        (x[3:] + x[3:], 2 * x[3:], [sympy.Ge(n, 10)], ()),
        (x[3:] + x[3:], 2 * x[3:], [sympy.Ge(n, 3)], ("4 <= n",)),
        (SPLIT, z, [], ("h divides D",)),
        (SPLIT, z, [sympy.Eq(sympy.Mod(D, h), 0)], ()),
        (SPLIT, z, [sympy.Eq(D, h * m)], ()),
        (SPLIT, z, [sympy.Eq(sympy.Mod(D, m), 0)], ("h divides D",)),
    ],
    ids=str,
)
def test_a_relation_of_sizes_that_is_given_removes_what_it_implies(left, right, given, wanted):
    assert listed(left, right, given) == wanted


def test_of_conditions_on_sizes_the_stronger_are_listed():
    assert itself(sa.sum(x[1:]) * sa.sum(x[:-3])) == ("4 <= n",)
    assert itself(sa.sum(x[:S]) * sa.sum(x[: S + m])) == ("S + m <= n",)
    assert itself(sa.sum(x[:S]) * sa.sum(x[:m])) == ("S <= n", "m <= n")


ONCE = {
    "logarithm and quotient": (sa.log(x) / x, ("x > 0",)),
    "logarithm and root": (sa.sqrt(x) * sa.log(x), ("x > 0",)),
    "root below": (1 / sa.sqrt(x), ("x > 0",)),
    "power": (1 / x**2 + 1 / x, ("x != 0",)),
    "product both ways": (1 / (x * y) + 1 / (y * x), ("x != 0", "y != 0")),
    "quotient of quotients": (x / y / (y / x), ("x != 0", "y != 0")),
    "scaled": (1 / (2 * y) + 1 / y, ("y != 0",)),
    "sum both ways": (1 / (x + y) - 2 / (y + x), ("x + y != 0",)),
    "sum by a name": (1 / w + 1 / (x + y), ("w != 0",)),
    "rows": (1 / sa.sum(X, -1) + 1 / sa.sum(X, -1, keepdims=True)[:, 0], ("sum(X, axis=-1) != 0",)),
    "transposed": (sa.inv(B.T) + sa.inv(B).T, ("B is invertible",)),
    "inverse of an inverse": (sa.inv(sa.inv(B).T), ("B is invertible",)),
    "by a name, transposed": (sa.inv(C) + sa.inv(B.T).T, ("C is invertible",)),
    "a logarithm that is not 0": (1 / sa.log(x), ("x > 0", "log(x) != 0")),
}  # fmt: skip


@pytest.mark.parametrize("name", ONCE)
def test_a_condition_is_listed_once(name):
    made, wanted = ONCE[name]
    found = itself(made)
    assert sorted(found) == sorted(wanted)


def test_an_inequality_lists_its_conditions_once():
    assert listed(sa.le(0, sa.sqrt(x))) == ("x >= 0",)
    assert listed(sa.le(0, sa.log(x) ** 2 / sa.sum(x) ** 2)) == ("x > 0",)
    assert listed(sa.le(0, 1 / (x * x * y * y))) == ("x != 0", "y != 0")


s, r = sympy.symbols("s r", integer=True, nonnegative=True)
one, one2, lower = sa.ones(n), sa.ones(2 * n), sa.tril(sa.ones(n, n))

INSIDE = {
    "count": (sa.sum(one[s : s + m]), m * sa.ones(), ("m + s <= n",)),
    "count of a prefix": (sa.sum(one[:S]), S * sa.ones(), ("S <= n",)),
    "count of heads": (sa.sum(sa.split_axis(one2, 0, (2, n))[:, s : s + m]), 2 * m * sa.ones(), ("m + s <= n",)),
    "count of a slice of a slice": (sa.sum(one[s : s + m][r : r + S]), S * sa.ones(), ("S + r <= m", "m + s <= n")),
    "rows of the identity": (sa.sum(sa.eye(n)[s : s + m], axis=-1), sa.ones(m), ("m + s <= n",)),
    "first rows of the identity": (sa.eye(n)[:S] @ x, x[:S], ("S <= n",)),
    "rows taken by the identity": (sa.eye(n)[s : s + m] @ x, x[s : s + m], ("m + s <= n",)),
    "a causal mask further on": (
        sa.sum(lower[s : s + m], axis=-1), sa.from_index((m,), lambda i: s + i + 1), ("m + s <= n",),
    ),
    "a running count": (sa.cumsum(one)[s : s + m], sa.from_index((m,), lambda i: s + i + 1), ("m + s <= n",)),
    "places taken": (
        sa.take(sa.cumsum(one), by_index(lambda i: i + s), axis=0), sa.from_index((m,), lambda i: s + i + 1),
        ("m + s <= n",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE)
def test_that_what_is_read_lies_inside_is_used_and_listed(name):
    left, right, wanted = INSIDE[name]
    assert sorted(listed(left, right)) == sorted(wanted)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (sa.sum(one[s : s + m]), (m + 1) * sa.ones()),
        (sa.sum(one[s : s + m]), (m + s) * sa.ones()),
        (sa.sum(sa.eye(n)[s : s + m], axis=0), sa.ones(n)),
        (sa.sum(lower[s : s + m], axis=-1), sa.from_index((m,), lambda i: i + 1)),
        (sa.cumsum(one)[s : s + m], sa.from_index((m,), lambda i: s + i)),
        (sa.sum(sa.concat([one, 0 * one])[s : s + m]), m * sa.ones()),
        (sa.eye(n)[s : s + m] @ x, x[:m]),
    ],
    ids=str,
)
def test_what_is_false_further_on_is_refuted(left, right):
    assert sa.prove(left, right).status == "refuted"


@pytest.mark.parametrize(
    ("twice", "wanted"),
    [
        (x[:S][:2], ("S <= n", "2 <= S")),
        (x[s : s + m][1:2], ("m + s <= n", "2 <= m")),
        (x[:S][0:1], ("S <= n",)),
        (x[1:][1:], ("3 <= n",)),
        (X[:S][0], ("S <= n",)),
        (x[-S:][:1], ("S <= n",)),
    ],
    ids=str,
)
def test_a_slice_of_a_slice_keeps_the_conditions_of_both(twice, wanted):
    assert sorted(itself(twice)) == sorted(wanted)


def test_a_slice_of_a_slice_is_one_slice_where_nothing_is_lost():
    assert x[1:][1:] is x[2:]
    assert x[:-1][0:1] is not x[:1]  # the axis has two entries at least
    assert x[::-1][::-1] is x
    assert x[:S][::-1][::-1] is x[:S]
    assert x[:S][None] is x[None, :S]


def test_conditions_on_places_are_mathematics_in_latex():
    far = sa.tensor("v", 2 * n + 1)
    written = sa.prove(sa.take(far, t, axis=0) * 2, sa.take(far, t, axis=0) + sa.take(far, t, axis=0)).proof.latex()
    assert r"$0 \le t < 2 n + 1$" in written


# --- what is seen to be positive is no condition ---

R, U, Z = sa.tensor("R", n, n, positive=True), sa.tensor("U", n), sa.tensor("Z", n, n)
POSITIVE = {
    "1 + x**2": 1 + x**2, "exp": sa.exp(x), "1 + exp": 1 + sa.exp(x), "softplus": sa.softplus(x),
    "sigmoid": sa.sigmoid(x), "2 + tanh": 2 + sa.tanh(x), "2 + sin": 2 + sa.sin(x), "2 - sigmoid": 2 - sa.sigmoid(x),
    "2 - softmax": 2 - sa.softmax(Z), "softmax": sa.softmax(Z), "exp(x) - x": sa.exp(x) - x, "a square": x * x - x + 1,
    "erf + 2": sa.erf(x) + 2, "3 + x - floor(x)": 3 + x - sa.floor(x), "2 + U": 2 + U, "1 + relu": 1 + sa.relu(x),
    "2 cosh": sa.exp(x) + sa.exp(-x),
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIVE)
def test_what_is_seen_to_be_positive_is_no_condition(name):
    q = POSITIVE[name]
    given = [sa.le(-1, U), sa.le(U, 1)] if name == "2 + U" else []
    for p in (q, q * (R if q.rank == 2 else sa.tensor("r", n, positive=True))):
        for a, b in ((p / p, sa.ones(*p.shape)), (sa.log(p) + sa.log(p), 2 * sa.log(p)), (sa.sqrt(p) ** 2, p)):
            assert sa.prove(a, b, given=given).proof.side_conditions == ()


def test_a_condition_is_text_that_knows_its_formula():
    x, A = sa.tensor("x", "n"), sa.tensor("A", "n n")
    (condition,) = sa.prove(x / x, sa.ones(*x.shape)).proof.side_conditions
    assert condition == "x != 0"
    assert condition.formula == Condition(x, "!=", sympy.S.Zero)
    assert pickle.loads(pickle.dumps(condition)).formula == condition.formula
    (condition,) = sa.prove(A @ sa.inv(A), sa.eye(A.shape[0])).proof.side_conditions
    assert condition.formula == Condition(A, "is invertible")
    h, D = sa.sizes("h D")
    (condition,) = sa.prove(sa.tensor("z", D / h), sa.tensor("z", D / h)).proof.side_conditions
    assert condition.formula == Condition(h, "divides", D)


def test_a_condition_that_only_the_steps_have_speaks_by_the_names_of_the_claim():
    Q, K, v = sa.tensor("Q", "n d"), sa.tensor("K", "n d"), sa.tensor("v", "n")
    Z = sa.let("Z", Q @ K.T)
    w = sa.let("w", Z @ v - 1)
    proof = sa.prove(w * v / w, v).proof
    assert proof.side_conditions == ("w != 0",)
    assert r"\textbf{Side conditions.} $w \neq 0$" in proof.latex()
    plain = sa.prove((Z @ v - 1) * v / (Z @ v - 1), v).proof
    assert plain.side_conditions == ("Z @ v - 1 != 0",)
    assert r"\textbf{Side conditions.} $Z v - 1 \neq 0$" in plain.latex()
