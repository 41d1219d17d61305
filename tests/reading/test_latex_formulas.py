"""Published formulas are read as they are meant, or refused; an edit is read as what it says, or refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import symattn as sa
from symattn.ops.leaves import as_tensor
from symattn.proof.claims import Claim
from symattn.reading.latex.answers import Declaration, Definition, Signature

from ..shares import one_in
from .formulas import formulas, plain_name, told
from .judge import is_meant, is_refused
from .meaning import Declared, Distributed, Natural, Space, values_of
from .meaning import Signature as Signed
from .meanings import all_meanings
from .mutations import Edit, edits, fault

RIGHT, REFUSED, OTHER = "right", "refused", "another meaning"
MEANINGS = all_meanings()


def statements(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def values(answer: Any) -> list[Any]:
    """What definitions and expressions stand for, and both sides of claims."""
    found: list[Any] = []
    for part in statements(answer):
        if isinstance(part, Definition):
            found.append(part.value)
        elif isinstance(part, Claim):
            found += part.sides
        else:
            found.append(part)
    return found


def says(answer: Any, statement: Any) -> bool:
    """Whether a declaration says what is meant; a family has axes for its indices in front."""
    read = statements(answer)
    match statement:
        case Declared(shapes=shapes):
            names = {plain_name(name): tuple(shape) for name, shape in shapes.items()}
            return {part.name: part.value.shape[-len(names.get(part.name, ())) :] for part in read} == names
        case Distributed(law=law):
            x = sa.tensor("x", "n")
            return bool(sa.variance(x[0], {x: read[0].law}) == sa.variance(x[0], {x: law}))
        case Natural(name=name):
            return read == (Declaration(name, sa.sizes(name)),)
        case Space(shape=shape):
            return read == (Declaration("", tuple(shape)),)
        case Signed(name=name, arguments=arguments, result=result):
            return read == (Signature(name, tuple(arguments), result),)
    return False


def verdict(id: str) -> str:
    """How one formula is read."""
    meaning = MEANINGS[id]
    try:
        answer = sa.parse_latex(formulas()[id].latex, told(formulas()[id]))
    except sa.SymattnError:
        return RIGHT if is_refused(meaning) else REFUSED
    if not values_of(meaning) and not is_refused(meaning):
        return RIGHT if all(says(answer, statement) for statement in meaning.statements) else OTHER
    return RIGHT if is_meant(values(answer), meaning) else OTHER


REFUSED_FORMULAS = {
    # several readings
    "x17", "x57", "x63", "x66", "x77", "x88",
    # not read: equations side by side, an index j of two ranges
    "s3-08", "s3-13",
}  # fmt: skip


@pytest.mark.parametrize("id", one_in(2, MEANINGS))
def test_a_published_formula_is_read_as_it_is_meant_or_refused(id: str) -> None:
    assert verdict(id) == (REFUSED if id in REFUSED_FORMULAS else RIGHT)


def test_no_more_than_these_are_refused() -> None:
    first = [id for id in MEANINGS if formulas()[id].kind != "more"]
    assert Counter(id in REFUSED_FORMULAS for id in first) == {False: 108, True: 8}


@pytest.mark.parametrize("edit", one_in(4, edits()), ids=lambda edit: f"{edit.original.id} {edit.latex}")
def test_an_edited_formula_is_not_read_as_the_original(edit: Edit) -> None:
    assert fault(edit, read_tensor) == ""


def read_tensor(latex: str, names: Any) -> sa.Tensor:
    read = sa.parse_latex(latex, names)
    return as_tensor(getattr(read, "value", read))
