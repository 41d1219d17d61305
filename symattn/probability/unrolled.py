"""Mean and variance once more, with numbers as sizes and indices: sums written out, one monomial of entries at a time.

Nothing of the symbolic calculation is used here: formulas are read entry by entry, and the expectation of a monomial
is a product of moments.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import sympy

from ..core.exact import exact
from ..core.node import Tensor
from ..graph.entries import entry
from ..graph.names import tree_size
from ..scalars.affine import affine
from ..scalars.explicit import written_out
from ..scalars.formulas import Choice, Held, Ranged, _Extreme, without_piecewise
from .laws import Iid, IidPair, Law, NormalRows, Sphere
from .ranges import index_ranges

Place = tuple[str, tuple[int, ...]]
_SIZES = ((1, 2, 3), (3, 2, 1), (2, 1, 2))
_NODES = 200  # of a quantity that is written out entry by entry
_ENTRIES, _PLACES, _TERMS = 16, 60, 2000  # random entries, places of free indices, and terms that are written out


class _Outside(Exception):
    """An entry that is not there: the formula has no value at these indices."""


class _Unreached(Exception):
    """What is no polynomial of random entries, or too long."""


def agrees(
    quantity: Any,
    bound: Sequence[tuple[tuple[Tensor, ...], Law]],
    tensors: Mapping[str, Tensor],
    told: tuple[sympy.Expr, sympy.Expr],
    conditions: Sequence[sympy.Expr] = (),
) -> bool | None:
    """Whether mean and variance hold at small sizes, at every place of the free indices; None if none was reached.

    Sizes at which one of the ``conditions`` is not positive are left out.
    """
    if isinstance(quantity, Tensor) and tree_size(quantity) > _NODES:
        return None
    formula = without_piecewise(exact(entry(quantity, ()) if isinstance(quantity, Tensor) else quantity))
    free = index_ranges(formula, tensors.__getitem__)
    shapes = [size for x in tensors.values() for size in x.shape]
    inside = {s for e in (formula, *free.values()) for s in e.free_symbols if s.is_integer and s.is_positive}
    sizes = sorted({s for size in shapes for s in size.free_symbols} | {s for s in inside if not s.is_Dummy}, key=str)
    reached = 0
    for numbers in _SIZES:
        at = dict(zip(sizes, itertools.cycle(numbers), strict=False))
        tables = _Unrolled(bound, tensors, at)
        if tables.entries > _ENTRIES or any(e.xreplace(_whole(at)).is_nonpositive for e in conditions):
            continue
        longest = sum(at.values()) + 1
        for places in itertools.islice(itertools.product(range(longest), repeat=len(free)), longest * _PLACES):
            try:
                found = tables.moments(formula, dict(zip(free, places, strict=True)))
                known = tuple(tables.value(e, dict(zip(free, places, strict=True))) for e in told)
            except _Outside:
                continue
            except _Unreached:
                break
            if any(sympy.simplify(a - b) != 0 for a, b in zip(found, known, strict=True)):
                return False
            reached += 1
            if reached >= _PLACES:
                return True
    return True if reached else None


def _whole(at: Mapping[Any, int]) -> dict[Any, sympy.Integer]:
    return {size: sympy.Integer(n) for size, n in at.items()}


class _Unrolled:
    """The laws at numbers as sizes."""

    def __init__(
        self, bound: Sequence[tuple[tuple[Tensor, ...], Law]], tensors: Mapping[str, Tensor], at: Mapping[Any, int]
    ) -> None:
        self.tensors, self.at = tensors, at
        self.law = {str(x.name): (law, [str(y.name) for y in own]) for own, law in bound for x in own}
        self.random = {name for name, (law, _) in self.law.items() if getattr(law, "name", None) != "constant"}
        self._symbols: dict[Place, sympy.Dummy] = {}
        self.places: dict[sympy.Dummy, Place] = {}

    @property
    def entries(self) -> int:
        """How many random entries there are."""
        counts = (sympy.Mul(*self.tensors[name].shape).subs(self.at) for name in self.random)
        return int(sum(counts))

    # --- formulas with numbers ---

    def value(self, formula: Any, env: Mapping[Any, Any]) -> Any:
        """A formula at numbers, its sums written out; only the side of a case that is taken is read."""
        if formula.has(_Extreme):
            raise _Unreached
        values = {k: sympy.sympify(v) for k, v in {**self.at, **env}.items()}
        for part in formula.atoms(Ranged):
            index, size = (end.xreplace(values) for end in part.args)
            if index.is_Integer and index >= size:
                raise _Outside
        numbers = {s: self._entry(s.name, ()) for s in formula.free_symbols if s.is_Symbol and self._is_number(s.name)}
        written = written_out(formula, self._element, {**values, **numbers}).replace(Held, lambda x: x)
        if written.has(sympy.Sum, Choice):
            raise _Unreached
        return written

    def _is_number(self, name: str) -> bool:
        return name in self.tensors and not self.tensors[name].rank

    def _element(self, base: Any, index: tuple[Any, ...]) -> Any:
        return self._entry(str(base), tuple(int(i) if i.is_Integer else i for i in index))

    def _entry(self, name: str, index: tuple[Any, ...]) -> Any:
        for i, size in zip(index, self.tensors[name].shape, strict=True):
            if isinstance(i, int) and not 0 <= i < sympy.sympify(size).subs(self.at):
                raise _Outside
        law, _ = self.law.get(name, (None, ()))
        if isinstance(law, Iid) and law.name == "constant" and law.known(1) is not None:
            return self.value(law.known(1), {})
        if any(not isinstance(i, int) for i in index):
            raise _Unreached  # an entry at a place that is an entry itself
        if "symmetric" in self.tensors[name].params["hypotheses"]:
            index = (*index[:-2], *sorted(index[-2:]))
        if (name, index) not in self._symbols:
            self._symbols[name, index] = symbol = sympy.Dummy(f"{name}{list(index)}", real=True)
            self.places[symbol] = name, index
        return self._symbols[name, index]

    # --- expectations ---

    def moments(self, formula: Any, env: Mapping[Any, Any]) -> tuple[Any, Any]:
        """Mean and variance at numbers."""
        x = sympy.expand(self.value(formula, env))
        mean = self._mean(x)
        return mean, self._mean(sympy.expand(x * x)) - mean**2

    def _mean(self, value: Any) -> Any:
        terms = sympy.Add.make_args(sympy.expand(value))
        if len(terms) > _TERMS:
            raise _Unreached
        return sympy.Add(*(self._term(term) for term in terms))

    def _term(self, term: Any) -> Any:
        powers: dict[Place, int] = {}
        fixed, exponents = [], []
        for factor in sympy.Mul.make_args(term):
            base, power = factor.as_base_exp()
            if not factor.free_symbols & {s for s, (name, _) in self.places.items() if name in self.random}:
                fixed.append(factor)
            elif base in self.places and power.is_Integer and power > 0:
                powers[self.places[base]] = int(power)
            elif isinstance(factor, sympy.exp):
                exponents.append(factor.args[0])
            else:
                raise _Unreached
        return sympy.Mul(*fixed) * self._monomial(powers, sympy.expand(sympy.Add(*exponents)))

    def _monomial(self, powers: Mapping[Place, int], exponent: Any) -> Any:
        """``E[prod x^k exp(L)]``, one group of entries that depend on each other at a time."""
        placed = {s: self.places[s] for s in exponent.free_symbols & self.places.keys()}
        moving = {s: place for s, place in placed.items() if place[0] in self.random}
        found = affine(exponent, moving)
        if found is None:
            raise _Unreached
        rest, slopes = found[0], {moving[s]: slope for s, slope in found[1].items()}
        groups: dict[Any, dict[Place, int]] = {}
        for name, index in {**powers, **slopes}:
            law, names = self.law[name]
            whole = index[:-1] if isinstance(law, (NormalRows, Sphere)) else index
            groups.setdefault((names[0], whole), {})[name, index] = powers.get((name, index), 0)
        result = sympy.exp(rest)
        for (name, _), group in groups.items():
            tilts = {place: slopes[place] for place in group if place in slopes}
            result *= self._tilted(self.law[name][0], group, tilts) if tilts else self._moment(*self.law[name], group)
        return result

    def _tilted(self, law: Law, group: Mapping[Place, int], tilts: Mapping[Place, Any]) -> Any:
        """``E[x^k exp(a x)] = exp(a m + a^2 v / 2) E[(x + a v)^k]`` for a normal entry."""
        if not isinstance(law, Iid) or not law.is_normal:
            raise _Unreached
        ((place, power),) = group.items()
        mean, variance = (self.value(law.known(order), {}) for order in (1, 2))
        a = tilts[place]
        shifted = sum(
            comb(power, k) * (a * variance) ** (power - k) * self._power(law, k) for k in range(power + 1)
        )  # fmt: skip
        return sympy.exp(a * mean + a**2 * variance / 2) * shifted

    def _moment(self, law: Law, names: Sequence[str], group: Mapping[Place, int]) -> Any:
        if isinstance(law, Iid):
            return sympy.Mul(*(self._power(law, power) for power in group.values()))
        if isinstance(law, IidPair):
            counts = [sum(power for (name, _), power in group.items() if name == own) for own in names]
            return self._joint(law, counts[0], counts[1])
        drawn = [index for (_, index), power in group.items() for _ in range(power)]
        if isinstance(law, NormalRows):
            return self._normal(law, drawn)
        if not isinstance(law, Sphere):
            raise _Unreached
        if any(power % 2 for power in group.values()):
            return sympy.S.Zero
        width = sympy.sympify(self.tensors[names[0]].shape[-1]).subs(self.at)
        above = sympy.Mul(*(sympy.factorial2(power - 1) for power in group.values()))
        return above / sympy.Mul(*(width + 2 * k for k in range(len(drawn) // 2)))

    def _power(self, law: Iid, order: int) -> Any:
        """The moments of an entry from its cumulants: ``m_n = sum_k C(n - 1, k - 1) kappa_k m_{n-k}``."""
        return self._joint(law, order, 0)

    def _joint(self, law: Iid | IidPair, a: int, b: int) -> Any:
        if a + b == 0:
            return sympy.S.One
        one = (1, 0) if a else (0, 1)
        total = sympy.S.Zero
        for p, q in itertools.product(range(one[0], a + 1), range(one[1], b + 1)):
            ways = comb(a - one[0], p - one[0]) * comb(b - one[1], q - one[1])
            total += ways * self._cumulant(law, p, q) * self._joint(law, a - p, b - q)
        return total

    def _cumulant(self, law: Iid | IidPair, p: int, q: int) -> Any:
        if isinstance(law, IidPair) and law.is_normal and p + q > 2:
            return sympy.S.Zero
        known = law.known(p) if isinstance(law, Iid) else law.known(p, q)
        return sympy.Symbol(f"kappa_{p}_{q}") if known is None else self.value(known, {})

    def _normal(self, law: NormalRows, drawn: Sequence[tuple[Any, ...]]) -> Any:
        """``E[x_1 ... x_n] = m_1 E[x_2 ...] + sum_k Cov(x_1, x_k) E[the others]``."""
        if not drawn:
            return sympy.S.One
        first, *others = drawn
        total = self._parameter(law.mean, first[-1:]) * self._normal(law, others)
        for n, other in enumerate(others):
            c = law.covariance
            same = self._parameter(c, (first[-1], other[-1]))
            if not isinstance(c, Tensor):
                same = same if first[-1] == other[-1] else sympy.S.Zero
            total += same * self._normal(law, [*others[:n], *others[n + 1 :]])
        return total

    def _parameter(self, parameter: Any, index: tuple[int, ...]) -> Any:
        if isinstance(parameter, Tensor):
            return self._entry(str(parameter.name), index)
        return self.value(sympy.sympify(parameter), {})
