"""Pages as files, with their pictures beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import symattn as sa
from symattn.cli import main
from symattn.document.render.files import files, with_pictures
from symattn.printing.prose import Document, Figure, Fold, Paragraph, Section

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M0 0L1 1" stroke="currentColor"/></svg>'


class Drawn:
    lacking = ""

    def svg(self) -> str:
        return SVG

    def pdf(self) -> bytes:
        return b"%PDF"


FLOW = sa.plot.flow(sa.let("L", sa.logsumexp(sa.tensor("z", "n"))))
PAGE = Document(
    title=("Pictures",),
    summary=(),
    tally=(),
    result=(),
    given=(),
    conventions=(),
    sections=(
        Section(
            ("One",),
            (
                Figure(Drawn(), "A [chart]", ("Said.",)),
                Fold(("More",), (Paragraph(("Words.",)), Figure(Drawn(), "B"), FLOW)),
            ),
        ),
    ),
)


def test_markdown_refers_to_drawings_that_are_seen_on_dark_pages():
    text, pictures = files(PAGE, "md", "page")
    assert [*pictures] == ["page-picture-1.svg", "page-picture-2.svg", "page-picture-3.svg"]
    assert r"![A \[chart\]](page-picture-1.svg)" in text
    assert pictures["page-picture-1.svg"].startswith(SVG.partition(">")[0].encode() + b"><style>@media (prefers-color")


def test_latex_has_pictures_but_for_those_that_are_formulas():
    text, pictures = files(PAGE, "latex", "my page")
    assert pictures == {"my-20-page-picture-1.pdf": b"%PDF", "my-20-page-picture-2.pdf": b"%PDF"}
    assert text.count(r"\includegraphics") == 2
    assert r"\xrightarrow" in text


@pytest.mark.parametrize("to", ["html", "text", "json"])
def test_other_formats_hold_all_that_they_show(to):
    assert files(PAGE, to, "page")[1] == {}


def test_what_cannot_be_drawn_has_no_file(monkeypatch):
    monkeypatch.setattr(Drawn, "lacking", "a program")
    assert [*with_pictures(PAGE, "svg")[1]] == ["picture-1.svg"]
    assert with_pictures(replace(PAGE, sections=()), "pdf")[1] == {}
    for to in ("md", "latex", "html"):
        text, _ = files(PAGE, to, "page")
        left_out = " ".join(text.split()).count("picture is left out; it takes a program")
        assert (to, left_out) == (to, 2)


def test_derive_writes_pictures_beside_the_page(tmp_path, capsys):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import symattn as sa\nL = sa.let('L', sa.logsumexp(sa.tensor('z', 'n')))\n"
        "def derivation(): return sa.Derivation('A').extend(L).figure(sa.plot.flow(L))\n"
    )
    assert main(["derive", str(mine), "--to", "md", "-o", str(tmp_path / "page.md")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "page-picture-1.svg", "page.md"]
    assert "(page-picture-1.svg)" in (tmp_path / "page.md").read_text()
    assert main(["derive", str(mine), "--to", "md"]) == 0
    assert "picture-1" not in capsys.readouterr().out
