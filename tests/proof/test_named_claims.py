"""The names of intermediates change no verdict: claims with every part named, on one side or on both."""

import pytest

import symattn as sa
from symattn.core.node import Tensor, topological
from symattn.ops.leaves import constant, is_named

from ..claims_corpus import CLAIMS
from ..shares import one_in

n, T, S, k, d = sa.sizes("n T S k d")
Z, X = sa.tensor("Z", T, S), sa.tensor("X", T, d)
M = sa.tensor("M", T, S, binary=True)
x, y = sa.tensor("x", n), sa.tensor("y", n)


def named(root: Tensor, letter: str) -> Tensor:
    """The tensor with a name for every part that is computed, itself included."""
    new: dict[Tensor, Tensor] = {}
    for number, node in enumerate(topological([root])):
        inputs = tuple(new[i] for i in node.inputs)
        new[node] = node if inputs == node.inputs else node.op(*inputs, **node.params)
        if node.inputs and not is_named(new[node]) and new[node].op is not constant:
            new[node] = sa.let(f"{letter}{number}", new[node])
    return new[root]


def same_verdict(left: Tensor, right: Tensor, given: tuple = ()) -> None:
    status = sa.prove(left, right, given=given).status
    for sides in ((named(left, "a"), right), (left, named(right, "b")), (named(left, "a"), named(right, "b"))):
        assert sa.prove(*sides, given=given).status == status


SHARE = sorted({*sorted(CLAIMS)[::7], "alibi_heads_causal", "rope_attention_shift", "softmax_with_temperature"})


@pytest.mark.parametrize("name", one_in(3, SHARE))
def test_names_change_no_verdict_of_the_corpus(name):
    case = CLAIMS[name]()
    same_verdict(case.left, case.right, case.given)


CLAIMED = {
    "rows of a masked softmax": (sa.softmax(Z, where=M)[:k], sa.zeros(k, S)),
    "a slice of a softmax": (sa.softmax(Z)[:1], sa.zeros(1, S)),
    "a sum of a masked softmax": (sa.sum(sa.softmax(Z, where=M), axis=-1), sa.ones(T)),
    "its own sum": (sa.softmax(Z, where=M) * sa.sum(sa.softmax(Z, where=M), axis=-1)[:, None], sa.softmax(Z, where=M)),
    "a quotient": (x / y * y, x),
    "a false quotient": (x / y, x * y),
    "a logarithm": (sa.log(sa.exp(x)), x),
    "a square root": (sa.sqrt(x * x), sa.abs(x)),
    "an inverse": (sa.inv(sa.inv(sa.tensor("B", n, n))), sa.tensor("B", n, n)),
    "a shift": (sa.softmax(Z + sa.max(Z, axis=-1)[:, None]), sa.softmax(Z)),
    "parts of a join": (sa.concat([x, y])[:n], x),
    "a running sum": (sa.cumsum(x), sa.tril(sa.ones(n, n)) @ x),
    "a false running sum": (sa.cumsum(x)[::-1], sa.cumsum(x[::-1])),
    "a norm": (X / sa.sqrt(sa.sum(X * X, axis=-1))[:, None] * 2, (2 * X) / sa.sqrt(sa.sum(X * X, axis=-1))[:, None]),
}


@pytest.mark.parametrize("name", CLAIMED)
def test_names_change_no_verdict(name):
    same_verdict(*CLAIMED[name])


BOUNDS = {
    "below 1": sa.le(sa.softmax(Z, where=M), 1),
    "not negative": sa.le(0, sa.softmax(Z) * sa.exp(Z)),
    "false": sa.lt(0, sa.softmax(Z, where=M)),
    "an average": sa.le(sa.softmax(Z) @ sa.tensor("v", S), sa.max(sa.tensor("v", S))[None] * sa.ones(T)),
    "a square": sa.le(0, (x - y) ** 2),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_names_change_no_verdict_of_a_bound(name):
    claim = BOUNDS[name]
    ask = sa.lt if claim.relation == "<" else sa.le
    status = sa.prove(claim).status
    assert sa.prove(ask(named(claim.left, "a"), named(claim.right, "b"))).status == status
