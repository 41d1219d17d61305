"""Averages in one pass: the same as of all positions at once, for every number of them, and as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn import attention as A
from symattn.attention.running import AVERAGES

T, e, h = sa.sizes("T e h")
X, z = sa.tensor("X", T, e), sa.tensor("z", T)
a = sympy.Symbol("a", real=True)  # any decay


def weighted(x: Any, z: Any) -> Any:
    weights = np.exp(z - z.max())
    return weights @ x / weights.sum()


def fading(x: Any) -> Any:
    return 0.3 * 0.7 ** np.arange(len(x))[::-1] @ x


RULES: dict[str, tuple[dict[str, Any], Any]] = {
    "mean": ({}, lambda x, z: (x.mean(0),)),
    "moments": ({}, lambda x, z: (x.mean(0), x.var(0))),
    "exponential": ({"decay": a}, lambda x, z: (fading(x),)),
    "logsumexp": ({}, lambda x, z: (x.max(0) + np.log(np.exp(x - x.max(0)).sum(0)),)),
    "softmax": ({"scores": z}, lambda x, z: (weighted(x, z),)),
}


def several(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("rule", [pytest.param(x, marks=[] if x == "mean" else pytest.mark.slow) for x in RULES])
def test_one_pass_is_all_at_once(rule):
    """For every number of positions, by induction; and the states."""
    one, whole = (A.running(X, rule=rule, **RULES[rule][0], form=form) for form in ("recurrent", "parallel"))
    by = sa.induction(final=whole.state, outputs=whole.output)
    for left, right in zip((*several(one.output), *one.state), (*several(whole.output), *whole.state), strict=True):
        verdict = sa.prove(left, right, by=by)
        assert verdict.status == "proved", verdict


@pytest.mark.parametrize("rule", RULES)
def test_averages_so_far_in_numbers(rule, rng):
    """With heads in front, and scores at which an exponential would overflow."""
    given, average = RULES[rule]
    heads = sa.tensor("X", h, T, e)
    given = {**given, **({"scores": sa.tensor("z", h, T)} if "scores" in given else {})}
    x, scores = rng.normal(size=(2, 6, 3)), 1e3 * rng.normal(size=(2, 6))
    if rule == "logsumexp":
        x = 1e3 * x
    wanted = [[average(x[k, :t], scores[k, :t]) for t in range(1, 7)] for k in range(2)]
    for form in ("recurrent", "parallel"):
        inputs = [heads, *([given["scores"]] if rule == "softmax" else [])]
        f = sa.lambdify(inputs, list(several(A.running(heads, rule=rule, **given, form=form).output)))
        with np.errstate(over="raise", invalid="raise"):
            found = f(*[x, scores][: len(inputs)], **({"a": 0.7} if rule == "exponential" else {}))
        for n, got in enumerate(several(found)):
            np.testing.assert_allclose(got, [[y[n] for y in head] for head in wanted], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_gradients_of_both_forms_agree_in_numbers(rule, rng):
    given, _ = RULES[rule]
    inputs = [X, *([z] if rule == "softmax" else [])]
    arrays = [rng.normal(size=[{T: 6, e: 3}[size] for size in x.shape]) for x in inputs]
    found = []
    for form in ("recurrent", "parallel"):
        outputs = several(A.running(X, rule=rule, **given, form=form).output)
        gradients = sa.gradient(sum(sa.sum(k * y) for k, y in enumerate(outputs, 1)), inputs)
        keywords = {"a": 0.7} if rule == "exponential" else {}
        found.append(sa.lambdify(inputs, gradients)(*arrays, **keywords))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_averages_are_those_of_attention():
    """The last of them, at any number of positions."""
    last = A.running(X, rule="softmax", scores=z, form="parallel").output[-1]
    assert sa.prove(last, sa.softmax(z) @ X).status == "proved"
    even = A.running(X, rule="softmax", scores=sa.zeros(T), form="parallel").output
    assert sa.prove(even, A.running(X, form="parallel").output).status == "proved"


def test_each_rule_is_in_the_table_above():
    assert RULES.keys() == AVERAGES.keys()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"rule": "median"},
            "running: rule is 'mean', 'moments', 'exponential', 'logsumexp' or 'softmax', not 'median'",
        ),
        ({"rule": "softmax"}, "running: the rule 'softmax' needs scores"),
        ({"decay": a}, "running: the rule 'mean' takes no decay"),
        ({"rule": "exponential", "decay": z}, "running: decay is a number or a scalar, not z[T]"),
        ({"rule": "softmax", "scores": sa.tensor("z", e)}, "z[e] and X[T, e] differ in the number of positions"),
        ({"form": "chunked"}, "running: form is 'recurrent' or 'parallel', not 'chunked'"),
    ],
)
def test_what_is_missed_is_said(keywords, message):
    with pytest.raises((sa.ShapeError, sa.OperandError)) as raised:
        A.running(X, **keywords)
    assert message in str(raised.value)
