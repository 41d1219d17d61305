"""Entries written out at given sizes, held against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.codegen.sampling import generic_arrays, generic_scalars
from symattn.core.node import topological
from symattn.ops.domain import size_symbols

from ..bordering import VALUED, Q, T, d, elements, n, number, x
from ..shares import one_in


@pytest.mark.parametrize("y", one_in(5, VALUED))
@pytest.mark.slow
def test_explicit_entries_agree_with_numpy_at_sizes_one_to_three(y, rng):
    symbols = sorted(size_symbols(topological([y])), key=str)
    compared = 0
    for shift in range(3):
        sizes = {s: (k + shift) % 3 + 1 for k, s in enumerate(symbols)}
        positive = any(name in str(y) for name in ("log", "sqrt", "/", "**"))
        try:
            arrays = generic_arrays(y.tensors, sizes, rng, positive)
            scalars = generic_scalars([y], rng)
            keywords = {s.name: v for s, v in {**sizes, **scalars}.items()}
            f = sa.lambdify(list(y.tensors), y)
            want = np.asarray(f(*arrays.values(), **{s.name: keywords[s.name] for s in f.takes.keywords}), float)
            explicit = y.as_explicit(sizes)
        except (sa.ShapeError, sa.EvaluationError, IndexError, sa.NoRuleError):
            continue  # these sizes are too small, or a symbolic mask stands under a sparse normaliser
        point = type("Point", (), {"arrays": arrays, "sizes": sizes})
        known = {s: sympy.Float(v, 30) for s, v in scalars.items()}
        for t in y.tensors:
            known.update(elements(t, point))
        flat = sympy.flatten(explicit.tolist()) if y.rank else [explicit]
        got = np.array([number(entry, known) for entry in flat]).reshape(want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
        compared += 1
    assert compared or "sparsemax(where" in str(y) or "entmax15(where" in str(y)


def test_explicit_entries_have_the_type_of_their_rank():
    assert sa.sum(Q).as_explicit({T: 2, d: 1}).is_Add
    assert x.as_explicit({n: 3}) == sympy.Matrix([sympy.Symbol("x", real=True)] * 3) * 0 + sympy.Matrix(
        [sympy.IndexedBase(sympy.Symbol("x", real=True))[k] for k in range(3)]
    )
    assert isinstance(Q.as_explicit({T: 2, d: 1}), sympy.Matrix)
    assert (x[:, None, None] * sa.ones(n, 1, 1)).as_explicit({n: 2}).shape == (2, 1, 1)


def test_explicit_extremes_and_choices_become_sympys():
    assert sa.max(x).as_explicit({n: 2}) == sympy.Max(*x.as_explicit({n: 2}))
    assert sa.relu(x).as_explicit({n: 1})[0].func is sympy.Piecewise
    assert sa.tril(sa.tensor("A", 2, 2)).as_explicit()[0, 1] == 0


def test_explicit_inverse_is_the_inverse():
    R = sa.tensor("R", n, n)
    assert sympy.simplify((sa.inv(R) @ R).as_explicit({n: 2})) == sympy.eye(2)


def test_explicit_softmax_with_a_fully_masked_row_is_zero():
    M = sa.tensor("M", n, n, binary=True)
    entries = sa.softmax(sa.where(M, sa.tensor("Z", n, n), -sympy.oo)).as_explicit({n: 2})
    nothing = {at: sympy.Integer(0) for at in entries.atoms(sympy.Indexed) if str(at.base) == "M"}
    assert entries.xreplace(nothing) == sympy.zeros(2, 2)


@pytest.mark.parametrize(
    ("ask", "error", "said"),
    [
        (lambda: Q.as_explicit({T: 2}), sa.ShapeError, r"entries of Q\[T, d\] .* give a number for d"),
        (lambda: Q.as_explicit(), sa.ShapeError, "give a number for T, d"),
        (lambda: Q.as_explicit({T: 0, d: 1}), sa.ShapeError, "positive"),
        (lambda: Q.as_explicit({sympy.Symbol("T"): 2, d: 1}), sa.NamingError, "differs"),
        (lambda: Q.as_explicit({"T": 2}), sa.OperandError, "can be replaced"),
        (lambda: sa.unknown("f", Q, rowwise=True).as_explicit({T: 1, d: 2}), sa.NoRuleError, "nothing is known of f"),
        (lambda: (Q @ sa.tensor("Q", d, T)).as_explicit({T: 1, d: 2}), sa.NamingError, "two tensors"),
        (
            lambda: sa.split_axis(sa.tensor("X", T, d), -1, (2, d / 2)).as_explicit({T: 1, d: 3}),
            sa.ShapeError,
            "a positive whole number",
        ),
        (
            lambda: sa.sparsemax(sa.where(sa.tensor("M", n, binary=True), x, -sympy.oo)).as_explicit({n: 2}),
            sa.NoRuleError,
            "mask whose entries are symbols",
        ),
    ],
    ids=range(9),
)
def test_what_cannot_be_written_out_is_an_error(ask, error, said):
    with pytest.raises(error, match=said):
        ask()
