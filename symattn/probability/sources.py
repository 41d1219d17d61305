"""Random tensors bound to their laws: the joint cumulants of their entries, as polynomials of entries.

A cumulant goes into a calculation as a symbol and gets its value at the end, so that an answer knows which it used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sympy

from ..core.node import Tensor
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.constructors import scalar
from ..normal_form.ring import Ring
from ..normal_form.terms import ZERO, Atom, Poly, single
from ..printing.prose import listed
from .laws import Iid, IidPair, Law, NormalRows, Sphere, needed

Item = TypeVar("Item")
_ORDINALS = {3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}
_FIRST = {1: "mean", 2: "variance"}


@dataclass(frozen=True)
class Known:
    """A symbol of the calculation: how it is written, its value (None: not known), and what it says of which tensors.

    ``told`` is what an assumption says instead of the value; nothing, if it is empty.
    """

    shown: sympy.Expr
    value: sympy.Expr | None
    what: str
    name: Sentence
    names: tuple[str, ...]  # of all tensors that have the law together
    told: Any = None

    @property
    def title(self) -> Sentence:
        """What it is, and of which tensors."""
        return Sentence(self.what, " of ", self.name)

    @property
    def sentence(self) -> Sentence:
        said = self.value if self.told is None else self.told
        return Sentence(*(() if said == "" else (self.title, ": ", said)))


@dataclass
class Symbols:
    """The symbols that stand for cumulants in one calculation."""

    known: dict[sympy.Symbol, Known] = field(default_factory=dict)
    vanished: dict[sympy.Symbol, None] = field(default_factory=dict)  # zeros that were left out of a calculation
    _made: dict[Any, sympy.Symbol] = field(default_factory=dict)

    def symbol(self, key: Any, known: Callable[[], Known]) -> sympy.Symbol:
        """The symbol of a key, made when it is first asked for."""
        if key not in self._made:
            self._made[key] = symbol = sympy.Dummy("kappa", real=True)
            self.known[symbol] = known()
        return self._made[key]

    def value(self, value: sympy.Expr) -> Poly:
        """A closed form that is no polynomial of entries, as a symbol with this value."""
        return self._alone(("value", value), Known(value, value, "", Sentence(), (), ""))

    def unknown(self, key: Any, what: str) -> Poly:
        """What has no value, as a symbol: an answer that holds it is infinite."""
        return self._alone(key, Known(sympy.oo, None, what, Sentence(), (), ""))

    def _alone(self, key: Any, known: Known) -> Poly:
        return single(Atom("scalar", self.symbol(key, lambda: known)))


class Source:
    """Tensors that have a law together, and are independent of all others."""

    def __init__(self, ring: Ring, symbols: Symbols, tensors: tuple[Tensor, ...], law: Law) -> None:
        self.ring, self.symbols, self.tensors, self.law = ring, symbols, tensors, law
        self.names = tuple(str(x.name) for x in tensors)

    @property
    def together(self) -> tuple[str | Tensor, ...]:
        """The tensors, as they are listed among others."""
        return ("(", *listed([(x,) for x in self.tensors], ", "), ")") if len(self.tensors) > 1 else self.tensors

    def joint(self, block: Sequence[Atom]) -> Poly:
        """The joint cumulant of some entries."""
        for kind, rule in _JOINT.items():
            if isinstance(self.law, kind):
                return rule(self, block)
        raise NoRuleError(f"no cumulants are known of {type(self.law).__name__}")

    def constant(
        self, key: Any, value: sympy.Expr | None, what: str, shown: sympy.Expr, name: str = "", told: Any = None
    ) -> Poly:
        """The symbol of a cumulant as a polynomial, of all tensors or of the one of that name."""
        of = [(x,) for x in self.tensors if name in ("", x.name)]
        known = Known(shown, value, what, Sentence(*listed(of, " and ")), self.names, told)
        return single(Atom("scalar", self.symbols.symbol((self.names, key), lambda: known)))

    def vanishes(self, order: int) -> bool:
        """Whether all joint cumulants of an order are known to be zero."""
        if isinstance(self.law, Sphere):
            return order % 2 == 1
        if isinstance(self.law, NormalRows):
            return order > 2
        return isinstance(self.law, Iid) and self.law.known(order) == 0

    def note_vanished(self, order: int) -> None:
        """Note as used that a cumulant is zero, if that is not said by the name of the law."""
        if isinstance(self.law, Iid) and (order < 3 or self.law.name is None):
            ((_, term),) = _iid_constant(self, order).terms
            self.symbols.vanished[term.factors[0][0].name] = None

    def coincide(self, block: Sequence[Atom], places: slice = slice(None)) -> Poly:
        """1 where all entries of a block are at one place (on some axes), else 0."""
        first, *others = (atom.indices[places] for atom in block)
        pairs = [pair for other in others for pair in zip(first, other, strict=True)]
        return self.ring.product(self.ring.atom(Atom("same", None, pair)) for pair in pairs)


def _iid(source: Source, block: Sequence[Atom]) -> Poly:
    order = len(block)
    assert isinstance(source.law, Iid)
    if order > 2 and source.vanishes(order) and source.law.name is not None:  # else an answer tells that it used it
        return ZERO
    return source.ring.multiply(_iid_constant(source, order), source.coincide(block))


def _iid_constant(source: Source, order: int) -> Poly:
    """The symbol of the cumulant of an order."""
    assert isinstance(source.law, Iid)
    name = source.names[0]
    letters = {1: sympy.Symbol(f"mu_{name}"), 2: sympy.Symbol(f"sigma_{name}") ** 2}
    shown = letters.get(order, sympy.Symbol(f"kappa{order}_{name}"))
    what = _FIRST.get(order) or f"{_ORDINALS.get(order, f'{order}th')} cumulant"
    return source.constant(order, source.law.known(order), what, shown)


def _pair(source: Source, block: Sequence[Atom]) -> Poly:
    assert isinstance(source.law, IidPair)
    counts = tuple(sum(atom.name == name for atom in block) for name in source.names)
    value = source.law.known(*counts)
    if source.law.is_normal and sum(counts) > 2:
        return ZERO
    a, b = source.names
    shown = {
        (1, 0): sympy.Symbol(f"mu_{a}"), (0, 1): sympy.Symbol(f"mu_{b}"), (2, 0): sympy.Symbol(f"sigma_{a}") ** 2,
        (0, 2): sympy.Symbol(f"sigma_{b}") ** 2, (1, 1): sympy.Symbol(f"c_{a}{b}"),
    }.get(counts, sympy.Symbol(f"kappa{counts[0]}{counts[1]}_{a}{b}"))  # fmt: skip
    what = _FIRST.get(sum(counts), "") if 0 in counts else ("covariance" if counts == (1, 1) else "")
    name = (a if counts[0] else b) if 0 in counts else ""
    constant = source.constant(counts, value, what or f"joint cumulant {counts}", shown, name if what else "")
    return source.ring.multiply(constant, source.coincide(block))


def _rows(source: Source, block: Sequence[Atom]) -> Poly:
    law, ring = source.law, source.ring
    assert isinstance(law, NormalRows)
    if len(block) > 2:
        return ZERO
    last = [atom.indices[-1] for atom in block]
    rows = source.coincide(block, slice(None, -1))
    if len(block) == 1:
        mean = law.mean
        value = single(Atom("entry", mean.name, (last[0],))) if isinstance(mean, Tensor) else scalar(ring, mean)
        return ring.multiply(_mark(source, "mean", mean), value)
    covariance = law.covariance
    if isinstance(covariance, Tensor):
        kind = "symmetric" if "symmetric" in covariance.params["hypotheses"] else "entry"
        value = single(Atom(kind, covariance.name, tuple(last)))
    else:
        value = ring.multiply(scalar(ring, covariance), ring.atom(Atom("same", None, (last[0], last[1]))))
        covariance = Sentence(covariance, " times the identity") if covariance != 1 else "the identity"
    return ring.product([_mark(source, "covariance", covariance), rows, value])


def _mark(source: Source, what: str, value: Any) -> Poly:
    """A factor 1 that tells that a parameter was used."""
    return source.constant(what, sympy.S.One, what, sympy.S.One, told=value)


def _sphere(source: Source, block: Sequence[Atom]) -> Poly:
    """Cumulants from moments, ``E[u_i u_j] = [i = j] / d`` and so on over all pairings."""
    ring = source.ring
    if len(block) % 2:
        return ZERO
    width = source.tensors[0].shape[-1]
    parts = []
    for partition in set_partitions(list(block)):
        if any(len(part) % 2 for part in partition):
            continue
        sign = (-1) ** (len(partition) - 1) * math.factorial(len(partition) - 1)
        parts.append((sign, ring.product(_sphere_moment(source, part, width) for part in partition)))
    rows = source.coincide(block, slice(None, -1))
    return ring.product([_mark(source, "length", ""), rows, ring.total(parts)])


def _sphere_moment(source: Source, part: Sequence[Atom], width: sympy.Expr) -> Poly:
    ring = source.ring
    total = ring.add(*(
        ring.product(ring.atom(Atom("same", None, (a.indices[-1], b.indices[-1]))) for a, b in pairs)
        for pairs in pairings(list(part))
    ))  # fmt: skip
    below = sympy.Mul(*(width + 2 * k for k in range(len(part) // 2)))
    return ring.multiply(total, scalar(ring, 1 / below))


_JOINT: dict[type, Callable[[Source, Sequence[Atom]], Poly]] = {
    Iid: _iid, IidPair: _pair, NormalRows: _rows, Sphere: _sphere,
}  # fmt: skip


# --- partitions ---


def set_partitions(items: list[Item], sizes: Collection[int] | None = None) -> Iterator[list[list[Item]]]:
    """All ways to put the items into blocks, of certain sizes only if ``sizes`` are given."""
    if not items:
        yield []
        return
    first, *rest = items
    for others in range(len(rest) + 1):
        if sizes is not None and others + 1 not in sizes:
            continue
        for chosen in itertools.combinations(range(len(rest)), others):
            block = [first, *(rest[n] for n in chosen)]
            for smaller in set_partitions([x for n, x in enumerate(rest) if n not in chosen], sizes):
                yield [block, *smaller]


def count_partitions(items: int, sizes: Collection[int]) -> int:
    """How many ways there are to put items into blocks of certain sizes."""
    counts = [1]
    for n in range(1, items + 1):
        counts.append(sum(math.comb(n - 1, size - 1) * counts[n - size] for size in sizes if size <= n))
    return counts[items]


def pairings(items: list[Item]) -> Iterator[list[tuple[Item, Item]]]:
    """All ways to pair the items."""
    if not items:
        yield []
        return
    first, *rest = items
    for n, other in enumerate(rest):
        for smaller in pairings([*rest[:n], *rest[n + 1 :]]):
            yield [(first, other), *smaller]


def missing(known: Known) -> NoRuleError:
    """The error for a cumulant that is used and not known, or for a moment that does not exist."""
    if not known.names:
        return NoRuleError(f"the expectation is infinite: {known.what} is, which it depends on")
    return needed(known.what, known.name)
