"""What published formulas mean, written by hand from what their sources declare, and the table of verdicts."""

from __future__ import annotations

import inspect

from . import meanings_algebra, meanings_attention, meanings_more
from .formulas import FUNCTIONS, Functions, arguments_of, formulas
from .meaning import REGISTERED, Meaning

KINDS = (meanings_algebra, meanings_attention, meanings_more)  # which register what they mean when they are imported


def meaning_of(id: str, functions: Functions = FUNCTIONS) -> Meaning:
    """The meaning of one formula, built of the names that it declares."""
    verdict, reason, build = REGISTERED[id]
    names = arguments_of(formulas()[id], functions)
    needed = [name.replace("_prime", "'") for name in inspect.signature(build).parameters]
    made = build(*(names[name] for name in needed))
    return Meaning(id, verdict, reason, tuple(made) if isinstance(made, list) else (made,))


def all_meanings() -> dict[str, Meaning]:
    """Every formula with its meaning, in the order of the corpus."""
    return {id: meaning_of(id) for id in formulas() if id in REGISTERED}


def table() -> str:
    """One line a formula: its id, the verdict, and the reason."""
    return "\n".join(f"{m.id:6} {m.verdict:18} {m.reason}".rstrip() for m in all_meanings().values())
