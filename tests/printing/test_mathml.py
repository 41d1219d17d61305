from xml.etree import ElementTree

import pytest
from hypothesis import given

from symattn.core.boxes import (
    Accent,
    Code,
    Differential,
    Fence,
    Fraction,
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
from symattn.printing.media.mathml import mathml

from ..random_boxes import formulas, trees

x, y, A = Name("x"), Name("y"), Name("A")
plus, equals = Sign("+", "sum"), Sign("=", "relation")
TIMES, APPLY = "<mo>\u2062</mo>", "<mo>\u2061</mo>"
LEFT = '<mtd style="text-align: left">'
WRITTEN = {
    "a letter": (x, "<mi>x</mi>"),
    "a Greek capital is upright": (Name("Σ"), '<mi mathvariant="normal">Σ</mi>'),
    "an arrow": (
        Script(Sign("⟶", "relation"), above=x),
        '<mover><mo stretchy="true">⟶</mo><mi>x</mi></mover>',
    ),
    "bold": (Name("A", "bold"), '<mi mathvariant="normal">𝐀</mi>'),
    "bold Greek": (Name("ϵ", "bold"), '<mi mathvariant="normal">𝛜</mi>'),
    "blackboard": (Name("R", "blackboard"), '<mi mathvariant="normal">ℝ</mi>'),
    "a blackboard one": (Name("1", "blackboard"), '<mi mathvariant="normal">𝟙</mi>'),
    "calligraphic": (Name("L", "calligraphic"), '<mi mathvariant="normal">ℒ</mi>'),
    "fraktur": (Name("C", "fraktur"), '<mi mathvariant="normal">ℭ</mi>'),
    "a word": (Name("new", "upright"), "<mi>new</mi>"),
    "a word in italics": (Name("ah"), "<mi>𝑎ℎ</mi>"),
    "a product": (row(A, x), f"<mrow><mi>A</mi>{TIMES}<mi>x</mi></mrow>"),
    "a function": (
        row(function("log"), Fence(x)),
        f"<mrow><mi>log</mi>{APPLY}<mrow>"
        '<mo form="prefix" fence="true" stretchy="false">(</mo><mi>x</mi>'
        '<mo form="postfix" fence="true" stretchy="false">)</mo></mrow></mrow>',
    ),
    "a function without a fence": (
        row(function("log"), x),
        f'<mrow><mi>log</mi>{APPLY}<mspace width="0.17em"/><mi>x</mi></mrow>',
    ),
    "a tall fence": (
        Fence(Fraction(x, y), "[", "]"),
        '<mrow><mo form="prefix" fence="true" stretchy="true">[</mo><mfrac><mi>x</mi><mi>y</mi></mfrac>'
        '<mo form="postfix" fence="true" stretchy="true">]</mo></mrow>',
    ),
    "signs": (
        row(x, equals, Sign("-", "prefix"), y, plus, Number("2")),
        '<mrow><mi>x</mi><mo form="infix" stretchy="false">=</mo><mo form="prefix" stretchy="false">−</mo>'
        '<mi>y</mi><mo form="infix" stretchy="false">+</mo><mn>2</mn></mrow>',
    ),
    "less": (
        row(x, Sign("<", "relation"), y),
        '<mrow><mi>x</mi><mo form="infix" stretchy="false">&lt;</mo><mi>y</mi></mrow>',
    ),
    "a word as a sign": (
        row(x, Sign("mod", "product"), y),
        '<mrow><mi>x</mi><mo form="infix" stretchy="false" lspace="0.22em" rspace="0.22em">mod</mo><mi>y</mi></mrow>',
    ),
    "an expectation": (
        row(Name("E", "blackboard"), Fence(x, "[", "]")),
        f'<mrow><mi mathvariant="normal">𝔼</mi>{APPLY}<mrow>'
        '<mo form="prefix" fence="true" stretchy="false">[</mo><mi>x</mi>'
        '<mo form="postfix" fence="true" stretchy="false">]</mo></mrow></mrow>',
    ),
    "limits": (
        Script(Sign("∑", "large"), x, y),
        '<munderover><mo form="prefix" movablelimits="true">∑</mo><mi>x</mi><mi>y</mi></munderover>',
    ),
    "one limit": (
        Script(Sign("max", "large"), x),
        '<munder><mo form="prefix" movablelimits="true" lspace="0.17em" rspace="0.17em">max</mo><mi>x</mi></munder>',
    ),
    "scripts": (Script(x, y, Number("2")), "<msubsup><mi>x</mi><mi>y</mi><mn>2</mn></msubsup>"),
    "a subscript": (Script(x, y), "<msub><mi>x</mi><mi>y</mi></msub>"),
    "transposed": (Script(A, None, Sign("⊤")), '<msup><mi>A</mi><mi mathvariant="normal">⊤</mi></msup>'),
    "a root": (Root(x), "<msqrt><mi>x</mi></msqrt>"),
    "a cube root": (Root(x, Number("3")), "<mroot><mi>x</mi><mn>3</mn></mroot>"),
    "a bar": (Accent(x, "‾"), '<mover accent="false"><mi>x</mi><mo stretchy="false" scriptlevel="0">¯</mo></mover>'),
    "a hat": (Accent(x, "^"), '<mover accent="true"><mi>x</mi><mo stretchy="false">ˆ</mo></mover>'),
    "a wide bar": (
        Accent(Name("ab", "upright"), "‾"),
        '<mover accent="false"><mi>ab</mi><mo stretchy="true" scriptlevel="0">\u0332</mo></mover>',
    ),
    "underlined": (Accent(x, "_"), '<mrow style="border-bottom: 0.06em solid"><mi>x</mi></mrow>'),
    "limits beside": (
        Script(Sign("∫", "large"), x, y),
        '<msubsup><mo form="prefix" movablelimits="true">∫</mo><mi>x</mi><mi>y</mi></msubsup>',
    ),
    "a differential": (
        row(Differential(A), x),
        f'<mrow><mrow><mi mathvariant="normal">d</mi><mi>A</mi></mrow>{TIMES}<mspace width="0.17em"/><mi>x</mi></mrow>',
    ),
    "cases": (
        Matrix(((x, Text("if x")), (y, Text("else"))), "{", ""),
        '<mrow><mo form="prefix" fence="true" stretchy="true">{</mo><mtable>'
        f"<mtr>{LEFT}<mi>x</mi></mtd>{LEFT}<mtext>if\u00a0x</mtext></mtd></mtr>"
        f"<mtr>{LEFT}<mi>y</mi></mtd>{LEFT}<mtext>else</mtext></mtd></mtr></mtable></mrow>",
    ),
    "a space": (Space(1), '<mspace width="1em"/>'),
    "what is not known shows its letters": (Code(r"\foo{A}"), "<mtext>foo\u00a0A</mtext>"),
    "nothing": (Row(()), "<mrow></mrow>"),
    "markup is text": (Text("<b>&"), "<mtext>&lt;b&gt;&amp;</mtext>"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_formula_is_written(case):
    box, written = WRITTEN[case]
    assert mathml(box) == f'<math display="block">{written}</math>'


def test_a_formula_in_a_line_says_so():
    assert mathml(x, display=False) == '<math display="inline"><mi>x</mi></math>'


@given(trees)
def test_any_tree_is_well_formed(box):
    ElementTree.fromstring(mathml(box))


@given(formulas)
def test_scripts_have_as_many_parts_as_their_element_needs(box):
    parts = {"msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3, "mfrac": 2, "mroot": 2}
    for element in ElementTree.fromstring(mathml(box)).iter():
        assert len(element) == parts.get(element.tag, len(element))


@pytest.mark.slow
def test_a_tree_without_end_is_written():
    deep = x
    for _ in range(3000):
        deep = Fence(row(x, plus, deep))
    assert mathml(deep).count("<mi>") == 3001
