"""Expectations by the symmetry of a law: what a change of all signs of a tensor turns into its opposite has mean 0."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from ..core.node import Tensor
from ..core.stated import Sentence
from ..errors import NoRuleError
from ..normal_form.terms import Atom, Factor, Number, Poly, product_of, single
from .laws import Iid, NormalRows, Sphere
from .rule import Rule
from .sources import Source

if TYPE_CHECKING:
    from .expectation import Expectation

_THIN_TAILED = ("normal", "uniform", "rademacher")  # laws of which all exponentials of linear forms have a mean


def _is_symmetric(source: Source) -> bool:
    """Whether a tensor and its opposite have the same law, under which exponentials have means."""
    law = source.law
    if isinstance(law, Iid):
        return law.name in _THIN_TAILED and law.known(1) == 0
    return isinstance(law, Sphere) or (
        isinstance(law, NormalRows) and not isinstance(law.mean, Tensor) and law.mean == 0
    )


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    return [[source] for source in sources if _is_symmetric(source)]


def _expected(e: Expectation, sources: Sequence[Source], factors: Sequence[Factor], bound: tuple[int, ...]) -> Poly:
    """``E[F(x)] = E[F(x) + F(-x)] / 2``, where that sum does not depend on x."""
    ring, over = e.ring, e.over(sources)
    if not all(_has_mean(over, atom, power) for atom, power in factors):
        raise NoRuleError("no function that is known to have an expectation")
    whole = product_of(factors)

    def flipped(atom: Atom) -> Poly | None:
        return ring.scale(-1, single(atom)) if over.is_entry(atom) else None

    both = ring.add(whole, ring.rewrite(whole, flipped, "entry", "symmetric"))
    if over.is_random(both):
        raise NoRuleError("no function that a change of signs turns into its opposite")
    for source in sources:
        one = Atom("entry", source.names[0], tuple(ring.fresh(size) for size in source.tensors[0].shape))
        e.value(source.joint([one]))  # the mean, which is 0
    return ring.scale(Fraction(1, 2), both)


def _has_mean(over: Expectation, atom: Atom, power: Number) -> bool:
    """Whether a factor grows no faster than an exponential of a linear form: products of such have expectations."""
    if not over.is_random(single(atom)):
        return True
    if atom.kind == "exp":
        return over.is_linear_form(atom.inner[0])
    if atom.kind == "power" and power < 0:  # of 1 or more, as in 1 / (1 + exp(x))
        base = atom.inner[0]
        return over.ring.is_nonnegative(base) and any(not (term.factors or term.bound) for _, term in base.terms)
    return over.is_entry(atom) and power > 0 and power == int(power)


SIGNS = Rule(
    "signs",
    Sentence(
        "A tensor and its opposite have the same law, so that a function and its mirror image have the same mean."
    ),
    _groups,
    _expected,
)
