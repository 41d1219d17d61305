"""The axes and the entry formula of a declared operation: ``"T d, S d -> T S"`` and a function of an index."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, SupportsIndex

import sympy

from ..core.comparisons import check_comparisons
from ..core.exact import exact
from ..core.naming import check_name
from ..core.node import Tensor
from ..core.operation import Entry
from ..core.sizes import Shape, as_shape
from ..errors import NoRuleError, OperandError, ShapeError, SymattnError, described
from ..ops.broadcasting import broadcast_index, loops_of, named_sizes
from ..scalars.formulas import Choice, Max, Min, bound, without_piecewise

Axes = tuple[str, ...]
Formula = Callable[[tuple[Any, ...], tuple[Shape, ...]], Any]  # of an index and the core shapes of the inputs


class Signature:
    """Named axes of the inputs and of the output; axes further left broadcast among the inputs."""

    def __init__(self, text: str) -> None:
        left, arrow, right = text.partition("->") if isinstance(text, str) else ("", "", "")
        if not arrow:
            raise OperandError(f"shape names the axes, for example 'T d, S d -> T S' or 'n ->', not {described(text)}")
        self.inputs: tuple[Axes, ...] = tuple(tuple(part.split()) for part in left.split(","))
        self.output: Axes = tuple(right.split())
        for axis in (a for axes in (*self.inputs, self.output) for a in axes):
            check_name(axis)
        unknown = set(self.output) - {a for axes in self.inputs for a in axes}
        if unknown:
            raise ShapeError(f"the output axis {sorted(unknown)[0]} of {text!r} is an axis of no input")

    def __str__(self) -> str:
        return ", ".join(map(" ".join, self.inputs)) + " -> " + " ".join(self.output)

    @property
    def places(self) -> tuple[sympy.Symbol, ...]:
        """A symbol for each index of the output."""
        return tuple(sympy.Symbol(f"i{k}", integer=True, nonnegative=True) for k in range(len(self.output)))

    def differentiated(self, k: int) -> Signature:
        """The signature of all derivatives by input k: output axes, then input axes."""
        return Signature(f"{self} {' '.join(self.inputs[k])}")

    def cores(self, inputs: tuple[Tensor, ...]) -> tuple[Shape, ...]:
        """The declared axes of each input."""
        return tuple(x.shape[x.rank - len(axes) :] for x, axes in zip(inputs, self.inputs, strict=True))

    def shape(self, *inputs: Tensor) -> Shape:
        """The shape of the result; raises ShapeError."""
        shown = ", ".join(x.brief() for x in inputs)
        if len(inputs) != len(self.inputs) or any(x.rank < len(a) for x, a in zip(inputs, self.inputs, strict=False)):
            raise ShapeError(f"{shown} do not have the axes of {self}")
        sizes = named_sizes(inputs, self.inputs, lambda: f"{shown} for {self}: the axis")
        loops = loops_of(inputs, map(len, self.inputs))
        if loops is None:
            raise ShapeError(f"{shown} for {self}: the axes in front do not broadcast")
        return loops + tuple(sizes[axis] for axis in self.output)


class Reader:
    """An input inside an entry formula: ``x[i, j]`` is an entry and ``x.shape`` the declared sizes."""

    def __init__(self, k: int, shape: Shape, finite: bool) -> None:
        self.k, self.shape, self._finite = k, shape, finite

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            raise ShapeError(f"an input of {len(self.shape)} axes is read at {len(index)} indices")
        for at in index:
            if isinstance(at, bool) or not isinstance(at, (SupportsIndex, sympy.Expr)):
                raise OperandError(
                    f"an input is read at integers and SymPy expressions of indices, not at {described(at)}"
                )
        return placeholder(self.k, index, self._finite)


def _stand_in(k: int, finite: bool) -> sympy.Dummy:
    assumption = "real" if finite else "extended_real"
    return sympy.Dummy(f"x{k + 1}", **{assumption: True}, dummy_index=900_000 + k)


def placeholder(k: int, index: tuple[Any, ...], finite: bool) -> Any:
    """The entry of input k before it is read."""
    stand_in = _stand_in(k, finite)
    return sympy.Indexed(sympy.IndexedBase(stand_in), *index) if index else stand_in


def input_of(part: Any, count: int) -> int | None:
    """Which input a placeholder stands for; None for anything else."""
    symbol = part.base.label if isinstance(part, sympy.Indexed) else part
    return next((k for k in range(count) if symbol in (_stand_in(k, True), _stand_in(k, False))), None)


def user_formula(name: str, signature: Signature, entry: Callable[..., Any], finite: bool) -> Formula:
    """The user's entry as a checked SymPy scalar of placeholders, which may be -oo unless they are ``finite``."""

    def formula(index: tuple[Any, ...], shapes: tuple[Shape, ...]) -> Any:
        readers = [Reader(k, shape, finite) for k, shape in enumerate(shapes)]
        value = entry(index, *readers)
        if isinstance(value, (Tensor, bool)) or not isinstance(value, (sympy.Expr, int)):
            raise OperandError(f"the entry of {name} is a SymPy scalar, not {described(value)}")
        value = without_piecewise(exact(sympy.sympify(value)))
        known = {s for shape in shapes for size in shape for s in size.free_symbols}
        stand_ins = {_stand_in(k, finite) for k in range(len(shapes))}
        stand_ins |= set(map(sympy.IndexedBase, stand_ins))
        for symbol in value.free_symbols - known - set(index) - stand_ins:
            if not isinstance(symbol, sympy.Indexed):
                raise OperandError(f"the entry of {name} holds {symbol}: no size, no index, and bound by no sum")
        _check_integers(name, value, len(shapes))
        return value

    return formula


def check_declared(name: str, signature: Signature, formula: Formula) -> None:
    """Read the formula once, at sizes that are called as the axes are; raises OperandError for what it cannot be."""
    shapes = tuple(map(as_shape, signature.inputs))
    try:
        value = formula(signature.places, shapes)
    except SymattnError:
        raise
    except TypeError:
        _check_at_numbers(name, signature, formula)
        return  # an entry that counts a size in Python is read when the sizes are numbers

    def at(*place: Any) -> Any:
        return formula(place, shapes)

    check_comparisons(f"the entry of {name}", at, signature.places, as_shape(signature.output), value)


def _check_at_numbers(name: str, signature: Signature, formula: Formula) -> None:
    """Raise OperandError for an entry that Python cannot work out at sizes that are numbers either."""
    sizes = {axis: sympy.Integer(2 + n) for n, axis in enumerate(dict.fromkeys(itertools.chain(*signature.inputs)))}
    shapes = tuple(tuple(sizes[axis] for axis in axes) for axes in signature.inputs)
    try:
        formula((sympy.S.Zero,) * len(signature.output), shapes)
    except SymattnError:
        return  # which says so itself, at the sizes it is used at
    except TypeError as problem:
        raise OperandError(
            f"the entry of {name} fails: {problem}; it is written in SymPy's functions, and its first argument is a "
            "tuple: x[index] is the entry there, and index[0] the first index"
        ) from None


def check_kind(name: str, signature: Signature, formula: Formula, kind: str) -> None:
    """Raise OperandError if an entry is not seen to be what ``kind`` says; literal sizes are not read here."""
    value = formula(signature.places, tuple(map(as_shape, signature.inputs)))
    for leaf in _leaves(value):
        if not _SEEN[kind](leaf, len(signature.inputs)):
            raise OperandError(f"kind={kind!r} of operation {name!r}: its entry {_shown(value)} is not seen to be so")


def scalar_function(signature: Signature, formula: Formula) -> sympy.Lambda | None:
    """The function of one number that a formula applies entry by entry; None where it is no such formula."""
    if signature.inputs != (signature.output,):
        return None
    number = sympy.Dummy("t", real=True)
    try:
        value = formula(signature.places, (as_shape(signature.output),))
    except TypeError:
        return None  # it counts a size in Python
    value = value.xreplace({placeholder(0, signature.places, finite): number for finite in (True, False)})
    return sympy.Lambda(number, value) if value.free_symbols <= {number} else None


_SMOOTH = (sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh, sympy.erf)


def is_smooth(f: sympy.Lambda) -> bool:
    """Whether a function of one real number is seen to have a derivative everywhere."""

    def smooth(e: Any) -> bool:
        if e.is_Pow and not (e.exp.is_Integer and e.exp.is_nonnegative):
            return bool(e.base.is_positive and smooth(e.base) and smooth(e.exp))
        if isinstance(e, sympy.log):
            return bool(e.args[0].is_positive and smooth(e.args[0]))
        known = e.is_Symbol or e.is_number or e.is_Add or e.is_Mul or e.is_Pow or isinstance(e, _SMOOTH)
        return bool(known and all(map(smooth, e.args)))

    return smooth(f.expr)


_SEEN: Mapping[str, Callable[[Any, int], bool]] = {
    "integer": lambda leaf, count: bool(leaf.is_integer),
    "binary": lambda leaf, count: leaf in (0, 1),
    "inputs": lambda leaf, count: input_of(leaf, count) is not None,
}


def _shown(value: Any) -> Any:
    """A formula with the names of its dummies."""
    return value.xreplace({s: sympy.Symbol(s.name) for s in value.atoms(sympy.Dummy)})


def _leaves(value: Any) -> list[Any]:
    """The values that a choice is among."""
    if isinstance(value, Choice):
        return [leaf for side in value.args[1:] for leaf in _leaves(side)]
    return [value]


def _check_integers(name: str, value: Any, count: int) -> None:
    """Raise OperandError for an index, or an end of a sum, that is not seen to be an integer."""
    folds = value.atoms(sympy.Sum, Max, Min)
    counted = {s: sympy.Dummy(s.name, integer=True) for fold in folds for s, *_ in fold.limits}
    ends = [("counts from or to", end) for fold in folds for _, *ends in fold.limits for end in ends]
    reads = [
        (f"reads x{k + 1} at", at)
        for part in value.atoms(sympy.Indexed)
        if (k := input_of(part, count)) is not None
        for at in part.indices
    ]
    for told, at in [*reads, *ends]:
        if not at.xreplace(counted).is_integer:
            shown = _shown(at)
            raise OperandError(
                f"the entry of {name} {told} {shown}, which is not seen to be an integer: for the whole number below "
                f"it, write sympy.floor({shown})"
            )


def derivative_formula(formula: Formula, k: int, finite: bool) -> Formula:
    """The derivative of a formula by an entry of input k: its index ends with the indices of that entry."""

    def slope(index: tuple[Any, ...], shapes: tuple[Shape, ...]) -> Any:
        place = len(index) - len(shapes[k])
        value = formula(index[:place], shapes)
        found = sympy.diff(value, placeholder(k, index[place:], finite))
        rough = (sympy.Derivative, sympy.Subs, sympy.Heaviside, sympy.DiracDelta)
        unknown = value.atoms(Max, Min, sympy.Max, sympy.Min) | found.atoms(*rough)
        if unknown:
            kinds = ", ".join(sorted({type(part).__name__ for part in unknown}))
            raise NoRuleError(f"no derivative of this entry formula is derived, for its {kinds}: give vjp and jvp")
        return without_piecewise(found)

    return slope


def formula_entry(signature: Signature, formula: Formula) -> Entry:
    """The entry function of a record: bound indices renamed by the node, then placeholders read."""

    def entry(read: Any, index: Any, node: Tensor) -> Any:
        out = len(signature.output)
        loops = index[: node.rank - out]
        places = tuple(sympy.Dummy(f"i{k}", integer=True, nonnegative=True) for k in range(out))
        value = with_own_bounds(node, formula(places, signature.cores(node.inputs)))
        value = value.xreplace(dict(zip(places, index[node.rank - out :], strict=True)))
        leads = [
            broadcast_index(x.shape[: x.rank - len(axes)], loops)
            for x, axes in zip(node.inputs, signature.inputs, strict=True)
        ]
        return _read(value, lambda k, own: read(k, (*leads[k], *own)), len(leads))

    return entry


def with_own_bounds(node: Tensor, value: Any) -> Any:
    """The formula with an index of its own for each sum: nothing is captured, and no two sums share one."""
    slots = itertools.count()

    def renamed(part: Any) -> Any:
        if isinstance(part, (sympy.Sum, Max, Min)):
            symbols = [s for s, *_ in part.limits]
            if len(set(symbols)) < len(symbols):
                raise OperandError(f"{part} binds one index twice")
            fresh = {s: bound(node, next(slots), sympy.S.One)[0] for s in symbols}
            limits = []
            for place, (s, low, high) in enumerate(part.limits):  # its bounds know the sums further out only
                outer = {t: fresh[t] for t in symbols[place + 1 :]}
                limits.append((fresh[s], renamed(low).xreplace(outer), renamed(high).xreplace(outer)))
            return part.func(renamed(part.function).xreplace(fresh), *limits)
        return part.func(*map(renamed, part.args)) if part.args and part.has(sympy.Sum, Max, Min) else part

    return renamed(value)


def _read(value: Any, read: Callable[[int, tuple[Any, ...]], Any], count: int) -> Any:
    """The formula with every placeholder read, all at once."""

    def found(part: Any) -> Any:
        if isinstance(part, sympy.Indexed) and (k := input_of(part, count)) is not None:
            return read(k, tuple(map(found, part.indices)))
        if isinstance(part, sympy.Dummy) and (k := input_of(part, count)) is not None:
            return read(k, ())
        return part.func(*map(found, part.args)) if part.args and not isinstance(part, sympy.IndexedBase) else part

    return found(value)
