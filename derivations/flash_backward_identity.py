"""The row sums of the backward pass of attention, from its output alone."""

from __future__ import annotations

import symattn as sa


def derivation() -> sa.Derivation:
    """rowsum(P * dP) = rowsum(dO * O), and what it saves."""
    Z, V = sa.tensor("Z", "T S"), sa.tensor("V", "S e")
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    g = sa.gradient(O, [V, P])
    dO, dP = g.cotangent, g[P]

    note = sa.Derivation("The row sums of the backward pass", given=[Z, V, dO])
    note = note.say("Weights P are made of scores Z by a softmax over each row, and average the values V.")
    note = note.extend(P, O)
    note = note.say("Write dX for the gradient of a loss by X. That of O is given, and the product hands it on.")
    note = note.extend(g)
    note = note.say(
        "Softmax takes, from the cotangents of a row of weights, their average D under these weights. This is a sum "
        "over all S keys, of two arrays of shape (T, S): a kernel that visits the keys block by block would need it "
        "before it has seen them all. But the sum over the keys can be done before that over the features, and then "
        "it is the one that makes the output."
    )
    D = sa.let("D", sa.sum(P * dP, -1, keepdims=True))
    note = note.extend(D)
    note = note.then(sa.sum(P * (dO @ V.T), -1, keepdims=True), because="by definition of dP")
    note = note.then(sa.sum(dO * (P @ V), -1, keepdims=True), because="a double sum, taken over the keys first")
    note = note.then(sa.sum(dO * O, -1, keepdims=True), because="by definition of O")
    note = note.say(
        "So D needs only dO and O, of shape (T, e). It is computed once, before the pass over the blocks, and stands "
        "for the row sum in the gradient by the scores."
    )
    note = note.extend(sa.gradient({P: dP}, Z))
    note = note.then(P * (dP - D), because="by definition of D")
    note = note.then(P * (dP - sa.sum(dO * O, -1, keepdims=True)), because="the identity above")
    return note


if __name__ == "__main__":
    print(derivation().text())
