"""Random polynomials of random entries: moments with symbolic sizes against all values of all entries at small sizes.

A polynomial is a function of a module, ``symattn`` or ``numpy``, and of its tensors or arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from .. import enumeration
from ..enumeration import CENTRED, PAIRS, SIGNS, THREE, Drawn, Finite, coin, joint_cumulants, laws_of, settled
from ..shares import one_in

d = sa.sizes("d")
VARIABLES = {"q": sa.tensor("q", d), "k": sa.tensor("k", d), "A": sa.tensor("A", d, d)}
LAWS: dict[str, Finite] = {"signs": SIGNS, "coin": coin(Fraction(1, 3)), "centred": CENTRED, "three": THREE}
FIXED = {"q": [2, -1, 3], "k": [-1, 1, 2], "A": [[1, -2, 0], [3, 1, -1], [2, 0, 1]]}
MOST_STATES = 1500

Polynomial = Callable[[Any, Mapping[str, Any]], Any]

# Vectors and scalars by what they are made of; each with its degree.
VECTORS: Sequence[tuple[int, str]] = (
    (1, "q"), (1, "k"), (1, "m.diag(A)"), (1, "m.sum(A, axis=0)"), (1, "m.cumsum(q, axis=0)"), (2, "A @ q"),
    (2, "q * k"), (2, "q * q"), (2, "k @ A.T"), (2, "q - k * k"), (1, "(q + 2 * k)"), (2, "m.diag(A) * k"),
)  # fmt: skip
MATRICES: Sequence[tuple[int, str]] = (
    (1, "A"), (1, "A.T"), (1, "m.tril(A)"), (2, "q[:, None] * k[None, :]"), (2, "A @ A"), (2, "A * A.T"),
)  # fmt: skip
SCALARS: Sequence[tuple[int, str]] = (
    (1, "q[0]"), (1, "k[0]"), (1, "A[0, 0]"), (1, "A[-1, 0]"), (2, "q[0] * q[-1]"), (1, "(k[0] + 1)"),
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A polynomial with its degree, and a law for each of its tensors."""

    text: str
    degree: int
    laws: Mapping[str, str]

    @property
    def paired(self) -> bool:
        return self.laws.get("q") == "pair"

    def value(self, module: Any, given: Mapping[str, Any]) -> Any:
        return eval(self.text, {"m": module, **given})

    def library(self) -> tuple[Any, dict[Any, Any]]:
        """The quantity and the laws, as the library is told of them."""
        told: dict[Any, Any] = {VARIABLES[name]: LAW_OF[law] for name, law in self.laws.items() if law != "pair"}
        if self.paired:
            told[VARIABLES["q"], VARIABLES["k"]] = LAW_OF["pair"]
        return self.value(sa, VARIABLES), told

    def drawn(self, width: int) -> tuple[list[str], list[Drawn]]:
        """The names of the random arrays, in order, and how they are drawn."""
        names, arrays = [], []
        if self.paired:
            names, arrays = ["q", "k"], [Drawn((width,), PAIRS, pairs=True)]
        for name, law in self.laws.items():
            if law in LAWS:
                names.append(name)
                arrays.append(Drawn((width, width) if name == "A" else (width,), LAWS[law]))
        return names, arrays


def _pair() -> Any:
    known = joint_cumulants(PAIRS, 6)
    mean, variance = (known[1, 0], known[0, 1]), (known[2, 0], known[0, 2])
    higher = {key: value for key, value in known.items() if sum(key) > 2}
    correlation = known[1, 1] / sympy.sqrt(variance[0] * variance[1])
    return sa.iid_pair(None, correlation=correlation, mean=mean, variance=variance, cumulants=higher)


LAW_OF = {**{name: laws_of(law) for name, law in LAWS.items()}, "constant": sa.iid("constant"), "pair": _pair()}


def polynomial(rng: random.Random, degree: int) -> tuple[int, str]:
    """A sum of products of contractions, up to a degree."""
    total = [_product(rng, degree) for _ in range(rng.choice((1, 1, 2)))]
    return max(found for found, _ in total), " + ".join(text for _, text in total)


def _product(rng: random.Random, degree: int) -> tuple[int, str]:
    made, left = [_scalar(rng, degree)], degree
    left -= made[0][0]
    while left > 0 and rng.random() < 0.6:
        made.append(_scalar(rng, left))
        left -= made[-1][0]
    return degree - left, " * ".join(text for _, text in made)


def _scalar(rng: random.Random, degree: int) -> tuple[int, str]:
    """A contraction of vectors and matrices, or an entry, of at most the degree."""

    def pick(table: Sequence[tuple[int, str]], most: int) -> tuple[int, str]:
        return rng.choice([entry for entry in table if entry[0] <= most])

    kind = rng.choice(("sum", "entry", "matrix") if degree == 1 else ("sum", "dot", "dot", "form", "matrix", "entry"))
    if kind == "entry":
        return pick(SCALARS, degree)
    if kind == "form" and degree >= 3:
        (a, left), (b, middle) = pick(VECTORS, degree - 2), pick(MATRICES, 1)
        c, right = pick(VECTORS, degree - a - b)
        return a + b + c, f"(({left}) @ ({middle}) @ ({right}))"
    if kind == "dot":
        a, left = pick(VECTORS, degree - 1)
        b, right = pick(VECTORS, degree - a)
        return a + b, f"(({left}) @ ({right}))"
    a, text = pick(MATRICES if kind == "matrix" else VECTORS, degree)
    return a, f"m.sum({text})"


def case(seed: int, degree: int) -> Case:
    rng = random.Random(seed)
    found, text = polynomial(rng, degree)
    code = compile(text, "polynomial", "eval")
    laws = {name: rng.choice((*LAWS, *LAWS, "constant")) for name in VARIABLES if name in code.co_names}
    if {"q", "k"} <= laws.keys() and rng.random() < 0.3:
        laws["q"] = laws["k"] = "pair"
    return Case(text, found, laws)


def check(a: Case, ask: Callable[[Any, Any], sympy.Expr], count: Callable[..., Any]) -> int:
    """Hold the answer against the independent way at all sizes with few states; how many sizes there were."""
    quantity, law = a.library()
    answer = ask(quantity, law)
    held = 0
    for width in (1, 2, 3):
        fixed = {
            name: np.array(FIXED[name], dtype=object)[(slice(width),) * VARIABLES[name].rank]
            for name, law_name in a.laws.items()
            if law_name == "constant"
        }
        names, drawn = a.drawn(width)
        if np.prod([float(len(x.law)) ** np.prod(x.shape) for x in drawn]) > MOST_STATES:
            break

        def value(*arrays: Any, names: Sequence[str] = names, fixed: Mapping[str, Any] = fixed) -> Any:
            return a.value(np, {**dict(zip(names, arrays, strict=True)), **fixed})

        settled(answer, Fraction(count(value, *drawn)), {d: width}, **fixed)
        held += 1
    return held


@pytest.mark.parametrize("start", one_in(4, range(0, 160, 20)))
def test_expectations_of_random_polynomials(start):
    held = sum(check(case(seed, 4), sa.expectation, enumeration.mean) for seed in range(start, start + 20))
    assert held >= 30, held


@pytest.mark.parametrize("start", one_in(4, range(1000, 1080, 20)))
def test_variances_of_random_polynomials(start):
    held = sum(check(case(seed, 2), sa.variance, enumeration.variance) for seed in range(start, start + 20))
    assert held >= 30, held
