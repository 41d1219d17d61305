"""Entrywise functions of one argument: a table, one row a function, and functions given by a SymPy Lambda."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import sympy

from ..core.exact import ARGUMENTS, as_scalar
from ..core.node import Tensor
from ..core.operation import Operation
from ..errors import NoRuleError, OperandError, described
from ..scalars.formulas import choose, compared, plainly_joined, without_piecewise
from .arithmetic import add, back_by_slopes, divide, multiply, negative, power, product_rule, subtract
from .broadcasting import broadcast, broadcast_index
from .leaves import as_tensor, zeros
from .logic import greater
from .notation import Binding, Written, enclosed, function

Entrywise: TypeAlias = Callable[[Any], Tensor]


def _unary(
    name: str,
    formula: Callable[[Any], Any],
    derivative: Callable[[Tensor, Tensor], Tensor],
    numpy: str | Callable[..., str],
    latex: str | tuple[str, str] | None = None,
    **more: Any,
) -> Operation:
    """A row: ``derivative(x, y)`` is f'(x) in our own operations, where y = f(x) may be used by its name."""
    reason = more.pop("reason", f"chain rule, entry by entry, through {name}")
    code = (lambda code, node, x: numpy.format(x)) if isinstance(numpy, str) else numpy
    return Operation(
        name,
        shape=lambda x: x.shape,
        entry=lambda read, index, node: formula(read(0, index)),
        vjp=lambda g, y, x: (multiply(g, derivative(x, y)),),
        jvp=lambda tangents, y, x: multiply(tangents[0], derivative(x, y)),
        numpy=code,
        notation=enclosed(name, *latex) if isinstance(latex, tuple) else function(name, latex),
        reason=reason,
        **more,
    )


def _gelu_derivative(x: Tensor, y: Tensor) -> Tensor:
    density = divide(exp(negative(divide(power(x, 2), 2))), sympy.sqrt(2 * sympy.pi))
    return add(divide(add(1, erf(divide(x, sympy.sqrt(2)))), 2), multiply(x, density))


def _silu_derivative(x: Tensor, y: Tensor) -> Tensor:
    s = sigmoid(x)
    return add(s, multiply(y, subtract(1, s)))


def _sign_entry(x: Any) -> Any:
    below = choose(compared(sympy.Lt, x, 0), sympy.S.NegativeOne, sympy.S.Zero)
    return choose(compared(sympy.Gt, x, 0), sympy.S.One, below)


def _flat(x: Tensor, y: Tensor) -> Tensor:
    return zeros(*x.shape)


exp_op = _unary(
    "exp",
    sympy.exp,
    lambda x, y: y,
    "np.exp({})",
    r"\exp",
    minus_infinity="absorbed",
    bounded="an exponential is positive",
)
log_op = _unary("log", sympy.log, lambda x, y: divide(1, x), "np.log({})", r"\log")
log1p_op = _unary("log1p", lambda x: sympy.log(1 + x), lambda x, y: divide(1, add(1, x)), "np.log1p({})")
tanh_op = _unary(
    "tanh",
    sympy.tanh,
    lambda x, y: subtract(1, power(y, 2)),
    "np.tanh({})",
    r"\tanh",
    bounded="tanh lies between -1 and 1",
)
sigmoid_op = _unary(
    "sigmoid",
    lambda x: 1 / (1 + sympy.exp(-x)),
    lambda x, y: multiply(y, subtract(1, y)),
    lambda code, node, x: code.helper("sigmoid", x),
    r"\sigma",
    bounded="1 / (1 + exp(-x)) with an exponential that is positive",
)
softplus_op = _unary(
    "softplus",
    lambda x: sympy.log(1 + sympy.exp(x)),
    lambda x, y: sigmoid(x),
    lambda code, node, x: code.helper("softplus", x),
)
relu_op = _unary(
    "relu",
    lambda x: choose(compared(sympy.Gt, x, 0), x, sympy.S.Zero),
    lambda x, y: greater(x, 0),
    "np.maximum({}, 0)",
    stays_whole=True,
    nonsmooth="relu is not differentiable at 0; 0 is taken there",
)
gelu_op = _unary(
    "gelu",
    lambda x: x * ((1 + sympy.erf(x / sympy.sqrt(2))) / 2),
    _gelu_derivative,
    lambda code, node, x: code.helper("gelu", x),
)
silu_op = _unary(
    "silu",
    lambda x: x / (1 + sympy.exp(-x)),
    _silu_derivative,
    lambda code, node, x: code.helper("silu", x),
)
sqrt_op = _unary("sqrt", sympy.sqrt, lambda x, y: divide(1, multiply(2, y)), "np.sqrt({})", (r"\sqrt{", "}"))
rsqrt_op = _unary(
    "rsqrt",
    lambda x: 1 / sympy.sqrt(x),
    lambda x, y: multiply(sympy.Rational(-1, 2), power(y, 3)),
    "1 / np.sqrt({})",
)
sin_op = _unary("sin", sympy.sin, lambda x, y: cos(x), "np.sin({})", r"\sin")
cos_op = _unary("cos", sympy.cos, lambda x, y: negative(sin(x)), "np.cos({})", r"\cos")
abs_op = _unary(
    "abs",
    lambda x: choose(compared(sympy.Ge, x, 0), x, -x),
    lambda x, y: sign(x),
    "np.abs({})",
    (r"\left|", r"\right|"),
    nonsmooth="abs is not differentiable at 0; 0 is taken there",
)
sign_op = _unary(
    "sign",
    _sign_entry,
    _flat,
    "np.sign({})",
    stays_whole=True,
    nonsmooth="sign is not differentiable at 0; 0 is taken there",
)
erf_op = _unary(
    "erf",
    sympy.erf,
    lambda x, y: multiply(2 / sympy.sqrt(sympy.pi), exp(negative(power(x, 2)))),
    lambda code, node, x: code.helper("erf", x),
)
floor_op = _unary(
    "floor",
    sympy.floor,
    _flat,
    "np.floor({})",
    (r"\left\lfloor", r"\right\rfloor"),
    nonsmooth="floor is not differentiable at integers; 0 is taken there",
)


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
    inputs = [p.operand(x, Binding.OR) for x in node.inputs]
    bound = ARGUMENTS[: len(inputs)]
    letters = p.index_names(node, node.params["formula"], bound)
    body = p.scalar(node.params["formula"].xreplace(dict(zip(bound, letters, strict=True))))
    if p.latex:
        arrow = ", ".join(map(p.scalar, letters))
        return rf"\left[{arrow} \mapsto {body}\right]\left({', '.join(inputs)}\right)", Binding.ATOM
    return f"elementwise(lambda {', '.join(map(str, letters))}: {body}, {', '.join(inputs)})", Binding.ATOM


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


# --- public spellings ---


def _public(op: Operation, formula: str) -> Entrywise:
    def apply(x: Any) -> Tensor:
        return op(as_tensor(x))

    apply.__name__ = apply.__qualname__ = op.name
    apply.__doc__ = f"""Entry by entry, ``y = {formula}``; the shape stays.

    Raises OperandError for what is not a tensor or a real scalar.{f" {op.nonsmooth}." if op.nonsmooth else ""}

    >>> import symattn as sa
    >>> print(sa.{op.name}(sa.tensor("x", "n")))
    {op.name}(x)
    """
    return apply


exp: Entrywise = _public(exp_op, "exp(x)")
log: Entrywise = _public(log_op, "log(x)")
log1p: Entrywise = _public(log1p_op, "log(1 + x)")
tanh: Entrywise = _public(tanh_op, "tanh(x)")
sigmoid: Entrywise = _public(sigmoid_op, "1 / (1 + exp(-x))")
softplus: Entrywise = _public(softplus_op, "log(1 + exp(x))")
relu: Entrywise = _public(relu_op, "x where x > 0, else 0")
gelu: Entrywise = _public(gelu_op, "x * (1 + erf(x / sqrt(2))) / 2")
silu: Entrywise = _public(silu_op, "x * sigmoid(x)")
sqrt: Entrywise = _public(sqrt_op, "sqrt(x)")
rsqrt: Entrywise = _public(rsqrt_op, "1 / sqrt(x)")
sin: Entrywise = _public(sin_op, "sin(x)")
cos: Entrywise = _public(cos_op, "cos(x)")
abs: Entrywise = _public(abs_op, "|x|")
sign: Entrywise = _public(sign_op, "1, 0 or -1 by the sign of x")
erf: Entrywise = _public(erf_op, "2 / sqrt(pi) * integral of exp(-t**2) from 0 to x")
floor: Entrywise = _public(floor_op, "the largest integer <= x")
