r"""Boxes as LaTeX, of which only amsmath and amssymb are needed: ``\operatorname{softmax}(Q K^{\top})``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

from ...core.boxes import (
    Accent,
    Box,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    Space,
    Text,
    fold,
)
from .neighbours import edge, is_apart, link
from .spelling import ACCENTS, FONTS, FUNCTIONS, LEFT, LETTERS, MATRICES, RIGHT, SPACES, SPELLED

_SPECIAL = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "^": r"\^{}", "~": r"\~{}"}


def latex(box: Box) -> str:
    """The formula as LaTeX."""
    return fold(box, _write)


def plain_text(words: str) -> str:
    """Words as LaTeX text, with nothing left that LaTeX would read as a command."""
    return "".join(_SPECIAL.get(c, "\\" + c if c in "#$%&_" else c) for c in words)


@singledispatch
def _write(box: Box, parts: Sequence[str]) -> str:
    raise TypeError(f"no LaTeX for {type(box).__name__}")


@_write.register
def _(box: Row, parts: Sequence[str]) -> str:
    written = parts[0] if parts else ""
    for left, right, part in zip(box.parts, box.parts[1:], parts[1:], strict=False):
        written += _between(left, right) + part
    return written


def _between(left: Box, right: Box) -> str:
    if isinstance(left, Sign) and left.kind == "prefix":
        return " " if SPELLED[left.mark][-1].isalpha() else ""
    if isinstance(right, Sign) and right.kind == "punctuation":
        return ""
    if isinstance(left, Sign) and left.kind == "punctuation":
        return " "
    if isinstance(left, Code) or isinstance(right, Code) or _is_mark(left) or _is_mark(right):
        return ""
    if link(left, right) == "apply" and isinstance(edge(right, 0), Fence):
        return ""
    return r" \, " if link(left, right) and is_apart(left, right) else " "


def _is_mark(box: Box) -> bool:
    return isinstance(box, Sign) and box.kind == "ordinary" and not SPELLED.get(box.mark, "\\").startswith("\\")


@_write.register
def _(box: Name, parts: Sequence[str]) -> str:
    letters = "".join(LETTERS.get(c, c) for c in box.letters)
    if box.style == "italic":
        return letters
    return letters if letters.startswith("\\") and box.style == "upright" else f"{FONTS[box.style]}{{{letters}}}"


@_write.register
def _(box: Number, parts: Sequence[str]) -> str:
    return box.digits


@_write.register
def _(box: Sign, parts: Sequence[str]) -> str:
    return SPELLED[box.mark] if box.mark in SPELLED else "".join(map(SPELLED.__getitem__, box.mark))  # several primes


@_write.register
def _(box: Function, parts: Sequence[str]) -> str:
    if not (isinstance(box.name, Name) and box.name.style == "upright"):
        return parts[0]
    word = box.name.letters
    return f"\\{word}" if word in FUNCTIONS else rf"\operatorname{{{word.replace('_', chr(92) + '_')}}}"


@_write.register
def _(box: Fraction, parts: Sequence[str]) -> str:
    return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"


@_write.register
def _(box: Root, parts: Sequence[str]) -> str:
    degree = f"[{parts[1]}]" if box.degree is not None else ""
    return rf"\sqrt{degree}{{{parts[0]}}}"


@_write.register
def _(box: Script, parts: Sequence[str]) -> str:
    base, *scripts = parts
    if _needs_braces(box):
        base = f"{{{base}}}"
    if box.below is not None:
        base += f"_{{{scripts.pop(0)}}}"
    if box.above is None:
        return base
    primes = box.above.mark if isinstance(box.above, Sign) else ""
    return base + ("'" * len(primes) if primes and set(primes) == {"′"} else f"^{{{scripts[0]}}}")


def _needs_braces(box: Script) -> bool:
    """Whether a script would be read as one of a part of its base."""
    base = box.base
    if isinstance(base, Script):
        same_side = (base.above and box.above) or (base.below and box.below)
        return bool(same_side) or isinstance(base.above, Sign)
    return isinstance(base, (Row, Differential))


@_write.register
def _(box: Accent, parts: Sequence[str]) -> str:
    return f"{ACCENTS[box.mark]}{{{parts[0]}}}"


@_write.register
def _(box: Fence, parts: Sequence[str]) -> str:
    left, right = LEFT.get(box.left, "."), RIGHT.get(box.right, ".")
    if box.tall or "." in (left, right):
        return rf"\left{left} {parts[0]} \right{right}"
    return f"{left}{' ' * left[-1].isalpha()}{parts[0]}{' ' * right[-1].isalpha()}{right}"


@_write.register
def _(box: Matrix, parts: Sequence[str]) -> str:
    kind = MATRICES[box.left, box.right]
    full_size = (kind == "cases" and cell.tall for cell in box.kids)  # cases are set as within a line
    cells = (r"\displaystyle " * full + part for full, part in zip(full_size, parts, strict=True))
    rows = r" \\ ".join(" & ".join(next(cells) for _ in row) for row in box.rows)
    return rf"\begin{{{kind}}} {rows} \end{{{kind}}}"


@_write.register
def _(box: Text, parts: Sequence[str]) -> str:
    return rf"\text{{{plain_text(box.words)}}}"


@_write.register
def _(box: Differential, parts: Sequence[str]) -> str:
    return rf"\mathrm{{d}}{parts[0]}"


@_write.register
def _(box: Space, parts: Sequence[str]) -> str:
    return SPACES[box.width]


@_write.register
def _(box: Code, parts: Sequence[str]) -> str:
    return box.source
