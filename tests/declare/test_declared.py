"""Operations that users declare: what is derived from an entry formula, and what verify finds."""

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

k, l = sympy.symbols("k l", integer=True)
z, x, y = sa.tensor("z", "n"), sa.tensor("x", "T n"), sa.tensor("y", "n")


def softmax1_entry(index, s):
    return sympy.exp(s[index]) / (1 + sympy.Sum(sympy.exp(s[k]), (k, 0, s.shape[0] - 1)))


def softmax1_rule(g, p, s):
    return p * (g - sa.sum(p * g, -1, keepdims=True))


def softmax1_numpy(s):
    e = np.exp(s - np.maximum(s.max(axis=-1, keepdims=True), 0))
    return e / (np.exp(-np.maximum(s.max(axis=-1, keepdims=True), 0)) + e.sum(axis=-1, keepdims=True))


DECLARED = {
    "a normaliser": sa.operation("softmax1", shape="n -> n", entry=softmax1_entry),
    "scores": sa.operation(
        "scores",
        shape="T d, S d -> T S",
        entry=lambda i, a, b: sympy.Sum(a[i[0], k] * b[i[1], k], (k, 0, a.shape[1] - 1)) / sympy.sqrt(a.shape[1]),
    ),
    "a cumulative sum": sa.operation("csum", shape="n -> n", entry=lambda i, s: sympy.Sum(s[k], (k, 0, i[0]))),
    "a shift with a case": sa.operation(
        "previous", shape="n -> n", entry=lambda i, s: sympy.Piecewise((s[i[0] - 1], i[0] > 0), (0, True))
    ),
    "a number": sa.operation("energy", shape="n ->", entry=lambda i, s: sympy.Sum(s[k] ** 2, (k, 0, s.shape[0] - 1))),
    "a double sum": sa.operation(
        "coupling",
        shape="n, m -> n",
        entry=lambda i, a, b: (
            a[i] * sympy.Sum(a[k] * sympy.Sum(b[l] * sympy.cos(k - l), (l, 0, b.shape[0] - 1)), (k, 0, a.shape[0] - 1))
        ),
    ),
    "an index as a value": sa.operation("ramp", shape="n -> n", entry=lambda i, s: s[i] * i[0] + sympy.Rational(1, 2)),
    "a reversal": sa.operation("reverse", shape="n -> n", entry=lambda i, s: s[s.shape[0] - 1 - i[0]]),
}
RANKS = {"a number": ("n",), "scores": ("T d", "S d"), "a double sum": ("n", "m")}


def applied(name):
    inputs = [sa.tensor(f"x{j}", shape) for j, shape in enumerate(RANKS.get(name, ("n",)))]
    return DECLARED[name](*inputs), inputs


@pytest.mark.parametrize("name", DECLARED)
def test_an_entry_alone_gives_code_that_verifies(name):
    assert sa.verify(DECLARED[name]).endswith("NumPy equals the entries")


@pytest.mark.parametrize("name", one_in(3, DECLARED))
def test_an_entry_alone_gives_gradients_and_second_derivatives(name):
    out, inputs = applied(name)
    g = sa.gradient(sa.tanh(sa.sum(out * out)), inputs)
    sa.lambdify(inputs, g).check()
    h = sa.gradient(sum((sa.sum(g[t] * g[t]) for t in inputs), sa.tensor("c")), inputs)
    sa.lambdify([*inputs, sa.tensor("c")], h).check()


@pytest.mark.parametrize("name", DECLARED)
def test_an_entry_alone_gives_tangents(name):
    out, inputs = applied(name)
    tangents = {t: sa.tensor(f"t{j}", *t.shape) for j, t in enumerate(inputs)}
    g = sa.gradient(out, inputs)
    both = sa.lambdify([*inputs, *tangents.values(), *([g.cotangent] if out.rank else [])], [sa.jvp(out, tangents), g])
    rng = np.random.default_rng(0)
    sizes = {"T": 2, "S": 3, "d": 4, "n": 5, "m": 6}
    shape = lambda t: tuple(sizes[str(s)] for s in t.shape)  # noqa: E731
    arrays = [rng.normal(size=shape(t)) for t in [*inputs, *tangents.values()]]
    cot = rng.normal(size=shape(out)) if out.rank else 1.0
    moved, *slopes = both(*arrays, *([cot] if out.rank else []))
    pushed = sum((s * t).sum() for s, t in zip(slopes, arrays[len(inputs) :], strict=True))
    assert (np.asarray(moved) * cot).sum() == pytest.approx(pushed, rel=1e-10)


def test_a_nested_operation_captures_no_index():
    f = DECLARED["a normaliser"]
    sa.lambdify([z], f(f(z))).check()
    n = z.shape[0]
    system = sa.entries(f(f(z)))
    assert len(system) == 2
    assert f(f(z))[sympy.Symbol("k", integer=True, nonnegative=True)].free_symbols >= {n}


def test_axes_in_front_are_a_batch():
    f = sa.lambdify([x], DECLARED["a normaliser"](x))
    rows = np.random.default_rng(1).normal(size=(3, 4))
    np.testing.assert_allclose(f(rows), [softmax1_numpy(r) for r in rows], rtol=1e-12)
    sa.lambdify([x, sa.tensor("dO", "T n")], sa.gradient(DECLARED["a normaliser"](x), x)).check()


def test_everything_given_is_used_and_verified():
    op = sa.operation(
        "softmax1",
        shape="n -> n",
        entry=softmax1_entry,
        vjp=softmax1_rule,
        numpy=softmax1_numpy,
        jvp=lambda t, p, s: p * (t[0] - sa.sum(p * t[0], -1, keepdims=True)),
        latex=r"\phi\left({0}\right)",
        reason="softmax with one more score",
    )
    assert sa.verify(op).splitlines() == [
        "softmax1: vjp equals the derivative of the entries",
        "softmax1: jvp equals the derivative of the entries",
        "softmax1: NumPy equals the entries",
    ]
    assert sa.latex(op(z)) == r"\phi(z)"
    f = sa.lambdify([z], op(z))
    assert "def softmax1_numpy(s):" in f.source
    assert f(np.array([1e4, 0.0])) == pytest.approx([1.0, 0.0])  # the given NumPy is stable
    assert "softmax with one more score" in str(sa.gradient(op(z), z))


def wrong_numpy(s):
    return s / (1 + s.sum(axis=-1, keepdims=True))


def into_its_argument(s):
    s -= s.max(axis=-1, keepdims=True)
    return s


def no_loops(s):
    return np.cumsum(s.ravel()).reshape(s.shape)


WRONG = {
    "a vjp with a wrong factor": (
        {"vjp": lambda g, p, s: 2 * softmax1_rule(g, p, s)},
        "vjp of bad by x1 at n = .: entry",
    ),
    "a vjp that is wrong for batches": (
        {"vjp": lambda g, p, s: p * (g - sa.sum(p * g, keepdims=True))},
        "batched vjp of bad by x1",
    ),
    "a zero vjp": ({"vjp": lambda g, p, s: None}, "vjp of bad by x1 at n = .: entry"),
    "a wrong jvp": ({"jvp": lambda t, p, s: t[0]}, "jvp of bad by x1 at n = .: entry"),
    "wrong NumPy": ({"numpy": wrong_numpy}, "entry"),
}


@pytest.mark.parametrize("name", WRONG)
def test_verify_finds_what_is_wrong_with_the_entry_that_differs(name):
    given, message = WRONG[name]
    with pytest.raises(sa.EvaluationError, match=message):
        sa.verify(sa.operation("bad", shape="n -> n", entry=softmax1_entry, **given))


def test_verify_finds_numpy_that_mixes_loop_axes():
    with pytest.raises(sa.EvaluationError, match="under a loop axis"):
        sa.verify(sa.operation("bad", shape="n -> n", entry=lambda i, s: sympy.Sum(s[k], (k, 0, i[0])), numpy=no_loops))


def test_verify_finds_numpy_that_writes_to_its_argument():
    same = sa.operation("same", shape="n -> n", entry=lambda i, s: s[i], numpy=into_its_argument)
    with pytest.raises(sa.EvaluationError, match="read-only"):
        sa.verify(same)


KINKED = {
    "abs": (lambda i, s: sympy.Abs(s[i]), lambda g, y, x: g * sa.sign(x)),
    "max": (lambda i, s: sympy.Max(s[i], 0), lambda g, y, x: g * (x > 0)),
    "floor": (lambda i, s: s[i] + sympy.floor(10 * s[i]), lambda g, y, x: g),
}


@pytest.mark.parametrize("name", KINKED)
def test_a_right_rule_of_a_function_with_a_kink_is_not_convicted(name):
    entry, rule = KINKED[name]
    assert "vjp equals" in sa.verify(sa.operation("kinked", shape="n -> n", entry=entry, vjp=rule))
    with pytest.raises(sa.EvaluationError, match="vjp of kinked"):
        sa.verify(sa.operation("kinked", shape="n -> n", entry=entry, vjp=lambda g, y, x: 2 * rule(g, y, x)))


def test_a_flat_sign_is_differentiated_as_flat():
    signs = {"shape": "n -> n", "entry": lambda i, s: sympy.sign(s[i])}
    assert "vjp equals" in sa.verify(sa.operation("signs", **signs, vjp=lambda g, y, x: None))


PRODUCT = {"shape": "n, n -> n", "entry": lambda i, a, b: a[i] * b[i]}


def test_verify_finds_rules_that_fail_only_for_several_inputs():
    missing = sa.operation("product", **PRODUCT, vjp=lambda g, r, a, b: (sa.sum(g * b, keepdims=True) * 0 + g * b, g))
    with pytest.raises(sa.EvaluationError, match="vjp of product by x2"):
        sa.verify(missing)
    extra = sa.operation("product", **PRODUCT, jvp=lambda t, r, a, b: t[0] * b + a * t[1] + t[0] * t[1])
    with pytest.raises(sa.EvaluationError, match="jvp of product by all inputs"):
        sa.verify(extra)


def test_a_given_vjp_may_leave_the_sum_over_broadcast_axes_to_symattn():
    product = sa.operation("product", **PRODUCT, vjp=lambda g, r, a, b: (g * b, g * a))
    assert "vjp equals" in sa.verify(product)
    gradient = sa.gradient(sa.sum(product(x, y)), y)
    assert gradient[y].shape == y.shape
    sa.lambdify([x, y], gradient).check()


ENTRIES = {
    "two sums of one symbol and two ranges": (
        lambda i, s: sympy.Sum(s[k], (k, 0, s.shape[0] - 1)) * sympy.Sum(s[k], (k, 0, i[0])),
        lambda s: s.sum() * np.cumsum(s),
    ),
    "a sum inside a sum of the same symbol": (
        lambda i, s: sympy.Sum(s[k] * sympy.Sum(s[k], (k, 0, i[0])), (k, 0, s.shape[0] - 1)),
        lambda s: s.sum() * np.cumsum(s),
    ),
    "limits in any order": (
        lambda i, s: sympy.Sum(s[i[0]], (k, 0, s.shape[0] - 1), (l, 0, i[0])),
        lambda s: s * len(s) * np.arange(1, len(s) + 1),
    ),
    "a sum that is empty for some entries": (
        lambda i, s: sympy.Sum(s[k] ** 2, (k, i[0] + 1, s.shape[0] - 1)),
        lambda s: (s**2).sum() - np.cumsum(s**2),
    ),
    "a sum from below zero": (
        lambda i, s: s[i] * sympy.Sum(2**k, (k, -2, i[0])),
        lambda s: s * (2.0 ** np.arange(1, len(s) + 1) - 0.25),
    ),
    "no input at all": (lambda i, s: i[0] ** 2, lambda s: np.arange(len(s)) ** 2.0),
}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("lead", [(), ("T",)])
def test_the_derived_numpy_of_an_entry_is_the_mathematics(name, lead):
    entry, right = ENTRIES[name]
    op = sa.operation("op", shape="n -> n", entry=entry)
    sa.verify(op)
    s = sa.tensor("s", *lead, "n")
    f = sa.lambdify([s], op(s))
    f.check()
    rows = np.random.default_rng(3).normal(size=(2, 5))
    want = np.array([right(r) for r in rows])
    np.testing.assert_allclose(f(rows) if lead else [f(r) for r in rows], want, rtol=1e-12, atol=1e-12)
    sa.lambdify([s, sa.tensor("dO", *s.shape)], sa.gradient(op(s), s)).check()


def test_an_entry_of_one_input_keeps_the_loop_axes_of_the_other():
    first = sa.operation("first", shape="n, n -> n", entry=lambda i, a, b: a[i])
    assert sa.lambdify([y, x], first(y, x))(np.arange(3.0), np.ones((2, 3))).tolist() == [[0, 1, 2], [0, 1, 2]]


def test_tensors_may_be_called_as_the_inputs_of_a_formula_are():
    a, b = sa.tensor("input1", "n"), sa.tensor("input0", "n")
    minus = sa.operation("minus", shape="n, n -> n", entry=lambda i, s, t: s[i] - t[i])
    both = sa.lambdify([a, b], minus(a, minus(b, a)))
    both.check()
    assert both(np.array([5.0]), np.array([1.0])).tolist() == [9.0]


OUTSIDE = {
    "before the first": lambda i, s: s[i[0] - 1],
    "after the last": lambda i, s: s[i[0] + 1],
    "in a sum": lambda i, s: sympy.Sum(s[k - i[0]], (k, 0, s.shape[0] - 1)),
    "from a negative index": lambda i, s: sympy.Sum(s[k], (k, -1, s.shape[0] - 2)),
    "in a sum of so many": lambda i, s: sympy.Sum(s[k], (k, 0, i[0] + 1)),
    "in the case that is taken": lambda i, s: sympy.Piecewise((s[i[0] - 1], i[0] < 1), (0, True)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_read_outside_of_an_input_is_an_error_and_never_a_wrap_around(name):
    op = sa.operation("op", shape="n -> n", entry=OUTSIDE[name])
    with pytest.raises(sa.EvaluationError, match="outside|out of bounds"):
        sa.lambdify([z], op(z))(np.arange(3.0))
    with pytest.raises(sa.EvaluationError):
        sa.verify(op)


def test_a_negative_number_as_an_index_of_a_scalar_result_is_an_error():
    last = sa.operation("last", shape="n ->", entry=lambda i, s: s[-1])
    with pytest.raises(sa.EvaluationError, match="outside"):
        sa.lambdify([z], last(z))(np.arange(3.0))
    first = sa.operation("first", shape="n ->", entry=lambda i, s: s[0] + s[s.shape[0] - 1])
    assert sa.lambdify([x], first(x))(np.arange(6.0).reshape(2, 3)).tolist() == [2, 8]


def test_a_count_stays_in_the_precision_of_the_input():
    count = sa.operation("count", shape="n -> n", entry=lambda i, s: s[i] * i[0] + sympy.Rational(1, 3))
    assert sa.lambdify([z], count(z))(np.ones(3, np.float32)).dtype == np.float32


def test_a_template_may_hold_braces_and_an_input_may_hold_places():
    pair = sa.operation("pair", **PRODUCT, latex=r"\psi({0};{1})")
    first, second = sa.tensor("W_1", "n"), sa.tensor("W_0", "n")
    written = sa.latex(pair(first, second))
    assert written == r"\psi(" + sa.latex(first) + "; " + sa.latex(second) + ")"


def test_inputs_and_results_of_a_template_are_held_together():
    star = sa.operation("star", **PRODUCT, latex=r"{0} \star {1}")
    a, b = sa.tensor("a", "n"), sa.tensor("b", "n")
    assert sa.latex(star(a + b, a - b)) == r"(a + b) \star (a - b)"
    assert sa.latex(star(a, b) + a) == r"a \star b + a"
    assert sa.latex(star(a, b) * (a + b)) == r"(a \star b) \odot (a + b)"
    assert sa.latex(sa.exp(star(a, b))) == r"\exp(a \star b)"
    ratio = sa.operation("ratio", **PRODUCT, latex=r"\frac{{0}}{1 + {1}}")
    assert sa.latex(ratio(a + b, a - b)) == r"\frac{a + b}{1 + (a - b)}"
    raised = sa.operation("raised", **PRODUCT, latex="{0}^{{1}}")
    assert sa.latex(raised(a + b, a - b)) == r"(a + b)^{a - b}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("({0}", "opened and not closed"),
        ("{0})", "closed and not opened"),
        (r"\phi\{{0}", "opened and not closed"),
        (r"\sqrt{({0}}", "opened and not closed"),
        ("{}", "nothing of it is seen"),
        (r"\phantom{{0}}", "nothing of it is seen"),
        ("{0}", "an input alone"),
        ("{{0}}", "an input alone"),
        (r"\left({0}\right)", "an input alone"),
    ],
)
def test_a_template_that_hides_the_operation_or_is_no_formula_is_refused(template, problem):
    with pytest.raises(sa.OperandError, match=f"latex= of operation 'f' is a template .*{problem}"):
        sa.operation("f", shape="n n -> n n", entry=lambda i, s: 2 * s[i], latex=template)


@pytest.mark.parametrize(
    ("template", "plain", "flipped"),
    [
        (r"{0}^{\top}", r"(A^{\top})", r"(A^{\top})^{\top}"),
        (r"\psi({0})^\top", r"(\psi(A)^{\top})", r"(\psi(A)^{\top})^{\top}"),
        (r"\psi({0})", r"\psi(A)", r"\psi(A)^{\top}"),
        (r"[0, {0})", "[0, A)", r"[0, A)^{\top}"),
    ],
)
def test_the_transpose_of_a_result_takes_no_mark_of_the_template_away(template, plain, flipped):
    f = sa.operation("f", shape="n n -> n n", entry=lambda i, s: 2 * s[i], latex=template)
    A = sa.tensor("A", "n", "n")
    assert [sa.latex(f(A)), sa.latex(f(A).T)] == [plain, flipped]


@pytest.mark.parametrize("template", [None, r"\psi({0})", r"{0}^{\star}", r"\sqrt{{0}}", r"{0}^\top"])
@pytest.mark.parametrize("shape", ["n -> n", "n ->"])
def test_a_function_of_rows_of_one_entry_prints_apart_from_one_of_a_column(template, shape):
    f = sa.operation("f", shape=shape, entry=lambda i, s: 2 * s[0], latex=template)
    A, v = sa.tensor("A", "n", "n"), sa.tensor("v", "n")
    assert sa.latex(f(v[:, None])) != sa.latex(f(v))
    assert sa.latex(f(sa.sum(A, axis=-1, keepdims=True))) != sa.latex(f(sa.sum(A, axis=-1)))
    assert r"\text{row}" not in sa.latex(f(A)) + sa.latex(f(v)) + str(f(v[:, None]))


def one_numpy():
    def foo(s):
        return s + 1

    return foo


def two_numpy():
    def foo(s):
        return 2 * s

    return foo


def test_two_functions_of_one_name_are_both_in_the_source():
    a = sa.operation("a", shape="n -> n", entry=lambda i, s: s[i] + 1, numpy=one_numpy())
    b = sa.operation("b", shape="n -> n", entry=lambda i, s: 2 * s[i], numpy=two_numpy())
    both = sa.lambdify([z], [a(z), b(z)])
    both.check()
    assert [r.tolist() for r in both(np.array([3.0]))] == [[4.0], [6.0]]


REFUSED = {
    "no arrow": (lambda: sa.operation("f", shape="n", entry=softmax1_entry), sa.OperandError, "names the axes"),
    "an unknown output axis": (
        lambda: sa.operation("f", shape="n -> m", entry=softmax1_entry),
        sa.ShapeError,
        "axis m",
    ),
    "a hostile name": (lambda: sa.operation("f(x)", shape="n -> n", entry=softmax1_entry), sa.NamingError, "cannot be"),
    "a template that does not close": (
        lambda: sa.operation("f", shape="n -> n", entry=softmax1_entry, latex=r"\phi\left({0"),
        sa.OperandError,
        "latex= of operation 'f' is a template",
    ),
    "a template with too many places": (
        lambda: sa.operation("f", shape="n -> n", entry=softmax1_entry, latex=r"\phi({0}, {1})"),
        sa.OperandError,
        "there is no input 1: they are counted from 0 to 0",
    ),
    "a template that is none": (
        lambda: sa.operation("f", shape="n -> n", entry=softmax1_entry, latex=3),
        sa.OperandError,
        "LaTeX is text that is not empty, not 3",
    ),
    "no entry": (lambda: sa.operation("f", shape="n -> n", entry=3), sa.OperandError, "entry= of operation 'f'"),
    "text for NumPy": (
        lambda: sa.operation("f", shape="n -> n", entry=softmax1_entry, numpy="np.exp(x)"),
        sa.OperandError,
        "numpy=",
    ),
    "a lambda for NumPy": (
        lambda: sa.operation("f", shape="n -> n", entry=softmax1_entry, numpy=lambda s: s),
        sa.OperandError,
        "plain def",
    ),
    "an entry that is a tensor": (
        lambda: sa.lambdify([z], sa.operation("f", shape="n -> n", entry=lambda i, s: z)(z)),
        sa.OperandError,
        "scalar",
    ),
    "an input of too few axes": (lambda: DECLARED["scores"](z, z), sa.ShapeError, "do not have the axes"),
    "sizes that differ": (
        lambda: DECLARED["scores"](x, sa.tensor("w", "S d")),
        sa.ShapeError,
        "the axis d is both n and d",
    ),
    "too many inputs": (lambda: DECLARED["a number"](z, z), sa.ShapeError, "do not have the axes"),
    "verify of a tensor": (lambda: sa.verify(z), sa.OperandError, "what sa.operation returned"),
    "a vjp of too many parts": (
        lambda: sa.gradient(sa.operation("f", shape="n -> n", entry=softmax1_entry, vjp=lambda g, p, s: (g, g))(z), z),
        sa.ShapeError,
        "2 cotangents for 1 inputs",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused(name):
    make, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        make()


def test_a_derivative_that_sympy_does_not_know_is_an_error_and_not_zero():
    f = sa.operation("f", shape="n -> n", entry=lambda i, s: sympy.Function("phi")(s[i]))
    with pytest.raises(sa.NoRuleError):
        str(sa.lambdify([z, sa.tensor("dO", "n")], sa.gradient(f(z), z)).source)


def test_two_operations_of_one_name_are_two():
    a = sa.operation("f", shape="n -> n", entry=lambda i, s: s[i] ** 2)
    b = sa.operation("f", shape="n -> n", entry=lambda i, s: s[i] ** 3)
    assert a(z) is not b(z)
    both = sa.lambdify([z], [a(z), b(z)])
    np.testing.assert_allclose(both(np.array([2.0, 3.0])), [[4.0, 9.0], [8.0, 27.0]])


FRACTIONAL = {
    "half an index": ("n -> n", lambda i, s: s[i[0] / 2], "reads x1 at i0/2"),
    "the middle": ("n ->", lambda i, s: s[(s.shape[0] - 1) / 2], "reads x1 at n/2 - 1/2"),
    "a root": ("n -> n", lambda i, s: s[sympy.sqrt(i[0])], r"write sympy.floor\(sqrt\(i0\)\)"),
    "half a bound index": ("n ->", lambda i, s: sympy.Sum(s[k / 2], (k, 0, s.shape[0] - 1)), "reads x1 at k/2"),
    "an end of a sum": ("n -> n", lambda i, s: sympy.Sum(s[k], (k, 0, i[0] / 2)), "counts from or to i0/2"),
    "an entry": ("n, n -> n", lambda i, s, t: s[t[i]], r"reads x1 at x2\[i0\]"),
    "a case": ("n -> n", lambda i, s: s[sympy.Piecewise((i[0] / 2, i[0] > 1), (0, True))], "reads x1 at Choice"),
    "a float": ("n ->", lambda i, s: s[0.5], "not at 0.5"),
    "text": ("n -> n", lambda i, s: s["i"], "not at 'i'"),
}


@pytest.mark.parametrize("name", FRACTIONAL)
def test_an_index_is_seen_to_be_an_integer_where_an_operation_is_declared(name):
    shape, entry, message = FRACTIONAL[name]
    with pytest.raises(sa.OperandError, match=message):
        sa.operation("f", shape=shape, entry=entry)


WHOLE = {
    "half an index, rounded down": (lambda i, s: s[sympy.floor(i[0] / 2)], lambda s: s[np.arange(len(s)) // 2]),
    "the middle": (lambda i, s: s[sympy.floor((s.shape[0] - 1) / 2)] * i[0], lambda s: s[(len(s) - 1) // 2]),
    "a remainder": (lambda i, s: s[sympy.Mod(i[0] + 1, s.shape[0])], lambda s: np.roll(s, -1)),
    "a case": (
        lambda i, s: s[sympy.Piecewise((i[0] - 1, i[0] > 0), (0, True))],
        lambda s: s[np.maximum(np.arange(len(s)) - 1, 0)],
    ),
    "a sum over a plain symbol": (
        lambda i, s: sympy.Sum(s[sympy.Symbol("j")], (sympy.Symbol("j"), 0, sympy.floor(i[0] / 2))),
        lambda s: np.cumsum(s)[np.arange(len(s)) // 2],
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_an_index_that_is_seen_to_be_an_integer_is_read_there(name):
    entry, right = WHOLE[name]
    op = sa.operation("f", shape="n -> n", entry=entry)
    sa.verify(op)
    row = np.array([1.0, 2.0, 4.0, 7.0, 9.0])
    want = right(row) * np.arange(5) if name == "the middle" else right(row)
    np.testing.assert_allclose(sa.lambdify([z], op(z))(row), want)
    sa.lambdify([z, sa.tensor("dO", "n")], sa.gradient(op(z), z)).check()


def test_an_entry_that_counts_its_sizes_in_python_is_read_at_numbers():
    op = sa.operation("f", shape="n ->", entry=lambda i, s: sum(s[j] for j in range(s.shape[0])))
    s = sa.tensor("s", 3)
    assert sa.lambdify([s], op(s))(np.array([1.0, 2.0, 4.0])) == 7


# --- conditions that SymPy joins by more than and, or and not ---


def relu_of(t):
    return sympy.Piecewise((t, t > 0), (0, True))


JOINED = {
    "relu(relu(t) + 1)": (lambda t: relu_of(relu_of(t) + 1), [1, 1, 1.5, 2.5, 3.5]),
    "relu(relu(relu(t) - 1) - 1/2)": (lambda t: relu_of(relu_of(relu_of(t) - 1) - sympy.S.Half), [0, 0, 0, 0, 1]),
    "[relu(t) > 1]": (lambda t: sympy.Piecewise((1, relu_of(t) > 1), (0, True)), [0, 0, 0, 1, 1]),
    "if then else": (lambda t: sympy.Piecewise((1, sympy.ITE(t > 0, t < 2, t < -1)), (0, True)), [1, 0, 1, 1, 0]),
    "either or": (lambda t: sympy.Piecewise((1, sympy.Xor(t > 0, t < 2)), (0, True)), [1, 1, 0, 0, 1]),
    "implies": (lambda t: sympy.Piecewise((1, sympy.Implies(t > 0, t < 2)), (0, True)), [1, 1, 1, 1, 0]),
    "equivalent": (lambda t: sympy.Piecewise((1, sympy.Equivalent(t > 0, t < 2)), (0, True)), [0, 0, 1, 1, 0]),
}


@pytest.mark.parametrize("name", JOINED)
def test_conditions_may_be_joined_in_any_way(name):
    scalar, right = JOINED[name]
    t, z, at = sympy.Symbol("t", real=True), sa.tensor("z", "n"), np.array([-2.0, -0.5, 0.5, 1.5, 2.5])
    op = sa.operation("f", shape="n -> n", entry=lambda i, s: scalar(s[i]), nonsmooth="f: somewhere")
    assert sa.verify(op) == "f: NumPy equals the entries"
    for y in (op(z), sa.elementwise(sympy.Lambda(t, scalar(t)), z)):
        assert sa.lambdify([z], y)(at).tolist() == right
        assert sa.prove(sa.le(0, y)).status != "refuted"
        assert sa.prove(sa.le(y, 0)).status == "refuted"


def test_masks_by_index_may_join_conditions_in_any_way():
    causal, early = (lambda i, j: j <= i), (lambda i, j: i < 2)
    ways = {sympy.Xor: np.not_equal, sympy.Equivalent: np.equal, sympy.Implies: np.less_equal}
    rows, columns = np.indices((4, 3))
    for way, right in ways.items():
        mask = sa.from_index((4, 3), lambda i, j, way=way: way(causal(i, j), early(i, j)))
        assert mask.kind == "binary"
        assert (sa.lambdify([], mask)() == right(columns <= rows, rows < 2)).all()
    chosen = sa.from_index((4, 3), lambda i, j: sympy.ITE(i < 2, i < j, j < 1))
    assert (sa.lambdify([], chosen)() == np.where(rows < 2, rows < columns, columns < 1)).all()


@pytest.mark.parametrize(
    ("shape", "entry"),
    [
        ("n -> n", lambda i, s: s[i] if i[0] == 0 else 0),
        ("n -> n", lambda i, s: sympy.Piecewise((s[i], i[0] != s.shape[0] - 1), (0, True))),
        ("T n -> T n", lambda i, s: s[i] * (1 if i[0] == i[1] else 0)),
        ("T n -> T", lambda i, s: sympy.Sum(s[i[0], k], (k, 0, s.shape[1] - 1)) if i[0] != 1 else s[1, 0]),
    ],
    ids=["the first", "all but the last", "the diagonal", "all but the second"],
)
def test_an_entry_that_compares_indices_by_python_is_refused(shape, entry):
    with pytest.raises(sa.OperandError, match=r"the entry of chosen: the formula is .*write sympy.Eq\(i, j\)"):
        sa.operation("chosen", shape=shape, entry=entry)


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (lambda i, s: s[i - 1], "the entry of failing fails: unsupported operand .*x.index. is the entry there"),
        (lambda i, s: np.exp(s[i]), "the entry of failing fails: loop of ufunc .* written in SymPy's functions"),
        (lambda i, j, s: s[i], "entry= of operation 'failing': .* does not take 2 arguments"),
    ],
    ids=["arithmetic of a tuple", "a function of NumPy", "an index too many"],
)
def test_an_entry_that_python_cannot_work_out_says_how_it_is_written(entry, cause):
    with pytest.raises(sa.OperandError, match=cause):
        sa.operation("failing", shape="n -> n", entry=entry)(z)


def test_sums_that_sympy_leaves_as_they_are_decide_no_comparison():
    n, k = sa.sizes("n"), sympy.Symbol("k", integer=True, nonnegative=True)
    nine = sympy.Sum(sympy.Piecewise((9, sympy.Ne(k, sympy.Symbol("at"))), (10, True)), (k, 0, 6))
    eleven = sympy.Sum(11, (k, 0, 6))
    op = sa.operation("f", shape="n -> n", entry=lambda i, z: z[i[0]] * nine.subs("at", i[0]) * eleven)
    z = sa.tensor("z", n)
    assert sa.lambdify([z], op(z))(np.ones(9)).tolist() == [77 * 64] * 7 + [77 * 63] * 2
