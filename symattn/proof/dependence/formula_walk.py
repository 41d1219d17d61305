"""What one entry formula reads, and where: the indices at which its inputs, and so a variable, can matter to it.

Facts of a node are patterns over its own index (``o0``, ``o1``, ...), the variable's index (``v0``, ...) and sizes.
Those of its inputs are put into its entry formula, which is walked from the leaves up: a choice matters only on its
side, a product only where no factor is 0, exp only where its argument is not -oo, a sum only within its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import lcm
from operator import attrgetter
from typing import Any, NamedTuple

import sympy

from ...core.node import Tensor
from ...facts.conditions import by_comparisons
from ...scalars.affine import coefficients
from ...scalars.formulas import INDEX, Choice, Held, InverseEntry, Max, Min, Read, ScanEntry, _OfAll, at_index
from ...scalars.functions import FUNCTIONS
from .index_constraints import (
    ANYWHERE,
    NOWHERE,
    Conjunction,
    Constraint,
    Form,
    Monomial,
    Pattern,
    combined,
    either,
    every,
    form_from,
    normal,
    possible,
    substituted,
    without,
)


class Facts(NamedTuple):
    """Where an entry may differ from 0, where it may differ from -oo, and where the variable may matter to it."""

    support: Pattern = ANYWHERE
    finite: Pattern = ANYWHERE
    reads: Pattern = NOWHERE


class FormulaWalk:
    """The facts of one entry formula; ``inputs`` are those of what it reads, with the shapes they have."""

    def __init__(self, inputs: Sequence[tuple[Facts, Sequence[Any]]], names: Mapping[Any, str]) -> None:
        self.inputs = inputs
        self.variables = dict(names)
        self.sides: dict[str, list[Constraint]] = {}  # what holds of a fresh variable
        self.known: dict[Any, Facts] = {}

    # --- index expressions ---

    def form(self, e: Any) -> tuple[Form, int] | None:
        """A whole-number expression as ``form / scale``, or None where it is no polynomial of whole numbers."""
        if e.has(sympy.Mod):
            e = e.replace(sympy.Mod, lambda a, b: a - b * sympy.floor(a / b, evaluate=False))
        terms = {self._monomial(m): c for m, c in coefficients(e).items()}
        if None in terms or not all(c.is_Rational for c in terms.values()):
            return None
        scale = lcm(*(int(c.q) for c in terms.values()))
        return form_from({m: int(c * scale) for m, c in terms.items() if m is not None}), scale

    def _monomial(self, e: Any) -> Monomial | None:
        names = list[str]()
        for base, n in e.as_powers_dict().items():
            name = self._variable(base) if base != 1 and n.is_Integer and 0 < n < 9 else None
            if name is None and base != 1:
                return None
            names += [name] * int(n) if name is not None else []
        return tuple(sorted(names))

    def _variable(self, e: Any) -> str | None:
        if e in self.variables:
            return self.variables[e]
        if isinstance(e, sympy.floor):
            return self._quotient(e)
        if not (isinstance(e, sympy.Symbol) and e.is_integer):
            return None
        return self._fresh(e) if isinstance(e, sympy.Dummy) else ("s." if e.is_positive else "z.") + e.name

    def _fresh(self, e: Any, letter: str = "f") -> str:
        return self.variables.setdefault(e, f"{letter}{len(self.variables)}")

    def _quotient(self, e: Any) -> str | None:
        """A quotient rounded down as a fresh variable, with what division says of it."""
        above, below = sympy.fraction(sympy.together(e.args[0]))
        if not (above.is_integer and below.is_integer and below.is_positive):
            return None
        name, rest = self._fresh(e), above - below * e
        self.sides[name] = self.not_negative(rest, below - 1 - rest)
        return name

    def not_negative(self, *expressions: Any) -> list[Constraint]:
        """That expressions are not negative, as far as they are polynomials of whole numbers."""
        return [Constraint(form, False) for form, _ in filter(None, map(self.form, expressions))]

    def beside(self, constraints: Sequence[Constraint]) -> Conjunction | None:
        """The constraints, with what is known of the fresh variables in them."""
        complete, met = list(constraints), set[str]()
        for constraint in complete:  # which grows while it is walked
            for name in (name for m, _ in constraint.form for name in m):
                if name in self.sides and name not in met:
                    met.add(name)
                    complete += self.sides[name]
        return normal(complete)

    # --- conditions ---

    def condition(self, c: Any, holds: bool = True) -> Pattern:
        """Where a condition may hold, or where it may fail."""
        if c.has(sympy.Abs, sympy.Max, sympy.Min):
            c = c.replace(_is_of_indices, _as_choice)
        return by_comparisons(c, holds, self._comparison, every, either)

    def _comparison(self, c: Any) -> Pattern:
        equal, strict = isinstance(c, sympy.Eq), isinstance(c, (sympy.Lt, sympy.Gt))
        found = None if c.has(Read, sympy.oo, -sympy.oo) else self.form(c.lhs - c.rhs if equal else c.gts - c.lts)
        if found is None:
            return self._vanishing(c)
        return self._pattern(Constraint(combined(1, found[0], -1, form_from({(): int(strict)})), equal))

    def _pattern(self, *constraints: Constraint) -> Pattern:
        made = self.beside(constraints)
        return NOWHERE if made is None else (made,)

    def _vanishing(self, c: Any) -> Pattern:
        """Where an entry is above or below 0, or above -oo, it is not that."""
        if c.rhs == 0 and isinstance(c, (sympy.Gt, sympy.Lt)):
            return self.facts(c.lhs).support
        if c.rhs == -sympy.oo and isinstance(c, (sympy.Gt, sympy.Lt)):
            return self.facts(c.lhs).finite if isinstance(c, sympy.Gt) else NOWHERE
        return ANYWHERE

    # --- formulas ---

    def facts(self, e: Any) -> Facts:
        """The facts of a part of the formula."""
        if e not in self.known:
            known = FUNCTIONS.get(type(e))
            usual = FormulaWalk._odd if known is not None and known.at(0) == 0 else FormulaWalk._other
            walk = next((_WALKS[kind] for kind in type(e).__mro__ if kind in _WALKS), usual)
            self.known[e] = walk(self, e)
        return self.known[e]

    def _reads(self, parts: Sequence[Any]) -> Pattern:
        return either(*(self.facts(part).reads for part in parts))

    def _number(self, e: Any) -> Facts:
        if e.is_zero:
            return Facts(support=NOWHERE)
        return Facts(finite=NOWHERE) if e == -sympy.oo else Facts()

    def _other(self, e: Any) -> Facts:
        return Facts(reads=self._reads(e.args))

    def _read(self, e: Any) -> Facts:
        k, *where = e.args
        facts, shape = self.inputs[int(k)]
        values, more = dict[str, Form](), list[Constraint]()
        for axis, (at, size) in enumerate(zip(where, shape, strict=True)):
            values[f"o{axis}"], constraints = self._place(at, size)
            more += constraints

        def here(p: Pattern) -> Pattern:
            moved = (self.beside([*(Constraint(substituted(f, values), q) for f, q in c), *more]) for c in p)
            return either(tuple(c for c in moved if c is not None))

        by_index = self._reads([at for at in where if at.has(Read)])
        return Facts(here(facts.support), here(facts.finite), either(here(facts.reads), by_index))

    def _place(self, at: Any, size: Any) -> tuple[Form, list[Constraint]]:
        """An index as a form; one that is none is a fresh number below the size."""
        found = None if at.has(Read) else self.form(at)
        if found is not None and found[1] == 1:
            return found[0], []
        fresh, last = form_from({(self._fresh(at),): 1}), self.form(size - 1)
        if found is not None:
            return fresh, [Constraint(combined(found[1], fresh, -1, found[0]), True)]
        below = [combined(1, last[0], -last[1], fresh)] if last is not None else []
        return fresh, [Constraint(form, False) for form in (fresh, *below)]

    def _sum_of_terms(self, e: Any) -> Facts:
        parts = [self.facts(part) for part in e.args]
        support, finite = either(*(p.support for p in parts)), every(*(p.finite for p in parts))
        return Facts(support, finite, _one_matters(parts, attrgetter("finite")))

    def _product(self, e: Any) -> Facts:
        parts = [self.facts(part) for part in e.args]
        return Facts(every(*(p.support for p in parts)), reads=_one_matters(parts, attrgetter("support")))

    def _power(self, e: Any) -> Facts:
        support = self.facts(e.base).support if e.exp.is_positive else ANYWHERE
        return Facts(support=support, reads=self._reads(e.args))

    def _exp(self, e: Any) -> Facts:
        inside = self.facts(e.args[0])
        return Facts(support=inside.finite, reads=every(inside.reads, inside.finite))

    def _odd(self, e: Any) -> Facts:
        """A function that is 0 at 0."""
        return Facts(support=self.facts(e.args[0]).support, reads=self._reads(e.args))

    def _choice(self, e: Any) -> Facts:
        condition, a, b = e.args
        yes, no = self.condition(condition), self.condition(condition, holds=False)
        one, other = self.facts(a), self.facts(b)

        def chosen(a: Pattern, b: Pattern) -> Pattern:
            return a if a == b else either(every(yes, a), every(no, b))

        support = chosen(one.support, other.support)
        tested = every(self._reads(condition.args), either(one.support, other.support))  # else 0, whatever is tested
        return Facts(support, chosen(one.finite, other.finite), either(chosen(one.reads, other.reads), tested))

    def _delta(self, e: Any) -> Facts:
        return Facts(support=self.condition(sympy.Eq(*e.args)), reads=self._reads(e.args))

    # --- sums, extremes and inverses: over bound indices ---

    def _within(self, e: Any, *more: Constraint) -> Callable[[Pattern], Pattern]:
        """What turns a pattern of a term into one of the whole: some values of the bound indices allow it."""
        edges = [room for k, low, high in e.limits for room in (k - low, high - k)]
        inside = self.beside([*more, *self.not_negative(*edges)])
        if inside is None:
            return lambda p: NOWHERE
        bound = [k for k, _, _ in e.limits]
        # also what was made of a bound index, such as k // 2: it is another one in another sum
        gone = {name for part, name in self.variables.items() if part in bound or part.has(*bound)}
        return lambda p: without(every(p, (inside,)), lambda name: name in gone)

    def _bound_term(self, e: Any) -> Facts:
        """The facts of a term, with variables for its bound indices; one of the letter "b" is known to be >= 0."""
        for k, _, _ in e.limits:
            self._fresh(k, "b" if k.is_nonnegative else "f")
        return self.facts(e.function)

    def _fold(self, e: Any) -> Facts:
        term = self._bound_term(e)
        some = self._within(e)
        return Facts(some(term.support), some(term.finite) if isinstance(e, Max) else ANYWHERE, some(term.reads))

    def _of_all(self, e: Any) -> Facts:
        term = self._bound_term(e)
        return Facts(reads=either(self._within(e)(term.reads), self._reads(e.places)))

    def _recurrence(self, e: Any) -> Facts:
        """Every entry of its inputs, but of a sequence none at a later step."""
        for k in e.bound_symbols:
            self._fresh(k, "b")
        reads = []
        for term in e.function:
            earlier = self.not_negative(*(e.places[0] - k for k in e.timed if k.free_symbols & term.free_symbols))
            reads.append(self._within(e, *earlier)(self.facts(term).reads))
        return Facts(reads=either(*reads, self._reads(e.places)))

    def _inverse(self, e: Any) -> Facts:
        """The inverse of a triangular matrix is triangular, and its entry needs the rows and columns between only."""
        term = self._bound_term(e)
        (i, *_), (j, *_) = e.limits
        row, column = e.places
        for first, last, low, high in ((j, i, column, row), (i, j, row, column)):
            if not any(map(possible, self._within(e, *self.not_negative(first - last - 1))(term.support))):
                between = self._within(e, *self.not_negative(first - low, high - last, last - first))
                support = self._pattern(*self.not_negative(high - low))
                return Facts(support, reads=either(every(support, between(term.reads)), self._reads(e.places)))
        return self._of_all(e)


def _is_of_indices(e: Any) -> bool:
    return isinstance(e, (sympy.Abs, sympy.Max, sympy.Min)) and not e.has(Read)


def _as_choice(e: Any) -> Any:
    """An absolute value, or the largest or the smallest of some values, as choices."""
    if isinstance(e, sympy.Abs):
        return Choice(e.args[0] >= 0, e.args[0], -e.args[0])
    return reduce(lambda a, b: Choice(a >= b if isinstance(e, sympy.Max) else a <= b, a, b), e.args)


def _one_matters(parts: Sequence[Facts], others: Callable[[Facts], Pattern]) -> Pattern:
    """Where the variable may matter to one of several parts, and the others leave room for it."""
    return either(*(every(one.reads, *map(others, (*parts[:n], *parts[n + 1 :]))) for n, one in enumerate(parts)))


_WALKS: dict[Any, Callable[[FormulaWalk, Any], Facts]] = {
    Read: FormulaWalk._read,
    sympy.Number: FormulaWalk._number,
    sympy.Add: FormulaWalk._sum_of_terms,
    sympy.Mul: FormulaWalk._product,
    sympy.Pow: FormulaWalk._power,
    sympy.exp: FormulaWalk._exp,
    Choice: FormulaWalk._choice,
    sympy.KroneckerDelta: FormulaWalk._delta,
    sympy.Sum: FormulaWalk._fold,
    Max: FormulaWalk._fold,
    Min: FormulaWalk._fold,
    InverseEntry: FormulaWalk._inverse,
    ScanEntry: FormulaWalk._recurrence,
    _OfAll: FormulaWalk._of_all,
    Held: FormulaWalk._odd,
}


def formula_of(node: Tensor, constants: Mapping[Tensor, Any]) -> Any:
    """The entry formula of a node at ``INDEX``; constants by index are written out, other inputs are reads."""

    def read(k: int, where: tuple[Any, ...]) -> Any:
        formula = constants.get(node.inputs[k])
        return Read(sympy.Integer(k), *where) if formula is None else at_index(formula, where)

    return sympy.sympify(node.op.entry(read, INDEX[: node.rank], node))
