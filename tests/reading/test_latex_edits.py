"""Published formulas with one edit are refused, or read as something else than the formula."""

from __future__ import annotations

import pytest

import symattn as sa

from ..shares import one_in
from .formulas import formulas, told
from .judge import is_meant
from .meanings import meaning_of
from .mutations import published_edits
from .test_latex_formulas import values

EDITED: dict[str, list[str]] = {}
for _edit in published_edits():
    EDITED.setdefault(_edit.id, []).append(_edit.latex)


@pytest.mark.parametrize("id", one_in(4, EDITED))
def test_an_edited_formula_is_not_read_as_the_published_one(id):
    for latex in EDITED[id]:
        try:
            answer = sa.parse_latex(latex, told(formulas()[id]))
        except sa.SymattnError:
            continue
        assert not is_meant(values(answer), meaning_of(id)), latex
