"""From the first point at which two sides differ to one that fits a textbook: smaller sizes, then simpler entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sympy
from flint import fmpq

from ...core.budget import OutOfBudget
from ...core.node import Tensor
from ...core.sizes import least
from .balls import in_sympy
from .samples import Sampler, meets
from .values import Array, Point, indices, shape_at

_STEPS = 400
_FEW = 8  # sizes that are tried one after the other, before halves; and entries
_ZERO, _ONE = fmpq(0), fmpq(1)
_TURNED: dict[str, tuple[Callable[[int, int, int], Any], ...]] = {
    "permutation": (
        lambda i, j, n: i == j,
        lambda i, j, n: i == (1, 0, *range(2, n))[j],
        lambda i, j, n: i == (j + 1) % n,
    ),
    "orthogonal": (
        lambda i, j, n: i == j,
        lambda i, j, n: (i == j) * (-1 if i == 0 else 1),
        lambda i, j, n: i == (j + 1) % n,
        lambda i, j, n: (i == (j + 1) % n) * (-1 if j == 0 else 1),
    ),
    "invertible": (
        lambda i, j, n: i == j,
        lambda i, j, n: (i == j) * (2 if i == 0 else 1),
        lambda i, j, n: i == j or (i, j) == (0, 1),
    ),
}


class Shrinker:
    """Greedy steps that keep the hypotheses and the difference.

    ``differs(point)`` asks both; ``fresh(sizes, trial)`` draws another point. A ``twin`` is a second value of a
    tensor, which is moved with it wherever the two agree.
    """

    def __init__(
        self,
        sampler: Sampler,
        differs: Callable[[Point], bool],
        fresh: Callable[[Mapping[sympy.Symbol, int], int], Point | None],
        twin: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._sampler, self._differs, self._fresh = sampler, differs, fresh
        self._first = {} if twin is None else {twin[1]: twin[0]}  # of what a tensor is a second value
        self._steps = _STEPS

    def run(self, point: Point) -> Point:
        """The simplest point that was reached."""
        self._best = point
        try:
            while self._steps > 0 and (self._smaller() | self._simpler()):
                pass
        except OutOfBudget:
            pass
        return self._best

    def _take(self, candidate: Point | None) -> bool:
        if candidate is None or self._steps <= 0:
            return False
        self._steps -= 1
        if not self._differs(candidate):
            return False
        self._best = candidate
        return True

    # --- sizes ---

    def _smaller(self) -> bool:
        """One size after the other as small as it can be."""
        moved = False
        for symbol in self._sampler.sizes.symbols:
            few = any(self._resize(symbol, n) for n in range(least(symbol), min(self._best.sizes[symbol], _FEW)))
            moved |= few or self._halved(symbol)
        return moved

    def _halved(self, symbol: sympy.Symbol) -> bool:
        """A large size by bisection, as if all sizes above a certain one would do."""
        low, start = _FEW - 1, self._best.sizes[symbol]
        while self._steps > 0 and self._best.sizes[symbol] - low > 1:
            middle = (low + self._best.sizes[symbol]) // 2
            low = low if self._resize(symbol, middle) else middle
        return self._best.sizes[symbol] < start

    def _resize(self, symbol: sympy.Symbol, n: int) -> bool:
        sizes = self._sampler.sizes.complete({**self._best.sizes, symbol: n})
        if sizes is None or sum(sizes.values()) >= sum(self._best.sizes.values()):
            return False
        trials = range(3 if self._best.arrays else 0)
        return self._take(self._cut(sizes)) or any(self._take(self._fresh(sizes, trial)) for trial in trials)

    def _cut(self, sizes: Mapping[sympy.Symbol, int]) -> Point | None:
        """The point with what its arrays hold below the sizes; what that breaks is drawn anew."""
        drawn = self._fresh(sizes, 0)
        if drawn is None:
            return None
        arrays = dict(drawn.arrays)
        for x, array in self._best.arrays.items():
            places = list(indices(shape_at(x, sizes)))
            part = {at: array[at] for at in places if at in array}
            if len(part) == len(places) and self._sampler.allows(x, part, sizes):
                arrays[x] = part
        return replace(self._best, sizes=dict(sizes), arrays=arrays)

    # --- entries ---

    def _simpler(self) -> bool:
        """Scalars and entries by 0, 1 and -1, whole arrays first."""
        moved = False
        for symbol in self._sampler.sizes.scalars:
            moved |= self._scalar(symbol)
        for x in self._best.arrays:
            if x not in self._first:
                moved |= self._whole(x)
            if not _is_turned(x):
                moved |= self._cleared(x) | self._entries(x)
        return moved

    def _scalar(self, symbol: sympy.Symbol) -> bool:
        """A scalar by 1, or by what is simplest among the values that the claim points to."""
        own = self._best.scalars[symbol]

        def is_simpler(q: fmpq) -> bool:
            return bool(own != 1) if q == 1 else isinstance(own, fmpq) and _simplicity(q) < _simplicity(own)

        simpler = (q for q in (_ONE, *self._aims()) if is_simpler(q) and meets(symbol, in_sympy(q)))
        return any(self._take(replace(self._best, scalars={**self._best.scalars, symbol: q})) for q in simpler)

    def _aims(self) -> list[fmpq]:
        aims = self._sampler.aims
        return [] if aims is None else sorted(aims.values, key=_simplicity)

    def _cleared(self, x: Tensor) -> bool:
        """Zeros in as many entries of a large array as will do, half of them at a time."""
        moved, length = False, len(self._best.arrays[x]) // 2
        while length > _FEW:
            places = [at for at, q in self._best.arrays[x].items() if q != 0]
            for start in range(0, len(places), length):
                moved |= self._take(self._with(x, dict.fromkeys(places[start : start + length], _ZERO)))
            length //= 2
        return moved

    def _whole(self, x: Tensor) -> bool:
        """The first of the simplest arrays that will do."""
        array = self._best.arrays[x]
        for simple in _simple_arrays(x, shape_at(x, self._best.sizes)):
            if simple == array:
                return False
            changed = {at: v for at, v in simple.items() if v != array[at]}
            if (_is_turned(x) or _weight(simple) < _weight(array)) and self._take(self._with(x, changed)):
                return True
        return False

    def _entries(self, x: Tensor) -> bool:
        moved = False
        for at in self._best.arrays[x]:
            moved |= any(self._take(self._with(x, {at: value})) for value in self._simpler_values(x, at))
        return moved

    def _simpler_values(self, x: Tensor, at: tuple[int, ...]) -> list[Any]:
        """Simpler values for an entry; for one of a twin that differs, first that of its other half."""
        own = self._best.arrays[x][at]
        first = [self._best.arrays[self._first[x]][at]] if x in self._first else []
        if own in first:
            return []
        others = (_ZERO, _ONE, -_ONE, *([] if first else self._aims()))
        return [*first, *(q for q in others if _simplicity(q) < _simplicity(own))]

    def _with(self, x: Tensor, changed: Mapping[tuple[int, ...], Any]) -> Point | None:
        """The point with other entries in one array, and in its twin where they agreed; None if that is not allowed."""
        arrays = dict(self._best.arrays)
        arrays[x] = {**arrays[x], **changed}
        before = self._best.arrays[x]
        for twin in [y for y, first in self._first.items() if first is x]:
            arrays[twin] = arrays[twin] | {at: v for at, v in changed.items() if arrays[twin][at] == before[at]}
        allows = self._sampler.allows
        same = self._best.arrays
        allowed = all(array is same[y] or allows(y, array, self._best.sizes) for y, array in arrays.items())
        return replace(self._best, arrays=arrays) if allowed else None


def _simplicity(q: Any) -> tuple[int, int, bool]:
    """Smaller is simpler: 0, 1, -1, 2, ..., then fractions."""
    return int(q.q), abs(int(q.p)), bool(q < 0)


def _weight(array: Array) -> tuple[int, ...]:
    """How far the entries of an array are from simple, all in all."""
    below, above, negative = zip(*map(_simplicity, array.values()), strict=True)
    return sum(below), sum(above), sum(negative)


def _is_turned(x: Tensor) -> bool:
    return bool({"permutation", "orthogonal"} & set(x.params["hypotheses"]))


def _simple_arrays(x: Tensor, shape: tuple[int, ...]) -> Iterator[Array]:
    for name, matrices in _TURNED.items():
        if name in x.params["hypotheses"]:
            n = shape[-1]
            for matrix in matrices:
                yield {at: fmpq(int(matrix(at[-2], at[-1], n))) for at in indices(shape)}
            return
    for value in (_ZERO, _ONE):
        yield dict.fromkeys(indices(shape), value)
