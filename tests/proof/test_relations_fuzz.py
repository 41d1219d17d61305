"""Random relations of sizes against all small sizes: nothing false is proved, nothing true refuted, no sizes denied."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
import sympy
from sympy import Abs, Eq, Max, Min, Mod, Ne, Not, Or, ceiling, floor

import symattn as sa
from symattn.errors import OperandError

from ..shares import one_in

n, m = SIZES = sa.sizes("n m")
LARGEST = 12
CLAIMS = {"=": sa.eq, "<=": sa.le, "<": sa.lt}
HOLDS = {"=": Eq, "<=": sympy.Le, "<": sympy.Lt}


def quantity(rng: random.Random, depth: int) -> Any:
    if depth == 0:
        return sympy.sympify(rng.choice([n, m, n, m, 1, 2, 3, 4, 5]))
    a, b, k = quantity(rng, depth - 1), quantity(rng, depth - 1), rng.choice([2, 3])
    shapes = (a + b, a - b, a * b, a**2, Mod(a, k), floor(a / k), ceiling(a / k), Max(a, b), Min(a, b), Abs(a - b))
    return rng.choice(shapes)


def relation(rng: random.Random) -> Any:
    a, b, p, q = quantity(rng, 2), quantity(rng, 1), *(rng.randint(1, 4) for _ in range(2))
    roots = (Eq((n - p) * (m - q), 0), Eq((n - m) ** 2, n - m), Eq(n**2 + m**2, rng.choice([5, 25, 50])))
    joined = (Or(Eq(n, p), Eq(m, n + q)), Not((n < a) & (m >= b)))
    return rng.choice([Eq(a, b), Eq(a, b), *roots, Ne(a, b), a <= b, *joined])


def places(relations: list[Any]) -> Iterator[dict[Any, int]]:
    for values in itertools.product(range(1, LARGEST + 1), repeat=2):
        at = dict(zip(SIZES, values, strict=True))
        if all(r.subs(at) == True for r in relations):  # noqa: E712  (SymPy's, or Python's)
            yield at


@pytest.mark.parametrize("seed", one_in(4, range(40)))
def test_what_follows_from_relations_of_sizes(seed):
    rng = random.Random(seed)
    given = [relation(rng) for _ in range(rng.choice([1, 1, 2]))]
    found = list(places(given))
    size = rng.choice(SIZES)
    sign = rng.choice(["=", "<=", "<"])
    bound = sympy.Integer(rng.choice(found)[size]) if found and rng.random() < 0.6 else quantity(rng, 1)
    false = [at for at in found if not HOLDS[sign](size, bound).subs(at)]
    claim = CLAIMS[sign](size * sa.ones(), bound * sa.ones())
    refused = "not understood" if found else "not understood|contradicts itself"
    try:
        verdict = sa.prove(claim, given=given)
    except OperandError:
        with pytest.raises(OperandError, match=refused):
            sa.prove(claim, given=given)
        return
    if verdict.status == "proved":
        assert not false, given
    if verdict.status == "refuted":
        at = {s: verdict.counterexample.sizes.get(s, 1) for s in SIZES}
        assert all(r.subs(at) == True for r in given)  # noqa: E712
        assert not HOLDS[sign](size, bound).subs(at)
