"""Formulas as people publish them, with what their names are: the corpus that reading LaTeX is judged by.

``latex_formulas.jsonl`` has the formulas that the reader was made by, and ``latex_formulas_more.jsonl`` others, to
measure it by. A line of theirs is one formula: its LaTeX; ``declared``, what its source says of the names in it; and
``names``, the same made complete and uniform, which is what a reader of the formula is told. A name is declared by

- a shape, ``n×d_k`` or ``d``, perhaps with properties: ``n×n, permutation``;
- a family, ``D_k; i=1..T``: one value for every index, that is, a tensor with the axes of the indices in front;
- ``scalar``, ``integer``, ``size``, ``loss`` (a scalar that only derivatives speak of);
- a range, ``1..n``, of a letter that is an index and no name;
- ``function``, known by its name, entry by entry; ``score of two rows``, known by its name; or a known function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import sympy

import symattn as sa
from symattn.ops.leaves import as_tensor

FILES = [Path(__file__).with_name(f"{name}.jsonl") for name in ("latex_formulas", "latex_formulas_more")]


class Formula(NamedTuple):
    """One published formula, as it stands in the file."""

    id: str
    source: str
    kind: str
    latex: str
    declared: dict[str, str]
    names: dict[str, str]
    meaning: str
    notes: str


@cache
def formulas() -> dict[str, Formula]:
    """All of them by their ids, in the order of the files."""
    lines = [line for file in FILES for line in file.read_text(encoding="utf-8").splitlines()]
    return {f.id: f for f in (Formula(**json.loads(line)) for line in lines)}


# --- names ---


def plain_name(key: str) -> str:
    """The name of a tensor for a name in LaTeX: ``W_i^Q`` is W_i_Q, ``Q'_i`` is Q_i', ``S_{t-1}`` is S_t_before."""
    text = key.replace("-1", "_before").replace("ϵ", "epsilon")
    kept = "".join("_" if c in "_^(" else c for c in text if c not in "{}),\\'")
    return "_".join(filter(None, kept.split("_"))) + "'" * text.count("'")


def _entrywise(name: str) -> Callable[..., Any]:
    return lambda x: sa.unknown(name, x)


def _score(name: str) -> Callable[..., Any]:
    """A function of two rows known by its name: the first number that a function of the joined row gives."""

    def of_rows(left: Any, right: Any) -> sa.Tensor:
        first, second = as_tensor(left), as_tensor(right)
        if not first.rank:  # numbers are rows of one number
            first, second = first[None], second[..., None]
        joined = sa.concat([sa.repeat(first[None], second.shape[0], axis=0), second], axis=-1)
        return sa.unknown(name, joined, rowwise=True)[..., 0]

    return of_rows


Functions = Mapping[str, Callable[[str], Callable[..., Any]]]
FUNCTIONS: Functions = {  # by how they are declared, what makes them of their names
    "function": _entrywise,
    "score of two rows": _score,
    "softmax": lambda name: sa.softmax,
    "logistic": lambda name: sa.sigmoid,
    "scaled dot-product attention": lambda name: sa.attention.scaled_dot_product,
    "softmax(X X^T) X": lambda name: lambda x: sa.softmax(x @ x.mT) @ x,
}


class Declaration(NamedTuple):
    """A shape with its properties, and the axes of the indices of a family, by their letters."""

    shape: tuple[sympy.Expr, ...]
    properties: tuple[str, ...]
    family: dict[str, sympy.Expr]


def declaration(text: str) -> Declaration:
    """What ``n×d, binary; i=1..h`` says."""
    value, _, indices = text.partition(";")
    shape, *properties = (part.strip() for part in value.split(","))
    sizes = () if shape == "scalar" else tuple(map(size, shape.split("×")))
    family = {}
    for index in filter(None, indices.split(",")):
        letter, limits = (part.strip() for part in index.split("="))
        first, last = map(size, limits.split(".."))
        family[letter] = last - first + 1
    return Declaration(sizes, tuple(properties), family)


def size(text: str) -> sympy.Expr:
    """A size or the bound of an index: a sum of products of names, which may have primes, and of numbers."""
    total = sympy.Integer(0)
    for term in text.replace("-", "+-").split("+"):
        factors = [int(part) if part.isdecimal() else sa.sizes(part) for part in term.lstrip("-").split("*")]
        total += (-1 if term.startswith("-") else 1) * sympy.prod(factors)
    return total


SCALARS: dict[str, Callable[[str], Any]] = {
    "scalar": lambda name: sympy.Symbol(name, real=True),
    "integer": lambda name: sympy.Symbol(name, integer=True),
    "size": sa.sizes,
    "loss": lambda name: None,
}


def declared_value(key: str, text: str, functions: Functions = FUNCTIONS) -> Any:
    """What a name stands for: a tensor, a symbol, a function, or None for a loss."""
    name = plain_name(key)
    if make := SCALARS.get(text) or functions.get(text):
        return make(name)
    shape, properties, family = declaration(text)
    return sa.tensor(name, *family.values(), *shape, **dict.fromkeys(properties, True))


def names_of(formula: Formula, functions: Functions = FUNCTIONS) -> dict[str, Any]:
    """What each name of a formula stands for, by its LaTeX."""
    named = {key: text for key, text in formula.names.items() if not is_range(text)}
    return {key: declared_value(key, text, functions) for key, text in named.items()}


def is_range(text: str) -> bool:
    """Whether a declaration says where an index runs, and not what a name stands for."""
    return ".." in text and ";" not in text


def told(formula: Formula) -> dict[str, Any]:
    """What a reader is told: the names, and the ranges of the indices of families, such as ``"i": "1..n"``."""
    indices = ", ".join(text.partition(";")[2] for text in formula.names.values())
    ranges = dict(part.strip().split("=") for part in indices.split(",") if part.strip())
    return {**names_of(formula), **ranges, **{key: text for key, text in formula.names.items() if is_range(text)}}


def arguments_of(formula: Formula, functions: Functions = FUNCTIONS) -> dict[str, Any]:
    """The same by plain names, with the sizes in them and ``dX``, the derivative of a loss by each tensor X."""
    values = {plain_name(key): value for key, value in names_of(formula, functions).items()}
    tensors = {name: x for name, x in values.items() if isinstance(x, sa.Tensor)}
    sizes = {s.name: s for x in tensors.values() for n in x.shape for s in n.free_symbols}
    derivatives = {f"d{name}": sa.tensor(f"d{name}", *x.shape) for name, x in tensors.items()}
    return {**derivatives, **sizes, **values}
