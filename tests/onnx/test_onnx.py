"""Every node test of ONNX for the operators below, run through symattn: none is skipped in silence.

``PASSED`` says how many cases of each operator have the expected outputs, and ``OUT_OF_SCOPE`` lists all others, each
with its reason; these have to be refused, not answered wrongly. Arrays of half precision are computed in single
precision; the others keep their type.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import symattn as sa

from . import attention, basics, layers, linear  # noqa: F401  each enters its adapters
from .cases import Case, cases
from .entry import ADAPTERS

pytestmark = pytest.mark.skipif(find_spec("onnx") is None, reason="ONNX is not installed: pip install 'symattn[test]'")

PASSED = {
    "Attention": 93,
    "FlexAttention": 11,
    "LinearAttention": 14,
    "CausalConvWithState": 12,
    "RotaryEmbedding": 8,
    "LayerNormalization": 19,
    "RMSNormalization": 19,
    "SoftmaxCrossEntropyLoss": 34,
    "Softmax": 7,
    "LogSoftmax": 7,
    "ReduceLogSumExp": 8,
    "ReduceMax": 9,
    "ReduceMean": 8,
    "ReduceMin": 9,
    "ReduceSum": 10,
    "CumSum": 9,
    "Einsum": 9,
    "MatMul": 7,
    "Gemm": 11,
    "Trilu": 16,
    "Transpose": 7,
    "Concat": 12,
    "Gather": 3,
    "Where": 2,
    "Gelu": 4,
    "Swish": 1,
    "SwiGLU": 3,
    "Elu": 3,
    "Mish": 1,
    "Softplus": 2,
    "Softsign": 2,
    "Sigmoid": 2,
    "Tanh": 2,
    "Relu": 1,
    "Erf": 1,
    "Exp": 2,
    "Log": 2,
    "Sqrt": 2,
    "Reciprocal": 2,
    "Sin": 2,
    "Cos": 2,
    "Abs": 1,
    "Sign": 1,
    "Floor": 2,
}
NO_ENTRIES = "an axis has size 0, and sizes are positive"
OUT_OF_SCOPE = {
    "test_causal_conv_with_state_kernel_size_one": f"the state has no entries: {NO_ENTRIES}",
    "test_reduce_log_sum_exp_empty_set": NO_ENTRIES,
    "test_reduce_max_empty_set": NO_ENTRIES,
    "test_reduce_max_empty_set_bool": NO_ENTRIES,
    "test_reduce_min_empty_set": NO_ENTRIES,
    "test_reduce_sum_empty_set": NO_ENTRIES,
    "test_reduce_sum_empty_set_non_reduced_axis_zero": NO_ENTRIES,
    "test_triu_zero": NO_ENTRIES,
    "test_tril_zero": NO_ENTRIES,
    "test_gather_negative_indices": "an index below 0 is an error here, and does not count from the end",
}
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 1e-2}  # of the largest entry
WIDER = {"test_logsoftmax_large_number": 1e-4}  # scores of 10000, less their logsumexp, in single precision


def every(operator: str) -> list[Case]:
    return cases(operator, ADAPTERS[operator].module)


def run(operator: str, case: Case):
    half = [name for name, x in case.inputs.items() if x.dtype.name in ("float16", "bfloat16")]
    single = {name: case.inputs[name].astype(np.float32) for name in half}
    return ADAPTERS[operator].run(case._replace(inputs={**case.inputs, **single}))


def relative_error(got, want) -> float:
    """The largest difference over the largest expected entry; infinite entries have to be the same."""
    assert np.shape(got) == want.shape
    assert want.dtype.name in ("float16", "bfloat16") or want.dtype.kind != "f" or got.dtype == want.dtype
    got, want = np.asarray(got, np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    return np.abs(got[finite] - want[finite]).max(initial=0) / max(np.abs(want[finite]).max(initial=0), 1e-30)


@pytest.mark.parametrize("operator", ADAPTERS)
def test_every_case_has_the_expected_outputs(operator):
    passed = 0
    for case in every(operator):
        if case.name not in OUT_OF_SCOPE:
            try:
                results = run(operator, case)
                for name, want in case.outputs.items():
                    tolerance = WIDER.get(case.name, TOLERANCE.get(want.dtype.name, 0))
                    assert relative_error(results[name], want) <= tolerance
            except Exception as problem:
                problem.add_note(case.name)
                raise
            passed += 1
    assert passed == PASSED[operator]


def test_what_is_out_of_scope_is_refused():
    refused = set()
    for operator in ADAPTERS:
        for case in every(operator):
            if case.name in OUT_OF_SCOPE:
                with pytest.raises(sa.SymattnError):
                    run(operator, case)
                refused.add(case.name)
    assert refused == OUT_OF_SCOPE.keys()


def test_the_table_has_every_operator():
    assert PASSED.keys() == ADAPTERS.keys()


def test_keys_that_a_short_mask_does_not_tell_of_are_masked(rng):
    """No case has such a mask without lengths, which mask as much."""
    shapes = {"Q": (2, 3, 4, 5), "K": (2, 3, 7, 5), "V": (2, 3, 7, 6), "attn_mask": (4, 5)}
    given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    short = Case("short", {"is_causal": 0}, given, {})
    padded = np.pad(given["attn_mask"], [(0, 0), (0, 2)], constant_values=-np.inf)
    whole = short._replace(inputs={**given, "attn_mask": padded})
    np.testing.assert_allclose(run("Attention", short)["Y"], run("Attention", whole)["Y"], rtol=1e-12)
