"""Causal linear attention: in parallel, as a recurrence with a state, and its backward pass as one in reverse."""

from __future__ import annotations

import symattn as sa

T, r, e = sa.sizes("T r e")
F, G, V = sa.tensor("F", T, r), sa.tensor("G", T, r), sa.tensor("V", T, e)
U = sa.let("U", F @ G.T)
A = sa.let("A", sa.tril(U))
O = sa.let("O", A @ V)
X = sa.let("X", G[:, :, None] * V[:, None, :])
H = sa.let("H", sa.cumsum(X, axis=0))
READ = sa.einsum("tr,tre->te", F, H)
g = sa.gradient(O, [F, G, V])
dO = g.cotangent
Y = sa.let("Y", F[:, :, None] * dO[:, None, :])
M = sa.let("M", sa.sum(Y, axis=0))
R = sa.let("R", M[None, :, :] - sa.cumsum(Y, axis=0) + Y)


def derivation() -> sa.Derivation:
    """Both forms, the denominator, the gradients by a state that runs backwards."""
    note = sa.Derivation(
        "Causal linear attention is a recurrence",
        given={F: "features of the queries", G: "features of the keys", V: "values"},
        summary="With a causal mask, linear attention reads a state to which each token adds one outer product. The "
        "parallel and the recurrent form are equal for every number of tokens, and so are those of the gradients.",
        result=[
            r"Masked products of features, and a state $H_t$ that gathers what tokens up to $t$ have added, give the "
            "same output:",
            sa.prove(O, READ),
        ],
        references=["Katharopoulos et al., Transformers are RNNs, 2020, equations 8 to 15."],
        letters="t",
    )
    return backward(denominator(recurrence(parallel(note))))


def parallel(note: sa.Derivation) -> sa.Derivation:
    """With the triangle of all products."""
    note = note.section("In parallel").say(
        "For training, all tokens are at hand: a triangle of products of features takes the place of the weights."
    )
    note = note.extend(U, because="products of features")
    return note.extend(A, because="token $t$ reads itself and those before it").extend(O, because="sums of values")


def recurrence(note: sa.Derivation) -> sa.Derivation:
    """With a state."""
    note = note.section("As a recurrence").say(
        r"Each token has an outer product of its features and its value; the state is the sum of all up to now, of "
        r"size $r \times e$ whatever $T$ is."
    )
    note = note.extend(X, because="what each token adds").extend(H, because="states, one for each token")
    note = note.say("A state is the one before it and one outer product more; the first has only its own.")
    note = note.extend(sa.eq(H[0], X[0]), because="nothing stands before it")
    note = note.extend(sa.eq(H[1:], H[: T - 1] + X[1:]), because="one term more")
    note = note.say("A query reads the state of its own token.")
    return note.extend(sa.eq(O, READ), because="the sum over the keys before the sum over the features")


def denominator(note: sa.Derivation) -> sa.Derivation:
    """Divided by the sum of its weights."""
    z = sa.let("z", sa.cumsum(G, axis=0))
    note = note.section("With a denominator").say(
        "Where weights are to sum to 1, the sum of the features is a second state, of one column."
    )
    note = note.extend(z, because="sums of the features of keys")
    return note.extend(
        sa.eq(O / sa.sum(A, axis=1, keepdims=True), READ / sa.sum(F * z, axis=1, keepdims=True)),
        because="the same for values that are 1",
    )


def backward(note: sa.Derivation) -> sa.Derivation:
    """A state that runs from the last token to the first."""
    note = note.section("Backward").say("In parallel, it is two matrix products and a triangle, as forward.")
    note = note.extend(g["dV"], g["dA"], because="product rule on $O = A V$")
    note = note.extend(g["dU"], because="only the triangle was read")
    note = note.extend(g["dF"], g["dG"], because=r"product rule on $U = F G^{\top}$")
    note = note.say(
        "As a recurrence, a token is read by itself and by those after it, so what comes back gathers in a state that "
        "starts at the last token."
    )
    note = note.extend(Y, because="what each token sends back").extend(M, because="of all tokens")
    note = note.extend(R, because="of each token and those after it")
    note = note.extend(sa.eq(R[: T - 1], R[1:] + Y[: T - 1]), because="one term more, going backwards")
    note = note.extend(sa.eq(g["dV"], sa.einsum("tr,tre->te", G, R)), because="read by the features of the key")
    note = note.extend(sa.eq(g["dG"], sa.einsum("te,tre->tr", V, R)), because="read by the value")
    note = note.extend(sa.eq(g["dF"], sa.einsum("te,tre->tr", dO, H)), because="the state of the forward pass")
    last = sa.einsum("tr,re->te", F, sa.sum(X, axis=0))
    return note.claim(
        sa.prove(O, last),
        title="The last state is enough",
        holds="that is linear attention without a mask: early tokens would read what comes after them.",
    )


if __name__ == "__main__":
    print(derivation().text())
