"""The backward pass of RMSNorm: layer normalisation without the mean, and without one of its terms."""

from __future__ import annotations

import sympy

import symattn as sa

T, d = sa.sizes("T d")
X, gamma = sa.tensor("X", T, d), sa.tensor("gamma", d)
epsilon = sympy.Symbol("epsilon", positive=True)
c = sa.tensor("c", positive=True)
N = sa.attention.rms_norm(X, gamma, eps=epsilon)
r, Xhat = N.intermediates[:2]
g = sa.gradient(N, [gamma, X])
dXhat = g["dXhat"]


def rowmean(x: sa.Tensor) -> sa.Tensor:
    """The mean of each row, as a column."""
    return sa.mean(x, axis=-1, keepdims=True)


def derivation() -> sa.Derivation:
    """Two paths instead of three, and what scaling a row does."""
    note = sa.Derivation(
        "The backward pass of RMSNorm",
        given={
            X: "tokens, one a row",
            gamma: "gain of each feature",
            epsilon: "a small number under the root",
            c: "a factor",
        },
        summary="RMSNorm divides each row by its root mean square. Backwards, a row acts in two ways: by itself, and "
        "through its size.",
        result=[
            r"Let $r$ be the inverse size of each row, $\hat{X} = \operatorname{diag}(r) X$ and $\mathrm{d}\hat{X}$ "
            "its gradient. Then",
            g["dX"],
        ],
        references=["Zhang and Sennrich, Root mean square layer normalization, 2019, equation 4."],
    )
    return scaling(backward(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """The size of each row, and the gain."""
    note = note.section("Forward").say("No mean is taken off, and there is no bias.")
    said = {"r": "inverse root mean square", "Xhat": "rows of one size", "N": "a gain for each feature"}
    return note.extend(r, Xhat, N, because=said)


def backward(note: sa.Derivation) -> sa.Derivation:
    """By itself, and through its size."""
    note = note.section("Backward").say("All tokens share the gain, so its gradient is a sum over the rows.")
    note = note.extend(g["dgamma"], dXhat, because="product with the gain").say(
        "A row acts by itself and through $r$. What the size takes away is the part of the gradient along the row."
    )
    return note.extend(g["dX"], because="by itself, less its part along the row")


def scaling(note: sa.Derivation) -> sa.Derivation:
    """A longer row changes little."""
    along = epsilon * r**2 * sa.sum(Xhat * dXhat, axis=-1, keepdims=True)
    note = note.section("What follows").say(
        r"A row of the gradient is orthogonal to the row itself, but for $\epsilon$."
    )
    note = note.extend(sa.eq(sa.sum(X * g["dX"], axis=-1, keepdims=True), along), because="definition of $r$")
    note = note.claim(
        sa.prove(sized(c * X), sized(X)),
        title=r"Without $\epsilon$, the size of a row does not matter",
        because="It cancels. So a norm cannot move the loss by scaling a row, which is the orthogonality above.",
    )
    return note.claim(
        sa.prove(sized(X), sized(X - rowmean(X))),
        title="RMSNorm is layer normalisation without gain and bias",
        holds="layer normalisation is RMSNorm of the centred rows, so both are one for rows of mean 0.",
    )


def sized(x: sa.Tensor) -> sa.Tensor:
    """Rows divided by their root mean square."""
    return x / sa.sqrt(rowmean(x**2))


if __name__ == "__main__":
    print(derivation().text())
