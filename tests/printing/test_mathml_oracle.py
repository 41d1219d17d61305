"""MathML of the golden formulas and of random ones has the words that math-core finds in their LaTeX."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from math_core import LatexToMathML

from symattn.printing.media.latex import latex
from symattn.printing.media.mathml import mathml
from symattn.printing.media.read_latex import box_of_latex

from ..golden_formulas import golden_formulas
from ..random_boxes import formulas

GOLDEN = golden_formulas()
CONVERTER = LatexToMathML()
ACCENTS = "^~ˆ˜‾¯˙¨→ˇ˘´ˋ`_"  # which each draws by characters of its own


class Words(HTMLParser):
    """The text of a page, without markup."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def words(page: str) -> str:
    """What a reader sees: no spaces, no invisible operators, no accents, and letters without their fonts."""
    plain = unicodedata.normalize("NFKC", "".join(Words(page).found))
    seen = (c for c in plain if not c.isspace() and unicodedata.category(c) not in ("Cf", "Mn"))
    return "".join(c for c in seen if c not in ACCENTS)


def oracle(source: str) -> str:
    return words(CONVERTER.convert_with_local_state(source, displaystyle=True))


@pytest.mark.parametrize("file", GOLDEN)
def test_golden_formulas(file):
    for formula in GOLDEN[file]:
        written = mathml(box_of_latex(formula))
        ElementTree.fromstring(written)
        assert "\\" not in written
        assert words(written) == oracle(formula)


@given(formulas)
def test_random_formulas(box):
    source = latex(box)
    assume("$" not in source)  # which math-core does not read within words
    assert words(mathml(box)) == oracle(source)
