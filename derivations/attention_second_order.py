"""Second derivatives of attention: covariances of keys and values under the weights."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
q, K, V = sa.tensor("q", d), sa.tensor("K", S, d), sa.tensor("V", S, e)


def derivation() -> sa.Derivation:
    """The Hessian of the log-partition, the Jacobian of one output, and the tangent of all outputs."""
    note = sa.Derivation("Attention to second order")
    note = _one_query(note)
    note = _all_queries(note)
    return note


def covariance(p: sa.Tensor) -> sa.Tensor:
    """That of the indicators of one draw from p."""
    return sa.diag(p) - sa.outer(p, p)


def _tangents(moved: sa.Tensor) -> list[sa.Tensor]:
    """How the intermediates move, in order, ``moved`` itself last."""
    return [x for x in moved.intermediates if x.name.endswith("dot")]


def _one_query(note: sa.Derivation) -> sa.Derivation:
    w = sa.tensor("w", d)
    z = sa.let("zeta", K @ q / sympy.sqrt(d))
    a, A = sa.let("alpha", sa.softmax(z)), sa.let("A", sa.logsumexp(z))
    mean, o = sa.let("kbar", a @ K), sa.let("o", a @ V)
    g = sa.gradient(o, q)
    note = note.say(
        "Let a query q[d] read keys K[S, d] and values V[S, e], by the weights alpha. The logarithm A of their "
        "normaliser has the mean of the keys for its gradient, scaled, and o is the mean of the values."
    )
    note = note.extend(z, a, mean, o, A, sa.gradient(A, q))
    s = sa.let("s", mean @ w / sympy.sqrt(d))
    note = note.say("Its Hessian is the covariance of the keys: the slope along w, once more.")
    note = note.extend(s, sa.gradient(s, q)).then(K.T @ covariance(a) @ K @ w / d, because="the Jacobian of a softmax")
    note = note.then(((K - mean).T * a) @ (K - mean) @ w / d, because="a covariance is about the means")
    note = note.say("The Jacobian of the output is the covariance of the keys and the values.")
    note = note.extend(g).then(
        K.T @ covariance(a) @ V @ g.cotangent / sympy.sqrt(d), because="do is a factor of all terms"
    )
    return note.then(
        ((K - mean).T * a) @ (V - o) @ g.cotangent / sympy.sqrt(d), because="a covariance is about the means"
    )


def _all_queries(note: sa.Derivation) -> sa.Derivation:
    Q = sa.tensor("Q", T, d)
    moved = {x: sa.tensor(f"{x.name}dot", *x.shape) for x in (Q, K, V)}
    O = sa.attention.scaled_dot_product(Q, K, V)
    Odot = sa.jvp(O, moved)
    Z, P = O.intermediates[:2]
    Zdot = _tangents(Odot)[0]
    note = note.say(
        "For all queries at once, let Q, K and V move along Qdot, Kdot and Vdot. In each row, the output moves by the "
        "covariance of the values and the motion of the scores, and by the mean motion of the values."
    )
    note = note.extend(Z, P, O, *_tangents(Odot))
    mean = sa.sum(P * Zdot, axis=-1, keepdims=True)
    note = note.then((P * Zdot) @ V - mean * O + P @ moved[V], because="multiplied out")
    g = sa.gradient(O, list(moved))
    note = note.say("That this is the derivative of O shows beside the backward pass.")
    note = note.extend(g)
    note = note.say("Both passes give the same change c of a loss, for all dO and all motions.")
    note = note.extend(sa.let("c", sa.sum(g.cotangent * Odot)))
    return note.then(sum(sa.sum(g[x] * t) for x, t in moved.items()), because="one loss, one change")


if __name__ == "__main__":
    print(derivation().text())
