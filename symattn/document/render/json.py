"""A page as JSON, for other programs: what it says, each formula as LaTeX and as text, and what was checked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...core.boxes import Box
from ...printing.media.latex import latex
from ...printing.media.unicode import unicode_text
from ...printing.prose import (
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Items,
    Paragraph,
    Part,
    Source,
    Statement,
    Step,
    Table,
    Words,
)

VERSION = 1  # of the schema; changed when something is renamed or taken away


def as_json(document: Document) -> str:
    """The page as one JSON object.

    Words are lists of texts and of formulas, ``{"latex": ..., "text": ...}``; a part has its "kind".
    """
    page = {
        "version": VERSION,
        "title": _words(document.title),
        "summary": _words(document.summary),
        "tally": dict(document.tally),
        "result": _parts(document.result),
        "given": [
            {"symbol": _formula(x.symbol), "where": _words(x.where), "meaning": _words(x.meaning)}
            for x in document.given
        ],
        "conventions": _words(document.conventions),
        "sections": [
            {"title": _words(s.title), "anchor": s.anchor, "parts": _parts(s.parts)} for s in document.sections
        ],
        "references": list(map(_words, document.references)),
        "command": document.command,
        "first_index": document.first_index,
    }
    return json.dumps(page, ensure_ascii=False, indent=1)


def _formula(box: Box) -> dict[str, str]:
    return {"latex": latex(box), "text": unicode_text(box)}


def _words(words: Words) -> list[Any]:
    return [piece if isinstance(piece, str) else _formula(piece) for piece in words]


def _parts(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [{"kind": type(part).__name__.lower(), **_part(part)} for part in parts]


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Paragraph():
            return {"head": part.head, "words": _words(part.words)}
        case Display():
            return {"formulas": list(map(_formula, part.formulas))}
        case Items():
            return {"items": list(map(_words, part.items)), "numbered": part.numbered}
        case Chain():
            return {"steps": list(map(_step, part.steps))}
        case Statement():
            return {
                "called": part.kind,
                "number": part.number,
                "title": _words(part.title),
                "status": part.status,
                "formulas": list(map(_formula, part.formulas)),
                "words": _words(part.words),
                "where": _parts(part.where),
                "given": list(map(_words, part.given)),
                "parts": _parts(part.parts),
            }
        case Table():
            return {"head": list(map(_words, part.head)), "rows": [list(map(_words, cells)) for cells in part.rows]}
        case Fold():
            return {"title": _words(part.title), "parts": _parts(part.parts), "for_machines": part.for_machines}
        case Source():
            return {"source": part.text, "language": part.language}
        case Figure():
            return {
                "svg": "" if part.lacking else part.svg,
                "alternative": part.alternative,
                "caption": _words(part.caption),
                "text": part.text,
            }


def _step(step: Step) -> dict[str, Any]:
    return {
        "number": step.number,
        "left": None if step.left is None else _formula(step.left),
        "relation": step.relation.mark,
        "right": _formula(step.right),
        "each": None if step.each is None else _formula(step.each),
        "reason": _words(step.reason),
        "status": step.status,
        "detail": _words(step.detail),
        "label": step.label,
    }
