"""What is said of one statement of a document."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal[
    "proved",
    "defined",
    "declared",
    "given",
    "refuted",
    "shape",
    "warning",
    "ambiguous",
    "unknown",
    "skipped",
    "mention",
]
WRONG: tuple[Status, ...] = ("refuted", "shape")
DECIDED: tuple[Status, ...] = ("proved", "defined", "given", *WRONG)  # that say something of mathematics


@dataclass(frozen=True)
class Finding:
    """A statement with its place, what became of it, and what may have been meant."""

    status: Status
    statement: str
    line: int
    column: int
    message: str = ""
    suggestions: tuple[str, ...] = ()
    rule: str = ""
    verdict: Any = field(default=None, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        told = {key: getattr(self, key) for key in ("status", "statement", "line", "column", "message", "rule")}
        return {**told, "suggestions": list(self.suggestions)}
