"""Every variant: generated code against entries and finite differences, loop axes, and how it prints."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import symattn as sa
from symattn.codegen.check import check_function
from symattn.core.node import topological

from ..shares import one_in
from .golden import GOLDEN, document
from .zoo import SIZES, ZOO, Variant, arrays


def compiled(v: Variant):
    """The function of arguments, data and the cotangent that gives the output and every gradient; and the cotangent."""
    G = sa.tensor("G", *v.output.shape)
    g = sa.gradient({v.output: G}, v.wrt)
    function = sa.lambdify([*v.wrt, *v.data, G], [v.output, g])
    return partial(function, **{size.name: SIZES[size] for size in v.keywords}), function, G


@pytest.mark.parametrize(("name", "seed"), one_in(9, [(name, seed) for name in ZOO for seed in (0, 1)]))
def test_code_equals_entries_and_finite_differences(name, seed):
    _, function, _ = compiled(ZOO[name]())
    assert "error" in check_function(function, [seed])


@pytest.mark.parametrize("name", ZOO)
def test_leading_axes_are_loop_axes(name, rng):
    v = ZOO[name]()
    call, _, G = compiled(v)
    cotangent = [rng.normal(size=[int(size.subs(SIZES)) for size in G.shape])]
    both = [arrays(v, rng) + cotangent for _ in range(2)]
    stacked = call(*(np.stack(pair) for pair in zip(*both, strict=True)))
    singles = [call(*given) for given in both]
    for k, single in enumerate(singles):
        for got, want in zip(stacked, single, strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-12, atol=1e-13)
    for got, want in zip(call(*both[0]), singles[0], strict=True):  # in the form for small arrays, and before that
        np.testing.assert_array_equal(got, want, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_its_source_tests_its_own_gradients(name, capsys):
    _, function, _ = compiled(v := ZOO[name]())
    exec(compile(function.source, name, "exec"), {"__name__": "__main__"})
    stops = any(x.op.name == "stop_gradient" for x in topological([v.output]))
    assert capsys.readouterr().out.count(" agrees with ") == (0 if stops else len(v.wrt))


@pytest.mark.parametrize("name", ZOO)
def test_prints_as_its_golden_file(name):
    assert document(name) == (GOLDEN / f"{name}.tex").read_text()


def test_every_golden_file_belongs_to_a_variant():
    assert {path.stem for path in GOLDEN.glob("*.tex")} == set(ZOO)


PARTS = {  # of variants, and tested with them
    "capped", "decay_matrix", "differential_lambda", "elu_plus_one", "gelu_tanh", "gpt_parameters", "lambda_init",
    "merge_heads", "normalised", "one_hot", "parameter_count", "performer_features", "probabilities", "project",
    "rotate", "scores", "split_heads", "t5_bias", "t5_bucket", "taylor_features", "weights", "yarn_frequencies",
    "yarn_scale",
}  # fmt: skip
NO_SOURCE = {"fused_projection", "log_softmax", "one_hot", "parameter_count"}  # nobody's invention


def test_every_public_function_is_a_variant_or_a_part_of_some():
    covered = {name for name in sa.attention.__all__ if any(f"{entry}_".startswith(f"{name}_") for entry in ZOO)}
    assert set(sa.attention.__all__) == covered | PARTS
    assert not covered & PARTS


@pytest.mark.parametrize("name", sa.attention.__all__)
def test_every_public_function_says_what_it_is_its_source_and_an_example(name):
    text = getattr(sa.attention, name).__doc__
    assert ">>> " in text
    assert "Source: " in text or name in NO_SOURCE
