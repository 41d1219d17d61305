"""The Jacobian of softmax, read off its gradient."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """From the gradient of one row to the matrix, what the matrix is, and an example in numbers."""
    z, v = sa.tensor("z", "n"), sa.tensor("v", "n")
    p = sa.let("p", sa.softmax(z))
    J = sa.let("J", sa.jacobian(p, z))
    g = sa.gradient(p, z)

    note = sa.Derivation(
        "The Jacobian of softmax",
        given={z: "scores of one row", v: "any direction"},
        summary="Every weight depends on every score, through the common denominator: the Jacobian is a full matrix, "
        "and a simple one.",
        result=[
            "The Jacobian is the covariance matrix of one draw from $p$,",
            J,
            "It is symmetric and positive semidefinite, and its rows sum to 0.",
        ],
        references=["Bridle, Probabilistic interpretation of feedforward classification network outputs, 1990."],
    )
    note = note.section("From the gradient to the matrix").extend(p, because="weights, positive and of sum 1")
    note = note.say(
        r"A loss grows by $\mathrm{d}p$ with the weights. To raise one score raises its own weight and lowers all "
        r"others in proportion, so a score gets its weight times how far its $\mathrm{d}p$ is above the average under "
        "the weights."
    )
    note = note.extend(g["dz"], because="softmax")
    note = note.then((sa.diag(p) - sa.outer(p, p)) @ g.cotangent, because="$p$ is a factor of both terms")
    note = note.say(
        r"This is linear in $\mathrm{d}p$. The matrix in front is symmetric, so it is the Jacobian and not only its "
        "transpose."
    )
    note = note.extend(J, because="entries: derivatives of weights by scores")

    note = note.section("What the matrix is")
    mean = sa.sum(p * v)
    note = note.claim(
        sa.prove(J @ sa.ones(z.shape[0]), sa.zeros(*z.shape)),
        title="Its rows sum to 0",
        because="The same number added to all scores changes no weight.",
    )
    variance = sa.Derivation("Proof").extend(sa.eq(v @ J @ v, sa.sum(p * v**2) - mean**2), because="multiplied out")
    variance = variance.then(sa.sum(p * (v - mean) ** 2), because=r"$\mathbf{1}^{\top} p = 1$")
    note = note.claim(
        sa.prove(v @ J @ v, sa.sum(p * (v - mean) ** 2)),
        title="Its quadratic form is a variance",
        because="Of the entries of $v$ under the weights, so it is never negative.",
        proof=variance,
    )
    note = note.section("In numbers").say("Three scores, one apart: every row of $J$ sums to 0.")
    return note.example({z: [2, 1, 0]}, show=[p, J])


if __name__ == "__main__":
    print(derivation().text())
