"""The row sums of the backward pass of attention, from its output alone."""

from __future__ import annotations

import symattn as sa

T, S, e = sa.sizes("T S e")
Z, V = sa.tensor("Z", T, S), sa.tensor("V", S, e)
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
g = sa.gradient(O, [V, P, Z])
dO, dP = g.cotangent, g["dP"]
delta = sa.let("delta", sa.sum(dO * O, axis=1))


def derivation() -> sa.Derivation:
    """rowsum(P * dP) = rowsum(dO * O), and what it saves."""
    note = sa.Derivation(
        "The row sums of the backward pass",
        given={Z: "scores", V: "values"},
        summary="Backwards, softmax needs an average over all keys. It can be had from the output and its gradient, "
        "which is what lets FlashAttention run the backward pass in blocks.",
        result=[
            r"The average that softmax takes off, a sum over all $S$ keys, is a sum over the $e$ features of the "
            r"output: $(P \odot \mathrm{d}P) \mathbf{1} = (\mathrm{d}O \odot O) \mathbf{1} = \delta$. So",
            sa.eq(g["dZ"], P * (dP - delta[:, None])),
            r"and each block of $\mathrm{d}Z$ needs only its own block of $P$ and $\mathrm{d}P$.",
        ],
        references=["Dao et al., FlashAttention, 2022, appendix B.2, equation 4."],
        letters="i j",
    )
    return numbers(saving(identity(backward(note))))


def backward(note: sa.Derivation) -> sa.Derivation:
    """Attention from its scores on, and back to them."""
    note = note.section("Forward and backward").extend(P, O, because={"P": "weights", "O": "averages of the values"})
    note = note.say("The gradient of the output is given, and the product hands it on.")
    note = note.extend(g["dV"], dP, because="product rule on $O = P V$").say(
        "Softmax takes off each row its average under the weights. This is a sum over all keys, of a matrix of shape "
        r"$T \times S$: a program that visits the keys block by block would need it before it has seen them all."
    )
    return note.extend(g["dZ"], because="softmax, row by row")


def identity(note: sa.Derivation) -> sa.Derivation:
    """A double sum in the other order."""
    note = note.section("The identity").say(
        r"Entry $i$ of the average is the double sum of $P_{i j} V_{j l} \mathrm{d}O_{i l}$ over the keys $j$ and the "
        "features $l$. Over the features first, it is the average of the gradients; over the keys first, it is the "
        "sum that has made the output."
    )
    note = note.extend(delta, because=r"one number for each query, $\delta \in \mathbb{R}^{T}$")
    note = note.then(sa.sum(dO * (P @ V), axis=1), because="$O = P V$")
    note = note.then(sa.sum(P * (dO @ V.T), axis=1), because="the double sum, features first")
    return note.then(sa.sum(P * dP, axis=1), because=r"$\mathrm{d}P = \mathrm{d}O\, V^{\top}$")


def saving(note: sa.Derivation) -> sa.Derivation:
    """What it is good for."""
    note = note.section("What it saves").say(
        r"So $\delta$ is computed once, before the blocks are visited, from two matrices of shape $T \times e$. It "
        "takes the place of the row sums."
    )
    note = note.extend(sa.eq(g["dZ"], P * (dP - delta[:, None])), because="the identity")
    return note.say(
        r"With queries and keys in front of it, this is the backward pass of attention. Its blocks of $P$ are made "
        "again from the scores and one logsumexp a row, so that no $T \\times S$ matrix is ever stored."
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Two queries, three keys."""
    note = note.section("In numbers").say("Two queries, three keys; entries to three digits.")
    values = {Z: [[1, 0, 0], [0, 1, 0]], V: [[1, 0], [0, 1], [2, 2]], dO: [[1, 0], [0, 1]]}
    return note.example(values, show=[P, O, dP, delta, g["dZ"]])


if __name__ == "__main__":
    print(derivation().text())
