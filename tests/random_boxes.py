"""Random trees of boxes, for hypothesis: formulas that a printer could give, and any tree at all."""

from __future__ import annotations

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
    Space,
    Text,
    function,
    row,
)
from symattn.printing.media.spelling import ACCENTS, FONTS, FUNCTIONS, LETTERS, SIGNS

Marks = tuple[str, str]
_FENCES = [("(", ")"), ("[", "]"), ("{", "}"), ("|", "|"), ("‖", "‖"), ("⌊", "⌋"), ("⌈", "⌉"), ("⟨", "⟩")]
_MATRICES = [("[", "]"), ("(", ")"), ("|", "|"), ("{", ""), ("", "")]
_WORDS = ["new", "init", "Var", "rowsum", "softmax", "my_function", "d"]
_SENTENCES = [" if ", "for all i < j", "100% of $x_1$ & more", r"a\b {c} ~ d^2 #1", "<b>", "", "  two", "a*b_c_d"]


def _tables(cells: st.SearchStrategy[Box]) -> st.SearchStrategy[tuple[tuple[Box, ...], ...]]:
    def of_width(width: int) -> st.SearchStrategy[tuple[tuple[Box, ...], ...]]:
        return st.lists(st.tuples(*[cells] * width), min_size=1, max_size=3).map(tuple)

    return st.integers(1, 3).flatmap(of_width)


def _above(
    leaves: st.SearchStrategy[Box], fences: st.SearchStrategy[Marks], matrices: st.SearchStrategy[Marks]
) -> st.SearchStrategy[Box]:
    def larger(part: st.SearchStrategy[Box]) -> st.SearchStrategy[Box]:
        some = st.none() | part
        accents = st.sampled_from(list(ACCENTS))
        return st.one_of(
            st.lists(part, min_size=2, max_size=5).map(lambda parts: row(*parts)),
            st.builds(Fraction, part, part),
            st.builds(Root, part, some),
            st.builds(Script, part, some, some).filter(lambda box: len(box.kids) > 1),
            st.builds(Accent, part, accents),
            st.builds(lambda inside, marks: Fence(inside, *marks), part, fences),
            st.builds(lambda rows, marks: Matrix(rows, *marks), _tables(part), matrices),
            st.builds(Differential, part),
        )

    return st.recursive(leaves, larger, max_leaves=12)


_letters = st.sampled_from("abcdehkqvxzABCEKQTVZ") | st.sampled_from(list(LETTERS))
_names = st.builds(Name, _letters, st.sampled_from(["italic", "italic", "italic", "bold", "upright"]))
_capitals = st.builds(Name, st.sampled_from("ABCERTZ"), st.sampled_from(list(FONTS)))
_words = st.builds(Name, st.sampled_from(_WORDS), st.sampled_from(["upright", "italic", "bold"]))
_numbers = st.builds(Number, st.sampled_from(["0", "1", "2", "17", "0.5"]))
_signs = st.sampled_from([Sign(mark, kind) for kind, marks in SIGNS.items() for mark in marks])
_functions = st.sampled_from([*sorted(FUNCTIONS), *_WORDS]).map(function) | _names.map(Function)
_others = st.sampled_from(_SENTENCES).map(Text) | st.sampled_from([1.0, 2.0, 1 / 6]).map(Space)

formulas = _above(
    st.one_of(_names, _names, _numbers, _capitals, _words, _signs, _functions, _others),
    st.sampled_from(_FENCES),
    st.sampled_from(_MATRICES),
)
"""Trees of the letters, the signs and the fences that the printers use."""

_any = st.text(max_size=6)
trees = _above(
    st.one_of(
        st.builds(Name, _any, st.sampled_from(list(FONTS))),
        st.builds(Number, _any),
        st.builds(Sign, _any, st.sampled_from(list(SIGNS))),
        st.builds(Function, st.builds(Name, _any)),
        st.builds(Text, _any),
        st.builds(Code, _any),
        st.builds(Space, st.floats(-2, 4)),
        st.just(Row(())),
    ),
    st.tuples(_any, _any),
    st.tuples(_any, _any),
)
"""Trees that hold any text at all."""
