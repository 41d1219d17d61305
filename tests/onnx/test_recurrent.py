"""Linear attention and the short causal convolution of ONNX as loops of any number of steps, of one head each.

Batch and heads are loop axes of the generated function: a group of queries reads the keys and the state of its head.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import symattn as sa

from .cases import Case
from .test_onnx import OUT_OF_SCOPE, PASSED, TOLERANCE, every, relative_error

pytestmark = pytest.mark.skipif(find_spec("onnx") is None, reason="ONNX is not installed: pip install 'symattn[test]'")

T, d, e = sa.sizes("T d e")


@cache
def attention(by_channel: bool, gated: bool, delta: bool) -> Any:
    Q, K, V, S_0 = sa.tensor("Q", T, d), sa.tensor("K", T, d), sa.tensor("V", T, e), sa.tensor("S_0", d, e)
    decay, beta = sa.tensor("g", *((T, d) if by_channel else (T,))), sa.tensor("b", T)

    def step(S: Any, read: Any) -> Any:
        q, k, v, *more = read
        if gated:
            kept = sa.exp(more.pop(0))
            S = (kept[:, None] if by_channel else kept) * S
        S = S + sa.outer(k, more[0] * (v - k @ S) if delta else v)
        return S, q @ S

    read = [Q, K, V, *([decay] if gated else []), *([beta] if delta else [])]
    state, output = sa.scan(step, S_0, read)
    return sa.lambdify([S_0, *read], [output, state])


def heads(x: np.ndarray, count: int, group: int = 1) -> np.ndarray:
    """Heads side by side as axes in front: batch, head, and its place in a group of queries."""
    return np.moveaxis(x.reshape(*x.shape[:2], count // group, group, -1), 1, 3)


def linear_attention(case: Case) -> dict[str, Any]:
    a, x = case.attributes, case.inputs
    count, of_keys = a["q_num_heads"], a["kv_num_heads"]
    q, k, v = heads(x["query"], count, count // of_keys), heads(x["key"], of_keys), heads(x["value"], of_keys)
    state = x["past_state"][:, :, None] if "past_state" in x else np.zeros((*k.shape[:3], k.shape[-1], v.shape[-1]))
    read = [q, k, v]
    by_channel = "decay" in x and x["decay"].shape[-1] != of_keys
    if "decay" in x:
        decay = heads(x["decay"], of_keys)
        read.append(decay if by_channel else decay[..., 0])
    if "beta" in x:
        read.append(np.broadcast_to(heads(x["beta"], x["beta"].shape[-1])[..., 0], k.shape[:-1]))
    output, last = attention(by_channel, "decay" in x, "beta" in x)(state.astype(q.dtype), *read)
    scale = a["scale"] or k.shape[-1] ** -0.5
    merged = np.moveaxis(output, 3, 1).reshape(*x["query"].shape[:2], -1)
    return {"output": merged * np.asarray(scale, output.dtype), "present_state": last[:, :, 0]}


@cache
def convolution(k: int) -> Any:
    """The state is the last k entries but one; a step takes the next, and gives their weighted sum."""
    x, w, before = sa.tensor("x", T), sa.tensor("w", k), sa.tensor("s", k - 1)

    def step(s: Any, u: Any) -> Any:
        window = sa.concat([s, u[None]])
        return window[1:], sa.sum(w * window)

    state, y = sa.scan(step, before, x)
    return sa.lambdify([x, w, before], [y, state])


def causal_convolution(case: Case) -> dict[str, Any]:
    x = case.inputs
    width = x["weight"].shape[-1]
    before = x.get("past_state", np.zeros((*x["input"].shape[:2], width - 1), x["input"].dtype))
    y, state = convolution(width)(x["input"], x["weight"][:, 0], before)
    y = y + x["bias"][:, None] if "bias" in x else y
    activated = case.attributes.get("activation", "none") != "none"
    return {"output": y / (1 + np.exp(-y)) if activated else y, "present_state": state}


LOOPS = {"LinearAttention": linear_attention, "CausalConvWithState": causal_convolution}


@pytest.mark.parametrize("operator", LOOPS)
def test_every_case_has_the_expected_outputs(operator: str) -> None:
    passed = 0
    for case in every(operator):
        if case.name in OUT_OF_SCOPE:
            continue
        half = [name for name, x in case.inputs.items() if x.dtype.name in ("float16", "bfloat16")]
        given = case._replace(inputs={**case.inputs, **{name: case.inputs[name].astype(np.float32) for name in half}})
        results = LOOPS[operator](given)
        for name, want in case.outputs.items():
            assert relative_error(results[name], want) <= TOLERANCE[want.dtype.name], case.name
        passed += 1
    assert passed == PASSED[operator]
