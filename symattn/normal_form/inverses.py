"""Entries of inverse matrices: of named matrices, their products and multiples, and of matrices of small fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from . import functions
from .contraction import inverse_name
from .indices import Index, number, plus, solved, symbols
from .terms import ONE, ZERO, Atom, Factor, Poly, Unsupported, plain, product_of, single

if TYPE_CHECKING:
    from .formulas import Env, Reader
    from .ring import Ring

_LARGEST = 4  # size of a matrix whose inverse is written out by cofactors


def inverse_entry(reader: Reader, e: Any, env: Env) -> Poly:
    """``(A^{-1})_{ij}`` for the matrix of a formula over two bound indices."""
    (k, _, high), (m, _, _) = e.limits
    size = sympy.expand(high + 1)
    i, j = (reader.place(place, env) for place in e.places)
    pieces = reader.lowering.over(size)
    if len(pieces) > 1 or not pieces[0][1]:
        for _, held in pieces:
            for s in held:
                reader.lowering.partition.cut(reader.ring.ranges[s], sympy.S.One)
        matrix = [[reader.read(e.function, {**env, k: a, m: b}) for b, _ in pieces] for a, _ in pieces]
        return _cofactors(reader, matrix, [index for index, _ in pieces], i, j)
    row, column = reader.ring.fresh(size), reader.ring.fresh(size)
    poly = reader.read(e.function, {**env, k: row, m: column})
    if len(poly.terms) == 1:
        c, term = poly.terms[0]
        found = _of_factors(reader, list(term.factors), list(term.bound), row, column, i, j)
        if found is not None:
            return reader.ring.scale(plain(Fraction(1) / c), found)
    if size.is_Integer and size <= _LARGEST:
        reader.lowering.partition.cut(size, sympy.S.One)
    return single(Atom("inverse", None, (i, j), (poly,), (row, column)))


def _of_factors(
    reader: Reader, factors: list[Factor], bound: list[int], row: int, column: int, i: Index, j: Index
) -> Poly | None:
    """The inverse of a product of named matrices, the last factor first: ``(A B)^{-1} = B^{-1} A^{-1}``."""
    ring = reader.ring
    held = [n for n, (atom, _) in enumerate(factors) if row in atom.free]
    if len(held) != 1 or factors[held[0]][1] != 1:
        return None
    atom = factors.pop(held[0])[0]
    if column in atom.free:
        if bound or any({row, column} & other.free for other, _ in factors):
            return None
        inverse = _named(reader, atom, row, column, i, j)
        scale = functions.power(ring, product_of(factors), -1)
        return None if inverse is None else ring.multiply(inverse, scale)
    middle = next((s for s in bound if s in atom.free), None)
    if middle is None or ring.ranges[middle] != ring.ranges[row]:
        return None
    bound.remove(middle)
    s = ring.fresh(ring.ranges[row])
    first = _named(reader, atom, row, middle, s, j)
    rest = _of_factors(reader, factors, bound, middle, column, i, s)
    if first is None or rest is None:
        return None
    ring.use("the inverse of a product is the product of the inverses, in the other order")
    return ring.summed((s,), ring.multiply(rest, first))


def _named(reader: Reader, atom: Atom, row: int, column: int, i: Index, j: Index) -> Poly | None:
    """The entry (i, j) of the inverse of the matrix whose entry (row, column) an atom is."""
    ring = reader.ring
    if atom.kind == "same":
        value = solved(atom.indices[1], column, atom.indices[0])
        if value is None or row not in symbols(value):
            value = solved(atom.indices[0], column, atom.indices[1])
        if value is None or not _is_bijection(ring, value, row):
            return None
        delta = ring.atom(Atom("same", None, (value, column)))  # column = pi(row): the inverse sends it back
        return ring.replace(delta, {row: j, column: i})
    if atom.kind == "inverse":
        return _undone(ring, atom, row, column, i, j)
    if atom.kind not in ("entry", "symmetric") or len(atom.indices) < 2:
        return None
    *lead, a, b = atom.indices
    if any({row, column} & set(symbols(x)) for x in lead) or (a, b) not in ((row, column), (column, row)):
        return None
    matrix = atom.name.removesuffix("^-1")  # an inverse has the shape of its matrix
    if not (ring.runs_over_all(row, matrix) and ring.runs_over_all(column, matrix)):
        return None  # the inverse of a block is not the block of the inverse
    if atom.kind == "symmetric":
        return single(Atom("symmetric", inverse_name(atom.name), (i, j)))
    places = (i, j) if (a, b) == (row, column) else (j, i)
    if ring.says(atom.name, "orthogonal"):
        ring.use(f"{atom.name} is orthogonal")
        return single(Atom("entry", atom.name, (*lead, *places[::-1])))
    return single(Atom("entry", inverse_name(atom.name), (*lead, *places)))


def _undone(ring: Ring, atom: Atom, row: int, column: int, i: Index, j: Index) -> Poly | None:
    """The entry (i, j) of the matrix of an inverse, all of whose places are read."""
    (matrix,), (a, b) = atom.inner, atom.bound
    if any(ring.ranges[s] != ring.ranges[t] for s, t in ((row, a), (column, b))):
        return None  # the inverse of a block is not the block of the inverse
    if atom.indices not in ((row, column), (column, row)) or {row, column} & matrix.free:
        return None
    ring.use("the inverse of an inverse is the matrix")
    places = (i, j) if atom.indices == (row, column) else (j, i)
    return ring.replace(matrix, dict(zip((a, b), places, strict=True)))


def _is_bijection(ring: Ring, index: Index, s: int) -> bool:
    """Whether an index takes each place once while a symbol does: the symbol itself, backwards, or permuted."""
    while isinstance(index, tuple) and index[0] == "perm":
        if not ring.runs_over_all(s, index[1]):
            return False
        index = index[3]
    backwards = plus(number(ring.ranges[s] - 1), s, -1)
    return index == s or ring.index_key(index, {}) == ring.index_key(backwards, {})


def _cofactors(reader: Reader, matrix: Sequence[Sequence[Poly]], places: Sequence[Index], i: Index, j: Index) -> Poly:
    """Cramer's rule for a matrix whose places are written out."""
    ring = reader.ring
    keys = [ring.index_key(place, {}) for place in places]
    try:
        row, column = keys.index(ring.index_key(i, {})), keys.index(ring.index_key(j, {}))
    except ValueError:
        raise Unsupported("an entry of an inverse at a place that is not written out") from None
    n = len(places)
    if n > _LARGEST:
        raise Unsupported(f"the inverse of a matrix of size {n}")
    ring.use("an inverse of small fixed size is written by cofactors")
    minor = [[matrix[r][c] for c in range(n) if c != row] for r in range(n) if r != column]
    cofactor = ring.scale((-1) ** (row + column), _determinant(ring, minor))
    return ring.multiply(cofactor, functions.power(ring, _determinant(ring, matrix), -1))


def _determinant(ring: Any, matrix: Sequence[Sequence[Poly]]) -> Poly:
    if not matrix:
        return ONE
    total = ZERO
    for c, value in enumerate(matrix[0]):
        minor = [[row[k] for k in range(len(row)) if k != c] for row in matrix[1:]]
        total = ring.add(total, ring.scale((-1) ** c, ring.multiply(value, _determinant(ring, minor))))
    return total
