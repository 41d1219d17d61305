"""A claim and what is given in words: every name among them has one meaning, which is stated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import sympy

from ..core.node import Tensor, topological
from ..core.stated import Condition, Stated
from ..errors import OperandError
from ..ops.leaves import definition, is_named, variable
from ..printing.align import tex_text
from ..printing.matrix import MOST_DEFINITIONS, Printer, latex_printer, membership, text_in, text_printer
from ..printing.media.latex import latex
from ..printing.scalars import scalar_latex
from ..printing.sentences import defined, stated
from ..printing.stated import condition_in, tex_sentence
from ..printing.symbols import symbol
from .claims import Claim, Independence


class Wording:
    """The text of a claim, of what is given, and of the intermediates that these mention."""

    def __init__(self, claim: Claim | Independence, given: Sequence[Any]) -> None:
        self._claim, self._given = claim, given
        self._roots = [*claim.sides, *(x for g in given if isinstance(g, Claim) for x in g.sides)]

    @cached_property
    def _printer(self) -> Printer:
        return text_printer(self._roots)

    def plain(self, said: str) -> str:
        """How a condition is written, or a text that names nothing of the claim."""
        return said

    @property
    def claim(self) -> str:
        return self._asked(self._claim)

    @property
    def given(self) -> tuple[str, ...]:
        """What was given, each as it is written."""
        return tuple(map(self._fact, self._given))

    @property
    def declared(self) -> tuple[str, ...]:
        """The properties that tensors were declared with, but for those that are stated as given."""
        named = [x for x in topological(self._roots) if x.op is variable and x.params["hypotheses"]]
        listed = sorted((x for x in named if x not in self._given), key=lambda x: str(x.name))
        return tuple(map(self._declared, listed))

    @property
    def definitions(self) -> tuple[str, ...]:
        """What the intermediates stand for that are read by their names, the last, which stand next to the claim."""
        return (*[*self._mentioned][-MOST_DEFINITIONS:], *[self._more] * bool(self._more))

    @cached_property
    def _mentioned(self) -> dict[str, Tensor]:
        """What is read by its name, by what it stands for as text."""
        sides = [x if isinstance(self._claim, Independence) else definition(x) for x in self._roots]
        mentioned = (x for x in topological(sides) if is_named(x) and x.op is not variable)
        return {self._defined(x): x for x in mentioned}

    @property
    def _more(self) -> str:
        left_out = len(self._mentioned) - MOST_DEFINITIONS
        return f"and {left_out} intermediates more" if left_out > 0 else ""

    def _fact(self, fact: Any) -> str:
        if isinstance(fact, Tensor):
            return self._declared(fact)
        return Stated(self._asked(fact) if isinstance(fact, Claim) else self._related(fact), fact)

    def _asked(self, claim: Claim | Independence) -> str:
        return claim.written(self._printer)

    def _related(self, relation: Any) -> str:
        """A relation of sizes, which are equal by an equality sign."""
        return f"{relation.lhs} = {relation.rhs}" if isinstance(relation, sympy.Eq) else str(relation)

    def _declared(self, x: Tensor) -> str:
        said = f"is {_properties(x)}"
        return Stated(f"{x.brief() if x.rank else x.name} {said}", Condition(x, said))

    def _defined(self, x: Tensor) -> str:
        return f"{self._printer.names[x]} = {text_in(self._printer, x)}"


class LatexWording(Wording):
    """The same in LaTeX; where a tree is too large to be read, the text, which says so, stands for it."""

    def __init__(self, claim: Claim | Independence, given: Sequence[Any], printer: Printer | None = None) -> None:
        super().__init__(claim, given)
        self._given_printer = printer

    @cached_property
    def _latex_printer(self) -> Printer | None:
        try:
            return self._given_printer or latex_printer(self._roots)
        except OperandError:
            return None

    def plain(self, said: str) -> str:
        if self._given_printer is not None and isinstance(said, Stated) and isinstance(said.formula, Condition):
            return condition_in(self._given_printer, said.formula)
        return tex_sentence(said)

    @property
    def claim(self) -> str:
        printer = self._latex_printer
        if printer is None or isinstance(self._claim, Independence):
            return self._asked(self._claim)
        return stated(self._claim.box(printer))

    @property
    def notation(self) -> str:
        """What the intermediates stand for, in a sentence or row by row."""
        printer = self._latex_printer
        if printer is None:
            return f"{'; '.join(self.definitions)}."
        last = [*self._mentioned.values()][-MOST_DEFINITIONS:]
        return defined([printer.row(printer.names[x], definition(x), "") for x in last], self._more)

    def _asked(self, claim: Claim | Independence) -> str:
        if self._latex_printer is None:
            return tex_text(super()._asked(claim))
        written = claim.written(self._latex_printer)
        return written if isinstance(claim, Independence) else f"${written}$"

    def _related(self, relation: Any) -> str:
        return f"${scalar_latex(relation)}$"

    def _declared(self, x: Tensor) -> str:
        printer = self._latex_printer
        if printer is None or x not in printer.names:
            return f"${latex(membership(symbol(str(x.name)), x.shape))}$ is {_properties(x)}"
        return f"${latex(membership(printer.symbol(x), x.shape, printer.table))}$ is {_properties(x)}"

    def _defined(self, x: Tensor) -> str:
        printer = self._latex_printer
        return tex_text(super()._defined(x)) if printer is None else f"${printer.equation(x)}$"


def _properties(x: Tensor) -> str:
    words = [f"a {word}" if word == "permutation" else word for word in x.params["hypotheses"]]
    return " and ".join(words) or "declared without properties"
