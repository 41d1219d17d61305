"""Source as a module for people: it says what it computes, and tests its own gradients."""

import ast
import re

import numpy as np
import pytest
import sympy

import symattn as sa

from ..compiled import ALLOWED, K, Q, S, T, V, attention, compile_attention, d, h, n, x

TAU = sympy.Symbol("tau", positive=True)
LABELS = sa.tensor("y", T, integer=True)


def of(arguments, output, by):
    g = sa.gradient(output, by)
    return sa.lambdify([*arguments, *([g.cotangent] if output.rank else [])], [output, g])


def with_two_outputs():
    P, L = sa.let("P", sa.softmax(Q @ K.T)), sa.let("L", sa.logsumexp(Q @ K.T))
    dP, dL = sa.tensor("dP", T, S), sa.tensor("dL", T)
    return sa.lambdify([Q, K, dP, dL], [P, L, sa.gradient({P: dP, L: dL}, [Q, K])])


MODULES = {  # and the arguments whose gradients are tested
    "attention": (compile_attention, "QKV"),
    "loss": (lambda: of([Q, LABELS], sa.sum(sa.softmax(Q) * sa.attention.one_hot(LABELS, d)), [Q]), "Q"),
    "two outputs": (with_two_outputs, "QK"),
    "mask": (lambda: of([Q, K, ALLOWED], sa.softmax(Q @ K.T, where=ALLOWED), [Q, K]), "QK"),
    "scalar": (lambda: of([Q, TAU], sa.softmax(Q / TAU), [Q, TAU]), ["Q", "tau"]),
    "keywords": (lambda: of([Q], sa.tile(Q, h, 0) / TAU, [Q, TAU]), ["Q", "tau"]),
    "only where positive": (lambda: of([x], sa.sqrt(x) + sa.log(x), [x]), "x"),
    "inverse": (lambda: of([sa.tensor("A", n, n, invertible=True)], sa.inv(sa.tensor("A", n, n, invertible=True)),
                           [sa.tensor("A", n, n, invertible=True)]), "A"),
    "prime": (lambda: of([sa.tensor("x'", n)], sa.tanh(sa.tensor("x'", n)), [sa.tensor("x'", n)]), ["x_prime"]),
    "stopped": (lambda: of([Q], Q * sa.stop_gradient(Q), [Q]), []),
    "no forward": (lambda: sa.lambdify([x, sa.tensor("dy", n)], sa.gradient({sa.tanh(x): sa.tensor("dy", n)}, x)), []),
    "no gradient": (lambda: sa.lambdify([Q], sa.softmax(Q)), []),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_a_module_tests_its_gradients(name, capsys):
    make, tested = MODULES[name]
    source = make().source
    exec(compile(source, "attention.py", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert re.findall(r"the gradient by (\S+) agrees", said) == list(tested)
    assert ("check_gradient" in source) == bool(tested)
    assert max(map(len, source.splitlines())) <= 120


def test_the_source_of_what_is_large_is_written_without_running_it():
    large = {T: 10**7, d: 10**6}  # 80 TB
    made = of([Q.subs(large)], sa.softmax(Q).subs(large), [Q.subs(large)])
    assert "def f(" in made.source
    assert "check_gradient" not in made.source


def test_a_wrong_gradient_is_found():
    source = compile_attention().source
    assert "dZ @ K /" in source
    with pytest.raises(AssertionError, match="the gradient by Q is off by"):
        exec(source.replace("dZ @ K /", "2 * dZ @ K /"), {"__name__": "__main__"})


def test_the_docstring_says_what_is_computed_from_what():
    told = ast.get_docstring(ast.parse(compile_attention().source), clean=False).rstrip()
    assert told.splitlines() == [
        "O, dQ, dK, dV of Q[T, d], K[S, d], V[S, e], dO[T, e]; loop axes may stand in front.",
        "",
        "    Z[T, S] = Q @ K.T / sqrt(d)",
        "    P[T, S] = softmax(Z)",
        "    O[T, e] = P @ V",
        "    dP[T, S] = dO @ V.T",
        "    dZ[T, S] = P * (dP - rowsum(P * dP))",
        "    dQ[T, d] = dZ @ K / sqrt(d)",
        "    dK[S, d] = dZ.T @ Q / sqrt(d)",
        "    dV[S, e] = P.T @ dO",
    ]
    told = ast.get_docstring(ast.parse(sa.lambdify([Q, K], [Q @ K.T, Q]).source), clean=False).rstrip()
    assert told.splitlines()[2:] == ["    result 0[T, S] = Q @ K.T"]
    assert "    result[T, S] = Q @ K.T" in sa.lambdify([Q, K], Q @ K.T).source


def test_long_formulas_are_broken_between_words():
    y = sa.softmax(sum((sa.tanh(k * Q) for k in range(2, 20)), Q))
    told = ast.get_docstring(ast.parse(sa.lambdify([Q], y).source), clean=False)
    assert max(map(len, told.splitlines())) <= 100
    assert "tanh(18 * Q)" in told


def test_the_docstring_of_a_deep_network_is_bounded():
    y = Q
    for k in range(80):
        y = sa.let(f"y{k}", sa.tanh(y))
    told = ast.get_docstring(ast.parse(sa.lambdify([Q], y).source), clean=False).rstrip()
    assert told.splitlines()[-1] == "    ... and 20 more"


def test_the_module_gives_the_numbers_of_the_function(rng):
    f = sa.lambdify([Q, K, V], attention())
    namespace = {"__name__": "attention"}
    exec(f.source, namespace)
    arrays = [rng.normal(size=shape) for shape in ((4, 3), (5, 3), (5, 6))]
    np.testing.assert_array_equal(namespace["f"](*arrays), f(*arrays))
