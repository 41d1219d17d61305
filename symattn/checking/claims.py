"""What a claim of a document comes to, by what the document has said: proved, refuted, an assumption, or open."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from ..calculus.gradient import gradient
from ..core.node import Tensor, rebuild, topological
from ..ops.leaves import definition, let_op
from ..printing.matrix import latex_printer
from ..proof.claims import Claim
from ..proof.engine import prove
from ..proof.verdict import Proved, Refuted, Unknown, Verdict
from ..reading.latex.answers import Definition
from .findings import WRONG, Status
from .known import Known

_CONDITIONS = frozenset(
    "as assume assumes assuming for given if let provided require requires required such suppose supposing unless "
    "when whenever where with".split()
)
_DENIED = re.compile(
    r"\b(not|never|wrong(ly)?|incorrect(ly)?|mistake\w*|instead of|rather than|false|unlike|erroneous\w*|"
    r"counterexample|cannot|fails?|no longer|n't)\b|n't\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Judged:
    """What a claim came to, in words, with formulas that may have been meant."""

    status: Status
    message: str = ""
    suggestions: tuple[str, ...] = ()
    verdict: Any = None


def is_supposed(before: str) -> bool:
    """Whether the words in front of a formula have it say when something holds: the last two decide."""
    return any(word.strip(",:;(").lower() in _CONDITIONS for word in before.split()[-2:])


def is_denied(before: str, after: str) -> bool:
    """Whether the sentence around a formula may say that it does not hold."""
    return _DENIED.search(before) is not None or _DENIED.search(after) is not None


def asked(claim: Claim, known: Known, budget: float) -> Verdict:
    """The verdict on a claim by what is known."""
    return prove(known.claim(claim), given=known.given, budget=budget)


def judged(verdict: Verdict) -> Judged:
    """What is said of a verdict."""
    if isinstance(verdict, Proved):
        conditions = verdict.proof.side_conditions
        return Judged("proved", f"where {', '.join(conditions)}" if conditions else "", verdict=verdict)
    if isinstance(verdict, Refuted):
        return Judged("refuted", str(verdict.counterexample), verdict=verdict)
    assert isinstance(verdict, Unknown)
    trials = 0 if verdict.agreement is None else verdict.agreement.trials
    numbers = f"; it holds at {trials} points that were tried" if trials else ""
    return Judged("unknown", f"{verdict.reason}{numbers}", verdict=verdict)


def is_property(claim: Claim, known: Known) -> bool:
    r"""Whether a claim that does not hold in general may be what is asked of declared tensors, as ``W^\top W = I`` is.

    It is, where nothing in it has a value by an equation, and one side is a bare name, or lacks a tensor of the other.
    """
    sides = [known.resolved(side) for side in claim.sides]
    if any(node.op is let_op for node in topological(sides)):
        return False
    left, right = (set(side.tensors) for side in sides)
    return left != right or any(known.is_free(side) for side in sides) or claim.relation != "="


# --- gradients ---


def gradient_of(defined: Definition, known: Known) -> str:
    """The key of the name whose derivative a definition is of; "" for any other definition."""
    key = defined.name[1:] if defined.name.startswith("d") else ""
    entry = known.names.entries.get(key) or next((e for e in known.names.entries.values() if e.name == key), None)
    is_tensor = entry is not None and isinstance(entry.value, Tensor) and isinstance(defined.value, Tensor)
    is_whole = not defined.indices or len(set(defined.indices)) == getattr(defined.value, "rank", -1)
    if not is_tensor or entry is None or defined.parameters or not is_whole:
        return ""
    return next(k for k, e in known.names.entries.items() if e is entry)


@dataclass(frozen=True)
class Derived:
    """The derivative that follows from what is defined, and the formula for it that the document gives."""

    right: Tensor
    told: Tensor


def derived(key: str, defined: Definition, known: Known) -> Derived | str:
    """The derivative by a name that belongs to the cotangents of a formula; or why there is none."""
    target = known.resolved(known.names.entries[key].value)
    told = known.resolved(defined.value)
    told = told.inputs[0] if told.op is let_op else told
    outputs: dict[Tensor, Tensor] = {}
    for leaf in told.tensors:
        name = str(leaf.name)
        of = next((e for e in known.names.entries.values() if name == f"d{e.name}"), None)
        if of is not None and isinstance(of.value, Tensor):
            outputs[known.resolved(of.value)] = leaf
    outputs.pop(target, None)
    if not outputs:
        return "it has no derivative of an output on its right side, whose formula would decide it"
    within = {x: set(topological([x])) for x in outputs}
    inner = {x for x in outputs if any(x in nodes for y, nodes in within.items() if y is not x)}
    roots = {x: leaf for x, leaf in outputs.items() if x not in inner}
    if not any(target in within[x] for x in roots):
        names = ", ".join(sorted(str(x.name) for x in roots))
        return f"{names} is not a function of {target.name or key} in what is defined here"
    g = gradient(roots, [target, *inner])
    if inner:
        told = _replaced(told, {outputs[x]: g[x] for x in inner})
    return Derived(g[target], told)


def _replaced(x: Tensor, values: dict[Tensor, Tensor]) -> Tensor:
    return rebuild([x], values)[0]


def judged_gradient(name: str, found: Derived, budget: float) -> Judged:
    """Whether the document's derivative is the one that follows."""
    told, right = found.told.shape, found.right.shape
    if len(told) == len(right) and told != right:
        sizes = ["×".join(map(str, shape)) for shape in (told, right)]
        result = Judged("shape", f"this is {sizes[0]}, and the derivative by {name} that follows is {sizes[1]}")
        says = result.message
    else:
        result = judged(prove(found.told, found.right, budget=budget))
        says = f"it is not the derivative by {name} that follows\n{result.message}"
    if result.status == "proved":
        return replace(result, message=f"the derivative by {name}")
    if result.status not in WRONG:
        return result
    printer = latex_printer([found.right])
    shown = printer.written(printer.box(definition(found.right)))
    return replace(result, message=says, suggestions=(rf"\mathrm{{d}}{name} = {shown}",))
