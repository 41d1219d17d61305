r"""Slices that take a named tensor apart, under its letter with numbers: ``[P_1 P_2] := P`` defines them, once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import sympy

from ..core.boxes import Box, Matrix, Number
from ..core.node import Tensor, topological
from ..core.sizes import same_size
from ..ops.index import Item, index_op, reads_all
from ..ops.leaves import definition, let_op
from ..ops.notation import Binding
from .gradients import subscripted
from .index import IndexPrinter
from .matrix import Printer
from .prose import DEFINED, Step, listed


class Parts(NamedTuple):
    """A tensor and the slices that take it apart along an axis, in order; what is named inside it may differ."""

    whole: Tensor
    axis: int
    slices: Sequence[Sequence[Tensor]]

    def boxes(self, whole: Box) -> list[Box]:
        """The parts under the letter of the whole with numbers."""
        return [subscripted(whole, Number(str(number))) for number, _ in enumerate(self.slices, 1)]


class Rows:
    """Makes rows of lines, and before the first that has parts of a tensor a row that defines them."""

    def __init__(self, printer: Printer | IndexPrinter, expressions: Sequence[Tensor]) -> None:
        self.printer = printer
        table = printer.table
        found = [(parts, table.box(printer.names[parts.whole])) for parts in _taken_apart(expressions, printer.names)]
        self.taken_apart = [parts for parts, whole in found if not any(map(table.is_name, parts.boxes(whole)))]
        self._waiting = self.taken_apart[:] if isinstance(printer, Printer) else []

    def of(self, lines: Iterable[tuple[str, Tensor, str, bool, str]]) -> Iterator[Step]:
        """The rows of lines ``(name, expression, reason, whether it is a definition, label)``."""
        for name, x, reason, defines, label in lines:
            shown = {*topological([x], stop=self.printer.names)} if self._waiting else set()
            for parts in [each for each in self._waiting if any(not shown.isdisjoint(x) for x in each.slices)]:
                self._waiting.remove(parts)
                yield self._definition(parts)
            made = self.printer.row(name, x, reason)
            made = replace(made, label=label) if label else made
            yield made.defined() if defines else made

    def _definition(self, parts: Parts) -> Step:
        """The row that defines the parts, which are written by their names from then on."""
        assert isinstance(self.printer, Printer)
        whole = self.printer.symbol(parts.whole)
        boxes = parts.boxes(whole)
        for alike, box in zip(parts.slices, boxes, strict=True):
            self.printer.known |= dict.fromkeys(alike, (box, Binding.ATOM))
        side_by_side = parts.axis == -1 and parts.whole.rank == 2
        joined = Matrix((tuple(boxes),) if side_by_side else tuple((box,) for box in boxes))
        *most, last = ((self.printer.scalar(x.shape[parts.axis]),) for x, *_ in parts.slices)
        what = "entries" if parts.whole.rank == 1 else "columns" if parts.axis == -1 else "rows"
        return Step(joined, whole, ("parts of ", *listed(most, ", "), " and ", *last, f" {what}"), DEFINED)


def _taken_apart(expressions: Sequence[Tensor], names: Mapping[Tensor, str]) -> list[Parts]:
    """Named tensors of which slices that fill an axis occur in expressions; no expression is such a slice itself."""
    found: dict[tuple[str, int], dict[Item, list[Tensor]]] = {}
    for x in topological(expressions, stop=names):
        if x.op is index_op and x not in names and (cut := _cut(x)) is not None and _can_be_named(x.inputs[0], names):
            found.setdefault((names[x.inputs[0]], cut[0]), {}).setdefault(cut[1], []).append(x)
    parts = []
    for (_, axis), slices in found.items():
        whole = next(iter(slices.values()))[0].inputs[0]
        ordered = _in_order(slices, whole.shape[axis])
        taken = {x for alike in ordered for x in alike}
        if len(ordered) > 1 and not any(definition(x) in taken for x in expressions):
            parts.append(Parts(whole, axis, ordered))
    once = [names[whole] for whole, _, _ in parts]
    return [each for each in parts if once.count(names[each.whole]) == 1]


def _cut(x: Tensor) -> tuple[int, Item] | None:
    """The only axis along which a slice of a vector or a matrix takes a piece."""
    base, items = x.inputs[0], x.params["items"]  # axes in front of them are kept as they are
    if base.rank > 2 or any(item[0] != "slice" for item in items):
        return None
    read = zip(items, base.shape[base.rank - len(items) :], strict=True)
    cut = [(axis, item) for axis, (item, size) in enumerate(read, -len(items)) if not reads_all(item, size)]
    return cut[0] if len(cut) == 1 and cut[0][1][2] == 1 else None


def _can_be_named(x: Tensor, names: Mapping[Tensor, str]) -> bool:
    """Whether the tensor is named, without a subscript, and its letter with a number is free."""
    name = names.get(x, "_")
    return x.op is let_op and "_" not in name and not any(other.startswith(f"{name}_") for other in names.values())


def _in_order(slices: Mapping[Item, Sequence[Tensor]], size: sympy.Expr) -> list[Sequence[Tensor]]:
    """The slices one behind the other; none where they do not fill the axis, or overlap."""
    at, ordered, rest = sympy.S.Zero, list[Sequence[Tensor]](), dict(slices)
    while (item := next((item for item in rest if same_size(item[1], at)), None)) is not None:
        at = at + item[3]
        ordered.append(rest.pop(item))
    return ordered if not rest and same_size(at, size) else []
