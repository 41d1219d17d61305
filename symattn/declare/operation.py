"""Operations that users declare: an entry formula is enough, and what else is given is held against it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from ..core.arguments import check_takes
from ..core.boxes import Box, Fence, Name, Row, Sign, fold, lowered
from ..core.naming import check_name
from ..core.node import Tensor
from ..core.operation import Notation, Operation, Pullback, Pushforward
from ..errors import NamingError, NoRuleError, OperandError, ShapeError, described
from ..ops import RECORDS
from ..ops.arithmetic import sum_of
from ..ops.broadcasting import unbroadcast
from ..ops.contraction import einsum_op
from ..ops.leaves import as_tensor, zeros
from ..ops.logic import as_mask
from ..ops.notation import ROWS, Binding, call, told_axis, without_transpose
from ..printing.media.neighbours import Level, level_of
from ..printing.media.read_latex import box_of_latex
from ..printing.misleading import is_unseen
from .facts import PROVED, checked_facts, monotone_function
from .from_entry import entry_code, function_code
from .signature import Signature, check_declared, check_kind, derivative_formula, formula_entry, user_formula

_declared: weakref.WeakValueDictionary[Any, Declared] = weakref.WeakValueDictionary()
_FACTS = ("masks", "minus_infinity", "kind", "letters", "nonsmooth", "rows", "range", "monotone")
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
        masks = self.record.masks
        return self.record(*(as_mask(x, self.__name__) if k in masks else as_tensor(x) for k, x in enumerate(inputs)))

    def _record(self) -> Record:
        name, entry, vjp, jvp, numpy, latex, reason = (
            self.declaration[key] for key in ("name", "entry", "vjp", "jvp", "numpy", "latex", "reason")
        )
        signature, facts = self.signature, {key: self.declaration[key] for key in _FACTS}
        finite = facts["minus_infinity"] == "refused"
        formula = user_formula(name, signature, entry, finite)
        check_declared(name, signature, formula)
        if facts["kind"] != "real":
            check_kind(name, signature, formula, facts["kind"])
        self.scalar = monotone_function(name, signature, formula) if facts["monotone"] else None
        given = {
            "vjp": vjp and _summed_vjp(signature, vjp), "jvp": jvp and _given_jvp(jvp),
            "numpy": numpy and function_code(name, numpy), "reason": reason,
            "notation": None if latex is None else _template(signature, name, latex),
        }  # fmt: skip
        stated = {"assumed": {what for what in PROVED if facts[what]}, **facts}
        given = {what: rule for what, rule in given.items() if rule}
        return _made(name, signature, formula, finite, self._reduced, **stated, **given)

    def _reduced(self, *path: int) -> Any:
        return _unpickled, (self, path)

    def __copy__(self, memo: Any = None) -> Declared:
        return self

    __deepcopy__ = __copy__

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
    masks: Sequence[int] = (),
    minus_infinity: str = "refused",
    kind: str = "real",
    letters: Sequence[str] = (),
    nonsmooth: str = "",
    rows: str = "",
    range: tuple[Any, Any] | None = None,
    monotone: str = "",
) -> Declared:
    r"""Declare an operation by its entry formula; derivatives, NumPy and LaTeX are derived where they are not given.

    ``shape`` names the axes, as in ``"T d, S d -> T S"`` or ``"n -> n"`` or ``"n ->"``; axes further left broadcast.
    ``entry(index, x, y, ...)`` is one entry of the result: ``index`` a tuple of SymPy indices, ``x[i, j]`` an entry
    of an input and ``x.shape`` its sizes. ``vjp(g, result, x, y, ...)`` gives one cotangent an input (None for
    zero) and ``jvp(tangents, result, x, y, ...)`` the tangent (an input that does not move has a tangent of zeros),
    in symattn's operations, with axes counted from the end. ``numpy`` is a function of arrays with loop axes in
    front, and ``latex`` a template such as ``r"\phi\left({0}\right)"``.

    ``masks`` counts the inputs, from 0, that are binary tensors, and ``minus_infinity`` says whether an input that may
    hold -oo is "refused", "kept" (so may the result) or "absorbed" (the result is finite). ``kind`` of the entries is
    "real", "binary", "integer" or that of the "inputs"; ``letters`` name the result and the first input in a gradient;
    ``nonsmooth`` says where there is no derivative. For bounds, ``rows="probabilities"`` states that entries are not
    negative and sum to 1 along the last axis (where nothing is masked), or "positive probabilities" that they are
    positive too; ``range=(0, 1)`` what all entries lie between; and ``monotone`` that a function of one number is
    "increasing" or "decreasing", with flat parts allowed, or "strictly increasing" or "strictly decreasing".
    ``verify`` proves these three; until then every proof that uses them lists them. Raises NamingError, OperandError
    and ShapeError for what cannot be used.

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
    signature = _checked(name, shape, {"entry": entry, "vjp": vjp, "jvp": jvp, "numpy": numpy})
    declaration = checked_facts(name, signature, {
        "name": name, "shape": shape, "entry": entry, "vjp": vjp, "jvp": jvp, "numpy": numpy, "latex": latex,
        "reason": reason, "masks": masks, "minus_infinity": minus_infinity, "kind": kind, "letters": letters,
        "nonsmooth": nonsmooth, "rows": rows, "range": range, "monotone": monotone,
    })  # fmt: skip
    key = tuple(value if isinstance(value, (str, tuple)) else id(value) for value in declaration.values())
    found = _declared.get(key)
    if found is None:
        _declared[key] = found = Declared(signature, declaration)
    return found


def _checked(name: str, shape: str, functions: Mapping[str, Any]) -> Signature:
    """The signature of an operation whose name is free, and whose functions are some."""
    check_name(name)
    if name in RECORDS:
        raise NamingError(f"{name} is an operation of symattn's own: call yours otherwise, for example my_{name}")
    signature = Signature(shape)
    for what, given in functions.items():
        if not callable(given) and (what == "entry" or given is not None):
            raise OperandError(f"{what}= of operation {name!r} is a function, not {described(given)}")
    check_takes(f"entry= of operation {name!r}", functions["entry"], 1 + len(signature.inputs))
    return signature


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


_BINDINGS = {Level.LIST: Binding.OR, Level.SUM: Binding.SUM, Level.PRODUCT: Binding.SUM, Level.FACTORS: Binding.PRODUCT}


def _call_of(signature: Signature, name: str) -> Notation:
    """``f(x, y)``, which says where it takes rows of one entry."""
    return lambda p, node: call(p, name, node, axis=_told_axis(p, signature, node))


def _told_axis(p: Any, signature: Signature, node: Tensor) -> int | None:
    """The last axis, where an input of which rows are taken is printed as a column."""
    of_rows = [x for x, own in zip(node.inputs, signature.inputs, strict=False) if len(own) == 1]
    return next((-1 for x in of_rows if told_axis(p, x, -1) is not None), None)


def _template(signature: Signature, name: str, latex: Any) -> Notation:
    places = [Name("x") for _ in signature.inputs]
    try:
        _check_shown(box_of_latex(latex, places), places)
    except OperandError as error:
        raise OperandError(
            f"latex= of operation {name!r} is a template of its inputs {{0}}, {{1}}, ...: {error}"
        ) from None
    plain = _call_of(signature, name)

    def notation(p: Any, node: Tensor) -> Any:
        if p.code:
            return plain(p, node)
        written = box_of_latex(latex, [p.operand(x, Binding.OR) for x in node.inputs])
        if _told_axis(p, signature, node) is not None:
            return lowered(written, ROWS), Binding.ATOM
        if without_transpose(written) is not None:  # the transpose of the result would take the mark away
            return Fence(written), Binding.ATOM
        level = level_of(written.parts) if isinstance(written, Row) else Level.ATOM
        return written, _BINDINGS.get(level, Binding.ATOM)

    return notation


def _is_half_a_fence(box: Box) -> bool:
    return isinstance(box, Sign) and box.kind in ("opening", "closing")


def _check_shown(written: Box, places: Sequence[Box]) -> None:
    """What a template shows is a formula with closed fences, and more than an input alone."""
    if is_unseen(written):
        raise OperandError("nothing of it is seen")
    if fold(written, lambda part, kids: any(kids) or _is_half_a_fence(part)):
        raise OperandError("a parenthesis is opened and not closed, or closed and not opened")
    inside = written
    while isinstance(inside, Fence) and (inside.left, inside.right) in (("(", ")"), ("[", "]"), ("{", "}"), ("", "")):
        inside = inside.inside
    if any(inside is place for place in places):
        raise OperandError("it shows an input alone, as if there were no operation")


def _summed_vjp(signature: Signature, vjp: Callable[..., Any]) -> Pullback:
    """The rule, with cotangents summed over the loop axes that an input does not have."""

    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> tuple[Tensor | None, ...]:
        parts = vjp(g, y, *inputs)
        parts = parts if isinstance(parts, (tuple, list)) else (parts,)
        if len(parts) != len(inputs):
            raise ShapeError(f"the vjp of {y.op.name} gave {len(parts)} cotangents for {len(inputs)} inputs")
        loops = y.shape[: y.rank - len(signature.output)]
        cores = zip(inputs, map(len, signature.inputs), strict=True)
        full = [(x.shape, loops + x.shape[x.rank - own :], own) for x, own in cores]
        pairs = zip(parts, full, strict=True)
        return tuple(None if part is None else unbroadcast(as_tensor(part), *shapes) for part, shapes in pairs)

    return rule


def _given_jvp(jvp: Callable[..., Any]) -> Pushforward:
    def rule(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor) -> Tensor:
        given = tuple(zeros(*x.shape) if t is None else t for t, x in zip(tangents, inputs, strict=True))
        moved = jvp(given, y, *inputs)
        if not isinstance(moved, Tensor):
            raise OperandError(f"the jvp of {y.op.name} gave {described(moved)}, not a tensor")
        return moved

    return rule


def _made(
    name: str,
    signature: Signature,
    formula: Any,
    finite: bool,
    origin: Callable[..., Any],
    masks: Sequence[int] = (),
    **given: Any,
) -> Record:
    """The record of an entry formula, with what is given in place of what is derived from it."""
    slopes = tuple(_slope(name, signature, formula, k, finite, origin) for k in range(len(signature.inputs)))
    derived: dict[str, Any] = {
        "shape": signature.shape,
        "entry": formula_entry(signature, formula),
        "vjp": _derived_vjp(signature, slopes, masks),
        "jvp": _derived_jvp(signature, slopes, masks),
        "numpy": entry_code(signature, formula),
        "notation": _call_of(signature, name),
        "reason": f"derivative of {name}",
    }
    return Record(name, masks=tuple(masks), slopes=slopes, origin=origin, **{**derived, **given})


def _slope(
    name: str, signature: Signature, formula: Any, k: int, finite: bool, origin: Callable[..., Any]
) -> Callable[[], Record]:
    """The operation of all derivatives by input k: output axes, then input axes. Made when it is needed."""

    @cache
    def make() -> Record:
        slope = derivative_formula(formula, k, finite)
        return _made(f"{name}_slope{k + 1}", signature.differentiated(k), slope, finite, partial(origin, k))

    return make


def _specs(signature: Signature, k: int) -> tuple[str, str]:
    """Labels for the output axes and for those of input k."""
    out, own = len(signature.output), len(signature.inputs[k])
    if out + own > len(_LETTERS):
        raise NoRuleError("an operation of so many axes has no derived derivative: give vjp and jvp")
    return _LETTERS[:out], _LETTERS[out : out + own]


def _derived_vjp(signature: Signature, slopes: Sequence[Callable[[], Record]], masks: Sequence[int]) -> Pullback:
    def back(k: int, g: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        out, own = _specs(signature, k)
        return einsum_op(g, slopes[k]()(*inputs), spec=((out, out + own), own))

    def rule(g: Tensor, y: Tensor, *inputs: Tensor) -> list[Tensor | None]:
        return [None if k in masks else back(k, g, inputs) for k in range(len(inputs))]

    return _summed_vjp(signature, rule)


def _derived_jvp(signature: Signature, slopes: Sequence[Callable[[], Record]], masks: Sequence[int]) -> Pushforward:
    def rule(tangents: Sequence[Tensor | None], y: Tensor, *inputs: Tensor) -> Tensor:
        terms = []
        for k, t in enumerate(tangents):
            if t is not None and k not in masks:
                out, own = _specs(signature, k)
                terms.append(einsum_op(slopes[k]()(*inputs), t, spec=((out + own, own), out)))
        return sum_of(terms)

    return rule
