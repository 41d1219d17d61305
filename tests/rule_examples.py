"""Both sides of a generic instance of each rewrite rule, of symbolic size."""

from __future__ import annotations

import symattn as sa
from symattn.core.sizes import ONE
from symattn.ops.broadcasting import broadcast_to
from symattn.ops.layout import merge_axis_op

n, m, d, k, h = sa.sizes("n m d k h")
A, B, C = (sa.tensor(name, n, m) for name in "ABC")
D, E, F = sa.tensor("D", m, d), sa.tensor("E", m, d), sa.tensor("F", d, k)
G, H = sa.tensor("G", n, k), sa.tensor("H", k, d)
I, J, L = sa.tensor("I", n, n), sa.tensor("J", n, n, invertible=True), sa.tensor("L", n, n, invertible=True)
P, R = sa.tensor("P", n, m, positive=True), sa.tensor("R", n, m, positive=True)
U, PSI = sa.tensor("U", m, m, orthogonal=True), sa.tensor("Psi", m, m, permutation=True)
PI = sa.tensor("Pi", n, n, permutation=True)
Q, K, V, W = sa.tensor("Q", h, n, d), sa.tensor("K", h, m, d), sa.tensor("V", h, d, k), sa.tensor("W", n, h, d)
c, r, v, w, x = sa.tensor("c", n, 1), sa.tensor("r", 1, d), sa.tensor("v", n), sa.tensor("w", m), sa.tensor("x", n)
y = sa.tensor("y", n * m)


def rowsum(y: sa.Tensor) -> sa.Tensor:
    return sa.sum(y, axis=-1, keepdims=True)


EXAMPLES = {
    "permutations cancel": (PI @ (PI.T @ A), A),
    "permutations of rows and columns": ((PI @ A).T, A.T @ PI.T),
    "permutation outward": (sa.softmax(PI @ (A @ PSI.T)), PI @ (sa.softmax(A) @ PSI.T)),
    "shift of a row": (sa.softmax(A + c), sa.softmax(A)),
    "shift of logsumexp": (
        sa.logsumexp(A + c, axis=-1, keepdims=True), sa.logsumexp(A, axis=-1, keepdims=True) + c,
    ),
    "rows of softmax": (rowsum(sa.softmax(A)), sa.ones(n, 1)),
    "sum of equal entries": (rowsum(broadcast_to(c, (n, m))), m * c),
    "sum of one term": (rowsum(c), c),
    "sum of a vector": (rowsum(v), sa.sum(v)[None]),
    "row sums of a product": (rowsum(A @ D), A @ rowsum(D)),
    "equal entries stay equal": (sa.exp(broadcast_to(c, (n, m))), broadcast_to(sa.exp(c), (n, m))),
    "new axis in front": (v[None, :], broadcast_to(v, (ONE, n))),
    "new axis inward": (sa.exp(v)[:, None], sa.exp(v[:, None])),
    "function of joins": (sa.concat([A, G], 1) * sa.concat([B, G], 1), sa.concat([A * B, G * G], 1)),
    "sum of a join": (rowsum(sa.concat([A, G], 1)), rowsum(A) + rowsum(G)),
    "factor out of a sum": (rowsum(c * A), c * rowsum(A)),
    "mean": (sa.mean(A, axis=-1, keepdims=True), rowsum(A) / m),
    "definition of softmax": (sa.softmax(A), sa.exp(A) / rowsum(sa.exp(A))),
    "transpose inward": ((A @ D).T, D.T @ A.T),
    "split and merged": (merge_axis_op.node(sa.split_axis(y, 0, (n, m)), axis=-1), y),
    "contraction as a product": (sa.einsum("hnd,hmd->hnm", Q, K), Q @ K.mT),
    "blocks": (sa.concat([A, G], 1) @ sa.concat([D, H], 0), A @ D + G @ H),
    "heads": (sa.merge_axes(sa.moveaxis(Q, 0, 1), (1, 2)) @ sa.merge_axes(V, (0, 1)), sa.sum(Q @ V, axis=0)),
    "orthogonal matrix cancels": (A @ U @ U.T, A),
    "inverse cancels": (I @ J @ sa.inv(J), I),
    "inverse of a product": (sa.inv(J @ L), sa.inv(L) @ sa.inv(J)),
    "inverse of an inverse": (sa.inv(sa.inv(I)), I),
    "identity": (A @ sa.eye(m), A),
    "scalar out": ((3 * A) @ D, 3 * (A @ D)),
    "product over one index": (c @ r, c * r),
    "product with equal rows": (A @ broadcast_to(r, (m, d)), rowsum(A) * r),
    "product with a vector": (A @ w[:, None], (A @ w)[:, None]),
    "brackets": (A @ (D @ F), A @ D @ F),
    "outer product": (sa.outer(v, w), v[:, None] * w),
    "diagonal matrix": (sa.diag(v) @ A, v[:, None] * A),
    "dot product": (v @ x, sa.sum(v * x)),
    "factor of a row or column out": ((c * A) @ D, c * (A @ D)),
    "linear": (A @ (D + E), A @ D + A @ E),
    "terms collected": (A + (B + A), 2 * A + B),
    "factors collected": (A * (B * A), A**2 * B),
    "exponentials cancel": (sa.exp(A) * B / sa.exp(A), B),
    "common factors cancel": (P * B / P, B),
    "product multiplied out": ((A + B) * C, A * C + B * C),
    "common divisor": (1 / (sa.exp(C) * P + sa.exp(C) * R), 1 / (sa.exp(C) * (P + R))),
    "exponential of a sum": (sa.exp(A - B), sa.exp(A) / sa.exp(B)),
    "logarithm of an exponential": (sa.log(sa.exp(A)), A),
}  # fmt: skip
