"""The corpus of claims is right: true claims agree at generic sizes, and false ones differ."""

from __future__ import annotations

import numpy as np
import pytest

import symattn as sa
from symattn.codegen.sampling import generic_arrays, generic_scalars, generic_sizes
from symattn.core.node import rebuild, topological

from ..claims_corpus import CLAIMS, Case
from ..shares import one_in


def known(x: sa.Tensor) -> sa.Tensor:
    """Functions known only by name, replaced by positive ones that are no special case."""
    while opaque := [y for y in topological([x]) if y.op.name == "unknown"]:
        inside = opaque[0].inputs[0]
        value = sa.exp(sa.sin(inside)) + inside**2 / 3
        x = rebuild([x], {opaque[0]: sa.softmax(2 * inside) + value if opaque[0].params["rowwise"] else value})[0]
    return x


def satisfied(x: sa.Tensor, case: Case) -> sa.Tensor:
    return known(x.subs(dict(case.witness))) if case.witness else known(x)


def values_of(sides: list[sa.Tensor], seed: int) -> list[np.ndarray]:
    """The arrays of the sides at generic sizes from 3 up; permutations are one cycle, masks have no empty row."""
    tensors = list(dict.fromkeys(x for side in sides for x in side.tensors))
    rng = np.random.default_rng(seed)
    sizes = {size: value + 1 for size, value in generic_sizes(sides, seed).items()}
    scalars = generic_scalars(sides, rng)
    arrays = generic_arrays(tensors, sizes, rng)
    for x, array in arrays.items():
        if "binary" in x.params["hypotheses"]:
            array[..., 0] = True
        if "permutation" in x.params["hypotheses"]:
            arrays[x] = array @ np.roll(array.T, 1, axis=0)
    symbols = [symbol for symbol in scalars if any(symbol in side.free_symbols for side in sides)]
    compute = sa.lambdify([*tensors, *symbols], sides)
    keywords = {key.name: sizes[key] for key in compute.takes.keywords}
    return [np.asarray(y) for y in compute(*arrays.values(), *(scalars[x] for x in symbols), **keywords)]


def distance(left: np.ndarray, right: np.ndarray) -> float:
    assert left.shape == right.shape
    assert np.isfinite(left).all()
    assert np.isfinite(right).all()
    return float(np.abs(left.astype(float) - right).max() / max(1, np.abs(right).max()))


@pytest.mark.parametrize("seed", one_in(2, [0, 1]))
@pytest.mark.parametrize("name", CLAIMS)
def test_numbers_agree_with_what_the_corpus_says(name, seed):
    case = CLAIMS[name]()
    left, right = values_of([satisfied(side, case) for side in (case.left, case.right)], seed)
    error = distance(left, right)
    assert error <= 1e-9 if case.true else error > 1e-6


@pytest.mark.parametrize("name", CLAIMS)
def test_a_witness_satisfies_what_is_given(name):
    case = CLAIMS[name]()
    assert bool(case.witness) == bool(case.given)
    for given in case.given:
        left, right = values_of([satisfied(side, case) for side in given.sides], 0)
        assert given.relation == "="
        assert distance(left, right) <= 1e-12


def test_names_tell_the_false_claims_from_the_true_ones():
    assert all(name.startswith("not_") != CLAIMS[name]().true for name in CLAIMS)
    assert 150 <= sum(CLAIMS[name]().true for name in CLAIMS) <= len(CLAIMS) - 100
