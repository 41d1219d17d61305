"""What published formulas mean, written by hand from what their sources declare, and the table of verdicts."""

from __future__ import annotations

from . import meanings_algebra, meanings_attention
from .meaning import Meaning, known_ids, meaning_of

KINDS = (meanings_algebra, meanings_attention)  # which register what they mean when they are imported


def all_meanings() -> dict[str, Meaning]:
    """Every formula with its meaning, in the order of the corpus."""
    return {id: meaning_of(id) for id in known_ids()}


def table() -> str:
    """One line a formula: its id, the verdict, and the reason."""
    return "\n".join(f"{m.id:6} {m.verdict:18} {m.reason}".rstrip() for m in all_meanings().values())
