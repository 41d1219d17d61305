"""What a formula whose shapes do not fit may have been meant to be, in its own LaTeX, from what a document declares.

There is no tensor yet that could be edited. An edit is of the text: another projection with the same letter, a
transpose more or less, factors the other way round. The first with which the formula is read is offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, product

import sympy

from ..core.node import Tensor
from ..errors import SymattnError
from ..ops.leaves import tensor
from ..reading.latex.read import read_each
from ..reading.latex.text import FormulaText
from ..reading.latex.tree import Product, Relation, Scripted, Tree, is_turn, parts_of
from .known import Known

MOST = 40  # edits that are tried of one formula
LONGEST = 400  # characters of a formula that is edited


def edits(text: str, tree: Tree, known: Known) -> Iterator[str]:
    """The formula with one name, transpose or order changed, the likelier ones first."""
    right = tree.sides[1:] if isinstance(tree, Relation) else (tree,)
    names = [found for side in right for found in known.tensors_in(side)]
    told = {key for _, key, _ in names}
    others = [key for key in known.spelled if key not in told]
    for fresh in (True, False):
        if not fresh:
            yield from _turned(text, right, names)
            yield from _swapped(text, right)
        for name, key, x in names:
            for other in others:
                if (other not in known.used) is fresh and _is_sibling(key, other, x, known):
                    yield _put(text, name, known.spelled[other])
    if isinstance(tree, Relation) and len(tree.sides) == 2:
        yield _put(text, tree.sides[1], rf"({text[slice(*tree.sides[1].span)]})^\top")


def projected(text: str, known: Known) -> Iterator[str]:
    """An equation with a projection that nothing uses in place of one with the same letter."""
    for tree in _trees(text, known):
        for side in tree.sides[1:] if isinstance(tree, Relation) else (tree,):
            for name, key, x in known.tensors_in(side):
                for other in known.spelled:
                    if other != key and other not in known.used and _is_sibling(key, other, x, known):
                        yield _put(text, name, known.spelled[other])


def _is_sibling(key: str, other: str, x: Tensor, known: Known) -> bool:
    """Whether two names have one letter with other scripts, as projections do, and as many axes."""
    entry = known.names.entries.get(other)
    value = None if entry is None else entry.value
    return key[0] == other[0] and len(other) > 1 and isinstance(value, Tensor) and value.rank == x.rank


def _turned(text: str, right: tuple[Tree, ...], names: list[tuple[Tree, str, Tensor]]) -> Iterator[str]:
    turned = [x for side in right for x in parts_of(side) if isinstance(x, Scripted) and is_turn(x.above)]
    for part in turned:
        yield _put(text, part, text[slice(*part.base.span)])
    inside = {id(x) for part in turned for x in parts_of(part)}
    for name, _, x in names:
        if x.rank > 1 and id(name) not in inside:
            shown = text[slice(*name.span)]
            yield _put(text, name, rf"({shown})^\top" if "^" in shown else rf"{shown}^\top")


def _swapped(text: str, right: tuple[Tree, ...]) -> Iterator[str]:
    for side in right:
        for part in parts_of(side):
            for left, other in zip(part.factors, part.factors[1:], strict=False) if isinstance(part, Product) else ():
                a, b, c, d = *left.span, *other.span
                yield text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _put(text: str, part: Tree, other: str) -> str:
    start, end = part.span
    return f"{text[:start]}{other}{text[end:]}"


def respelled(text: str, known: Known) -> str:
    """The first edit that is read, or two sizes that would have to be one; or ""."""
    tree = next(iter(_trees(text, known)), None)
    if tree is None or len(text) > LONGEST:
        return ""
    for edit in islice(edits(text, tree, known), MOST):
        if edit != text and _is_read(edit, known.branch()):
            return " ".join(edit.split())
    return next((said for said, other in _other_sizes(tree, known) if _is_read(text, other)), "")


def _other_sizes(tree: Tree, known: Known) -> Iterator[tuple[str, Known]]:
    """Two sizes with one letter that would have to be one, ``d_q = d_k``, and another width of one name."""
    names = list(known.tensors_in(tree))
    sizes = sorted({s for _, _, x in names for size in x.shape for s in size.free_symbols}, key=str)
    for a, b in islice(combinations(sizes, 2), MOST):
        if str(a)[0] == str(b)[0]:
            other = known.branch()
            other.equate(a, b)
            yield f"{sympy.latex(a)} = {sympy.latex(b)}, which would have to be said", other
    for name, key, x in names:
        for axis, size in product(range(x.rank), sizes):
            if known.is_free(x) and x.shape[axis] != size and key in known.spelled:
                shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
                other = known.branch()
                other.forget(key)
                other.names.declare(name, tensor(str(x.name), *shape))
                yield rf"{known.spelled[key]} \in \mathbb{{R}}^{{{_times(shape)}}}", other


def _times(shape: Sequence[sympy.Expr]) -> str:
    return r" \times ".join(map(sympy.latex, shape))


def _trees(text: str, known: Known) -> list[Tree]:
    try:
        return [read.tree for read in read_each(FormulaText(text), known.branch().names) if read.tree is not None]
    except (SymattnError, RecursionError):
        return []


def _is_read(text: str, known: Known) -> bool:
    try:
        return all(read.problem is None for read in read_each(FormulaText(text), known.names))
    except (SymattnError, RecursionError):
        return False
