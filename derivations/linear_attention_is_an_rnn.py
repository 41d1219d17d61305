"""Linear attention is an RNN: a state of fixed size, read by each query, for every number of tokens."""

from __future__ import annotations

import symattn as sa

T, r, e = sa.sizes("T r e")
F, G, V = sa.tensor("F", T, r), sa.tensor("G", T, r), sa.tensor("V", T, e)


def step(state, token):
    """One token: it is written into the state, and reads what is there then."""
    (S, z), (f, g, v) = state, token
    S, z = S + sa.outer(g, v), z + g
    return (S, z), (f @ S, f @ z)


LAST, (Y, c) = sa.scan(step, (sa.zeros(r, e), sa.zeros(r)), (F, G, V))
S, z, Y, c = (sa.let(name, x) for name, x in (("S", LAST[0]), ("z", LAST[1]), ("Y", Y), ("c", c)))
O = sa.let("O", sa.diag(1 / c) @ Y)
A = sa.let("A", sa.tril(F @ G.T))
SUMS = sa.sum(A, axis=1)
PARALLEL = sa.diag(1 / SUMS) @ A @ V
BY = sa.induction(final=(G.T @ V, sa.sum(G, axis=0)), outputs=(A @ V, SUMS))


ATTENTION, READ = sa.prove(O, PARALLEL, by=BY), sa.prove(Y, A @ V, by=BY)


def derivation() -> sa.Derivation:
    """The recurrence, what it comes to, and what the state is without a mask."""
    note = sa.Derivation(
        "Linear attention is an RNN",
        given={F: "features of the queries", G: "features of the keys", V: "values"},
        summary="Causal attention whose weights are products of features can be run token by token, with a state that "
        "does not grow. That this gives the same output, for every number of tokens, is proved by induction.",
        result=[
            r"Run token by token, with a state of $r (e + 1)$ numbers, and in parallel, with a triangle of all "
            "products of features, the output is the same:",
            ATTENTION,
        ],
        references=["Katharopoulos et al., Transformers are RNNs, 2020, equations 8 to 12 and 16 to 20."],
        letters="t",
    )
    note = note.section("Token by token").say(
        "Each token adds the outer product of its features and its value to a matrix $S$, and its features to a vector "
        "$z$. Its query reads both, and divides what it reads of the first by what it reads of the second."
    )
    note = note.extend(S, z, Y, c, because={"S": "the state", "Y": "what the queries read"})
    note = note.extend(O, because="row by row")
    note = note.section("In parallel").say(
        "For training, all tokens are at hand, and a triangle of products of features takes the place of the weights "
        "of softmax attention."
    )
    note = note.extend(A, because="a token reads itself and those before it")
    note = note.section("Both are the same").say("The states are sums over the tokens up to now.")
    note = note.claim(READ, kind="Theorem", title="What is read, for every number of tokens")
    note = note.say("Divided by what the queries read of $z$, it is attention with weights that sum to 1.")
    return numbers(last_state(note.extend(sa.eq(O, PARALLEL), because="by the theorem, row by row", by=BY)))


def last_state(note: sa.Derivation) -> sa.Derivation:
    """What the last state is good for, and what it is not."""
    note = note.section("What the last state is").say(
        "After the last token the state holds what linear attention without a mask contracts first. It is all that "
        "the next token needs of those before it, but earlier tokens must not read it."
    )
    note = note.extend(sa.eq(S, G.T @ V), because="by the same induction", by=BY)
    return note.claim(
        sa.prove(Y, F @ S),
        title="The last state is enough for all queries",
        holds="with the last state in place of its own, each token would read those that come after it.",
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Three tokens, two features."""
    note = note.section("In numbers").say("Three tokens with two features each, and values of one number.")
    values = {F: [[1, 0], [1, 1], [0, 2]], G: [[1, 1], [0, 1], [2, 0]], V: [[1], [3], [2]]}
    return note.example(values, show=[A, S, z, Y, c, O])


if __name__ == "__main__":
    print(derivation().text())
