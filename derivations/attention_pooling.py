"""Attention pooling: an output is an average of the values, and stays among them."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, e = sa.sizes("T S e")
Z, V = sa.tensor("Z", T, S), sa.tensor("V", S, e)
c, t = sa.tensor("c", e), sa.tensor("t", T)
A, M = sa.tensor("A", T, S, positive=True), sa.tensor("M", S, S)
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
low, high = sa.let("a", sa.min(V, axis=0)), sa.let("b", sa.max(V, axis=0))


def derivation() -> sa.Derivation:
    """Weights, bounds, shifts, and what pooling cannot do."""
    note = sa.Derivation(
        "Attention pooling and the convex hull",
        given={
            Z: "scores, of any kind", V: "values, one a row", c: "a shift of all values", t: "a shift of each row",
            A: "any positive numbers", M: "values as wide as there are keys",
        },
        summary="Whatever the scores are, softmax makes weights of an average of them. So an output of attention lies "
        "among the values, and knows nothing of the size of the scores.",
        result=[
            r"Each row of $P = \operatorname{softmax}(Z)$ is positive and sums to 1. So each row of $O = P V$ is a "
            "convex combination of the values: it lies in their convex hull, and each of its entries between the "
            r"smallest and the largest entry of that column of $V$, "
            r"$\mathbf{1} a^{\top} \leq O \leq \mathbf{1} b^{\top}$.",
        ],
        references=["Bahdanau et al., Neural machine translation by jointly learning to align and translate, 2015."],
        letters="i j",
    )  # fmt: skip
    return limits(hull(weights(note)))


def weights(note: sa.Derivation) -> sa.Derivation:
    """Positive, and of sum 1."""
    note = note.section("Weights").extend(P, because="weights").extend(O, because="averages of the values")
    note = note.claim(
        sa.prove(sa.lt(0, P)),
        title="Weights are positive",
        because="Exponentials are. A token gives weight to itself too.",
    )
    return note.claim(
        sa.prove(sa.sum(P, axis=1), sa.ones(T)),
        title="The weights of a row sum to 1",
        because="Each exponential is divided by the sum of them all.",
    )


def hull(note: sa.Derivation) -> sa.Derivation:
    """Between the smallest and the largest value, and with the values when they move."""
    note = note.section("Among the values").say(
        "An average with such weights is no smaller than the smallest and no larger than the largest of what it "
        "averages."
    )
    note = note.extend(low, high, because="of each column")
    note = note.extend(sa.le(sa.outer(sa.ones(T), low), O), because="weights are positive and sum to 1")
    note = note.extend(sa.le(O, sa.outer(sa.ones(T), high)), because="likewise")
    note = note.say(
        "For the same reason the average moves along when all values move by $c$, and has nothing to choose from when "
        "all values are equal."
    )
    note = note.extend(sa.eq(P @ (V + c), O + c), because="weights sum to 1")
    return note.extend(sa.eq(P @ sa.outer(sa.ones(S), c), sa.outer(sa.ones(T), c)), because="the same, of equal values")


def limits(note: sa.Derivation) -> sa.Derivation:
    """Claims that go too far."""
    alone = sa.prove(sa.independent(P, Z, when=lambda out, inp: sympy.Ne(out[1], inp[1])))
    note = note.section("What weights do not say")
    note = note.claim(
        alone,
        title="A weight depends on its own score alone",
        holds="through the sum it depends on all scores of its row, and on those of no other row.",
    )
    note = note.claim(
        sa.prove(sa.softmax(Z + t[:, None]) @ V, O),
        title="Only differences of scores count",
        because="A row of scores $(5, 5)$ gives the weights of $(0, 0)$: weights compare the matches of a row, and "
        "their size is lost.",
    )
    note = note.claim(
        sa.prove(sa.sum(A, axis=1), sa.ones(T)),
        title="Any positive weights make an average",
        holds="positive numbers have to be divided by their sum; weights 0.2, 0.4, 0.2 sum to 0.8, and make 0.8 of "
        "values that are all 1.",
    )
    return note.claim(
        sa.prove(P @ M, P),
        title="Multiplied by the values, the weights are the importance of each token",
        holds="multiplying by the values changes no weight, it averages the values: where all values are 0, so is the "
        "output, whatever the weights are.",
    )


if __name__ == "__main__":
    print(derivation().text())
