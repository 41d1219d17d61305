"""Helpers of generated code in JAX that have no NumPy spelling, as text: each stands alone.

What NumPy refuses for its values cannot be refused while values are traced; it gives NaN.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp


def refused(x, wrong, why):
    """x, with NaN where something is wrong with it; an index stays as it is."""
    return jnp.where(wrong, jnp.nan, x) if jnp.issubdtype(x.dtype, jnp.floating) else x


def absent(x, index, size):
    """What was read at an index, with NaN where that is not inside."""
    return jnp.where((index >= 0) & (index < size), x, jnp.nan) if jnp.issubdtype(x.dtype, jnp.floating) else x


def put(x, place, part):
    """x with the part at its place."""
    return x.at[place].set(part)


def add_at(x, places, parts):
    """x with the parts added at their places, of which some may be the same."""
    return x.at[places].add(parts)


def erf(x):
    """The error function."""
    return jax.scipy.special.erf(x)


def erfc(x):
    """1 - erf(x)."""
    return jax.scipy.special.erfc(x)


IN_JAX = {name: f for name, f in globals().items() if inspect.isfunction(f)}
