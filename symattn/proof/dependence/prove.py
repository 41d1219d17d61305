"""Dependence patterns, such as causality: which entries of a variable an entry of a tensor can depend on.

For each node, from the leaves up, a pattern says at which indices the variable may matter to an entry. The claim holds
if no case of the output's pattern can meet its condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy

from ...core.boxes import Box, Fence, Sign, Text
from ...core.budget import Budget
from ...core.node import Tensor
from ...graph.entries import index_symbols
from ...graph.names import LONGEST, displayed_names, tree_size
from ...ops.leaves import computed, definition, is_named
from ...ops.leaves import variable as named_tensor
from ...printing.index import entry_box
from ...printing.matrix import Printer, latex_printer, text
from ...printing.prose import Items, Part, Words, listed
from ...printing.table import SymbolTable
from ..argument import Argument, Given
from ..claims import Claim, Independence, condition_text, condition_words
from .formula_walk import FormulaWalk
from .index_constraints import Constraint, Pattern, every, possible
from .patterns import Patterns, domain, index_names
from .reads import Index, Read, reads


@dataclass(frozen=True)
class Step:
    """Where one tensor reads the variable: ``tensor[index]`` depends on its entries under ``condition`` only.

    It is 0 except under ``support``.
    """

    tensor: str
    index: tuple[sympy.Symbol, ...]
    condition: Any
    support: Any
    node: Tensor


@dataclass(frozen=True, eq=False)
class DependenceProof(Argument):
    """Why the entries of an output do not depend on those of a variable: what each named tensor reads of it."""

    claim: Independence
    steps: tuple[Step, ...]

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return self.claim == claim

    def check(self) -> bool:
        """Work out the patterns of all nodes again, and hold the steps against them."""
        return _steps_if_independent(self.claim, Budget(float("inf"))) == self.steps

    def text(self) -> str:
        """One line a step, with what it is computed from, and the conclusion."""
        read = _entry_text(str(self.claim.variable.name), self.claim.inp)
        lines = []
        for step in self.steps:
            entry = _entry_text(step.tensor, step.index)
            why = [(_entry_text(r.name, r.places), *_where(r, _condition_text)) for r in self._reads(step)]
            lines.append("".join(map(str, (entry, *_depends(step, read, _condition_text), *_reading(why)))))
        return "\n".join([*lines, f"so {self.claim}"])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same as a list."""
        printer = latex_printer(self.claim.sides, within=within)
        table = printer.table
        condition = partial(condition_words, write=table.scalar)
        read = _entry_box(printer.box(self.claim.variable), self.claim.inp, table)
        lines: list[Words] = []
        for step in self.steps:
            shown = printer.box(step.node) if step.node in printer.names else _unnamed(step.node, printer)
            why = [(_entry_box(table.box(r.name), r.places, table), *_where(r, condition)) for r in self._reads(step)]
            entry = _entry_box(shown, step.index, table)
            lines.append((entry, *_depends(step, read, condition), *_reading(why)))
        return (Items((*lines, ("so ", *self.claim.words(printer)))),)

    def _reads(self, step: Step) -> list[Read]:
        """What a tensor is computed from, of what depends on the variable."""
        names = displayed_names([self.claim.output])
        moving = {names.get(s.node) for s in self.steps} | {self.claim.variable.name}
        taken = {*names.values(), *map(str, (*self.claim.inp, *step.index))}
        taken |= {s.name for s in self.claim.output.free_symbols}
        return [found for found in reads(step.node, step.index, names, taken) if found.name in moving]


def _unnamed(x: Tensor, printer: Printer) -> Box:
    return Fence(printer.box(definition(x)) if tree_size(x) <= LONGEST // 8 else Text(x.brief()))


def _entry_text(name: str, index: Index) -> str:
    return f"{name}[{', '.join(':' if i is None else str(i) for i in index)}]"


def _entry_box(name: Box, index: Index, table: SymbolTable) -> Box:
    return entry_box(name, [Sign(":") if i is None else table.scalar(i) for i in index])


def _condition_text(condition: Any) -> Words:
    return (condition_text(condition),)


def _where(read: Read, show: Callable[[Any], Words]) -> Words:
    """The conditions under which an entry is read."""
    return (" where ", *listed(map(show, read.conditions), " and ")) if read.conditions else ()


def _reading(entries: Sequence[Words]) -> Words:
    return (": it reads ", *listed(entries, ", ", " and ")) if entries else ()


def _depends(step: Step, entry: str | Box, show: Callable[[Any], Words]) -> Words:
    if step.condition == sympy.false:
        return " does not depend on ", entry
    where = (" for any indices",) if step.condition == sympy.true else (" only where ", *show(step.condition))
    support = () if step.support == sympy.true else (", and is 0 unless ", *show(step.support))
    return " depends on ", entry, *where, *support


def dependence_proof(claim: Independence, budget: Budget) -> DependenceProof | None:
    """A proof that the output does not depend on the variable where the condition holds; None where none is found.

    None is no answer: a pattern says where an entry *may* depend on the variable. Raises OutOfBudget.

    >>> import symattn as sa
    >>> from symattn.core.budget import Budget
    >>> from symattn.proof.claims import independent
    >>> X = sa.tensor("X", "T d")
    >>> later = independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: inp[0] > out[0])
    >>> print(dependence_proof(later, Budget(10)))
    (cumsum(X, axis=-2))[i, j] depends on X[k, l] only where j = l and i >= k: it reads X[m, j] where m <= i
    so (cumsum(X, axis=-2))[i, j] is independent of X[k, l] where k > i
    """
    steps = _steps_if_independent(claim, budget)
    return None if steps is None else DependenceProof(claim, steps)


def _steps_if_independent(claim: Independence, budget: Budget) -> tuple[Step, ...] | None:
    analysis = _Analysis(claim, budget)
    return analysis.steps() if analysis.holds() else None


class _Analysis:
    """The patterns of all nodes below the output."""

    def __init__(self, claim: Independence, budget: Budget) -> None:
        self.claim = claim
        self.nodes = computed([claim.output])
        self.facts = Patterns(claim.variable, budget).of(self.nodes)

    def holds(self) -> bool:
        """Whether no case of what the output reads can meet the condition."""
        claim = self.claim
        walk = FormulaWalk((), dict(zip((*claim.out, *claim.inp), _indices(claim.out, claim.inp), strict=True)))
        forbidden = walk.condition(claim.condition)
        known = [*domain("o", claim.output.shape), *domain("v", claim.variable.shape)]
        return not any(possible([*case, *known]) for case in every(self.facts[claim.output].reads, forbidden))

    def steps(self) -> tuple[Step, ...]:
        """The named nodes, and the output, that depend on the variable, with what they read of it."""
        claim = self.claim
        names = displayed_names([claim.output])
        taken = {*names.values(), *map(str, claim.inp), *(s.name for s in claim.output.free_symbols)}
        steps = []
        for node in self.nodes:
            if node is claim.output or (is_named(node) and node.op is not named_tensor and self.facts[node].reads):
                index = claim.out if node is claim.output else index_symbols(node, taken)
                spelled = dict(zip(_indices(index, claim.inp), (*index, *claim.inp), strict=True))
                found, name = self.facts[node], names.get(node) or f"({text(node)})"
                steps.append(Step(name, index, _shown(found.reads, spelled), _shown(found.support, spelled), node))
        return tuple(steps)


def _indices(out: Sequence[Any], inp: Sequence[Any]) -> list[str]:
    return [*index_names("o", out), *index_names("v", inp)]


def _shown(pattern: Pattern, spelled: Mapping[str, sympy.Symbol]) -> Any:
    return sympy.Or(*(sympy.And(*(_relation(c, spelled) for c in case)) for case in pattern))


def _relation(constraint: Constraint, spelled: Mapping[str, sympy.Symbol]) -> Any:
    """The constraint with every term on the side where it is positive."""

    def side(sign: int) -> Any:
        terms = [(c * sign, m) for m, c in constraint.form if c * sign > 0]
        return sympy.Add(*(sympy.Mul(c, *(_symbol(name, spelled) for name in m)) for c, m in terms))

    return sympy.Eq(side(1), side(-1)) if constraint.equal else sympy.Ge(side(1), side(-1))


def _symbol(name: str, spelled: Mapping[str, sympy.Symbol]) -> sympy.Symbol:
    if name in spelled:
        return spelled[name]
    return sympy.Symbol(name[2:], integer=True, positive=name[0] == "s" or None)
