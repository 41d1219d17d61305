"""Formulas that were printed wrong, and the one that was meant."""

import pytest
import sympy

import symattn as sa
from symattn.checking.suggestions import intended

T, S, d, e, n, k = sa.sizes("T S d e n k")
Q, K, V, dZ = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("dZ", T, S)
P, dP, p, z = sa.tensor("P", T, S), sa.tensor("dP", T, S), sa.tensor("p", n), sa.tensor("z", n)
A, B, Pi, X = sa.tensor("A", n, n), sa.tensor("B", n, n), sa.tensor("Pi", n, n, permutation=True), sa.tensor("X", n, d)
W_K, W_V = sa.tensor("W_K", d, k), sa.tensor("W_V", d, k)
rows = sa.softmax(z)

CLAIMS = {
    "a transpose that is missing": ((A @ B).T, A.T @ B.T, "B.T @ A.T"),
    "another projection": (X @ W_V, X @ W_K, "X @ W_V"),
    "a term that is missing": (
        sa.jacobian(rows, z), sa.diag(rows) + sa.outer(rows, rows), "diag(softmax(z)) - outer(softmax(z), softmax(z))",
    ),
    "a scale by the wrong width": (
        sa.softmax(Q @ K.T / sympy.sqrt(d)), sa.softmax(Q @ K.T / sympy.sqrt(e)), "softmax(Q @ K.T / sqrt(d))",
    ),
    "invariant for equivariant": (sa.softmax(Pi @ X), sa.softmax(X), None),
}  # fmt: skip


@pytest.mark.parametrize(("left", "right", "meant"), CLAIMS.values(), ids=CLAIMS)
def test_what_was_meant_is_found_and_proved(left, right, meant):
    found = [str(edit.tensor) for edit in intended(left, right, others=[W_K, W_V, V])]
    assert (meant in found) if meant else not found
