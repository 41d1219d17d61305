"""Where a claim makes sense: what it divides by, and what it takes roots, logarithms and inverses of.

What the operations of a claim ask of their inputs, and what is not seen to hold anyway, is a side condition of the
claim, whatever the way in which it is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..budget import Budget, OutOfBudget
from ..latex import LONGEST, latex_printer, tex_text, tree_size
from ..naming import latex_name
from ..ops.domain import domain
from ..ops.leaves import computed, definition
from ..sizes import divisibility, inequality
from ..stated import Stated, in_latex
from ..tensor import Tensor
from .bounds import bound_proof
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
    kept = (stated(of, says) for of, says in asked if not holds_anyway(of, says, given, time))
    return tuple(dict.fromkeys([*divisibility(used), *filter(None, map(inequality, fitting)), *kept]))


_ASKED: dict[str, Callable[[Tensor], tuple[Claim, ...]]] = {
    "{} != 0": lambda x: (lt(0, x), lt(x, 0)),
    "{} > 0": lambda x: (lt(0, x),),
    "{} >= 0": lambda x: (le(0, x),),
}
SECONDS = 1.0  # for the bounds of all tensors of a claim, of which each may take a third of what is left


def holds_anyway(x: Tensor, says: str, given: Sequence[Claim], time: Budget) -> bool:
    """Whether a condition on the entries of a tensor, where ``{}`` stands for it, follows from their bounds alone."""
    try:
        own = time.part(1 / 3)
        proofs = (bound_proof(claim, given, own) for claim in (_ASKED[says](x) if says in _ASKED else ()))
        return any(proof is not None and not proof.assumptions for proof in proofs)
    except OutOfBudget:
        return False


def stated(x: Tensor, says: str) -> Stated:
    """A condition on the entries of a tensor, which is written by its name, or written out where it is short."""
    return Stated(says.format(_text(x)), partial(_latex, x, says))


def _text(x: Tensor) -> str:
    return str(x.name or (definition(x) if _is_short(x) else x.brief()))


def _latex(x: Tensor, says: str) -> str:
    """The condition in LaTeX."""
    if not x.name and not _is_short(x):
        return in_latex(says, rf"\texttt{{{tex_text(x.brief())}}}")
    return in_latex(says, latex_name(x.name) if x.name else latex_printer([x]).write(definition(x)))


def _is_short(x: Tensor) -> bool:
    return tree_size(definition(x)) <= LONGEST // 8
