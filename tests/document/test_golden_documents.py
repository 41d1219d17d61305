"""Some documents as files of text and Markdown: ``python -m tests.document.test_golden_documents`` writes them."""

from __future__ import annotations

from doctest import DocTestParser
from pathlib import Path
from typing import Any

import pytest

import symattn as sa

from ..shipped import fresh

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"
README = Path(__file__).parents[2] / "README.md"
DOCUMENTS = (
    "attention_backward",
    "equivariance_at_any_depth",
    "flash_attention_is_exact",
    "permutation_equivariance",
    "scaled_dot_product_variance",
    "two_memories",
)
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


def test_the_readme_shows_what_its_examples_print():
    readme, names = README.read_text(encoding="utf-8"), dict[str, Any]()
    for example in DocTestParser().get_examples(readme):
        exec(compile(example.source, "README.md", "single"), names)
    assert f"```text\n{names['D'].text()}```" in readme


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for document in DOCUMENTS:
        for file, text in written(document).items():
            (GOLDEN / file).write_text(text, encoding="utf-8")
