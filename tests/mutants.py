"""Mutants of true claims: one node of one side is changed, and the shapes still fit. Most of them are false.

A mutation takes a node and what stands around it and gives a tensor of the same shape for its place, or None where it
does not apply. ``MUTATIONS`` lists them by the mistake that they stand for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

import symattn as sa
from symattn.core.exact import INDICES
from symattn.core.node import rebuild, topological
from symattn.core.sizes import same_shape
from symattn.errors import SymattnError
from symattn.ops.arithmetic import sum_of
from symattn.ops.broadcasting import broadcast_to
from symattn.ops.contraction import einsum_op
from symattn.ops.index import index
from symattn.ops.layout import transpose

from .claims_corpus import Case

Around = Sequence[sa.Tensor]  # the nodes of the claim, inputs before users
Mutation = Callable[[sa.Tensor, Around, random.Random], "sa.Tensor | None"]


@dataclass(frozen=True)
class Mutant:
    """A claim with one node changed: of which true claim, by which mutation, and the two sides."""

    origin: str
    mutation: str
    left: sa.Tensor
    right: sa.Tensor
    case: Case


# --- what is changed ---


MUTATIONS: dict[str, tuple[tuple[str, ...], Mutation]] = {}  # the operations that a mutation is for, none: any


def mutation(*names: str) -> Callable[[Mutation], Mutation]:
    """Puts a mutation of these operations, or of any, into the table."""

    def wrap(change: Mutation) -> Mutation:
        MUTATIONS[change.__name__] = names, change
        return change

    return wrap


@mutation("transpose", "inv", "exp", "relu", "tanh", "sigmoid", "gelu", "sqrt", "rsqrt", "log", "tril", "triu", "diag")
def drop_operation(x, around, rng):
    return x.inputs[0]


@mutation("tensor")
def transpose_variable(x, around, rng):
    return x.mT if x.rank >= 2 else None


@mutation("transpose")
def other_transpose(x, around, rng):
    order = list(x.params["order"])
    rng.shuffle(order)
    return transpose(x.inputs[0], tuple(order))


@mutation("matmul", "multiply", "outer")
def drop_factor(x, around, rng):
    return broadcast_to(rng.choice(x.inputs), x.shape)


@mutation("matmul", "divide", "outer", "power")
def swap_factors(x, around, rng):
    return x.inputs[1] @ x.inputs[0] if x.op.name == "matmul" else x.op(*x.inputs[::-1])


@mutation("add")
def drop_term(x, around, rng):
    return broadcast_to(rng.choice(x.inputs), x.shape)


@mutation("add")
def subtract_term(x, around, rng):
    return x.inputs[0] - x.inputs[1]


@mutation()
def scale(x, around, rng):
    return 2 * x if x.kind == "real" else None


@mutation()
def negate(x, around, rng):
    return -x if x.kind == "real" else None


@mutation("inv")
def transpose_for_inverse(x, around, rng):
    return x.inputs[0].mT


@mutation("tensor")
def another_variable(x, around, rng):
    return _choice(rng, (y for y in around if y.op is x.op and y is not x and same_shape(y.shape, x.shape)))


@mutation()
def another_node(x, around, rng):
    """A node of the same shape that stands before it."""
    before = around[: around.index(x)]
    return _choice(rng, (y for y in before if y.kind == x.kind and same_shape(y.shape, x.shape)))


@mutation("softmax")
def softmax_of_columns(x, around, rng):
    return sa.softmax(x.inputs[0], axis=-2, where=x.inputs[1] if len(x.inputs) > 1 else None)


@mutation("softmax")
def drop_mask(x, around, rng):
    return x.op(x.inputs[0], **x.params) if len(x.inputs) > 1 else None


@mutation("softmax")
def exp_for_softmax(x, around, rng):
    return sa.exp(x.inputs[0]) if len(x.inputs) == 1 else None


@mutation("sum", "mean", "max", "logsumexp")
def other_axis(x, around, rng):
    return getattr(sa, x.op.name)(x.inputs[0], axis=-2, keepdims=x.params["keepdims"])


@mutation("sum", "mean", "max", "logsumexp")
def other_reduction(x, around, rng):
    make = rng.choice([f for f in (sa.sum, sa.mean, sa.max, sa.min, sa.logsumexp) if f.__name__ != x.op.name])
    return make(x.inputs[0], axis=x.params["axes"], keepdims=x.params["keepdims"])


_RELATIONS: Mapping[Any, Any] = {sympy.Le: sympy.Lt, sympy.Lt: sympy.Le, sympy.Ge: sympy.Gt, sympy.Gt: sympy.Ge}


def _changed_formula(x, change):
    own = INDICES[: x.rank]
    changed = change(x.params["formula"], own)
    return sa.from_index(x.shape, lambda *at: changed.xreplace(dict(zip(own, at, strict=True))))


@mutation("from_index")
def stricter_relation(x, around, rng):
    return _changed_formula(x, lambda e, at: e.replace(lambda r: type(r) in _RELATIONS, lambda r: _other(r)))


def _other(relation):
    return _RELATIONS[type(relation)](*relation.args)


@mutation("from_index")
def transposed_formula(x, around, rng):
    return _changed_formula(x, lambda e, at: e.xreplace(dict(zip(at[-2:], at[:-3:-1], strict=True))))


@mutation("from_index")
def moved_formula(x, around, rng):
    return _changed_formula(x, lambda e, at: e.xreplace({at[-1]: at[-1] + 1}))


@mutation("constant")
def other_constant(x, around, rng):
    value = x.params["formula"]
    return x + 1 if value.is_number else x * rng.choice([value, 1 / value])


@mutation("einsum")
def other_output(x, around, rng):
    labels, out = x.params["spec"]
    return einsum_op(*x.inputs, spec=(labels, "".join(rng.sample(out, len(out)))))


@mutation("einsum")
def other_labels(x, around, rng):
    labels, out = x.params["spec"]
    k = rng.randrange(len(labels))
    mixed = "".join(rng.sample(labels[k], len(labels[k])))
    return einsum_op(*x.inputs, spec=((*labels[:k], mixed, *labels[k + 1 :]), out))


@mutation("split_axis")
def split_the_other_way(x, around, rng):
    axis, into = x.params["axis"], x.params["into"]
    return sa.moveaxis(sa.split_axis(x.inputs[0], axis, into[::-1]), axis - 1, axis)


@mutation("merge_axes")
def merge_the_other_way(x, around, rng):
    axis = x.params["axis"]
    return sa.merge_axes(sa.moveaxis(x.inputs[0], axis - 1, axis), (axis - 1, axis))


@mutation("index")
def move_index(x, around, rng):
    items = list(x.params["items"])
    n = rng.randrange(len(items))
    if items[n][0] == "new":
        return None
    items[n] = (items[n][0], items[n][1] + rng.choice([1, -1]), *items[n][2:])
    return index(x.inputs[0], tuple(items))


@mutation("concat")
def swap_parts(x, around, rng):
    return sa.concat(x.inputs[::-1], axis=x.params["axis"])


@mutation("repeat", "tile")
def tile_for_repeat(x, around, rng):
    make = sa.tile if x.op.name == "repeat" else sa.repeat
    return make(x.inputs[0], x.params["times"], x.params["axis"])


@mutation()
def flip(x, around, rng):
    return sa.flip(x, rng.randrange(-x.rank, 0)) if x.rank and x.kind == "real" else None


@mutation()
def shift(x, around, rng):
    return sa.shift(x, rng.choice([1, -1]), axis=rng.randrange(-x.rank, 0)) if x.rank and x.kind == "real" else None


@mutation("cumsum")
def other_direction(x, around, rng):
    return sa.cumsum(x.inputs[0], axis=x.params["axis"], reverse=not x.params["reverse"])


@mutation("tril", "triu")
def other_triangle(x, around, rng):
    return rng.choice([sa.tril, sa.triu])(x.inputs[0], x.params["k"] + rng.choice([0, 1, -1]))


@mutation("where")
def swap_choice(x, around, rng):
    return sa.where(x.inputs[0], x.inputs[2], x.inputs[1])


@mutation("unknown")
def other_function(x, around, rng):
    return sa.unknown("psi", x.inputs[0], rowwise=x.params["rowwise"])


@mutation()
def repeat_term(x, around, rng):
    return sum_of([x, x]) if x.kind == "real" else None


def _choice(rng: random.Random, options: Iterator[sa.Tensor]) -> sa.Tensor | None:
    listed = list(options)
    return rng.choice(listed) if listed else None


# --- mutants of a claim ---


def mutants(case: Case, count: int, rng: random.Random) -> list[Mutant]:
    """Up to ``count`` different mutants of a claim, of as many kinds as there are."""
    around = topological([case.left, case.right])
    found: dict[tuple[sa.Tensor, sa.Tensor], Mutant] = {}
    for _ in range(20 * count):
        sides = [case.left, case.right]
        side = rng.randrange(2)
        name, sides[side] = mutated(sides[side], around, rng)
        if name and sides[0] is not sides[1]:
            found.setdefault((sides[0], sides[1]), Mutant(case.name, name, sides[0], sides[1], case))
        if len(found) == count:
            break
    return list(found.values())


def mutated(x: sa.Tensor, around: Around, rng: random.Random) -> tuple[str, sa.Tensor]:
    """The tensor with one node changed, and by which mutation: "" and itself where that did not apply or fit."""
    nodes = topological([x])
    met = {node.op.name for node in nodes}
    name = rng.choice([name for name, (ops, _) in MUTATIONS.items() if not ops or met.intersection(ops)])
    ops, change = MUTATIONS[name]
    node = rng.choice([node for node in nodes if not ops or node.op.name in ops])
    try:
        new = change(node, around, rng)
        if new is None or new is node or not same_shape(new.shape, node.shape):
            return "", x
        changed = rebuild([x], {node: new})[0]
    except SymattnError:
        return "", x
    return (name, changed) if changed is not x and same_shape(changed.shape, x.shape) else ("", x)


__all__ = ["MUTATIONS", "Mutant", "mutants", "mutated"]
