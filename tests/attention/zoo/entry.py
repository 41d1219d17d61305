"""What the tests know of a variant: its expression, what it is differentiated by, and the same in PyTorch, by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import sympy

import symattn as sa

try:
    import torch
except ImportError:  # an extra: the tests that need it are skipped
    torch = None

SIZES = dict(zip(sa.sizes("h e T S d D f m r"), (2, 3, 4, 5, 6, 7, 8, 9, 10), strict=True))
h, e, T, S, d, D, f, m, r = SIZES


class Variant(NamedTuple):
    """An expression, its differentiable arguments and then its data, and a PyTorch function of all of them in order.

    ``draw`` gives arrays that a normal distribution would not (unit rows, decays, tokens): a function of the generator
    and the shape. ``keywords`` are sizes that no shape shows.
    """

    output: sa.Tensor
    wrt: list[Any]
    torch: Callable[..., Any]
    data: tuple[sa.Tensor, ...] = ()
    draw: Mapping[Any, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {}
    keywords: tuple[sympy.Symbol, ...] = ()


ZOO: dict[str, Callable[[], Variant]] = {}


def variant(build: Callable[[], Variant]) -> Callable[[], Variant]:
    """Enter a variant under the name of the function that builds it."""
    assert build.__name__ not in ZOO
    ZOO[build.__name__] = build
    return build


def arrays(v: Variant, rng: np.random.Generator) -> list[Any]:
    """Generic values of the arguments and the data; a mask leaves something in every row but one, which is empty."""
    return [_array(x, v, rng) for x in (*v.wrt, *v.data)]


def _array(x: Any, v: Variant, rng: np.random.Generator) -> Any:
    if isinstance(x, sympy.Symbol):
        return rng.uniform(0.5, 1.5)
    shape = tuple(int(size.subs(SIZES)) for size in x.shape)
    if x in v.draw:
        return np.asarray(v.draw[x](rng, shape))
    hypotheses = x.params["hypotheses"]
    if "binary" in hypotheses:
        keep = rng.random(shape) < 0.6
        keep[..., 1:3] = True
        if len(shape) > 1:
            keep[..., 2, :] = False
        return keep
    return rng.uniform(0.5, 1.5, shape) if "positive" in hypotheses else rng.normal(size=shape)
