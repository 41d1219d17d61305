"""Proofs and counterexamples tell themselves as words and formulas, which every medium writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sympy

import symattn as sa
from symattn.core.boxes import Box, Code, fold
from symattn.printing.media.latex import latex
from symattn.printing.media.mathml import mathml
from symattn.printing.media.unicode import unicode_text
from symattn.printing.prose import Chain, Display, Items, Paragraph, Part, Table, Words
from symattn.printing.prose_latex import parts_latex
from symattn.printing.table import symbol_table
from symattn.proof.argument import Argument
from symattn.proof.bounds.prove import BoundProof
from symattn.proof.dependence.prove import DependenceProof
from symattn.proof.equality.entrywise import EntrywiseProof
from symattn.proof.equality.rewriting import RewritingProof
from symattn.proof.far_reads import Apart
from symattn.proof.generalised import Generalised
from symattn.proof.given import Stated
from symattn.proof.refute.enumeration import Enumeration
from symattn.proof.size_cases import SizeCases
from symattn.proof.verdict import Verdict

n, m, d = sa.sizes("n m d")
X, W, x = sa.tensor("X_1", n, d), sa.tensor("W_q", n, d), sa.tensor("x", n)
PI = sa.tensor("Pi", n, n, permutation=True)
FAR = sa.tensor("w", 10**6)
LONG = sa.tensor("y", 12)
Z = sa.let("Z", X @ W.T / sympy.sqrt(d))

ARGUMENTS: dict[type[Argument], Callable[[], Verdict]] = {
    RewritingProof: lambda: sa.prove(sa.softmax(PI @ X), PI @ sa.softmax(X)),
    EntrywiseProof: lambda: sa.prove(sa.sum(X @ X.T), sa.sum(sa.sum(X, 0) ** 2)),
    BoundProof: lambda: sa.prove(sa.le(sa.max(Z, axis=-1), sa.logsumexp(Z))),
    DependenceProof: lambda: sa.prove(sa.independent(sa.cumsum(X, 0), X, when=lambda o, i: i[0] > o[0])),
    Generalised: lambda: sa.prove(sa.sum(LONG * LONG), LONG @ LONG),
    SizeCases: lambda: sa.prove(sa.eq(n + m + 0 * sa.ones(), 3), given=[sympy.Eq(n**2 + m**2, 5)]),
    Apart: lambda: sa.prove(FAR[50_000] * 2 + FAR[3], FAR[3] + FAR[50_000] + FAR[50_000]),
    Enumeration: lambda: sa.prove(sa.from_index((3,), lambda i: sympy.Mod(i**3, 3)), sa.from_index((3,), lambda i: i)),
    Stated: lambda: sa.prove(sa.lt(0, sa.inv(X @ W.T)), given=[sa.lt(0, sa.inv(X @ W.T))]),
}
VERDICTS: dict[str, Callable[[], Verdict]] = {
    "sides": lambda: sa.prove(sa.softmax(2 * Z), sa.softmax(Z), given=[sa.le(x, 1)]),
    "second value": lambda: sa.prove(sa.independent(sa.cumsum(X, 0), X, when=lambda o, i: i[0] < o[0])),
    "function": lambda: sa.prove(sa.unknown("phi", X + X), 2 * sa.unknown("phi", X)),
    "division": lambda: sa.prove(x / x, sa.ones(n)),
    "unknown": lambda: sa.prove(sa.le(sa.tanh(x) ** 2, x**2), budget=0.5),
}


def words_of(part: Part) -> Iterator[Words]:
    """All words of a part; formulas by themselves are words too."""
    match part:
        case Paragraph(words, head):
            yield from (words, (head,))
        case Items(items):
            yield from items
        case Display(formulas):
            yield formulas
        case Chain(steps):
            for step in steps:
                yield *filter(None, (step.left, step.right, step.each)), *step.reason
        case Table(head, rows):
            yield from (*head, *(cell for cells in rows for cell in cells))


def has_code(box: Box) -> bool:
    return fold(box, lambda part, inside: isinstance(part, Code) or any(inside))


def check(parts: tuple[Part, ...]) -> None:
    """Whether words are words, without source text of any language, and each formula is written in every medium."""
    for part in (word for told in parts for words in words_of(told) for word in words):
        if isinstance(part, str):
            assert not set(part) & set("@[]_\\$=<>*"), part
        else:
            assert not has_code(part)
            assert all(write(part) for write in (latex, mathml, unicode_text))


@pytest.mark.parametrize("kind", ARGUMENTS, ids=lambda kind: kind.__name__)
def test_an_argument_tells_itself_in_words_and_formulas(kind):
    proof = ARGUMENTS[kind]().proof
    assert type(proof.argument) is kind
    check(proof.told())


@pytest.mark.parametrize("name", VERDICTS)
def test_a_verdict_tells_itself_in_words_and_formulas(name):
    check(VERDICTS[name]().told())


@pytest.mark.parametrize(
    ("verdict", "name", "shown"),
    [
        (ARGUMENTS[Apart], FAR, r"$\eta_{50000}$ and $\eta_{3}$ take"),
        (VERDICTS["second value"], X, r"where $\eta'$ is"),
    ],
    ids=["a part", "a second value"],
)
def test_what_a_proof_names_by_itself_follows_the_names_of_a_document(verdict, name, shown):
    table = symbol_table(verdict().claim.sides, {name: r"\eta"})
    tex = parts_latex(verdict().told(table))
    assert shown in tex
    assert f"{str(name.name)[0]}_" not in tex


def test_symmetries_and_gradients_tell_themselves():
    check(sa.equivariance(lambda a, b: sa.softmax(a @ b.T), (X, W), budget=2).told())
    check(sa.gradient(sa.let("P", sa.softmax(Z)), [X, W]).told())


def test_a_counterexample_tells_its_point_and_both_values():
    at, arrays, differ, values = sa.prove(x * 2, x).counterexample.told()
    assert [part if isinstance(part, str) else unicode_text(part) for part in at.words] == ["At ", "n = 1", ", with"]
    assert [unicode_text(box) for box in arrays.formulas] == ["x = [1]"]
    assert differ.words == ("the two sides differ:",)
    assert [unicode_text(box) for box in values.formulas] == ["left₀ = 2", "right₀ = 1"]


@pytest.mark.parametrize(
    ("claim", "relation", "words"),
    [(sa.lt(x, x), "<", "left₀ < right₀"), (sa.le(sa.exp(x), 1), "<=", "left₀ ≤ right₀")],
    ids=["below", "at most"],
)
def test_a_counterexample_of_an_inequality_says_what_fails(claim, relation, words):
    found = sa.prove(claim).counterexample
    *_, fails, _ = found.told()
    assert [part if isinstance(part, str) else unicode_text(part) for part in fails.words] == [
        "the inequality ",
        words,
        " fails:",
    ]
    assert found.text().endswith(f", so left {relation} right is false")
