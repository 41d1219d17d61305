"""Why scores are divided by the square root of d: the variance of a dot product, and when the argument fails."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """Mean and variance of the score, with its scale, with means, with correlation, and with the wrong width."""
    d, h = sa.sizes("d h")
    q, k = sa.tensor("q", d), sa.tensor("k", d)
    x, W, U = sa.tensor("x", d * h), sa.tensor("W_q", d * h, d), sa.tensor("W_k", d * h, d)
    s = sa.let("s", q @ k)
    standard = {q: sa.iid(mean=0, variance=1), k: sa.iid(mean=0, variance=1)}
    scaled = q @ k / sympy.sqrt(d)

    note = sa.Derivation("The variance of a scaled dot product", given=[q, k])
    note = note.say(
        "The score of a query q and a key k is their dot product, a sum of d products. Nothing is assumed of the law "
        "of their entries besides the first two moments. If these are 0 and 1, each product has the variance 1, and "
        "since the d products do not correlate, their variances add."
    )
    note = note.extend(sa.moments(s, standard))
    note = note.say(
        "So a score is as large as the square root of d, typically, and divided by that it has the variance 1 for "
        "every d. This is the scale of attention."
    )
    note = note.extend(sa.moments(sa.let("z", scaled), standard))

    m, n = sympy.symbols("m n", real=True)
    u, v = sympy.symbols("u v", positive=True)
    note = note.say(
        "The two zeros are used. Where the entries have means, the score has one as well, of the order of d, and "
        "dividing by the square root of d does not keep it bounded."
    )
    note = note.extend(sa.moments(sa.let("z", scaled), {q: sa.iid(mean=m, variance=u), k: sa.iid(mean=n, variance=v)}))

    rho = sympy.Symbol("rho", real=True)
    note = note.say(
        "Independence is used too. Training correlates queries with the keys that they look for, and then the score "
        "has a mean of the order of d, though all entries have the mean 0: the products add up instead of cancelling."
    )
    note = note.extend(sa.moments(s, {(q, k): sa.iid_pair(correlation=rho)}))
    note = note.say(
        "Divided by d, not by its square root, such a score has a mean that stays the same for every width, and a "
        "variance that vanishes as the width grows. This is why muP, which scales widths up, divides by d."
    )
    note = note.extend(sa.moments(sa.let("z", q @ k / d), {(q, k): sa.iid_pair(correlation=rho)}))

    wrong = sa.let("z", q @ k / sympy.sqrt(d * h))
    note = note.say(
        "The width that counts is the one that is summed over. With h heads of width d the model has the width d h, "
        "and dividing by the square root of that makes the scores of every head too small."
    )
    note = note.extend(sa.moments(wrong, standard))
    note = note.say(
        "Queries and keys are linear in the input x of the model. With independent weights of mean 0 and variance "
        "1/(d h), the reciprocal of their fan-in, the variance depends on x by its norm alone: it is 1 if the squared "
        "entries of x are 1 on average."
    )
    fan_in = sa.iid(mean=0, variance=1 / (d * h))
    note = note.extend(
        sa.moments(sa.let("z", (x @ W) @ (x @ U) / sympy.sqrt(d)), {x: "constant", W: fan_in, U: fan_in})
    )
    return note


if __name__ == "__main__":
    print(derivation().text())
