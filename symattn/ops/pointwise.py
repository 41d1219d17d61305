"""Entrywise functions: a table of those of one argument, powers, extremes, and functions given by a SymPy Lambda."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import sympy

from ..core.boxes import Code, Fence, Function, Name, Script, Sign, commas, power_of, row
from ..core.exact import ARGUMENTS, as_scalar
from ..core.node import Tensor
from ..core.operation import Notation, Operation
from ..errors import NoRuleError, OperandError, described
from ..scalars.formulas import choose, compared, plainly_joined, without_piecewise
from .arithmetic import add, back_by_slopes, divide, entrywise, multiply, negative, product_rule, subtract
from .broadcasting import broadcast, broadcast_index, broadcast_to, unbroadcast
from .domain import is_total
from .leaves import as_tensor, constant, is_minus_infinity, scalar_value, zeros
from .logic import greater, greater_equal, less_equal
from .notation import Binding, Written, call, enclosed, fitted, function, root, source

Entrywise: TypeAlias = Callable[[Any], Tensor]

# --- functions of one argument ---


def _function(
    name: str,
    says: str,
    formula: Callable[[Any], Any],
    derivative: Callable[[Tensor, Tensor], Tensor],
    numpy: str = "",
    notation: Notation | None = None,
    **more: Any,
) -> tuple[Operation, Entrywise]:
    """A row: the record of a function, and how it is called.

    ``derivative(x, y)`` is f'(x) in our own operations, where y = f(x) may be used by its name; without ``numpy`` there
    is a helper of that name in generated code.
    """
    op = Operation(
        name,
        shape=lambda x: x.shape,
        entry=lambda read, index, node: formula(read(0, index)),
        vjp=lambda g, y, x: (multiply(g, derivative(x, y)),),
        jvp=lambda tangents, y, x: multiply(tangents[0], derivative(x, y)),
        numpy=lambda code, node, x: numpy.format(x) if numpy else code.helper(name, x),
        notation=notation or function(name),
        reason=f"chain rule, entry by entry, through {name}",
        **more,
    )

    def apply(x: Any) -> Tensor:
        return op(as_tensor(x))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"""Entry by entry, ``y = {says}``; the shape stays.

    Raises OperandError for what is not a tensor or a real scalar.{f" {op.nonsmooth}." if op.nonsmooth else ""}

    >>> import symattn as sa
    >>> print(sa.{name}(sa.tensor("x", "n")))
    {name}(x)
    """
    return op, apply


def _gelu_derivative(x: Tensor, y: Tensor) -> Tensor:
    density = divide(exp(negative(divide(power(x, 2), 2))), sympy.sqrt(2 * sympy.pi))
    return add(divide(add(1, erf(divide(x, sympy.sqrt(2)))), 2), multiply(x, density))


def _silu_derivative(x: Tensor, y: Tensor) -> Tensor:
    s = sigmoid(x)
    return add(s, multiply(y, subtract(1, s)))


def _cosine(x: Tensor, y: Tensor) -> Tensor:
    return cos(x)


def _sign_entry(x: Any) -> Any:
    below = choose(compared(sympy.Lt, x, 0), sympy.S.NegativeOne, sympy.S.Zero)
    return choose(compared(sympy.Gt, x, 0), sympy.S.One, below)


def _flat(x: Tensor, y: Tensor) -> Tensor:
    return zeros(*x.shape)


exp_op, exp = _function(
    "exp",
    "exp(x)",
    sympy.exp,
    lambda x, y: y,
    "np.exp({})",
    minus_infinity="absorbed",
    bounded="an exponential is positive",
)
log_op, log = _function("log", "log(x)", sympy.log, lambda x, y: divide(1, x), "np.log({})")
log1p_op, log1p = _function(
    "log1p", "log(1 + x)", lambda x: sympy.log(1 + x), lambda x, y: divide(1, add(1, x)), "np.log1p({})"
)
tanh_op, tanh = _function(
    "tanh",
    "tanh(x)",
    sympy.tanh,
    lambda x, y: subtract(1, power(y, 2)),
    "np.tanh({})",
    bounded="tanh lies between -1 and 1",
)
sigmoid_op, sigmoid = _function(
    "sigmoid",
    "1 / (1 + exp(-x))",
    lambda x: 1 / (1 + sympy.exp(-x)),
    lambda x, y: multiply(y, subtract(1, y)),
    notation=function("sigmoid", Function(Name("σ"))),
    bounded="1 divided by 1 and an exponential, which is positive",
)
softplus_op, softplus = _function(
    "softplus", "log(1 + exp(x))", lambda x: sympy.log(1 + sympy.exp(x)), lambda x, y: sigmoid(x)
)
relu_op, relu = _function(
    "relu",
    "x where x > 0, else 0",
    lambda x: choose(compared(sympy.Gt, x, 0), x, sympy.S.Zero),
    lambda x, y: greater(x, 0),
    "np.maximum({}, 0)",
    stays_whole=True,
    nonsmooth="relu is not differentiable at 0; 0 is taken there",
)
gelu_op, gelu = _function(
    "gelu",
    "x * (1 + erf(x / sqrt(2))) / 2",
    lambda x: x * ((1 + sympy.erf(x / sympy.sqrt(2))) / 2),
    _gelu_derivative,
)
silu_op, silu = _function("silu", "x * sigmoid(x)", lambda x: x / (1 + sympy.exp(-x)), _silu_derivative)
sqrt_op, sqrt = _function("sqrt", "sqrt(x)", sympy.sqrt, lambda x, y: divide(1, multiply(2, y)), "np.sqrt({})", root)
rsqrt_op, rsqrt = _function(
    "rsqrt",
    "1 / sqrt(x)",
    lambda x: 1 / sympy.sqrt(x),
    lambda x, y: multiply(sympy.Rational(-1, 2), power(y, 3)),
    "1 / np.sqrt({})",
)
sin_op, sin = _function("sin", "sin(x)", sympy.sin, _cosine, "np.sin({})")
cos_op, cos = _function("cos", "cos(x)", sympy.cos, lambda x, y: negative(sin(x)), "np.cos({})")
sign_op, sign = _function(
    "sign",
    "1, 0 or -1 by the sign of x",
    _sign_entry,
    _flat,
    "np.sign({})",
    stays_whole=True,
    nonsmooth="sign is not differentiable at 0; 0 is taken there",
)
abs_op, abs = _function(
    "abs",
    "|x|",
    lambda x: choose(compared(sympy.Ge, x, 0), x, -x),
    lambda x, y: sign(x),
    "np.abs({})",
    enclosed("abs", "|", "|"),
    bounded="the absolute value of what is bounded so",
    nonsmooth="abs is not differentiable at 0; 0 is taken there",
)
erf_op, erf = _function(
    "erf",
    "2 / sqrt(pi) * integral of exp(-t**2) from 0 to x",
    sympy.erf,
    lambda x, y: multiply(2 / sympy.sqrt(sympy.pi), exp(negative(power(x, 2)))),
)
floor_op, floor = _function(
    "floor",
    "the largest integer <= x",
    sympy.floor,
    _flat,
    "np.floor({})",
    enclosed("floor", "⌊", "⌋"),
    nonsmooth="floor is not differentiable at integers; 0 is taken there",
)


# --- powers, remainders, extremes ---


def _power_notation(p: Any, node: Tensor) -> Written:
    a, b = node.inputs
    base = fitted(p, node, a, Binding.ATOM)
    exponent = fitted(p, node, b, Binding.ATOM if p.code else Binding.PRODUCT if node.rank else Binding.OR)
    if p.code:
        return row(base, Sign("**"), exponent), Binding.POWER
    entrywise = [Sign("⊙", "prefix")] if node.rank else []  # a plain power of a matrix would be a product
    base = Fence(base) if isinstance(base, Script) and base.above is not None else base
    return power_of(base, row(*entrywise, exponent)), Binding.POWER


def _power_slopes(y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return multiply(b, power(a, subtract(b, 1))), multiply(y, log(a))


def _power_vjp(g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor | None, Tensor | None]:
    exponent = scalar_value(b)
    fixed = exponent is not None and not exponent.free_symbols
    to_base, to_exponent = _power_slopes(y, a, b)
    above = None if fixed else unbroadcast(multiply(g, to_exponent), b.shape, y.shape)
    return unbroadcast(multiply(g, to_base), a.shape, y.shape), above


def _power_numpy(code: Any, node: Tensor, a: str, b: str) -> str:
    if scalar_value(node.inputs[1]) == 3:  # a square is multiplied by NumPy itself, a cube is not
        x = code.line(a)
        return f"({x}) * ({x}) * ({x})"
    return f"({a}) ** ({b})"


power_op = entrywise(
    "power",
    lambda a, b: a**b,
    vjp=_power_vjp,
    slopes=_power_slopes,
    numpy=_power_numpy,
    notation=_power_notation,
    build=lambda a, b: _power(a, b),
    reason="power rule, entry by entry",
    called="the power",
)


def power(a: Any, b: Any) -> Tensor:
    """``a ** b``, entry by entry."""
    return power_op(as_tensor(a), as_tensor(b))


def _power(a: Tensor, b: Tensor) -> Tensor:
    """Numbers fold, and the exponents 1 and 0 vanish, the latter where there is something to raise."""
    x, n = scalar_value(a), scalar_value(b)
    if x is not None and n is not None:
        return constant(formula=x**n)
    if n == 1:
        return a
    return broadcast_to(as_tensor(1), a.shape) if n == 0 and is_total(a) else power_op.node(a, b)


def _extreme(name: str, relation: Any, wins: Callable[[Tensor, Tensor], Any], **record: Any) -> Operation:
    return entrywise(
        name,
        lambda a, b: choose(compared(relation, a, b), a, b),
        slopes=lambda y, a, b: _shares(name, wins, a, b),
        numpy=lambda code, node, a, b: f"np.{name}({a}, {b})",
        notation=lambda p, node: call(p, name, node),
        reason=f"the cotangent of a {name} goes to the entry that it takes",
        stays_whole=True,
        nonsmooth=f"{name} is not differentiable where its two inputs are equal; the first is taken there",
        **record,
    )


def _shares(name: str, wins: Callable[[Tensor, Tensor], Any], a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """1 for the one that is taken, and 0 for the other."""
    if a.holds_minus_infinity and b.holds_minus_infinity:
        raise OperandError(
            f"the derivative of {name} asks which of {a.brief()} and {b.brief()} is larger, and both may be -oo: mask "
            "what it gives, and not what it takes"
        )
    return wins(a, b), subtract(1, wins(a, b))


def _maximum(a: Tensor, b: Tensor) -> Tensor:
    """-oo is below every number."""
    for low, other in ((a, b), (b, a)):
        if is_minus_infinity(low):
            return broadcast_to(other, broadcast("maximum", a, b))
    return maximum_op.node(a, b)


maximum_op = _extreme(
    "maximum",
    sympy.Ge,
    greater_equal,
    minus_infinity=lambda a, b: a.holds_minus_infinity and b.holds_minus_infinity,
    build=_maximum,
)
minimum_op = _extreme("minimum", sympy.Le, less_equal)


def _mod_slopes(y: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return broadcast_to(as_tensor(1), broadcast("mod", a, b)), negative(floor(divide(a, b)))


mod_op = entrywise(
    "mod",
    lambda a, b: a - b * sympy.floor(a / b),
    slopes=_mod_slopes,
    numpy=lambda code, node, a, b: f"np.mod({a}, {b})",
    notation=lambda p, node: call(p, "mod", node),
    reason="a - b floor(a / b), entry by entry",
    stays_whole=True,
    nonsmooth="mod is not differentiable where b divides a",
)


def maximum(a: Any, b: Any) -> Tensor:
    """The larger of two tensors, entry by entry, with broadcasting; at a tie the derivative is the first one's.

    >>> import symattn as sa
    >>> print(sa.maximum(sa.tensor("x", "n"), 0))
    maximum(x, 0)
    """
    return maximum_op(as_tensor(a), as_tensor(b))


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of two tensors, entry by entry, with broadcasting; at a tie the derivative is the first one's.

    >>> import symattn as sa
    >>> print(sa.minimum(sa.tensor("x", "n"), 1))
    minimum(x, 1)
    """
    return minimum_op(as_tensor(a), as_tensor(b))


def mod(a: Any, b: Any) -> Tensor:
    """The remainder ``a - b * floor(a / b)``, entry by entry; it has the sign of b.

    >>> import symattn as sa
    >>> print(sa.mod(sa.tensor("x", "n"), 2))
    mod(x, 2)
    """
    return mod_op(as_tensor(a), as_tensor(b))


# --- any scalar function ---


def _elementwise_entry(read: Any, index: Any, node: Tensor) -> sympy.Expr:
    values = (read(k, broadcast_index(x.shape, index)) for k, x in enumerate(node.inputs))
    return without_piecewise(node.params["formula"]).xreplace(dict(zip(ARGUMENTS, values, strict=False)))


def _partials(inputs: tuple[Tensor, ...], formula: sympy.Expr) -> list[Tensor]:
    return [elementwise_op(*inputs, formula=_derivative(formula, v)) for v in ARGUMENTS[: len(inputs)]]


def _derivative(formula: sympy.Expr, v: sympy.Symbol) -> sympy.Expr:
    """A scalar derivative by SymPy; one it only writes down as Derivative is not known."""
    slope = sympy.diff(formula, v)
    if slope.has(sympy.Derivative, sympy.Subs, sympy.DiracDelta):
        raise NoRuleError(f"SymPy knows no derivative of {formula}: write the function by known ones")
    return slope


def _elementwise_vjp(g: Tensor, result: Tensor, *inputs: Tensor, formula: sympy.Expr) -> tuple[Tensor, ...]:
    return back_by_slopes(g, _partials(inputs, formula), result, inputs)


def _elementwise_notation(p: Any, node: Tensor) -> Written:
    inputs = [fitted(p, node, x, Binding.OR) for x in node.inputs]
    bound = ARGUMENTS[: len(inputs)]
    letters = p.index_names(node, node.params["formula"], bound)
    body = p.scalar(node.params["formula"].xreplace(dict(zip(bound, letters, strict=True))))
    if p.code:
        rule = row(Code(f"lambda {', '.join(map(str, letters))}: "), body)
        return source("elementwise", rule, *inputs), Binding.ATOM
    rule = row(commas(map(p.scalar, letters)), Sign("↦", "relation"), body)
    return row(Function(Fence(rule, "[", "]")), Fence(commas(inputs))), Binding.ATOM


elementwise_op = Operation(
    "elementwise",
    shape=lambda *inputs, formula: broadcast("elementwise", *inputs),
    entry=_elementwise_entry,
    vjp=_elementwise_vjp,
    jvp=lambda tangents, result, *inputs, formula: product_rule(tangents, _partials(inputs, formula), result.shape),
    numpy=lambda code, node, *inputs: code.elementwise(node, inputs),
    notation=_elementwise_notation,
    reason="chain rule, entry by entry",
    broadcasts=True,
    nonsmooth="a given function is taken to be differentiable where SymPy differentiates it",
)


def elementwise(function: Any, *inputs: Any) -> Tensor:
    """Any SymPy scalar function, entry by entry: ``y[i, j] = f(x[i, j], ...)``, with broadcasting.

    ``function`` is a ``sympy.Lambda`` of as many arguments as there are inputs. Raises OperandError otherwise.

    >>> import sympy, symattn as sa
    >>> u = sympy.Symbol("u")
    >>> x = sa.tensor("x", "n")
    >>> sa.elementwise(sympy.Lambda(u, u * sympy.atan(u)), x).shape
    (n,)
    """
    operands = tuple(map(as_tensor, inputs))
    if not isinstance(function, sympy.Lambda) or len(function.variables) != len(operands) or not operands:
        raise OperandError(f"elementwise takes a sympy.Lambda and one input an argument, not {described(function)}")
    if len(operands) > len(ARGUMENTS):
        raise OperandError(f"elementwise takes at most {len(ARGUMENTS)} inputs")
    body = as_scalar(function(*ARGUMENTS[: len(operands)]))
    without_piecewise(body)  # which must have a value everywhere
    if body.has(sympy.Indexed, sympy.S.NegativeInfinity):
        raise OperandError(f"the function {function} holds a tensor's entry or an infinity")
    return elementwise_op(*operands, formula=plainly_joined(body))
