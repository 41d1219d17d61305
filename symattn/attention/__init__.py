"""Attention as it is published: scores, masks, positions, heads, normalisers, linear forms, norms and blocks.

Every function composes operations of symattn and names its intermediates, so that what it returns prints,
differentiates, compiles and is proved like anything else. Conventions on which implementations differ are keywords.
"""

from __future__ import annotations

from .. import language as _language  # operators and printing come with any tensor
from .scores import averaged, capped, probabilities, scaled_dot_product, scores

__all__ = [
    "averaged",
    "capped",
    "probabilities",
    "scaled_dot_product",
    "scores",
]
