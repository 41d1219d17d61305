"""From an average to kernel regression, and from there to attention."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
h, c, Z = sa.tensor("h", positive=True), sa.tensor("c", positive=True), sa.tensor("Z", T, S)
ROWS = {"axis": -1, "keepdims": True}
D = sa.let("D", sa.sum((Q[:, None, :] - K[None, :, :]) ** 2, axis=-1))
E = sa.let("E", sa.exp(-D / (2 * h**2)))
A = sa.let("A", (2 * Q @ K.T - sa.sum(K**2, **ROWS).T) / (2 * h**2))
P = sa.let("P", E / sa.sum(E, **ROWS))
O = sa.let("O", P @ V)


def derivation() -> sa.Derivation:
    """Equal weights, Gaussian weights as a softmax of distances, and the softmax of products that is left of it."""
    note = sa.Derivation(
        "From kernel regression to attention",
        given={
            Q: "points at which a value is wanted: the queries", K: "points at which it is known: the keys",
            V: "the known values, one a row", h: "bandwidth", Z: "any scores", c: "a squared length",
        },
        summary="Nadaraya and Watson estimate a function by averages of known values, weighted by distance. With a "
        "Gaussian kernel that is a softmax, and where all keys have one length it is scaled dot-product attention.",
        result=[
            "Write $D$ for the squared distances of queries and keys. The weights of Gaussian kernel regression are",
            sa.prove(P, sa.softmax(-D / (2 * h**2))),
            r"and if all keys have one length, and $h^2 = \sqrt{d}$, they are "
            r"$\operatorname{softmax}(Q K^{\top} / \sqrt{d})$.",
        ],
        references=[
            "Nadaraya, On estimating regression, 1964.",
            "Watson, Smooth regression analysis, 1964.",
            "Zhang et al., Dive into Deep Learning, 2023, section 11.2.",
        ],
        letters="t",
    )  # fmt: skip
    return attention(kernel(average(note)))


def average(note: sa.Derivation) -> sa.Derivation:
    """All weights the same."""
    note = note.section("A plain average").say(
        "Whatever is known is averaged; the question is with which weights. Equal ones give every query the same value."
    )
    note = note.extend(sa.let("F", sa.ones(T, S) / S @ V), because=r"each weight is $1 / S$")
    return note.then(sa.outer(sa.ones(T), sa.sum(V, axis=0)) / S, because="every row is the mean of all values")


def kernel(note: sa.Derivation) -> sa.Derivation:
    """Weights that fall with the distance."""
    note = note.section("Weights by distance").say(
        "That looks neither at the query nor at the keys. Let a key count the more, the closer it is to the query: "
        r"$D_{ij}$ is the squared distance of query $i$ and key $j$."
    )
    note = note.extend(D, because="squared distances")
    note = note.then(sa.sum(Q**2, **ROWS) - 2 * Q @ K.T + sa.sum(K**2, **ROWS).T, because="multiplied out")
    note = note.say(
        "The Gaussian kernel falls with the distance, the faster the smaller the bandwidth, and a division by the sum "
        "of each row makes weights of it. A quotient of exponentials by their sum is a softmax of the exponents."
    )
    note = note.extend(E, because="Gaussian kernel").extend(P, because="weights")
    note = note.then(sa.softmax(-D / (2 * h**2)), because="definition of softmax")
    note = note.say(
        "The squared length of a query is the same number for all keys of its row, and softmax does not see what a row "
        "has in common. What is left of the exponents is $A$."
    )
    note = note.extend(A, because="scores of inner products")
    note = note.extend(sa.eq(P, sa.softmax(A - sa.sum(Q**2, **ROWS) / (2 * h**2))), because="the three terms of $D$")
    note = note.then(sa.softmax(A), because="a shift of each row")
    note = note.extend(O, because="the estimate").figure(*fit()).say("It is an average again, as for any scores $Z$.")
    note = note.claim(sa.prove(sa.lt(0, sa.softmax(Z))), title="Weights of softmax are positive")
    note = note.claim(sa.prove(sa.sum(sa.softmax(Z), axis=-1), sa.ones(T)), title="They sum to 1 in each row")
    total = sa.sum(E, **ROWS)
    return note.claim(
        sa.prove(total / total * sa.ones(T, S), P),
        title="A weight has the sum over all keys above and below",
        holds="above stands the kernel of one key. With the sum in its place, each weight is 1 and they sum to $S$.",
    )


def fit() -> tuple[object, str]:
    """Fifty points around a curve, and what averages with each bandwidth make of them."""
    t = sympy.Symbol("t", positive=True)
    curve = 2 * sympy.sin(t) + t ** sympy.Rational(4, 5)
    points = [k / 10 for k in range(50)]
    figure = sa.plot.kernel_regression(points, truth=curve, noise=0.5, bandwidths=[sympy.oo, 1, 0.3])
    return figure, (
        r"Fifty noisy values of $2 \sin t + t^{4/5}$, a curve that is real for $t \geq 0$ only. A wide kernel averages "
        "everything, a narrow one follows the noise."
    )


def attention(note: sa.Derivation) -> sa.Derivation:
    """What the lengths of the keys do, and what is left without them."""
    root = sympy.sqrt(d)
    one_length = sa.eq(sa.sum(K**2, axis=-1), c * sa.ones(S))
    equal_lengths = sa.prove(sa.softmax(-D / (2 * root)), sa.softmax(Q @ K.T / root), given=[one_length])
    note = note.section("From distances to products").say(
        "The squared length of a key differs from key to key, so it does not cancel as that of the query did."
    )
    note = note.claim(
        sa.prove(sa.softmax(-D / (2 * h**2)), sa.softmax(Q @ K.T / h**2)),
        title="Distances and products give the same weights",
        holds="the product prefers long keys, the distance does not. The two agree where all keys have one length, as "
        "they have after a normalisation.",
    )
    note = note.claim(
        equal_lengths,
        title="With keys of one length, kernel regression is attention",
        because=r"The bandwidth is then $h^2 = \sqrt{d}$, and the squared lengths shift all scores of a row alike.",
    )
    return note.say(
        "So attention is kernel regression in which queries, keys and values are learned, and the dot product has "
        "taken the place of the distance."
    )


if __name__ == "__main__":
    print(derivation().text())
