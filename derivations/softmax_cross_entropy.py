"""Softmax and cross-entropy: the gradient is the probabilities less the target."""

from __future__ import annotations

import symattn as sa

T, n = sa.sizes("T n")
z, y = sa.tensor("z", n), sa.tensor("y", n)
Z, Y = sa.tensor("Z", T, n), sa.tensor("Y", T, n)
p = sa.let("p", sa.softmax(z))
L = sa.let("L", -sa.sum(y * sa.log(p)))
g = sa.gradient(L, [p, z])


def derivation() -> sa.Derivation:
    """Both at once, in two steps, and over a batch."""
    note = sa.Derivation(
        "Softmax with cross-entropy",
        given={
            z: "scores of the classes", y: "the target, probabilities of the classes", Z: "scores of a batch",
            Y: "its targets, one a row, each of sum 1",
        },
        summary="Why softmax and cross-entropy are differentiated together: the logarithm of the one undoes the "
        "exponentials of the other, and $p - y$ is left.",
        result=[
            r"Let $p = \operatorname{softmax}(z)$ and let $y$ sum to 1. The loss "
            r"$L = -\sum_i y_i \log p_i$ has the gradient $\mathrm{d}z = p - y$.",
        ],
        references=["Bridle, Probabilistic interpretation of feedforward classification network outputs, 1990."],
        letters="i",
    )  # fmt: skip
    return numbers(batch(gradient(loss(note))))


def loss(note: sa.Derivation) -> sa.Derivation:
    """The logarithm of a softmax is a difference."""
    ones = sa.eq(sa.sum(y), 1)
    note = (
        note.section("The loss")
        .extend(p, L, because={"p": "probabilities", "L": "cross-entropy"})
        .say(r"A softmax is a quotient, so its logarithm is a difference, which cannot be $\log 0$.")
    )
    note = note.extend(sa.eq(sa.log(p), z - sa.logsumexp(z)), because=r"$\log \mathrm{e}^{z_i} = z_i$")
    note = note.extend(sa.eq(L, sa.sum(y) * sa.logsumexp(z) - y @ z), because="put into the sum")
    return note.claim(
        sa.prove(L, sa.logsumexp(z) - y @ z, given=[ones]),
        title="The loss of a target that sums to 1",
        because="All classes share one normaliser, which has the weight 1.",
    )


def gradient(note: sa.Derivation) -> sa.Derivation:
    """In two steps: first by p, then by z."""
    note = note.section("The gradient").say(
        r"In two steps, the gradient by $p$ is large where $p$ is small. Softmax multiplies by $p$ again."
    )
    note = note.extend(g["dp"], because=r"$\log$").extend(g["dz"], because="softmax")
    note = note.then(p * sa.sum(y) - y, because=r"$p_i \cdot y_i / p_i = y_i$")
    return note.claim(
        sa.prove(g["dz"], p - y, given=[sa.eq(sa.sum(y), 1)]),
        title="Probabilities less target",
        because=r"With $\sum_i y_i = 1$. Each entry lies between $-1$ and 1, and all of them sum to 0: what the right "
        "class gains the others lose.",
    )


def batch(note: sa.Derivation) -> sa.Derivation:
    """The mean over rows."""
    P = sa.let("P", sa.softmax(Z))
    C = sa.let("C", -sa.sum(Y * sa.log(P)) / T)
    dZ = sa.gradient(C, [P, Z])
    note = note.section("A batch").say(
        "In training, $T$ examples stand below each other, and the loss is the mean of their losses. Every row has the "
        "gradient above, divided by $T$."
    )
    note = note.extend(P, because="row by row").extend(C, because="mean over the rows")
    return note.extend(dZ).claim(
        sa.prove(dZ[Z], (P - Y) / T, given=[sa.eq(sa.sum(Y, axis=1), sa.ones(T))]),
        title="Probabilities less targets, over the number of rows",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three classes."""
    note = note.section("In numbers").say("Three classes, of which the last is the right one; entries to three digits.")
    return note.example({z: [2, 1, 0], y: [0, 0, 1]}, show=[p, L, g["dz"]])


if __name__ == "__main__":
    print(derivation().text())
