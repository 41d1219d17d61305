"""The refuter: false claims get small counterexamples that are right, true claims never get any."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.reference import values
from symattn.core.budget import Budget
from symattn.proof.argument import Given
from symattn.proof.claims import Claim, Independence, eq, independent, le, lt
from symattn.proof.refute.balls import Arithmetic, Outside, Undecided, ball, exact_form
from symattn.proof.refute.counterexample import Agreement, Counterexample
from symattn.proof.refute.refuter import Search
from symattn.proof.refute.samples import Sampler
from symattn.proof.refute.values import Evaluator, ordered, shape_at

from .. import variants_linear  # noqa: F401  its variants join the table
from ..shares import one_in
from ..variants import VARIANTS

T, S, d, e, n, h = sa.sizes("T S d e n h")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X, W_q, W_k, W_v = sa.tensor("X", n, d), sa.tensor("W_q", d, h), sa.tensor("W_k", d, h), sa.tensor("W_v", d, e)
Pi, Rho = sa.tensor("Pi", n, n, permutation=True), sa.tensor("Rho", S, S, permutation=True)
U, A = sa.tensor("U", d, d, orthogonal=True), sa.tensor("A", d, d, invertible=True)
Z, M = sa.tensor("Z", T, S), sa.tensor("M", T, S, binary=True)
Y = sa.tensor("Y", T, h * d)
R = sa.tensor("R", d, d, orthogonal=True, symmetric=True)
J = sa.tensor("J", d, d, permutation=True, symmetric=True)
B, G = sa.tensor("B", d, d, symmetric=True), sa.tensor("G", h, d, d, orthogonal=True)
CAUSAL = sa.from_index((n, n), lambda i, j: j <= i)


def ask(claim: Claim | Independence, given: Sequence[Claim] = (), relations: Any = (), seed: int = 0) -> Any:
    return Search(claim, Given.of([*given, *relations]), seed).run(Budget(10))


def attend(q: Any, k: Any, v: Any, scale: Any = None, **mask: Any) -> Any:
    return sa.softmax(q @ k.T * (1 / sympy.sqrt(q.shape[-1]) if scale is None else scale), **mask) @ v


def attention(x: Any, **mask: Any) -> Any:
    return attend(x @ W_q, x @ W_k, x @ W_v, **mask)


# --- claims as in the published false ones: each side as a thunk, so that collection is quick ---

FALSE: dict[str, Callable[[], Claim]] = {
    "causal attention is equivariant": lambda: eq(attention(Pi @ X, where=CAUSAL), Pi @ attention(X, where=CAUSAL)),
    "positions keep equivariance": lambda: eq(
        attention(Pi @ X + sa.tensor("E", n, d)), Pi @ attention(X + sa.tensor("E", n, d))
    ),
    "shift of a column": lambda: eq(sa.softmax(Z + sa.tensor("c", S)), sa.softmax(Z)),
    "translation of values": lambda: eq(attend(Q, K, V + sa.tensor("u", e)), attend(Q, K, V)),
    "keys alone permuted": lambda: eq(attend(Q, Rho @ K, V), attend(Q, K, V)),
    "reparametrised without transpose": lambda: eq(attend(Q @ A, K @ sa.inv(A), V), attend(Q, K, V)),
    "rows of a mask may be empty": lambda: eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(T)),
    "rows of a mask among others": lambda: eq(sa.softmax(Z, where=M & (M | M)) @ sa.ones(S), sa.ones(T)),
    "rows of a mask that is added": lambda: eq(sa.sum(sa.softmax(Z + sa.where(M, 0, -sympy.oo)), -1), sa.ones(T)),
    "values moved behind a mask": lambda: eq(
        sa.softmax(Z, where=M) @ (V + sa.tensor("u", e)), sa.softmax(Z, where=M) @ V + sa.tensor("u", e)
    ),
    "rows of a strict mask": lambda: eq(sa.sum(sa.softmax(Z, where=sa.tril(M, -1) > 0), axis=-1), sa.ones(T)),
    "no scale": lambda: eq(attend(Q, K, V, scale=1), attend(Q, K, V)),
    "softmax is homogeneous": lambda: eq(sa.softmax(2 * Z), sa.softmax(Z)),
}
TRUE: dict[str, Callable[[], Claim]] = {
    "equivariance": lambda: eq(attention(Pi @ X), Pi @ attention(X)),
    "key-value pairs": lambda: eq(attend(Q, Rho @ K, Rho @ V), attend(Q, K, V)),
    "orthogonal basis": lambda: eq(attend(Q @ U, K @ U, V), attend(Q, K, V)),
    "reparametrised": lambda: eq(attend(Q @ A, K @ sa.inv(A).T, V), attend(Q, K, V)),
    "translation of keys": lambda: eq(attend(Q, K + sa.tensor("b", d), V), attend(Q, K, V)),
    "rows sum to one or are empty": lambda: eq(
        sa.sum(sa.softmax(Z, where=M), axis=-1), sa.where(sa.max(M, axis=-1) > 0, 1, 0)
    ),
    "additive mask": lambda: eq(sa.softmax(sa.where(M, Z, -sympy.oo)), sa.softmax(Z, where=M)),
    "maximum shift": lambda: eq(sa.softmax(Z - sa.max(Z, axis=-1, keepdims=True)), sa.softmax(Z)),
    "relu": lambda: eq(sa.relu(Z) - sa.relu(-Z), Z),
    "absolute value of an irrational": lambda: eq(sa.abs(sa.exp(Z) - sa.exp(Z)), sa.zeros(T, S)),
    "at most one": lambda: le(sa.softmax(Z), 1),
    "exp is positive": lambda: lt(0, sa.exp(Z)),
    "logsumexp is above the maximum": lambda: le(sa.max(Z, axis=-1), sa.logsumexp(Z)),
    "heads": lambda: eq(sa.merge_axes(sa.split_axis(Y, -1, (h, d)), (1, 2)), Y),
    "triangle": lambda: eq(sa.tril(Z) + sa.triu(Z, 1), Z),
    "relu in balls": lambda: eq(sa.relu(sa.sin(Z)) - sa.relu(-sa.sin(Z)), sa.sin(Z)),
}  # fmt: skip


@pytest.mark.parametrize("name", FALSE)
def test_false_claims_get_small_counterexamples(name: str) -> None:
    found = ask(FALSE[name]())
    assert isinstance(found, Counterexample)
    assert found.total <= 12


@pytest.mark.parametrize("seed", one_in(3, range(3)))
@pytest.mark.parametrize("name", FALSE)
def test_counterexamples_hold_in_floating_point(name: str, seed: int) -> None:
    """The differing entry, by the independent evaluation in NumPy."""
    claim = FALSE[name]()
    found = ask(claim, seed=seed)
    with np.errstate(all="ignore"):
        numbers = values(claim.sides, found.arrays_numpy(), {**found.sizes, **found.scalars})
    left, right = (numbers[side][found.index] for side in claim.sides)
    assert left == pytest.approx(float(found.left), abs=1e-9)
    assert right == pytest.approx(float(found.right), abs=1e-9)
    assert abs(left - right) > 1e-12


@pytest.mark.parametrize("name", TRUE)
def test_true_claims_agree(name: str) -> None:
    found = ask(TRUE[name]())
    assert isinstance(found, Agreement)
    assert found.trials >= 8
    assert any(set(sizes.values()) == {3} for sizes in found.sizes)


def test_a_counterexample_reads_like_one_in_a_textbook() -> None:
    found = ask(FALSE["causal attention is equivariant"]())
    assert found.text() == str(found)
    assert found.text().splitlines() == [
        "d = 1, e = 1, h = 1, n = 2",
        "Pi = [[0, 1], [1, 0]]",
        "X = [[0], [1]]",
        "W_q = [[0]]",
        "W_k = [[0]]",
        "W_v = [[1]]",
        "entry [0, 0]: left is 1, right is 1/2",
    ]
    assert (found.left, found.right) == (1, sympy.Rational(1, 2))
    assert found.arrays[Pi].tolist() == [[0, 1], [1, 0]]
    assert r"\Pi = \begin{bmatrix} 0 & 1 \\ 1 & 0 \end{bmatrix}" in found.latex()


def test_values_have_closed_forms_and_right_digits() -> None:
    found = ask(eq(sa.softmax(2 * Z), sa.softmax(Z)))
    for value, shown in ((found.left, found.left_value.decimal), (found.right, found.right_value.decimal)):
        assert value.has(sympy.exp(1), sympy.exp(2))
        assert abs(float(value) - float(shown)) < 1e-9


@pytest.mark.parametrize("name", VARIANTS)
def test_exact_values_are_those_of_the_reference(name: str) -> None:
    """Of every node of every variant, at the first points inside the domain."""
    outputs = VARIANTS[name]().outputs
    nodes = ordered(outputs, {})
    evaluator = Evaluator(Arithmetic((), Budget(10)), {})
    sampler, compared = Sampler(nodes, (), [x for x in nodes if x.op.name == "tensor"], random.Random(0)), 0
    for trial in range(8):
        point = sampler.draw(trial)
        assert point is not None
        try:
            exact = evaluator.values(nodes, point)
        except (Outside, Undecided):
            continue
        compared += 1
        numbers = {x: np.array([float(exact_form(q)) for q in array.values()]) for x, array in point.arrays.items()}
        for x, flat in numbers.items():
            numbers[x] = flat.reshape(shape_at(x, point.sizes)).astype(int if x.kind == "integer" else float)
        scalars = {s: float(exact_form(q)) for s, q in point.scalars.items()}
        expected = values(outputs, numbers, {**point.sizes, **scalars})
        for node in nodes:
            found = [float(ball(q).mid()) for q in exact[node].values()]
            np.testing.assert_allclose(found, np.ravel(expected[node]), rtol=1e-9, atol=1e-12)
        if compared == 2:
            return
    raise AssertionError("too few points were inside the domain")


# --- hypotheses ---


def test_only_a_cycle_of_three_tells_a_permutation_from_its_transpose() -> None:
    found = ask(eq(Pi @ X, Pi.T @ X))
    assert found.sizes[n] == 3
    for seed in range(5):
        assert isinstance(ask(eq(Pi @ Pi, sa.eye(n)), seed=seed), Counterexample)


@pytest.mark.parametrize(
    "claim",
    [
        eq(U @ U.T, sa.eye(d)),
        eq(A @ sa.inv(A), sa.eye(d)),
        eq(Pi.T @ Pi, sa.eye(n)),
        eq(M * M, M),
        lt(0, sa.tensor("p", n, positive=True)),
        eq(B.T, B),
        eq(sa.floor(sa.tensor("i", n, integer=True)), sa.tensor("i", n, integer=True)),
        eq(G @ G.mT, sa.ones(h, 1, 1) * sa.eye(d)),
        eq(J @ J, sa.eye(d)),
        eq(R @ R, sa.eye(d)),
    ],
)
def test_samples_satisfy_the_hypotheses_exactly(claim: Claim) -> None:
    found = ask(claim)
    assert isinstance(found, Agreement)
    assert found.trials >= 30


def test_a_property_that_is_not_declared_is_not_assumed() -> None:
    C = sa.tensor("C", d, d)
    for claim in (eq(C @ C.T, sa.eye(d)), eq(U, U.T), eq(A, sa.inv(A)), eq(C, C.T), eq(C * C, C), lt(0, sa.sum(C))):
        assert isinstance(ask(claim), Counterexample)


def test_index_tensors_stay_in_range() -> None:
    table, tokens = sa.tensor("E", n, d), sa.tensor("t", T, integer=True)
    assert isinstance(ask(eq(sa.take(Pi @ table, tokens, axis=0), sa.take(Pi, tokens, axis=0) @ table)), Agreement)
    found = ask(eq(sa.take(Pi @ table, tokens, axis=0), sa.take(table, tokens, axis=0)))
    assert isinstance(found, Counterexample)
    assert all(0 <= i < found.sizes[n] for i in found.arrays[tokens])
    assert found.total <= 7


def test_a_softmax_is_defined_on_an_empty_row_unless_that_is_an_error() -> None:
    """Of a declared mask, a mask made of one, and a constant mask."""
    N = sa.tensor("N", S, T, binary=True).T
    strictly = sa.from_index((T, S), lambda i, j: j < i)
    for mask in (N, strictly, M & strictly):
        found = ask(eq(sa.sum(sa.softmax(Z, where=mask), axis=-1), sa.ones(T)))
        assert isinstance(found, Counterexample)
        assert (found.left, found.right) == (0, 1)
    assert isinstance(
        ask(eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(T)), [eq(M, sa.zeros(T, S))]), Counterexample
    )
    assert ask(eq(sa.sum(sa.softmax(Z, where=strictly, empty="error"), axis=-1), sa.ones(T))).trials == 0
    refusing = ask(eq(sa.sum(sa.softmax(Z, where=N, empty="error"), axis=-1), sa.ones(T)))
    assert isinstance(refusing, Agreement)
    assert refusing.inconclusive > 0
    full = ask(eq(sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(T)), [le(1, sa.sum(M, axis=-1))])
    assert isinstance(full, Agreement)
    assert full.trials > 8


# --- what is false only past the numbers of the claim ---

x, s0, REAL = sa.tensor("x", n), sympy.Symbol("tau", positive=True), sympy.Symbol("r", real=True)
ZT = sa.tensor("Z", n, n)
WINDOW, INDEX = sa.attention.sliding_window_mask, sa.from_index
POINTED: dict[str, tuple[Callable[[], Claim], int]] = {  # with the most entries that a counterexample may have
    "window of 3": (lambda: eq(WINDOW(n, n, left=2, right=0), CAUSAL), 0),
    "windows of 5 and 6": (lambda: eq(WINDOW(n, n, left=5, right=0), WINDOW(n, n, left=6, right=0)), 0),
    "window of 101": (lambda: eq(WINDOW(n, n, left=100, right=0), CAUSAL), 0),
    "window to both sides": (lambda: eq(WINDOW(n, n, left=3, right=4), sa.ones(n, n)), 0),
    "weights of a window": (
        lambda: eq(sa.softmax(ZT, where=WINDOW(n, n, left=5, right=0)), sa.softmax(ZT, where=CAUSAL)), 49,
    ),
    "values above 5": (lambda: eq(sa.where(x > 5, 0, x), x), 2),
    "one value alone": (lambda: eq(sa.where((x > 40) & (x < 42), 0, x), x), 2),
    "above a corner": (lambda: eq(sa.relu(x - 4), 0 * x), 2),
    "clipped": (lambda: eq(sa.minimum(sa.maximum(x, -3), 3), x), 2),
    "clipped line": (lambda: eq(sa.minimum(sa.maximum(x / 6 + sympy.Rational(1, 2), 0), 1), x / 6 + 1 / 2), 2),
    "bounded by 100": (lambda: le(x, 100), 2),
    "bounded from below": (lambda: le(-7, x), 2),
    "exponential": (lambda: le(sa.exp(x), 50), 2),
    "logarithm": (lambda: le(sa.log1p(sa.abs(x)), 6), 2),
    "root": (lambda: le(sa.sqrt(sa.abs(x)), 20), 3),
    "saturated": (lambda: le(sa.sigmoid(x), sympy.Rational(99, 100)), 3),
    "a million": (lambda: le(x, 10**6), 2),
    "minus a billion": (lambda: eq(sa.maximum(ZT, -(10**9)), ZT), 4),
    "a scalar": (lambda: le(s0 * sa.ones(n), 40), 0),
    "sizes up to 12": (lambda: le(n * sa.ones(), 12), 0),
    "sizes up to a million": (lambda: le(n * sa.ones(), 10**6), 0),
    "five terms": (lambda: le(sa.sum(sa.ones(n)), 5), 0),
    "distances up to 4": (
        lambda: eq(INDEX((n, n), lambda i, j: sympy.Min(4, abs(i - j))), INDEX((n, n), lambda i, j: abs(i - j))), 0,
    ),
    "remainders of 17": (lambda: eq(INDEX((n,), lambda i: sympy.Mod(i, 17)), INDEX((n,), lambda i: i)), 0),
    "twenty diagonals": (lambda: eq(sa.tril(ZT, 20), ZT), 484),
    "nine diagonals below": (lambda: eq(sa.triu(ZT, -9), ZT), 121),
    "shifted out": (lambda: eq(sa.shift(x, 30), 0 * x), 31),
    "four global tokens": (lambda: eq(sa.attention.global_mask(n, n, tokens=4), sa.ones(n, n)), 0),
    "documents of 16": (
        lambda: eq(INDEX((n, n), lambda i, j: sympy.Eq(sympy.floor(i / 16), sympy.floor(j / 16))), sa.ones(n, n)), 0,
    ),
    "a function of one's own": (lambda: eq(sa.elementwise(sympy.Lambda(REAL, sympy.Max(REAL, -12)), x), x), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTED)
def test_claims_are_tried_past_the_numbers_in_them(name: str) -> None:
    build, most = POINTED[name]
    found = ask(build())
    assert isinstance(found, Counterexample)
    assert found.total <= most


def test_a_counterexample_past_a_number_is_next_to_it() -> None:
    assert ask(le(x, 100)).arrays[x].tolist() == [101]
    assert ask(le(-7, x)).arrays[x].tolist() == [-8]
    assert ask(le(s0 * sa.ones(n), 40)).scalars[s0] == 41
    assert ask(POINTED["windows of 5 and 6"][0]()).sizes == {n: 7}
    assert ask(POINTED["window of 101"][0]()).sizes == {n: 102}
    assert ask(POINTED["sizes up to a million"][0]()).sizes == {n: 10**6 + 1}
    dependent = independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: out[0] > inp[0] + 6)
    assert ask(dependent).sizes[n] == 8


def test_true_claims_with_numbers_agree() -> None:
    for claim in (
        eq(sa.minimum(sa.maximum(x, -3), 3), sa.maximum(sa.minimum(x, 3), -3)),
        eq(sa.relu(x - 40) - sa.relu(40 - x), x - 40),
        le(WINDOW(n, n, left=5, right=0), WINDOW(n, n, left=6, right=0)),
        eq(sa.tril(ZT, 20) + sa.triu(ZT, 21), ZT),
        le(sa.where(x > 99, 99, x), 99),
    ):
        found = ask(claim)
        assert isinstance(found, Agreement)
        assert found.trials >= 40


EQUAL: dict[str, Callable[[], Claim]] = {
    "powers of e": lambda: lt(sa.exp(Z + 1), sympy.E * sa.exp(Z)),
    "shifted scores": lambda: lt(sa.softmax(Z + 1), sa.softmax(Z)),
    "roots": lambda: lt(sympy.sqrt(6) * sa.exp(Z), sa.sqrt(2) * sa.sqrt(3) * sa.exp(Z)),
    "halves": lambda: lt(sa.sigmoid(2 * Z), (1 + sa.tanh(Z)) / 2),
    "logsumexp": lambda: lt(sa.logsumexp(Z) + 1, sa.logsumexp(Z + 1)),
    "a literal size": lambda: lt(sa.softmax(sa.tensor("u", 2) + 1), sa.softmax(sa.tensor("u", 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_nothing_is_less_than_what_it_equals(name: str) -> None:
    found = ask(EQUAL[name]())
    assert isinstance(found, Counterexample)
    assert found.left == found.right
    assert found.total <= 2


def test_points_that_could_not_be_decided_are_counted_apart() -> None:
    u, v = sa.tensor("u", 2, positive=True), sa.tensor("v", 2)
    sides = sa.sin(u + 1), sa.sin(u) * sympy.cos(1) + sa.cos(u) * sympy.sin(1)  # equal, as no closed form tells
    found = ask(lt(*sides))
    assert (found.trials, found.outside, found.undecided) == (0, 0, 40)
    assert "nothing was compared" in str(found)
    assert "40 points could not be decided" in str(found)
    assert "the claim holds at 40 points" in str(ask(eq(*sides)))
    some = ask(le(sa.log(v), v))
    assert (some.outside > 0, some.undecided) == (True, 0)
    assert f"a side has no value at {some.outside} points" in str(some)


def test_scalars_have_their_assumptions() -> None:
    tau, x = sympy.Symbol("tau", positive=True), sympy.Symbol("x")
    assert isinstance(ask(le(sa.exp(-tau * Z * Z), 1)), Agreement)
    found = ask(le(sa.exp(-x * Z * Z), 1))
    assert found.scalars[x] < 0
    assert isinstance(ask(eq(sa.sqrt(tau * sa.ones(n)) ** 2, tau)), Agreement)


# --- what is given ---


def test_given_claims_hold_exactly() -> None:
    unit = eq(sa.sum(K * K, axis=-1), sa.ones(S))
    distance = -((Q[:, None, :] - K[None, :, :]) ** 2) / 2
    claim = eq(sa.softmax(sa.sum(distance, axis=-1)), sa.softmax(Q @ K.T))
    assert ask(claim, [unit]).trials >= 4
    found = ask(claim)
    assert isinstance(found, Counterexample)
    found = ask(eq(Q @ K.T, sa.ones(T, S)), [unit])
    assert all(sum(x**2 for x in row) == 1 for row in found.arrays[K].tolist())


def test_a_tensor_given_by_an_expression_has_its_value() -> None:
    """Also where the value is irrational."""
    L = sa.tensor("L", T)
    given = [eq(L, sa.logsumexp(Z))]
    assert ask(eq(sa.exp(Z - L[:, None]), sa.softmax(Z)), given).trials >= 8
    found = ask(eq(sa.exp(Z - L[:, None]), sa.softmax(2 * Z)), given)
    assert isinstance(found, Counterexample)
    assert "log" in str(found.arrays[L]) or found.arrays[L].tolist() == [0]


def test_inequalities_and_relations_are_respected() -> None:
    x, y = sa.tensor("x", n), sa.tensor("y", n)
    assert ask(le(sa.exp(x), sa.exp(y)), [le(x, y)]).trials >= 30
    assert isinstance(ask(lt(sa.exp(x), sa.exp(y)), [le(x, y)]), Counterexample)
    longer = sa.from_index((T, S), lambda i, j: sympy.Integer(1) * (T - S))
    assert isinstance(ask(lt(0, longer)), Counterexample)
    assert ask(lt(0, longer), relations=[sympy.Gt(T, S)]).trials >= 10
    assert ask(eq(longer, 1), relations=[sympy.Eq(T, S + 1)]).trials >= 10


def test_contradictory_hypotheses_are_said_so() -> None:
    x = sa.tensor("x", n)
    for found in (ask(lt(x, x), [lt(x, 0), lt(0, x)]), ask(lt(x, x), relations=[sympy.Eq(n, n + 1)])):
        assert isinstance(found, Agreement)
        assert found.trials == 0
        assert "no point satisfies the hypotheses" in str(found)


def test_composite_sizes_come_out_whole() -> None:
    relative, D = sa.tensor("R", T, 2 * T - 1), sa.sizes("D")
    x = sa.tensor("x", T, D)
    assert ask(eq(sa.merge_axes(sa.split_axis(x, -1, (h, D / h)), (1, 2)), x)).trials >= 4
    assert ask(eq(sa.shift(relative, lambda i: T - 1 - i, size=T)[0], relative[0, T - 1 :])).trials >= 4


# --- dependence ---


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_causality(mask: str) -> None:
    output = attention(X, **({"where": CAUSAL} if mask == "causal" else {}))
    found = ask(independent(output, X, when=lambda out, inp: inp[0] > out[0]))
    if mask == "causal":
        assert isinstance(found, Agreement)
        assert found.trials >= 8
        return
    assert isinstance(found, Counterexample)
    assert found.total <= 12
    first, second = found.arrays[X], found.arrays[found.twin]
    changed = [at for at in np.ndindex(*first.shape) if first[at] != second[at]]
    assert changed
    assert all(at[0] > found.index[0] for at in changed)
    assert found.left != found.right
    assert "is the second value of the variable" in str(found)


def test_an_output_that_ignores_a_variable_altogether() -> None:
    assert isinstance(ask(independent(sa.sum(sa.softmax(Z), axis=-1), Z)), Agreement)
    assert isinstance(ask(independent(sa.sum(Z), Z)), Counterexample)
    assert isinstance(ask(independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: inp[0] >= out[0])), Counterexample)


# --- functions known by name ---


def test_unknown_functions_are_the_only_ones_that_are_chosen() -> None:
    phi = lambda x: sa.unknown("phi", x)  # noqa: E731
    linear = lambda k, v: phi(Q) @ (phi(k).T @ v)  # noqa: E731
    assert ask(eq(linear(Rho @ K, Rho @ V), linear(K, V))).trials >= 30
    found = ask(eq(phi(Q) @ phi(K).T, phi(Q @ K.T)))
    assert isinstance(found, Counterexample)
    assert "phi = x -> " in str(found)
    for identity in (eq(phi(X), phi(-X)), eq(phi(X), X**2 + X + 1), eq(phi(X), sa.unknown("psi", X))):
        assert isinstance(ask(identity), Counterexample)
    assert ask(eq(sa.rsqrt(1 + X * X), 1 / sa.sqrt(1 + X * X))).trials >= 30


def test_primes_are_derivatives() -> None:
    x = sa.tensor("x", n)
    slope = sa.gradient(sa.sum(sa.unknown("phi", x) ** 2), [x])[x]
    assert ask(eq(slope, 2 * sa.unknown("phi", x) * sa.unknown("phi'", x))).trials >= 30
    assert isinstance(ask(eq(slope, 2 * sa.unknown("phi'", x))), Counterexample)


def test_unknown_functions_of_rows_have_no_symmetry() -> None:
    f = lambda x: sa.unknown("f", x, rowwise=True)  # noqa: E731
    assert ask(eq(f(Pi @ X), Pi @ f(X))).trials >= 30
    turned = sa.tensor("P", d, d, permutation=True)
    assert isinstance(ask(eq(f(X @ turned), f(X) @ turned)), Counterexample)


# --- honesty ---


@pytest.mark.parametrize(
    "claim",
    [
        eq(Z * (1 / Z), sa.ones(T, S)),
        eq(sa.log(Z) + sa.log(Z), sa.log(Z * Z)),
        eq(sa.sqrt(Z) ** 2, Z),
        eq(sa.inv(B) @ B, sa.eye(d)),
    ],
)
def test_points_outside_the_domain_refute_nothing(claim: Claim) -> None:
    found = ask(claim)
    assert isinstance(found, Agreement)
    assert found.trials > 0
    assert found.inconclusive > 0


def test_huge_logits_are_not_refuted() -> None:
    huge = 10**6 * Z
    assert isinstance(ask(eq(sa.softmax(huge + 3), sa.softmax(huge))), Agreement)
    assert isinstance(ask(eq(sa.sin(sa.exp(sa.exp(huge))), sa.sin(1 * sa.exp(sa.exp(huge))))), Agreement)


def test_what_cannot_be_evaluated_is_said() -> None:
    x = sympy.Symbol("x")
    bessel = sa.elementwise(sympy.Lambda(x, sympy.besselj(0, x)), Z)
    found = ask(eq(bessel, bessel + 1))
    assert isinstance(found, Agreement)
    assert "no value is known for besselj" in found.reason


def test_ties_of_irrational_numbers() -> None:
    same = sa.concat([sa.exp(Z), sa.exp(Z)], axis=1)
    assert isinstance(ask(eq(sa.max(same, axis=-1), sa.max(sa.exp(Z), axis=-1))), Agreement)
    assert isinstance(ask(eq(sa.maximum(sa.exp(Z), sa.exp(Z) + 0 * Z), sa.exp(Z))), Agreement)


def test_numbers_grow_without_end_in_a_deep_graph() -> None:
    y = sa.tensor("x", n)
    for _ in range(200):
        y = y * y - y
    assert isinstance(ask(eq(y + 1, 1 + y)), Agreement)


def test_what_is_too_large_or_too_deep_is_said() -> None:
    large = sa.tensor("L", 40_000, d)
    assert "L[40000, d] is too large" in str(ask(eq(large + large, 3 * large)))
    u = formula = sympy.Symbol("u")
    for _ in range(100):
        formula = sympy.sin(formula) + 1
    deep = sa.elementwise(sympy.Lambda(u, formula), Z)
    assert "nested too deeply" in str(ask(eq(deep, deep + 1)))
    assert "condition" in str(ask(independent(X, X, when=lambda out, inp: False)))


def test_large_graphs_are_tried_less_often() -> None:
    x = sa.tensor("x", n)
    y = x
    for _ in range(3000):
        y = sa.tanh(y) + x
    assert 4 <= ask(eq(y + 1, 1 + y)).trials < 10


def test_a_budget_ends_the_search() -> None:
    y = sa.tensor("x", n)
    for _ in range(20_000):
        y = sa.sin(y)
    found = Search(eq(y, sa.sin(y))).run(Budget(0.05))
    assert isinstance(found, Agreement)
    assert "used up" in found.reason


def test_the_precision_of_flint_is_left_as_it_was() -> None:
    import flint

    before = flint.ctx.prec
    ask(FALSE["no scale"]())
    assert flint.ctx.prec == before


_SCRIPT = """
import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.claims import eq
from symattn.proof.argument import Given
from symattn.proof.refute.refuter import Search
n, d = sa.sizes("n d")
X, Pi, M = sa.tensor("X", n, d), sa.tensor("Pi", n, n, permutation=True), sa.tensor("M", n, n, binary=True)
f = lambda x: sa.softmax(sa.unknown("phi", x) @ sa.unknown("psi", x).T, where=M) @ x
for seed in range(3):
    print(Search(eq(f(Pi @ X), Pi @ f(X)), Given.of([eq(sa.sum(X, axis=0), sa.ones(d))]), seed).run(Budget(10)))
"""


@pytest.mark.slow
def test_a_seed_fixes_the_answer_whatever_the_hash_seed() -> None:
    def run(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, env=environment)
        assert not done.stderr
        return done.stdout

    outputs = {run(hash_seed) for hash_seed in ("0", "1", "2")}
    assert len(outputs) == 1
    assert "entry [" in outputs.pop()


@pytest.mark.parametrize(
    "claim",
    [
        le(sa.logsumexp(x), sa.max(x) + 1),
        le(sa.sum(sa.softmax(x) ** 2) + sympy.Rational(1, 100), sa.max(sa.softmax(x))),
        lt(sa.min(x), sa.max(x) + sa.sum(x**2) - n * sa.mean(x) ** 2),
        eq(sa.where(sa.sum(sa.equal(x[:, None], x[None, :])) < n**2, 0, 1) * n, 0 * n * sa.ones()),
    ],
    ids=["logsumexp", "norm of weights", "spread", "ties"],
)
@pytest.mark.parametrize("seed", range(3))
def test_equal_entries_are_tried(claim: Claim, seed: int) -> None:
    assert isinstance(ask(claim, seed=seed), Counterexample)


def test_large_graphs_get_as_many_trials_as_their_cost_allows() -> None:
    def layers(x: Any, depth: int) -> Any:
        for k in range(depth):
            q, v = sa.tensor(f"A_{k}", d, d), sa.tensor(f"B_{k}", d, d)
            x = sa.attention.layer_norm(x + sa.softmax(x @ q @ x.T) @ (x @ v))
        return x

    trials = [ask(eq(layers(Pi @ X, depth), Pi @ layers(X, depth))).trials for depth in (1, 4, 8)]
    assert trials == sorted(trials, reverse=True)
    assert (trials[0], trials[-1] >= 10) == (40, True)
