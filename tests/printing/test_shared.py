"""Nothing shares a printed symbol with anything else in any medium: names, constants, functions, the identity."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa

n = sa.sizes("n")
pi, sigma, Gamma = (sympy.Symbol(name, positive=True) for name in ("pi", "sigma", "Gamma"))
M, E, I_n = sa.tensor("M", n, n), sa.tensor("E", n, n), sa.tensor("I_n", n, n)
CAPITALS = {
    "Alpha": "A", "Beta": "B", "Epsilon": "E", "Zeta": "Z", "Eta": "H", "Iota": "I", "Kappa": "K", "Mu": "M", "Nu": "N",
    "Omicron": "O", "Rho": "P", "Tau": "T", "Upsilon": "Y", "Chi": "X", "Khi": "X", "A_Alpha": "A_A", "W_1_0": "W_10",
}  # fmt: skip
barred = sa.from_index((n, n), lambda i, j: sympy.Piecewise((0, i < j), (-sympy.oo, True)))
SHARED = {
    "a constant": pi * sympy.pi * M,
    "a size that is a constant": sympy.pi * sa.tensor("X", "pi"),
    "an intermediate that is a constant": sympy.pi * sa.let("pi", M @ M),
    "the number of Euler and Mascheroni": sympy.EulerGamma * sa.tensor("gamma", n),
    "the golden ratio": sympy.GoldenRatio * sa.tensor("phi", n),
    "e in text": sympy.E * E,
    "infinity in text": sa.tensor("oo", n, n) + barred,
    "a constant in a scalar": pi * sympy.pi,
    "a function in a scalar": Gamma * sympy.gamma(n / 2),
    "a function": sa.sigmoid(M) * sigma,
    "a function of SymPy": Gamma * sympy.gamma(n / 2) * M,
    "the identity": sa.eye(n) @ M @ I_n,
    **{name: sa.tensor(name, n) + sa.tensor(letter, n) for name, letter in CAPITALS.items()},
}


@pytest.mark.parametrize("what", SHARED)
def test_what_would_share_a_symbol_is_refused(what):
    with pytest.raises(sa.NamingError, match=r"would both print as|and the number \w+ occurs"):
        sa.latex(SHARED[what])


APART = {
    "a size and e": sympy.E * sa.tensor("e", n),
    "nu and v": sa.tensor("nu", n) * sa.tensor("v", n),
    "omicron is a word": sa.tensor("omicron", n) * sa.tensor("o", n),
    "two shapes of phi": sa.tensor("phi", n) * sa.tensor("varphi", n),
    "O and 0 below": sa.tensor("W_O", n) * sa.tensor("W_0", n),
    "Sigma and sigmoid": sa.sigmoid(M) * sa.tensor("Sigma", n, n),
    "pi without the constant": pi * M,
    "Catalan's constant is upright": sympy.Catalan * M,
}


@pytest.mark.parametrize("what", APART)
def test_what_looks_different_is_printed(what):
    assert sa.latex(APART[what])
    assert str(APART[what])


@pytest.mark.parametrize("name", ["mask", "softmax", "diag"])
def test_a_word_times_a_sum_is_no_function_of_it(name):
    assert sa.latex(sa.tensor(name, n, n) @ (M + E)) == rf"\mathrm{{{name}}} \, (M + E)"


x, A = sa.tensor("x", n), sa.tensor("A", n, n)
i = sympy.Symbol("i", integer=True, nonnegative=True)
ENTRIES = [
    (x[2] * sa.tensor("x_2"), {}, "(x)_{2} x_{2}"),
    (x[2] * sa.tensor("x_2"), {"style": "index"}, "x_{2} (x)_{2}"),
    (x * sa.tensor("x_i"), {"style": "index"}, "x_{i} (x)_{i}"),
    (x @ x * sa.tensor("x_k"), {"style": "index"}, r"x_{k} \sum_{k = 0}^{n - 1} (x)_{k}^{2}"),
    (A[1, 2] * sa.tensor("A_12"), {}, "(A)_{1 2} A_{12}"),
    (x[2] * sa.tensor("y_2"), {}, "x_{2} y_{2}"),
]


@pytest.mark.parametrize(("made", "asked", "written"), ENTRIES)
def test_an_entry_is_not_printed_as_another_symbol(made, asked, written):
    assert sa.latex(made, **asked) == written


def test_an_entry_in_a_scalar_is_not_printed_as_another_symbol():
    with pytest.raises(sa.NamingError, match=r"the entry x\[i\] would both print"):
        sa.latex(x[i] * sympy.Symbol("x_i", real=True))
