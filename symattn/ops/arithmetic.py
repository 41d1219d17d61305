"""Entrywise arithmetic with NumPy's broadcasting.

Construction tidies lightly and predictably: scalar factors are gathered in front, units and zeros vanish, unless
something is forgotten that may have no value somewhere. The order of terms and factors stays the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from ..core.boxes import Box, Fence, Fraction, Number, Sign, applied, function, juxtaposed, raised, row
from ..core.node import Tensor
from ..core.operation import NumPyText, Operation
from ..core.sizes import ONE, Shape, broadcast_shapes, same_shape
from ..errors import OperandError
from .broadcasting import broadcast, broadcast_index, broadcast_to, broadcast_to_op, unbroadcast
from .domain import vanished
from .index import embed_op, side_by_side
from .leaves import as_tensor, constant, is_zero, scalar_value, scale_notation
from .notation import (
    ONES,
    Binding,
    Written,
    as_column,
    as_row,
    fenced,
    fitted,
    is_number,
    minus,
    repeated,
    scaled,
    transposed,
)


def entrywise(
    name: str,
    formula: Callable[..., Any],
    numpy: NumPyText,
    slopes: Callable[..., Sequence[Tensor]] | None = None,
    **record: Any,
) -> Operation:
    """An entrywise operation of broadcast inputs whose entry is a formula of their entries.

    ``slopes(y, *inputs)`` are its derivatives, from which vjp and jvp come where they are not given.
    """
    if slopes is not None:
        record.setdefault("vjp", lambda g, y, *inputs: back_by_slopes(g, slopes(y, *inputs), y, inputs))
        record["jvp"] = lambda tangents, y, *inputs: product_rule(tangents, slopes(y, *inputs), y.shape)

    def aligned(code: Any, node: Tensor, *operands: str) -> str:
        return numpy(code, node, *code.aligned(node, operands))

    def entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
        return formula(*(read(k, broadcast_index(x.shape, index)) for k, x in enumerate(node.inputs)))

    return Operation(
        name,
        shape=lambda *inputs: broadcast(record.get("called", name), *inputs),
        entry=entry,
        numpy=aligned,
        **{"broadcasts": True, **record},
    )


def product_rule(tangents: Sequence[Tensor | None], slopes: Sequence[Tensor], shape: Shape) -> Tensor:
    """The tangent of an entrywise operation: the sum of slope times tangent over the inputs that move."""
    terms = [multiply(slope, t) for slope, t in zip(slopes, tangents, strict=True) if t is not None]
    return broadcast_to(sum_of(terms), shape)


def back_by_slopes(g: Tensor, slopes: Sequence[Tensor], y: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The cotangents of the inputs of an entrywise operation: slope by slope."""
    parts = zip(slopes, inputs, strict=True)
    return tuple(unbroadcast(multiply(g, slope), x.shape, y.shape) for slope, x in parts)


def sum_of(terms: Sequence[Tensor]) -> Tensor:
    """The terms added from left to right."""
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def drop_broadcast(operands: tuple[Tensor, ...], shape: Shape) -> tuple[Tensor, ...]:
    """Take off ``broadcast_to`` where an entrywise operation broadcasts by itself to the same shape."""
    for place, x in enumerate(operands):
        coefficient, rest = split_scalar(x)
        if rest is not None and rest.op is broadcast_to_op:
            inner = multiply(coefficient, rest.inputs[0])
            bare = (*operands[:place], inner, *operands[place + 1 :])
            joined = broadcast_shapes(*(y.shape for y in bare))
            if joined is not None and same_shape(joined, shape):
                operands = bare
    return operands


# --- sums ---


def _add_notation(p: Any, node: Tensor) -> Written:
    parts = [] if p.code else _embedded_terms(node)
    if parts and (joined := side_by_side(p, parts, node)) is not None:
        return joined
    a, b = node.inputs
    left = _term(p, node, a, Binding.SUM)
    coefficient, rest = split_scalar(b)
    if coefficient.could_extract_minus_sign():
        opposite = constant(formula=-coefficient) if rest is None else multiply(-coefficient, rest)
        return row(left, minus("sum", p.code), _term(p, node, opposite, Binding.SUM + 1)), Binding.SUM
    return row(left, Sign("+", "sum"), _term(p, node, b, Binding.SUM + 1)), Binding.SUM


def _term(p: Any, node: Tensor, x: Tensor, at_least: int) -> Box:
    """A term of a sum; a number in all entries of a matrix is written out where it reads as something else: as a
    multiple of I, or, made of vectors, as their outer product."""
    is_square = node.rank > 1 and node.shape[-1] == node.shape[-2] is not ONE
    is_matrix = node.rank > 1 and not (node.shape[-1] is node.shape[-2] is ONE)
    if p.code or not is_number(x) or not (is_square or (is_matrix and _is_of_vectors(x))):
        return fitted(p, node, x, at_least)
    coefficient, rest = split_scalar(x)
    factors = [] if rest is None else [p.operand(rest, Binding.PRODUCT)]
    filled = juxtaposed(*factors, ONES, transposed(ONES)), Binding.PRODUCT
    return fenced(scaled(p, coefficient, x, filled), at_least)


def _is_of_vectors(x: Tensor) -> bool:
    """Whether a number is written by a product of vectors."""
    waiting, seen = [x], set[Tensor]()
    while waiting:
        part = waiting.pop()
        if part.op.name == "matmul":
            return True
        seen.add(part)
        waiting += (k for k in part.inputs if is_number(k) and k not in seen)
    return False


def _embedded_terms(node: Tensor) -> list[tuple[sympy.Expr, Tensor]]:
    """The terms of a sum of parts among zeros, each with its factor; none where a term is anything else."""
    terms, rest = [], node
    while rest.op is add_op:
        rest, last = rest.inputs
        terms.append(last)
    parts = [(factor, x) for factor, x in map(split_scalar, (rest, *terms)) if x is not None and x.op is embed_op]
    return parts if len(parts) == len(terms) + 1 else []


def _add_vjp(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor | None, Tensor | None]:
    if a is b:  # a double: both paths at once
        return multiply(2, g), None
    return unbroadcast(g, a.shape, y.shape), unbroadcast(g, b.shape, y.shape)


def _add_numpy(code: Any, node: Tensor, a: str, b: str) -> str:
    coefficient, rest = split_scalar(node.inputs[1])
    if coefficient == -1 and rest is not None and not code.is_written(node.inputs[1]):
        return f"({a}) - ({code.subtracted(node, rest)})"
    return f"({a}) + ({b})"


add_op = entrywise(
    "add",
    lambda a, b: a + b,
    vjp=_add_vjp,
    jvp=lambda tangents, y, *inputs: broadcast_to(sum_of([t for t in tangents if t is not None]), y.shape),
    numpy=_add_numpy,
    notation=_add_notation,
    build=lambda a, b: _add(a, b),
    reason="sum rule, term by term",
    called="the sum",
    minus_infinity="kept",
)


def _add(a: Tensor, b: Tensor) -> Tensor:
    """Numbers fold; adding zeros of no larger shape changes nothing."""
    x, y = scalar_value(a), scalar_value(b)
    if x is not None and y is not None:
        return constant(formula=x + y)
    shape = broadcast("the sum", a, b)
    a, b = drop_broadcast((a, b), shape)
    if is_zero(b):
        return broadcast_to(a, shape)
    return broadcast_to(b, shape) if is_zero(a) else add_op.node(a, b)


def add(a: Any, b: Any) -> Tensor:
    """``a + b``, entry by entry."""
    return add_op(as_tensor(a), as_tensor(b))


def subtract(a: Any, b: Any) -> Tensor:
    """``a - b``, entry by entry."""
    taken = as_tensor(b)
    if taken.holds_minus_infinity:
        raise OperandError(
            f"the difference from {taken.brief()}, which may hold -oo: take away what is a number, such as "
            "sa.maximum(x, 0); a running maximum may begin at 0, since softmax is the same from any reference"
        )
    return add(a, negative(taken))


def negative(a: Any) -> Tensor:
    """``-a``."""
    return multiply(-1, a)


# --- products ---


def split_scalar(x: Tensor) -> tuple[sympy.Expr, Tensor | None]:
    """A node as a scalar coefficient times the rest; the rest is None for a scalar."""
    value = scalar_value(x)
    if value is not None:
        return value, None
    if x.op is multiply_op and (value := scalar_value(x.inputs[0])) is not None:
        return value, x.inputs[1]
    return sympy.S.One, x


def split_all(inputs: Sequence[Tensor]) -> tuple[sympy.Expr, list[Tensor]] | None:
    """The scalar coefficients of nodes, multiplied, and the rests; None where there is none, or nothing but one."""
    coefficients, rests = zip(*map(split_scalar, inputs), strict=True)
    kept = [rest for rest in rests if rest is not None]
    return None if len(kept) < len(rests) or all(c == 1 for c in coefficients) else (sympy.Mul(*coefficients), kept)


def _multiply_notation(p: Any, node: Tensor) -> Written:
    a, b = node.inputs
    if scalar_value(a) is not None:
        return scale_notation(p, node)
    if p.code:
        left, right = p.operand(a, Binding.PRODUCT), p.operand(b, Binding.PRODUCT + 1)
        return row(left, Sign("*", "product"), right), Binding.PRODUCT
    if is_number(a) or is_number(b):
        return juxtaposed(
            _factor(p, node, a, Binding.PRODUCT), _factor(p, node, b, Binding.PRODUCT + 1)
        ), Binding.PRODUCT
    sides = {repeated(x, node): x for x in (a, b)}
    if sides.keys() == {"column", "row"}:
        across = fenced(as_row(p, sides["row"]), Binding.PRODUCT + 1)
        return juxtaposed(p.operand(sides["column"], Binding.PRODUCT), across), Binding.PRODUCT
    for vector, matrix in ((a, b), (b, a)):
        if side := repeated(vector, node):
            return _with_diagonal(p, side, diagonal(p, vector), matrix)
    return _entrywise(p, Sign("⊙", "product"), node)


def _factor(p: Any, node: Tensor, x: Tensor, at_least: int) -> Box:
    """A factor of a product with a number, where a number that is itself a product of tensors is kept together."""
    box = fitted(p, node, x, at_least)
    apart = is_number(x) and p.binding(x) == Binding.PRODUCT and at_least <= Binding.PRODUCT
    return Fence(box) if apart and not all(map(is_number, x.inputs)) else box


def _with_diagonal(p: Any, side: str, scale: Box, x: Tensor) -> Written:
    """A matrix whose rows, or columns, are scaled."""
    if side == "column":
        return juxtaposed(scale, p.operand(x, Binding.PRODUCT)), Binding.PRODUCT
    return juxtaposed(p.operand(x, Binding.PRODUCT), scale), Binding.PRODUCT


def diagonal(p: Any, vector: Tensor) -> Box:
    """The diagonal matrix of a vector."""
    return applied(function("diag"), [fenced(as_column(p, vector), Binding.OR)])


def _entrywise(p: Any, sign: Sign, node: Tensor) -> Written:
    a, b = node.inputs
    inner = a.inputs[1] if a.op is multiply_op and scalar_value(a.inputs[0]) is not None else a
    mixed = inner.op in (multiply_op, divide_op) and inner.op is not node.op
    left = fitted(p, node, a, Binding.HADAMARD + mixed, alone=True)
    return row(left, sign, fitted(p, node, b, Binding.HADAMARD + 1, alone=True)), Binding.HADAMARD


_IN_HALF = 2**11  # up to here half precision has all integers


def is_wide(factor: sympy.Expr) -> bool:
    """Whether a fraction is a number of its own: an array times its numerator could overflow where it does not."""
    return bool(factor.is_Rational and factor.q != 1 and max(abs(factor.p), factor.q) > _IN_HALF)


def _multiply_numpy(code: Any, node: Tensor, a: str, b: str) -> str:
    value = scalar_value(node.inputs[0])
    if value is None:
        return f"({a}) * ({b})"
    if value == -1:
        return f"-({b})"
    if is_wide(value.as_coeff_Mul()[0]):
        return f"({code.scalar(value)}) * ({b})"
    above, below = sympy.fraction(value)
    product = f"({b})" if above == 1 else f"({code.scalar(above)}) * ({b})"
    return product if below == 1 else f"{product} / ({code.scalar(below)})"


def _multiply_vjp(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor | None, Tensor | None]:
    if a is b:  # a square: both paths at once
        return multiply(2, multiply(g, a)), None
    return unbroadcast(multiply(g, b), a.shape, y.shape), unbroadcast(multiply(a, g), b.shape, y.shape)


multiply_op = entrywise(
    "multiply",
    lambda a, b: a * b,
    vjp=_multiply_vjp,
    slopes=lambda y, a, b: (b, a),
    numpy=_multiply_numpy,
    notation=_multiply_notation,
    build=lambda a, b: _multiply(a, b),
    reason="product rule, entry by entry",
    called="the product",
)


def multiply(a: Any, b: Any) -> Tensor:
    """``a * b``, entry by entry."""
    return multiply_op(as_tensor(a), as_tensor(b))


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    """Scalar factors are gathered in front, the factor 1 vanishes, and so does what is 0 everywhere."""
    (c, x), (k, y) = split_scalar(a), split_scalar(b)
    if c is sympy.S.One is k and x is not None and y is not None:
        return _product(x, y)
    value = c * k
    if value.is_infinite:
        raise OperandError("-oo is allowed in additive masks only, not as a factor")
    factors = [f for f in (x, y) if f is not None]
    if not factors:
        return constant(formula=value)
    rest = _product(*factors) if len(factors) == 2 else factors[0]
    if value == 1:
        return rest
    scaled = multiply_op.node(constant(formula=value), rest)
    return vanished(scaled) if value == 0 or is_zero(rest) else scaled


def _product(a: Tensor, b: Tensor) -> Tensor:
    shape = broadcast("the product", a, b)
    if is_zero(a) or is_zero(b):
        return vanished(multiply_op.node(a, b))
    a, b = drop_broadcast((a, b), shape)
    if scalar_value(a) is not None or scalar_value(b) is not None:
        return multiply(a, b)
    for one, other in ((a, b), (b, a)):
        if not one.inputs and one.params.get("formula") == 1:
            return broadcast_to(other, shape)
    return multiply_op.node(a, b)


def _divide_notation(p: Any, node: Tensor) -> Written:
    a, b = node.inputs
    if p.code:
        left, right = p.operand(a, Binding.PRODUCT), p.operand(b, Binding.PRODUCT + 1)
        return row(left, Sign("/", "product"), right), Binding.PRODUCT
    if is_number(b):
        return Fraction(fitted(p, node, a, Binding.OR), p.operand(b, Binding.OR)), Binding.FRACTION
    side = repeated(b, node)
    if side and not (is_number(a) or repeated(a, node)):
        inverse = raised(diagonal(p, b), row(minus("prefix", p.code), Number("1")))
        return _with_diagonal(p, side, inverse, a)
    return _entrywise(p, Sign("⊘", "product"), node)


divide_op = entrywise(
    "divide",
    lambda a, b: a / b,
    vjp=lambda g, y, a, b: (
        unbroadcast(divide(g, b), a.shape, y.shape),
        unbroadcast(negative(divide(multiply(g, y), b)), b.shape, y.shape),
    ),
    slopes=lambda y, a, b: (divide(1, b), negative(divide(y, b))),
    numpy=lambda code, node, a, b: f"({a}) / ({b})",
    notation=_divide_notation,
    build=lambda a, b: _divide(a, b),
    reason="quotient rule, entry by entry",
    called="the quotient",
)


def divide(a: Any, b: Any) -> Tensor:
    """``a / b``, entry by entry; raises OperandError for a division by 0."""
    return divide_op(as_tensor(a), as_tensor(b))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    """A scalar divisor becomes a factor, and scalar factors come out in front."""
    if is_zero(b):
        raise OperandError(f"{a.brief()} is divided by zero")
    below = scalar_value(b)
    if below is not None:
        return multiply(1 / below, a)
    if is_zero(a):
        return vanished(divide_op.node(a, b))
    coefficient, rest = split_scalar(a)
    if coefficient != 1:
        return multiply(coefficient, divide(1 if rest is None else rest, b))
    return divide_op.node(*drop_broadcast((a, b), broadcast("the quotient", a, b)))
