"""Rewriting: both sides of an equality brought to one form, each distinct part once, by rules that a person reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field

from ...core.budget import Budget
from ...core.node import Tensor, with_inputs
from ...errors import SymattnError
from ...ops.leaves import cotangent_op, let_op, operands
from ..rules import PHASES, RULES, Rule, rules_for

_MOST_LEMMAS = 5_000  # where multiplying out gets there, no person reads the proof


class TooLong(Exception):
    """The number of lemmas is beyond what a proof may have."""


@dataclass(frozen=True)
class Lemma:
    """One step, used wherever its left side occurs: ``before = after`` by one rule, in the pass of one phase."""

    number: int
    rule: Rule
    before: Tensor
    after: Tensor
    phase: int

    @property
    def nonzero(self) -> tuple[Tensor, ...]:
        """The tensors that must have no entry 0 for the step to hold."""
        return self.rule.nonzero(self.before)

    def holds(self) -> bool:
        """Whether the rule, applied again, gives this step."""
        return self.rule in RULES and self.rule.apply(self.before) is self.after

    def __str__(self) -> str:
        return f"({self.number}) {self.before} = {self.after}  [{self.rule.name}]"


@dataclass
class Memo:
    """What one phase has found so far: the form of each node, and the lemmas in order."""

    forms: dict[Tensor, Tensor] = field(default_factory=dict)
    lemmas: list[Lemma] = field(default_factory=list)


@dataclass(frozen=True)
class Rewriting:
    """Both sides rewritten to one form.

    The right side uses the lemmas of the left side too, where they share parts; each lemma is listed once.
    """

    left: Tensor
    right: Tensor
    left_lemmas: tuple[Lemma, ...]
    right_lemmas: tuple[Lemma, ...]
    common: Tensor
    phase: int

    @property
    def lemmas(self) -> tuple[Lemma, ...]:
        """All lemmas, in the order of their numbers."""
        return tuple(sorted((*self.left_lemmas, *self.right_lemmas), key=lambda lemma: lemma.number))

    def check(self) -> bool:
        """Apply the lemmas again, without search: whether each follows from its rule and both sides end in one form."""
        if not all(lemma.holds() for lemma in self.lemmas):
            return False
        sides = [self.left, self.right]
        for phase in PHASES[: PHASES.index(self.phase) + 1]:
            steps = {lemma.before: lemma.after for lemma in self.lemmas if lemma.phase == phase}
            sides = [_replayed(side, steps) for side in sides]
        return sides == [self.common, self.common]


def rewrite(left: Tensor, right: Tensor, budget: Budget) -> Rewriting | None:
    """Both sides in one form, by the first phase that reaches one; None where none does.

    Raises OutOfBudget when the time is over.
    """
    forms = [left, right]
    lemmas: list[list[Lemma]] = [[], []]
    for phase in PHASES:
        memo = Memo()
        for side in (0, 1):
            try:
                form, new = normalise(forms[side], phase, budget=budget, memo=memo, first=sum(map(len, lemmas)) + 1)
            except TooLong:
                return None
            forms[side] = form
            lemmas[side] += new
        if forms[0] is forms[1]:
            return Rewriting(left, right, tuple(lemmas[0]), tuple(lemmas[1]), forms[0], phase)
    return None


def normalise(
    x: Tensor, phase: int, *, budget: Budget, memo: Memo | None = None, first: int = 1
) -> tuple[Tensor, list[Lemma]]:
    """The form that the rules up to a phase give, and the new lemmas, numbered from ``first``.

    Inputs come before users, and each distinct node is rewritten once, wherever it occurs; what ``memo`` has found
    is used. A named intermediate is what it stands for. Raises OutOfBudget when the time is over, and TooLong where
    multiplying out takes too many steps.
    """
    known = Memo() if memo is None else memo
    start = len(known.lemmas)
    rules = rules_for(phase)

    def step(node: Tensor) -> Tensor:
        for rule in rules.get(node.op, rules[None]):
            after = _applied(rule, node)
            if after is not None and after is not node:
                budget.check()
                if phase > 1 and len(known.lemmas) >= _MOST_LEMMAS:
                    raise TooLong
                number = first + len(known.lemmas) - start
                known.lemmas.append(Lemma(number, rule, node, after, phase))
                return after
        return node

    form = _from_inputs_up(x, known.forms, step)
    return form, known.lemmas[start:]


def _applied(rule: Rule, node: Tensor) -> Tensor | None:
    try:
        return rule.apply(node)
    except SymattnError:  # the right side is no tensor, for example one with -oo where it is not allowed
        return None


def _from_inputs_up(x: Tensor, forms: MutableMapping[Tensor, Tensor], step: Callable[[Tensor], Tensor]) -> Tensor:
    """The form of x: inputs first, then steps at the node until none applies.

    A node under work that is met again, because rules undo each other, stays as it is: each step is an equality, so
    that any form will do.
    """
    becomes: dict[Tensor, Tensor] = {}  # a node that has been rewritten, and to what
    stack = [x]
    while stack:
        node = stack[-1]
        if node in forms:
            stack.pop()
        elif node in becomes:
            target = becomes[node]
            if target in forms:
                forms[node] = forms[target]
            elif target in becomes:
                forms[target] = target
            else:
                stack.append(target)
        else:
            missing = [i for i in operands(node) if i not in forms]
            for i in missing:
                if i in becomes:  # what it became holds the node itself: the node stays as it is
                    forms[i] = i
            stack += missing[::-1]
            if not missing:
                new = _with_inputs(node, forms)
                new = step(node) if new is node else new
                if new is node:
                    forms[node] = node
                else:
                    becomes[node] = new
    return forms[x]


def _with_inputs(node: Tensor, forms: Mapping[Tensor, Tensor]) -> Tensor:
    if node.op in (let_op, cotangent_op):
        return forms[node.inputs[0]]
    return with_inputs(node, forms)


def _replayed(x: Tensor, steps: Mapping[Tensor, Tensor]) -> Tensor:
    return _from_inputs_up(x, {}, lambda node: steps.get(node, node))
