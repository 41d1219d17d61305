"""A table in LaTeX that fits the page: its columns side by side, words in several lines, or one list for each row."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.boxes import Box
from .align import itemised, tex_words
from .media.latex import latex
from .prose import Table, Words, padded
from .widths import width, width_of_words

_SMALL = 0.92  # the size of tables
_APART = 1.3  # em between columns
_NARROWEST = 7.0  # em of a column of words
_SURE = 0.9
_STRUT = r"\rule[-1.1em]{0pt}{2.9em}"  # the height of a row with fractions


def tabular(table: Table, room: float) -> str:
    """The table for a text of ``room`` em."""
    head, *rows = padded(table)
    columns = [*zip(head, *rows, strict=True)]
    natural = [max(map(_width, column)) for column in columns]
    fitting = _fitted(natural, [_is_wordy(column) for column in columns], _SURE * room / _SMALL)
    if fitting is None:
        return f"\\begin{{sloppypar}}\n{itemised(_in_words(head, cells) for cells in rows)}\n\\end{{sloppypar}}"
    wraps = [em < whole for em, whole in zip(fitting, natural, strict=True)]
    kinds = (rf"p{{{em:.1f}em}}" if wrapped else "l" for em, wrapped in zip(fitting, wraps, strict=True))
    lines = [_line(cells, wraps) for cells in (head, *rows)]
    lines[:1] = [lines[0], r"\hline"] if table.head else []
    return "\n".join(
        [
            r"\begin{center}\small\renewcommand{\arraystretch}{1.3}",
            rf"\begin{{tabular}}{{@{{}}{''.join(kinds)}@{{}}}}",
            r"\hline",
            *lines,
            r"\hline",
            r"\end{tabular}",
            r"\end{center}",
        ]
    )


def _line(cells: Sequence[Words], wraps: Sequence[bool]) -> str:
    written = (r"\raggedright " * wrapped + _cell(cell) for cell, wrapped in zip(cells, wraps, strict=True))
    return " & ".join(written) + (r" \tabularnewline" if any(wraps) else r" \\")


def _cell(words: Words) -> str:
    """A cell; a formula alone is set in full size."""
    return (
        rf"{_STRUT}$\displaystyle {latex(words[0])}$"
        if _is_large(words) and isinstance(words[0], Box)
        else tex_words(words)
    )


def _is_large(words: Words) -> bool:
    """Whether a cell holds one formula, and that is higher than a line."""
    return len(words) == 1 and not isinstance(words[0], str) and words[0].tall


def _width(words: Words) -> float:
    return sum(width(part) for part in words if isinstance(part, Box)) if _is_large(words) else width_of_words(words)


def _is_wordy(column: Sequence[Words]) -> bool:
    return any(isinstance(part, str) and " " in part.strip() for cell in column for part in cell)


def _fitted(natural: Sequence[float], wordy: Sequence[bool], room: float) -> list[float] | None:
    """How wide columns are, those of words no wider than is left for them; None where that is too little."""
    room -= _APART * (len(natural) - 1)
    if sum(natural) <= room:
        return [*natural]
    fixed = sum(em for em, words in zip(natural, wordy, strict=True) if not words)
    left, open_ones = room - fixed, sorted(em for em, words in zip(natural, wordy, strict=True) if words)
    share = 0.0
    for n, em in enumerate(open_ones):  # those that need less than their share leave it to the others
        share = left / (len(open_ones) - n)
        left -= min(em, share)
    if not open_ones or share < _NARROWEST:
        return None
    return [min(em, share) if words else em for em, words in zip(natural, wordy, strict=True)]


def _in_words(head: Sequence[Words], cells: Sequence[Words]) -> str:
    named = zip(head, cells, strict=True)
    return "; ".join(f"{tex_words(name)}: {tex_words(cell)}" if name else tex_words(cell) for name, cell in named)
