"""Looking for a point at which a claim is false: small sizes, exact rationals, balls that are disjoint.

A difference is only reported where it is certain. That none was found proves nothing.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import flint
import sympy
from flint import fmpq

from ...core.budget import Budget, OutOfBudget
from ...core.naming import new_name
from ...core.node import Tensor, rebuild
from ...errors import NoRuleError
from ...ops.leaves import variable
from ...printing.matrix import names_in
from ..argument import NOTHING, Given
from ..claims import Claim, Independence
from ..relations import Relations
from .balls import HOLDS, Arithmetic, Number, Outside, Undecided, ball, exact_form
from .counterexample import Agreement, Counterexample, Example, StandIn, as_array, entry_value
from .pointed import Aims, chooses, numbers_in, sizes_past
from .samples import Sampler
from .shrinking import Shrinker
from .values import Array, Evaluator, Point, Values, indices, ordered, shape_at, unknown_names, with_bodies

_BITS = (192, 1000)  # of the balls, and of those for what was too close to call
_TRIALS = (4, 40)  # at least, and at most
_FEW = 8  # that agree, before a proof is looked for
_AT_A_SIZE = 3  # the one entry that differs may be drawn as 0
_WORK = (200_000, 40_000)  # entries and terms, after which none of the least trials is made, and none of the others
_SMALL = 4_000  # entries and terms of the first trials, up to which fractions in a claim are looked at
_POINTED = 60_000  # entries and terms of the trials with numbers of the claim as entries, and of those with sizes
_SHRINKING = 40_000  # entries and terms on the way to a smaller counterexample
_LONGEST = 20_000  # entries of an array that is tried at all
_OUTPUTS = 200  # entries of an output that are asked which entries of the variable they ignore
_EXAMPLES = 40  # points tried for an example alone
_MENDING = 150  # steps on the way to arrays that satisfy what is given
_ENTRIES = tuple(fmpq(p, q) for p, q in ((0, 1), (1, 1), (-1, 1), (0, 1), (1, 1), (2, 1), (1, 2), (3, 5), (4, 5)))


@dataclass(frozen=True)
class Difference:
    """An entry at which a claim is false, and the values of both sides there."""

    index: tuple[int, ...]
    left: Number
    right: Number

    @property
    def exactness(self) -> int:
        """How well the values can be read: 0 for rationals, 1 for closed forms, 2 for decimals."""
        forms = [exact_form(x) for x in (self.left, self.right)]
        return max(2 if form is None else 0 if form.is_Rational else 1 for form in forms)


class Search:
    """One search: the graphs of both sides, points for them, and what is compared.

    The points satisfy the declared hypotheses, the claims and the relations between sizes that are given exactly.

    >>> import symattn as sa
    >>> from symattn.proof.claims import eq
    >>> Q, K = sa.tensor("Q", "T d"), sa.tensor("K", "T d")
    >>> print(Search(eq(Q @ K.T, K @ Q.T)).run(Budget(10)))
    T = 2, d = 1
    Q = [[1], [0]]
    K = [[0], [1]]
    entry [0, 1]: left is 1, right is 0
    """

    def __init__(self, claim: Claim | Independence, hypotheses: Given = NOTHING, seed: int = 0) -> None:
        self.dependence = _Dependence(claim, hypotheses.claims) if isinstance(claim, Independence) else None
        sides: Claim = self.dependence.sides if self.dependence else claim  # type: ignore[assignment]
        given = [*hypotheses.claims, *(self.dependence.given if self.dependence else ())]
        self.claim, self.rng = sides, random.Random(seed)
        self.definitions = {} if self.dependence else _definitions(given)
        self.given = [g for g in given if not any(self.definitions.get(a) is b for a, b in (g.sides, g.sides[::-1]))]
        pair = self.dependence.pair if self.dependence else ()  # which the output may not contain
        nodes = ordered([*sides.sides, *pair, *(x for g in given for x in g.sides)], self.definitions)
        self.too_large = next((x for x in nodes if _least_length(x) > _LONGEST), None)
        self.evaluator = Evaluator(Arithmetic(unknown_names(nodes), Budget(math.inf)), self.definitions)
        self.order = ordered(sides.sides, self.definitions)
        self.given_order = ordered([x for g in self.given for x in g.sides], self.definitions)
        drawn = [x for x in nodes if x.op is variable and x not in self.definitions]
        self.asked = self.dependence.symbols if self.dependence else frozenset()
        self.sampler = Sampler(nodes, hypotheses.relations, drawn, self.rng, self.asked)
        self.conditions = [*hypotheses.relations, *([claim.condition] if isinstance(claim, Independence) else [])]
        self.unknowns = unknown_names(self.order)
        self.rowwise = {x.params["function"] for x in with_bodies(self.order) if x.params.get("rowwise")}
        self.left = self.points()
        self.agreed: list[Point] = []
        self.outside = self.undecided = 0
        self.reason = f"no point satisfies the {'condition' if self.dependence else 'hypotheses'}, as far as was tried"

    # --- trials ---

    def run(self, budget: Budget, few: bool = False) -> Counterexample | Agreement:
        """Try the points that are left, or a few: a small one at which the claim is false for sure, or what agreed."""
        if self.too_large is not None:
            return Agreement(0, 0, 0, (), f"{self.too_large.brief()} is too large to be tried")
        self.evaluator.arithmetic.budget = budget
        with flint.ctx.workprec(_BITS[0]):
            try:
                for point in self.left:
                    if point is not None and self.differs_at(point):
                        return self.counterexample(point)
                    if few and len(self.agreed) >= _FEW:
                        break
            except (OutOfBudget, NoRuleError) as problem:
                self.reason = str(problem)
        sizes = tuple(dict(point.sizes) for point in self.agreed)
        first, reason = (self.agreed[0], "") if self.agreed else (None, self.reason)
        return Agreement(len(self.agreed), self.outside, self.undecided, sizes, reason, first)

    def differs_at(self, point: Point) -> bool:
        """Whether the claim is false at a point; where it is not, the point is counted."""
        try:
            if self.closely_compared(point, first=not self.agreed) is not None:
                return True
        except (Outside, Undecided) as problem:
            self.outside += isinstance(problem, Outside)
            self.undecided += isinstance(problem, Undecided)
            self.reason = f"every point was inconclusive, the last by {problem}"
        else:
            self.agreed.append(point)
        return False

    def points(self) -> Iterator[Point | None]:
        """Points to try: a few generic ones, then those where the claim points, then more generic ones."""
        pointed = 0
        for trial in range(_TRIALS[1]):
            large = self.evaluator.work - pointed > _WORK[trial >= _TRIALS[0]]
            if not pointed and (large or trial == _FEW):
                before = self.evaluator.work
                yield from self.pointed()
                pointed = 1 + self.evaluator.work - before
            if large:
                break
            yield self.point(self.sampler.draw(trial))

    def pointed(self) -> Iterator[Point | None]:
        """Points of the numbers in the claim and their neighbours: as entries of small arrays, and as sizes."""
        formulas = [*self.evaluator.formulas, *self.conditions]
        small = self.evaluator.work < _SMALL and chooses(formulas)
        numbers = numbers_in(formulas, fractions=self.claim.relation != "=" or small)
        if not numbers:
            return
        most = self.evaluator.work + _POINTED
        self.sampler.aims = Aims(numbers)
        for trial in range(_TRIALS[1] if self.sampler.drawn or self.sampler.sizes.scalars else 0):
            sizes = self.sampler.sizes.draw(trial, self.rng)
            if sizes is None or self.sampler.aims.dealt > len(self.sampler.aims.values) or self.evaluator.work > most:
                break
            yield self.point(self.sampler.at(sizes, trial, self.sampler.aims))
        most = self.evaluator.work + _POINTED
        for wanted in sizes_past(numbers, self.sampler.sizes.symbols):
            sizes = self.sampler.sizes.complete(wanted)
            if sizes is None:
                continue
            work = self.evaluator.expected_work([*self.order, *self.given_order], sizes)
            for trial in range(_AT_A_SIZE):
                if self.evaluator.work + work < most:
                    yield self.point(self.sampler.at(sizes, trial))

    def point(self, drawn: Point | None) -> Point | None:
        """The point, mended until what is given holds, and with a second value of a variable if one is asked for."""
        mended = None if drawn is None else self.mended(drawn)
        if mended is None or self.dependence is None:
            return mended
        second = self.dependence.second(mended, self.sampler, self.rng)
        return None if second is None or self.violations(second) else second

    def closely_compared(self, point: Point, first: bool) -> Difference | None:
        """The comparison, with more digits if it is too close to call, and for the first point at once."""
        if not first:
            try:
                return self.compared(point)
            except Undecided:
                pass
        with flint.ctx.workprec(_BITS[1]):
            return self.compared(point)

    def compared(self, point: Point) -> Difference | None:
        """The entry that differs and is best to read, or None; raises Outside and Undecided."""
        try:
            return self.difference(self.evaluator.values(self.order, point), point)
        except Undecided:
            if self.claim.relation != "<":
                raise
        with self.evaluator.arithmetic.in_closed_form():  # which can tell that the sides are equal
            return self.difference(self.evaluator.values(self.order, point), point)

    def difference(self, found: Values, point: Point) -> Difference | None:
        """The entry that differs and is best to read, or None; raises Undecided."""
        left, right = (found[x] for x in self.claim.sides)
        holds, apart, close = HOLDS[self.claim.relation], [], False
        for at in self.dependence.entries(left, point) if self.dependence else left:
            truth = holds(left[at], right[at]) if _is_value(left[at]) and _is_value(right[at]) else None
            if truth is False:
                apart.append(Difference(at, left[at], right[at]))
            elif truth is None and not (self.claim.relation != "<" and _is_narrow(left[at]) and _is_narrow(right[at])):
                close = True
        if close and not apart:
            raise Undecided("values that are too close to call")
        return min(apart, key=lambda difference: difference.exactness, default=None)

    # --- examples ---

    def example(self, budget: Budget) -> Point | None:
        """A point at which both sides have values and all that is given holds, at the least sizes first."""
        self.evaluator.arithmetic.budget = budget
        try:
            return next(filter(self.is_example, filter(None, self.examples())), None)
        except (OutOfBudget, NoRuleError):
            return None

    def examples(self) -> Iterator[Point | None]:
        """Points to ask: at the least sizes and at others in turn, then with numbers of the claim as entries."""
        least = self.sampler.sizes.least()
        for trial in range(0 if self.too_large else _EXAMPLES):
            if trial % 2 or least is None:
                yield self.point(self.sampler.draw(trial))
            else:
                yield self.point(self.sampler.at(least, trial))
        if least is not None:
            aims = Aims(numbers_in(self.evaluator.formulas, fractions=True))
            for trial in range(len(aims.values)):
                yield self.point(self.sampler.at(least, trial, aims))

    def is_example(self, point: Point) -> bool:
        """Whether the hypotheses hold at a point, and both sides have values there that do not differ."""
        if not self.sampler.holds(point) or self.violations(point):
            return False
        try:
            with flint.ctx.workprec(_BITS[1]):
                return self.compared(point) is None
        except (Outside, Undecided):
            return False

    def shown_example(self, point: Point) -> Example:
        """A point as it is shown, with all that the claim and what is given speak of."""
        arrays = [x for x in dict.fromkeys([*self.order, *self.given_order]) if x.op is variable]
        with flint.ctx.workprec(_BITS[1]):  # no fewer digits than the point was found with
            found = self.evaluator.values(ordered(arrays, self.definitions), point)
        symbols = {*point.sizes, *point.scalars}
        return Example(*self.parts(point, {x: found[x] for x in arrays}, symbols))

    def parts(self, point: Point, arrays: Values, symbols: Set[sympy.Symbol]) -> tuple[Any, Any, Any, Any]:
        """What is shown of a point: sizes, scalars, arrays, and what stands for the unknown functions."""
        return (
            {s: n for s, n in point.sizes.items() if s in symbols},
            {s: exact_form(q) for s, q in point.scalars.items() if s in symbols},
            {x: as_array(array, shape_at(x, point.sizes)) for x, array in arrays.items()},
            {name: StandIn(self.evaluator.arithmetic.polynomial(name), name in self.rowwise) for name in self.unknowns},
        )

    # --- what is given ---

    def violations(self, point: Point) -> int:
        """How many entries do not satisfy what is given, for sure."""
        if not self.given:
            return 0
        try:
            found = self.evaluator.values(self.given_order, point)
        except (Outside, Undecided):
            return 1 << 30
        compared = ((HOLDS[g.relation], found[g.left], found[g.right]) for g in self.given)
        return sum(holds(left[at], right[at]) is not True for holds, left, right in compared for at in left)

    def mended(self, point: Point) -> Point | None:
        """The point with entries changed until what is given holds, or None."""
        count = self.violations(point)
        concerned = [x for x in self.sampler.drawn if x in self.given_order] if count else []
        for _ in range(_MENDING if concerned else 0):
            x = self.rng.choice(concerned)
            array = dict(point.arrays[x])
            array[self.rng.choice(list(array))] = self.rng.choice(_ENTRIES)
            if not self.sampler.allows(x, array, point.sizes):
                array = self.sampler.array(x, point.sizes, point.instance) or dict(point.arrays[x])
            candidate = replace(point, arrays={**point.arrays, x: array})
            found = self.violations(candidate)
            if found <= count:
                point, count = candidate, found
            if not count:
                break
        return None if count else point

    # --- the counterexample ---

    def counterexample(self, point: Point) -> Counterexample:
        most = self.evaluator.work + _SHRINKING + 10 * self.evaluator.expected_work(self.order, point.sizes)

        def differs(candidate: Point) -> bool:
            if self.evaluator.work > most:
                raise OutOfBudget("the steps of shrinking are used up")
            try:
                return not self.violations(candidate) and self.compared(candidate) is not None
            except (Outside, Undecided):
                return False

        def fresh(sizes: Mapping[sympy.Symbol, int], trial: int) -> Point | None:
            drawn = self.point(self.sampler.at(sizes, trial))
            return None if drawn is None else replace(drawn, instance=point.instance)

        twin = self.dependence.pair if self.dependence else None
        return self.shown(Shrinker(self.sampler, differs, fresh, twin).run(point))

    def shown(self, point: Point) -> Counterexample:
        """The counterexample at a point, with closed forms where they stay short."""
        arithmetic = self.evaluator.arithmetic
        arithmetic.budget = Budget(float("inf"))  # for one evaluation more, at a small point
        with flint.ctx.workprec(_BITS[1]), arithmetic.in_closed_form():  # no fewer digits than it was found with
            found = self.evaluator.values(self.order, point)
            difference = self.difference(found, point)
        assert difference is not None
        used = self.asked.union(self.sampler.sizes.related, *(x.own_symbols for x in self.order))
        return Counterexample(
            *self.parts(point, {x: found[x] for x in self.order if x.op is variable}, used),
            index=difference.index,
            left_value=entry_value(difference.left),
            right_value=entry_value(difference.right),
            twin=self.dependence.pair[1] if self.dependence else None,
            relation=self.claim.relation,
        )


def _least_length(x: Tensor) -> int:
    """How many entries a tensor has when its size symbols are 1, roughly."""
    return math.prod(max(1, int(sum(term.as_coeff_Mul()[0] for term in sympy.Add.make_args(n)))) for n in x.shape)


def _is_value(x: Number) -> bool:
    """Whether a number is finite or minus infinity, and so a value at all."""
    return isinstance(x, (int, fmpq)) or ball(x).is_finite() or ball(x) == flint.arb.neg_inf()


def _is_narrow(x: Number) -> bool:
    return isinstance(x, (int, fmpq)) or bool(ball(x).rad() < (1 + abs(ball(x))) * flint.arb(2) ** -60)


def _definitions(given: Sequence[Claim]) -> dict[Tensor, Tensor]:
    """Tensors that are given as equal to an expression: they get its value, whatever it is."""
    found: dict[Tensor, Tensor] = {}
    for claim in given:
        for x, y in (claim.sides, claim.sides[::-1]) if claim.relation == "=" else ():
            if x.op is variable and not x.params["hypotheses"] and x not in found:
                if x not in ordered([y], found):
                    found[x] = y
                    break
    return found


class _Dependence:
    """A claim of independence as a comparison: the output at two values of the variable.

    The two differ only in entries that the claim says do not matter, to the entries of the output that are compared.
    """

    def __init__(self, claim: Independence, given: Sequence[Claim]) -> None:
        self.claim, x = claim, claim.variable
        taken = names_in([*claim.sides, *(y for g in given for y in g.sides)])
        twin = variable.node(**{**x.params, "name": new_name(f"{x.name}'", taken)})
        self.pair = (x, twin)
        self.sides = Claim(claim.output, "=", rebuild([claim.output], {x: twin})[0])
        self.given = [Claim(a, g.relation, b) for g in given for a, b in [rebuild(g.sides, {x: twin})]]
        self._condition = Relations([claim.condition])
        self.symbols = claim.condition.free_symbols.difference(claim.out, claim.inp)  # sizes, for example

    def ignored(self, out: tuple[int, ...], inp: tuple[int, ...], point: Point) -> bool:
        """Whether the claim says that this entry of the output ignores that entry of the variable."""
        places = dict(zip((*self.claim.out, *self.claim.inp), (*out, *inp), strict=True))
        return self._condition.hold({**point.sizes, **point.scalars, **places})

    def second(self, point: Point, sampler: Sampler, rng: random.Random) -> Point | None:
        """The point with the second value: other entries wherever some entry of the output is said to ignore them."""
        x, twin = self.pair
        shape = shape_at(x, point.sizes)
        outs = list(indices(shape_at(self.claim.output, point.sizes)))
        rng.shuffle(outs)
        ignored = ([at for at in indices(shape) if self.ignored(out, at, point)] for out in outs[:_OUTPUTS])
        for free in itertools.islice(filter(None, ignored), 8):
            other = sampler.array(x, point.sizes, point.instance)
            if other is not None:
                array = {**point.arrays[x], **{at: other[at] for at in free}}
                if array != point.arrays[x] and sampler.allows(twin, array, point.sizes):
                    return replace(point, arrays={**point.arrays, twin: array})
        return None

    def entries(self, left: Array, point: Point) -> list[tuple[int, ...]]:
        """The entries of the output that are said to ignore every entry that was changed."""
        first, second = (point.arrays[x] for x in self.pair)
        changed = [at for at in first if first[at] != second[at]]
        return [out for out in left if changed and all(self.ignored(out, inp, point) for inp in changed)]
