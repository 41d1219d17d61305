"""MathML Core, which browsers draw by themselves and screen readers read aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
    is_labelled,
)
from .alphabets import in_font, letters_of
from .neighbours import MINUS, is_apart, link, met
from .spelling import CAPITALS

_LINKS = {"times": "<mo>\u2062</mo>", "apply": "<mo>\u2061</mo>", "": ""}
_THIN = '<mspace width="0.17em"/>'
_MARKS = frozenset("/!?.|‖:@…⋯⋮⋱′%#&$_")  # ordinary signs that are no values
_FORMS = {
    "relation": {"form": "infix"},
    "sum": {"form": "infix"},
    "product": {"form": "infix"},
    "prefix": {"form": "prefix"},
    "large": {"form": "prefix", "movablelimits": "true"},
    "punctuation": {"lspace": "0em", "rspace": "0.17em"},
    "opening": {"form": "prefix", "fence": "true"},
    "closing": {"form": "postfix", "fence": "true"},
    "ordinary": {"lspace": "0em", "rspace": "0em"},
}
_ACCENTS = {"^": "ˆ", "~": "˜", "‾": "¯", "→": "\u20d7"}
_WIDE_ACCENTS = {"^": "\u0302", "~": "~", "‾": "\u0332"}  # which mathematical fonts stretch
_BESIDE = frozenset("∫∬∮")  # large signs whose limits stand beside them, as in TeX
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def mathml(box: Box, display: bool = True) -> str:
    """One ``<math>`` element; in display the limits of a large sign stand above and below it."""
    return _tag("math", fold(box, _element), display="block" if display else "inline")


def _element(box: Box, inside: Sequence[str]) -> str:
    return _WRITERS[type(box)](box, inside)


def _tag(name: str, inside: str, **attributes: str) -> str:
    given = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{given}>{inside}</{name}>"


def _token(name: str, text: str, **attributes: str) -> str:
    legal = "".join(c if c >= " " and (c.isprintable() or c.isspace()) else "\ufffd" for c in text)
    return _tag(name, legal.translate(_ESCAPED), **attributes)


def _row(box: Row, inside: Sequence[str]) -> str:
    written = [*inside[:1]]
    for before, after, element in zip(box.parts, box.parts[1:], inside[1:], strict=False):
        edges = met(before, after)
        linked = link(*edges)
        written += [_LINKS[linked], _THIN if linked and is_apart(*edges) else "", element]
    return _tag("mrow", "".join(written))


def _name(box: Name, inside: Sequence[str]) -> str:
    if len(box.letters) != 1:
        return _token("mi", in_font(box.letters, box.style))
    if box.style == "italic" and box.letters not in CAPITALS:  # as a browser sets one letter
        return _token("mi", box.letters)
    return _token("mi", box.letters if box.style == "italic" else in_font(box.letters, box.style), mathvariant="normal")


def _number(box: Number, inside: Sequence[str]) -> str:
    return _token("mn", box.digits)


def _function(box: Function, inside: Sequence[str]) -> str:
    return inside[0]


def _sign(box: Sign, inside: Sequence[str]) -> str:
    mark = box.mark.translate(MINUS)
    if box.kind == "ordinary" and box.mark not in _MARKS:
        return _token("mi", mark, **({} if mark == "∂" else {"mathvariant": "normal"}))
    attributes: dict[str, str] = {**_FORMS[box.kind]}
    if box.kind != "large":
        attributes["stretchy"] = "false"
    if mark.isalpha():  # no browser knows the room around a word
        attributes["lspace"] = attributes["rspace"] = "0.17em" if box.kind == "large" else "0.22em"
    return _token("mo", mark, **attributes)


def _fraction(box: Fraction, inside: Sequence[str]) -> str:
    return _tag("mfrac", "".join(inside))


def _root(box: Root, inside: Sequence[str]) -> str:
    return _tag("msqrt" if box.degree is None else "mroot", "".join(inside))


def _script(box: Script, inside: Sequence[str]) -> str:
    if is_labelled(box):
        return _tag("mover", _token("mo", "⟶", stretchy="true") + inside[1])
    limits = isinstance(box.base, Sign) and box.base.kind == "large" and box.base.mark not in _BESIDE
    under, over = ("under", "over") if limits else ("sub", "sup")
    places = (under if box.below is not None else "") + (over if box.above is not None else "")
    return _tag(f"m{places}", "".join(inside)) if places else inside[0]


def _accent(box: Accent, inside: Sequence[str]) -> str:
    wide = not (isinstance(box.base, Name) and len(box.base.letters) == 1)
    if box.mark == "_":
        return _tag("mrow", inside[0], style="border-bottom: 0.06em solid")
    drawn = (_WIDE_ACCENTS if wide else _ACCENTS).get(box.mark, box.mark)
    grows = "true" if wide else "false"
    if box.mark == "‾":  # as an accent it touches letters that have a bar on top; a sign over them keeps its distance
        return _tag("mover", inside[0] + _token("mo", drawn, stretchy=grows, scriptlevel="0"), accent="false")
    return _tag("mover", inside[0] + _token("mo", drawn, stretchy=grows), accent="true")


def _around(inside: str, left: str, right: str, grows: bool) -> str:
    before, after = (
        _token("mo", mark, form=form, fence="true", stretchy="true" if grows else "false") if mark else ""
        for mark, form in ((left, "prefix"), (right, "postfix"))
    )
    return _tag("mrow", before + inside + after)


def _fence(box: Fence, inside: Sequence[str]) -> str:
    return _around(inside[0], box.left, box.right, box.tall)


def _matrix(box: Matrix, inside: Sequence[str]) -> str:
    at = {"style": "text-align: left"} if box.left == "{" and not box.right else {}
    cells = iter(inside)
    rows = [_tag("mtr", "".join(_tag("mtd", next(cells), **at) for _ in row)) for row in box.rows]
    return _around(_tag("mtable", "".join(rows)), box.left, box.right, True)


def _text(box: Text, inside: Sequence[str]) -> str:
    return _token("mtext", box.words.replace(" ", "\u00a0"))


def _differential(box: Differential, inside: Sequence[str]) -> str:
    return _tag("mrow", _token("mi", "d", mathvariant="normal") + inside[0])


def _space(box: Space, inside: Sequence[str]) -> str:
    high = ' height="1.3em" depth="0.7em"' if box.is_tall else ""
    return f'<mspace width="{box.width:.3g}em"{high}/>'


def _code(box: Code, inside: Sequence[str]) -> str:
    return _token("mtext", letters_of(box.source).replace(" ", "\u00a0"))


_WRITERS: dict[type[Box], Callable[[Any, Sequence[str]], str]] = {
    Row: _row, Name: _name, Number: _number, Sign: _sign, Function: _function, Fraction: _fraction, Root: _root,
    Script: _script, Accent: _accent, Fence: _fence, Matrix: _matrix, Text: _text, Differential: _differential,
    Space: _space, Code: _code,
}  # fmt: skip
