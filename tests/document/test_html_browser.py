"""Pages as Chromium shows them: on a telephone and a wide screen, light and dark, on paper, with every fold open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symattn.document.render.html import html

from ..browser import Browser, browser, needs_chromium
from .pages import EVERYTHING

pytestmark = [pytest.mark.browser, needs_chromium]

_MEASURE = Path(__file__).with_name("measured.js").read_text(encoding="utf-8")
_OPEN = "for (const fold of document.querySelectorAll('details')) fold.open = true;"
_SCREENS = [(width, dark) for width in (375, 720, 1280) for dark in (False, True)]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "everything.html"
    path.write_text(html(EVERYTHING), encoding="utf-8")
    return path


def _faults(found: dict[str, Any], *expected: str) -> dict[str, Any]:
    """What was found that was not expected."""
    return {kind: said for kind, said in found.items() if said and kind not in expected}


@pytest.mark.parametrize(("width", "dark"), _SCREENS)
def test_a_page_is_read_on_every_screen(chromium: Browser, page: Path, width: int, dark: bool) -> None:
    chromium.show(page, width, dark)
    chromium.run(_OPEN)
    found = chromium.run(_MEASURE)
    assert _faults(found, "scrolled") == {}
    wide = [said for said in found["scrolled"] if "0.123" not in said]
    assert wide == []
    assert chromium.said == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_is_read_on_paper(chromium: Browser, page: Path, dark: bool) -> None:
    chromium.show(page, 672, dark, printed=True)
    assert _faults(chromium.run(_MEASURE)) == {}
    grounds = "return ['html', 'article'].map((name) => getComputedStyle(document.querySelector(name)).backgroundColor)"
    assert chromium.run(grounds) == ["rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"]


def test_a_closed_fold_is_hidden_on_a_screen(chromium: Browser, page: Path) -> None:
    chromium.show(page, 1280)
    assert len(chromium.run(_MEASURE)["hidden"]) == 2


def test_badges_differ_in_glyph_word_and_border(chromium: Browser, page: Path) -> None:
    chromium.show(page, 1280)
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
    around = (
        "<!doctype html><title>n</title><body><h1 class=around>x</h1><table class=around><tr><td class=around>y</table>"
    )
    alone, beside = tmp_path / "alone.html", tmp_path / "beside.html"
    alone.write_text(around)
    beside.write_text(around + html(EVERYTHING, standalone=False))
    chromium.show(alone, 1280, dark=True)
    before = chromium.run(_LOOKS)
    chromium.show(beside, 1280, dark=True)
    assert chromium.run(_LOOKS) == before
    assert _faults(chromium.run(_OPEN + _MEASURE), "scrolled") == {}
