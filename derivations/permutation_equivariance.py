"""What attention does when rows are permuted: what holds, and what does not."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """Query rows, key-value pairs and self-attention; then three false claims with their counterexamples."""
    T, S, d, e, n = sa.sizes("T S d e n")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    R, C = sa.tensor("R", T, T, permutation=True), sa.tensor("C", S, S, permutation=True)
    note = sa.Derivation("Attention and permutations", given=[Q, K, V, R, C])

    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    O = sa.let("O", P @ V)
    note = note.say(
        "A permutation matrix has a single 1 in every row and column, so its transpose is its inverse. From the left "
        "it reorders rows, from the right columns. Attention compares T queries with S keys."
    )
    note = note.extend(Z, P, O)

    Z2 = sa.let("Z'", R @ Q @ (C @ K).T / sympy.sqrt(d))
    P2 = sa.let("P'", sa.softmax(Z2))
    O2 = sa.let("O'", P2 @ (C @ V))
    note = note.say(
        "Let R reorder the queries, and let C reorder the keys and, likewise, their values. Every score is still the "
        "product of one query and one key, so the scores are the same numbers in other places."
    )
    note = note.extend(Z2).then(R @ Z @ C.T, because="the transpose of a product")
    note = note.say("Softmax treats all rows alike, and within a row all columns alike.")
    note = note.extend(P2).then(sa.softmax(R @ Z @ C.T), because="the scores above")
    note = note.then(R @ P @ C.T, because="softmax commutes with R and C")
    note = note.say("In the product with the values, the sum over the keys does not depend on their order.")
    note = note.extend(O2).then(R @ P @ C.T @ C @ V, because="the weights above")
    note = note.then(R @ P @ V, because="the transpose is the inverse")
    note = note.then(R @ O, because="by definition of O")
    note = note.say(
        "So attention is equivariant in its queries, and invariant in its key-value pairs: they are a set, not a "
        "sequence. In self-attention all three come from one X, whose reordering reorders them alike."
    )

    X, W, Pi = sa.tensor("X", n, d), sa.tensor("W", d, d), sa.tensor("Pi", n, n, permutation=True)
    A = sa.let("A", sa.softmax(X @ W @ X.T))
    A2 = sa.let("A'", sa.softmax(Pi @ X @ W @ (Pi @ X).T))
    Y, Y2 = sa.let("Y", A @ X), sa.let("Y'", A2 @ (Pi @ X))
    note = note.extend(A, Y, A2).then(Pi @ A @ Pi.T, because="as above")
    note = note.extend(Y2).then(Pi @ A @ Pi.T @ Pi @ X, because="the weights above")
    note = note.then(Pi @ A @ X, because="the transpose is the inverse").then(Pi @ Y, because="by definition of Y")

    note = note.say(
        "The values have to move with their keys. If the keys alone are reordered, the result is another one."
    )
    note = note.extend(sa.prove(sa.softmax(Q @ (C @ K).T) @ V, sa.softmax(Q @ K.T) @ V))
    note = note.say(
        "A causal mask gives every row a set of keys of its own, which depends on its place, and ends the equivariance."
    )
    L = sa.let("L", sa.from_index((n, n), lambda i, j: j <= i))
    note = note.extend(
        L, sa.prove(sa.softmax(Pi @ X @ (Pi @ X).T, where=L) @ (Pi @ X), Pi @ sa.softmax(X @ X.T, where=L) @ X)
    )
    note = note.say("So do positions, since they are added to the places and do not move with the rows.")
    E = sa.tensor("E", n, d)
    moved = Pi @ X + E
    note = note.extend(sa.prove(sa.softmax(moved @ moved.T) @ moved, Pi @ sa.softmax((X + E) @ (X + E).T) @ (X + E)))
    return note


if __name__ == "__main__":
    print(derivation().text())
