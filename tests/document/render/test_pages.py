"""Pages in LaTeX and Markdown: what they look like, and that TeX and Markdown read of any words what they say.

``python -m tests.document.render.test_pages`` writes the golden files, to be read by eye.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import symattn
from symattn.core.boxes import Box, Fence, Fraction, Name, Number, Sign, row
from symattn.document.render.latex import latex
from symattn.document.render.markdown import markdown
from symattn.document.render.pdf import pdf
from symattn.errors import FileError, OperandError, TypesettingError
from symattn.printing.prose import (
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
)

from ...printing.test_github import complaints, eaten, needs_readers, shown
from ...shipped import shipped
from ...typeset import compiled, needs_pdflatex
from ..handmade import NAMES, PAGES, SVG, page

WRITERS: dict[str, Callable[[Document], str]] = {"tex": latex, "md": markdown}
DERIVATIONS = sorted(file.stem for file in (Path(symattn.__file__).parents[1] / "derivations").glob("[!_]*.py"))
HOSTILE = (
    r"a\b {c} $d$ 100% #1 e&f g_h i^j ~k |l| <m> *n* [o](p) `q` **r** ``s``",
    "two\nlines\tand\u00a0a\u200b space, \x07 a bell",
    "μP, √d, x ≤ y, naïve Ærø, Łódź, “quotes” – and — dashes…",
    "an emoji 😀, 中文, Ελλάδα, العربية, ﬁ",
    r"\input{/etc/passwd} \end{document} \write18{ls} \( x \) \[ y \] ^^M ]] --- <script>alert(1)</script> </b> &amp;",
    "- no list",
    "1. no number",
    "# no title",
    "> no quotation",
    "+ -- ```no code",
)
x, EQUALS, PLUS = Name("x"), Sign("=", "relation"), Sign("+", "sum")


@pytest.mark.parametrize(("name", "medium"), [*product(NAMES, WRITERS)])
def test_pages_look_as_they_did(name: str, medium: str) -> None:
    assert WRITERS[medium](page(name)) == (PAGES / f"{name}.{medium}").read_text()


# --- pages of anything ---


def sum_of(terms: int) -> Box:
    return row(*[part for _ in range(terms) for part in (x, PLUS)][:-1])


def document(*parts: Part, title: Words = ("Title",), command: str = "symattn verify title") -> Document:
    tally = (("proved", 1), ("numeric", 2), ("unverified", 3))
    given = (Given(x, (Name("R", "blackboard"), ", positive"), title), Given(Name("y"), ("somewhere",)))
    return Document(title, title, tally, parts[:1], given, title, (Section(title, parts),), (title,), command)


def everything(words: Words) -> Document:
    """A page with these words in every place."""
    chain = Chain((Step(x, x, words, status="proved", detail=words), Step(None, x, words, status="assumed")))
    code = Source("\n".join(map(str, words)) + "\n" + r"\end{verbatim}" + "z" * 200)
    inside: tuple[Part, ...] = (Paragraph(words), chain, Items((words, words), numbered=True), code)
    figures = (
        Figure(SVG, str(words[0]), words),
        Figure(SVG, "", words, text=str(words[-1])),
        Figure(SVG, "", formula=x),
    )
    return document(
        *inside,
        *(
            Statement(kind, 1, words, "proved", (x,), words, (words,), (part,))
            for kind in ("Claim", "Lemma")
            for part in inside
        ),
        Statement("Claim", 2, words, "refuted", (), words),
        Statement("Theorem", 1, (), "numeric", (x,), parts=(chain,)),
        Fold(words, inside),
        Fold(words, inside, for_machines=True),
        Table((words, words), ((words, words), (words, ()))),
        *figures,
        title=words,
        command=" ".join(str(part) for part in words if isinstance(part, str)),
    )


WIDE = Fence(Fraction(sum_of(13), x))
WIDE_PARTS: list[tuple[Part, ...]] = [
    (Paragraph(("Here is ", row(x, EQUALS, sum_of(40)), ", and ", WIDE, "." + " word" * 20)),),
    (Display((sum_of(9), sum_of(9), WIDE, sum_of(3), sum_of(50))),),
    (Chain(tuple(Step(x, sum_of(n), ("since ", sum_of(m))) for n, m in product((3, 30), (2, 9, 25)))),),
    (Table((("a",), ("b " * 30,)), ((("long words " * 9,), ("more of them " * 12,)), ((x,), (x,)))),),
    (Table((("a",), ("b",), ("c",)), (((sum_of(12),), (WIDE,), (sum_of(9),)),)),),
    (Statement("Claim", 1, ("t",), "proved", (sum_of(60),), parts=(Display((sum_of(60),)),)),),
]
BAD = {"words": everything(HOSTILE), "wide": document(*(part for parts in WIDE_PARTS for part in parts))}
WAYS = {
    "a fragment": {},
    "an article": {"standalone": True},
    "theorems": {"standalone": True, "theorems": True, "width": 40},
    "numbers": {"environment": "align", "numbered": "all"},
    "no columns": {"environment": "gather*"},
    "blocks in displays": {"environment": "aligned"},
}


@pytest.mark.tex
@needs_pdflatex
@pytest.mark.parametrize("way", WAYS)
def test_every_page_fits(way: str, tmp_path: Path) -> None:
    for name, each in {**{name: page(name) for name in NAMES}, **BAD}.items():
        text = latex(each, **WAYS[way])  # type: ignore[arg-type]
        said = compiled(text, tmp_path, WAYS[way].get("width", 34.5))
        wrong = "!" if name == "words" else ("!", "Overfull", "LaTeX Warning")
        assert [line for line in said.splitlines() if line.startswith(wrong)] == [], name


@pytest.mark.tex
@needs_pdflatex
def test_every_derivation_fits_with_its_claims_as_theorems(tmp_path: Path) -> None:
    assert len(DERIVATIONS) > 15
    for name in DERIVATIONS:
        assert "Overfull" not in compiled(shipped(name).latex(standalone=True, theorems=True), tmp_path), name


def test_nothing_of_words_is_read_as_latex() -> None:
    (sentence,) = latex(document(Paragraph((HOSTILE[4],)))).split("\\paragraph{Result.} ")[1].splitlines()[:1]
    for read in (r"\input{", r"\end{d", r"\write", r"\( ", r"\[ ", "^^M"):
        assert read not in sentence
    assert r"100 $\mu$m$^{2}$ fits 1/2 fi" in latex(document(Paragraph(("100 \u00b5m² fits ½ ﬁ",))))
    assert "[grinning face]" in latex(document(Paragraph((HOSTILE[3],))))


@needs_readers
@pytest.mark.node
def test_markdown_shows_words_as_they_are() -> None:
    words = [*HOSTILE, *(f"a {text}" for text in HOSTILE)]
    pages = [markdown(document(Paragraph((text,)), title=(text,))) for text in words]
    for text, lines in zip(words, shown(pages), strict=True):
        plain = " ".join(text.split())
        assert [" ".join(line.split()) for line in lines].count(plain) >= 4, text  # the title, the summary, a paragraph


@needs_readers
@pytest.mark.node
def test_every_formula_of_markdown_is_read() -> None:
    pages = [*map(page, NAMES), *BAD.values(), *(shipped(name).composed() for name in DERIVATIONS)]
    found = [formula for each in pages for formula in _formulas(markdown(each))]
    assert len(found) > 800
    assert not complaints(found, ("KaTeX", "MathJax"))


def test_markdown_eats_no_formula() -> None:
    for each in (*map(page, NAMES), *BAD.values()):
        for formula in _formulas(markdown(each)):
            assert not eaten(formula.replace(r"\begin{aligned}", "").replace(r"\end{aligned}", ""))


def _formulas(text: str) -> list[str]:
    """What stands between dollar signs, outside code."""
    outside = "".join(block for n, block in enumerate(text.split("\n```")) if n % 2 == 0)
    return [formula for n, formula in enumerate(outside.replace("$$", "$").split("$")) if n % 2]


# --- what is shown of claims, folds and steps ---


def test_what_is_for_machines_is_left_out_on_paper_and_folded_on_the_web() -> None:
    each = document(Paragraph(("Before.",)), Fold(("How",), (Paragraph(("By hand.",)),), for_machines=True))
    assert "By hand" not in latex(each)
    assert "<details><summary>How</summary>\n\nBy hand.\n\n</details>" in markdown(each)


def test_a_fold_has_its_formulas_in_unicode_where_markdown_reads_none() -> None:
    fold = Fold(("Why ", Fraction(x, Name("d")), " < 1"), (Paragraph(("Because.",)),))
    assert "<summary>Why x / d &lt; 1</summary>" in markdown(document(fold))


def test_letters_beside_a_formula_are_part_of_it_in_markdown() -> None:
    text = markdown(document(Paragraph(("The ", Name("i"), "th of non-", x, "y rows", x, x))))
    assert r"The $i \text{th}$ of non-$x \text{y}$ $\text{rows} x x$" in text


def test_a_step_says_what_was_done_to_check_it() -> None:
    steps = [
        Step(x, x, ("why",), status="proved", detail=("if ", x)),
        Step(x, x, ("why",), status="numeric", detail=("error 1e-9",)),
        Step(x, x, status="assumed"),
        Step(x, x, ("why",), status="unverified"),
        Step(x, x, ("why",), status="defined"),
    ]
    assert [line.split("&& ")[1] for line in latex(document(Chain(tuple(steps)))).splitlines() if "&&" in line][:5] == [
        r"\text{why~$\checkmark$ (if $x$)} \\",
        r"\text{why~(checked numerically: error 1e-9)} \\",
        r"\text{(assumed)} \\",
        r"\text{why} \\",
        r"\text{why}",
    ]
    doubted = [line for line in markdown(document(Chain(tuple(steps)))).splitlines() if "(?)" in line]
    assert len(doubted) == 2  # the one line that is not verified, in the result and in the section
    assert doubted[0].endswith(r"\text{why (?)} \cr")
    assert r"x &= x && \text{(?)}" in markdown(document(Chain((Step(x, x, status="unverified"),))))


def test_numbers_of_rows_are_there_for_those_who_refer_to_them() -> None:
    chain = Chain((Step(x, x, label="first"), Step(x, x)))
    assert latex(document(chain)).count(r"\label{first}") == 2  # in the result, and in the section
    assert r"\begin{align*}" in latex(document(Chain((Step(x, x),))))
    assert r"\notag" not in latex(document(chain), environment="aligned")
    with pytest.raises(OperandError, match="gather\\* has no numbers"):
        latex(document(chain), environment="gather*", numbered="all")


def test_a_box_at_the_end_of_a_proof_stands_in_its_last_row() -> None:
    claim = Statement("Claim", 1, ("Title",), "proved", (x,), parts=(Chain((Step(x, x),)),))
    assert latex(document(Paragraph(("So:",)), claim)).count(r"x &= x \tag*{$\square$}") == 1
    assert latex(document(Paragraph(("So:",)), claim), theorems=True).count(r"x &= x \tag*{\qedhere}") == 1
    labelled = replace(claim, parts=(Chain((Step(x, x, label="a"),)),))
    assert "\\end{align}\n\\hspace*{\\fill}$\\square$" in latex(document(Paragraph(("So:",)), labelled))


def test_a_proof_that_is_folded_as_a_whole_is_open_on_paper() -> None:
    fold = Fold(("By the machine",), (Items((("first",), ("second",))),))
    claim = Statement("Claim", 1, (), "proved", (x,), parts=(fold,))
    proof = latex(document(claim), theorems=True).split(r"\begin{proof}")[1].split(r"\end{proof}")[0]
    assert proof.startswith("\\leavevmode\n\\begin{itemize}")
    assert proof.endswith("\\item second \\qedhere\n\\end{itemize}\n")
    assert "<summary>By the machine</summary>" in markdown(document(claim))
    hidden = replace(claim, parts=(replace(fold, for_machines=True),))
    assert r"\begin{proof}" not in latex(document(hidden), theorems=True)


def test_a_display_that_begins_a_paragraph_has_no_empty_line_before_it() -> None:
    chain = Chain((Step(x, x),))
    claim = Statement("Claim", 1, (), "proved", (x,), parts=(Paragraph(("Clear.",)),))
    assert "\\end{proof}\n\n\\noindent\n\\begin{align*}" in latex(document(claim, chain), theorems=True)
    assert "Then\n\\begin{align*}" in latex(document(Paragraph(("Then",)), chain))


def test_what_is_false_or_not_proved_says_so() -> None:
    parts = (Paragraph(("Take 1.",)),)
    claim = Statement("Claim", 3, ("All is ", x), "refuted", (row(x, EQUALS, Number("1")),), parts=parts)
    assert r"\paragraph{Claim 3 (All is $x$ --- false).}" in latex(document(claim))
    assert r"\begin{proof}[Counterexample]" in latex(document(claim), theorems=True)
    assert "**Claim 3.** All is $x$. **✗ false**" in markdown(document(claim))
    assert "*Counterexample.* Take 1." in markdown(document(claim))
    assumed = replace(claim, status="assumed", title=(), parts=())
    assert r"\paragraph{Claim 3 (assumed).}" in latex(document(assumed))


# --- PDF ---


@pytest.mark.tex
@needs_pdflatex
def test_a_page_becomes_a_pdf_file(tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    pdf(page("variance"), target)
    assert target.read_bytes().startswith(b"%PDF")
    assert [*tmp_path.iterdir()] == [target]


def test_without_tex_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TypesettingError, match="none of pdflatex, lualatex, xelatex, tectonic is installed: install"):
        pdf(page("variance"), tmp_path / "page.pdf")
    engine = tmp_path / "pdflatex"
    engine.write_text("#!/bin/sh\necho '! Undefined control sequence.'\nexit 1\n")
    engine.chmod(0o755)
    with pytest.raises(TypesettingError, match="pdflatex could not set the page: Undefined control sequence"):
        pdf(page("variance"), tmp_path / "page.pdf")
    engine.write_text("#!/bin/sh\n: > page.pdf\n")
    with pytest.raises(FileError, match="nowhere/page.pdf cannot be written: there is no folder .*/nowhere: make it"):
        pdf(page("variance"), tmp_path / "nowhere" / "page.pdf")
    with pytest.raises(FileError, match="cannot be written: that is a folder: name a file in it$"):
        pdf(page("variance"), tmp_path)
    assert [*tmp_path.iterdir()] == [engine]


if __name__ == "__main__":
    for name, (medium, write) in product(NAMES, WRITERS.items()):
        (PAGES / f"{name}.{medium}").write_text(write(page(name)))
