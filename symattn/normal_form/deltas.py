"""The rules for Kronecker deltas: decided, taken apart into digits, summed out, or used to make two indices one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sympy

from ..core.sizes import never_negative
from .indices import Index, affine, combined, divided, number, permuted, plus, solved, symbols
from .ring import Replacement, Ring
from .terms import ZERO, Atom, Factor, Poly, single

Bound = tuple[int, ...]
Factors = list[Factor]


def replaced_in(ring: Ring, bound: Bound, factors: Factors, new: Replacement) -> Poly:
    """The term with index symbols replaced."""
    return ring.rebuilt(bound, factors, lambda atom: ring.replace_atom(atom, new), new)


def without(factors: Factors, *places: int) -> Factors:
    """The factors but those at some places."""
    return [factor for n, factor in enumerate(factors) if n not in places]


def delta(ring: Ring, bound: Bound, factors: Factors) -> Poly | None:
    steps = (_common_factor, _plain_sides, _without_permutation, _decided, _digits, _eliminated, _equated)
    held = ((without(factors, n), atom) for n, (atom, _) in enumerate(factors) if atom.kind == "same")
    found = (step(ring, bound, rest, atom) for rest, atom in held for step in steps)
    return next((result for result in found if result is not None), None)


def _plain_sides(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """``[-i + j = 1]`` is ``[j = i + 1]``: no side with a minus sign where that can be."""
    a, b = atom.indices
    if all(isinstance(x, int) or x[0] != "sum" or not x[2] for x in (a, b)):
        return None
    start, coefficients = affine(plus(a, b, -1))
    one = [base for base, c in coefficients.items() if c == 1]
    less = [base for base, c in coefficients.items() if c == -1]
    if not (one or less) or len(one) + len(less) != len(coefficients) or max(len(one), len(less)) > 1:
        return None
    left = combined(sympy.S.Zero if one else start, {base: sympy.S.One for base in one})
    right = combined(-start if one else sympy.S.Zero, {base: sympy.S.One for base in less})
    if {ring.index_key(x, {}) for x in (a, b)} == {ring.index_key(x, {}) for x in (left, right)}:
        return None
    return ring.simplified(1, bound, [*rest, (Atom("same", None, (left, right)), 1)])


def _common_factor(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """``[2 i = 2 j + 2]`` is ``[i = j + 1]``, and ``[2 i = 2 j + 1]`` is 0."""
    start, coefficients = affine(plus(*atom.indices, -1))
    if not coefficients or any(c in (1, -1) for c in coefficients.values()):
        return None
    common = sympy.gcd_list(list(coefficients.values()))
    if common == 1 or not never_negative(common - 1):
        return None
    at = divided(start, common)
    if at is None:
        rests = {part: c % common for part, c in start.as_coefficients_dict().items()} if common.is_Integer else {}
        return ZERO if {part for part, rest in rests.items() if rest != 0} == {sympy.S.One} else None
    (_, left), (_, right) = map(affine, atom.indices)
    if any(divided(c, common) is None for c in (*left.values(), *right.values())):
        return None
    sides = (
        combined(c, {base: divided(k, common) for base, k in part.items()}) for c, part in ((at, left), (0, right))
    )
    return ring.simplified(1, bound, [*rest, (Atom("same", None, tuple(sides)), 1)])


def _without_permutation(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """``[pi(i) = pi(j)] = [i = j]`` and ``[i = pi^{-1}(j)] = [pi(i) = j]``."""
    a, b = atom.indices
    perms = [isinstance(x, tuple) and x[0] == "perm" for x in (a, b)]
    if all(perms) and a[1:3] == b[1:3]:
        return ring.simplified(1, bound, [*rest, (Atom("same", None, (a[3], b[3])), 1)])
    for x, y in ((a, b), (b, a)):
        inverse = isinstance(x, tuple) and x[0] == "perm" and x[2] < 0
        if inverse and ring.within(y, ring.places[x[1]]):
            return ring.simplified(1, bound, [*rest, (Atom("same", None, (x[3], permuted(x[1], 1, y))), 1)])
    return None


def _decided(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    a, b = atom.indices
    gap = plus(a, b, -1)
    if ring.index_key(a, {}) == ring.index_key(b, {}) or affine(gap) == (sympy.S.Zero, {}):
        return ring.simplified(1, bound, rest)
    if ring.decided(plus(gap, number(1), -1)) or ring.decided(plus(number(-1), gap, -1)):
        return ZERO
    return None


def _digits(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """``[q b + r = q' b + r'] = [q = q'] [r = r']`` for remainders below b."""
    for x in atom.indices:
        for c in affine(x)[1].values():
            if c in (1, -1) or not never_negative(c):
                continue
            parts = [quotient_and_rest(ring, side, c) for side in atom.indices]
            if None in parts:
                continue
            (q, r), (p, s) = parts  # type: ignore[misc]
            both: Factors = [(Atom("same", None, (q, p)), 1), (Atom("same", None, (r, s)), 1)]
            return ring.simplified(1, bound, rest + both)
    return None


def quotient_and_rest(ring: Ring, index: Index, by: sympy.Expr) -> tuple[Index, Index] | None:
    """An index as ``quotient * by + rest`` with the rest provably from 0 to by - 1."""
    start, coefficients = affine(index)
    above: dict[Index, sympy.Expr] = {}
    below: dict[Index, sympy.Expr] = {}
    for base, c in coefficients.items():
        ratio = divided(c, by)
        (below if ratio is None else above)[base] = c if ratio is None else ratio
    for low in (sympy.S.Zero, start):
        ratio = divided(sympy.expand(start - low), by)
        if ratio is not None and ring.within(remainder := combined(low, below), by):
            return combined(ratio, above), remainder
    return None


def _eliminated(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """A bound symbol takes the value that a delta gives it, if that is in its range."""
    found = next(_solutions(atom, lambda s: s in bound), None)
    if found is None:
        return None
    s, value = found
    others = tuple(t for t in bound if t != s)
    ring.use("Kronecker deltas are summed out")
    return replaced_in(ring, others, rest + _guards(ring, value, ring.ranges[s]), {s: value})


def _solutions(atom: Atom, wanted: Callable[[int], bool]) -> Iterator[tuple[int, Index]]:
    """Symbols on one side of a delta, and what it makes of them by the other side."""
    a, b = atom.indices
    for x, y in ((a, b), (b, a)):
        for s in symbols(x):
            if wanted(s) and s not in symbols(y) and (value := solved(x, s, y)) is not None:
                yield s, value


def _guards(ring: Ring, index: Index, size: sympy.Expr) -> Factors:
    """Indicators that an index is from 0 to size - 1, and what it permutes in its range, where that is not known."""
    edges = [index, plus(number(size - 1), index, -1)]
    while isinstance(index, tuple) and index[0] == "perm":
        size, index = ring.places[index[1]], index[3]
        edges += [index, plus(number(size - 1), index, -1)]
    return [(Atom("range", None, (edge,)), 1) for edge in edges if ring.decided(edge) is not True]


def _equated(ring: Ring, bound: Bound, rest: Factors, atom: Atom) -> Poly | None:
    """Between symbols that stay, ``x_j [i = j] = x_i [i = j]``: the later symbol gives way to the earlier."""
    for s, value in _solutions(atom, lambda s: s not in bound and any(s in other.free for other, _ in rest)):
        if not _guards(ring, value, ring.ranges[s]) and all(t < s and t not in bound for t in symbols(value)):
            ring.use("a Kronecker delta makes its two indices one")
            changed = replaced_in(ring, (), rest, {s: value})
            return ring.summed(bound, ring.multiply(changed, single(atom)))
    return None
