"""Where a claim makes sense: what it divides by, and what it takes roots, logarithms and inverses of.

What the operations of a claim ask of their inputs, and what is not seen to hold anyway, is a side condition of the
claim, whatever the way in which it is proved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import sympy

from ..core.budget import Budget, OutOfBudget
from ..core.node import Tensor
from ..core.sizes import divisibility, inequality
from ..graph.names import LONGEST, tree_size
from ..ops.domain import domain
from ..ops.leaves import computed, definition
from .bounds.prove import bound_proof
from .claims import Claim, le, lt


def conditions(sides: Iterable[Tensor], given: Sequence[Claim] = ()) -> tuple[str, ...]:
    """What must hold of the tensors for the sides of a claim to have values, in the order of the graph.

    What follows from the bounds of a tensor, under what is given, is left out.
    """
    nodes = list(computed(sides))
    used = list(dict.fromkeys(size for node in nodes for size in node.shape))
    whole = [size for size in used if not divisibility([size])]
    fitting = [size - 1 for size in whole]  # axes have at least one entry
    asked: dict[tuple[Tensor, str], None] = {}
    for node in nodes:
        own = domain(node)
        fitting += own.inside
        asked |= dict.fromkeys((node if c.of is None else c.of, c.says) for c in own.conditions)
    time = Budget(SECONDS)
    kept = (says.format(_text(of)) for of, says in asked if not holds_anyway(of, says, given, time))
    return tuple(dict.fromkeys([*divisibility(used), *filter(None, map(inequality, fitting)), *kept]))


_COMPARED: dict[str, Callable[[Tensor, sympy.Expr], tuple[Claim, ...]]] = {
    "!=": lambda x, end: (lt(end, x), lt(x, end)),
    ">": lambda x, end: (lt(end, x),),
    ">=": lambda x, end: (le(end, x),),
    "<": lambda x, end: (lt(x, end),),
    "<=": lambda x, end: (le(x, end),),
}
_COMPARISON = re.compile(r"\{\} (\S+) (-?\d+)")
SECONDS = 1.0  # for the bounds of all tensors of a claim, of which each may take a third of what is left


def holds_anyway(x: Tensor, says: str, given: Sequence[Claim], time: Budget) -> bool:
    """Whether a condition on the entries of a tensor, where ``{}`` stands for it, follows from their bounds alone."""
    try:
        own, compared = time.part(1 / 3), _COMPARISON.fullmatch(says)
        asked = _COMPARED[compared[1]](x, sympy.Integer(compared[2])) if compared else ()
        proofs = (bound_proof(claim, given, own) for claim in asked)
        return any(proof is not None and not proof.assumptions for proof in proofs)
    except OutOfBudget:
        return False


def _text(x: Tensor) -> str:
    shown = definition(x)
    return str(x.name or (shown if tree_size(shown) <= LONGEST // 8 else x.brief()))
