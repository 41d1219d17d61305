"""A variant of one's own: two memories read under one softmax, with a learned temperature."""

from __future__ import annotations

import sympy

import symattn as sa

T, S, R, d, e = sa.sizes("T S R d e")
tau = sympy.Symbol("tau", positive=True)
Q = sa.tensor("Q", T, d)
K, V = [sa.tensor("K_1", S, d), sa.tensor("K_2", R, d)], [sa.tensor("V_1", S, e), sa.tensor("V_2", R, e)]
Z = [sa.let("Z_1", Q @ K[0].T / tau), sa.let("Z_2", Q @ K[1].T / tau)]
P = sa.let("P", sa.softmax(sa.concat(Z, axis=1)))
P_1, P_2 = P[:, :S], P[:, S:]
O = sa.let("O", P_1 @ V[0] + P_2 @ V[1])
A = [sa.let("A_1", sa.softmax(Z[0])), sa.let("A_2", sa.softmax(Z[1]))]
ell = [sa.let("ell_1", sa.logsumexp(Z[0])), sa.let("ell_2", sa.logsumexp(Z[1]))]
gamma = sa.let("gamma", sa.sigmoid(ell[0] - ell[1]))
MIXTURE = sa.diag(gamma) @ A[0] @ V[0] + sa.diag(1 - gamma) @ A[1] @ V[1]
g = sa.gradient(O, [Q, *K, *V, tau])
dZ = [g["dZ_1"], g["dZ_2"]]
FREE = -sa.sum(Q * g["dQ"]) / tau


def derivation() -> sa.Derivation:
    """Definitions, a gate between two attentions, gradients, and what the temperature costs: nothing."""
    note = sa.Derivation(
        "Two memories under one softmax",
        given={
            Q: "queries", K[0]: "keys of the first memory", V[0]: "its values", K[1]: "keys of the second memory",
            V[1]: "its values", tau: "temperature",
        },
        summary="A query reads a short-term and a long-term memory with one shared softmax and a learned temperature "
        r"$\tau$: what it computes, its gradients, and what $\tau$ does.",
        result=[
            "The output is a gated mixture of two ordinary attentions,",
            sa.eq(O, MIXTURE),
            gamma,
            "and the gradient by the temperature needs no pass of its own:",
            sa.eq(g["dtau"], FREE),
        ],
        letters="a b A B C",
    )  # fmt: skip
    return numbers(gradients(gate(definitions(note))))


def definitions(note: sa.Derivation) -> sa.Derivation:
    """Both memories together, and each by itself."""
    note = note.section("Definitions").say(
        "One softmax runs over the keys of both memories, so the weights of a row sum to 1 over both."
    )
    note = note.extend(*Z, because="scores").extend(P, because="weights, side by side").extend(O, because="output")
    note = note.say("Each memory by itself would give").extend(*A, because="weights within one memory")
    note = note.extend(*ell, because=r"of each row, $\ell_i \in \mathbb{R}^{T}$")
    return note.extend(gamma, because="one gate for each query, in $(0, 1)$")


def gate(note: sa.Derivation) -> sa.Derivation:
    """The output as a mixture."""
    exps = [sa.exp(x) for x in ell]
    share = exps[0] / (exps[0] + exps[1])
    steps = sa.Derivation("Proof").extend(sa.eq(P_1, sa.diag(share) @ A[0]), because=r"$\exp(\ell_1)$ cancels")
    steps = steps.then(sa.diag(gamma) @ A[0], because=r"$\sigma(a - b) = \exp(a) / (\exp(a) + \exp(b))$")
    steps = steps.extend(sa.eq(P_2, sa.diag(1 - gamma) @ A[1]), because="likewise")
    steps = steps.extend(sa.eq(O, MIXTURE), because="put into $O = P_1 V_1 + P_2 V_2$")
    why = r"The shared softmax divides by $\exp(\ell_1) + \exp(\ell_2)$, each own one by $\exp(\ell_i)$."
    note = note.section("A gate between two attentions")
    return note.claim(sa.prove(O, MIXTURE), title="Shared softmax is gating", because=why, proof=steps)


def gradients(note: sa.Derivation) -> sa.Derivation:
    """By both memories, by the queries and by the temperature."""
    delta = sa.let("delta", sa.sum(O * g.cotangent, axis=1))
    dP = [g.cotangent @ V[0].T, g.cotangent @ V[1].T]
    note = note.section("Gradients").say(
        "As for one memory, but both share the average that softmax takes off, since they share the softmax. This "
        "average is the product of output and its gradient, row by row."
    )
    note = note.extend(delta, because=r"one number for each query, $\delta \in \mathbb{R}^{T}$")
    note = note.extend(g["dV_1"], g["dV_2"], because="product rule")
    by_rows = [sa.eq(dZ[0], P_1 * (dP[0] - delta[:, None])), sa.eq(dZ[1], P_2 * (dP[1] - delta[:, None]))]
    note = note.extend(*by_rows, because="softmax, row by row")
    note = note.extend(g["dK_1"], g["dK_2"], because="product rule")
    note = note.extend(g["dQ"], because="both memories read the query")
    inner = [sa.sum(dZ[i] * Z[i]) for i in (0, 1)]
    steps = sa.Derivation("Proof").extend(
        sa.eq(g["dtau"], -(inner[0] + inner[1]) / tau), because=r"$Z_i$ is inverse in $\tau$"
    )
    steps = steps.then(FREE, because=r"definition of $\mathrm{d}Q$")
    return note.claim(
        sa.prove(g["dtau"], FREE),
        title="The temperature comes free",
        because=r"Scores are linear in $Q$ and inverse in $\tau$, so scaling both changes nothing. A factor moves: "
        r"$\operatorname{sum}(A \odot B C^{\top}) = \operatorname{sum}(A C \odot B)$.",
        proof=steps,
    )


def numbers(note: sa.Derivation) -> sa.Derivation:
    """Two queries, three keys."""
    note = note.section("In numbers").say(
        r"Two queries, two keys in the first memory and one in the second, $\tau = 1$."
    )
    values = {
        Q: [[1, 0], [0, 1]], K[0]: [[1, 0], [1, 1]], K[1]: [[0, 2]], V[0]: [[1], [0]], V[1]: [[2]],
        g.cotangent: [[1], [1]], tau: 1,
    }  # fmt: skip
    return note.example(values, show=[gamma, O, g["dQ"], g["dtau"]])


if __name__ == "__main__":
    print(derivation().text())
