"""Claims about some sizes and tensors that hold since they hold for all: large literal sizes, among others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import sympy

from ..core.naming import new_name
from ..core.node import Tensor, rebuild, topological
from ..core.sizes import same_shape, sizes
from ..errors import SymattnError
from ..ops.domain import domain
from ..ops.index import index_op
from ..ops.layout import merge_axis_op, split_axis_op, transpose_op
from ..ops.leaves import variable
from ..printing.matrix import latex_printer, names_in
from ..printing.prose import Paragraph, Part, listed
from ..printing.table import SymbolTable, checked_table
from .argument import Argument, Given, Resting
from .claims import Claim, Independence
from .definedness import put_back

ENTRYWISE = ("binary", "integer", "positive", "constant")  # properties that every part has as well
_LARGE = 8  # from which on a size is taken as a symbol


@dataclass(frozen=True, eq=False)
class Generalised(Resting):
    """A proof of a claim that says more: for all sizes and tensors in the place of some."""

    argument: Argument
    claim: Claim
    sizes: dict[sympy.Symbol, Any]
    tensors: dict[Tensor, Tensor] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (self.argument,)

    @property
    def for_people(self) -> bool:
        return self.argument.for_people

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        return tuple(rebuild(self.argument.divisors, self.tensors, self.sizes))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        """Whether the claim is what that one says of these sizes and tensors, which nothing given speaks of."""
        brought_in = {s.name for s in self.sizes} | {str(x.name) for x in self.tensors}
        return (
            isinstance(claim, Claim)
            and not brought_in & given.names
            and all(may_stand_for(x, y, self.sizes) and is_finite(y) for x, y in self.tensors.items())
            and Claim(*_put(self.claim, self.tensors, self.sizes)) == claim
            and self.argument.proves(self.claim, given)
        )

    def restated(self, sides: Sequence[Tensor]) -> list[Tensor]:
        return rebuild(self.argument.restated(self.claim.sides), self.tensors, self.sizes)

    @property
    def side_conditions(self) -> tuple[str, ...]:
        sides = _put(self.claim, self.tensors, self.sizes)[::2]
        back = (put_back(said, sides, self.tensors, self.sizes) for said in self.argument.side_conditions)
        return tuple(dict.fromkeys(back))

    def text(self) -> str:
        return f"The claim holds for all {self._meant()}.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        table = checked_table(within)
        sizes = [(table.scalar(s), " in place of ", table.scalar(n)) for s, n in self.sizes.items()]
        printer = latex_printer(list(self.tensors.values()), within=within)
        put = [(printer.box(value),) for x, value in self.tensors.items() if not _are_blocks(x, value)]
        kinds = (("sizes ", sizes), ("tensors in place of ", put))
        said = [(kind, *listed(several, ", ")) for kind, several in kinds if several]
        if not said:
            return self.argument.told(within)
        return Paragraph(("The claim holds for all ", *listed(said, " and "), ".")), *self.argument.told(within)

    def _meant(self) -> str:
        kinds = {"sizes": self.sizes, "tensors": {x.name: value for x, value in self.tensors.items()}}
        return " and ".join(
            f"{kind} {', '.join(f'{x} in place of {value}' for x, value in several.items())}"
            for kind, several in kinds.items()
            if several
        )


def _are_blocks(x: Tensor, value: Tensor) -> bool:
    """Whether a tensor stands for the blocks of one of its name, which need not be said."""
    return value.op is split_axis_op and value.inputs[0].name == x.name


def _put(claim: Claim, tensors: dict[Tensor, Tensor], sizes: dict[sympy.Symbol, Any]) -> tuple[Tensor, str, Tensor]:
    left, right = rebuild(claim.sides, tensors, sizes)
    return left, claim.relation, right


def may_stand_for(x: Tensor, value: Tensor, sizes: Mapping[sympy.Symbol, Any] = MappingProxyType({})) -> bool:
    """Whether a tensor may be one that is named: of its shape, with the properties of its entries."""
    shape = tuple(size.subs(sizes) for size in x.shape)
    return x.op is variable and same_shape(shape, value.shape) and set(x.params["hypotheses"]) <= entrywise(value)


def is_finite(x: Tensor) -> bool:
    """Whether no entry of a tensor is -oo, as none of a named one is."""
    return not (x.holds_minus_infinity or domain(x).lowest)


def entrywise(x: Tensor) -> set[str]:
    """The properties that every entry of a tensor is seen to have: those of the tensor that it is a part of."""
    while x.op in (index_op, transpose_op, split_axis_op, merge_axis_op):
        x = x.inputs[0]
    declared = x.params["hypotheses"] if x.op is variable else ()
    return {h for h in ENTRYWISE if h in declared or h == x.kind}


def any_tensor(name: str, x: Tensor) -> Tensor:
    """A named tensor that may have all values that another one may have."""
    known = entrywise(x)
    return variable(name=name, shape=x.shape, hypotheses=tuple(h for h in ENTRYWISE if h in known))


def generalised(claim: Claim) -> tuple[Claim, dict[sympy.Symbol, sympy.Integer]] | None:
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
        back = {s: n for n, s in new.items()}
        if (left.subs(back), right.subs(back)) != claim.sides or left.shape != right.shape:
            return None
    except SymattnError:  # a literal size that an operation states, which cannot be moved
        return None
    return Claim(left, claim.relation, right), back


def _resized(x: Tensor, new: dict[Any, Any]) -> Tensor:
    return x.op.node(**{**x.params, "shape": tuple(new.get(n, n) for n in x.shape)})
