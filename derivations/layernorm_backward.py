"""The backward pass of layer normalisation, with its three terms."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """From the mean and the deviation of each row to the gradient by the input, and what it says."""
    T, d = sa.sizes("T d")
    X, gamma, beta = sa.tensor("X", T, d), sa.tensor("gamma", d), sa.tensor("beta", d)
    epsilon = sympy.Symbol("epsilon", positive=True)
    N = sa.attention.layer_norm(X, gamma, beta, eps=epsilon)
    C, r, Xhat = N.intermediates[1:4]
    g = sa.gradient(N, [beta, gamma, X])
    dXhat, dC = g["dXhat"], g["dC"]

    def rowmean(x: sa.Tensor) -> sa.Tensor:
        return sa.mean(x, axis=-1, keepdims=True)

    note = sa.Derivation("Backward pass of layer normalisation", given=[X, gamma, beta, epsilon, g.cotangent])
    note = note.say(
        "Each row of X is a token with d features. Its mean is taken off, and what is left, C, is divided by its "
        "standard deviation: r is the inverse of that, with a small epsilon added to the variance. Then each feature "
        "has a gain and a bias of its own."
    )
    note = note.extend(*N.intermediates)
    note = note.say(
        "Let a loss depend on N, and write dX for its gradient by X. Gain and bias are shared by all tokens, so their "
        "gradients are sums over the rows. The input acts on a standardised row in three ways: by itself, through the "
        "deviation and through the mean. dC holds the first two: a row that is scaled to one size moves only across "
        "itself. dmu holds the third."
    )
    note = note.extend(g)
    note = note.say(
        "The last line in full has one term for each path. The mean over the features stands for the path through "
        "mu, and the factor of the standardised row for that through r."
    )
    note = note.then(dC - rowmean(dC), because="with dmu")
    note = note.then(r * (dXhat - rowmean(dXhat) - Xhat * rowmean(dXhat * Xhat)), because="with dC")
    note = note.say(
        "So the backward pass needs the standardised rows, r, and two means of each row. Two facts about the layer can "
        "be read off. The features of a row of dX add up to 0, since a shift of the row changes nothing."
    )
    note = note.extend(sa.let("a", sa.sum(g[X], axis=-1))).then(sa.zeros(T), because="dC less its mean")
    note = note.say(
        "And a row of dX is orthogonal to the row C, but for epsilon, since scaling the row would change nothing "
        "without it."
    )
    note = note.extend(sa.let("b", sa.sum(C * g[X], axis=-1, keepdims=True)))
    left = epsilon * r**2 * sa.sum(Xhat * dXhat, axis=-1, keepdims=True)
    note = note.then(left, because="by the definition of r")
    return note


if __name__ == "__main__":
    print(derivation().text())
