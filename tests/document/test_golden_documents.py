"""Four documents as files of text and Markdown: ``python -m tests.document.test_golden_documents`` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

import symattn as sa

from ..shipped import fresh

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"
DOCUMENTS = ("attention_backward", "permutation_equivariance", "scaled_dot_product_variance", "two_memories")
MEDIA = {"txt": sa.Derivation.text, "md": sa.Derivation.markdown}


def written(name: str) -> dict[str, str]:
    """The files of a document."""
    derivation = fresh(name)
    derivation.verify()
    return {f"{name}.{ending}": write(derivation) for ending, write in MEDIA.items()}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_written_as_its_golden_files(name):
    for file, text in written(name).items():
        assert text == (GOLDEN / file).read_text(encoding="utf-8"), file


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for document in DOCUMENTS:
        for file, text in written(document).items():
            (GOLDEN / file).write_text(text, encoding="utf-8")
