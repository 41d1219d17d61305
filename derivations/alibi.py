"""ALiBi: a bias by the distance of query and key is, under softmax, a bias by the place of the key."""

from __future__ import annotations

import sympy

import symattn as sa

T, n, s = sa.sizes("T n s")
slope = sympy.Symbol("mu", positive=True)
Z = sa.tensor("Z", T, T)
L = sa.let("L", sa.from_index((T, T), lambda i, j: j <= i))
B = sa.let("B", sa.from_index((T, T), lambda i, j: -slope * (i - j)))
LONGER = sa.let("B'", sa.from_index((T + s, T + s), lambda i, j: -slope * (i - j)))
PLACES = sa.let("b", sa.from_index((T,), lambda j: slope * j))
P = sa.let("P", sa.softmax(Z + B, where=L))


def derivation() -> sa.Derivation:
    """The bias is relative; what softmax sees of it; how fast it forgets; what is false."""
    note = sa.Derivation(
        "Linear biases (ALiBi)",
        given={Z: "scores of one head", slope: "slope of the head"},
        summary="ALiBi lowers a score by a slope times the distance of query and key. It is relative, needs only the "
        "places of the keys, and forgets exponentially.",
        result=[
            "The bias depends on the distance alone. Under softmax it is the same as a bias that grows with the place "
            "of the key and does not know the query:",
            sa.prove(P, sa.softmax(Z + sa.outer(sa.ones(T), PLACES), where=L)),
        ],
        references=["Press, Smith and Lewis, Train short, test long, 2022, section 3."],
        letters="i j",
    )
    note = note.section("The bias is relative").extend(L, because="the causal mask: $i$ sees $j \\le i$")
    note = note.extend(B, because="minus slope times distance").extend(P, because="weights of one head")
    note = note.say(
        "A shift of all positions leaves every distance as it is: $T$ tokens have the same biases at the end of a "
        "longer text as they have alone."
    )
    note = note.extend(LONGER, because="of $s$ tokens more, in front")
    note = note.extend(sa.eq(LONGER[s:, s:], B), because="$(i + s) - (j + s) = i - j$")
    return false(forgetting(places(note)))


def places(note: sa.Derivation) -> sa.Derivation:
    """What softmax sees of the bias."""
    queries = -slope * sa.from_index((T,), lambda i: i)
    note = note.section("Only the place of the key counts").say(
        "The place of the query is the same for all keys of its row, and softmax does not see what a row has in common."
    )
    note = note.extend(PLACES, because="slope times the place of the key")
    split = sa.outer(queries, sa.ones(T)) + sa.outer(sa.ones(T), PLACES)
    note = note.extend(sa.eq(B, split), because=r"$-\mu (i - j) = -\mu i + \mu j$")
    note = note.extend(sa.eq(P, sa.softmax(Z + split, where=L)), because="put into the weights")
    note = note.then(sa.softmax(Z + sa.outer(sa.ones(T), PLACES), where=L), because="a shift of each row")
    return note.say("So one row of biases serves all queries.")


def forgetting(note: sa.Derivation) -> sa.Derivation:
    """Equal scores: weights fall by a fixed factor with each step back."""
    p = sa.let("p", sa.softmax(sa.from_index((n,), lambda j: -slope * j)))
    decay = sa.let("w", sa.from_index((n,), lambda j: sympy.exp(-slope * j)))
    note = note.section("How fast it forgets").say(
        "Where all $n$ scores are equal, the weights by distance are those of a geometric series: each step back "
        r"multiplies by $\mathrm{e}^{-\mu}$."
    )
    note = note.extend(p, because="weights by distance").extend(decay, because="powers of one factor")
    note = note.extend(sa.eq(p, decay / sa.sum(decay)), because="definition of softmax")
    return note.extend(
        sa.eq(p[1:], sympy.exp(-slope) * p[: n - 1]), because=r"one step farther is $\mathrm{e}^{-\mu}$ as much"
    )


def false(note: sa.Derivation) -> sa.Derivation:
    """Without the mask, and by the place of the query."""
    both = sa.from_index((T, T), lambda i, j: -slope * sympy.Abs(i - j))
    note = note.section("False claims")
    note = note.claim(
        sa.prove(sa.softmax(Z + both), sa.softmax(Z + B)),
        title="Without a causal mask, the bias still favours what is near",
        holds="later keys are favoured the more, the farther they are; without a mask the distance is to be taken "
        "without its sign.",
    )
    rows = sa.from_index((T, 1), lambda i, j: -slope * i)
    return note.claim(
        sa.prove(P, sa.softmax(Z + rows, where=L)),
        title="A bias by the place of the query does the same",
        holds=[
            "it is a shift of each row, and does nothing:",
            sa.prove(sa.softmax(Z + rows, where=L), sa.softmax(Z, where=L)),
        ],
    )


if __name__ == "__main__":
    print(derivation().text())
