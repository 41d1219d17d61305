"""Claims about recurrences, for every number of steps: proved by induction, refuted, or left unknown with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn import attention
from symattn.proof.induction.guesses import guessed
from symattn.proof.induction.plan import Induction
from symattn.recurrence.body import loop_of

from ..recurrences import delta, gated, linear, online

T, S, L, d, e, B, b = sa.sizes("T S L d e B b")
K, V, Q = sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("Q", T, d)
x, z, g, beta = sa.tensor("x", T), sa.tensor("z", T), sa.tensor("g", T), sa.tensor("beta", T)
X, W, Pi = sa.tensor("X", S, d), sa.tensor("W", L, d, d), sa.tensor("Pi", S, S, permutation=True)
ROTATION = sa.tensor("P", T, T, orthogonal=True)
gamma = sympy.Symbol("gamma", positive=True)
by = sa.induction


def layer(X: Any, W: Any) -> Any:
    return X + sa.unknown("f", sa.softmax(X @ X.T) @ X @ W, rowwise=True), None


def net(X: Any) -> Any:
    return sa.scan(layer, X, W)[0]


def online_softmax(start: Any) -> Any:
    (_, l, n), _ = sa.scan(online, (start, 0, sa.zeros(e)), (z, V))
    return n / l


CAUSAL = sa.tril(Q @ K.T) @ V
RELATIVE = by(final=lambda m, z, V: (None, sa.sum(sa.exp(z - m)), sa.exp(z - m) @ V), free=0)
SCORES = sa.exp(z - sa.max(z))
DELTA = sa.inv(sa.eye(T) + sa.tril(beta[:, None] * (K @ K.T), -1)) @ (beta[:, None] * V)
START = sa.zeros(d, e)
BLOCKS = [sa.tensor(name, B * b, size) for name, size in (("Q", d), ("K", d), ("V", e))]


def in_chunks() -> Any:
    """Retention chunk by chunk, and all at once."""

    def chunk(R: Any, read: Any) -> Any:
        q, k, v = read
        out = attention.retention(q, k, v, gamma) + gamma ** sa.from_index((b, 1), lambda i, _: i + 1) * (q @ R)
        return gamma**b * R + k.T @ (gamma ** sa.from_index((b, 1), lambda j, _: b - 1 - j) * v), out

    _, O = sa.scan(chunk, START, tuple(sa.split_axis(x, 0, (B, b)) for x in BLOCKS))
    whole = attention.retention(*BLOCKS, gamma)
    state = BLOCKS[1].T @ (gamma ** sa.from_index((B * b, 1), lambda i, _: B * b - 1 - i) * BLOCKS[2])
    return sa.merge_axes(O, (0, 1)), whole, by(final=state, outputs=sa.split_axis(whole, 0, (B, b)))


def self_attention() -> Any:
    """Online softmax over keys that are as many as the queries."""

    def step(state: Any, read: Any) -> Any:
        (m, l, n), (k, v) = state, read
        new = sa.maximum(m, Q @ k)
        old, weight = sa.exp(m - new), sa.exp(Q @ k - new)
        return (new, old * l + weight, old[:, None] * n + sa.outer(weight, v)), None

    (_, l, n), _ = sa.scan(step, (sa.zeros(T), sa.zeros(T), sa.zeros(T, e)), (K, V))

    def closed(m: Any, K: Any, V: Any) -> Any:
        weights = sa.exp(Q @ K.T - m[:, None])
        return None, sa.sum(weights, axis=-1), weights @ V

    return n / l[:, None], sa.softmax(Q @ K.T) @ V, by(final=closed, free=0)


def gradient_of_linear() -> Any:
    """By the keys: a loop backwards over the states before each step, which a loop gives, and in one formula."""
    dO, (_, O) = sa.tensor("dO", T, e), sa.scan(linear, START, (Q, K, V))

    def so_far(A: Any, B: Any, k: int) -> Any:
        return sa.einsum("tj,jk,jv->tkv", sa.tril(sa.ones(T, T), k), A, B)

    def backwards(Q: Any, K: Any, V: Any, S: Any, dO: Any) -> Any:
        behind = sa.einsum("tj,jk,jv->tkv", sa.triu(sa.ones(T, T)), Q, dO)
        by_query = sa.einsum("tke,te->tk", S, dO) + K * sa.sum(V * dO, axis=1, keepdims=True)
        return by_query, sa.einsum("tke,te->tk", behind, V), sa.einsum("tke,tk->te", behind, K)

    forwards = by(lambda K, V: K.T @ V, lambda K, V: so_far(K, V, -1))
    how = forwards, by(lambda Q, K, V, S, dO: Q.T @ dO, backwards)
    return sa.gradient({O: dO}, [Q, K, V])[K], sa.gradient({CAUSAL: dO}, [K])[K], how


def summed(sequence: Any, start: Any = 0) -> Any:
    return sa.scan(lambda s, x: (s + x, s + x), start, sequence)


PROVED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "a sum": lambda: (summed(x)[0], sa.sum(x)),
    "a sum with a name": lambda: (sa.exp(sa.let("s", summed(x)[0])), sa.exp(sa.sum(x))),
    "running sums": lambda: (summed(x)[1], sa.cumsum(x)),
    "a sum of all but the first": lambda: (summed(x[1:])[0], sa.sum(x[1:])),
    "a sum of nine": lambda: (summed(sa.tensor("y", 9))[0], sa.sum(sa.tensor("y", 9))),
    "a start that is read": lambda: (summed(x, x[0])[0], sa.sum(x) + x[0]),
    "steps that are counted": lambda: (
        sa.scan(lambda s, _: (s + 1, s), 0, length=T)[1],
        sa.from_index((T,), lambda i: i),
    ),
    "the same at every step": lambda: (
        sa.scan(lambda s, v: (s + v + gamma + z[0], s), sa.zeros(d), x)[0] + sa.zeros(d),
        (sa.sum(x) + T * (gamma + z[0])) * sa.ones(d),
    ),
    "a mean": lambda: (summed(x)[0] / T, sa.mean(x), by(sa.sum(x))),
    "a recurrence in a softmax": lambda: (sa.softmax(summed(x)[1]), sa.softmax(sa.cumsum(x))),
    "linear attention": lambda: (sa.scan(linear, START, (Q, K, V))[0], K.T @ V),
    "its outputs": lambda: (sa.scan(linear, START, (Q, K, V))[1], CAUSAL, by(final=K.T @ V, outputs=CAUSAL)),
    "its outputs by a guess": lambda: (sa.scan(linear, sa.zeros(d, e), (Q, K, V))[1], CAUSAL),
    "from a state, by a guess": lambda: (
        sa.scan(gated, sa.tensor("S_0", d, e), (g, Q, K, V))[1],
        attention.gated_linear(Q, K, V, g) + sa.exp(sa.cumsum(g))[:, None] * (Q @ sa.tensor("S_0", d, e)),
    ),
    "a product of last states, by a guess": lambda: (
        (lambda S, n: S[0] * n)(*sa.scan(lambda s, x: ((s[0] + x[1], s[1] + x[0]), None), (sa.zeros(e), 0), (x, V))[0]),
        sa.sum(V, axis=0)[0] * sa.sum(x),
    ),
    "its outputs by functions": lambda: (
        sa.scan(linear, START, (Q, K, V))[1],
        CAUSAL,
        by(final=lambda Q, K, V: K.T @ V, outputs=lambda Q, K, V: sa.tril(Q @ K.T) @ V),
    ),
    "gated": lambda: (
        sa.scan(gated, START, (g, Q, K, V))[1],
        attention.gated_linear(Q, K, V, g),
        by(K.T @ (attention.decay_matrix(g)[-1][:, None] * V), attention.gated_linear(Q, K, V, g)),
    ),
    "the delta rule": lambda: (
        sa.scan(delta, START, (beta, Q, K, V))[1],
        attention.delta_rule(Q, K, V, beta),
        by(K.T @ DELTA, attention.delta_rule(Q, K, V, beta)),
    ),
    "the delta rule, by unit queries": lambda: (
        sa.scan(delta, START, (beta, Q, K, V))[1],
        attention.delta_rule(Q, K, V, beta),
    ),
    "online softmax": lambda: (
        online_softmax(-sympy.oo),
        sa.softmax(z) @ V,
        by(final=(sa.max(z), sa.sum(SCORES), SCORES @ V)),
    ),
    "with any reference": lambda: (online_softmax(0), sa.softmax(z) @ V, RELATIVE),
    "chunks": in_chunks,
    "as many keys as queries": self_attention,
    "the largest so far": lambda: (
        sa.scan(lambda s, x: ((m := sa.maximum(s, x)), m), -sympy.oo, x)[1],
        sa.max(sa.where(attention.causal_mask(T), x[None, :], -sympy.oo), axis=-1),
    ),
    "the gradient of linear attention": gradient_of_linear,
    "depth": lambda: (net(Pi @ X), Pi @ net(X)),
    "depth between an embedding and a head": lambda: (
        sa.softmax(net(Pi @ X @ W[0])),
        Pi @ sa.softmax(net(X @ W[0])),
    ),
    "a lower bound": lambda: (sa.le(0, sa.exp(summed(x)[0])),),
}


def parted(asked: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """A claim, and the inductions behind it, if there are any."""
    return (asked[:-1], asked[-1]) if isinstance(asked[-1], (Induction, tuple)) else (asked, None)


@pytest.mark.parametrize("name", PROVED)
def test_true_claims_are_proved_for_every_number_of_steps(name: str) -> None:
    claim, how = parted(PROVED[name]())
    verdict = sa.prove(*claim, by=how)
    assert verdict, verdict
    assert verdict.proof.check()
    assert set(verdict.proof.side_conditions) <= {"2 <= T"}  # of x[1:]
    assert verdict.latex()
    assert str(verdict.proof)


REFUTED: dict[str, Callable[[], tuple[Any, ...]]] = {
    "linear attention that sees all": lambda: (sa.scan(linear, START, (Q, K, V))[1], Q @ K.T @ V),
    "false at one step": lambda: (summed(x)[0], sa.sum(x) + sa.where(sa.equal(T, 1), 1, 0)),
    "a causal net is equivariant": lambda: (
        sa.scan(lambda X, W: (sa.softmax(X @ X.T, where=attention.causal_mask(S)) @ X @ W, None), Pi @ X, W)[0],
        Pi @ sa.scan(lambda X, W: (sa.softmax(X @ X.T, where=attention.causal_mask(S)) @ X @ W, None), X, W)[0],
    ),
}


@pytest.mark.parametrize("name", REFUTED)
def test_false_claims_are_refuted(name: str) -> None:
    assert sa.prove(*REFUTED[name]()).status == "refuted"


UNKNOWN: dict[str, tuple[Callable[[], tuple[Any, ...]], str]] = {
    "no invariant": (
        lambda: (online_softmax(0), sa.softmax(z) @ V),
        "an invariant is needed",
    ),
    "no invariant of what another recurrence reads": (lambda: gradient_of_linear()[:2], "an invariant is needed"),
    "a wrong invariant": (
        lambda: (sa.scan(linear, START, (Q, K, V))[1], CAUSAL, by(2 * K.T @ V, CAUSAL)),
        "the closed form does not follow: At the first step, state 0: 2 [*] K.T @ V = .*, which is false",
    ),
    "an invariant of a true claim that does not follow": (
        lambda: (online_softmax(0), sa.softmax(z) @ V, by(final=(sa.max(z), sa.sum(SCORES), SCORES @ V))),
        "At the first step, state 0",
    ),
    "a form too few": (lambda: (online_softmax(0), sa.softmax(z) @ V, by(final=sa.max(z))), "there are 3, not 1"),
    "no form of the output": (lambda: (sa.scan(linear, START, (Q, K, V))[1], CAUSAL, by(K.T @ V)), "output 0"),
    "a form of too few sequences": (
        lambda: (sa.scan(linear, START, (Q, K, V))[0], K.T @ V, by(lambda K, V: K.T @ V)),
        "does not take 3 arguments",
    ),
    "an induction too many": (lambda: (summed(x)[0], sa.sum(x), (by(sa.sum(x)), by(x))), "no recurrence is left"),
    "an induction and no recurrence": (lambda: (sa.sum(x), sa.sum(x) + 0 * x[0], by(x)), "no recurrence is left"),
    "a form of another shape": (lambda: (summed(x)[0], sa.sum(x), by(x)), "what has the shape"),
    "a matrix that is not cut": (
        lambda: (summed(ROTATION @ x)[0], sa.sum(ROTATION @ x)),
        "P.* is orthogonal, which its first n places are not",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_proved_says_why(name: str) -> None:
    made, reason = UNKNOWN[name]
    claim, how = parted(made())
    verdict = sa.prove(*claim, by=how)
    assert verdict.status == "unknown"
    assert re.search(reason, verdict.reason), verdict.reason


def test_what_is_no_induction_is_refused() -> None:
    for wrong in (3, "final", K.T @ V, [K]):
        with pytest.raises(sa.OperandError, match=r"made by sa.induction\(final=, outputs=\)"):
            sa.prove(summed(x)[0], sa.sum(x), by=wrong)
    with pytest.raises(sa.OperandError, match="free holds numbers of states"):
        by(final=lambda m: m, free="m")
    with pytest.raises(sa.OperandError, match="final is a function of them"):
        by(final=K, free=0)


def test_conditions_hold_at_every_step() -> None:
    """A quotient by sums of the first elements has a value only where none of these is 0."""
    S, _ = sa.scan(lambda s, x: (s / (1 + s * x), None), 1, x)
    verdict = sa.prove(S, 1 / (1 + sa.sum(x)))
    assert verdict.proof.side_conditions[0] == "1 + sum(x[:n]) != 0 for 1 <= n <= T"  # of which one is the claim's own
    assert verdict.proof.check()


def test_two_recurrences_are_told_with_one_letter_for_their_steps() -> None:
    u = sa.tensor("u")
    verdict = sa.prove(summed(x, 2 * u)[0] + u, summed(x, 3 * u)[0])
    told = verdict.latex()
    assert told.count(r"t = 0, \ldots, T - 1") >= 2
    assert "t\\_" not in told


@pytest.mark.parametrize("rate", [sa.exp(g), sa.exp(sa.tensor("G", T, d)), sa.exp(sa.tensor("U", T, e)), None])
def test_what_is_guessed_of_outer_products_is_one_product_of_matrices(rate: Any) -> None:
    """With what is left of each at the end: by steps, or by features of keys or of values."""

    def step(S: Any, read: Any) -> Any:
        k, v, *others = read
        for r in others:
            S = (r[:, None] if r.shape == (d,) else r) * S
        return S + sa.outer(k, v), None

    last, _ = sa.scan(step, START, (K, V) if rate is None else (K, V, rate))
    found = guessed(loop_of(last))
    assert found is not None
    assert found[0].op.name == "matmul"
    assert sa.prove(last, found[0])
