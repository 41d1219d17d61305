"""What the tests of rewriting share: claims in the public API, values, random expressions, the audit of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

import symattn as sa
from symattn.codegen.sampling import generic_array
from symattn.core.budget import Budget
from symattn.proof.equality.rewriting import Lemma, normalise
from symattn.proof.rules import Rule

n, m, d, k, p, h = sa.sizes("n m d k p h")
PI = sa.tensor("Pi", n, n, permutation=True)
PSI = sa.tensor("Psi", m, m, permutation=True)
SIZES = (
    dict(zip((n, m, d, k, p, h), (3, 4, 2, 5, 6, 7), strict=True)),
    dict(zip((n, m, d, k, p, h), (5, 3, 4, 2, 1, 2), strict=True)),
    dict(zip((n, m, d, k, p, h), (4, 1, 3, 1, 2, 1), strict=True)),
    dict(zip((n, m, d, k, p, h), (1, 2, 1, 3, 4, 3), strict=True)),
)


# --- values ---


def known(x: sa.Tensor) -> sa.Tensor:
    """The expression with a known function in the place of every unknown one."""
    from symattn.core.node import topological

    unknown = [node for node in topological([x]) if node.op.name == "unknown"]
    while unknown:
        inner = unknown[0].inputs[0]
        x = x.replace({unknown[0]: sa.sin(inner) + inner**2 / 3})
        unknown = [node for node in topological([x]) if node.op.name == "unknown"]
    return x


def values(roots: Sequence[sa.Tensor], sizes: dict[Any, int], seed: int, positive: bool = False) -> list[Any]:
    """The values of expressions at one random point that satisfies what is declared."""
    roots = [known(x) for x in roots]
    tensors = sorted({t for x in roots for t in x.tensors}, key=lambda t: str(t.name))
    rng = np.random.default_rng(seed)
    arrays = [generic_array(t, tuple(int(s.subs(sizes)) for s in t.shape), rng, positive) for t in tensors]
    f = sa.lambdify(tensors, list(roots))
    found = f(*arrays, **{name: sizes[sa.sizes(name)] for name in keywords(f)})
    return list(found) if isinstance(found, tuple) else [found]


def keywords(f: Any) -> list[str]:
    return [s.name for s in f.takes.keywords]


def differs(a: sa.Tensor, b: sa.Tensor, seeds: Iterable[int] = range(2), positive: bool = False) -> bool:
    """Whether two expressions have different values at a point where both are finite."""
    for seed in seeds:
        for sizes in SIZES:
            with np.errstate(all="ignore"):
                x, y = (np.asarray(v, dtype=float) for v in values([a, b], sizes, seed, positive))
            if x.shape != y.shape:
                return True
            both = np.isfinite(x) & np.isfinite(y)
            if not np.allclose(x[both], y[both], rtol=1e-8, atol=1e-8 * max(1, np.abs(x[both]).max(initial=0))):
                return True
    return False


def audit(examples: Mapping[Rule, tuple[sa.Tensor, sa.Tensor]], expressions: Iterable[sa.Tensor]) -> list[str]:
    """The names of the rules that make a step of different values, on their examples or on the expressions."""
    wrong = {}
    for rule, (left, right) in examples.items():
        after = rule.apply(left)
        if differs(left, right) or after is None or differs(left, after):
            wrong[rule.name] = True
    for x in expressions:
        for lemma in lemmas_of(x):
            if lemma.rule in examples and differs(lemma.before, lemma.after, range(1)):
                wrong[lemma.rule.name] = True
    return list(wrong)


def lemmas_of(x: sa.Tensor) -> list[Lemma]:
    found: list[Lemma] = []
    for phase in (1, 2, 3):
        x, new = normalise(x, phase, budget=Budget(20))
        found += new
    return found


# --- claims ---


def attention(q: Any, key: Any, v: Any, scale: Any = None) -> sa.Tensor:
    return sa.softmax((q @ key.mT) * (1 / sympy.sqrt(d) if scale is None else scale)) @ v


def rowsum(x: Any) -> sa.Tensor:
    return sa.sum(x, axis=-1, keepdims=True)


Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, p)
X, Z = sa.tensor("X", n, d), sa.tensor("Z", n, m)
W_q, W_k, W_v = sa.tensor("W_q", d, k), sa.tensor("W_k", d, k), sa.tensor("W_v", d, p)
A = sa.tensor("A", d, d, invertible=True)
b, u = sa.tensor("b", d), sa.tensor("u", p)


def self_attention(x: Any) -> sa.Tensor:
    return attention(x @ W_q, x @ W_k, x @ W_v)


def block(x: Any) -> sa.Tensor:
    return x + sa.relu(self_attention(x) @ sa.tensor("F1", p, k)) @ sa.tensor("F2", k, d)


def heads(x: Any) -> sa.Tensor:
    return attention(x @ sa.tensor("W_Q", h, d, k), x @ sa.tensor("W_K", h, d, k), x @ sa.tensor("W_V", h, d, p))


W_O = sa.tensor("W_O", h, p, d)


def merged_heads(x: Any) -> sa.Tensor:
    return sa.merge_axes(sa.moveaxis(heads(x), 0, 1), (1, 2)) @ sa.merge_axes(W_O, (0, 1))


def _softmax_gradients() -> dict[str, tuple[Any, Any]]:
    row, drow = sa.tensor("r", m), sa.tensor("dr", m)
    P, dP, s = sa.tensor("P", n, m), sa.tensor("dP", n, m), sa.softmax(Z)
    return {
        "softmax_grad_row": (row * (drow - sa.sum(drow * row)), drow @ (sa.diag(row) - sa.outer(row, row))),
        "softmax_grad_mat": (P * (dP - rowsum(dP * P)), P * dP - sa.diag(sa.sum(P * dP, axis=-1)) @ P),
        "softmax_grad_rowsum0": (rowsum(s * (dP - rowsum(dP * s))), sa.zeros(n, 1)),
        "softmax_rowsum1": (s @ sa.ones(m, 1), sa.ones(n, 1)),
    }


def _online() -> dict[str, tuple[Any, Any]]:
    Z1, Z2, V1, V2 = sa.tensor("Z1", n, m), sa.tensor("Z2", n, k), sa.tensor("V1", m, p), sa.tensor("V2", k, p)
    m1, m2, mu = sa.max(Z1, -1, True), sa.max(Z2, -1, True), sa.tensor("mu", n, 1)
    l1, l2 = rowsum(sa.exp(Z1 - m1)), rowsum(sa.exp(Z2 - m2))
    o1, o2 = sa.exp(Z1 - m1) @ V1, sa.exp(Z2 - m2) @ V2
    above = sa.exp(m1 - mu) * o1 + sa.exp(m2 - mu) * o2
    below = sa.exp(m1 - mu) * l1 + sa.exp(m2 - mu) * l2
    whole = sa.softmax(sa.concat([Z1, Z2], 1)) @ sa.concat([V1, V2], 0)
    explicit = (sa.exp(Z1) @ V1 + sa.exp(Z2) @ V2) / (rowsum(sa.exp(Z1)) + rowsum(sa.exp(Z2)))
    return {"online_softmax": (above / below, whole), "blockwise_explicit": (explicit, whole)}


def _kernels() -> dict[str, tuple[Any, Any]]:
    x, xi, y = sa.tensor("x", n), sa.tensor("xi", m), sa.tensor("y", m, 1)
    D = x[:, None] - xi[None, :]
    G = sa.exp(-(D**2) / 2)
    f1, f2 = sa.unknown("phi", Q), sa.unknown("phi", K)

    def linear(key: Any, v: Any) -> Any:
        f = sa.unknown("phi", key)
        return (f1 @ (f.T @ v)) / (f1 @ (f.T @ sa.ones(m, 1)))

    return {
        "nadaraya_watson": (G @ y / rowsum(G), sa.softmax(-D * D / 2) @ y),
        "nw_dotform": (G @ y / rowsum(G), sa.softmax(sa.outer(x, xi) - xi**2 / 2) @ y),
        "linattn_assoc": ((Q @ K.T) @ V, Q @ (K.T @ V)),
        "linattn_norm": (linear(K, V), ((f1 @ f2.T) @ V) / rowsum(f1 @ f2.T)),
        "linattn_perm": (linear(PSI @ K, PSI @ V), linear(K, V)),
    }


def true_claims() -> dict[str, tuple[Any, Any]]:
    """The true claims. Rotations stand for RoPE as orthogonal matrices: tables by position are not rewritten."""
    U, R = sa.tensor("U", d, d, orthogonal=True), sa.tensor("R", d, d, orthogonal=True)
    shift = sa.tensor("R_s", d, d, orthogonal=True)
    H1, H2, W1, W2 = sa.tensor("H1", n, k), sa.tensor("H2", n, k), sa.tensor("W1", k, d), sa.tensor("W2", k, d)
    Z0, M = sa.tensor("Z0", n, n), sa.tensor("M", n, n)
    return {
        "perm_equiv": (self_attention(PI @ X), PI @ self_attention(X)),
        "kv_perm_inv": (attention(Q, PSI @ K, PSI @ V), attention(Q, K, V)),
        "q_row_equiv": (attention(PI @ Q, K, V), PI @ attention(Q, K, V)),
        "softmax_shift": (sa.softmax(Z + sa.tensor("c", n)[:, None]), sa.softmax(Z)),
        "key_translate": (attention(Q, K + b, V), attention(Q, K, V)),
        "orth_basis": (attention(Q @ U, K @ U, V), attention(Q, K, V)),
        "gl_reparam": (attention(Q @ A, K @ sa.inv(A).T, V), attention(Q, K, V)),
        "multihead_sum": (merged_heads(X), sa.sum(heads(X) @ W_O, axis=0)),
        "multihead_perm": (merged_heads(PI @ X), PI @ merged_heads(X)),
        "twohead_sum": (sa.concat([H1, H2], 1) @ sa.concat([W1, W2], 0), H1 @ W1 + H2 @ W2),
        "attn_affine_V": (attention(Q, K, V + u), attention(Q, K, V) + u),
        "rope_relative": ((Q @ R.T) @ (K @ U.T).T, Q @ (R.T @ U) @ K.T),
        "rope_shift": ((Q @ R @ shift) @ (K @ U @ shift).T, (Q @ R) @ (K @ U).T),
        "block_equiv": (block(PI @ X), PI @ block(X)),
        "two_layer_equiv": (block(block(PI @ X)), PI @ block(block(X))),
        "masked_conj": (sa.softmax(PI @ Z0 @ PI.T + PI @ M @ PI.T), PI @ sa.softmax(Z0 + M) @ PI.T),
        "double_transpose": ((Q @ K.T).T, K @ Q.T),
        "qk_bias_cancel": (sa.softmax((Q + b) @ (K + sa.tensor("b2", d)).T), sa.softmax(Q @ K.T + b @ K.T)),
        "pi_orth": (PI @ PI.T @ X, X),
        **_softmax_gradients(),
        **_online(),
        **_kernels(),
    }


def false_claims() -> dict[str, tuple[Any, Any]]:
    causal = sa.from_index((n, n), lambda i, j: j <= i)

    def masked(x: Any) -> Any:
        return sa.softmax((x @ W_q) @ (x @ W_k).T, where=causal) @ (x @ W_v)

    E = sa.tensor("E", n, d)
    return {
        "causal": (masked(PI @ X), PI @ masked(X)),
        "positions": (self_attention(PI @ X + E), PI @ self_attention(X + E)),
        "column shift": (sa.softmax(Z + sa.tensor("c", m)), sa.softmax(Z)),
        "value shift": (attention(Q, K, V + u), attention(Q, K, V)),
        "keys alone": (attention(Q, PSI @ K, V), attention(Q, K, V)),
        "no transpose": (attention(Q @ A, K @ sa.inv(A), V), attention(Q, K, V)),
        "unscaled": (attention(Q, K, V, 1), attention(Q, K, V)),
        "linear softmax": (sa.softmax(2 * Z), sa.softmax(Z)),
    }


# --- random expressions, of shape (n, m) and of shape (h, n, m) ---

G1, COLUMN, ROW = sa.tensor("G1", n, m), sa.tensor("c", n), sa.tensor("r", m)
_LEAVES = (
    Z, G1, Z - G1, 2 * Z, sa.tensor("H", n, m), Z, G1, ROW, COLUMN[:, None], sa.ones(n, m), sa.tensor("y", n, 1),
    sa.from_index((n, m), lambda i, j: i - 2 * j), sa.outer(COLUMN, ROW),
)  # fmt: skip
MASK = sa.tensor("B", n, m, binary=True)
N2, M2 = sa.tensor("N2", n, n), sa.tensor("M2", m, m)
U_m, A_m = sa.tensor("U", m, m, orthogonal=True), sa.tensor("A2", m, m, invertible=True)
FIRST = sa.from_index((n,), lambda i: i * 0)
weighted = sa.operation("weighted", shape="n m -> n m", entry=lambda at, x: x[at] * (at[0] + 1))
sized = sa.operation("sized", shape="n m -> n m", entry=lambda at, x: x[at] ** 2 + x.shape[0])

Unary = tuple[Callable[[Any], Any], ...]
Binary = tuple[Callable[[Any, Any], Any], ...]
_UNARY: Unary = (
    lambda x: PI @ x, lambda x: PI.T @ x, lambda x: x @ PSI, lambda x: x @ PSI.T, lambda x: PI @ (x @ PSI.T),
    sa.softmax, lambda x: sa.softmax(x, axis=0), lambda x: sa.softmax(x, axis=(0, 1)),
    lambda x: sa.softmax(x, where=MASK), lambda x: sa.exp(x / 4), sa.tanh, sa.relu, lambda x: -2 * x, lambda x: x**2,
    lambda x: sa.let("L", x), lambda x: sa.unknown("phi", x), lambda x: x.T.T, lambda x: sa.exp(-(x.T) / 5).T,
    lambda x: rowsum(x) * sa.ones(n, m), lambda x: x - sa.mean(x, axis=0), lambda x: x + sa.sum(x, axis=1)[:, None],
    lambda x: N2 @ x, lambda x: x @ M2, lambda x: (M2.T @ x.T).T, lambda x: x @ U_m @ U_m.T,
    lambda x: x @ A_m @ sa.inv(A_m), lambda x: (sa.inv(A_m).T @ x.T).T @ A_m, lambda x: sa.diag(x[:, 0]) @ x,
    lambda x: x @ sa.diag(x[0]), lambda x: sa.cumsum(x, axis=0), lambda x: sa.cumsum(x), lambda x: sa.tril(x),
    lambda x: sa.flip(x, axis=0), lambda x: sa.flip(x, axis=1), lambda x: sa.take(x, FIRST, axis=0),
    lambda x: sa.maximum(x, 0), lambda x: sa.where(MASK, x, 1), lambda x: x - sa.logsumexp(x)[:, None],
    lambda x: sa.max(x, -1, True) + x, weighted, sized, lambda x: sa.diag(sa.sum(x, 1)) @ x,
    lambda x: sa.merge_axes(sa.split_axis(sa.concat([x, x], 1), 1, (2, m)), (1, 2))[:, :m] + x,
    lambda x: sa.concat([x, 2 * x], 1) @ sa.concat([M2, M2.T], 0), lambda x: sa.concat([x, x], 0)[:n],
    lambda x: sa.trace(x @ x.T) * x, lambda x: sa.einsum("ij,jk->ik", x, M2),
    lambda x: sa.einsum("ij,ij->i", x, x)[:, None] + x, lambda x: x @ sa.ones(m, m), lambda x: sa.ones(n, n) @ x,
    lambda x: x / (1 + sa.exp(x)), lambda x: sa.exp(x / 3) / rowsum(sa.exp(x / 3)), lambda x: sa.log(sa.exp(x)),
    lambda x: sa.softmax(x + COLUMN[:, None] - 2), lambda x: x @ x.T @ x, lambda x: (x.T @ PI.T @ x).T[0] + x,
    lambda x: 1 / (x / (1 + x**2)), lambda x: sa.exp(sa.concat([x, -x], 1)) @ sa.concat([M2, M2], 0),
    lambda x: rowsum(sa.concat([x, -2 * x], 1)) + x, lambda x: x @ sa.inv(A_m @ M2),
)  # fmt: skip
_BINARY: Binary = (
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: PI @ x + PI @ y,
    lambda x, y: x @ y.T @ x, lambda x, y: (x @ PSI) * (y @ PSI), lambda x, y: x @ (PSI @ y.T) @ x,
    lambda x, y: sa.softmax(x) * y, lambda x, y: sa.maximum(PI @ x, PI @ y), lambda x, y: x / (1 + y**2),
    lambda x, y: rowsum(x * y) * x, lambda x, y: (x[:, :1] + y[:, :1]) * x, lambda x, y: N2 @ (x + y),
    lambda x, y: sa.softmax(x @ y.T) @ x, lambda x, y: (PI @ x) @ (y.T @ PI.T) @ (PI @ x),
)  # fmt: skip

OMEGA = sa.tensor("Omega", h, h, permutation=True)
_HEAD_LEAVES = (sa.tensor("X3", h, n, m), sa.tensor("Y3", h, n, m), Z, ROW, COLUMN[:, None], sa.tensor("g", h, 1, 1))


def over_heads(matrix: Any, x: Any) -> Any:
    """A matrix applied to the head axis."""
    return sa.moveaxis(matrix @ sa.moveaxis(x, 0, 1), 1, 0)


_HEAD_UNARY: Unary = (
    lambda x: PI @ x, lambda x: x @ PSI.T, lambda x: over_heads(OMEGA, x), lambda x: over_heads(OMEGA.T, x),
    lambda x: PI @ over_heads(OMEGA, x), sa.softmax, lambda x: sa.softmax(x, axis=0), sa.tanh, lambda x: x * x,
    lambda x: sa.softmax(x, axis=(0, 2), where=MASK), lambda x: x - sa.mean(x, axis=0), lambda x: N2 @ x,
    lambda x: x @ M2, lambda x: (x.mT @ N2).mT, lambda x: sa.sum(x, axis=0) + x, lambda x: sa.softmax(x.mT).mT,
    lambda x: x @ x.mT @ x, lambda x: sa.einsum("hij,hkj->hik", x, x) @ x, lambda x: sa.einsum("hij->ij", x) * x,
    lambda x: sa.split_axis(sa.merge_axes(x, (0, 1)), 0, (h, n)), lambda x: sa.merge_axes(x[:, None], (0, 1)),
    lambda x: sa.moveaxis(sa.exp(sa.moveaxis(x, 0, 2) / 3), 2, 0), lambda x: sa.cumsum(x, axis=0),
    lambda x: sa.sum(x, axis=(0, 2), keepdims=True) - x, lambda x: sa.sum(x, axis=1)[:, None] * x,
    lambda x: x @ sa.tensor("M3", h, m, m), lambda x: (sa.tensor("M3", h, m, m) @ x.mT).mT, lambda x: x[::-1],
    lambda x: x @ sa.tensor("U3", h, m, m, orthogonal=True) @ sa.tensor("U3", h, m, m, orthogonal=True).mT,
    lambda x: sa.max(x, axis=1, keepdims=True) + x, lambda x: x @ sa.ones(m, m), lambda x: x @ ROW[:, None] + x,
    lambda x: (x @ ROW)[:, :, None] * x, lambda x: sa.logsumexp(x + COLUMN[:, None])[:, :, None] + x,
    lambda x: x + sa.split_axis(
        sa.merge_axes(sa.moveaxis(x, 0, 1), (1, 2)) @ sa.tensor("W9", h * m, h * m), -1, (h, m)
    )[:, 0], lambda x: sa.concat([x, x], 0)[:h], sized, weighted,
    lambda x: (sa.merge_axes(sa.moveaxis(x, 0, 1), (1, 2)) @ sa.tensor("W8", h * m, m)) * x,
)  # fmt: skip
_HEAD_BINARY: Binary = (
    lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x @ y.mT @ x, lambda x, y: PI @ x - PI @ y,
    lambda x, y: over_heads(OMEGA, x) * over_heads(OMEGA, y), lambda x, y: (x @ PSI.T) @ (PSI @ y.mT) @ x,
    lambda x, y: over_heads(OMEGA, x) @ over_heads(OMEGA, y).mT @ x, lambda x, y: sa.softmax(x @ y.mT) @ x,
)  # fmt: skip


def random_expression(rng: np.random.Generator, steps: int) -> sa.Tensor:
    """A random expression of shape (n, m), with shared parts."""
    return _random(rng, steps, _LEAVES, _UNARY, _BINARY, sa.zeros(n, m))


def random_heads(rng: np.random.Generator, steps: int) -> sa.Tensor:
    """A random expression of shape (h, n, m), with shared parts."""
    return _random(rng, steps, _HEAD_LEAVES, _HEAD_UNARY, _HEAD_BINARY, sa.zeros(h, n, m))


def _random(rng: Any, steps: int, leaves: Any, unary: Unary, binary: Binary, zeros: Any) -> sa.Tensor:
    pool: list[Any] = [zeros + leaves[rng.integers(len(leaves))] for _ in range(2)]
    for _ in range(steps):
        x, y = (pool[rng.integers(len(pool))] for _ in range(2))
        if rng.random() < 0.35:
            pool.append(binary[rng.integers(len(binary))](x, y))
        else:
            pool.append(unary[rng.integers(len(unary))](x))
    return pool[-1]
