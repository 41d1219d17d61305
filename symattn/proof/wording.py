"""A claim and what is given in words: every name among them has one meaning, which is stated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import sympy

from ..core.naming import latex_name
from ..core.node import Tensor, topological
from ..errors import OperandError
from ..ops.leaves import definition, is_named, variable
from ..printing.align import tex_text
from ..printing.matrix import Printer, latex_printer, membership, text_in, text_printer
from .claims import Claim, Independence

_MOST = 12  # definitions that somebody still reads


class Wording:
    """The text and the LaTeX of a claim, of what is given, and of the intermediates that these mention."""

    def __init__(self, claim: Claim | Independence, given: Sequence[Any]) -> None:
        self._claim, self._given = claim, given
        self._roots = [*claim.sides, *(x for g in given if isinstance(g, Claim) for x in g.sides)]

    @cached_property
    def _printer(self) -> Printer:
        return text_printer(self._roots)

    @property
    def claim(self) -> str:
        return self._claim.text_in(self._printer)

    @cached_property
    def _latex_printer(self) -> Printer | None:
        """None if a tree is too large to be read: the text, which says so, stands for it."""
        try:
            return latex_printer(self._roots)
        except OperandError:
            return None

    @property
    def claim_latex(self) -> str:
        if self._latex_printer is None:
            return tex_text(self.claim)
        written = self._claim.latex_in(self._latex_printer)
        return written if isinstance(self._claim, Independence) else f"${written}$"

    @property
    def given(self) -> tuple[str, ...]:
        """What was given, each as it is written; sizes that are equal by an equality sign."""
        return tuple(map(self._fact, self._given))

    def _fact(self, fact: Any) -> str:
        if isinstance(fact, Claim):
            return fact.text_in(self._printer)
        if isinstance(fact, Tensor):
            return _declared(fact)
        return f"{fact.lhs} = {fact.rhs}" if isinstance(fact, sympy.Eq) else str(fact)

    @property
    def given_latex(self) -> tuple[str, ...]:
        return tuple(map(self._fact_latex, self._given))

    def _fact_latex(self, fact: Any) -> str:
        if isinstance(fact, Claim) and self._latex_printer is not None:
            return f"${fact.latex_in(self._latex_printer)}$"
        if isinstance(fact, Tensor):
            return _declared_latex(fact)
        return tex_text(self._fact(fact)) if isinstance(fact, Claim) else f"${sympy.latex(fact)}$"

    @property
    def declared(self) -> tuple[str, ...]:
        """The properties that tensors were declared with."""
        return tuple(map(_declared, self._with_properties))

    @property
    def declared_latex(self) -> tuple[str, ...]:
        return tuple(map(_declared_latex, self._with_properties))

    @cached_property
    def _with_properties(self) -> list[Tensor]:
        """The tensors that are declared with properties, but for those that are stated as given."""
        named = [x for x in topological(self._roots) if x.op is variable and x.params["hypotheses"]]
        return sorted((x for x in named if x not in self._given), key=lambda x: str(x.name))

    @cached_property
    def _mentioned(self) -> list[Tensor]:
        """The named intermediates that are read by their names, each after those it reads."""
        sides = [x if isinstance(self._claim, Independence) else definition(x) for x in self._roots]
        return [x for x in topological(sides) if is_named(x) and x.op is not variable]

    @property
    def definitions(self) -> tuple[str, ...]:
        """What the intermediates stand for that are mentioned, each once."""
        written = (f"{self._printer.names[x]} = {text_in(self._printer, x)}" for x in self._mentioned)
        return _shortened(list(dict.fromkeys(written)))

    @property
    def definitions_latex(self) -> tuple[str, ...]:
        printer = self._latex_printer
        if printer is None:
            return tuple(map(tex_text, self.definitions))
        written = (f"${printer.name(x)} = {printer.write(x)}$" for x in self._mentioned)
        return _shortened(list(dict.fromkeys(written)))


def _shortened(definitions: list[str]) -> tuple[str, ...]:
    """The last definitions, which stand next to the claim."""
    left_out = len(definitions) - _MOST
    return (*definitions[-_MOST:], *([f"and {left_out} intermediates more"] if left_out > 0 else ()))


def _declared(x: Tensor) -> str:
    return f"{x.brief() if x.rank else x.name} is {_properties(x)}"


def _declared_latex(x: Tensor) -> str:
    return f"${membership(latex_name(str(x.name)), x.shape)}$ is {_properties(x)}"


def _properties(x: Tensor) -> str:
    words = [f"a {word}" if word == "permutation" else word for word in x.params["hypotheses"]]
    return " and ".join(words) or "declared without properties"
