"""What a declaration states besides its entry: masks, -oo, the kind and the bounds of its entries, its letters."""

import pickle

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.cli.prove import as_json

k = sympy.Symbol("k", integer=True)
T, S, d = sa.sizes("T S d")
Z, V = sa.tensor("Z", T, S), sa.tensor("V", S, d)
z = sa.tensor("z", "n")


def total(x, n):
    return sympy.Sum(x(k), (k, 0, n - 1))


def softmax_entry(i, s):
    return sympy.exp(s[i]) / total(lambda at: sympy.exp(s[at]), s.shape[0])


def softmax1_entry(i, s):
    return sympy.exp(s[i]) / (1 + total(lambda at: sympy.exp(s[at]), s.shape[0]))


def quadratic_entry(i, s):
    return (1 + s[i] ** 2) / total(lambda at: 1 + s[at] ** 2, s.shape[0])


def masked_entry(i, s, m):
    below = total(lambda at: m[at] * sympy.exp(s[at]), s.shape[0])
    return sympy.Piecewise((0, sympy.Eq(below, 0)), (m[i] * sympy.exp(s[i]) / below, True))


def absorbing_entry(i, s):
    below = total(lambda at: sympy.exp(s[at]), s.shape[0])
    return sympy.Piecewise((0, sympy.Eq(below, 0)), (sympy.exp(s[i]) / below, True))


def declared(entry, shape="n -> n", **stated):
    return sa.operation("f", shape=shape, entry=entry, **stated)


def at_most_the_largest(weights):
    """A mean with these weights lies below the largest value."""
    return sa.prove(sa.le(weights @ V, sa.max(V, 0)[None, :] * sa.ones(T, d)))


# --- rows and range ---

PROBABILITIES = {
    "softmax": (softmax_entry, "positive probabilities"),
    "a quadratic normaliser": (quadratic_entry, "positive probabilities"),
    "uniform weights": (lambda i, s: 1 / s.shape[0], "probabilities"),
    "the first": (lambda i, s: sympy.Piecewise((1, sympy.Eq(i[0], 0)), (0, True)), "probabilities"),
}


@pytest.mark.parametrize("name", PROBABILITIES)
def test_rows_are_used_by_bounds_listed_until_they_are_proved_and_then_not(name):
    entry, rows = PROBABILITIES[name]
    op = declared(entry, rows=rows)
    verdict = at_most_the_largest(op(Z))
    said = f"the rows of f are {rows}, as stated"
    assert verdict.status == "proved"
    assert said in verdict.proof.hypotheses
    assert said in str(verdict)
    assert said in verdict.proof.latex()
    assert sa.verify(op).endswith("f: rows is proved")
    assert said not in str(verdict) + verdict.proof.text()
    assert not at_most_the_largest(op(Z)).proof.hypotheses


def test_without_the_statement_the_bound_is_not_known():
    assert at_most_the_largest(declared(quadratic_entry)(Z)).status == "unknown"


FALSE = {
    "rows that sum to less": (softmax1_entry, {"rows": "probabilities"}, "rows='probabilities' of f is false"),
    "rows that sum to 2": (lambda i, s: 2 * softmax_entry(i, s), {"rows": "probabilities"}, "left is 2, right is 1"),
    "entries below 0": (lambda i, s: s[i] / total(lambda at: s[at], s.shape[0]), {"rows": "probabilities"}, "is false"),
    "an entry that is 0": (PROBABILITIES["the first"][0], {"rows": "positive probabilities"}, "is false"),
    "a range that is too small": (lambda i, s: s[i] ** 2 / (1 + s[i] ** 2), {"range": (0, 0.5)}, "is false"),
    "a range above 0": (lambda i, s: sympy.tanh(s[i]), {"range": (0, 1)}, "is false"),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_statement_is_refuted_with_a_point(name):
    entry, stated, message = FALSE[name]
    with pytest.raises(sa.EvaluationError, match=message):
        sa.verify(declared(entry, **stated))


RANGES = {
    "softmax with one more score": (softmax1_entry, (0, 1)),
    "a saturating square": (lambda i, s: s[i] ** 2 / (1 + s[i] ** 2), (0, 1)),
    "a hyperbolic tangent": (lambda i, s: sympy.tanh(s[i]), (-1, 1)),
    "a square": (lambda i, s: s[i] ** 2, (0, sympy.oo)),
}


@pytest.mark.parametrize("name", RANGES)
def test_a_range_is_proved(name):
    entry, bounds = RANGES[name]
    op = declared(entry, range=bounds)
    assert sa.verify(op).endswith("f: range is proved")
    assert sa.prove(sa.le(bounds[0], op(z)))


def test_a_range_that_is_not_proved_is_an_assumption_of_what_uses_it():
    op = declared(lambda i, s: sympy.erf(s[i]) * sympy.cos(s[i]) * sympy.sin(3 * s[i]), range=(-1, 1))
    sa.verify(op)
    odd = declared(lambda i, s: s[i] * sympy.exp(-(s[i] ** 2)), range=(-1, 1))
    assert sa.verify(odd).endswith("f: range is not proved, and every proof that uses it says so")
    verdict = sa.prove(sa.le(odd(z), 1))
    assert verdict
    said = "the entries of f lie between -1 and 1, as stated"
    assert str(verdict).endswith(f"assumed: {said}")
    assert as_json(verdict)["assumptions"] == [said]
    many = sa.prove(sa.le(odd(sa.tensor("z", 300)), 1))
    assert "holds for all sizes" in many.proof.text()
    assert many.proof.assumptions == (said,)


def test_a_masked_row_sums_to_one_or_to_nothing():
    op = declared(masked_entry, "n, n -> n", masks=(1,), rows="probabilities")
    M = sa.tensor("M", T, S, binary=True)
    assert sa.verify(op).endswith("f: rows is proved")
    out = op(Z, M)
    assert sa.prove(sa.le(sa.sum(out, -1), 1))
    assert sa.prove(sa.sum(out, -1), sa.ones(T)).status == "refuted"
    assert at_most_the_largest(out).status != "proved"  # a row without keys gives 0, above values that are negative


def test_our_own_records_state_the_same():
    assert sa.softmax(z).op.rows == "positive probabilities"
    assert sa.sparsemax(z).op.rows == sa.entmax15(z).op.rows == "probabilities"
    assert not sa.softmax(z).op.assumptions


@pytest.mark.parametrize("name", ["softmax", "exp", "broadcast_to", "tensor", "inv", "stop_gradient"])
def test_an_operation_is_not_called_as_one_of_our_own(name):
    with pytest.raises(sa.NamingError, match=f"{name} is an operation of symattn's own: call yours .* my_{name}"):
        sa.operation(name, shape="n -> n", entry=softmax1_entry)


def test_a_derivation_lists_what_its_proofs_assume():
    verdict = at_most_the_largest(declared(quadratic_entry, rows="probabilities", nonsmooth="nowhere")(Z))
    report = sa.Derivation("A mean", given={Z: "scores", V: "values"}).extend(verdict).verify()
    assert "the rows of f are probabilities, as stated" in str(report)


# --- masks, -oo, kinds ---


def test_a_mask_is_binary_and_has_no_derivative():
    op = declared(lambda i, s, m: s[i] ** 2 * m[i], "n, n -> n", masks=1)
    m = sa.tensor("m", "n", binary=True)
    sa.verify(op)
    with pytest.raises(sa.OperandError, match="f takes a binary tensor"):
        op(z, z)
    g = sa.gradient(op(z, m), z)
    f = sa.lambdify([z, m, g.cotangent], [op(z, m), g])
    f.check()
    value, slope = f(np.array([2.0, 3.0]), np.array([True, False]), np.ones(2))
    assert (value.tolist(), slope.tolist()) == ([4, 0], [4, 0])
    moved = sa.lambdify([z, m], sa.jvp(op(z, m), {z: z}))
    assert moved(np.array([2.0, 3.0]), np.array([True, False])).tolist() == [8, 0]


def test_an_operation_may_absorb_minus_infinity():
    op = declared(absorbing_entry, minus_infinity="absorbed", rows="probabilities")
    assert sa.verify(op).endswith("f: rows is proved")
    keep = sa.tensor("keep", "n", binary=True)
    out = op(z + sa.where(keep, 0, -sympy.oo))
    f = sa.lambdify([z, keep], out)
    row = np.array([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        assert f(row, np.array([True, False, False])).tolist() == [1, 0, 0]
        assert f(row, np.zeros(3, bool)).tolist() == [0, 0, 0]
    assert sa.prove(out, sa.softmax(z, where=keep))
    assert sa.prove(sa.sum(out), 1).status == "refuted"


MINUS_INFINITY = {
    "twice the input": (lambda i, s: s[i] * 2, "absorbed", "is not finite|no generic point"),
    "an empty row": (softmax_entry, "absorbed", "where every entry of an input is -oo, the result is not|no generic"),
    "a square": (lambda i, s: s[i] ** 2, "kept", "minus_infinity='kept' of f"),
}


@pytest.mark.parametrize("name", MINUS_INFINITY)
def test_verify_finds_what_minus_infinity_breaks(name):
    entry, stated, message = MINUS_INFINITY[name]
    with pytest.raises(sa.EvaluationError, match=message):
        sa.verify(declared(entry, minus_infinity=stated))


def test_minus_infinity_is_refused_unless_it_is_stated():
    with pytest.raises(sa.OperandError, match="f of .*may hold -oo"):
        declared(softmax_entry)(z + sa.from_index(("n",), lambda i: sympy.Piecewise((-sympy.oo, i > 0), (0, True))))
    kept = declared(lambda i, s: s[s.shape[0] - 1 - i[0]], minus_infinity="kept")
    sa.verify(kept)
    hidden = z + sa.from_index(("n",), lambda i: sympy.Piecewise((-sympy.oo, i > 0), (0, True)))
    assert kept(hidden).holds_minus_infinity


KINDS = {
    "binary": (lambda i, s: sympy.Piecewise((1, s[i] > 0), (0, True)), "binary", [0, 1, 1]),
    "integer": (lambda i, s: sympy.floor(s[i]), "integer", [-1, 0, 2]),
    "a count": (lambda i, s: s.shape[0] - i[0], "integer", [3, 2, 1]),
    "inputs": (lambda i, s: s[s.shape[0] - 1 - i[0]], "inputs", [2.5, 0.5, -0.5]),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_the_entries(name):
    entry, kind, right = KINDS[name]
    op = declared(entry, kind=kind, nonsmooth="f jumps")
    sa.verify(op)
    assert op(z).kind == ("real" if kind == "inputs" else kind)
    f = sa.lambdify([z], op(z))
    f.check()
    assert f(np.array([-0.5, 0.5, 2.5])).tolist() == right
    if kind == "binary":
        picked = sa.lambdify([z], sa.where(op(z), z, 0))
        assert picked(np.array([-0.5, 0.5, 2.5])).tolist() == [0, 0.5, 2.5]
        assert sa.lambdify([z], 3 * op(z))(np.array([-0.5, 0.5, 2.5])).tolist() == [0, 3, 3]
    if kind == "integer":
        places = sa.take(sa.tensor("X", "m 2"), op(z), axis=0)
        assert places.shape[1] == 2


def test_letters_and_where_there_is_no_derivative_are_told_in_a_gradient():
    op = declared(
        lambda i, s: sympy.Piecewise((s[i], s[i] > 0), (0, True)), letters=("A", "B"), nonsmooth="f: not at 0"
    )
    g = sa.gradient(op(Z @ V) @ V.T, Z)
    assert {"dA", "dB"} <= set(g.named)
    assert "f: not at 0" in g.side_conditions


REFUSED = {
    "a mask that is no input": ({"masks": (1,)}, "masks= of operation 'f' counts some of its 1 inputs from 0"),
    "a mask by name": ({"masks": "x"}, "masks="),
    "another word for -oo": ({"minus_infinity": True}, "minus_infinity= of operation 'f' is one of"),
    "an unknown kind": ({"kind": "bool"}, "kind= of operation 'f' is one of"),
    "a kind that is not seen": ({"kind": "integer"}, "its entry x1.i0. is not seen to be so"),
    "one letter": ({"letters": "P"}, "letters= of operation 'f' name the result and the first input"),
    "a place that is no text": ({"nonsmooth": 0}, "nonsmooth="),
    "unknown rows": ({"rows": "stochastic"}, "rows= of operation 'f' is one of"),
    "a range in the wrong order": ({"range": (1, 0)}, "range= of operation 'f' is two numbers"),
    "a range of one number": ({"range": (1,)}, "range="),
    "a range of symbols": ({"range": (0, sympy.Symbol("c"))}, "range="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_stated_is_refused(name):
    stated, message = REFUSED[name]
    with pytest.raises(sa.OperandError, match=message):
        declared(lambda i, s: s[i], **stated)


def test_a_result_without_an_axis_has_no_rows():
    with pytest.raises(sa.OperandError, match="without an axis has no rows"):
        sa.operation("f", shape="n ->", entry=lambda i, s: s[0], rows="probabilities")


def test_statements_are_pickled():
    op = declared(softmax1_entry, range=(0, 1), letters=("P", "Z"))
    assert pickle.loads(pickle.dumps(op)) is op
    assert pickle.loads(pickle.dumps(op(z))).op.range == (0, 1)


# --- entries without a value ---

UNDEFINED = {
    "the logarithm of an empty sum": lambda i, s: sympy.log(total(lambda at: sympy.exp(s[at]), i[0])),
    "the reciprocal of an index": lambda i, s: s[i] / i[0],
    "the reciprocal of an empty sum": lambda i, s: 1 / total(lambda at: s[at] ** 2, i[0]),
    "the root of what is negative": lambda i, s: sympy.sqrt(-1 - s[i] ** 2),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_verify_says_that_an_entry_has_no_value(name):
    with pytest.raises(sa.EvaluationError, match="the entry formula of f may have no value at some index"):
        sa.verify(declared(UNDEFINED[name]))


def test_an_exclusive_sum_is_verified_and_is_0_at_first():
    op = declared(lambda i, s: total(lambda at: sympy.exp(s[at]), i[0]))
    assert sa.verify(op) == "f: NumPy equals the entries"
    assert sa.lambdify([z], op(z))(np.zeros(3)).tolist() == [0, 1, 2]
    assert sa.prove(sa.le(0, op(z)))
    assert sa.prove(sa.lt(0, op(z))).status == "refuted"
