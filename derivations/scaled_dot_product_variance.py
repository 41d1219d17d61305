"""Why scores are divided by the square root of d: the variance of a dot product, and when the argument fails."""

from __future__ import annotations

import sympy

import symattn as sa

d, h = sa.sizes("d h")
q, k = sa.tensor("q", d), sa.tensor("k", d)
mu_q, mu_k, rho = sympy.symbols("mu_q mu_k rho", real=True)
sigma_q, sigma_k = sympy.symbols("sigma_q sigma_k", positive=True)
x, W_q, W_k = sa.tensor("x", d * h), sa.tensor("W_q", d * h, d), sa.tensor("W_k", d * h, d)
s = sa.let("s", q @ k)
z = sa.let("z", s / sympy.sqrt(d))
STANDARD = {q: sa.iid(mean=0, variance=1), k: sa.iid(mean=0, variance=1)}


def derivation() -> sa.Derivation:
    """Mean and variance of the score, with its scale, with means, with correlation, and with the wrong width."""
    note = sa.Derivation(
        r"Why scores are divided by $\sqrt{d}$",
        given={
            q: "a query", k: "a key", mu_q: "mean of the entries of $q$", mu_k: "mean of those of $k$",
            sigma_q: "standard deviation of the entries of $q$", sigma_k: "standard deviation of those of $k$",
            rho: r"correlation of $q_l$ and $k_l$", x: "a token, as wide as the model", W_q: "projection to queries",
            W_k: "projection to keys",
        },
        summary="The variance of a dot product of random vectors, and what becomes of it when the usual assumptions "
        "fail.",
        result=[
            "Let the entries of $q$ and $k$ be independent and identically distributed, with mean 0 and variance 1. "
            "Then a score has",
            sa.moments(s, STANDARD),
            r"so that $z = s / \sqrt{d}$ has",
            sa.moments(z, STANDARD),
            "Nothing else is assumed of their laws, which need not be normal.",
        ],
        references=[
            "Vaswani et al., Attention is all you need, 2017, footnote 4.",
            "Yang et al., Tensor programs V, 2022 (µP).",
        ],
    )  # fmt: skip
    note = (
        note.section("Calculation")
        .extend(sa.moments(s, STANDARD))
        .fold(r"Steps: divided by $\sqrt{d}$", sa.Derivation("Scaled").extend(sa.moments(z, STANDARD)))
        .figure(
            sa.plot.variance([s, q @ k / sympy.sqrt(d)], STANDARD, d),
            r"The variance of a raw score, and of one divided by $\sqrt{d}$: exact lines, and samples of normal "
            "entries.",
        )
        .say(
            r"So a raw score is typically as large as $\sqrt{d}$, which saturates the softmax of wide heads; divided "
            r"by $\sqrt{d}$ it has the same spread for every $d$."
        )
    )
    return when_it_fails(note)


def when_it_fails(note: sa.Derivation) -> sa.Derivation:
    """One table of cases."""
    scaled, correlated = q @ k / sympy.sqrt(d), {(q, k): sa.iid_pair(correlation=rho)}
    fan_in = sa.iid(mean=0, variance=1 / (d * h))
    with_means = {q: sa.iid(mean=mu_q, variance=sigma_q**2), k: sa.iid(mean=mu_k, variance=sigma_k**2)}
    weights = {x: "constant", W_q: fan_in, W_k: fan_in}
    note = note.section("When the assumptions fail").say(
        "Every row was computed exactly, for all $d$; below are the steps of the first."
    )
    note = note.cases(
        {
            "entries have means and variances": sa.moments(scaled, with_means),
            r"$q_l$ and $k_l$ have the correlation $\rho$": sa.moments(q @ k, correlated),
            "the same, divided by $d$ (µP)": sa.moments(q @ k / d, correlated),
            "width of the model, not of the head": sa.moments(q @ k / sympy.sqrt(d * h), STANDARD),
            "projections of a fixed $x$, weights of variance $1 / (h d)$": sa.moments(
                (x @ W_q) @ (x @ W_k) / sympy.sqrt(d), weights
            ),
        },
        head=("If", "score", "mean", "variance"),
    )
    note = note.fold("Steps: entries with means", sa.Derivation("Means").extend(sa.moments(z, with_means)))
    return note.say(
        r"The two means matter: any drift makes scores grow like $\sqrt{d}$ again. Training correlates queries with "
        "the keys that they look for, and then the mean grows like $d$; this is why µP divides by $d$."
    )


if __name__ == "__main__":
    print(derivation().text())
