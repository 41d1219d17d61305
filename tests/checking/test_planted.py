"""Every edit of the table planted into the gradients of eight variants, and found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.checking.equations import Equations
from symattn.core.node import Tensor
from symattn.ops.leaves import computed, variable

T, S, d, e, h, g, n = sa.sizes("T S d e h g n")
SIZES = {T: 5, S: 7, d: 4, e: 3, h: 2, g: 3, n: 6}
Q, K, V, b = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("b")
q, k, v = sa.tensor("Q", h * g, T, d), sa.tensor("K", h, S, d), sa.tensor("V", h, S, e)
wide = sa.tensor("Q", T, 2 * d), sa.tensor("K", S, 2 * d)
x, gamma, beta = sa.tensor("x", T, d), sa.tensor("gamma", d), sa.tensor("beta", d)
c = sympy.Symbol("c", positive=True)
A = sa.attention
VARIANTS = {
    "plain": (A.scaled_dot_product(Q, K, V), [Q, K, V]),
    "window": (A.scaled_dot_product(Q, K, V, mask=A.sliding_window_mask(T, S, left=2, right=0)), [Q, K, V]),
    "softcap": (A.scaled_dot_product(Q, K, V, softcap=c), [Q, K, V]),
    "grouped": (A.grouped_query(q, k, v), [q, k, v]),
    "sink": (A.sink(Q, K, V, b), [Q, K, V, b]),
    "rotary": (A.scaled_dot_product(*map(A.rotary, wide), V), [*wide, V]),
    "layer norm": (A.layer_norm(x, gamma, beta), [x, gamma, beta]),
    "cross-entropy": (A.cross_entropy(sa.tensor("Z", T, n), sa.tensor("Y", T, n)), [sa.tensor("Z", T, n)]),
}


def drawn(roots: Any, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {str(y.name): [int(s.subs(SIZES)) for s in y.shape] for y in computed(roots) if y.op is variable}
    return {**{name: rng.normal(size=shape) for name, shape in shapes.items()}, "c": float(rng.uniform(1, 2))}


def values(tensors: Mapping[str, Tensor], of: Mapping[str, Tensor], at: Mapping[str, Any]) -> dict[str, Any]:
    leaves = [y for y in computed([*of.values(), *tensors.values()]) if y.op is variable]
    f = sa.lambdify(leaves, list(tensors.values()))
    with np.errstate(all="ignore"):
        found = f(*(at[str(y.name)] for y in leaves), **{s.name: at[s.name] for s in f.takes.keywords if s.name in at})
    return dict(zip(tensors, found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_a_planted_mistake_is_named_first_or_one_that_is_the_same_at_all_arrays(name: str) -> None:
    output, variables = VARIANTS[name]
    gradients = sa.gradient(output, variables)
    targets = {str(y.name): y for y in gradients.values()}
    at, elsewhere = drawn(targets.values(), 1), drawn(targets.values(), 2)
    right = values(targets, targets, at)
    planted = [one for one in Equations(targets).candidates([*targets]) if len(one.places) == 1]
    found, tried = 0, 0
    for count, one in enumerate(planted[:: max(1, len(planted) // 16)]):
        dtype = ("float64", "float32")[count % 2]
        made = {**right, **values(one.made, targets, at)}
        if not all(np.isfinite(y).all() for y in made.values()):
            continue
        diagnosis = sa.diagnose({k: y.astype(dtype) for k, y in made.items()}, gradients, at)
        if not diagnosis.wrong:  # a factor that is 1 here, a term that adds up to 0
            continue
        tried += 1
        named = values(diagnosis.mistakes[0].made, targets, elsewhere)
        wanted = values(one.made, targets, elsewhere)
        found += all(np.allclose(named[k], wanted[k], rtol=1e-6, equal_nan=True) for k in named.keys() & wanted.keys())
    assert tried > 8
    assert found >= 0.95 * tried
