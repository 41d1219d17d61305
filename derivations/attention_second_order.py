"""Second derivatives of attention: covariances of keys and values under the weights."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
q, w, K, V = sa.tensor("q", d), sa.tensor("w", d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Q = sa.tensor("Q", T, d)
moved = {x: sa.tensor(f"{x.name}dot", *x.shape) for x in (Q, K, V)}
zeta = sa.let("zeta", K @ q / sympy.sqrt(d))
alpha, ell = sa.let("alpha", sa.softmax(zeta)), sa.let("ell", sa.logsumexp(zeta))
kbar, o = sa.let("kbar", alpha @ K), sa.let("o", alpha @ V)
C = sa.let("C", sa.diag(alpha) - sa.outer(alpha, alpha))


def derivation() -> sa.Derivation:
    """The Hessian of the normaliser, the Jacobian of one output, and the tangent of all outputs."""
    note = sa.Derivation(
        "Attention to second order",
        given={
            q: "a query", w: "a direction of the query", K: "keys", V: "values", Q: "all queries",
            **{dot: f"motion of ${x.name}$" for x, dot in moved.items()},
        },
        summary="Differentiated once, attention gives means under its weights; differentiated twice, covariances.",
        result=[
            r"Let $\ell$ be the logarithm of the normaliser of one query, and $\bar{k}$ and $o$ the means of keys and "
            r"values under its weights $\alpha$. The gradient of $\ell$ by the query is $\bar{k} / \sqrt{d}$; its "
            r"Hessian is the covariance of the keys, divided by $d$; and the Jacobian of the output $o$ is the "
            r"covariance of keys and values, divided by $\sqrt{d}$.",
        ],
        references=["Ramsauer et al., Hopfield networks is all you need, 2021 (the first of the three)."],
    )  # fmt: skip
    return all_queries(jacobian(hessian(mean(note))))


def mean(note: sa.Derivation) -> sa.Derivation:
    """The first derivative."""
    note = note.section("One query").say("A query reads keys and values by its weights.")
    said = {"zeta": "its scores", "alpha": "its weights", "kbar": "mean of the keys", "o": "mean of the values"}
    note = note.extend(zeta, alpha, kbar, o, because=said).say(
        r"The logarithm of the normaliser has the mean of the keys for its gradient, but for the scale."
    )
    g = sa.gradient(ell, q)
    note = note.extend(ell).extend(g).then(kbar / sympy.sqrt(d), because=r"$\bar{k} = K^{\top} \alpha$")
    return note


def hessian(note: sa.Derivation) -> sa.Derivation:
    """The covariance of the keys."""
    s = sa.let("s", kbar @ w / sympy.sqrt(d))
    note = note.section("The Hessian").say(
        r"The slope of $\ell$ along $w$ is the number $s$, and the gradient of $s$ is the Hessian times $w$. The "
        r"Jacobian of softmax, $C$, comes between the keys; it is a covariance, so the keys may be centred."
    )
    note = note.extend(s, C, because={"s": "slope along $w$", "C": r"covariance of one draw from $\alpha$"})
    note = note.extend(sa.gradient(s, q)).then(K.T @ C @ K @ w / d, because="the Jacobian of softmax")
    return note.then(((K - kbar).T * alpha) @ (K - kbar) @ w / d, because="a covariance is about the means")


def jacobian(note: sa.Derivation) -> sa.Derivation:
    """The covariance of keys and values."""
    g = sa.gradient(o, q)
    note = note.section("The Jacobian of the output").say(
        r"What comes back to the query from the gradient of the output is the covariance of keys and values, applied "
        r"to it."
    )
    note = note.extend(g).then(K.T @ C @ V @ g.cotangent / sympy.sqrt(d), because="the Jacobian of softmax")
    note = note.then(
        ((K - kbar).T * alpha) @ (V - o) @ g.cotangent / sympy.sqrt(d), because="a covariance is about the means"
    )
    return note.say("So a query learns nothing where all values are equal, or where one key has all the weight.")


def all_queries(note: sa.Derivation) -> sa.Derivation:
    """How all outputs move when everything moves, beside the backward pass."""
    O = sa.attention.scaled_dot_product(Q, K, V)
    Odot = sa.jvp(O, moved)
    Z, P = O.intermediates[:2]
    tangents = [x for x in Odot.intermediates if x.name.endswith("dot")]
    centre = sa.sum(P * tangents[0], axis=-1, keepdims=True)
    note = note.section("All queries").say(
        r"Let queries, keys and values move along $\dot{Q}$, $\dot{K}$ and $\dot{V}$, and write a dot for how a "
        "quantity moves. In each row, the output moves by the covariance of the values with the motion of the scores, "
        "and by the mean motion of the values."
    )
    note = note.extend(Z, P, O, *tangents)
    note = note.then((P * tangents[0]) @ V - centre * O + P @ moved[V], because="multiplied out")
    g = sa.gradient(O, list(moved))
    note = note.say("Forward and backward pass give the same change $c$ of a loss, for all motions.").extend(g)
    note = note.extend(sa.let("c", sa.sum(g.cotangent * Odot)), because="forward")
    return note.then(sum(sa.sum(g[x] * t) for x, t in moved.items()), because="backward")


if __name__ == "__main__":
    print(derivation().text())
