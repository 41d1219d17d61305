"""Positions that enter through the scores: biases by the distance of query and key, and embeddings of the distance.

Query i stands at place i + ``offset`` among the keys: 0 by default, S - T where the queries are the last T of S places;
an integer or an integer expression of sizes, as in ``causal_mask``. Biases have the shape [.., T, S], with S = T by
default and heads in front, and go to ``scaled_dot_product(..., bias=)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex, Unpack

import sympy

from ..core.arguments import few, flag, one_of
from ..core.node import Tensor
from ..core.sizes import as_size, same_size
from ..errors import OperandError, ShapeError, described
from ..ops.arithmetic import add, divide, multiply, negative
from ..ops.contraction import einsum
from ..ops.gather import flip, shift, take, whole_number
from ..ops.layout import concat, matrix_transpose, moveaxis
from ..ops.leaves import as_tensor, from_index, named
from ..ops.pointwise import abs as absolute
from ..ops.pointwise import log1p, maximum, power, relu, sign
from ..ops.slicing import getitem
from .dot_product import attention_pooling, probabilities, scaled
from .masks import causal_mask
from .options import Masking, exactly, kept_causal, operand, same, scalar
from .positions import sinusoidal

_MOST_BUCKETS = 256
_FURTHEST = 2**63 - 1  # a distance that positions in arrays can have

# --- linear biases ---


def alibi_slopes(heads: Any, *, rule: str = "paper") -> Tensor:
    """The slopes of ALiBi, ``m[a] = 2**(-8(a + 1)/h)`` for head a of h: 1/2, 1/4, ..., 1/256 for eight heads.

    A constant of ``heads`` numbers. For a number of heads that is no power of two, ``rule="paper"`` (the default; the
    authors' code, transformers) takes the slopes of the power n below it, and then every other slope of 2n, from the
    first; ``"geometric"`` uses the formula for every h, also a symbolic one. Raises OperandError for a symbolic number
    of heads under "paper".
    Source: Press et al. 2021 (arXiv:2108.12409), section 3, and the authors' code.

    >>> import symattn as sa
    >>> [list(sa.attention.alibi_slopes(h).as_explicit()) for h in (2, 3)]
    [[1/16, 1/256], [1/16, 1/256, 1/4]]
    """
    h = as_size(heads)
    if one_of("alibi_slopes", "rule", rule, "paper", "geometric") == "geometric":
        return named("m", from_index((h,), lambda a: 2 ** (-8 * (a + 1) / h)))
    if not h.is_Integer:
        raise OperandError(
            f'alibi_slopes: the rule "paper" depends on the number of heads, and {h} is a symbol; give a number, or '
            'rule="geometric" for 2**(-8(a + 1)/h) whatever h is'
        )
    n = 2 ** (int(h).bit_length() - 1)

    def slope(a: Any) -> Any:
        first = sympy.Integer(2) ** (sympy.Rational(-8, n) * (a + 1))
        between = sympy.Integer(2) ** (sympy.Rational(-4, n) * (2 * (a - n) + 1))
        return first if n == h else sympy.Piecewise((first, a < n), (between, True))

    return named("m", from_index((h,), slope))


def alibi(T: Any, S: Any = None, *, slopes: Any, symmetric: bool = False, offset: Any = 0) -> Tensor:
    """Linear biases (ALiBi), ``B[a, i, j] = -m[a] (i - j)``: the farther back a key, the lower its score.

    ``slopes`` m[.., h], for example ``alibi_slopes(h)``, or one scalar; B[.., h, T, S]. It is meant for a causal mask:
    later keys would be favoured; ``symmetric=True`` has |i - j| instead. Under a mask that is causal, m[a] j is the
    same bias. Raises OperandError for an offset that is not whole.
    Source: Press et al. 2021 (arXiv:2108.12409), section 3.

    >>> import symattn as sa
    >>> print(sa.attention.alibi("T", slopes=sa.tensor("m")).inputs[0])
    m * from_index((T, T), lambda i, j: -i + j)
    """
    if isinstance(slopes, SupportsIndex) or (isinstance(slopes, sympy.Symbol) and slopes.is_integer):
        # easily meant as a number of heads, of which there is no sign in a scalar
        count = described(slopes)
        raise OperandError(
            f"alibi: slopes={count} is no tensor of slopes: for {count} heads give alibi_slopes({count})"
        )
    both_ways = flag("alibi", "symmetric", symmetric)
    distance = _by_distance("alibi", T, S, offset, lambda far: -sympy.Abs(far) if both_ways else -far)
    return named("B", multiply(_per_head(slopes), distance))


# --- biases from a table ---


def t5_bucket(
    T: Any, S: Any = None, *, buckets: int = 32, max_distance: int = 128, bidirectional: bool = True, offset: Any = 0
) -> Tensor:
    """The bucket of each distance in T5, an integer constant [T, S]: one for each short one, then ranges that grow.

    Of n buckets (``buckets``, or half of them for each direction where ``bidirectional``: later keys have the upper
    half) the first e = n/2 hold the distances 0, ..., e - 1, and bucket e + k begins at the first distance x with
    ``log(x/e) / log(max_distance/e) * (n - e) >= k``; the last has no end. Without ``bidirectional`` later keys have
    bucket 0. Where a bucket begins is decided exactly; transformers computes the logarithms in float32. Raises
    OperandError for numbers of buckets that cannot be halved, and a ``max_distance`` that is not above e.
    Source: Raffel et al. 2019 (arXiv:1910.10683), section 2.1, and the authors' code.

    >>> import symattn as sa
    >>> sa.attention.t5_bucket(1, 6, buckets=8, max_distance=8).as_explicit()
    Matrix([[0, 5, 6, 6, 7, 7]])
    """
    for name, value in (("buckets", buckets), ("max_distance", max_distance)):
        if isinstance(value, bool) or not isinstance(value, (int, sympy.Integer)):
            raise OperandError(f"t5_bucket: {name} is a number, not {described(value)}")
    total, parts = int(buckets), 4 if flag("t5_bucket", "bidirectional", bidirectional) else 2
    if total < parts or total % parts:
        raise OperandError(f"t5_bucket: {described(total)} buckets are not {parts} equal parts")
    few("t5_bucket", total, "buckets", _MOST_BUCKETS)
    if max_distance > _FURTHEST:
        raise OperandError(f"t5_bucket: max_distance is below 2**63, not {described(max_distance)}")
    n = total // 2 if bidirectional else total
    exact = n // 2
    if max_distance <= exact:
        raise OperandError(
            f"t5_bucket: max_distance={max_distance} is not above {exact}, where the ranges begin to grow"
        )
    begins = [_t5_begin(k, exact, n - exact, int(max_distance)) for k in range(n - exact)]

    def bucket(far: Any) -> Any:
        x = sympy.Abs(far) if bidirectional else far
        rows = [(exact + k, x < end) for k, end in enumerate(begins[1:])]
        first = [] if bidirectional else [(0, far < 0)]
        own = sympy.Piecewise(*first, (x, x < exact), *rows, (n - 1, True))
        return own + n * sympy.Piecewise((1, far < 0), (0, True)) if bidirectional else own

    return _by_distance("t5_bucket", T, S, offset, bucket)


def _t5_begin(k: int, exact: int, larger: int, furthest: int) -> int:
    """The first distance x with ``(x/exact)**larger >= (furthest/exact)**k``, in whole numbers."""
    low, high = exact, furthest  # at the furthest it holds, as k < larger
    while low < high:
        x = (low + high) // 2
        low, high = (low, x) if x**larger * exact**k >= furthest**k * exact**larger else (x + 1, high)
    return low


def t5_bias(
    T: Any, S: Any, table: Any, *, max_distance: int = 128, bidirectional: bool = True, offset: Any = 0
) -> Tensor:
    """Relative biases from a table (T5), ``B[a, i, j] = table[a, bucket(i - j)]``.

    table[.., h, n] with one number a bucket, or [n]; B[.., h, T, S]. transformers has the table as [n, h]: give its
    ``.T``. The keywords are those of ``t5_bucket``; n is a number. T5 does not divide the scores by sqrt(d):
    ``scaled_dot_product(..., scale=1, bias=B)``. Raises ShapeError for a table of symbolic width.
    Source: Raffel et al. 2019 (arXiv:1910.10683), section 2.1.

    >>> import symattn as sa
    >>> sa.attention.t5_bias("T", "S", sa.tensor("b", "h", 32)).shape
    (h, T, S)
    """
    numbers = operand("t5_bias", table, 1, "table[.., n]")
    if not numbers.shape[-1].is_Integer:
        raise ShapeError(f"t5_bias: the buckets of {numbers.brief()} are counted by a symbol: give their number")
    size = int(numbers.shape[-1])
    at = t5_bucket(T, S, buckets=size, max_distance=max_distance, bidirectional=bidirectional, offset=offset)
    return named("B", take(numbers, named("N", at), axis=-1))


# --- functions of the distance ---


def kerple(T: Any, S: Any = None, *, r1: Any, r2: Any, form: str = "log", offset: Any = 0) -> Tensor:
    """Kernelized biases (KERPLE), ``B = -r1 log(1 + r2 |i - j|)``, or ``-r1 |i - j|**r2`` for ``form="power"``.

    r1 and r2 are scalars or one number a head, [.., h]; B[.., h, T, S]. They are meant to be positive, and r2 <= 2 in
    the power form. Raises OperandError for another form.
    Source: Chi et al. 2022 (arXiv:2205.09921), the logarithmic and the power variant.

    >>> import symattn as sa
    >>> print(sa.attention.kerple("T", r1=sa.tensor("r1"), r2=sa.tensor("r2")).inputs[0])
    -r1 * log1p(r2 * from_index((T, T), lambda i, j: Abs(i - j)))
    """
    first, second = _per_head(r1), _per_head(r2)
    if one_of("kerple", "form", form, "log", "power") == "log":
        return named("B", negative(first * log1p(second * _by_distance("kerple", T, S, offset, sympy.Abs))))
    # 0**r2 is 0, but has no derivative by r2 in numbers: the distance 0 is taken as 1 and its power by 0
    away = _by_distance("kerple", T, S, offset, lambda far: sympy.Ne(far, 0))
    distance = _by_distance(
        "kerple", T, S, offset, lambda far: sympy.Piecewise((sympy.Abs(far), sympy.Ne(far, 0)), (1, True))
    )
    return named("B", negative(first * power(distance, second) * away))


def sandwich(T: Any, S: Any = None, *, ratios: Any, width: Any = 128, base: Any = 10000, offset: Any = 0) -> Tensor:
    """Inner products of sinusoids (Sandwich), ``B[a, i, j] = sum of cos((i - j) * base**(-2c/width)) / ratio[a]``.

    The sum is over width/2 pairs c. ``ratios`` [.., h], or one scalar; the authors take 8(a + 1)/h for head a of h.
    B[.., h, T, S]. Raises ShapeError for an odd width.
    Source: Chi et al. 2022 (arXiv:2212.10356).

    >>> import symattn as sa
    >>> sa.attention.sandwich("T", "S", ratios=sa.tensor("r", "h")).shape
    (h, T, S)
    """
    start = whole_number(offset, "sandwich: the offset")
    queries = sinusoidal(T, width, base=base, offset=start, layout="half")
    keys = sinusoidal(T if S is None else S, width, base=base, layout="half")
    return named("B", divide(queries @ matrix_transpose(keys), _per_head(ratios)))


def fire(T: Any, S: Any = None, *, c: Any, L: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any, offset: Any = 0) -> Tensor:
    """Biases by a small network (FIRE), ``B[a, i, j] = f(psi(i - j) / psi(max(L, i)))[a]``, ``psi(x) = log(1 + c x)``.

    ``f(x) = relu(x W_1 + b_1) @ W_2 + b_2`` with W_1[r], b_1[r], W_2[r, h], b_2[h]; c and L are positive scalars;
    B[h, T, S]. As in the authors' code later keys have |i - j|, and places are counted from 0; it adds 1e-6 to the
    denominator. Raises ShapeError for weights that do not fit.
    Source: Li et al. 2023 (arXiv:2310.04418), section 3.

    >>> import symattn as sa
    >>> weights = {"W_1": "r", "b_1": "r", "W_2": "r h", "b_2": "h"}
    >>> given = {name: sa.tensor(name, shape) for name, shape in weights.items()}
    >>> sa.attention.fire("T", c=sa.tensor("c"), L=sa.tensor("L"), **given).shape
    (h, T, T)
    """
    start, rate = whole_number(offset, "fire: the offset"), scalar("fire", "c", c)
    places = from_index((as_size(T),), lambda i: i + start)
    furthest = getitem(maximum(scalar("fire", "L", L), places), (..., None))
    distance = _by_distance("fire", T, S, offset, sympy.Abs)
    x = named("X", log1p(rate * distance) / log1p(rate * furthest))
    return _network("fire", getitem(x, (..., None)) * exactly("fire", W_1, "W_1[r]"), b_1, W_2, b_2)


def log_cpb(rows: Any, columns: Any, *, W_1: Any, b_1: Any, W_2: Any) -> Tensor:
    """Biases of a window of an image by a small network (Swin v2), ``B[a, i, j] = (relu(x W_1 + b_1) @ W_2)[a]``.

    x holds ``sign(t) log(1 + |t|)`` of the row and of the column of token i less those of token j; token i stands in
    row i // columns. W_1[2, r], b_1[r], W_2[r, h]; B[h, n, n] with n = rows * columns. The authors' code goes further:
    it scales t to [-8, 8], takes logarithms to the base 8, and has 16 sigmoid(B). Raises ShapeError for weights that do
    not fit.
    Source: Liu et al. 2021 (arXiv:2111.09883), section 3.3.

    >>> import symattn as sa
    >>> weights = {"W_1": "2 r", "b_1": "r", "W_2": "r h"}
    >>> given = {name: sa.tensor(name, shape) for name, shape in weights.items()}
    >>> sa.attention.log_cpb("H", "W", **given).shape
    (h, H*W, H*W)
    """
    width, first = as_size(columns), exactly("log_cpb", W_1, "W_1[2, r]")
    n = as_size(rows) * width

    down = from_index((n, n), lambda i, j: sympy.floor(i / width) - sympy.floor(j / width))
    across = from_index((n, n), lambda i, j: sympy.Mod(i, width) - sympy.Mod(j, width))
    t = named("t", concat([getitem(part, (..., None)) for part in (down, across)], axis=-1))
    x = named("X", multiply(sign(t), log1p(absolute(t))))
    same("log_cpb", first, -2, x, -1, "the number of coordinates")
    return _network("log_cpb", x @ first, b_1, W_2)


def _network(what: str, x: Tensor, b_1: Any, W_2: Any, b_2: Any = None) -> Tensor:
    """Numbers for each pair of places, one a head, from what goes into a hidden layer; heads come in front."""
    shift_1, second = exactly(what, b_1, "b_1[r]"), exactly(what, W_2, "W_2[r, h]")
    same(what, shift_1, -1, x, -1, "the hidden width")
    same(what, second, -2, x, -1, "the hidden width")
    out = named("H", relu(x + shift_1)) @ second
    if b_2 is not None:
        shift_2 = exactly(what, b_2, "b_2[h]")
        same(what, shift_2, -1, second, -1, "the number of heads")
        out = out + shift_2
    return named("B", moveaxis(out, -1, 0))


# --- embeddings of the distance ---


def transformer_xl(
    Q: Any, K: Any, V: Any, R: Any, u: Any, w: Any, *, scale: Any = None, **masking: Unpack[Masking]
) -> Tensor:
    """Attention with relative positions (Transformer-XL), ``Z[i, j] = ((q_i + u) k_j + (q_i + w) r_{i-j}) / sqrt(d)``.

    Q[.., T, d], K[.., S, d], V[.., S, e] where the queries are the last T of S places (memory in front), u[.., d] and
    w[.., d]; O[.., T, e]. R[.., S, d], row x for the distance x, is projected already; the authors' code has its rows
    from the farthest to the nearest (``sa.flip``). ``scale`` is 1/sqrt(d) by default. It is causal; a mask of
    ``Masking`` takes away more. Raises ShapeError for shapes that do not fit.
    Source: Dai et al. 2019 (arXiv:1901.02860), section 3.3 and appendix B.

    >>> import symattn as sa
    >>> Q, K, V, R = (sa.tensor(name, "T d") for name in "QKVR")
    >>> sa.attention.transformer_xl(Q, K, V, R, sa.tensor("u", "d"), sa.tensor("w", "d")).shape
    (T, d)
    """
    queries, keys = operand("transformer_xl", Q, 2, "Q[.., T, d]"), operand("transformer_xl", K, 2, "K[.., S, d]")
    relative = operand("transformer_xl", R, 2, "R[.., S, d]")
    same("transformer_xl", queries, -1, keys, -1, "their width")
    same("transformer_xl", relative, -1, keys, -1, "their width")
    same("transformer_xl", relative, -2, keys, -2, "the number of distances and keys")
    given = {name: operand("transformer_xl", x, 1, f"{name}[.., d]") for name, x in (("u", u), ("w", w))}
    for x in given.values():
        same("transformer_xl", x, -1, queries, -1, "their width")
        if x.rank >= queries.rank:
            raise ShapeError(f"transformer_xl: {x.brief()} has axes in front that {queries.brief()} lacks")
    content, place = (getitem(x, (..., None, slice(None))) for x in given.values())
    T, S = queries.shape[-2], keys.shape[-2]
    by_content = named("A", (queries + content) @ matrix_transpose(keys))
    farthest_first = (queries + place) @ matrix_transpose(flip(relative, -2))  # column S - 1 - x is the distance x
    by_place = named("B", shift(farthest_first, lambda *index: T - 1 - index[-1]))
    z = named("Z", scaled("transformer_xl", by_content + by_place, queries.shape[-1], scale))
    keep = kept_causal("transformer_xl", z, causal_mask(T, S, align="bottom-right"), masking)
    return attention_pooling(probabilities(z, mask=keep, empty=masking.get("empty", "zero")), V)


def relative_rows(table: Any, T: Any, S: Any = None, *, offset: Any = 0) -> Tensor:
    """The row of a table for each pair of places, ``a[i, j] = table[clip(j - i, -c, c) + c]``.

    table[.., 2c + 1, d]; a[.., T, S, d]. Farther than c apart, all pairs share a row. Raises ShapeError for a table
    whose number of rows is not odd.
    Source: Shaw et al. 2018 (arXiv:1803.02155), section 3.2.

    >>> import symattn as sa
    >>> c = sa.sizes("c")
    >>> sa.attention.relative_rows(sa.tensor("A", 2 * c + 1, "d"), "T").shape
    (T, T, d)
    """
    rows = operand("relative_rows", table, 2, "table[.., 2c + 1, d]")
    c = sympy.expand((rows.shape[-2] - 1) / 2)
    if not c.is_integer:
        raise ShapeError(
            f"relative_rows: {rows.brief()} has {rows.shape[-2]} rows where an odd number is meant, one "
            "for each distance from -c to c: declare it as 2*c + 1"
        )
    at = _by_distance(
        "relative_rows",
        T,
        S,
        offset,
        lambda far: sympy.Piecewise((2 * c, far < -c), (0, far > c), (c - far, True)),
    )
    return take(rows, named("n", at), axis=-2)


def shaw(
    Q: Any,
    K: Any,
    V: Any,
    A_k: Any,
    A_v: Any = None,
    *,
    scale: Any = None,
    offset: Any = 0,
    **masking: Unpack[Masking],
) -> Tensor:
    """Attention with relative embeddings (Shaw), ``Z[i, j] = q_i (k_j + a_ij) / sqrt(d)``.

    ``O[i]`` is the sum of ``P[i, j] (v_j + b_ij)``. Q[.., T, d], K[.., S, d], V[.., S, e]; O[.., T, e]. A_k is a[.., T,
    S, d], or a table [2c + 1, d] of which ``relative_rows`` gives a; A_v likewise b[.., T, S, e] or [2c + 1, e], by
    default none. ``scale`` is 1/sqrt(d) by default, ``offset`` is that of the tables. Raises ShapeError for shapes that
    do not fit.
    Source: Shaw et al. 2018 (arXiv:1803.02155), equations 3 and 4.

    >>> import symattn as sa
    >>> Q, K, V = sa.tensor("Q", "T d"), sa.tensor("K", "S d"), sa.tensor("V", "S e")
    >>> sa.attention.shaw(Q, K, V, sa.tensor("A_k", 9, "d"), sa.tensor("A_v", 9, "e")).shape
    (T, e)
    """
    queries, keys = operand("shaw", Q, 2, "Q[.., T, d]"), operand("shaw", K, 2, "K[.., S, d]")
    values = operand("shaw", V, 2, "V[.., S, e]")
    same("shaw", queries, -1, keys, -1, "their width")
    T, S = queries.shape[-2], keys.shape[-2]
    a = _pairwise("A_k", A_k, "a", T, S, keys, offset)
    relative = named("R", _paired("td,tsd->ts", queries, a))
    z = named("Z", scaled("shaw", queries @ matrix_transpose(keys) + relative, queries.shape[-1], scale))
    p = probabilities(z, **masking)
    if A_v is None:
        return attention_pooling(p, values)
    same("shaw", keys, -2, values, -2, "the number of keys and values")
    b = _pairwise("A_v", A_v, "b", T, S, values, offset)
    return named("O", add(p @ values, _paired("ts,tse->te", p, b)))


def _pairwise(name: str, given: Any, letter: str, T: Any, S: Any, of: Tensor, offset: Any) -> Tensor:
    """An embedding of each pair of places, gathered from a table or as it is given."""
    x = operand("shaw", given, 2, f"{name}[.., T, S, d] or {name}[2c + 1, d]")
    same("shaw", x, -1, of, -1, "their width")
    if x.rank == 2:
        return named(letter, relative_rows(x, T, S, offset=offset))
    if not same_size(x.shape[-3], T) or not same_size(x.shape[-2], S):
        raise ShapeError(f"shaw: {x.brief()} has not one embedding for each of {T} queries and {S} keys")
    return x


def _paired(subscripts: str, x: Tensor, a: Tensor) -> Tensor:
    """A contraction of a matrix and an embedding of pairs, each with axes in front, of which the last ones agree."""
    ins, out = subscripts.split("->")
    first, second = ins.split(",")
    lead = "cbaplkgh"  # any other letters; heads come last
    own, other = (lead[len(lead) - (y.rank - len(labels)) :] for y, labels in ((x, first), (a, second)))
    return einsum(f"{own}{first},{other}{second}->{max(own, other, key=len)}{out}", x, a)


# --- what they share ---


def _by_distance(what: str, T: Any, S: Any, offset: Any, formula: Callable[[Any], Any]) -> Tensor:
    """A constant by the distance of query and key, ``formula(i + offset - j)``."""
    rows, start = as_size(T), whole_number(offset, f"{what}: the offset")
    return from_index((rows, rows if S is None else as_size(S)), lambda i, j: formula(i + start - j))


def _per_head(x: Any) -> Tensor:
    """Numbers of heads where a bias has its heads, in front of two axes; a scalar is for all of them."""
    numbers = as_tensor(x)
    return getitem(numbers, (..., None, None)) if numbers.rank else numbers
