"""Average pooling as the limit of attention whose scores are equal, and what a small difference of scores adds."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, e = sa.sizes("T S e")
beta = sympy.Symbol("beta", real=True)
V, a, z, v = sa.tensor("V", S, e), sa.tensor("a", T), sa.tensor("z", S), sa.tensor("v", S)
P = sa.let("P", sa.softmax(a[:, None] * sa.ones(T, S)))
MEAN = sa.let("vbar", sa.sum(V, axis=0) / S)
O = sa.let("O", P @ V)
p = sa.let("p", sa.softmax(beta * z))
o = sa.let("o", p @ v)
g = sa.gradient(o, [beta])
COVARIANCE = sa.sum(p * z * v) - sa.sum(p * z) * sa.sum(p * v)
u = sa.let("u", sa.ones(S) / S)
c = sa.let("c", sa.sum(u * z * v) - sa.sum(u * z) * sa.sum(u * v))
FLAT = sa.sum((z - sa.mean(z)) * (v - sa.mean(v))) / S


def derivation() -> sa.Derivation:
    """Equal scores; the first order in the scores; what flat attention does not do."""
    note = sa.Derivation(
        "Average pooling is flat attention",
        given={
            a: "what a query gives to every key", V: "values, one a row", z: "scores of one query",
            v: "one feature of the values", beta: "how far its scores are turned up",
        },
        summary="Where a query likes all keys equally, attention returns the mean of the values. Where it nearly does, "
        "it adds a covariance of scores and values.",
        result=[
            "With equal scores in each row every output is the mean of the values,",
            sa.prove(O, sa.outer(sa.ones(T), MEAN)),
            r"From there, scores that are turned up by a small $\beta$ add $\beta$ times their covariance with the "
            "values, over all keys alike.",
        ],
        references=["Lin, Chen and Yan, Network in network, 2014, section 3.2 (global average pooling)."],
    )  # fmt: skip
    note = note.section("Equal scores").say(
        "A shift of a row changes no weight, so it does not matter how large the equal scores are: they could be 0."
    )
    note = note.extend(P, because="all scores of a row the same")
    note = note.then(sa.ones(T, S) / S, because="$S$ equal shares of 1")
    note = note.extend(MEAN, because="mean of the values").extend(O, because="output")
    note = note.then(sa.ones(T, S) @ V / S, because="the weights above")
    note = note.then(sa.outer(sa.ones(T), MEAN), because=r"definition of $\bar{v}$: one mean for all queries")
    return numbers(first_order(note))


def first_order(note: sa.Derivation) -> sa.Derivation:
    """The derivative of one output by the scale of the scores, in general and where they are flat."""
    note = note.section("The first order").say(
        r"Take one query and one feature of the values, and turn the scores up from 0 by a factor $\beta$."
    )
    note = note.extend(p, because="weights").extend(o, because="one entry of the output")
    note = note.say("For every factor, the output changes at the rate of a covariance under the weights.")
    note = note.extend(g["dZ"], because="softmax").extend(g["dbeta"], because=r"$\beta z$ is linear in $\beta$")
    note = note.then(COVARIANCE, because="softmax takes off the average under the weights")
    note = note.say(r"At $\beta = 0$ the weights are flat, and it is the plain covariance of scores and values.")
    note = note.extend(u, because=r"the weights $p$ at $\beta = 0$").extend(c, because="the rate there")
    note = note.then(FLAT, because="mean of the products of deviations")
    return note.claim(
        sa.prove(c, sa.zeros()),
        title="Small scores change the average only in the second order",
        holds="the first order is there, and is a covariance: flat attention learns, since scores that go with useful "
        "values are raised from the start.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three keys, one of them liked a little better."""
    note = note.section("In numbers").say("Three keys; the first is liked better, and has the largest value.")
    values = {z: [1, 0, 0], v: [3, 0, 0], beta: sympy.Rational(1, 10)}
    return note.example(values, show=[p, o, g["dbeta"]]).say(
        "The mean of the values is 1. A tenth of the covariance, which is 2/3 where weights are flat, is what the "
        "output gained."
    )


if __name__ == "__main__":
    print(derivation().text())
