"""Softmax does not change when a number is added to all scores, and what that is good for."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """The invariance, the safe evaluation that follows from it, and what a scale does instead."""
    z, c = sa.tensor("z", "n"), sa.tensor("c")
    Z, Q, K, b = sa.tensor("Z", "T S"), sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("b", "d")
    m = sa.let("m", sa.max(z))

    note = sa.Derivation("Softmax and shifts", given=[z, c, Z, Q, K, b])
    note = note.say("Let p be the softmax of scores to all of which the same number c is added.")
    note = note.extend(sa.let("p", sa.softmax(z + c)))
    note = note.then(sa.exp(z + c) / sa.sum(sa.exp(z + c)), because="the formula of softmax")
    note = note.then(sa.exp(z) * sa.exp(c) / sa.sum(sa.exp(z) * sa.exp(c)), because="exp of a sum is a product")
    note = note.then(sa.exp(z) * sa.exp(c) / (sa.exp(c) * sa.sum(sa.exp(z))), because="exp(c) is common to all terms")
    note = note.then(sa.exp(z) / sa.sum(sa.exp(z)), because="it cancels, since it is positive")
    note = note.then(sa.softmax(z), because="the formula of softmax")
    note = note.say(
        "So c can be chosen freely. With c = -m, where m is the largest score, every exponent is at most 0 and one of "
        "them is 0: nothing overflows, and the denominator is at least 1. This is how softmax is computed."
    )
    note = note.extend(m, sa.let("q", sa.softmax(z)))
    note = note.then(sa.softmax(z - m), because="a shift by -m")
    note = note.then(sa.exp(z - m) / sa.sum(sa.exp(z - m)), because="the formula of softmax")
    note = note.say("The logarithm of the denominator moves with the shift, and is computed in the same way.")
    note = note.extend(sa.let("l", sa.logsumexp(z + c)))
    note = note.then(sa.logsumexp(z) + c, because="log of a product is a sum")
    note = note.extend(sa.let("r", sa.logsumexp(z)))
    note = note.then(sa.log(sa.sum(sa.exp(z - m))) + m, because="a shift by -m, and back")
    note = note.say(
        "In attention, each row of scores may be shifted by a number of its own. Adding one vector b to all keys is "
        "such a shift, by the product of the query and b; so a bias of the keys has no effect."
    )
    note = note.extend(sa.prove(sa.softmax(Q @ (K + b).T), sa.softmax(Q @ K.T)))
    note = note.say("A factor is no shift: it makes the weights sharper or flatter. Temperature therefore matters.")
    note = note.extend(sa.prove(sa.softmax(2 * Z), sa.softmax(Z)))
    return note


if __name__ == "__main__":
    print(derivation().text())
