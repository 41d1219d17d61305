"""What symattn prints it reads: random expressions in both styles, safe for GitHub or not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import sympy

import symattn as sa
from symattn.ops.leaves import as_tensor

from ..attention.zoo import ZOO
from ..shares import one_in

T, S, d = SIZES = sa.sizes("T S d")
gamma = sympy.Symbol("gamma", real=True)
MATRICES = {
    (T, d): ("Q", "X_q", "alpha"),
    (S, d): ("K", "Khat"),
    (S, T): ("V", "W_v"),
    (T, S): ("A", "bias"),
    (d, d): ("W",),
    (T, T): ("L", "H"),
    (S, S): ("R",),
    (d, T): ("G",),
    (d, S): ("B",),
}
VECTORS = {T: ("x", "u_t"), S: ("y",), d: ("w", "beta")}
TENSORS = {name: sa.tensor(name, *shape) for shape, names in MATRICES.items() for name in names}
TENSORS |= {name: sa.tensor(name, size) for size, names in VECTORS.items() for name in names}
MASKS = {(a, b): sa.tensor(f"M_{a}{b}", a, b, binary=True) for a in SIZES for b in SIZES}
NAMES: dict[str, Any] = {**TENSORS, **{m.name: m for m in MASKS.values()}, "gamma": gamma}
NAMES["phi"] = lambda x: sa.unknown("phi", x)
ENTRIES = (sa.exp, sa.tanh, sa.sigmoid, sa.relu, sa.sin, sa.silu, sa.log1p, sa.erf, sa.softplus, NAMES["phi"])


class Maker:
    """Random terms of a shape, of operations that are written with all that they mean."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def term(self, shape: tuple[Any, ...], depth: int) -> sa.Tensor:
        if depth <= 0:
            names = MATRICES[shape] if len(shape) == 2 else VECTORS[shape[0]]
            return TENSORS[self.rng.choice(names)]
        return self.rng.choice(_OF_MATRICES if len(shape) == 2 else _OF_VECTORS)(self, shape, depth - 1)

    def size(self) -> Any:
        return self.rng.choice(SIZES)


def _vector(k: Maker, size: Any, depth: int) -> sa.Tensor:
    return k.term((size,), depth)


Build = Callable[[Maker, tuple[Any, ...], int], sa.Tensor]
_BOTH: tuple[Build, ...] = (
    lambda k, s, n: k.term(s, n) + k.term(s, n),
    lambda k, s, n: k.term(s, n) - k.term(s, n),
    lambda k, s, n: k.term(s, n) * k.term(s, n),
    lambda k, s, n: k.term(s, n) / sa.exp(k.term(s, n)),
    lambda k, s, n: k.rng.choice((2, -1, sympy.Rational(1, 3), gamma, 1 / sympy.sqrt(d), -gamma / d)) * k.term(s, n),
    lambda k, s, n: k.rng.choice(ENTRIES)(k.term(s, n)),
    lambda k, s, n: k.term(s, n) ** 2,
    lambda k, s, n: sa.softmax(k.term(s, n)),
    lambda k, s, n: sa.sum(k.term((k.size(),), n)) * k.term(s, n),
)
_OF_MATRICES: tuple[Build, ...] = (
    *_BOTH,
    lambda k, s, n: (lambda m: k.term((s[0], m), n) @ k.term((m, s[1]), n))(k.size()),
    lambda k, s, n: (lambda m: k.term((s[0], m), n) @ k.term((s[1], m), n).T)(k.size()),
    lambda k, s, n: k.term((s[1], s[0]), n).T,
    lambda k, s, n: sa.outer(_vector(k, s[0], n), _vector(k, s[1], n)),
    lambda k, s, n: k.term(s, n) + _vector(k, s[1], n),
    lambda k, s, n: k.term(s, n) + _vector(k, s[0], n)[:, None],
    lambda k, s, n: k.term(s, n) * _vector(k, s[1], n),
    lambda k, s, n: k.term(s, n) * _vector(k, s[0], n)[:, None],
    lambda k, s, n: (lambda z: z - sa.max(z, axis=-1, keepdims=True))(k.term(s, n)),
    lambda k, s, n: (lambda z: sa.exp(z) / sa.sum(sa.exp(z), axis=-1, keepdims=True))(k.term(s, n)),
    lambda k, s, n: sa.softmax(k.term(s, n), axis=0),
    lambda k, s, n: sa.softmax(k.term(s, n), where=MASKS[s]),
    lambda k, s, n: sa.inv(sa.eye(s[0]) + sa.exp(k.term((s[0], s[0]), n))) @ k.term(s, n),
    lambda k, s, n: sa.diag(_vector(k, s[0], n)) @ k.term(s, n),
    lambda k, s, n: sa.where(MASKS[s], k.term(s, n), 0),
)
_OF_VECTORS: tuple[Build, ...] = (
    *_BOTH,
    lambda k, s, n: (lambda m: k.term((s[0], m), n) @ k.term((m,), n))(k.size()),
    lambda k, s, n: (lambda m: k.term((m,), n) @ k.term((m, s[0]), n))(k.size()),
    lambda k, s, n: sa.sum(k.term((s[0], k.size()), n), axis=-1),
    lambda k, s, n: sa.sum(k.term((k.size(), s[0]), n), axis=0),
    lambda k, s, n: sa.max(k.term((s[0], k.size()), n), axis=-1),
    lambda k, s, n: sa.logsumexp(k.term((s[0], k.size()), n)),
    lambda k, s, n: (lambda z: (z @ z) * k.term(s, n))(_vector(k, k.size(), n)),
)
SHAPES = (*MATRICES, *((size,) for size in SIZES))


def term(seed: int) -> sa.Tensor:
    maker = Maker(seed)
    return maker.term(maker.rng.choice(SHAPES), maker.rng.choice((1, 1, 2, 2, 3)))


def read_back(x: sa.Tensor, text: str, names: dict[str, Any] | None = None, first_index: int | None = None) -> str:
    """How a text is read, beside the tensor that was printed."""
    try:
        read = sa.parse_latex(text, NAMES if names is None else names, first_index=first_index)
    except sa.SymattnError as problem:
        return f"refused: {problem}"
    value = as_tensor(getattr(read, "value", read))
    if value.shape != x.shape:
        return f"shape {value.shape}"
    return sa.prove(value, x).status


@pytest.mark.parametrize("safe", ["", "github"])
@pytest.mark.parametrize("first", one_in(3, range(0, 120, 20)))
def test_what_is_printed_in_matrix_style_is_read_back(first: int, safe: str) -> None:
    for seed in range(first, first + 20):
        x = term(seed)
        assert read_back(x, sa.latex(x, safe=safe)) == "proved", sa.latex(x)


@pytest.mark.parametrize("safe", ["", "github"])
@pytest.mark.parametrize("first", one_in(3, range(0, 100, 20)))
def test_what_is_printed_in_index_style_is_read_back(first: int, safe: str) -> None:
    for seed in range(first, first + 20):
        x = sa.let("Z", term(seed))
        text = sa.latex(x, style="index", safe=safe)
        read = read_back(x, text)
        if "not all indices" in read or read == "shape ()":
            continue  # an entry that is a constant along an axis does not say how long that is
        assert read in ("proved", "unknown"), text


def _parts_of_the_library() -> list[sa.Tensor]:
    """The named parts of all variants of attention that have names of their own."""
    outputs = [build().output for build in ZOO.values()]
    parts = {x: None for output in outputs for x in output.intermediates}
    return [
        x
        for x in parts
        if len({y.name for y in (*x.intermediates, *x.tensors)}) == len(x.intermediates) + len(x.tensors)
    ]


def without_definitions(text: str) -> str:
    """The formula of a text that defines its intermediates below, which are declared here."""
    inside, where, _ = text.removeprefix("\\begin{aligned}\n  & ").partition(" \\\\\n  \\text{where }")
    return inside if where else text


def with_its_shape(x: sa.Tensor, text: str) -> str:
    """What is printed, with the shape of it, or of each of its heads, behind it."""
    formula, heads, ranges = text.partition(r" \quad (")
    sizes = r" \times ".join(map(sympy.latex, x.shape[ranges.count(r"\ldots") :]))
    return rf"({formula}) \in \mathbb{{R}}^{{{sizes}}}{heads}{ranges}" if sizes else text


@pytest.mark.slow
def test_the_share_of_the_library_of_attention_that_is_read_back() -> None:
    """Once it is said what does not show, the shape and that places are counted from 0, few are left.

    These are blocks whose sizes do not follow, and a few others. None is read otherwise.
    """
    plainly, told = Counter[str](), Counter[str]()
    for x in _parts_of_the_library():
        names: dict[str, Any] = {str(y.name): y for y in (*x.tensors, *x.intermediates) if y is not x}
        shown = {s for y in names.values() for s in y.free_symbols}
        names |= {s.name: s for s in x.free_symbols - shown if s.name not in names}
        text = without_definitions(sa.latex(x))
        found = read_back(x, text, names)
        plainly[found.partition(" ")[0].rstrip(":")] += 1
        found = found if found == "proved" else read_back(x, with_its_shape(x, text), names, first_index=0)
        told[found.partition(" ")[0].rstrip(":")] += 1
    assert plainly["refuted"] == told["refuted"] == 0
    assert told["unknown"] <= 10
    assert plainly["proved"] / plainly.total() > 0.75
    assert told["proved"] / told.total() > 0.94


IN_TWO_WAYS = [
    r"x^{\top} U", r"\operatorname{cumsum}(x^{\top} U)", r"\operatorname{rowmax}(x^{\top} U)", "U x", "[y]_i",
    "[(R C)]_j", "[U]_{ij}",
]  # fmt: skip


@pytest.mark.parametrize("formula", IN_TWO_WAYS)
def test_what_has_one_entry_is_not_taken_for_a_matrix_or_a_vector_where_it_may_be_a_number(formula):
    n, m = sa.sizes("n m")
    shapes = {"x": (n,), "y": (1,), "U": (1, 1), "R": (1, m), "C": (m, 1)}
    with pytest.raises(sa.ParseError, match="may be meant as a number|not decided"):
        sa.parse_latex(formula, {name: sa.tensor(name, shape) for name, shape in shapes.items()})
