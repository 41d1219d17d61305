"""Linear attention, step by step, and the short convolution that stands in front of it."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy

import symattn as sa

from .entry import adapter

B, C, L, T, d, e, g, h = sa.sizes("B C L T d e g h")
scale = sympy.Symbol("scale", positive=True)
attend = sa.attention


@cache
def _linear(rule: str, grouped: bool, by_channel: bool, one_beta: bool, state: bool, scaled: bool) -> Any:
    """Heads lie side by side; where h heads of keys each have g heads of queries, those are an axis behind them."""
    heads = g * h if grouped else h
    given = {"Q": sa.tensor("Q", B, T, heads * d), "K": sa.tensor("K", B, T, h * d), "V": sa.tensor("V", B, T, h * e)}
    if state:
        given["state"] = sa.tensor("S_0", B, h, d, e)
    if "gated" in rule:
        given["decay"] = sa.tensor("decay", B, T, h * d if by_channel else h)
    if "delta" in rule:
        given["beta"] = sa.tensor("beta", B, T, 1 if one_beta else h)
    named = {name: attend.split_heads(given[name], n) for name, n in (("Q", heads), ("K", h), ("V", h))}
    named |= {name: given[name] for name in ("state", "decay", "beta") if name in given}
    if "decay" in named:
        named["decay"] = attend.split_heads(given["decay"], h) if by_channel else given["decay"].mT
    if "beta" in named:
        named["beta"] = given["beta"].mT
    if grouped:
        named = {name: x[:, :, None] for name, x in named.items() if name != "Q"} | {
            "Q": sa.split_axis(named["Q"], 1, (h, g))
        }
    found = attend.recurrence(**named, rule=rule, scale=scale if scaled else 1 / sympy.sqrt(d))
    output, last = found if not grouped else (sa.merge_axes(found.output, (1, 2)), found.state[:, :, 0])
    return sa.lambdify(list(given.values()), [attend.merge_heads(output), last])


@adapter("LinearAttention", "linear_attention")
def linear_attention(case):
    a, x = case.attributes, case.inputs
    heads, kv_heads = a["q_num_heads"], a["kv_num_heads"]
    function = _linear(
        a["update_rule"],
        grouped=heads != kv_heads,
        by_channel="decay" in x and x["decay"].shape[-1] != kv_heads,
        one_beta="beta" in x and x["beta"].shape[-1] == 1,
        state="past_state" in x,
        scaled=a["scale"] != 0,
    )
    keywords = {"h": kv_heads} | ({"scale": a["scale"]} if a["scale"] else {})
    results = function(*x.values(), **keywords, **({"g": heads // kv_heads} if heads != kv_heads else {}))
    return dict(zip(("output", "present_state"), results, strict=True))


@cache
def _convolution(k: int, bias: bool, state: bool, activated: bool) -> Any:
    """The last k entries of each channel, weighted; the state is what the next entry will need of these."""
    x, w = sa.tensor("x", B, C, L), sa.tensor("w", C, 1, k)
    given = [x, w, *([sa.tensor("b", C)] if bias else []), *([sa.tensor("s", B, C, k - 1)] if state else [])]
    before = given[-1] if state else sa.zeros(B, C, k - 1)
    whole = sa.let("X", sa.concat([before, x], -1))
    y = sum((whole[..., i : i + L] * w[..., i] for i in range(k)), sa.zeros(B, C, L))
    if bias:
        y = y + given[2][:, None]
    return sa.lambdify(given, [sa.silu(y) if activated else y, whole[..., L:]])


@adapter("CausalConvWithState", "causal_conv_with_state")
def causal_convolution(case):
    x = case.inputs
    activated = case.attributes.get("activation", "none") != "none"
    function = _convolution(x["weight"].shape[-1], "bias" in x, "past_state" in x, activated)
    return dict(zip(("output", "present_state"), function(*x.values()), strict=True))
