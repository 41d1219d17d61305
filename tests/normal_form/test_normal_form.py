"""The normal form of entries: what it identifies, what it keeps apart, and the rules of rewriting proved by it."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn import attention
from symattn.core.budget import Budget
from symattn.normal_form.lowering import Unreached
from symattn.proof.equality.decide import compare
from symattn.proof.equality.entrywise import EntrywiseProof, entrywise_proof
from symattn.proof.rules import RULES

from ..rewritten import true_claims
from ..rule_examples import EXAMPLES

TRUE = true_claims()
n, m, d, h, r = sa.sizes("n m d h r")
A, B, S = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("S", n, n, symmetric=True)
R, U = sa.tensor("R", n, n, invertible=True), sa.tensor("U", n, n, orthogonal=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
X, x, y = sa.tensor("X", n, d), sa.tensor("x", n), sa.tensor("y", m)
W, q = sa.tensor("W", n, h * d), sa.tensor("q", 2 * r)
I = sa.tensor("I", m, integer=True)
N = sa.tensor("N", n, n, binary=True)
LEFT, KEPT = sa.sum(N, -1, keepdims=True), sa.where(N, sa.exp(A), 0)
c = sympy.Symbol("c", real=True)
p = sympy.Symbol("p", positive=True)
a, b, w = q[::2], q[1::2], sa.tensor("w", r)
BLOCKS = sa.tensor("G", m + 1, n)
NOTHING = sa.from_index((m,), lambda i: -sympy.oo)
SIGNS = sa.from_index((n,), lambda i: (-1) ** i)


def same(a, b, given=()):
    return compare(a, b, given, Budget(20)).equal


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_of_rewriting_is_proved_at_symbolic_size(rule):
    found = entrywise_proof(*EXAMPLES[rule.name], (), Budget(20))
    assert isinstance(found, EntrywiseProof), rule.reason
    assert found.check()


@pytest.mark.parametrize("name", TRUE)
def test_what_rewriting_explains_the_normal_form_decides(name):
    assert isinstance(entrywise_proof(*TRUE[name], (), Budget(20)), EntrywiseProof)


def joined(*parts):
    return sa.concat(parts)


def paired(*parts):
    """The parts one feature after the other: (a0, b0, a1, b1, ...)."""
    return sa.merge_axes(sa.concat([part[:, None] for part in parts], axis=-1), (-2, -1))


EQUAL = {
    "sums in any order": (sa.trace(A @ B @ A), sa.trace(A @ A @ B)),
    "a symmetric matrix": (S.T @ A, S @ A),
    "a shift to the other factor": (sa.sum(sa.shift(x, 1) * A[0]), sa.sum(x * sa.shift(A[0], -1))),
    "a shift by two to the other factor": (sa.sum(sa.shift(x, -2) * A[0]), sa.sum(x * sa.shift(A[0], 2))),
    "shifted rows against each other": (sa.shift(A, -1, axis=0).T @ B, A.T @ sa.shift(B, 1, axis=0)),
    "a shift inside a function": (sa.sum(sa.shift(sa.exp(x), -1) * A[0]), sa.sum(sa.exp(x) * sa.shift(A[0], 1))),
    "symmetric in many indices": (sa.sum(x) ** 5, sa.sum(x) * sa.sum(x) ** 4),
    "a trace of a power": (sa.trace(A @ A @ A @ A), sa.sum((A @ A) * (A @ A).T)),
    "orthogonal": (U.T @ U @ A @ U @ U.T, A),
    "inverse of a product": (sa.inv(R @ U) @ R, U.T),
    "inverse of a multiple": (sa.inv(2 * R) @ R, sa.eye(n) / 2),
    "inverse of an inverse": (sa.inv(sa.inv(A)), A),
    "inverse of a transposed inverse": (sa.inv(sa.inv(A).T), A.T),
    "inverse of an inverse of a sum": (sa.inv(sa.inv(A + R)), A + R),
    "inverse of a multiple of an inverse": (sa.inv(2 * sa.inv(A)), A / 2),
    "inverse of a permutation": (sa.inv(Pi) @ A, Pi.T @ A),
    "inverse of a transpose": (sa.inv(R.T) @ R.T, sa.eye(n)),
    "determinants of size 2": (
        sa.inv(sa.eye(2) + sa.tril(sa.tensor("L", 2, 2), -1)) @ (sa.eye(2) + sa.tril(sa.tensor("L", 2, 2), -1)),
        sa.eye(2),
    ),
    "exp of a delta": (sa.exp(c * sa.eye(n)), sa.eye(n) * (sa.exp(sympy.S.One * c * sa.ones(n, n)) - 1) + 1),
    "two indicators of minus infinity": (
        sa.softmax(A + sa.where(N, 0, -sympy.oo) + sa.where(A > 0, 0, -sympy.oo)),
        sa.softmax(A, where=N & (A > 0)),
    ),
    "a maximum with minus infinity": (
        sa.maximum(sa.where(N, A, -sympy.oo), sa.sin(A)),
        sa.where(N, sa.maximum(A, sa.sin(A)), sa.sin(A)),
    ),
    "a comparison with minus infinity": (sa.where(N, A, -sympy.oo) > sa.sin(A), N & (A > sa.sin(A))),
    "a maximum of some and of minus infinity": (sa.max(joined(x, NOTHING)), sa.max(x)),
    "minus infinity first": (sa.max(joined(NOTHING, x)), sa.max(x)),
    "minus infinity alone": (sa.max(joined(NOTHING, NOTHING)) < 0, sa.from_index((), lambda: 1)),
    "a sum backwards inside a function": (
        sa.sum(sa.exp(sa.flip(x, 0)) * sa.flip(x, 0)),
        sa.sum(sa.exp(x) * x),
    ),
    "a sum where it is zero": (sa.sum(A @ B) * sa.equal(sa.sum(A @ B), 0), sa.zeros()),
    "a part of a sum where it is zero": (
        sa.sum(x) * sa.equal(sa.sum(x) + sa.sum(y) * c, 0),
        -c * sa.sum(y) * sa.equal(sa.sum(x) + sa.sum(y) * c, 0),
    ),
    "a mask where it leaves nothing of a row": (sa.where(sa.equal(LEFT, 0), N, 0) * A, sa.zeros(n, n)),
    "a masked sum of weights is zero where the mask is": (
        sa.equal(sa.sum(sa.where(N, sa.exp(A), 0), -1), 0),
        sa.equal(sa.sum(N, -1), 0),
    ),
    "rows that are empty are divided by 1": (
        KEPT / sa.where(sa.equal(LEFT, 0), 1, sa.sum(KEPT, -1, keepdims=True)),
        sa.softmax(A, where=N),
    ),
    "a power where a sum is zero": (
        sa.where(sa.equal(sa.sum(x), 0), 2, sa.sum(x)) ** -1,
        sa.where(sa.equal(sa.sum(x), 0), sympy.S.Half, 1 / sa.sum(x)),
    ),
    "a product over a size that is at least 1": (
        (A @ x / sa.maximum(sa.abs(A @ x), 1))[0],
        A[0] @ x / sa.maximum(sa.abs(A[0] @ x), 1),
    ),
    "running sums inside a function, in the last block": (
        attention.decay_matrix(sa.merge_axes(BLOCKS, (0, 1)))[m * n :, m * n :],
        attention.decay_matrix(BLOCKS[-1]),
    ),
    "addition theorem": (sa.sin(x + c), sa.sin(x) * sa.cos(c * sa.ones(n)) + sa.cos(x) * sa.sin(c * sa.ones(n))),
    "tanh by sigmoid": (sa.tanh(x), 2 * sa.sigmoid(2 * x) - 1),
    "softplus": (sa.softplus(x) - sa.softplus(-x), x),
    "logarithm of a product of sums": (
        sa.log(sa.sum(sa.exp(x)) * sa.sum(sa.exp(y))),
        sa.logsumexp(x) + sa.logsumexp(y),
    ),
    "inverse of a product of sums": (
        1 / (sa.sum(sa.exp(x)) * sa.sum(sa.exp(y))),
        (1 / sa.sum(sa.exp(x))) * (1 / sa.sum(sa.exp(y))),
    ),
    "root of a square": (sa.sqrt(x * x), sa.abs(x)),
    "root of a multiple": (sa.sqrt(8 * sa.exp(2 * x)), 2 * sympy.sqrt(2) * sa.exp(x)),
    "triangles": (sa.tril(A) + sa.triu(A, 1), A),
    "inverse of a diagonal matrix": (sa.inv(sa.diag(x + c)), sa.diag(1 / (x + c))),
    "rows divided by sums": (
        sa.inv(sa.diag(sa.exp(A) @ sa.ones(n))) @ sa.exp(A),
        sa.exp(A) / sa.sum(sa.exp(A), -1, keepdims=True),
    ),
    "diagonal by triangles": (sa.tril(sa.triu(A)), A * sa.eye(n)),
    "strict by weak": (sa.tril(A, -1), sa.tril(A) - A * sa.eye(n)),
    "counted": (
        sa.sum(sa.from_index((n, n), lambda i, j: j <= i) * sa.ones(n, n), -1),
        sa.from_index((n,), lambda i: i + 1),
    ),
    "backwards": (
        sa.sum(x[::-1] * sa.from_index((n,), lambda i: i)),
        sa.sum(x * sa.from_index((n,), lambda i: n - 1 - i)),
    ),
    "a band backwards": (
        sa.flip(sa.flip(sa.where(sa.from_index((n, n), lambda i, j: sympy.Abs(i - j) < d), 1, 0), 0), 1),
        sa.where(sa.from_index((n, n), lambda i, j: sympy.Abs(i - j) < d), 1, 0),
    ),
    "heads": (sa.sum(W, -1), sa.sum(sa.sum(sa.split_axis(W, -1, (h, d)), -1), -1)),
    "halves": (sa.sum(q * q), sa.sum(q[:r] ** 2) + sa.sum(q[r:] ** 2)),
    "even and odd": (sa.sum(q * q), sa.sum(q[::2] ** 2) + sa.sum(q[1::2] ** 2)),
    "halves and pairs": (sa.sum(joined(a * w, b)), sa.sum(paired(a * w, b))),
    "thirds and triples": (sa.sum(joined(a, b * w, a) ** 2), sa.sum(paired(a, b * w, a) ** 2)),
    "the largest of halves and of pairs": (sa.max(joined(a * w, b)), sa.max(paired(a * w, b))),
    "weights of halves and of pairs": (
        sa.softmax(joined(a, b) @ sa.exp(joined(a * w, b)) * x),
        sa.softmax(paired(a, b) @ sa.exp(paired(a * w, b)) * x),
    ),
    "pairs beside halves and a sum over all": (
        sa.sum(joined(a * w, b)) * x + sa.sum(paired(a, b) ** 2),
        sa.sum(joined(a * w, b)) * x + sa.sum(q * q),
    ),
    "repeat by take": (sa.repeat(x, d, 0), sa.take(x, sa.from_index((n * d,), lambda j: sympy.floor(j / d)), 0)),
    "tile by concat": (sa.tile(x, 2, 0), sa.concat([x, x])),
    "largest of a join": (sa.max(sa.concat([x, y])), sa.maximum(sa.max(x), sa.max(y))),
    "shift out of a maximum": (sa.max(2 * x + c), 2 * sa.max(x) + c),
    "permuted maximum": (sa.max(Pi @ x), sa.max(x)),
    "take commutes with entrywise": (sa.exp(sa.take(X, I, 0)), sa.take(sa.exp(X), I, 0)),
    "a sum along a permutation": ((A.T @ Pi @ A).T, A.T @ Pi.T @ A),
    "a sum in a maximum along a permutation": (sa.max(Pi.T @ x * x), sa.max(x * (Pi @ x))),
    "deltas with permutations": (Pi @ (2 * sa.eye(n)), (2 * sa.eye(n)) @ Pi),
    "powers of a positive scalar": (sa.exp(x * sympy.log(p)), p**x),
    "alternating signs": (sa.sum(SIGNS * (x + 1)), sa.sum(x * SIGNS) + sa.sum(SIGNS)),
    "a quotient of a quotient": (1 / (1 / (x * SIGNS)), SIGNS * x),
    "comparison with itself": (sa.where(Pi @ N > 0, 1, 0), Pi @ N),
}
DIFFERENT = {
    "a product is not commutative": (A @ B, B @ A),
    "a transpose": (A.T @ B, A @ B),
    "a sum along a permutation and one along its inverse": (A.T @ Pi @ B, A.T @ Pi.T @ B),
    "a permuted vector and its like": (sa.max(Pi @ x * x * x), sa.max(Pi.T @ x * x * x)),
    "a slice of a permuted vector": (sa.sum((Pi @ x)[1:]), sa.sum(x[1:])),
    "a shift of a permuted vector": (Pi.T @ sa.shift(Pi @ x, 1), sa.shift(x, 1)),
    "deltas of two ranges": (sa.from_index((n, m), lambda i, j: sympy.KroneckerDelta(i, j)) @ y, x),
    "a delta beyond the range": (sa.sum(sa.shift(x, 1)), sa.sum(x)),
    "halves and pairs in the other order": (sa.sum(joined(a * w, b)), sa.sum(paired(b * w, a))),
    "merged in the other order": (sa.merge_axes(sa.split_axis(W, -1, (h, d)).mT, (1, 2)), W),
    "repeat is not tile": (sa.repeat(x, 2, 0), sa.tile(x, 2, 0)),
    "root of a square of unknown sign": (sa.sqrt(x * x), x),
    "weak for strict": (sa.tril(A), sa.tril(A, -1)),
    "exp of the largest of masked entries": (sa.exp(sa.max(sa.where(N, A, -sympy.oo), -1)), sa.zeros(n)),
    "the largest of masked entries is no minus infinity": (
        sa.maximum(sa.max(sa.where(N, A, -sympy.oo), -1), x),
        x,
    ),
    "a maximum with what may be minus infinity": (
        sa.maximum(sa.where(N, A, -sympy.oo), sa.sin(A)),
        sa.maximum(A, sa.sin(A)),
    ),
    "max is not min": (sa.max(x), sa.min(x)),
    "a sum where another one is zero": (sa.sum(A @ B) * sa.equal(sa.sum(A.T @ B), 0), sa.zeros()),
    "another part of a sum where it is zero": (
        sa.sum(x) * sa.equal(sa.sum(x) + sa.sum(y) * c, 0),
        c * sa.sum(y) * sa.equal(sa.sum(x) + sa.sum(y) * c, 0),
    ),
    "a mask where it leaves nothing of another row": (sa.where(sa.equal(LEFT, 0), N.T, 0), sa.zeros(n, n)),
    "a masked sum of any numbers is zero where the mask is": (
        sa.equal(sa.sum(sa.where(N, A, 0), -1), 0),
        sa.equal(sa.sum(N, -1), 0),
    ),
    "parts of a sum where it is zero": (sa.where(sa.equal(sa.sum(x), 0), x, 0), sa.zeros(n)),
    "a power where another sum is zero": (
        sa.where(sa.equal(sa.sum(x), 0), 2, sa.sum(A)) ** -1,
        sa.where(sa.equal(sa.sum(y), 0), sympy.S.Half, 1 / sa.sum(A)),
    ),
    "a product of parts of a sum where it is zero": (
        sa.sum(A @ x) * sa.equal(A[0] @ x, 0),
        sa.zeros(),
    ),
    "a maximum of some and of zero": (sa.max(joined(x, sa.zeros(m))), sa.max(x)),
    "a maximum of some and of what may be minus infinity": (
        sa.max(joined(x, sa.where(N[0], y[0], -sympy.oo))),
        sa.max(x),
    ),
    "running sums inside a function, in another block": (
        attention.decay_matrix(sa.merge_axes(BLOCKS, (0, 1)))[m * n :, m * n :],
        attention.decay_matrix(BLOCKS[0]),
    ),
    "backwards and forwards": (sa.sum(sa.exp(sa.flip(x, 0)) * x), sa.sum(sa.exp(x) * x)),
    "two sums, one of them backwards": (sa.exp(sa.flip(x, 0)) @ A @ x, sa.exp(x) @ A @ x),
    "rows that may be empty": (sa.sum(sa.softmax(A + sa.where(A > 0, 0, -sympy.oo)), -1), sa.ones(n)),
    "unknown functions of other names": (sa.unknown("f", x), sa.unknown("g", x)),
    "the inverse of another matrix": (sa.inv(R) @ U, sa.eye(n)),
    "exponents": (sa.exp(A @ B), sa.exp(A) @ sa.exp(B)),
    "signs in the other order": (SIGNS, sa.flip(SIGNS, 0)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_one_normal_form(name):
    assert same(*EQUAL[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_normal_forms(name):
    try:
        assert not same(*DIFFERENT[name])
    except Unreached:
        pass


def test_keys_do_not_depend_on_names_given_on_the_way():
    left = sa.let("L", sa.let("M", A @ B) @ A)
    assert same(left, A @ sa.let("L", B @ A))


def test_facts_are_used_inside_functions_and_nowhere_else():
    K = sa.tensor("K", m, d)
    unit = [sa.eq(sa.sum(K * K, -1), 1)]
    assert same(sa.exp(3 * sa.sum(K**2, -1)), sa.exp(3 * sa.ones(m)), unit)
    assert not same(sa.sum(K**2, 0), sa.ones(d), unit)
    assert not same(sa.sum(K**4, -1), sa.ones(m), unit)
    assert same(sa.sum((K @ sa.tensor("V", d, d, orthogonal=True)) ** 2, -1), sa.ones(m), unit)


def test_a_calculation_does_not_disturb_the_next():
    first = [same(*EQUAL["sums in any order"]) for _ in range(3)]
    assert not same(*DIFFERENT["a transpose"])
    assert first == [True] * 3


def test_a_power_of_a_negative_number_is_written_as_one():
    verdict = sa.prove(SIGNS * SIGNS, SIGNS)
    assert verdict.status == "refuted"
    proof = sa.prove(sa.sum(SIGNS[:, None] * A), sa.sum((SIGNS[:, None] * A).T)).proof
    assert r"= (-1)^{i} A_{i j}" in proof.latex()
    assert "((-1)**(" in proof.text()
