import pytest
from hypothesis import given

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
    Script,
    Sign,
    Space,
    Text,
    function,
    row,
)
from symattn.printing.media.drawing import columns, unicode_lines
from symattn.printing.media.unicode import unicode_text

from ..random_boxes import formulas, trees

A, K, P, Q, T, V, W, Z, d, e, h, i, j, k, q, x, y = map(Name, "AKPQTVWZdehijkqxy")
one, two = Number("1"), Number("2")
equals, less = Sign("=", "relation"), Sign("<", "relation")
plus, minus, negative = Sign("+", "sum"), Sign("-", "sum"), Sign("-", "prefix")
times, comma, sum_, top, prime = (
    Sign("⊙", "product"), Sign(",", "punctuation"), Sign("∑", "large"), Sign("⊤"), Sign("′")
)  # fmt: skip


def transposed(box: Box) -> Box:
    return Script(box, None, top)


two_by_two = Matrix(((one, x), (row(y, plus, d), Number("0"))))
WRITTEN = {
    "attention": (
        row(function("softmax"), Fence(Fraction(row(Q, transposed(K)), Root(d))), V),
        "softmax(Q Kᵀ / √d) V",
    ),
    "gradient": (
        row(Differential(Z), equals, P, times, Fence(row(Differential(P), minus, function("rowsum"), Fence(P)))),
        "dZ = P ⊙ (dP − rowsum(P))",
    ),
    "a sum": (
        row(
            Script(sum_, row(k, equals, Number("0")), row(d, minus, one)),
            Script(Q, row(i, k)),
            Script(K, row(j, k)),
        ),
        "∑ₖ₌₀ᵈ⁻¹ Qᵢₖ Kⱼₖ",
    ),
    "a sum to T": (row(Script(sum_, row(k, equals, one), row(T, minus, one)), x), "∑ₖ₌₁^(T − 1) x"),
    "a transpose": (transposed(x), "xᵀ"),
    "a size T in an exponent": (Script(x, None, T), "x^T"),
    "T among others": (Script(x, None, row(two, T)), "x^(2 T)"),
    "the inverse of a transpose": (Script(A, None, row(negative, top)), "A⁻ᵀ"),
    "a head": (Script(Z, None, Fence(h)), "Z⁽ʰ⁾"),
    "both scripts": (Script(W, q, top), "W_qᵀ"),
    "a subscript with a comma": (Script(Q, row(i, comma, j)), "Q_(i, j)"),
    "a word below": (Script(Q, Name("in", "upright")), "Q_in"),
    "two numbers below": (Script(Q, row(one, two)), "Q_(1 2)"),
    "an entry of a transpose": (Script(transposed(W), k), "(Wᵀ)ₖ"),
    "a transpose of a primed name": (transposed(Script(x, None, prime)), "x′ᵀ"),
    "an inverse of a call": (Script(row(function("diag"), Fence(x)), None, row(negative, one)), "diag(x)⁻¹"),
    "a power of a root": (Script(Root(d), None, two), "(√d)²"),
    "a root of a sum": (Root(row(d, plus, one)), "√(d + 1)"),
    "a root of a power": (Root(Script(d, None, two)), "√(d²)"),
    "a root of a name": (Root(Script(d, k)), "√dₖ"),
    "a cube root": (Root(x, Number("3")), "∛x"),
    "any root": (Root(x, T), "x^(1 / T)"),
    "a fraction as a factor": (row(Fraction(Q, d), K), "(Q / d) K"),
    "a fraction in an entrywise product": (row(Q, times, Fraction(K, d)), "Q ⊙ (K / d)"),
    "a fraction in a sum": (row(Q, plus, Fraction(K, row(d, T))), "Q + K / (d T)"),
    "a fraction of sums": (Fraction(row(x, plus, y), row(x, minus, y)), "(x + y) / (x − y)"),
    "a fraction of fractions": (Fraction(Fraction(x, y), Fraction(d, e)), "(x / y) / (d / e)"),
    "a sum over something": (Fraction(row(sum_, x), y), "(∑ x) / y"),
    "a sum of fractions": (row(sum_, Fraction(x, y)), "∑ x / y"),
    "over a root": (Fraction(x, Root(d)), "x / √d"),
    "over a call": (Fraction(x, row(function("log"), Fence(d))), "x / log(d)"),
    "a function without a fence": (row(function("log"), x), "log x"),
    "a function that is a letter": (row(Function(Name("ϕ")), Fence(x)), "ϕ(x)"),
    "a factor and a fence": (row(A, Fence(row(x, plus, y))), "A (x + y)"),
    "an expectation": (row(Name("E", "blackboard"), Fence(x, "[", "]")), "𝔼[x]"),
    "fonts": (row(Name("A", "bold"), Name("R", "blackboard"), Name("new", "upright")), "𝐀 ℝ new"),
    "Euler's number beside a size": (row(e, plus, Script(Name("e", "upright"), None, row(negative, x))), "e + ℯ⁻ˣ"),
    "an imaginary unit beside an index": (row(i, Name("i", "upright")), "i ⅈ"),
    "a letter that no font changes": (Name("℘", "bold"), "℘"),
    "a bar": (Accent(k, "‾"), "k̄"),
    "a wide hat": (Accent(row(x, plus, y), "^"), "hat(x + y)"),
    "a differential of a sum": (Differential(row(x, plus, y)), "d(x + y)"),
    "a transposed differential": (Differential(transposed(Z)), "dZᵀ"),
    "a fraction before a sum": (row(Fraction(one, Root(d)), Script(sum_, k), x), "(1 / √d) ∑ₖ x"),
    "a minus in front": (row(negative, x, times, y), "−x ⊙ y"),
    "a list": (row(Fence(row(x, comma, y)), Space(1), x, less, y), "(x, y)  x < y"),
    "words": (row(x, Text(" if "), y), "x if y"),
    "words next to a sign": (row(Text("axis"), equals, negative, one), "axis = −1"),
    "words between signs": (row(x, less, Text(" or "), less, y), "x < or < y"),
    "a norm": (Script(Fence(x, "‖", "‖"), two), "‖x‖₂"),
    "a matrix": (two_by_two, "[1, x; y + d, 0]"),
    "cases": (Matrix(((x, Text("if "), y), (y, Text("otherwise"))), "{", ""), "{x if , y; y otherwise}"),
    "what is not known": (Code(r"\foo{A}"), "foo A"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_formula_in_one_line(case):
    box, written = WRITTEN[case]
    assert unicode_text(box) == written


column = Matrix(((Name("a"),), (Name("b"),), (Name("c"),)))
DRAWN = {
    "no matrix": (row(x, plus, y), "x + y"),
    "a matrix": (two_by_two, "⎡    1  x⎤\n⎣y + d  0⎦"),
    "a column": (column, "⎡a⎤\n⎢b⎥\n⎣c⎦"),
    "one row": (Matrix(((x, y),)), "[x  y]"),
    "a matrix among others": (
        row(A, equals, transposed(two_by_two), x, plus, Fence(row(two_by_two, minus, column))),
        "                    ⎛             ⎡a⎤⎞\n"
        "A = ⎡    1  x⎤ᵀ x + ⎜⎡    1  x⎤ − ⎢b⎥⎟\n"
        "    ⎣y + d  0⎦      ⎝⎣y + d  0⎦   ⎣c⎦⎠",
    ),
    "a fraction": (
        row(Fraction(row(two_by_two, Q), Root(d)), K),
        "⎡    1  x⎤ Q\n⎣y + d  0⎦\n──────────── K\n     √d",
    ),
    "cases": (
        Matrix(((x, Text("if x > 0")), (Number("0"), Text("otherwise"))), "{", ""),
        "⎰x  if x > 0\n⎱0  otherwise",
    ),
    "many cases": (Matrix(((x,), (y,), (d,), (e,)), "{", ""), "⎧x\n⎪y\n⎨d\n⎩e"),
    "a matrix in a matrix": (
        Matrix(((two_by_two, Q), (k, A)), "(", ")"),
        "⎛⎡    1  x⎤  Q⎞\n⎜⎣y + d  0⎦   ⎟\n⎝         k  A⎠",
    ),
    "hats take no room": (Matrix(((Accent(k, "‾"), x), (x, x))), "⎡k̄  x⎤\n⎣x  x⎦"),
    "both scripts": (Script(two_by_two, i, top), "⎡    1  x⎤ᵀ\n⎣y + d  0⎦ᵢ"),
}


@pytest.mark.parametrize("case", DRAWN)
def test_a_matrix_is_drawn(case):
    box, drawn = DRAWN[case]
    assert "\n".join(unicode_lines(box)) == drawn


@given(trees)
def test_any_tree_is_written(box):
    unicode_text(box)
    unicode_lines(box)


@given(formulas)
def test_parentheses_are_closed(box):
    words = unicode_text(box)
    assert words.count("(") == words.count(")")


@given(formulas)
def test_lines_of_a_matrix_have_one_width_before_they_are_trimmed(box):
    lines = unicode_lines(Matrix(((box, x), (y, x))))
    assert len({columns(line) for line in lines}) == 1


def test_a_tree_without_end_is_written():
    deep = x
    for _ in range(3000):
        deep = Fence(row(x, plus, deep))
    assert unicode_text(deep).count("x") == len(unicode_lines(deep)[0].split(" + ")) == 3001
