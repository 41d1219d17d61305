"""Gradients and tangents, in the names that the writer of a graph used.

No formula stands here: the passes walk a graph, ask each record for its rule, and name what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from ..core.naming import marked, new_name
from ..core.node import Tensor, topological
from ..core.sizes import same_shape, show_shape
from ..errors import NoRuleError, OperandError, ShapeError, described
from ..ops.arithmetic import multiply, split_scalar, sum_of
from ..ops.leaves import as_tensor, is_fixed, is_named, is_zero, let_op, named, zeros
from .forward import Forward, Variable, partial, scalars_of
from .result import Gradient
from .reverse import Reverse
from .tidying import tidy


def gradient(outputs: Any, wrt: Any) -> Gradient:
    """Vector-Jacobian products in closed form, with the steps.

    ``g = gradient(O, [Q, K, V])`` is a mapping from variables to tensors of their shapes, for the cotangent tensor
    ``g.cotangent`` (``dO``; 1 for a rank-0 output): ``g[x] = sum over entries of dO * (derivative of O by x)``.
    ``gradient({O: dO, L: dL}, ...)`` takes several outputs with given cotangents, whose extra leading axes are a
    batch. ``wrt`` holds tensors, scalar symbols and intermediates. Raises NoRuleError where a derivative is not
    known, ShapeError for a cotangent of the wrong shape, OperandError for what cannot be differentiated by.

    >>> import sympy, symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> print(sa.gradient(sa.softmax(Q @ K.T / sympy.sqrt(sa.sizes("d"))) @ V, [Q, K, V]))
    dV = P.T @ dO                   # matrix product rule
    dP = dO @ V.T                   # matrix product rule
    dZ = P * (dP - rowsum(P * dP))  # softmax, row by row
    dQ = dZ @ K / sqrt(d)           # matrix product rule
    dK = dZ.T @ Q / sqrt(d)         # matrix product rule
    Z = Q @ K.T / sqrt(d)           # where
    P = softmax(Z)                  # where
    """
    given = _outputs(outputs)
    variables = _variables(wrt, "gradient")
    _check_present(variables, list(given))
    beside = [c for c in given.values() if c is not None]
    forward = Forward([*given, *(v for v in variables if isinstance(v, Tensor))], variables, beside, by="gradient")
    return Reverse(forward, given, variables).run()


def _outputs(outputs: Any) -> dict[Tensor, Tensor | None]:
    if not isinstance(outputs, (Tensor, Mapping)):
        found = described(outputs)
        raise OperandError(f"gradient differentiates a tensor, or several as {{O: dO, L: dL}}, not {found}")
    pairs = dict(outputs) if isinstance(outputs, Mapping) else {outputs: None}
    given: dict[Tensor, Tensor | None] = {}
    for y, cotangent in pairs.items():
        if not isinstance(y, Tensor):
            raise OperandError(f"gradient differentiates tensors, not {described(y)}")
        given[y] = None if cotangent is None else as_tensor(cotangent)
    if not given:
        raise OperandError("gradient was given no output")
    return given


def _variables(wrt: Any, what: str) -> list[Variable]:
    listed = list(wrt) if isinstance(wrt, (list, tuple, set, Mapping)) else [wrt]
    variables: list[Variable] = []
    for v in listed:
        v = as_tensor(v) if isinstance(v, sympy.MatrixSymbol) else v
        if isinstance(v, sympy.Symbol):
            if v.is_integer:
                raise OperandError(f"{v} is an integer symbol: a {what} is taken by tensors and real scalars")
        elif not isinstance(v, Tensor):
            raise OperandError(f"a {what} is taken by tensors and scalar symbols, not {described(v)}")
        elif is_fixed(v):
            raise OperandError(f"{v.brief()} is constant: no {what} is taken by it")
        elif v.inputs and not is_named(v):
            raise OperandError(
                f"a {what} by the intermediate {v.brief()} is not defined, since it has no name and may be written "
                "in another form: name it by sa.let and build the output from that"
            )
        variables.append(v)
    if not variables:
        raise OperandError(f"{what} was given no variable to differentiate by")
    return list(dict.fromkeys(variables))


def _check_present(variables: Sequence[Variable], outputs: Sequence[Tensor]) -> None:
    """An absent tensor has derivative zero; an absent intermediate is a mistake."""
    below = set(topological(outputs))
    for v in variables:
        if isinstance(v, Tensor) and v.inputs and v not in below:
            shown = ", ".join(y.brief() for y in outputs)
            raise OperandError(f"the intermediate {v.brief()} is not part of {shown}: build the output from it")


def jvp(output: Any, tangents: Mapping[Any, Any]) -> Tensor:
    """The Jacobian-vector product: how the output moves when its variables move along the given tangents.

    ``jvp(O, {Q: dQ})`` is ``sum over Q's entries of (derivative of O) * dQ``, a tensor of O's shape; named
    intermediates carry named tangents (``Zdot``). Raises ShapeError for a tangent of the wrong shape and NoRuleError
    where a derivative is not known.

    >>> import symattn as sa
    >>> x, dx = sa.tensor("x", "n"), sa.tensor("dx", "n")
    >>> print(sa.jvp(sa.tanh(x), {x: dx}))
    dx * (1 - tanh(x)**2)
    """
    y = as_tensor(output)
    if not isinstance(tangents, Mapping):
        raise OperandError(f"jvp takes the tangents as {{x: dx}}, not {described(tangents)}")
    variables = _variables(tangents, "jvp")
    if len(variables) < len(tangents):
        given = ", ".join(map(str, tangents))
        raise OperandError(f"jvp was given one variable under two spellings among {given}")
    _check_present(variables, [y])
    forward = Forward([y, *(v for v in variables if isinstance(v, Tensor))], variables, by="derivative")
    moving: dict[Tensor, Tensor] = {}
    symbols: dict[sympy.Symbol, Tensor] = {}
    for v, t in zip(variables, map(as_tensor, tangents.values()), strict=True):
        shape = v.shape if isinstance(v, Tensor) else ()
        if not same_shape(t.shape, shape):
            raise ShapeError(f"the tangent {t.brief()} of {v} must have the shape {show_shape(shape)}")
        if isinstance(v, Tensor):
            moving[forward.new[v]] = t
        else:
            symbols[v] = t
    for node in forward.order:
        if node not in moving:
            _push(node, forward, moving, symbols)
    return moving.get(forward.new[y], zeros(*y.shape))


def _push(node: Tensor, forward: Forward, moving: dict[Tensor, Tensor], symbols: Mapping[sympy.Symbol, Tensor]) -> None:
    """The tangent of one node from those of its inputs, if any of them moves."""
    terms = []
    inputs = tuple(moving.get(x) for x in node.inputs)
    if any(t is not None for t in inputs):
        if node.op.jvp is None:
            raise NoRuleError(f"no derivative is known for {node.op.title}, met at {node.brief()}")
        label, whole = forward.label.get(node, node), forward.norm(node)
        moved = None if whole is None else moving.get(whole.x)
        if whole is not None and moved is not None:
            terms.append(whole.slope(moved, label))
        else:
            terms.append(node.op.jvp(inputs, label, *node.inputs, **node.params))
    terms += [multiply(partial(node, symbol), symbols[symbol]) for symbol in scalars_of(node, symbols)]
    if not terms:
        return
    labels = {n: forward.label.get(n, n) for n in (*node.inputs, node)}
    done = {**labels, **{label: label for label in labels.values()}}
    for t in (t for t in inputs if t is not None):
        rest = split_scalar(t)[1]  # its factor comes out, and what is behind it is tidy as well
        done |= {t: t} if rest is None else {t: t, rest: rest}
    total = tidy(sum_of(terms), done)
    if is_zero(total):
        return
    if node.op is let_op:
        name = new_name(marked(str(node.name), "dot"), forward.taken)
        total = named(name, total, by="derivative")
    moving[node] = total
