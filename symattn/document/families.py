r"""Rows that differ by a number below their letters are one row: ``Z_{i} := Q K_{i}^{\top}`` for i = 1, 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..core.boxes import Box, Name, Number, Script, Sign, commas, fold, rebuilt, row
from ..core.naming import free_letters
from ..printing.align import tex_words
from ..printing.media.latex import latex
from ..printing.prose import EQUALS, Step, Words, listed

_LETTERS = "ijkl"


def as_families(steps: Sequence[Step], taken: Iterable[str]) -> Iterator[Step]:
    """The rows, with those that are one row but for 1, 2, ... below their letters written once."""
    letter = Name(next(free_letters(_LETTERS, {*taken})))
    at = 0
    while at < len(steps):
        members = _members(steps[at:], letter)
        yield steps[at] if len(members) == 1 else _family(members, letter)
        at += len(members)


def _members(steps: Sequence[Step], letter: Name) -> list[Step]:
    """The first row, and those after it that differ by their number alone."""
    pattern = _pattern(steps[0], 1, letter)
    if pattern is None or _continues(steps, 0):
        return [steps[0]]
    members = [steps[0]]
    for number, step in enumerate(steps[1:], 2):
        if _pattern(step, number, letter) != pattern or _continues(steps, number - 1):
            break
        members.append(step)
    return members


def _continues(steps: Sequence[Step], at: int) -> bool:
    """Whether a row has no left side, or the row after it goes on from it."""
    return steps[at].left is None or (at + 1 < len(steps) and steps[at + 1].left is None)


def _pattern(step: Step, number: int, letter: Name) -> str | None:
    """A row with a letter for the number, as text; None where the left side has another number, or none."""
    if step.left is None or step.each is not None or step.label:
        return None
    left, right = (with_letter(box, number, letter) for box in (step.left, step.right))
    if latex(left) == latex(step.left) or _has_numbers(left) or _has_numbers(right):
        return None
    said = tex_words(_words(step.reason, number, letter))
    return (
        f"{latex(left)} {step.relation.mark} {latex(right)} {said} {step.status}"  # what differs in that stands apart
    )


def with_letter(root: Box, number: int, letter: Box) -> Box:
    """A formula with a letter for a number below the letters in it."""

    def written(box: Box, inside: Sequence[Box]) -> Box:
        if isinstance(box, Script) and isinstance(box.below, Number) and box.below.digits == str(number):
            return Script(inside[0], letter, inside[2] if len(inside) > 2 else None)
        return rebuilt(box, inside) if inside else box

    return fold(root, written)


def _has_numbers(root: Box) -> bool:
    """Whether a letter has a number below it still."""
    pending = [root]
    while pending:
        box = pending.pop()
        pending += box.kids
        if isinstance(box, Script) and isinstance(box.below, Number):
            return True
    return False


def _family(members: Sequence[Step], letter: Name) -> Step:
    first = members[0]
    assert first.left is not None
    numbers = [Number(str(n)) for n in range(1, len(members) + 1)]
    shown = numbers if len(numbers) <= 3 else [numbers[0], numbers[1], Sign("…"), numbers[-1]]
    return replace(
        first,
        left=with_letter(first.left, 1, letter),
        right=with_letter(first.right, 1, letter),
        reason=_words(first.reason, 1, letter),
        each=row(letter, EQUALS, commas(shown)),
        detail=_details(members, letter),
    )


def _details(members: Sequence[Step], letter: Name) -> Words:
    """What is said of each member, once where it is the same but for the number."""
    told = (_words(step.detail, number, letter) for number, step in enumerate(members, 1))
    return listed({tex_words(words): words for words in told if words}.values())


def _words(words: Words, number: int, letter: Name) -> Words:
    return tuple(piece if isinstance(piece, str) else with_letter(piece, number, letter) for piece in words)
