"""The moments of one quantity: mean, variance, skewness, kurtosis, what they rest on, and how they were found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import sympy

from ..core.boxes import Box, Sign
from ..core.displayed import Displayed
from ..core.late import late
from ..core.node import Tensor
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..ops.leaves import variable
from ..printing.matrix import Printer
from ..printing.prose import Chain, Paragraph, Part, Step, Words
from ..printing.prose_latex import parts_latex
from ..printing.table import Spellings, SymbolTable, check_apart, symbol_table
from .answers import plainest
from .large import Expansion, expansion
from .notation import Kurtosis, Mean, Skewness, Variance, assumed, bound_by_letters, box_writer
from .problem import Problem, solved
from .sampling import Checked, sampled
from .steps import Explanation, assumptions, explained
from .unrolled import agrees

_PATIENCE = 5.0  # seconds that printing waits for skewness and for kurtosis
_LONGEST, _LONGEST_TITLE = 200, 70  # characters of a moment, and of a title
_SIGNS = {"mean": Mean, "variance": Variance, "skewness": Skewness, "kurtosis": Kurtosis}


class Moments(Displayed):
    """Moments of a quantity. Higher moments are worked out when they are asked for.

    ``mean`` and ``variance`` are there from the start; ``skewness`` and ``kurtosis`` raise NoRuleError where the laws
    do not tell them. ``assumptions`` lists what mean and variance used and where they hold, and ``derivation`` shows
    how they were found. ``order`` is how many terms of both ``at_large_sizes`` has, if any.
    """

    def __init__(self, problem: Problem, quantity: Any, order: int | None = None) -> None:
        self.quantity, self.order = quantity, order
        self.law = {tensors if len(tensors) > 1 else tensors[0]: law for tensors, law in problem.bound}
        self.tensors = tuple(problem.tensors.values())
        mean, variance = problem.expectation.of(problem.polys[0]), problem.expectation.variance(problem.polys[0])
        self.mean: sympy.Expr = problem.answer(mean)
        self.variance: sympy.Expr = problem.answer(variance)
        self.assumptions: tuple[Sentence, ...] = assumptions(problem, [mean, variance])
        self.conditions = problem.conditions([mean, variance])
        self._central_moments: dict[int, tuple[sympy.Expr, tuple[Sentence, ...]]] = {}

    def _central(self, order: int, seconds: float = 60.0) -> tuple[sympy.Expr, tuple[Sentence, ...]]:
        """``E[(x - E x)^order]``, and what it uses."""

        def calculate(problem: Problem) -> tuple[sympy.Expr, tuple[Sentence, ...]]:
            ring, expectation = problem.ring, problem.expectation
            centred = ring.subtract(problem.polys[0], expectation.of(problem.polys[0]))
            moment = expectation.of(ring.whole_power(centred, order))
            return problem.answer(moment), assumptions(problem, [moment])

        if self.variance == 0:
            raise NoRuleError("what has no variance has neither skewness nor kurtosis")
        if order not in self._central_moments:
            self._central_moments[order] = solved((self.quantity,), self.law, calculate, seconds)
        return self._central_moments[order]

    @cached_property
    def skewness(self) -> sympy.Expr:
        """``E[(x - E x)^3] / Var(x)^{3/2}``."""
        ratio = self._central(3)[0] / self.variance ** sympy.Rational(3, 2)
        return ratio if ratio.has(sympy.exp) else plainest(ratio)

    @cached_property
    def kurtosis(self) -> sympy.Expr:
        """``E[(x - E x)^4] / Var(x)^2``, which is 3 for a normal law."""
        ratio = self._central(4)[0] / self.variance**2
        if ratio.has(sympy.exp, sympy.gamma, sympy.erf, sympy.asin, sympy.expint):
            return ratio
        ratio = sympy.cancel(ratio)
        (symbol, *others) = sorted(ratio.free_symbols, key=str) or [None]
        return sympy.apart(ratio, symbol) if symbol is not None and not others else plainest(ratio)

    @cached_property
    def at_large_sizes(self) -> dict[str, Expansion]:
        """Mean and variance in falling powers of a size, with the first term left out as the error, where known."""
        found = {"mean": self.mean, "variance": self.variance}
        expanded = {} if self.order is None else {name: expansion(e, self.order) for name, e in found.items()}
        return {name: value for name, value in expanded.items() if value is not None}

    # --- how they were found ---

    @cached_property
    def explanation(self) -> Explanation:
        """The lines that lead to mean and variance."""

        def calculate(problem: Problem) -> Explanation:
            x, expectation = problem.polys[0], problem.expectation
            return explained(problem, self.quantity, expectation.of(x), expectation.variance(x))

        return solved((self.quantity,), self.law, calculate)

    @property
    def derivation(self) -> Any:
        """Mean and variance in readable steps, with a reason each, under the assumptions that were used."""
        return late("Derivation")(self.title, given=self.tensors).extend(self)

    def check(self) -> Checked:
        """Whether mean and variance hold by another way, and all lines come out as they are again.

        Polynomials are enumerated at small sizes: sums are written out and the moments of each monomial taken. Other
        functions are sampled, with five standard errors. The result is true or false as a condition, and its ``way``
        says which way it was; where none is in reach, everything is calculated again.
        """
        bound = [(key if isinstance(key, tuple) else (key,), law) for key, law in self.law.items()]
        tensors = {str(x.name): x for x in self.tensors}
        enumerated = agrees(self.quantity, bound, tensors, (self.mean, self.variance), self.conditions)
        if enumerated is None:
            found = sampled(self.quantity, bound, (self.mean, self.variance), self.conditions)
        else:
            found = Checked(enumerated, "enumeration at small sizes")
        if found is not None and not found:
            return found
        again = solved((self.quantity,), self.law, lambda problem: Moments(problem, self.quantity))
        same = (self.mean, self.variance) == (again.mean, again.variance) and self.explanation == again.explanation
        return found if found is not None and same else Checked(same, "the same calculation once more")

    # --- writing them ---

    def text(self) -> str:
        """Mean, variance, skewness and kurtosis as far as they are known, and the assumptions that they use."""
        found, assumed = self.known()
        lines = [f"{name}: {sympy.sstr(value)}" for name, value in found.items()]
        lines += [f"{name}: {value}" for name, value in self.at_large_sizes.items()]
        return "\n".join([*lines, "assumed:", *(f"  {sentence}" for sentence in assumed or ("nothing",))])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as mathematics, with the symbols of a document if it stands in one."""
        table = symbol_table(self.roots) if within is None else within
        found, used = self.known()
        written = box_writer(self.roots, list(found.values()), table)
        x = sympy.Symbol(table.names.get(self.quantity, self.explanation.name.name))
        steps = [Step(written(_SIGNS[name](x)), written(value)) for name, value in found.items()]
        for name, large in self.at_large_sizes.items():
            reason = ("for large ", written(large.size), ", up to terms of the size of ", written(large.error))
            line = Step(written(_SIGNS[name](x)), written(large.value), relation=Sign("≈", "relation"))
            steps.append(replace(line, reason=reason))
        return Chain((*self._defined(x, table, written), *steps)), Paragraph(self.assumed(used, table))

    def _defined(self, x: sympy.Symbol, table: SymbolTable, written: Callable[[sympy.Expr], Box]) -> Iterator[Step]:
        """The row that says what the quantity is, unless that is a tensor which was declared under its name."""
        quantity = self.quantity
        if isinstance(quantity, Tensor) and quantity.op is variable:
            return
        check_apart({**table.spelling(), x.name: table.box(x.name)})
        is_tensor = isinstance(quantity, Tensor)
        shown = Printer(table, code=False).shown(quantity) if is_tensor else written(bound_by_letters(quantity))
        yield Step(written(x), shown).defined()

    def assumed(self, sentences: Sequence[Sentence], table: SymbolTable) -> Words:
        """A sentence that says what is assumed, by the symbols of a table."""
        return assumed(sentences, self.tensors, table)

    def latex(self, names: Spellings | None = None) -> str:
        """The same as a LaTeX fragment (amsmath, amssymb); ``names`` is that of ``sa.latex``."""
        return parts_latex(self.told(symbol_table(self.roots, names)))

    def known(self) -> tuple[dict[str, sympy.Expr], tuple[Sentence, ...]]:
        """The moments by name, as far as they are known and short enough to read, and what they use."""
        found, used = {"mean": self.mean, "variance": self.variance}, [*self.assumptions]
        for order, name in ((3, "skewness"), (4, "kurtosis")):
            try:
                needs = self._central(order, _PATIENCE)[1]
                value = getattr(self, name)
            except NoRuleError:
                continue
            if len(str(value)) <= _LONGEST:
                found[name] = value
                used += needs
        return found, tuple(dict.fromkeys(used))

    @property
    def roots(self) -> list[Tensor]:
        """The tensors that are written out."""
        return [self.quantity, *self.tensors] if isinstance(self.quantity, Tensor) else [*self.tensors]

    @property
    def title(self) -> str:
        """What the moments are of."""
        x = self.quantity
        written = str(x if isinstance(x, Tensor) else bound_by_letters(x))
        return f"Moments of {written}" if len(written) <= _LONGEST_TITLE else "Moments"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{self.title}: mean {self.mean}, variance {self.variance}>"
