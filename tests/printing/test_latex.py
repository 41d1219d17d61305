r"""LaTeX and text: written from the tree by precedence, unambiguous, and held by golden files.

A golden file that is missing fails. To write one, look at what is printed, compile it, and only then save it.
"""

from __future__ import annotations

import ast
import operator
import re
from pathlib import Path

import pytest
import sympy

import symattn as sa
from symattn.core.boxes import Name
from symattn.printing.align import Page, align, tex_text
from symattn.printing.prose import Step, sentence

GOLDEN = Path(__file__).parents[1] / "golden"
T, S, d, e, h, n = sa.sizes("T S d e h n")
Q, K, V, X = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("X", T, d)
A, B, C = (sa.tensor(name, n, n) for name in "ABC")
x, y, c, g, b = sa.tensor("x", n), sa.tensor("y", n), sa.tensor("c"), sa.tensor("gamma", d), sa.tensor("beta", d)
H = sa.tensor("H", h, T, d)
a = sympy.Symbol("a", real=True)
epsilon = sympy.Symbol("epsilon", positive=True)
mask = sa.from_index((T, S), lambda i, j: j <= i)
bias = sa.from_index((T, S), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))


def attention(**options):
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z, **options))
    return sa.let("O", P @ V)


def layer_norm():
    centred = sa.let("U", X - sa.let("mu", sa.mean(X, axis=-1, keepdims=True)))
    scale = sa.let("r", sa.rsqrt(sa.mean(centred**2, axis=-1, keepdims=True) + epsilon))
    return sa.let("Y", g * (centred * scale) + b)


def rms_norm():
    scale = sa.let("r", sa.rsqrt(sa.mean(X**2, axis=-1, keepdims=True) + epsilon))
    return sa.let("Y", g * (X * scale))


def rope():
    R, cos, sin = sa.tensor("R", T, 2 * n), sa.tensor("c_t", T, n), sa.tensor("s_t", T, n)
    left, right = R[:, :n], R[:, n:]
    return sa.let("Y", sa.concat([left * cos - right * sin, left * sin + right * cos], axis=-1))


bare = sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V
DOCUMENTS = {
    "attention": lambda: sa.latex(bare),
    "attention_backward": lambda: sa.gradient(attention(), [Q, K, V]).latex(),
    "attention_backward_bare": lambda: sa.gradient(bare, [Q, K, V]).latex(),
    "masked_attention_backward": lambda: sa.gradient(attention(where=mask), [Q, K, V]).latex(),
    "masked_softmax": lambda: sa.latex(sa.softmax(Q @ K.T, where=mask)),
    "additive_mask": lambda: sa.latex(sa.softmax(Q @ K.T + bias)),
    "layer_norm_backward": lambda: sa.gradient(layer_norm(), [X, g, b]).latex(),
    "rms_norm_backward": lambda: sa.gradient(rms_norm(), [X, g]).latex(),
    "rope": lambda: sa.latex(rope()),
    "einsum_backward": lambda: sa.gradient(sa.einsum("htd,hsd->hts", H, sa.tensor("K", h, S, d)), [H]).latex(),
    "logsumexp_backward": lambda: sa.gradient(sa.let("L", sa.logsumexp(sa.let("Z", Q @ K.T))), [Q, K]).latex(),
    "softcap": lambda: sa.latex(a * sa.tanh(sa.let("Z", Q @ K.T) / a)),
    "entries_of_attention": lambda: sa.entries(attention()).latex(),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_print_as_their_golden_files(name):
    assert DOCUMENTS[name]() + "\n" == (GOLDEN / f"{name}.tex").read_text()


def test_every_golden_file_belongs_to_a_test():
    assert {path.stem for path in GOLDEN.glob("*.tex")} == set(DOCUMENTS)


def test_named_and_bare_attention_differentiate_to_the_same_five_lines():
    def five(output):
        return [re.sub(r" \\\\$", "", line) for line in sa.gradient(output, [Q, K, V]).latex().splitlines()[1:6]]

    lines = five(attention())
    assert lines == five(bare)
    formulas = [line.strip().partition(" && ")[0] for line in lines]
    assert formulas == [
        r"\mathrm{d}V &= P^{\top} \, \mathrm{d}O",
        r"\mathrm{d}P &= \mathrm{d}O \, V^{\top}",
        r"\mathrm{d}Z &= P \odot (\mathrm{d}P - (P \odot \mathrm{d}P) \mathbf{1} \mathbf{1}^{\top})",
        r"\mathrm{d}Q &= \frac{\mathrm{d}Z \, K}{\sqrt{d}}",
        r"\mathrm{d}K &= \frac{\mathrm{d}Z^{\top} \, Q}{\sqrt{d}}",
    ]
    assert all(line.partition(r"&& \text{")[2] for line in lines)


# expression, LaTeX, text
SPELLINGS = [
    (A @ (B @ C), r"A (B C)", "A @ (B @ C)"),
    (A @ B @ C, "A B C", "A @ B @ C"),
    (-(A * B) @ C, r"(-A \odot B) C", "(-A * B) @ C"),
    (-(A @ B), "-A B", "-(A @ B)"),
    ((-A) @ B, r"(-A) B", "(-A) @ B"),
    (A - (B - C), r"A - (B - C)", "A - (B - C)"),
    (A - B - C, "A - B - C", "A - B - C"),
    (A - (B + C), r"A - (B + C)", "A - (B + C)"),
    (-(A + B), r"-(A + B)", "-(A + B)"),
    (-A + B, "-A + B", "-A + B"),
    (A - 2 * B, r"A - 2 B", "A - 2 * B"),
    (A - B / 2, r"A - \frac{B}{2}", "A - B / 2"),
    (A - 1, r"A - \mathbf{1} \mathbf{1}^{\top}", "A - 1"),
    (1 - (A - 1), r"\mathbf{1} \mathbf{1}^{\top} - (A - \mathbf{1} \mathbf{1}^{\top})", "1 - (A - 1)"),
    (A - a, r"A - a \mathbf{1} \mathbf{1}^{\top}", "A - a"),
    (-(a + 1) + A, r"-(a + 1) \mathbf{1} \mathbf{1}^{\top} + A", "-a - 1 + A"),
    (A - sa.sum(x) / 2, r"A - \frac{\operatorname{sum}(x) \mathbf{1} \mathbf{1}^{\top}}{2}", "A - sum(x) / 2"),
    (X - x @ y, r"X - x^{\top} y \mathbf{1} \mathbf{1}^{\top}", "X - x @ y"),
    (X + 1 - c * sa.sum(x), r"X + 1 - c \, \operatorname{sum}(x)", "X + 1 - c * sum(x)"),
    (A @ x[:, None] - 1, "A x - 1", "A @ x[:, None] - 1"),
    (1 - x, "1 - x", "1 - x"),
    (A - a * B, r"A - a B", "A - a * B"),
    ((A + B).T, r"(A + B)^{\top}", "(A + B).T"),
    ((A @ B).T, r"(A B)^{\top}", "(A @ B).T"),
    ((-A).T, r"-A^{\top}", "(-A).T"),
    (A.T @ B, r"A^{\top} B", "A.T @ B"),
    (H.mT, r"H^{(a) \top} \quad (a = 1, \ldots, h)", "H.mT"),
    (A * (B @ C), r"A \odot (B C)", "A * (B @ C)"),
    ((A @ B) * C, r"(A B) \odot C", "A @ B * C"),
    (A @ (B * C), r"A (B \odot C)", "A @ (B * C)"),
    (A * (B * C), r"A \odot (B \odot C)", "A * (B * C)"),
    (A / B / C, r"A \oslash B \oslash C", "A / B / C"),
    (A / (B / C), r"A \oslash (B \oslash C)", "A / (B / C)"),
    (1 / A, r"1 \oslash A", "1 / A"),
    (2 * (A + B), r"2 (A + B)", "2 * (A + B)"),
    (2 * (A @ B), r"2 A B", "2 * (A @ B)"),
    ((A + B) / 2, r"\frac{A + B}{2}", "(A + B) / 2"),
    (-(A + B) / 2, r"-\frac{A + B}{2}", "-(A + B) / 2"),
    (A @ B / sympy.sqrt(n), r"\frac{A B}{\sqrt{n}}", "A @ B / sqrt(n)"),
    ((n - 1) * A / (2 * n), r"\frac{(n - 1) A}{2 n}", "(n - 1) * A / (2*n)"),
    ((A / 2 + B) / 3, r"\frac{\frac{A}{2} + B}{3}", "(A / 2 + B) / 3"),
    (A / c, r"\frac{A}{c}", "A / c"),
    (A / (c + 1), r"\frac{A}{c + 1}", "A / (c + 1)"),
    (c * (A + B), r"c (A + B)", "c * (A + B)"),
    (A**2, r"A^{\odot 2}", "A**2"),
    (-(A**2), r"-A^{\odot 2}", "-A**2"),
    ((-A) ** 2, r"(-A)^{\odot 2}", "(-A)**2"),
    ((A + B) ** 2, r"(A + B)^{\odot 2}", "(A + B)**2"),
    ((A**2) ** 3, r"(A^{\odot 2})^{\odot 3}", "(A**2)**3"),
    (A.T**2, r"(A^{\top})^{\odot 2}", "A.T**2"),
    (A**-1, r"A^{\odot (-1)}", "A**(-1)"),
    (A ** sympy.Rational(1, 2), r"A^{\odot \frac{1}{2}}", "A**(1/2)"),
    (2**A, r"2^{\odot A}", "2**A"),
    (c**2, "c^{2}", "c**2"),
    (sa.exp(A) ** 2, r"\exp(A)^{\odot 2}", "exp(A)**2"),
    (x @ y, r"x^{\top} y", "x @ y"),
    (x @ A, r"A^{\top} x", "x @ A"),
    (A @ x, "A x", "A @ x"),
    (x @ A @ y, r"x^{\top} A y", "x @ A @ y"),
    (x @ (A @ y), r"x^{\top} (A y)", "x @ (A @ y)"),
    (sa.outer(x, y), r"x y^{\top}", "outer(x, y)"),
    (sa.diag(x) - sa.outer(x, x), r"\operatorname{diag}(x) - x x^{\top}", "diag(x) - outer(x, x)"),
    (A + x, r"A + \mathbf{1} x^{\top}", "A + x"),
    (A + x[:, None], r"A + x \mathbf{1}^{\top}", "A + x[:, None]"),
    ((A + B)[0], r"(A + B)_{0, :}^{\top}", "(A + B)[0, :]"),
    (A[1:], r"A_{1:, :}", "A[1:, :]"),
    (sa.sum(A, axis=1), r"A \mathbf{1}", "sum(A, axis=-1)"),
    (sa.sum(A, axis=0), r"A^{\top} \mathbf{1}", "sum(A, axis=-2)"),
    (sa.sum(A, axis=1, keepdims=True), r"A \mathbf{1}", "rowsum(A)"),
    (sa.sum(A @ B), r"\operatorname{sum}(A B)", "sum(A @ B)"),
    (sa.softmax(A), r"\operatorname{softmax}(A)", "softmax(A)"),
    (sa.softmax(A, axis=0), r"\operatorname{softmax}_{\text{col}}(A)", "softmax(A, axis=-2)"),
    (sa.where(A > 0, A, 0), r"\operatorname{where}([A > 0], A, 0)", "where(A > 0, A, 0)"),
    ((A > 0) & (B < 1), r"[A > 0] \wedge [B < 1]", "(A > 0) & (B < 1)"),
    (((A > 0) | (B > 0)) & (C > 0), r"([A > 0] \vee [B > 0]) \wedge [C > 0]",
     "((A > 0) | (B > 0)) & (C > 0)"),
    (~(A > 0), r"\lnot [A > 0]", "~(A > 0)"),
    ((A > B) * C, r"[A > B] \odot C", "(A > B) * C"),
    (sa.concat([A, B], axis=1), r"\begin{bmatrix} A & B \end{bmatrix}", "concat([A, B], axis=-1)"),
    (sa.concat([A, B], axis=0), r"\begin{bmatrix} A \\ B \end{bmatrix}", "concat([A, B], axis=-2)"),
    (sa.concat([sa.concat([A, B], axis=1), sa.concat([B, A], axis=1)], axis=0),
     r"\begin{bmatrix} A & B \\ B & A \end{bmatrix}",
     "concat([concat([A, B], axis=-1), concat([B, A], axis=-1)], axis=-2)"),
    (sa.einsum("ij,jk->ik", A, B), r"\left[ \sum_{j} A_{i j} B_{j k} \right]_{i k}", 'einsum("ij,jk->ik", A, B)'),
    (sa.eye(n) - A, "I_{n} - A", "eye(n) - A"),
    (sa.ones(n, T), r"\mathbf{1}_{n \times T}", "ones(n, T)"),
    (sa.zeros(n, T), r"0_{n \times T}", "zeros(n, T)"),
    (mask, r"[j \le i]_{i j}", "from_index((T, S), lambda i, j: j <= i)"),
    (sa.from_index(T, lambda i: 2 * i), r"[2 i]_{i}", "from_index((T,), lambda i: 2*i)"),
    (sa.let("dalpha", A) @ sa.tensor("dX", n, n), r"\mathrm{d}\alpha \, \mathrm{d}X", "dalpha @ dX"),
    (sa.tensor("x'", n) @ A, r"A^{\top} x'", "x' @ A"),
    (sa.tensor("W_q", n, n).T, r"W_{q}^{\top}", "W_q.T"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "written", "text"), SPELLINGS, ids=[text for _, _, text in SPELLINGS])
def test_an_expression_is_written_by_precedence(made, written, text):
    assert sa.latex(made) == written
    assert str(made) == text


BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.MatMult: operator.matmul, ast.Pow: operator.pow, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
READABLE = [made for made, _, text in SPELLINGS if not re.search(r"row|axis|from_index|einsum|concat|W_q|x'", text)]


@pytest.mark.parametrize("made", READABLE, ids=str)
def test_text_reads_back_as_python_to_the_same_tensor(made):
    names = {t.name: t for t in (*made.tensors, sa.let("dalpha", A))} | {s.name: s for s in made.free_symbols}

    def build(tree):
        match tree:
            case ast.BinOp():
                return BINARY[type(tree.op)](build(tree.left), build(tree.right))
            case ast.UnaryOp():
                return ~build(tree.operand) if isinstance(tree.op, ast.Invert) else -build(tree.operand)
            case ast.Compare(ops=[sign]):
                compare = operator.gt if isinstance(sign, ast.Gt) else operator.lt
                return compare(build(tree.left), build(tree.comparators[0]))
            case ast.Attribute():
                return getattr(build(tree.value), tree.attr)
            case ast.Constant(value=int()):
                return sympy.Integer(tree.value)
            case ast.Constant():
                return tree.value
            case ast.Name():
                return names[tree.id]
            case ast.Subscript():
                return build(tree.value)[build(tree.slice)]
            case ast.Tuple():
                return tuple(map(build, tree.elts))
            case ast.Slice():
                return slice(*(part and build(part) for part in (tree.lower, tree.upper, tree.step)))
            case ast.Call():
                arguments = [build(part) for part in tree.args]
                scalar = tree.func.id == "sqrt" and isinstance(arguments[0], sympy.Expr)
                return (sympy.sqrt if scalar else getattr(sa, tree.func.id))(*arguments)
        raise AssertionError(ast.dump(tree))

    assert build(ast.parse(str(made), mode="eval").body) is made


def test_a_column_is_never_written_like_a_row():
    row, column = A + x, A + x[:, None]
    assert sa.latex(row) != sa.latex(column)
    assert str(row) != str(column)


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (A / sa.sum(A, axis=1), r"A \, \operatorname{diag}(A \mathbf{1})^{-1}"),
        (A / sa.sum(A, axis=0), r"A \, \operatorname{diag}(A^{\top} \mathbf{1})^{-1}"),
        (A * x, r"A \, \operatorname{diag}(x)"),
        (A - x, r"A - \mathbf{1} x^{\top}"),
        (A * x + y, r"A \, \operatorname{diag}(x) + \mathbf{1} y^{\top}"),
        (sa.exp(A + x), r"\exp(A + \mathbf{1} x^{\top})"),
        (sa.mod(A, x), r"\operatorname{mod}(A, \mathbf{1} x^{\top})"),
        (sa.elementwise(sympy.Lambda((a, epsilon), a * epsilon), A, x), r"[i, y \mapsto i y](A, \mathbf{1} x^{\top})"),
        (A < x, r"[A < \mathbf{1} x^{\top}]"),
        (sa.equal(x, A), r"[\mathbf{1} x^{\top} = A]"),
        (A < x[:, None], r"[A < x \mathbf{1}^{\top}]"),
        (x < y, r"[x < y]"),
        (A + 1, r"A + \mathbf{1} \mathbf{1}^{\top}"),
        (x * y, r"x \odot y"),
    ],
)
def test_a_vector_that_lies_along_the_rows_is_written_out_as_a_row(made, written):
    assert sa.latex(made) == written


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (sa.outer(x @ A, x), r"(A^{\top} x) x^{\top}"),
        (sa.outer(x, x @ A), r"x x^{\top} A"),
        (A @ (x @ A), r"A (A^{\top} x)"),
        (A @ x - x @ A, r"A x - A^{\top} x"),
        (x @ A @ B, r"B^{\top} A^{\top} x"),
        (x @ A.T, "A x"),
        (x @ (A + B), r"(A + B)^{\top} x"),
        (x @ A @ y, r"x^{\top} A y"),
        (x @ A @ B @ y, r"x^{\top} A B y"),
    ],
)
def test_a_value_of_rank_1_is_a_column(made, written):
    assert sa.latex(made) == written


def test_a_shift_says_where_it_is_zero():
    plain = r"\left[ \begin{cases} x_{i + 1} & \text{for } i < n - 1 \\ 0 & \text{otherwise} \end{cases} \right]_{i}"
    assert sa.latex(sa.shift(x, 1, size=n + 3)) == plain.replace("]_{i}", "]_{i : i < n + 3}")
    assert sa.latex(sa.shift(x, 1)) == plain
    back = r"\left[ \begin{cases} x_{i - 1} & \text{for } i \ge 1 \\ 0 & \text{otherwise} \end{cases} \right]_{i}"
    assert sa.latex(sa.shift(x, -1)) == back  # and not that i < n + 1, which is so for all i
    assert r"\text{otherwise}" in sa.latex(sa.shift(A, lambda i: i))
    R = sa.tensor("R", T, 2 * T - 1)
    assert sa.latex(sa.shift(R, lambda i: T - 1 - i, size=T)) == r"[R_{i, T + j - i - 1}]_{i j : j < T}"


def test_braces_and_parentheses_balance_everywhere():
    for made, _, _ in SPELLINGS:
        written = sa.latex(made)
        assert written.count("{") == written.count("}")
        assert written.count(r"\left") == written.count(r"\right")
        assert written.count(r"\begin") == written.count(r"\end")


def test_spellings_of_names_are_given_by_the_call():
    P = sa.let("P", sa.softmax(A))
    assert sa.latex(P @ B, names={P: r"\mathbf{A}"}) == r"\mathbf{A} B"
    assert sa.latex(P @ B) == "P B"
    with pytest.raises(sa.NamingError, match="would both print as B"):
        sa.latex(P @ B, names={P: "B"})


def test_latex_of_other_things_is_that_of_sympy_or_their_own():
    assert sa.latex(sympy.sqrt(d)) == r"\sqrt{d}"
    assert sa.latex(sa.gradient(A @ B, [A])).startswith(r"\begin{align}")


def test_a_block_longer_than_a_page_may_break():
    t = X
    for _ in range(40):
        t = sa.let("t", sa.tanh(t))
    g = sa.gradient(t, [X])
    assert g.latex().startswith("{\\allowdisplaybreaks\n\\begin{align}\n")
    assert g.latex().endswith("\\end{align}\n}")
    assert g.latex(environment="aligned").startswith("\\begin{aligned}")


def test_an_align_block_has_a_row_a_line_and_a_reason_column():
    rows = [Step(Name("a"), Name("b"), sentence("by 100% & luck")), Step(Name("c"), Name("d"))]
    block = align(rows, Page("aligned", "none"))
    assert block == "\\begin{aligned}\n  a &= b && \\text{by 100\\% \\& luck} \\\\\n  c &= d\n\\end{aligned}"


@pytest.mark.parametrize(
    ("sentence", "safe"),
    [("#$%&_", r"\#\$\%\&\_"), ("a\\b{c}", r"a\textbackslash{}b\{c\}"), ("a < b", "a $<$ b"), ("x^2~", r"x\^{}2\~{}")],
)
def test_a_reason_holds_nothing_that_latex_would_read_as_a_command(sentence, safe):
    assert tex_text(sentence) == safe


def test_a_tree_too_large_to_read_says_so_instead_of_printing():
    t = A
    for _ in range(12):
        t = t @ t
    with pytest.raises(sa.OperandError, match=r"a tree of 8191 nodes, too large to read: name its parts by sa\.let"):
        sa.latex(t)
    assert str(t) == "<(... @ ...)[n, n], 13 nodes>"


@pytest.mark.parametrize(("made", "written"), [
    (sa.from_index((T, T), lambda i, j: j < i).subs({T: 1}) @ sa.tensor("y", 1), "(0) y"),
    (sa.from_index((T, S), lambda i, j: j < i).subs({T: 1}), r"[0]_{j}^{\top}"),
    (sa.from_index((T, S), lambda i, j: j >= 0), "[1]_{i j}"),
], ids=["one row and column", "one row", "all"])  # fmt: skip
def test_a_condition_that_sizes_decide_is_the_number_1_or_0(made, written):
    assert sa.latex(made) == written
