"""Moments of entries at free indices: each against all entries at small sizes, from the arrays alone.

The quantities are linear in the random tensor, whose entries are independent with variance 1: the covariances of all
entries are ``J J'`` with the matrix J of the compiled function.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy

import symattn as sa

from ..shares import one_in

T, S, n, d, m, h, g = sa.sizes("T S n d m h g")
i, j, k, p, q, r = sympy.symbols("i j k p q r", integer=True, nonnegative=True)
X, x, y, V = sa.tensor("X", T, d), sa.tensor("x", n), sa.tensor("y", n), sa.tensor("V", T, d)
H, K, E = sa.tensor("H", h, T, d), sa.tensor("K", h, T, d), sa.tensor("E", m, d)
Y, L = sa.tensor("Y", T, h * d), sa.tensor("L", T, 2 * n)
tokens = sa.tensor("tokens", T, integer=True)
SIZES = {T: 3, S: 2, n: 2, d: 2, m: 3, h: 2, g: 2}
TOKENS = np.array([2, 0, 2])
before = sa.from_index((T, T), lambda a, b: b <= a)
rows = sa.from_index((S, T), lambda a, b: b <= a)
mean_before = sa.softmax(sa.zeros(T, T), where=before)
strided = sa.repeat(K, g, axis=0)
QUANTITIES = {
    "zeros below": (sa.concat([X, sa.zeros(S, d)]), X),
    "zeros above": (sa.concat([sa.zeros(S, d), X]), X),
    "zeros beside": (sa.concat([X, sa.zeros(T, 1)], axis=1), X),
    "zeros around": (sa.concat([sa.zeros(S), x, sa.zeros(T)]), x),
    "a sink first": (sa.concat([sa.ones(1), x]), x),
    "twice": (sa.concat([x, 3 * x]), x),
    "tiled": (sa.tile(x, 2, axis=0), x),
    "tiled rows": (sa.tile(X, 3, axis=0), X),
    "repeated": (sa.repeat(x, m, axis=0), x),
    "repeated heads": (strided, K),
    "tiled heads": (sa.tile(K, g, axis=0), K),
    "moved out": (sa.shift(y, -n, size=n + 1), y),
    "moved, longer": (sa.shift(y, -2, size=n + 3), y),
    "moved on": (sa.shift(y, 1), y),
    "turned round": (sa.flip(y, 0), y),
    "merged heads": (sa.merge_axes(sa.moveaxis(H, 0, 1), (1, 2)), H),
    "split heads": (sa.split_axis(Y, 1, (h, d)), Y),
    "every second": (L[:, ::2], L),
    "sums so far": (sa.cumsum(y), y),
    "sums from here": (sa.flip(sa.cumsum(sa.flip(y, 0)), 0), y),
    "sums of sums": (sa.cumsum(sa.cumsum(y, reverse=True)), y),
    "sums of what is above the diagonal": (sa.cumsum(sa.triu(X, k=1)), X),
    "sums of two": (sa.cumsum(sa.concat([y, 2 * y])), y),
    "sums of one and its mirror image": (sa.cumsum(sa.concat([y, sa.flip(y, 0)])), y),
    "sums down a diagonal": (sa.cumsum(sa.diag(sa.concat([y, sa.zeros(1)])), axis=0), y),
    "sums of what is centred": (sa.cumsum(sa.concat([X, X]) - sa.mean(X, axis=0), axis=0), X),
    "embeddings": (sa.take(E, tokens, axis=0), E),
    "causal means": (mean_before @ V, V),
    "some causal means": (sa.softmax(sa.zeros(S, T), where=rows) @ V, V),
    "a window": (sa.from_index((T, T), lambda a, b: abs(a - b) <= 1) @ V, V),
}


def matrix(quantity: sa.Tensor, variable: sa.Tensor) -> np.ndarray:
    """The coefficients of all entries of a quantity, one axis for the entries of the variable last."""
    extra = [tokens.subs(SIZES)] if tokens in quantity.tensors else []
    f = sa.lambdify([variable.subs(SIZES), *extra], quantity.subs(SIZES))
    shape = [int(sympy.sympify(size).subs(SIZES)) for size in variable.shape]
    arrays = [np.zeros(shape), *np.eye(int(np.prod(shape))).reshape(-1, *shape)]
    first, *others = (f(a, *([TOKENS] if extra else [])) for a in arrays)
    return np.stack([value - first for value in others], -1)


def at(found: sympy.Expr, values: dict) -> sympy.Expr:
    number = found.subs({**SIZES, **values}, simultaneous=True).doit()
    read = {part: int(TOKENS[int(part.indices[0])]) for part in number.atoms(sympy.Indexed)}
    return number.xreplace(read).doit()


@pytest.mark.parametrize("name", one_in(3, QUANTITIES))
def test_covariances_of_all_entries(name):
    quantity, variable = QUANTITIES[name]
    law = {variable: sa.iid()} | ({tokens: "constant"} if tokens in quantity.tensors else {})
    one, other = ((i, j, k)[: quantity.rank], (p, q, r)[: quantity.rank])
    coefficients = matrix(quantity, variable)
    variance = sa.variance(quantity[one], law)
    covariance = sa.covariance(quantity[one], quantity[other], law)
    places = list(np.ndindex(coefficients.shape[:-1]))
    for a in places:
        assert at(variance, dict(zip(one, a, strict=True))) == pytest.approx(coefficients[a] @ coefficients[a]), a
    for a, b in itertools.product(places[::3], places[-4:]):
        values = dict(zip((*one, *other), (*a, *b), strict=True))
        assert float(at(covariance, values)) == pytest.approx(coefficients[a] @ coefficients[b]), (a, b)


def test_answers_are_short():
    assert sa.variance(sa.concat([X, sa.zeros(S, d)])[i, j], {X: sa.iid()}).subs({i: T + 1}) == 0
    assert str(sa.covariance(sa.tile(x, 2, axis=0)[i], sa.tile(x, 2, axis=0)[p], {x: sa.iid()})) == (
        "KroneckerDelta(Mod(i, n), Mod(p, n))"
    )
    assert sa.variance(sa.cumsum(y)[i], {y: sa.iid()}) == i + 1
    grouped = sa.tensor("Q", h * g, T, d) @ strided.mT / sympy.sqrt(d)
    assert sa.variance(grouped[k, i, j], {sa.tensor("Q", h * g, T, d): sa.iid(), K: sa.iid()}) == 1
    assert str(sa.covariance(sa.take(E, tokens, axis=0)[i, j], sa.take(E, tokens, axis=0)[p, j],
                             {E: sa.iid(), tokens: "constant"})) == "KroneckerDelta(tokens[i], tokens[p])"  # fmt: skip


def test_answers_hold_no_end_of_a_range_that_nobody_knows():
    law = {X: sa.iid()}
    sums = sa.cumsum(sa.triu(X, k=1))
    assert str(sa.covariance(sums[i, j], sums[i, q], law)) == "Min(j, q) - Min(i, j, q)"
    assert str(sa.covariance(sa.cumsum(sa.tril(X))[i, j], sa.cumsum(sa.tril(X))[i, q], law)) == "Min(i, j, q) + 1"
    twice = sa.cumsum(sa.cumsum(x, reverse=True))
    for found in (sa.variance(twice[i], {x: sa.iid()}), sa.moments(twice[i], {x: sa.iid(mean=1)}).mean):
        assert found.free_symbols <= {i, n}


@pytest.mark.parametrize("by", [1, -1, 2, -2])
def test_answers_read_no_entry_that_is_not_there(by):
    w, fixed = sa.tensor("w", n), {y: "constant", sa.tensor("w", n): "constant"}
    quantity, law = sa.sum(sa.shift(x, by) * y) * sa.sum(x * w), {x: sa.iid("normal", mean=1), **fixed}
    values = {"w": [2, -1, 3], "y": [1, 5, -2]}
    size = {n: 3}
    first = np.array([values["y"][a - by] if 0 <= a - by < 3 else 0 for a in range(3)])
    second = np.array(values["w"])
    both, one, other = first @ second, first.sum(), second.sum()
    square, variance = both + one * other, both**2 + first @ first * (second @ second)
    variance += first @ first * other**2 + second @ second * one**2 + 2 * both * one * other
    for found, expected in ((sa.expectation(quantity, law), square), (sa.variance(quantity, law), variance)):
        written = found.subs(size).doit()
        assert {int(part.indices[0]) for part in written.atoms(sympy.Indexed)} <= {0, 1, 2}
        assert written.xreplace({part: values[str(part.base)][int(part.indices[0])]
                                 for part in written.atoms(sympy.Indexed)}) == expected  # fmt: skip


def test_sums_of_choices_are_counted():
    causal, law = mean_before @ V, {V: sa.iid()}
    assert sa.variance(causal[i, j], law) == 1 / (i + 1)
    assert sa.moments(causal[i, j], law).check()
    assert (
        sympy.simplify(sa.covariance(causal[i, j], causal[p, j], law) - 1 / (sympy.Max(i, p) + 1)).subs({i: 1, p: 2})
        == 0
    )
    assert sa.covariance(sa.cumsum(y)[i], sa.cumsum(y)[p], {y: sa.iid()}) == sympy.Min(i, p) + 1
    counted = sa.cumsum(sa.from_index((n,), lambda a: a) * y)
    assert sympy.expand(sa.variance(counted[i], {y: sa.iid()}) - i * (i + 1) * (2 * i + 1) / 6) == 0
    assert sa.moments(counted[i], {y: sa.iid()}).check()
    wide = sa.softmax(sa.zeros(S, T), where=rows) @ V  # more queries than keys: the later ones attend to all
    found = sa.variance(wide[i, j], law)
    assert [found.subs({i: at, T: 3}) for at in range(5)] == [1, *(sympy.Rational(1, w) for w in (2, 3, 3, 3))]


def test_answers_understand_what_sympy_does():
    padded = sa.variance(sa.concat([X, sa.zeros(S, d)])[i, j], {X: sa.iid()})
    wide = sa.variance((sa.softmax(sa.zeros(S, T), where=rows) @ V)[i, j], {V: sa.iid()})
    for found, values in ((padded, [1, 1, 1, 0, 0]), (wide, [1, 1 / 2, 1 / 3, 1 / 3, 1 / 3])):
        assert found.doit() == found
        assert "i" in sympy.latex(found)
        f = sympy.lambdify([i, T], found)
        assert [f(at, 3) for at in range(5)] == pytest.approx(values)


def test_a_condition_of_an_entry_knows_its_axis():
    shown = sa.shift(y, 1)[i]
    assert str(shown) == "Choice(i + 1 < n, y[i + 1], 0)"
    assert sympy.latex(shown).count("i") >= 2
    assert shown.subs({i: 1, n: 2}) == 0


def test_an_integer_tensor_without_a_law_is_an_error():
    with pytest.raises(sa.OperandError, match="tokens has no law"):
        sa.variance(sa.take(E, tokens, axis=0)[i, j], {E: sa.iid()})


# --- checking: nothing of the symbolic calculation is used ---

u, v = sa.tensor("u", d), sa.tensor("v", d)
C, mu = sa.tensor("C", d, d, symmetric=True), sa.tensor("mu", d)
rho = sympy.Symbol("rho", real=True)
CHECKED = {
    "an entry": (sa.concat([X, sa.zeros(S, d)])[i, j], {X: sa.iid()}, 1),
    "tiled entries": (sa.tile(x, 2, axis=0)[i] + sa.tile(x, 2, axis=0)[p], {x: sa.iid()}, 2),
    "repeated entries": (sa.repeat(x, m, axis=0)[i] * sa.repeat(x, m, axis=0)[p], {x: sa.iid("normal", mean=1)}, 9),
    "sums so far": (sa.cumsum(y)[i], {y: sa.iid()}, n),
    "a score": (sa.tensor("Q", T, d)[i, j] * X[i, j], {sa.tensor("Q", T, d): sa.iid(), X: sa.iid()}, d),
    "a dot product": (u @ v / sympy.sqrt(d), {u: sa.iid(), v: sa.iid("rademacher")}, d),
    "a square": ((u @ v) ** 2, {u: sa.iid("normal"), v: sa.iid("normal")}, 3 * d * d),
    "pairs": (u @ v, {(u, v): sa.iid_pair(correlation=rho)}, d),
    "an exponential": (sa.exp(u @ v), {u: sa.iid("normal"), v: "constant"}, sympy.S.Zero),
    "a sphere": (u @ v, {u: sa.sphere(), v: "constant"}, sympy.S.One),
    "normal rows": (u @ v, {u: sa.normal(mean=mu, covariance=C), v: "constant"}, d),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_check_sees_a_wrong_answer(name):
    quantity, law, wrong = CHECKED[name]
    found = sa.moments(quantity, law)
    assert found.check()
    right, found.variance = found.variance, sympy.sympify(wrong)
    assert not found.check()
    found.variance = right
    found.mean += 1
    assert not found.check()


# --- the delta method, where it does not settle ---

w = sa.tensor("w", n)
FAR = {
    "layer norm": lambda: sa.expectation(sa.attention.layer_norm(w)[0] ** 2, {w: sa.iid("normal")}, method="delta"),
    "any entry": lambda: sa.variance(sa.attention.layer_norm(w)[i], {w: sa.iid("normal")}, method="delta"),
    "all entries": lambda: sa.expectation(
        sa.sum(sa.attention.layer_norm(w) ** 2), {w: sa.iid("normal")}, method="delta"
    ),
    "RMS norm": lambda: sa.expectation(sa.attention.rms_norm(w)[0] ** 2, {w: sa.iid("normal")}, method="delta"),
    "a pole": lambda: sa.expectation(
        1 / (sa.sum(w * w) + sympy.Rational(1, 1000)), {w: sa.iid("normal")}, method="delta"
    ),
    "a steep exponential": lambda: sa.expectation(sa.mean(sa.exp(2 * w)), {w: sa.iid("normal")}, method="delta"),
    "a wave": lambda: sa.variance(sa.sum(sa.sin(w)), {w: sa.iid("normal")}, method="delta"),
    "a bounded function": lambda: sa.variance(sa.mean(sa.tanh(2 * w)), {w: sa.iid("normal")}, method="delta"),
}


@pytest.mark.parametrize("name", FAR)
def test_delta_method_refuses_where_the_next_term_is_not_small(name):
    with pytest.raises(sa.NoRuleError, match="does not settle.*next term.*is not small.*quadrature"):
        FAR[name]()


def test_delta_method_answers_where_the_next_term_is_small():
    weights = sa.softmax(w)
    found = sa.expectation(sa.sum(weights * weights), {w: sa.iid("normal")}, method="delta").value
    assert sympy.simplify(found - (2 / n - 1 / n**2)) == 0
    for function in (lambda x: sa.exp(2 * x), lambda x: sa.sin(x) + 1, lambda x: sa.tanh(2 * x) + 1):
        one, law = sa.tensor("s"), sa.iid("normal", variance=sympy.Rational(1, 16))
        near, sure = (sa.expectation(function(one), {one: law}, method=m).value for m in ("delta", "quadrature"))
        assert abs(near - sure) < 0.02


UNWRITTEN = {
    "inverse": lambda A, K: (sa.inv(sa.softmax(A)) * K)[0, j],
    "extreme": lambda A, K: (K * sa.max(A))[0, j],
    "row": lambda A, K: (sa.unknown("f", A, rowwise=True) @ K)[0, j],
}


@pytest.mark.parametrize("kind", UNWRITTEN)
def test_what_no_scalar_of_sympy_can_hold_is_refused_by_its_kind(kind):
    n = sa.sizes("n")
    A, K = sa.tensor("A", n, n), sa.tensor("K", n, n)
    with pytest.raises(sa.NoRuleError, match=f"an answer that holds {kind} is not written"):
        sa.variance(UNWRITTEN[kind](A, K), {A: "constant", K: sa.iid("rademacher")})
