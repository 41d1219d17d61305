"""The syntax tree of a formula: what stands where, before anything is known of names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from ...core.boxes import Style
from .text import Span


@dataclass(eq=False, slots=True, frozen=True)
class Tree:
    """A part of a formula, and its place."""

    span: Span


@dataclass(eq=False, slots=True, frozen=True)
class Number(Tree):
    digits: str
    bold: bool = False


@dataclass(eq=False, slots=True, frozen=True)
class Symbol(Tree):
    """A letter, or an upright word."""

    letters: str
    style: Style = "italic"
    accents: str = ""


@dataclass(eq=False, slots=True, frozen=True)
class Mark(Tree):
    """A sign that stands for itself: ``⊤``, ``∗``, ``∞``, ``…``."""

    sign: str


@dataclass(eq=False, slots=True, frozen=True)
class Scripted(Tree):
    """A base with a subscript, a superscript, and primes."""

    base: Tree
    below: Tree | None = None
    above: Tree | None = None
    primes: str = ""


@dataclass(eq=False, slots=True, frozen=True)
class Total(Tree):
    """Terms with their signs, ``+`` or ``−``."""

    terms: tuple[tuple[str, Tree], ...]


@dataclass(eq=False, slots=True, frozen=True)
class Product(Tree):
    """Factors, and the sign in front of each but the first, which is "" where they stand side by side."""

    factors: tuple[Tree, ...]
    signs: tuple[str, ...]


@dataclass(eq=False, slots=True, frozen=True)
class Infix(Tree):
    """Two operands of a sign such as ``⊙``, ``/``, ``∧``."""

    sign: str
    left: Tree
    right: Tree


@dataclass(eq=False, slots=True, frozen=True)
class Prefix(Tree):
    """An operand behind a sign: ``¬x``, and ``⊙2`` in a superscript."""

    sign: str
    operand: Tree


@dataclass(eq=False, slots=True, frozen=True)
class Apply(Tree):
    """A function, perhaps with scripts, of arguments."""

    head: Tree
    arguments: tuple[Tree, ...]


@dataclass(eq=False, slots=True, frozen=True)
class Fraction(Tree):
    above: Tree
    below: Tree


@dataclass(eq=False, slots=True, frozen=True)
class Root(Tree):
    inside: Tree
    degree: Tree | None = None


@dataclass(eq=False, slots=True, frozen=True)
class Fence(Tree):
    """Items between two marks; ``separators`` has a mark for each gap."""

    left: str
    right: str
    items: tuple[Tree, ...]
    separators: str = ""


@dataclass(eq=False, slots=True, frozen=True)
class Large(Tree):
    """A sum, a product, or an extreme over limits, and what it extends over."""

    sign: str
    below: Tree | None
    above: Tree | None
    body: Tree


@dataclass(eq=False, slots=True, frozen=True)
class Calculus(Tree):
    """What scalars alone have: ``∫``, ``lim``, ``d`` of a derivative, ``binom``, ``!``.

    ``variable`` is bound, but for a derivative; ``limits`` are both ends, the place with its side, the order, or what
    stands below in a binomial.
    """

    kind: str
    variable: Tree | None
    limits: tuple[Tree, ...]
    body: Tree


@dataclass(eq=False, slots=True, frozen=True)
class Grid(Tree):
    """Cells in rows: of a matrix, or of ``cases``."""

    environment: str
    rows: tuple[tuple[Tree, ...], ...]


@dataclass(eq=False, slots=True, frozen=True)
class Relation(Tree):
    """Sides with the signs between them: ``a = b = c``."""

    sides: tuple[Tree, ...]
    signs: tuple[str, ...]


@dataclass(eq=False, slots=True, frozen=True)
class Items(Tree):
    """What commas separate in a script."""

    items: tuple[Tree, ...]


@dataclass(eq=False, slots=True, frozen=True)
class Slice(Tree):
    """A part of an axis, from a start to a stop by a step."""

    parts: tuple[Tree | None, ...]


def parts_of(tree: Tree) -> Iterator[Tree]:
    """A tree and all that is in it."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += inside(part)


def inside(tree: Tree) -> list[Tree]:
    """The trees of which a tree is made."""
    found: list[Tree] = []
    waiting: list[object] = [getattr(tree, field.name) for field in fields(tree) if field.name != "span"]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif isinstance(part, Tree):
            found.append(part)
    return found[::-1]


def is_turn(tree: Tree | None) -> bool:
    """Whether a superscript is that of a transpose."""
    return (isinstance(tree, Mark) and tree.sign == "⊤") or (isinstance(tree, Symbol) and tree.letters == "T")


_MOMENTS = {"E": "expectation", "V": "variance", "Var": "variance", "var": "variance", "Cov": "covariance",
            "cov": "covariance"}  # fmt: skip


def moment_of(head: Tree) -> str:
    r"""Which moment a head stands for; "" for none: an E in italics is a name, ``\mathbb{E}`` an expectation."""
    if not isinstance(head, Symbol) or (len(head.letters) == 1 and head.style not in ("blackboard", "upright")):
        return ""
    return _MOMENTS.get(head.letters, "")
