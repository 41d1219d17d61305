"""When softmax saturates: what bounds its Jacobian, what makes it vanish, and what does not."""

from __future__ import annotations

import sympy

import symattn as sa


def derivation() -> sa.Derivation:
    """The bound 1/4; decay with the gap of the logits times their scale; equal logits of any size."""
    n, m = sa.sizes("n m")
    z, c, x = sa.tensor("z", n), sa.tensor("c"), sa.tensor("x", m)
    beta, gamma = sympy.symbols("beta gamma", positive=True)
    p = sa.let("p", sa.softmax(z))
    J = sa.let("J", sa.jacobian(p, z))

    note = sa.Derivation("When softmax saturates", given=[z, c, x, beta, gamma])
    note = note.say(
        "Softmax passes gradients on by its Jacobian J. Its entries are p_i (1 - p_i) on the diagonal and -p_i p_j "
        "beside it, and none of them is larger than 1/4 in size."
    )
    note = note.extend(p, J, sa.prove(sa.le(p * (1 - p), 0.25)), sa.prove(sa.le(sa.abs(J), 0.25)))

    note = note.say(
        "They can be far smaller. Let one logit c be the largest, written first, since softmax does not care for "
        "order. Let the m = n - 1 others lie below it by at least a gap gamma, by gamma + x with x >= 0, and let all "
        "be multiplied by beta. Call the weights r, that of the largest logit r_0, and write E for the exponentials "
        "of the distances."
    )
    logits = sa.concat([c[None], c - gamma - x], axis=0)
    r = sa.let("r", sa.softmax(beta * logits))
    E = sa.let("E", sa.exp(-beta * (gamma + x)))
    nothing = sa.let("b", 1 - r[0])
    below = [sa.le(0, x)]
    note = note.extend(r, E, nothing).then(sa.sum(r[1:]), because="the weights sum to 1")
    note = note.then(sa.sum(E) * r[0], because="each is E times the largest")
    note = note.say(
        "No exponential is above that of the gap alone, and r_0 is at most 1. So r_0 is close to 1, exponentially."
    )
    note = note.extend(sa.prove(sa.le(sa.sum(E) * r[0], m * sa.exp(-beta * gamma)), given=below))

    note = note.say(
        "The Jacobian by the scaled logits vanishes with it. Its first entry is r_0 (1 - r_0); every other entry is "
        "in a row, or by symmetry in a column, of one of the other weights."
    )
    A = sa.let("A", sa.diag(r) - sa.outer(r, r))
    first, others = sa.let("a", A[0, 0]), sa.let("R", A[1:])
    factor = E[:, None] * r[0] * (sa.eye(m + 1)[1:] - r[None, :])
    note = note.extend(A, first).then(sa.sum(E) * r[0] ** 2, because="r_0 times the sum above")
    note = note.extend(others).then(factor, because="each weight is E times the largest")
    note = note.extend(sa.prove(sa.le(sa.sum(E) * r[0] ** 2, m * sa.exp(-beta * gamma)), given=below))
    note = note.extend(sa.prove(sa.le(sa.abs(factor), sa.exp(-beta * gamma) * sa.ones(m, m + 1)), given=below))
    return _equal_logits(_of_unscaled_logits(note), c, n)


def _of_unscaled_logits(note: sa.Derivation) -> sa.Derivation:
    y = sa.tensor("y")
    note = note.say(
        "By the logits before scaling, the Jacobian has beta as one more factor, which the exponential outweighs. With "
        "y for half of beta gamma, beta exp(-beta gamma) is 2/gamma times y exp(-2 y), and this is less than exp(-y), "
        "since their difference w is positive."
    )
    note = note.extend(sa.let("w", sa.exp(-y) - y * sa.exp(-2 * y)))
    note = note.then(sa.exp(-2 * y) * (sa.exp(y) - y), because="exp(-2 y) is common to both")
    return note.extend(sa.prove(sa.le(y, sa.exp(y))))


def _equal_logits(note: sa.Derivation, c: sa.Tensor, n: sympy.Symbol) -> sa.Derivation:
    note = note.say(
        "So all entries tend to 0 as beta grows, and no gradient passes. What counts is the gap, times the scale, and "
        "not the size of the logits: equal logits have equal weights however large they are, and the same Jacobian."
    )
    q = sa.let("q", sa.softmax(c * sa.ones(n)))
    note = note.extend(q).then(sa.ones(n) / n, because="n equal shares of 1")
    note = note.extend(sa.let("H", sa.diag(q) - sa.outer(q, q)))
    return note.then((sa.eye(n) - sa.ones(n, n) / n) / n, because="the weights above")


if __name__ == "__main__":
    print(derivation().text())
