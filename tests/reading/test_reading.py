"""Reading expressions: what is read, that printed text reads back as the same node, and that nothing is evaluated."""

from __future__ import annotations

import time

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import symattn as sa
from symattn.core.node import topological
from symattn.graph.names import displayed_names
from symattn.ops.leaves import definition
from symattn.reading import parse_shape, read

T, S, d, e, h, n = sa.sizes("T S d e h n")
c = sympy.Symbol("c", real=True)
DECLARED = [
    "Q: T d", "K: S d", "V: S e", "M: T S, binary", "B: T S", "X: T h*d", "z: n", "w: n", "H: h T d", "A: n n", "t:",
]  # fmt: skip
NAMES = {**{x.name: x for x in map(parse_shape, DECLARED)}, "c": c}
Q, K, V, M, B, X, z, w, H, A, t = (NAMES[text.partition(":")[0]] for text in DECLARED)


def names_in(x):
    """The names that the text of a tensor uses."""
    shown = {name: node for node, name in displayed_names([x]).items()}
    return {**shown, **{s.name: s for node in topological([x]) for s in node.own_symbols}}


# --- shapes ---


def test_a_shape_declares_a_tensor():
    assert parse_shape("Q: T d") is sa.tensor("Q", "T d")
    assert parse_shape("t:") is parse_shape("t=") is sa.tensor("t")
    assert parse_shape("Q=T,d") is parse_shape(" Q = T, d ") is sa.tensor("Q", "T d")
    assert parse_shape("M=T,h*d,binary,constant") is sa.tensor("M", T, h * d, binary=True, constant=True)
    assert parse_shape("X: T h*d 2") is sa.tensor("X", T, h * d, 2)
    assert parse_shape("M: T S, binary constant") is sa.tensor("M", T, S, binary=True, constant=True)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("Q", sa.ParseError, "declared as"),
        ("Q: T, d", sa.ParseError, "'d' is not a property"),
        ("Q: T __import__('os')", sa.ParseError, "not a size"),
        ("Q: T 0", sa.ShapeError, "positive"),
        ("Q: T 1/2", sa.ShapeError, "whole"),
        ("os.system: T", sa.NamingError, "cannot be a name"),
        ("class: T", sa.NamingError, "keyword"),
        ("A: T S, symmetric", sa.ShapeError, "sizes differ"),
        ("T: T d", sa.NamingError, "rename"),
    ],
)
def test_other_text_is_no_shape(text, error, message):
    with pytest.raises(error, match=message):
        parse_shape(text)


# --- expressions ---


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Q @ K.T / sqrt(d)", Q @ K.T / sympy.sqrt(d)),
        ("softmax(Q @ K.T) @ V", sa.softmax(Q @ K.T) @ V),
        ("Q * 0.1 + 1/3", Q * sympy.Rational(1, 10) + sympy.Rational(1, 3)),
        ("-Q**2", -(Q**2)),
        ("2**Q", 2**Q),
        ("c * tanh(B / c)", c * sa.tanh(B / c)),
        ("t * Q", t * Q),
        ("sqrt(Q)", sa.sqrt(Q)),
        ("sqrt(2*d) * Q", sympy.sqrt(2 * d) * Q),
        ("floor(d/2) * Q", sympy.floor(d / 2) * Q),
        ("max(Q)", sa.max(Q)),
        ("sum(Q, axis=(0, 1), keepdims=True)", sa.sum(Q, axis=(0, 1), keepdims=True)),
        ("rowsum(Q)", sa.sum(Q, axis=-1, keepdims=True)),
        ("rowlogsumexp(Q)", sa.logsumexp(Q, axis=-1, keepdims=True)),
        ("softmax(B, where=M, empty='error')", sa.softmax(B, where=M, empty="error")),
        ("where(M & (B > 0) | ~M, B, -oo)", sa.where(M & (B > 0) | ~M, B, -sympy.oo)),
        ("einsum('td,sd->ts', Q, K)", sa.einsum("td,sd->ts", Q, K)),
        ("split_axis(X, -1, (h, d))", sa.split_axis(X, -1, (h, d))),
        ("repeat(H, times=3, axis=0)", sa.repeat(H, 3, axis=0)),
        ("concat([Q, K], axis=0)", sa.concat([Q, K], axis=0)),
        ("moveaxis(H, 0, 1)", sa.moveaxis(H, 0, 1)),
        ("H.mT", H.mT),
        ("z[:, None] * w", z[:, None] * w),
        ("Q[..., 0]", Q[..., 0]),
        ("z[-1] + z[n - 1]", z[-1] + z[-1]),
        ("X[:, :d]", X[:, :d]),
        ("X[:, ::-1]", X[:, ::-1]),
        ("Q + ones(T, d) - eye(T) @ Q", Q + sa.ones(T, d) - sa.eye(T) @ Q),
        ("where((B == 0) | (B != 1), B, 0)", sa.where(sa.equal(B, 0) | ~sa.equal(B, 1), B, 0)),
        ("B + from_index((T, S), lambda i, j: -c*abs(i - j))", B + sa.from_index((T, S), lambda i, j: -c * abs(i - j))),
        (
            "from_index((T, S), lambda i, j: (j <= i) & (i - j < 3))",
            sa.from_index((T, S), lambda i, j: (j <= i) & (i - j < 3)),
        ),
        ("from_index((n,), lambda i: sin(i / 2**(i/d)))", sa.from_index(n, lambda i: sympy.sin(i / 2 ** (i / d)))),
        (
            "from_index(n, lambda i: where(i == 0, 1, 0))",
            sa.from_index(n, lambda i: sympy.Piecewise((1, sympy.Eq(i, 0)), (0, True))),
        ),
        ("elementwise(lambda u: u*atan(u), Q)", sa.elementwise(sympy.Lambda(c, c * sympy.atan(c)), Q)),
    ],
)  # fmt: skip
def test_text_reads_as_the_tensor_that_python_would_build(text, meant):
    assert read(text, NAMES) is meant


def test_assignments_name_intermediates_and_the_last_statement_is_meant():
    O = read("Z = Q @ K.T / sqrt(d); P = softmax(Z)\nP @ V", NAMES)
    P = sa.let("P", sa.softmax(sa.let("Z", Q @ K.T / sympy.sqrt(d))))
    assert O is P @ V
    assert read("Z = Q @ K.T", NAMES) is sa.let("Z", Q @ K.T)


def test_a_decimal_is_exactly_what_is_written():
    assert read("0.1000000000000000000001", NAMES) is sa.ops.leaves.as_tensor(sympy.Rational(10**21 + 1, 10**22))


def test_indented_text_of_several_lines_is_read():
    assert read("\n    Z = Q @ K.T\n    Z\n", NAMES) is sa.let("Z", Q @ K.T)


# --- printed text reads back ---

Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
P = sa.let("P", sa.softmax(Z, where=M))
EXPRESSIONS = [
    Q @ K.T / sympy.sqrt(d),
    P @ V,
    (Q + 1) * 2 / c - Q / (3 * d),
    -(Q @ K.T),
    Q - (Q - 1),
    Q / (1 + Q) / 2,
    Q * (Q @ (K.T @ K)),
    (Q @ K.T) @ K - Q @ (K.T @ K),
    sa.exp(Q) ** 2,
    2**Q,
    Q**-1,
    sa.sum(Q), sa.sum(Q, axis=0), sa.mean(Q, axis=-1, keepdims=True), sa.max(H, axis=(0, 2)), sa.logsumexp(Q),
    sa.logsumexp(z), sa.min(Q, axis=(0, 1), keepdims=True),
    sa.where(M & (B > 0), B, -sympy.oo), ~M | (B <= 2), sa.equal(B, 1),
    sa.softmax(B, axis=0), sa.softmax(B, where=M, empty="error"),
    sa.from_index((T, S), lambda i, j: (j <= i) & (i - j < 3)),
    sa.from_index((T, S), lambda i, j: -c * abs(i - j) / 8),
    sa.from_index((n, d), lambda i, k: sympy.cos(i * 10000 ** (-2 * sympy.floor(k / 2) / d))),
    sa.from_index((n,), lambda i: sympy.Piecewise((sympy.sqrt(i), i > 2), (sympy.Mod(i, 2), True))),
    sa.elementwise(sympy.Lambda(c, c * sympy.atan(c)), Q),
    sa.einsum("htd,hsd->hts", H, H), sa.diag(z), sa.diag(A), sa.outer(z, w), sa.trace(A),
    sa.concat([Q, K], axis=0), sa.split_axis(X, -1, (h, d)), sa.merge_axes(H, (1, 2)), sa.repeat(H, 3, axis=0),
    sa.moveaxis(H, 0, 2), sa.moveaxis(sa.moveaxis(H, 0, 2), 0, 1), H @ H.mT,
    z[:, None] - w, Q[0], Q[1:, None], X[:, d:], z[-1], z[::-1], Q[..., 2],
    sa.maximum(Q, 0), sa.mod(Q, 2), sa.gelu(Q) + sa.softplus(Q), sympy.pi * Q, t * Q, sympy.sqrt(2 * d) * Q,
    sa.zeros(T, d), sa.ones(n), sa.eye(n) @ A,
]  # fmt: skip


Q1, Q2, long = sa.tensor("Q'", T, d), sa.tensor("Q''", T, d), 10**999 + 7
primed = sympy.Symbol("T'", positive=True, integer=True)
SPELLED = {
    "primes": Q1 @ Q2.T,
    "a prime beside text": sa.einsum("ij,kj->ik", Q1, Q2),
    "a prime of a scalar": sympy.Symbol("s'", real=True) * Q1,
    "a prime of a size": sa.tensor("Y", primed, primed) / primed,
    "a prime of a keyword": sa.tensor("lambda'", n) * sa.tensor("lambda", n),
    "a prime in a rule": sa.from_index((primed, primed), lambda i, j: i - j + primed),
    "a prime of an intermediate": sa.let("Z'", Q1 @ Q2.T) * 2,
    "many digits": long * Q,
    "many digits below": sympy.Rational(long, long + 1) * Q,
    "a negative number": -long * Q,
    "a number of SymPy": sympy.EulerGamma * Q,
    "the golden ratio": sympy.GoldenRatio * Q,
}


@pytest.mark.parametrize("what", SPELLED)
def test_primes_and_long_numbers_read_back(what):
    x = SPELLED[what] + 1
    assert read(str(x), names_in(x)) is x


@pytest.mark.parametrize("text", ["Q_ + Q'", "Q'Q", "Q' + 'Q'", "'Q'", "Q' '", "f'{Q}'"])
def test_other_marks_are_no_primes(text):
    with pytest.raises(sa.ParseError):
        read(text, {"Q'": Q1, "Q": Q})


@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_printed_text_reads_back_as_the_same_node(x):
    assert read(str(x), names_in(x)) is definition(x)


FORWARD = [
    ("softmax(Q @ K.T / sqrt(d)) @ V", [Q, K, V]),
    ("Z = Q @ K.T / sqrt(d); softmax(Z, where=M) @ V", [Q, K, V]),
    ("Z = c * tanh(Q @ K.T / c); softmax(Z) @ V", [Q, K, V, c]),
    ("(Q - rowmean(Q)) * rsqrt(rowmean((Q - rowmean(Q))**2) + 0.001)", [Q]),
    ("x = H @ H.mT; softmax(x) @ H", [H]),
    ("einsum('htd,hsd->hts', H, H)", [H]),
    ("diag(z) @ A @ outer(z, w)", [z, A, w]),
    ("split_axis(X, -1, (h, d))**2", [X]),
    ("gelu(Q) * silu(Q)", [Q]),
    ("concat([softmax(B), exp(B)], axis=1)", [B]),
]


@pytest.mark.parametrize(("text", "wrt"), FORWARD, ids=[text for text, _ in FORWARD])
def test_the_steps_of_a_gradient_read_back_as_the_same_nodes(text, wrt):
    g = sa.gradient(sa.let("O", read(text, NAMES)), wrt)
    for step in (*g.steps, *g.definitions):
        assert read(str(step.expression), names_in(step.expression)) is definition(step.expression), step.name


# --- what is not read ---


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("__import__('os').system('true')", 0, "only functions called by name"),
        ("__import__('os')", 0, "unknown function '__import__'"),
        ("eval('1')", 0, "unknown function 'eval'"),
        ("Q.__class__.__mro__", 0, r"only \.T and \.mT"),
        ("softmin(Q)", 0, "did you mean softmax"),
        ("Q @ R", 4, r"'R' is not declared: declared are Q\[T, d\]"),
        ("Q + softmax", 4, "write softmax"),
        ("[Q for Q in K]", 0, "not read here"),
        ("(lambda: Q)()", 1, "only functions called by name"),
        ("Q if M else K", 0, "write where"),
        ("Q and K", 0, "write & or"),
        ("not M", 0, "write ~"),
        ("Q ^ K", 2, "not an operator"),
        ("Q // 2", 2, "not an operator"),
        ("0 < Q < 1", 0, "two sides"),
        ("Q is K", 0, "compare by"),
        ("'Q'", 0, "not a number"),
        ('f"{Q}"', 0, "text"),
        ("1j * Q", 0, "not a number"),
        ("True * Q", 0, "not a tensor"),
        ("softmax(*Q)", 8, "one by one"),
        ("softmax(Q, **K)", 11, "one by one"),
        ("softmax(Q, foo=1)", 0, "foo"),
        ("softmax(Q, 'x')", 11, "not a number"),
        ("sin(Q, K)", 0, "sin"),
        ("tan(Q)", 0, "for scalars"),
        ("Q[K]", 2, "an index is"),
        ("Q[0.5]", 2, "an index is"),
        ("from_index((T, S), 1)", 0, "is written as"),
        ("from_index((T, S), lambda i: i)", 19, "takes 2 plain names"),
        ("from_index((T, S), lambda i, j=1: i)", 19, "plain names"),
        ("from_index((T,), lambda i: Q[i, 0])", 27, "no entries"),
        ("from_index((T,), lambda i: Q)", 27, "'Q' is not declared"),
        ("import os", 0, "a statement is"),
        ("def f(): pass", 0, "a statement is"),
        ("Q = K", 0, "meaning already"),
        ("d = Q", 0, "meaning already"),
        ("Z = Q; Z = K", 7, "meaning already"),
        ("a, b = Q", 0, "names one"),
        ("a = b = Q", 0, "names one"),
        ("(Z := Q)", 1, "not read here"),
        ("Q +", 3, "cannot be read"),
        ("Q @ \u039a", 4, "ASCII"),
        ("Q\x00", 1, "ASCII"),
        ("1/0", 1, "division by zero"),
        ("0**-1", 1, "division by zero"),
        ("9**9**9", 1, "too large"),
        ("(2*d)**1000000", 5, "too large"),
        ("9" * 1001, 0, r"larger than 10\*\*1000"),
        ("1e999999999", 0, "digits"),
        ("1e-999", 0, "digits"),
        ("exp(exp(exp(9)))", 4, "beyond"),
        ("1if M else Q", 0, "cannot be read"),
    ],
)
def test_everything_else_is_an_error_with_a_caret_at_its_place(text, column, message):
    with pytest.raises(sa.ParseError, match=message) as caught:
        read(text, NAMES)
    assert caught.value.column == column
    assert str(caught.value).splitlines()[-1].strip() == "^"


@pytest.mark.parametrize(
    "text",
    [
        "Q" + " + Q" * 3000,
        "(" * 5000 + "Q" + ")" * 5000,
        "-" * 9000 + "Q",
        "Q" + ".T" * 4000,
        "9" * 9000,
        "Q" + " " * 20_000,
        "[" * 9000,
        "9**" * 3000 + "9",
        "Q[" * 2000,
    ],
    ids=["sum", "parentheses", "minus", "transposes", "digits", "long", "brackets", "tower", "subscripts"],
)
def test_hostile_text_is_refused_at_once(text):
    start = time.process_time()
    with pytest.raises(sa.ParseError) as caught:
        read(text, NAMES)
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", ["", "  \n ", "# a comment"])
def test_nothing_to_read_is_said(text):
    with pytest.raises(sa.ParseError, match="nothing to read"):
        read(text, NAMES)


def test_shapes_that_do_not_fit_keep_their_error_and_get_a_caret():
    with pytest.raises(sa.ShapeError, match="did you mean K.T") as caught:
        read("Z = 1 + Q @ K", NAMES)
    lines = str(caught.value).splitlines()
    assert lines[-2][lines[-1].index("^")] == "@"


def test_a_name_with_two_meanings_is_an_error():
    with pytest.raises(sa.NamingError, match="'d'"):
        read("Q", {"Q": Q, "d": sympy.Symbol("d", real=True)})


@given(st.text(max_size=60))
def test_any_text_gives_a_tensor_or_an_error_of_ours(text):
    try:
        assert isinstance(read(text, NAMES), sa.Tensor)
    except sa.SymattnError:
        pass


_TOKENS = "Q K M c d T ( ) [ ] , : . @ + - * / ** < == & | ~ 0 1 2.5 None ... softmax sum where axis = lambda ;".split()


@given(st.lists(st.sampled_from(_TOKENS), max_size=14))
def test_any_jumble_of_known_words_gives_a_tensor_or_an_error_of_ours(tokens):
    try:
        assert isinstance(read(" ".join(tokens), NAMES), sa.Tensor)
    except sa.SymattnError:
        pass
