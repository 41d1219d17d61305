"""The second corpus in NumPy, entry by entry as it is printed, apart from its meanings in symattn."""

from __future__ import annotations

import numpy as np
from numpy import exp, log, sqrt

from .meanings_numpy import feature, logistic, prints, rows_of_softmax, softmax, table


@prints("m01")
def _(h_t, W_a, barh_s):
    return table(lambda t, s: h_t[t] @ W_a @ barh_s[s], len(h_t), len(barh_s))


@prints("m02")
def _(x, gamma, beta, mu, sigma, epsilon, d):
    return table(lambda i: gamma[i] * (x[i] - mu) / sqrt(sigma**2 + epsilon) + beta[i], d)


@prints("m03")
def _(x, g, d):
    return table(lambda i: x[i] / sqrt(1 / d * sum(x[j] ** 2 for j in range(d))) * g[i], d)


@prints("m04")
def _(p, n):
    return table(lambda i, j: p[i] * ((i == j) - p[j]), n, n)


@prints("m05")
def _(y, p, n):
    return -sum(y[i] * log(p[i]) for i in range(n))


@prints("m06")
def _(z, m):
    return log(sum(exp(z)))


@prints("m07")
def _(z, T):
    return softmax(z / T)


@prints("m08")
def _(q_i, k_j, n, m):
    return table(lambda i, j: q_i[i] @ k_j[j] / np.linalg.norm(q_i[i]) / np.linalg.norm(k_j[j]), n, m)


@prints("m09")
def _(k_j, v_j, m):
    return sum(np.outer(feature(k_j[j]), v_j[j]) for j in range(m))


@prints("m10")
def _(S_t_before, beta_t, k_t, v_t):
    return S_t_before + beta_t * np.outer(v_t - S_t_before @ k_t, k_t)


@prints("m11")
def _(x, W_1, W_2, W_3):
    return (logistic(x @ W_1) * (x @ W_2)) @ W_3


@prints("m12")
def _(x, W_1, b_1, W_2, b_2):
    return np.maximum(0, x @ W_1 + b_1) @ W_2 + b_2


@prints("m13")
def _(X, W_Q, W_K, W_V, W_O, d_k):
    return X + rows_of_softmax((X @ W_Q) @ (X @ W_K).T / sqrt(d_k)) @ (X @ W_V) @ W_O


@prints("m14")
def _(x, theta):
    return np.array([np.cos(theta) * x[0] - np.sin(theta) * x[1], np.sin(theta) * x[0] + np.cos(theta) * x[1]])


@prints("m15")
def _(A, B, m, n):
    return (sum(A[i, j] * B[j, i] for i in range(m) for j in range(n)),) * 2


@prints("m16")
def _(A):
    return np.linalg.norm(A) ** 2, sum(np.diagonal(A.T @ A))


@prints("m17")
def _(A, B, m, r):
    return (table(lambda i, j: A[j] @ B[:, i], r, m),) * 2


@prints("m18")
def _(U, V, n):
    return (np.linalg.solve(np.eye(n) + U @ V.T, np.eye(n)),) * 2


@prints("m19")
def _(P, dP, n, m):
    return table(lambda i, j: P[i, j] * (dP[i, j] - P[i] @ dP[i]), n, m)


@prints("m20")
def _(dZ, K, d):
    return table(lambda i, c: dZ[i] @ K[:, c] / sqrt(d), len(dZ), d)


@prints("m21")
def _(Q, K, m, D, n, d):
    return rows_of_softmax(table(lambda i, j: Q[i] @ K[j] / sqrt(d) - m * D[i, j], n, n))


@prints("m22")
def _(ell, S, V, n, d):
    return table(lambda i, c: exp(S[i]) @ V[:, c] / ell[i], n, d)


@prints("m23")
def _(S, n):
    return table(lambda i: sum(exp(S[i])), n)


@prints("m24")
def _(V):
    return np.mean(V, axis=0)


@prints("m25")
def _(P, V, n):
    return np.array([sum(P[i, j] * V[j] for j in range(i + 1)) for i in range(n)])


@prints("m26")
def _(T):
    return table(lambda i, j: j <= i, T, T)


@prints("m28")
def _(Q, K, c, n, m):
    return table(lambda i, j: c * np.tanh(Q[i] @ K[j] / c), n, m)


@prints("m29")
def _(x_i, sigma, n):
    return table(lambda i, j: exp(-(np.linalg.norm(x_i[i] - x_i[j]) ** 2) / (2 * sigma**2)), n, n)


@prints("m30")
def _(q_t, k_s, v_s, gamma, T):
    return np.array([sum(gamma ** (t - s) * (q_t[t] @ k_s[s]) * v_s[s] for s in range(t + 1)) for t in range(T)])


@prints("m31")
def _(Z, n):
    return table(lambda i: sum(softmax(Z[i])), n), np.ones(n)


@prints("m32")
def _(Q, K, W, n, m):
    return (table(lambda i, j: (Q[i] @ W) @ (K[j] @ W), n, m),) * 2


@prints("m33")
def _(x, A, n):
    return x @ (A @ x), sum(A[i, j] * x[i] * x[j] for i in range(n) for j in range(n))


@prints("m34")
def _(x_i, barx, n):
    return 1 / n * sum((x_i[i] - barx) ** 2 for i in range(n))


@prints("m35")
def _(z):
    return softmax(z), softmax(z)


@prints("m36")
def _(W, x, b, m):
    return table(lambda j: W[:, j] @ x + b[j], m)


@prints("m37")
def _(H_1, H_2):
    return np.vstack([H_1, H_2])


@prints("m38")
def _(A, B):
    return np.hstack([A, B])


@prints("m39")
def _(x):
    return np.tanh(x), np.tanh(x)


@prints("m40")
def _(Z, n):
    return table(lambda i: max(Z[i]), n), rows_of_softmax(Z)
