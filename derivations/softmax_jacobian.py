"""The Jacobian of softmax, read off its gradient."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """One row: from the vector-Jacobian product to the matrix."""
    z = sa.tensor("z", "n")
    p = sa.let("p", sa.softmax(z))
    g = sa.gradient(p, z)
    dp = g.cotangent

    note = sa.Derivation("The Jacobian of softmax", given=[z, dp])
    note = note.say(
        "Softmax turns scores into weights that are positive and sum to 1. Every weight depends on every score, "
        "through the common denominator, so its Jacobian is a full matrix, and one with a simple form."
    )
    note = note.extend(p)
    note = note.say(
        "Write dp for the cotangent of the weights: how much a scalar loss grows with each of them. Raising one "
        "score raises its own weight and lowers all others in proportion, so the cotangent of a score is its "
        "weight times the advantage of its dp over the average of dp under the weights."
    )
    note = note.extend(g)
    note = note.say(
        "The right side is linear in dp. Taking dp out leaves a symmetric matrix that does not depend on dp."
    )
    note = note.then((sa.diag(p) - sa.outer(p, p)) @ dp, because="p is a factor of both terms")
    note = note.say(
        "Therefore the Jacobian of softmax is J = diag(p) - p p^T. It is the covariance matrix of one draw from p, "
        "so it is symmetric and positive semidefinite, and since the weights sum to 1 its rows sum to 0: adding a "
        "constant to all scores changes nothing."
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
