"""Conditions as text that know themselves in LaTeX too."""

from __future__ import annotations

import re
from collections.abc import Callable

_SIGNS = {"!=": r"\neq", ">=": r"\ge", "<=": r"\le"}
_RELATION = re.compile(r"(.*)\{\}(.*?) (!=|[<>]=?) (.*)")


class Stated(str):
    """A condition as text, with what writes it in LaTeX when it is asked to."""

    write: Callable[[], str]

    def __new__(cls, text: str, write: Callable[[], str]) -> Stated:
        self = super().__new__(cls, text)
        self.write = write
        return self

    def __reduce__(self) -> tuple[type, tuple[str, Callable[[], str]]]:
        return type(self), (str(self), self.write)


def in_latex(says: str, about: str) -> str:
    r"""A condition in which ``{}`` stands for the LaTeX of what it is about: ``"{} != 0"`` is ``$X \neq 0$``."""
    found = _RELATION.fullmatch(says)
    if found is None:
        return says.format(f"${about}$")
    before, after, sign, right = found.groups()
    function = f"\\{before}" if before else ""  # as in cos(
    return f"${function}{about}{after} {_SIGNS.get(sign, sign)} {right}$"


def in_sentence(sign: str) -> str:
    """A sign of comparison inside of a sentence."""
    return f"${_SIGNS.get(sign, sign)}$"
