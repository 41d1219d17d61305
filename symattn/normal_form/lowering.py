"""From tensors to polynomials of entries, through the entry formula of each operation.

The formula of a node is asked for once, with symbols in place of the entries that it reads, and then read as a
polynomial. Shared nodes stay whole: their normal form is worked out once, as a *definition*, and read as an
atom that is unfolded only where that helps. Two definitions with one normal form are one atom, and a permutation that
every occurrence of an index goes through is taken out of it, so that f(Pi X) and f(X) meet in one definition.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import sympy

from ..core.node import Tensor
from ..core.sizes import never_negative
from ..ops.index import NEW, embed_op, reads_all
from ..ops.leaves import bare, constant, from_index_op, variable
from ..ops.template import Template, template
from .contraction import permutation_of
from .deltas import quotient_and_rest
from .formulas import Reader
from .indices import Index, divided, number, permuted, plus, symbols
from .indices import affine as parts_of
from .ring import Ring
from .terms import ONE, ZERO, Atom, Poly, Term, TooLarge, Undefined, Unsupported, single

T = TypeVar("T")
Summed: TypeAlias = tuple[Tensor | None, sympy.Expr]  # a node, and a range that it sums over; None for any node

_LEAVES = (variable, constant, from_index_op)
_DEEP = 24
_RESTARTS = 24

SMALLEST_PIECES = 6  # a range of a known small size is taken apart into its places, where that is asked for


class Repartition(Exception):
    """A range has to be taken apart before it is used: at a point, into two digits, or into single places."""


@dataclass
class Partition:
    """How the ranges of index symbols are taken apart, by their size; the sums of a node may differ from the others."""

    cuts: dict[sympy.Expr, sympy.Expr] = field(default_factory=dict)
    digits: dict[Summed, sympy.Expr] = field(default_factory=dict)

    def holds(self, size: sympy.Expr) -> bool:
        return size in self.cuts or self.digit(size) is not None

    def digit(self, size: sympy.Expr, node: Tensor | None = None) -> sympy.Expr | None:
        """The size of the lower digit of a range that is taken as two, everywhere or where a node sums over it."""
        return self.digits.get((None, size), self.digits.get((node, size)))

    def cut(self, size: sympy.Expr, at: sympy.Expr) -> None:
        if self.holds(size):
            return  # a free index, which has the whole range once and for all
        self.cuts[size] = at
        raise Repartition(f"the range {size} is cut at {at}")

    def split(self, size: sympy.Expr, inner: sympy.Expr, node: Tensor | None = None) -> None:
        self.digits[node, size] = inner
        raise Repartition(f"the range {size} is taken as {inner} times a quotient and a rest")

    def split_where_cut(self, inner: sympy.Expr, summed: Iterable[Summed]) -> None:
        """Take a range as two digits that was cut before, if it has them: in the sums of a node first, then in all."""
        wanted = [size for size in self.cuts if size != inner and _has_digits(size, inner)]
        for node, size in summed:
            if size in wanted and self.digit(size, node) is None:
                self.split(size, inner, node)
        for size in wanted:
            del self.cuts[size]
            self.split(size, inner)

    def split_alike(self) -> bool:
        """Take a range as two digits in all sums where a node does in its own; whether there is one."""
        found = next(((size, inner) for (_, size), inner in self.digits.items() if size in self.cuts), None)
        if found is not None:
            del self.cuts[found[0]]
            self.digits[None, found[0]] = found[1]
        return found is not None

    def pieces(self, ring: Ring, size: sympy.Expr, node: Tensor | None = None) -> list[tuple[Index, tuple[int, ...]]]:
        """The index over a range, piece by piece: an expression and the new symbols in it; ``node`` sums over it."""
        if size == 1:
            return [(number(0), ())]
        if (inner := self.digit(size, node)) is not None:
            outer = divided(size, inner)
            assert outer is not None
            return [
                (plus(b, a, inner), (*held, *more))
                for a, held in self.pieces(ring, outer, node)
                for b, more in self.pieces(ring, inner, node)
            ]
        if (at := self.cuts.get(size)) is not None:
            rest = sympy.expand(size - at)
            return [
                *self.pieces(ring, at, node),
                *((plus(k, number(at)), held) for k, held in self.pieces(ring, rest, node)),
            ]
        symbol = ring.fresh(size)
        return [(symbol, (symbol,))]


class Unreached(Exception):
    """The normal form was not reached: something in the entries is not supported, not defined, or too large."""


def taken_apart(calculate: Callable[[Partition], T]) -> T:
    """The calculation, started again as often as a range has to be taken apart for it. Raises Unreached."""
    partition = Partition()
    for _ in range(_RESTARTS):
        try:
            return calculate(partition)
        except Repartition:
            continue
        except (Unsupported, Undefined, TooLarge) as problem:
            if not partition.split_alike():
                raise Unreached(str(problem)) from None
        except RecursionError:
            raise Unreached("the entries are nested too deeply") from None
    raise Unreached("the ranges of the indices were taken apart too often")


@dataclass(frozen=True)
class Definition:
    """A named or shared node as a polynomial of its index symbols, which stand at ``place`` in it."""

    node: Tensor
    symbols: tuple[int, ...]
    poly: Poly
    place: tuple[Index, ...]

    @property
    def is_entry(self) -> bool:
        """Whether it is the entry of the node at its symbols as they are, each axis by one of its own or of size 1."""
        return all(i in self.symbols if isinstance(i, int) else not any(symbols(i)) for i in self.place)

    def at(self, ring: Ring, indices: tuple[Index, ...]) -> Poly:
        """What it stands for at other indices."""
        return ring.replace(self.poly, dict(zip(self.symbols, indices, strict=True)))


class Lowering:
    """Reads tensors as polynomials in one ring."""

    def __init__(self, ring: Ring, partition: Partition) -> None:
        self.ring: Ring = ring
        self.partition = partition
        self.definitions: dict[int, Definition] = {}
        self.alike: dict[int, list[Definition]] = {}  # all that have one normal form
        self._defined: dict[Tensor, tuple[int, tuple[Any, ...], tuple[bool, ...]]] = {}
        self._templates: dict[Tensor, Template] = {}
        self._known: dict[tuple[Tensor, tuple[Index, ...]], Poly] = {}
        self._summed: dict[Index, Summed] = {}  # where a bound symbol comes from

    # --- definitions ---

    def define(self, order: Sequence[Tensor], roots: Sequence[Tensor]) -> None:
        """Work out shared nodes, inputs before users; those over ranges taken apart stay open."""
        uses = Counter[Tensor]()
        for node in order:
            self.ring.budget.check()
            if bare(node) is node:  # a name reads what it stands for, which is no use of it
                uses.update(bare(node.inputs[k]) for k, _ in self._template(node).reads.values())
        above: dict[Tensor, int] = {}  # how far a node is above the next definitions, so that no walk goes deep
        for node in order:
            self.ring.budget.check()
            above[node] = (bare(node) is node) + max((above[x] for x in node.inputs), default=0)
            wanted = uses[node] > 1 or above[node] >= _DEEP  # whatever is named: names change no verdict
            if node.op in _LEAVES or not wanted or bare(node) is not node or node in roots:
                continue
            above[node] = 0
            if node.holds_minus_infinity or any(self.partition.holds(size) for size in node.shape):
                continue
            index = tuple(self.ring.fresh(size) if size != 1 else number(0) for size in node.shape)
            poly = self._entry(node, index)
            if len(poly.terms) == 1 and not poly.terms[0][1].bound and len(poly.terms[0][1].factors) <= 1:
                continue  # too little to be worth a name
            words, place = [], list(index)
            for n, s in enumerate(index):
                word = permutation_of(self.ring, poly, s) if isinstance(s, int) and s in poly.free else None
                words.append(None if word is None else word[1:3])
                if word is not None:
                    poly, place[n] = self.ring.replace(poly, {s: word}), word
            used = tuple(isinstance(s, int) and s in poly.free for s in index)
            symbols = tuple(s for s, held in zip(index, used, strict=True) if held)
            labels = {s: ("argument", n) for n, s in enumerate(symbols)}
            key = self.ring.poly_key(poly, labels)
            found = Definition(node, symbols, poly, tuple(place))
            self.definitions.setdefault(key, found)
            self.alike.setdefault(key, []).append(found)
            self._defined[node] = key, tuple(words), used

    def take_apart(self, gap: Poly) -> None:
        """Take a range apart that some node reads by two digits, or in parts; what is left as it is raises nothing.

        Only one side may do so: heads that are split, or a sum of the sums over two halves. The sums of what is left
        of the difference may be over ranges of which one is a part of another.
        """
        if self.partition.split_alike():
            raise Repartition("a range is taken as two digits everywhere")
        for node, entry in self._templates.items():
            for k, where in entry.reads.values():
                for size, place in zip(node.inputs[k].shape, where, strict=True):
                    if not self.partition.holds(size):
                        self._take_apart(size, place, entry.index, node.shape)
        for size in dict.fromkeys(self.partition.digits.values()):
            if size.is_Integer and size <= SMALLEST_PIECES and not self.partition.holds(size) and size != 1:
                self.partition.cut(size, sympy.S.One)
        ranges = self.ring.ranges
        summed = dict.fromkeys(ranges[s] for _, term in gap.terms for s in term.bound if s in ranges)
        for size, part in itertools.permutations(summed, 2):
            if never_negative(size - part - 1) and not self.partition.holds(size):
                self.partition.cut(size, part)
        self._take_apart_where_read(gap)

    def _take_apart_where_read(self, gap: Poly) -> None:
        """Take a range apart at a place at which a tensor is read in one sum, where another runs over all places."""
        terms = list(_terms_in(gap))
        summed = {self.ring.ranges[s] for term in terms for s in term.bound}
        for atom in (atom for term in terms for atom, _ in term.factors if atom.kind == "entry"):
            for place, size in zip(atom.indices, self.ring.shapes.get(atom.name, ()), strict=False):
                at, moving = parts_of(place)
                if not moving and size in summed and never_negative(at - 1) and never_negative(size - at - 1):
                    self.partition.cut(size, at)

    def _take_apart(self, size: sympy.Expr, place: Any, index: tuple[Any, ...], shape: tuple[Any, ...]) -> None:
        for inner in _strides(place):
            if _has_digits(size, inner):
                self.partition.split(size, inner)
        for symbol, length in zip(index, shape, strict=True):
            start = sympy.expand(place - symbol)
            if not start.has(sympy.Dummy):  # a slice from start on
                for at in (start, sympy.expand(start + length)):
                    if never_negative(at - 1) and never_negative(size - at - 1):
                        self.partition.cut(size, at)

    def unfolded(self, atom: Atom) -> Poly:
        """What a definition's atom stands for."""
        return self.definitions[atom.name].at(self.ring, atom.indices)

    # --- entries ---

    def entry(self, node: Tensor, index: tuple[Index, ...]) -> Poly:
        """The entry of a node at an index."""
        node = bare(node)
        if node in self._defined:
            key, words, used = self._defined[node]
            places = [i if w is None else permuted(w[0], -w[1], i) for i, w in zip(index, words, strict=True)]
            return single(Atom("definition", key, tuple(p for p, held in zip(places, used, strict=True) if held)))
        found = self._known.get((node, index))
        if found is None:
            self._known[node, index] = found = self._entry(node, index)
        return found

    def _entry(self, node: Tensor, index: tuple[Index, ...]) -> Poly:
        if node.op is variable:
            return self._variable(node, index)
        entry = self._template(node)
        env: dict[Any, Any] = dict(zip(entry.index, index, strict=True))
        try:
            return Reader(self, node, entry.reads).read(entry.formula, env)
        except Unsupported:
            if node.op is not embed_op:
                raise
            return self._spread(node, index)

    def _spread(self, node: Tensor, index: tuple[Index, ...]) -> Poly:
        """A part among zeros as a sum over its places, ``sum_k [i = start + step k] x[k]``: no quotient is taken."""
        part, items = node.inputs[0], node.params["items"]
        lead = node.rank - len(node.params["core"])
        given = iter(index[lead:])
        chosen: list[list[tuple[Index, tuple[int, ...]]]] = [[(i, ())] for i in index[:lead]]
        gates: list[tuple[Index, sympy.Expr, Any, int | None]] = []
        for item in items:
            if item == NEW:
                chosen.append([(number(0), ())])
            elif item[0] == "at":
                gates.append((next(given), item[1], 0, None))
            elif reads_all(item, item[3]):
                chosen.append([(next(given), ())])
            else:
                chosen.append(self.over(item[3], node))
                gates.append((next(given), item[1], item[2], len(chosen) - 1))
        terms = []
        for choice in itertools.product(*chosen):
            at = tuple(place for place, _ in choice)
            held = tuple(s for _, more in choice for s in more)
            places = (
                plus(number(start), number(0) if axis is None else at[axis], step) for _, start, step, axis in gates
            )
            same = self.ring.product(self.equal(i, place) for (i, *_), place in zip(gates, places, strict=True))
            terms.append(self.ring.summed(held, self.ring.multiply(same, self.entry(part, at))))
        return self.ring.add(*terms)

    def _template(self, node: Tensor) -> Template:
        found = self._templates.get(node)
        if found is None:
            self._templates[node] = found = template(node)
        return found

    def _variable(self, node: Tensor, index: tuple[Index, ...]) -> Poly:
        name, declared = node.params["name"], node.params["hypotheses"]
        if "permutation" in declared and node.rank == 2:
            return self.ring.atom(Atom("same", None, (permuted(name, 1, index[0]), index[1])))
        if not index:
            return single(Atom("entry", name))
        return single(Atom("symmetric" if "symmetric" in declared and node.rank == 2 else "entry", name, index))

    # --- sums over a range ---

    def over(self, size: sympy.Expr, node: Tensor | None = None) -> list[tuple[Index, tuple[int, ...]]]:
        """A new index over a range, piece by piece; ``node`` sums over it."""
        pieces = self.partition.pieces(self.ring, size, node)
        if node is not None:
            self._summed.update({s: (node, size) for _, held in pieces for s in held})
        return pieces

    def places(self, shape: Sequence[sympy.Expr]) -> Iterator[tuple[tuple[Index, ...], tuple[int, ...]]]:
        """All places of a shape, piece by piece: index expressions, and the symbols in them that run over a range."""
        for choice in itertools.product(*map(self.over, shape)):
            yield tuple(place for place, _ in choice), tuple(s for _, held in choice for s in held)

    # --- conditions on indices ---

    def at_least_zero(self, index: Index) -> Poly:
        """1 where an index expression is >= 0, else 0; a range is cut where one index alone decides."""
        known = self.ring.decided(index)
        if known is not None:
            return ONE if known else ZERO
        start, coefficients = parts_of(index)
        if len(coefficients) == 1:
            (base, c), *_ = coefficients.items()
            if isinstance(base, int) and c in (1, -1):
                at = sympy.expand(-start if c == 1 else start + 1)  # the first place on the other side
                size = self.ring.ranges[base]
                if never_negative(at - 1) and never_negative(size - at - 1):
                    self.partition.cut(size, at)
        self._take_apart_small(coefficients)
        return self.ring.atom(Atom("range", None, (index,)))

    def _take_apart_small(self, coefficients: Mapping[Index, Any]) -> None:
        """A condition between indices of known small sizes is decided place by place."""
        sizes = [self.ring.ranges.get(base) if isinstance(base, int) else None for base in coefficients]
        small = [n for n in sizes if n is not None and n.is_Integer and n <= SMALLEST_PIECES]
        digits = any(c not in (1, -1) for c in coefficients.values())
        if small and (digits or len(small) == len(sizes)):
            self.partition.cut(small[0], sympy.S.One)

    def equal(self, a: Index, b: Index) -> Poly:
        """1 where two indices are equal, else 0."""
        gap = plus(a, b, -1)
        start, coefficients = parts_of(gap)
        if len(coefficients) == 1:
            (base, c), *_ = coefficients.items()
            at = sympy.expand(-start / c)
            if isinstance(base, int) and at.is_integer:
                size = self.ring.ranges[base]
                if never_negative(at) and never_negative(size - at - 1) and size != 1:
                    if at != 0:
                        self.partition.cut(size, at)
                    elif never_negative(size - 2):
                        self.partition.cut(size, sympy.S.One)
        return self.ring.atom(Atom("same", None, (a, b)))

    def divided(self, index: Index, by: sympy.Expr) -> tuple[Index, Index]:
        """Quotient and rest of an index; its range is taken as two digits where that makes them plain."""
        found = quotient_and_rest(self.ring, index, by)
        if found is not None:
            return found
        _, coefficients = parts_of(index)
        for base, c in coefficients.items():
            if isinstance(base, int) and divided(c, by) is None:
                size = self.ring.ranges[base]
                inner = divided(by, c) if c != 1 else by
                if inner is not None and size != inner and _has_digits(size, inner):
                    self.partition.split(size, inner)
                if size.is_Integer and size <= SMALLEST_PIECES:
                    self.partition.cut(size, sympy.S.One)
        self.partition.split_where_cut(by, [self._summed[base] for base in coefficients if base in self._summed])
        raise Unsupported("a quotient of an index whose range is not a multiple of the divisor")


def _has_digits(size: sympy.Expr, inner: sympy.Expr) -> bool:
    """Whether a range is a whole number of times a size, and so has a quotient and a rest by it."""
    return never_negative(inner - 1) and divided(size, inner) is not None


def _terms_in(poly: Poly) -> Iterator[Term]:
    """The terms of a polynomial, and of those inside its functions."""
    pending, seen = [poly], set()
    while pending:
        p = pending.pop()
        if id(p) not in seen:
            seen.add(id(p))
            for _, term in p.terms:
                yield term
                pending += [inner for atom, _e in term.factors for inner in atom.inner]


def _strides(place: Any) -> list[sympy.Expr]:
    """The sizes that multiply an index in the place that is read."""
    parts = (part.as_independent(sympy.Dummy) for part in sympy.Add.make_args(place) if part.has(sympy.Dummy))
    return [c for c, _ in parts if c.free_symbols or (c.is_Integer and c > 1)]
