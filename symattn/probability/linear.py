"""Entries of a term that are summed by themselves, as linear forms: ``(sum_k x_k)^3`` is one form three times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy

from ..normal_form.constructors import scalar
from ..normal_form.terms import ONE, Factor, Poly, Term, product_of, single, split_components

if TYPE_CHECKING:
    from .expectation import Expectation


def linear_factors(
    e: Expectation, factors: Sequence[Factor], bound: Sequence[int]
) -> tuple[list[Poly], list[Factor], Poly]:
    """Linear forms of random entries that are factors of the term, the other factors, and a share.

    A sum that holds one random entry, and else what is fixed, is taken as a form. The term is summed over the same
    symbols later, on which nothing depends any more: the share is one over the number of their places.
    """
    ring, share = e.ring, ONE
    forms: list[Poly] = []
    others: list[Factor] = []
    loose, groups = split_components(Term(tuple(bound), tuple(factors)))
    for symbols, held in groups:
        drawn = [(atom, power) for atom, power in held if e.is_random(single(atom))]
        if len(drawn) == 1 and drawn[0][1] == 1 and e.is_entry(drawn[0][0]):
            forms.append(ring.summed(symbols, product_of(held)))
            share = ring.multiply(share, scalar(ring, 1 / sympy.Mul(*(ring.ranges[s] for s in symbols))))
        else:
            loose += held
    for atom, power in loose:
        if e.is_entry(atom) and power > 0 and power == int(power):
            forms += [single(atom)] * int(power)
        else:
            others.append((atom, power))
    return forms, others, share
