"""Printed formulas with one edit each: what a reader makes of them shows whether it reads what stands there.

An edit changes a sign, a transpose, a factor, or an index or name. What it makes of the formula is known where it
changes one tensor that stands once; else it is known only that the formula is another one, unless ``SAME`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import symattn as sa
from symattn.core.node import rebuild
from symattn.core.sizes import same_shape

from .formulas import arguments_of, formulas
from .judge import same
from .meaning import ONCE_DECLARED, READ, values_of
from .meanings import all_meanings, meaning_of

MATRIX = (
    "s0-06 s0-07 s2-01 s2-05 s2-13 x11 x14 x17 x26 x34 x43 x44 x46 x57 x60 x61 x63 x79 x80 x81 x85 x93 s3-13 s4-02"
).split()
INDEX = "s0-07 s2-05 s2-13 x11 x14 x34 x43 x46 x60 x61 x79 x81 x93 s4-02".split()
TEXT = {r"\operatorname", r"\mathrm", r"\text", r"\mathbf"}
TRANSPOSED = ["^", "{", r"\top", "}"]

# Edits that leave the formula what it was, by formula and edited text.
SAME = {("x34", r"p_{j} \delta_{i j} - p_{i} p_{j}")}


class Refusal(NamedTuple):
    """What has no meaning, since its shapes do not fit."""

    why: str


class Printed(NamedTuple):
    """A tensor as it is printed, with the tensors and scalars that its letters stand for."""

    id: str
    style: str
    latex: str
    value: sa.Tensor
    names: Mapping[str, Any]


class Edit(NamedTuple):
    """A formula with one edit; ``expected`` is what it says then, None where that is not known."""

    original: Printed
    kind: str
    latex: str
    expected: sa.Tensor | Refusal | None


# --- text as tokens ---


def tokens(text: str) -> list[str]:
    """Commands and single characters, which joined are the text again."""
    found: list[str] = []
    for character in text:
        last = found[-1] if found else ""
        if last == "\\" or (character.isalpha() and last[:1] == "\\" and last[1:].isalpha()):
            found[-1] += character
        else:
            found.append(character)
    return found


def closing(parts: Sequence[str], opening: int) -> int:
    """Where the group that opens there ends."""
    depth = 0
    for place in range(opening, len(parts)):
        depth += (parts[place] == "{") - (parts[place] == "}")
        if not depth:
            return place
    raise ValueError(f"{''.join(parts)} is not balanced")


def groups(parts: Sequence[str], openers: Iterable[str]) -> set[int]:
    """The places inside of the groups that follow some tokens."""
    inside: set[int] = set()
    for place, part in enumerate(parts[:-1]):
        if part in openers and parts[place + 1] == "{":
            inside.update(range(place + 1, closing(parts, place + 1) + 1))
    return inside


class Occurrence(NamedTuple):
    """A named tensor in the text, from one place to another."""

    tensor: sa.Tensor
    start: int
    end: int


def occurrences(original: Printed, parts: Sequence[str]) -> list[Occurrence]:
    """Where the named tensors of a formula stand in its text."""
    leaves = sorted(((tokens(sa.latex(x)), x) for x in original.value.tensors), key=lambda pair: -len(pair[0]))
    barred, found, place = groups(parts, {*TEXT, "_"}), [], 0
    while place < len(parts):
        here = next((x for word, x in leaves if parts[place : place + len(word)] == word), None)
        if here is None or place in barred:
            place += 1
            continue
        found.append(Occurrence(here, place, place + len(tokens(sa.latex(here)))))
        place = found[-1].end
    return found


# --- edits ---

Change = tuple[str, list[str], Any]  # what is changed, the new tokens, and what is expected


def put(parts: Sequence[str], start: int, end: int, new: Sequence[str]) -> list[str]:
    return [*parts[:start], *new, *parts[end:]]


def with_leaf(original: Printed, at: Occurrence, found: Sequence[Occurrence], leaf: sa.Tensor) -> Any:
    """The formula with another tensor in the place of one that stands once."""
    if sum(x.tensor is at.tensor for x in found) > 1:
        return None
    try:
        return rebuild([original.value], {at.tensor: leaf})[0]
    except (sa.ShapeError, sa.OperandError) as problem:
        return Refusal(str(problem))


def signs(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    yield "sign", ["-", *parts], None if _is_sum(parts) else -original.value
    for new in _other_signs(parts):
        yield "sign", new, None


def _other_signs(parts: list[str]) -> Iterator[list[str]]:
    text = groups(parts, TEXT)
    for place, part in enumerate(parts):
        if part in ("+", "-") and place not in text:
            yield put(parts, place, place + 1, "-" if part == "+" else "+")


def _is_sum(parts: Sequence[str]) -> bool:
    depth = 0
    for part in parts:
        depth += (part in "{(") - (part in "})")
        if part in ("+", "-") and not depth:
            return True
    return False


def transposes(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    for at in found:
        turned = parts[at.end : at.end + 4] == TRANSPOSED
        if at.tensor.rank != 2 or (parts[at.end : at.end + 1] in (["^"], ["_"]) and not turned):
            continue
        other = with_leaf(original, at, found, at.tensor.T)
        yield "transpose", put(parts, at.end, at.end + 4 * turned, [] if turned else TRANSPOSED), other


def factors(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    for at in found:
        powered = parts[at.end : at.end + 1] == ["^"] and parts[at.end : at.end + 4] != TRANSPOSED
        if not powered and not "".join(parts[: at.start]).rstrip()[-1:].isdecimal():
            twice = with_leaf(original, at, found, 2 * at.tensor)
            yield "factor", put(parts, at.start, at.start, ["2", " "]), twice
        if len(found) > 1:
            yield "factor", put(parts, at.start, _end_of_scripts(parts, at.end), []), None
    for new in _without_roots(parts):
        yield "factor", new, None


def _without_roots(parts: list[str]) -> Iterator[list[str]]:
    for place, part in enumerate(parts):
        if part == r"\sqrt":
            yield put(parts, place, place + 1, [])


def _end_of_scripts(parts: Sequence[str], place: int) -> int:
    while place < len(parts) and parts[place] in ("^", "_"):
        place = closing(parts, place + 1) + 1
    return place


def numbers(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    for new in _other_numbers(parts, {place for at in found for place in range(at.start, at.end)}):
        yield "factor", new, None


def _other_numbers(parts: list[str], kept: set[int]) -> Iterator[list[str]]:
    for place, part in enumerate(parts):
        if part.isdecimal() and place not in kept:
            yield put(parts, place, place + 1, [str(int(part) + 1)])


def renamings(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    for at in found:
        for other in original.value.tensors:
            if other is not at.tensor and other.rank == at.tensor.rank:
                renamed = with_leaf(original, at, found, other)
                yield "index", put(parts, at.start, at.end, tokens(sa.latex(other))), renamed


def indices(original: Printed, parts: list[str], found: Sequence[Occurrence]) -> Iterator[Change]:
    letters = [_letters(parts, at.end) for at in found]
    every = sorted({parts[place] for places in letters for place in places})
    for place in (place for places in letters for place in places):
        for other in every:
            if other != parts[place]:
                yield "index", put(parts, place, place + 1, [other]), None


def _letters(parts: Sequence[str], place: int) -> list[int]:
    """Where the letters of the index stand that follows a tensor."""
    if parts[place : place + 2] != ["_", "{"]:
        return []
    return [i for i in range(place + 2, closing(parts, place + 1)) if parts[i].isalpha()]


KINDS = (signs, transposes, factors, numbers, renamings, indices)


# --- all of them ---


def printed() -> list[Printed]:
    """The formulas that are edited, in both styles."""
    return [_printed(id, "matrix") for id in MATRIX] + [_printed(id, "index") for id in INDEX]


def _printed(id: str, style: str) -> Printed:
    value = next(x for x in values_of(meaning_of(id)) if isinstance(x, sa.Tensor))
    return Printed(id, style, sa.latex(value, style=style), value, arguments_of(formulas()[id]))


def edits_of(original: Printed) -> list[Edit]:
    """All edits of one formula, of the kinds in turn."""
    parts = tokens(original.latex)
    found = occurrences(original, parts)
    made = [[Edit(original, kind, "".join(new), what) for kind, new, what in f(original, parts, found)] for f in KINDS]
    return [edit for turn in zip_longest(*made) for edit in turn if edit and edit.latex.strip()]


def edits(count: int = 400) -> list[Edit]:
    """So many edits, of the formulas in turn."""
    turns = zip_longest(*map(edits_of, printed()))
    return [edit for turn in turns for edit in turn if edit][:count]


# --- edits of published formulas ---

TURNS = [tokens(turn) for turn in (r"^{\top }", r"^{\top}", r"^\top", r"^T", r"^{\intercal}", r"^{\mathsf T}")]


# What stands in edits of published formulas that leave their values: another name or label,
# a sum over all of a range that is not written, a row of K in the place of a column of its transpose.
SAME_PARTS = {
    "s2-02": [r"{\}}_{i=2}^n"],
    "x33": ["QK_{i}", "QK_{j}"],
    "x34": [r"\nabla_z^3"],
    "x59": [r"\sum_{t'=1} "],
    "m34": ["s^3"],
    "m35": ["z - c"],  # which is no other shift than z + c, for all c
}


class PublishedEdit(NamedTuple):
    """A published formula with one edit, after which its values are not those that it has."""

    id: str
    kind: str
    latex: str


def published_edits() -> list[PublishedEdit]:
    """Edits of the formulas of the corpus that have values: of signs, transposes, roots and numbers."""
    decided = [m for m in all_meanings().values() if m.verdict in (READ, ONCE_DECLARED) and values_of(m)]
    made = [
        PublishedEdit(m.id, kind, "".join(new)) for m in decided for kind, new in _published(formulas()[m.id].latex)
    ]
    return [edit for edit in made if not any(part in edit.latex for part in SAME_PARTS.get(edit.id, ()))]


def _published(latex: str) -> Iterator[tuple[str, list[str]]]:
    parts = tokens(latex)
    yield from (("sign", new) for new in _other_signs(parts))
    yield from (("factor", new) for new in _without_roots(parts))
    yield from (("factor", new) for new in _other_numbers(parts, groups(parts, TEXT)))
    for place in range(len(parts)):
        turn = next((turn for turn in TURNS if parts[place : place + len(turn)] == turn), None)
        if turn:
            yield "transpose", put(parts, place, place + len(turn), [])


# --- the judge ---

Reader = Callable[[str, Mapping[str, Any]], sa.Tensor]


def fault(edit: Edit, read: Reader) -> str:
    """What is wrong with how a reader reads an edited formula, or nothing: an error is no fault."""
    try:
        value = read(edit.latex, edit.original.names)
    except sa.SymattnError:
        return ""
    if isinstance(edit.expected, Refusal):
        return f"read, though {edit.expected.why}"
    said = edit.original.value if edit.expected is None else edit.expected
    if edit.expected is not None:
        return "" if same(value, said) else "read as something else than it says"
    if not same_shape(value.shape, said.shape) or (edit.original.id, edit.latex) in SAME:
        return ""
    return {"refuted": "", "proved": "read as the original", "unknown": "not decided"}[sa.prove(value, said).status]
