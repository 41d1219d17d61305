"""Letters in the fonts of mathematics, which Unicode has as characters of their own: 𝐀, 𝔼, ℒ."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ...core.boxes import Style

_ALPHABETS: dict[Style, tuple[str, ...]] = {
    "italic": ("MATHEMATICAL ITALIC",),
    "bold": ("MATHEMATICAL BOLD",),
    "blackboard": ("MATHEMATICAL DOUBLE-STRUCK", "DOUBLE-STRUCK"),
    "calligraphic": ("MATHEMATICAL SCRIPT", "SCRIPT"),
    "sans": ("MATHEMATICAL SANS-SERIF",),
    "fraktur": ("MATHEMATICAL FRAKTUR", "BLACK-LETTER"),
    "typewriter": ("MATHEMATICAL MONOSPACE",),
}  # older characters have names of their own: ℝ is a double-struck capital R
_ITALIC_H = "ℎ"


@lru_cache(maxsize=4096)
def in_font(letters: str, style: Style) -> str:
    """The letters in a font; what Unicode does not have there stays as it is."""
    return "".join(_letter(letter, style) for letter in letters)


def _letter(letter: str, style: Style) -> str:
    if style == "italic" and letter == "h":
        return _ITALIC_H  # the Planck constant
    plain = unicodedata.name(letter, "")
    if not plain.startswith(("LATIN", "GREEK", "DIGIT", "NABLA", "PARTIAL")):
        return letter
    for word in ("LATIN ", "GREEK ", "LUNATE ", " LETTER"):
        plain = plain.replace(word, "")
    for alphabet in _ALPHABETS.get(style, ()):
        try:
            return unicodedata.lookup(f"{alphabet} {plain}")
        except KeyError:
            continue
    return letter


def letters_of(source: str) -> str:
    r"""The letters of LaTeX that is not known, for the other media: ``\foo{A}`` is shown as ``foo A``."""
    return " ".join(source.translate(_MARKUP).split())


_MARKUP = str.maketrans(dict.fromkeys("\\{}$", " "))
