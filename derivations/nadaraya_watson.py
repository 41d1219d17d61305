"""From an average to kernel regression, and from there to attention."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """Equal weights, Gaussian weights as a softmax of distances, and the softmax of products that is left of it."""
    T, S, d, e = sa.sizes("T S d e")
    Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
    h, c = sa.tensor("h", positive=True), sa.tensor("c", positive=True)
    rows = {"axis": -1, "keepdims": True}

    note = sa.Derivation("From averages to attention", given=[Q, K, V, h])
    note = note.say(
        "The keys are S points at which values are known, one row of V for each. A value is wanted at T other points, "
        "the queries. Whatever is known is averaged; the question is with which weights. The simplest are equal, and "
        "give every query the mean of all values."
    )
    note = note.extend(sa.let("F", sa.ones(T, S) / S @ V))
    note = note.then(sa.outer(sa.ones(T), sa.sum(V, axis=0)) / S, because="the sum of all values over S")
    D = sa.let("D", sa.sum((Q[:, None, :] - K[None, :, :]) ** 2, axis=-1))
    E = sa.let("E", sa.exp(-D / (2 * h**2)))
    P = sa.let("P", E / sa.sum(E, **rows))
    A = sa.let("A", (2 * Q @ K.T - sa.sum(K**2, **rows).T) / (2 * h**2))
    note = note.say(
        "This looks neither at the query nor at the keys. Nadaraya and Watson let a key count the more, the closer it "
        "is to the query. D holds the squared distances; multiplied out, they have three terms."
    )
    note = note.extend(D).then(sa.sum(Q**2, **rows) - 2 * Q @ K.T + sa.sum(K**2, **rows).T, because="multiplied out")
    note = note.say(
        "The Gaussian kernel E falls with the distance, at the rate of the bandwidth h, and a division by the sum of "
        "each row makes weights P of it. A quotient of exponentials by their sum is a softmax of the exponents. The "
        "square of the query is the same number for all keys of a row, and softmax does not see what a row has in "
        "common; A is what is left."
    )
    note = note.extend(E, A, P).then(sa.softmax(-D / (2 * h**2)), because="the formula of softmax")
    note = note.then(sa.softmax(A - sa.sum(Q**2, **rows) / (2 * h**2)), because="the three terms")
    note = note.then(sa.softmax(A), because="a shift of each row")
    note = note.say("Row i of the result O is the sum of P[i, j] times row j of V.")
    note = note.extend(sa.let("O", P @ V))
    note = note.say(
        "It is an average again: whatever the scores Z, a softmax is positive and has the sum 1 in each row."
    )
    Z = sa.tensor("Z", T, S)
    note = note.extend(sa.prove(sa.lt(0, sa.softmax(Z))), sa.prove(sa.sum(sa.softmax(Z), axis=-1), sa.ones(T)))
    note = note.say("The square of the key does not cancel. Without it the weights are others.")
    note = note.extend(sa.prove(sa.softmax(-D / (2 * h**2)), sa.softmax(Q @ K.T / h**2)))
    note = note.say(
        "It cancels where all keys have one length, as they have after a normalisation. Then kernel regression, with "
        "the square root of d for the square of h, is scaled dot-product attention."
    )
    one_length = sa.eq(sa.sum(K**2, axis=-1), c * sa.ones(S))
    note = note.extend(
        sa.prove(sa.softmax(-D / (2 * sympy.sqrt(d))), sa.softmax(Q @ K.T / sympy.sqrt(d)), given=[one_length])
    )
    note = note.say(
        "So attention is kernel regression in which queries, keys and values are learned, and the dot product has "
        "taken the place of the distance: a long key is preferred by all queries that point its way."
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
