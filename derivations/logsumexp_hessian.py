"""Second derivatives of logsumexp and of the cross-entropy: each is a covariance under the softmax."""

from __future__ import annotations

import symattn as sa

n, d = sa.sizes("n d")


def derivation() -> sa.Derivation:
    """The Hessian of logsumexp, its product with a vector, and the Hessian of a linear classifier's loss."""
    note = sa.Derivation("Hessians of logsumexp and cross-entropy")
    note = _logsumexp(note)
    note = _cross_entropy(note)
    return note


def covariance(p: sa.Tensor) -> sa.Tensor:
    """That of the indicators of one draw from p."""
    return sa.diag(p) - sa.outer(p, p)


def _tangents(moved: sa.Tensor) -> list[sa.Tensor]:
    """How the intermediates move, in order, ``moved`` itself last."""
    return [x for x in moved.intermediates if x.name.endswith("dot")]


def _logsumexp(note: sa.Derivation) -> sa.Derivation:
    z, v = sa.tensor("z", n), sa.tensor("v", n)
    ell, p = sa.let("ell", sa.logsumexp(z)), sa.let("p", sa.softmax(z))
    s = sa.let("s", p @ v)
    note = note.say("Let z[n] be scores. The gradient of their logsumexp is their softmax, p.")
    note = note.extend(ell, sa.gradient(ell, z), p)
    note = note.say(
        "So the Hessian of logsumexp is the Jacobian of p. To find it, take the slope s along any direction v[n], and "
        "differentiate once more: this gives the Hessian times v."
    )
    note = note.extend(s, sa.gradient(s, z)).then(p * (v - p @ v), because="the row sum is an inner product")
    note = note.then(covariance(p) @ v, because="v is a factor of both terms")
    note = note.say(
        "This holds for every v, so the Hessian is diag(p) - p p^T: the covariance of one draw from p. The line before "
        "multiplies by it without making a matrix."
    )
    return note


def _cross_entropy(note: sa.Derivation) -> sa.Derivation:
    x, w, W, y = sa.tensor("x", d), sa.tensor("w", d), sa.tensor("W", n, d), sa.tensor("y", n)
    r = sa.let("r", W @ x)
    u, Lambda = sa.let("u", sa.softmax(r)), sa.let("Lambda", sa.logsumexp(r))
    L = sa.let("L", Lambda - y @ r)
    note = note.say(
        "A classifier reads scores r from features x[d], with W[n, d], and pays the cross-entropy L for the target "
        "probabilities y[n], which add up to 1. Let x move by w[d], and write a dot for how a quantity moves with it."
    )
    slope = (u - y) @ (W @ w)
    note = note.extend(r, u, Lambda, L, *_tangents(sa.jvp(L, {x: w}))).then(
        slope, because="softmax less target, times rdot"
    )
    note = note.say("The target is a constant in this slope, and leaves no trace in the second derivative.")
    note = note.extend(sa.gradient(slope, x))
    return note.then(W.T @ covariance(u) @ W @ w, because="as before, between W^T and W")


if __name__ == "__main__":
    print(derivation().text())
