r"""Index style: one entry with its sums, held by golden files and read back by a small evaluator of what is printed."""

from __future__ import annotations

import itertools
import math
import operator
import re
from pathlib import Path

import numpy as np
import pytest
import sympy

import symattn as sa

from ..blocks import rows_of

GOLDEN = Path(__file__).parents[1] / "golden" / "index"
T, S, d, e, h, n, D, C = sa.sizes("T S d e h n D C")
Q, K, V, X = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, e), sa.tensor("X", T, d)
H, A, v = sa.tensor("H", h, T, d), sa.tensor("A", n, n), sa.tensor("v", n)
gamma, beta, c = sa.tensor("gamma", d), sa.tensor("beta", d), sa.tensor("c")
epsilon = sympy.Symbol("epsilon", positive=True)
mask = sa.from_index((T, S), lambda i, j: j <= i)
causal = sa.from_index((T, T), lambda i, j: sympy.Piecewise((0, j <= i), (-sympy.oo, True)))


def index(x, **options):
    return sa.latex(x, style="index", **options)


# --- golden files ---


def attention(**options):
    Z = sa.let("Z", Q @ K.T / sympy.sqrt(d))
    P = sa.let("P", sa.softmax(Z, **options))
    return [Z, P, sa.let("O", P @ V)]


def layer_norm():
    mu = sa.let("mu", sa.mean(X, axis=-1, keepdims=True))
    U = sa.let("U", X - mu)
    r = sa.let("r", sa.rsqrt(sa.mean(U**2, axis=-1, keepdims=True) + epsilon))
    return [mu, U, r, sa.let("Y", gamma * (U * r) + beta)]


def rotary(pairs):
    R = sa.tensor("R", T, 2 * n)
    angle = sa.from_index((T, n), lambda i, j: i * sympy.Integer(10000) ** (-j / n))
    c_t, s_t = sa.let("c_t", sa.cos(angle)), sa.let("s_t", sa.sin(angle))
    split = sa.split_axis(R, -1, (n, 2))
    left, right = (split[:, :, 0], split[:, :, 1]) if pairs else (R[:, :n], R[:, n:])
    turned = left * c_t - right * s_t, left * s_t + right * c_t
    joined = sa.concat([y[:, :, None] for y in turned] if pairs else turned, axis=-1)
    return [c_t, s_t, sa.let("Y", sa.merge_axes(joined, (1, 2)) if pairs else joined)]


def multi_head():
    source = sa.tensor("X", T, D)
    weights = [sa.tensor(f"W_{name}", D, h * d) for name in "qkv"]
    lines = [
        sa.let(name, sa.moveaxis(sa.split_axis(source @ weight, -1, (h, d)), 1, 0))
        for name, weight in zip("QKV", weights, strict=True)
    ]
    q, k, v = lines
    lines.append(sa.let("Z", q @ k.mT / sympy.sqrt(d) + causal))
    lines.append(sa.let("P", sa.softmax(lines[-1])))
    lines.append(sa.let("C", lines[-1] @ v))
    return [*lines, sa.let("O", sa.merge_axes(sa.moveaxis(lines[-1], 0, 1), (1, 2)) @ sa.tensor("W_o", h * d, D))]


def attention_of_heads():
    q, k, v = (sa.tensor(name, h, T, d) for name in "QKV")
    Z = sa.let("Z", q @ k.mT / sympy.sqrt(d) + causal)
    return sa.let("O", sa.let("P", sa.softmax(Z)) @ v), (q, k, v)


def sink():
    Z = sa.let("Z", sa.concat([sa.tensor("s", T, 1), Q @ K.T / sympy.sqrt(d)], axis=-1))
    P = sa.let("P", sa.softmax(Z))
    return [Z, P, sa.let("O", P[:, 1:] @ V)]


def cross_entropy():
    Z, Y = sa.tensor("Z", n, C), sa.tensor("Y", n, C, binary=True)
    return sa.let("L", sa.mean(sa.logsumexp(Z) - sa.sum(Y * Z, axis=-1))), Z


def lines(named, style="index"):
    return rows_of(named, style)


DOCUMENTS = {
    "attention": lambda: lines(attention()),
    "attention_backward": lambda: sa.gradient(attention()[-1], [Q, K, V]).latex(style="index"),
    "layer_norm": lambda: lines(layer_norm()),
    "layer_norm_backward": lambda: sa.gradient(layer_norm()[-1], [X, gamma, beta]).latex(style="index"),
    "masked_softmax": lambda: lines(attention(where=mask)[:2]),
    "rope_halves": lambda: lines(rotary(pairs=False)),
    "rope_pairs": lambda: lines(rotary(pairs=True)),
    "rope_pairs_in_matrix_style": lambda: sa.latex(rotary(pairs=True)[2]),
    "multi_head": lambda: lines(multi_head()),
    "multi_head_in_matrix_style": lambda: lines(multi_head(), "matrix"),
    "heads_backward_in_matrix_style": lambda: sa.gradient(*attention_of_heads()).latex(),
    "concat_sink": lambda: lines(sink()),
    "cross_entropy": lambda: index(cross_entropy()[0]),
    "attention_from_one": lambda: rows_of(attention(where=mask), "index", 1),
    "cross_entropy_backward": lambda: sa.gradient(*cross_entropy()).latex(style="index"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_print_as_their_golden_files(name):
    assert DOCUMENTS[name]() + "\n" == (GOLDEN / f"{name}.tex").read_text()


def test_every_golden_file_belongs_to_a_test():
    assert {path.stem for path in GOLDEN.glob("*")} == set(DOCUMENTS)


c_1 = sa.tensor("c_1", n, 1)
RANGES = [
    (X[:-1], r"X_{i j} \quad (i = 0, \ldots, T - 2)", r"X_{i j} \quad (i = 1, \ldots, T - 1)"),
    (X[1:], "X_{i + 1, j}", "X_{i + 1, j}"),
    (X[1:-1], r"X_{i + 1, j} \quad (i = 0, \ldots, T - 3)", r"X_{i + 1, j} \quad (i = 1, \ldots, T - 2)"),
    (X[:2, :2], r"X_{i j} \quad (i, j = 0, 1)", r"X_{i j} \quad (i, j = 1, 2)"),
    (X[:2, :3], r"X_{i j} \quad (i = 0, 1; j = 0, \ldots, 2)", r"X_{i j} \quad (i = 1, 2; j = 1, \ldots, 3)"),
    (sa.let("D", X[1:] - X[:-1]), "D_{i j} = X_{i + 1, j} - X_{i j}", "D_{i j} = X_{i + 1, j} - X_{i j}"),
    (sa.flip(v, 0), "v_{n - i - 1}", "v_{n + 1 - i}"),
    (sa.repeat(v, 3, 0), r"v_{\lfloor i/3 \rfloor}", r"v_{\lfloor (i - 1)/3 \rfloor + 1}"),
    (sa.tile(v, 2, 0), r"v_{i \bmod n} \quad (i = 0, \ldots, 2 n - 1)",
     r"v_{((i + n - 1) \bmod n) + 1} \quad (i = 1, \ldots, 2 n)"),
    (sa.cumsum(v[:-1]), r"\sum_{k = 0}^{i} v_{k} \quad (i = 0, \ldots, n - 2)",
     r"\sum_{k = 1}^{i} v_{k} \quad (i = 1, \ldots, n - 1)"),
    (sa.repeat(c_1, d, 1), r"(c_{1})_{i} \quad (j = 0, \ldots, d - 1)", r"(c_{1})_{i} \quad (j = 1, \ldots, d)"),
    (sa.eye(n), r"\delta_{i j}", r"\delta_{i j}"),
    (sa.tile(v[1:], 2, 0), r"v_{(i \bmod (n - 1)) + 1} \quad (i = 0, \ldots, 2 n - 3)", None),
]  # fmt: skip


@pytest.mark.parametrize(("made", "from_zero", "from_one"), RANGES)
def test_how_far_an_index_runs_is_told_where_what_it_reads_does_not_say_so(made, from_zero, from_one):
    assert index(made) == from_zero
    assert from_one in (index(made, first_index=1), None)


def test_the_inverse_of_what_has_a_name_is_written_by_it():
    assert index(sa.inv(A)) == index(sa.inv(A), first_index=1) == r"(A^{-1})_{i j}"
    assert index(sa.inv(A.T)) == r"([A_{k l}]_{l k}^{-1})_{i j}"
    assert index(sa.inv(A[:2, :2])) == r"([A_{k l}]_{k l : k < 2, l < 2}^{-1})_{i j}"
    assert index(sa.inv(A[:2, :2]), first_index=1) == r"([A_{k l}]_{k l : k \le 2, l \le 2}^{-1})_{i j}"


def test_a_condition_that_holds_for_all_values_of_the_indices_is_not_written():
    gradient = sa.gradient(sa.let("y", sa.flip(sa.tanh(v), 0)), v)
    assert index(gradient[v]) == r"\mathrm{d}v_{i} = \mathrm{d}y_{n - i - 1} (1 - \tanh^{2}(v_{i}))"
    assert r"\text{for } i \le n - 3" in index(sa.where(sa.from_index((n,), lambda i: -i >= 3 - n), v, 0))


def test_how_far_an_index_runs_is_told_in_rows_and_in_matrix_style():
    document = sa.Derivation("Part").extend(sa.let("Y", X[:-1])).latex(style="index")
    assert r"Y_{i j} &:= X_{i j} \quad (i = 0, \ldots, T - 2)" in document
    assert sa.latex(sa.repeat(c_1, d, 1)) == r"[(c_{1})_{i}]_{i j : j < d}"
    assert sa.latex(sa.repeat(c_1, d, 1), first_index=1) == r"[(c_{1})_{i}]_{i j : j \le d}"


# --- reading it back ---


WORDS = {r"\begin{cases}": r"\cases", r"\end{cases}": r"\end", r"\text{for }": r"\for ", r"\left[": "[",
         r"\left(": "(", r"\right": "", r"\left\lfloor": r"\lfloor", r"\left\lvert": r"\lvert",
         r"\text{otherwise}": r"\for 0 = 0", r"\mathrm{e}": "e", r"\operatorname{erf}": r"\erf",
         r"\displaystyle": ""}  # fmt: skip
FUNCTIONS = {r"\exp": math.exp, r"\log": math.log, r"\sin": math.sin, r"\cos": math.cos, r"\tanh": math.tanh,
             r"\erf": math.erf}  # fmt: skip
RELATIONS = {"<": operator.lt, ">": operator.gt, "=": operator.eq, r"\le": operator.le, r"\ge": operator.ge,
             r"\neq": operator.ne}  # fmt: skip


class Reader:
    """Evaluates what index style prints: a sum runs to the end of its product, and products bind tighter than sums."""

    def __init__(self, written, arrays, scalars):
        for word, short in WORDS.items():
            written = written.replace(word, short)
        self.arrays, self.scalars = arrays, scalars
        names = "|".join(re.escape(name) for name in sorted(arrays, key=len, reverse=True) if len(name) > 1)
        pattern = (names + "|" if names else "") + r"\\[A-Za-z]+|\\\\|[A-Za-z]|\d+|[^\s\\]"
        self.tokens = [*re.findall(pattern, re.sub(r"\\[,:]", " ", written)), "end"]
        self.at = 0

    def read(self):
        value = self.total()
        assert self.tokens[self.at] == "end", self.tokens[self.at :]
        return value

    @property
    def next(self):
        return self.tokens[self.at]

    def take(self, *wanted):
        if self.next in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def must(self, token):
        assert self.take(token), (token, self.tokens[self.at :])

    def group(self, left="{", right="}"):
        self.must(left)
        value = self.total()
        self.must(right)
        return value

    def total(self):
        terms = [(self.take("-"), self.product())]
        while sign := self.take("+", "-"):
            terms.append((sign, self.product()))
        return lambda env: sum(-f(env) if sign == "-" else f(env) for sign, f in terms)

    def product(self):
        value = self.power()
        while self.next not in {"+", "-", "}", ")", "]", "&", ",", r"\\", r"\end", r"\wedge", r"\rfloor", r"\rvert",
                                "end", *RELATIONS}:  # fmt: skip
            left, sign = value, self.take("/", r"\bmod", r"\cdot")
            right = self.power()
            work = {"/": operator.truediv, r"\bmod": operator.mod}.get(sign, operator.mul)
            value = lambda env, left=left, right=right, work=work: work(left(env), right(env))  # noqa: E731
        return value

    def power(self):
        base = self.factor()
        while self.take("^"):
            base = (lambda b, up: lambda env: b(env) ** up(env))(base, self.group())
        return base

    def factor(self):
        token = self.next
        self.at += 1
        if token in self.arrays:
            return self.entry(self.arrays[token])
        if token == "e" and self.next == "^":
            return lambda env: math.e
        if token in (r"\sum", r"\max", r"\min"):
            return self.over({r"\sum": sum, r"\max": max, r"\min": min}[token])
        if token == r"\frac":
            above, below = self.group(), self.group()
            return lambda env: above(env) / below(env)
        if token == r"\sqrt":
            degree = self.group("[", "]") if self.next == "[" else lambda env: 2
            inside = self.group()
            return lambda env: inside(env) ** (1 / degree(env))
        if token in FUNCTIONS:
            up = self.group() if self.take("^") else lambda env: 1
            inside = self.group("(", ")")
            return lambda env: FUNCTIONS[token](inside(env)) ** up(env)
        if token == r"\delta":
            indices = self.indices(2)
            return lambda env: float(len({i(env) for i in indices}) == 1)
        if token == r"\lfloor":
            self.at -= 1
            inside = self.group(r"\lfloor", r"\rfloor")
            return lambda env: math.floor(inside(env))
        if token == r"\lvert":
            self.at -= 1
            inside = self.group(r"\lvert", r"\rvert")
            return lambda env: abs(inside(env))
        if token == r"\cases":
            return self.cases()
        if token in "({":
            self.at -= 1
            return self.group(token, {"(": ")", "{": "}"}[token])
        if token == "[":
            condition = self.condition()
            self.must("]")
            return lambda env: float(condition(env))
        if token == r"\infty":
            return lambda env: math.inf
        return lambda env: float(token) if token.isdigit() else {**self.scalars, **env}[token]

    def indices(self, count):
        self.must("_")
        self.must("{")
        apart = count == 1 or "," in self.tokens[self.at : self.tokens.index("}", self.at)]
        read = []
        while not self.take("}"):
            read.append(self.total() if apart else self.factor())
            self.take(",")
        assert len(read) == count
        return read

    def entry(self, array):
        if array.ndim == 0:
            return lambda env: float(array)
        indices = self.indices(array.ndim)

        def value(env):
            at = [i(env) for i in indices]
            inside = all(float(i).is_integer() and 0 <= i < size for i, size in zip(at, array.shape, strict=True))
            return float(array[tuple(map(int, at))]) if inside else math.nan  # where a case does not apply

        return value

    def over(self, fold):
        self.must("_")
        self.must("{")
        letter = self.tokens[self.at]
        self.at += 1
        self.must("=")
        low = self.total()
        self.must("}")
        self.must("^")
        high, body = self.group(), self.product()
        return lambda env: fold(body({**env, letter: k}) for k in range(int(low(env)), int(high(env)) + 1))

    def cases(self):
        rows = []
        while not self.take(r"\end"):
            value = self.total()
            self.must("&")
            self.must(r"\for")
            rows.append((value, self.condition()))
            self.take(r"\\")
        return lambda env: next(value for value, condition in rows if condition(env))(env)

    def condition(self):
        parts = [self.relation()]
        while self.take(r"\wedge"):
            parts.append(self.relation())
        return lambda env: all(part(env) for part in parts)

    def relation(self):
        left = self.total()
        sign = RELATIONS[self.take(*RELATIONS)]
        right = self.total()
        return lambda env: sign(left(env), right(env))


SIZES = {T: 3, S: 4, d: 2, n: 5, e: 3, h: 2, D: 3, C: 4}
EXPRESSIONS = [
    sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V,
    sa.softmax(Q @ K.T, axis=0),
    sa.softmax(Q @ K.T, where=mask),
    sa.softmax(X @ X.T + causal),
    sa.logsumexp(Q @ K.T) ** 2,
    (X - sa.mean(X, axis=-1, keepdims=True)) * sa.rsqrt(sa.mean(X**2, axis=-1, keepdims=True) + 1) * gamma + beta,
    sa.exp(X - sa.max(X, axis=-1, keepdims=True)),
    sa.max(sa.max(X, axis=0) - sa.min(X, axis=0)) - 2 * sa.min(X),
    sa.sum(X, axis=1) * sa.sum(X @ X.T, axis=0) / sa.sum(X**2),
    (sa.sum(X) + 1) ** 2 * X - (gamma - beta) ** 3 / 4,
    -(X + gamma) @ X.T @ (X - beta),
    sa.einsum("htd,hsd->hts", H, H),
    sa.einsum("htd->d", H),
    sa.concat([X, K[1:], X[::-1] * 2], axis=0),
    sa.concat([X, -(X @ X.T) - 1], axis=-1) * 3,
    sa.merge_axes(sa.moveaxis(H, 0, 1), (1, 2)),
    sa.split_axis(sa.merge_axes(H, (0, 1)), 0, (h, T)),
    sa.repeat(H, 2, axis=0),
    sa.relu(X) * X - sa.abs(X) + sa.sign(X - gamma),
    sa.gelu(X) + sa.silu(X) - sa.softplus(-X) * sa.tanh(X / 3),
    sa.maximum(X, gamma) * sa.where(X > 0, 2 * X, -1),
    sa.eye(n) - A @ sa.diag(A[:, 0]),
    sa.trace(A @ A) * A / n,
    c * A + sa.from_index((n, n), lambda i, j: (i - j) ** 2 / (i + j + 1)),
    1 / (1 + sa.exp(-c * A)),
    sa.gradient(sa.concat([X, X[1:]], axis=0), [X]).steps[-1].expression,
]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("x", EXPRESSIONS, ids=str)
def test_what_is_printed_reads_back_to_the_values_of_the_tensor(x, first):
    rng = np.random.default_rng(0)
    known = {s: SIZES[s] for s in x.free_symbols}
    arrays = {t: rng.normal(size=[int(size.subs(SIZES)) for size in t.shape]) for t in x.tensors}
    f = sa.lambdify(list(arrays), x)
    want = np.asarray(f(*arrays.values(), **{s.name: known[s] for s in f.takes.keywords}))
    pads = {t: [(first, 0)] * array.ndim for t, array in arrays.items()}
    counted = {t: np.pad(a, pads[t], constant_values=np.nan) if pads[t] else a for t, a in arrays.items()}
    spelled = {index(t).partition("_{")[0]: array for t, array in counted.items()}
    right = index(sa.let("out", x), first_index=first).partition(" = ")
    letters = right[0].partition("_{")[2].rstrip("}").split()
    value = Reader(right[2], spelled, {s.name: v for s, v in known.items()}).read()
    kept = [axis for axis, size in enumerate(x.shape) if size != 1]
    for at in itertools.product(*map(range, want.shape)):
        got = value(dict(zip(letters, (at[axis] + first for axis in kept), strict=True)))
        assert got == pytest.approx(want[at], rel=1e-12, abs=1e-12)


# --- names and letters ---


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Q", "Q_{i j}"),
        ("W_q", "(W_{q})_{i j}"),
        ("W_q'", "(W_{q}')_{i j}"),
        ("x'", "(x')_{i j}"),
        ("alpha", r"\alpha_{i j}"),
        ("mask", r"\mathrm{mask}_{i j}"),
        ("P_1", "(P_{1})_{i j}"),
        ("dQ", r"\mathrm{d}Q_{i j}"),
        ("dalpha", r"\mathrm{d}\alpha_{i j}"),
        ("dW_q", r"(\mathrm{d}W_{q})_{i j}"),
        ("delta", r"\delta_{i j}"),
        ("dim", r"\mathrm{dim}_{i j}"),
        ("Pdot", r"\dot{P}_{i j}"),
    ],
)
def test_a_name_of_several_parts_is_never_read_as_a_product(name, written):
    assert index(sa.tensor(name, n, n)) == written


def test_an_expression_without_a_name_has_no_left_side():
    assert index(Q @ K.T) == r"\sum_{k = 0}^{d - 1} Q_{i k} K_{j k}"
    assert index(sa.sum(A)) == r"\sum_{k = 0}^{n - 1} \sum_{l = 0}^{n - 1} A_{k l}"
    assert index(sa.tensor("c")) == "c"


def test_indices_are_never_the_names_of_sizes_scalars_or_tensors():
    i, k, j = sa.sizes("i k j")
    x, l = sa.tensor("x", i, k), sa.tensor("l", k, j)
    assert index(sa.let("a", x @ l)) == r"a_{b c} = \sum_{m = 0}^{k - 1} x_{b m} l_{m c}"
    m = sympy.Symbol("m", real=True)
    assert index(m * (x @ l)) == r"m \sum_{n = 0}^{k - 1} x_{a n} l_{n b}"


def test_indices_of_a_gradient_are_free_of_the_names_of_all_its_lines():
    q, k = sa.tensor("q", T, d), sa.tensor("k", S, d)
    printed = sa.gradient(sa.let("y", q @ k.T), [q, k]).latex(style="index")
    assert r"\sum_{l = 0}^{S - 1} \mathrm{d}y_{i l} \, k_{l j}" in printed
    assert r"\sum_{l = 0}^{T - 1} \mathrm{d}y_{l i} \, q_{l j}" in printed


def test_nested_sums_have_different_letters_and_a_sum_that_occurs_twice_keeps_its_letter():
    written = index(sa.softmax(Q @ K.T) @ V)
    inner = r"\exp\left( \sum_{l = 0}^{d - 1} Q_{i l} K_{%s l} \right)"
    assert written == (
        rf"\sum_{{k = 0}}^{{S - 1}} \frac{{{inner % 'k'} V_{{k j}}}}{{\sum_{{m = 0}}^{{S - 1}} {inner % 'm'}}}"
    )


def test_leading_axes_have_letters_of_their_own_and_an_axis_of_size_one_has_none():
    assert index(sa.tensor("B", 2, h, T, d)) == "B_{a b i j}"
    assert index(H[:, :1]) == "H_{a 0 j}"
    assert (
        index(sa.let("m", sa.mean(H, axis=-1, keepdims=True)))
        == r"m_{a i} = \frac{1}{d} \sum_{k = 0}^{d - 1} H_{a i k}"
    )


def test_the_letter_e_and_the_delta_of_somebody_else_are_not_used_for_our_own():
    x = sa.tensor("x", e)
    assert index(sa.exp(x)) == r"\mathrm{e}^{x_{i}}"
    assert index(sa.exp(A)) == "\\mathrm{e}^{A_{i j}}"
    assert index(sa.eye(n) * sa.tensor("delta", n, n)) == r"\delta_{i j} [i = j]"


def test_names_are_spelled_by_the_call_in_both_styles():
    Z, P, O = attention()
    assert index(O, names={P: r"\mathbf{A}"}) == r"O_{i j} = \sum_{k = 0}^{S - 1} \mathbf{A}_{i k} V_{k j}"
    assert index(P, names={Z: "s^{*}"}).startswith(r"P_{i j} = \frac{\mathrm{e}^{(s^{*})_{i j}}}")
    g = sa.gradient(O, [Q, K, V])
    assert sa.latex(g, style="index", names={g[Q]: "G"}).splitlines()[4].startswith("  G_{i j} &= ")
    assert sa.latex(g, names={g["dZ"]: r"\Delta"}).splitlines()[3].startswith(r"  \Delta &= P \odot")


def test_bad_options_name_what_there_is():
    with pytest.raises(sa.OperandError, match="""latex has the styles "matrix" and "index", not 'indices'"""):
        sa.latex(Q, style="indices")
    with pytest.raises(sa.OperandError, match='styles "matrix" and "index"'):
        sa.gradient(Q @ K.T, [Q]).latex(style="tensor")
    with pytest.raises(sa.OperandError, match=r"names spells named tensors, and \(Q @ K.T\)\[T, S\] is none: name it"):
        sa.latex(Q @ K.T, names={Q @ K.T: "Z"})
    with pytest.raises(sa.NamingError, match="would both print as K"):
        index(Q @ K.T, names={Q: "K"})


def test_indices_are_counted_from_0_or_from_1():
    Z = sa.let("Z", Q @ K.T)
    assert index(Z, first_index=1) == r"Z_{i j} = \sum_{k = 1}^{d} Q_{i k} K_{j k}"
    assert index(Q[1:], first_index=1) == "Q_{i + 1, j}"
    assert index(Q[0], first_index=1) == "Q_{1 i}"
    assert index(sa.concat([Q, X], axis=0), first_index=1).endswith(r"X_{i - T, j} & \text{otherwise} \end{cases}")
    assert r"\sum_{k = 1}^{S}" in sa.gradient(sa.softmax(Z), [Q]).latex(style="index", first_index=1)
    assert r"\sum_{k = 1}^{d}" in sa.Derivation("A").extend(Z).latex(style="index", first_index=1)
    for first in (2, "1", True, None):
        with pytest.raises(sa.OperandError, match="latex: first_index is 0 or 1, not"):
            index(Z, first_index=first)
    with pytest.raises(sa.OperandError, match="first_index=1 is for tensors, gradients and derivations, not for"):
        sa.latex(sa.prove(Z, Z), first_index=1)
    with pytest.raises(sa.OperandError, match="claims and moments count from 0"):
        sa.Derivation("A").extend(sa.prove(Z, Z)).latex(style="index", first_index=1)


@pytest.mark.parametrize(
    ("x", "from_one"),
    [
        (A @ v[:, None], r"\sum_{k = 1}^{n} A_{i k} v_{k}"),
        (sa.tensor("r", 1, n) @ A, r"\sum_{k = 1}^{n} r_{k} A_{k j}"),
        (sa.softmax(v[None]), r"\frac{\mathrm{e}^{v_{j}}}{\sum_{k = 1}^{n} \mathrm{e}^{v_{k}}}"),
        (sa.sum(v[:, None], axis=0), r"\sum_{k = 1}^{n} v_{k}"),
        (sa.max(v[:, None], axis=0), r"\max_{k = 1}^{n} v_{k}"),
        (sa.logsumexp(v[:, None], axis=0), r"\log\left( \sum_{k = 1}^{n} \mathrm{e}^{v_{k}} \right)"),
        (sa.einsum("ij,jk->ik", A, sa.tensor("c", n, 1)), r"\sum_{k = 1}^{n} A_{i k} c_{k}"),
        (sa.cumsum(v[None], axis=1), r"\sum_{k = 1}^{j} v_{k}"),
    ],
    ids=str,
)
def test_sums_beside_an_axis_of_size_1_are_counted_from_1(x, from_one):
    assert index(x, first_index=1) == from_one


@pytest.mark.parametrize(
    ("x", "from_zero", "from_one"),
    [
        (A[0, 1], "A_{0 1}", "A_{1 2}"),
        (X[0], r"X_{0, :}^{\top}", r"X_{1, :}^{\top}"),
        (X[1:], "X_{1:, :}", "X_{2:, :}"),
        (X[:, :2], "X_{:, :2}", "X_{:, :2}"),
        (X[::-1], "X_{T - 1::-1, :}", "[X_{T + 1 - i, j}]_{i j}"),
        (sa.from_index((n,), lambda i: i), "[i]_{i}", "[i - 1]_{i}"),
        (mask, r"[j \le i]_{i j}", r"[j \le i]_{i j}"),
        (sa.moveaxis(H, 0, 1), "[H_{i a j}]_{a i j}", "[H_{i a j}]_{a i j}"),
        (Q @ K.T, r"Q K^{\top}", r"Q K^{\top}"),
    ],
    ids=str,
)
def test_entries_and_slices_in_matrix_style_are_counted_likewise(x, from_zero, from_one):
    assert sa.latex(x) == from_zero
    assert sa.latex(x, first_index=1) == from_one


def test_an_entry_too_large_to_read_says_so():
    x = A
    for _ in range(60):
        x = sa.softmax(x)
    with pytest.raises(sa.OperandError, match=r"has about 10\*\*18 parts, too many to read: name parts by sa\.let"):
        index(x)


def test_a_derivation_is_written_in_either_style():
    D = sa.Derivation("Logits", given=[Q, K]).extend(attention()[0]).then(Q @ (K.T / sympy.sqrt(d)))
    written = D.latex(style="index")
    assert r"   &= \sum_{k = 0}^{d - 1} \frac{Q_{i k} K_{j k}}{\sqrt{d}}" in written
    assert r"Z &:= \frac{Q K^{\top}}{\sqrt{d}}" in D.latex()
