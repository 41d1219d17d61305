"""The variants of the two tables: values and gradients against NumPy by hand, empty rows, loop axes.

The NumPy forward passes are piecewise analytic, so the complex step is exact to rounding away from the kinks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy

import symattn as sa

from . import variants_linear  # noqa: F401  its variants join the table
from .shares import one_in
from .variants import KT, SIZES, VARIANTS, VT, Q, Variant, X


def sample(x: Any, rng: np.random.Generator) -> Any:
    """A generic value: masks have one empty row, labels are one-hot, scalars and what is declared so are positive."""
    if isinstance(x, sympy.Symbol):
        return rng.uniform(0.5, 1.5)
    shape = tuple(int(size.subs(SIZES)) for size in x.shape)
    hypotheses = x.params.get("hypotheses", ())
    if "binary" in hypotheses:
        keep = rng.random(shape) < 0.7
        keep[..., 1:3] = True
        keep[2 if x.rank > 1 else 0] = False
        return keep
    if "constant" in hypotheses:
        return np.eye(shape[1])[rng.integers(0, shape[1], shape[0])]
    return rng.uniform(0.5, 1.5, shape) if "positive" in hypotheses else rng.normal(size=shape)


def complex_step(forward: Callable[..., Any], arrays: list[Any], k: int, cotangents: list[Any]) -> Any:
    """The gradient of ``sum of cotangent * output`` by argument k."""
    slope = np.zeros(np.shape(arrays[k]))
    for place in np.ndindex(slope.shape):
        moved = np.array(arrays[k], dtype=complex)
        moved[place] += 1e-30j
        outputs = forward(*arrays[:k], moved, *arrays[k + 1 :])
        slope[place] = sum((c * np.imag(y)).sum() for c, y in zip(cotangents, outputs, strict=True)) / 1e-30
    return slope


def relative_error(got: Any, want: Any) -> float:
    assert np.shape(got) == np.shape(want)
    assert np.isfinite(got).all()
    assert np.abs(want).max() > 0
    return float(np.abs(got - want).max() / np.abs(want).max())


def compiled(v: Variant) -> tuple[Any, list[sa.Tensor]]:
    """The function of variables, data and cotangents that gives the outputs and then the gradients."""
    cotangents = [sa.tensor(f"G_{k}", *y.shape) for k, y in enumerate(v.outputs)]
    g = sa.gradient(dict(zip(v.outputs, cotangents, strict=True)), v.wrt)
    function = sa.lambdify([*v.wrt, *v.data, *cotangents], [*v.outputs, g])
    return partial(function, **{size.name: SIZES[size] for size in v.keywords}), cotangents


@pytest.mark.parametrize("name", VARIANTS)
def test_values_and_gradients_equal_numpy_by_hand(name, rng):
    v = VARIANTS[name]()
    function, cotangents = compiled(v)
    arrays = [sample(x, rng) for x in (*v.wrt, *v.data)]
    upstream = [sample(c, rng) for c in cotangents]
    results = function(*arrays, *upstream)
    for got, want in zip(results, v.numpy(*arrays), strict=False):
        assert relative_error(got, want) <= 1e-13
    for k, got in enumerate(results[len(v.outputs) :]):
        assert relative_error(got, complex_step(v.numpy, arrays, k, upstream)) <= 1e-12, v.wrt[k]


CHECKED = [name for name in VARIANTS if name != "two_pre_norm_blocks"]  # which has 700 entries to move


@pytest.mark.parametrize("name", one_in(4, CHECKED))
def test_check_agrees(name):
    v = VARIANTS[name]()
    function, _ = compiled(v)
    report = function.func.check()
    assert report.count("gradient equals central differences") == 2 * len(v.wrt)


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("padding_where", [2]),
        ("padding_additive", [2]),
        ("padding_of_keys_and_causal", [0]),
        ("window_where", [0, 1]),
        ("window_additive", [0, 1]),
    ],
)
def test_rows_with_nothing_to_attend_to_are_zero_and_have_gradient_zero(name, empty, rng):
    v = VARIANTS[name]()
    function, cotangents = compiled(v)
    output, dQ, *_ = function(*(sample(x, rng) for x in (*v.wrt, *v.data, *cotangents)))
    full = [i for i in range(len(output)) if i not in empty]
    for rows in (output, dQ):
        assert (rows[empty] == 0).all()
        assert np.isfinite(rows).all()
        assert (np.abs(rows[full]).max(axis=1) > 0).any()


def test_boolean_and_additive_masks_agree(rng):
    for one, other in (("causal_where", "causal_additive"), ("window_where", "window_additive")):
        (f_one, cotangents), (f_other, _) = compiled(VARIANTS[one]()), compiled(VARIANTS[other]())
        arrays = [sample(x, rng) for x in (*VARIANTS[one]().wrt, *cotangents)]
        for a, b in zip(f_one(*arrays), f_other(*arrays), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_two_passes_through_one_layer_are_numbered():
    v = VARIANTS["same_layer_twice"]()
    g = sa.gradient(v.outputs[0], v.wrt)
    assert {"dP_1", "dP_2", "dZ_1", "dZ_2", "dY_1"} <= set(g.named)


# --- loop axes ---

LOOPS = (2, 3)


def batched(x: sa.Tensor, rng: np.random.Generator, lead: tuple[int, ...] = LOOPS) -> Any:
    return rng.normal(size=lead + tuple(int(size.subs(SIZES)) for size in x.shape))


@pytest.mark.parametrize(
    ("name", "looped"),
    [
        ("padding_where", {"Q", "K", "V"}),
        ("causal_where", {"Q", "K", "V"}),
        ("causal_where", {"Q"}),
        ("self_attention", {"X"}),
        ("softcap", {"Q", "V"}),
        ("temperature_tensor", {"Q", "K"}),
        ("temperature_symbol", {"Q"}),
        ("rms_norm", {"X"}),
        ("layer_norm_with_gain", {"X"}),
        ("layer_norm_with_gain", {"X", "g"}),
        ("two_pre_norm_blocks", {"X"}),
        ("output_and_logsumexp", {"Q", "K"}),
    ],
)
def test_loop_axes_give_stacked_values_and_sums_of_gradients_where_an_argument_has_none(name, looped, rng):
    v = VARIANTS[name]()
    function, cotangents = compiled(v)
    arguments = [*v.wrt, *v.data, *cotangents]
    has_loops = [x.name in looped or x in cotangents for x in arguments]
    arrays = [batched(x, rng) if lead else sample(x, rng) for x, lead in zip(arguments, has_loops, strict=True)]
    results = function(*arrays)
    items = {
        at: function(*(x[at] if lead else x for x, lead in zip(arrays, has_loops, strict=True)))
        for at in np.ndindex(LOOPS)
    }
    for k, got in enumerate(results):
        stacked = np.array([items[at][k] for at in np.ndindex(LOOPS)])
        summed = k >= len(v.outputs) and not has_loops[k - len(v.outputs)]
        want = stacked.sum(axis=0) if summed else stacked.reshape(*LOOPS, *stacked.shape[1:])
        assert relative_error(got, want) <= 1e-13


def test_loop_axes_broadcast_and_each_gradient_has_the_shape_of_its_argument(rng):
    v = VARIANTS["causal_where"]()
    function, (cotangent,) = compiled(v)
    q, k, val = batched(Q, rng, (2, 1)), batched(KT, rng, (3,)), batched(VT, rng, ())
    _, dq, dk, dv = function(q, k, val, batched(cotangent, rng, (2, 3)))
    assert (dq.shape, dk.shape, dv.shape) == (q.shape, k.shape, val.shape)
    upstream = batched(cotangent, rng, (2, 3))
    _, dq, dk, dv = function(q, k, val, upstream)
    full = function(*(np.broadcast_to(x, (2, 3, *x.shape[-2:])).copy() for x in (q, k, val)), upstream)
    assert relative_error(dq, full[1].sum(axis=1, keepdims=True)) <= 1e-13
    assert relative_error(dk, full[2].sum(axis=0)) <= 1e-13
    assert relative_error(dv, full[3].sum(axis=(0, 1))) <= 1e-13


def test_a_cotangent_without_the_loop_axes_of_its_output_is_an_error(rng):
    v = VARIANTS["layer_norm_with_gain"]()
    function, (cotangent,) = compiled(v)
    arrays = [batched(x, rng, LOOPS if x is X else ()) for x in (*v.wrt, cotangent)]
    with pytest.raises(sa.EvaluationError, match=r"cotangent G_0\[T, D\] has the loop axes \(\), .* \(2, 3\)"):
        function(*arrays)
