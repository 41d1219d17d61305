"""The attention and the complex-step comparison that the tests of derivatives share."""

import numpy as np
import sympy

import symattn as sa
from symattn.ops import RECORDS

T, S, d, e, h, n, D = sa.sizes("T S d e h n D")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X, x, c = sa.tensor("X", T, d), sa.tensor("x", n), sa.tensor("c")
SIZES = {T: 4, S: 5, d: 3, e: 6, h: 2, n: 7, D: 8}
u = sympy.Symbol("u", real=True)
tau = sympy.Symbol("tau", positive=True)

PRODUCT, SOFTMAX = RECORDS["matmul"].reason, RECORDS["softmax"].reason
FIVE = [
    ("dV", "P.T @ dO", PRODUCT),
    ("dP", "dO @ V.T", PRODUCT),
    ("dZ", "P * (dP - rowsum(P * dP))", SOFTMAX),
    ("dQ", "dZ @ K / sqrt(d)", PRODUCT),
    ("dK", "dZ.T @ Q / sqrt(d)", PRODUCT),
]
FIVE_LATEX = [
    r"\mathrm{d}V &= P^{\top} \, \mathrm{d}O &&",
    r"\mathrm{d}P &= \mathrm{d}O \, V^{\top} &&",
    r"\mathrm{d}Z &= P \odot (\mathrm{d}P - (P \odot \mathrm{d}P) \mathbf{1} \mathbf{1}^{\top}) &&",
    r"\mathrm{d}Q &= \frac{\mathrm{d}Z \, K}{\sqrt{d}} &&",
    r"\mathrm{d}K &= \frac{\mathrm{d}Z^{\top} \, Q}{\sqrt{d}} &&",
]


def named_attention(q=Q, k=K, v=V):
    Z = sa.let("Z", q @ k.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    return Z, P, sa.let("O", P @ v)


def bare_attention(q=Q, k=K, v=V):
    return sa.softmax(q @ k.T / sympy.sqrt(d)) @ v


def lines(g):
    """``name = expression`` of every step."""
    return [line.partition("#")[0].strip() for line in str(g).splitlines()]


def arrays_for(tensors, seed=0):
    rng = np.random.default_rng(seed)
    return {t: rng.normal(size=tuple(int(size.subs(SIZES)) for size in t.shape)) for t in tensors}


def run(outputs, arrays, **keywords):
    return sa.lambdify(list(arrays), outputs)(*arrays.values(), **keywords)


def assert_gradient(y, wrt, tolerance=1e-12, seed=0, **keywords):
    """Every gradient against the complex step of the forward pass, entry by entry."""
    g = sa.gradient(y, wrt)
    tensors = list(dict.fromkeys([*y.tensors, *wrt]))
    arrays = arrays_for([*tensors, *([g.cotangent] if y.rank else [])], seed)
    cotangent = arrays.pop(g.cotangent) if y.rank else 1.0
    forward = sa.lambdify(tensors, y)
    given = {**arrays, g.cotangent: cotangent} if y.rank else arrays
    for variable, got in zip(wrt, run([g], given, **keywords), strict=True):
        want = np.zeros(arrays[variable].shape)
        for place in np.ndindex(want.shape):
            moved = arrays[variable].astype(complex)
            moved[place] += 1e-30j
            at = {**arrays, variable: moved}
            want[place] = (forward(*(at[t] for t in tensors), **keywords).imag / 1e-30 * cotangent).sum()
        scale = np.abs(want).max()
        assert np.isfinite(got).all()
        assert scale > 0, "a gradient of zeros shows nothing"
        assert np.abs(got - want).max() <= tolerance * max(scale, 1), variable
    return g
