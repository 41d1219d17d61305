"""What may be changed in queries, keys and values without any effect, and what may not."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e, n, f = sa.sizes("T S d e n f")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
R, M = sa.tensor("R", d, d, orthogonal=True), sa.tensor("M", d, d, invertible=True)
N, W_o = sa.tensor("N", e, e, invertible=True), sa.tensor("W_o", e, f)
c, b = sa.tensor("c", d), sa.tensor("b", e)
X, W_q, W_k = sa.tensor("X", T, n), sa.tensor("W_q", n, d), sa.tensor("W_k", n, d)
ROOT = sympy.sqrt(d)
Z = sa.let("Z", Q @ K.T / ROOT)
P = sa.let("P", sa.softmax(Z))
O = sa.let("O", P @ V)
DUAL = sa.inv(M).T


def derivation() -> sa.Derivation:
    """Changes of basis, translations, and the false claims next to them."""
    note = sa.Derivation(
        "What attention does not notice",
        given={
            Q: "queries", K: "keys", V: "values", R: "a rotation or reflection", M: "a change of basis of queries",
            N: "a change of basis of values", c: "a translation of keys", b: "a translation of values",
            W_o: "output projection", X: "tokens", W_q: "weights of queries", W_k: "weights of keys",
        },
        summary="Queries and keys may be turned together, or changed by any invertible matrix and its inverse; keys "
        "may be translated. The weights stay the same, so trained parameters are never unique.",
        result=[
            "For every invertible $M$ and every $c$, the weights of attention are unchanged by",
            sa.prove(sa.softmax(Q @ M @ (K @ DUAL + c).T / ROOT), P),
            "which includes rotations, whose inverse is their transpose. Queries may not be translated.",
        ],
        references=["Elhage et al., A mathematical framework for transformer circuits, 2021 (QK and OV circuits)."],
    )  # fmt: skip
    note = (
        note.section("Attention").extend(Z, because="scores").extend(P, because="weights").extend(O, because="output")
    )
    return values(translations(bases(note)))


def bases(note: sa.Derivation) -> sa.Derivation:
    """Rotations, and then any invertible matrix."""
    note = note.section("Changes of basis").say("Scores are inner products, and a rotation of both sides keeps these.")
    note = note.extend(sa.eq(Q @ R @ (K @ R).T, Q @ R @ R.T @ K.T), because=r"$(K R)^{\top} = R^{\top} K^{\top}$")
    note = note.then(Q @ K.T, because=r"$R R^{\top} = I$")
    note = note.say("More generally, what is done to queries can be undone in the keys.")
    note = note.extend(sa.eq(Q @ M @ (K @ DUAL).T, Q @ M @ sa.inv(M) @ K.T), because="the transpose of a product")
    note = note.then(Q @ K.T, because="$M M^{-1} = I$")
    note = note.say(
        "With projections in front, it is the weights that change: only the product of the two enters, of rank at most "
        "$d$. Beyond this product, $d^2$ directions in the space of weights have no effect."
    )
    moved = (X @ (W_q @ M)) @ (X @ (W_k @ DUAL)).T
    note = note.extend(sa.eq(moved, X @ W_q @ W_k.T @ X.T), because="only the product enters")
    return note.claim(
        sa.prove(Q @ M @ (K @ M).T, Q @ K.T),
        title="Queries and keys may be multiplied by the same matrix",
        holds=r"by a rotation only. In general the keys need the inverse transposed, $(M^{-1})^{\top}$.",
    )


def translations(note: sa.Derivation) -> sa.Derivation:
    """Of keys, and of queries."""
    added = sa.outer(Q @ c, sa.ones(S)) / ROOT
    note = note.section("Translations").say(
        "A vector that is added to all keys adds the same number to all scores of a query, and softmax takes it off."
    )
    note = note.extend(sa.let("A", sa.softmax(Q @ (K + c).T / ROOT)), because="keys translated")
    note = note.then(sa.softmax(Z + added), because="a query multiplies key and translation")
    note = note.then(P, because="a shift of each row")
    return note.claim(
        sa.prove(sa.softmax((Q + c) @ K.T / ROOT), P),
        title="Queries may be translated likewise",
        holds="a translation of queries adds a term of each key, which prefers some keys for all queries alike. So a "
        "bias of the queries matters, and one of the keys does not.",
    )


def values(note: sa.Derivation) -> sa.Derivation:
    """The same on the way out."""
    note = note.section("Values").say(
        "Weights sum to 1, so values that are translated translate the output; a change of their basis is undone by "
        "the output projection."
    )
    note = note.extend(sa.eq(P @ (V + b), O + P @ sa.outer(sa.ones(S), b)), because="the product is linear")
    note = note.then(O + b, because=r"$P \mathbf{1} = \mathbf{1}$")
    note = note.extend(sa.eq(P @ (V @ N) @ (sa.inv(N) @ W_o), P @ V @ W_o), because="$N N^{-1} = I$")
    note = note.then(O @ W_o, because="$O = P V$")
    return note.say(
        "All this holds for the function that is computed. Training is another matter: gradients, weight decay and "
        "rounding do notice how it is written."
    )


if __name__ == "__main__":
    print(derivation().text())
