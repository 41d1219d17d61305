"""Sizes for linear inequalities: one after the other is met by the least change, instead of being hoped for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy

from ...core.sizes import least

_MOST = 100  # changes, after which it is taken that nothing fits

Linear = Mapping[sympy.Symbol, sympy.Rational]  # coefficients of what may not be negative; 1 has the constant


def room_left(room: Linear, sizes: Mapping[sympy.Symbol, int]) -> sympy.Rational:
    """How much room there is."""
    return sympy.Add(*(c if m == 1 else c * sizes[m] for m, c in room.items()))


def fitted(rooms: Sequence[Linear], wanted: Mapping[sympy.Symbol, int]) -> dict[sympy.Symbol, int] | None:
    """Sizes near the wanted ones at which no room is negative; None if none were found.

    A size that gives room is raised as far as needed; where that does not settle, one that takes it is lowered.
    """
    sizes = dict(wanted)
    for change in range(_MOST):
        short = next((room for room in rooms if room_left(room, sizes) < 0), None)
        if short is None:
            return sizes
        missing = -room_left(short, sizes)
        raised = [s for s, c in short.items() if s != 1 and c > 0]
        lowered = [s for s, c in short.items() if s != 1 and c < 0 and sizes[s] > least(s)]
        if raised and not (lowered and change % 3 == 2):
            sizes[raised[0]] += int(sympy.ceiling(missing / short[raised[0]]))
        elif lowered:
            s = max(lowered, key=lambda s: sizes[s])
            sizes[s] -= min(sizes[s] - least(s), int(sympy.ceiling(-missing / short[s])))
        else:
            return None
    return None
