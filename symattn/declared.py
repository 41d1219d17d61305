"""Operations that users declare: an entry formula is enough, and what else is given is held against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .codegen.check import compare, sample_point
from .codegen.from_entry import entry_code, function_code
from .codegen.function import NumPyFunction
from .codegen.reference import values
from .errors import NoRuleError, OperandError, ShapeError
from .naming import check_name
from .operation import Operation
from .ops import RECORDS
from .ops.arithmetic import sum_of
from .ops.broadcasting import unbroadcast
from .ops.contraction import einsum_of
from .ops.leaves import as_tensor, variable
from .ops.notation import Binding, function
from .signature import Signature, derivative_formula, formula_entry, user_formula
from .sizes import as_shape
from .tensor import Tensor

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Declared:
    """A declared operation: call it on tensors."""

    def __init__(self, record: Operation, signature: Signature, given: Sequence[str]) -> None:
        self.record, self.signature, self.given = record, signature, tuple(given)
        self.__name__ = record.name

    def __call__(self, *inputs: Any) -> Tensor:
        return self.record(*map(as_tensor, inputs))

    def __repr__(self) -> str:
        return f"<declared operation {self.record.name}: {self.signature}>"


def operation(
    name: str,
    *,
    shape: str,
    entry: Callable[..., Any],
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    numpy: Callable[..., Any] | None = None,
    latex: str | None = None,
    reason: str | None = None,
) -> Declared:
    r"""Declare an operation by its entry formula; derivatives, NumPy and LaTeX are derived where they are not given.

    ``shape`` names the axes, as in ``"T d, S d -> T S"`` or ``"n -> n"`` or ``"n ->"``; axes further left broadcast.
    ``entry(index, x, y, ...)`` is one entry of the result: ``index`` a tuple of SymPy indices, ``x[i, j]`` an entry
    of an input and ``x.shape`` its sizes. ``vjp(g, result, x, y, ...)`` gives one cotangent an input (None for
    zero) and ``jvp(tangents, result, x, y, ...)`` a tangent, in symattn's operations, with axes counted from the
    end. ``numpy`` is a function of arrays with loop axes in front, and ``latex`` a template such as
    ``r"\phi\left({0}\right)"``. Raises NamingError, OperandError and ShapeError for what cannot be used.

    >>> import sympy, symattn as sa
    >>> k = sympy.Symbol("k", integer=True)
    >>> softmax1 = sa.operation(
    ...     "softmax1",
    ...     shape="n -> n",
    ...     entry=lambda index, z: sympy.exp(z[index]) / (1 + sympy.Sum(sympy.exp(z[k]), (k, 0, z.shape[0] - 1))),
    ...     vjp=lambda g, p, z: p * (g - sa.sum(p * g, -1, keepdims=True)),
    ... )
    >>> print(sa.verify(softmax1))
    softmax1: vjp equals the derivative of the entries
    softmax1: NumPy equals the entries
    >>> z = sa.tensor("z", "n")
    >>> print(sa.gradient(softmax1(z), z))
    dz = O * (dO - rowsum(O * dO))  # derivative of softmax1
    O = softmax1(z)                 # where
    """
    check_name(name)
    signature = Signature(shape)
    for what, given in (("entry", entry), ("vjp", vjp), ("jvp", jvp), ("numpy", numpy)):
        if not callable(given) and (what == "entry" or given is not None):
            raise OperandError(f"{what}= of operation {name!r} is a function, not {given!r}")
    formula = user_formula(name, signature, entry)
    why = reason or f"derivative of {name}"
    slopes = [_slope(name, signature, formula, k) for k in range(len(signature.inputs))]
    record = Operation(
        name,
        shape=signature.shape,
        entry=formula_entry(signature, formula),
        vjp=_given_vjp(vjp) if vjp else _derived_vjp(signature, slopes),
        jvp=(lambda tangents, y, *inputs: jvp(tangents, y, *inputs)) if jvp else _derived_jvp(signature, slopes),
        numpy=function_code(name, numpy) if numpy else entry_code(signature, formula),
        notation=_template(name, latex) if latex else function(name),
        reason=why,
    )
    return Declared(record, signature, [w for w, g in (("vjp", vjp), ("jvp", jvp), ("numpy", numpy)) if g])


def _template(name: str, latex: str) -> Any:
    plain = function(name)

    def notation(p: Any, node: Tensor) -> Any:
        if not p.latex:
            return plain(p, node)
        written = latex
        for k, x in enumerate(node.inputs):
            written = written.replace("{%d}" % k, p.operand(x, Binding.OR))  # noqa: UP031
        return f"{{{written}}}", Binding.ATOM

    return notation


def _given_vjp(vjp: Callable[..., Any]) -> Callable[..., Any]:
    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> tuple[Tensor | None, ...]:
        parts = vjp(g, y, *inputs)
        parts = parts if isinstance(parts, (tuple, list)) else (parts,)
        if len(parts) != len(inputs):
            raise ShapeError(f"the vjp of {y.op.name} gave {len(parts)} cotangents for {len(inputs)} inputs")
        return tuple(None if part is None else as_tensor(part) for part in parts)

    return rule


def _slope(name: str, signature: Signature, formula: Any, k: int) -> Callable[[], Operation]:
    """The operation of all derivatives by input k: output axes, then input axes. Made when it is needed."""

    def make() -> Operation:
        extended, slope, called = signature.differentiated(k), derivative_formula(formula, k), f"{name}_slope{k + 1}"
        further = [_slope(called, extended, slope, j) for j in range(len(signature.inputs))]
        return Operation(
            called,
            shape=extended.shape,
            entry=formula_entry(extended, slope),
            vjp=_derived_vjp(extended, further),
            jvp=_derived_jvp(extended, further),
            numpy=entry_code(extended, slope),
            notation=function(called),
            reason=f"derivative of {called}",
        )

    made: list[Operation] = []

    def once() -> Operation:
        if not made:
            made.append(make())
        return made[0]

    return once


def _specs(signature: Signature, k: int) -> tuple[str, str]:
    """Labels for the output axes and for those of input k."""
    out, own = len(signature.output), len(signature.inputs[k])
    if out + own > len(_LETTERS):
        raise NoRuleError("an operation of so many axes has no derived derivative: give vjp and jvp")
    return _LETTERS[:out], _LETTERS[out : out + own]


def _derived_vjp(signature: Signature, slopes: Sequence[Callable[[], Operation]]) -> Callable[..., Any]:
    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        parts = []
        for k, x in enumerate(inputs):
            out, own = _specs(signature, k)
            part = einsum_of([g, slopes[k]()(*inputs)], ((out, out + own), own))
            loops = y.shape[: y.rank - len(out)]
            parts.append(unbroadcast(part, x.shape, loops + x.shape[x.rank - len(own) :], len(own)))
        return tuple(parts)

    return rule


def _derived_jvp(signature: Signature, slopes: Sequence[Callable[[], Operation]]) -> Callable[..., Any]:
    def rule(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor) -> Tensor:
        terms = []
        for k, t in enumerate(tangents):
            if t is not None:
                out, own = _specs(signature, k)
                terms.append(einsum_of([slopes[k]()(*inputs), t], ((out + own, own), out)))
        return sum_of(terms)

    return rule


def verify(op: Any) -> str:
    """Hold what a declared operation was given against its entry formula, and say what agrees.

    The vjp and the jvp are compared with derivatives of the entries, also for a batch of cotangents, and the NumPy
    with the entries, at two generic size assignments. Raises EvaluationError with the entry that differs, and
    OperandError for what is not a declared operation.

    >>> import symattn as sa
    >>> square = sa.operation("square", shape="n -> n", entry=lambda i, x: x[i] ** 2, vjp=lambda g, y, x: 3 * x * g)
    >>> sa.verify(square)
    Traceback (most recent call last):
    symattn.errors.EvaluationError: vjp of square by x1 at n = 4: entry [0] is -0.202..., but -0.134... is right ...
    """
    if not isinstance(op, Declared):
        known = f"; {op.name} is symattn's own and tested with it" if getattr(op, "name", None) in RECORDS else ""
        raise OperandError(f"verify takes what sa.operation returned, not {op!r}{known}")
    inputs = tuple(
        variable(name=f"x{k + 1}", shape=as_shape(sizes), hypotheses=()) for k, sizes in enumerate(op.signature.inputs)
    )
    y = op(*inputs)
    checks = {"vjp": _verify_vjp, "jvp": _verify_jvp}
    lines = []
    for what, check in checks.items():
        if what in op.given:
            for seed in (0, 1):
                check(op, y, inputs, seed)
            lines.append(f"{op.record.name}: {what} equals the derivative of the entries")
    NumPyFunction(inputs, [y], False).check()
    _verify_loops(op, y, inputs)
    return "\n".join([*lines, f"{op.record.name}: NumPy equals the entries"])


def _jacobians(op: Declared, y: Tensor, inputs: Sequence[Tensor], point: Any) -> list[Any]:
    """The derivative of the entries by each input, by complex step where they allow it, else by differences."""
    import numpy as np

    known = {**point.sizes, **point.scalars}

    def at(k: int, moved: Any) -> Any:
        return values([y], {**point.arrays, inputs[k]: moved}, known)[y]

    found = []
    for k, x in enumerate(inputs):
        columns = []
        for place in np.ndindex(point.arrays[x].shape):
            step = np.zeros(point.arrays[x].shape)
            step[place] = 1.0
            try:
                columns.append(at(k, point.arrays[x] + 1e-30j * step).imag / 1e-30)
            except TypeError:
                up, down = (at(k, point.arrays[x] + h * step) for h in (1e-6, -1e-6))
                columns.append((up - down) / 2e-6)
        found.append(np.array(columns).reshape(*point.arrays[x].shape, *columns[0].shape))
    return found


def _run(x: Tensor, point: Any) -> Any:
    tensors = [t for t in x.tensors if t in point.arrays]
    f = NumPyFunction(tensors, [x], False)
    known = {**point.sizes, **point.scalars}
    return f(*(point.arrays[t] for t in tensors), **{s.name: known[s] for s in f.plan.keywords})


def _verify_vjp(op: Declared, y: Tensor, inputs: Sequence[Tensor], seed: int) -> None:
    import numpy as np

    g = variable(name="g", shape=y.shape, hypotheses=())
    batch = variable(name="gs", shape=as_shape((2,)) + y.shape, hypotheses=())
    point = sample_point([y], [*inputs, g, batch], seed)
    jacobians = _jacobians(op, y, inputs, point)
    for cotangent in (g, batch):
        assert op.record.vjp is not None
        parts = op.record.vjp(cotangent, y, *inputs)
        for x, part, jacobian in zip(inputs, parts, jacobians, strict=True):
            given = point.arrays[cotangent]
            axes = list(range(given.ndim - y.rank, given.ndim))
            want = np.tensordot(given, jacobian, (axes, list(range(jacobian.ndim - y.rank, jacobian.ndim))))
            got = np.zeros(want.shape) if part is None else np.asarray(_run(part, point))
            what = "batched vjp" if cotangent is batch else "vjp"
            compare(f"{what} of {op.record.name} by {x.name}", got, want, 1e-6, point)


def _verify_jvp(op: Declared, y: Tensor, inputs: Sequence[Tensor], seed: int) -> None:
    import numpy as np

    tangents = tuple(variable(name=f"t{k + 1}", shape=x.shape, hypotheses=()) for k, x in enumerate(inputs))
    point = sample_point([y], [*inputs, *tangents], seed)
    for k, jacobian in enumerate(_jacobians(op, y, inputs, point)):
        assert op.record.jvp is not None
        moved = op.record.jvp(tuple(t if j == k else None for j, t in enumerate(tangents)), y, *inputs)
        want = np.tensordot(point.arrays[tangents[k]], jacobian, inputs[k].rank)
        compare(f"jvp of {op.record.name} by {inputs[k].name}", np.asarray(_run(moved, point)), want, 1e-6, point)


def _verify_loops(op: Declared, y: Tensor, inputs: Sequence[Tensor]) -> None:
    """Axes in front of the declared ones are a loop, in NumPy as in the entries."""
    import numpy as np

    point = sample_point([y], inputs, 2)
    f = NumPyFunction(list(inputs), [y], False)
    scale = np.array([1.0, 0.9])
    stacked = [np.multiply.outer(scale, point.arrays[x]) for x in inputs]
    keywords = {s.name: point.sizes.get(s, point.scalars.get(s)) for s in f.plan.keywords}
    got = f(*stacked, **keywords)
    for k in range(2):
        want = np.asarray(f(*(x[k] for x in stacked), **keywords))
        compare(f"NumPy of {op.record.name} under a loop axis", np.asarray(got)[k], want, 1e-9, point)

