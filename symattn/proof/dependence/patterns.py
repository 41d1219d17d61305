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
    NOWHERE,
    Constraint,
    Form,
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

_MOST_RUNS = 4  # of a step, and one a state, until what its states depend on is known
_WIDER = 2  # how often what a state depends on grows before it is all that its cases have in common

Known = dict[Tensor, Facts]


class Patterns:
    """The facts of nodes, as to one variable."""

    def __init__(self, variable: Tensor, budget: Budget) -> None:
        self.variable, self.budget = variable, budget
        self.constants: dict[Tensor, Any] = {}
        self.below_variable = domain("v", variable.shape)
        self.depth = 0  # of the loop in which nodes stand
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
        loop, t = loop_of(node), self._step()
        self.depth += 1
        inner = self._settled(loop, known, t)
        self.depth -= 1
        if inner is None:
            return found
        what, k = node.params["take"]
        if what == "final":
            reads = without(_put(inner[loop.step.after[k]].reads, _at_the_end(loop, t)), lambda name: name == t)
        else:
            reads = _put(inner[loop.step.outputs[k]].reads, {**_axes(node.rank - 1, 1), t: _form("o0")})
        near = [*domain("o", node.shape), *self.below_variable]
        return found._replace(reads=tidied(every(found.reads, reads), near))

    def _step(self) -> str:
        """The name of the number of a step: an index, which no other loop around or within has."""
        return f"o.step{self.depth}"

    def _settled(self, loop: Loop, known: Known, t: str) -> Known | None:
        """The facts within step t, by those of the states before it, which hold at 0 and from each t to the next."""
        step = loop.step
        begin = [every(known[x].reads, ((Constraint(_form(t), True),),)) for x in loop.first]
        leaves = {x: known[y] for x, y in zip(step.fixed, loop.given, strict=True)}
        leaves |= {x: _at_step(known[y], y.rank, t) for x, y in zip(step.reads, loop.sequences, strict=True)}
        near = [[*domain("o", x.shape), *self.below_variable] for x in step.after]
        states, grown = begin, [0] * len(begin)
        for _ in range(_MOST_RUNS + len(states)):
            held = {x: Facts(reads=p) for x, p in zip(step.states, states, strict=True)}
            inner = self.of(computed(step.roots), {**leaves, **held})
            new = [either(p, _one_later(inner[x].reads, t)) for p, x in zip(begin, step.after, strict=True)]
            fits = [inside(q, p, here) for p, q, here in zip(states, new, near, strict=True)]
            if all(fits):
                return inner
            grown = [n + (not fit and p != NOWHERE) for n, fit, p in zip(grown, fits, states, strict=True)]
            # the place before, then the two before: all places before
            states = [
                p if fit else (joined(p, here, q),) if n >= _WIDER else tidied(either(p, q), here)
                for p, q, here, fit, n in zip(states, new, near, fits, grown, strict=True)
            ]
        return None


def _at_step(facts: Facts, rank: int, t: str) -> Facts:
    """Those of the element of a sequence that is read at step t."""
    values = {"o0": _form(t), **_axes(rank, -1)}
    return Facts(*(_put(p, values) for p in facts))


def _one_later(p: Pattern, t: str) -> Pattern:
    """What is said of step t of what comes after it, as of step t + 1, said of t."""
    before = form_from({(t,): 1, (): -1})
    return every(_put(p, {t: before}), ((Constraint(before, False),),))


def _put(p: Pattern, values: Mapping[str, Form]) -> Pattern:
    """The pattern with forms for indices."""
    cases = (normal(Constraint(substituted(c.form, values), c.equal) for c in case) for case in p)
    return either(tuple(case for case in cases if case is not None))


def _axes(rank: int, by: int) -> dict[str, Form]:
    """Axes that come after a first one, or before it."""
    return {f"o{a}": _form(f"o{a + by}") for a in range(rank) if a + by >= 0}


def _at_the_end(loop: Loop, t: str) -> dict[str, Form]:
    """The last step as the number of steps has it, where that is a polynomial of sizes."""
    last = FormulaWalk((), {}).form(loop.length - 1)
    return {t: last[0]} if last is not None and last[1] == 1 else {}


def _form(name: str) -> Form:
    return form_from({(name,): 1})


def _same(a: str, b: str) -> Constraint:
    return Constraint(form_from({(a,): 1, (b,): -1}), True)


def index_names(letter: str, index: Sequence[Any]) -> list[str]:
    """The names of the indices of a tensor: o0, o1, ..."""
    return [f"{letter}{n}" for n in range(len(index))]


def domain(letter: str, shape: Sequence[Any]) -> list[Constraint]:
    """An index lies below the sizes; that it is >= 0 is known of all indices."""
    walk = FormulaWalk((), dict(zip(INDEX, index_names(letter, shape), strict=False)))
    return walk.not_negative(*(size - 1 - i for i, size in zip(INDEX, shape, strict=False)))
