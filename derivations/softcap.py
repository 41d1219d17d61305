"""Softcapping: scores kept between two numbers by tanh, and what it costs their gradients."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, d, e = sa.sizes("T S d e")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
c, t = sa.tensor("c", positive=True), sa.tensor("t", T)
Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
Y = sa.let("Y", c * sa.tanh(Z / c))
P = sa.let("P", sa.softmax(Y))
O = sa.let("O", P @ V)
g = sa.gradient(O, [Q, K, V])


def derivation() -> sa.Derivation:
    """The cap, its bounds, one factor in the backward pass, and what it breaks."""
    note = sa.Derivation(
        "Softcapped scores",
        given={Q: "queries", K: "keys", V: "values", c: "the cap", t: "a shift of each row"},
        summary=r"Scores $Z$ are replaced by $c \tanh(Z / c)$, so that none is larger than $c$ in size. What it does "
        "to the weights, and the one factor that it adds to the backward pass.",
        result=[
            r"The capped scores $Y$ lie between $-c$ and $c$, and the backward pass has one step more,",
            sa.eq(g["dZ"], g["dY"] * (1 - Y**2 / c**2)),
            r"whose factor is 1 where scores are small and falls to 0 at the cap.",
        ],
        references=["Gemma team, Gemma 2, 2024, section 2."],
        letters="i j k x",
    )
    return shifts(backward(bounds(forward(note))))


def forward(note: sa.Derivation) -> sa.Derivation:
    """Attention of capped scores."""
    note = note.section("Forward")
    said = {"Z": "scores", "Y": "capped scores", "P": "weights", "O": "output"}
    return note.extend(Z, Y, P, O, because=said).say(
        r"Near 0, $\tanh(x)$ is $x$, so small scores stay as they are. A mask comes after the cap: $-\infty$ would "
        "become $-c$ before it."
    )


def bounds(note: sa.Derivation) -> sa.Derivation:
    """Between -c and c."""
    note = note.section("Bounds").say(r"The values of $\tanh$ lie between $-1$ and 1.")
    note = note.extend(sa.lt(Y, c * sa.ones(T, S)), because=r"$\tanh(x) < 1$")
    note = note.extend(sa.lt(-c * sa.ones(T, S), Y), because=r"$-1 < \tanh(x)$")
    return note.say(
        r"So no weight is more than $\mathrm{e}^{2 c}$ times another one of its row, however large the scores are: "
        r"$P_{i j} / P_{i k} = \mathrm{e}^{Y_{i j} - Y_{i k}}$. With $c = 50$ this is no bound that matters to "
        "softmax; it keeps the scores themselves in the range of half precision."
    )


def backward(note: sa.Derivation) -> sa.Derivation:
    """One factor more."""
    note = note.section("Backward").say("Up to the capped scores it is the backward pass of attention.")
    note = note.extend(g["dV"], g["dP"], because="product rule on $O = P V$")
    note = note.extend(g["dY"], because="softmax, row by row").say(r"The derivative of $\tanh$ is $1 - \tanh^2$.")
    note = note.extend(g["dZ"], because=r"chain rule through $\tanh$")
    note = note.then(g["dY"] * (1 - Y**2 / c**2), because=r"$Y = c \tanh(Z / c)$")
    return note.extend(g["dQ"], g["dK"], because=r"product rule on $Z = Q K^{\top} / \sqrt{d}$")


def shifts(note: sa.Derivation) -> sa.Derivation:
    """No longer invariant."""
    moved = sa.softmax(c * sa.tanh((Z + t[:, None]) / c))
    note = note.section("What it breaks")
    return note.claim(
        sa.prove(moved, P),
        title="A shift of a row of scores changes nothing",
        holds="softmax does not see a shift of its own input, but the cap does: a shift moves some scores nearer to it "
        "than others. A bias of the keys, which cancels without a cap, has an effect with one.",
    )


if __name__ == "__main__":
    print(derivation().text())
