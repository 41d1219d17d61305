"""Claims in which steps are made: the first output is that of one step, the last state all outputs end with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...core.node import Tensor, topological, with_inputs
from ...errors import SymattnError
from ...ops.index import index, index_op
from ...ops.leaves import computed
from ...printing.matrix import latex_printer
from ...printing.prose import Chain, Paragraph, Part, Step
from ...printing.table import SymbolTable
from ...recurrence.body import loop_of
from ...recurrence.record import scan_op
from ...recurrence.scans import states_and_outputs
from ...recurrence.unrolled import unrolled
from ..argument import Argument, Given, Resting
from ..claims import RELATIONS, Claim, Independence

_MOST_STEPS = 4  # of a recurrence that is written out


@dataclass(frozen=True, eq=False)
class Made(Resting):
    """A proof of a claim in which steps are made, ``ends`` of outputs or all of few."""

    argument: Argument
    claim: Claim
    way: str

    @property
    def parts(self) -> tuple[Argument, ...]:
        return (self.argument,)

    @property
    def for_people(self) -> bool:
        return True

    def proves(self, claim: Claim | Independence, given: Given) -> bool:
        return (
            isinstance(claim, Claim)
            and self.way in WAYS
            and made(claim, self.way) == self.claim
            and self.argument.proves(self.claim, given)
        )

    def restated(self, sides: Sequence[Tensor]) -> list[Tensor]:
        return self.argument.restated([WAYS[self.way](x) for x in sides])

    def text(self) -> str:
        return f"{_SAID[self.way]}, so that the claim becomes {self.claim}.\n{self.argument.text()}"

    def told(self, within: SymbolTable | None = None) -> tuple[Part, ...]:
        printer = latex_printer(self.claim.sides, within=within)
        left, right = map(printer.box, self.claim.sides)
        becomes = Chain((Step(left, right, relation=RELATIONS[self.claim.relation]),))
        return Paragraph((f"{_SAID[self.way]}, so that the claim becomes",)), becomes, *self.argument.told(within)


def with_steps_made(
    claim: Claim, given: Given, argued: Callable[[Given, Claim], Argument | None]
) -> Iterator[Argument]:
    """Proofs of a claim by what it becomes where steps are made."""
    for way in WAYS:
        then = made(claim, way)
        if then is not None and then != claim and (found := argued(given, then)) is not None:
            yield Made(found, then, way)


def made(claim: Claim, way: str) -> Claim | None:
    """The claim with steps made; None where that cannot be written."""
    try:
        left, right = map(WAYS[way], claim.sides)
    except SymattnError:
        return None
    return Claim(left, claim.relation, right)


def _ends(x: Tensor) -> Tensor:
    """With the last output by a state, where it is one, and the first by one step from the start."""
    new: dict[Tensor, Tensor] = {}
    for node in topological([x]):
        new[node] = _end(with_inputs(node, new))
    return new[x]


def _end(x: Tensor) -> Tensor:
    if x.op is not index_op or x.inputs[0].op is not scan_op or x.inputs[0].params["take"][0] != "output":
        return x
    (outputs,), items = x.inputs, x.params["items"]
    loop, k = loop_of(outputs), outputs.params["take"][1]
    if len(items) < outputs.rank or items[0][0] != "at":
        return x
    step, end = loop.step, None
    if items[0][1] == loop.length - 1 and step.outputs[k] in step.after:
        end = states_and_outputs(outputs)[0][step.after.index(step.outputs[k])]
    elif items[0][1] == 0:
        leaves = [*loop.first, *(y[0] for y in loop.sequences), *loop.given]
        end = outputs.params["body"].run(leaves)[1][k]
    return x if end is None else index(end, items[1:])


def _all_steps(x: Tensor) -> Tensor:
    """With all recurrences written out, where each has few steps."""
    lengths = [loop_of(node).length for node in computed([x]) if node.op is scan_op]
    return unrolled(x) if all(n.is_Integer and n <= _MOST_STEPS for n in lengths) else x


WAYS: dict[str, Callable[[Tensor], Tensor]] = {"ends": _ends, "all": _all_steps}
_SAID = {
    "ends": "The last of all states is the last state, and the first output is that of one step",
    "all": "All steps are written out",
}
