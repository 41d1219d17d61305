"""Maxima, minima, relu, absolute values and comparisons that inequalities decide: each is one of its sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy

from ..core.budget import Budget
from ..core.node import Tensor, with_inputs
from ..ops.arithmetic import negative
from ..ops.broadcasting import broadcast_to
from ..ops.leaves import computed, cotangent_op, from_index_op, let_op, zeros
from ..ops.logic import greater_equal_op, greater_op, less_equal_op, less_op
from ..ops.pointwise import abs_op, maximum_op, minimum_op, relu_op
from ..printing.matrix import latex_printer, text_printer
from ..printing.prose import EQUALS, Paragraph, Part, Words
from ..printing.table import SymbolTable
from .argument import Argument, Given, Resting
from .bounds.prove import BoundProof, bound_proof
from .claims import Claim, Independence, le, lt

_MOST = 12  # nodes that are asked for

Option = tuple[Claim, Tensor]  # an inequality, and what a node is where it holds


@dataclass(frozen=True, eq=False)
class Settled(Resting):
    """A claim, in which nodes are replaced by what inequalities make of them, and the proof of what it then is.

    Each step is a node, the inequality among its options that holds, and why.
    """

    claim: Claim
    given: Given
    steps: tuple[tuple[Tensor, BoundProof], ...]
    rewritten: Claim
    argument: Argument

    @property
    def parts(self) -> tuple[Argument, ...]:
        return *(proof for _, proof in self.steps), self.argument

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return (self.claim, self.given) == (claim, given) and self.argument.proves(self.rewritten, given)

    def check(self) -> bool:
        put = {}
        for node, proof in self.steps:
            found = next((value for fact, value in options(node) if fact == proof.claim), None)
            if found is None or proof.conditions or not proof.proves(proof.claim, self.given):
                return False
            put[node] = found
        return _rewritten(self.claim, put.get) == self.rewritten and super().check()

    def _equalities(self) -> list[tuple[Tensor, Tensor, BoundProof]]:
        put = ((node, dict(options(node))[proof.claim], proof) for node, proof in self.steps)
        return [(node, value, proof) for node, value, proof in put]

    @property
    def _shown(self) -> list[Tensor]:
        pairs = [x for node, value, _ in self._equalities() for x in (node, value)]
        return [*self.claim.sides, *(x for g in self.given.claims for x in g.sides), *self.rewritten.sides, *pairs]

    def text(self) -> str:
        printer = text_printer(self._shown)
        lines = [
            f"{printer.refer(node)} = {printer.refer(value)}, since {proof.claim.written(printer)}:\n{proof.text()}"
            for node, value, proof in self._equalities()
        ]
        left, right = self.rewritten.sides
        if left is right:
            return "\n".join([*lines, f"So both sides are {printer.refer(left)}."])
        return "\n".join([*lines, f"So the claim is {self.rewritten.written(printer)}.", self.argument.text()])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        printer = latex_printer(self._shown, within=within)
        parts: list[Part] = []
        for node, value, proof in self._equalities():
            said: Words = (printer.related(node, EQUALS, value), ", since ", proof.claim.box(printer), ":")
            parts += [Paragraph(said), *proof.told(within)]
        left, right = self.rewritten.sides
        if left is right:
            return *parts, Paragraph(("So both sides are ", printer.box(left), "."))
        so = ("So the claim is ", self.rewritten.box(printer), ".")
        return *parts, Paragraph(so), *self.argument.told(within)


def options(node: Tensor) -> Sequence[Option]:
    """The inequalities that decide a node, and what it then is."""
    if node.op in (relu_op, abs_op):
        x = node.inputs[0]
        below = zeros(*x.shape) if node.op is relu_op else negative(x)
        return (le(0, x), x), (le(x, 0), below)
    if node.op in (maximum_op, minimum_op):
        a, b = node.inputs
        more, less = (b, a) if node.op is maximum_op else (a, b)
        return tuple((fact, broadcast_to(value, node.shape)) for fact, value in ((le(a, b), more), (le(b, a), less)))
    if node.op in (less_op, less_equal_op, greater_op, greater_equal_op):
        a, b = node.inputs if node.op in (less_op, less_equal_op) else node.inputs[::-1]
        strict = node.op in (less_op, greater_op)
        true, false = (from_index_op(formula=value, shape=node.shape) for value in (sympy.true, sympy.false))
        return (lt(a, b) if strict else le(a, b), true), (le(b, a) if strict else lt(b, a), false)
    return ()


def _rewritten(claim: Claim, put: Callable[[Tensor], Tensor | None]) -> Claim:
    """The claim with nodes replaced from their inputs up; ``put`` gets a node on what its inputs have become."""
    new: dict[Tensor, Tensor] = {}
    for x in computed(claim.sides):
        if x.op in (let_op, cotangent_op):
            inside = new[x.inputs[0]]
            new[x] = x if inside is x.inputs[0] else inside
        else:
            again = with_inputs(x, new)
            found = put(again)
            new[x] = again if found is None else found
    left, right = (new[side] for side in claim.sides)
    return Claim(left, claim.relation, right)


def settled(
    claim: Claim, given: Given, budget: Budget, argued: Callable[[Given, Claim], Argument | None]
) -> Settled | None:
    """A proof of a claim after what inequalities decide in it; None where they decide nothing, or not enough.

    ``argued`` proves what the claim becomes. Raises OutOfBudget.
    """
    steps: dict[Tensor, BoundProof] = {}
    asked: set[Tensor] = set()

    def decided(node: Tensor) -> Tensor | None:
        if node in asked or len(asked) >= _MOST:
            return dict(options(node))[steps[node].claim] if node in steps else None
        ways = options(node)
        if ways:
            asked.add(node)
        for fact, value in ways:
            proof = bound_proof(fact, given.claims, budget, given.relations)
            if proof is not None and not proof.conditions:
                steps[node] = proof
                return value
        return None

    new = _rewritten(claim, decided)
    if not steps:
        return None
    argument = argued(given, new)
    return None if argument is None else Settled(claim, given, tuple(steps.items()), new, argument)
