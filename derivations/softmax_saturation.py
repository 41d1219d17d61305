"""When softmax saturates: what bounds its Jacobian, what makes it vanish, and what does not."""

from __future__ import annotations

import sympy

import symattn as sa

n, m = sa.sizes("n m")
z, c, x, y = sa.tensor("z", n), sa.tensor("c"), sa.tensor("x", m), sa.tensor("y")
beta, gamma = sympy.symbols("beta gamma", positive=True)
BELOW = [sa.le(0, x)]
p = sa.let("p", sa.softmax(z))
J = sa.let("J", sa.jacobian(p, z))
s = sa.let("s", sa.concat([c[None], c - gamma - x], axis=0))
r = sa.let("r", sa.softmax(beta * s))
E = sa.let("E", sa.exp(-beta * (gamma + x)))
SMALL = m * sa.exp(-beta * gamma)


def derivation() -> sa.Derivation:
    """The bound 1/4; decay with the gap of the scores times their scale; equal scores of any size."""
    note = sa.Derivation(
        "When softmax saturates",
        given={
            z: "scores of one row", c: "the largest score", gamma: "the gap: all others are lower by at least this",
            x: "how much lower still, not negative", beta: "a scale of all scores", y: r"half of $\beta \gamma$",
        },
        summary="Softmax passes gradients on through its Jacobian. How small it becomes is decided by the gap between "
        "the scores, times their scale, and not by their size.",
        result=[
            r"Let the largest of $m + 1$ scores be above all others by at least $\gamma$, and multiply all by $\beta$. "
            r"No entry of the Jacobian, which is never larger than $1/4$, then exceeds "
            r"$m\, \mathrm{e}^{-\beta \gamma}$: it vanishes exponentially with the scaled gap. Equal scores, however "
            "large, keep the Jacobian that they have at 0.",
        ],
        references=["Vaswani et al., Attention is all you need, 2017, section 3.2.1."],
        letters="i j",
    )  # fmt: skip
    return equal(unscaled(decay(bound(note))))


def bound(note: sa.Derivation) -> sa.Derivation:
    """Never more than a quarter."""
    note = note.section("Never more than a quarter").say(
        r"The entries of the Jacobian are $p_i (1 - p_i)$ on the diagonal and $-p_i p_j$ beside it."
    )
    note = note.extend(p, because="weights").extend(J, because="Jacobian, symmetric")
    note = note.claim(
        sa.prove(sa.le(p * (1 - p), 0.25)),
        title="The diagonal is at most 1/4",
        because="A product of two numbers of sum 1 is largest where both are one half.",
    )
    return note.claim(
        sa.prove(sa.le(sa.abs(J), 0.25)),
        title="So is every entry, in size",
        because="Two different weights have a sum of at most 1.",
    )


def decay(note: sa.Derivation) -> sa.Derivation:
    """What one score that is far above the others does."""
    note = note.section("A gap makes it vanish").say(
        r"Softmax does not care for order, so write the largest score first. The $m$ others are lower by "
        r"$\gamma + x$, with $x \ge 0$."
    )
    note = note.extend(s, because="scores").extend(r, because="weights of the scaled scores")
    note = note.extend(E, because="each is at most $\\mathrm{e}^{-\\beta \\gamma}$")
    note = note.say(r"What the largest score leaves to all others is small, because $\sum_i r_i = 1$ and $r_0 \le 1$.")
    note = note.extend(sa.let("b", 1 - r[0])).then(sa.sum(r[1:]), because="weights sum to 1")
    note = note.then(sa.sum(E) * r[0], because="each other weight is $r_0$ times its entry of $E$")
    note = note.claim(
        sa.prove(sa.le(sa.sum(E) * r[0], SMALL), given=BELOW), title="The weights approach those of the maximum"
    )
    A = sa.let("A", sa.diag(r) - sa.outer(r, r))
    note = note.say(
        "The Jacobian by the scaled scores vanishes with it. Every entry other than the first is in a row, or by "
        "symmetry in a column, of one of the other weights."
    )
    note = note.extend(A, because=r"Jacobian by $\beta s$").extend(sa.let("a", A[0, 0]), because="its first entry")
    note = note.then(sa.sum(E) * r[0] ** 2, because="$r_0 (1 - r_0)$, and the sum above")
    note = note.claim(sa.prove(sa.le(sa.sum(E) * r[0] ** 2, SMALL), given=BELOW), title="The first entry vanishes")
    factor = E[:, None] * r[0] * (sa.eye(m + 1)[1:] - r[None, :])
    note = note.extend(sa.let("R", A[1:]), because="its other rows")
    note = note.then(factor, because="each other weight is $r_0$ times its entry of $E$")
    note = note.figure(
        sa.plot.saturation(gaps=[0.5, 1, 2]),
        r"Eight scores, one of them above the others by the gap: the larger $\beta \gamma$, the smaller the Jacobian.",
    )
    return note.claim(
        sa.prove(sa.le(sa.abs(factor), sa.exp(-beta * gamma) * sa.ones(m, m + 1)), given=BELOW),
        title="All other entries vanish",
    )


def unscaled(note: sa.Derivation) -> sa.Derivation:
    """One more factor, which loses against the exponential."""
    note = note.section("By the scores before scaling").say(
        r"By $s$, the Jacobian has $\beta$ as one more factor. With $y = \beta \gamma / 2$ this makes "
        r"$\beta\, \mathrm{e}^{-\beta \gamma} = \frac{2}{\gamma} y\, \mathrm{e}^{-2 y}$, which is at most "
        r"$\frac{2}{\gamma} \mathrm{e}^{-y}$, since the difference $w$ is not negative."
    )
    note = note.extend(sa.let("w", sa.exp(-y) - y * sa.exp(-2 * y)))
    note = note.then(sa.exp(-2 * y) * (sa.exp(y) - y), because=r"$\mathrm{e}^{-2 y}$ is common to both")
    return note.claim(sa.prove(sa.le(y, sa.exp(y))), title="The exponential outweighs the factor")


def equal(note: sa.Derivation) -> sa.Derivation:
    """Large scores without a gap."""
    q = sa.let("q", sa.softmax(c * sa.ones(n)))
    note = note.section("Size alone does nothing").say(
        "Without a gap there is nothing to saturate: equal scores share the weight equally, at 0 as at a million."
    )
    note = note.extend(q).then(sa.ones(n) / n, because="$n$ equal shares of 1")
    note = note.extend(sa.let("H", sa.diag(q) - sa.outer(q, q)), because="Jacobian")
    return note.then((sa.eye(n) - sa.ones(n, n) / n) / n, because="the weights above")


if __name__ == "__main__":
    print(derivation().text())
