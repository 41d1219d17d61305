"""Second derivatives of logsumexp and of the cross-entropy: each is a covariance under the softmax."""

from __future__ import annotations

import symattn as sa

n, d = sa.sizes("n d")
z, v, y = sa.tensor("z", n), sa.tensor("v", n), sa.tensor("y", n)
W, x, w = sa.tensor("W", n, d), sa.tensor("x", d), sa.tensor("w", d)
ell, p = sa.let("ell", sa.logsumexp(z)), sa.let("p", sa.softmax(z))
mean = sa.let("vbar", p @ v)
H = sa.let("H", sa.diag(p) - sa.outer(p, p))


def derivation() -> sa.Derivation:
    """The Hessian of logsumexp, why it is convex, and the Hessian of a linear classifier's loss."""
    note = sa.Derivation(
        "Curvature of logsumexp and of the cross-entropy",
        given={
            z: "scores", v: "any direction", x: "features of an example", W: "weights of a linear classifier",
            y: "target probabilities, of sum 1", w: "any direction",
        },
        summary="Differentiated twice, logsumexp gives a covariance under the softmax. So it is convex, and so is the "
        "loss of a linear classifier.",
        result=[
            r"Let $p = \operatorname{softmax}(z)$. The matrix of second derivatives of "
            r"$\operatorname{logsumexp}(z)$ is $H = \operatorname{diag}(p) - p p^{\top}$, the covariance of one draw "
            r"from $p$, and $v^{\top} H v = \sum_i p_i (v_i - \bar{v})^2 \geq 0$ for every direction $v$, with its "
            r"mean $\bar{v} = p^{\top} v$. As a function of its features, the loss of a linear classifier has the "
            r"Hessian $W^{\top} H W$.",
        ],
        references=[
            "Boyd and Vandenberghe, Convex Optimization, 2004, section 3.1.5.",
            "Böhning, Multinomial logistic regression algorithm, 1992 (the Hessian and a bound of it).",
        ],
        letters="i",
    )  # fmt: skip
    return cross_entropy(convexity(hessian(note)))


def hessian(note: sa.Derivation) -> sa.Derivation:
    """The gradient of a slope of the gradient."""
    note = note.section("The Hessian of logsumexp").say(
        r"The gradient of logsumexp is softmax. The slope of $\ell$ along any direction $v$ is the mean of "
        r"$v$ under the weights $p$, and the gradient of that mean is the Hessian times $v$."
    )
    note = note.extend(ell).extend(sa.gradient(ell, z)["dz"], because="softmax is the gradient").extend(p)
    note = note.extend(H, because="covariance of one draw").extend(mean, because=r"slope of $\ell$ along $v$")
    note = note.extend(sa.gradient(mean, z)).then(p * (v - mean), because="$p$ is a factor of both terms")
    return note.then(H @ v, because=r"$p \odot v = \operatorname{diag}(p)\, v$").say(
        "This holds for every $v$, so the Hessian is $H$. The line before multiplies by it without making a matrix."
    )


def convexity(note: sa.Derivation) -> sa.Derivation:
    """The quadratic form is a variance."""
    note = note.section("It is convex").say(
        r"Along a direction $v$, the curvature is the variance of the entries of $v$ under the weights $p$."
    )
    note = note.extend(sa.eq(v @ H @ v, v @ (p * (v - mean))), because=r"the Hessian times $v$")
    note = note.then(sa.sum(p * (v - mean) ** 2), because=r"$\sum_i p_i (v_i - \bar{v}) = 0$")
    return note.claim(
        sa.prove(sa.le(0, sa.sum(p * (v - mean) ** 2))),
        title="Logsumexp is convex",
        because="Weights and squares are not negative. The curvature is 0 along a $v$ of equal entries, a shift of all "
        "scores.",
    )


def cross_entropy(note: sa.Derivation) -> sa.Derivation:
    """The loss of a linear classifier, as a function of the features."""
    r = sa.let("r", W @ x)
    u, L = sa.let("u", sa.softmax(r)), sa.let("L", sa.logsumexp(r) - y @ r)
    slope = sa.let("t", (W.T @ (u - y)) @ w)
    note = note.section("The loss of a linear classifier").say(
        "A classifier computes the scores $r$ and pays the cross-entropy $L$ for the target $y$, whose entries sum to "
        "1. The gradient is the softmax less the target, sent back through $W$."
    )
    g = sa.gradient(L, x)
    note = note.extend(r, because="scores").extend(L, because="cross-entropy").extend(u, because="probabilities")
    note = note.extend(g["dx"]).then(W.T @ (u - y), because="softmax less target")
    note = note.say(
        r"Its slope along a direction $w$ is a number, and the gradient of that is the Hessian times $w$. The target "
        "is constant in it and leaves no trace."
    )
    note = note.extend(slope, because="slope along $w$").extend(sa.gradient(slope, x)["dx"])
    return note.then(
        W.T @ (sa.diag(u) - sa.outer(u, u)) @ W @ w, because=r"the Jacobian of softmax, between $W^{\top}$ and $W$"
    )


if __name__ == "__main__":
    print(derivation().text())
