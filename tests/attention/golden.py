"""What a variant looks like on paper; ``python -m tests.attention.golden NAME..`` writes files, to be read by eye."""

from __future__ import annotations

import sys
from pathlib import Path

from ..blocks import rows_of
from .zoo import ZOO

GOLDEN = Path(__file__).parents[1] / "golden" / "attention"


def document(name: str) -> str:
    """The variant as LaTeX: its named intermediates in order."""
    return rows_of(ZOO[name]().output.intermediates) + "\n"


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ZOO:
        (GOLDEN / f"{name}.tex").write_text(document(name))
