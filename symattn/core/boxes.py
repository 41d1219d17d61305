"""The printed formula: a tree of boxes, plain data.

Records and printers build the tree, ``printing/media`` writes it: LaTeX, MathML, Unicode and NumPy text, and widths are
folds over one tree. Characters are Unicode (``α``, ``⊙``, ``≤``); each medium spells them in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Style = Literal["italic", "upright", "bold", "blackboard", "calligraphic", "sans", "fraktur", "typewriter"]
SignKind = Literal["relation", "sum", "product", "prefix", "punctuation", "large", "opening", "closing", "ordinary"]
_is_tall = attrgetter("tall")


@dataclass(eq=False, slots=True)
class Box:
    """A part of a printed formula."""

    @property
    def kids(self) -> Sequence[Box]:
        """The boxes inside, in the order in which they are read."""
        return ()

    @property
    def tall(self) -> bool:
        """Whether it is higher than a line, so that a fence around it grows."""
        return False


@dataclass(eq=False, slots=True)
class Row(Box):
    """Boxes side by side; writers put the space that their kinds need between them."""

    parts: tuple[Box, ...]
    is_tall: bool = False

    def __post_init__(self) -> None:
        self.is_tall = any(map(_is_tall, self.parts))

    @property
    def kids(self) -> Sequence[Box]:
        return self.parts

    @property
    def tall(self) -> bool:
        return self.is_tall


@dataclass(eq=False, slots=True)
class Name(Box):
    """The letters of a symbol: one letter, or a word."""

    letters: str
    style: Style = "italic"


@dataclass(eq=False, slots=True)
class Number(Box):
    """Digits, as in ``0.5``."""

    digits: str


@dataclass(eq=False, slots=True)
class Sign(Box):
    """An operator or a mark: ``=``, ``⊙``, ``⊤``, ``∑``, ``′′``; its kind says how it stands among its neighbours.

    One that opens or closes is half of a fence that is broken over two lines.
    """

    mark: str
    kind: SignKind = "ordinary"


@dataclass(eq=False, slots=True)
class Function(Box):
    """A function or an operator that is applied to what follows; a name that is a word is upright: ``softmax``."""

    name: Box

    @property
    def kids(self) -> Sequence[Box]:
        return (self.name,)


@dataclass(eq=False, slots=True)
class Fraction(Box):
    above: Box
    below: Box

    @property
    def kids(self) -> Sequence[Box]:
        return self.above, self.below

    @property
    def tall(self) -> bool:
        return True


@dataclass(eq=False, slots=True)
class Root(Box):
    inside: Box
    degree: Box | None = None

    @property
    def kids(self) -> Sequence[Box]:
        return (self.inside,) if self.degree is None else (self.inside, self.degree)

    @property
    def tall(self) -> bool:
        return self.inside.tall


@dataclass(eq=False, slots=True)
class Script(Box):
    """A base with a subscript, a superscript, or both; those of a large sign are its limits."""

    base: Box
    below: Box | None = None
    above: Box | None = None

    @property
    def kids(self) -> Sequence[Box]:
        return self.base, *filter(None, (self.below, self.above))

    @property
    def tall(self) -> bool:
        return self.base.tall or is_large(self.base)


@dataclass(eq=False, slots=True)
class Accent(Box):
    """A base under a mark: ``^``, ``~``, ``‾``, ``˙``, ``¨``, ``→``, ``ˇ``, ``˘``, ``´``, ``ˋ``; ``_`` is below it."""

    base: Box
    mark: str

    @property
    def kids(self) -> Sequence[Box]:
        return (self.base,)

    @property
    def tall(self) -> bool:
        return self.base.tall


@dataclass(eq=False, slots=True)
class Fence(Box):
    """Something between two marks: ``( )``, ``[ ]``, ``{ }``, ``| |``, ``‖ ‖``, ``⌊ ⌋``, ``⟨ ⟩``; "" is no mark."""

    inside: Box
    left: str = "("
    right: str = ")"

    @property
    def kids(self) -> Sequence[Box]:
        return (self.inside,)

    @property
    def tall(self) -> bool:
        return self.inside.tall


@dataclass(eq=False, slots=True)
class Matrix(Box):
    """Cells in rows between two marks; ``cases`` has a brace on the left and its cells at the left."""

    rows: tuple[tuple[Box, ...], ...]
    left: str = "["
    right: str = "]"

    @property
    def kids(self) -> Sequence[Box]:
        return [cell for row in self.rows for cell in row]

    @property
    def tall(self) -> bool:
        return True


@dataclass(eq=False, slots=True)
class Text(Box):
    """Words within a formula."""

    words: str


@dataclass(eq=False, slots=True)
class Differential(Box):
    """The upright d of a gradient in front of what it belongs to."""

    of: Box

    @property
    def kids(self) -> Sequence[Box]:
        return (self.of,)

    @property
    def tall(self) -> bool:
        return self.of.tall


@dataclass(eq=False, slots=True)
class Space(Box):
    """Room between two formulas of one line, in em; a tall one is as high as a fraction."""

    width: float = 1.0
    is_tall: bool = False

    @property
    def tall(self) -> bool:
        return self.is_tall


@dataclass(eq=False, slots=True)
class Code(Box):
    """Source text as it stands, in a formula of the NumPy dialect or where a person gave LaTeX that is not known."""

    source: str


def function(word: str) -> Function:
    """A function by its upright name."""
    return Function(Name(word, "upright"))


def row(*parts: Box) -> Box:
    """Boxes side by side; rows among them are opened, and one alone is itself."""
    flat: list[Box] = []
    for part in parts:
        flat += part.parts if isinstance(part, Row) else (part,)
    return _in_a_row(flat)


def _in_a_row(parts: Sequence[Box]) -> Box:
    return parts[0] if len(parts) == 1 else Row(tuple(parts))


def separated(sign: Sign, boxes: Iterable[Box]) -> Box:
    """Boxes with a sign between them."""
    return row(*(part for n, box in enumerate(boxes) for part in ((sign, box) if n else (box,))))


def commas(boxes: Iterable[Box]) -> Box:
    """Boxes with commas between them."""
    return separated(Sign(",", "punctuation"), boxes)


def subscripts(indices: Sequence[Box]) -> Box:
    """Indices side by side if each is one letter or digit, else between commas."""
    return row(*indices) if all(map(_is_one_sign, indices)) else commas(indices)


def _is_one_sign(index: Box) -> bool:
    match index:
        case Name(written) | Number(written):
            return len(written) == 1
    return False


def applied(head: Box, arguments: Iterable[Box]) -> Box:
    """A function of arguments."""
    return row(head, Fence(commas(arguments)))


def juxtaposed(*factors: Box) -> Box:
    """Factors side by side, with a dot where two numbers would run together."""
    parts: list[Box] = []
    for factor in factors:
        if parts and isinstance(parts[-1], Number) and begins_with_digit(factor):
            parts.append(Sign("⋅", "product"))
        parts += factor.parts if isinstance(factor, Row) else (factor,)
    return _in_a_row(parts)


def begins_with_digit(box: Box) -> bool:
    """Whether the first thing that is written is a number."""
    while isinstance(box, (Row, Script)):
        box = box.parts[0] if isinstance(box, Row) else box.base
    return isinstance(box, Number)


def raised(base: Box, mark: Box) -> Box:
    r"""A base with a superscript, next to one that it has for its head: ``K^{(a)\top}``, ``\mathrm{d}P_{1}^{\top}``."""
    match base:
        case Differential(of=inner):
            return Differential(raised(inner, mark))
        case Script(above=None):
            return Script(base.base, base.below, mark)
        case Script(above=Fence() as head):
            return Script(base.base, base.below, row(head, mark))
        case Script(base=Accent(), above=Box() as first):  # TeX takes braces off what is one letter under a mark
            return Script(base.base, base.below, row(first, mark))
        case Row(parts=(*before, (Fence() | Script(base=Fence(), above=None)) as last)):  # behind an argument
            return Row((*before, raised(last, mark)))
    return Script(base, above=mark)


def power_of(base: Box, exponent: Box) -> Box:
    r"""A power or an inverse; what the d of a gradient belongs to is no power: ``(\mathrm{d}O)^{\odot 2}``."""
    return raised(Fence(base) if isinstance(base, Differential) else base, exponent)


def lowered(base: Box, mark: Box) -> Box:
    r"""A base with a subscript, below the superscript that it has for its head: ``K_{:2}^{(a)}``.

    A name of several parts keeps together: ``(W_{q})_{i j}``, ``\mathrm{d}Q_{i j}``.
    """
    match base:
        case Script(below=None, above=Fence() as head):
            return Script(base.base, mark, head)
        case Differential(of=Name() | Accent()):
            return Differential(Script(base.of, mark))
        case Name() | Accent() | Fence():
            return Script(base, mark)
        case Row(parts=(Function() as head, Fence() as inside)):
            return Row((head, Script(inside, mark)))
    return Script(Fence(base), mark)


def is_large(box: Box) -> bool:
    """Whether scripts of a box are the limits of a large sign."""
    return isinstance(box, Sign) and box.kind == "large"


def rebuilt(box: Box, kids: Sequence[Box]) -> Box:
    """The same box around other boxes, as many as it holds."""
    match box:
        case Row():
            return Row(tuple(kids))
        case Matrix():
            cells = iter(kids)
            return Matrix(tuple(tuple(next(cells) for _ in line) for line in box.rows), box.left, box.right)
        case Script():
            base, *scripts = kids
            below = scripts.pop(0) if box.below is not None else None
            return Script(base, below, scripts[0] if scripts else None)
        case Function() | Fraction() | Root() | Differential():
            return type(box)(*kids)
        case Accent():
            return Accent(kids[0], box.mark)
        case Fence():
            return Fence(kids[0], box.left, box.right)
    return box


def is_labelled(box: Script) -> bool:
    """Whether a script is the label above an arrow, which is as long as that needs."""
    return isinstance(box.base, Sign) and box.base.mark == "⟶" and box.below is None


def boxes_in(root: Box) -> Iterator[Box]:
    """The box and all that is in it, in the order in which they are read, without recursion."""
    pending = [root]
    while pending:
        yield (box := pending.pop())
        pending += box.kids[::-1]


def fold(root: Box, write: Callable[[Any, Sequence[T]], T], known: dict[Box, T] | None = None) -> T:
    """What ``write`` makes of each box and of what it made of those inside, from the leaves up, without recursion.

    A box that stands in several places is written once; ``known`` is what was made of boxes before, and gets the rest.
    """
    made = {} if known is None else known
    if root in made:
        return made[root]
    pending: list[Box] = [root]
    order: list[tuple[Box, Sequence[Box]]] = []
    while pending:
        box = pending.pop()
        if box not in made:
            if kids := box.kids:
                order.append((box, kids))
                pending += kids
            else:
                made[box] = write(box, ())
    for box, kids in reversed(order):
        if box not in made:
            made[box] = write(box, [*map(made.__getitem__, kids)])
    return made[root]
