"""Declared operations held against their entry formulas: derivatives and NumPy at points, what is stated by proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import sympy

from ..codegen.check import Point, compare, sample_point
from ..codegen.function import NumPyFunction
from ..core.node import Tensor
from ..core.sizes import as_shape
from ..errors import EvaluationError, OperandError, described
from ..ops import RECORDS
from ..ops.arithmetic import add, multiply
from ..ops.leaves import ones, variable
from ..ops.logic import greater, where
from ..ops.pointwise import elementwise, exp
from ..ops.rows import sum as row_sums
from ..proof.claims import Claim, eq, le, lt
from ..proof.engine import prove
from .facts import PROVED
from .operation import Declared
from .signature import is_smooth


def verify(op: Any) -> str:
    """Hold what a declared operation was given against its entry formula, and say what agrees.

    The vjp and the jvp are compared with derivatives of the entries, at two generic points, also for a batch of
    cotangents and with leading axes on all inputs or on one. The NumPy is compared with the entries; it must treat
    axes in front as a loop, leave its arguments as they are and keep float32, also where an input holds -oo that it
    may hold. ``rows``, ``range`` and ``monotone`` are proved, or it is said that proofs list them. Raises
    EvaluationError with the entry that differs or the point at which a statement is false, and OperandError for what
    is not a declared operation.

    >>> import symattn as sa
    >>> square = sa.operation("square", shape="n -> n", entry=lambda i, x: x[i] ** 2, vjp=lambda g, y, x: 3 * x * g)
    >>> sa.verify(square)
    Traceback (most recent call last):
    symattn.errors.EvaluationError: vjp of square by x1 at n = 4: entry [0] is -0.202..., but -0.134... is right ...
    """
    if not isinstance(op, Declared):
        known = f"; {op.name} is symattn's own and tested with it" if getattr(op, "name", None) in RECORDS else ""
        raise OperandError(f"verify takes what sa.operation returned, not {described(op)}{known}")
    name = op.record.name
    with np.errstate(all="ignore"):  # a choice works out both of its sides
        for leads in _variants(len(op.signature.inputs)):
            _verify_at(op, _inputs(op, leads))
        _verify_minus_infinity(op)
    lines = [f"{name}: {what} equals the derivative of the entries" for what in ("vjp", "jvp") if what in op.given]
    return "\n".join([*lines, f"{name}: NumPy equals the entries", *_verify_statements(op)])


def _verify_at(op: Declared, inputs: tuple[Tensor, ...]) -> None:
    """The derivatives and the NumPy on some inputs."""
    y = op(*inputs)
    try:
        _verify_values(op, y, inputs)
        for what, check in (("vjp", _verify_vjp), ("jvp", _verify_jvp)):
            for seed in (0, 1) if what in op.given else ():
                check(op, y, inputs, seed)
        _verify_numpy(op, y, inputs)
        NumPyFunction(inputs, [y], False).check()
    except (IndexError, KeyError) as problem:
        raise EvaluationError(f"the entry formula of {op.record.name} cannot be evaluated: {problem}") from None


def _verify_values(op: Declared, y: Tensor, inputs: Sequence[Tensor]) -> None:
    """All entries have values at some point."""
    try:
        sample_point([y], inputs, 0)
    except EvaluationError as problem:
        told = f"the entry formula of {op.record.name} may have no value at some index"
        raise EvaluationError(f"{problem}: {told}") from None


def _inputs(op: Declared, leads: Sequence[tuple[int, ...]]) -> tuple[Tensor, ...]:
    """Named inputs with some axes in front."""
    return tuple(
        variable(name=f"x{k + 1}", shape=as_shape((*lead, *sizes)), hypotheses=("binary",) * (k in op.record.masks))
        for k, (lead, sizes) in enumerate(zip(leads, op.signature.inputs, strict=True))
    )


def _variants(count: int) -> list[tuple[tuple[int, ...], ...]]:
    """Extra leading axes for the inputs: none, one for all, and one for each input alone."""
    alone = [tuple((2,) if j == k else () for j in range(count)) for k in range(count)] if count > 1 else []
    return [((),) * count, ((2,),) * count, *alone]


def _jacobians(op: Declared, y: Tensor, inputs: Sequence[Tensor], point: Point) -> list[Any]:
    """The derivative of the entries by each input, by complex step where they allow it, else by differences."""

    def at(k: int, moved: Any) -> Any:
        return point.with_arrays({inputs[k]: moved}).values([y])[y]

    shape = point.values([y])[y].shape
    found = []
    for k, x in enumerate(inputs):
        if k in op.record.masks:
            found.append(np.zeros(point.arrays[x].shape + shape))
            continue
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


def _run(x: Tensor, point: Point) -> np.ndarray:
    return point.called(NumPyFunction([t for t in x.tensors if t in point.arrays], [x], False))[0]


def _verify_vjp(op: Declared, y: Tensor, inputs: Sequence[Tensor], seed: int) -> None:
    """One cotangent, then a batch of two, against the derivatives of the entries."""
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
            got = np.zeros(want.shape) if part is None else _run(part, point)
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
        compare(f"jvp of {op.record.name} by {by}", _run(moved, point), np.asarray(want), 1e-6, point)


def _verify_numpy(op: Declared, y: Tensor, inputs: Sequence[Tensor]) -> None:
    """Axes in front of the declared ones are a loop, arguments stay as they are, and float32 stays float32."""
    point = sample_point([y], inputs, 2)
    f = NumPyFunction(list(inputs), [y], False)
    stacked = [
        np.stack([point.arrays[x]] * 2) if k in op.record.masks else np.multiply.outer([1.0, 0.9], point.arrays[x])
        for k, x in enumerate(inputs)
    ]
    for x in stacked:
        x.flags.writeable = False
    keywords = point.keywords(f)
    try:
        got = np.asarray(f(*stacked, **keywords))
    except ValueError as problem:
        raise EvaluationError(
            f"the NumPy of {op.record.name} fails on read-only arrays with a loop axis: {problem}"
        ) from None
    for k in range(2):
        want = np.asarray(f(*(x[k] for x in stacked), **keywords))
        compare(f"NumPy of {op.record.name} under a loop axis", got[k], want, 1e-9, point)
    narrow = np.asarray(f(*(x if x.dtype == bool else x.astype(np.float32) for x in stacked), **keywords))
    if op.record.kind == "real" and narrow.dtype != np.float32:
        raise EvaluationError(f"the NumPy of {op.record.name} gives {narrow.dtype} for float32 arrays")


# --- what is stated ---


def _hidden(op: Declared, inputs: Sequence[Tensor]) -> list[tuple[Tensor, tuple[Tensor, ...]]]:
    """A mask, and the inputs where it hides entries of one of them; for each input that is no mask itself."""
    found = []
    for k, x in enumerate(inputs):
        if k not in op.record.masks and op.record.minus_infinity != "refused":
            keep = variable(name="keep", shape=x.shape, hypotheses=("binary",))
            found.append((keep, (*inputs[:k], add(x, where(keep, 0, -sympy.oo)), *inputs[k + 1 :])))
    return found


def _verify_minus_infinity(op: Declared) -> None:
    """The NumPy equals the entries where -oo hides some entries of an input, and is finite where it hides all."""
    record, inputs = op.record, _inputs(op, ((),) * len(op.signature.inputs))
    for keep, hidden in _hidden(op, inputs):
        y = op(*hidden)
        y = exp(y) if y.holds_minus_infinity else y
        f = NumPyFunction([*inputs, keep], [y], False)
        told = f"minus_infinity={record.minus_infinity!r} of {record.name}"
        try:
            f.check()
        except EvaluationError as problem:
            raise EvaluationError(f"{told}: {problem}") from None
        point = sample_point([], [*inputs, keep], 0)
        (empty,) = point.with_arrays({keep: np.zeros_like(point.arrays[keep])}).called(f)
        if not np.isfinite(empty).all():
            raise EvaluationError(f"{told}: where every entry of an input is -oo, the result is not finite")


def _verify_statements(op: Declared) -> list[str]:
    """Prove ``rows``, ``range`` and ``monotone`` from the entry formula alone."""
    lines, record = [], op.record
    for what in PROVED:
        if not getattr(record, what):
            continue
        verdicts = [(prove(said.claim, given=said.given), said.instead) for said in _claims(op, what)]
        for verdict, _ in verdicts:
            if verdict.status == "refuted":
                raise EvaluationError(f"{what}={getattr(record, what)!r} of {record.name} is false: {verdict}")
        if all(verdict or (instead is not None and prove(instead)) for verdict, instead in verdicts):
            record.assumed.discard(what)
            lines.append(f"{record.name}: {what} is proved")
        else:
            lines.append(f"{record.name}: {what} is not proved, and every proof that uses it says so")
    return lines


class _Said(NamedTuple):
    """What a statement says as a claim, under what is given, and a claim that would show it too."""

    claim: Claim
    instead: Claim | None = None
    given: tuple[Claim, ...] = ()


def _claims(op: Declared, what: str) -> list[_Said]:
    """What a statement says of the entries, of an operation that is known by them alone."""
    bare = replace(op.record, rows="", range=None, monotone="", assumed=set())
    inputs = _inputs(op, ((),) * len(op.signature.inputs))
    if what == "monotone":
        return [_order(op, bare)]
    every = [bare(*inputs), *(bare(*hidden) for _, hidden in _hidden(op, inputs))]
    if what == "range":
        low, high = op.record.range or (-sympy.oo, sympy.oo)
        lower = [_Said(le(low, y)) for y in every if low != -sympy.oo]
        return [*lower, *(_Said(le(y, high)) for y in every if high != sympy.oo)]
    whole = bare(*(greater(ones(*x.shape), 0) if k in op.record.masks else x for k, x in enumerate(inputs)))
    sign = lt if op.record.rows == "positive probabilities" else le
    totals = [row_sums(y, -1) for y in every]
    at_most = [_Said(le(total, 1), eq(multiply(total, total), total)) for total in totals]  # which is then 0 or 1
    return [_Said(sign(0, whole)), _Said(eq(row_sums(whole, -1), 1)), *(_Said(le(0, y)) for y in every), *at_most]


def _order(op: Declared, bare: Any) -> _Said:
    """That values are in the order of the arguments, or by the sign of the derivative where that is everywhere."""
    strictly, falls = (op.record.monotone.startswith("strictly"), op.record.monotone.endswith("decreasing"))
    x, y = (variable(name=name, shape=as_shape(op.signature.output), hypotheses=()) for name in ("x", "y"))
    relation = lt if strictly else le
    values = (bare(y), bare(x)) if falls else (bare(x), bare(y))
    return _Said(relation(*values), _slope_has_sign(op, x, relation, falls), (relation(x, y),))


def _slope_has_sign(op: Declared, x: Tensor, relation: Any, falls: bool) -> Claim | None:
    """The claim that the derivative has the sign of a monotone function; None unless it exists for all numbers."""
    f = op.scalar
    if f is None or not is_smooth(f):
        return None
    (t,) = f.variables
    slope = elementwise(sympy.Lambda(t, sympy.diff(-f.expr if falls else f.expr, t)), x)
    return relation(0, slope)
