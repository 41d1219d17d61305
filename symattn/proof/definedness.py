"""Where a claim makes sense: what it divides by, and what it takes roots, logarithms and inverses of.

Every entry formula of a claim is searched for operations that are not defined everywhere. What is not seen to be
defined from the signs of its parts is a side condition of the claim, whatever the way in which it is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import sympy

from ..budget import Budget, OutOfBudget
from ..latex import LONGEST, tree_size
from ..normal.lowering import Template, bare, template
from ..ops.formulas import Choice, InverseEntry, Max, Min
from ..ops.inverse import INVERTIBLE, inv_op
from ..ops.leaves import computed, definition, variable
from ..sizes import divisibility, inequality, never_negative
from ..tensor import Tensor
from .bounds import bound_proof
from .claims import Claim, le, lt


class Sign(IntEnum):
    """What is known of all entries."""

    ANY = 0
    NONNEGATIVE = 1
    POSITIVE = 2


def conditions(sides: Iterable[Tensor], given: Sequence[Claim] = ()) -> tuple[str, ...]:
    """What must hold of the tensors for the sides of a claim to have values, in the order of the graph.

    What follows from the bounds of a tensor, under what is given, is left out.
    """
    found: dict[Condition, None] = {}
    signs: dict[Tensor, Sign] = {}
    nodes = list(computed(sides))
    used = list(dict.fromkeys(size for node in nodes for size in node.shape))
    whole = [size for size in used if not divisibility([size])]
    fitting = [c for size in whole if (c := inequality(size - 1)) is not None]  # axes have at least one entry
    for node in nodes:
        if node.op is variable:
            signs[node] = _declared(node)
            continue
        entry = template(node)
        reading = _Signs(node, entry, signs)
        signs[node] = reading.of(entry.formula)
        fitting += _inside(node, entry)
        for condition in reading.partial(entry.formula):
            found.setdefault(condition)
    kept = (str(c) for c in found if c.of is None or not holds_anyway(c.of, c.what, given))
    return tuple(dict.fromkeys([*divisibility(used), *fitting, *kept]))


def _inside(node: Tensor, entry: Template) -> Iterator[str]:
    """The conditions under which a rearrangement reads inside its input, where its places are affine."""
    if entry.formula not in entry.reads:
        return
    k, where = entry.reads[entry.formula]
    last = {i: size - 1 for i, size in zip(entry.index, node.shape, strict=True)}
    for place, size in zip(where, node.inputs[k].shape, strict=True):
        slopes = {i: sympy.expand(place).coeff(i) for i in last}
        start = sympy.expand(place - sum(slope * i for i, slope in slopes.items()))
        if not all(slope.is_Integer for slope in slopes.values()) or start.has(*last, *entry.reads, sympy.Function):
            continue  # digits of a merged axis, which stay inside, or an index that is itself read
        ends = [start + sum(slope * last[i] for i, slope in slopes.items() if sign * slope > 0) for sign in (-1, 1)]
        yield from (c for end in (ends[0], size - 1 - ends[1]) if (c := inequality(end)) is not None)


@dataclass(frozen=True)
class Condition:
    """What must hold of all entries of a tensor, or of a part of its formula, which then is None here."""

    text: str
    what: str
    of: Tensor | None = None

    def __str__(self) -> str:
        return f"{self.text} {self.what}"


_ASKED: dict[str, Callable[[Tensor], tuple[Claim, ...]]] = {
    "!= 0": lambda x: (lt(0, x), lt(x, 0)),
    "> 0": lambda x: (lt(0, x),),
    ">= 0": lambda x: (le(0, x),),
}
_SECONDS = 0.3  # for the bounds of one tensor


def holds_anyway(x: Tensor, what: str, given: Sequence[Claim] = ()) -> bool:
    """Whether a condition on the entries of a tensor follows from their bounds."""
    try:
        asked = _ASKED[what](x) if what in _ASKED else ()
        return any(bound_proof(claim, given, Budget(_SECONDS)) is not None for claim in asked)
    except OutOfBudget:
        return False


def _declared(node: Tensor) -> Sign:
    declared = node.params["hypotheses"]
    if "positive" in declared:
        return Sign.POSITIVE
    return Sign.NONNEGATIVE if node.kind == "binary" or "permutation" in declared else Sign.ANY


class _Signs:
    """Signs of the parts of one entry formula, from those of the inputs."""

    def __init__(self, node: Tensor, entry: Template, signs: Mapping[Tensor, Sign]) -> None:
        self.node = node
        same: dict[Any, Any] = {}
        self.read: dict[Any, Tensor] = {}
        self.merged: dict[Any, Any] = {}
        for symbol, (k, where) in entry.reads.items():
            first = same.setdefault((node.inputs[k], where), symbol)
            self.merged[symbol] = first
            self.read[symbol] = node.inputs[k]
        self.axes = {size for x in (node, *node.inputs) for size in x.shape}
        self.signs = {symbol: signs.get(x, Sign.ANY) for symbol, x in self.read.items()}

    def of(self, e: Any) -> Sign:
        """The sign of a formula; equal entries that it reads are seen as equal, so that x * x is a square."""
        return self._of(e.xreplace(self.merged))

    def _of(self, e: Any) -> Sign:
        if e in self.signs:
            return self.signs[e]
        if e.is_Symbol or e.is_number:
            return Sign.POSITIVE if e.is_positive else Sign.NONNEGATIVE if e.is_nonnegative else Sign.ANY
        if isinstance(e, sympy.exp):
            infinite = any(self.read[s].holds_minus_infinity for s in e.free_symbols if s in self.read)
            return Sign.NONNEGATIVE if infinite else Sign.POSITIVE
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
        if e.is_Pow:
            yield from self._power(*e.args)
        elif isinstance(e, sympy.log) and self.of(e.args[0]) is not Sign.POSITIVE:
            yield self._condition(e.args[0], "> 0")
        elif isinstance(e, sympy.tan) and e.args[0] in self.read:
            yield Condition(f"cos({_text(self.read[e.args[0]])})", "!= 0")
        elif isinstance(e, sympy.tan):
            yield Condition(_text(self.node), "is defined")
        for part in e.args:
            if isinstance(part, sympy.Basic):
                yield from self.partial(part)

    def _power(self, base: Any, exponent: Any) -> Iterator[Condition]:
        sign = self.of(base)
        if sign is Sign.POSITIVE or (exponent.is_Integer and exponent >= 0):
            return
        if exponent.is_Integer:
            yield self._condition(base, "!= 0")
        elif exponent.is_positive and exponent.is_Rational:
            if sign is Sign.ANY:
                yield self._condition(base, ">= 0")
        else:
            yield self._condition(base, "> 0")

    def _inverse(self, e: Any) -> Iterator[Condition]:
        x = bare(self.read[e.function]) if e.function in self.read else self.node
        if x.op is inv_op:  # which has an inverse wherever it is defined
            return
        if not (x.op is variable and INVERTIBLE & set(x.params["hypotheses"])):
            yield self._condition(e.function, "is invertible")

    def _condition(self, e: Any, what: str) -> Condition:
        """A condition on a part of a formula, by the tensor that it reads, or else on the node as a whole."""
        if e in self.read:
            return Condition(_text(self.read[e]), what, self.read[e])
        return Condition(_text(self.node), "is defined")


def _text(x: Tensor) -> str:
    shown = definition(x)
    return str(x.name or (shown if tree_size(shown) <= LONGEST // 8 else x.brief()))
