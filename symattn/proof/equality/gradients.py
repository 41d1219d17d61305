"""Proofs of gradients: a result of ``sa.gradient`` held against the derivative of the entries of what it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.budget import Budget
from ...core.naming import fresh_name
from ...core.node import Tensor, rebuild, topological
from ...ops.leaves import constant, cotangent_op, variable
from ...ops.opaque import stop_gradient_op
from ...printing.align import tex_text
from ..definedness import conditions
from .decide import Comparison, Unreached, compare_gradient

_KEPT = ("binary", "integer", "positive")  # properties that leave the entries of a variable free to move


@dataclass(frozen=True, eq=False)
class GradientProof:
    """Why a tensor is the gradient: its entries are the derivatives, by entries, of what it belongs to."""

    gradient: Tensor
    comparison: Comparison

    @property
    def conditions(self) -> tuple[str, ...]:
        """Where the gradient is defined."""
        return conditions([self.gradient])

    def check(self) -> bool:
        """Differentiate the entries again."""
        return gradient_proof(self.gradient, Budget(float("inf"))) is not None

    def text(self) -> str:
        """One sentence, and what was used."""
        used = "; ".join(self.comparison.ring.used)
        return "The entries are the derivatives of the entries." + (f"\nUsed: {used}." if used else "")

    def latex(self) -> str:
        """The same as LaTeX."""
        return tex_text(self.text())


def gradient_proof(gradient: Tensor, budget: Budget) -> GradientProof | None:
    """A proof that a gradient is the derivative of the entries of its outputs; None where none is found.

    ``gradient`` is a result of ``sa.gradient``: it knows by what it was taken, and of which outputs under which
    cotangents. Raises OutOfBudget.
    """
    if gradient.op is not cotangent_op or any(x.op is stop_gradient_op for x in topological([gradient])):
        return None
    body, by, *pairs = gradient.inputs
    outputs, cotangents = pairs[::2], pairs[1::2]
    if body.rank != by.rank or any(o.rank != c.rank for o, c in zip(outputs, cotangents, strict=True)):
        return None  # a batch of cotangents
    try:
        comparison = _compared(body, by, outputs, cotangents, budget)
    except Unreached:
        return None
    return GradientProof(gradient, comparison) if comparison.equal else None


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
