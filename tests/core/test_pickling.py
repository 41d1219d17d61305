"""What is declared and what is found can be copied and pickled, or says why not."""

import copy
import pickle
import subprocess
import sys

import pytest
import sympy

import symattn as sa
from symattn.proof.rules import RULES

from ..shares import one_in

k = sympy.Symbol("k", integer=True)
T, d, n = sa.sizes("T d n")
x, q, K, X = sa.tensor("x", n), sa.tensor("q", d), sa.tensor("K", d), sa.tensor("X", T, d)


def weighed(i, z):
    return sympy.exp(z[i]) / (1 + sympy.Sum(sympy.exp(z[k]), (k, 0, z.shape[0] - 1)))


def weighed_vjp(g, p, z):
    return p * (g - sa.sum(p * g, -1, keepdims=True))


def coupled(i, a, b):
    return a[i] ** 2 * sympy.Sum(b[k] * a[k], (k, 0, a.shape[0] - 1))


def again(value):
    return pickle.loads(pickle.dumps(value))


softmax1 = sa.operation("softmax1", shape="n -> n", entry=weighed, vjp=weighed_vjp, latex=r"\phi({0})")
pair = sa.operation("pair", shape="n, n -> n", entry=coupled)
local = sa.operation("local", shape="n -> n", entry=lambda i, z: z[i] ** 2)


@pytest.mark.parametrize("op", [softmax1, pair, local])
def test_a_copy_of_an_operation_is_the_operation(op):
    for value in (op, op.record):
        assert copy.copy(value) is copy.deepcopy(value) is value
    assert copy.deepcopy({"op": [op]})["op"][0] is op


def test_a_record_of_our_own_is_copied_and_pickled_as_itself():
    record = sa.softmax(x).op
    assert copy.deepcopy(record) is record
    assert again(record) is record


@pytest.mark.parametrize("op", [softmax1, pair])
def test_an_operation_of_importable_functions_is_pickled_as_itself(op):
    assert again(op) is op
    out = op(*[x] * len(op.signature.inputs))
    assert again(out) is out
    g = sa.gradient(sa.sum(out * out), x)
    assert again(g)[x] is g[x]
    h = sa.gradient(sa.sum(g[x] * g[x]), x)
    assert again(h)[x] is h[x]
    f = again(sa.lambdify([x], out))
    f.check()


@pytest.mark.parametrize("what", [local, local(x), sa.gradient(local(x), x), sa.lambdify([x], local(x))])
def test_an_operation_of_a_function_without_a_name_says_so(what):
    with pytest.raises(sa.OperandError, match="operation local is not pickled: entry= is <function <lambda>"):
        pickle.dumps(what)


def test_the_function_that_has_no_name_is_told():
    op = sa.operation("half_named", shape="n -> n", entry=weighed, vjp=lambda g, p, z: weighed_vjp(g, p, z))
    with pytest.raises(sa.OperandError, match="vjp= is .*cannot be imported by its name; write it by def"):
        pickle.dumps(op)


def test_one_declaration_is_one_operation_and_another_is_another():
    assert sa.operation("pair", shape="n, n -> n", entry=coupled) is pair
    assert sa.operation("pair", shape="n, n -> n", entry=coupled, latex="{0}{1}") is not pair


LAWS = {
    "normal": sa.iid("normal", variance=2),
    "uniform": sa.iid("uniform"),
    "laplace": sa.iid("laplace", mean=1),
    "rademacher": sa.iid("rademacher"),
    "bernoulli": sa.iid("bernoulli", probability=sympy.Rational(1, 3)),
    "by moments": sa.iid(variance=2, kurtosis=5, skewness=0),
    "sphere": sa.sphere(),
    "rows": sa.normal(),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.slow
def test_moments_are_pickled_with_what_is_worked_out_later(name):
    found = sa.moments(q @ K, {q: LAWS[name], K: sa.iid(mean=0, variance=1, kurtosis=3, skewness=0)})
    for other in (again(found), copy.deepcopy(found)):
        assert (other.mean, other.variance, other.assumptions) == (found.mean, found.variance, found.assumptions)
        assert other.text() == found.text()
        assert other.check()


FUNCTIONS = {
    "attention": lambda X: sa.softmax(X @ X.T) @ X,
    "row sums": lambda X: sa.sum(X, -1),
    "a square": lambda X: X * X,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_symmetries_are_pickled(name):
    found = sa.equivariance(FUNCTIONS[name], X)
    for other in (again(found), copy.deepcopy(found)):
        assert other.text() == found.text()
        assert all(s.verdict.proof.check() for s in other.values() if s.verdict)


def test_every_rule_is_pickled_by_its_name():
    assert all(again(rule) is rule for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


M, Z = sa.tensor("M", T, n, binary=True), sa.tensor("Z", T, n)
VERDICTS = {
    "a root": lambda: sa.prove(sa.sqrt(x) ** 2, x),
    "a logarithm": lambda: sa.prove(sa.exp(sa.log(x)), x),
    "a choice": lambda: sa.prove(sa.relu(x), (x + sa.abs(x)) / 2),
    "a largest entry": lambda: sa.prove(sa.max(Z + 1, -1), sa.max(Z, -1) + 1),
    "an inverse": lambda: sa.prove(x / (x**2 + 1) * (x**2 + 1), x),
    "a row": lambda: sa.prove(sa.sum(sa.sparsemax(Z), -1), sa.ones(T)),
    "a support": lambda: sa.prove(sa.sum(sa.softmax(Z, where=M), -1), sa.ones(T), given=[sa.le(1, sa.sum(M, axis=-1))]),
    "an equality that is given": lambda: sa.prove(x * x * x, x, given=[sa.eq(x * x, sa.ones(n))]),
    "a rewriting": lambda: sa.prove(sa.softmax(Z + 1), sa.softmax(Z)),
    "a bound": lambda: sa.prove(sa.le(sa.softmax(Z), 1)),
    "a dependence": lambda: sa.prove(sa.independent(sa.cumsum(x), x, when=lambda out, inp: inp[0] > out[0])),
    "a counterexample": lambda: sa.prove(sa.exp(x), x + 1),
    "an open question": lambda: sa.prove(sa.relu(x) * sa.relu(-x) / (sa.relu(x) * sa.relu(-x)), sa.ones(n)),
}
FRESH = """
import pickle, sys
verdict = pickle.load(sys.stdin.buffer)
assert verdict.status == sys.argv[1]
assert not verdict or verdict.proof.check() and verdict.proof.latex()
print(verdict, verdict.proof if verdict else "", end="")
"""


@pytest.mark.parametrize("name", one_in(5, VERDICTS))
@pytest.mark.slow
def test_a_verdict_is_read_and_checked_in_another_process(name):
    verdict = VERDICTS[name]()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FRESH, verdict.status], input=pickle.dumps(verdict), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == f"{verdict} {verdict.proof if verdict else ''}"
