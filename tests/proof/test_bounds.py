"""Inequalities: the bounded family is proved, and false ones that look like it never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.proof.bounds.prove import bound_proof
from symattn.proof.claims import Claim, eq, le, lt

from ..shares import one_in

T, S, d, e, n = sa.sizes("T S d e n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
Z, M = sa.tensor("Z", T, S), sa.tensor("M", T, S, binary=True)
ZT, VT = sa.tensor("Z", T, T), sa.tensor("V", T, e, positive=True)
W = sa.tensor("W", T, S, positive=True)
x, y, z = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("z", n)
P, PM, p = sa.softmax(Z), sa.softmax(Z, where=M), sa.softmax(z)
CAUSAL = sa.where(sa.from_index((T, T), lambda i, j: j <= i), 0, -sympy.oo)
PC = sa.softmax(ZT + CAUSAL)
QUARTER = sympy.Rational(1, 4)
J = sa.jacobian(p, z)
TOP = sa.max(Z, axis=-1, keepdims=True)
Case = tuple[Claim, list[Claim]]
E, FLAT = sa.exp(x), sa.ones(n)
w, TOP_Z = sa.tensor("w", n, positive=True), sa.tensor("z_m")
h, g, beta, gap = *sa.sizes("h g"), sympy.Symbol("beta", positive=True), sympy.Symbol("g_0", real=True)
c = sympy.Symbol("c", real=True)
NORMAL = W / sa.sum(W, -1, keepdims=True)
MASKED = M * sa.exp(Z) / sa.sum(M * sa.exp(Z), -1, keepdims=True)
R = sa.tensor("R", T, S)
STOCHASTIC = [le(0, R), eq(sa.sum(R, -1), 1)]
KERNEL = sa.exp(-beta * (x[:, None] - x[None, :]) ** 2)
BLOCK = sa.from_index((h * g,), lambda i: sympy.floor(i / h))
FAR, NEAR = (sa.from_index((T, T), f) for f in (lambda i, j: abs(i - j), lambda i, j: abs(i - j) <= h))
LATER, EARLY = (sa.from_index((T, T), f) for f in (sympy.Max, lambda i, j: sympy.Max(i, j) < h))
LSE = sa.log(sa.sum(E))
A, A2 = sa.tensor("A", T, T), sa.tensor("A_2", T, T)
LONGER, LONGER2 = sa.tensor("u", n + 2), sa.tensor("v", n + 2)

TRUE: dict[str, Callable[[], Claim | Case]] = {
    "softmax <= 1": lambda: le(P, 1),
    "softmax > 0": lambda: lt(0, P),
    "masked softmax >= 0": lambda: le(0, PM),
    "masked softmax <= 1": lambda: le(PM, 1),
    "softmax < 1 of two entries or more": lambda: lt(sa.softmax(sa.tensor("Z", T, S + 1)), 1),
    "softmax of one entry": lambda: le(1, sa.softmax(sa.tensor("Z", T, 1))),
    "row sum <= 1": lambda: le(sa.sum(P, -1), 1),
    "row sum >= 1": lambda: le(1, sa.sum(P, -1)),
    "masked row sum <= 1": lambda: le(sa.sum(PM, -1), 1),
    "sum of all": lambda: le(sa.sum(P), T),
    "running sum": lambda: le(sa.cumsum(P), 1),
    "mean of values": lambda: (le(P @ V, 3), [le(V, 3)]),
    "mean of values, strictly": lambda: (lt(P @ V, 3), [lt(V, 3)]),
    "mean of values, from below": lambda: (le(-2, P @ V), [le(-2, V)]),
    "masked mean of values": lambda: (le(PM @ V, 3), [le(V, 3)]),
    "causal mean of values": lambda: (le(PC @ VT, 3), [le(VT, 3)]),
    "causal mean of positive values": lambda: le(0, PC @ VT),
    "mean by einsum": lambda: (le(sa.einsum("ts,se->te", P, V), 3), [le(V, 3)]),
    "mean by a transpose": lambda: (le(sa.einsum("st,se->te", P.T, V), 3), [le(V, 3)]),
    "product of weights": lambda: le(P @ sa.softmax(sa.tensor("Y", S, e)), 1),
    "mean of exponentials": lambda: lt(0, P @ sa.exp(V)),
    "multiple of a size": lambda: (le(P @ V, S), [le(V, S)]),
    "exp": lambda: lt(0, sa.exp(x)),
    "square": lambda: le(0, x * x),
    "square as a power": lambda: le(0, x**2),
    "sum of squares": lambda: le(0, sa.sum(x * x)),
    "square of a difference": lambda: le(0, (x - y) * (x - y)),
    "two products": lambda: le(2 * x * y, x * x + y * y),
    "variance": lambda: le(0, sa.mean((x - sa.mean(x)) ** 2)),
    "sigmoid < 1": lambda: lt(sa.sigmoid(x), 1),
    "sigmoid > 0": lambda: lt(0, sa.sigmoid(x)),
    "tanh < 1": lambda: lt(sa.tanh(x), 1),
    "tanh > -1": lambda: lt(-1, sa.tanh(x)),
    "erf": lambda: lt(sa.erf(x), 1),
    "cos": lambda: le(sa.cos(x), 1),
    "relu": lambda: le(0, sa.relu(x)),
    "relu >= x": lambda: le(x, sa.relu(x)),
    "abs": lambda: le(0, sa.abs(x)),
    "abs >= x": lambda: le(x, sa.abs(x)),
    "softplus > 0": lambda: lt(0, sa.softplus(x)),
    "softplus > x": lambda: lt(x, sa.softplus(x)),
    "exp >= 1 + x": lambda: le(1 + x, sa.exp(x)),
    "log <= x - 1": lambda: le(sa.log(x), x - 1),
    "maximum": lambda: le(x, sa.maximum(x, y)),
    "minimum": lambda: le(sa.minimum(x, y), y),
    "max": lambda: le(Z - TOP, 0),
    "max, broadcast": lambda: le(Z, sa.max(Z, -1)[:, None] * sa.ones(T, S)),
    "exp of logits below their maximum": lambda: le(sa.exp(Z - TOP), 1),
    "min <= mean": lambda: le(sa.min(Z, -1), sa.mean(Z, -1)),
    "mean <= max": lambda: le(sa.mean(Z, -1), sa.max(Z, -1)),
    "logsumexp >= max": lambda: le(sa.max(Z, -1), sa.logsumexp(Z)),
    "logsumexp <= max + log n": lambda: le(sa.logsumexp(Z), sa.max(Z, -1) + sympy.log(S)),
    "logsumexp >= logits": lambda: le(Z - sa.logsumexp(Z, keepdims=True), 0),
    "logsumexp >= mean + log n": lambda: le(sa.mean(Z, -1) + sympy.log(S), sa.logsumexp(Z)),
    "log of weights": lambda: le(sa.log(P), 0),
    "entropy": lambda: le(0, -sa.sum(p * sa.log(p))),
    "p(1 - p) >= 0": lambda: le(0, p * (1 - p)),
    "p(1 - p) <= 1/4": lambda: le(p * (1 - p), QUARTER),
    "p^2 <= p": lambda: le(p * p, p),
    "softmax Jacobian <= 1/4": lambda: le(J, QUARTER),
    "softmax Jacobian >= -1/4": lambda: le(-QUARTER, J),
    "|softmax Jacobian| <= 1/4": lambda: le(sa.abs(J), QUARTER),
    "p q <= p": lambda: le(p * sa.sigmoid(x), p),
    "positive product": lambda: lt(0, W @ W.T),
    "sizes": lambda: le(1, sa.from_index((n,), lambda i: n)),
    "an index": lambda: le(0, sa.from_index((n,), lambda i: i * n)),
    "additive mask": lambda: le(CAUSAL, 0),
    "masked exponential": lambda: le(0, sa.exp(ZT + CAUSAL)),
    "given": lambda: (le(x, y), [le(x, y)]),
    "given, strictly": lambda: (lt(x + 1, y + 1), [lt(x, y)]),
    "given, transposed": lambda: (le(Z.T, (2 * W).T - W.T), [le(Z, W)]),
    "given equality": lambda: (le(x, y), [eq(x, y)]),
    "given of an expression": lambda: (le(0, sa.sqrt(Q @ K.T)), [le(0, Q @ K.T)]),
    "quotient": lambda: le(0, x * x / sa.sum(x * x)),
    "rsqrt": lambda: le(sa.rsqrt(sa.mean(x * x) + 1), 1),
    "sparsemax": lambda: le(sa.sparsemax(Z), 1),
    "sparsemax row": lambda: le(sa.sum(sa.sparsemax(Z), -1), 1),
    "permutation": lambda: le(sa.tensor("Pi", n, n, permutation=True), 1),
    "binary": lambda: le(0, 1 - M),
    "triangle of weights": lambda: le(sa.tril(P), 1),
    # choices use their conditions
    "where x > 0": lambda: lt(0, sa.where(x > 0, x + 1, E)),
    "where inside a sum": lambda: lt(0, sa.where(x > 0, x, E - 1) + 1),
    "where x >= c": lambda: le(c, sa.where(x >= c, x, FLAT * c)),
    "where x < y": lambda: le(0, sa.where(x < y, y - x, x - y)),
    "where not": lambda: le(0, sa.where(~(x < 0), x, 0)),
    "where or": lambda: le(0, sa.where((x > 1) | (x < 0), x * (x - 1), 0)),
    "where of a square": lambda: le(0, sa.where(x * x < 1, 1 - x * x, 0)),
    "where of indices": lambda: le(0, sa.from_index((T, T), lambda i, j: sympy.Piecewise((i - j, j <= i), (0, True)))),
    "relu <= abs": lambda: le(sa.relu(x), sa.abs(x)),
    "triangle inequality": lambda: le(sa.abs(x + y), sa.abs(x) + sa.abs(y)),
    "triangle inequality of a sum": lambda: le(sa.abs(sa.sum(x)), sa.sum(sa.abs(x))),
    # a part over a whole
    "W / sum(W) <= 1": lambda: le(NORMAL, 1),
    "W / sum(W) > 0": lambda: lt(0, NORMAL),
    "W / (sum(W) + 1) < 1": lambda: lt(W / (sa.sum(W, -1, keepdims=True) + 1), 1),
    "masked exp over its sum": lambda: le(MASKED, 1),
    "row sum of W / sum(W)": lambda: le(sa.sum(NORMAL, -1), 1),
    "row sum of W / sum(W), from below": lambda: le(1, sa.sum(NORMAL, -1)),
    "mean with positive weights": lambda: (le(NORMAL @ V, 3), [le(V, 3)]),
    "mean with masked weights": lambda: (le(MASKED @ V, 3), [le(V, 3)]),
    "sum(W V) / sum(W)": lambda: (le((W @ V) / sa.sum(W, -1, keepdims=True), 3), [le(V, 3)]),
    "masked sum of weights": lambda: le(sa.sum(P * M, -1), 1),
    "weighted sum of weights": lambda: (le(sa.sum(P * W, -1), 1), [le(W, 1)]),
    "sum of squared weights": lambda: le(sa.sum(p * p), sa.max(p)),
    "mean <= largest value": lambda: le(P @ V, sa.max(V, 0)[None, :] * sa.ones(T, e)),
    "absolute mean": lambda: (le(sa.abs(P @ V), c), [le(sa.abs(V), c)]),
    "given row-stochastic": lambda: (le(R @ V, 3), [*STOCHASTIC, le(V, 3)]),
    "given row-stochastic, from below": lambda: (le(-3, R @ V), [*STOCHASTIC, le(-3, V)]),
    "given row sums <= 1": lambda: (le(R @ V, 3), [le(0, R), le(sa.sum(R, -1), 1), le(V, 3)]),
    "entry of a row that sums to 1": lambda: (le(R, 1), STOCHASTIC),
    # extremes, sums and logarithms of sums
    "max <= sum": lambda: le(sa.max(E), sa.sum(E)),
    "sum of exp(x - max) >= 1": lambda: le(1, sa.sum(sa.exp(x - sa.max(x)))),
    "sum of exp(x - max) <= n": lambda: le(sa.sum(sa.exp(x - sa.max(x))), n),
    "max <= log of sum": lambda: le(sa.max(x), LSE),
    "log of sum <= max + log n": lambda: le(LSE, sa.max(x) + sympy.log(n)),
    "shifted log of sum, from below": lambda: le(sa.max(x), sa.max(x) + sa.log(sa.sum(sa.exp(x - sa.max(x))))),
    "shifted log of sum": lambda: le(sa.max(x) + sa.log(sa.sum(sa.exp(x - sa.max(x)))), sa.max(x) + sympy.log(n)),
    "smooth maximum": lambda: le(sa.logsumexp(beta * x) / beta, sa.max(x) + sympy.log(n) / beta),
    "smooth maximum, from below": lambda: le(sa.max(x), sa.logsumexp(beta * x) / beta),
    "max of a sum": lambda: le(sa.max(x + y), sa.max(x) + sa.max(y)),
    # indices and kernels
    "block of an index": lambda: lt(BLOCK, g),
    "block of an index, as a whole number": lambda: le(BLOCK, g - 1),
    "index < size": lambda: lt(sa.from_index((n,), lambda i: i), n),
    "index <= size - 1": lambda: le(sa.from_index((n,), lambda i: i), n - 1),
    "distance within a window": lambda: le(-h, sa.where(NEAR, -FAR, 0)),
    "larger of two indices under a condition": lambda: le(sa.where(EARLY, LATER, 0), h - 1),
    "sum of the larger of two indices": lambda: lt(-1, sa.sum(LATER, -1)),
    "sum of indices": lambda: le(sa.from_index((T, S), lambda i, j: i + j), T + S - 2),
    "remainder": lambda: lt(sa.from_index((h * g,), lambda i: sympy.Mod(i, h)), h),
    "kernel": lambda: le(KERNEL, 1),
    "kernel of weighted distances": lambda: le(sa.exp(-w[:, None] * (x[:, None] - x[None, :]) ** 2), 1),
    "diagonal of a kernel": lambda: le(KERNEL, sa.einsum("ii->i", KERNEL)[:, None] * sa.ones(n, n)),
    # given inequalities inside others
    "given, in maximum": lambda: (le(sa.maximum(sa.max(x), -5), sa.max(x)), [le(-5, sa.max(x))]),
    "given, in minimum": lambda: (le(x, sa.minimum(x, y)), [le(x, y)]),
    "given, in where": lambda: (le(x, sa.where(y > 0, y, x)), [le(x, y)]),
    "given, in exp": lambda: (lt(sa.exp(x), sa.exp(y)), [lt(x, y)]),
    "given, in sigmoid": lambda: (le(sa.sigmoid(x), sa.sigmoid(y)), [le(x, y)]),
    "given, in relu": lambda: (le(sa.relu(x), sa.relu(y)), [le(x, y)]),
    "given, in maximum of both": lambda: (le(sa.maximum(x, z), sa.maximum(y, z)), [le(x, y)]),
    "given, in logsumexp": lambda: (le(sa.logsumexp(x), sa.logsumexp(y)), [le(x, y)]),
    "given, in sqrt": lambda: (le(sa.sqrt(x), sa.sqrt(y)), [le(0, x), le(x, y)]),
    "given, in a reciprocal": lambda: (le(1 / y, 1 / x), [lt(0, x), le(x, y)]),
    "given, in a sum": lambda: (le(sa.sum(w * x), sa.sum(w * y)), [le(x, y)]),
    "given, in max": lambda: (le(sa.max(x), sa.max(y)), [le(x, y)]),
    "given max": lambda: (le(x, 3), [le(sa.max(x), 3)]),
    "given twice": lambda: (le(x, z), [le(x, y), le(y, z)]),
    "given twice, strictly": lambda: (lt(x, z), [le(x, y), lt(y, z)]),
    "given twice, in sums": lambda: (le(x + y, z + 2 * y), [le(x, y), le(y, z), le(0, y)]),
    "given of a transpose": lambda: (le(A, A2), [le(A.T, A2.T)]),
    "given number of a transpose": lambda: (le(A, 3), [le(A.T, 3)]),
    "given of a sum": lambda: (le(x, z - y), [le(x + y, z)]),
    "gap": lambda: (le(sa.exp(-beta * (TOP_Z - z)), sympy.exp(-beta * gap)), [le(gap, TOP_Z - z)]),
    "sum over a gap": lambda: (
        le(sa.sum(sa.exp(beta * (z - TOP_Z))), n * sympy.exp(-beta * gap)),
        [le(gap, TOP_Z - z)],
    ),
}
FALSE: dict[str, Callable[[], Claim | Case]] = {
    "softmax < 1": lambda: lt(P, 1),
    "masked softmax > 0": lambda: lt(0, PM),
    "softmax of an additive mask > 0": lambda: lt(0, PC),
    "softmax over a row maximum that may be -oo": lambda: lt(0, sa.softmax(sa.max(ZT + CAUSAL, axis=0))),
    "masked row sum >= 1": lambda: le(1, sa.sum(PM, -1)),
    "masked mean of negative values": lambda: (le(PM @ V, -1), [le(V, -1)]),
    "values without a bound": lambda: le(P @ V, 3),
    "bound of another tensor": lambda: (le(P @ V, 3), [le(sa.tensor("Y", S, e), 3)]),
    "bound from the other side": lambda: (le(P @ V, 3), [le(3, V)]),
    "column sum": lambda: le(sa.sum(P, 0), 1),
    "weights on the wrong axis": lambda: (le(sa.softmax(Z, axis=0) @ V, 3), [le(V, 3)]),
    "weights used twice": lambda: (le(P @ V + P @ V, 3), [le(V, 3)]),
    "diagonal of weights": lambda: le(sa.trace(sa.softmax(ZT)), 1),
    "any number": lambda: le(x, 0),
    "relu > 0": lambda: lt(0, sa.relu(x)),
    "square > 0": lambda: lt(0, x * x),
    "product": lambda: le(0, x * y),
    "cube": lambda: le(0, x**3),
    "max, strictly": lambda: lt(Z - TOP, 0),
    "max over the other axis": lambda: le(ZT - sa.max(ZT, -1)[None, :], 0),
    "two maxima": lambda: le(sa.max(ZT, 0), sa.max(ZT, -1)),
    "logsumexp > max": lambda: lt(sa.max(Z, -1), sa.logsumexp(Z)),
    "logsumexp <= max": lambda: le(sa.logsumexp(Z), sa.max(Z, -1)),
    "logsumexp with another size": lambda: le(sa.logsumexp(Z), sa.max(Z, -1) + sympy.log(T)),
    "p <= p^2": lambda: le(p, p * p),
    "p(1 - p) < 1/4": lambda: lt(p * (1 - p), QUARTER),
    "p(1 - p) <= 1/5": lambda: le(p * (1 - p), sympy.Rational(1, 5)),
    "x(1 - y) <= 1/4": lambda: le(x * (1 - y), QUARTER),
    "Jacobian >= 0": lambda: le(0, J),
    "reciprocal": lambda: le(0, 1 / x),
    "exp >= 1": lambda: le(1, sa.exp(x)),
    "exp > 1 + x": lambda: lt(1 + x, sa.exp(x)),
    "masked exponential > 0": lambda: lt(0, sa.exp(ZT + CAUSAL)),
    "two sizes": lambda: le(sa.from_index((n,), lambda i: T), sa.from_index((n,), lambda i: S)),
    "size >= 2": lambda: le(2, sa.from_index((n,), lambda i: n)),
    "an index > 0": lambda: lt(0, sa.from_index((n,), lambda i: i * n)),
    "a scalar": lambda: le(0, sa.from_index((n,), lambda i: sympy.Symbol("tau", real=True))),
    "given, turned round": lambda: (le(y, x), [le(x, y)]),
    "given, of a transpose": lambda: (le(ZT, sa.tensor("Y", T, T)), [le(ZT, sa.tensor("Y", T, T).T)]),
    "given, not strict": lambda: (lt(x, y), [le(x, y)]),
    "sigmoid of the sign": lambda: le(sa.sigmoid(x), sympy.Rational(1, 2)),
    "unknown function": lambda: le(0, sa.unknown("phi", x)),
    "inverse": lambda: le(0, sa.inv(ZT)),
    "triangle > 0": lambda: lt(0, sa.tril(P)),
    "shifted weights > 0": lambda: lt(0, sa.shift(P, 1)),
    "equality": lambda: eq(x, x),
    # choices
    "where x >= 0, strictly": lambda: lt(0, sa.where(x >= 0, x, E)),
    "where, off by one": lambda: le(1, sa.where(x > 0, x + 1, E)),
    "where, turned round": lambda: lt(0, sa.where(x < 0, x + 1, E)),
    "where of another": lambda: lt(0, sa.where(y > 0, x + 1, E)),
    "where x >= c, off by one": lambda: le(c + 1, sa.where(x >= c, x, FLAT * c)),
    "where or, turned round": lambda: le(0, sa.where((x < 1) | (x < 0), x * (x - 1), 0)),
    # a part over a whole
    "W / sum(W) < 1": lambda: lt(NORMAL, 1),
    "2 W / sum(W) <= 1": lambda: le(2 * NORMAL, 1),
    "Z / sum(Z)": lambda: le(Z / sa.sum(Z, -1, keepdims=True), 1),
    "sum without the numerator": lambda: le(W / sa.sum(M * W, -1, keepdims=True), 1),
    "sum of another row": lambda: le(
        sa.tensor("C", T, T, positive=True) / sa.sum(sa.tensor("C", T, T, positive=True), -1)[None, :], 1
    ),
    "sum of a part": lambda: le(LONGER**2 / sa.sum(LONGER[:n] ** 2), 1),
    "masked exp over its sum, strictly": lambda: lt(0, MASKED),
    "masked sum of weights, strictly": lambda: lt(sa.sum(P * M, -1), 1),
    "weighted sum of weights without a bound": lambda: le(sa.sum(P * Z, -1), 1),
    "given row-stochastic without a sign": lambda: (le(R @ V, 3), [eq(sa.sum(R, -1), 1), le(V, 3)]),
    "given column-stochastic": lambda: (le(R @ V, 3), [le(0, R), eq(sa.sum(R, 0), 1), le(V, 3)]),
    "given row sums >= 1": lambda: (le(-3, R @ V), [le(0, R), le(1, sa.sum(R, -1)), le(-3, V)]),
    "given row sums <= 1, of negative values": lambda: (le(R @ V, -3), [le(0, R), le(sa.sum(R, -1), 1), le(V, -3)]),
    # extremes, sums and logarithms of sums
    "max <= sum of signed terms": lambda: le(sa.max(x), sa.sum(x)),
    "max of a part": lambda: le(LONGER - sa.max(LONGER[:2]), 0),
    "sum of exp(x - max) > 1": lambda: lt(1, sa.sum(sa.exp(x - sa.max(x)))),
    "sum of exp(x - max) <= n - 1": lambda: le(sa.sum(sa.exp(x - sa.max(x))), n - 1),
    "sum of exp(x - another max)": lambda: le(1, sa.sum(sa.exp(x - sa.max(y)))),
    "smooth maximum of any sign": lambda: le(sa.logsumexp(c * x) / c, sa.max(x) + sympy.log(n) / c),
    "masked logsumexp, strictly": lambda: lt(ZT + CAUSAL, sa.logsumexp(ZT + CAUSAL, keepdims=True) * sa.ones(T, T)),
    "sum of weights <= largest": lambda: le(sa.sum(p), sa.max(p)),
    # indices and kernels
    "block < g - 1": lambda: lt(BLOCK, g - 1),
    "block of another size": lambda: lt(sa.from_index((h * g,), lambda i: sympy.floor(i / g)), g),
    "block of one more": lambda: lt(sa.from_index((h * g + 1,), lambda i: sympy.floor(i / h)), g),
    "index < size - 1": lambda: lt(sa.from_index((n,), lambda i: i), n - 1),
    "kernel < 1": lambda: lt(KERNEL, 1),
    "kernel of any sign": lambda: le(sa.exp(-c * (x[:, None] - x[None, :]) ** 2), 1),
    # given
    "given, in maximum, off by one": lambda: (le(sa.maximum(sa.max(x), -4), sa.max(x)), [le(-5, sa.max(x))]),
    "given, in exp, not strict": lambda: (lt(sa.exp(x), sa.exp(y)), [le(x, y)]),
    "given, in floor, strict": lambda: (lt(sa.floor(x), sa.floor(y)), [lt(x, y)]),
    "given, in a square": lambda: (le(x * x, y * y), [le(x, y)]),
    "given, in a reciprocal of any sign": lambda: (le(1 / y, 1 / x), [le(x, y)]),
    "given, in a sum with signs": lambda: (le(sa.sum(z * x), sa.sum(z * y)), [le(x, y)]),
    "given of sums": lambda: (le(x, y), [le(sa.sum(x), sa.sum(y))]),
    "given of maxima": lambda: (le(x, y), [le(sa.max(x), sa.max(y))]),
    "given min": lambda: (le(x, 3), [le(sa.min(x), 3)]),
    "given twice, turned round": lambda: (le(z, x), [le(x, y), le(y, z)]),
    "given twice, not strict": lambda: (lt(x, z), [le(x, y), le(y, z)]),
    "given of one transpose": lambda: (le(A, A2), [le(A.T, A2)]),
    "given of a part": lambda: (le(LONGER, LONGER2), [le(LONGER[:2], LONGER2[:2])]),
    "given of a first column": lambda: (le(A, A2), [le(A[:, :1], A2[:, :1])]),
    "given of a diagonal": lambda: (le(A, A2), [le(sa.einsum("ii->i", A), sa.einsum("ii->i", A2))]),
    "given where chosen": lambda: (le(x, y), [le(sa.where(z > 0, x, 0), sa.where(z > 0, y, 0))]),
    "given where not masked": lambda: (le(A, A2), [le(A + CAUSAL, A2 + CAUSAL)]),
    "strictly under a mask": lambda: (lt(A + CAUSAL, A2 + CAUSAL), [lt(A, A2)]),
    "a masked entry below itself and one": lambda: lt(A + CAUSAL, A + CAUSAL + 1),
    "strictly in exp under a mask": lambda: (lt(sa.exp(A + CAUSAL), sa.exp(A2 + CAUSAL)), [lt(A, A2)]),
    "sum over a gap, one term less": lambda: (
        le(sa.sum(sa.exp(beta * (z - TOP_Z))), (n - 1) * sympy.exp(-beta * gap)),
        [le(gap, TOP_Z - z)],
    ),
    "sum over twice a gap": lambda: (
        le(sa.sum(sa.exp(beta * (z - TOP_Z))), n * sympy.exp(-2 * beta * gap)),
        [le(gap, TOP_Z - z)],
    ),
    "sum over a gap of any sign": lambda: (
        le(sa.sum(sa.exp(c * (z - TOP_Z))), n * sympy.exp(-c * gap)),
        [le(gap, TOP_Z - z)],
    ),
}


def proof(case: Claim | Case) -> Any:
    claim, given = case if isinstance(case, tuple) else (case, [])
    return bound_proof(claim, given, Budget(60))


@pytest.mark.parametrize("name", one_in(2, TRUE))
def test_true_inequalities_are_proved(name: str) -> None:
    found = proof(TRUE[name]())
    assert found is not None
    assert found.check()
    assert found.text().endswith(str(found.claim))
    assert found.claim.latex() in found.latex()


@pytest.mark.parametrize("name", FALSE)
def test_false_inequalities_are_not_proved(name: str) -> None:
    assert proof(FALSE[name]()) is None


def test_a_proof_says_why_and_under_which_condition() -> None:
    assert proof(TRUE["mean of values"]()).text().splitlines() == [
        "0 < softmax(Z) <= 1: the rows of softmax are positive probabilities",
        "V <= 3: given",
        "softmax(Z) @ V <= 3: each term of the sum, or a mean with weights that sum to 1",
        "so 0 <= right - left: softmax(Z) @ V <= broadcast_to(3, (T, e))",
    ]
    assert proof(TRUE["quotient"]()).conditions == ("sum(x * x) != 0",)
    assert proof(TRUE["softmax > 0"]()).conditions == ()


def test_a_proof_with_other_steps_fails_its_check() -> None:
    found = proof(TRUE["softmax <= 1"]())
    assert not type(found)(found.claim, (), (), found.conclusion, ()).check()


@pytest.mark.slow
def test_time_is_limited_and_depth_is_not() -> None:
    deep = x
    for _ in range(3000):
        deep = sa.tanh(deep) * x
    with pytest.raises(OutOfBudget):
        bound_proof(le(deep, 1), [], Budget(0.05))
    shallow = x
    for _ in range(300):
        shallow = sa.sigmoid(shallow)
    assert bound_proof(lt(0, shallow), [], Budget(60)) is not None


EQUAL = {
    "exponentials": (sa.exp(x + 1), sympy.E * sa.exp(x)),
    "shifted weights": (sa.softmax(x + 1), sa.softmax(x)),
    "squares of sine and cosine": (sa.sin(x) ** 2 + sa.cos(x) ** 2, sa.ones(n)),
    "sigmoids": (sa.sigmoid(x) + sa.sigmoid(-x), sa.ones(n)),
    "softplus": (sa.softplus(x) - sa.softplus(-x), x),
    "roots": (sympy.sqrt(2) * sympy.sqrt(3) * sa.ones(n), sympy.sqrt(6) * sa.ones(n)),
    "maxima and minima": (sa.maximum(x, y) + sa.minimum(x, y), x + y),
    "absolute values": (sa.sqrt(x**2), sa.abs(x)),
    "silu": (sa.silu(x) - sa.silu(-x), x),
    "a total": (sa.sum(sa.softmax(x)), 1),
}


@pytest.mark.parametrize("name", EQUAL)
def test_of_equal_sides_neither_is_less(name):
    left, right = EQUAL[name]
    assert sa.prove(lt(left, right)).status == "refuted"
    assert sa.prove(lt(right, left)).status == "refuted"
