"""The lines of a derivation."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..core.node import Tensor
from ..ops.leaves import named_by
from .checks import Check
from .prose import Prose

Kind = Literal["definition", "where", "gradient", "equation", "further"]


class Line(NamedTuple):
    """One line: a left side (none where it goes on from the line above), what that is equal to, and why.

    A definition gives a name; "where" is one that nobody wrote. ``remarks`` say where a gradient does not exist, and
    what is taken there; by its ``label`` the line is referred to. ``check`` is what was done to verify it.
    """

    left: Tensor | None
    expression: Tensor
    kind: Kind
    reason: str | Prose = ""
    relation: str = "="
    label: str = ""
    remarks: tuple[str, ...] = ()
    check: Check | None = None

    @property
    def is_definition(self) -> bool:
        return self.kind in ("definition", "where")

    @property
    def is_found(self) -> bool:
        """Whether it says what a name stands for that no user gave."""
        return self.left is not None and self.kind == "where" and bool(named_by(self.left))

    @property
    def sides(self) -> list[Tensor]:
        """What is written out: a name is not."""
        return [self.expression] if self.left is None or self.kind != "equation" else [self.left, self.expression]

    @property
    def name(self) -> Tensor | None:
        """What the line gives a name or is the gradient of."""
        return None if self.kind in ("equation", "further") else self.left
