"""Random trees of boxes, for hypothesis: formulas that a printer could give, and any tree at all."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from symattn.core.boxes import (
    Accent,
    Box,
    Code,
    Differential,
    Fence,
    Fraction,
    Function,
    Matrix,
    Name,
    Number,
    Root,
    Row,
    Script,
    Sign,
    SignKind,
    Space,
    Text,
    function,
    row,
)
from symattn.printing.media.spelling import ACCENTS, FONTS, FUNCTIONS, LETTERS, SIGNS

Marks = tuple[str, str]
_FENCES = [("(", ")"), ("[", "]"), ("{", "}"), ("|", "|"), ("‖", "‖"), ("⌊", "⌋"), ("⌈", "⌉"), ("⟨", "⟩")]
_MATRICES = [("[", "]"), ("(", ")"), ("|", "|"), ("{", ""), ("", "")]
_WORDS = ["new", "init", "Var", "rowsum", "softmax", "my_function"]
_SENTENCES = [" if ", "for all i < j", "100% of $x_1$ & more", r"a\b {c} ~ d^2 #1", "<b>", "", "  two", "a*b_c_d"]


def _tables(cells: st.SearchStrategy[Box]) -> st.SearchStrategy[tuple[tuple[Box, ...], ...]]:
    def of_width(width: int) -> st.SearchStrategy[tuple[tuple[Box, ...], ...]]:
        return st.lists(st.tuples(*[cells] * width), min_size=1, max_size=3).map(tuple)

    return st.integers(1, 3).flatmap(of_width)


def _script(base: Box, below: Box | None, above: Box | None) -> Box:
    return Script(Fence(base) if isinstance(base, Script) else base, below, above)


def _matrix(rows: tuple[tuple[Box, ...], ...], marks: Marks) -> Box:
    of_two_columns = tuple(cells[:2] for cells in rows)
    return Matrix(of_two_columns if marks == ("{", "") else rows, *marks)  # cases have no more


def _above(
    leaves: st.SearchStrategy[Box], fences: st.SearchStrategy[Marks], matrices: st.SearchStrategy[Marks]
) -> st.SearchStrategy[Box]:
    def larger(part: st.SearchStrategy[Box]) -> st.SearchStrategy[Box]:
        accents = st.sampled_from(list(ACCENTS))
        return st.one_of(
            st.lists(part, min_size=2, max_size=5).map(lambda parts: row(*parts)),
            st.builds(Fraction, part, part),
            st.builds(Root, part, st.none() | part),
            st.builds(_script, part, part, st.none() | part),
            st.builds(_script, part, st.none(), part),
            st.builds(Accent, part, accents),
            st.builds(lambda inside, marks: Fence(inside, *marks), part, fences),
            st.builds(_matrix, _tables(part), matrices),
            st.builds(Differential, _NAMES | st.builds(Fence, part)),
        )

    return st.recursive(leaves, larger, max_leaves=12)


_SIGNS = [
    Sign(mark, kind)
    for kind, marks in SIGNS.items()
    for mark in marks
    if kind not in ("opening", "closing") and mark not in ("|", "‖", "max", "min", "sup", "inf", "lim")
]  # marks that stand alone
_LETTERS = st.sampled_from("abcehkqvxzABCEKQTVZ") | st.sampled_from(list(LETTERS))
_NAMES = st.builds(Name, _LETTERS, st.sampled_from(["italic", "italic", "italic", "bold", "upright"]))
_LEAVES = [
    _NAMES,
    _NAMES,
    st.builds(Name, st.sampled_from("ABCERTZ"), st.sampled_from(list(FONTS))),
    st.builds(Name, st.sampled_from(_WORDS), st.sampled_from(["upright", "italic", "bold"])),
    st.builds(Number, st.sampled_from(["0", "1", "2", "17", "0.5"])),
    st.sampled_from(_SIGNS),
    st.sampled_from([*sorted(FUNCTIONS - {*SIGNS["large"]}), *_WORDS]).map(function),
    _LETTERS.map(Name).map(Function),
    st.sampled_from(_SENTENCES).map(Text),
    st.sampled_from([1.0, 2.0, 1 / 6]).map(Space),
]
_TEXT = st.text(max_size=6)
_ANYTHING = [
    st.builds(Name, _TEXT, st.sampled_from(list(FONTS))),
    st.builds(Number, _TEXT),
    st.builds(Sign, _TEXT, st.sampled_from(get_args(SignKind))),
    st.builds(Function, st.builds(Name, _TEXT)),
    st.builds(Text, _TEXT),
    st.builds(Code, _TEXT),
    st.builds(Space, st.floats(-2, 4)),
    st.just(Row(())),
]


@st.composite
def _one_of(draw: st.DrawFn, kind: str) -> Box:
    """A leaf; hypothesis writes out what a strategy is made of, and this one is short."""
    return draw(st.one_of(_LEAVES if kind == "formula" else _ANYTHING))


formulas = _above(_one_of("formula"), st.sampled_from(_FENCES), st.sampled_from(_MATRICES))
"""Trees of the letters, the signs and the fences that the printers use."""

trees = _above(_one_of("any"), st.tuples(_TEXT, _TEXT), st.tuples(_TEXT, _TEXT))
"""Trees that hold any text at all."""
