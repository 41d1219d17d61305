"""Subscripts of a page of text: small letters where all names below a symbol can be written so, else plain ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from ...core.boxes import Accent, Box, Code, Name, Number, Script, fold, rebuilt
from ...printing.media.unicode import has_small_letters, unicode_text
from ...printing.prose import (
    Chain,
    Display,
    Document,
    Figure,
    Fold,
    Given,
    Items,
    Paragraph,
    Section,
    Statement,
    Step,
    Table,
)

T = TypeVar("T")
_RECORDS = (Document, Section, Given, Paragraph, Display, Items, Chain, Step, Statement, Table, Fold, Figure)


def evened(document: Document) -> Document:
    """The page with subscripts of one kind at each symbol: there is no small q, so that ``W_q`` stands by ``W_k``."""
    named = (x for x in _subscripted(_formulas(document)) if isinstance(x.below, Name))
    plain = {_symbol(x) for x in named if x.below and not has_small_letters(x.below)}
    return _changed(document, lambda box: fold(box, lambda x, kids: _written(x, kids, plain))) if plain else document


def _written(box: Box, kids: Sequence[Box], plain: set[str]) -> Box:
    made = rebuilt(box, kids)
    if isinstance(made, Script) and isinstance(made.below, (Name, Number)) and _symbol(made) in plain:
        return Script(made.base, Code(unicode_text(made.below)), made.above)
    return made


def _symbol(box: Script) -> str:
    """The letters that have the scripts, without their accent, or none where it is something else that has them."""
    base = box.base.base if isinstance(box.base, Accent) else box.base
    return base.letters if isinstance(base, Name) else ""


def _subscripted(formulas: Iterator[Box]) -> Iterator[Script]:
    """The symbols with subscripts in formulas."""
    pending, seen = [*formulas], set[Box]()
    while pending:
        box = pending.pop()
        if box not in seen:
            seen.add(box)
            pending += box.kids
            if isinstance(box, Script) and box.below is not None and _symbol(box):
                yield box


def _formulas(record: Any) -> Iterator[Box]:
    """The formulas of a page, or of a part of one."""
    if isinstance(record, Box):
        yield record
    elif isinstance(record, tuple):
        for part in record:
            yield from _formulas(part)
    elif isinstance(record, _RECORDS):
        for field in fields(record):
            yield from _formulas(getattr(record, field.name))


def _changed(record: T, change: Callable[[Box], Box]) -> T:
    """The record with other formulas."""
    made: Any = record
    if isinstance(record, Box):
        made = change(record)
    elif isinstance(record, tuple):
        made = tuple(_changed(part, change) for part in record)
    elif isinstance(record, _RECORDS):
        made = replace(record, **{x.name: _changed(getattr(record, x.name), change) for x in fields(record)})
    return made
