"""Sums of products of matrices and vectors: polynomials whose monomials are words, and whose letters are tensors.

A vector is a column; the word ``u^T A v`` is a number, ``u v^T`` an outer product, and the empty word the identity. A
sum over an axis is a product with a vector of ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import sympy

from ...core.node import Tensor
from ...core.sizes import same_shape, same_size
from ...ops.arithmetic import add_op, multiply, multiply_op, split_scalar, sum_of
from ...ops.broadcasting import broadcast_to_op, sum_op
from ...ops.contraction import diag, diag_op, matmul_of, matmul_op, outer, outer_op
from ...ops.index import squeeze
from ...ops.inverse import inv, inv_op
from ...ops.layout import matrix_transpose, transpose_op
from ...ops.leaves import bare, constant, eye, from_index_op, is_eye, is_zero, ones, scalar_value, variable, zeros
from ...ops.pointwise import power_op
from ..generalised import is_finite
from ..rules.rule import digest

MOST_TERMS = 40  # of a polynomial; what has more is a letter


class Letter(NamedTuple):
    """A matrix or a vector, transposed or not, inverted or not."""

    tensor: Tensor
    transposed: bool = False
    inverted: bool = False

    @property
    def ends(self) -> tuple[Any, Any]:
        """How many rows and columns; None where there is no axis."""
        shape = self.tensor.shape if self.tensor.rank == 2 else (*self.tensor.shape, None)
        return (shape[1], shape[0]) if self.transposed else (shape[0], shape[1])

    @property
    def order(self) -> tuple[Any, ...]:
        name = self.tensor.params["name"] if self.tensor.op is variable else None
        return self.inverted, self.transposed, name is None, name or "", digest(self.tensor)

    @property
    def turned(self) -> Letter:
        """The transpose."""
        same = says(self.tensor, "symmetric") or self.tensor.op is diag_op
        return self._replace(transposed=False if same else not self.transposed)


Word = tuple[Letter, ...]
Words = Mapping[Word, sympy.Expr]  # the coefficient of each word


def says(x: Tensor, *hypotheses: str) -> bool:
    """Whether a tensor is declared to have one of the properties."""
    return x.op is variable and bool(set(hypotheses) & set(x.params["hypotheses"]))


def is_square(letter: Letter) -> bool:
    rows, columns = letter.ends
    return rows is not None and columns is not None and same_size(rows, columns)


def in_order(word: Word) -> tuple[Any, ...]:
    """The place of a word among all: the longer, the later."""
    return len(word), *(letter.order for letter in word)


def combination(parts: Iterable[tuple[sympy.Expr, Word, Words, Word]]) -> dict[Word, sympy.Expr]:
    """The sum of coefficients times polynomials between words."""
    found: dict[Word, sympy.Expr] = {}
    for c, before, words, after in parts:
        for word, k in words.items():
            whole = (*before, *word, *after)
            found[whole] = found.get(whole, sympy.S.Zero) + c * k
    return {word: c for word, k in found.items() if (c := k if k.is_Rational else sympy.cancel(k)) != 0}


def plus(*several: Words) -> dict[Word, sympy.Expr]:
    return combination((sympy.S.One, (), words, ()) for words in several)


def times(a: Words, b: Words) -> dict[Word, sympy.Expr]:
    return combination((c, word, b, ()) for word, c in a.items())


def scaled(c: sympy.Expr, words: Words) -> dict[Word, sympy.Expr]:
    return combination([(c, (), words, ())])


def turned(words: Words) -> dict[Word, sympy.Expr]:
    """The transpose."""
    return {tuple(letter.turned for letter in word[::-1]): c for word, c in words.items()}


def inverted(words: Words) -> dict[Word, sympy.Expr] | None:
    """The inverse of a multiple of one product of square matrices, where it has one."""
    (word, c), *others = words.items()
    if others or not c.is_nonzero or not word or not all(map(is_square, word)):
        return None
    return {tuple(map(_inverse_letter, word[::-1])): 1 / c}


def _inverse_letter(letter: Letter) -> Letter:
    if says(letter.tensor, "orthogonal", "permutation"):
        return letter.turned
    return letter._replace(inverted=not letter.inverted)


# --- from tensors and back ---


def is_letter(x: Tensor) -> bool:
    """Whether a tensor may be one: a matrix or a vector of numbers, of which none is -oo."""
    return x.rank in (1, 2) and is_finite(x)


def letter_of(x: Tensor) -> dict[Word, sympy.Expr] | None:
    """What has no parts: zeros, the identity, ones as an outer product, or a letter."""
    if x.rank > 2 or x.rank == 0:
        value = scalar_value(x)
        return None if value is None or not value.is_finite else combination([(value, (), _ONE, ())])
    if is_zero(x):
        return {}
    if is_eye(x):
        return dict(_ONE)
    if x.rank == 2 and x.op is from_index_op and x.params["formula"].is_Rational:
        return {word: x.params["formula"] for word in [_outer(x)]}
    return {(Letter(x),): sympy.S.One} if is_letter(x) else None


_ONE: Words = {(): sympy.S.One}


def _outer(x: Tensor) -> Word:
    return Letter(ones(x.shape[0])), Letter(ones(x.shape[1]), transposed=True)


def read(x: Tensor, of: Callable[[Tensor], Words | None]) -> dict[Word, sympy.Expr] | None:
    """A tensor as a polynomial of what ``of`` gives for its inputs; None where it is no sum or product of these."""
    reader = _READERS.get(x.op)
    if reader is None or x.rank > 2:
        return None
    found = reader(x, of)
    return None if found is None or len(found) > MOST_TERMS else found


def _transpose(x: Tensor, of: Any) -> Any:
    inside = of(x.inputs[0])
    return None if inside is None or x.rank != 2 else turned(inside)


def _inverse(x: Tensor, of: Any) -> Any:
    inside = of(x.inputs[0])
    if inside is None or x.rank != 2:
        return None
    found = inverted(inside) if inside else None
    whole = bare(x.inputs[0])
    return found or ({(Letter(whole, inverted=True),): sympy.S.One} if is_letter(whole) else None)


def _product(x: Tensor, of: Any) -> Any:
    a, b = x.inputs
    core, (left, right) = x.params["core"], map(of, x.inputs)
    if left is None or right is None or (a.rank, b.rank) != core:
        return None
    found = times(turned(left) if core[0] == 1 else left, right)
    return turned(found) if core == (1, 2) else found


def _outer_product(x: Tensor, of: Any) -> Any:
    left, right = map(of, x.inputs)
    return None if left is None or right is None or x.rank != 2 else times(left, turned(right))


def _sum(x: Tensor, of: Any) -> Any:
    parts = [_stretched(i, x.shape, of) for i in x.inputs]
    return None if None in parts else plus(*parts)


def _multiple(x: Tensor, of: Any) -> Any:
    c, rest = split_scalar(x)
    if c == 1 and x.rank == 2:
        return _scaled(x, of)
    if c == 1 or rest is None or not c.is_finite:
        return None
    inside = _stretched(rest, x.shape, of)
    return None if inside is None else scaled(c, inside)


def _scaled(x: Tensor, of: Any) -> Any:
    """A matrix with its rows or columns scaled by a vector: a product with a diagonal matrix."""
    for v, matrix in (x.inputs, x.inputs[::-1]):
        inside = of(matrix)
        if inside is None or not same_shape(matrix.shape, x.shape):
            continue
        if v.rank == 2 and v.shape[1] == 1 and same_size(v.shape[0], x.shape[0]) and is_letter(v):
            return times({(Letter(diag(squeeze(v, -1))),): sympy.S.One}, inside)
        if v.rank == 1 and same_size(v.shape[0], x.shape[1]) and is_letter(v):
            return times(inside, {(Letter(diag(v)),): sympy.S.One})
    return None


def _repeated(x: Tensor, of: Any) -> Any:
    return _stretched(x.inputs[0], x.shape, of)


def _stretched(x: Tensor, shape: Any, of: Any) -> Any:
    """A tensor that is repeated along the axes it has not: a product with ones."""
    inside = of(x)
    if inside is None or same_shape(x.shape, shape):
        return inside
    if x.rank == 0 and len(shape) == 1:
        return times({(Letter(ones(*shape)),): sympy.S.One}, inside)
    if x.rank == 0 and len(shape) == 2:
        first, last = ((Letter(ones(n)),) for n in shape)
        return times(times({first: sympy.S.One}, inside), turned({last: sympy.S.One}))
    if x.rank == 1 and len(shape) == 2 and same_size(x.shape[0], shape[1]):
        return times({(Letter(ones(shape[0])),): sympy.S.One}, turned(inside))
    return None


def _total(x: Tensor, of: Any) -> Any:
    """A sum over axes, each a product with ones."""
    a, axes = x.inputs[0], set(x.params["axes"])
    if x.params["keepdims"]:
        return None
    if x.rank == 0 and a.rank == 1 and (factors := _factors(a)) is not None:
        left, right = (None if of(y) is None or y.rank != 1 else of(y) for y in factors)
        return None if left is None or right is None else times(turned(left), right)
    inside = of(a)
    if inside is None:
        return None
    if -a.rank in axes:
        inside = times({(Letter(ones(a.shape[0]), transposed=True),): sympy.S.One}, inside)
    if -1 in axes and a.rank == 2:
        inside = times(inside, {(Letter(ones(a.shape[1])),): sympy.S.One})
    return turned(inside) if a.rank == 2 and axes == {-2} else inside


def _factors(x: Tensor) -> tuple[Tensor, Tensor] | None:
    """Two factors of a product entry by entry, of which neither is a number."""
    if x.op is power_op and scalar_value(x.inputs[1]) == 2:
        return x.inputs[0], x.inputs[0]
    if x.op is multiply_op and split_scalar(x)[0] == 1:
        return x.inputs[0], x.inputs[1]
    return None


_READERS: dict[Any, Callable[[Tensor, Any], Any]] = {
    transpose_op: _transpose,
    inv_op: _inverse,
    matmul_op: _product,
    outer_op: _outer_product,
    add_op: _sum,
    multiply_op: _multiple,
    broadcast_to_op: _repeated,
    sum_op: _total,
}


def written(words: Words, shape: Any) -> Tensor:
    """The tensor of a shape that a polynomial is."""
    parts = [multiply(words[word], _of_word(word, shape)) for word in sorted(words, key=in_order)]
    return sum_of(parts) if parts else zeros(*shape)


def _of_word(word: Word, shape: Any) -> Tensor:
    if not word:
        return eye(shape[0]) if shape else constant(formula=sympy.S.One)
    return reduce(_times, map(_factor, word))[0]


Factor = tuple[Tensor, bool, bool]  # a tensor, whether it has rows, and whether it has columns


def _times(left: Factor, right: Factor) -> Factor:
    (a, rows, inner), (b, again, columns) = left, right
    if inner:
        product = matmul_of(a, b, (1 + rows, 1 + columns))
    else:
        product = outer(a, b) if rows and columns else multiply(a, b)
    assert inner == again
    return product, rows, columns


def _factor(letter: Letter) -> Factor:
    x = inv(letter.tensor) if letter.inverted else letter.tensor
    rows, columns = (end is not None for end in letter.ends)
    return matrix_transpose(x) if letter.transposed and x.rank == 2 else x, rows, columns
