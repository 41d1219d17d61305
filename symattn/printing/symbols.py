r"""The letters of names: ``W_q`` is W with a subscript, ``alpha`` is α, ``mask`` a word, ``dZ`` a differential.

Names are read by SymPy's symbol conventions. A word of two or more letters is upright, so that it is never read as a
product.
"""

from __future__ import annotations

from functools import lru_cache

from sympy.printing.conventions import split_super_sub

from ..core.boxes import Accent, Box, Differential, Name, Number, Row, Script, Sign, Style, row
from .media.latex import latex
from .media.spelling import LETTERS

_GREEK = {spelled[1:]: letter for letter, spelled in LETTERS.items()} | {"lamda": "λ", "Lamda": "Λ", "khi": "χ"}
_LATIN_CAPITALS = {
    "Alpha": "A", "Beta": "B", "Epsilon": "E", "Zeta": "Z", "Eta": "H", "Iota": "I", "Kappa": "K", "Mu": "M",
    "Nu": "N", "Omicron": "O", "Rho": "P", "Tau": "T", "Chi": "X", "Khi": "X",
}  # fmt: skip
_ACCENTS = {
    "ddot": "¨", "dot": "˙", "check": "ˇ", "breve": "˘", "acute": "´", "grave": "ˋ", "tilde": "~", "hat": "^",
    "bar": "‾", "vec": "→",
}  # fmt: skip
_STYLES: dict[str, Style] = {
    "bold": "bold", "bm": "bold", "cal": "calligraphic", "scr": "calligraphic", "frak": "fraktur",
}  # fmt: skip


@lru_cache(maxsize=4096)
def symbol(name: str) -> Box:
    """The boxes of a name, with its subscripts and primes."""
    stem = name.rstrip("'")
    base, _, below = split_super_sub(stem)
    primes = Sign("′" * (len(name) - len(stem))) if stem != name else None
    subscript = row(*map(letters_of, below)) if below else None
    if _is_differential(base):
        return Differential(_scripted(letters_of(base[1:]), subscript, primes))
    return _scripted(letters_of(base), subscript, primes)


def latex_name(name: str) -> str:
    """A name in LaTeX."""
    return latex(symbol(name))


def _scripted(base: Box, below: Box | None, above: Box | None) -> Box:
    return base if below is above is None else Script(base, below, above)


def _is_differential(base: str) -> bool:
    """Whether a name is a d in front of one letter: ``dZ``, ``dalpha``, ``dxhat``; not ``delta``, not ``dim``."""
    rest = base[1:]
    return base[0] == "d" and len(rest) > 0 and base not in _GREEK and (rest.isalpha() and _is_letter(rest))


def _is_letter(part: str) -> bool:
    """Whether a part of a name is printed as one letter, maybe under an accent or in another font."""
    if len(part) == 1 or part in _GREEK or part in _LATIN_CAPITALS:
        return True
    return any(
        part.endswith(mark) and part != mark and _is_letter(part[: -len(mark)]) for mark in (*_ACCENTS, *_STYLES)
    )


def letters_of(part: str) -> Box:
    """A part of a name: digits, a letter, a Greek letter, one with an accent, or a word."""
    if part.isdigit():
        return Number(part)
    if len(part) == 1 or part in _GREEK:
        return Name(_GREEK.get(part, part))
    if part in _LATIN_CAPITALS:
        return Name(_LATIN_CAPITALS[part], "upright")
    for ending, mark in _ACCENTS.items():
        if part.endswith(ending) and part != ending and _is_letter(part[: -len(ending)]):
            return Accent(letters_of(part[: -len(ending)]), mark)
    for ending, style in _STYLES.items():
        if part.endswith(ending) and part != ending and _is_letter(part[: -len(ending)]):
            return Name(_GREEK.get(part[: -len(ending)], part[: -len(ending)]), style)
    if part[0].isalpha() and part[1:].isdigit():
        return Row((Name(part[0]), Number(part[1:])))
    return Name(part, "upright")
