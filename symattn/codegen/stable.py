"""Forms that are exactly equal and no less accurate, chosen in the graph before code is written.

Some are operations of generated code alone: never differentiated, printed or proved about. Each rule takes the inputs
of one operation and gives a node with the same values, or None. A rule may lose no digit that the plain form has: it
applies to what reads a quantity, never to the quantity that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import CO_VARARGS
from typing import Any

import sympy

from ..core.node import Tensor
from ..core.operation import Entry, Operation
from ..core.sizes import Shape
from ..graph.canonical import is_lined_up, squared, squares
from ..ops.arithmetic import add_op, divide, divide_op, multiply, multiply_op, negative, split_scalar, subtract
from ..ops.broadcasting import broadcast, broadcast_index, sum_op
from ..ops.classes import one_hot_op
from ..ops.index import index_op
from ..ops.leaves import constant, scalar_value
from ..ops.logic import greater_op, where_op
from ..ops.notation import call
from ..ops.pointwise import erf_op, exp_op, log_op, maximum, power_op, rsqrt_op, sigmoid_op, sqrt_op, tanh_op
from ..ops.rows import logsumexp_op, max_op, mean_op, softmax_op
from ..ops.sparse import sparsemax_op, support_sqrt_op
from ..scalars.formulas import bound

Rule = Callable[..., Tensor | None]
_NEAR = 12  # nodes between a probability and its logarithm


# --- operations of generated code alone ---


def _by_its_helper(code: Any, node: Tensor, *operands: str) -> str:
    return str(code.of_rows(node.op.name, node, *code.aligned(node, operands)))


def form(
    name: str,
    entry: Entry,
    shape: Callable[..., Shape] = lambda x, *others, **params: x.shape,
    numpy: Callable[..., str] = _by_its_helper,
    masks: tuple[int, ...] = (),
) -> Operation:
    """The record of a form: its entries, its shape, and its NumPy, by default a call of the helper of its name."""
    return Operation(
        name,
        shape=shape,
        entry=entry,
        vjp=None,
        jvp=None,
        numpy=numpy,
        notation=lambda p, node: call(p, name, node),
        reason="a form of generated code",
        minus_infinity="absorbed",
        masks=masks,
    )


def _entrywise(formula: Callable[..., Any]) -> Entry:
    """A formula of the entries of inputs that broadcast."""
    return lambda read, index, node: formula(
        *(read(k, broadcast_index(x.shape, index)) for k, x in enumerate(node.inputs))
    )


def _in_row(formula: Callable[..., Any]) -> Entry:
    """``formula(here, summed, node)``: entries of inputs, and the sum over the row of a function of the first ones."""

    def entry(read: Any, index: Any, node: Any) -> Any:
        axes = node.params.get("axes", (-1,))
        limits = [bound(node, slot, _along(node, axis)) for slot, axis in enumerate(axes)]
        full = list(index)
        for axis in () if node.params.get("keepdims", True) else sorted(axes, reverse=True):
            full.insert(len(full) + 1 + axis, sympy.S.Zero)
        row = list(full)
        for axis, (k, _, _) in zip(axes, limits, strict=True):
            row[axis] = k

        def here(k: int) -> Any:
            return read(k, broadcast_index(node.inputs[k].shape, tuple(index if k else full)))

        def summed(term: Callable[..., Any]) -> sympy.Expr:
            inputs = list(enumerate(node.inputs))[: _number_of(term)]
            return sympy.Sum(term(*(read(k, broadcast_index(y.shape, tuple(row))) for k, y in inputs)), *limits)

        return formula(here, summed, node)

    return entry


def _along(node: Tensor, axis: int) -> sympy.Expr:
    """The size of an axis of the inputs, which broadcast."""
    sizes = (x.shape[axis] for x in node.inputs if x.rank >= -axis)
    return next((size for size in sizes if size != 1), sympy.S.One)


def _number_of(term: Callable[..., Any]) -> int | None:
    """How many inputs a term takes; None for all."""
    return None if term.__code__.co_flags & CO_VARARGS else term.__code__.co_argcount


expm1_op = form("expm1", _entrywise(lambda x: sympy.exp(x) - 1), numpy=lambda code, node, x: f"np.expm1({x})")
one_less_op = form(
    "one_less_exp", _entrywise(lambda x: 1 - sympy.exp(x)), numpy=lambda code, node, x: f"0 - np.expm1({x})"
)
erfc_op = form("erfc", _entrywise(lambda x: 1 - sympy.erf(x)))
expm1_ratio_op = form("expm1_ratio", _entrywise(lambda x: (sympy.exp(x) - 1) / x))
expm1_ratio_slope_op = form("expm1_ratio_slope", _entrywise(lambda x: (sympy.exp(x) * (x - 1) + 1) / x**2))
tanh_slope_op = form("tanh_slope", _entrywise(lambda x: 1 - sympy.tanh(x) ** 2))
tanh_ratio_slope_op = form("tanh_ratio_slope", _entrywise(lambda x: (1 - sympy.tanh(x) ** 2 - sympy.tanh(x) / x) / x))
weighed_op = form("weighed", _entrywise(lambda p, x: p * x), partial(broadcast, "the product"))

# --- of rows ---

log_softmax_op = form(
    "log_softmax", _in_row(lambda here, summed, node: here(0) - sympy.log(summed(lambda z: sympy.exp(z))))
)
largest_op = form("largest", max_op.entry, logsumexp_op.shape)
logsumexp_less_op = form(
    "logsumexp_less",
    _in_row(lambda here, summed, node: sympy.log(summed(lambda z: sympy.exp(z))) - here(1)),
    lambda z, x, axes, keepdims: broadcast("the difference", largest_op(z, axes=axes, keepdims=keepdims), x),
)
softmax_slope_op = form(
    "softmax_slope",
    _in_row(lambda here, summed, node: here(0) - here(1) * summed(lambda u: u)),
    lambda u, p, axes: broadcast("the difference", u, p),
)
softmax_less_op = form(
    "softmax_less",
    _in_row(lambda here, summed, node: (1 - here(1)) * here(0) - here(1) * summed(lambda p, y: (1 - y) * p)),
    masks=(1,),
)
softmax_vjp_op = form(
    "softmax_vjp",
    _in_row(lambda here, summed, node: here(1) * (here(0) - summed(lambda g, p: g * p))),
    lambda g, p, axes: broadcast("the product", g, p),
)


def _of_rows(code: Any, node: Tensor, *operands: str) -> str:
    """A helper of a norm: what it starts from, and how the lengths of the rows are made."""
    aligned = code.aligned(node, operands)
    given, divides = node.params["given"], node.params.get("divides", False)
    numbers = [code.scalar(node.params["factor"]), code.scalar(node.params["eps"])]
    centred = [f"{role}={text}" for role, text in zip(("of", "mean"), aligned[given:], strict=False)]
    options = [*code.row_options(node), *centred, "divides=True" * divides]
    return str(code.helper(node.op.name, *aligned[:given], *numbers, *options))


def _over(u: Tensor, root: Tensor, *rows: Tensor, **more: Any) -> Shape:
    return broadcast("the quotient", u, root)


def _length(summed: Any, node: Tensor, place: int) -> sympy.Expr:
    """The length of a row from the row, input ``place``, once as it is and once by what its mean was taken off."""
    centred = len(node.inputs) > node.params["given"]

    def square(*row: Any) -> sympy.Expr:
        return row[place] * (row[-2] - row[-1] if centred else row[place])

    return sympy.sqrt(node.params["factor"] * summed(square) + node.params["eps"])


def _by_row_length(here: Any, summed: Any, node: Tensor) -> sympy.Expr:
    """What is over the length of a row, which is given, perhaps as its inverse, and follows from the row as well."""
    root, length = here(1), _length(summed, node, 0 if node.params["given"] == 2 else 2)
    return here(0) / sympy.sqrt(length * (root if node.params["divides"] else 1 / root))


length_op = form(
    "length",
    _in_row(lambda here, summed, node: _length(summed, node, 0)),
    lambda x, *of, axes, **more: sum_op(x, axes=axes, keepdims=True).shape,
    _of_rows,
)
unit_rows_op = form("unit_rows", _in_row(_by_row_length), _over, _of_rows)
over_length_op = form("over_length", _in_row(_by_row_length), _over, _of_rows)


# --- sums ---


def _add(a: Tensor, b: Tensor) -> Tensor | None:
    for total, other in ((a, b), (b, a)):
        number = scalar_value(other)
        if number is not None:
            return _from_number(number, total)
    return _first(rule(a, b) for rule in (_softmax_sum, _ratio_slope, _less_logsumexp))


def _first(found: Iterable[Tensor | None]) -> Tensor | None:
    return next((x for x in found if x is not None), None)


def _less_logsumexp(a: Tensor, b: Tensor) -> Tensor | None:
    """``z - logsumexp(z)`` as log-softmax; in another difference with a logsumexp its maximum is met first."""
    for total, other in ((a, b), (b, a)):
        (c, whole), (k, x) = split_scalar(total), split_scalar(other)
        read = None if whole is None else _logsumexp(whole)
        if read is None or whole is None or x is None or not (c * k).is_negative:
            continue
        if k == -c and x is read.inputs[0] and is_lined_up(whole, read):
            return multiply(k, log_softmax_op(x, axes=read.params["axes"]))
        if whole is read and x.rank <= read.rank:
            return _difference(c, read, multiply(-k / c, x), x)
    return None


def _logsumexp(x: Tensor) -> Tensor | None:
    """The logsumexp that this is, or whose reduced axes this brings back."""
    body = x.inputs[0] if x.op is index_op else x
    return body if body.op is logsumexp_op else None


def _difference(c: Any, total: Tensor, x: Tensor, plain: Tensor) -> Tensor:
    """``c (logsumexp(z) - x)``; where x is a logsumexp as well, the two maxima are subtracted first."""
    z = total.inputs[0]
    if plain is x and x.op is logsumexp_op:
        top = largest_op(*x.inputs, **x.params)
        first = logsumexp_less_op(z, top, **total.params)
        return multiply(c, subtract(first, logsumexp_less_op(*x.inputs, top, **x.params)))
    return multiply(c, logsumexp_less_op(z, x, **total.params))


def _log(x: Tensor) -> Tensor | None:
    """The logarithm of a softmax; what is masked gives -inf."""
    if x.op is not softmax_op or x.params["empty"] != "zero":
        return None
    z, *masks = x.inputs
    seen = where_op.node(*masks, z, constant(formula=sympy.S.NegativeInfinity)) if masks else z
    return log_softmax_op(seen, axes=x.params["axes"])


# --- differences from a number ---


def _from_number(number: Any, x: Tensor) -> Tensor | None:
    """``exp(x) - 1``, ``1 - sigmoid(x)``, ``1 - tanh(x)**2``, ``1 + erf(x)`` and multiples without the cancellation."""
    c, rest = split_scalar(x)
    if rest is None:
        return None
    if rest.op is exp_op and number == -c:
        return multiply(c, expm1_op(rest.inputs[0])) if c.is_positive else multiply(number, one_less_op(rest.inputs[0]))
    if rest.op is sigmoid_op and number in (-c, -c / 2):
        u = negative(rest.inputs[0])
        return multiply(number, sigmoid_op(u) if number == -c else tanh_op(multiply(sympy.S.Half, u)))
    if rest.op is tanh_op and number in (c, -c):
        return multiply(2 * number, sigmoid_op(multiply(2 * c / number, rest.inputs[0])))
    if rest.op is erf_op and number in (c, -c):
        return multiply(number, erfc_op(multiply(-c / number, rest.inputs[0])))
    slope = squared(rest) if number == -c else None
    return multiply(number, tanh_slope_op(slope.inputs[0])) if slope is not None and slope.op is tanh_op else None


# --- products, and x log x at 0 ---


def _multiply(a: Tensor, b: Tensor) -> Tensor | None:
    if scalar_value(a) is not None:  # the product behind a factor is built with it
        inner = _multiply(*b.inputs) if b.op is multiply_op else None
        return None if inner is None else multiply(a, inner)
    rules = (_softmax_product, _weighed, _by_inverse)
    return _first(rule(x, y) for x, y in ((a, b), (b, a)) for rule in rules)


def _by_inverse(u: Tensor, root: Tensor) -> Tensor | None:
    """``u * r`` with the inverse r of a length; a length itself is multiplied as it stands."""
    return _by_length(u, root) if root.op is divide_op else None


def _weighed(p: Tensor, x: Tensor) -> Tensor | None:
    """``p * log(p)``, and what is made from that, is 0 where p is 0."""
    return weighed_op(p, x) if _holds_log(x, p) else None


def _holds_log(x: Tensor, p: Tensor) -> bool:
    """Whether the logarithm of p stands among the terms and factors of x."""
    waiting = [x]
    for _ in range(_NEAR):
        if not waiting:
            return False
        node = waiting.pop()
        if node.op is log_op and node.inputs[0] is p:
            return True
        if node.op is log_softmax_op and p.op is softmax_op and _log(p) is node:
            return True
        waiting += node.inputs if node.op in (add_op, multiply_op) else ()
    return False


# --- quotients, and rows without support ---


def _divide(a: Tensor, b: Tensor) -> Tensor | None:
    if b.op is length_op and scalar_value(a) is None:
        return _by_length(a, b)
    if a.op in (expm1_op, one_less_op):
        k, x = split_scalar(a.inputs[0])
        return multiply(k if a.op is expm1_op else -k, expm1_ratio_op(a.inputs[0])) if x is b else None
    return _over_support(a, b) if b.op is sum_op else None


def _over_support(a: Tensor, b: Tensor) -> Tensor | None:
    """The size of the support of a row of -inf is 0, and what is divided by it is 0; any other is at least 1."""
    weight = b.inputs[0]
    supported = weight.op is support_sqrt_op or (weight.op is greater_op and weight.inputs[0].op is sparsemax_op)
    return divide_op.node(a, maximum(b, 1)) if supported else None


# --- norms of rows, whose squares may overflow or vanish ---


def _length_of(below: Tensor) -> Tensor | None:
    """The square root of what is a sum of squares, of which none overflows."""
    found = squares(below)
    if found is None or found.eps.is_infinite:
        return None
    axes, x = found.total.params["axes"], found.x
    count = sympy.Mul(*(x.shape[axis] for axis in axes)) if found.total.op is mean_op else 1
    return length_op(x, *_centred_from(x, axes), axes=axes, factor=found.factor / count, eps=found.eps, given=1)


def _centred_from(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """What x is, less its own mean, and that mean."""
    if x.op is not add_op:
        return ()
    whole, (c, mean) = x.inputs[0], split_scalar(x.inputs[1])
    if c != -1 or mean is None or mean.op is not mean_op or mean.inputs[0] is not whole:
        return ()
    return (whole, mean) if mean.params == {"axes": axes, "keepdims": True} else ()


def _inverse_root(x: Tensor) -> Tensor | None:
    root = _length_of(x)
    return None if root is None else divide_op.node(constant(formula=sympy.S.One), root)


def _root_power(x: Tensor, exponent: Tensor) -> Tensor | None:
    rule = {sympy.Rational(1, 2): _length_of, sympy.Rational(-1, 2): _inverse_root}.get(scalar_value(exponent))
    return None if rule is None else rule(x)


def _by_length(u: Tensor, root: Tensor) -> Tensor | None:
    """``u * r`` or ``u / length``, of which the result may be representable alone."""
    divides = root.op is length_op
    inverts = root.op is divide_op and scalar_value(root.inputs[0]) == 1
    length = root.inputs[1] if inverts else root
    if length.op is not length_op:
        return None
    (x, *of), params = length.inputs, {**length.params, "divides": divides}
    if u is x:
        return unit_rows_op(x, root, *of, **{**params, "given": 2})
    return over_length_op(u, root, x, *of, **{**params, "given": 3})


# --- derivatives whose terms cancel: of a softmax where one probability is nearly 1 ---


def _softmax_product(p: Tensor, x: Tensor) -> Tensor | None:
    """``p * (g - sum(p * g))``."""
    if p.op is not softmax_op or x.op is not add_op:
        return None
    (k, g), (c, total) = split_scalar(x.inputs[0]), split_scalar(x.inputs[1])
    if total is None or not _sums_like(total, p):
        return None
    weight, product = split_scalar(total.inputs[0])
    known = product is not None and product.op in (multiply_op, weighed_op) and {*product.inputs} == {p, g}
    if product is None or not known or k != -c * weight:
        return None
    if product.op is multiply_op and g is not None:
        return multiply(k, softmax_vjp_op(g, p, axes=p.params["axes"]))
    return multiply(k, softmax_slope_op(_from_largest(product, p), p, axes=p.params["axes"]))


def _from_largest(product: Tensor, p: Tensor) -> Tensor:
    """``p * log(p)`` by the distance from the largest logit: the rest is the same along the row, and drops out."""
    z, axes = p.inputs[0], p.params["axes"]
    if product.op is not weighed_op or len(p.inputs) > 1:
        return product
    for found, scale in _factors(product.inputs[1]):
        if found is log_softmax_op(z, axes=axes) and _is_constant_along(scale, axes):
            return weighed_op(p, multiply(scale, subtract(z, largest_op(z, axes=axes, keepdims=True))))
    return product


def _softmax_sum(a: Tensor, b: Tensor) -> Tensor | None:
    """``u - p * sum(u)``, and ``p - y`` for one class y a row; perhaps behind another term."""
    found = _slope_of_two(a, b)
    if found is not None or a.op is not add_op:
        return found
    last = _slope_of_two(a.inputs[1], b)
    if last is None:
        return None
    return a.inputs[0] if _is_flat(last) else add_op(a.inputs[0], last)


def _slope_of_two(a: Tensor, b: Tensor) -> Tensor | None:
    spread = ((*split_scalar(x), u) for x, u in ((a, b), (b, a)))
    parts = ((c, p, other, u) for c, product, u in spread for p, other in _factors(product) if p.op is softmax_op)
    return _first(rule(*part) for part in parts for rule in (_less_class, _less_share))


def _less_share(c: Any, p: Tensor, total: Tensor, u: Tensor) -> Tensor | None:
    """``u - p * sum(u)``."""
    if not _sums_like(total, p):
        return None
    (k, v), (weight, summand) = split_scalar(u), split_scalar(total.inputs[0])
    if v is None or v is not summand or k != -c * weight:
        return None
    return multiply(k, softmax_slope_op(v, p, axes=p.params["axes"]))


def _less_class(c: Any, p: Tensor, factor: Tensor, u: Tensor) -> Tensor | None:
    """``c * factor * (p - y)`` where y has one class a row."""
    k, y = split_scalar(u)
    if y is not None and y.op is where_op and scalar_value(y.inputs[2]) == 0 and k == 1:
        k, found = split_scalar(y.inputs[1])
        y = y.inputs[0] if found is factor or (found is None and scalar_value(factor) == 1) else None
    elif scalar_value(factor) != 1:
        y = next((x for x, found in _factors(y) if found is factor), None)
    if y is None or y.op is not one_hot_op or k != -c or p.params["axes"] != (-1,) or p.rank != y.rank:
        return None
    return multiply(c, multiply(factor, softmax_less_op(p, y)))


def _sums_like(total: Tensor, p: Tensor) -> bool:
    """Whether this is a sum along the rows of p, which stay."""
    return total.op is sum_op and total.params == {"axes": p.params["axes"], "keepdims": True}


def _is_flat(slope: Tensor) -> bool:
    """Whether this is the slope by what is the same along a row, which is 0."""
    inner = split_scalar(slope)[1]
    if inner is None or inner.op is not softmax_slope_op:
        return False
    u, p = inner.inputs
    return any(q is p and _is_constant_along(x, inner.params["axes"]) for q, x in _factors(u))


def _is_constant_along(x: Tensor, axes: tuple[int, ...]) -> bool:
    return all(-axis > x.rank or x.shape[axis] == 1 for axis in axes)


def _factors(product: Tensor | None) -> tuple[tuple[Tensor, ...], ...]:
    """The two orders of a product; what is none has the factor 1."""
    if product is None:
        return ()
    if product.op is not multiply_op:
        return ((product, constant(formula=sympy.S.One)),)
    return (product.inputs, product.inputs[::-1])


# --- and of (exp(x) - 1) / x and tanh(x) / x near 0 ---


def _ratio_slope(a: Tensor, b: Tensor) -> Tensor | None:
    """``g/x * f'(x) - g * (f(x)/x) / x``, the two paths of a cotangent through ``f(x)/x``, whose terms cancel at 0."""
    for first, second in ((a, b), (b, a)):
        c, last = split_scalar(second)
        if last is None or last.op is not divide_op:
            continue
        x = last.inputs[1]
        for ratio, g in _factors(last.inputs[0]):
            found = _slope_of_ratio(ratio, x)
            if found is not None and first is multiply(-c, multiply(divide(g, x), found[0])):
                return multiply(-c, multiply(g, found[1]))
    return None


def _slope_of_ratio(ratio: Tensor, x: Tensor) -> tuple[Tensor, Tensor] | None:
    """The derivatives of f and of what ``ratio`` is, ``f(k x) / x`` or that over k."""
    if ratio.op is expm1_ratio_op:
        v = ratio.inputs[0]
        k, inner = split_scalar(v)
        return (exp_op(v), multiply(k, expm1_ratio_slope_op(v))) if inner is x else None
    if ratio.op is not divide_op or ratio.inputs[0].op is not tanh_op or ratio.inputs[1] is not x:
        return None
    v = ratio.inputs[0].inputs[0]
    k, inner = split_scalar(v)
    return (multiply(k, tanh_slope_op(v)), multiply(k**2, tanh_ratio_slope_op(v))) if inner is x else None


RULES: Mapping[Operation, Rule] = {
    add_op: _add, multiply_op: _multiply, divide_op: _divide, log_op: _log,
    sqrt_op: _length_of, rsqrt_op: _inverse_root, power_op: _root_power,
}  # fmt: skip


def stable(node: Tensor) -> Tensor:
    """The node in the most accurate of its forms."""
    rule = RULES.get(node.op)
    new = None if rule is None else rule(*node.inputs, **node.params)
    return node if new is None else new
