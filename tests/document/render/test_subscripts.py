"""Subscripts on a page of text are of one kind at each symbol."""

from __future__ import annotations

from symattn.core.boxes import Accent, Box, Name, Script, Sign, row
from symattn.document.render.subscripts import evened
from symattn.printing.media.unicode import unicode_text
from symattn.printing.prose import Display, Document, Paragraph, Section

W, P, i, j, k, q = map(Name, "WPijkq")


def page(*parts: Display | Paragraph) -> Document:
    return Document((), (), (), (), (), (), (Section((), parts),))


def test_a_page_writes_the_subscripts_of_a_symbol_in_one_way() -> None:
    """There is no small q; an accent leaves a symbol what it is, and entries are no names."""
    several = (Script(W, q), Script(W, row(i, j)), Script(Accent(W, "^"), k), Script(P, k))
    document = page(Display((row(*several, Sign("∑", "large")),)), Paragraph(("by ", Script(W, k))))
    display, paragraph = evened(document).sections[0].parts
    assert isinstance(display, Display)
    assert isinstance(paragraph, Paragraph)
    assert unicode_text(display.formulas[0]) == "W_q Wᵢⱼ Ŵ_k Pₖ ∑"
    assert paragraph.words[0] == "by "
    assert isinstance(shown := paragraph.words[1], Box)
    assert unicode_text(shown) == "W_k"


def test_a_page_whose_names_can_all_be_small_stays_as_it_is() -> None:
    document = page(Display((row(Script(W, k), Script(W, row(i, Sign(",", "punctuation"), j))),)))
    assert evened(document) is document
