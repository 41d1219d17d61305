"""Attention under a mask: two spellings of it, what it does to weights and gradients, and rows without keys."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
M, A, c = sa.tensor("M", T, S, binary=True), sa.tensor("A", T, S), sa.tensor("c", positive=True)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
B = sa.let("B", sa.where(M, 0, -sympy.oo))
P = sa.let("P", sa.softmax(Z, where=M))
O = sa.let("O", P @ V)
g = sa.gradient(O, [Q, K, V])


def derivation() -> sa.Derivation:
    """The additive and the boolean mask are one; a masked key has weight zero, and gradient zero."""
    note = sa.Derivation(
        "Attention under a mask",
        given={
            Q: "queries", K: "keys", V: "values", M: "1 where a query may see a key", A: "any scores",
            c: "a large number",
        },
        summary="A mask hides keys from queries. It is written as 0 and 1, or as numbers added to the scores; both are "
        "the same, and the backward pass needs no mask of its own.",
        result=[
            r"Under a mask $M$, a hidden key has the weight 0 and its score the gradient 0. Adding $B$, which is 0 "
            r"where $M$ is 1 and $-\infty$ elsewhere, gives the same weights. A large negative number in place of "
            r"$-\infty$ does not.",
        ],
        references=["Vaswani et al., Attention is all you need, 2017, section 3.2.3."],
    )  # fmt: skip
    return numbers_as_masks(empty_rows(backward(forward(note.figure(*patterns())))))


def patterns() -> tuple[object, str]:
    """Two masks in use."""
    n = sa.sizes("n")
    masks = {"causal": sa.attention.causal_mask(n), "window": sa.attention.sliding_window_mask(n, left=2, right=0)}
    return sa.plot.mask(masks, {n: 8}), "Which keys each query may see: those up to its own place, or the last three."


def forward(note: sa.Derivation) -> sa.Derivation:
    """Weights of the keys that are left."""
    note = note.section("Weights").say(
        "Under a mask, softmax is that of the scores of the keys that are left; the others have the weight 0. Many "
        "programs add a matrix $B$ to the scores instead."
    )
    note = note.extend(Z, B, because={"Z": "scores", "B": "the mask as numbers to add"})
    note = note.extend(P, because="over the keys that are left")
    note = note.then(sa.softmax(Z + B), because=r"$\mathrm{e}^{-\infty} = 0$, above and in the sum")
    note = note.then(M * P, because="hidden keys have the weight 0").extend(O, because="output")
    return note.claim(
        sa.prove(sa.softmax(sa.where(M, Z, A), where=M), P),
        title="Scores of hidden keys do not matter",
        because="They are in no sum, and may be replaced by anything.",
    )


def backward(note: sa.Derivation) -> sa.Derivation:
    """The same formulas."""
    note = note.section("Backward").say(
        "The backward pass is that of attention without a mask, formula by formula. The mask is in $P$ and comes along "
        "wherever $P$ is a factor."
    )
    note = note.extend(g["dV"], g["dP"], because="product rule on $O = P V$")
    note = note.extend(g["dZ"], because="softmax, row by row").extend(g["dQ"], g["dK"], because="product rule")
    return note.claim(
        sa.prove(M * g["dZ"], g["dZ"]),
        title="No gradient reaches the score of a hidden key",
        because=r"$P$ is a factor of $\mathrm{d}Z$. A key that no query sees, as in padding, has a column of zeros in "
        r"both, so its rows of $\mathrm{d}K$ and $\mathrm{d}V$ are 0.",
    )


def empty_rows(note: sa.Derivation) -> sa.Derivation:
    """Queries that see no key."""
    N = sa.let("N", M & ~M)
    note = note.section("Queries that see no key").say(
        "Where no key is left, a row is a quotient of zeros and needs a convention. Here it is a row of zeros, so that "
        "the query takes nothing from the values. Let $N$ be the mask that hides everything."
    )
    note = note.extend(N, because="hides all keys").extend(sa.let("P'", sa.softmax(Z, where=N)))
    return note.then(sa.zeros(T, S), because="no key is left")


def numbers_as_masks(note: sa.Derivation) -> sa.Derivation:
    """A number in place of infinity."""
    some = sa.le(1, sa.sum(M, axis=-1))
    note = note.section("A number in place of infinity")
    note = note.claim(
        sa.prove(sa.softmax(Z - c * (1 - M)), P, given=[some]),
        title=r"A large number $c$ hides keys as well",
        holds="a hidden key keeps some weight, which falls with $c$ and is soon too small for floating point.",
    )
    note = note.say(
        "Where no key is left, $c$ is taken from all scores of the row alike, and the query attends to all keys that "
        "are hidden from it, as if there were no mask."
    )
    return note.extend(sa.eq(sa.softmax(Z - c), sa.softmax(Z)), because="a shift of each row")


if __name__ == "__main__":
    print(derivation().text())
