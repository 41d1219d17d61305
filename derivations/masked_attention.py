"""Attention under a mask: two spellings of it, what it does to weights and gradients, and rows without keys."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """The additive and the boolean mask are one; a masked key has weight zero, and gradient zero."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    M, A = sa.tensor("M", T, S, binary=True), sa.tensor("A", T, S)
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    B = sa.let("B", sa.where(M, 0, -sympy.oo))
    P = sa.let("P", sa.softmax(Z, where=M))
    O = sa.let("O", P @ V)

    note = sa.Derivation("Attention under a mask", given=[Q, K, V, M])
    note = note.say(
        "The mask M is 1 where a query may attend to a key, else 0. Under it, the softmax is that of the scores of the "
        "keys that are left, and the others have the weight 0. Many programs add a matrix B to the scores instead, "
        "which is 0 where M is 1 and minus infinity elsewhere. This is the same: a key whose exponential is 0 has no "
        "part in the numerator or in the sum."
    )
    note = note.extend(Z, B, P).then(sa.softmax(Z + B), because="exponentials of minus infinity are 0")
    note = note.then(M * P, because="masked keys have the weight 0")
    note = note.say("What the scores of masked keys are does not matter: they may be replaced by any numbers A.")
    note = note.extend(sa.prove(sa.softmax(sa.where(M, Z, A), where=M), P))

    g = sa.gradient(O, [Q, K, V])
    note = note.say(
        "The backward pass is that of attention without a mask, with the same formulas. The mask is in P, and comes "
        "with it wherever P is a factor."
    )
    note = note.extend(O, g)
    note = note.say("So no gradient reaches the score of a masked key:")
    note = note.extend(sa.prove(M * g["dZ"], g["dZ"]))
    note = note.say(
        "A key that no query sees, as in padding, has a column of zeros in P and in dZ. Its row of dK, and the row of "
        "dV of its value, are therefore zero."
    )
    note = note.say(
        "There may be queries that see no key. Their row is a quotient of zeros, and needs a convention. Here it is a "
        "row of zeros, so that the query takes nothing from the values; N is the mask that lets nothing through."
    )
    N = sa.let("N", M & ~M)
    note = note.extend(N, sa.let("R", sa.softmax(Z, where=N))).then(sa.zeros(T, S), because="no key is left")
    c = sa.tensor("c", positive=True)
    note = note.say(
        "A number c in place of infinity, however large, is no mask. A hidden key keeps some weight, which is soon "
        "too small to be seen in floating point, also where some key is left:"
    )
    note = note.extend(sa.prove(sa.softmax(Z - c * (1 - M)), P, given=[sa.le(1, sa.sum(M, axis=-1))]))
    note = note.say(
        "But where no key is left, c is taken from all scores of the row alike, and the query attends to the keys that "
        "are hidden from it as if there were no mask."
    )
    note = note.extend(sa.let("L", sa.softmax(Z - c))).then(sa.softmax(Z), because="a shift of each row")
    return note


if __name__ == "__main__":
    print(derivation().text())
