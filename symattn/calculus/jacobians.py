"""Jacobians, Hessians and their products: the passes of ``calculus`` on one-hot cotangents and along tangents."""

from __future__ import annotations

from typing import Any

import sympy

from ..core.exact import INDICES
from ..core.node import Tensor, with_inputs
from ..core.sizes import Shape, show_shape
from ..errors import OperandError, ShapeError
from ..ops.leaves import as_tensor, by_derivative, computed, constant, cotangent_op, from_index_op, is_named, let_op
from .gradient import gradient, jvp
from .tidying import tidy


def jacobian(y: Any, x: Any) -> Any:
    """All first derivatives: ``J[output axes, input axes]``, in closed form.

    For a list of variables, a mapping from each to its Jacobian. Intermediates that rules speak of keep their names
    (an unnamed softmax is P). Raises what ``gradient`` raises, and ShapeError for an output of more than 4 axes.

    >>> import symattn as sa
    >>> z = sa.tensor("z", "n")
    >>> p = sa.let("p", sa.softmax(z))
    >>> print(sa.jacobian(p, z))
    diag(p) - outer(p, p)
    """
    output = as_tensor(y)
    found = gradient({output: one_hot(output.shape)}, x)
    closed = {v: _closed(g) for v, g in found.items()}
    return closed if isinstance(x, (list, tuple)) else next(iter(closed.values()))


def hessian(loss: Any, x: Any) -> Any:
    """All second derivatives of a rank-0 tensor: ``H[axes of x, axes of x]``, in closed form.

    For a list of variables, a mapping from each pair to its block. Raises ShapeError if the loss has axes.

    >>> import symattn as sa
    >>> z = sa.tensor("z", "n")
    >>> print(sa.hessian(sa.logsumexp(z), z))
    diag(P) - outer(P, P)
    # where P = softmax(z)
    """
    slopes = {v: _closed(g) for v, g in gradient(_loss(loss), x).items()}
    if not isinstance(x, (list, tuple)):
        return jacobian(next(iter(slopes.values())), x)
    return {(v, w): jacobian(g, w) for v, g in slopes.items() for w in slopes}


def hvp(loss: Any, x: Any, v: Any) -> Tensor:
    """The Hessian of a rank-0 tensor times a tensor of the shape of x: the tangent of the gradient along v.

    Its cost is a few times that of the gradient, without a Hessian. Raises ShapeError for shapes that do not fit.

    >>> import symattn as sa
    >>> z, v = sa.tensor("z", "n"), sa.tensor("v", "n")
    >>> print(sa.hvp(sa.sum(z**3), z, v))
    6 * z * v
    """
    if not isinstance(x, (Tensor, sympy.Symbol, sympy.MatrixSymbol)):
        raise OperandError("hvp takes one variable and one direction; take it by each variable apart")
    return jvp(gradient(_loss(loss), x)[x], {x: v})


def _loss(loss: Any) -> Tensor:
    y = as_tensor(loss)
    if y.rank:
        raise ShapeError(f"second derivatives are taken of a rank-0 tensor, not of {y.brief()}: sum it first")
    return y


def one_hot(shape: Shape) -> Tensor:
    """The identity on tensors of a shape: 1 where the first half of the indices equals the second half."""
    rank = len(shape)
    if not rank:
        return constant(formula=sympy.S.One)
    if 2 * rank > len(INDICES):
        raise ShapeError(f"the Jacobian of a tensor {show_shape(shape)} has too many axes: an output has at most 4")
    delta = sympy.Mul(*(sympy.KroneckerDelta(INDICES[k], INDICES[rank + k]) for k in range(rank)))
    return from_index_op(formula=delta, shape=shape + shape)


def _closed(g: Tensor) -> Tensor:
    """The gradient without the names of its cotangents, tidied: those of the forward pass stay."""
    bare: dict[Tensor, Tensor] = {}
    kept: dict[Tensor, Tensor] = {}  # what stands inside of a name
    for node in computed([g]):
        kept[node] = node if node.op is cotangent_op else with_inputs(node, kept, **by_derivative(node))
        if node.op is cotangent_op:
            bare[node] = bare[node.inputs[0]]
        else:
            bare[node] = kept[node] if node.op is let_op else with_inputs(node, bare)
    fixed = {node: node for node in computed([bare[g]]) if is_named(node)}
    return tidy(bare[g], fixed)
