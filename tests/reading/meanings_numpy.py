"""The published formulas in NumPy, entry by entry as they are printed: written apart from their meanings in symattn.

A function takes the arrays, the numbers and the sizes that it names, and gives the values of the statements in order:
what is defined, and both sides of what is claimed. Functions known only by name are here what ``CONCRETE`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import exp, sqrt

import symattn as sa

from .formulas import FUNCTIONS, Functions

NUMPY: dict[str, Callable[..., Any]] = {}


def prints(id: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(compute: Callable[..., Any]) -> Callable[..., Any]:
        assert id not in NUMPY, id
        NUMPY[id] = compute
        return compute

    return keep


# --- functions in the place of unknown ones, in symattn and in NumPy ---


def feature(x):
    return x**2 + x / 2 + 1


def _score(name: str) -> Callable[..., Any]:
    def of_rows(left: Any, right: Any) -> Any:
        products = left * right + right**2
        return products if products.rank == 1 else sa.sum(products, axis=1)

    return of_rows


CONCRETE: Functions = {**FUNCTIONS, "function": lambda name: feature, "score of two rows": _score}


def score(left, right):
    return np.sum(left * right + right**2)


# --- what formulas are made of ---


def table(entry, *sizes):
    """The array of what an entry function gives at each index."""
    rows = [table(lambda *rest, i=i: entry(i, *rest), *sizes[1:]) for i in range(sizes[0])] if sizes else entry()
    return np.array(rows, dtype=float)


def softmax(z):
    """Of one row."""
    return exp(z) / np.sum(exp(z))


def attention(q, k, v, scale=None, bias=0.0):
    """One query after another."""
    z = q @ k.T / sqrt(scale or q.shape[1]) + bias
    return np.array([sum(p * value for p, value in zip(softmax(row), v, strict=True)) for row in z])


def rows_of_softmax(z):
    return np.array([softmax(row) for row in z])


def logistic(x):
    return 1 / (1 + exp(-x))


# --- attention ---


@prints("s0-06")
def _(Q, K, V, d):
    return attention(Q, K, V, d)


@prints("s2-13")
@prints("x03")
def _(Q, K, V, M):
    return attention(Q, K, V, bias=M)


@prints("s3-07")
@prints("s3-12")
@prints("x02")
def _(Q, K, V):
    return attention(Q, K, V)


@prints("x26")
def _(Q, K, V, M):
    return table(lambda i, c: softmax((Q @ K.T)[i] * M[i]) @ V[:, c], len(Q), V.shape[1])


@prints("x57")
def _(Q, K, V):
    return attention(Q.T, K.T, V)


@prints("x85")
def _(X, W_Q, W_K, W_V):
    return attention(X @ W_Q, X @ W_K, X @ W_V)


@prints("s4-07")
def _(r_i, V):
    return np.array([[softmax(row) @ V] for row in r_i[:, 0]])


@prints("x23")
def _(Q, K, V, n, m, d_h):
    scores = table(lambda i, j: Q[i] @ K[j] / sqrt(d_h), n, m)
    return scores, rows_of_softmax(scores), attention(Q, K, V)


@prints("x77")
def _(q_ti, k_ji, v_ji, T, n_h, d_h):
    def row(t, i):
        weights = softmax(np.array([q_ti[t, i, 0] @ k_ji[j, i, 0] / sqrt(d_h) for j in range(t + 1)]))
        return [sum(weights[j] * v_ji[j, i, 0] for j in range(t + 1))]

    return np.array([[row(t, i) for i in range(n_h)] for t in range(T)])


@prints("s2-05")
@prints("s3-18")
@prints("x32")
def _(Q, K):
    return rows_of_softmax(table(lambda i, j: Q[i] @ K[j] / sqrt(Q.shape[1]), len(Q), len(K)))


@prints("x33")
def _(Q, K, h, s):
    weight = np.array([exp(Q @ K.T[:, i] / sqrt(h)) for i in range(s)])
    return softmax(Q @ K.T / sqrt(h)), weight / sum(weight)


@prints("x25")
def _(q_i, k_j, M, n, m, d_k):
    return rows_of_softmax(table(lambda i, j: (q_i[i] @ k_j[j].T)[0, 0] / sqrt(d_k) + M[i, j], n, m))


@prints("x24")
def _(Q_E_ij, Q, K, n, m, d):
    return rows_of_softmax(table(lambda i, j: (Q_E_ij[i, j] * Q[i]) @ K[j].T / sqrt(d), n, m))


@prints("x21")
def _(q_k, h_ij, n, m, p, d):
    a = np.array([[softmax(feature(h_ij[i]) @ q_k[k]) for k in range(p)] for i in range(n)]).transpose(0, 2, 1)
    return a, table(lambda i, k, c: sum(a[i, j, k] * h_ij[i, j, c] for j in range(m)), n, p, d)


@prints("x11")
def _(P, M, N):
    return table(lambda i, j: exp(P[i, j]) * M[i, j] / sum(exp(P[i, k]) * M[i, k] for k in range(N)), N, N)


@prints("x39")
def _(a_ij, m, n):
    return table(lambda i, j: a_ij[i, j] / sum(a_ij[i]), m, n)


@prints("x61")
def _(S, L, n, m):
    return table(lambda i, j: exp(S[i, j]) / L[i], n, m)


@prints("x41")
def _(Q_i, K_i, M_causal, h, d_head):
    return np.array([rows_of_softmax(Q_i[a] @ K_i[a].T / sqrt(d_head) + M_causal) for a in range(h)])


@prints("x58")
def _(q_i, K, m, i):
    return softmax(q_i[0] @ K.T + m * np.arange(-(i - 1), 1))[None]


@prints("s3-11")
def _(Z, q_i, k_j, score_ij, T, S, D_k):
    plain = table(lambda i, j: exp(Z[i, j]) / sum(exp(Z[i, r]) for r in range(S)), T, S)
    scaled = rows_of_softmax(table(lambda i, j: q_i[i] @ k_j[j] / sqrt(D_k), T, S))
    named = table(lambda i, j: score_ij[i, j] / sum(score_ij[i, r] for r in range(S)), T, S)
    return plain, plain, plain, scaled, scaled, named, named


@prints("s3-13")
def _(Z, V, v_j, alpha_q_iKj, T, S, D_v):
    entries = table(lambda i, j: sum(softmax(Z[i])[r] * V[r, j] for r in range(S)), T, D_v)
    rows = np.array([[sum(alpha_q_iKj[i, r] * v_j[r] for r in range(S))] for i in range(T)])
    return entries, entries, rows[:, 0], rows


# --- scores ---


@prints("s0-07")
@prints("x30")
@prints("p07")
def _(Q, K):
    return table(lambda i, j: sum(Q[i] * K[j]), len(Q), len(K))


@prints("x60")
def _(Q, K, sigma, n, m):
    return table(lambda i, j: sigma * Q[i] @ K[j], n, m)


@prints("x22")
def _(Q_bth, K_bjh_sq, B, T, H, S, d_h):
    return table(lambda b, t, h, j: Q_bth[b, t, h] @ K_bjh_sq[b, j, h] / sqrt(d_h), B, T, H, S)


@prints("s3-10")
def _(Q, K, q_i, k_j, T, S, D_k):
    by_matrices = (Q @ K.T) / sqrt(D_k)
    return by_matrices, by_matrices, table(lambda i, j: q_i[i] @ k_j[j] / sqrt(D_k), T, S)


@prints("x93")
def _(Q, K, M, n, d_k):
    return table(lambda i, j: Q[i] @ K[j] / sqrt(d_k) + M[i, j] / sqrt(d_k), n, n)


@prints("x67")
def _(Q, K, R_r, S_r, v, n):
    r, s = ({k: x[k + n - 1] for k in range(1 - n, n)} for x in (R_r, S_r))
    return table(lambda i, j: Q[i] @ K[j] + Q[i] @ r[i - j] + v @ K[j] + s[i - j], n, n)


@prints("x89")
def _(v, W_s, W_h, b, s_t_before, h_i, T, n):
    return table(lambda t, i: v @ np.tanh(W_s @ s_t_before[t] + W_h @ h_i[i] + b), T, n)


@prints("x88")
def _(W, a, h_i, n):
    return table(lambda i, j: feature(a @ np.concatenate([W @ h_i[i], W @ h_i[j]])), n, n)


@prints("x04")
def _(tau_i, delta, T):
    return table(lambda i, j: np.log(logistic(((i + 1) + tau_i[i] + delta - (j + 1)) / T)), T, T)


# --- heads ---


@prints("s3-14")
def _(H_i):
    return np.concatenate(list(H_i), axis=1)


@prints("s3-15")
def _(Q_i_prime, K_i_prime, V_i_prime, h):
    return np.array([attention(Q_i_prime[a], K_i_prime[a], V_i_prime[a]) for a in range(h)])


@prints("s3-16")
def _(Q, W_i_Q):
    return np.array([Q @ weight for weight in W_i_Q])


@prints("s3-17")
def _(Q, W_Q, W_i_Q):
    return Q @ W_Q, np.hstack([Q @ weight for weight in W_i_Q])


@prints("x49")
def _(head_i, W_O):
    return np.hstack(list(head_i)) @ W_O


@prints("x50")
def heads(Q, K, V, W_i_Q, W_i_K, W_i_V, h):
    return np.array([attention(Q @ W_i_Q[a], K @ W_i_K[a], V @ W_i_V[a]) for a in range(h)])


@prints("x53")
def _(Q, K, V, W_i_Q, W_i_K, W_i_V, W_O, h):
    each = heads(Q, K, V, W_i_Q, W_i_K, W_i_V, h)
    return np.hstack(list(each)) @ W_O, each


@prints("x78")
def _(W_O, o_ti, T):
    return np.array([W_O @ np.concatenate(list(o_ti[t])) for t in range(T)])


# --- linear attention, states, kernels ---


@prints("x14")
def _(L, Q, K, V, n, d_v):
    return table(lambda i, c: sum(L[i, j] * (Q[i] @ K[j]) * V[j, c] for j in range(n)), n, d_v)


@prints("x17")
def _(Q, K, V, n, d_v):
    def entry(i, c):
        weights = [feature(Q[i]) @ feature(key) for key in K]
        return np.dot(weights, V[:, c]) / sum(weights)

    return (table(entry, n, d_v),) * 3


@prints("x19")
def _(S_t_before, k_t, v_t, d):
    return table(lambda a, c: S_t_before[a, c] + feature(k_t[a]) * v_t[c], d, d)


@prints("x64")
def _(W_i_before, v_i, k_i, d_v, d_k):
    return table(lambda a, c: W_i_before[a, c] + v_i[a] * feature(k_i[c]), d_v, d_k)


@prints("x59")
def _(Q, K, V, w, T, d):
    def entry(t, c):
        weights = [exp(K[s, c] + w[t, s]) for s in range(T)]
        return logistic(Q[t, c]) * np.dot(weights, V[:, c]) / sum(weights)

    return table(entry, T, d)


@prints("x96")
def _(m_j_before, m_j, ell_j_before, ell_j, O_j_before, S_ij, V_j):
    return (exp(m_j_before - m_j) * ell_j_before * O_j_before + exp(S_ij - m_j) * V_j) / ell_j


@prints("x62")
def _(P, V, S, L, n, m):
    first = np.array([sum(P[i, j] * V[j] for j in range(m)) for i in range(n)])
    return first, first, np.array([1 / L[i] * sum(exp(S[i, j]) * V[j] for j in range(m)) for i in range(n)])


@prints("p06")
def gaussian(x, x_i):
    return exp(-0.5 * (x - x_i) ** 2)


@prints("p02")
def _(x_i):
    return 2 * np.sin(x_i) + x_i**0.8


@prints("s2-06")
def _(x_i, epsilon_i):
    return 2 * np.sin(x_i) + x_i**0.8 + epsilon_i


@prints("p03")
def _(y_i, n):
    return sum(1 / n * y for y in y_i)


@prints("s2-08")
def _(y_i, n):
    return (1 / n * sum(y_i),) * 2 + (sum(1 / n * y for y in y_i),)


@prints("s1-04")
def _(z, n):
    return softmax(z), table(lambda i: np.e ** z[i] / sum(np.e ** z[j] for j in range(n)), n)


@prints("s2-01")
def _(v_1, v_2, v_3):
    return 0.7 * v_1 + 0.05 * v_2 + 0.25 * v_3


@prints("s2-02")
def _(q, k_i, v_i, n):
    return sum(score(q, k_i[i]) * v_i[i] for i in range(n))


@prints("s2-03")
def _(q, k_i, n):
    weights = table(lambda i: score(q, k_i[i]), n)
    return np.zeros(n), weights, sum(weights), 1.0


@prints("s2-04")
def _(q, k_i, x, x_i, n):
    by_rows, by_points = table(lambda i: score(q, k_i[i]), n), table(lambda i: score(x, x_i[i]), n)
    kernel = feature(x - x_i)
    return by_rows, by_points, by_points, np.full(n, sum(kernel[i] / sum(kernel) for i in range(n)))


@prints("s2-09")
def _(q, k_i, x, x_i, n):
    by_rows, by_points = table(lambda i: score(q, k_i[i]), n), table(lambda i: score(x, x_i[i]), n)
    return by_rows, by_points, by_points, np.full(n, 1 / n)


@prints("s2-10")
def _(x, x_i, y_i, n):
    kernel = feature(x - x_i)
    regression = sum(kernel[i] / sum(kernel) * y_i[i] for i in range(n))
    return regression, regression, sum(score(x, x_i[i]) * y_i[i] for i in range(n))


@prints("s2-12")
def _(x, x_i, y_i, n):
    general = sum(score(x, x_i[i]) * y_i[i] for i in range(n))
    kernel = gaussian(x, x_i)
    regression = sum(kernel[i] * y_i[i] for i in range(n)) / sum(kernel)
    return general, general, regression, regression, softmax(-0.5 * (x - x_i) ** 2) @ y_i


# --- algebra and gradients ---


@prints("s0-03")
def _(X, W_q, W_k, W_v):
    return X @ W_q, X @ W_k, X @ W_v


@prints("s4-02")
def _(X, W_Q):
    return X @ W_Q


@prints("s4-03")
def _(X, W_K):
    return X @ W_K


@prints("s4-05")
def _(x_i, W_Q):
    return np.array([row @ W_Q for row in x_i])


@prints("s3-08")
def _(q_i, k_j):
    return np.vstack(list(q_i)), np.vstack(list(k_j))


@prints("x01")
def _(q, k, d_k):
    return q @ k, sum(q[i] * k[i] for i in range(d_k))


@prints("x43")
def _(Q, K, n, m, d):
    return table(lambda i, j: exp(Q[i] @ K[j] / sqrt(d)), n, m)


@prints("x44")
def _(A, n):
    return table(lambda i, j: sum(A[i]) if i == j else 0, n, n)


@prints("x46")
def _(A, B, C, D, m, n):
    return table(lambda i, j: (A[i] @ B[j]) * (C[i] @ D[j]), m, n)


@prints("p08")
def _():
    return np.array([[1, 3], [2, 4]])


@prints("x83")
def _(W_Q, W_K, x_i, n):
    left = table(lambda i, j: (W_Q @ x_i[i]) @ (W_K @ x_i[j]), n, n)
    return left, table(lambda i, j: x_i[i] @ (W_Q.T @ W_K) @ x_i[j], n, n)


@prints("x68")
def _(q, k_i, m):
    first = table(lambda i: -0.5 * np.linalg.norm(q - k_i[i]) ** 2, m)
    return first, first, table(lambda i: q @ k_i[i] - 0.5 * k_i[i] @ k_i[i] - 0.5 * q @ q, m)


@prints("x87")
def _(P, S, V, X):
    def attn(x):
        return rows_of_softmax(x @ x.T) @ x

    moved, plain = P @ rows_of_softmax(S) @ P.T @ P @ V, P @ rows_of_softmax(S) @ V
    return attn(P @ X), moved, moved, plain, plain, P @ attn(X)


@prints("x34")
def _(p, n):
    return table(lambda i, j: (p[i] if i == j else 0) - p[i] * p[j], n, n)


@prints("x79")
def _(P, dO):
    return P.T @ dO


@prints("x80")
def _(P, dP, n):
    return table(lambda i: P[i] * (dP[i] - sum(dP[j] * P[j] for j in range(n))), n)


@prints("x81")
def _(P, V, g):
    return P.T @ g, g @ V.T


@prints("x63")
def _(P, dO, V, O, n, m):
    rows = table(lambda i: sum(P[i, k] * (dO[i] @ V[k]) for k in range(m)), n)
    return rows, rows, table(lambda i: dO[i] @ O[i], n)
