r"""A text of formulas as its statements: rows, ``\quad``, words, and commas between two relations set them apart.

A row that begins with a relation, or with a sign such as ``+`` between two operands, goes on with the statement above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from .lexer import Token
from .parser import RELATIONS
from .text import FormulaText

_ALIGNED = frozenset(
    "align align* aligned alignedat array split multline multline* gather gather* gathered equation equation* eqnarray "
    "eqnarray*".split()
)
_DELIMITERS = {"$": "$", r"\(": r"\)", r"\[": r"\]"}
_PUNCTUATION = frozenset(".,;")
FOLLOWS = frozenset("⟹⇒")
_BINARY = frozenset("+−⋅×∗/÷⊙⊘∘⊗⋆•∧∨") | {"mod"}
_QUANTIFIES = re.compile(  # with nothing in it that would be a condition
    r"(and )?for( ?(all|each|every|any)( (heads?|rows?|columns?|quer(y|ies)|keys?|tokens?|positions?|steps?|layers?|"
    r"ind(ex|ices)|entr(y|ies)|times?))?)?"
)
_EXPLAINS = re.compile(r"is (an? |the )?(kernel|function|matrix|vector|scalar|number|mask)")
_BEGIN_CONDITIONS = frozenset("if when whenever for where provided assuming unless given".split())
_CONDITION = re.compile(
    r"\b(if|iff|when|whenever|unless|except|provided|providing|assuming|suppos\w+|only|not|no|false|wrong)\b",
    re.IGNORECASE,
)
_CONDITIONS = frozenset({"if", "when", "or", "otherwise", "else"})


def statements(text: FormulaText, tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each statement. Raises ParseError where there is none."""
    found: list[list[Token]] = []
    for row in _closed(map(_without_reasons, _split(_unwrapped(tokens), "row"))):
        parts = _parts(text, row)
        for n, stripped in enumerate(filter(None, map(_stripped, parts))):
            if found and _goes_on(text, stripped, first=not n):
                found[-1] += stripped
            elif stripped[0].mark in FOLLOWS:
                found.append(stripped[1:])
            else:
                found.append(stripped)
    if not found:
        raise text.error("there is nothing to read: write a formula such as \\mathrm{softmax}(Q K^\\top) V")
    return found


def _goes_on(text: FormulaText, tokens: Sequence[Token], first: bool) -> bool:
    """Whether a stretch goes on with the statement before it; ``first``: it begins a row."""
    sign = tokens[0]
    if sign.kind != "sign" or sign.mark not in _BINARY:
        return first and sign.kind == "sign" and sign.mark in RELATIONS - FOLLOWS
    if not first or (sign.mark in "+−" and _relates(tokens)):
        raise text.error(f"whether this {sign.mark} goes on with what stands before it is not decided", sign.span)
    return True


def _with_depth(tokens: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    depth = 0
    for token in tokens:
        closes = token.kind in ("}", "close") or token.mark == r"\end"
        depth -= closes
        yield token, depth
        depth += token.kind in ("{", "open") or token.mark == r"\begin"


def _split(tokens: Sequence[Token], kind: str) -> list[list[Token]]:
    """The stretches between marks of alignment, which stand between parentheses too, but not in braces."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth -= token.kind == "}" or token.mark == r"\end"
        if token.kind == kind and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
        depth += token.kind == "{" or token.mark == r"\begin"
    return parts


def _closed(rows: Iterable[list[Token]]) -> list[list[Token]]:
    """Rows as they are written, but for those in which a parenthesis is open: the next row goes on with it."""
    found: list[list[Token]] = []
    depth = 0
    for row in rows:
        if depth > 0:
            found[-1] += row
        else:
            found.append(list(row))
            depth = 0
        depth += sum((t.kind == "open") - (t.kind == "close") for t in row)
    return found


def _unwrapped(tokens: Sequence[Token]) -> list[Token]:
    """Without the signs of displayed or inline mathematics, and the environment, around all of it."""
    inside = _stripped(tokens)
    while len(inside) > 2 and _DELIMITERS.get(inside[0].mark) == inside[-1].mark:
        inside = inside[1:-1]
    while inside and inside[0].mark == r"\begin":
        close = next((n for n, t in enumerate(inside) if t.kind == "}"), 0)
        name = "".join(t.mark for t in inside[2:close]).replace("∗", "*")
        depths = [n for n, (t, depth) in enumerate(_with_depth(inside)) if t.mark == r"\end" and not depth]
        if name not in _ALIGNED or not depths:
            break
        end = depths[0]
        after = next((n for n in range(end, len(inside)) if inside[n].kind == "}"), len(inside)) + 1
        closed = "".join(t.mark for t in inside[end + 2 : after - 1]).replace("∗", "*")
        if closed != name or _stripped(inside[after:]):
            break
        inside = inside[close + 1 : end]
        if name in ("array", "alignedat") and inside and inside[0].kind == "{":
            inside = inside[next(n for n, t in enumerate(inside) if t.kind == "}") + 1 :]
    return inside


def _without_reasons(row: Sequence[Token]) -> list[Token]:
    """A row without its marks of alignment, and without cells of words behind it: why a step holds.

    A row that has nothing else is the reason of the row above.
    """
    cells = _split(row, "&")
    alone = len(cells) > 1 and not any(_stripped(cell) for cell in cells[:-1])
    behind = len(cells) - 1 if alone else 2
    return [t for n, cell in enumerate(cells) if not (n >= behind and _is_reason(cell)) for t in cell]


def _is_reason(cell: Sequence[Token]) -> bool:
    """Whether a cell holds nothing but words, and they do not begin as a condition does."""
    told = _stripped(cell)
    if not told or not all(token.kind in ("prose", "word") for token in told):
        return False
    words = [word for word in told[0].mark.split() if not word.startswith("\\")]
    if any(_CONDITION.search(token.mark) for token in told):
        return False
    return not words or words[0].lower() not in _BEGIN_CONDITIONS


def _parts(text: FormulaText, tokens: Sequence[Token]) -> list[list[Token]]:
    """The statements of one row."""
    parts: list[list[Token]] = [[]]
    for stretch in (piece for part in _stretches(_with_quantifiers(text, tokens)) for piece in _quantified(part)):
        segments = [stretch] if stretch[0].mark == "∀" else _commas(stretch)
        for n, segment in enumerate(segments):
            relates = _relates(segment)
            _check_conditions(text, segment)
            if n and [t.kind for t in segment] == ["letter", "prose"] and _EXPLAINS.fullmatch(segment[1].mark):
                continue  # a remark that adds nothing, ``K \\text{ is a kernel}``
            if n and not (relates and _relates(parts[-1])) and not _ends_statement(stretch, segment):
                parts[-1] += [*_comma(segments[n - 1], segment), *segment]
            else:
                parts.append(list(segment))
    for part in parts:
        for token, depth in _with_depth(part):
            if token.kind == "prose" and not depth and token.mark not in _JOINS:
                raise text.error("these words are not read: leave them out", token.span)
    return [[t for t, depth in _with_depth(part) if t.kind != "prose" or depth] for part in parts]


def _ends_statement(tokens: Sequence[Token], segment: Sequence[Token]) -> bool:
    """Whether a semicolon stands in front of a segment, which a comma may stand for something else than."""
    before = tokens.index(segment[0]) - 1 if segment else -1
    return before >= 0 and tokens[before].mark == ";"


def _check_conditions(text: FormulaText, tokens: Sequence[Token]) -> None:
    """That no words say when a formula holds: that would be lost."""
    for token, depth in _with_depth(tokens):
        if token.kind == "prose" and not depth and token.mark in _CONDITIONS:
            raise text.error(r"a condition in words is read in \begin{cases} only", token.span)


def _with_quantifiers(text: FormulaText, tokens: Sequence[Token]) -> list[Token]:
    r"""With words such as ``\text{for each head}`` as the sign that they stand for."""
    out = []
    for token, depth in _with_depth(tokens):
        told = token.kind == "prose" and not depth
        if told and _QUANTIFIES.fullmatch(token.mark):
            out.append(replace(token, kind="sign", mark="∀"))
        elif told and token.mark.removeprefix("and ").startswith("for "):
            raise text.error("for which values this is said is not read: write an index, as \\forall i", token.span)
        elif told and _CONDITION.search(token.mark):
            raise text.error(r"a condition in words is read in \begin{cases} only", token.span)
        else:
            out.append(token)
    return out


def _quantified(tokens: Sequence[Token]) -> list[list[Token]]:
    r"""A stretch without its quantifiers, ``\forall i: ...`` or ``... \forall i``, which are stretches of their own."""
    found: list[list[Token]] = [[]]
    for token, depth in _with_depth(tokens):
        inside = bool(found[-1]) and found[-1][0].mark == "∀"
        if not depth and token.mark == "∀":
            found.append([token])
        elif inside and not depth and token.mark == ":":
            found.append([])
        else:
            found[-1].append(token)
    return [part for stretch in found if stretch for part in _without_formula(stretch) if part]


def _without_formula(stretch: list[Token]) -> list[list[Token]]:
    r"""``\forall i, j, x_i = x_j`` as the quantifier and the formula behind its comma."""
    segments = _commas(stretch)
    if stretch[0].mark != "∀" or len(segments) == 1:
        return [stretch]
    dots = next((n for n, segment in enumerate(segments) if [t.mark for t in segment] == ["…"]), 0)
    n = dots + 2 if dots else 1
    while not dots and n < len(segments) and len(_stripped(segments[n])) == 1:
        n += 1
    within = [t.kind if t.kind == "letter" else t.mark for t in segments[min(n, len(segments) - 1)][:2]]
    if not dots and n < len(segments) and within == ["letter", "∈"]:
        n += 1  # the last index, and what all of them are in
    behind = sum(map(len, segments[:n])) + n
    return [stretch[: behind - 1], stretch[behind:]]


def _stretches(tokens: Sequence[Token]) -> list[list[Token]]:
    r"""What ``\quad``, ``\implies`` and words between formulas set apart."""
    stretches: list[list[Token]] = [[]]
    for token, depth in _with_depth(tokens):
        if not depth and token.kind in ("wide", "prose"):
            if token.kind == "prose" and token.mark not in {"", *_JOINS}:
                stretches[-1].append(token)
            else:
                stretches.append([])
        elif not depth and token.mark in FOLLOWS and stretches[-1]:
            stretches.append([])
        else:
            stretches[-1].append(token)
    return stretches


_JOINS = frozenset({"where", "and", "with", "for"})


def _commas(tokens: Sequence[Token]) -> list[list[Token]]:
    segments: list[list[Token]] = [[]]
    for token, depth in _with_depth(tokens):
        if token.kind == "sign" and token.mark in ",;" and not depth:
            segments.append([])
        else:
            segments[-1].append(token)
    return segments


def _comma(before: Sequence[Token], after: Sequence[Token]) -> list[Token]:
    """The comma between two segments, as a token near them."""
    near = [*before[-1:], *after[:1]]
    return [Token("sign", ",", near[0].span)] if near else []


def _relates(tokens: Sequence[Token]) -> bool:
    return any(not depth and t.kind == "sign" and t.mark in RELATIONS for t, depth in _with_depth(tokens))


def _stripped(tokens: Sequence[Token]) -> list[Token]:
    """Without what only separates it from others."""
    kept = list(tokens)
    while kept and (kept[-1].kind in ("wide", "end", "row") or kept[-1].mark in _PUNCTUATION):
        kept.pop()
    while kept and (kept[0].kind in ("wide", "row") or kept[0].mark in _PUNCTUATION):
        kept.pop(0)
    return kept
