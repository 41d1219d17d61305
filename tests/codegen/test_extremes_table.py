"""Every function of the table at the extremes of three dtypes, forward and backward, against 50 digits.

The error may be 8 units in the last place times the condition of the exact function: how far it moves, beside its own
size, where each input, and each entry of the cotangent, moves by one unit in its last place. Functions of a row that
do not change with an offset are held to more: there an input moves by its distance from the largest only. Below the
smallest normal number, and beyond the largest, nothing is asked.
"""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import symattn as sa

from ..shares import one_in

A = sa.attention
T, n = sa.sizes("T n")
Z, W = sa.tensor("Z", T, n), sa.tensor("W", T, n)
y = sa.tensor("y", T, integer=True)
DTYPES = [np.float16, np.float32, np.float64]
ULPS = 8
DELTA = mpf(2) ** -70  # a relative movement, far below a unit of float64 and far above one of 50 digits
CLASS = 0
FAR = [0, 1e4, -1e4, 1e9, -1e9, 1e18, -1e18]
Row = list[Any]

# --- exact functions of a row ---


def softmax(x: Row) -> Row:
    top = max(x)
    weights = [mpf(0) if t == -mpmath.inf else mpmath.exp(t - top) for t in x]
    return [w / (mpmath.fsum(weights) or 1) for w in weights]


def rest(x: Row) -> Any:
    """The logarithm of the sum of exponentials less the largest."""
    top = max(x)
    if top == -mpmath.inf:
        return mpf(0)
    others = mpmath.fsum(mpmath.exp(t - top) for k, t in enumerate(x) if k != x.index(top))
    return mpmath.log1p(others) if others < 1 else mpmath.log(1 + others)


def log_softmax(x: Row) -> Row:
    return [t - max(x) - rest(x) for t in x]


def entropy(x: Row) -> Row:
    return [-mpmath.fsum(p * t for p, t in zip(softmax(x), log_softmax(x), strict=True) if p)]


def divergence(x: Row) -> Row:
    """KL(softmax(x) || softmax(x reversed))."""
    logs = log_softmax(x)
    return [mpmath.fsum(p * (s - t) for p, s, t in zip(softmax(x), logs, fixed(logs), strict=True))]


def fixed(x: Row) -> Row:
    return x[::-1]


def across(p: Row, c: Row) -> Row:
    """``p * (c - sum(p * c))`` without a difference of large numbers."""
    return [s * mpmath.fsum(t * (a - b) for t, b in zip(p, c, strict=True)) for s, a in zip(p, c, strict=True)]


def sigmoid(t: Any) -> Any:
    return 1 / (1 + mpmath.exp(-t))


def softplus(t: Any) -> Any:
    return max(t, 0) + mpmath.log1p(mpmath.exp(-abs(t)))


def cdf(t: Any) -> Any:
    if abs(t) > 1e9:
        return mpf(t > 0)
    return mpmath.erfc(-t / mpmath.sqrt(2)) / 2


def gelu_slope(t: Any) -> Any:
    return cdf(t) + t * mpmath.npdf(min(abs(t), mpf(10) ** 9))


def sech2(t: Any) -> Any:
    return 1 / mpmath.cosh(t) ** 2


def ratio_slope(t: Any) -> Any:
    """The derivative of tanh(t)/t, by its series where the difference would cancel."""
    if abs(t) > mpf(2) ** -20:
        return (t * sech2(t) - mpmath.tanh(t)) / t**2
    return -2 * t / 3 + 8 * t**3 / 15 - 34 * t**5 / 105


def exp_ratio_slope(t: Any) -> Any:
    """The derivative of expm1(t)/t."""
    if abs(t) > mpf(2) ** -20:
        return (t * mpmath.exp(t) - mpmath.expm1(t)) / t**2
    return mpf(1) / 2 + t / 3 + t**2 / 8 + t**3 / 30


def normed(x: Row, centred: bool, mean: bool) -> tuple[Row, Any]:
    """The row over its length, and what the inverse of that is."""
    if centred:
        x = [t - mpmath.fsum(x) / len(x) for t in x]
    r = 1 / mpmath.sqrt(mpmath.fsum(t * t for t in x) / (len(x) if mean else 1))
    return [t * r for t in x], r


def norm_back(x: Row, c: Row, centred: bool, mean: bool) -> Row:
    unit, r = normed(x, centred, mean)
    count = len(x) if mean else 1
    along = mpmath.fsum(s * a for s, a in zip(unit, c, strict=True)) / count
    back = [r * (a - s * along) for s, a in zip(unit, c, strict=True)]
    return [b - mpmath.fsum(back) / len(back) for b in back] if centred else back


def in_halves(f: Callable[..., Row], *rows: Row) -> Row:
    half = len(rows[0]) // 2
    return f(*(r[:half] for r in rows)) + f(*(r[half:] for r in rows))


def sparse(x: Row, power: int) -> Row:
    """Sparsemax (1) or 1.5-entmax (2), by trying the sizes of the support."""
    seen = [t for t in x if t > -mpmath.inf]
    if len(seen) < len(x):
        kept = iter(sparse(seen, power) if seen else ())
        return [next(kept) if t > -mpmath.inf else mpf(0) for t in x]
    z = [(t - max(x)) / power for t in x]
    for size in range(1, len(z) + 1):
        kept = sorted(z)[-size:]
        mean = mpmath.fsum(kept) / size
        spread = mpmath.fsum((t - mean) ** 2 for t in kept)
        tau = mean - (mpf(1) / size if power == 1 else mpmath.sqrt(max(0, (1 - spread) / size)))
        if size == len(z) or sorted(z)[-size - 1] <= tau:
            return [max(t - tau, 0) ** power for t in z]
    raise AssertionError


def sparse_back(x: Row, c: Row, power: int) -> Row:
    s = [p ** (mpf(1) - mpf(1) / power) if p else mpf(0) for p in sparse(x, power)]
    total = mpmath.fsum(s) or 1
    return [t * mpmath.fsum(k * (a - b) for k, b in zip(s, c, strict=True)) / total for t, a in zip(s, c, strict=True)]


# --- how far inputs move ---


def by_size(x: Row) -> Row:
    return [abs(t) for t in x]


def from_largest(x: Row) -> Row:
    return [max(x) - t if t > -mpmath.inf else mpf(0) for t in x]


# --- the table ---


class Function(NamedTuple):
    """How it is called, its value and its pullback exactly, and how far its inputs move for each of the two."""

    called: Callable[[], sa.Tensor]
    value: Callable[[Row], Row]
    pullback: Callable[[Row, Row], Row]
    moves: tuple[Callable[[Row], Row], Callable[[Row], Row]]
    rows: str  # which rows of the grid are in the domain


def of_logits(called: Any, value: Any, pullback: Any, first: Any = from_largest, rows: str = "logits") -> Function:
    return Function(called, value, pullback, (first, from_largest), rows)


def entrywise(called: Any, f: Any, slope: Any, rows: str = "numbers") -> Function:
    return Function(
        called,
        lambda x: [f(t) for t in x],
        lambda x, c: [a * slope(t) for t, a in zip(x, c, strict=True)],
        (by_size, by_size),
        rows,
    )


def of_lengths(called: Any, centred: bool, mean: bool) -> Function:
    return Function(
        called,
        lambda x: normed(x, centred, mean)[0],
        lambda x, c: norm_back(x, c, centred, mean),
        (by_size, by_size),
        "lengths",
    )


def sparse_row(called: Any, power: int) -> Function:
    return of_logits(called, lambda x: sparse(x, power), lambda x, c: sparse_back(x, c, power))


def less(p: Row, k: int) -> Row:
    """``p`` less 1 at k, from the other probabilities."""
    others = mpmath.fsum(t for j, t in enumerate(p) if j != k)
    return [-others if j == k else t for j, t in enumerate(p)]


def logs_back(x: Row, c: Row) -> Row:
    """``c - p * sum(c)``."""
    p = softmax(x)
    return [mpmath.fsum(-a * less(p, k)[j] for k, a in enumerate(c)) for j in range(len(x))]


TABLE = {
    "softmax": of_logits(lambda: sa.softmax(Z), softmax, lambda x, c: across(softmax(x), c)),
    "logsumexp": of_logits(
        lambda: sa.logsumexp(Z, keepdims=True),
        lambda x: [max(x) + rest(x)],
        lambda x, c: [c[0] * p for p in softmax(x)],
        by_size,
    ),
    "log_softmax": of_logits(lambda: A.log_softmax(Z), log_softmax, logs_back, rows="finite"),
    "cross-entropy": of_logits(
        lambda: A.cross_entropy(Z, y, reduction="none")[:, None],
        lambda x: [-log_softmax(x)[CLASS]],
        lambda x, c: [c[0] * t for t in less(softmax(x), CLASS)],
        rows="finite",
    ),
    "KL": of_logits(
        lambda: sa.sum(sa.softmax(Z) * (sa.log(sa.softmax(Z)) - sa.log(sa.softmax(W))), axis=-1, keepdims=True),
        divergence,
        lambda x, c: [c[0] * t for t in across(softmax(x), [s - t for s, t in zip(x, fixed(x), strict=True)])],
        rows="finite",
    ),
    "entropy": of_logits(
        lambda: -sa.sum(sa.softmax(Z) * sa.log(sa.softmax(Z)), axis=-1, keepdims=True),
        entropy,
        lambda x, c: [-c[0] * t for t in across(softmax(x), [t if t > -mpmath.inf else mpf(0) for t in x])],
    ),
    "sparsemax": sparse_row(lambda: sa.sparsemax(Z), 1),
    "entmax": sparse_row(lambda: sa.entmax15(Z), 2),
    "layer norm": of_lengths(lambda: A.layer_norm(Z, eps=0), True, True),
    "RMS norm": of_lengths(lambda: A.rms_norm(Z, eps=0), False, True),
    "l2 norm": of_lengths(lambda: A.l2_norm(Z), False, False),
    "group norm": Function(
        lambda: A.group_norm(sa.tensor("Z", T, 8), 2, eps=0),
        lambda x: in_halves(lambda h: normed(h, True, True)[0], x),
        lambda x, c: in_halves(lambda h, a: norm_back(h, a, True, True), x, c),
        (by_size, by_size),
        "pairs",
    ),
    "sigmoid": entrywise(lambda: sa.sigmoid(Z), sigmoid, lambda t: sigmoid(t) * sigmoid(-t)),
    "log-sigmoid": entrywise(lambda: sa.log(sa.sigmoid(Z)), lambda t: -softplus(-t), lambda t: sigmoid(-t)),
    "softplus": entrywise(lambda: sa.softplus(Z), softplus, sigmoid),
    "gelu": entrywise(lambda: sa.gelu(Z), lambda t: t * cdf(t), gelu_slope),
    "silu": entrywise(lambda: sa.silu(Z), lambda t: t * sigmoid(t), lambda t: sigmoid(t) * (1 + t * sigmoid(-t))),
    "tanh(x)/x": entrywise(lambda: sa.tanh(Z) / Z, lambda t: mpmath.tanh(t) / t, ratio_slope, "nonzero"),
    "expm1(x)/x": entrywise(lambda: (sa.exp(Z) - 1) / Z, lambda t: mpmath.expm1(t) / t, exp_ratio_slope, "nonzero"),
    "expm1": entrywise(lambda: sa.exp(Z) - 1, mpmath.expm1, mpmath.exp),
    "log1p": entrywise(lambda: sa.log1p(Z), mpmath.log1p, lambda t: 1 / (1 + t), "above -1"),
    "softcap": entrywise(lambda: 5 * sa.tanh(Z / 5), lambda t: 5 * mpmath.tanh(t / 5), lambda t: sech2(t / 5)),
}
SHAPES = [[0, 1, -1, 0.5], [1, -2, 3, 0.25], [-7.5, 40, -40, 12], [2, 2, 2, 2], [0, -20, -33, -30]]


def grid(kind: str, dtype: Any) -> np.ndarray:
    """The rows that are in the domain: logits may be -inf, of which losses are not finite, and norms are not flat."""
    info = np.finfo(dtype)
    rng = np.random.default_rng(1)
    shapes = [*map(np.array, SHAPES), *rng.normal(size=(2, 4))]
    with np.errstate(over="ignore"):
        rows = [(far + row).astype(dtype) for far in FAR for row in shapes]
        rows += [(scale * row).astype(dtype) for scale in (30, 1e9, 1e18, float(info.max) / 8) for row in shapes]
        rows += [float(info.smallest_subnormal) * np.array(row).astype(dtype) * 4 for row in SHAPES[:2]]
    found = np.unique([r for r in rows if np.isfinite(r).all()], axis=0).astype(dtype)
    if kind == "logits":
        return np.concatenate([found, np.array([[-np.inf] * 4, [0, -np.inf, 1, 2]], dtype)])
    if kind == "finite":
        return found
    if kind in ("lengths", "pairs"):
        found = found[np.ptp(found, axis=1) > 0]
        return found if kind == "lengths" else np.concatenate([found, np.roll(found, 1, axis=0)], axis=1)
    flat = np.unique(found)
    flat = flat[{"numbers": flat == flat, "nonzero": flat != 0, "above -1": flat > -1}[kind]]
    return np.resize(flat, (-(-len(flat) // 4), 4))


@cache
def compiled(name: str) -> Any:
    f = TABLE[name].called()
    (z,) = (t for t in f.tensors if t.name == "Z")
    g = sa.gradient(f, [z])
    return sa.lambdify([z, W, y, g.cotangent], [f, g])


def condition(f: Callable[..., Row], arguments: list[Row], moves: list[Row]) -> list[Any]:
    """The size of each value, and how far it moves with each entry that moves."""
    whole = f(*arguments)
    total = [abs(t) for t in whole]
    for a, by in zip(arguments, moves, strict=True):
        for k, step in enumerate(by):
            if step:
                kept, a[k] = a[k], a[k] + DELTA * step
                for i, (t, s) in enumerate(zip(f(*arguments), whole, strict=True)):
                    total[i] += abs(t - s) / DELTA
                a[k] = kept
    return total


def worst(found: Any, f: Any, rows: Any, movers: Any, dtype: Any) -> tuple[float, Any]:
    """The largest error in units of the last place times the condition, and where that is."""
    info, largest = np.finfo(dtype), (0.0, None)
    for got, *given in zip(found, *rows, strict=True):
        arguments = [[mpf(float(t)) for t in r] for r in given]
        exact = f(*arguments)
        cotangent = arguments[1] if len(arguments) > 1 else []
        beyond = float(info.max) * min([1, *map(abs, cotangent)])  # where the derivative itself is not representable
        allowed = condition(f, arguments, [m(a) for m, a in zip(movers, arguments, strict=True)])
        for i, (value, wanted) in enumerate(zip(got, exact, strict=True)):
            assert not mpmath.isnan(wanted)
            if abs(wanted) > beyond or value == wanted:
                continue
            error = abs(mpf(float(value)) - wanted) / (float(info.eps) * allowed[i] + float(info.smallest_normal))
            units = float(error) if np.isfinite(value) else float("inf")
            largest = max(largest, (units, (given, value, mpmath.nstr(wanted, 8))), key=lambda pair: pair[0])
    return largest


def outputs(name: str, rows: Any) -> int:
    return 1 if name in ("logsumexp", "cross-entropy", "KL", "entropy") else rows.shape[1]


@pytest.mark.parametrize(("name", "dtype"), one_in(4, itertools.product(TABLE, DTYPES)))
@pytest.mark.slow
def test_the_error_is_within_the_condition(name, dtype):
    function = TABLE[name]
    rows = grid(function.rows, dtype)
    with mpmath.workdps(50), np.errstate(all="ignore"):
        cotangent = np.random.default_rng(2).normal(size=(len(rows), outputs(name, rows))).astype(dtype)
        value, slope = compiled(name)(rows, rows[:, ::-1], np.full(len(rows), CLASS), cotangent)
        assert value.dtype == slope.dtype == dtype
        for found, f, given, movers in (
            (value, function.value, [rows], [function.moves[0]]),
            (slope, function.pullback, [rows, cotangent], [function.moves[1], by_size]),
        ):
            units, where = worst(found, f, given, movers, dtype)
            assert units <= ULPS, where
