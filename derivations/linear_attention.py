"""Linear attention: without softmax the products may be taken in the other order; forward and backward."""

from __future__ import annotations

import symattn as sa

T, S, r, e = sa.sizes("T S r e")
F, G = sa.tensor("F", T, r, positive=True), sa.tensor("G", S, r, positive=True)
V, Z = sa.tensor("V", S, e), sa.tensor("Z", T, S)
A = sa.let("A", F @ G.T)
l = sa.let("l", sa.sum(A, axis=1))
H = sa.let("H", G.T @ V)
z = sa.let("z", sa.sum(G, axis=0))
N = sa.let("N", F @ H)
y = sa.let("y", F @ z)
O = sa.let("O", N / y[:, None])
g = sa.gradient(O, [F, G, V])
dO = g.cotangent


def derivation() -> sa.Derivation:
    """Weights first or state first; the gradients; why softmax has no such form."""
    note = sa.Derivation(
        "Linear attention",
        given={F: "features of the queries", G: "features of the keys", V: "values", Z: "scores"},
        summary="Where weights are products of positive features, keys and values can be contracted before a query is "
        "seen. Time and memory are then linear in the number of tokens.",
        result=[
            "The keys and values enter through a state whose size does not depend on their number,",
            H,
            z,
            sa.eq(O, (F @ H) / (F @ z)[:, None]),
            r"and this is attention with the weights $A_{ij} / \sum_j A_{ij}$, where $A = F G^{\top}$.",
        ],
        references=["Katharopoulos et al., Transformers are RNNs, 2020, equations 4 to 7."],
        letters="i j x",
    )
    return softmax(backward(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Two orders of the same product."""
    W = sa.let("W", A / l[:, None] @ V)
    note = note.section("Forward, in two orders").say(
        r"Features are positive, for instance $\operatorname{elu}(x) + 1$ of each entry, so that the products are "
        "positive and can be divided by their sum."
    )
    note = note.extend(A, because=r"products of features, $T \times S$").extend(l, because="sum of each row")
    note = note.extend(W, because="weights first: $T S (r + e)$ multiplications")
    note = note.say("The product is associative, so keys and values may go first.")
    note = note.extend(H, because=r"state, $r \times e$").extend(z, because="sum of the features of keys")
    note = note.extend(N, because="numerator: $(T + S) r e$ multiplications").extend(y, because="denominator")
    note = note.extend(O, because="output")
    note = note.then((F @ G.T @ V) / (F @ G.T @ sa.ones(S))[:, None], because="definitions of $H$ and $z$")
    return note.then(W, because="definition of $A$")


def backward(note: sa.Derivation) -> sa.Derivation:
    """The gradients, through the state."""
    note = note.section("Backward").say(
        "The output is a quotient: the numerator gets the gradient divided by the denominator, the denominator minus "
        "the product of output and gradient, row by row, divided likewise."
    )
    note = note.extend(g["dN"], because="quotient rule")
    note = note.extend(sa.eq(g["dy"], -sa.sum(dO * O, axis=1) / y), because="quotient rule, as $O = N / y$")
    note = note.say(
        "What all queries send back to the state is of the size of the state: no matrix of all pairs occurs."
    )
    note = note.extend(g["dH"], g["dz"], because="product rule, summed over the queries")
    note = note.extend(g["dF"], because="numerator and denominator read the features")
    note = note.extend(g["dV"], because=r"product rule on $H = G^{\top} V$")
    return note.extend(g["dG"], because="$H$ and $z$ both read the features")


def softmax(note: sa.Derivation) -> sa.Derivation:
    """What is lost."""
    note = note.section("What softmax has instead")
    one = sa.softmax(Z) @ V
    return note.claim(
        sa.prove(one, (Z @ V) / sa.sum(Z, axis=1, keepdims=True)),
        title="Scores divided by their sum are the same weights",
        holds="softmax weights are exponentials of the scores, which are no finite sum of products of features of "
        "query and key. Linear attention is another attention and not a faster way to compute the same.",
    )


if __name__ == "__main__":
    print(derivation().text())
