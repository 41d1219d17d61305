"""The whole corpus of claims, from all the files that hold a part of it."""

from __future__ import annotations

from . import claims_algebra, claims_kernels, claims_layers, claims_numerics, claims_positions  # noqa: F401
from .claims import CLAIMS, Case

__all__ = ["CLAIMS", "Case"]
