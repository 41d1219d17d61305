"""Ten proofs as people read them: kept to the letter, checked, and set by TeX without a line that is too wide."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..proofs_to_read import PROOFS
from ..typeset import compiled, needs_pdflatex

GOLDEN = Path(__file__).parents[1] / "golden" / "proofs"


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_prints_as_its_golden_file(name):
    proof = PROOFS[name]().proof
    assert proof.check()
    assert proof.latex() + "\n" == (GOLDEN / f"{name}.tex").read_text()


def test_every_golden_proof_is_one_of_them():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(PROOFS)


@pytest.mark.tex
@needs_pdflatex
def test_all_of_them_fit_on_a_page(tmp_path):
    said = compiled("\n\n".join((GOLDEN / f"{name}.tex").read_text() for name in PROOFS), tmp_path)
    assert "Overfull" not in said
