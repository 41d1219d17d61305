"""A page as LaTeX: a fragment for a paper, or an article of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any
from unicodedata import normalize

from ...core.arguments import flag, one_of
from ...core.boxes import Box, Sign, Text, boxes_in, row
from ...printing.align import ENVIRONMENTS, TEXT_WIDTH, Page, has_number, itemised, page_of, tex_text, tex_words
from ...printing.media.latex import is_accented, typeset
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
    listed,
    shown_on_paper,
    unheaded,
)
from ...printing.prose_latex import (
    PAGE,
    QED_HERE,
    at_the_right,
    is_display,
    loosened,
    part_latex,
    parts_latex,
    words_latex,
)

_WIDEST = 44.0  # em of text that a sheet of paper holds
_LISTED = 12  # characters that are told
_QED = r"$\square$"
_GLYPHS = {"proved": r"$\checkmark$", "computed": r"$\checkmark$", "defined": "$:=$"}


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
    page = replace(_page(environment, numbered, width), theorems=flag("latex", "theorems", theorems))
    text = "\n\n".join(_written(document, page)) + "\n"
    return _article(text, document, page) if flag("latex", "standalone", standalone) else text


def _page(environment: str, numbered: str, width: float) -> Page:
    """The page of the blocks: those of which no row is referred to are the starred ones by themselves."""
    one_of("latex", "environment", environment, *ENVIRONMENTS)
    if one_of("latex", "numbered", numbered, "none", "referenced", "all") == "referenced":
        environment = "align" if environment == "align*" else environment
        numbered = "none" if environment in ("gather*", "aligned") else numbered
    return page_of(environment, numbered, width)


def _article(text: str, document: Document, page: Page) -> str:
    em = min(page.width, _WIDEST)
    parts = [*_all(document.result), *(part for section in document.sections for part in _all(section.parts))]
    has_pictures = any(isinstance(part, Figure) and part.file for part in parts)
    kinds = sorted({part.kind for part in parts if isinstance(part, Statement)})
    theorems = [rf"\newtheorem{{{kind.lower()}}}{{{kind}}}" for kind in kinds] if page.theorems else []
    return "\n".join(
        [
            r"\documentclass[11pt]{article}",
            rf"\usepackage[a4paper, textwidth={em:g}em, vmargin=28mm]{{geometry}}",
            rf"\usepackage{{amsmath, amssymb{', amsthm' * page.theorems}{', graphicx' * has_pictures}}}",
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


def _all(parts: Iterable[Part]) -> Iterator[Part]:
    """Parts, and those within claims and folds."""
    for part in parts:
        yield part
        if isinstance(part, Statement):
            yield from _all(part.where)
        if isinstance(part, (Statement, Fold)):
            yield from _all(part.parts)


# --- the page ---


def _written(document: Document, page: Page) -> Iterator[str]:
    yield rf"\section*{{{tex_words(document.title)}}}"
    if document.summary:
        yield rf"\noindent\emph{{{tex_words(document.summary)}}}"
    if document.result:
        yield r"\paragraph{Result.} " + parts_latex(document.result, page)
    if document.given or document.conventions:
        given = ["; ".join(map(_given, document.given)) + "."] if document.given else []
        conventions = [words_latex(document.conventions, page)] if document.conventions else []
        yield loosened(r"\paragraph{Given.} " + " ".join([*given, *conventions]))
    for section in document.sections:
        yield from _section(section, page)
    if document.references:
        yield r"\subsection*{References}"
        yield itemised(map(tex_words, document.references))
    yield _footer(document)


def _section(section: Section, page: Page) -> Iterator[str]:
    if not (text := parts_latex(section.parts, page)):
        return
    if section.title:
        yield rf"\subsection*{{{tex_words(section.title)}}}"
        yield text
    else:
        yield r"\bigskip" + r"\noindent" * is_display(section.parts[0]) + f"\n{text}"  # else TeX sets an empty line


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
        *_named_instead(document),
    ]
    return rf"\begin{{flushleft}}\footnotesize {' '.join(lines)}\end{{flushleft}}" if lines else ""


def _named_instead(document: Document) -> Iterator[str]:
    """Which characters of the page stand there by their names, or by their codes in listings."""
    codes = [f"U+{ord(c):04X}" for c in sorted(_not_set(document))]
    if codes:
        more = f", and {len(codes) - _LISTED} more" if len(codes) > _LISTED else ""
        yield f"Not in this type, and named instead: {', '.join(codes[:_LISTED])}{more}."


def _not_set(document: Document) -> set[str]:
    """The characters of a page that not every TeX has, in words and in listings."""
    found = set[str]()
    rest: list[Any] = [document]
    while rest:
        match rest.pop():
            case str() as words:
                found |= {c for c in normalize("NFC", words) if c != "[" and typeset(c)[:1] == "["}
            case Source(text=source):
                found |= {c for c in normalize("NFC", source) if c.isprintable() and not _is_typed(c)}
            case Figure() as figure:
                is_told = not figure.file and figure.formula is None
                rest += [figure.caption, *([figure.alternative] if is_told else [])]
            case Box() as box:
                rest += [part.words for part in boxes_in(box) if isinstance(part, Text)]
            case tuple() as parts:
                rest += parts
            case part if is_dataclass(part) and not (isinstance(part, Fold) and part.for_machines):
                rest += [getattr(part, field.name) for field in fields(part)]
    return found


def _meaning(status: Status) -> str:
    mark = MARKS[status]
    name = f"{_GLYPHS[status]} {mark.word}" if status in _GLYPHS else mark.word
    without = ", and has no mark" if status == "unverified" else ""
    return f"{name[:1].upper()}{name[1:]}: {mark.meaning}{without}."


# --- parts ---


@part_latex.register
def _(part: Fold, page: Page = PAGE, end: str = "") -> str:
    head = rf"\medskip\noindent\textbf{{{tex_words(part.title)}.}}"  # in a proof no list may follow a \paragraph
    return f"{head} {parts_latex(part.parts, page, end)}"


@part_latex.register
def _(part: Source, page: Page = PAGE, end: str = "") -> str:
    return _with_below(_verbatim(part.text, page), end)


@part_latex.register
def _(part: Figure, page: Page = PAGE, end: str = "") -> str:
    """What a figure shows, and its caption."""
    if not part.caption:
        return _shown(part, page, end)
    return f"{_shown(part, page, '')}\n\n{at_the_right(words_latex(part.caption, page), end)}"


def _shown(part: Figure, page: Page, end: str) -> str:
    """The picture where there is a file of it; else a formula, or lines of text that TeX has, or what it shows."""
    if part.file:
        drawn = rf"\includegraphics[width=0.85\linewidth]{{{part.file}}}"
        return _with_below(f"\\begin{{center}}\n{drawn}\n\\end{{center}}", end)
    if part.formula is not None:
        return part_latex(Display((part.formula,)), page, end)
    if part.text and part.text.isascii():
        return _with_below(_verbatim(part.text, page), end)
    return at_the_right(rf"\emph{{Figure.}} {tex_text(part.alternative)}", end)


def _with_below(block: str, end: str) -> str:
    return f"{block}\n{at_the_right('', end)}" if end else block


def _verbatim(source: str, page: Page) -> str:
    """Source text as it stands, in the largest type in which its lines fit, and broken where none is small enough."""
    source = normalize("NFC", source.expandtabs().replace(r"\end{", r"\end {"))
    typed = "".join(c if _is_typed(c) else c.encode("ascii", "backslashreplace").decode() for c in source)
    lines = ["".join(filter(str.isprintable, line)) for line in typed.rstrip().splitlines()]
    longest = max(map(len, lines), default=0)
    fitting = [(size, int(page.width / (em * _LETTER))) for size, em in _SIZES if em * _LETTER * longest < page.width]
    size, room = fitting[0] if fitting else (_SIZES[-1][0], int(page.width / (_SIZES[-1][1] * _LETTER)))
    short = [line[at : at + room] for line in lines for at in range(0, max(len(line), 1), room)]
    return "\n".join([rf"{{\{size}", r"\begin{verbatim}", *short, r"\end{verbatim}", "}"])


def _is_typed(character: str) -> bool:
    """Whether a listing has the character as it is."""
    return character.isascii() or is_accented(character)


_LETTER = 0.53  # em of a letter of a typewriter
_SIZES = (("normalsize", 1.0), ("small", 0.92), ("footnotesize", 0.84), ("scriptsize", 0.76))


# --- claims ---


@part_latex.register
def _(part: Statement, page: Page = PAGE, end: str = "") -> str:
    return _with_below(_theorem(part, page) if page.theorems else _claim(part, page), end)


def _claimed(claim: Statement, page: Page) -> str:
    """What is claimed, and what is given for it."""
    words = (Paragraph(claim.words),) if claim.words else ()
    formulas = (Display(claim.formulas),) if claim.formulas else ()
    given = (Paragraph(("It is given that ", *listed(claim.given), ".")),) if claim.given else ()
    return parts_latex((*words, *formulas, *claim.where, *given), page)


def _title(claim: Statement) -> str:
    """What a claim is called, and that it is false or not proved."""
    status = "" if claim.status in ("proved", "computed") else MARKS[claim.status].word
    dash = " --- " if claim.title and status else ""
    return f"{tex_words(claim.title)}{dash}{status}"


def _proof(claim: Statement) -> Sequence[Part]:
    """The parts of a proof that are shown on paper, where one that is folded as a whole is open."""
    shown = shown_on_paper(claim.parts)
    opened = shown[0].parts if len(shown) == 1 and isinstance(shown[0], Fold) else shown
    return unheaded(opened, "Proof") if opened else ()


def _theorem(claim: Statement, page: Page) -> str:
    name, title, proof = claim.kind.lower(), _title(claim), _proof(claim)
    lines = [rf"\begin{{{name}}}" + (f"[{{{title}}}]" if title else ""), _claimed(claim, page), rf"\end{{{name}}}"]
    if proof:
        starts = r"\leavevmode" * isinstance(proof[0], Items)  # else the first item stands in the line of the head
        lines.append(r"\begin{proof}" + "[Counterexample]" * (claim.status == "refuted") + starts)
        lines += [parts_latex(proof, page, QED_HERE if _holds_sign(proof, page) else ""), r"\end{proof}"]
    return "\n".join(lines)


def _holds_sign(parts: Sequence[Part], page: Page) -> bool:
    """Whether the sign of amsthm stands in the last line of parts, and not below them."""
    last = parts[-1]
    while isinstance(last, Fold) and (shown := shown_on_paper(last.parts)):
        last = shown[-1]
    numbered = isinstance(last, Chain) and has_number(last.steps, page)
    return isinstance(last, (Paragraph, Display, Items, Chain)) and not numbered


def _claim(claim: Statement, page: Page) -> str:
    title, proof = _title(claim), _proof(claim)
    head = f"{claim.kind} {claim.number}" + (f" ({title})" if title else "")
    text = rf"\paragraph{{{head}.}} {_claimed(claim, page)}"
    if not proof:
        return text
    name = "Counterexample" if claim.status == "refuted" else "Proof"
    return f"{text}\n\n\\noindent\\textit{{{name}.}} {parts_latex(proof, page, _QED)}"
