"""What is true and still a mistake: lints over the formulas of a document, one function each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import sympy

from ..core.node import Tensor, topological
from ..ops.arithmetic import multiply_op, split_scalar
from ..ops.contraction import matmul_op
from ..ops.leaves import bare, variable
from ..ops.rows import softmax_op
from .documents import Passage
from .findings import Finding
from .statements import Notes

Lint = Callable[[Notes], Iterator[Finding]]

_MOVED = re.compile(r"permut|reorder|order of the (?:tokens|inputs|rows)|shuffl", re.I)
_INVARIANT = re.compile(r"\binvarian|does not change|unchanged|the same output", re.I)
_EQUIVARIANT = re.compile(r"equivarian", re.I)
_CALLED_FALSE = re.compile(r"\b(?:false|wrong(?:ly)?|refuted|incorrect(?:ly)?|not (?:\w+ )?invariant)\b", re.I)


def _wrong_width(notes: Notes) -> Iterator[Finding]:
    """A product under a softmax is divided by the root of another width than the one that is summed over."""
    for passage, node in _softmaxes(notes):
        scale, product = split_scalar(bare(node.inputs[0]))
        if product is None or bare(product).op is not matmul_op:
            continue
        contracted = _contracted(bare(product))
        for width in (s for s in scale.free_symbols if scale.has(1 / sympy.sqrt(s)) and s.is_integer):
            if width not in contracted:
                right = scale.xreplace({width: contracted[0]})
                yield _warned(
                    notes, passage, "scale", f"the sum runs over {contracted[0]}, and the scale is that of {width}",
                    f"{right} in place of {scale}",
                )  # fmt: skip


def _contracted(product: Tensor) -> list[sympy.Expr]:
    """The sizes that a product of matrices sums over, that of its last step first."""
    found, waiting = [], [product]
    while waiting:
        node = waiting.pop(0)
        if node.op is matmul_op:
            found.append(node.inputs[0].shape[-1])
            waiting += node.inputs
    return found


def _mask_as_factor(notes: Notes) -> Iterator[Finding]:
    """A mask multiplies scores under a softmax: what is masked keeps the weight of a score of 0."""
    for passage, node in _softmaxes(notes):
        factors = _factors(node.inputs[0])
        masks = [x for x in factors if len(factors) > 1 and (x.kind == "binary" or _is_mask(x))]
        for mask in masks:
            said = f"{mask.name or 'a mask'} multiplies scores under a softmax: exp(0) is 1, not 0"
            yield _warned(notes, passage, "mask", said, "add 0 where a score is kept and -oo where it is masked")


def _factors(x: Tensor) -> list[Tensor]:
    """What is multiplied entry by entry."""
    inner = bare(x)
    return [y for part in inner.inputs for y in _factors(part)] if inner.op is multiply_op else [x]


def _never_used(notes: Notes) -> Iterator[Finding]:
    """A projection is declared and stands in no formula, while others of its kind do."""
    read = {str(x.name) for x in notes.used}
    known = {name: x for name, x in notes.known.items() if isinstance(x, Tensor) and x.op is variable and x.rank == 2}
    for name, x in known.items():
        others = [other for other in known if other != name and other[0] == name[0] and other in read]
        is_read = name in read or sum(_mentions(passage.text, name) for passage in _formulas(notes)) > 1
        if not is_read and others and name[0] == "W" and name in notes.declared_at:
            line = notes.declared_at[name]
            said = f"{x.brief()} is declared and never used, while {', '.join(others)} are"
            twice = [passage for passage, value in notes.built if any(y.name in others for y in value.tensors)]
            meant = tuple(dict.fromkeys(_instead(notes, twice, name, others)))[:1]
            yield Finding("warning", name, line, 1, said, meant, "unused")


def _instead(notes: Notes, passages: list[Passage], name: str, others: list[str]) -> Iterator[str]:
    """A projection that is used where its kind is read a second time stands there by mistake, most likely."""
    seen: set[str] = set()
    for passage, value in notes.built:
        for other in others:
            if passage in passages and any(x.name == other for x in value.tensors):
                if other in seen:
                    yield f"{name} in place of {other} in line {notes.document.place(passage.at)[0]}"
                seen.add(other)


def _invariant_for_equivariant(notes: Notes) -> Iterator[Finding]:
    """Words that call self-attention invariant to the order of its rows; it is equivariant."""
    for passage in notes.document.passages:
        behind = notes.document.words_after(passage) if passage.kind == "words" else ""
        if passage.kind == "words" and _is_said_invariant(passage.text) and not _CALLED_FALSE.search(behind):
            said = "attention without positions is equivariant: where its rows are reordered, the outputs are too"
            meant = "equivariant; invariant is what a sum or a mean over rows makes of it"
            yield _warned(notes, passage, "invariance", said, meant)


def _is_said_invariant(words: str) -> bool:
    is_said = _MOVED.search(words) and _INVARIANT.search(words)
    return bool(is_said and not _EQUIVARIANT.search(words) and not _CALLED_FALSE.search(words))


# --- by how a formula is written, whether it could be read or not ---


def _bound_and_free(notes: Notes) -> Iterator[Finding]:
    """``a(x_i) = sum_i ...``: an index that is free on the left side and bound by a sum on the right."""
    for passage, row in ((one, row) for one in _formulas(notes) for row in _ROWS.split(one.text)):
        left, *others = _sides(row)
        free = set(_INDEX.findall(left)) - set(_BOUND.findall(left)) - set(_RANGED.findall(left))
        for letter in sorted(free.intersection(_BOUND.findall(" ".join(others)))):
            said = f"{letter} is free on the left side and bound by a sum on the right"
            yield _warned(notes, passage, "index", said, "another letter for the index of the sum, or no sum")


def _softmax_of_an_entry(notes: Notes) -> Iterator[Finding]:
    """``softmax(z_i)``: softmax takes all scores; of one of them nothing can be told."""
    for passage in _formulas(notes):
        for argument in _OF_SOFTMAX.findall(passage.text):
            is_row = argument.strip("\\bf{} ") in notes.known  # declared, or defined, as all scores of one query
            if _INDEX.search(argument) and not is_row and not re.search(r"[A-Z]|top|\\sum|:|rbrack|\]", argument):
                said = "softmax takes all scores of a row, and this is one of them"
                yield _warned(notes, passage, "softmax", said, "entry i of the softmax of all scores, softmax(z)_i")


def _weights_of_another_sum(notes: Notes) -> Iterator[Finding]:
    """Weights in numbers that do not add up to 1."""
    for passage in _formulas(notes):
        weights = [float(number) for number in _WEIGHT.findall(passage.text)]
        if len(weights) > 1 and len(weights) == passage.text.count("+") + 1 and abs(sum(weights) - 1) > _ROUNDED:
            said = f"weights of values add up to 1, and these to {sum(weights):g}"
            yield _warned(notes, passage, "weights", said, "weights that a softmax may give")


def _sides(text: str) -> Iterator[str]:
    """What stands between signs of equality, of which none is in braces."""
    start = depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "{") - (sign == "}")
        if sign == "=" and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


_ROWS = re.compile(r"\\\\|\\cr(?![a-z])")
_INDEX = re.compile(r"_\{?([a-z])\}?(?![a-zA-Z])")
_BOUND = re.compile(r"\\sum\s*\}?\s*(?:\\limits)?\s*_\{?\s*([a-z])(?![a-zA-Z])")
_RANGED = re.compile(r"_\{\s*([a-z])\s*(?:=|\\in)")
_OF_SOFTMAX = re.compile(r"softmax\}?\s*(?:\\left)?\s*\(([^=]{1,200}?)(?:\\right)?\)(?!\s*\^)", re.I)
_WEIGHT = re.compile(r"(?<![\d.])(0?\.\d+)\s*(?:\\times|\\cdot)?\s*v_")
_ROUNDED = 0.011


def _formulas(notes: Notes) -> Iterator[Passage]:
    return (passage for passage in notes.document.passages if passage.kind not in ("words", "declared"))


def _mentions(text: str, name: str) -> bool:
    """Whether a formula holds the letters of a name, however its scripts are written."""
    letters = [re.escape(part) for part in re.split(r"[_^{}\\']+", name) if part]
    return re.search(r"[\s_^{}\\a-z]*".join(letters), text) is not None


LINTS: tuple[Lint, ...] = (
    _wrong_width, _mask_as_factor, _never_used, _invariant_for_equivariant, _bound_and_free, _softmax_of_an_entry,
    _weights_of_another_sum,
)  # fmt: skip


def lints(notes: Notes) -> Iterator[Finding]:
    """What all lints say of a document that has been read."""
    for lint in LINTS:
        yield from lint(notes)


def _softmaxes(notes: Notes) -> Iterator[tuple[Passage, Tensor]]:
    seen: set[Tensor] = set()
    for passage, value in notes.built:
        for node in topological([value]):
            if node.op is softmax_op and node not in seen:
                seen.add(node)
                yield passage, node


def _is_mask(x: Tensor) -> bool:
    return x.op is variable and re.fullmatch(r"M|mask|M_\w+", str(x.name)) is not None


def _warned(notes: Notes, passage: Passage, rule: str, message: str, suggestion: str) -> Finding:
    line, column = notes.document.place(passage.at)
    return Finding("warning", " ".join(passage.text.split()), line, column, message, (suggestion,), rule)
