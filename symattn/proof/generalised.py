"""Claims at large literal sizes: what holds for all sizes in their place holds for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from ..core.naming import new_name
from ..core.node import Tensor, rebuild, topological
from ..core.sizes import sizes
from ..errors import SymattnError
from ..ops.leaves import variable
from ..printing.matrix import names_in
from ..printing.prose import Paragraph, Part, listed
from ..printing.scalars import scalar_box
from ..printing.table import SymbolTable, checked_table
from .argument import Argument, Given, Resting
from .claims import Claim, Independence

_LARGE = 8  # from which on a size is taken as a symbol


@dataclass(frozen=True)
class Generalised(Resting):
    """A proof for all sizes in the place of literal ones."""

    argument: Argument
    literal: dict[sympy.Symbol, int]

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (self.argument,)

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        wider = generalised(claim) if isinstance(claim, Claim) and not given.stated else None
        return wider is not None and self.literal == wider[1] and self.argument.proves(wider[0], given)

    def text(self) -> str:
        return f"The claim holds for all sizes {self._sizes()}.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        table = checked_table(within)
        sizes = ((table.scalar(s), " in place of ", scalar_box(sympy.Integer(n))) for s, n in self.literal.items())
        said = ("The claim holds for all sizes ", *listed(sizes, ", "), ".")
        return Paragraph(said), *self.argument.told(within)

    def _sizes(self) -> str:
        return ", ".join(f"{s} in place of {n}" for s, n in self.literal.items())


def generalised(claim: Claim) -> tuple[Claim, dict[sympy.Symbol, int]] | None:
    """The claim with a symbol for each large literal size, and what the symbols stand for; None if there is none."""
    nodes = topological(claim.sides)
    literal = sorted({int(n) for x in nodes if x.op is variable for n in x.shape if n.is_Integer and n >= _LARGE})
    if not literal:
        return None
    taken = names_in(claim.sides)
    new: dict[Any, Any] = {sympy.Integer(n): sizes(new_name("n", taken)) for n in literal}
    try:
        leaves = {x: _resized(x, new) for x in nodes if not x.inputs and "shape" in x.params}
        left, right = rebuild(claim.sides, leaves)
        back = {s: int(n) for n, s in new.items()}
        if (left.subs(back), right.subs(back)) != claim.sides or left.shape != right.shape:
            return None
    except SymattnError:  # a literal size that an operation states, which cannot be moved
        return None
    return Claim(left, claim.relation, right), back


def _resized(x: Tensor, new: dict[Any, Any]) -> Tensor:
    return x.op.node(**{**x.params, "shape": tuple(new.get(n, n) for n in x.shape)})
