"""What is proved under conditions is about something: a point at which they hold, or no proof."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

import symattn as sa

n, m, d = sa.sizes("n m d")
x, y, longer = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("x", n + 1)
A, X = sa.tensor("A", n, n), sa.tensor("X", n, d)
Z, M = sa.tensor("Z", n, m), sa.tensor("M", n, m, binary=True)
Pi = sa.tensor("Pi", n, n, permutation=True)
k = sympy.Symbol("k", integer=True)
before = sa.operation(
    "before", shape="n -> n", entry=lambda i, z: sympy.Sum(sympy.exp(z[k]), (k, 0, i[0] - 1))
)(x)  # fmt: skip
u, p = sa.tensor("u", n, positive=True), sa.softmax(x)
strictly = sa.from_index((n, n), lambda i, j: j < i)
earlier, centred, jacobian = strictly @ u, A - sa.mean(A, axis=1, keepdims=True), sa.diag(p) - sa.outer(p, p)
opposite = sa.relu(x) * sa.relu(-x)

NOWHERE = {
    "inverse of ones": (sa.inv(sa.ones(n + 1, n + 1)) @ sa.ones(n + 1, n + 1), sa.eye(n + 1)),
    "inverse of rank one": (sa.inv(sa.outer(longer, longer)) @ sa.outer(longer, longer), sa.eye(n + 1)),
    "logarithm of what is never positive": (sa.log(-(x**2)) - sa.log(-(x**2)), 0 * x),
    "quotient of what is always 0": (opposite / opposite, sa.ones(n)),
    "root of a negative number": (sa.sqrt(-1 - x**2) ** 2, -1 - x**2),
    "an empty sum": (sa.exp(sa.log(before)), before),
    "a shift out of a positive vector": (sa.exp(sa.log(sa.shift(u, 1))), sa.shift(u, 1)),
    "a positive vector after zeros": (sa.concat([0 * x, u]) / sa.concat([0 * x, u]), sa.ones(2 * n)),
    "sums before": (earlier / earlier, sa.ones(n)),
    "means before": (earlier / sa.sum(strictly, -1) * sa.sum(strictly, -1), earlier),
    "inverse of what is strictly lower": (sa.inv(sa.tril(A, -1)) @ sa.tril(A, -1), sa.eye(n)),
    "inverse of rows of sum 0": (sa.inv(centred) @ centred, sa.eye(n)),
    "inverse of the Jacobian of a softmax": (sa.inv(jacobian) @ jacobian, sa.eye(n)),
    "quotient of a mask and its complement": (M * (1 - M) / (M * (1 - M)), sa.ones(n, m)),
    "logarithm of what is below 1, less 1": (sa.exp(sa.log(sa.softmax(x) - 1)), sa.softmax(x) - 1),
    "roots of an empty sum": (sa.sqrt(before) * sa.rsqrt(before), sa.ones(n)),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_what_is_defined_nowhere_is_not_proved(name):
    verdict = sa.prove(*NOWHERE[name])
    assert verdict.status == "unknown"
    assert "no point was found where both sides are defined" in str(verdict)


SOMEWHERE = {
    "quotient": ((x / x, sa.ones(n)), ()),
    "logarithm": ((sa.exp(sa.log(x)), x), ()),
    "inverse": ((sa.inv(A) @ A, sa.eye(n)), ()),
    "inverse at size 1": ((sa.inv(sa.outer(x, x)) @ sa.outer(x, x), sa.eye(n)), ()),
    "a mask of ones": ((sa.softmax(Z + sa.log(M)), sa.softmax(Z, where=M)), ()),
    "a mask without empty rows": ((sa.sum(sa.softmax(Z, where=M), -1), sa.ones(n)), sa.le(1, sa.sum(M, -1))),
    "an eigenvector": ((A @ x, x), sa.eq(A @ x, x)),
    "a permutation": ((sa.softmax(Pi @ X), Pi @ sa.softmax(X)), ()),
    "a relation of sizes": ((sa.sum(sa.ones(n)), 2 * m * sa.ones()), sympy.Eq(n, 2 * m)),
    "an unknown function": ((sa.unknown("phi", x) / x * x, sa.unknown("phi", x)), ()),
    "a literal size": ((sa.log(sa.tensor("u", 300)) * 0, sa.zeros(300)), ()),
}


@pytest.mark.parametrize("name", SOMEWHERE)
def test_a_proof_carries_a_point_at_which_all_that_it_assumes_holds(name):
    claim, given = SOMEWHERE[name]
    proof = sa.prove(*claim, given=given).proof
    assert proof.witness is not None
    assert proof.witness.check()
    assert proof.check()
    assert "\n" not in proof.witness.text()
    assert f"Example: {proof.witness}" in proof.text() or not (proof.hypotheses or proof.side_conditions)


def test_a_witness_is_written_in_one_line():
    assert sa.prove(sa.exp(sa.log(x)), x).proof.witness.text() == "n = 2, x = [1, 1]"


def test_a_point_where_a_condition_fails_is_no_witness():
    proof = sa.prove(x / x, sa.ones(n)).proof
    point = proof.witness.point
    zero = replace(point, arrays={x: dict.fromkeys(point.arrays[x], 0)})
    false = replace(proof, witness=replace(proof.witness, point=zero))
    assert not false.witness.check()
    assert not false.check()


def test_hypotheses_without_a_known_example_are_said_to_have_none():
    strict = sa.from_index((n, n), lambda i, j: j < i) & sa.tensor("M", n, n, binary=True)  # row 0 is empty
    verdict = sa.prove(x * 0, sa.zeros(n), given=sa.le(1, sa.sum(strict, -1)))
    assert verdict
    assert verdict.proof.witness is None
    assert "no example of what is given was found" in str(verdict)
    assert "Example: not found" in verdict.proof.text()


def test_where_nothing_is_assumed_no_example_is_shown():
    assert "Example" not in sa.prove(x + y, y + x).proof.text()
