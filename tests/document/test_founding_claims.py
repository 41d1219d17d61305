"""Claims of five notes on attention that are wrong, or say too much: a derivation that comes along settles each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from symattn.document.parts import Cases, Illustration, Line, Statement, steps
from symattn.document.prose import Prose

from ..shipped import shipped


class Said(NamedTuple):
    """A claim of the notes and what settles it: a claim by its title, a step, a case, a sentence, what is given."""

    claim: str
    derivation: str
    kind: str
    place: str


FIRST = (
    Said(
        "queries and keys have to have one width",
        "additive_attention", "given", "queries; keys, which may have another width",
    ),
    Said(
        "scores are divided by the root of the width of a token, where keys are narrower",
        "scaled_dot_product_variance", "case", "width of the model, not of the head",
    ),
    Said(
        "reordering the tokens leaves the output as it is",
        "order_of_inputs", "refuted", "Reordering the tokens leaves the output as it is",
    ),
    Said(
        "attention weights are the softmax of the bare products",
        "projections_backward", "refuted", r"The scale $1 / \sqrt{d}$ can be left out",
    ),
    Said(
        "queries, keys and values of a self-attention layer have one width",
        "projections_backward", "said", "the width $e$ of the values is free",
    ),
    Said(
        "keys and queries are equally many, where keys and values are meant",
        "order_of_inputs", "refuted", "Attention does not depend on the order of the keys",
    ),
    Said(
        "one letter is the width of a token, another one too",
        "scaled_dot_product_variance", "case", "width of the model, not of the head",
    ),
)  # fmt: skip
SECOND = (
    Said(
        "scale and softmax make up for what matrix products lose",
        "attention_pooling", "proved", "The weights of a row sum to 1",
    ),
    Said(
        "divided by the root of the width, scores have the variance 1",
        "scaled_dot_product_variance", "case", r"have the correlation $\rho$",
    ),
    Said(
        "large inputs of softmax make its derivative zero",
        "softmax_saturation", "step", "q = ones(n) / n",
    ),
    Said(
        "the score of each word with itself is the largest",
        "scores_and_similarity", "refuted", "The largest score of a token is its own",
    ),
    Said(
        "multiplied by the values, weights give the importance of each word",
        "attention_pooling", "refuted", "Multiplied by the values, the weights are the importance of each token",
    ),
    Said(
        "a larger product means more related",
        "scores_and_similarity", "refuted", "A larger score means a smaller angle",
    ),
    Said(
        "the width has to be divisible by the number of heads",
        "multi_head", "proved", "The number of heads need not divide any width",
    ),
    Said(
        "softmax is a function of one score",
        "attention_pooling", "refuted", "A weight depends on its own score alone",
    ),
)  # fmt: skip
THIRD = (
    Said(
        "a power of 4/5 is taken of any number",
        "nadaraya_watson", "said", r"real for $t \geq 0$ only",
    ),
    Said(
        "a weight of kernel regression is a sum of quotients over all keys",
        "nadaraya_watson", "refuted", "A weight has the sum over all keys above and below",
    ),
    Said(
        "weights 0.2, 0.4, 0.2 are those of a query",
        "attention_pooling", "refuted", "Any positive weights make an average",
    ),
    Said(
        "the softmax of one component gives the weights of kernel regression",
        "nadaraya_watson", "step", "P = softmax(-D / (2 * h**2))",
    ),
    Said(
        "weights are the degree of match",
        "attention_pooling", "proved", "Only differences of scores count",
    ),
    Said(
        "GPT-2 has 128 million parameters",
        "gpt_parameters", "refuted", "GPT-2 small has 128 million parameters",
    ),
)  # fmt: skip
FOURTH = (
    Said(
        "attention is permutation invariant, of what is equivariant",
        "order_of_inputs", "refuted", "Attention is permutation invariant",
    ),
    Said(
        "heads side by side are the output of the layer",
        "multi_head", "refuted", "The output matrix can be left out",
    ),
    Said(
        "an index on the product of queries and keys that reads as one of the keys",
        "attention_backward", "step", "Z = Q @ K.T / sqrt(d)",
    ),
)  # fmt: skip
FIFTH = (
    Said(
        "values are made by the matrix of the keys",
        "projections_backward", "refuted", "The values are $X W_k$",
    ),
    Said(
        "queries and keys have widths of their own",
        "projections_backward", "said", "Queries and keys need one width $d$",
    ),
    Said(
        "the output is the softmax of the bare products times the values",
        "projections_backward", "refuted", r"The scale $1 / \sqrt{d}$ can be left out",
    ),
    Said(
        "a token looks at the other tokens",
        "attention_pooling", "proved", "Weights are positive",
    ),
)  # fmt: skip
CLAIMS = (*FIRST, *SECOND, *THIRD, *FOURTH, *FIFTH)


@cache
def places(name: str) -> frozenset[tuple[str, str]]:
    """What a derivation has that settles claims: kind and text."""
    derivation = shipped(name)
    given = "; ".join(meaning.source for meaning in derivation.given.values())
    return frozenset([("given", given), *found(derivation.parts)])


def found(parts) -> Iterator[tuple[str, str]]:
    left = ""
    for part in steps(parts):
        match part:
            case Statement(verdict=verdict, title=title) if title is not None and (verdict or part.holds):
                yield verdict.status, title.source
            case Line():
                left = left if part.left is None else part.left.name or ""
                yield "step", f"{left} = {part.expression}"
            case Cases():
                yield from (("case", row[0].source) for row in part.rows)
    for part in parts:
        told = part.caption if isinstance(part, Illustration) else part
        if isinstance(told, Prose):
            yield "said", told.source


def test_all_claims_of_the_five_notes_are_listed():
    assert [len(claims) for claims in (FIRST, SECOND, THIRD, FOURTH, FIFTH)] == [7, 8, 6, 3, 4]


@pytest.mark.parametrize("said", CLAIMS, ids=lambda said: said.claim)
def test_a_claim_is_settled_by_a_derivation(said):
    assert any(kind == said.kind and said.place in text for kind, text in places(said.derivation)), (
        f"{said.derivation} does not settle that {said.claim}"
    )
