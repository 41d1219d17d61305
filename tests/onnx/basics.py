"""Entrywise functions, rows, products and layout: what attention is made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import sympy

import symattn as sa

from .entry import adapter, tensor

alpha, x = sympy.Symbol("alpha", real=True), sa.tensor("x")


@cache
def _of_one(formula: Callable[..., sa.Tensor]) -> Any:
    return sa.lambdify([x], formula(x))


def _entrywise(formula, case):
    """All axes of the array are loop axes; input and output have one name each."""
    (given,), (result,) = case.inputs.values(), case.outputs
    return {result: _of_one(formula)(given)}


ENTRYWISE = {
    **{
        name: getattr(sa, name.lower())
        for name in "Abs Cos Erf Exp Floor Log Relu Sigmoid Sin Softplus Sqrt Tanh".split()
    },
    "Mish": lambda x: x * sa.tanh(sa.softplus(x)),
    "Reciprocal": lambda x: 1 / x,
    "Sign": sa.sign,
    "Softsign": lambda x: x / (1 + sa.abs(x)),
}
for name, formula in ENTRYWISE.items():
    adapter(name, name.lower())(partial(_entrywise, formula))


@cache
def _gelu(approximate: str) -> Any:
    if approximate == "none":
        return sa.lambdify([x], sa.gelu(x))
    inner = sympy.sqrt(2 / sympy.pi) * (x + sympy.Rational("0.044715") * x**3)
    return sa.lambdify([x], x * (1 + sa.tanh(inner)) / 2)


@adapter("Gelu", "gelu")
def gelu(case):
    return {"Y": _gelu(case.attributes["approximate"])(case.inputs["X"])}


@cache
def _elu() -> Any:
    return sa.lambdify([x, alpha], sa.where(x > 0, x, alpha * (sa.exp(sa.minimum(x, 0)) - 1)))


@adapter("Elu", "elu")
def elu(case):
    return {"Y": _elu()(case.inputs["X"], case.attributes["alpha"])}


@cache
def _swish() -> Any:
    return sa.lambdify([x, alpha], x * sa.sigmoid(alpha * x))


@adapter("Swish", "swish")
def swish(case):
    return {"Y": _swish()(case.inputs["X"], case.attributes["alpha"])}


@cache
def _swiglu() -> Any:
    a, b = sa.tensor("A"), sa.tensor("B")
    return sa.lambdify([a, b, alpha], a * sa.sigmoid(alpha * a) * b)


@adapter("SwiGLU", "swiglu")
def swiglu(case):
    return {"Y": _swiglu()(case.inputs["A"], case.inputs["B"], case.attributes["alpha"])}


@cache
def _where(integer: bool) -> Any:
    chosen, a, b = sa.tensor("c", binary=True), *(sa.tensor(name, integer=integer) for name in "XY")
    return sa.lambdify([chosen, a, b], sa.where(chosen, a, b))


@adapter("Where", "where")
def where(case):
    return {
        "output": _where(case.inputs["X"].dtype.kind == "i")(
            case.inputs["condition"], case.inputs["X"], case.inputs["Y"]
        )
    }


@cache
def _softmax(rank: int, axis: int) -> Any:
    z = tensor("z", rank)
    return sa.lambdify([z], sa.softmax(z, axis))


@adapter("Softmax", "softmax")
def softmax(case):
    z = case.inputs["input"]
    return {"output": _softmax(z.ndim, case.attributes["axis"])(z)}


@cache
def _log_softmax(rank: int, axis: int) -> Any:
    z = tensor("z", rank)
    last = sa.attention.log_softmax(sa.moveaxis(z, axis, -1))
    return sa.lambdify([z], sa.moveaxis(last, -1, axis))


@adapter("LogSoftmax", "logsoftmax")
def log_softmax(case):
    z = case.inputs["input"]
    return {"output": _log_softmax(z.ndim, case.attributes["axis"])(z)}


@cache
def _reduced(function: Callable[..., sa.Tensor], rank: int, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    y = tensor("x", rank)
    return sa.lambdify([y], y if axes == () else function(y, axis=axes, keepdims=keepdims))


def _reduce(function, case):
    """Absent or empty axes are all of them, or none of them if the attribute says so."""
    data, axes = case.inputs["data"], tuple(map(int, case.inputs.get("axes", ())))
    if not axes and not case.attributes["noop_with_empty_axes"]:
        axes = None
    return {"reduced": _reduced(function, data.ndim, axes, bool(case.attributes["keepdims"]))(data)}


for name, module, function in (
    ("ReduceLogSumExp", "reduce_log_sum_exp", sa.logsumexp),
    ("ReduceMax", "reducemax", sa.max),
    ("ReduceMean", "reducemean", sa.mean),
    ("ReduceMin", "reducemin", sa.min),
    ("ReduceSum", "reducesum", sa.sum),
):
    adapter(name, module)(partial(_reduce, function))


@cache
def _cumsum(rank: int, axis: int, exclusive: bool, reverse: bool, integer: bool) -> Any:
    y = tensor("x", rank, integer=integer)
    total = sa.cumsum(y, axis, reverse=reverse)
    return sa.lambdify([y], sa.shift(total, 1 if reverse else -1, axis) if exclusive else total)


@adapter("CumSum", "cumsum")
def cumsum(case):
    y, flags = case.inputs["x"], (bool(case.attributes[name]) for name in ("exclusive", "reverse"))
    return {"y": _cumsum(y.ndim, int(case.inputs["axis"]), *flags, y.dtype.kind == "i")(y)}


@cache
def _triangle(upper: bool, diagonal: int) -> Any:
    y = tensor("x", 2, integer=True)
    return sa.lambdify([y], sa.triu(y, diagonal) if upper else sa.tril(y, diagonal))


@adapter("Trilu", "trilu")
def trilu(case):
    return {"output": _triangle(bool(case.attributes["upper"]), int(case.inputs.get("k", 0)))(case.inputs["input"])}


@cache
def _transposed(order: tuple[int, ...]) -> Any:
    y, letters = tensor("x", len(order)), "abcdefgh"[: len(order)]
    return sa.lambdify([y], sa.einsum(f"{letters}->{''.join(letters[k] for k in order)}", y))


@adapter("Transpose", "transpose")
def transpose(case):
    y = case.inputs["data"]
    return {"transposed": _transposed(tuple(case.attributes.get("perm", reversed(range(y.ndim)))))(y)}


@cache
def _concat(count: int, rank: int, axis: int) -> Any:
    axes = [sa.sizes(f"n{k}") for k in range(rank)]
    parts = [
        sa.tensor(f"x{k}", *axes[: axis % rank], sa.sizes(f"m{k}"), *axes[axis % rank + 1 :]) for k in range(count)
    ]
    return sa.lambdify(parts, sa.concat(parts, axis))


@adapter("Concat", "concat")
def concat(case):
    parts = list(case.inputs.values())
    return {"concat_result": _concat(len(parts), parts[0].ndim, case.attributes["axis"])(*parts)}


@cache
def _gather(rank: int, places: int, axis: int) -> Any:
    table, index = tensor("x", rank), sa.tensor("at", *(sa.sizes(f"m{k}") for k in range(places)), integer=True)
    return sa.lambdify([table, index], sa.take(table, index, axis))


@adapter("Gather", "gather")
def gather(case):
    table, index = case.inputs.values()
    return {"output": _gather(table.ndim, index.ndim, case.attributes["axis"])(table, index)}


@cache
def _einsum(equation: str) -> Any:
    """The axes of an ellipsis are loop axes."""
    core = equation.replace("...", "").replace(" ", "")
    operands = core.split("->")[0].split(",")
    factors = [sa.tensor(name, *map(sa.sizes, labels)) for name, labels in zip("xyzw", operands, strict=False)]
    return sa.lambdify(factors, sa.einsum(core, *factors))


@adapter("Einsum", "einsum")
def einsum(case):
    return {"Output": _einsum(case.attributes["equation"])(*case.inputs.values())}


@cache
def _matmul(left: int, right: int) -> Any:
    m, k, n = sa.sizes("m k n")
    a, b = sa.tensor("A", *(m, k)[2 - left :]), sa.tensor("B", *(k, n)[:right])
    return sa.lambdify([a, b], a @ b)


@adapter("MatMul", "matmul")
def matmul(case):
    """Leading axes of matrices are loop axes."""
    a, b = case.inputs["A"], case.inputs["B"]
    return {"Y": _matmul(min(a.ndim, 2), min(b.ndim, 2))(a, b)}


@cache
def _gemm(transposed: tuple[bool, bool], added: tuple[bool, ...] | None) -> Any:
    """``added`` says which axes of C have size 1, which broadcast; None is without C."""
    m, k, n, beta = *sa.sizes("m k n"), sympy.Symbol("beta", real=True)
    a = sa.tensor("A", *((k, m) if transposed[0] else (m, k)))
    b = sa.tensor("B", *((n, k) if transposed[1] else (k, n)))
    product = alpha * ((a.T if transposed[0] else a) @ (b.T if transposed[1] else b))
    if added is None:
        return sa.lambdify([a, b, alpha], product)
    sizes = (m, n)[2 - len(added) :]
    c = sa.tensor("C", *(1 if one else size for one, size in zip(added, sizes, strict=True)))
    return sa.lambdify([a, b, alpha, c, beta], product + beta * c)


@adapter("Gemm", "gemm")
def gemm(case):
    transposed = bool(case.attributes["transA"]), bool(case.attributes["transB"])
    if "C" not in case.inputs:
        return {"Y": _gemm(transposed, None)(case.inputs["A"], case.inputs["B"], case.attributes["alpha"])}
    compiled = _gemm(transposed, tuple(size == 1 for size in case.inputs["C"].shape))
    return {
        "Y": compiled(
            case.inputs["A"], case.inputs["B"], case.attributes["alpha"], case.inputs["C"], case.attributes["beta"]
        )
    }
