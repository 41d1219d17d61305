"""A page as LaTeX: a fragment for a paper, or an article of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...core.boxes import Box, Row, Sign, Space, Text, row
from ...printing.align import (
    TEXT_WIDTH,
    Page,
    displayed,
    displayed_formula,
    itemised,
    page_of,
    side_by_side,
    tex_text,
    tex_words,
)
from ...printing.media.latex import latex as formula
from ...printing.prose import (
    MARKS,
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Given,
    Items,
    Paragraph,
    Part,
    Section,
    Source,
    Statement,
    Status,
    Table,
    Words,
)
from ...printing.widths import width_of_words
from .latex_table import tabular

_BREAKABLE = ("relation", "sum", "product")  # the signs after which TeX breaks a formula in a line
_STIFF = 6.0  # em of a piece of a formula that makes TeX stretch its line
_TOO_WIDE = 0.8  # of the text: a piece that gets lines of its own
_WIDEST = 44.0  # em of text that a sheet of paper holds
_QED_HERE = r"\qedhere"
_GLYPHS = {"proved": r"$\checkmark$", "computed": r"$\checkmark$", "defined": "$:=$"}


@dataclass(frozen=True)
class _Setting:
    """How a page is set: its blocks, and whether claims are theorems of amsthm."""

    page: Page
    theorems: bool


def latex(
    document: Document,
    environment: str = "align*",
    numbered: str = "referenced",
    width: float = TEXT_WIDTH,
    standalone: bool = False,
    theorems: bool = False,
) -> str:
    r"""The page as LaTeX that needs amsmath and amssymb, a fragment or an article of its own.

    Blocks of rows are set in ``environment``, with numbers for "none" of the rows, those that are "referenced", or
    "all", in a text of ``width`` em. With ``theorems``, claims are the environments ``claim``, ``proposition`` and so
    on, with ``proof``, of amsthm. Raises OperandError for another environment, numbering or width.
    """
    setting = _Setting(_page(environment, numbered, width), theorems)
    text = "\n\n".join(_written(document, setting)) + "\n"
    return _article(text, document, setting) if standalone else text


def _page(environment: str, numbered: str, width: float) -> Page:
    """The page of the blocks: those of which no row is referred to are the starred ones by themselves."""
    if numbered == "referenced":
        environment = "align" if environment == "align*" else environment
        numbered = "none" if environment in ("gather*", "aligned") else numbered
    return page_of(environment, numbered, width)


def _article(text: str, document: Document, setting: _Setting) -> str:
    em = min(setting.page.width, _WIDEST)
    kinds = sorted({part.kind for section in document.sections for part in _statements(section.parts)})
    theorems = [rf"\newtheorem{{{kind.lower()}}}{{{kind}}}" for kind in kinds] if setting.theorems else []
    return "\n".join(
        [
            r"\documentclass[11pt]{article}",
            rf"\usepackage[a4paper, textwidth={em:g}em, vmargin=28mm]{{geometry}}",
            rf"\usepackage{{amsmath, amssymb{', amsthm' * setting.theorems}}}",
            r"\ifdefined\Umathcode\else\IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{}\fi",
            *([r"\theoremstyle{definition}"] if theorems else []),
            *theorems,
            r"\setlength{\jot}{5pt}",
            r"\allowdisplaybreaks[1]",
            r"\begin{document}",
            "",
            text,
            r"\end{document}",
            "",
        ]
    )


def _statements(parts: Iterable[Part]) -> Iterator[Statement]:
    for part in parts:
        if isinstance(part, Statement):
            yield part
        if isinstance(part, (Statement, Fold)):
            yield from _statements(part.parts)


# --- the page ---


def _written(document: Document, s: _Setting) -> Iterator[str]:
    yield rf"\section*{{{tex_words(document.title)}}}"
    if document.summary:
        yield rf"\noindent\emph{{{tex_words(document.summary)}}}"
    if document.result:
        yield r"\paragraph{Result.} " + _parts(document.result, s)
    if document.given or document.conventions:
        given = ["; ".join(map(_given, document.given)) + "."] if document.given else []
        conventions = [_words(document.conventions, s)] if document.conventions else []
        yield r"\paragraph{Given.} " + _loosened(" ".join([*given, *conventions]))
    for section in document.sections:
        yield from _section(section, s)
    if document.references:
        yield r"\subsection*{References}"
        yield itemised(map(tex_words, document.references))
    yield _footer(document)


def _section(section: Section, s: _Setting) -> Iterator[str]:
    shown = tuple(_shown(section.parts))
    if shown and section.title:
        yield rf"\subsection*{{{tex_words(section.title)}}}"
    if shown:
        yield _parts(shown, s)


def _given(given: Given) -> str:
    """``$Q \\in \\mathbb{R}^{T \\times d}$: queries``."""
    match given.where:
        case (Box() as space, *rest):
            symbol, where = row(given.symbol, Sign("∈", "relation"), space), tex_words(tuple(rest))
        case words:
            symbol, where = given.symbol, f", {tex_words(words)}" if words else ""
    meaning = f": {tex_words(given.meaning)}" if given.meaning else ""
    return f"${formula(symbol)}${where}{meaning}"


def _footer(document: Document) -> str:
    """What the marks mean, how many steps have which, and what checks them again."""
    counted = ", ".join(f"{number} {MARKS[status].counted}" for status, number in document.tally)
    command = [rf"Check again: \texttt{{{tex_text(document.command)}}}."] if document.command else []
    lines = [
        *map(_meaning, (status for status, _ in document.tally)),
        *([f"Steps: {counted}."] if counted else []),
        *command,
    ]
    return rf"\begin{{flushleft}}\footnotesize {' '.join(lines)}\end{{flushleft}}" if lines else ""


def _meaning(status: Status) -> str:
    mark = MARKS[status]
    name = f"{_GLYPHS[status]} {mark.word}" if status in _GLYPHS else mark.word
    without = ", and has no mark" if status == "unverified" else ""
    return f"{name[:1].upper()}{name[1:]}: {mark.meaning}{without}."


# --- its parts ---


def _shown(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts that are for people."""
    return (part for part in parts if not (isinstance(part, Fold) and part.for_machines))


def _parts(parts: Iterable[Part], s: _Setting, last: str = "") -> str:
    """Parts one below the other; ``last`` stands in the last row, or at the end of the last line."""
    shown = [*_shown(parts)]
    *most, end = shown or [Paragraph(())]
    blocks = [*(_part(part, s) for part in most), _part(end, s, last)]
    text = blocks[0]
    for (before, part), block in zip(pairwise(shown), blocks[1:], strict=True):
        text += ("\n" if _goes_on(before, part) else "\n\n") + block
    return text


def _goes_on(before: Part, part: Part) -> bool:
    """Whether a part belongs to the paragraph before it: a display, or words that go on behind one."""
    if isinstance(part, (Display, Chain)):
        return isinstance(before, (Paragraph, Display, Chain))
    goes_on = isinstance(part, Paragraph) and isinstance(part.words[0], str) and part.words[0][:1].islower()
    return goes_on and isinstance(before, (Display, Chain))


def _part(part: Part, s: _Setting, last: str = "") -> str:
    match part:
        case Display(formulas):
            return _display(formulas, s, last)
        case Chain(steps):
            return displayed(steps, s.page, last)
        case Paragraph(words, head):
            return rf"\textbf{{{tex_text(head)}.}} " * bool(head) + _words(words, s, last)
        case Statement():
            text = _theorem(part, s) if s.theorems else _claim(part, s)
        case Fold(title, parts):
            text = rf"\paragraph{{{tex_words(title)}.}} " + _parts(parts, s)
        case Items(items, numbered):
            text = itemised(map(tex_words, items), "enumerate" if numbered else "itemize")
        case Table():
            text = tabular(part, s.page.width)
        case Source(source, _):
            text = _verbatim(source, s)
        case Figure():
            text = _figure(part, s)
    return f"{text}\n{_at_the_right(last)}" if last else text


def _at_the_right(mark: str) -> str:
    return mark if mark == _QED_HERE else rf"\hspace*{{\fill}}{mark}"


def _display(formulas: Sequence[Box], s: _Setting, last: str = "") -> str:
    if len(formulas) == 1 and not last:
        return displayed_formula(formulas[0], s.page)
    return side_by_side(formulas, s.page, last)


def _figure(figure: Figure, s: _Setting) -> str:
    """The figure as a formula, or as lines of text, and else what it shows in words."""
    if figure.formula is not None:
        return displayed_formula(figure.formula, s.page)
    return _verbatim(figure.text, s) if figure.text else rf"\emph{{Figure.}} {tex_text(figure.alternative)}"


# --- words ---


def _words(words: Words, s: _Setting, last: str = "") -> str:
    """Words as a paragraph; a formula of which a piece is wider than the text gets lines of its own."""
    text, rest = "", list(words)
    while rest:
        part = rest.pop(0)
        if isinstance(part, str) or _widest_piece(part) <= _TOO_WIDE * s.page.width:
            text += tex_words((part,))
            continue
        ends = rest[0][0] if rest and isinstance(rest[0], str) and rest[0][0] in ".,;:" else ""
        text += "\n" + displayed_formula(row(part, Text(ends)) if ends else part, s.page) + "\n"
        rest[:1] = [rest[0][1:].lstrip()] if ends and isinstance(rest[0], str) else rest[:1]
    text += f" {_at_the_right(last)}" if last else ""
    is_stiff = any(not isinstance(part, str) and _widest_piece(part) > _STIFF for part in words)
    return _loosened(text) if is_stiff else text


def _loosened(text: str) -> str:
    """A paragraph whose words may stand far apart, so that no formula sticks out."""
    return f"\\begin{{sloppypar}}\n{text}\n\\end{{sloppypar}}"


def _widest_piece(box: Box) -> float:
    """The width of the widest part of a formula in a line that TeX does not break."""
    pieces: list[list[Box]] = [[]]
    for part in box.parts if isinstance(box, Row) else (box,):
        pieces[-1].append(part)
        if (isinstance(part, Sign) and part.kind in _BREAKABLE) or isinstance(part, Space):
            pieces.append([])
    return max(width_of_words((row(*piece),)) for piece in pieces if piece)


def _verbatim(source: str, s: _Setting) -> str:
    """Source text as it stands, in the largest type in which its lines fit, and broken where none is small enough."""
    typed = source.expandtabs().replace(r"\end{", r"\end {").encode("ascii", "backslashreplace").decode()
    lines = ["".join(filter(str.isprintable, line)) for line in typed.rstrip().splitlines()]
    longest = max(map(len, lines), default=0)
    fitting = [
        (size, int(s.page.width / (em * _LETTER))) for size, em in _SIZES if em * _LETTER * longest < s.page.width
    ]
    size, room = fitting[0] if fitting else (_SIZES[-1][0], int(s.page.width / (_SIZES[-1][1] * _LETTER)))
    short = [line[at : at + room] for line in lines for at in range(0, max(len(line), 1), room)]
    return "\n".join([rf"{{\{size}", r"\begin{verbatim}", *short, r"\end{verbatim}", "}"])


_LETTER = 0.53  # em of a letter of a typewriter
_SIZES = (("normalsize", 1.0), ("small", 0.92), ("footnotesize", 0.84), ("scriptsize", 0.76))


# --- claims ---


def _claimed(claim: Statement, s: _Setting) -> str:
    """What is claimed, and what is given for it."""
    given = "; ".join(map(tex_words, claim.given))
    blocks: list[Part] = [Paragraph(claim.words)] if claim.words else []
    blocks += [Display(claim.formulas)] if claim.formulas else []
    text = _parts(blocks, s) if blocks else ""
    return text + (f"\n\nIt is given that {given}." if given else "")


def _title(claim: Statement) -> str:
    """What a claim is called, and that it is false or not proved."""
    status = "" if claim.status in ("proved", "computed") else MARKS[claim.status].word
    dash = " --- " if claim.title and status else ""
    return f"{tex_words(claim.title)}{dash}{status}"


def _theorem(claim: Statement, s: _Setting) -> str:
    name, title, shown = claim.kind.lower(), _title(claim), [*_shown(claim.parts)]
    lines = [rf"\begin{{{name}}}" + (f"[{{{title}}}]" if title else ""), _claimed(claim, s), rf"\end{{{name}}}"]
    if shown:
        last = _QED_HERE if isinstance(shown[-1], Paragraph) or _ends_unnumbered(shown[-1], s.page) else ""
        lines += [r"\begin{proof}" + "[Counterexample]" * (claim.status == "refuted"), _parts(shown, s, last)]
        lines.append(r"\end{proof}")
    return "\n".join(lines)


def _claim(claim: Statement, s: _Setting) -> str:
    title, shown = _title(claim), [*_shown(claim.parts)]
    head = f"{claim.kind} {claim.number}" + (f" ({title})" if title else "")
    text = rf"\paragraph{{{head}.}} " + _claimed(claim, s)
    if not shown:
        return text
    name = "Counterexample" if claim.status == "refuted" else "Proof"
    ends_numbered = isinstance(shown[-1], Chain) and not _ends_unnumbered(shown[-1], s.page)
    proof = _parts(shown, s, "" if ends_numbered else r"$\square$")
    after = "\n\n" + _at_the_right(r"$\square$") if ends_numbered else ""
    return f"{text}\n\n\\noindent\\textit{{{name}.}} {proof}{after}"


def _ends_unnumbered(part: Part, page: Page) -> bool:
    """Whether a part is a display with no number in its last row, so that a mark may stand there."""
    if not isinstance(part, Chain):
        return isinstance(part, Display)
    return page.numbered == "none" or (page.numbered == "referenced" and not part.steps[-1].label)
