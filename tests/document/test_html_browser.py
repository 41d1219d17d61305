"""Pages as Chromium shows them: on a telephone and a wide screen, light and dark, on paper, with every fold open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symattn.cli.build import documented
from symattn.core.boxes import Name
from symattn.document.render.html import html
from symattn.document.render.site import Entry, index
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.prose import Chain, Display, Paragraph, Section, Step

from ..browser import Browser, browser, needs_chromium
from ..golden_formulas import golden_formulas
from ..shipped import FILES, shipped
from .everything import EVERYTHING
from .handmade import NAMES
from .handmade import page as handmade_page

pytestmark = [pytest.mark.browser, needs_chromium]

_MEASURE = Path(__file__).with_name("measured.js").read_text(encoding="utf-8")
_OPEN = "for (const fold of document.querySelectorAll('details')) fold.open = true;"
_UNBREAKABLE = {375: 0.1, 720: 0.05, 1280: 0.0}  # the share of formulas that are moved within their row, by width
_FORMULAS = "return document.querySelectorAll('.formula, .right').length"
_SCREENS = [(width, dark) for width in _UNBREAKABLE for dark in (False, True)]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of everything, those by hand, and those of the derivations that come with symattn, with their index."""
    documents = {"everything": EVERYTHING, **{name: handmade_page(name) for name in NAMES}}
    for file in FILES:
        derivation = shipped(file.stem)
        derivation.verify()
        documents[file.stem] = derivation.composed()
    written = {name: html(document) for name, document in documents.items()}
    entries = [Entry(name, page.title, page.summary, page.tally, [f"{name}.html"]) for name, page in documents.items()]
    written["index"] = index(entries)
    folder = tmp_path_factory.mktemp("pages")
    for name, page in written.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in written}


def _faults(found: dict[str, Any], *expected: str) -> dict[str, Any]:
    """What was found that was not expected."""
    return {kind: said for kind, said in found.items() if said and kind not in expected}


@pytest.mark.parametrize(("width", "dark"), _SCREENS)
def test_pages_are_read_on_every_screen(chromium: Browser, pages: dict[str, Path], width: int, dark: bool) -> None:
    for name, page in pages.items():
        chromium.show(page, width, dark)
        chromium.run(_OPEN)
        found = chromium.run(_MEASURE)
        found["scrolled"] = [said for said in found["scrolled"] if not said.startswith("pre.")]
        assert _faults(found, "unbreakable") == {}, name
        assert len(found["unbreakable"]) <= _UNBREAKABLE[width] * chromium.run(_FORMULAS), name
    assert chromium.said == []


def test_every_printed_formula_has_its_place(chromium: Browser, tmp_path: Path) -> None:
    """What cannot be broken, a matrix or a fraction, is moved within its row where the page is narrower."""
    known = dict.fromkeys(formula for formulas in golden_formulas().values() for formula in formulas)
    boxes = [box_of_latex(formula) for formula in [*known][::4]]
    steps = tuple(Step(Name("A"), box, ("why it is so",), status="proved") for box in boxes)
    words = tuple(Paragraph(("Where ", box, ", it is so.")) for box in boxes)
    parts = (*(Chain(steps[k : k + 9]) for k in range(0, len(steps), 9)), *words, *(Display((box,)) for box in boxes))
    path = tmp_path / "formulas.html"
    path.write_text(html(replace(EVERYTHING, sections=(Section(("All",), parts),))), encoding="utf-8")
    for width, share in ((375, 0.05), (1280, 0.002)):
        chromium.show(path, width)
        found = chromium.run(_MEASURE)
        assert _faults(found, "unbreakable") == {}
        assert len(found["unbreakable"]) < share * 3 * len(boxes)


def test_the_guide_and_the_reference_are_read_on_every_screen_and_on_paper(chromium: Browser, tmp_path: Path) -> None:
    """LaTeX that they speak of stands there as it is typed; blocks of code may be moved."""
    (tmp_path / "docs").mkdir()
    for name, page in documented().items():
        (tmp_path / name).write_bytes(page)
        for width, dark, printed in ((375, False, False), (1280, True, False), (672, False, True)):
            chromium.show(tmp_path / name, width, dark, printed)
            found = chromium.run(_MEASURE)
            found["scrolled"] = [said for said in found["scrolled"] if not said.startswith("pre.")]
            assert _faults(found, "tex") == {}, name
    assert chromium.said == []


@pytest.mark.parametrize("dark", [False, True])
def test_pages_are_read_on_paper(chromium: Browser, pages: dict[str, Path], dark: bool) -> None:
    for name, page in pages.items():
        chromium.show(page, 672, dark, printed=True)
        assert _faults(chromium.run(_MEASURE)) == {}, name
        grounds = (
            "return ['html', 'article'].map((one) => getComputedStyle(document.querySelector(one)).backgroundColor)"
        )
        assert chromium.run(grounds) == ["rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"]


def test_what_is_for_machines_is_left_out_on_paper(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.show(pages["everything"], 672, printed=True)
    unseen = "return [...document.querySelectorAll('h2, summary')].filter((one) => !one.checkVisibility())"
    assert chromium.run(f"{unseen}.map((one) => one.textContent)") == ["For machines", "NumPy"]


def test_a_closed_fold_is_hidden_on_a_screen(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.show(pages["everything"], 1280)
    assert len(chromium.run(_MEASURE)["hidden"]) == 1


def test_badges_differ_in_glyph_word_and_border(chromium: Browser, pages: dict[str, Path]) -> None:
    chromium.show(pages["everything"], 1280)
    badges = chromium.run(
        """return [...document.querySelectorAll(".tally .badge")].map((badge) => {
            const style = getComputedStyle(badge);
            return [badge.textContent, style.borderStyle + style.borderWidth + style.borderRadius];
        });"""
    )
    assert len({border for _, border in badges}) == len(badges)
    assert len({words.split(" ", 2)[2] for words, _ in badges}) == len(badges)


_LOOKS = """
    const asked = ["color", "backgroundColor", "font", "margin", "padding", "border", "textAlign", "display"];
    const looks = (element) => asked.map((name) => getComputedStyle(element)[name]);
    return [...document.querySelectorAll("body, .around")].map(looks);
"""


def test_an_article_leaves_a_notebook_as_it_is(chromium: Browser, tmp_path: Path) -> None:
    around = "<!doctype html><title>n</title><h1 class=around>x</h1><table class=around><tr><td class=around>y</table>"
    alone, beside = tmp_path / "alone.html", tmp_path / "beside.html"
    alone.write_text(around)
    beside.write_text(around + html(EVERYTHING, standalone=False))
    chromium.show(alone, 1280, dark=True)
    before = chromium.run(_LOOKS)
    chromium.show(beside, 1280, dark=True)
    assert chromium.run(_LOOKS) == before


_NOTEBOOK = """<!doctype html><title>n</title><style>
    .cell :is(td, th) { text-align: right; font-size: 5px; } .cell tbody tr:nth-child(odd) { background: #777; }
    .cell a:link { color: #777; } .cell code { background: #777; } .cell ol { padding-left: 9em; }
</style><body data-jp-theme-light="LIGHT"><div class="cell">"""


@pytest.mark.parametrize("light", ["true", "false"])
def test_a_notebook_leaves_an_article_as_it_is(chromium: Browser, tmp_path: Path, light: str) -> None:
    path = tmp_path / "notebook.html"
    path.write_text(_NOTEBOOK.replace("LIGHT", light) + html(EVERYTHING, standalone=False))
    chromium.show(path, 1280, dark=light == "true")
    assert _faults(chromium.run(_OPEN + _MEASURE)) == {}
    ground = "const ground = getComputedStyle(document.querySelector('article')).backgroundColor;"
    assert chromium.run(f"{ground} return Number(ground.match(/[0-9]+/)) > 128") == (light == "true")
