"""A page with every kind of part and every status in it, and with what is hard to set: long sums, wide matrices."""

from __future__ import annotations

from symattn.core.boxes import Box
from symattn.printing.media.read_latex import box_of_latex
from symattn.printing.prose import (
    DEFINED,
    MARKS,
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Given,
    Items,
    Paragraph,
    Section,
    Source,
    Statement,
    Status,
    Step,
    Table,
)

from .handmade import words

SVG = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 60 20" width="60">'
    '<path d="M1 1h58v18h-58z" fill="none" stroke="currentColor"/></svg>'
)
LONG_SUM = " + ".join(rf"\mu_{{{k}}}^{{2}} \sigma_{{{k}}}^{{2}}" for k in "qkvoxyz")
WIDE_MATRIX = r"\begin{bmatrix}" + " & ".join(["-0.123"] * 9) + r"\end{bmatrix}"


def formulas(*sources: str) -> tuple[Box, ...]:
    return tuple(map(box_of_latex, sources))


def _step(
    number: int, left: str, right: str, reason: str, status: Status | None, each: str = "", detail: str = ""
) -> Step:
    return Step(
        box_of_latex(left) if left else None,
        box_of_latex(right),
        words(reason),
        **({"relation": DEFINED} if status == "defined" else {}),
        each=box_of_latex(each) if each else None,
        status=status,
        detail=words(detail),
        number=number,
    )


FORWARD = Chain(
    (
        _step(1, "Z_{i}", r"\frac{Q K_{i}^{\top}}{\sqrt{d}}", r"scores, $T \times S$", "defined", each="i = 1, 2"),
        _step(2, "P'", r"\operatorname{softmax}(Z_{1})", "weights: each row is positive and sums to 1", "defined"),
        _step(3, "O", "P' V", "", "defined"),
    )
)
BACKWARD = Chain(
    (
        _step(4, r"\mathrm{d}V", r"P^{\top} \mathrm{d}O", r"product rule on $O = P V$", "proved"),
        _step(5, "", r"(\mathrm{d}O^{\top} P)^{\top}", "transposed twice", "computed"),
        _step(6, r"\langle \mathrm{d}Z_{1}, Z_{1} \rangle + \langle \mathrm{d}Z_{2}, Z_{2} \rangle",
              r"\langle Q, \mathrm{d}Q \rangle", "", "numeric", detail="at 3 sizes, largest error 2e-12"),
        _step(7, "", r"\operatorname{Att}(Q, K, V)", "said by the paper", "assumed"),
        _step(8, "", "X", "", "unverified"),
    )
)  # fmt: skip
LONG = Chain(
    (
        _step(9, r"\operatorname{Var}[s]", LONG_SUM, "multiplied out; what is 0 on average is left out", "computed"),
        _step(10, "", rf"\operatorname{{softmax}}({LONG_SUM}) \odot ({LONG_SUM})", "", None),
    )
)
CLAIM = Statement(
    "Claim",
    1,
    words("The order of the keys does not matter"),
    "refuted",
    formulas(r"\operatorname{softmax}(Q (C K)^{\top} / \sqrt{d}) V = \operatorname{softmax}(Q K^{\top} / \sqrt{d}) V"),
    given=(words("$C$ is a permutation"), words("$d > 0$")),
    parts=(
        Display(formulas(r"Q = \begin{bmatrix} 1 \end{bmatrix}", r"C = \begin{bmatrix} 0 & 1 \\ 1 & 0 \end{bmatrix}",
                         r"K = \begin{bmatrix} 0 \\ 1 \end{bmatrix}", WIDE_MATRIX)),
        Table((words(""), words("scores $s$"), words("output")),
              ((words("left side"), words("$(1, 0)$"), words(r"$\frac{1}{1 + \mathrm{e}}$")),
               (words("right side"), words("$(0, 1)$"), words(r"$\frac{\mathrm{e}}{1 + \mathrm{e}} \approx 0.731$")))),
        Statement("Lemma", 0, (), "proved", (), words("Values have to move with their keys.")),
        Fold(words("Why"), (Paragraph(words("Since $C^{\\top} C = I$.")),)),
    ),
)  # fmt: skip
EVERYTHING = Document(
    title=words(r"Why scores are divided by $\sqrt{d}$"),
    summary=words(r"What flows through $O = \operatorname{softmax}(Q K^{\top} / \sqrt{d})\, V$, in five products."),
    tally=tuple((status, n + 1) for n, status in enumerate(MARKS)),
    result=(
        Paragraph(words("A loss $L$ has")),
        Display(formulas(r"\mathrm{d}Z = P \odot (\mathrm{d}P - \delta \mathbf{1}^{\top})")),
        Statement("Theorem", 2, words("In short"), "proved", formulas("A = B")),
    ),
    given=(
        Given(*formulas("Q"), words(r"$\mathbb{R}^{T \times d}$"), words("queries, one a row")),
        Given(*formulas(r"\tau"), words(r"$\mathbb{R}$, positive")),
    ),
    conventions=words(r"$\odot$ multiplies entry by entry."),
    sections=(
        Section(
            words("Forward"),
            (Paragraph(words("One softmax.")), FORWARD, Items((words("first"), words("$x$")), numbered=True)),
        ),
        Section(words("Backward & forward"), (BACKWARD, LONG, CLAIM), anchor="Backward"),
        Section(
            words("Backward"),
            (Figure(SVG, 'Flow of "attention"', words("What $P$ is")), Figure("", "A to B", text="A -> B")),
        ),
        Section(
            words("For machines"),
            (Fold(words("NumPy"), (Source("a = b\n\n\tif a < b & c: '\\n'\n"),), for_machines=True),),
        ),
    ),
    references=(words("Vaswani et al., 2017."),),
    command="symattn verify 'a file.py'",
)
