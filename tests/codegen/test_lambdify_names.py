"""Names in compiled functions: any that is allowed compiles safely, and no other reaches the source."""

import numpy as np
import pytest
import sympy

import symattn as sa

from ..compiled import compile_attention, normal, x


@pytest.fixture(scope="module")
def compiled():
    return compile_attention()


# --- names ---

HOSTILE = ["np", "math", "dtype", "sum", "softmax", "f", "x'", "print", "T1", "erf", "t", "y", "i", "j", "x_prime",
           "logsumexp", "sum_to", "spread", "len", "range", "self", "exec", "open", "gelu", "axis", "E", "I", "N", "S1",
           "embed", "float", "ValueError"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_python_and_numpy_compile_safely(name, rng):
    t, other = sa.tensor(name, "a b"), sa.tensor("t'", "b")
    y = sa.let("y", sa.gelu(sa.softmax(t)) + sa.from_index(("a", "b"), lambda i, j: i - j) + other)
    z = sa.let("t", sa.concat([y, sa.logsumexp(t, -1, True)], -1))
    g = sa.gradient(z, [t, other])
    f = sa.lambdify([t, other, g.cotangent], [y, z, g])
    f.check()
    out = f(normal(rng, 2, 3), normal(rng, 3), normal(rng, 2, 4))
    assert [a.shape for a in out] == [(2, 3), (2, 4), (2, 3), (3,)]


@pytest.mark.parametrize("name", ["np", "math", "dtype", "f", "print", "t", "y", "self", "value", "arrays"])
def test_scalars_and_sizes_by_any_name_compile_safely(name):
    s = sympy.Symbol(name, positive=True)
    f = sa.lambdify([x], sa.tanh(x) * sympy.sqrt(s) + sa.sin(x * s))
    z = np.linspace(0, 1, 3)
    np.testing.assert_allclose(f(z, **{name: 2.0}), np.tanh(z) * np.sqrt(2) + np.sin(2 * z), rtol=1e-14)
    Y = sa.tensor("Y", size := sa.sizes(name))
    np.testing.assert_allclose(sa.lambdify([Y], Y / size)(np.ones(4)), 0.25)


@pytest.mark.parametrize(
    "name",
    [
        "a b", "a\nimport os", "x=__import__('os').system('true')", "__import__('os').system('true')", "alpha^2",
        "1 if print('hi') else 2", "a;b", "a#", "\\alpha", "lambda x: x",
    ],
)  # fmt: skip
def test_a_symbol_whose_name_is_no_identifier_never_reaches_the_source(name):
    s = sympy.Symbol(name, positive=True)
    try:
        f = sa.lambdify([x, s], x * s)
    except sa.SymattnError:
        return
    assert name not in f.source
    np.testing.assert_allclose(f(np.ones(3), 2.0), 2)


def test_primes_and_the_word_prime_do_not_meet():
    a, b = sa.tensor("x'", "n"), sa.tensor("x_prime", "n")
    np.testing.assert_allclose(sa.lambdify([a, b], a + 2 * b)(np.ones(3), np.zeros(3)), 1)
