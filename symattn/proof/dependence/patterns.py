"""Where a variable may matter to the entries of all nodes, from the leaves up, through recurrences too.

What a state of a recurrence may depend on is found by running the step until it adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.budget import Budget
from ...core.node import Tensor
from ...ops.leaves import computed, operands
from ...ops.leaves import variable as named_tensor
from ...recurrence.body import Loop, loop_of
from ...recurrence.record import scan_op
from ...scalars.formulas import INDEX, is_short
from .formula_walk import Facts, FormulaWalk, formula_of
from .index_constraints import (
    Constraint,
    Pattern,
    either,
    every,
    form_from,
    inside,
    joined,
    normal,
    substituted,
    tidied,
    without,
)

_MOST_RUNS = 4  # of a step until what its states depend on is known

Known = dict[Tensor, Facts]


class Patterns:
    """The facts of nodes, as to one variable."""

    def __init__(self, variable: Tensor, budget: Budget) -> None:
        self.variable, self.budget = variable, budget
        self.constants: dict[Tensor, Any] = {}
        self.below_variable = domain("v", variable.shape)
        self.alike: dict[Any, Facts] = {}  # layers repeat: equal operations on equal facts have equal facts

    def of(self, nodes: Iterable[Tensor], leaves: Mapping[Tensor, Facts] | None = None) -> Known:
        """The facts of nodes, inputs before users; those of some leaves are known."""
        known = dict(leaves or {})
        for node in nodes:
            self.budget.check()
            if node not in known:
                known[node] = self._variable(node) if node.op is named_tensor else self._computed(node, known)
        return known

    def _variable(self, node: Tensor) -> Facts:
        if node is not self.variable:
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

    def _computed(self, node: Tensor, known: Known) -> Facts:
        if node.rank > len(INDEX):
            return Facts(reads=((),))
        formula = formula_of(node, self.constants)
        if all(x in self.constants for x in operands(node)) and is_short(formula):
            self.constants[node] = formula
        key = formula, tuple((known[x], x.shape) for x in operands(node)), node.shape
        if key not in self.alike:
            found = self._walked(node, formula, known)
            self.alike[key] = self._narrowed(node, found, known) if node.op is scan_op and found.reads else found
        return self.alike[key]

    def _walked(self, node: Tensor, formula: Any, known: Known) -> Facts:
        inputs = [(known[x], x.shape) for x in operands(node)]
        walk = FormulaWalk(inputs, dict(zip(INDEX, index_names("o", node.shape), strict=False)))
        found = walk.facts(formula)
        near = [*domain("o", node.shape), *self.below_variable]
        return Facts(*(tidied(without(p, lambda name: name[0] in "fb"), near) for p in found))

    # --- recurrences ---

    def _narrowed(self, node: Tensor, found: Facts, known: Known) -> Facts:
        """The facts of a value of a loop, by those of its step beside those by the order of its steps."""
        loop = loop_of(node)
        inner = self._settled(loop, known)
        if inner is None:
            return found
        what, k = node.params["take"]
        if what == "final":
            reads = either(known[loop.first[k]].reads, inner[loop.step.after[k]].reads)
        else:
            reads = _moved(inner[loop.step.outputs[k]].reads, node.rank - 1, 1)
        near = [*domain("o", node.shape), *self.below_variable]
        return found._replace(reads=tidied(every(found.reads, reads), near))

    def _settled(self, loop: Loop, known: Known) -> Known | None:
        """The facts within a step of which the states depend on nothing that they did not before."""
        step = loop.step
        leaves = {x: known[y] for x, y in zip(step.fixed, loop.given, strict=True)}
        leaves |= {x: _at_any_step(known[y], y.rank) for x, y in zip(step.reads, loop.sequences, strict=True)}
        states: Sequence[Pattern] = [known[x].reads for x in loop.first]
        for run in range(_MOST_RUNS):
            held = {x: Facts(reads=p) for x, p in zip(step.states, states, strict=True)}
            inner = self.of(computed(step.roots), {**leaves, **held})
            after = [inner[x].reads for x in step.after]
            near = [[*domain("o", x.shape), *self.below_variable] for x in step.after]
            if all(inside(p, q, here) for p, q, here in zip(after, states, near, strict=True)):
                return inner
            grown = zip(states, after, near, strict=True)
            if run:  # the place before, then the two before: all places before
                states = [(joined(p, here, q),) if p else tidied(q, here) for p, q, here in grown]
            else:
                states = [tidied(either(p, q), here) for p, q, here in grown]
        return None


def _at_any_step(facts: Facts, rank: int) -> Facts:
    """Those of an element of a sequence, whichever it is."""
    return Facts(*(without(_moved(p, rank, -1), lambda name: name == "b.step") for p in facts))


def _moved(p: Pattern, rank: int, by: int) -> Pattern:
    """The pattern for axes that come after or before a first one."""
    values = {f"o{a}": form_from({(f"o{a + by}" if a + by >= 0 else "b.step",): 1}) for a in range(rank)}
    cases = (normal(Constraint(substituted(c.form, values), c.equal) for c in case) for case in p)
    return either(tuple(case for case in cases if case is not None))


def _same(a: str, b: str) -> Constraint:
    return Constraint(form_from({(a,): 1, (b,): -1}), True)


def index_names(letter: str, index: Sequence[Any]) -> list[str]:
    """The names of the indices of a tensor: o0, o1, ..."""
    return [f"{letter}{n}" for n in range(len(index))]


def domain(letter: str, shape: Sequence[Any]) -> list[Constraint]:
    """An index lies below the sizes; that it is >= 0 is known of all indices."""
    walk = FormulaWalk((), dict(zip(INDEX, index_names(letter, shape), strict=False)))
    return walk.not_negative(*(size - 1 - i for i, size in zip(INDEX, shape, strict=False)))
