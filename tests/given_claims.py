"""Random claims under hypotheses: relations of sizes, contradictions, hypotheses that nothing meets, masks.

What the engine says is held against numbers at every pair of small sizes that satisfies the hypotheses. A condition
that the engine adds has to come with a witness, and a refutation with sizes that satisfy what was given.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

import symattn as sa
from symattn.core.node import topological
from symattn.errors import OperandError, SymattnError
from symattn.ops.leaves import variable
from symattn.proof.claims import Claim

from .agreement import arrays_for, gap, known
from .mutants import mutated
from .random_terms import WORLDS, Maker
from .soundness import Tally, is_apart
from .true_identities import rewritten

n, m = sa.sizes("n m")
_SECONDS = 2.0
_LARGEST = 6
_POINTS = 12

# --- what is given ---

LINEAR = (sympy.Eq(n, m), sympy.Eq(n, m + 1), sympy.Eq(n, m - 1), sympy.Eq(n + m, 5), sympy.Eq(2 * n, 2 * m + 2))
SEVERAL_ROOTS = (
    sympy.Eq((n - 1) * (n - 2), 0),
    sympy.Eq((n - 1) * (m - 1), 0),
    sympy.Eq((n - m) ** 2, n - m),
    sympy.Eq(n**2 + m**2, 5),
    sympy.Eq(n * m, 6),
    sympy.Eq((n - 2) * (n - m), 0),
)
CONSTRAINTS = (
    sympy.Eq(sympy.Mod(n, 2), 0),
    sympy.Eq(sympy.Mod(n, m), 0),
    sympy.Eq(sympy.floor(n / 2), m),
    sympy.Le(n, m),
    sympy.Lt(m, n),
    sympy.Ge(n, 3),
    sympy.Ne(n, 2),
    sympy.Eq(sympy.Max(n, m), 3),
)
NEVER = (sympy.Eq(n * (n + m), 1), sympy.Lt(n + m, 2), sympy.Eq(n**2, 2), sympy.Lt(n, 1))
RELATIONS = (*LINEAR, *SEVERAL_ROOTS, *CONSTRAINTS)


@dataclass(frozen=True)
class Question:
    """``left = right`` under ``given``; ``attends`` are masks of which every row is given to attend to something."""

    family: str
    left: sa.Tensor
    right: sa.Tensor
    given: tuple[Any, ...]
    attends: tuple[sa.Tensor, ...] = ()

    @property
    def relations(self) -> tuple[Any, ...]:
        return tuple(g for g in self.given if isinstance(g, sympy.Basic))


def _sizes_alone(rng: random.Random) -> Question:
    """Numbers made of sizes: true at some sizes, at all that satisfy the relation, or at none."""
    relation = rng.choice(RELATIONS)
    values = [n, m, n + 1, m - 1, n * m, n - m, (n - m) ** 2, n**2, sympy.Integer(rng.randint(1, 3))]
    left, right = rng.sample(values, 2)
    if isinstance(relation, sympy.Eq) and rng.random() < 0.4:
        scale = rng.choice([1, n, m + 1])
        left, right = scale * relation.lhs + left, scale * relation.rhs + left
    ones = rng.choice([sa.ones(), sa.ones(n), sa.ones(n, m)])
    return Question("sizes alone", left * ones, right * ones, (relation,))


def _terms(rng: random.Random) -> Question:
    """Two terms, one made of the other by identities and perhaps a mutation, under a relation of their sizes."""
    world = WORLDS["rectangular"]
    maker = Maker(world, rng)
    x = maker.term(rng.choice(world.shapes), rng.choice([1, 2, 2]))
    y = rewritten(x, rng.choice([1, 2]), rng)
    if rng.random() < 0.5:
        _, y = mutated(y, topological([x, y]), rng)
    return Question("terms", x, y, (rng.choice(RELATIONS),))


def _contradictions(rng: random.Random) -> Question:
    """Hypotheses that nothing meets: of sizes, or of a tensor."""
    x, y = sa.tensor("x", n), sa.tensor("y", n)
    of_tensors = (
        (sa.eq(x, sa.zeros(n)), sa.eq(x, sa.ones(n))),
        (sa.eq(y, 2 * x), sa.eq(y, 3 * x), sa.eq(x, sa.ones(n))),
        (sa.lt(x, sa.zeros(n)), sa.lt(sa.zeros(n), x)),
    )
    given = rng.choice([*((relation,) for relation in NEVER), *of_tensors])
    return Question("contradictions", rng.choice([0 * y, y, x * y]), rng.choice([sa.ones(n), 2 * y, y * x]), given)


def _masks(rng: random.Random) -> Question:
    """Softmax under masks with empty rows, and consequences of rows that sum to one."""
    Z, V, M = sa.tensor("Z", n, m), sa.tensor("V", m, 2), sa.tensor("M", n, m, binary=True)
    u = sa.tensor("u", 2)
    strict = sa.from_index((n, m), lambda i, j: j < i)
    causal = sa.from_index((n, m), lambda i, j: j <= i)
    mask = rng.choice([M, M, M & causal, strict, causal, strict & M, sa.from_index((n, m), lambda i, j: j > i + 1)])
    P = sa.softmax(Z, where=mask)
    sides = rng.choice(
        [
            (sa.sum(P, axis=-1), sa.ones(n)),
            (P @ (V + u), P @ V + u),
            (P @ sa.ones(m), sa.ones(n)),
            (sa.sum(P, axis=-1), sa.max(1 * mask, axis=-1)),
            (sa.softmax(Z + sa.tensor("c", n)[:, None], where=mask), P),
            (P * mask, P),
            (sa.sum(P * Z, axis=-1) + 1, sa.sum(P * (Z + 1), axis=-1)),
        ]
    )
    given: tuple[Any, ...] = ()
    if rng.random() < 0.5:
        given = (sa.le(1, sa.sum(1 * mask, axis=-1)),)
    return Question("masks", *sides, given, (mask,) if given else ())


def _divisions(rng: random.Random) -> Question:
    """Quotients, roots and inverses, of which some are defined nowhere."""
    x, y = sa.tensor("x", n), sa.tensor("y", n)
    nowhere = [sa.relu(x) * sa.relu(-x), -(x**2) - 1]
    somewhere = [x, 1 + x**2, sa.exp(y) - 1, x - y, sa.softplus(x), sa.relu(x), 2 - sa.sigmoid(y)]
    q = rng.choice([*nowhere, *somewhere])
    sides = rng.choice(
        [
            (q / q, sa.ones(n)),
            (sa.log(q) + sa.log(q), 2 * sa.log(q)),
            (sa.sqrt(q) ** 2, q),
            (sa.log(q) - sa.log(q), sa.zeros(n)),
            (x * q / q, x),
            (1 / (1 / q), q),
        ]
    )
    given = rng.choice([(), (), (rng.choice(RELATIONS),), (sa.lt(sa.zeros(n), x),)])
    return Question("divisions", *sides, given)


FAMILIES: Mapping[str, Callable[[random.Random], Question]] = {
    "sizes alone": _sizes_alone,
    "terms": _terms,
    "contradictions": _contradictions,
    "masks": _masks,
    "divisions": _divisions,
}


# --- what is said of them, against numbers ---


def satisfies(relations: Sequence[Any], sizes: Mapping[Any, int]) -> bool:
    """Whether sizes satisfy all relations."""
    return all(bool(relation.subs(sizes)) for relation in relations)


def points(question: Question, rng: np.random.Generator) -> Iterator[tuple[dict[Any, int], list[Any]]]:
    """Sizes that satisfy the relations, and the values of both sides and of the claims that are given."""
    claims = [g for g in question.given if isinstance(g, Claim)]
    roots = [known(x) for x in (question.left, question.right, *(s for c in claims for s in c.sides))]
    nodes = topological(roots)
    tensors = [x for x in nodes if x.op is variable]
    compute = sa.lambdify(tensors, roots)
    allowed = [
        {n: a, m: b}
        for a in range(1, _LARGEST + 1)
        for b in range(1, _LARGEST + 1)
        if satisfies(question.relations, {n: a, m: b})
    ]
    rng.shuffle(allowed)  # type: ignore[arg-type]
    for sizes in allowed[:_POINTS]:
        arrays = arrays_for(tensors, {}, sizes, rng)
        for k, x in enumerate(tensors):
            if x.kind == "binary":
                arrays[k] = rng.random(arrays[k].shape) < rng.choice([0.2, 0.6])
        keywords = {key.name: sizes[key] for key in compute.takes.keywords}
        try:
            with np.errstate(all="ignore"):
                values = compute(*arrays, **keywords)
        except (sa.EvaluationError, np.linalg.LinAlgError):
            continue
        values = [np.asarray(v, dtype=float) for v in values]
        if all(_holds(c, *values[2 + 2 * k : 4 + 2 * k]) for k, c in enumerate(claims)):
            yield sizes, values[:2]


def _holds(claim: Any, a: np.ndarray, b: np.ndarray) -> bool:
    compare = {"=": np.isclose, "<=": np.less_equal, "<": np.less}[claim.relation]
    return bool(compare(a, b).all())


def asked(question: Question, seed: int) -> Tally:
    """What the engine says of a question, against numbers."""
    tally = Tally(Counter({question.family: 1}))
    try:
        verdict = sa.prove(question.left, question.right, given=list(question.given), budget=_SECONDS)
    except SymattnError as problem:
        tally.counts[f"{question.family}: refused"] += 1
        if question.family != "contradictions" or not isinstance(problem, OperandError):
            possible = any(satisfies(question.relations, {n: a, m: b}) for a in range(1, 9) for b in range(1, 9))
            if possible:
                tally.wrong.append(f"refused: {question}\n{problem}")
        return tally
    tally.counts[f"{question.family}: {verdict.status}"] += 1
    if verdict.status == "proved":
        tally.wrong += _wrongly_proved(question, verdict, seed)
    elif verdict.status == "refuted" and not satisfies(
        question.relations, {n: 1, m: 1, **verdict.counterexample.sizes}
    ):
        tally.wrong.append(f"refuted at sizes that are not allowed: {question}\n{verdict.counterexample}")
    return tally


def _wrongly_proved(question: Question, verdict: Any, seed: int) -> list[str]:
    wrong = []
    if not verdict.proof.check():
        wrong.append(f"does not replay: {question}")
    if verdict.proof.side_conditions and verdict.proof.witness is None:
        wrong.append(f"conditions without a witness: {question}\n{verdict}")
    for sizes, (a, b) in points(question, np.random.default_rng(seed)):
        if is_apart(question.left, question.right, distance := gap(a, b)):
            wrong.append(f"proved, but {distance:.2g} apart at {sizes}: {question}")
            break
    return wrong


def given_judged(family: str, count: int, seed: int) -> Iterator[Tally]:
    """So many random questions of a family, asked and judged."""
    rng = random.Random(f"{seed} {family}")
    for k in range(count):
        yield asked(FAMILIES[family](rng), 1000 * seed + k)


__all__ = ["FAMILIES", "Question", "asked", "given_judged"]
