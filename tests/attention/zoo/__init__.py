"""The table of variants: importing this fills it."""

from . import (
    biases,
    blocks,
    decay,
    delta,
    heads,
    kernels,
    linear,
    losses,
    masks,
    normalisers,
    norms,
    positions,
    projections,
    scores,
    similarities,
)
from .entry import SIZES, ZOO, Variant, arrays, torch

__all__ = [
    "SIZES",
    "ZOO",
    "Variant",
    "arrays",
    "biases",
    "blocks",
    "decay",
    "delta",
    "heads",
    "kernels",
    "linear",
    "losses",
    "masks",
    "normalisers",
    "norms",
    "positions",
    "projections",
    "scores",
    "similarities",
    "torch",
]
