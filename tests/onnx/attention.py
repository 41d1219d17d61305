"""Attention: one expression with symbolic sizes for each combination of inputs and attributes, compiled once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from operator import and_
from typing import Any, NamedTuple

import sympy

import symattn as sa

from .cases import Case
from .entry import adapter

# p cached keys stand before the S new ones; a mask that ends before the keys do tells of r.
B, g, h, T, S, d, e, p, r = sa.sizes("B g h T S d e p r")
scale, cap = sympy.Symbol("scale", real=True), sympy.Symbol("cap", positive=True)
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
attend = sa.attention


class Features(NamedTuple):
    """What an expression depends on, besides sizes and values.

    ``packed`` has the heads of a token side by side, in three axes. ``mask`` says which axes of the mask have size 1;
    ``binary`` that it is a mask and no bias, ``short`` that it ends before the keys do. ``lengths`` are those of each
    sequence, in a cache of its full size. ``exposed`` is which scores are the fourth output.
    """

    packed: bool = False
    grouped: bool = False
    scaled: bool = False
    capped: bool = False
    causal: bool = False
    window: tuple[int | None, int | None] = (None, None)
    mask: tuple[bool, ...] | None = None
    binary: bool = False
    short: bool = False
    past: bool = False
    lengths: bool = False
    exposed: int | None = None

    @property
    def heads(self) -> sympy.Expr:
        """How many heads the queries have."""
        return g * h if self.grouped else h

    @property
    def keys(self) -> sympy.Expr:
        """How many keys there are in all."""
        return p + S if self.past else S


def inputs(f: Features) -> dict[str, sa.Tensor]:
    """The arguments by name."""
    shapes: dict[str, tuple[Any, ...]] = {"Q": (B, f.heads, T, d), "K": (B, h, S, d), "V": (B, h, S, e)}
    if f.packed:
        shapes = {name: (B, tokens, heads * width) for name, (_, heads, tokens, width) in shapes.items()}
    if f.mask is not None:
        whole = (B, f.heads, T, r if f.short else f.keys)[4 - len(f.mask) :]
        shapes["attn_mask"] = tuple(1 if one else n for n, one in zip(whole, f.mask, strict=True))
    if f.past:
        shapes |= {"past_key": (B, h, p, d), "past_value": (B, h, p, e)}
    named = {name: sa.tensor(name, *shape, binary=name == "attn_mask" and f.binary) for name, shape in shapes.items()}
    return named | ({"nonpad_kv_seqlen": sa.tensor("n", B, integer=True)} if f.lengths else {})


def masks(f: Features, given: Mapping[str, sa.Tensor]) -> tuple[sa.Tensor | None, sa.Tensor | None]:
    """What is left to attend to, and the bias of the scores; None is everything, and no bias."""
    n, told = given.get("nonpad_kv_seqlen"), given.get("attn_mask")
    offset = p if f.past else None if n is None else n[:, None] - T
    left, right = f.window
    every = []
    if f.causal:
        every.append(attend.causal_mask(T, f.keys, offset=offset))
    if f.window != (None, None):
        every.append(attend.sliding_window_mask(T, f.keys, left=left, right=right, offset=offset))
    if n is not None:
        every.append(attend.key_padding_mask(f.keys, n[:, None]))
    if f.short and told is not None:
        told = sa.concat([told, sa.zeros(*told.shape[:-1], f.keys - r)], -1)
        every.append(attend.key_padding_mask(f.keys, r))
    if f.binary and told is not None:
        every.append(told)
        told = None
    return reduce(and_, every) if every else None, told


def outputs(f: Features, given: Mapping[str, sa.Tensor]) -> dict[str, sa.Tensor]:
    """The operator Attention of version 25, from its named arguments."""
    heads = {"Q": f.heads, "K": h, "V": h}
    q, k, v = (attend.split_heads(given[x], n) if f.packed else given[x] for x, n in heads.items())
    found = {}
    if f.past:
        k, v = sa.concat([given["past_key"], k], -2), sa.concat([given["past_value"], v], -2)
        found |= {"present_key": k, "present_value": v}
    keep, bias = masks(f, given)
    function = attend.grouped_query if f.grouped else attend.scaled_dot_product
    o = function(q, k, v, scale=scale if f.scaled else None, softcap=cap if f.capped else None, bias=bias, mask=keep)
    if f.exposed is not None:
        found["qk_matmul_output"] = exposed(f.exposed, {x.name: x for x in o.intermediates}, bias, keep)
    return {"Y": attend.merge_heads(o) if f.packed else o, **found}


def exposed(mode: int, named: Mapping[str, sa.Tensor], bias: sa.Tensor | None, keep: sa.Tensor | None) -> sa.Tensor:
    """Scores (0), capped (1), with bias and -oo where nothing is attended to (2), or probabilities (3)."""
    z = named["Z"] if mode == 0 else named.get("Z_cap", named["Z"])
    if mode < 2:
        return z
    biased = z if bias is None else z + bias
    return named["P"] if mode == 3 else biased if keep is None else sa.where(keep, biased, -sympy.oo)


@cache
def compiled(f: Features) -> Any:
    """The compiled function, and the names of its arguments and of its outputs."""
    arguments = inputs(f)
    results = outputs(f, arguments)
    return sa.lambdify(list(arguments.values()), list(results.values())), list(results)


def features(case: Case) -> Features:
    """The features of a node."""
    given, a = case.inputs, case.attributes
    packed, mask, past = given["Q"].ndim == 3, given.get("attn_mask"), given.get("past_key")
    axis = 1 if packed else 2
    heads = (a["q_num_heads"], a["kv_num_heads"]) if packed else (given["Q"].shape[1], given["K"].shape[1])
    keys = given["K"].shape[axis] + (0 if past is None else past.shape[2])
    left, right = (a.get(name, -1) for name in ("left_window_size", "right_window_size"))
    return Features(
        packed=packed,
        grouped=heads[0] != heads[1],
        scaled="scale" in a,
        capped=a.get("softcap", 0) != 0,
        causal=bool(a["is_causal"]),
        window=(None if left < 0 else left, None if right < 0 else right),
        mask=None if mask is None else tuple(n == 1 for n in mask.shape),
        binary=mask is not None and mask.dtype == bool,
        short=mask is not None and mask.shape[-1] < keys,
        past=past is not None,
        lengths="nonpad_kv_seqlen" in given,
        exposed=a.get("qk_matmul_output_mode", 0) if "qk_matmul_output" in case.outputs else None,
    )


@adapter("Attention", "attention")
def attention(case):
    """The softmax is computed in the type of the arrays, whatever ``softmax_precision`` is."""
    f, a = features(case), case.attributes
    function, names = compiled(f)
    keywords = {"scale": a.get("scale"), "cap": a.get("softcap") if f.capped else None}
    if f.packed:
        keywords |= {"h": a["kv_num_heads"], "g": a["q_num_heads"] // a["kv_num_heads"] if f.grouped else None}
    arrays = [case.inputs[name] for name in INPUTS if name in case.inputs]
    return dict(zip(names, function(*arrays, **{k: x for k, x in keywords.items() if x is not None}), strict=True))


# --- scores and probabilities changed by a graph of their own ---

c = sympy.Symbol("c", positive=True)
CHANGES = {  # by the name of the graph, which has one number at most
    "score_mod_bias": lambda z: z + c,
    "score_mod_soft_cap": lambda z: attend.capped(z, c),
    "score_mod_causal_mask": lambda z: z + attend.as_bias(attend.causal_mask(T, S)),
    "score_mod_relative_positional": lambda z: z + sa.from_index((T, S), lambda i, j: i - j),
    "prob_mod_scale": lambda weights: c * weights,
}


@cache
def flexible(grouped: bool, scaled: bool, of_scores: str | None, of_weights: str | None) -> Any:
    """The compiled operator, with the changes that are named."""
    q, k, v = sa.tensor("Q", B, g * h if grouped else h, T, d), sa.tensor("K", B, h, S, d), sa.tensor("V", B, h, S, e)
    shared = [sa.repeat(x, g, 1) if grouped else x for x in (k, v)]
    z = attend.scores(q, shared[0], scale=scale if scaled else None)
    weights = attend.probabilities(CHANGES[of_scores](z) if of_scores else z)
    return sa.lambdify(
        [q, k, v], attend.attention_pooling(CHANGES[of_weights](weights) if of_weights else weights, shared[1])
    )


@adapter("FlexAttention", "flexattention")
def flex_attention(case):
    (q, k, v), a = (case.inputs[name] for name in "QKV"), case.attributes
    graphs = [a.get(name) for name in ("score_mod", "prob_mod")]
    function = flexible(q.shape[1] != k.shape[1], "scale" in a, *(graph and graph.name for graph in graphs))
    numbers = [graph.numbers[0] for graph in graphs if graph and len(graph.numbers) == 1]
    keywords = {"c": numbers[0]} if numbers else {}
    return {"Y": function(q, k, v, **keywords, **({"scale": a["scale"]} if "scale" in a else {}))}
