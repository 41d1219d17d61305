"""A table in LaTeX that fits the page: its columns side by side, words in several lines, or one list for each row."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.boxes import Box
from ...printing.align import itemised, tex_text, tex_words
from ...printing.media.latex import latex
from ...printing.prose import Table, Words, padded
from ...printing.widths import width, width_of_words

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
    kinds = ("l" if em >= whole else rf"p{{{em:.1f}em}}" for em, whole in zip(fitting, natural, strict=True))
    lines = [*([_line(head), r"\hline"] if table.head else []), *map(_line, rows)]
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


def _line(cells: Sequence[Words]) -> str:
    is_tall = any(not isinstance(part, str) and part.tall for cell in cells for part in cell)
    return (_STRUT if is_tall else "") + " & ".join(map(_cell, cells)) + r" \\"


def _cell(words: Words) -> str:
    return "".join(tex_text(part) if isinstance(part, str) else f"${_in_full_size(part)}$" for part in words)


def _in_full_size(box: Box) -> str:
    return r"\displaystyle " * box.tall + latex(box)


def _width(words: Words) -> float:
    return sum(width_of_words((part,)) if isinstance(part, str) else width(part) for part in words)


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
