"""Where a tensor has values, read off the entry formulas: what they divide by, take roots and logarithms of, and read.

It is asked by construction, which forgets no operand that may have no value somewhere, and by proofs, which list what
must hold of such operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import sympy

from ..core.exact import INDICES
from ..core.node import Tensor, topological
from ..core.sizes import divisibility, inequality, never_negative, same_shape
from ..scalars.affine import affine, ends
from ..scalars.formulas import Choice, Held, InverseEntry, Max, Min, Ranged, ScanEntry, Unknown
from ..scalars.functions import FUNCTIONS, ScalarFunction
from .leaves import INVERTIBLE, bare, computed, from_index_op, operands, variable, zeros
from .placeholders import placeholder_op
from .template import Template, merged, template


class Sign(IntEnum):
    """What is known of all entries."""

    ANY = 0
    NONNEGATIVE = 1
    POSITIVE = 2


@dataclass(frozen=True)
class Condition:
    """What must hold of all entries of a tensor, or of a function ``through`` which they go.

    It is a relation to ``right``, or without that a property, as in ``core/stated.py``. None is the node that it is
    read off.
    """

    relation: str
    right: sympy.Expr | None = None
    of: Tensor | None = None
    through: type[sympy.Function] | None = None


@dataclass(frozen=True)
class Domain:
    """Where one node has values, if its inputs have: conditions on entries, and sizes that may not be negative."""

    sign: Sign
    conditions: tuple[Condition, ...] = ()
    inside: tuple[sympy.Expr, ...] = ()
    total: bool = False  # whether nothing is asked of it, nor of anything that it is made of
    lowest: bool = False  # whether entries may be -oo though no mask shows: a maximum of nothing but -oo


_domains: WeakKeyDictionary[Tensor, Domain] = WeakKeyDictionary()
_ZERO = sympy.Dummy("0", zero=True)
# functions beside those of the table that have a value at every number
_TOTAL = (Choice, Held, Ranged, Unknown, sympy.erfc, sympy.frac, sympy.Heaviside, sympy.sinc)


def domain(x: Tensor) -> Domain:
    """The domain of a node."""
    for node in topological([x], stop=_domains, inputs=operands):
        if node not in _domains:
            _domains[node] = _domain(node)
    return _domains[x]


def is_total(x: Tensor) -> bool:
    """Whether a tensor is seen to have values at all sizes and for all values of what it is made of."""
    return domain(x).total


def sizes_of(node: Tensor) -> tuple[sympy.Expr, ...]:
    """What is at least 1 for a node to have values: its sizes, and the number of steps of a loop."""
    steps = node.params.get("steps")
    return node.shape if steps is None else (*node.shape, steps)


def size_symbols(nodes: Iterable[Tensor]) -> set[sympy.Symbol]:
    """What sizes are made of: the size symbols of nodes, and the offsets that an axis has its size from."""
    return {
        s
        for node in nodes
        for symbols in (filter(_is_size, node.own_symbols), *(n.free_symbols for n in node.shape if not n.is_Symbol))
        for s in symbols
    }


def _is_size(s: sympy.Symbol) -> bool:
    return bool(s.is_integer and s.is_positive)


def rooms(roots: Iterable[Tensor]) -> list[sympy.Expr]:
    """What is never negative where tensors have values: their sizes less 1, and the room beside what is read."""
    nodes = computed(roots)
    sizes = dict.fromkeys(size for node in nodes for size in sizes_of(node))
    plain = [size for size in sizes if size.is_Add or not divisibility([size])]  # n/h is at least 1 if h divides n
    found = [_room_of(size) for size in plain]
    found += [room for node in nodes for room in domain(node).inside]
    return list(dict.fromkeys(sympy.expand(room) for room in found if not never_negative(room)))


@lru_cache(maxsize=4096)  # sizes are few, and this is asked of all of them at every proof
def _room_of(size: sympy.Expr) -> sympy.Expr:
    """A size less 1, over no divisor."""
    return sympy.fraction(sympy.together(size - 1))[0]


def vanished(node: Tensor) -> Tensor:
    """Zeros for what is zero wherever it has a value, if that is everywhere; else the node as it stands."""
    return zeros(*node.shape) if is_total(node) else node


def _domain(node: Tensor) -> Domain:
    sizes = sizes_of(node)
    total = all(inequality(size - 1) is None for size in sizes) and not divisibility(sizes)
    if node.op is variable:
        return Domain(_declared(node), total=total)
    if node.op is placeholder_op:  # the step of a loop asks nothing of what it is a function of
        return Domain(Sign.NONNEGATIVE if node.kind == "binary" else Sign.ANY, total=total)
    try:
        entry = template(node, _ZERO)
    except NotImplementedError:  # a form of generated code, which has no entries
        return Domain(Sign.ANY)
    reading = _Signs(node, entry)
    lowest, finite = _lowest(node, entry)
    conditions = tuple(dict.fromkeys([*reading.partial(entry.formula), *_places(node, entry), *finite]))
    inside = tuple(_inside(node, entry))
    total = total and not conditions and not inside and all(_domains[i].total for i in operands(node))
    return Domain(reading.of(entry.formula), conditions, inside, total, lowest)


def _lowest(node: Tensor, entry: Template) -> tuple[bool, list[Condition]]:
    """Whether a maximum of nothing but -oo may go on as an entry of a node, and which ones must not be that.

    An exponential is 0 there, and a maximum is of something else that is a number.
    """
    e, read = entry.formula, {symbol: node.inputs[k] for symbol, (k, _) in entry.reads.items()}
    low = {symbol for symbol, x in read.items() if x.holds_minus_infinity or _domains[x].lowest}
    if e in read or (isinstance(e, Max) and e.function in read):
        return bool(low), []
    branches = e.args[1:] if isinstance(e, Choice) else ()
    asked = [s for s in low if not (read[s].holds_minus_infinity or s in branches or e == sympy.exp(s))]
    found = [Condition(">", sympy.S.NegativeInfinity, x) for x in dict.fromkeys(map(read.__getitem__, asked))]
    of_all = branches and e.args[0] == sympy.Ge(*branches)
    return bool(branches) and (all if of_all else any)(s in low for s in branches), found


def _declared(node: Tensor) -> Sign:
    declared = node.params["hypotheses"]
    if "positive" in declared:
        return Sign.POSITIVE
    return Sign.NONNEGATIVE if node.kind == "binary" or "permutation" in declared else Sign.ANY


def _inside(node: Tensor, entry: Template) -> Iterator[sympy.Expr]:
    """What may not be negative for a rearrangement to read inside its input, where its places are affine."""
    if entry.formula not in entry.reads:
        return
    k, where = entry.reads[entry.formula]
    for place, size in zip(where, node.inputs[k].shape, strict=True):
        ends = _ends(_written_out(place, node, entry), node, entry)
        if ends is not None:  # else digits of a merged axis, which stay inside, or an index that is itself read
            yield from (room for room in (ends[0], size - 1 - ends[1]) if not never_negative(room))


def _ends(place: Any, node: Tensor, entry: Template) -> tuple[Any, Any] | None:
    """The first and the last place that is read, if it is affine in the index."""
    found = affine(place, entry.index)
    if found is None or found[0].has(*entry.reads, sympy.Function) or not all(c.is_Integer for c in found[1].values()):
        return None
    return ends(*found, dict(zip(entry.index, node.shape, strict=True)))


def _written_out(place: Any, node: Tensor, entry: Template) -> Any:
    """A place with the formula of the constant that it is read from, if it is."""
    if place not in entry.reads:
        return place
    k, where = entry.reads[place]
    known = bare(node.inputs[k])
    if known.op is not from_index_op:
        return place
    return known.params["formula"].xreplace(dict(zip(INDICES, where, strict=False)))


def _places(node: Tensor, entry: Template) -> Iterator[Condition]:
    """That places which are read from a tensor lie inside, unless a choice may be there to see to it."""
    if entry.formula.has(Choice):
        return
    for k, where in entry.reads.values():
        for place, size in zip(where, node.inputs[k].shape, strict=True):
            if place in entry.reads and _ends(_written_out(place, node, entry), node, entry) is None:
                yield Condition("is a place in", size, node.inputs[entry.reads[place][0]])
            elif place not in entry.reads and place.free_symbols & entry.reads.keys():
                yield Condition("is defined")


class _Signs:
    """Signs of the parts of one entry formula, from those of the inputs."""

    def __init__(self, node: Tensor, entry: Template) -> None:
        self.node, self.entry = node, entry
        self.read = {symbol: node.inputs[k] for symbol, (k, _) in entry.reads.items()}
        self.merged = merged(node, entry)
        self.axes = {size for x in (node, *node.inputs) for size in x.shape}
        self.signs = {symbol: _domains[x].sign for symbol, x in self.read.items()}

    def of(self, e: Any) -> Sign:
        """The sign of a formula; equal entries that it reads are seen as equal, so that x * x is a square."""
        return self._of(e.xreplace(self.merged))

    def _of(self, e: Any) -> Sign:
        if e in self.signs:
            return self.signs[e]
        if e.is_Symbol or e.is_number:
            return Sign.POSITIVE if e.is_positive else Sign.NONNEGATIVE if e.is_nonnegative else Sign.ANY
        if type(e) in FUNCTIONS:
            return self._of_values(e, FUNCTIONS[type(e)].values)
        if e.is_Mul:
            return min(map(self._of, e.args))
        if e.is_Add:
            parts = [self._of(part) for part in e.args]
            return max(parts) if min(parts) else Sign.ANY
        if e.is_Pow:
            return self._of_power(*e.args)
        if isinstance(e, (sympy.Sum, Max, Min)):
            return min(self._of(e.function), self._of_nothing(e))
        if isinstance(e, Choice):
            condition, a, b = e.args
            if b == -a and condition in (sympy.Ge(a, 0), sympy.Gt(a, 0)):
                return Sign.NONNEGATIVE  # an absolute value
            if a in self.signs and condition == sympy.Gt(a, 0):
                return min(Sign.NONNEGATIVE, self._of(b))
            return min(self._of(a), self._of(b))
        return Sign.ANY

    def _of_values(self, e: Any, values: sympy.Interval) -> Sign:
        """The sign of all values of a function; at -oo the end of an open interval may be reached."""
        if not values.start.is_nonnegative:  # also where it is -oo
            return Sign.ANY
        infinite = any(self.read[s].holds_minus_infinity for s in e.free_symbols if s in self.read)
        open_end = values.left_open and not infinite
        return Sign.POSITIVE if values.start.is_positive or open_end else Sign.NONNEGATIVE

    def _of_nothing(self, e: Any) -> Sign:
        """The sign of a sum or an extreme over a range that may be empty, as far as that restricts it."""
        if all(self._holds_something(sympy.expand(high - low + 1)) for _, low, high in e.limits):
            return Sign.POSITIVE
        return Sign.NONNEGATIVE if isinstance(e, sympy.Sum) else Sign.ANY

    def _holds_something(self, count: Any) -> bool:
        """Whether there is an index; every axis has at least one."""
        if count in self.axes or count.is_positive:
            return True
        return not count.has(sympy.Dummy) and never_negative(count - 1)

    def _of_power(self, base: Any, exponent: Any) -> Sign:
        sign = self._of(base)
        if sign is Sign.POSITIVE:
            return sign
        if not exponent.is_Rational:
            return Sign.ANY
        even = exponent.q % 2 == 0 or exponent.p % 2 == 0
        return Sign.NONNEGATIVE if even else sign

    # --- what is not defined everywhere ---

    def partial(self, e: Any) -> Iterator[Condition]:
        """The conditions under which a formula has a value."""
        if isinstance(e, Choice) and isinstance(e.args[0], sympy.Eq) and e.args[0].rhs == 0:
            yield from self.partial(e.args[1])
            yield from self.partial(e.args[2] * e.args[0].lhs)  # divided only where it is not 0
            return
        if isinstance(e, InverseEntry):
            yield from self._inverse(e)
            return
        if isinstance(e, ScanEntry) and not e.is_total:
            yield Condition("is defined")
        if e.is_Pow:
            yield from self._power(*e.args)
        elif type(e) in FUNCTIONS and not FUNCTIONS[type(e)].partial:
            yield from self._argument(e.args[0], FUNCTIONS[type(e)])
        elif isinstance(e, (sympy.Function, sympy.Mod)) and not self._is_total(e):
            yield Condition("is defined")
        for part in e.args:
            if isinstance(part, sympy.Basic):
                yield from self.partial(part)

    def _argument(self, e: Any, f: ScalarFunction) -> Iterator[Condition]:
        """Conditions on the argument of a scalar function that its sign, value or range does not show."""
        inner = FUNCTIONS.get(type(e))
        if (e.is_number and e in f.domain) or (inner is not None and inner.values.is_subset(f.domain)):
            return
        if f.domain.start.is_finite and not (f.domain.start.is_zero and self.of(e) is Sign.POSITIVE):
            yield self._condition(e, ">" if f.domain.left_open else ">=", f.domain.start)
        if f.domain.end.is_finite:
            yield self._condition(e, "<" if f.domain.right_open else "<=", f.domain.end)
        if f.poles is not None and e in self.read:
            yield Condition("!=", sympy.S.Zero, self.read[e], f.poles)
        elif f.poles is not None:
            yield Condition("is defined")

    def _is_total(self, e: Any) -> bool:
        """Whether a function has a value wherever its arguments have; a remainder, by what is not 0."""
        return isinstance(e, _TOTAL) or (isinstance(e, sympy.Mod) and self.of(e.args[1]) is Sign.POSITIVE)

    def _power(self, base: Any, exponent: Any) -> Iterator[Condition]:
        sign = self.of(base)
        if sign is Sign.POSITIVE or self._is_natural(exponent):
            return
        if exponent.is_Integer:
            yield self._condition(base, "!=")
        elif exponent.is_positive and exponent.is_Rational:
            if sign is Sign.ANY:
                yield self._condition(base, ">=")
        else:
            yield self._condition(base, ">")

    def _is_natural(self, exponent: Any) -> bool:
        """Whether an exponent is a whole number that is not negative, by the formula that it is read from."""
        e = _written_out(exponent, self.node, self.entry)
        if not e.is_integer or e.is_nonnegative:
            return bool(e.is_integer)
        found = _ends(e, self.node, self.entry)
        return found is not None and never_negative(found[0])

    def _inverse(self, e: Any) -> Iterator[Condition]:
        if e.function not in self.read:
            yield Condition("is defined")
        elif (matrix := _to_invert(self.read[e.function])) is not None:
            yield Condition("is invertible", of=matrix)

    def _condition(self, e: Any, sign: str, right: sympy.Expr = sympy.S.Zero) -> Condition:
        """A condition on a part of a formula, by the tensor that it reads, or else on the node as a whole."""
        return Condition(sign, right, self.read[e]) if e in self.read else Condition("is defined")


def _to_invert(x: Tensor) -> Tensor | None:
    """The matrix that must have an inverse for x to have one, through transposes; None for one that always has."""
    while True:
        node = bare(x)
        if node.op is variable:
            return None if INVERTIBLE & set(node.params["hypotheses"]) else x
        entry = template(node)
        if isinstance(entry.formula, InverseEntry) or _is_unit_triangular(node):
            return None
        k, where = entry.reads.get(entry.formula, (0, ()))
        if where != (*entry.index[:-2], *entry.index[:-3:-1]):
            return x
        x = node.inputs[k]


_SHIFT = sympy.Symbol("s", integer=True, positive=True)
_NESTED = 8  # operations through which zeros of a triangle are followed


def _is_unit_triangular(x: Tensor) -> bool:
    """Whether one triangle is seen to be zero and the diagonal a number that is not, so that there is an inverse."""
    diagonal = _value_at(x, 0, _NESTED)
    one_sided = x.shape[-1] == 1 or any(_value_at(x, shift, _NESTED) == 0 for shift in (_SHIFT, -_SHIFT))
    return one_sided and diagonal is not None and diagonal.is_nonzero is True


def _value_at(x: Tensor, shift: Any, depth: int) -> sympy.Expr | None:
    """The number that all entries at ``[i, i + shift]`` of a matrix are, if they are seen to be one."""
    node = bare(x)
    if node.op in (variable, placeholder_op) or node.rank < 2 or not depth:
        return None
    entry = template(node)
    value, (i, j) = entry.formula, entry.index[-2:]
    for symbol, (k, where) in entry.reads.items():
        same = same_shape(node.inputs[k].shape, node.shape) and all(
            place == at or size == 1 for place, at, size in zip(where, entry.index, node.shape, strict=True)
        )
        known = _value_at(node.inputs[k], shift, depth - 1) if same else None
        value = value if known is None else value.xreplace({symbol: known})
    value = value.subs(j, i + shift)
    return value if value.is_number else None
