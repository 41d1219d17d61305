"""Dependence patterns, such as causality: which entries of a variable an entry of a tensor can depend on.

For each node, from the leaves up, a pattern says at which indices the variable may matter to an entry. The claim holds
if no case of the output's pattern can meet its condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from ...core.budget import Budget
from ...core.node import Tensor
from ...graph.entries import index_symbols
from ...graph.names import displayed_names
from ...ops.leaves import computed, is_named
from ...ops.leaves import variable as named_tensor
from ...printing.align import itemised, tex_text
from ...printing.matrix import latex_printer, text
from ...printing.symbols import latex_name
from ...scalars.formulas import INDEX, is_short
from ..argument import Argument, Given
from ..claims import Claim, Independence
from .formula_walk import Facts, FormulaWalk, formula_of
from .index_constraints import Constraint, Pattern, every, form_from, possible, tidied, without


@dataclass(frozen=True)
class Step:
    """Where one tensor reads the variable: ``tensor[index]`` depends on its entries under ``condition`` only."""

    tensor: str
    index: tuple[sympy.Symbol, ...]
    condition: Any


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
        """One line a step, and the conclusion."""
        read = f"{self.claim.variable.name}[{_listed(self.claim.inp)}]"
        lines = [f"{s.tensor}[{_listed(s.index)}] {_reads(s.condition, read, sympy.sstr)}" for s in self.steps]
        return "\n".join([*lines, f"so {self.claim}"])

    def latex(self) -> str:
        """The steps and the conclusion as an itemised list."""
        x, inp = latex_name(str(self.claim.variable.name)), _listed(self.claim.inp)
        lines = []
        for step in self.steps:
            name = sympy.latex(sympy.Symbol(step.tensor)) if step.tensor.isidentifier() else _texttt(step.tensor)
            entry = rf"$\left({name}\right)_{{{_listed(step.index)}}}$"
            lines.append(f"{entry} " + _reads(step.condition, f"${{{x}}}_{{{inp}}}$", lambda c: f"${sympy.latex(c)}$"))
        return itemised([*lines, f"so {self.claim.written(latex_printer(self.claim.sides))}"])


def _texttt(text: str) -> str:
    return rf"\texttt{{{tex_text(text)}}}"


def _listed(index: Sequence[sympy.Symbol]) -> str:
    return ", ".join(map(str, index))


def _reads(condition: Any, entry: str, show: Any) -> str:
    if condition == sympy.false:
        return f"does not depend on {entry}"
    where = "for any indices" if condition == sympy.true else f"only where {show(condition)}"
    return f"depends on {entry} {where}"


def dependence_proof(claim: Independence, budget: Budget) -> DependenceProof | None:
    """A proof that the output does not depend on the variable where the condition holds; None where none is found.

    None is no answer: a pattern says where an entry *may* depend on the variable. Raises OutOfBudget.

    >>> import symattn as sa
    >>> from symattn.core.budget import Budget
    >>> from symattn.proof.claims import independent
    >>> X = sa.tensor("X", "T d")
    >>> later = independent(sa.cumsum(X, axis=0), X, when=lambda out, inp: inp[0] > out[0])
    >>> print(dependence_proof(later, Budget(10)))
    cumsum(X, axis=-2)[i, j] depends on X[k, l] only where Eq(j, l) & (i >= k)
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
        self.facts: dict[Tensor, Facts] = {}
        self.constants: dict[Tensor, Any] = {}
        self.below_variable = _domain("v", claim.variable.shape)
        self.alike: dict[Any, Facts] = {}  # layers repeat: equal operations on equal facts have equal facts
        for node in self.nodes:
            budget.check()
            self.facts[node] = self._variable(node) if node.op is named_tensor else self._computed(node)

    def _variable(self, node: Tensor) -> Facts:
        if node is not self.claim.variable:
            return Facts()
        own = list(range(node.rank))
        orders = [own]
        if "symmetric" in node.params["hypotheses"]:  # each entry stands at two places
            orders.append([*own[:-2], own[-1], own[-2]])
        return Facts(
            reads=tuple(
                tuple(sorted(_same(f"o{a}", f"v{b}") for a, b in zip(own, order, strict=True))) for order in orders
            )
        )

    def _computed(self, node: Tensor) -> Facts:
        if node.rank > len(INDEX):
            return Facts(reads=((),))
        formula = formula_of(node, self.constants)
        if all(x in self.constants for x in node.inputs) and is_short(formula):
            self.constants[node] = formula
        key = formula, tuple((self.facts[x], x.shape) for x in node.inputs), node.shape
        if key not in self.alike:
            self.alike[key] = self._walked(node, formula)
        return self.alike[key]

    def _walked(self, node: Tensor, formula: Any) -> Facts:
        inputs = [(self.facts[x], x.shape) for x in node.inputs]
        walk = FormulaWalk(inputs, dict(zip(INDEX, _names("o", node.shape), strict=False)))
        found = walk.facts(formula)
        known = [*_domain("o", node.shape), *self.below_variable]
        return Facts(*(tidied(without(p, lambda name: name[0] in "fb"), known) for p in found))

    def holds(self) -> bool:
        """Whether no case of what the output reads can meet the condition."""
        claim = self.claim
        places = zip((*claim.out, *claim.inp), (*_names("o", claim.out), *_names("v", claim.inp)), strict=True)
        walk = FormulaWalk((), dict(places))
        forbidden = walk.condition(claim.condition)
        known = [*_domain("o", claim.output.shape), *self.below_variable]
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
                spelled = dict(zip((*_names("o", index), *_names("v", claim.inp)), (*index, *claim.inp), strict=True))
                steps.append(Step(names.get(node) or text(node), index, _shown(self.facts[node].reads, spelled)))
        return tuple(steps)


def _same(a: str, b: str) -> Constraint:
    return Constraint(form_from({(a,): 1, (b,): -1}), True)


def _names(letter: str, index: Sequence[Any]) -> list[str]:
    return [f"{letter}{n}" for n in range(len(index))]


def _domain(letter: str, shape: Sequence[Any]) -> list[Constraint]:
    """An index lies below the sizes; that it is >= 0 is known of all indices."""
    walk = FormulaWalk((), dict(zip(INDEX, _names(letter, shape), strict=False)))
    return walk.not_negative(*(size - 1 - i for i, size in zip(INDEX, shape, strict=False)))


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
