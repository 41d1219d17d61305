"""A page as one HTML file: no script, nothing loaded from elsewhere, formulas in MathML, its looks in ``page.css``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ...core.arguments import flag
from ...core.boxes import Box, row
from ...printing.breaking import Piece
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
    Step,
    Table,
    Words,
    padded,
)
from ...printing.widths import width
from .drawings import inline_svg
from .html_words import NARROW, badge, escaped, formula_html, in_line, legal, pieces_of, plain, span, words_html

_STYLE = Path(__file__).with_name("page.css")
_LANGUAGE = "en"
_BESIDE = 23.0  # em: formulas as wide as this leave room for reasons beside them
_LONG_LEFT = 5.0  # em: of a left side


def html(document: Document, standalone: bool = True) -> str:
    """The whole file; or, for a notebook, the article with its style, which touches nothing else there."""
    article = _Page().article(document)
    return whole(plain(document.title), article) if flag("html", "standalone", standalone) else f"{_style()}{article}\n"


def parts_html(parts: Sequence[Part]) -> str:
    """Parts of a page, for a notebook."""
    return f'{_style()}<article class="symattn" lang="{_LANGUAGE}">\n{_Page().parts(parts, 3)}\n</article>\n'


def whole(title: str, article: str) -> str:
    """A file around an article of the class ``symattn``."""
    head = (
        '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n{_style()}"
    )
    body = f"<body>\n<main>\n{article}\n</main>\n</body>"
    root = f'<html lang="{_LANGUAGE}" class="symattn-page">'
    return f"<!doctype html>\n{root}\n<head>\n{head}</head>\n{body}\n</html>\n"


def _style() -> str:
    return f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"


# --- the page ---


class _Page:
    """Writes the parts of one page, and gives every anchor once."""

    def __init__(self) -> None:
        self.anchors: set[str] = set()

    def anchor(self, wanted: str) -> str:
        found, n = wanted, 1
        while found in self.anchors:
            n += 1
            found = f"{wanted}-{n}"
        self.anchors.add(found)
        return found

    def article(self, document: Document) -> str:
        parts = [
            f'<article class="symattn" lang="{_LANGUAGE}">',
            self.header(document),
            self.result(document.result),
            self.given(document.given, document.conventions),
            *(self.section(section) for section in document.sections),
            self.references(document.references),
            self.footer(document),
            "</article>",
        ]
        return "\n".join(part for part in parts if part)

    def header(self, document: Document) -> str:
        summary = f'\n<p class="summary">{words_html(document.summary)}</p>' if document.summary else ""
        tally = "".join(f"<li>{badge(status, f'{n} {MARKS[status].counted}')}</li>" for status, n in document.tally)
        counted = f'\n<ul class="tally" aria-label="How the steps were checked">{tally}</ul>' if tally else ""
        return f"<header>\n<h1>{words_html(document.title)}</h1>{summary}{counted}\n</header>"

    def result(self, parts: Sequence[Part]) -> str:
        if not parts:
            return ""
        return f'<section class="result" aria-label="Result">\n<h2>Result</h2>\n{self.parts(parts, 3)}\n</section>'

    def given(self, given: Sequence[Given], conventions: Words) -> str:
        if not given and not conventions:
            return ""
        columns = 3 if any(symbol.meaning for symbol in given) else 2
        head = (("Symbol",), ("Where it lives",), ("Meaning",))[:columns]
        rows = tuple(((symbol.symbol,), symbol.where, symbol.meaning)[:columns] for symbol in given)
        table = _table(Table(head, rows), "given") if given else ""
        words = f"<p>{words_html(conventions)}</p>" if conventions else ""
        return f"{self.heading('Given', ('Given',))}\n{table}\n{words}\n</section>"

    def section(self, section: Section) -> str:
        if not section.title:
            return f"<section>\n{self.parts(section.parts, 2)}\n</section>"
        heading = self.heading(section.anchor or plain(section.title), section.title)
        return f"{heading}\n{self.parts(section.parts, 3)}\n</section>"

    def heading(self, wanted: str, title: Words) -> str:
        """The beginning of a section, with a heading that leads to itself."""
        letters = "".join(c if c.isalnum() else " " for c in wanted.lower())
        anchor = escaped(self.anchor("-".join(letters.split()) or "section"))
        return f'<section id="{anchor}">\n<h2><a href="#{anchor}">{words_html(title)}</a></h2>'

    def references(self, references: Sequence[Words]) -> str:
        if not references:
            return ""
        return f"{self.heading('References', ('References',))}\n{_list(references, 'ul')}\n</section>"

    def footer(self, document: Document) -> str:
        """What the marks of this page mean, and how it is checked again."""
        marks = [MARKS[status] for status, _ in document.tally]
        legend = " ".join(f"<span><b>{mark.glyph} {mark.word}</b>: {mark.meaning}.</span>" for mark in marks)
        again = f" To check this page again: <code>{escaped(document.command)}</code>" if document.command else ""
        return f"<footer>\n<p>{legend}{again}</p>\n</footer>" if legend or again else ""

    # --- parts ---

    def parts(self, parts: Iterable[Part], level: int) -> str:
        """Parts one below the other; ``level`` is that of a heading among them."""
        return "\n".join(_WRITERS[type(part)](self, part, level) for part in parts)

    def chain(self, chain: Chain, level: int) -> str:
        lefts = [width(step.left) for step in chain.steps if step.left is not None]
        widest = max(lefts, default=0.0) + max((_right_width(step) for step in chain.steps), default=0.0)
        has_notes = any(step.reason or step.detail or _has_badge(step) for step in chain.steps)
        kind = "steps" if not has_notes else "steps beside" if widest <= _BESIDE else "steps below"
        rows = "\n".join(self.step(step) for step in chain.steps)
        return f'<ol class="{kind}" role="list">\n{rows}\n</ol>'

    def step(self, step: Step) -> str:
        anchor = self.anchor(f"step-{step.number}") if step.number else ""
        number = f'<a class="number" href="#{anchor}">{step.number}</a>' if anchor else span("number", "")
        left = "" if step.left is None else formula_html(step.left)
        each = f" {span('each', f'({words_html((step.each,))})')}" if step.each is not None else ""
        right = pieces_of(row(step.relation, step.right))
        detail = f" {span('detail', words_html(step.detail))}" if step.detail else ""
        why = span("why", words_html(step.reason) + detail) if step.reason or step.detail else ""
        mark = badge(step.status, MARKS[step.status].word) if step.status and _has_badge(step) else ""
        kind = "on" if step.left is None else "long" if _is_long(step.left, right) else ""
        attributes = (f' id="{anchor}"' if anchor else "") + (f' class="{kind}"' if kind else "")
        return f"<li{attributes}>{number}{span('left', left)}{span('right', in_line(right) + each)}{why}{mark}</li>"

    def statement(self, statement: Statement, level: int) -> str:
        number = f" {statement.number}" if statement.number else ""
        name = f"{escaped(statement.kind)}{number}" + (f". {words_html(statement.title)}" if statement.title else "")
        heading = f"h{min(level, 6)}"
        parts = [
            f'<section class="statement {statement.status}">',
            f"<{heading}>{span('name', name)} {badge(statement.status, MARKS[statement.status].word)}</{heading}>",
            f"<p>{words_html(statement.words)}</p>" if statement.words else "",
            _display(statement.formulas),
            self.parts(statement.where, level + 1),
            f"<p>Given: {'; '.join(words_html(given) for given in statement.given)}.</p>" if statement.given else "",
            self.parts(statement.parts, level + 1),
            "</section>",
        ]
        return "\n".join(part for part in parts if part)

    def fold(self, fold: Fold, level: int) -> str:
        kind = ' class="machines"' if fold.for_machines else ""
        inside = f'<div class="inside">\n{self.parts(fold.parts, level)}\n</div>'
        return f"<details{kind}>\n<summary>{words_html(fold.title)}</summary>\n{inside}\n</details>"

    def figure(self, figure: Figure, level: int) -> str:
        """The drawing, or where there is none what other media show."""
        anchor = self.anchor("figure")
        if figure.picture and not figure.lacking:
            drawing = inline_svg(figure.svg, legal(figure.alternative), f"{anchor}-")
        elif figure.formula is not None:
            drawing = _display([figure.formula])
        else:
            drawing = _source(Source(figure.text, "")) if figure.text else f"<p>{escaped(figure.alternative)}</p>"
        words = words_html(figure.told)
        caption = f"\n<figcaption>{words}</figcaption>" if words else ""
        return f'<figure id="{anchor}">\n{drawing}{caption}\n</figure>'


def _has_badge(step: Step) -> bool:
    """A definition says so by its relation."""
    return step.status not in (None, "defined")


def _is_long(left: Box, right: Iterable[Piece]) -> bool:
    """Whether a left side has a line of its own where the page is narrow, for itself or for what stands beside it."""
    own = width(left)
    return own > _LONG_LEFT or own + max(width(piece.box) for piece in right) > NARROW


def _right_width(step: Step) -> float:
    each = 0.0 if step.each is None else width(step.each) + 3
    return width(row(step.relation, step.right)) + each


# --- parts that need nothing of the page ---


def _paragraph(paragraph: Paragraph) -> str:
    head = f"<strong>{escaped(paragraph.head)}.</strong> " if paragraph.head else ""
    return f"<p>{head}{words_html(paragraph.words)}</p>"


def _display(formulas: Iterable[Box]) -> str:
    written = " ".join(span("formula", formula_html(formula)) for formula in formulas)
    return f'<div class="display">{written}</div>' if written else ""


def _list(items: Iterable[Words], kind: str) -> str:
    return f"<{kind}>{''.join(f'<li>{words_html(item)}</li>' for item in items)}</{kind}>"


def _table(table: Table, kind: str) -> str:
    """On a narrow page the head is gone, and each cell has its label with it."""
    first, *lines = padded(table)
    titles = [words_html(title) for title in first]
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    rows = ("".join(_cell(cell, title) for cell, title in zip(cells, titles, strict=True)) for cells in lines)
    body = "\n".join(f"<tr>{cells}</tr>" for cells in rows)
    above = f"<thead><tr>{head}</tr></thead>\n" if table.head else ""
    inside = f"{above}<tbody>\n{body}\n</tbody>"
    return f'<div class="scroll">\n<table class="{kind}">\n{inside}\n</table>\n</div>'


def _cell(words: Words, title: str) -> str:
    alone = len(words) == 1 and not isinstance(words[0], str)
    inside = span("formula", formula_html(words[0])) if alone else span("words", words_html(words))  # type: ignore[arg-type]
    label = f'<span class="label" aria-hidden="true">{title}</span>' if title else ""
    return f"<td>{label}{inside}</td>"


def _source(source: Source) -> str:
    return f'<pre tabindex="0"><code>{escaped(source.text)}</code></pre>'


_WRITERS: dict[type, Callable[[_Page, Any, int], str]] = {
    Paragraph: lambda page, part, level: _paragraph(part),
    Display: lambda page, part, level: _display(part.formulas),
    Items: lambda page, part, level: _list(part.items, "ol" if part.numbered else "ul"),
    Chain: _Page.chain,
    Statement: _Page.statement,
    Table: lambda page, part, level: _table(part, "cases"),
    Fold: _Page.fold,
    Source: lambda page, part, level: _source(part),
    Figure: _Page.figure,
}
