"""A page in HTML: well-formed, complete, escaped, and loading nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import get_args
from xml.etree import ElementTree

import pytest

from symattn.core.boxes import Code, Name, Text
from symattn.document.render.html import html
from symattn.document.render.html_words import pieces_of
from symattn.errors import OperandError
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.unicode import unicode_text
from symattn.printing.prose import (
    MARKS,
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
    Words,
)

from .everything import CLAIM, EVERYTHING, SVG
from .handmade import words

_VOID = {"meta", "br", "wbr", "hr", "img", "link", "input"}
_LOADING = {"src", "srcset", "poster", "data", "action", "formaction", "background", "srcdoc"}


class _Page(HTMLParser):
    """What a page holds; tags that are not closed in order are an error."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.said: list[tuple[str, str]] = []  # words, and the tag that they stand in
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said.append((data, next((tag for tag in ("style", "code", "title") if tag in self.open), "")))

    def text(self, where: str = "") -> str:
        return "".join(data for data, tag in self.said if tag == where)

    def values(self, attribute: str) -> list[str]:
        return [given[attribute] for _, given in self.tags if attribute in given]


def _maths(page: str) -> Iterator[str]:
    for piece in page.split("<math ")[1:]:
        yield f"<math {piece.partition('</math>')[0]}</math>"


def _titled(title: Words) -> Document:
    """A document that says the same wherever words may stand."""
    part = (
        Paragraph(title),
        Items((title,)),
        Fold(title, (Source("".join(map(str, title))),)),
        Figure(SVG, "x", title),
    )
    given = (Given(Name("Q"), title, title),)
    return Document(title, title, (), part, given, title, (Section(title, part), Section(title, ())), (title,))


PAGE = html(EVERYTHING)


def test_a_page_is_well_formed_and_has_every_part_in_order() -> None:
    page = _Page(PAGE)
    assert len(list(_maths(PAGE))) > 50
    for math in _maths(PAGE):
        ElementTree.fromstring(math)
    headings = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3", "h4")]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    said = page.text()
    for mark in MARKS.values():
        assert f"{mark.glyph} {mark.word}: {mark.meaning}." in said
    assert page.text("title") == "Why scores are divided by √d"


def test_nothing_is_loaded_and_no_tex_is_left() -> None:
    page = _Page(PAGE)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "iframe", "img", "link", "object", "embed", "base"}
    assert not {name for _, given in page.tags for name in given} & _LOADING
    assert all(link.startswith("#") for link in page.values("href"))
    assert "@import" not in page.text("style")
    assert "url(" not in page.text("style")
    assert not set(page.text()) & set("\\$")
    assert "if a < b & c: '\\n'" in page.text("code")


def test_anchors_are_there_once_and_links_lead_to_them() -> None:
    page = _Page(PAGE)
    anchors = page.values("id")
    assert len(set(anchors)) == len(anchors)
    assert {link[1:] for link in page.values("href")} <= set(anchors)
    assert {"forward", "backward", "backward-2", "for-machines", "step-7"} <= set(anchors)


def test_a_paragraph_has_its_head_in_its_line() -> None:
    page = html(replace(EVERYTHING, sections=(Section(("A",), (Paragraph(("It is <given>.",), "Proof"),)),)))
    assert "<p><strong>Proof.</strong> It is &lt;given&gt;.</p>" in page


def test_a_notebook_has_the_article_alone() -> None:
    page = html(EVERYTHING, standalone=False)
    assert page.startswith("<style>")
    assert page.rstrip().endswith("</article>")
    article = page[page.index("<article") :].rstrip()
    assert article in PAGE
    style = page.partition("</style>")[0]
    selectors = [line for line in style.splitlines() if line[:1] not in ("", " ", "}", "/", "@", "<")]
    assert selectors
    assert all(".symattn" in selector for selector in selectors)


def test_the_page_of_an_empty_document_is_a_page() -> None:
    page = _Page(html(Document((), (), (), (), (), (), ())))
    assert page.values("lang") == ["en", "en"]
    assert [tag for tag, _ in page.tags if tag in ("section", "footer", "ul", "p")] == []


def test_a_section_without_a_title_has_no_heading_and_no_empty_column_stands() -> None:
    parts = (Paragraph(("words",)), CLAIM)
    page = _Page(
        html(replace(EVERYTHING, result=(), given=(Given(Name("Q"), ("a",)),), sections=(Section((), parts),)))
    )
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2", "h3")] == ["h1", "h2", "h2", "h3", "h2"]
    assert "Meaning" not in page.text()


def test_what_touches_a_formula_stays_with_it_and_a_long_formula_breaks() -> None:
    long = " + ".join(["A"] * 20)
    page = html(
        replace(EVERYTHING, summary=words(f"is ($x$), $y$-th of $z$, thus_and_further$z$ or $B = {long}$. $\\odot$"))
    )
    summary = page.partition('<p class="summary">')[2].partition("</p>")[0]
    x, y, z = (f'<math display="inline"><mi>{name}</mi></math>' for name in "xyz")
    whole = '<span class="whole">{}</span>'.format
    assert summary.startswith(f"is {whole(f'({x}),')} {whole(f'{y}-th')} of {whole(f'{z},')} thus_and_further{z} or ")
    assert summary.count("<wbr>") >= 3
    assert summary.endswith('.</span> <math display="inline"><mi mathvariant="normal">⊙</mi></math>')


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></title>&amp;<!--",
    "a\x00\x1b\ud800\uffff\x85b",
    "]]>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_people_write_stays_text(text: str) -> None:
    plain = _Page(html(_titled(("x",))))
    shown = "".join("\ufffd" if c in "\x00\x1b\ud800\uffff\x85" else c for c in text)
    for box in (Name(text), Text(text), Code(text), text):
        written = html(_titled((box,)))
        written.encode()
        page = _Page(written)
        assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags} | {"math", "mi", "mtext", "mrow", "mo"}
        if isinstance(box, str):
            assert page.text().count(shown) >= 12
            assert shown in page.text("code")
    command = _Page(html(replace(EVERYTHING, command=text)))
    assert command.text("code").endswith(shown)


def test_an_alternative_text_is_what_a_drawing_is_called() -> None:
    (drawing,) = [given for tag, given in _Page(PAGE).tags if tag == "svg"]
    assert drawing["aria-label"] == 'Flow of "attention"'
    assert drawing["role"] == "img"


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<path onload="alert(1)"/>',
        '<image href="http://example.org/a.png"/>',
        '<use xlink:href="other.svg#a"/>',
        '<path style="fill: url(http://example.org/a)"/>',
        '<style>path { fill: url("http://example.org/a") }</style>',
        "<style>@IMPORT 'http://example.org/a.css';</style>",
        '<path style="fill: u\\72l(http://example.org/a)"/>',
        '<a href="javascript:alert(1)"><text>x</text></a>',
        '<foreignObject><iframe src="x"/></foreignObject>',
        "<metadata>http://example.org</metadata>",
        '<set attributeName="href" to="javascript:alert(1)"/>',
        "<!-- http://example.org -->",
    ],
)
def test_a_drawing_brings_nothing_from_elsewhere(inside: str) -> None:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{inside}</svg>'
    page = html(replace(EVERYTHING, result=(Figure(svg, "x"),)))
    _Page(page)
    assert not [word for word in ("example.org", "alert", "iframe", "other.svg") if word in page]


def test_the_names_of_a_drawing_are_its_own_and_what_is_black_is_on_white() -> None:
    inside = '<defs><clipPath id="a"/></defs><path clip-path="url(#a)" style="fill: url(#a)"/><use xlink:href="#a"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">{inside}</svg>'
    page = _Page(html(replace(EVERYTHING, result=(Figure(svg, "x"), Figure(svg, "\x00")))))
    drawings = [given for tag, given in page.tags if tag == "svg"]
    assert [given["aria-label"] for given in drawings] == ["x", "\ufffd", 'Flow of "attention"']
    assert [given.get("class") for given in drawings] == ["paper", "paper", None]
    for prefix in ("figure-", "figure-2-"):
        assert {f"{prefix}a"} <= set(page.values("id"))
        assert f"url(#{prefix}a)" in page.values("clip-path")
        assert f"fill: url(#{prefix}a)" in page.values("style")
        assert f"#{prefix}a" in page.values("href")


@pytest.mark.parametrize("svg", ["<svg", "a drawing", "<p/>"])
def test_what_is_no_drawing_is_refused(svg: str) -> None:
    with pytest.raises(OperandError, match=r"^a figure takes a drawing in SVG, and this is"):
        html(replace(EVERYTHING, result=(Figure(svg, "x"),)))


def test_every_kind_of_part_is_on_the_page_of_everything() -> None:
    def kinds(parts: tuple[Part, ...]) -> set[type]:
        inside = (kinds(part.parts) for part in parts if isinstance(part, (Fold, Statement)))
        return {type(part) for part in parts}.union(*inside)

    found = kinds(EVERYTHING.result).union(*(kinds(section.parts) for section in EVERYTHING.sections))
    assert found == set(get_args(Part))


_WIDE = r"(A - B \mathbf{1}^\top) \odot (C D^\top - E \mathbf{1}^\top) F"


@pytest.mark.parametrize(
    ("formula", "pieces"),
    [
        (r"\cos(x - y) = \cos x \cos y + \sin x \sin y", ["cos(x − y)", "= cos x cos y", "+ sin x sin y"]),
        (
            r"Y + f\left(\operatorname{softmax}\left(\frac{X W X^\top}{\sqrt{d}}\right) (X + Y + Z)\right)",
            ["Y", "+ f(softmax(X W Xᵀ / √d)", "(X + Y + Z))"],
        ),
        (
            r"\sum_k \sum_l \sum_m \sum_p A_{ik} B_{kl} C_{lm} D_{mp} E_{pj} F_{kl}",
            ["∑ₖ ∑ₗ ∑ₘ ∑ₚ Aᵢₖ Bₖₗ", "Cₗₘ Dₘₚ Eₚⱼ Fₖₗ"],
        ),
        (rf"X + \frac{{{_WIDE}}}{{\sqrt{{d}}}}", ["X + (A − B 𝟏ᵀ)", "⊙ (C Dᵀ − E 𝟏ᵀ) F/√d"]),
        (rf"\frac{{{_WIDE}}}{{\sqrt{{d}}}} G", ["(((A − B 𝟏ᵀ) ⊙ (C Dᵀ − E 𝟏ᵀ) F) / √d) G"]),  # of which it is a factor
        (r"\frac{A + B + C + D + E + F + G + H}{x + y}", ["(A + B + C + D + E", "+ F + G + H)/(x + y)"]),
        ("A B C D", ["A B C D"]),
    ],
)
def test_a_telephone_has_a_place_to_break_what_is_wide(formula, pieces):
    assert [unicode_text(part.box) for part in pieces_of(box_of_latex(formula))] == pieces
