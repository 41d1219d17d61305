"""The table of the catalogue in the README: ``python -m tests.gallery`` writes it again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from symattn.cli import notes

README = Path(__file__).parents[1] / "README.md"
_HEAD = "| name | derivation |\n|---|---|\n"


def table(listed: Iterable[tuple[str, str]]) -> str:
    """A row for each derivation: its name, which leads to its file, and what it is about."""
    rows = (f"| [{name}](derivations/{name.replace('-', '_')}.py) | {about} |\n" for name, about in listed)
    return _HEAD + "".join(rows)


def written() -> str:
    """The table as it stands."""
    after = README.read_text(encoding="utf-8").partition(_HEAD)[2]
    return _HEAD + after.partition("\n\n")[0] + "\n"


def main() -> None:
    """Write the table of the derivations that are there."""
    listed = ((name, notes.about(path)) for name, path in notes.derivations().items())
    before = README.read_text(encoding="utf-8")
    README.write_text(before.replace(written(), table(listed)), encoding="utf-8")


if __name__ == "__main__":
    main()
