"""Polynomials of entries as text and LaTeX, with readable letters for index symbols.

Terms, factors and letters come in an order that depends on what is written, not on how it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import sympy

from ..core.naming import free_letters
from ..printing.symbols import latex_name
from .indices import Index
from .terms import POWER, Atom, Factor, Number, Poly, Term, plain

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


class Writer:
    """Writes polynomials in one dialect; ``free`` names the index symbols that are not bound.

    ``known`` are the definitions that have a name of their own; others are t_1, t_2, ...
    """

    def __init__(
        self, latex: bool, free: Mapping[int, str], taken: Iterable[str] = (), known: Mapping[int, Known] | None = None
    ) -> None:
        self.latex, self.names, self.known = latex, dict(free), known or {}
        self.met: dict[int, str] = {}  # names for the definitions that were written, in their order
        self.taken = {*taken, *free.values()}

    def short(self, poly: Poly) -> str:
        """A sum of terms, or nothing where it is too long to be read."""
        written = "" if _parts_of(poly) > LONGEST else self.poly(poly)
        return written if len(written) <= LONGEST else ""

    def poly(self, poly: Poly) -> str:
        """A sum of terms."""
        if not poly.terms:
            return "0"
        written = sorted((self._term(abs(Fraction(c)), term), c < 0) for c, term in poly.terms)
        written.sort(key=lambda part: part[1])  # a sum begins with what it adds, if there is any
        first = ("-" if written[0][1] else "") + written[0][0]
        return first + "".join((" - " if minus else " + ") + text for text, minus in written[1:])

    def _term(self, c: Number, term: Term) -> str:
        with self._letters(term.bound) as letters:
            above, below, exponents = self._parts(term.factors)
        exact = Fraction(c)
        if exact.numerator != 1 or not (above or exponents):
            above.insert(0, str(exact.numerator))
        if exact.denominator != 1:
            below.insert(0, str(exact.denominator))
        if exponents:
            above.append(self._exp(" + ".join(exponents).replace("+ -", "- ")))
        body = self._fraction(above, below)
        sums = "".join(map(self._sum, letters))
        return f"{sums}{body}" if self.latex or not sums else f"{sums}({body})"

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

    def _sum(self, letter: str) -> str:
        return rf"\sum_{{{letter}}} " if self.latex else f"sum_{letter} "

    def _exp(self, inside: str) -> str:
        return f"e^{{{inside}}}" if self.latex else f"exp({inside})"

    def _fraction(self, above: list[str], below: list[str]) -> str:
        top = (r" \, " if self.latex else "*").join(above) or "1"
        if not below:
            return top
        bottom = (r" \, " if self.latex else "*").join(below)
        if self.latex:
            return rf"\frac{{{top}}}{{{bottom}}}"
        return f"{top}/{bottom}" if len(below) == 1 else f"{top}/({bottom})"

    def _parts(self, factors: Iterable[Factor]) -> tuple[list[str], list[str], list[str]]:
        above: list[str] = []
        below: list[str] = []
        exponents: list[str] = []
        for atom, e in factors:
            if atom.kind == "exp":
                (c, term), *_ = atom.inner[0].terms
                value = Fraction(e) * c
                exponents.append(("-" if value < 0 else "") + self._term(abs(value), term))
                continue
            (above if e > 0 else below).append(self._raised(self._atom(atom), plain(abs(Fraction(e))), atom))
        return sorted(above), sorted(below), sorted(exponents)

    def _raised(self, written: str, e: Number, atom: Atom) -> str:
        if e == 1:
            return written
        if self.latex:
            if e == Fraction(1, 2):
                return rf"\sqrt{{{self.poly(atom.inner[0]) if atom.kind == 'power' else written}}}"
            return rf"{{{written}}}^{{{e}}}"
        return f"sqrt({written})" if e == Fraction(1, 2) else f"{written}**{e if e == int(e) else f'({e})'}"

    # --- atoms ---

    def _atom(self, atom: Atom) -> str:
        writers: Mapping[str, Callable[[], str]] = {
            "scalar": lambda: sympy.latex(atom.name) if self.latex else str(atom.name),
            "entry": lambda: self._entry(atom.name, atom.indices),
            "symmetric": lambda: self._entry(atom.name, atom.indices),
            "index": lambda: self.index(atom.indices[0]),
            "imaginary": lambda: r"\mathrm{i}" if self.latex else "I",
            "minus infinity": lambda: r"(-\infty)" if self.latex else "(-oo)",
            "same": lambda: self._indicator(f"{self.index(atom.indices[0])} = {self.index(atom.indices[1])}"),
            "range": lambda: self._indicator(f"{self.index(atom.indices[0])} {self._least()} 0"),
            "positive": lambda: self._indicator(f"{self.poly(atom.inner[0])} > 0"),
            "zero": lambda: self._indicator(f"{self.poly(atom.inner[0])} = 0"),
            "power": lambda: self._between(self.poly(atom.inner[0])),
            "log": lambda: self._function("log", atom),
            "function": lambda: self._function(str(atom.name).removeprefix("unknown "), atom),
            "definition": lambda: self.defined(atom.name, atom.indices),
        }
        return writers[atom.kind]() if atom.kind in writers else self._over(atom)

    def _least(self) -> str:
        return r"\ge" if self.latex else ">="

    def _indicator(self, inside: str) -> str:
        return rf"\left[{inside}\right]" if self.latex else f"[{inside}]"

    def _between(self, inside: str) -> str:
        return rf"\left({inside}\right)" if self.latex else f"({inside})"

    def _entry(self, name: str, indices: tuple[Index, ...]) -> str:
        inverse = name.endswith("^-1")
        base = name.removesuffix("^-1")
        inside = ", ".join(map(self.index, indices))
        if not self.latex:
            base = f"inv({base})" if inverse else base
            return f"{base}[{inside}]" if indices else base
        written = latex_name(base)
        written = rf"({written}^{{-1}})" if inverse else f"{{{written}}}"
        return rf"{written}_{{{inside}}}" if indices else latex_name(base)

    def _function(self, name: str, atom: Atom) -> str:
        if name == POWER:
            base, exponent = map(self.poly, atom.inner)
            return rf"{self._between(base)}^{{{exponent}}}" if self.latex else f"(({base})**({exponent}))"
        inside = ", ".join(map(self.poly, atom.inner))
        if not self.latex:
            return f"{name}({inside})"
        known = r"\log" if name == "log" else rf"\operatorname{{{name}}}"
        macro = latex_name(name) if str(atom.name).startswith("unknown ") else known
        return rf"{macro}\left({inside}\right)"

    def defined(self, key: int, indices: tuple[Index, ...]) -> str:
        """A definition at some indices, by its name."""
        if key in self.known:
            return self._entry(self.known[key].name, self.known[key].at(indices))
        if key not in self.met:
            taken = {*self.taken, *self.met.values()}
            self.met[key] = next(name for n in count(1) if (name := f"t_{n}") not in taken)
        return self._entry(self.met[key], indices)

    def _over(self, atom: Atom) -> str:
        """An extreme, an unknown function of a row, or the inverse of a matrix, over bound symbols."""
        with self._letters(atom.bound) as bound:
            letters, inside = ", ".join(bound), self.poly(atom.inner[0])
            at = ", ".join(map(self.index, atom.indices))
        if atom.kind == "extreme":
            sign = str(atom.name).lower()
            return rf"\{sign}_{{{letters}}} \left({inside}\right)" if self.latex else f"{sign}_{letters}({inside})"
        name = "inv" if atom.kind == "inverse" else str(atom.name)
        if self.latex:
            return rf"\operatorname{{{name}}}\left(\left[{inside}\right]_{{{letters}}}\right)_{{{at}}}"
        return f"{name}([{inside}]_{letters})[{at}]"

    # --- indices ---

    def index(self, index: Index) -> str:
        if isinstance(index, int):
            return self.names.get(index, f"i_{index}")
        if index[0] == "perm":
            name = latex_name(index[1]) if self.latex else index[1]
            inverse = ("^{-1}" if self.latex else "^-1") if index[2] < 0 else ""
            return f"{name}{inverse}({self.index(index[3])})"
        if index[0] == "entry":
            return self._entry(index[1], index[2])
        total = index[1]
        for base, c in index[2]:
            total = total + c * sympy.Symbol(self.index(base))
        return str(sympy.latex(total) if self.latex else total)
