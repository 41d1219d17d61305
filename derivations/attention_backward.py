"""The backward pass of scaled dot-product attention."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """From O = softmax(Q K^T / sqrt(d)) V to the gradients of Q, K and V."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    g = sa.gradient(O, [Q, K, V])

    note = sa.Derivation("Backward pass of attention", given=[Q, K, V, g.cotangent])
    note = note.say(
        "Each of T queries is compared with S keys. The scores, scaled by the square root of d, become weights by "
        "a softmax over the keys, and the weights average the values."
    )
    note = note.extend(Z, P, O)
    note = note.say(
        "Let a loss depend on O, and write dX for its gradient by X, always of the shape of X. The backward pass "
        "starts from dO and walks the three definitions from the last to the first. A matrix product hands the "
        "cotangent to each factor, multiplied by the transpose of the other. Softmax acts on each row by itself: "
        "from the cotangents of a row it takes off their average under the weights of that row, then scales by the "
        "weights."
    )
    note = note.extend(g)
    note = note.say(
        "Forward and backward need the same few matrix products, and P is the only large intermediate that the "
        "backward pass reads again."
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
