"""What is meant by formulas of attention: weights, masks, heads, recurrent and kernel forms."""

from __future__ import annotations

import sympy

import symattn as sa

from .meaning import Defined, Refused, Stated, once_declared, reads, undecidable, wrong

root = sympy.sqrt


# --- scaled dot-product attention ---


@wrong("s0-06", "keys have the width d', and the scores are divided by the root of d")
def scaled_by_the_width_of_tokens(Q, K, V, d):
    return Defined("Self-Attention", sa.softmax(Q @ K.T / root(d)) @ V, (Q, K, V))


@reads("s2-13")
def with_an_additive_mask(Q, K, V, M, d_k):
    return Defined("Attention", sa.softmax(Q @ K.T / root(d_k) + M) @ V, (Q, K, V))


@once_declared("s3-07", "what sigma is: a softmax of rows, the logistic function, or a scale")
def by_a_letter_for_softmax(Q, K, V, sigma, T, D_k, D_v):
    return Defined("Attention", sigma(Q @ K.T / root(D_k)) @ V, (Q, K, V), (T, D_v))


@once_declared("s3-12", "what Attention is")
def attention_applied(Q, K, V, Attention):
    return Defined("A", Attention(Q, K, V))


@reads("x02", "softmax and Attention are bare letters")
def in_bare_letters(Q, K, V, d_k):
    return Defined("Attention", sa.softmax(Q @ K.T / root(d_k)) @ V, (Q, K, V))


@reads("x03", "softmax is bare letters")
def masked_in_bare_letters(Q, K, V, M, d_h):
    return Defined("O", sa.softmax(Q @ K.T / root(d_h) + M) @ V)


@wrong("x26", "a product with a mask inside softmax masks nothing: what is masked has the weight of the score 0")
def with_a_mask_as_a_factor(Q, K, V, M):
    return Defined("O", sa.softmax((Q @ K.T) * M) @ V)


@undecidable(
    "x57", "which axis is seq: Q and K have columns for tokens here, and both axes of the scores are sequences"
)
def keys_as_columns(Q, K, V, d_k):
    return Defined("Attention", sa.softmax(Q.T @ K / root(d_k)) @ V, (Q, K, V))


@reads("x85")
def of_one_sequence(X, W_Q, W_K, W_V, d_k):
    return Defined("SelfAttention", sa.softmax(X @ W_Q @ W_K.T @ X.T / root(d_k)) @ X @ W_V, (X,))


@reads("s4-07", "r_i is a row for every i; the scores are not scaled")
def a_row_of_the_output(r_i, V):
    return Defined("O_i", sa.softmax(r_i) @ V)


@reads("x23", "the index of softmax is that of the columns")
def scores_weights_output(Q, K, V, d_h):
    scores = sa.let("S", Q @ K.T / root(d_h))
    weights = sa.let("A", sa.softmax(scores, axis=-1))
    return [Defined("S", scores), Defined("A", weights), Defined("O", weights @ V)]


@undecidable("x77", "softmax over j is over all of them, or as here over those of the sum, 1 to t")
def causal_heads(q_ti, k_ji, v_ji, T, d_h):
    scores = sa.einsum("tiad,jiad->itj", q_ti, k_ji) / root(d_h)
    weights = sa.softmax(scores, where=sa.from_index((T, T), lambda t, j: j <= t))
    return Defined("o_{t,i}", sa.einsum("itj,jiad->tiad", weights, v_ji))


# --- weights ---


@reads("s2-05")
def weights(Q, K, d_k):
    return Defined(r"\alpha", sa.softmax(Q @ K.T / root(d_k)), (Q, K))


@once_declared("s3-18", "what sigma is")
def weights_by_a_letter_for_softmax(Q, K, sigma, D_k):
    return sigma(Q @ K.T / root(D_k))


@reads("x32", "the whole equation stands in mathrm")
def weights_in_roman(Q, K, d):
    return Defined("A", sa.softmax(Q @ K.T / root(d)))


@reads("x33", "a vector left of a matrix is a row; K^T_i is column i of K^T")
def softmax_as_a_family(Q, K, h):
    scores = K @ Q / root(h)
    weight = sa.exp(scores)
    return Stated(sa.eq(sa.softmax(scores), weight / sa.sum(weight)))


@reads("x25", "q_i and k_j are rows")
def masked_weights_of_rows(q_i, k_j, M, d_k):
    return Defined("A", sa.softmax(sa.einsum("iad,jad->ij", q_i, k_j) / root(d_k) + M, axis=1))


@reads("x24", "the index of softmax is j; K^T_j is the transpose of row j")
def weights_modulated_by_edges(Q_E_ij, Q, K, d):
    return Defined("a", sa.softmax(sa.einsum("ijd,jd->ij", Q_E_ij * Q[:, None], K) / root(d), axis=1))


@once_declared("x21", "that phi is a function of entries")
def weights_of_one_of_three_indices(q_k, h_ij, phi):
    weights = sa.let("a", sa.softmax(sa.einsum("kd,ijd->ijk", q_k, phi(h_ij)), axis=1))
    return [Defined("a", weights), Defined("z", sa.einsum("ijk,ijd->ikd", weights, h_ij))]


@reads("x11", "M multiplies the exponentials; where its entries are 0 and 1 it is a mask")
def weights_of_a_mask(P, M):
    kept = sa.exp(P) * M
    return Defined("A", kept / sa.sum(kept, axis=1, keepdims=True))


@reads("x39", "what is a softmax already is not changed")
def normalised(a_ij):
    return Defined(r"\alpha", a_ij / sa.sum(a_ij, axis=1, keepdims=True))


@reads("x61")
def weights_of_a_tile(S, L):
    return Defined("P", sa.exp(S) / L[:, None])


@reads("x41", "(i) is the name of a head, and its mask is that of all")
def causal_weights_of_a_head(Q_i, K_i, M_causal, d_head):
    return Defined("A^{(i)}", sa.softmax(Q_i @ K_i.mT / root(d_head) + M_causal))


@reads("x58", "the size i is also the place of the query")
def weights_with_linear_biases(q_i, K, m, i):
    distance = sa.from_index((1, i), lambda _, j: j - (i - 1))
    return sa.softmax(q_i @ K.T + m * distance)


@once_declared("s3-11", "what sigma is, that score is a family, and that Z is the matrix of the scaled scores")
def softmax_in_three_forms(Z, q_i, k_j, sigma, score_ij, D_k):
    def shares(x):
        return x / sa.sum(x, axis=1, keepdims=True)

    scaled = q_i @ k_j.T / root(D_k)
    known = (sa.eq(Z, scaled), sa.eq(score_ij, sa.exp(scaled)))
    return [
        Stated(sa.eq(sigma(Z), shares(sa.exp(Z)))),
        Stated(sa.eq(shares(sa.exp(Z)), shares(sa.exp(scaled))), given=known[:1]),
        Stated(sa.eq(shares(sa.exp(scaled)), shares(score_ij)), given=known[1:]),
        Defined(r"\alpha(q_i,K,j)", shares(score_ij)),
    ]


@once_declared("s3-13", "what sigma is, and that alpha(q_i, K, j) is the softmax of Z")
def entries_and_rows_of_the_output(Z, V, v_j, sigma, alpha_q_iKj):
    output = sigma(Z) @ V
    weighted = alpha_q_iKj @ v_j
    known = (sa.eq(alpha_q_iKj, sa.softmax(Z)), sa.eq(v_j, V))
    return [
        Defined("A", output),
        Stated(sa.eq(output, weighted), given=known),
        Defined(r"\text{row}_i(A)", weighted[:, None, :]),
    ]


# --- scores and masks ---


@reads("s0-07")
def scores(Q, K):
    return Defined("A", Q @ K.T)


@reads("x30")
def scores_with_their_shape(Q, K, N):
    return Defined("S", Q @ K.T, shape=(N, N))


@reads("p07")
def product_with_a_transpose(Q, K):
    return Q @ K.T


@once_declared("x60", "that sigma is a scale")
def scores_with_a_scale(Q, K, sigma):
    return Defined("S", sigma * Q @ K.T)


@reads("x22", "sq is a name; t and j run over the lengths of queries and keys")
def scores_of_four_indices(Q_bth, K_bjh_sq, d_h):
    return Defined("a^{sq}", sa.einsum("bthd,bjhd->bthj", Q_bth, K_bjh_sq) / root(d_h))


@reads("s3-10", "the index of QK^T_{i,j} is that of the product: Q times an entry is no entry")
def scores_by_rows(Q, K, q_i, k_j, D_k):
    scores = Q @ K.T / root(D_k)
    return [
        Defined("Z", scores),
        Stated(sa.eq(scores, q_i @ k_j.T / root(D_k)), given=(sa.eq(Q, q_i), sa.eq(K, k_j))),
    ]


@wrong("x93", "the mask is scaled as well, which changes nothing only where its entries are 0 and -oo")
def scores_with_the_mask_inside_the_scale(Q, K, M, d_k):
    return Defined("S", (Q @ K.T + M) / root(d_k))


@once_declared("x67", "from where to where R and S are counted: 1-n to n-1")
def relative_scores(Q, K, R_r, S_r, v, n):
    offset = sa.from_index((n, n), lambda i, j: i - j + n - 1)
    relative = sa.einsum("id,ijd->ij", Q, sa.take(R_r, offset, axis=0))
    return Defined("A^{rel}", Q @ K.T + relative + (K @ v)[None, :] + sa.take(S_r, offset, axis=0))


@reads("x89")
def additive_scores(v, W_s, W_h, b, s_t_before, h_i):
    hidden = (s_t_before @ W_s.T)[:, None] + (h_i @ W_h.T)[None] + b
    return Defined("e", sa.tanh(hidden) @ v)


@undecidable("x88", "a is applied like a function and then transposed like a vector: rename one of the two")
def graph_attention_scores(W, a, h_i, LeakyReLU, F_prime):
    hidden = h_i @ W.T
    return Defined("e", LeakyReLU((hidden @ a[:F_prime])[:, None] + (hidden @ a[F_prime:])[None]))


def causal(T, name):
    """Zero where a query sees a key, and -oo elsewhere."""
    return Defined(name, sa.from_index((T, T), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True))))


@reads("x15")
def causal_mask(T):
    return causal(T, "M")


@reads("x90")
def causal_mask_by_rows(T):
    return causal(T, "M")


@once_declared("x04", "what sigma is; T is the length of the declaration, and not a temperature of its own")
def soft_mask(tau_i, delta, sigma, T):
    place = sa.from_index((T, T), lambda i, j: i - j)
    return Defined("bias", sa.log(sigma((place + tau_i[:, None] + delta) / T)))


# --- heads ---


def side_by_side(heads):
    """Heads h, T, e as one matrix T, h*e."""
    return sa.merge_axes(sa.moveaxis(heads, 0, 1), (1, 2))


@once_declared("s3-14", "that D = h D_h; there is no output projection")
def heads_without_a_projection(H_i, T, h, D_h):
    return Defined("MultiHeadAttention", side_by_side(H_i), ("Q", "K", "V"), (T, h * D_h))


@once_declared("s3-15", "what Attention is, and the shapes of Q'_i, K'_i and V'_i")
def a_head_of_primed_names(Q_i_prime, K_i_prime, V_i_prime, Attention, h, T, D_h):
    return Defined("H_i", Attention(Q_i_prime, K_i_prime, V_i_prime), shape=(h, T, D_h))


@reads("s3-16", "the second row of the array has the shapes of the factors above it")
def a_projection_with_shapes_below(Q, W_i_Q, h, T, D_h):
    return Defined("Q'_i", Q @ W_i_Q, shape=(h, T, D_h))


@once_declared("s3-17", "that D = h D_h, and that W^Q is the W_i^Q side by side")
def product_with_joined_projections(Q, W_Q, W_i_Q):
    return Stated(sa.eq(Q @ W_Q, side_by_side(Q @ W_i_Q)), given=(sa.eq(W_Q, side_by_side(W_i_Q)),))


@reads("x49")
def projected_heads(head_i, W_O):
    return Defined("MultiHead", side_by_side(head_i) @ W_O, ("Q", "K", "V"))


@once_declared("x50", "what Attention is")
def a_head(Q, K, V, W_i_Q, W_i_K, W_i_V, Attention):
    return Defined("head_i", Attention(Q @ W_i_Q, K @ W_i_K, V @ W_i_V))


@once_declared("x53", "what Attention is")
def projected_heads_and_a_head(Q, K, V, W_i_Q, W_i_K, W_i_V, W_O, Attention):
    heads = sa.let("head", Attention(Q @ W_i_Q, K @ W_i_K, V @ W_i_V))
    return [Defined("MultiHead", side_by_side(heads) @ W_O, (Q, K, V)), Defined("head_i", heads)]


@reads("x78", "semicolons stack columns")
def projected_stack(W_O, o_ti):
    return Defined("u_t", sa.merge_axes(o_ti, (1, 2)) @ W_O.T)


# --- linear attention, states, kernels ---


@reads("x14", "an entrywise product is looser than juxtaposition")
def masked_linear_attention(L, Q, K, V):
    return Defined("y", (L * (Q @ K.T)) @ V)


@undecidable("x17", "a sum without an index, and a fraction of a matrix by a column: say that it sums over the keys")
def normalised_linear_attention(Q, K, V, phi):
    total = (phi(Q) @ sa.sum(phi(K), axis=0))[:, None]
    first, second = ((phi(Q) @ phi(K).T) @ V) / total, (phi(Q) @ (phi(K).T @ V)) / total
    return [Defined("Attn", first, (Q, K, V)), Stated(sa.eq(first, second))]


@wrong("x19", "of the column q_t the output is phi(q_t)^T S_t")
def state_and_a_column_left_of_it(S_t_before, k_t, v_t, phi):
    return [
        Defined("S_t", S_t_before + sa.outer(phi(k_t), v_t), shape=S_t_before.shape),
        Refused("phi(q_t) is a column, d by 1, and S_t is d by d"),
    ]


@once_declared("x64", "that phi is a function of entries")
def fast_weights(W_i_before, v_i, k_i, phi):
    return Defined("W^{(i)}", W_i_before + sa.outer(v_i, phi(k_i)))


@once_declared("x59", "that sigma is the logistic function; the fraction is one of entries")
def without_dot_products(Q, K, V, w, sigma):
    weight = sa.exp(K[None] + w[:, :, None])
    return Defined("Y_t", sigma(Q) * sa.sum(weight * V[None], axis=1) / sa.sum(weight, axis=1))


@once_declared(
    "x96", "whether S_ij and V_j are an entry and a row, as here, or blocks, of which the product is one of matrices"
)
def online_update(m_j_before, m_j, ell_j_before, ell_j, O_j_before, S_ij, V_j):
    old = sympy.exp(m_j_before - m_j) * ell_j_before * O_j_before
    return Defined("O^{(j)}", (old + sympy.exp(S_ij - m_j) * V_j) / ell_j)


@once_declared("x62", "that the weights are P_ij = e^(S_ij) / L_i")
def a_row_of_the_output_in_two_forms(P, V, S, L):
    second = (sa.exp(S) @ V) / L[:, None]
    return [
        Defined("O", P @ V),
        Stated(sa.eq(P @ V, second), given=(sa.eq(P, sa.exp(S) / L[:, None]),)),
    ]
