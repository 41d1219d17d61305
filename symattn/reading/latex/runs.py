r"""Lists with dots, ``H_1, \ldots, H_h``: what all items have in common, and the index that runs through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .text import Span
from .tree import Fence, Large, Mark, Number, Relation, Symbol, Tree

LETTER = "⋯"  # the index of a list with dots


@dataclass(frozen=True)
class Run:
    """An item with an index in the place of what differs, and the first and the last value of the index."""

    item: Tree
    first: int
    last: Tree


def run_of(items: Sequence[Tree]) -> Run | None:
    """What a list with dots says, or None where it does not say it."""
    items = [x.items[0] if isinstance(x, Fence) and x.left == "{}" else x for x in items]
    dots = [n for n, item in enumerate(items) if is_dots(item)]
    if len(dots) != 1 or dots[0] == 0 or dots[0] != len(items) - 2:
        return None
    found: list[tuple[Tree, Tree]] = []
    general = _joined(items[0], items[-1], found)
    if general is None or not found or any(not _alike(pair, found[0]) for pair in found[1:]):
        return None
    first, last = found[0]
    if not isinstance(first, Number) or not first.digits.isdecimal():
        return None
    for n, item in enumerate(items[1 : dots[0]], int(first.digits) + 1):
        between: list[tuple[Tree, Tree]] = []
        if _joined(items[0], item, between) is None or not all(
            isinstance(b, Number) and b.digits == str(n) and _same(a, first) for a, b in between
        ):
            return None
        if len(between) != len(found):
            return None
    return Run(general, int(first.digits), last)


def reduced_run(span: Span, sign: str, items: Sequence[Tree]) -> Large | None:
    r"""``x_1 + \dots + x_n`` as a sum with limits, and ``x_1 \cdots x_n`` as a product."""
    run = run_of(items)
    if run is None or (key_is(run.item, LETTER) and len(items) < 4):  # 1 + ... + x^n may be of powers
        return None
    letter, first = Symbol(span, LETTER), Number(span, str(run.first))
    return Large(span, sign, Relation(span, (letter, first), ("=",)), run.last, run.item)


def key_is(tree: Tree, letter: str) -> bool:
    """Whether a tree is no more than a letter."""
    return isinstance(tree, Symbol) and tree.letters == letter


def is_dots(tree: Tree) -> bool:
    return isinstance(tree, Mark) and tree.sign == "…"


def _joined(a: Any, b: Any, found: list[tuple[Tree, Tree]]) -> Any:
    """Both trees with the index where they differ; None where they differ in more than a place."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            return None
        parts = tuple(_joined(x, y, found) for x, y in zip(a, b, strict=True))
        return None if any(part is None for part in parts) else parts
    if not isinstance(a, Tree) or not isinstance(b, Tree):
        return a if a == b else None
    if isinstance(a, Number) and not (isinstance(b, Number) and a.digits == b.digits):
        found.append((a, b))
        return Symbol(a.span, LETTER)
    if type(a) is not type(b):
        return None
    changed = {}
    for field in fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if field.name == "span" or (x is None and y is None):
            continue
        changed[field.name] = _joined(x, y, found)
        if changed[field.name] is None:
            return None
    return replace(a, **changed)


def _alike(a: tuple[Tree, Tree], b: tuple[Tree, Tree]) -> bool:
    return _same(a[0], b[0]) and _same(a[1], b[1])


def _same(a: Tree, b: Tree) -> bool:
    """Whether two trees are one but for their places."""
    found: list[tuple[Tree, Tree]] = []
    return _joined(a, b, found) is not None and not found
