"""Formulas in Markdown, LaTeX, plain text and notebooks, with the place of each.

Everything is found by looking for the end of what begins, never by a pattern that may run away: a document of any kind
takes time in proportion to its length.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

from ..errors import OperandError

Kind = Literal["inline", "display", "undelimited", "declared", "words"]

_MATH = "equation align gather multline eqnarray displaymath math aligned alignat flalign split gathered".split()
_CODE = "verbatim lstlisting minted tabular figure".split()
_OPENS = re.compile(r"<!--|^[ \t]*(?:```|~~~)|`+|\$\$?|\\\[|\\\(|\\begin\{(\w+)(\*?)\}|\\[\\$%]|%", re.M)
_COMMAND = re.compile(r"\\[a-zA-Z]{2,}|\\mathbb")
_DECLARED = re.compile(r"symattn:(.*)", re.S)
_HEADING = re.compile(r"^#{1,6}\s|^\\(?:part|chapter|(?:sub)*section)\*?\{|¶$")
_ENDS = re.compile(r"\n\s*\n|(?:^|\n)#[^\n]*\n|[.!?。](?=\s|$)")  # of sentences
_NEAR = 300  # characters in which the words of a sentence are looked for
_LONGEST = 20_000  # characters of a formula; what is longer has lost its end


@dataclass(frozen=True)
class Passage:
    """A formula, a declaration in a comment, or the words between these, and where it begins."""

    text: str
    at: int
    kind: Kind


class Document:
    """A document as passages, in order; ``suffix`` is that of its file: ".md", ".tex", ".txt" or ".ipynb"."""

    def __init__(self, text: str, suffix: str = ".md") -> None:
        self.text, self._cells = (text, []) if suffix != ".ipynb" else _markdown_cells(text)
        self._lines = [0, *accumulate(len(line) for line in self.text.splitlines(keepends=True))]
        self.is_latex = suffix == ".tex"
        self.passages = list(self._declared_in_tables(self._passages()))

    def place(self, at: int) -> tuple[int, int]:
        """The line and the column of a character, counted from 1."""
        line = bisect_right(self._lines, at) if at < len(self.text) else max(len(self._lines) - 1, 1)
        return line, at - self._lines[line - 1] + 1

    def where(self, at: int) -> str:
        """``12:5``, or ``cell 3, 2:5`` in a notebook."""
        line, column = self.place(at)
        cell = bisect_right(self._cells, line) - 1
        return f"cell {cell + 1}, {line - self._cells[cell] + 1}:{column}" if self._cells else f"{line}:{column}"

    def words_behind(self, passage: Passage) -> str:
        """What the line says behind a formula, up to the next one."""
        end = self.text.find("\n", passage.at)
        line = self.text[passage.at : end if end >= 0 else len(self.text)]
        formulas = 2 if " \\in " in passage.text and passage.text not in line else 1  # in two cells of a table
        return "".join(line.split("$")[2 * formulas - 1 : 2 * formulas][:1])

    def words_before(self, at: int) -> str:
        """The words of a sentence, and what it says in formulas, in front of one of them."""
        return _ENDS.split(self.text[max(0, at - _NEAR) : at].rstrip("$\\[( \n"))[-1]

    def words_after(self, passage: Passage) -> str:
        """The same behind a formula."""
        end = passage.at + len(passage.text)
        return _ENDS.split(self.text[end : end + _NEAR].lstrip("$\\])"))[0]

    @cached_property
    def headings(self) -> list[int]:
        """Where sections begin."""
        return [one.at for one in self.passages if one.kind == "words" and _HEADING.search(one.text)]

    def section(self, at: int) -> int:
        """The number of the section that a character is in; 0 in front of the first heading."""
        return bisect_right(self.headings, at)

    def _passages(self) -> Iterator[Passage]:
        at = start = 0
        absent: set[str] = set()  # ends that do not come any more
        while (found := _OPENS.search(self.text, at)) is not None:
            passage, end = self._opened(found, absent)
            if passage is not None:
                yield from self._words(start, found.start())
                yield passage
            if end > found.end():
                start = end if passage is not None else start
            at = end
        yield from self._words(start, len(self.text))

    def _declared_in_tables(self, passages: Iterator[Passage]) -> Iterator[Passage]:
        r"""``| $Q$ | $\mathbb{R}^{T \times d}$ |`` as the declaration that it is."""
        waiting: list[Passage] = []  # a formula in a cell that may be a name, and the bar behind it
        for passage in passages:
            if waiting and passage.text == "|" and len(waiting) == 1:
                waiting.append(passage)
                continue
            if len(waiting) == 2 and passage.kind == "inline" and passage.text.lstrip().startswith("\\mathbb{R}"):
                yield Passage(f"{waiting[0].text} \\in {passage.text}", waiting[0].at, "inline")
                waiting = []
                continue
            yield from waiting
            waiting = [passage] if passage.kind == "inline" else []
            if passage.kind != "inline":
                yield passage
        yield from waiting

    def _opened(self, found: re.Match[str], absent: set[str]) -> tuple[Passage | None, int]:
        """What an opening mark begins, None for what is no formula, and where reading goes on."""
        mark, begin = found.group().strip(), found.end()
        if mark.startswith("%"):
            return self._comment(found.start(), begin, "\n") if self.is_latex else (None, begin)
        if mark == "<!--":
            return self._comment(found.start(), begin, "-->")
        if mark.startswith(("```", "~~~")):
            return self._fenced(begin, mark[:3])
        if mark.startswith("`"):
            return None, self._end(mark, begin, absent) or begin
        if mark in ("\\\\", "\\$", "\\%"):
            return None, begin
        closing = {"$$": "$$", "$": "$", "\\[": "\\]", "\\(": "\\)"}.get(mark) or f"\\end{{{found[1]}{found[2]}}}"
        end = self._end(closing, begin, absent)
        if end is None or (mark.startswith("\\begin") and found[1] not in (*_MATH, *_CODE)):
            return None, begin
        if found[1] in _CODE:
            return None, end
        inside = self.text[begin : end - len(closing)]
        if mark == "$" and not _is_formula(inside):
            return None, begin
        whole = mark.startswith("\\begin")  # its rows are read with their environment
        text, at = (self.text[found.start() : end], found.start()) if whole else (inside.strip("`"), begin)
        return Passage(text, at, "inline" if mark in ("$", "\\(") else "display"), end

    def _end(self, closing: str, begin: int, absent: set[str]) -> int | None:
        """Behind the next closing mark; None where there is none, or none near."""
        at = -1 if closing in absent else self.text.find(closing, begin)
        while closing == "$" and at > 0 and self.text[at - 1] == "\\":
            at = self.text.find(closing, at + 1)
        if at < 0:
            absent.add(closing)
        return None if at < 0 or at - begin > _LONGEST else at + len(closing)

    def _comment(self, start: int, begin: int, closing: str) -> tuple[Passage | None, int]:
        end = self.text.find(closing, begin)
        end = len(self.text) if end < 0 else end
        declared = _DECLARED.match(self.text[begin:end].strip())
        passage = Passage(declared[1].strip(), start, "declared") if declared else None
        return passage, min(end + len(closing), len(self.text))

    def _fenced(self, begin: int, fence: str) -> tuple[Passage | None, int]:
        """A block of code, which is mathematics where it says so."""
        line = self.text.find("\n", begin)
        line = len(self.text) if line < 0 else line
        end = self.text.find(f"\n{fence}", line)
        end = len(self.text) if end < 0 else end
        behind = min(end + len(fence) + 1, len(self.text))
        is_math = self.text[begin:line].strip() == "math"
        return (Passage(self.text[line + 1 : end], line + 1, "display") if is_math else None), behind

    def _words(self, start: int, end: int) -> Iterator[Passage]:
        """Words between formulas; a line of them that holds commands of LaTeX is a formula without delimiters."""
        at = start
        for line in self.text[start:end].splitlines(keepends=True):
            is_formula = not self.is_latex and _COMMAND.search(line) is not None
            if line.strip():
                first = at + len(line) - len(line.lstrip())
                yield Passage(line.strip(), first, "undelimited" if is_formula else "words")
            at += len(line)


def _is_formula(inside: str) -> bool:
    """Whether what stands between two dollar signs is mathematics, not two prices in one line."""
    if not inside.strip() or "\n\n" in inside or re.match(r"\d[\d.,]*\s+\w+", inside):
        return False
    return inside[0].isspace() == inside[-1].isspace()


def _markdown_cells(text: str) -> tuple[str, list[int]]:
    """The Markdown of a notebook, and the line at which each of its cells begins."""
    try:
        cells: Any = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise OperandError("a notebook is JSON with a list of cells; this is none") from None
    first, begins = 1, []
    for source in sources:
        begins.append(first)
        first += source.count("\n") + 2
    return "\n\n".join(sources), begins or [1]
