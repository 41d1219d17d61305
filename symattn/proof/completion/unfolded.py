"""Claims in which a tensor is replaced, on one side, by what permutations make of it, since they leave it as it is.

A bias with ``Pi M Pi^T = M`` is that product inside a softmax, where no product is written that a rule would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...core.budget import Budget
from ...core.node import Tensor, rebuild, topological
from ...core.sizes import same_size
from ...ops.contraction import matmul
from ...ops.layout import matrix_transpose
from ...ops.leaves import variable
from ...printing.matrix import latex_printer, text_printer
from ...printing.prose import EQUALS, Paragraph, Part
from ...printing.table import SymbolTable
from ..argument import Argument, Given, Resting
from ..claims import Claim, Independence
from .consequences import Reading, completed, consequence
from .rules import ContradictionError
from .words import says

_MOST = 4  # tensors that are replaced, each on either side


@dataclass(frozen=True, eq=False)
class Unfolded(Resting):
    """A claim, with a tensor on one side replaced by what it is equal to: why that is, and the proof of the rest."""

    claim: Claim
    given: Given
    side: int
    tensor: Tensor
    value: Tensor
    why: Argument
    argument: Argument

    @property
    def parts(self) -> tuple[Argument, ...]:
        return self.why, self.argument

    @property
    def rewritten(self) -> Claim:
        return _unfolded(self.claim, self.side, self.tensor, self.value)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return (
            (self.claim, self.given) == (claim, given)
            and self.side in (0, 1)
            and self.why.proves(Claim(self.tensor, "=", self.value), given)
            and self.argument.proves(self.rewritten, given)
        )

    @property
    def _shown(self) -> list[Tensor]:
        given = [x for g in self.given.claims for x in g.sides]
        return [*self.claim.sides, *given, self.tensor, self.value, *self.rewritten.sides]

    def text(self) -> str:
        printer = text_printer(self._shown)
        put = Claim(self.tensor, "=", self.value).written(printer)
        so = f"Put in on the {('left', 'right')[self.side]}, it makes the claim {self.rewritten.written(printer)}."
        return "\n".join([f"What is given says {put}.", self.why.text(), so, self.argument.text()])

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        printer = latex_printer(self._shown, within=within)
        put = ("What is given says ", printer.related(self.tensor, EQUALS, self.value), ".")
        side = ("left", "right")[self.side]
        so = (f"Put in on the {side}, it makes the claim ", self.rewritten.box(printer), ".")
        return Paragraph(put), *self.why.told(within), Paragraph(so), *self.argument.told(within)


def _unfolded(claim: Claim, side: int, tensor: Tensor, value: Tensor) -> Claim:
    sides = list(claim.sides)
    sides[side] = rebuild([sides[side]], {tensor: value})[0]
    return Claim(sides[0], claim.relation, sides[1])


def unfolded(
    claim: Claim, given: Given, budget: Budget, argued: Callable[[Given, Claim], Argument | None]
) -> Unfolded | None:
    """A proof of a claim with a tensor replaced, on one side, by what permutations that keep it make of it.

    ``argued`` proves what the claim becomes. Raises OutOfBudget.
    """
    for tensor, value in _kept(claim, given, budget):
        equal = Claim(tensor, "=", value)
        why = argued(given, equal) or consequence(equal, given, budget, argued)
        for side in (0, 1) if why is not None else ():
            new = _unfolded(claim, side, tensor, value)
            argument = argued(given, new) if new != claim else None
            if why is not None and argument is not None:
                return Unfolded(claim, given, side, tensor, value, why, argument)
    return None


def _kept(claim: Claim, given: Given, budget: Budget) -> list[tuple[Tensor, Tensor]]:
    """Tensors of which something is given, each with what permutations make of it that is the same."""
    used = topological(claim.sides)
    stated = topological([x for g in given.claims if g.relation == "=" for x in g.sides])
    turns = [x for x in used if says(x, "permutation")]
    candidates = [
        (x, value)
        for x in stated
        if x.op is variable and x in used and x not in turns and x.rank in (1, 2)
        for turn in turns
        for value in _images(x, turn)
    ]
    if not candidates:
        return []
    asked = [x for pair in candidates for x in pair]
    try:
        sides = [x for g in given.claims for x in g.sides]
        found = completed(given.claims, Reading([*asked, *sides], budget=budget), budget)
    except ContradictionError:
        return []
    words = Reading(asked, found.rules, sorted(k for k, _ in found.leads), budget).words
    return [(x, value) for x, value in candidates if words[x] is not None and words[x] == words[value]][:_MOST]


def _images(x: Tensor, turn: Tensor) -> Iterator[Tensor]:
    """What a permutation makes of a tensor, by its rows, by its columns, or by both."""
    back = matrix_transpose(turn)
    rows = same_size(x.shape[0], turn.shape[0])
    columns = x.rank == 2 and same_size(x.shape[1], turn.shape[0])
    for first, last in ((turn, back), (back, turn)):
        if rows and columns:
            yield matmul(matmul(first, x), last)
        if rows:
            yield matmul(first, x)
        if columns:
            yield matmul(x, last)
