"""Positions that enter through the tokens or through queries and keys: sinusoids, tables, rotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from ..core.arguments import one_of
from ..core.exact import as_scalar
from ..core.node import Tensor
from ..core.sizes import as_size, quotient, same_size
from ..errors import OperandError, ShapeError
from ..ops.arithmetic import add, divide, multiply
from ..ops.gather import take
from ..ops.layout import concat, merge_axes, split_axis
from ..ops.leaves import as_tensor, from_index, named, scalar_value
from ..ops.pointwise import cos as cosine
from ..ops.pointwise import maximum, minimum
from ..ops.pointwise import sin as sine
from ..ops.slicing import getitem
from .options import exactly, operand, same, scalar

TWO = sympy.Integer(2)


def sinusoidal(T: Any, d: Any, *, base: Any = 10000, layout: str = "interleaved", offset: Any = 0) -> Tensor:
    """Positions as waves, a constant E_pos[T, d]: ``sin(p * base**(-2c/d))`` and its cosine for a pair c of features.

    ``layout`` says where a pair stands: at 2c and 2c + 1 ("interleaved", the default, as in the paper), or at c and
    c + d/2 ("half", all sines first; tensor2tensor and fairseq stand so too, but divide by d/2 - 1 in the exponent).
    Row p is position p + ``offset``, a number or a symbol, 0 by default. Where a symbolic d turns out to be odd, the
    last pair has no cosine if interleaved, and "half" is refused.
    Raises ShapeError for an odd width and OperandError for a base that is not positive.
    Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.5.

    >>> import symattn as sa
    >>> sa.attention.sinusoidal(2, 4)[1].as_explicit().T
    Matrix([[sin(1), cos(1), sin(1/100), cos(1/100)]])
    """
    width, b, start = as_size(d), _positive("sinusoidal", "base", base), as_scalar(offset)
    pairs = _pairs("sinusoidal", width)

    def angle(p: Any, c: Any) -> Any:
        return (p + start) * b ** (-2 * c / width)

    if one_of("sinusoidal", "layout", layout, "interleaved", "half") == "half":
        tables = [from_index((T, pairs), lambda p, c, f=f: f(angle(p, c))) for f in (sympy.sin, sympy.cos)]
        return named("E_pos", concat(tables, axis=-1))

    def entry(p: Any, k: Any) -> Any:
        turned = angle(p, sympy.floor(k / 2))
        return sympy.Piecewise((sympy.sin(turned), sympy.Eq(sympy.Mod(k, 2), 0)), (sympy.cos(turned), True))

    return named("E_pos", from_index((T, width), entry))


def embed(tokens: Any, W_e: Any, W_p: Any = None) -> Tensor:
    """Tokens as rows of a table, and their places as rows of another, ``X[t] = W_e[tokens[t]] + W_p[t]``.

    tokens[.., T], an integer tensor, W_e[n, d], W_p[C, d] with C >= T, by default none; X[.., T, d]. The compiled
    function raises EvaluationError for a token that is not in the table. Raises OperandError for tokens that are not
    declared integer and ShapeError for tables that do not fit.
    Source: GPT-2 and BERT add a table of positions; Vaswani et al. 2017 (arXiv:1706.03762), section 3.5, compares.

    >>> import symattn as sa
    >>> tokens = sa.tensor("t", "T", integer=True)
    >>> sa.attention.embed(tokens, sa.tensor("W_e", "n d"), sa.tensor("W_p", "C d")).shape
    (T, d)
    """
    places, table = operand("embed", tokens, 1, "tokens[.., T]"), exactly("embed", W_e, "W_e[n, d]")
    rows = take(table, places, axis=-2)
    if W_p is None:
        return named("X", rows)
    positions = exactly("embed", W_p, "W_p[C, d]")
    same("embed", positions, -1, table, -1, "their width")
    length = places.shape[-1]
    if (positions.shape[0] - length).is_negative:
        raise ShapeError(f"embed: {positions.brief()} has no row for each of the {length} places of {places.brief()}")
    return named("X", add(rows, getitem(positions, slice(None, length))))


def rotate(X: Any, cos: Any, sin: Any, *, layout: str = "half", width: Any = None) -> Tensor:
    """Each pair (a, b) of features turned by its angle, ``(a cos - b sin, a sin + b cos)``.

    X[.., T, d], cos[.., T, m] and sin[.., T, m], one column a pair, which broadcast along the axes in front (tables of
    width d that hold each angle twice, as in transformers, are cut to their first half or every second column). Of
    the d features the first ``width`` = 2m are turned (default d), the others stay. ``layout`` says which make a pair:
    "half" c and c + m (the default; GPT-NeoX, Llama in transformers, ONNX with interleaved=0), "interleaved" 2c and
    2c + 1 (RoFormer, Meta's Llama, GPT-J). Raises ShapeError for an odd width and for angles that do not fit.
    Source: Su et al. 2021 (arXiv:2104.09864), equation 34; ONNX operator RotaryEmbedding.

    >>> import symattn as sa
    >>> X, cos, sin = sa.tensor("X", 2, 4), sa.tensor("c", 2, 2), sa.tensor("s", 2, 2)
    >>> [sa.attention.rotate(X, cos, sin, layout=layout).as_explicit()[1, 0] for layout in ("half", "interleaved")]
    [X[1, 0]*c[1, 0] - X[1, 2]*s[1, 0], X[1, 0]*c[1, 0] - X[1, 1]*s[1, 0]]
    """
    x, c, s = operand("rotate", X, 2, "X[.., T, d]"), as_tensor(cos), as_tensor(sin)
    turned = _width("rotate", x, width)
    pairs = _pairs("rotate", turned)
    for table, meant in ((c, "cos[.., T, m]"), (s, "sin[.., T, m]")):
        _fits("rotate", table, meant, x, pairs)
    name = (x.name or "X").rstrip("'")
    if one_of("rotate", "layout", layout, "half", "interleaved") == "half":
        a = named(f"{name}_left", getitem(x, (..., slice(None, pairs))))
        b = named(f"{name}_right", getitem(x, (..., slice(pairs, turned))))
        rotated = concat([a * c - b * s, a * s + b * c], axis=-1)
    else:
        split = split_axis(getitem(x, (..., slice(None, turned))), -1, (pairs, TWO))
        a, b = named(f"{name}_even", getitem(split, (..., 0))), named(f"{name}_odd", getitem(split, (..., 1)))
        columns = [getitem(part, (..., None)) for part in (a * c - b * s, a * s + b * c)]
        rotated = merge_axes(concat(columns, axis=-1), (-2, -1))
    if not same_size(turned, x.shape[-1]):
        rotated = concat([rotated, getitem(x, (..., slice(turned, None)))], axis=-1)
    return named(f"{name}_rot", rotated)


def rotary(
    X: Any,
    *,
    base: Any = 10000,
    layout: str = "half",
    offset: Any = 0,
    width: Any = None,
    positions: Any = None,
    frequencies: Any = None,
    scale: Any = 1,
) -> Tensor:
    """Rotary positions (RoPE): pair c of the features of row p turned by the angle ``p * base**(-2c/d)``.

    X[.., T, d], queries or keys, and the result likewise; ``layout`` and ``width`` (which then stands for d) are those
    of ``rotate``. Row p stands at position p + ``offset`` (default 0; a number, a symbol or a tensor without axes), or
    at ``positions``[.., T] + ``offset``, which broadcast with X[.., T, d]: for a batch of several heads they are
    ``positions[:, None]``. ``frequencies``[m] stand for base**(-2c/d), and ``scale``, also a scalar, multiplies what is
    turned (the attention factor of YaRN). A symbolic d has to be even, which the compiled function holds against the
    arrays; for a proof put ``.subs({d: 2*m})``. Raises ShapeError for an odd width and for positions or frequencies
    that do not fit, and OperandError for a base that is not positive.
    Source: Su et al. 2021 (arXiv:2104.09864), equations 15 and 34.

    >>> import symattn as sa
    >>> s, (T, m) = sa.sizes("s"), sa.sizes("T m")
    >>> Q, K = sa.tensor("Q", T, 2 * m), sa.tensor("K", T, 2 * m)
    >>> shifted = sa.attention.rotary(Q, offset=s) @ sa.attention.rotary(K, offset=s).T
    >>> sa.prove(shifted, sa.attention.rotary(Q) @ sa.attention.rotary(K).T).status
    'proved'
    """
    x = operand("rotary", X, 2, "X[.., T, d]")
    turned, length, b = _width("rotary", x, width), x.shape[-2], _positive("rotary", "base", base)
    pairs = _pairs("rotary", turned)
    by, grown = scalar("rotary", "offset", offset), scalar("rotary", "scale", scale)
    start, factor = scalar_value(by), scalar_value(grown)
    if positions is None and frequencies is None and start is not None and factor is not None:

        def table(name: str, function: Callable[[Any], Any]) -> Tensor:
            return named(
                name, from_index((length, pairs), lambda p, c: factor * function((p + start) * b ** (-2 * c / turned)))
            )

        return rotate(x, table("C_theta", sympy.cos), table("S_theta", sympy.sin), layout=layout, width=turned)
    places = from_index((length,), lambda p: p) if positions is None else operand("rotary", positions, 1, "p[.., T]")
    if not same_size(places.shape[-1], length):
        raise ShapeError(f"rotary: the positions {places.brief()} are not one for each row of {x.brief()}")
    if frequencies is None:
        omega = named("omega", from_index((pairs,), lambda c: b ** (-2 * c / turned)))
    else:
        omega = exactly("rotary", frequencies, "frequencies[m]")
        if not same_size(omega.shape[-1], pairs):
            raise ShapeError(f"rotary: the frequencies {omega.brief()} are not one for each of the {pairs} pairs")
    theta = named("Theta", getitem(add(places, by), (..., None)) * omega)
    c, s = (named(name, multiply(grown, f(theta))) for name, f in (("C_theta", cosine), ("S_theta", sine)))
    return rotate(x, c, s, layout=layout, width=turned)


def yarn_frequencies(
    width: Any, *, factor: Any, length: Any, base: Any = 10000, slow: Any = 1, fast: Any = 32, ramp: str = "rotations"
) -> Tensor:
    """Rotary frequencies for a context that is ``factor`` times as long, ``omega = (1 - g) theta / factor + g theta``.

    A constant of width/2 frequencies, for ``rotary(..., frequencies=)``. A pair that turns at least ``fast`` times
    (default 32) within the old ``length`` keeps theta = base**(-2c/width), g = 1; one that turns at most ``slow``
    times (default 1) is interpolated, g = 0. Between them g is linear in the number of turns, length theta / (2 pi),
    as in the paper (``ramp="rotations"``, the default), or in c between rounded ends (``ramp="index"``; the authors'
    code, transformers, DeepSeek), for which all must be numbers. Raises ShapeError for an odd width.
    Source: Peng et al. 2023 (arXiv:2309.00071), section 3.2.

    >>> import symattn as sa
    >>> sa.attention.yarn_frequencies(8, factor=4, length=100)[2:].as_explicit().T
    Matrix([[1/400, 1/4000]])
    """
    turned, b = as_size(width), _positive("yarn_frequencies", "base", base)
    pairs = _pairs("yarn_frequencies", turned)
    given = {"factor": factor, "length": length, "slow": slow, "fast": fast}
    s, old, low, high = (_positive("yarn_frequencies", name, x) for name, x in given.items())
    if (high - low).is_positive is False:
        raise OperandError(f"yarn_frequencies: fast={high} is not more turns than slow={low}")
    theta = named("theta", from_index((pairs,), lambda c: b ** (-2 * c / turned)))
    if one_of("yarn_frequencies", "ramp", ramp, "rotations", "index") == "rotations":
        turns = named("r", multiply(old / (2 * sympy.pi), theta))
        kept = divide(turns - low, high - low)
    else:
        if (b - 1).is_positive is False:
            raise OperandError(f"yarn_frequencies: the base is more than 1, not {b}")
        ends = [turned * sympy.log(old / (n * 2 * sympy.pi)) / (2 * sympy.log(b)) for n in (high, low)]
        if not all(end.is_number for end in ends):
            raise OperandError('yarn_frequencies: ramp="index" rounds: width, length, base, slow and fast are numbers')
        first, last = sympy.Max(sympy.floor(ends[0]), 0), sympy.Min(sympy.ceiling(ends[1]), turned - 1)
        last = last + sympy.Rational(1, 1000) if first == last else last  # a step, as in the authors' code
        kept = from_index((pairs,), lambda c: (last - c) / (last - first))
    gamma = named("gamma", minimum(maximum(kept, 0), 1))
    return named("omega", add(divide(multiply(1 - gamma, theta), s), multiply(gamma, theta)))


def yarn_scale(factor: Any) -> sympy.Expr:
    """The attention factor of YaRN, ``log(factor) / 10 + 1``, for ``rotary(..., scale=)`` of queries and of keys.

    For a factor of at most 1 it is 1, as in the authors' code.
    Source: Peng et al. 2023 (arXiv:2309.00071), section 3.4.

    >>> import symattn as sa
    >>> sa.attention.yarn_scale(4)
    log(4)/10 + 1
    """
    s = as_scalar(factor)
    return sympy.S.One if s.is_number and s <= 1 else 1 + sympy.log(s) / 10


# --- what is checked ---


def _positive(what: str, name: str, given: Any) -> sympy.Expr:
    value = as_scalar(given)
    if value.is_positive is False:
        raise OperandError(f"{what}: the {name} is positive, not {value}")
    return value


def _pairs(what: str, width: sympy.Expr) -> sympy.Expr:
    """How many pairs of features there are; that 2 divides a symbolic width is a condition on its value."""
    if width.is_odd:
        raise ShapeError(f"{what}: features are turned in pairs, and {width} of them is an odd number")
    return quotient(width, TWO)


def _width(what: str, x: Tensor, width: Any) -> sympy.Expr:
    turned = x.shape[-1] if width is None else as_size(width)
    if (x.shape[-1] - turned).is_negative:
        raise ShapeError(f"{what}: width={turned} is more than the {x.shape[-1]} features of {x.brief()}")
    return turned


def _fits(what: str, table: Tensor, meant: str, x: Tensor, pairs: sympy.Expr) -> None:
    """The angles have a column for each pair, a row for each position or one for all, and no more axes than x."""
    if not 1 <= table.rank <= x.rank or not same_size(table.shape[-1], pairs):
        raise ShapeError(
            f"{what}: {table.brief()} is not {meant} with a column for each of the {pairs} pairs of {x.brief()}"
        )
    if table.rank > 1 and table.shape[-2] != 1 and not same_size(table.shape[-2], x.shape[-2]):
        raise ShapeError(f"{what}: {table.brief()} is not {meant} with a row for each row of {x.brief()}")
