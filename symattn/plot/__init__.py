"""Pictures: each function gives a figure for ``Derivation.figure``, for a notebook, or for a file."""

from .flow import flow as flow

__all__ = ["flow"]
