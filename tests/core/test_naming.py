"""Names are whitelisted where they are made, and never mean two things in one output."""

from __future__ import annotations

import keyword

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.naming import fresh_name
from symattn.core.node import topological
from symattn.printing.symbols import latex_name
from symattn.reading import parse_shape, read

KEYWORDS = [word for word in keyword.kwlist if word != "lambda"]
HOSTILE = [
    "__import__('os')",
    "os.system('x')",
    "\\input",
    "\\input{/etc/passwd}",
    "\\def",
    "$x$",
    "%",
    "#1",
    "a&b",
    "a~b",
    "x^2",
    "x_{1}",
    "a b",
    "a\n",
    "a\nb",
    "\n",
    "a\tb",
    "a\x00",
    "a\r",
    "",
    " ",
    "_",
    "__",
    "_a",
    "a_",
    "a__b",
    "1a",
    "'",
    "'a",
    "a'b",
    "a-b",
    "a+b",
    "a;b",
    'a"b',
    "a`b",
    "{x}",
    "Q\u200b",
    "\u0430",
    "\u212a",
    "\uff21",
    "\u03b1",
    "x\u0301",
    "\u00e9",
    "\u06f1",
    "a\u0661",
    "x\u2032",
    "A" * 61,
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize("make", [lambda x: sa.tensor(x, 3), lambda x: sa.let(x, sa.ones(3))], ids=["tensor", "let"])
def test_hostile_names_are_refused(make, name):
    with pytest.raises(sa.NamingError, match="cannot be a name"):
        make(name)


@pytest.mark.parametrize(
    "name", [x for x in HOSTILE if len(x.replace(",", " ").split()) == 1 and x == x.strip()], ids=ascii
)
def test_hostile_sizes_are_refused(name):
    with pytest.raises(sa.NamingError, match="cannot be a name"):
        sa.sizes(name)


@pytest.mark.parametrize("name", KEYWORDS)
def test_python_keywords_are_refused_with_another_name(name):
    with pytest.raises(sa.NamingError, match=f"Python keyword.*{name}1"):
        sa.tensor(name, 3)
    with pytest.raises(sa.NamingError, match="Python keyword"):
        sa.sizes(name)


@pytest.mark.parametrize("name", [None, 3, b"Q", ["Q"], sympy.Symbol("Q"), 1.5])
def test_a_name_is_a_string(name):
    with pytest.raises(sa.NamingError, match="a name is a string"):
        sa.tensor(name, 3)


@pytest.mark.parametrize(
    "name", ["Q", "W_q", "d_k", "Pi", "x'", "x''", "W_q_1", "P1", "input", "A" * 60, "softmax", "np"]
)
def test_letters_digits_underscores_and_primes_make_a_name(name):
    assert str(sa.tensor(name, 3)) == name


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("W_q", "W_{q}"),
        ("Pi", r"\Pi"),
        ("alpha", r"\alpha"),
        ("x'", "x'"),
        ("W_q'", "W_{q}'"),
        ("A1", "A_{1}"),
        ("Xbar", r"\bar{X}"),
        ("dalpha", r"\mathrm{d}\alpha"),
        ("dX", r"\mathrm{d}X"),
        ("dX_1", r"\mathrm{d}X_{1}"),
        ("d_k", "d_{k}"),
        ("delta", r"\delta"),
        ("d", "d"),
        ("input", r"\mathrm{input}"),
    ],
)
def test_names_print_by_the_conventions_of_sympy_and_keep_the_d_of_differentials(name, written):
    assert latex_name(name) == written


def test_a_fresh_name_is_numbered_past_those_taken():
    assert fresh_name("Z", {"Q"}) == "Z"
    assert fresh_name("Z", {"Z", "Z_1"}) == "Z_2"


WAYS_TO_SHOW = [str, sa.latex, sa.entries, lambda x: sa.gradient(x, [x.tensors[0]]), lambda x: sa.sum(x).latex]


@pytest.mark.parametrize("show", WAYS_TO_SHOW[:4], ids=["str", "latex", "entries", "gradient"])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: sa.tensor("Q", 4, 3).T, r"Q\[3, 4\] and Q\[4, 3\]"),
        (lambda: sa.tensor("Q", 3, 4, positive=True), r"Q\[3, 4\] and Q\[3, 4\] \(no hypotheses and positive\)"),
    ],
    ids=["shape", "hypotheses"],
)
def test_one_tensor_name_with_two_meanings_is_an_error_that_shows_both(show, other, said):
    with pytest.raises(sa.NamingError, match=rf"the name 'Q' stands for two tensors, {said}"):
        show(sa.tensor("Q", 3, 4) + other())


@pytest.mark.parametrize("show", WAYS_TO_SHOW[:4], ids=["str", "latex", "entries", "gradient"])
@pytest.mark.parametrize("symbol", [sa.sizes("Q"), sympy.Symbol("Q", real=True)], ids=["size", "scalar"])
def test_a_tensor_and_a_symbol_of_one_name_are_an_error(show, symbol):
    with pytest.raises(sa.NamingError, match="'Q' names both a tensor and a size or scalar: rename one"):
        show(sa.tensor("Q", 3, 4) * symbol)


def test_a_tensor_named_like_one_of_its_own_sizes_is_refused_when_made():
    with pytest.raises(sa.NamingError, match=r"T\[T\].*rename one"):
        sa.tensor("T", "T")


def test_two_names_with_the_same_latex_are_an_error_in_latex_only():
    clash = sa.tensor("A1", 3, 3) @ sa.tensor("A_1", 3, 3)
    assert str(clash) == "A1 @ A_1"
    with pytest.raises(sa.NamingError, match="'A1' and 'A_1' would both print as A_{1}"):
        sa.latex(clash)
    with pytest.raises(sa.NamingError, match="would both print"):
        sa.gradient(clash, clash.tensors).latex()


def test_a_label_shared_by_two_nodes_is_numbered_in_order():
    X, W = sa.tensor("X", "n n"), sa.tensor("W", "n n")
    once = sa.let("Y", sa.tanh(X @ W))
    twice = sa.let("Y", sa.tanh(once @ W))
    assert str(twice + once) == "Y_2 + Y_1"
    assert sa.latex(twice + once) == "Y_{2} + Y_{1}"
    assert [e.name for e in sa.entries(twice + once)][:2] == ["Y_1", "Y_2"]
    assert [s.name for s in sa.gradient(twice, [X]).steps][-2:] == ["dY_1", "dX"]
    assert str(twice) == "tanh(Y @ W)" or str(twice) == "tanh(Y_1 @ W)"


def test_the_same_node_named_twice_keeps_its_label():
    X = sa.tensor("X", "n n")
    P = sa.let("P", sa.tanh(X))
    assert str(P @ sa.let("P", sa.tanh(X))) == "P @ P"


def test_numbered_labels_avoid_the_names_in_use():
    X, taken = sa.tensor("X", "n n"), sa.tensor("P_1", "n n")
    first, second = sa.let("P", sa.tanh(X)), sa.let("P", sa.exp(X))
    assert str(first + second + taken) == "P_2 + P_3 + P_1"


def test_a_label_that_is_a_tensor_s_or_a_size_s_name_is_numbered():
    Q, n = sa.tensor("Q", "n n"), sa.sizes("n")
    assert str(sa.let("Q", sa.tanh(Q)) @ Q) == "Q_1 @ Q"
    assert str(n * sa.let("n", sa.tanh(Q))) == "n * n_1"


def test_generated_names_never_capture_those_of_the_user():
    Q, K, dP, P, Z = (sa.tensor(name, "n n") for name in ("Q", "K", "dP", "P", "Z"))
    g = sa.gradient(sa.softmax(Q @ K.T) @ dP + P @ Z, [Q, dP, P, Z])
    names = [*(s.name for s in g.steps), *(s.name for s in g.definitions), g.cotangent.name]
    assert len(set(names)) == len(names)
    assert not set(names) & {"Q", "K", "dP", "P", "Z"}


@pytest.mark.parametrize("name", KEYWORDS)
def test_what_is_offered_for_a_keyword_is_a_name(name):
    with pytest.raises(sa.NamingError, match=f"'{name}' is a Python keyword and cannot be a name: write ") as failure:
        sa.tensor(name, "T")
    offered = str(failure.value).split("write ")[1].split(" or ")
    assert all(sa.tensor(other.strip("'"), "T").name == other.strip("'") for other in offered)


def test_a_name_that_is_too_long_says_so():
    with pytest.raises(sa.NamingError, match=r"'A{20}\.\.\.' cannot be a name: it has 61 characters, and 60 are"):
        sa.tensor("A" * 61, "T")


# --- lambda, which Python keeps for itself ---

SIZE = sa.sizes("lambda")
LAMBDA = sympy.Symbol("lambda", positive=True)
X = sa.tensor("X", "T d")


@pytest.mark.parametrize(
    ("x", "text", "latex"),
    [
        (sa.tensor("lambda", "T d") * X, "lambda_ * X", r"\lambda \odot X"),
        (sa.exp(-LAMBDA * X), "exp(-lambda_ * X)", r"\exp(-\lambda X)"),
        (sa.let("lambda", X @ X.T) @ X, "lambda_ @ X", r"\lambda X"),
        (sa.ones("lambda_", "d"), "ones(lambda_, d)", r"\mathbf{1}_{\lambda \times d}"),
        (sa.from_index("T", lambda i: LAMBDA * i), "from_index((T,), lambda i: i*lambda_)", r"[i \lambda]_{i}"),
    ],
    ids=str,
)
def test_lambda_is_a_name_that_python_spells_with_a_line(x, text, latex):
    assert str(x) == text
    assert sa.latex(x) == latex
    names = {str(y.name): y for y in topological([x]) if y.name}
    assert (
        read(
            text,
            {
                **names,
                "lambda": names.get("lambda", SIZE if "ones" in text else LAMBDA),
                "T": sa.sizes("T"),
                "d": sa.sizes("d"),
            },
        )
        is x
    )


def test_code_takes_lambda_as_an_argument_and_as_a_keyword():
    lam = sa.tensor("lambda", "T d")
    f = sa.lambdify([lam, X], sa.let("y", lam * X))
    assert "def f(lambda_, X):" in f.source
    g = sa.lambdify([X], LAMBDA * X)
    assert "def f(X, *, lambda_):" in g.source
    assert g(np.ones((2, 3)), lambda_=3.0).sum() == 18
    assert g.check() is not None


def test_what_comes_from_lambda_has_its_letter():
    lam = sa.let("lambda", X @ X.T)
    g = sa.gradient(sa.sum(lam * lam), X)
    assert g.steps[0].name == "dlambda"
    assert r"\mathrm{d}\lambda &= 2 \lambda" in g.latex()
    assert str(sa.jvp(sa.tanh(lam), {X: X})).startswith("lambdadot * (1 - tanh(lambda_)**2)")
    assert sa.prove(sa.exp(-LAMBDA * X) * sa.exp(LAMBDA * X), sa.ones("T", "d"))
    assert parse_shape("lambda: T d") is parse_shape("lambda_: T d")
    assert read("lambda_ = X + 1; lambda_ @ lambda_.T", {"X": X}) is sa.let("lambda", X + 1) @ sa.let("lambda", X + 1).T
