"""Polynomials of entries as SymPy expressions: what a user gets back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy

from ..core.naming import free_letters
from ..errors import NoRuleError
from ..normal_form.indices import ZERO as FIRST
from ..normal_form.indices import Index, affine, combined, number, plus, symbols
from ..normal_form.ring import Ring
from ..normal_form.terms import Atom, Factor, Number, Poly, Term, split_components
from ..ops.leaves import indexed
from ..scalars.formulas import Choice

_LETTERS = "klmnpqrtuvw"


class Answer:
    """Turns polynomials into SymPy; ``names`` are the free index symbols, ``taken`` names that no letter may have."""

    def __init__(self, ring: Ring, names: Mapping[int, Any], taken: Iterable[str]) -> None:
        self.ring, self.names = ring, dict(names)
        values = [*names.values(), *ring.ranges.values()]
        self.taken = {*taken, *(str(s) for value in values for s in sympy.sympify(value).free_symbols)}

    def of(self, poly: Poly) -> sympy.Expr:
        """The polynomial as a SymPy scalar; bound sums become ``sympy.Sum``."""
        return sympy.Add(*(self._term(c, term) for c, term in poly.terms))

    def _term(self, c: Number, term: Term) -> sympy.Expr:
        loose, components = split_components(term)
        sums = sympy.Mul(*(self._sum(bound, factors) for bound, factors in components))
        return _rational(c) * self._product(loose) * sums

    def _sum(self, bound: Sequence[int], factors: Sequence[Factor]) -> sympy.Expr:
        kept, taken = dict(self.names), set(self.taken)
        letters = self._letters()
        limits = []
        for s in self.ring.in_order(Term(tuple(bound), tuple(factors))):
            self.names[s] = letter = next(letters)
            limits.append((letter, 0, self.ring.ranges[s] - 1))
        starts, ends, others = self._edges(bound, factors)
        if not others and starts and ends:
            self.names, self.taken = kept, taken
            return self._count(starts, ends)
        if len(starts) == len(ends) == 1 and self.ring.decided(plus(number(1), plus(ends[0], starts[0], -1))):
            limits = [(limits[0][0], self.index(starts[0]), self.index(ends[0]))]
        else:
            others = list(factors)
        inside = self._product(others)
        self.names, self.taken = kept, taken
        total = sympy.Sum(inside, *limits)
        return total.doit() if inside.is_polynomial(*(letter for letter, *_ in limits)) else total

    def _edges(self, bound: Sequence[int], factors: Sequence[Factor]) -> tuple[list[Index], list[Index], list[Factor]]:
        """Where a bound symbol starts and ends by the indicators, and the other factors; no edges for several."""
        if len(bound) != 1:
            return [], [], list(factors)
        (s,) = bound
        starts: list[Index] = [FIRST]
        ends: list[Index] = [number(self.ring.ranges[s] - 1)]
        others = []
        for atom, e in factors:
            start, coefficients = affine(atom.indices[0]) if atom.kind == "range" else (sympy.S.Zero, {})
            slope = coefficients.pop(s, None)
            edge = combined(start, coefficients)
            if slope not in (1, -1) or s in symbols(edge):
                others.append((atom, e))
                continue
            (starts if slope == 1 else ends).append(plus(FIRST, edge, -slope))
        return self._outermost(starts, 1), self._outermost(ends, -1), others

    def _outermost(self, edges: Sequence[Index], sign: int) -> list[Index]:
        """The edges without those that another settles: the largest of starts (sign 1), the least of ends (sign -1)."""

        def settles(one: Index, other: Index) -> bool:
            return self.ring.decided(plus(FIRST, plus(one, other, -1), sign)) is True

        kept: list[Index] = []
        for edge in edges:
            if not any(settles(one, edge) for one in kept):
                kept = [*(one for one in kept if not settles(edge, one)), edge]
        return kept

    def _count(self, starts: Sequence[Index], ends: Sequence[Index]) -> sympy.Expr:
        """How many places there are from the last start to the first end."""
        places = sympy.Min(*map(self.index, ends)) - sympy.Max(*map(self.index, starts)) + 1
        return places if places.is_nonnegative else sympy.Max(0, places)

    def _product(self, factors: Sequence[Factor]) -> sympy.Expr:
        """The factors, their exponentials as one."""
        plain = self._powers([(atom, e) for atom, e in factors if atom.kind != "exp"])
        exponent = sympy.Add(*(_rational(e) * self.of(atom.inner[0]) for atom, e in factors if atom.kind == "exp"))
        return sympy.Mul(*plain, sympy.exp(exponent))

    def _powers(self, factors: Sequence[Factor]) -> Iterator[sympy.Expr]:
        """The powers; where an operation gives 0 instead of dividing by 0, as a softmax of an empty row, it is said."""
        guarded = {self.ring.atom_key(atom) for atom, e in factors if e < 0 and self.ring.is_guarded(atom)}
        exponents: dict[int, Number] = {}
        for atom, e in factors:
            key = self.ring.atom_key(atom)
            if key not in guarded:
                yield self._atom(atom) ** _rational(e)
            exponents[key] = exponents.get(key, 0) + e
        for key in sorted(guarded):
            base = next(self._atom(atom) for atom, _ in factors if self.ring.atom_key(atom) == key)
            yield Choice(sympy.Ne(base, 0), base ** _rational(exponents[key]), sympy.S.Zero)

    def _letters(self) -> Iterator[sympy.Symbol]:
        for letter in free_letters(_LETTERS, self.taken):
            self.taken.add(letter)
            yield sympy.Symbol(letter, integer=True, nonnegative=True)

    def _atom(self, atom: Atom) -> sympy.Expr:
        if atom.kind == "scalar":
            return atom.name
        if atom.kind in ("entry", "symmetric"):
            return indexed(atom.name, tuple(map(self.index, atom.indices)))
        if atom.kind == "index":
            return self.index(atom.indices[0])
        if atom.kind == "same":
            return sympy.KroneckerDelta(*map(self.index, atom.indices))
        if atom.kind == "range":
            return Choice(self.index(atom.indices[0]) >= 0, sympy.S.One, sympy.S.Zero)
        if atom.kind == "imaginary":
            return sympy.I
        if atom.kind not in ("power", "log", "function", "positive", "zero"):  # others bind indices of their own
            raise NoRuleError(f"an answer that holds {atom.kind} is not written as a SymPy expression")
        inner = [self.of(poly) for poly in atom.inner]
        if atom.kind == "power":
            return inner[0]
        if atom.kind == "log":
            return sympy.log(inner[0])
        if atom.kind == "function" and atom.name in _WRITTEN:
            return _WRITTEN[str(atom.name)](*inner)
        if atom.kind == "function" and hasattr(sympy, str(atom.name)):  # a SymPy function that is known by its name
            return getattr(sympy, atom.name)(*inner)
        if atom.kind in ("positive", "zero"):
            relation = sympy.Gt if atom.kind == "positive" else sympy.Eq
            return Choice(relation(inner[0], 0), sympy.S.One, sympy.S.Zero)
        raise NoRuleError(f"an answer that holds the function {atom.name} is not written as a SymPy expression")

    def index(self, index: Index) -> sympy.Expr:
        if isinstance(index, int):
            return sympy.sympify(self.names[index])
        if index[0] == "entry":
            return indexed(index[1], tuple(map(self.index, index[2])))
        if index[0] != "sum":
            raise NoRuleError("an answer at permuted indices is not written as a SymPy expression")
        return index[1] + sympy.Add(*(c * self.index(base) for base, c in index[2]))


def _both_positive(a: sympy.Expr, b: sympy.Expr, rho: sympy.Expr) -> sympy.Expr:
    """The probability that two normal numbers of means a and b, variance 1, correlation rho, are positive."""
    u = sympy.Symbol("u", real=True)
    sides = sympy.Mul(*((1 + sympy.erf(x / sympy.sqrt(2))) / 2 for x in (a, b)))
    below = 1 - u**2
    density = sympy.exp(-(a**2 - 2 * a * b * u + b**2) / (2 * below)) / (2 * sympy.pi * sympy.sqrt(below))
    return sides + sympy.Integral(density, (u, 0, rho))


_WRITTEN = {"BothPositive": _both_positive}


def _rational(value: Number) -> sympy.Rational:
    exact = Fraction(value)
    return sympy.Rational(exact.numerator, exact.denominator)


def _real(value: sympy.Expr) -> sympy.Expr:
    """The value with cosines and sines in place of exponentials of imaginary numbers, where these leave none behind."""

    def turned(e: sympy.Expr) -> sympy.Expr:
        exponent = sympy.expand(e.args[0])
        angle = exponent.coeff(sympy.I)
        return sympy.exp(exponent - sympy.I * angle) * (sympy.cos(angle) + sympy.I * sympy.sin(angle))

    if not value.has(sympy.I):
        return value
    found = value.replace(lambda e: isinstance(e, sympy.exp) and e.has(sympy.I), turned)
    found = sympy.expand(found, power_exp=False)
    return value if found.has(sympy.I) else found


def expanded(value: sympy.Expr) -> sympy.Expr:
    """The value written out, but for quotients that are 0 where they are not defined: each once, with its factors."""
    quotients = {f for term in sympy.Add.make_args(value) for f in sympy.Mul.make_args(term) if _is_quotient(f)}
    held = {quotient: sympy.Dummy() for quotient in sorted(quotients, key=sympy.default_sort_key)}
    found = sympy.expand(value.xreplace(held), power_exp=False)
    for quotient, symbol in held.items():
        condition, inside, _ = quotient.args
        factor = found.coeff(symbol)
        if factor.has(*held.values()) or found.has(symbol**2):
            continue  # of two rows: a product
        product = inside * factor
        if not product.has(sympy.Sum, sympy.Indexed, sympy.exp, Choice):
            product = sympy.factor(product)
        found = found.coeff(symbol, 0) + Choice(condition, product, sympy.S.Zero)
    return found.xreplace({symbol: quotient for quotient, symbol in held.items()})


def _is_quotient(e: sympy.Expr) -> bool:
    return isinstance(e, Choice) and isinstance(e.args[0], sympy.Ne) and e.args[2] == 0


def _rooted(value: sympy.Expr) -> sympy.Expr:
    """The value with c sqrt(V) for terms that are c V / sqrt(V) together: it holds where V is 0, and is shorter."""
    for power in sorted(value.atoms(sympy.Pow), key=sympy.default_sort_key):
        if power.exp != -sympy.S.Half or not power.base.is_Add:
            continue
        root = sympy.Dummy("r", positive=True)
        inside = sympy.expand(value.xreplace({power: root}), power_exp=False)
        share = inside.coeff(root, 1)
        if inside.has(root**2) or share.has(power.base):
            continue
        quotient = sympy.cancel(share / power.base)
        if sympy.count_ops(quotient) < sympy.count_ops(share):
            value = inside.coeff(root, 0) + sympy.expand(quotient, power_exp=False) * sympy.sqrt(power.base)
    return value


@lru_cache(maxsize=4096)
def plainest(value: sympy.Expr) -> sympy.Expr:
    """The shorter of the expanded and the factored form; sums and entries stay as they are."""
    plain = _rooted(_real(expanded(value)))
    if plain.has(sympy.Sum, sympy.Indexed, sympy.exp, Choice):
        return plain
    return min((plain, sympy.factor(plain)), key=lambda e: (sympy.count_ops(e), len(str(e))))
