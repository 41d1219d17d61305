"""The attention that the tests of compiled functions share."""

import numpy as np
import sympy

import symattn as sa

T, S, d, e, h, n = sa.sizes("T S d e h n")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e)
X, M, x, c = sa.tensor("X", T, S), sa.tensor("M", T, S), sa.tensor("x", n), sa.tensor("c")
ALLOWED = sa.tensor("A", T, S, binary=True)
HUGE = np.array([1e4, -1e4, 0.0, 9999.0])
SIZES = {T: 4, S: 5, d: 3, e: 6, h: 2, n: 7}


def attention():
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z))
    return sa.let("O", P @ V)


def normal(rng, *axes):
    return rng.normal(size=tuple(int(sympy.sympify(a).subs(SIZES)) for a in axes))


def numpy_softmax(z):
    weights = np.exp(z - z.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def backward_by_hand(q, k, v, cot):
    p = numpy_softmax(q @ k.mT / np.sqrt(q.shape[-1]))
    dp = cot @ v.mT
    dz = p * (dp - (p * dp).sum(-1, keepdims=True))
    return p @ v, dz @ k / np.sqrt(q.shape[-1]), dz.mT @ q / np.sqrt(q.shape[-1]), p.mT @ cot


def code(f):
    """The source without its docstring, in which formulas stand as well."""
    return f.source.partition('"""\n\n')[2]


def body(f):
    """The statements of the compiled function, without its docstring and helpers."""
    text, _, _ = f.source[f.source.index("\ndef f(") :].partition("\n\n\ndef check_gradient(")
    lines = text.strip().splitlines()
    return [line.strip() for line in lines if '"""' not in line]


def compile_attention():
    O = attention()
    g = sa.gradient(O, [Q, K, V])
    return sa.lambdify([Q, K, V, g.cotangent], [O, g])
