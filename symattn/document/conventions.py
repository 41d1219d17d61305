"""What signs mean that a page uses, in a sentence each: only those that occur are said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import pairwise, starmap

from ..core.boxes import Box, Function, Name, Row, Script, Sign, fold, rebuilt
from ..core.naming import free_letters
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
    sentence_of,
)
from .prose import every

_FRESH = {True: "ABMCDEFGHNRSUWXYZ", False: "xyzuvwabc"}  # by whether they are large
_SIGNS = {
    "⊙": r"$\odot$ multiplies entry by entry",
    "⊘": r"$\oslash$ divides entry by entry",
    "softmax": "softmax acts on each row",
    "logsumexp": r"$\operatorname{logsumexp}$ is the logarithm of the sum of the exponentials",
    "rowlogsumexp": r"$\operatorname{rowlogsumexp}$ is the logarithm of the sum of the exponentials, of each row",
    "diag": r"$\operatorname{diag}(x)$ has $x$ on its diagonal and zeros elsewhere",
    "𝟏": r"$\mathbf{1}$ is a column of ones",
    "𝟏𝟏ᵀ": r"$A \mathbf{1} \mathbf{1}^{\top}$ has the sum of each row of $A$ in every place of that row",
    "cumsum": r"$\operatorname{cumsum}$ adds up what stands before, and itself",
    "tril": r"$\operatorname{tril}$ keeps what is on and below the diagonal",
    "rowmax": r"$\operatorname{rowmax}(A)$ has the largest entry of each row",
    "colmax": r"$\operatorname{colmax}(A)$ has the largest entry of each column",
    "colmin": r"$\operatorname{colmin}(A)$ has the smallest entry of each column",
    "colmean": r"$\operatorname{colmean}(A)$ has the mean of each column",
    "rowmean": r"$\operatorname{rowmean}(A)$ has the mean of each row",
    "rsqrt": r"$\operatorname{rsqrt}(x)$ is $1 / \sqrt{x}$",
    "σ": r"$\sigma(x)$ is $1 / (1 + \mathrm{e}^{-x})$",
    "relu": r"$\operatorname{relu}(x)$ is $x$ where that is positive, else 0",
    "gelu": r"$\operatorname{gelu}(x)$ is $x$ times the probability that a standard normal number is below it",
    "maximum": r"$\operatorname{maximum}(A, B)$ has the larger of two entries in each place",
    "where": r"$\operatorname{where}(M, A, B)$ has the entries of $A$ where $M$ is 1, and else those of $B$",
    "scatter_add": r"$\operatorname{scatter\_add}$ adds rows, or columns, to the places that its index names",
    "tr": r"$\operatorname{tr}$ is the trace",
    "sg": r"$\operatorname{sg}$ is the identity, with no gradient",
}


def conventions(
    boxes: Iterable[Box], more: Words = (), own: Set[str] = frozenset(), taken: Set[str] = frozenset()
) -> Words:
    """The sentences on the signs of some formulas, in one, and ``more`` before them.

    ``own`` are other functions of these letters, and ``taken`` are letters that stand for something else.
    """
    used = {sign for box in boxes for sign in _signs(box)} - own
    said = [more] * bool(more) + [_apart(words, taken) for sign, words in _sentences().items() if sign in used]
    joined = [piece for words in said for piece in ("; ", *words)][1:]
    return sentence_of((*joined, ".")) if said else ()


def _apart(words: Words, taken: Set[str]) -> Words:
    """A sentence whose letters stand for nothing else."""
    boxes = (x for word in words if isinstance(word, Box) for x in every(word))
    letters = {x.letters for x in boxes if isinstance(x, Name) and _is_letter(x)}
    fresh = {case: free_letters(_FRESH[case], {*taken, *letters}) for case in _FRESH}
    others = {letter: Name(next(fresh[letter.isupper()])) for letter in sorted(letters) if letter in taken}

    def written(box: Box, inside: Sequence[Box]) -> Box:
        other = others.get(box.letters) if isinstance(box, Name) and _is_letter(box) else None
        return other or (rebuilt(box, inside) if inside else box)

    return tuple(word if isinstance(word, str) else fold(word, written) for word in words)


def _is_letter(name: Name) -> bool:
    return name.style == "italic" and name.letters in ("A", "B", "M", "x")


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
        elif _is_ones(box):
            yield "𝟏"
        elif isinstance(box, Row) and any(starmap(_repeats, pairwise(box.parts))):
            yield "𝟏𝟏ᵀ"


def _repeats(first: Box, second: Box) -> bool:
    """Whether two factors put a number of each row into all of its places."""
    ones = first.base if isinstance(first, Script) and first.above is None else first
    return _is_ones(ones) and isinstance(second, Script) and second.above is not None and _is_ones(second.base)


def _is_ones(box: Box) -> bool:
    return isinstance(box, Name) and (box.letters, box.style) == ("1", "bold")


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
                yield from boxes_of((*part.where, *part.parts))
            case Fold():
                yield from boxes_of(part.parts)
            case Table():
                yield from (piece for row in part.rows for cell in row for piece in cell if isinstance(piece, Box))
            case Paragraph() | Items():
                pass
