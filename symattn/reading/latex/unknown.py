"""Why a name is not known: what it may be meant as, where that is not just a name that nobody declared."""

from __future__ import annotations

from dataclasses import replace

from ...core.node import Tensor
from .names import Names, items_of, key_of
from .parser import INDICES
from .tree import Scripted, Symbol, Tree, moment_of

_UNREAD = frozenset({"argmax", "argmin", "det", "rank"})


def why_unknown(names: Names, tree: Tree) -> str:
    """What is wrong with a name, other than that it is not declared; "" for nothing else."""
    base = tree.base if isinstance(tree, Scripted) else tree
    if not isinstance(base, Symbol):
        return ""
    if base.letters in _UNREAD:
        return f"{base.letters} is not read: there is no operation for it"
    if moment_of(base):
        return r"what a moment is of stands in brackets, and its law in the text: write \mathbb{E}[x_i^2]"
    if tree is base and base.style == "blackboard" and names.find(replace(base, style="italic")) is not None:
        return f"the blackboard {base.letters} is another name than {base.letters}, and is not declared"
    return _no_index(names, tree)


def _no_index(names: Names, tree: Tree) -> str:
    """That an index of an entry is the name of a tensor, where it may have been meant as an index."""
    if not isinstance(tree, Scripted) or tree.below is None or names.find(tree.base) is None:
        return ""
    for item in items_of(tree.below):
        entry = names.find(item)
        if key_of(item) in INDICES and entry is not None and isinstance(entry.value, Tensor):
            return f"{key_of(item)} is the tensor {entry.value.brief()}: take another index"
    return ""
