"""What published formulas mean: all, in the right shapes, equal to NumPy written apart, proved where claimed."""

from __future__ import annotations

import inspect
from collections import Counter

import numpy as np
import pytest
import sympy

import symattn as sa
from symattn.core.sizes import same_shape
from symattn.ops.leaves import as_tensor

from ..agreement import arrays_for
from . import meanings_numpy_more  # noqa: F401  (which adds to NUMPY)
from .formulas import arguments_of, declaration, formulas, plain_name
from .meaning import ONCE_DECLARED, READ, UNDECIDABLE, WRONG, Defined, Stated, values_of
from .meanings import all_meanings, meaning_of, table
from .meanings_numpy import CONCRETE, NUMPY

IDS = list(formulas())
FIRST = [id for id in IDS if formulas()[id].kind != "more"]
CLAIMED = [id for id, meaning in all_meanings().items() if any(isinstance(s, Stated) for s in meaning.statements)]
SHAPED = [id for id, meaning in all_meanings().items() if any(isinstance(s, sa.Tensor) for s in values_of(meaning))]

WRITTEN_OUT = {"s3-17": {"W^Q"}, "x88": {"a"}}  # D as h*D_h, and 2F' as 2*F'


# --- the corpus ---


def test_every_formula_has_one_meaning():
    assert (len(FIRST), len(IDS) - len(FIRST)) == (116, 40)
    assert list(all_meanings()) == IDS


def test_verdicts():
    meanings = all_meanings()
    assert Counter(meanings[id].verdict for id in FIRST) == {READ: 76, ONCE_DECLARED: 26, WRONG: 9, UNDECIDABLE: 5}
    assert all(m.reason for m in meanings.values() if m.verdict != READ)
    assert table().splitlines()[6] == "s0-07  read"
    assert table().splitlines()[5].startswith("s0-06  wrong at source    keys have the width d'")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("W_i^Q", "W_i_Q"), ("Q'_i", "Q_i'"), ("S_{t-1}", "S_t_before"), (r"\sigma", "sigma"), ("Q_{b,t,h}", "Q_bth"),
        ("x^{(1)}_m", "x_1_m"), ("score(i,j)", "score_ij"), ("ϵ_i", "epsilon_i"),
    ],
)  # fmt: skip
def test_names_of_latex_are_plain_names(key, name):
    assert plain_name(key) == name


def test_declarations():
    n, h, f = sa.sizes("n h F'")
    assert declaration("2*F'×n, permutation") == ((2 * f, n), ("permutation",), {})
    assert declaration("scalar; r=1-n..n-1, i=1..h") == ((), (), {"r": 2 * n - 1, "i": h})


@pytest.mark.parametrize("id", IDS)
def test_names_are_what_the_source_declares(id):
    """A shape that the source declares stands in the names as well, where the formula uses the name."""
    formula = formulas()[id]
    for key in (formula.declared.keys() & formula.names.keys()) - WRITTEN_OUT.get(id, set()):
        assert formula.names[key].partition(";")[0] == formula.declared[key].replace(" ", ", ")


# --- shapes, numbers, proofs ---


@pytest.mark.parametrize("id", IDS)
def test_shapes_that_formulas_state(id):
    for statement in meaning_of(id).statements:
        if isinstance(statement, Defined) and statement.shape is not None:
            assert same_shape(statement.value.shape, statement.shape)


def test_tensors_are_held_against_numpy():
    assert set(SHAPED) - set(NUMPY) == {"x15", "x90", "m27"}  # of -oo


def computed(id, rng):
    """The values of a formula in symattn, and in NumPy, at sizes that all differ."""
    names, roots = arguments_of(formulas()[id], CONCRETE), list(map(as_tensor, values_of(meaning_of(id, CONCRETE))))
    sizes = {s: n for n, s in enumerate((x for x in names.values() if getattr(x, "is_integer", None)), start=2)}
    tensors = [x for x in names.values() if isinstance(x, sa.Tensor)]
    numbers = [x for x in names.values() if isinstance(x, sympy.Symbol) and x not in sizes]
    arrays = dict(zip(tensors, map(np.abs, arrays_for(tensors, {}, sizes, rng)), strict=True))
    values = {**arrays, **dict(zip(numbers, rng.uniform(0.5, 1.5, len(numbers)), strict=True)), **sizes}
    used = [x for x in [*tensors, *numbers] if any(x in (*y.tensors, *y.free_symbols) for y in roots)]
    compute = sa.lambdify(used, roots)
    keywords = {key.name: values[key] for key in compute.takes.keywords}
    needed = [name.replace("_prime", "'") for name in inspect.signature(NUMPY[id]).parameters]
    return compute(*(values[x] for x in used), **keywords), NUMPY[id](*(values[names[name]] for name in needed))


@pytest.mark.parametrize("id", NUMPY)
def test_meanings_are_what_numpy_computes(id, rng):
    ours, theirs = (x if isinstance(x, tuple) else (x,) for x in computed(id, rng))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("id", CLAIMED)
def test_claims_are_what_the_prover_says(id):
    for statement in meaning_of(id).statements:
        if isinstance(statement, Stated):
            assert sa.prove(statement.claim, given=statement.given).status == statement.status


@pytest.mark.parametrize(("id", "name"), [("x15", "M"), ("x90", "M")])
def test_causal_masks(id, name):
    T = sa.sizes("T")
    Z = sa.tensor("Z", T, T)
    mask = meaning_of(id).statements[0]
    assert mask.name == name
    assert sa.prove(sa.softmax(Z + mask.value), sa.softmax(Z, where=sa.from_index((T, T), lambda i, j: j <= i)))


# --- gradients are those of what they are said of ---


def gradient_values(id):
    return [statement.value for statement in meaning_of(id).statements]


def test_published_gradients_of_products():
    names = arguments_of(formulas()["x79"])
    P, V, dO = names["P"], names["V"], names["dO"]
    assert sa.prove(sa.gradient({P @ V: dO}, [V])[V], gradient_values("x79")[0])
    names = arguments_of(formulas()["x81"])
    P, V, g = names["P"], names["V"], names["g"]
    found = sa.gradient({P @ V: g}, [V, P])
    assert all(sa.prove(found[x], y) for x, y in zip((V, P), gradient_values("x81"), strict=True))


def test_published_derivatives_of_softmax():
    names = arguments_of(formulas()["x80"])
    S, P, dP = names["S"], names["P"], names["dP"]
    claimed = gradient_values("x80")[0].replace({P: sa.softmax(S)})
    assert sa.prove(sa.gradient({sa.softmax(S): dP}, [S])[S], claimed)
    names = arguments_of(formulas()["x34"])
    z, p, target = names["z"], names["p"], sa.tensor("t", *names["z"].shape)
    loss = sa.logsumexp(z) - target @ z
    assert sa.prove(sa.hessian(loss, z), gradient_values("x34")[0].replace({p: sa.softmax(z)}))
