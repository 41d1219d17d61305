"""What signs mean that a page uses, in a sentence each: only those that occur are said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from ..core.boxes import Box, Function, Name, Sign
from ..printing.media.read_latex import box_of_latex
from ..printing.prose import (
    Chain,
    Display,
    Fold,
    Items,
    Paragraph,
    Part,
    Statement,
    Table,
    Words,
)

_SIGNS = {
    "⊙": r"$\odot$ multiplies entry by entry",
    "⊘": r"$\oslash$ divides entry by entry",
    "softmax": "softmax acts on each row",
    "logsumexp": r"$\operatorname{logsumexp}$ is the logarithm of the sum of the exponentials",
    "rowlogsumexp": r"$\operatorname{rowlogsumexp}$ is the logarithm of the sum of the exponentials, of each row",
    "diag": r"$\operatorname{diag}(x)$ has $x$ on its diagonal and zeros elsewhere",
    "𝟏": r"$\mathbf{1}$ is a column of ones",
    "cumsum": r"$\operatorname{cumsum}$ adds up what stands before, and itself",
    "tril": r"$\operatorname{tril}$ keeps what is on and below the diagonal",
    "rowmax": r"$\operatorname{rowmax}(A)$ has the largest entry of each row",
    "rowmean": r"$\operatorname{rowmean}(A)$ has the mean of each row",
    "rsqrt": r"$\operatorname{rsqrt}(x)$ is $1 / \sqrt{x}$",
    "tr": r"$\operatorname{tr}$ is the trace",
    "sg": r"$\operatorname{sg}$ is the identity, with no gradient",
}


def conventions(boxes: Iterable[Box], more: Words = ()) -> Words:
    """The sentences on the signs of some formulas, in one, and ``more`` before them."""
    used = {sign for box in boxes for sign in _signs(box)}
    said = [more] * bool(more) + [words for sign, words in _sentences().items() if sign in used]
    joined = [piece for words in said for piece in ("; ", *words)][1:]
    return (*joined, ".") if said else ()


@cache
def _sentences() -> dict[str, Words]:
    return {sign: _read(sentence) for sign, sentence in _SIGNS.items()}


def _read(sentence: str) -> Words:
    pieces = sentence.split("$")
    return tuple(box_of_latex(piece) if k % 2 else piece for k, piece in enumerate(pieces) if piece)


def _signs(root: Box) -> Iterator[str]:
    pending = [root]
    while pending:
        box = pending.pop()
        pending += box.kids
        if isinstance(box, Sign):
            yield box.mark
        elif isinstance(box, Function) and isinstance(box.name, Name):
            yield box.name.letters
        elif isinstance(box, Name) and (box.letters, box.style) == ("1", "bold"):
            yield "𝟏"


def boxes_of(parts: Iterable[Part]) -> Iterator[Box]:
    """The formulas of parts, but for those in sentences."""
    for part in parts:
        match part:
            case Display():
                yield from part.formulas
            case Chain():
                for step in part.steps:
                    yield from (box for box in (step.left, step.right) if box is not None)
            case Statement():
                yield from part.formulas
                yield from boxes_of(part.parts)
            case Fold():
                yield from boxes_of(part.parts)
            case Table():
                yield from (piece for row in part.rows for cell in row for piece in cell if isinstance(piece, Box))
            case Paragraph() | Items():
                pass
