"""Proofs of gradients: a result of ``sa.gradient`` held against the derivative of the entries of what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.budget import Budget
from ...core.naming import fresh_name
from ...core.node import Tensor, rebuild, topological
from ...normal_form.lowering import Unreached
from ...ops.leaves import constant, cotangent_op, variable
from ...ops.opaque import stop_gradient_op
from .decide import Comparison, compare_gradient

_KEPT = ("binary", "integer", "positive")  # properties that leave the entries of a variable free to move


def is_proved(gradient: Tensor, budget: Budget) -> bool:
    """Whether a gradient is seen to be the derivative of the entries of its outputs.

    ``gradient`` is a result of ``sa.gradient``: it knows by what it was taken, and of which outputs under which
    cotangents. Raises OutOfBudget.
    """
    if gradient.op is not cotangent_op or any(x.op is stop_gradient_op for x in topological([gradient])):
        return False
    body, by, *pairs = gradient.inputs
    outputs, cotangents = pairs[::2], pairs[1::2]
    if body.rank != by.rank or any(o.rank != c.rank for o, c in zip(outputs, cotangents, strict=True)):
        return False  # a batch of cotangents
    try:
        return _compared(body, by, outputs, cotangents, budget).equal
    except Unreached:
        return False


def _compared(
    body: Tensor, by: Tensor, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], budget: Budget
) -> Comparison:
    """The gradient and the derivative as polynomials of entries, with the variable free to move."""
    if by.op is constant:
        symbol = by.params["formula"]
        return compare_gradient(body, symbol, outputs, cotangents, budget)
    free = by
    if by.op is not variable:  # a named intermediate is a variable of its own here
        taken = {str(x.name) for x in topological([body, *outputs, *cotangents]) if x.name}
        free = variable(name=fresh_name(str(by.name), taken), shape=by.shape, hypotheses=())
    elif set(by.params["hypotheses"]) - set(_KEPT):
        kept = tuple(h for h in by.params["hypotheses"] if h in _KEPT)
        free = variable(name=by.params["name"], shape=by.shape, hypotheses=kept)
    roots = [body, *outputs, *cotangents]
    if free is not by:
        roots = rebuild(roots, {by: free})
    count = len(outputs)
    return compare_gradient(roots[0], free, roots[1 : 1 + count], roots[1 + count :], budget)
