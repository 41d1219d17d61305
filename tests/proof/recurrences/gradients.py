"""Gradients of recurrences, which are recurrences backwards, and those of what they come to."""

from __future__ import annotations

from typing import Any

import symattn as sa
from symattn import attention
from symattn.recurrence.unrolled import unrolled

from .asked import Asked, K, Q, T, Table, V, a, by, d, e, x
from .linear import CAUSAL, SSD, decayed, linear, run

dO = sa.tensor("dO", T, e)
W, U, x_e, h_0 = sa.tensor("W", d, d), sa.tensor("U", d, e), sa.tensor("x", T, e), sa.tensor("h_0", d)
RNN = W, U, x_e, h_0


def so_far(M: Any, A: Any, B: Any) -> Any:
    """Sums of outer products so far, with weights."""
    return sa.einsum("tj,jk,jv->tkv", M, A, B)


def gradients(left: Any, right: Any, by_what: Any, inputs: Any, how: Any) -> Asked:
    one, other = (sa.gradient({x: dO}, inputs) for x in (left, right))
    return Asked(one[by_what], other[by_what], how)


# --- S = S + k v^T ---


def of_linear(by_what: Any) -> Asked:
    ones = sa.tril(sa.ones(T, T))
    states = by(lambda K, V: K.T @ V, lambda K, V: so_far(sa.tril(ones, -1), K, V))

    def backwards(Q: Any, K: Any, V: Any, S: Any, dO: Any) -> Any:
        behind = so_far(ones.T, Q, dO)
        by_query = sa.einsum("tke,te->tk", S, dO) + K * sa.sum(V * dO, axis=1, keepdims=True)
        return by_query, sa.einsum("tke,te->tk", behind, V), sa.einsum("tke,tk->te", behind, K)

    how = states, by(lambda Q, K, V, S, dO: Q.T @ dO, backwards)
    return gradients(run(linear, Q, K, V)[1], CAUSAL, by_what, [Q, K, V], how)


# --- S = a S + k v^T ---


def of_decayed(by_what: Any) -> Asked:
    def D(a: Any) -> Any:
        return attention.decay_matrix(sa.log(a))

    states = by(
        lambda a, K, V: K.T @ (D(a)[-1][:, None] * V),
        lambda a, K, V: so_far(sa.tril(D(a), -1) / a[:, None], K, V),
    )

    def backwards(a: Any, Q: Any, K: Any, V: Any, S: Any, dO: Any) -> Any:
        behind = so_far(D(a).T, Q, dO)
        by_query = sa.einsum("tke,te->tk", a[:, None, None] * S, dO) + K * sa.sum(V * dO, axis=1, keepdims=True)
        by_decay = sa.einsum("tke,tke->t", behind, S)
        return by_decay, by_query, sa.einsum("tke,te->tk", behind, V), sa.einsum("tke,tk->te", behind, K)

    last = by(lambda a, Q, K, V, S, dO: Q.T @ (sa.exp(sa.cumsum(sa.log(a)))[:, None] * dO), backwards)
    whole = (Q @ K.T * SSD) @ V
    return gradients(run(decayed, a, Q, K, V)[1], whole, by_what, [a, Q, K, V], (states, last))


# --- h = tanh(W h + U x) ---


def of_tanh(steps: int, by_what: Any) -> Asked:
    """The vjp of the loop at a number of steps, and the gradient of the unrolled graph."""

    def step(h: Any, x: Any) -> Any:
        h = sa.tanh(W @ h + U @ x)
        return h, h

    _, H = sa.scan(step, h_0, x_e)
    dH = sa.tensor("dH", T, d)
    put = {T: steps}
    inside = by_what.subs(put)
    loop = sa.gradient({H: dH}, [by_what])[by_what].subs(put)
    h, cotangents = h_0, {}
    for t in range(steps):
        h = step(h, x_e.subs(put)[t])[0]
        cotangents[h] = dH.subs(put)[t]
    whole = sa.gradient(cotangents, [inside])[inside]
    return Asked(unrolled(loop), whole)


def of_sum() -> Asked:
    """All that is read counts once."""
    s, _ = sa.scan(lambda s, x: (s + x, None), 0, x)
    return Asked(sa.gradient(s, [x])[x], sa.ones(T), by(1, sa.ones(T)))


TABLE: Table = {
    **{f"gradient of linear attention: by {y}": (lambda y=y: of_linear(y)) for y in (Q, K, V)},
    **{f"gradient of decayed attention: by {y}": (lambda y=y: of_decayed(y)) for y in (a, Q, K, V)},
    "gradient of a sum": of_sum,
    **{f"gradient of tanh, {t} steps: by {y}": (lambda t=t, y=y: of_tanh(t, y)) for t in (1, 2, 3) for y in RNN},
}
