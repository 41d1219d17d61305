"""Polynomials of entries written out, with readable letters for index symbols.

Terms, factors and letters come in an order that depends on what is written, not on how it was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import sympy

from ..core.naming import free_letters
from .indices import Index
from .terms import POWER, Atom, Factor, Number, Poly, Term, plain

W = TypeVar("W")
_LETTERS = "klmnpqrtuvwabcefgh"
LONGEST = 1200  # characters of a polynomial that is still written out


def _parts_of(poly: Poly) -> int:
    """How many factors a polynomial shows, those inside of others too; what is shared counts wherever it is shown."""
    known: dict[int, int] = {}

    def count(p: Poly) -> int:
        if id(p) not in known:
            factors = (atom for _, term in p.terms for atom, _ in term.factors)
            known[id(p)] = sum(1 + sum(map(count, atom.inner)) for atom in factors)
        return known[id(p)]

    return count(poly)


class Known(NamedTuple):
    """The name of a tensor whose entry at ``place`` a definition is, for all values of its symbols."""

    name: str
    symbols: tuple[int, ...]
    place: tuple[Index, ...]

    def at(self, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """The place with other indices for the symbols."""
        new = dict(zip(self.symbols, indices, strict=True))
        return tuple(new[i] if isinstance(i, int) else i for i in self.place)


class Writer(ABC, Generic[W]):
    """Writes polynomials; ``free`` names the index symbols that are not bound.

    ``known`` are the definitions that have a name of their own; others are t_1, t_2, ...
    """

    def __init__(
        self, free: Mapping[int, str], taken: Iterable[str] = (), known: Mapping[int, Known] | None = None
    ) -> None:
        self.names, self.known = dict(free), known or {}
        self.met: dict[int, str] = {}  # names for the definitions that were written, in their order
        self.taken = {*taken, *free.values()}

    def short(self, poly: Poly) -> W | None:
        """A sum of terms, or nothing where it is too long to be read."""
        written = None if _parts_of(poly) > LONGEST else self.poly(poly)
        return None if written is None or len(self.key(written)) > LONGEST else written

    def poly(self, poly: Poly) -> W:
        """A sum of terms."""
        if not poly.terms:
            return self.number("0")
        written = [(c < 0, self._term(abs(Fraction(c)), term)) for c, term in poly.terms]
        written.sort(key=lambda part: (part[0], self.key(part[1])))  # a sum begins with what it adds, if there is any
        return self.added(written)

    def _term(self, c: Number, term: Term) -> W:
        with self._letters(term.bound) as letters:
            above, below, exponents = self._parts(term.factors)
        exact = Fraction(c)
        if exact.numerator != 1 or not (above or exponents):
            above.insert(0, self.number(str(exact.numerator)))
        if exact.denominator != 1:
            below.insert(0, self.number(str(exact.denominator)))
        if exponents:
            above.append(self.exp(self.added(exponents)))
        return self.summed(letters, self.fraction(above, below))

    @contextmanager
    def _letters(self, bound: Iterable[int]) -> Iterator[list[str]]:
        """Letters for index symbols, for as long as they are bound."""
        kept, taken, letters = dict(self.names), set(self.taken), []
        for s in bound:
            self.names[s] = letter = next(free_letters(_LETTERS, self.taken))
            self.taken.add(letter)
            letters.append(letter)
        yield letters
        self.names, self.taken = kept, taken

    def _parts(self, factors: Iterable[Factor]) -> tuple[list[W], list[W], list[tuple[bool, W]]]:
        above: list[W] = []
        below: list[W] = []
        exponents: list[tuple[bool, W]] = []
        for atom, e in factors:
            if atom.kind == "exp":
                (c, term), *_ = atom.inner[0].terms
                value = Fraction(e) * c
                exponents.append((value < 0, self._term(abs(value), term)))
                continue
            (above if e > 0 else below).append(self._raised(atom, plain(abs(Fraction(e)))))
        exponents.sort(key=lambda part: "-" * part[0] + self.key(part[1]))
        return sorted(above, key=self.place), sorted(below, key=self.place), exponents

    def _raised(self, atom: Atom, e: Number) -> W:
        if e == Fraction(1, 2):
            return self.root(self.poly(atom.inner[0]) if atom.kind == "power" else self._atom(atom), atom)
        return self._atom(atom) if e == 1 else self.raised(self._atom(atom), e)

    # --- atoms ---

    def _atom(self, atom: Atom) -> W:
        writers: Mapping[str, Callable[[], W]] = {
            "scalar": lambda: self.scalar(atom.name),
            "entry": lambda: self._entry(atom.name, atom.indices),
            "symmetric": lambda: self._entry(atom.name, atom.indices),
            "index": lambda: self.index(atom.indices[0]),
            "imaginary": self.imaginary,
            "minus infinity": self.minus_infinity,
            "same": lambda: self.indicator(self.index(atom.indices[0]), "=", self.index(atom.indices[1])),
            "range": lambda: self.indicator(self.index(atom.indices[0]), ">=", self.number("0")),
            "positive": lambda: self.indicator(self.poly(atom.inner[0]), ">", self.number("0")),
            "zero": lambda: self.indicator(self.poly(atom.inner[0]), "=", self.number("0")),
            "power": lambda: self.between(self.poly(atom.inner[0])),
            "log": lambda: self.function("log", [self.poly(atom.inner[0])]),
            "function": lambda: self._function(atom),
            "definition": lambda: self.defined(atom.name, atom.indices),
        }
        return writers[atom.kind]() if atom.kind in writers else self._over(atom)

    def _entry(self, name: str, indices: tuple[Index, ...]) -> W:
        return self.entry(name.removesuffix("^-1"), name.endswith("^-1"), list(map(self.index, indices)))

    def _function(self, atom: Atom) -> W:
        arguments = list(map(self.poly, atom.inner))
        if atom.name == POWER:
            return self.power(*arguments)
        name = str(atom.name)
        return self.function(name.removeprefix("unknown "), arguments, is_unknown=name.startswith("unknown "))

    def defined(self, key: int, indices: tuple[Index, ...]) -> W:
        """A definition at some indices, by its name."""
        if key in self.known:
            return self._entry(self.known[key].name, self.known[key].at(indices))
        if key not in self.met:
            taken = {*self.taken, *self.met.values()}
            self.met[key] = next(name for n in count(1) if (name := f"t_{n}") not in taken)
        return self._entry(self.met[key], indices)

    def _over(self, atom: Atom) -> W:
        """An extreme, an unknown function of a row, a recurrence or the inverse of a matrix, over bound symbols."""
        with self._letters(atom.bound) as letters:
            terms = atom.inner[: len(atom.inner) - len(atom.bound)] if atom.kind == "scan" else atom.inner[:1]
            inside = self.poly(terms[0]) if len(terms) == 1 else self.function("from", list(map(self.poly, terms)))
            at = list(map(self.index, atom.indices))
        if atom.kind == "extreme":
            return self.extreme(str(atom.name).lower(), letters, inside)
        return self.over("inv" if atom.kind == "inverse" else str(atom.name).partition(" ")[0], letters, inside, at)

    # --- indices ---

    def index(self, index: Index) -> W:
        """An index expression."""
        if isinstance(index, int):
            return self.letter(self.names.get(index, f"i_{index}"))
        if index[0] == "perm":
            return self.permuted(index[1], index[2] < 0, self.index(index[3]))
        if index[0] == "entry":
            return self._entry(index[1], index[2])
        return self.affine(index[1], [(c, base, self.index(base)) for base, c in index[2]])

    # --- how it is written ---

    @abstractmethod
    def key(self, written: W) -> str:
        """What the order of terms and the length go by."""

    def place(self, written: W) -> Any:
        """What the order of factors goes by."""
        return self.key(written)

    @abstractmethod
    def number(self, digits: str) -> W: ...

    @abstractmethod
    def letter(self, name: str) -> W: ...

    @abstractmethod
    def scalar(self, value: sympy.Expr) -> W: ...

    @abstractmethod
    def imaginary(self) -> W: ...

    @abstractmethod
    def minus_infinity(self) -> W: ...

    @abstractmethod
    def added(self, terms: Sequence[tuple[bool, W]]) -> W:
        """A sum, of which some terms are subtracted."""

    @abstractmethod
    def summed(self, letters: Sequence[str], body: W) -> W:
        """A sum over indices."""

    @abstractmethod
    def fraction(self, above: Sequence[W], below: Sequence[W]) -> W: ...

    @abstractmethod
    def exp(self, exponent: W) -> W: ...

    @abstractmethod
    def root(self, inside: W, atom: Atom) -> W: ...

    @abstractmethod
    def raised(self, base: W, e: Number) -> W: ...

    @abstractmethod
    def power(self, base: W, exponent: W) -> W: ...

    @abstractmethod
    def between(self, inside: W) -> W: ...

    @abstractmethod
    def indicator(self, left: W, relation: str, right: W) -> W: ...

    @abstractmethod
    def entry(self, name: str, is_inverse: bool, indices: Sequence[W]) -> W: ...

    @abstractmethod
    def function(self, name: str, arguments: Sequence[W], is_unknown: bool = False) -> W: ...

    @abstractmethod
    def extreme(self, name: str, letters: Sequence[str], inside: W) -> W: ...

    @abstractmethod
    def over(self, name: str, letters: Sequence[str], inside: W, at: Sequence[W]) -> W: ...

    @abstractmethod
    def permuted(self, name: str, is_inverse: bool, index: W) -> W: ...

    @abstractmethod
    def affine(self, start: Any, terms: Sequence[tuple[Any, Index, W]]) -> W:
        """``start`` and multiples of indices."""


class TextWriter(Writer[str]):
    """Polynomials as text: ``sum_k (K[j, k]*Q[i, k]/sqrt(d))``."""

    def key(self, written: str) -> str:
        return written

    def number(self, digits: str) -> str:
        return digits

    def letter(self, name: str) -> str:
        return name

    def scalar(self, value: sympy.Expr) -> str:
        return str(value)

    def imaginary(self) -> str:
        return "I"

    def minus_infinity(self) -> str:
        return "(-oo)"

    def added(self, terms: Sequence[tuple[bool, str]]) -> str:
        first = ("-" if terms[0][0] else "") + terms[0][1]
        return first + "".join((" - " if minus else " + ") + text for minus, text in terms[1:])

    def summed(self, letters: Sequence[str], body: str) -> str:
        return "".join(f"sum_{letter} " for letter in letters) + (f"({body})" if letters else body)

    def fraction(self, above: Sequence[str], below: Sequence[str]) -> str:
        top, bottom = "*".join(above) or "1", "*".join(below)
        return top if not below else f"{top}/{bottom}" if len(below) == 1 else f"{top}/({bottom})"

    def exp(self, exponent: str) -> str:
        return f"exp({exponent})"

    def root(self, inside: str, atom: Atom) -> str:
        return f"sqrt(({inside}))" if atom.kind == "power" else f"sqrt({inside})"

    def raised(self, base: str, e: Number) -> str:
        return f"{base}**{e if e == int(e) else f'({e})'}"

    def power(self, base: str, exponent: str) -> str:
        return f"(({base})**({exponent}))"

    def between(self, inside: str) -> str:
        return f"({inside})"

    def indicator(self, left: str, relation: str, right: str) -> str:
        return f"[{left} {relation} {right}]"

    def entry(self, name: str, is_inverse: bool, indices: Sequence[str]) -> str:
        base = f"inv({name})" if is_inverse else name
        return f"{base}[{', '.join(indices)}]" if indices else base

    def function(self, name: str, arguments: Sequence[str], is_unknown: bool = False) -> str:
        return f"{name}({', '.join(arguments)})"

    def extreme(self, name: str, letters: Sequence[str], inside: str) -> str:
        return f"{name}_{', '.join(letters)}({inside})"

    def over(self, name: str, letters: Sequence[str], inside: str, at: Sequence[str]) -> str:
        return f"{name}([{inside}]_{', '.join(letters)})[{', '.join(at)}]"

    def permuted(self, name: str, is_inverse: bool, index: str) -> str:
        return f"{name}{'^-1' * is_inverse}({index})"

    def affine(self, start: Any, terms: Sequence[tuple[Any, Index, str]]) -> str:
        return str(start + sympy.Add(*(c * sympy.Symbol(written) for c, _, written in terms)))
