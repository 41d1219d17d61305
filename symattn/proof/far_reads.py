"""Claims that read a tensor at far literal places, and nothing else of it: what is read is a tensor of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sympy

from ..core.naming import new_name
from ..core.node import Tensor, rebuild, topological
from ..errors import SymattnError
from ..ops.index import edges, index_op, items_read
from ..ops.leaves import variable
from ..printing.matrix import latex_printer, names_in
from ..printing.prose import Paragraph, Part, listed
from ..printing.table import SymbolTable
from .argument import Argument, Given, Resting
from .claims import Claim, Independence
from .generalised import ENTRYWISE

_FAR = 10_000  # from which on no array is as long in a trial
_DIGITS = 30  # of a place that still stands in a name

Reads = dict[Tensor, Tensor]  # from a tensor of its own to what it stands for


class Near(NamedTuple):
    """A claim of tensors of their own, what these stand for, and the least sizes that what is read asks for."""

    claim: Claim
    reads: Reads
    sizes: dict[sympy.Symbol, int]


@dataclass(frozen=True)
class Apart(Resting):
    """A proof in which tensors of their own stand for what is read at places that differ."""

    argument: Argument
    reads: Reads

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (self.argument,)

    @property
    def divisors(self) -> tuple[Tensor, ...]:
        return tuple(rebuild(self.argument.divisors, self.reads))

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        near = apart(claim) if isinstance(claim, Claim) and not given.stated else None
        return near is not None and self.reads == near.reads and self.argument.proves(near.claim, given)

    def text(self) -> str:
        return f"The places that are read differ; let {self._names()}.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        """The same, with what is read in the place of the tensors of their own."""
        printer = latex_printer(list(self.reads.values()), within=within)
        read = {own: printer.box(part) for own, part in self.reads.items()}
        own = SymbolTable.spelled({x: str(x.name) for x in read}, read)
        several = listed([(box,) for box in read.values()], ", ", " and ")
        said = ("The places that are read differ, so that ", *several, " take any values.")
        return Paragraph(said), *self.argument.told(own if within is None else own.over(within))

    def _names(self) -> str:
        return ", ".join(f"{own.name} = {read}" for own, read in self.reads.items())


def apart(claim: Claim | Independence) -> Near | None:
    """The claim with a tensor of its own for each part of a tensor that is read at far places; None if there is none.

    Nothing else may be read of such a tensor, its parts may not overlap, and the sizes of the axes in which it is read
    at numbers may not occur elsewhere: then all values of the parts are those of a tensor that is large enough.
    """
    if not isinstance(claim, Claim):
        return None
    nodes = topological(claim.sides)
    parts: dict[Tensor, list[Tensor]] = {}
    for node in nodes:
        if node.op is index_op and node.inputs[0].op is variable:
            parts.setdefault(node.inputs[0], []).append(node)
    far = {x: read for x, read in parts.items() if any(map(_is_far, read))}
    if not far or not all(set(x.params["hypotheses"]) <= set(ENTRYWISE) and _are_disjoint(far[x]) for x in far):
        return None
    taken = names_in(claim.sides)
    own = {
        part: variable(name=new_name(_wanted(x, part), taken), shape=part.shape, hypotheses=x.params["hypotheses"])
        for x, read in far.items()
        for part in read
    }
    try:
        left, right = rebuild(claim.sides, own)
    except SymattnError:
        return None
    kept = topological([left, right])
    left_over = {s for node in kept for s in node.own_symbols}
    places = [pair for part in own for pair in _at_numbers(part)]
    asked = [(size, along.stop) for size, along in places if not size.is_Integer]  # how large it has to be
    if set(far) & set(kept) or not all(size.is_Symbol and size not in left_over for size, _ in asked):
        return None
    sizes = {size: max(n for s, n in asked if s == size) for size, _ in asked}
    return Near(Claim(left, claim.relation, right), {new: part for part, new in own.items()}, sizes)


def _axes(part: Tensor) -> list[tuple[sympy.Expr, range | None]]:
    """The sizes of the axes that a part reads, and the places along each, as far as they are numbers."""
    found: list[tuple[sympy.Expr, range | None]] = []
    for item, size in items_read(part.inputs[0], part.params["items"]):
        numbers = all(n.is_Integer for n in (*edges(item), *(item[3:] if item[0] == "slice" else ())))
        ends = sorted(map(int, edges(item))) if numbers else []
        found.append((size, range(ends[0], ends[-1] + 1) if ends else None))
    return found


def _at_numbers(part: Tensor) -> list[tuple[sympy.Expr, range]]:
    return [(size, places) for size, places in _axes(part) if places is not None]


def _is_far(part: Tensor) -> bool:
    return any(places.stop > _FAR for _, places in _at_numbers(part))


def _are_disjoint(read: Sequence[Tensor]) -> bool:
    """Whether each two of the parts have an axis along which they lie behind each other."""
    turned = [[places for _, places in _axes(part)[::-1]] for part in read]  # axes are counted from the end
    return all(
        any(p and q and (p.stop <= q.start or q.stop <= p.start) for p, q in zip(a, b, strict=False))
        for a, b in itertools.combinations(turned, 2)
    )


def _wanted(x: Tensor, part: Tensor) -> str:
    starts = [places.start for _, places in _at_numbers(part)]
    return "_".join([str(x.name), *map(str, starts)]) if max(starts) < 10**_DIGITS else f"{x.name}_far"
