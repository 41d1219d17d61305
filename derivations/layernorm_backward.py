"""The backward pass of layer normalisation, with its three terms."""

from __future__ import annotations

import sympy

import symattn as sa

T, d = sa.sizes("T d")
X, gamma, beta = sa.tensor("X", T, d), sa.tensor("gamma", d), sa.tensor("beta", d)
epsilon = sympy.Symbol("epsilon", positive=True)
N = sa.attention.layer_norm(X, gamma, beta, eps=epsilon)
mu, C, r, Xhat = N.intermediates[:4]
g = sa.gradient(N, [beta, gamma, X])
dXhat, dC = g["dXhat"], g["dC"]


def rowmean(x: sa.Tensor) -> sa.Tensor:
    """The mean of each row, as a column."""
    return sa.mean(x, axis=-1, keepdims=True)


THREE_TERMS = r * (dXhat - rowmean(dXhat) - Xhat * rowmean(dXhat * Xhat))


def derivation() -> sa.Derivation:
    """From the mean and the deviation of each row to the gradient by the input, and what it says."""
    note = sa.Derivation(
        "The backward pass of layer normalisation",
        given={
            X: "tokens, one a row", gamma: "gain of each feature", beta: "bias of each feature",
            epsilon: "a small number under the root",
        },
        summary="Each row is centred, brought to one size, and given a gain and a bias. Backwards, a row acts in three "
        "ways: by itself, through its mean and through its deviation.",
        result=[
            r"Let $r$ be the inverse deviation of each row, $\hat{X}$ the standardised rows and $\mathrm{d}\hat{X}$ "
            "their gradient. Then",
            sa.eq(g["dX"], THREE_TERMS),
            "with one term for each way.",
        ],
        references=["Ba et al., Layer normalization, 2016, equations 3 and 4."],
    )  # fmt: skip
    return facts(backward(forward(note)))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Mean, deviation, gain and bias."""
    note = note.section("Forward").say(
        r"Each row is a token with $d$ features. Its mean is taken off, and what is left is divided by its deviation."
    )
    note = note.extend(mu, C, because={"mu": "mean of each row", "C": "centred rows"})
    said = {"r": "inverse deviation", "Xhat": "standardised rows", "N": "gain and bias of each feature"}
    return note.extend(r, Xhat, N, because=said)


def backward(note: sa.Derivation) -> sa.Derivation:
    """To gain and bias, then along the three paths."""
    shared = ("dbeta", "dgamma", "dXhat")
    rest = [g[step.name] for step in g.steps if step.name not in shared]
    note = note.section("Backward").say("All tokens share gain and bias, so their gradients are sums over the rows.")
    said = {"dbeta": "one bias for all rows", "dgamma": "one gain for all rows", "dXhat": "product with the gain"}
    note = note.extend(*[g[name] for name in shared], because=said).say(
        r"The centred rows act by themselves and through $r$, the mean through them."
    )
    said = {"dC": "as in RMSNorm", "dmu": r"$\mu$ is taken off all entries", "dX": "directly, and through the mean"}
    note = note.extend(*rest, because=said).then(dC - rowmean(dC), because=r"$\mathrm{d}\mu$ put in")
    note = note.then(THREE_TERMS, because=r"$\mathrm{d}C$ put in")
    return note.say(
        "So the backward pass needs the standardised rows, $r$, and two means of each row; not the input itself."
    )


def facts(note: sa.Derivation) -> sa.Derivation:
    """What shifts and factors of a row do."""
    along = epsilon * r**2 * sa.sum(Xhat * dXhat, axis=-1, keepdims=True)
    note = note.section("Two facts").say("The gradients of a row sum to 0, since a shift of the row changes nothing.")
    note = note.extend(sa.eq(sa.sum(g["dX"], axis=-1), sa.zeros(T)), because=r"$\mathrm{d}C$ less its mean").say(
        r"And they are orthogonal to the centred row, but for $\epsilon$, since a factor of the row would cancel "
        "without it."
    )
    return note.extend(sa.eq(sa.sum(C * g["dX"], axis=-1, keepdims=True), along), because="definition of $r$")


if __name__ == "__main__":
    print(derivation().text())
