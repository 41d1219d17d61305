"""MathML of the golden formulas and of random ones has the words that math-core finds in their LaTeX."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from math_core import LatexToMathML

from symattn.core.boxes import Name
from symattn.printing.media.latex import latex
from symattn.printing.media.mathml import mathml
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.spelling import LETTERS, SIGNS, STRUT

from ..golden_formulas import golden_formulas
from ..random_boxes import formulas

GOLDEN = golden_formulas()
CONVERTER = LatexToMathML()
UNREAD = ("$", r"\surd", r"\widetilde")  # words with mathematics in them, and what math-core draws or knows otherwise
KINDS = ("relation", "sum", "product", "prefix", "punctuation", "large", "ordinary")  # all but those of fences
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
    plain = unicodedata.normalize("NFKD", "".join(Words(page).found).replace("≔", ":="))
    seen = (c for c in plain if not c.isspace() and unicodedata.category(c) not in ("Cf", "Mn"))
    return "".join(c for c in seen if c not in ACCENTS)


def oracle(source: str) -> str:
    seen = source.replace(rf"\vphantom{STRUT}", "")  # which it does not know
    return words(CONVERTER.convert_with_local_state(seen, displaystyle=True))


@pytest.mark.parametrize("file", GOLDEN)
def test_golden_formulas(file):
    for formula in GOLDEN[file]:
        written = mathml(box_of_latex(formula))
        ElementTree.fromstring(written)
        assert "\\" not in written
        assert words(written) == oracle(formula)


def test_every_letter_and_sign_is_the_one_that_latex_has():
    spelled = [*LETTERS.items(), *(pair for kind, marks in SIGNS.items() if kind in KINDS for pair in marks.items())]
    wrong = [word for mark, word in spelled if oracle(word) != words(mathml(Name(mark))) and word not in UNREAD]
    assert not wrong


@given(formulas)
def test_random_formulas(box):
    source = latex(box)
    assume(not any(word in source for word in UNREAD))
    assert words(mathml(box)) == oracle(source)
