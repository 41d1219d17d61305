r"""LaTeX in: a tensor, a scalar, a definition or a claim, or several of these.

What is not declared, and what people read in two ways, is an error that says what to declare or how to write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias, get_args

from ...errors import OperandError, SymattnError, described
from ...printing.counting import checked_first_index
from ...printing.gradients import Gradients
from ...proof.claims import Claim
from ...proof.engine import prove
from .derived import LAYOUTS
from .lexer import Token, tokens_of
from .meaning import Statement, defined_names
from .names import Names, Range
from .parser import Parser
from .quantifiers import Quantifier, ranges_apart
from .statements import FOLLOWS, statements
from .text import FormulaText, Span
from .tree import Fence, Product, Symbol, Tree

GRADIENTS = get_args(Gradients)


def parse_latex(
    text: str,
    names: Mapping[str, Any] | None = None,
    *,
    law: Mapping[Any, Any] | None = None,
    layout: str = "",
    gradients: str = "d",
    first_index: int | None = None,
) -> Any:
    r"""What a formula in LaTeX stands for: a tensor, a SymPy scalar, a Definition, a claim; several make a tuple.

    ``names`` says what its names are: shapes, tensors, scalars, functions, and ranges of indices such as "1..n", which
    make a name like ``q_i`` a family with an axis for i. Shapes decide which product is meant and which way a vector
    lies: a declared vector is a column unless only a row fits. Integrals, limits, products, derivatives by scalars,
    binomials and factorials are worked out, where ``symattn[latex]`` is installed. Raises ParseError, with a caret, for
    what is not LaTeX, not declared, or not decided, and ShapeError where shapes do not fit.

    ``law`` has the laws of random tensors, as for ``sa.variance``; without them a text states them, x \sim
    \mathcal{N}(0, I). ``layout`` is "numerator" or "denominator", where Jacobians do not say by a transpose which way
    they lie. ``gradients="bar"`` takes a bar on a declared name for the derivative by it, as ``sa.latex`` writes
    it; the other spellings are read without being asked for. ``first_index`` is 0 or 1, from where all indices are
    counted, as for ``sa.latex``; without it limits, ranges or a place 0 say so, and a number as a place is refused
    where nothing does. All that is read is listed in docs/reading_latex.md.

    >>> import symattn as sa
    >>> T, S, d, e = sa.sizes("T S d e")
    >>> O = sa.parse_latex(r"\mathrm{softmax}(Q K^\top / \sqrt{d}) V", {"Q": (T, d), "K": (S, d), "V": (S, e)})
    >>> print(O)
    softmax(Q @ K.T / sqrt(d)) @ V
    """
    source = FormulaText(text)
    table = Names({} if names is None else names)
    table.laws, table.layout = {} if law is None else dict(law), layout
    if first_index is not None:
        table.first_index = checked_first_index(first_index, "parse_latex")
        table.bases.add(table.first_index)
    if layout not in ("", *LAYOUTS):
        raise OperandError(f"a layout is {' or '.join(LAYOUTS)}, not {described(layout)}")
    reads = read_each(source, table, gradients)
    if (problem := next((read.problem for read in reads if read.problem is not None), None)) is not None:
        raise problem
    _check_implications(source, reads)
    answers = [answer for read in reads for answer in read.answers]
    return answers[0] if len(answers) == 1 else tuple(answers)


@dataclass(frozen=True)
class Read:
    """One statement of a text as it was read: its answers, or the problem; ``follows``: behind an implication."""

    span: Span
    tree: Tree | None = None
    answers: Sequence[Any] = ()
    problem: SymattnError | None = None
    follows: Span | None = None


def read_each(source: FormulaText, table: Names, gradients: str = "d") -> list[Read]:
    """Every statement of a text by what the table knows, which learns what they say.

    Raises ParseError for a text that is not taken apart.
    """
    tokens = _spelled(source, table, gradients)
    parts, local = _ranges_taken(source, table, statements(source, tokens))
    parts = _shapes_below(source, table, parts)
    table.heads = _heads(parts)
    return _with_implications(tokens, _in_order(source, table, parts, local))


def _spelled(text: FormulaText, names: Names, gradients: str) -> list[Token]:
    """The tokens, with bars for derivatives as differentials where that is asked for."""
    if gradients not in GRADIENTS:
        raise OperandError(f"gradients are spelled {', '.join(GRADIENTS)}, not {described(gradients)}")
    tokens = tokens_of(text)
    if gradients != "bar":
        return tokens
    out, at = list[Token](), 0
    while at < len(tokens):
        token = tokens[at]
        braced = [t.kind for t in tokens[at + 1 : at + 4 : 2]] == ["{", "}"]
        barred = tokens[at + 1 + braced] if token.kind == "accent" else token
        declared = names.find(Symbol(barred.span, barred.mark, barred.style, token.mark)) is not None
        if token.mark == "‾" and token.kind == "accent" and barred.kind == "letter" and not declared:
            out += [Token("letter", "d", token.span, "upright", token.apart), barred]
            at += 4 if braced else 2
        else:
            out.append(token)
            at += 1
    return out


_Local: TypeAlias = dict[int, dict[str, Range]]  # ranges that hold for one statement, by its tokens


def _ranges_taken(text: FormulaText, names: Names, parts: Sequence[list[Token]]) -> tuple[list[list[Token]], _Local]:
    """The statements without those that say where indices run, which is known before what uses them is read.

    Where a letter has another range already, ``(a = 1, \\ldots, h)`` is that of the statement in front alone.
    """
    kept: list[list[Token]] = []
    local: _Local = {}
    for part in (piece for whole in parts for piece in ranges_apart(whole)):
        quantifier = Quantifier(text, names, part)
        tree = quantifier.tree()
        if tree is None:
            kept.append(part)
            continue
        quantifier.declare(tree, Statement(text, names, quantifier.tokens).size)
        if quantifier.local:
            if not kept:
                raise text.error("a range of an index stands behind what it is of", tree.span)
            local.setdefault(id(kept[-1]), {}).update(quantifier.local)
    return kept, local


def _shapes_below(text: FormulaText, names: Names, parts: list[list[Token]]) -> list[list[Token]]:
    """The statements without rows that only say the shapes of the factors above them, which are checked."""
    kept: list[list[Token]] = []
    for part in parts:
        row = _shape_row(text, part)
        if row is None or not kept:
            kept.append(part)
        else:
            Statement(text, names, kept[-1]).check_factors(row)
    return kept


def _heads(parts: Sequence[Sequence[Token]]) -> frozenset[str]:
    """The letters that stand as heads, ``Q^{(a)}``, and nowhere else."""
    heads, others = set[str](), set[str]()
    for part in parts:
        named = False  # within the braces of an environment
        for n, token in enumerate(part):
            named = token.mark in (r"\begin", r"\end") or (named and token.kind != "}")
            around = [t.mark for t in (*part[max(n - 3, 0) : n], *part[n + 1 : n + 2])]
            if token.kind == "letter" and not named:
                (heads if around == ["^", "{", "(", ")"] else others).add(token.mark)
    return frozenset(heads - others)


def _shape_row(text: FormulaText, part: Sequence[Token]) -> list[Fence] | None:
    """``(T, D) (D, e)``: shapes one beside the other."""
    if any(token.kind not in ("open", "close", "letter", "word", "number", "_", "{", "}", "sign") for token in part):
        return None
    tree = Parser(text, part, lambda head: False).read()
    fences = [f for f in tree.factors if isinstance(f, Fence)] if isinstance(tree, Product) else []
    whole = isinstance(tree, Product) and len(fences) == len(tree.factors) and not any(tree.signs)
    return fences if whole and all(f.left == "(" and len(f.items) == 2 for f in fences) else None


def _in_order(text: FormulaText, names: Names, parts: Sequence[Sequence[Token]], local: _Local) -> list[Read]:
    """What all statements say: one that needs what a later one defines waits for it.

    Where none can go on, the problem of the first of them comes first.
    """
    found: dict[int, Read] = {}
    defined = [_defined_by(text, names, part) for part in parts] if len(parts) > 1 else [set[str]()]
    while len(found) < len(parts):
        problems, before = dict[int, Read](), len(found)
        for n, part in enumerate(parts):
            span = Span(part[0].span.start, part[-1].span.end)
            if n in found:
                continue
            tree = None
            try:
                others = (keys for m, keys in enumerate(defined) if m not in found and m != n)
                names.waiting = set[str]().union(*others) - defined[n] - names.given
                with names.within(local.get(id(part), {})):
                    statement = Statement(text, names, part)
                    tree = statement.tree
                    found[n] = Read(span, tree, statement.answers())
            except SymattnError as problem:
                problems[n] = Read(span, tree, problem=problem)
        if len(found) == before:
            found.update(problems)
    return [found[n] for n in range(len(parts))]


def _defined_by(text: FormulaText, names: Names, part: Sequence[Token]) -> set[str]:
    """The names that a statement defines, as far as its left side says it."""
    try:
        return defined_names(Statement(text, names, part).tree)
    except SymattnError:
        return set()  # which is told when it is read


def _with_implications(tokens: Sequence[Token], reads: Sequence[Read]) -> list[Read]:
    r"""The statements, with the ``\implies`` that stands in front of one."""
    out = list(reads[:1])
    for before, after in pairwise(reads):
        between = (t.span for t in tokens if t.mark in FOLLOWS)
        arrow = next((span for span in between if before.span.end <= span.start < after.span.start), None)
        out.append(after if arrow is None else replace(after, follows=arrow))
    return out


def _check_implications(text: FormulaText, reads: Sequence[Read]) -> None:
    r"""That what ``\implies`` stands behind is a definition, or holds: no claim is made of what is only supposed."""
    for before, after in pairwise(reads):
        claims = (answer for answer in before.answers if isinstance(answer, Claim))
        if after.follows is not None and any(not prove(claim) for claim in claims):
            raise text.error("an implication is not read: write what follows by itself", after.follows)
