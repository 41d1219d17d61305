"""Operations that users declare: an entry formula is enough, and what else is given is held against it."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from .codegen.check import compare, sample_point
from .codegen.from_entry import entry_code, function_code
from .codegen.function import NumPyFunction
from .codegen.reference import values
from .errors import EvaluationError, NoRuleError, OperandError, ShapeError
from .naming import check_name
from .operation import Operation
from .ops import RECORDS
from .ops.arithmetic import sum_of
from .ops.broadcasting import unbroadcast
from .ops.contraction import einsum_of
from .ops.leaves import as_tensor, variable, zeros
from .ops.notation import Binding, function
from .signature import Signature, check_declared, derivative_formula, formula_entry, user_formula
from .sizes import as_shape
from .tensor import Tensor

_declared: weakref.WeakValueDictionary[Any, Declared] = weakref.WeakValueDictionary()
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, eq=False)
class Record(Operation):
    """The record of a declared operation, or of its slopes; ``origin`` makes it again where it is unpickled."""

    slopes: tuple[Callable[[], Record], ...] = ()
    origin: Callable[[], Any] = field(kw_only=True)

    def __reduce__(self) -> Any:
        return self.origin()


class Declared:
    """A declared operation: call it on tensors. The same declaration is the same operation, also when unpickled."""

    def __init__(self, signature: Signature, declaration: Mapping[str, Any]) -> None:
        self.signature, self.declaration = signature, declaration
        self.__name__ = declaration["name"]
        self.given = tuple(what for what in ("vjp", "jvp", "numpy") if declaration[what])
        self.record = self._record()

    def __call__(self, *inputs: Any) -> Tensor:
        return self.record(*map(as_tensor, inputs))

    def _record(self) -> Record:
        name, entry, vjp, jvp, numpy, latex, reason = (
            self.declaration[key] for key in ("name", "entry", "vjp", "jvp", "numpy", "latex", "reason")
        )
        signature = self.signature
        formula = user_formula(name, signature, entry)
        check_declared(signature, formula)
        slopes = tuple(_slope(name, signature, formula, k, self._reduced) for k in range(len(signature.inputs)))
        return Record(
            name,
            shape=signature.shape,
            entry=formula_entry(signature, formula),
            vjp=_given_vjp(signature, vjp) if vjp else _derived_vjp(signature, slopes),
            jvp=_given_jvp(jvp) if jvp else _derived_jvp(signature, slopes),
            numpy=function_code(name, numpy) if numpy else entry_code(signature, formula),
            notation=function(name) if latex is None else _template(signature, name, latex),
            reason=reason or f"derivative of {name}",
            slopes=slopes,
            origin=self._reduced,
        )

    def _reduced(self, *path: int) -> Any:
        return _unpickled, (self, path)

    def __copy__(self) -> Declared:
        return self

    def __deepcopy__(self, memo: Any) -> Declared:
        return self

    def __reduce__(self) -> Any:
        for what, given in self.declaration.items():
            if callable(given) and not _is_importable(given):
                raise OperandError(
                    f"the declared operation {self.__name__} is not pickled: {what}= is {given!r}, which cannot be "
                    "imported by its name; write it by def at the top of a module"
                )
        return _again, (dict(self.declaration),)

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
    zero) and ``jvp(tangents, result, x, y, ...)`` the tangent (an input that does not move has a tangent of zeros),
    in symattn's operations, with axes counted from the end. ``numpy`` is a function of arrays with loop axes in
    front, and ``latex`` a template such as ``r"\phi\left({0}\right)"``. Raises NamingError, OperandError and
    ShapeError for what cannot be used.

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
    declaration = {
        "name": name, "shape": shape, "entry": entry, "vjp": vjp, "jvp": jvp, "numpy": numpy, "latex": latex,
        "reason": reason,
    }  # fmt: skip
    key = tuple(value if isinstance(value, str) else id(value) for value in declaration.values())
    found = _declared.get(key)
    if found is None:
        _declared[key] = found = Declared(signature, declaration)
    return found


def _again(declaration: Mapping[str, Any]) -> Declared:
    return operation(**declaration)


def _unpickled(declared: Declared, path: Sequence[int]) -> Record:
    """The record of a declared operation, or of a slope of a slope ... of it."""
    record = declared.record
    for k in path:
        record = record.slopes[k]()
    return record


def _is_importable(function: Any) -> bool:
    """Whether a function is found under its module and its name."""
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in getattr(function, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is function


def _template(signature: Signature, name: str, latex: Any) -> Any:
    places = re.findall(r"\{(\d+)\}", latex) if isinstance(latex, str) else None
    braces = re.sub(r"\\.", "", str(latex))  # without those written out as \{ and \}
    unbalanced = braces.count("{") != braces.count("}")
    if places is None or unbalanced or any(int(k) >= len(signature.inputs) for k in places):
        raise OperandError(f"latex= of operation {name!r} is a template of its inputs {{0}}, {{1}}, ..., not {latex!r}")
    plain = function(name)

    def notation(p: Any, node: Tensor) -> Any:
        if not p.latex:
            return plain(p, node)
        inputs = [p.operand(x, Binding.OR) for x in node.inputs]
        written = re.sub(r"\{(\d+)\}", lambda place: inputs[int(place[1])], latex)
        return f"{{{written}}}", Binding.ATOM

    return notation


def _given_vjp(signature: Signature, vjp: Callable[..., Any]) -> Callable[..., Any]:
    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> tuple[Tensor | None, ...]:
        parts = vjp(g, y, *inputs)
        parts = parts if isinstance(parts, (tuple, list)) else (parts,)
        if len(parts) != len(inputs):
            raise ShapeError(f"the vjp of {y.op.name} gave {len(parts)} cotangents for {len(inputs)} inputs")
        return tuple(
            None if part is None else _summed_to(x, as_tensor(part), y, signature, k)
            for k, (part, x) in enumerate(zip(parts, inputs, strict=True))
        )

    return rule


def _summed_to(x: Tensor, part: Tensor, y: Tensor, signature: Signature, k: int) -> Tensor:
    """The cotangent of input k, summed over the loop axes that the input does not have."""
    own = len(signature.inputs[k])
    loops = y.shape[: y.rank - len(signature.output)]
    return unbroadcast(part, x.shape, loops + x.shape[x.rank - own :], own)


def _given_jvp(jvp: Callable[..., Any]) -> Callable[..., Any]:
    def rule(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor) -> Tensor:
        given = tuple(zeros(*x.shape) if t is None else t for t, x in zip(tangents, inputs, strict=True))
        moved = jvp(given, y, *inputs)
        if not isinstance(moved, Tensor):
            raise OperandError(f"the jvp of {y.op.name} gave {moved!r}, not a tensor")
        return moved

    return rule


def _slope(name: str, signature: Signature, formula: Any, k: int, origin: Callable[..., Any]) -> Callable[[], Record]:
    """The operation of all derivatives by input k: output axes, then input axes. Made when it is needed."""
    own = partial(origin, k)

    @cache
    def make() -> Record:
        extended, slope, called = signature.differentiated(k), derivative_formula(formula, k), f"{name}_slope{k + 1}"
        further = tuple(_slope(called, extended, slope, j, own) for j in range(len(signature.inputs)))
        return Record(
            called,
            shape=extended.shape,
            entry=formula_entry(extended, slope),
            vjp=_derived_vjp(extended, further),
            jvp=_derived_jvp(extended, further),
            numpy=entry_code(extended, slope),
            notation=function(called),
            reason=f"derivative of {called}",
            slopes=further,
            origin=own,
        )

    return make


def _specs(signature: Signature, k: int) -> tuple[str, str]:
    """Labels for the output axes and for those of input k."""
    out, own = len(signature.output), len(signature.inputs[k])
    if out + own > len(_LETTERS):
        raise NoRuleError("an operation of so many axes has no derived derivative: give vjp and jvp")
    return _LETTERS[:out], _LETTERS[out : out + own]


def _derived_vjp(signature: Signature, slopes: Sequence[Callable[[], Record]]) -> Callable[..., Any]:
    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        parts = []
        for k, x in enumerate(inputs):
            out, own = _specs(signature, k)
            part = einsum_of([g, slopes[k]()(*inputs)], ((out, out + own), own))
            parts.append(_summed_to(x, part, y, signature, k))
        return tuple(parts)

    return rule


def _derived_jvp(signature: Signature, slopes: Sequence[Callable[[], Record]]) -> Callable[..., Any]:
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

    The vjp and the jvp are compared with derivatives of the entries, at two generic points, also for a batch of
    cotangents and with leading axes on all inputs or on one. The NumPy is compared with the entries; it must treat
    axes in front as a loop, leave its arguments as they are and keep float32. Raises EvaluationError with the entry
    that differs, and OperandError for what is not a declared operation.

    >>> import symattn as sa
    >>> square = sa.operation("square", shape="n -> n", entry=lambda i, x: x[i] ** 2, vjp=lambda g, y, x: 3 * x * g)
    >>> sa.verify(square)
    Traceback (most recent call last):
    symattn.errors.EvaluationError: vjp of square by x1 at n = 4: entry [0] is -0.202..., but -0.134... is right ...
    """
    if not isinstance(op, Declared):
        known = f"; {op.name} is symattn's own and tested with it" if getattr(op, "name", None) in RECORDS else ""
        raise OperandError(f"verify takes what sa.operation returned, not {op!r}{known}")
    name = op.record.name
    for leads in _variants(len(op.signature.inputs)):
        inputs = tuple(
            variable(name=f"x{k + 1}", shape=as_shape((*lead, *sizes)), hypotheses=())
            for k, (lead, sizes) in enumerate(zip(leads, op.signature.inputs, strict=True))
        )
        y = op(*inputs)
        try:
            for seed in (0, 1):
                _verify_rules(op, y, inputs, seed)
            _verify_numpy(op, y, inputs)
            NumPyFunction(inputs, [y], False).check()
        except (IndexError, KeyError) as problem:
            raise EvaluationError(f"the entry formula of {name} cannot be evaluated: {problem}") from None
    lines = [f"{name}: {what} equals the derivative of the entries" for what in ("vjp", "jvp") if what in op.given]
    return "\n".join([*lines, f"{name}: NumPy equals the entries"])


def _variants(count: int) -> list[tuple[tuple[int, ...], ...]]:
    """Extra leading axes for the inputs: none, one for all, and one for each input alone."""
    alone = [tuple((2,) if j == k else () for j in range(count)) for k in range(count)] if count > 1 else []
    return [((),) * count, ((2,),) * count, *alone]


def _verify_rules(op: Declared, y: Tensor, inputs: Sequence[Tensor], seed: int) -> None:
    """The given vjp and jvp against derivatives of the entries."""
    if "vjp" in op.given:
        _verify_vjp(op, y, inputs, seed)
    if "jvp" in op.given:
        _verify_jvp(op, y, inputs, seed)


def _jacobians(op: Declared, y: Tensor, inputs: Sequence[Tensor], point: Any) -> list[Any]:
    """The derivative of the entries by each input, by complex step where they allow it, else by differences."""
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
    """Each tangent alone, then all of them together."""
    tangents = tuple(variable(name=f"t{k + 1}", shape=x.shape, hypotheses=()) for k, x in enumerate(inputs))
    point = sample_point([y], [*inputs, *tangents], seed)
    pairs = zip(tangents, _jacobians(op, y, inputs, point), strict=True)
    moves = [np.tensordot(point.arrays[t], jacobian, t.rank) for t, jacobian in pairs]
    assert op.record.jvp is not None
    for k, want in [*enumerate(moves), (None, sum(moves))]:
        moved = op.record.jvp(tuple(t if k in (j, None) else None for j, t in enumerate(tangents)), y, *inputs)
        by = "all inputs" if k is None else str(inputs[k].name)
        compare(f"jvp of {op.record.name} by {by}", np.asarray(_run(moved, point)), np.asarray(want), 1e-6, point)


def _verify_numpy(op: Declared, y: Tensor, inputs: Sequence[Tensor]) -> None:
    """Axes in front of the declared ones are a loop, arguments stay as they are, and float32 stays float32."""
    point = sample_point([y], inputs, 2)
    f = NumPyFunction(list(inputs), [y], False)
    stacked = [np.multiply.outer(np.array([1.0, 0.9]), point.arrays[x]) for x in inputs]
    for x in stacked:
        x.flags.writeable = False
    keywords = {s.name: point.sizes.get(s, point.scalars.get(s)) for s in f.plan.keywords}
    try:
        got = np.asarray(f(*stacked, **keywords))
    except ValueError as problem:
        raise EvaluationError(
            f"the NumPy of {op.record.name} fails on read-only arrays with a loop axis: {problem}"
        ) from None
    for k in range(2):
        want = np.asarray(f(*(x[k] for x in stacked), **keywords))
        compare(f"NumPy of {op.record.name} under a loop axis", got[k], want, 1e-9, point)
    narrow = np.asarray(f(*(x.astype(np.float32) for x in stacked), **keywords))
    if narrow.dtype != np.float32:
        raise EvaluationError(f"the NumPy of {op.record.name} gives {narrow.dtype} for float32 arrays")
