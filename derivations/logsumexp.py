"""The logarithm of a sum of exponentials: its bounds, its shift and its gradient."""

from __future__ import annotations

import sympy

import symattn as sa

n = sa.sizes("n")
z, c = sa.tensor("z", n), sa.tensor("c")
m, ell, p = sa.let("m", sa.max(z)), sa.let("ell", sa.logsumexp(z)), sa.let("p", sa.softmax(z))


def derivation() -> sa.Derivation:
    """A smooth maximum, computed without overflow, whose gradient is softmax."""
    note = sa.Derivation(
        "Logsumexp, a smooth maximum",
        given={z: "scores", c: "any number"},
        summary=r"Why $\ell = \log \sum_i \mathrm{e}^{z_i}$ stands for the largest score, how it is computed without "
        "overflow, and why softmax is its gradient.",
        result=[
            r"Let $m$ be the largest of $n$ scores and $\ell$ their logsumexp. Then",
            sa.le(m, ell),
            sa.le(ell, m + sympy.log(n)),
            r"and the gradient of $\ell$ is $\operatorname{softmax}(z)$.",
        ],
        references=["Boyd and Vandenberghe, Convex Optimization, 2004, section 3.1.5."],
        letters="i",
    )
    note = note.section("Definitions").extend(m, because="the largest score").extend(ell, because="its smooth version")
    return numbers(gradient(bounds(shift(note))))


def shift(note: sa.Derivation) -> sa.Derivation:
    """A number added to all scores comes out."""
    note = note.section("A shift comes out").say(
        r"Adding $c$ to all scores multiplies each exponential by $\mathrm{e}^{c}$, a factor that all terms share."
    )
    note = note.extend(sa.eq(sa.logsumexp(z + c), sa.log(sa.exp(c) * sa.sum(sa.exp(z)))), because="common factor")
    note = note.then(ell + c, because="the logarithm of a product is a sum").say(
        r"With $c = -m$ no exponent is positive and one of them is 0, so nothing overflows and the sum is at least 1. "
        "This is how logsumexp is computed."
    )
    return note.extend(sa.eq(ell, m + sa.log(sa.sum(sa.exp(z - m)))), because="$c = -m$, and back")


def bounds(note: sa.Derivation) -> sa.Derivation:
    """Between the maximum and the maximum of n equal scores."""
    note = note.section("Between the maximum and a little more")
    note = note.claim(
        sa.prove(sa.le(z, ell * sa.ones(n))),
        title="No score is larger",
        because="A sum of positive numbers is at least as large as each of them, and the logarithm is increasing.",
    )
    note = note.say(
        r"The sum above has $n$ terms. None of them is larger than 1, the value at the largest score, so their "
        r"logarithm lies between 0 and $\log n$."
    )
    note = note.extend(sa.le(m, ell), because="one term is 1")
    note = note.extend(sa.le(ell, m + sympy.log(n)), because="each term is at most 1")
    return note.say(r"Where all scores are equal, the upper bound is attained.").extend(
        sa.eq(sa.logsumexp(c * sa.ones(n)), c + sympy.log(n)), because=r"$n$ equal terms"
    )


def gradient(note: sa.Derivation) -> sa.Derivation:
    """Softmax, whose entries are positive and sum to 1."""
    g = sa.gradient(ell, z)
    note = note.section("Its gradient is softmax").say(
        r"The derivative of $\log$ is the inverse of the sum, that of each exponential is itself. The quotient is "
        "softmax."
    )
    note = note.extend(p, because="each entry is positive").extend(g["dz"], because="chain rule")
    note = note.then(p, because="by its definition")
    note = note.extend(sa.eq(p, sa.exp(z - ell)), because=r"$\mathrm{e}^{\ell}$ is the sum").say(
        r"So the gradient is a distribution over the scores. Raising all of them by a small amount raises $\ell$ by "
        "the same amount."
    )
    return note.extend(sa.eq(sa.sum(g[z]), 1), because="softmax sums to 1")


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three scores."""
    note = note.section("In numbers").say("Three scores, one of which stands out; entries to three digits.")
    return note.example({z: [0, 1, 4]}, show=[m, ell, p])


if __name__ == "__main__":
    print(derivation().text())
