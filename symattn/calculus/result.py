"""What a gradient call gives back: tensors by variable and by name, with the steps that lead to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

import sympy

from ..core.boxes import Code, Name
from ..core.displayed import Displayed
from ..core.node import Table, Tensor, flatten, unflatten
from ..errors import AbsentError, OperandError, described
from ..graph.names import LONGEST, mentioned_names, tree_size
from ..ops.leaves import as_tensor, cotangent_op
from ..printing import prose
from ..printing.align import TEXT_WIDTH, align, page_of
from ..printing.index import IndexPrinter
from ..printing.matrix import Printer, latex_printer, printer_in, text, text_printer
from ..printing.parts import Rows
from ..printing.table import Spellings
from ..printing.text_block import numpy_block


class Step(NamedTuple):
    """One line of a derivation: a name, what it equals, and why."""

    name: str
    expression: Tensor
    reason: str


class _Place(int):
    """Where a tensor stands in a pickled table."""


def _restored(shape: list[Any], table: Table, side_conditions: tuple[str, ...]) -> Gradient:
    tensors = unflatten(table)

    def back(part: Any) -> Any:
        return tensors[part] if isinstance(part, _Place) else part

    results, named, cotangents = ({back(k): back(v) for k, v in part} for part in shape[:3])
    return Gradient(results, named, tuple(Step(*map(back, row)) for row in shape[3]), cotangents, side_conditions)


@dataclass(frozen=True, eq=False)
class Gradient(Mapping[Any, Tensor], Displayed):
    """The gradients of a gradient call: a mapping from variables and from names (``g[Q]``, ``g["dZ"]``).

    ``steps`` are the lines in the order a person would write them; ``cotangents`` pairs each output with its
    cotangent; ``side_conditions`` is what was assumed.
    """

    results: Mapping[Any, Tensor]
    named: Mapping[str, Tensor]
    steps: tuple[Step, ...]
    cotangents: Mapping[Tensor, Tensor]
    side_conditions: tuple[str, ...]

    def __reduce__(self) -> Any:
        """One flat table for all tensors, so that what the steps share is pickled once."""
        parts = (self.results, self.named, self.cotangents, self.steps)
        roots: list[Tensor] = []

        def placed(part: Any) -> Any:
            if isinstance(part, Tensor):
                roots.append(part)
                return _Place(len(roots) - 1)
            if isinstance(part, Mapping):
                return [(placed(k), placed(v)) for k, v in part.items()]
            return [tuple(map(placed, step)) for step in part] if isinstance(part, tuple) else part

        shape = [placed(part) for part in parts]
        return _restored, (shape, flatten(roots), self.side_conditions)

    @property
    def cotangent(self) -> Tensor:
        """The cotangent of the only output."""
        if len(self.cotangents) != 1:
            raise OperandError("there are several outputs: see .cotangents for the cotangent of each")
        return next(iter(self.cotangents.values()))

    def __getitem__(self, key: Any) -> Tensor:
        if isinstance(key, str):
            if key not in self.named:
                raise AbsentError(f"{described(key)} is none of the steps {', '.join(self.named)}")
            return self.named[key]
        if key not in self:
            raise AbsentError(f"the gradient was not taken with respect to {described(key)}")
        return self.results[as_tensor(key) if isinstance(key, sympy.MatrixSymbol) else key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            return key in self.named
        key = as_tensor(key) if isinstance(key, sympy.MatrixSymbol) else key
        return isinstance(key, (Tensor, sympy.Symbol)) and key in self.results

    def latex(
        self,
        names: Spellings | None = None,
        environment: str = "align",
        style: str = "matrix",
        safe: str = "",
        gradients: str = "d",
        *,
        numbered: str | None = None,
        width: float = TEXT_WIDTH,
        first_index: int = 0,
    ) -> str:
        """The steps with their reasons, and what was named on the way, as a block of LaTeX that fits the page.

        ``names``, ``style``, ``safe``, ``gradients`` and ``first_index`` are those of ``sa.latex``. The ``environment``
        is "align", "align*", "gather*", "aligned" or "equation", which holds one step; ``numbered`` is "none",
        "referenced" or "all"; ``width`` is that of the text, in em. Raises OperandError for an environment that cannot
        hold the steps or their numbers.
        """
        page = page_of(environment, numbered, width, safe)
        (chain,) = self.told(printer_in(style, self._roots, names, gradients, first_index))
        return align(chain.steps, page)

    def told(self, printer: Printer | IndexPrinter | None = None) -> tuple[prose.Chain]:
        """The steps with their reasons, and what was named on the way, by the names of a document or by their own."""
        printer = self.printer(latex=True) if printer is None else printer
        equations = printer.on_the_way(step.expression for step in self.lines())
        rows = Rows(printer, [step.expression for step in self.lines()])
        lines = [*((*step, False, "") for step in self.steps), *((*step, True, "") for step in self.definitions)]
        return (prose.Chain((*rows.of(lines), *equations)),)

    def __str__(self) -> str:
        printer = self.printer(latex=False)
        rows = []
        for s in self.lines():
            readable = tree_size(s.expression) <= LONGEST
            shown = printer.box(s.expression) if readable else Code(text(s.expression))
            rows.append(prose.Step(Name(s.name), shown, prose.sentence(s.reason)))
        if not rows:
            given = self.cotangents.items()
            return "\n".join(f"the gradient by {y.brief()} is {c.brief()}, as given" for y, c in given)
        return "\n".join(numpy_block(rows, column=60, ragged=True))

    __repr__ = __str__

    @cached_property
    def definitions(self) -> tuple[Step, ...]:
        """What the names stand for that the steps mention and that no user gave."""
        by = [self.named[step.name].inputs[1] for step in self.steps]
        mentioned = mentioned_names([*(step.expression for step in self.steps), *by])
        return tuple(Step(str(x.name), x.inputs[0], "where") for x in mentioned if x.op is not cotangent_op)

    def lines(self) -> tuple[Step, ...]:
        """The steps, then what was named on the way."""
        return (*self.steps, *self.definitions)

    def printer(self, latex: bool) -> Printer:
        """One printer for all steps, so that names agree among them."""
        return latex_printer(self._roots) if latex else text_printer([step.expression for step in self.lines()])

    @property
    def _roots(self) -> list[Tensor]:
        """What is printed: the gradients, which know what they are by, and what else has a name."""
        return [*(self.named[step.name] for step in self.steps), *(line.expression for line in self.definitions)]

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex(environment='aligned', width=inf)}$"
