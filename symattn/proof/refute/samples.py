"""Points to try: small sizes, small rationals, and arrays that satisfy every hypothesis exactly."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, TypeAlias

import sympy
from flint import fmpq, fmpq_mat
from sympy.logic.boolalg import Boolean

from ...core.node import Tensor, topological
from ...core.sizes import least
from ...ops.domain import rooms, size_symbols
from ...ops.gather import scatter_op, take_op
from ...ops.leaves import variable
from ...scalars.affine import coefficients
from ..relations import Relations, in_order
from .balls import Number, in_sympy, rational
from .fitted_sizes import Linear, fitted
from .pointed import Aims
from .values import Array, Point, indices, shape_at

_HALF, _THIRD = fmpq(1, 2), fmpq(1, 3)
_POOLS: tuple[tuple[fmpq, ...], ...] = tuple(
    tuple(fmpq(q) for q in pool)
    for pool in ((-2, -1, 0, 1, 2), (_THIRD, _HALF, 1, 2, 3), (-2, -1, 1, 2), (-3, -_HALF, 0, 1, _HALF, 2), (0, 1))
)
_POSITIVE, _BINARY = _POOLS[1], _POOLS[4]
_SCALARS = tuple(fmpq(q) for q in (1, 2, -1, _HALF, -2, 3, -_HALF, _THIRD, -3, 0))
_SIZES = (1, 2, 3, 2, 3, 4, 6, 8, 9, 12)  # from the left: small ones, and then what products and quotients need
_SMALL = range(1, 25)  # sizes that are tried under relations, beside the numbers that these speak of
_LARGEST, _CHOICES = 1000, 4096  # the largest of those numbers, and how many choices of sizes are tried
_MOST = 50_000  # entries of an array, times the largest size
_ROTATIONS = ((fmpq(3, 5), fmpq(4, 5)), (fmpq(5, 13), fmpq(12, 13)), (fmpq(4, 5), fmpq(-3, 5)))

Matrix: TypeAlias = list[list[Any]]


# --- sizes ---


class Sizes:
    """Values for the size symbols such that every size is a positive integer and every relation holds."""

    def __init__(
        self, nodes: Sequence[Tensor], relations: Sequence[Boolean], asked: Set[sympy.Symbol] = frozenset()
    ) -> None:
        symbols = set(asked).union(*(x.own_symbols for x in nodes), *(r.free_symbols for r in relations))
        offsets = size_symbols(nodes)  # of axes; others are scalars
        sizes = (s for s in symbols if s in offsets or (s.is_integer and s.is_positive))
        self.symbols = sorted(sizes, key=lambda s: s.name)
        self.scalars = sorted(symbols.difference(self.symbols), key=lambda s: s.name)
        self._composite = list(dict.fromkeys(n for x in nodes for n in x.shape if not (n.is_Symbol or n.is_Integer)))
        self._nodes, self._given = nodes, relations
        self._relations = Relations(relations)
        self.related = self._relations.symbols  # the sizes that relations speak of
        self._solved: dict[sympy.Symbol, sympy.Expr] = {}
        for r in relations:  # T = S + 1 gives T
            for symbol, value in (r.args, r.args[::-1]) if isinstance(r, sympy.Eq) else ():
                if symbol in self.symbols and self._is_apart(symbol, value):
                    self._solved[symbol] = value
                    break

    def _is_apart(self, symbol: sympy.Symbol, value: sympy.Expr) -> bool:
        """Whether the symbol can be computed from others that are drawn, and nothing is computed from it."""
        used = value.free_symbols.union(*(v.free_symbols for v in self._solved.values()))
        return symbol not in used and not ({symbol} | value.free_symbols) & self._solved.keys()

    def complete(self, wanted: Mapping[sympy.Symbol, int]) -> dict[sympy.Symbol, int] | None:
        """The sizes with those that relations give, or None if they do not fit."""
        sizes = self._with_solved({s: n for s, n in wanted.items() if s not in self._solved})
        if sizes is None:
            return None
        fits = all(meets(s, sympy.Integer(n)) for s, n in sizes.items() if s.assumptions0.keys() & _SPECIAL)
        fits = fits and all((n := size.subs(sizes)).is_Integer and n > 0 for size in self._composite)
        return sizes if fits and self._relations.hold(sizes) else None

    def _with_solved(self, drawn: Mapping[sympy.Symbol, int]) -> dict[sympy.Symbol, int] | None:
        """The sizes with those that they give, or None where these are no sizes."""
        solved = {s: value.subs(drawn) for s, value in self._solved.items()}
        fits = all(n.is_Integer and n >= least(s) for s, n in solved.items())
        return {**drawn, **{s: int(n) for s, n in solved.items()}} if fits else None

    @cached_property
    def _fitting(self) -> list[dict[sympy.Symbol, int]]:
        """Values for the sizes that relations speak of and that none of them gives, the smallest first."""
        drawn = [s for s in self.related if s not in self._solved]
        numbers = {n for r in self._given for n in r.atoms(sympy.Integer)}
        spoken = {int(n) + k for n in numbers for k in (-1, 0, 1)}
        pool = list(dict.fromkeys([*_SMALL[:4], *sorted(n for n in spoken if 0 < n <= _LARGEST), *_SMALL]))
        most = max(2, int(_CHOICES ** (1 / max(1, len(drawn)))))
        choices = itertools.islice(itertools.product(pool[:most], repeat=len(drawn)), _CHOICES)
        chosen = (dict(zip(drawn, values, strict=True)) for values in choices)
        fitting = (drawn for drawn in chosen if (sizes := self._with_solved(drawn)) and self._relations.hold(sizes))
        return sorted(fitting, key=lambda sizes: sum(sizes.values()))

    @cached_property
    def _rooms(self) -> list[Linear]:
        """What may not be negative for relations to hold, and for all that is read to lie inside.

        It is of sizes alone, and as far as it is linear in them; offsets are at their least, 0.
        """
        stated = (more - less for r in self._given for less, more in in_order(r))
        found = []
        for room in (*rooms(self._nodes), *stated):
            offsets = {s: sympy.S.Zero for s in room.free_symbols if s not in self.symbols}
            terms = coefficients(room.xreplace(self._solved).xreplace(offsets))
            if terms.keys() - {sympy.S.One} and all(m == 1 or m in self.symbols for m in terms):
                found.append(terms)
        return found

    def _with_room(self, wanted: Mapping[sympy.Symbol, int]) -> dict[sympy.Symbol, int] | None:
        """Sizes near the wanted ones that have room for all that is read, or None."""
        found = fitted(self._rooms, wanted)
        return None if found is None else self.complete(found)

    def least(self) -> dict[sympy.Symbol, int] | None:
        """All sizes 1, and offsets 0, but for those that have to be larger; None if that does not fit."""
        smallest = {s: least(s) for s in self.symbols}
        return self._with_room(smallest) or self.complete(smallest)

    def draw(self, trial: int, rng: random.Random) -> dict[sympy.Symbol, int] | None:
        """Sizes for a trial: first all 2, then 2 and 3 in turn, then all 3, then anything small.

        Where relations do not hold of them, those that they speak of are the next ones of which they hold; where
        something is read outside, they are changed until it is not.
        """
        for attempt in range(60):
            if attempt or trial > 2:
                top = 3 + attempt * len(_SIZES) // 60 if attempt else 5
                chosen = [rng.choice(_SIZES[: max(3, top)]) for _ in self.symbols]
            else:
                chosen = [(2, 2 + n % 2, 3)[trial] for n in range(len(self.symbols))]
            wanted = {s: n - 1 + least(s) for s, n in zip(self.symbols, chosen, strict=True)}
            sizes = self.complete(wanted)
            if sizes is None and self.related and self._fitting:
                place = rng.randrange(len(self._fitting)) if attempt else trial % len(self._fitting)
                sizes = self.complete({**wanted, **self._fitting[place]})
            sizes = self._with_room(sizes or wanted) or sizes
            if sizes is not None:
                return sizes
        return None


_SPECIAL = {"even", "odd", "prime", "composite"}


def meets(symbol: sympy.Symbol, value: sympy.Expr) -> bool:
    """Whether a number has the properties that a symbol was declared with."""
    return all(getattr(value, f"is_{name}", None) in (holds, None) for name, holds in symbol.assumptions0.items())


def draw_scalar(symbol: sympy.Symbol, trial: int, rng: random.Random, aims: Aims | None = None) -> Number | None:
    """A small rational with the properties of the symbol, or the next of the aims that has them."""
    for q in aims.round() if aims is not None else ():
        if meets(symbol, in_sympy(q)):
            return q
    fitting = [q for q in _SCALARS if meets(symbol, in_sympy(q))]
    return rng.choice(fitting[: 3 + trial]) if fitting else None


# --- hypotheses ---


def _index_tensors(by: Tensor) -> list[Tensor]:
    """The integer tensors whose values an index is made of: below a take, those of what it takes from."""
    below = topological([by], inputs=lambda x: x.inputs[:1] if x.op is take_op else x.inputs)
    return [x for x in below if x.op is variable]


def _matrices(array: Array, shape: Sequence[int]) -> list[Matrix]:
    """The matrices along the last two axes."""
    rows, columns = shape[-2:]
    return [[[array[(*at, i, j)] for j in range(columns)] for i in range(rows)] for at in indices(shape[:-2])]


def _each_matrix(holds: Callable[[fmpq_mat], bool]) -> Callable[[Array, Sequence[int]], bool]:
    return lambda array, shape: all(holds(fmpq_mat(matrix)) for matrix in _matrices(array, shape))


def _each_entry(holds: Callable[[Any], bool]) -> Callable[[Array, Sequence[int]], bool]:
    return lambda array, shape: all(map(holds, array.values()))


def _is_orthogonal(m: fmpq_mat) -> bool:
    return m * m.transpose() == fmpq_mat(m.nrows(), m.nrows(), [int(i == j) for i, j in indices((m.nrows(),) * 2)])


_HOLDS: dict[str, Callable[[Array, Sequence[int]], bool]] = {
    "permutation": lambda array, shape: (
        all(x in (0, 1) for x in array.values()) and _each_matrix(_is_orthogonal)(array, shape)
    ),
    "orthogonal": _each_matrix(_is_orthogonal),
    "invertible": _each_matrix(lambda m: m.det() != 0),
    "binary": _each_entry(lambda x: x in (0, 1)),
    "integer": _each_entry(lambda x: x == int(x)),
    "positive": _each_entry(lambda x: x > 0),
    "symmetric": lambda array, shape: all(array[(*at[:-2], at[-1], at[-2])] == x for at, x in array.items()),
    "constant": lambda array, shape: True,  # as far as derivatives go
}


# --- arrays ---


def _proposal(
    shape: Sequence[int], declared: Sequence[str], top: int | None, trial: int, rng: random.Random, aims: Aims | None
) -> Array:
    """An array that may satisfy the hypotheses, which are checked afterwards."""
    for h, draw in _MATRICES.items():
        if h in declared:
            array: Array = {}
            for at in indices(shape[:-2]):
                matrix = draw(shape[-1], rng, "symmetric" in declared)
                array |= {(*at, i, j): fmpq(x) for i, row in enumerate(matrix) for j, x in enumerate(row)}
            return array
    pool = _pool(declared, top, trial)
    array = {at: rng.choice(pool) for at in indices(shape)}
    if trial % 10 == 5:  # entries that are all equal, which extremes and entropies tell from others
        array = dict.fromkeys(array, rng.choice(pool))
    if aims is not None and top is None and "binary" not in declared:
        array |= _aimed(array, declared, aims)
    if "binary" in declared and shape and trial % 4 != 2:  # every row attends to something
        for at in indices(shape[:-1]):
            array[(*at, rng.randrange(shape[-1]))] = fmpq(1)
    if "binary" in declared and len(shape) > 1 and trial % 4 == 0:  # but for exactly one
        empty = rng.choice(list(indices(shape[:-1])))
        array |= {(*empty, j): fmpq(0) for j in range(shape[-1])}
    if "symmetric" in declared:
        array = {at: array[(*at[:-2], *sorted(at[-2:]))] for at in array}
    return array


def _pool(declared: Sequence[str], top: int | None, trial: int) -> Sequence[Any]:
    if top is not None:
        return [fmpq(n) for n in range(top)]
    if "binary" in declared:  # one trial in two a dense mask, which leaves no row empty when it is joined to another
        return _BINARY + _BINARY[1:] * 2 * (trial % 2)
    pool: Sequence[Any] = _POOLS[trial % len(_POOLS)]
    if "positive" in declared:
        pool = _POSITIVE
    return [q for q in pool if q.q == 1] if "integer" in declared else pool


def _aimed(array: Array, declared: Sequence[str], aims: Aims) -> Array:
    """The next of the aims for each entry, or each second one of many, as far as it is what was declared."""
    places = list(array)[:: 1 + (len(array) > len(aims.values))]
    dealt = ((at, aims.next()) for at in places)
    return {
        at: q for at, q in dealt if (q > 0 or "positive" not in declared) and (q.q == 1 or "integer" not in declared)
    }


def _permutation(n: int, rng: random.Random, symmetric: bool) -> Matrix:
    """A permutation other than the identity, from size 3 on with a cycle of three; or an involution."""
    places = list(range(n))
    if symmetric:
        a, b = rng.randrange(n), rng.randrange(n)
        places[a], places[b] = b, a
    else:
        for _ in range(8):
            rng.shuffle(places)
            if any(places[places[i]] != i for i in range(n)) or (n == 2 and places[0]):
                break
    return [[int(places[i] == j) for j in range(n)] for i in range(n)]


def _orthogonal(n: int, rng: random.Random, symmetric: bool) -> Matrix:
    """A rational rotation of two axes, after a permutation with signs; or a reflection; or a permutation alone."""
    if not symmetric and rng.randrange(4) == 0:
        return _permutation(n, rng, rng.randrange(2) == 0)
    rows = [[int(i == j) for j in range(n)] for i in range(n)] if symmetric else _permutation(n, rng, False)
    start: Matrix = [[x * rng.choice((1, -1)) for x in row] for row in rows]
    if n == 1:
        return start
    a, b = sorted(rng.sample(range(n), 2))
    c, s = rng.choice(_ROTATIONS)
    if symmetric:
        start[a][a], start[a][b], start[b][a], start[b][b] = c, s, s, -c
        return start
    return [
        [c * r[a] - s * r[b] if j == a else s * r[a] + c * r[b] if j == b else r[j] for j in range(n)] for r in start
    ]


def _invertible(n: int, rng: random.Random, symmetric: bool) -> Matrix:
    """A product of elementary matrices, once in a while with a factor 2; or that times its transpose."""
    rows = [[int(i == j) for j in range(n)] for i in range(n)]
    for _ in range(n + 1 if n > 1 else 0):
        a, b = rng.sample(range(n), 2)
        factor = rng.choice((-1, 1, 1, 2))
        rows[a] = [x + factor * y for x, y in zip(rows[a], rows[b], strict=True)]
    factor = rng.choice((2, -1, 1, 3))
    rows[0] = [factor * x for x in rows[0]]
    if symmetric:
        return [[sum(x * y for x, y in zip(r, s, strict=True)) for s in rows] for r in rows]
    return rows


_MATRICES: dict[str, Callable[[int, random.Random, bool], Matrix]] = {
    "permutation": _permutation, "orthogonal": _orthogonal, "invertible": _invertible,
}  # fmt: skip


class Sampler:
    """Points for the trials of a claim: everything that is given without conditions on several arrays at once."""

    def __init__(
        self,
        nodes: Sequence[Tensor],
        relations: Sequence[Boolean],
        drawn: Sequence[Tensor],
        rng: random.Random,
        asked: Set[sympy.Symbol] = frozenset(),
    ) -> None:
        self.sizes, self._rng = Sizes(nodes, relations, asked), rng
        self._shapes = {x.shape: x for x in nodes}.values()
        self.aims: Aims | None = None  # values that the claim points to, which are also what shrinking tries
        self.drawn = sorted(drawn, key=lambda x: (x.params["name"], str(x.shape), x.params["hypotheses"]))
        self._read: dict[Tensor, list[sympy.Expr]] = {}  # the sizes of the axes that an integer tensor indexes
        for node in nodes:
            if node.op in (take_op, scatter_op):
                of, by = node.inputs
                size = of.shape[node.params["axis"]] if node.op is take_op else node.params["size"]
                for x in _index_tensors(by):
                    self._read.setdefault(x, []).append(size)

    def draw(self, trial: int) -> Point | None:
        """A point, or None if there is none for these sizes, or if it is too large."""
        sizes = self.sizes.draw(trial, self._rng)
        return None if sizes is None or self._is_too_large(sizes) else self.at(sizes, trial)

    def _is_too_large(self, sizes: Mapping[sympy.Symbol, int]) -> bool:
        largest = max(sizes.values(), default=0)
        return largest > max(_SIZES) and any(largest * math.prod(shape_at(x, sizes)) > _MOST for x in self._shapes)

    def holds(self, point: Point) -> bool:
        """Whether the sizes, scalars and arrays of a point are what they were declared and given to be."""
        if self.sizes.complete(point.sizes) != point.sizes or set(self.drawn) - point.arrays.keys():
            return False
        numbers = ((s, rational(point.scalars[s])) for s in self.sizes.scalars)
        return all(q is not None and meets(s, in_sympy(q)) for s, q in numbers) and all(
            array.keys() == set(indices(shape_at(x, point.sizes))) and self.allows(x, array, point.sizes)
            for x, array in ((x, point.arrays[x]) for x in self.drawn)
        )

    def at(self, sizes: Mapping[sympy.Symbol, int], trial: int, aims: Aims | None = None) -> Point | None:
        """A point of the given sizes, with values of the ``aims`` if there are any."""
        scalars = {s: draw_scalar(s, trial, self._rng, aims) for s in self.sizes.scalars}
        arrays = {x: self.array(x, sizes, trial, aims) for x in self.drawn}
        if None in scalars.values() or any(array is None for array in arrays.values()):
            return None
        return Point(dict(sizes), scalars, arrays, trial)  # type: ignore[arg-type]  # None was excluded

    def _top(self, x: Tensor, sizes: Mapping[sympy.Symbol, int]) -> int | None:
        """The first integer that an index tensor may not hold."""
        return min((int(size.subs(sizes)) for size in self._read.get(x, ())), default=None)

    def allows(self, x: Tensor, array: Array, sizes: Mapping[sympy.Symbol, int]) -> bool:
        """Whether an array of rationals satisfies what its tensor was declared to be, exactly."""
        declared, top = x.params["hypotheses"], self._top(x, sizes)
        if top is not None and not all(0 <= q < top for q in array.values()):  # type: ignore[operator]
            return False
        return not declared or all(_HOLDS[h](array, shape_at(x, sizes)) for h in declared)

    def array(self, x: Tensor, sizes: Mapping[sympy.Symbol, int], trial: int, aims: Aims | None = None) -> Array | None:
        """A random array for the tensor, of the ``aims`` where it may hold them, or None if none was found."""
        shape, declared, top = shape_at(x, sizes), x.params["hypotheses"], self._top(x, sizes)
        for _ in range(30):
            array = _proposal(shape, declared, top, trial, self._rng, aims)
            if self.allows(x, array, sizes):
                return array
        return None
