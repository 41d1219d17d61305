"""Entry formulas, which are SymPy scalars with placeholders for what they read, as polynomials.

``FORMULAS`` says for each kind of SymPy node how it is read. Index expressions stay index expressions where an
operation uses them as such, and become values where a formula computes with them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from sympy.core.relational import Relational

from ..core.node import Tensor
from ..scalars.formulas import Choice, Held, InverseEntry, Max, Min, ScanEntry, Unknown, UnknownOfRow
from ..scalars.functions import FUNCTIONS, U
from . import functions
from .constructors import composed, index_value, scalar
from .contraction import inverse_name
from .functions import MINUS_INFINITY
from .indices import ZERO as FIRST
from .indices import Index, affine, bounds, number, plus, solved, symbols
from .ring import Ring
from .terms import ONE, ZERO, Atom, Factor, Poly, Term, Undefined, Unsupported, constant, plain, product_of, single

if TYPE_CHECKING:
    from .lowering import Lowering

Env = Mapping[Any, Any]
_LARGEST_INVERSE = 4  # size of a matrix whose inverse is written out by cofactors


class NoIndex(Unsupported):
    """An expression that is not an affine combination of indices."""


class Reader:
    """Reads one node's entry formula."""

    def __init__(self, lowering: Lowering, node: Tensor, reads: Mapping[Any, tuple[int, tuple[Any, ...]]]) -> None:
        self.lowering = lowering
        self.ring = lowering.ring
        self.node, self.reads = node, reads

    def read(self, e: Any, env: Env) -> Poly:
        """A formula as a polynomial; ``env`` holds the indices that its symbols stand for."""
        if e.is_Symbol:
            return self.symbol(e, env)
        if e.is_Rational:
            return constant(e)
        for kind in type(e).__mro__:
            if (rule := FORMULAS.get(kind)) is not None:
                return rule(self, e, env)
        if (found := composed(self.ring, e, lambda part: self.read(part, env))) is not None:
            return found
        if type(e) in FUNCTIONS and FUNCTIONS[type(e)].normal is not None:
            return scalar(self.ring, FUNCTIONS[type(e)].normal, {U: self.read(e.args[0], env)})
        if isinstance(e, sympy.Function):
            return self._by_name(e, env)
        if not e.free_symbols:
            return scalar(self.ring, e)
        raise Unsupported(f"{type(e).__name__} in an entry of {self.node.op.title}")

    def _by_name(self, e: Any, env: Env) -> Poly:
        return functions.function(self.ring, type(e).__name__, [self.read(part, env) for part in e.args])

    def symbol(self, e: Any, env: Env) -> Poly:
        if e in self.reads:
            k, where = self.reads[e]
            return self.lowering.entry(self.node.inputs[k], tuple(self.place(i, env) for i in where))
        if e in env:
            return index_value(self.ring, env[e])
        return scalar(self.ring, e)

    # --- indices ---

    def place(self, e: Any, env: Env) -> Index:
        """Where an input is read."""
        try:
            below = _denominator(e)
            return self.index(e, env) if below == 1 else self._exact_quotient(sympy.expand(e * below), below, env)
        except NoIndex as problem:
            raise Unsupported(f"an index that is computed: {problem}") from None

    def index(self, e: Any, env: Env) -> Index:
        """A formula as an index expression; NoIndex if it is none."""
        if e in env:
            return env[e]
        if e.is_Integer:
            return number(e)
        if e in self.reads:
            return self._entry_as_index(e, env)
        if isinstance(e, (sympy.floor, sympy.Mod)):
            return self._digit(e, env)
        if e.is_Add:
            total = FIRST
            for part in e.args:
                total = plus(total, self.index(part, env))
            return total
        if e.is_Mul or e.is_Symbol or e.is_Pow:
            return self._multiple(e, env)
        raise NoIndex(str(e))

    def _multiple(self, e: Any, env: Env) -> Index:
        """A size times at most one index."""
        held = [part for part in sympy.Mul.make_args(e) if self._moves(part, env)]
        rest = sympy.expand(sympy.Mul(*(part for part in sympy.Mul.make_args(e) if not self._moves(part, env))))
        counts = all(s.is_integer and s.is_nonnegative for s in rest.free_symbols)  # sizes and offsets
        if len(held) > 1 or not rest.is_integer or not counts:
            raise NoIndex(str(e))
        if not held:
            return number(rest)
        if held[0] is e:
            raise NoIndex(str(e))
        return plus(FIRST, self.index(held[0], env), rest)

    def _exact_quotient(self, above: Any, below: int, env: Env) -> Index:
        """A quotient that leaves no rest, as the place among the entries of a slice with steps."""
        quotient, rest = self.lowering.divided(self.index(above, env), sympy.Integer(below))
        if affine(rest) != (sympy.S.Zero, {}):
            raise NoIndex(f"({above})/{below}")
        return quotient

    def _moves(self, e: Any, env: Env) -> bool:
        return any(s in env or s in self.reads for s in e.free_symbols)

    def _entry_as_index(self, e: Any, env: Env) -> Index:
        poly = self.symbol(e, env)
        index = functions.as_index(poly)
        if index is not None:
            return index
        if self.node.inputs[self.reads[e][0]].kind != "integer":
            raise NoIndex(str(e))
        if len(poly.terms) == 1 and not poly.terms[0][1].bound and len(poly.terms[0][1].factors) == 1:
            (c, term) = poly.terms[0]
            atom, power = term.factors[0]
            if c == power == 1 and atom.kind == "entry":
                return ("entry", atom.name, atom.indices)
        raise NoIndex(str(e))

    def _digit(self, e: Any, env: Env) -> Index:
        if isinstance(e, sympy.Mod):
            above, below = e.args
        else:
            above, below = sympy.fraction(sympy.together(e.args[0]))
        if self._moves(below, env):
            raise NoIndex(str(e))
        quotient, rest = self.lowering.divided(self.index(above, env), below)
        return rest if isinstance(e, sympy.Mod) else quotient

    # --- sums and extremes over index symbols ---

    def total(self, e: Any, env: Env) -> Poly:
        return self._over(list(e.limits), e.function, dict(env))

    def _over(self, limits: list[Any], term: Any, env: dict[Any, Any]) -> Poly:
        """The sum over the limits, the last one outermost."""
        if not limits:
            return self.read(term, env)
        *inner, (k, low, high) = limits
        first, last = self.index(low, env), self.index(high, env)
        size, guards = self._range(first, last)
        parts = []
        for index, held in self.lowering.over(size, self.node):
            gate = self.ring.product(self.lowering.at_least_zero(guard(index)) for guard in guards)
            if gate:
                body = self._over(inner, term, {**env, k: index})
                parts.append(self.ring.summed(held, self.ring.multiply(gate, body)))
        return self.ring.add(*parts)

    def _range(self, first: Index, last: Index) -> tuple[sympy.Expr, list[Callable[[Index], Index]]]:
        """A full range from 0 on that holds all places, and the conditions that cut it down."""
        edges = bounds(last, self.ring.ranges, self.ring.places)
        if edges is None:
            raise Unsupported("a sum whose last index has no known bound")
        guards: list[Callable[[Index], Index]] = []
        if self.ring.decided(first) is not True:
            raise Unsupported("a sum whose first index may be negative")
        if first != FIRST:
            guards.append(lambda k: plus(k, first, -1))
        if affine(last)[1]:
            guards.append(lambda k: plus(last, k, -1))
        return sympy.expand(edges[1] + 1), guards

    def extreme(self, e: Any, env: Env) -> Poly:
        ranges = []
        for _, low, high in e.limits:
            size, guards = self._range(self.index(low, env), self.index(high, env))
            if guards:
                raise Unsupported("an extreme over a part of a range")
            ranges.append(self.lowering.over(size, self.node))
        name, found = type(e).__name__, []
        for choice in itertools.product(*ranges):
            inside = {**env, **{k: index for (k, *_), (index, _held) in zip(e.limits, choice, strict=True)}}
            bound = tuple(s for _, held in choice for s in held)
            found.append(functions.extreme(self.ring, name, bound, self.read(e.function, inside)))
        return self._outermost(found, 1 if name == "Max" else -1)

    def _outermost(self, values: Sequence[Poly], sign: int) -> Poly:
        """The largest of several values, or the least for the sign -1; -oo is never the largest beside another."""
        best, *others = [v for v in values if sign < 0 or not functions.is_minus_infinity(v)] or values[:1]
        for value in others:
            gap = self.ring.subtract(value, best)
            over = functions.positive(self.ring, self.ring.scale(sign, gap))
            best = self.ring.add(best, self.ring.multiply(over, gap))
        return best

    # --- conditions ---

    def condition(self, e: Any, env: Env) -> Poly:
        """1 where a condition holds, else 0."""
        if e in (sympy.true, sympy.false):
            return ONE if e == sympy.true else ZERO
        if isinstance(e, sympy.Not):
            return self.ring.complement(self.condition(e.args[0], env))
        if isinstance(e, sympy.And):
            return self.ring.product(self.condition(part, env) for part in e.args)
        if isinstance(e, sympy.Or):
            return self.ring.complement(self.ring.product(self.ring.complement(self.condition(c, env)) for c in e.args))
        if isinstance(e, sympy.Ne):
            return self.ring.complement(self.condition(sympy.Eq(*e.args, evaluate=False), env))
        if isinstance(e, (sympy.Gt, sympy.Ge)):
            return self.condition(e.reversed, env)
        if isinstance(e, (sympy.Lt, sympy.Le)):
            for side, join in ((e.lhs, sympy.And), (e.rhs, sympy.Or)):
                if isinstance(side, sympy.Abs):  # |x| < y where x < y and -x < y
                    both = [e.subs(side, x) for x in (side.args[0], -side.args[0])]
                    return self.condition(join(*both), env)
        if isinstance(e, Relational):
            below = _denominator(e)
            try:
                sides = self.index(sympy.expand(e.lhs * below), env), self.index(sympy.expand(e.rhs * below), env)
            except NoIndex:
                return self._compared(e, self.read(e.lhs, env), self.read(e.rhs, env))
            return self._between(e, *sides)
        raise Unsupported(f"the condition {type(e).__name__}")

    def _between(self, e: Any, a: Index, b: Index) -> Poly:
        """A relation of indices, which are whole numbers."""
        above = plus(b, a, -1)
        if isinstance(e, sympy.Le):
            return self.lowering.at_least_zero(above)
        if isinstance(e, sympy.Lt):
            return self.lowering.at_least_zero(plus(number(-1), above))
        return self.lowering.equal(a, b)

    def _compared(self, e: Any, a: Poly, b: Poly) -> Poly:
        """A relation of values."""
        (a_finite, a), (b_finite, b) = (functions.finite_part(self.ring, p) for p in (a, b))
        if a_finite.number != 1 or b_finite.number != 1:
            return self._with_minus_infinity(e, (a_finite, a), (b_finite, b))
        gap = self.ring.subtract(a, b)
        if isinstance(e, sympy.Eq):
            if functions.is_binary(self.ring, a) and functions.is_binary(self.ring, b):
                return self.ring.complement(self.ring.multiply(gap, gap))  # the gap is 0 or 1 or -1
            return functions.zero(self.ring, gap)
        if isinstance(e, sympy.Lt):
            return functions.positive(self.ring, self.ring.scale(-1, gap))
        return self.ring.complement(functions.positive(self.ring, gap))

    def _with_minus_infinity(self, e: Any, left: tuple[Poly, Poly], right: tuple[Poly, Poly]) -> Poly:
        """A relation of values of which one may be -oo: where it is, it is the smaller."""
        (a_finite, a), (b_finite, b) = left, right
        if b_finite.number == 1:
            inside = self.ring.multiply(a_finite, self._compared(e, a, b))
            return inside if isinstance(e, sympy.Eq) else self.ring.add(self.ring.complement(a_finite), inside)
        if a_finite.number == 1:
            return self.ring.multiply(b_finite, self._compared(e, a, b))
        raise Unsupported("a comparison of two values that may be -oo")

    def choice(self, e: Any, env: Env) -> Poly:
        """``[C] a + (1 - [C]) b``; a side that is never taken is not read."""
        condition, a, b = e.args
        chosen = self.condition(condition, env)
        if chosen.number is not None:
            return self.read(a if chosen.number else b, env)
        before = set(self.ring.divisors)
        left, right = self.read(a, env), self.read(b, env)
        if isinstance(condition, sympy.Eq):
            self._guarded(before, self.read(condition.lhs, env), self.read(condition.rhs, env))
        rest = self.ring.complement(chosen)
        try:
            otherwise = self.ring.multiply(rest, right)
        except Undefined:  # the other side has no value where it is not taken, as 1/i at i = 0
            self._guard_indices(before, condition, env)
            otherwise = self.ring.multiply(rest, right)
        return self.ring.add(self.ring.multiply(chosen, left), otherwise)

    def _guard_indices(self, before: set[int], condition: Any, env: Env) -> None:
        """What a branch divides by is 0 only where indices meet, and there the branch is not taken."""
        met = [poly for key, poly in self.ring.divisors.items() if key not in before]
        if isinstance(condition, sympy.Eq):
            gap = self.ring.subtract(self.read(condition.lhs, env), self.read(condition.rhs, env))
            met += [gap, self.ring.scale(-1, gap)]
        self.ring.guard(met)

    def _guarded(self, before: set[int], a: Poly, b: Poly) -> None:
        """What is divided by only where it is not 0: the guarded value itself, and whatever its branch divides by."""
        inside = functions.zero(self.ring, self.ring.subtract(a, b))
        met = [atom.inner[0] for _, t in inside.terms for atom, _e in t.factors if atom.inner]
        if met:  # a condition on indices guards no value
            met += [poly for key, poly in self.ring.divisors.items() if key not in before]
        self.ring.guard(met)

    # --- the rest ---

    def largest(self, e: Any, env: Env) -> Poly:
        return self._outermost([self.read(part, env) for part in e.args], 1 if isinstance(e, sympy.Max) else -1)

    def digit(self, e: Any, env: Env) -> Poly:
        """floor or Mod: of indices a digit, of values a function known by name."""
        try:
            return index_value(self.ring, self.index(e, env))
        except NoIndex:
            return self._by_name(e, env)

    def unknown_of_row(self, e: Any, env: Env) -> Poly:
        (k, _, high), *_ = e.limits
        pieces = self.lowering.over(sympy.expand(high + 1))
        if len(pieces) > 1 or not pieces[0][1] or isinstance(pieces[0][0], tuple):
            raise Unsupported("an unknown function of a row that is taken apart")
        index, bound = pieces[0]
        inner = self.read(e.function, {**env, k: index})
        at = tuple(self.index(place, env) for place in e.places)
        return single(Atom("row", str(e.args[3]), at, (inner,), bound))

    def recurrence(self, e: Any, env: Env) -> Poly:
        """An atom that the same recurrence makes of equal inputs, and nothing looks into."""
        inside, bound = dict(env), list[int]()
        for k, _, high in e.limits:
            pieces = self.lowering.over(sympy.expand(high + 1))
            if len(pieces) > 1 or (pieces[0][1] and isinstance(pieces[0][0], tuple)):
                raise Unsupported("a recurrence over a range that is taken apart")
            inside[k] = pieces[0][0]
            bound += pieces[0][1]
        order = (single(Atom("entry", f"axis {n} of a scan", (s,))) for n, s in enumerate(bound))  # X is not X.T
        inner = (*(self.read(term, inside) for term in e.function), *order)
        return single(Atom("scan", e.name, tuple(self.index(p, env) for p in e.places), inner, tuple(bound)))


def _denominator(e: Any) -> int:
    """The least number that makes all rational coefficients whole."""
    return 1 if e.is_Symbol else math.lcm(*(int(number.q) for number in e.atoms(sympy.Rational)))


# --- entries of inverse matrices: of named ones, their products and multiples, and of those of small fixed size ---


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
    diagonal = _of_diagonal(reader.ring, poly, row, column, i, j)
    if diagonal is not None:
        return diagonal
    if size.is_Integer and size <= _LARGEST_INVERSE:
        reader.lowering.partition.cut(size, sympy.S.One)
    return single(Atom("inverse", None, (i, j), (poly,), (row, column)))


def _of_diagonal(ring: Ring, poly: Poly, row: int, column: int, i: Index, j: Index) -> Poly | None:
    """The entry (i, j) of the inverse of a matrix all of whose terms are zero where row and column differ."""
    parts = []
    for c, term in poly.terms:
        rest = [(atom, e) for atom, e in term.factors if not _is_identity(atom, row, column)]
        if len(rest) == len(term.factors):
            return None
        parts.append((c, Poly([(1, Term(term.bound, tuple(rest)))])))
    if not parts:
        return None
    ring.use("the inverse of a diagonal matrix is diagonal")
    entry = functions.power(ring, ring.replace(ring.total(parts), {row: i, column: i}), -1)
    return ring.multiply(ring.atom(Atom("same", None, (i, j))), entry)


def _is_identity(atom: Atom, row: int, column: int) -> bool:
    """Whether an atom is 1 where row and column are one, else 0."""
    return atom.kind == "same" and solved(atom.indices[1], column, atom.indices[0]) == row


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
        ring.use("{} is orthogonal", atom.name)
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
    if n > _LARGEST_INVERSE:
        raise Unsupported(f"the inverse of a matrix of size {n}")
    ring.use("an inverse of small fixed size is written by cofactors")
    minor = [[matrix[r][c] for c in range(n) if c != row] for r in range(n) if r != column]
    cofactor = ring.scale((-1) ** (row + column), _determinant(ring, minor))
    return ring.multiply(cofactor, functions.power(ring, _determinant(ring, matrix), -1))


def _determinant(ring: Ring, matrix: Sequence[Sequence[Poly]]) -> Poly:
    if not matrix:
        return ONE
    total = ZERO
    for c, value in enumerate(matrix[0]):
        minor = [[row[k] for k in range(len(row)) if k != c] for row in matrix[1:]]
        total = ring.add(total, ring.scale((-1) ** c, ring.multiply(value, _determinant(ring, minor))))
    return total


FORMULAS: Mapping[type, Callable[[Reader, Any, Env], Poly]] = {
    sympy.Sum: Reader.total,
    Max: Reader.extreme,
    Min: Reader.extreme,
    sympy.Max: Reader.largest,
    sympy.Min: Reader.largest,
    Choice: Reader.choice,
    sympy.KroneckerDelta: lambda reader, e, env: reader.condition(sympy.Eq(*e.args, evaluate=False), env),
    sympy.floor: Reader.digit,
    sympy.Mod: Reader.digit,
    Held: lambda reader, e, env: reader.read(e.args[0], env),
    Unknown: lambda reader, e, env: functions.function(
        reader.ring, f"unknown {e.args[0]}", [reader.read(e.args[1], env)]
    ),
    UnknownOfRow: Reader.unknown_of_row,
    ScanEntry: Reader.recurrence,
    InverseEntry: inverse_entry,
    sympy.core.numbers.NegativeInfinity: lambda reader, e, env: single(MINUS_INFINITY),
}
