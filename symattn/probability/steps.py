"""How mean and variance were found, as lines that a person can follow.

A quantity x is written by entries; E[x] and E[x^2] follow with letters for what the laws say of the entries (mu, sigma,
...), and the variance is their difference. The values of the letters are put in last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import sympy

from ..core.node import Tensor
from ..core.stated import Sentence, Stated
from ..graph.entries import entry
from ..graph.names import LONGEST, tree_size
from ..normal_form.terms import Poly
from ..ops.leaves import definition, let_op, variable
from ..printing.prose import listed
from .answers import plainest
from .laws import Law
from .notation import Difference, Mean, Variance, bound_by_letters
from .problem import Problem
from .sources import Known

_LONGEST_LINE = 110  # characters of a side; a longer form is left out
_NAMES = "xyzsuvwabcefgh"
_L = sympy.Symbol("L")
_EXPONENTIAL = Sentence(
    "For ",
    _L,
    " linear in normal entries, ",
    Stated(
        "E[exp(L)] = exp(E[L] + Var[L] / 2)",
        sympy.Eq(Mean(sympy.exp(_L)), sympy.exp(Mean(_L) + Variance(_L) / 2), evaluate=False),
    ),
    ".",
)


class ScalarLine(NamedTuple):
    """One line: ``left = right``, and why; without a left side it continues the line above.

    The right side is a SymPy scalar, or the tensor without axes that is meant.
    """

    left: sympy.Expr | None
    right: sympy.Expr | Tensor
    reason: str


class Explanation(NamedTuple):
    """How mean and variance of a quantity were found.

    ``name`` is that of the quantity, ``premises`` are what is assumed besides the values of letters, which are lines
    of their own, and ``way`` says how products of random entries were dealt with.
    """

    name: sympy.Symbol
    premises: tuple[Sentence, ...]
    way: Sentence
    lines: tuple[ScalarLine, ...]


def explained(problem: Problem, quantity: Any, mean: Poly, variance: Poly) -> Explanation:
    """The lines on a quantity, from the polynomials of its mean and its variance."""
    writer = _Writer(problem, quantity, [mean, variance])
    square = problem.expectation.of(problem.ring.multiply(problem.polys[0], problem.polys[0]))
    x = writer.name
    rule = "by the rule for exp(L)" if _has_exponential(problem) else ""
    rule = "by the rules above" if problem.expectation.used.rules else rule
    lines = (
        *writer.values(),
        *writer.entries(),
        *writer.mean(mean, rule or "by linearity"),
        *writer.square(square, rule or "multiplied out"),
        ScalarLine(Variance(x), Difference(Mean(x**2), Mean(x) ** 2), "by definition"),
        *writer.variance(variance),
    )
    said = {known.sentence for known in writer.letters}
    premises = tuple(sentence for sentence in assumptions(problem, [mean, variance]) if sentence not in said)
    return Explanation(x, premises, _way(problem), lines)


def assumptions(problem: Problem, used: Sequence[Poly]) -> tuple[Sentence, ...]:
    """What is not random, and what was used of the laws."""
    fixed = (Sentence(problem.tensors[name], " is not random") for name in problem.fixed)
    return (*fixed, *problem.assumptions(used))


def _way(problem: Problem) -> Sentence:
    """How products of random entries are dealt with, by the kinds of laws."""
    ways = sorted((source.law.way for source in problem.sources), key=lambda way: way != Law.way)
    rules = problem.expectation.used.rules.values()
    told = dict.fromkeys([*ways, *([_EXPONENTIAL] if _has_exponential(problem) else []), *rules])
    return Sentence(*listed(((way,) for way in told), " "))


def _has_exponential(problem: Problem) -> bool:
    factors = (factor for poly in problem.polys for _, term in poly.terms for factor in term.factors)
    return any(atom.kind == "exp" for atom, _ in factors)


class _Writer:
    """Writes lines on one quantity, with letters for what was used of the laws."""

    def __init__(self, problem: Problem, quantity: Any, used: Sequence[Poly]) -> None:
        self.problem, self.quantity = problem, quantity
        symbols = problem.symbols
        held = {s for poly in used for s in problem.symbols_in(poly)} | symbols.vanished.keys()
        self._met = [known for symbol, known in symbols.known.items() if symbol in held]

    @cached_property
    def name(self) -> sympy.Symbol:
        """The name of the quantity: its own, if it has one, else a letter that is free."""
        if isinstance(self.quantity, Tensor) and self.quantity.op in (let_op, variable):
            return sympy.Symbol(str(self.quantity.name))
        return sympy.Symbol(next(letter for letter in [*_NAMES, "x_1"] if letter not in self._taken))

    @cached_property
    def _taken(self) -> set[str]:
        """Names with a meaning of their own: tensors, sizes, and symbols of the question and of its laws."""
        values = [known.value for known in self._met if known.value is not None and not _is_itself(known)]
        symbols = {*self.quantity.free_symbols, *(s for value in values for s in value.free_symbols)}
        return {*self.problem.tensors, *(str(symbol) for symbol in symbols)}

    @cached_property
    def letters(self) -> list[Known]:
        """What is written by a letter: nothing, if one of the letters has another meaning in the answer."""
        named = [known for known in self._met if known.shown.free_symbols and not _is_itself(known)]
        if self._taken & {s.name for known in named for s in known.shown.free_symbols}:
            return []
        return [known for known in named if known.value is not None]

    def values(self) -> Iterator[ScalarLine]:
        """One line a letter: what the law says that it is."""
        for known in self.letters:
            yield ScalarLine(known.shown, known.value, known.title)

    def entries(self) -> Iterator[ScalarLine]:
        """What the quantity is, and its entry, where that is not too long to read."""
        x = self.quantity
        if isinstance(x, Tensor) and x.op is variable:
            return
        yield ScalarLine(self.name, x, "by definition")
        if isinstance(x, Tensor) and tree_size(x) <= LONGEST // 8 and definition(x).op is not variable:
            formula = bound_by_letters(entry(x, ()))
            if len(sympy.sstr(formula)) <= _LONGEST_LINE:
                yield ScalarLine(None, formula, "by entries")

    def mean(self, poly: Poly, reason: str) -> Iterator[ScalarLine]:
        """E[x] with letters, then with their values."""
        shown = self._with_letters(poly, zeros=True) or self._with_letters(poly)
        yield from self._ending(ScalarLine(Mean(self.name), shown, reason), poly)

    def square(self, poly: Poly, reason: str) -> Iterator[ScalarLine]:
        """E[x^2] with letters, except for those that are zero."""
        shown = self._with_letters(poly)
        reason = "zeros left out" if any(letter.value == 0 for letter in self.letters) else reason
        yield ScalarLine(Mean(self.name**2), self.problem.answer(poly) if shown is None else shown, reason)

    def variance(self, poly: Poly) -> Iterator[ScalarLine]:
        """The difference of the two, with the same letters, then with their values."""
        yield from self._ending(ScalarLine(None, self._with_letters(poly), "by the lines above"), poly)

    def _ending(self, line: ScalarLine, poly: Poly) -> Iterator[ScalarLine]:
        """A line with letters, if there are any, and the answer, if it is another one."""
        answer = self.problem.answer(poly)
        if line.right is None:
            yield line._replace(right=answer)
            return
        yield line
        if str(answer) != str(line.right):
            yield ScalarLine(None, answer, "the values put in")

    def _with_letters(self, poly: Poly, zeros: bool = False) -> sympy.Expr | None:
        """The polynomial with letters, those of zeros too or not, if it is not too long and all letters are known."""
        if not self.letters:
            return None
        own = {known.shown: known.value for known in self._met if _is_itself(known)}
        shown = self.problem.shown(poly).subs(own, simultaneous=True)
        absent = {letter.shown: sympy.S.Zero for letter in self.letters if letter.value == 0}
        if absent and not zeros:
            shown = plainest(shown.subs(absent))
        unknown = {s for known in self._met if known.value is None for s in known.shown.free_symbols}
        return shown if len(str(shown)) <= _LONGEST_LINE and not shown.free_symbols & unknown else None


def _is_itself(known: Known) -> bool:
    """Whether a law was given the very letter as its value, as the mean mu_q of q."""
    return str(known.shown) == str(known.value)
