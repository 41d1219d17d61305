"""Softmax does not change when a number is added to all scores, and what that is good for."""

from __future__ import annotations

import symattn as sa

z, c = sa.tensor("z", "n"), sa.tensor("c")
Z, Q, K, b = sa.tensor("Z", "T S"), sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("b", "d")


def derivation() -> sa.Derivation:
    """The invariance, the safe evaluation that follows from it, and what a scale does instead."""
    note = sa.Derivation(
        "Softmax and shifts",
        given={z: "scores of one row", c: "a number", Q: "queries", K: "keys", b: "a bias of the keys", Z: "scores"},
        summary="Only differences of scores count. This makes softmax safe to compute, and a bias of all keys useless; "
        "a factor, though, is no shift.",
        result=[
            "A number that is added to all scores of a row does not change the weights, and moves the logarithm of "
            "their denominator:",
            sa.prove(sa.softmax(z + c), sa.softmax(z)),
            sa.prove(sa.logsumexp(z + c), sa.logsumexp(z) + c),
        ],
        references=["Goodfellow, Bengio and Courville, Deep Learning, 2016, section 4.1."],
        letters="x y",
    )
    return in_attention(safe(shift(note)))


def shift(note: sa.Derivation) -> sa.Derivation:
    """The factor that cancels."""
    factor = sa.exp(c)
    note = note.section("A shift cancels").say("Let all scores be shifted by $c$ before softmax.")
    note = note.extend(sa.let("p", sa.softmax(z + c)))
    note = note.then(sa.exp(z + c) / sa.sum(sa.exp(z + c)), because="definition of softmax")
    note = note.then(
        sa.exp(z) * factor / sa.sum(sa.exp(z) * factor),
        because=r"$\mathrm{e}^{x + y} = \mathrm{e}^{x}\, \mathrm{e}^{y}$",
    )
    note = note.then(sa.exp(z) / sa.sum(sa.exp(z)), because=r"$\mathrm{e}^{c} > 0$ is common to all terms")
    note = note.then(sa.softmax(z), because="definition of softmax")
    note = note.say("The logarithm of the denominator moves with the shift, since that factor is what it takes out.")
    note = note.extend(sa.let("ell", sa.logsumexp(z + c)))
    note = note.then(sa.log(factor * sa.sum(sa.exp(z))), because=r"$\mathrm{e}^{c}$ is common to all terms")
    return note.then(sa.logsumexp(z) + c, because=r"$\log(x y) = \log x + \log y$")


def safe(note: sa.Derivation) -> sa.Derivation:
    """The largest score as the shift."""
    m = sa.let("m", sa.max(z))
    note = note.section("How softmax is computed").say(
        "The shift is free, so let it be the negative of the largest score. No exponent is above 0, and one of them "
        "is 0: nothing overflows, and the denominator is at least 1."
    )
    note = note.extend(m, because="the largest score")
    note = note.extend(sa.let("q", sa.softmax(z))).then(sa.softmax(z - m), because="the shift $c = -m$")
    note = note.then(sa.exp(z - m) / sa.sum(sa.exp(z - m)), because="definition of softmax")
    note = note.extend(sa.let("r", sa.logsumexp(z)))
    note = note.then(sa.log(sa.sum(sa.exp(z - m))) + m, because="shifted by $-m$, and back")
    return note.claim(sa.prove(sa.le(sa.exp(z - m), 1)), title="Nothing overflows", because="The largest score is $m$.")


def in_attention(note: sa.Derivation) -> sa.Derivation:
    """A bias of the keys, and a factor."""
    note = note.section("In attention").say("Each row of scores may be shifted by a number of its own.")
    proof = [
        (sa.softmax(Q @ K.T + (Q @ b)[:, None]), "a query multiplies key and bias"),
        (sa.softmax(Q @ K.T), "a shift of each row, by its query times $b$"),
    ]
    note = note.claim(
        sa.prove(sa.softmax(Q @ (K + b).T), sa.softmax(Q @ K.T)),
        title="A bias of the keys has no effect",
        because="It adds the same number to all scores of a query.",
        proof=proof,
    )
    P = sa.let("P", sa.softmax(Z))
    squared = sa.prove(sa.softmax(2 * Z), P**2 / sa.sum(P**2, axis=-1, keepdims=True))
    note = note.extend(P, because="weights")
    return note.claim(
        sa.prove(sa.softmax(2 * Z), sa.softmax(Z)),
        title="A factor has no effect either",
        holds=["a factor 2 squares the weights and normalises them again, which makes them sharper:", squared],
    )


if __name__ == "__main__":
    print(derivation().text())
