"""Boxes of the NumPy dialect as the text that reads back: ``softmax(Q @ K.T)``."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.boxes import Box, Code, Fence, Function, Name, Row, Sign, fold

_SPACED = {"relation": " {} ", "sum": " {} ", "product": " {} ", "punctuation": "{} "}


def numpy_text(box: Box) -> str:
    """The formula as a line of NumPy-like text."""
    return fold(box, _write)


class Writer:
    """Writes formulas that share parts: each part once."""

    def __init__(self) -> None:
        self._known: dict[Box, str] = {}

    def written(self, box: Box) -> str:
        """The formula as a line of NumPy-like text, without room around it."""
        return fold(box, _write, self._known).strip()


def _write(box: Box, parts: Sequence[str]) -> str:
    match box:
        case Code():
            return box.source
        case Name():
            return box.letters
        case Sign():
            return _SPACED[box.kind].format(box.mark) if box.kind in _SPACED else box.mark
        case Fence():
            return f"{box.left}{parts[0]}{box.right}"
        case Row() | Function():
            return "".join(parts)
    raise TypeError(f"the NumPy dialect has no {type(box).__name__}")
