"""LaTeX that is safe for GitHub: Markdown leaves it as it is, and KaTeX (strict) and MathJax read it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest
import sympy
from hypothesis import given, settings

import symattn as sa
from symattn.core.boxes import Box, Code, Fence, Fraction, Name, Number, Root, Row, Script, Sign, Text, function, row
from symattn.errors import OperandError
from symattn.printing.media.latex import latex
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.media.spelling import ACCENTS, FONTS, LETTERS, SIGNS

from ..golden_formulas import golden_formulas
from ..random_boxes import formulas

HERE = Path(__file__).parent / "github"
needs_readers = pytest.mark.skipif(
    shutil.which("node") is None or not (HERE / "node_modules").is_dir(),
    reason="needs node, KaTeX, MathJax and CommonMark: npm install --prefix tests/printing/github --no-package-lock",
)
GOLDEN = golden_formulas()


def complaints(written: Iterable[str], readers: Collection[str] = ("KaTeX", "MathJax", "Markdown")) -> dict[str, str]:
    """What KaTeX and MathJax say against formulas, and what Markdown makes of them."""
    every = [*dict.fromkeys(filter(None, written))]
    command = ["node", str(HERE / "parse.mjs")]
    run = subprocess.run(command, input=json.dumps(every), capture_output=True, text=True, check=True)
    said = zip(every, json.loads(run.stdout), strict=True)
    against = ((formula, reader, found[reader]) for formula, found in said for reader in readers)
    return {formula: f"{reader}: {problem}" for formula, reader, problem in against if problem}


def shown(pages: Iterable[str]) -> list[list[str]]:
    """The words of each block of Markdown pages."""
    command = ["node", str(HERE / "parse.mjs")]
    asked = json.dumps([{"markdown": text} for text in pages])
    found: list[list[str]] = json.loads(
        subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    )
    return found


READERS = {"": ("KaTeX", "MathJax"), "github": ("KaTeX", "MathJax", "Markdown")}


def without_code(boxes: Iterable[Box]) -> list[Box]:
    """Those that hold no LaTeX that symattn does not know, and passes on."""
    return [box for box in boxes if not holds_code(box)]


def holds_code(box: Box) -> bool:
    pending = [box]
    while pending:
        box = pending.pop()
        if isinstance(box, Code):
            return True
        pending += box.kids
    return False


def eaten(written: str) -> list[str]:
    """What Markdown would eat of a formula: a backslash before a mark, and marks of its own."""
    found = [mark for mark in ("<", ">", "*", "`", "|", "operatorname") if mark in written]
    for before, mark, after in zip(" " + written, written, written[1:] + " ", strict=False):
        if before == "\\" and not mark.isalpha():
            found.append(before + mark)
        if mark == "_" and not before.isalnum() and after != " ":
            found.append(before + mark)
    return found


x, y, W = Name("x"), Name("y"), Name("W")
SAFE = {
    "a function": (row(function("softmax"), Fence(x)), r"\mathrm{softmax}(x)"),
    "a function without a fence": (row(function("rowsum"), x), r"\mathrm{rowsum} \thinspace x"),
    "a function with a name of two words": (function("row_sum"), r"\mathrm{row\underline{\enspace}sum}"),
    "a known function": (row(function("log"), Fence(x)), r"\log(x)"),
    "braces": (Fence(x, "{", "}"), r"\lbrace x \rbrace"),
    "brackets": (Fence(Fraction(x, y), "[", "]"), r"\left\lbrack \frac{x}{y} \right\rbrack"),
    "a norm": (Script(Fence(x, "‖", "‖"), Number("2")), r"\lVert x \rVert_{2}"),
    "less": (row(x, Sign("<", "relation"), y), r"x \lt y"),
    "by definition": (row(x, Sign("≔", "relation"), y), r"x \mathrel{:=} y"),
    "a subscript behind a mark": (Script(Name("A", "bold"), x), r"\mathbf{A} _ {x}"),
    "a subscript": (Script(W, x), "W_{x}"),
    "words": (Text("if a_1 < 2"), r"\text{if a}\underline{\enspace}\text{1 }{\lt}\text{ 2}"),
    "an unusual large sign": (Script(Sign("argmax", "large"), x), r"\mathop{\mathrm{argmax}}\limits_{x}"),
    "a root of a degree": (Root(x, row(Name("n"), Sign("+", "sum"), y)), r"\sqrt[{n + y}]{x}"),
    "two rows": (box_of_latex(r"\begin{bmatrix} x \\ y \end{bmatrix}"), r"\begin{bmatrix} x \cr y \end{bmatrix}"),
    "a thin space": (box_of_latex(r"x \, y \; W"), r"x \thinspace y \thinspace W"),
}


@pytest.mark.parametrize("case", SAFE)
def test_what_is_safe(case):
    box, written = SAFE[case]
    assert latex(box, safe="github") == written


@given(formulas)
def test_random_formulas_hold_nothing_that_markdown_eats(box):
    assert not eaten(latex(box, safe="github"))


@pytest.mark.parametrize("file", GOLDEN)
def test_golden_formulas_hold_nothing_that_markdown_eats(file):
    for box in without_code(map(box_of_latex, GOLDEN[file])):
        assert not eaten(latex(box, safe="github"))


T, d = sa.sizes("T d")
Q = sa.tensor("Q", T, d)
GRADIENT = sa.gradient(sa.softmax(Q @ Q.T / sympy.sqrt(d)) @ Q, Q)


@pytest.mark.parametrize("safe", ["gitlab", None, True, ["github"]])
@pytest.mark.parametrize("printed", [Q, T / d, GRADIENT, sa.prove(Q, Q)], ids=["tensor", "scalar", "gradient", "proof"])
def test_another_safety_is_refused(printed, safe):
    with pytest.raises(OperandError, match='safe= is "" or "github", for what GitHub shows, not '):
        sa.latex(printed, safe=safe)


def test_what_is_not_written_from_boxes_alone_is_not_called_safe():
    with pytest.raises(OperandError, match="safe= is for tensors, scalars and gradients, not for"):
        sa.latex(sa.prove(Q, Q), safe="github")


def test_tensors_scalars_and_gradients_are_written_safely():
    assert sa.latex(sa.softmax(Q), safe="github") == r"\mathrm{softmax}(Q)"
    assert sa.latex(sa.softmax(Q)[0, 1], safe="github") == r"\mathrm{softmax}(Q) _ {0 1}"
    assert sa.latex(T / d, safe="github") == r"\frac{T}{d}"
    assert sa.latex([T, sa.softmax(Q)], safe="github") == r"\lbrack T, \mathrm{softmax}(Q) \rbrack"
    block = sa.latex(GRADIENT, safe="github")
    assert block == GRADIENT.latex(safe="github")
    assert GRADIENT.latex(safe="github", width=60).count(r" \cr") == len(GRADIENT.lines()) - 1
    assert not eaten(block)


@needs_readers
@pytest.mark.node
@pytest.mark.parametrize("safe", ["", "github"])
def test_every_spelling_is_read(safe):
    names = [Name(letter, style) for letter in [*"AbZ", *LETTERS] for style in FONTS]
    signs = [Sign(mark, kind) for kind, marks in SIGNS.items() for mark in marks if kind not in ("opening", "closing")]
    accents = [box_of_latex(word + base) for word in ACCENTS.values() for base in ("{x}", "{xy}")]
    large = Script(Sign("argmax", "large"), x)
    assert not complaints((latex(Row((x, box, y)), safe) for box in [*names, *signs, *accents, large]), READERS[safe])


@needs_readers
@pytest.mark.node
@pytest.mark.parametrize("safe", ["", "github"])
def test_golden_formulas_are_read(safe):
    every = [box for found in GOLDEN.values() for box in without_code(map(box_of_latex, found))]
    assert len(every) > 1000
    assert not complaints((latex(box, safe) for box in every), READERS[safe])


@needs_readers
@pytest.mark.node
def test_random_formulas_are_read():
    written = []

    @settings(max_examples=500)
    @given(formulas)
    def collect(box):
        written.append(latex(box, safe="github"))

    collect()
    assert not complaints(written)


@needs_readers
@pytest.mark.node
@pytest.mark.parametrize("environment", ["align", "align*", "gather*", "aligned"])
def test_blocks_are_read(environment):
    blocks = [
        GRADIENT.latex(environment=environment, width=width, style=style, safe="github")
        for width in (20, 27, 34.5)
        for style in ("matrix", "index")
    ]
    assert not any(eaten(block.replace(f"{{{environment}}}", "")) for block in blocks)
    assert not complaints(blocks)


@needs_readers
@pytest.mark.node
def test_the_readers_refuse_what_is_wrong():
    assert complaints([r"\foo", r"\frac{a}", "x"]).keys() == {r"\foo", r"\frac{a}"}
    assert complaints([r"\{ x \}", r"\mathbf{A}_{x}", r"\mathbf{A} _ {x}"]).keys() == {r"\{ x \}", r"\mathbf{A}_{x}"}
