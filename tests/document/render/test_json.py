"""Pages as JSON: the keys that the guide lists, and no others, whatever a page holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symattn.document.render.json import VERSION, as_json
from symattn.printing.prose import MARKS

from ..everything import EVERYTHING

GUIDE = (Path(__file__).parents[3] / "docs" / "documents.md").read_text(encoding="utf-8")
_NAMES = {"given": "given", "sections": "section", "steps": "step"}  # of what is no part, by where it stands


def objects(value: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects but the tally, each with what the guide calls it."""
    if isinstance(value, list):
        for each in value:
            yield from objects(each, where)
    elif isinstance(value, dict) and where != "tally":
        yield value.get("kind", "formula" if "latex" in value else _NAMES.get(where, where)), value
        for key, each in value.items():
            yield from objects(each, key)


def test_every_object_has_the_keys_that_the_guide_lists():
    listed = {name: re.findall(r"`(\w+)`", keys) for name, keys in re.findall(r"^\| (\w+) \| (`.*`) \|$", GUIDE, re.M)}
    page = json.loads(as_json(EVERYTHING))
    found = list(objects(page, "page"))
    assert all(list(value) == listed[name] for name, value in found)
    assert {name for name, _ in found} == listed.keys()
    assert page["version"] == VERSION == 1
    assert page["tally"].keys() == MARKS.keys()
    assert all(f"`{status}`" in GUIDE for status in MARKS)
