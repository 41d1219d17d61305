"""What people read: what a tensor is, never the name of a record; letters of indices that name nothing else."""

import re

import pytest
import sympy

import symattn as sa
from symattn.ops import RECORDS
from symattn.proof.claims import eq
from symattn.testing import assert_gradient

T, S, d, n, i, j, k, l = sa.sizes("T S d n i j k l")
Q, K, V = sa.tensor("Q", T, d), sa.tensor("K", S, d), sa.tensor("V", S, d)
x, y = sa.tensor("x", n), sa.tensor("y", n)
O = sa.softmax(Q @ K.T / sympy.sqrt(d)) @ V
LONG = sa.exp(-x) * sa.tanh(x - y / 2) + sa.sin(y)
MASK = sa.from_index((T, T), lambda i, j: sympy.Piecewise((-sympy.oo, j > i), (0, True)))

BRIEF = {
    "short": (Q @ K.T, "(Q @ K.T)[T, S]"),
    "all of 30 characters": (O, "(softmax(Q @ K.T / sqrt(d)) @ V)[T, d]"),
    "one long operand": (O * Q, "(... * Q)[T, d]"),
    "two long operands": (O + O * Q, "(... + ... * Q)[T, d]"),
    "a difference": (Q - 2 * O, "(Q - 2 * ...)[T, d]"),
    "a function": (sa.sum(O * O), "sum(...)[]"),
    "a function with parameters": (sa.sum(O * O, axis=0), "(sum(..., axis=-2))[d]"),
    "a transpose": (O.T, "(...).T[d, T]"),
    "a slice": (LONG[1:], "(...)[1:][n - 1]"),
    "a power": (LONG**2, "(...)**2[n]"),
    "a choice": (sa.where(LONG > 0, LONG, x), "(where(..., ..., x))[n]"),
    "many operands": (sa.concat([x] * 40), "concat(...)[40*n]"),
    "a constant by index": (MASK, "from_index(...)[T, T]"),
    "named parts": (sa.let("P", O) * sa.let("R", O + Q) * Q, "(P * R * Q)[T, d]"),
}


@pytest.mark.parametrize("name", BRIEF)
def test_a_long_tensor_is_told_by_its_last_step(name):
    tensor, text = BRIEF[name]
    assert tensor.brief() == text


def test_a_graph_of_many_paths_is_told_at_once():
    t = Q
    for _ in range(200):
        t = t + t
    assert t.brief() == "(... + ...)[T, d]"
    assert str(t) == "<(... + ...)[T, d], 201 nodes>"


LOGITS = MASK + Q @ Q.T
REFUSED = {
    "*": (lambda: 2 * LOGITS, "the product of (... + Q @ Q.T)[T, T], which may hold -oo"),
    "/": (lambda: 1 / LOGITS, "the quotient of (... + Q @ Q.T)[T, T], which may hold -oo"),
    "**": (lambda: LOGITS**2, "the power of (... + Q @ Q.T)[T, T], which may hold -oo"),
    "@": (lambda: LOGITS @ Q, "the matrix product of (... + Q @ Q.T)[T, T], which may hold -oo"),
    "<": (lambda: LOGITS < LOGITS.T, "the comparison of (...).T[T, T], which may hold -oo"),
    "a function": (lambda: sa.tanh(LOGITS), "tanh of (... + Q @ Q.T)[T, T], which may hold -oo"),
    "shapes of **": (lambda: Q**V, "the power of Q[T, d], V[S, d]: axis -2 has the sizes S and T"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_says_what_was_written(name):
    build, text = REFUSED[name]
    with pytest.raises(sa.SymattnError, match=re.escape(text)):
        build()


def test_what_a_refuted_gradient_claims_is_written_out():
    with pytest.raises(AssertionError) as failed:
        assert_gradient(sa.sum(O * O * O), Q, O * 2 * K[:1])
    assert "with respect to Q[T, d], 2 * softmax(Q @ K.T / sqrt(d)) @ V * K[:1, :], is refuted" in str(failed.value)


def test_no_bound_is_explained_by_the_name_of_a_record():
    verdict = sa.prove(sa.le(0, sa.softmax(Q @ K.T) @ (V * V) + sa.exp(Q) * sa.exp(Q)))
    text = verdict.proof.text()
    unsaid = [name for name, record in RECORDS.items() if record.called]
    assert verdict
    assert not re.search(rf"\b({'|'.join(unsaid)})\b of", text)


# --- letters of indices ---

w, W = sa.tensor("w", k), sa.tensor("W", i, j)
NAMED_K = sa.tensor("k", n)
UNKNOWN = {
    "a size k": eq(sa.max(sa.cumsum(w * w)), sa.sum(w * w)),
    "a tensor k": eq(sa.max(NAMED_K) * sa.max(-NAMED_K), sa.min(NAMED_K) * sa.min(-NAMED_K)),
    "sizes i and j": eq(sa.max(sa.cumsum(W * W, axis=0), axis=0), sa.sum(W * W, axis=0)),
    "a scalar k": eq(
        sympy.Symbol("k", real=True) * sa.max(sa.cumsum(x * x)), sympy.Symbol("k", real=True) * sa.sum(x * x)
    ),
    "a function k": eq(sa.unknown("k", sa.max(sa.cumsum(x * x))), sa.unknown("k", sa.sum(x * x))),
}


def indices(text):
    """The letters that stand inside brackets of entries or below sums."""
    inside = [part for found in re.findall(r"\[([^\[\]]*)\]", text) for part in re.findall(r"[a-z](?:_\d+)?", found)]
    return {*inside, *re.findall(r"(?:sum|max|min)_([a-z](?:_\d+)?)", text)}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_index_in_what_is_left_open_names_nothing_else(name):
    claim = UNKNOWN[name]
    verdict = sa.prove(claim)
    assert verdict.status == "unknown"
    names = {s.name for side in claim.sides for s in side.free_symbols}
    names |= {"k"} if name.endswith("k") else set()
    shown = " ".join((*verdict.forms, verdict.residual))
    assert indices(shown)
    assert not indices(shown) & names


def test_names_of_definitions_are_no_names_of_tensors_and_each_is_said():
    t = sa.tensor("t_1", i, j)
    P = sa.softmax(t @ W.T)
    Z = P @ P
    verdict = sa.prove(sa.sum(sa.max(Z @ P, axis=0)) - sa.max(Z), sa.sum(sa.max(Z @ P, axis=0)) + sa.min(-Z))
    text = str(verdict)
    used = set(re.findall(r"\bt_\d+", text)) - {"t_1"}
    assert verdict.status == "unknown"
    assert used
    assert all(f"where {name}[" in text or f"where {name} =" in text for name in used)


def test_a_proof_by_entries_has_letters_of_its_own():
    verdict = sa.prove(sa.max(W @ W.T, axis=-1), sa.max(W @ W.T, axis=0))
    assert "left[h] = max_k(t_1[h, k])" in verdict.proof.text()
    assert r"\text{left}_{h}" in verdict.proof.latex()


LETTERS = {
    "from_index": (sa.from_index((i, j), lambda a, b: a - b), "from_index((i, j), lambda l, m: l - m)"),
    "from_index beside a tensor i": (
        sa.tensor("i", n, n) + sa.from_index((n, n), lambda a, b: a - b),
        "i + from_index((n, n), lambda j, l: j - l)",
    ),
    "elementwise of x": (
        sa.elementwise(sympy.Lambda(sympy.Symbol("u"), sympy.Symbol("u") ** 3 + 1), x),
        "elementwise(lambda i: i**3 + 1, x)",
    ),
}


@pytest.mark.parametrize("name", LETTERS)
def test_the_letters_of_a_formula_name_nothing_else(name):
    tensor, text = LETTERS[name]
    assert str(tensor) == text


@pytest.mark.parametrize("law", [sa.iid(), sa.iid("normal", mean=1)])
def test_what_has_no_moments_is_told_with_letters_that_are_free(law):
    q = sa.tensor("q", i)
    with pytest.raises(sa.NoRuleError, match=r"tanh|exp\(2\*q\[j\]\)"):
        sa.expectation(sa.sum(sa.tanh(q)), {q: law})


def test_more_letters_than_the_alphabet_has():
    names = "abcdefghijklmnpqrtuvw"
    shape = sa.sizes(" ".join(names))
    X = sa.tensor("X", shape[0], shape[1])
    verdict = sa.prove(sa.max(sa.cumsum(X * X, axis=0), axis=0) * sympy.Mul(*shape), sa.sum(X * X, axis=0))
    assert verdict.status == "refuted"
    assert "k_1" in str(sa.entries(sa.sum(X * sympy.Mul(*shape))))
