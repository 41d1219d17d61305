"""Soundness, counted: what the prover says of mutants and of random terms, against numbers that it has no part in.

The refuter goes first in ``prove`` and would hide an unsound prover, so that rewriting and normal forms are asked
directly as well. Their side conditions hold at generic points, and entries without a value are left out.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import symattn as sa
from symattn.core.budget import Budget, OutOfBudget
from symattn.core.node import topological
from symattn.errors import EvaluationError
from symattn.normal_form.constructors import CONSTRUCTORS
from symattn.normal_form.contraction import RULES
from symattn.normal_form.lowering import Lowering, Partition, Repartition, Unreached
from symattn.normal_form.ring import Ring
from symattn.normal_form.terms import TooLarge, Undefined, Unsupported
from symattn.proof.claims import eq
from symattn.proof.equality.decide import definitions_in, in_one_order
from symattn.proof.equality.entrywise import EntrywiseProof, entrywise_proof
from symattn.proof.equality.rewriting import rewrite
from symattn.proof.refute.counterexample import Counterexample
from symattn.proof.refute.refuter import Search

from .agreement import TOLERANCE, evaluations, gap, largest_gap
from .claims_corpus import CLAIMS
from .mutants import Mutant, mutants, mutated
from .random_terms import WORLDS, Maker
from .true_identities import rewritten

_SECONDS = 2.0  # for one question
_SECONDS_A_TERM = 0.25
_BATCH = 20  # terms that share one calculation
_RESTARTS = 4
_JUMPS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "sign", "floor", "mod"})


@dataclass
class Tally:
    """How often something was said, and each time that it was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")  # seconds, and what took them, where it is measured

    def __iadd__(self, other: Tally) -> Tally:
        self.counts += other.counts
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)
        return self


# --- mutants of true claims ---


def proofs(left: sa.Tensor, right: sa.Tensor, given: Sequence[Any], seconds: float = _SECONDS) -> Iterator[str]:
    """Which prover, asked alone, proves an equality: "rewriting", "normal form"."""
    try:
        if rewrite(left, right, Budget(seconds)) is not None:
            yield "rewriting"
    except OutOfBudget:
        pass
    try:
        if isinstance(entrywise_proof(left, right, given, Budget(seconds)), EntrywiseProof):
            yield "normal form"
    except (OutOfBudget, Unreached):
        pass


def judged(mutant: Mutant) -> Tally:
    """What the engine, and each prover alone, say of a mutant, against numbers."""
    tally = Tally(Counter(mutants=1))
    left, right, given = mutant.left, mutant.right, list(mutant.case.given)
    verdict = sa.prove(left, right, given=given, budget=_SECONDS)
    proved = list(proofs(left, right, given))
    if verdict:
        proved.append("prove")
        assert verdict.proof is not None
        if not verdict.proof.check():
            tally.wrong.append(f"does not replay: {mutant}")
    tally.counts.update([verdict.status, *(f"by {prover}" for prover in proved)])
    witness = dict(mutant.case.witness)
    distance = largest_gap(*(x.subs(witness) if witness else x for x in (left, right))) if proved else 0.0
    if is_apart(left, right, distance):
        tally.wrong.append(f"proved by {proved}, but {distance:.2g} apart: {mutant}")
    if verdict.counterexample is not None and not differs_there(left, right, verdict.counterexample):
        tally.wrong.append(f"refuted, but equal at the counterexample: {mutant}\n{verdict.counterexample}")
    return tally


def is_apart(left: sa.Tensor, right: sa.Tensor, distance: float) -> bool:
    """Whether a difference in numbers counts: rounding alone can make one at a jump, and there balls decide."""
    if distance <= TOLERANCE or not any(x.op.name in _JUMPS for x in topological([left, right])):
        return distance > TOLERANCE
    return isinstance(Search(eq(left, right)).run(Budget(_SECONDS)), Counterexample)


def differs_there(left: sa.Tensor, right: sa.Tensor, point: Counterexample) -> bool:
    """Whether the two sides differ in numbers at a counterexample; True where that cannot be told in float64."""
    if point.functions or not 1e-9 < abs(float(point.left - point.right)) < 1e9:
        return True
    arrays = point.arrays_numpy()
    compute = sa.lambdify([*arrays, *point.scalars], [left, right])
    keywords = {key.name: point.sizes[key] for key in compute.takes.keywords}
    try:
        with np.errstate(all="ignore"):
            a, b = compute(*arrays.values(), *map(float, point.scalars.values()), **keywords)
    except (EvaluationError, np.linalg.LinAlgError):
        return True
    return not np.isclose(a[point.index], b[point.index], rtol=1e-12, atol=1e-12)


def mutants_judged(names: Iterable[str], count: int, seed: int) -> Iterator[tuple[str, Tally]]:
    """So many mutants of each true claim, judged; with the name of the claim."""
    for name in names:
        case = CLAIMS[name]()
        if case.true:
            tally = Tally()
            for mutant in mutants(case, count, random.Random(f"{seed} {name}")):
                tally += judged(mutant)
            yield name, tally


# --- random terms with one normal form ---


def term_batch(world: str, seed: int, size: int = _BATCH) -> list[sa.Tensor]:
    """Random terms of one shape, with what true identities and mutations make of them."""
    rng = random.Random(f"{seed} {world}")
    maker = Maker(WORLDS[world], rng)
    shape = rng.choice(WORLDS[world].shapes)
    terms: dict[sa.Tensor, None] = {}
    while len(terms) < size:
        x = maker.term(shape, rng.choice([1, 1, 2, 2, 3]))
        y = rewritten(x, rng.choice([1, 1, 2, 3]), rng)
        around = topological([x, y])
        terms.update(
            dict.fromkeys([x, y, rewritten(x, 1, rng), mutated(x, around, rng)[1], mutated(y, around, rng)[1]])
        )
    return list(terms)


def classes(terms: Sequence[sa.Tensor], define: bool) -> tuple[list[list[sa.Tensor]], Counter[str]]:
    """The terms grouped by their normal form, and how many have one; ``define`` names shared parts on the way."""
    alive, partition, restarts = list(terms), Partition(), 0
    while True:
        try:
            groups, lost = _grouped(alive, partition, define)
            return list(groups.values()), Counter(terms=len(terms), lost=len(terms) - len(alive) + lost)
        except _TakenApart as problem:
            restarts += 1
            if restarts > _RESTARTS:
                alive.remove(problem.term)
                partition, restarts = Partition(), 0
                if not alive:
                    return [], Counter(terms=len(terms), lost=len(terms))


class _TakenApart(Exception):
    """A range has to be taken apart for a term."""

    def __init__(self, term: sa.Tensor) -> None:
        self.term = term


def _grouped(
    terms: Sequence[sa.Tensor], partition: Partition, define: bool
) -> tuple[dict[tuple[int, ...], list[sa.Tensor]], int]:
    named = [x for x in topological(terms) if x.op.name == "tensor"]
    facts = {x.params["name"]: x.params["hypotheses"] for x in named}
    ring = Ring(facts, {x.params["name"]: x.shape for x in named}, CONSTRUCTORS, RULES, Budget(1))
    lowering = Lowering(ring, partition)
    places = [tuple(i for i, _ in choice) for choice in itertools.product(*map(lowering.over, terms[0].shape))]
    groups: dict[tuple[int, ...], list[sa.Tensor]] = {}
    lost = 0
    for x in terms:
        ring.budget = Budget(_SECONDS_A_TERM)
        try:
            if define:
                lowering.define(topological([x]), [x])
            groups.setdefault(tuple(_key(lowering, x, index) for index in places), []).append(x)
        except (Unsupported, Undefined, TooLarge, OutOfBudget, RecursionError):
            lost += 1
        except Repartition:
            raise _TakenApart(x) from None
    return groups, lost


def _key(lowering: Lowering, x: sa.Tensor, index: tuple[Any, ...]) -> int:
    """A number for the normal form of an entry, without definitions."""
    poly = lowering.entry(x, index)
    while names := definitions_in(poly):
        top = max(lowering.definitions[name].node.height for name in names)
        highest = {name for name in names if lowering.definitions[name].node.height == top}
        poly = lowering.ring.rewrite(poly, partial(_unfolded, lowering, highest), "definition")
    return lowering.ring.poly_key(in_one_order(lowering.ring, poly))


def _unfolded(lowering: Lowering, names: set[int], atom: Any) -> Any:
    return lowering.unfolded(atom) if atom.name in names else None


def terms_judged(world: str, seed: int, size: int = _BATCH) -> Tally:
    """Pairs of random terms with one normal form, and pairs that a prover calls equal, against numbers."""
    terms = term_batch(world, seed, size)
    groups, counts = classes(terms, define=seed % 2 == 1)
    tally = Tally(counts)
    for group in groups:
        tally += _pairs_judged(group, "one normal form") if len(group) > 1 else Tally()
    rng = random.Random(seed)
    for _ in range(len(terms) // 8):
        pair = rng.sample(terms, 2)
        for prover in proofs(*pair, [], _SECONDS_A_TERM):
            tally += _pairs_judged(pair, f"equal by {prover}")
    return tally


def _pairs_judged(terms: Sequence[sa.Tensor], what: str) -> Tally:
    """The first term against the others."""
    tally = Tally(Counter({what: len(terms) - 1}))
    points = list(evaluations(terms))
    for k in range(1, len(terms)):
        distance = max((gap(values[0], values[k]) for values in points), default=0.0)
        if is_apart(terms[0], terms[k], distance):
            tally.wrong.append(f"{what}, but {distance:.2g} apart:\n    {terms[0]}\n    {terms[k]}")
    return tally


__all__ = ["Tally", "classes", "judged", "mutants_judged", "proofs", "term_batch", "terms_judged"]
