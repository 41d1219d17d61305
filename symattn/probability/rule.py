"""A rule for expectations of what is no polynomial of random entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..core.stated import Sentence
from ..normal_form.terms import Factor, Poly
from .sources import Source

if TYPE_CHECKING:
    from .expectation import Expectation


class Rule(NamedTuple):
    """The expectation of a term over some sources, while the others are fixed.

    ``groups`` lists the sources to try together. ``apply`` takes the factors, and the symbols that are summed over
    outside of them, and raises NoRuleError with a reason for what it does not reach, which a refusal gives to people if
    the rule ``explains``. ``sentence`` tells how it is done.
    """

    name: str
    sentence: Sentence
    groups: Callable[[Sequence[Source]], Iterable[Sequence[Source]]]
    apply: Callable[[Expectation, Sequence[Source], Sequence[Factor], tuple[int, ...]], Poly]
    explains: bool = False
