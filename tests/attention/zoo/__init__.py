"""The table of variants: importing this fills it."""

from . import scores
from .entry import SIZES, ZOO, Variant, arrays, torch

__all__ = ["SIZES", "ZOO", "Variant", "arrays", "scores", "torch"]
