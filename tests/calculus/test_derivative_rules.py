"""Every operation's derivative rule, proved at symbolic size against the derivative of its entry formula."""

from __future__ import annotations

import pytest
import sympy

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.core.node import Tensor
from symattn.normal_form.lowering import Unreached
from symattn.proof.equality.decide import compare_gradient
from symattn.proof.equality.gradients import is_proved

from ..ops.test_registry import EXAMPLES, c

# What the normal form of entries does not reach; numbers check these too, in test_registry.
UNREACHED = {
    "elementwise 0 X": "atan has no rule of its own",
    "take 7 X": "an index taken by another index tensor",
    "take 8 W": "an index that is the smaller of two",
    "tril 4 Z": "-oo next to a value below the diagonal",
    "inv 5 A": "the inverse of a sum",
    "support_sqrt 1 X": "a root on the support",
    "stop_gradient 0 X": "by choice, its derivative is not that of its entries",
    **{f"scatter_add {n} {x}": "its index tensor is in range by assumption" for n, x in enumerate("XWgbg")},
    **{f"{name} {n} {x}": "sorted rows" for name in ("sparsemax", "entmax15") for n, x in enumerate("ZZZbZ")},
    "sparsemax 4 b": "sorted rows",
    "sparsemax 5 Z": "sorted rows",
}
CASES = [
    (f"{name} {n} {x.name}", y, x)
    for name, examples in EXAMPLES.items()
    for n, y in enumerate(examples)
    for x in y.tensors
    if x.kind == "real" and "unknown 2" not in f"{name} {n}"
]


def comparison(y: Tensor, x: Tensor, claimed: Tensor, cotangent: Tensor, seconds: float = 4):
    return compare_gradient(claimed, x, [y], [cotangent], Budget(seconds))


@pytest.mark.parametrize(("name", "y", "x"), CASES, ids=[name for name, *_ in CASES])
def test_the_rule_is_the_derivative_of_the_entries(name, y, x):
    if name in UNREACHED:
        pytest.skip(UNREACHED[name])
    g = sa.gradient(y, [x])
    (cotangent,) = g.cotangents.values()
    free = x if set(x.params["hypotheses"]) <= {"positive"} else sa.tensor(x.name, *x.shape)
    claimed, output = (z.subs({x: free}) if x in z.tensors else z for z in (g[x], y))
    assert comparison(output, free, claimed, cotangent).equal


@pytest.mark.parametrize(("name", "y", "x"), CASES, ids=[name for name, *_ in CASES])
def test_a_wrong_rule_is_never_proved(name, y, x):
    g = sa.gradient(y, [x])
    (cotangent,) = g.cotangents.values()
    wrong = g[x] + sa.ones(*x.shape)
    try:
        assert not comparison(y, x, wrong, cotangent, seconds=0.5).equal
    except (Unreached, OutOfBudget):
        pass  # nothing is claimed


def test_gradients_of_attention_are_proved():
    n, m, d, e = sa.sizes("n m d e")
    Q, K, V = sa.tensor("Q", n, d), sa.tensor("K", m, d), sa.tensor("V", m, e)
    P = sa.let("P", sa.softmax(Q @ K.T))
    g = sa.gradient(P @ V, [Q, K, V, P])
    for x in g:
        assert is_proved(g[x], Budget(20))


def test_the_derivative_at_a_maximum_is_not_dropped():
    X, dO = sa.tensor("X", "n d"), sa.tensor("dO", "n")
    n, d = X.shape
    assert not comparison(sa.max(X, axis=-1), X, sa.zeros(n, d), dO).equal


def test_kinks_are_left_out_only_where_they_are_thin():
    X, dO = sa.tensor("X", "n d"), sa.tensor("dO", "n d")
    for claimed in (dO * (X > 0), dO * (X >= 0)):
        assert comparison(sa.relu(X), X, claimed, dO).equal
    assert not comparison(sa.relu(X), X, dO, dO).equal
    assert not comparison(sa.relu(sa.relu(X)), X, sa.zeros(*X.shape), dO).equal


def test_a_held_value_has_no_proof_by_entries():
    x = sa.tensor("x", "n")
    g = sa.gradient(sa.sum(x * sa.stop_gradient(x)), [x])
    assert not is_proved(g[x], Budget(20))


def test_a_rank_0_tensor():
    x = sa.tensor("x", "n")
    g = sa.gradient(sa.sum(sa.exp(c * x)), [c])
    assert is_proved(g[c], Budget(20))


def test_no_argument_of_a_function_is_taken_as_constant():
    x, y, dO = sa.tensor("x", "n"), sa.tensor("y", "n"), sa.tensor("dO", "n")
    i, j = sympy.symbols("i j", real=True)
    angle = sa.elementwise(sympy.Lambda((i, j), sympy.atan2(i, j)), x, y)
    with pytest.raises(Unreached):
        comparison(angle, y, 0 * dO, dO)
