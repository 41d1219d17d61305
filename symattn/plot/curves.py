"""Curves: the variance of scores, kernel regression, and how softmax saturates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from ..attention.kernels import kernel_regression as regression
from ..calculus.jacobians import jacobian
from ..codegen import lambdify
from ..core.arguments import each_of, whole_number
from ..core.node import Tensor, topological
from ..errors import OperandError, described
from ..ops.leaves import as_tensor, tensor, variable
from ..ops.rows import softmax
from ..printing.matrix import latex_printer
from ..printing.media.unicode import unicode_text
from ..printing.prose import Figure
from ..printing.scalars import scalar_box
from ..probability.laws import Iid
from ..probability.moments import variance as exact_variance
from .arrays import array_of, captioned, number_of, numbers_of
from .chart import FIRST, INK, SECOND, THIRD, Chart, label

_COLOURS = (FIRST, SECOND, THIRD)
_LONGEST = 1000  # rows of scores
_MOST = 10**6  # samples, and sizes that they are drawn for
_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def variance(
    quantities: Any,
    law: Mapping[Any, Any],
    size: sympy.Symbol,
    at: Sequence[int] = _WIDTHS,
    samples: int = 2000,
    caption: str = "",
) -> Figure:
    """Exact variances against a size, as lines, and those of random samples as points beside them.

    ``law`` is that of ``sa.variance``; samples are drawn of independent entries only, normal where a law has no name,
    and none for ``samples=0``. Raises OperandError for a variance that depends on more than the size.

    >>> import symattn as sa
    >>> d = sa.sizes("d")
    >>> q, k = sa.tensor("q", d), sa.tensor("k", d)
    >>> print(sa.plot.variance(q @ k, {q: sa.iid(), k: sa.iid()}, d, at=(1, 4, 16)).text)
    d              1  4  16
    Var(qᵀ k) = d  1  4  16
    """
    scores = [as_tensor(x) for x in each_of(quantities)]
    if not (scores and each_of(at)) or not isinstance(size, sympy.Symbol):
        raise OperandError(
            f"variance draws quantities against a size, not {described(quantities)} against {described(size)}"
        )
    at = [whole_number("variance", "at", n, 1, _MOST) for n in each_of(at)]
    samples = whole_number("variance", "samples", samples, 0, _MOST)
    lines = [(x, sympy.sympify(exact_variance(x, law))) for x in scores]
    for x, found in lines:
        if found.free_symbols - {size}:
            raise OperandError(f"the variance of {x.brief()} is {found}, which depends on more than {size}")
    _check_laws(scores, law, samples)
    printer = latex_printer(scores)
    names = [f"Var({unicode_text(printer.shown(x))}) = {unicode_text(scalar_box(found))}" for x, found in lines]
    curves = [[float(found.subs(size, n)) for n in at] for _, found in lines]
    ends = (f"{ys[0]:g} for {size} = {at[0]}, {ys[-1]:g} for {size} = {at[-1]}" for ys in curves)
    told = "; ".join(f"{name}: {end}" for name, end in zip(names, ends, strict=True))
    rows = [[name, *(f"{y:g}" for y in ys)] for name, ys in zip(names, curves, strict=True)]

    def paint(figure: Any) -> None:
        place = figure.subplots()
        for x, name, ys, colour in zip(scores, names, curves, _COLOURS * len(lines), strict=False):
            place.plot(at, ys, color=colour)
            if samples:
                place.plot(at, _sampled(x, law, size, at, samples), "o", color=colour, markersize=5, fillstyle="none")
            _name_at_end(place, at[-1], ys[-1], name)
        place.set(xscale="log", yscale="log", xlabel=label(scalar_box(size)), ylabel="variance")
        place.set_xticks(at, map(str, at))
        place.yaxis.set_major_formatter("{x:g}")
        place.minorticks_off()

    points = f" Points: variances of {samples} samples each." if samples else ""
    text = _table([[str(size), *map(str, at)], *rows])
    return Figure(
        Chart(6.4, 3.2, paint), f"Variance against {size}. {told}.{points}", captioned("variance", caption), text=text
    )


def _check_laws(scores: Sequence[Tensor], law: Mapping[Any, Any], samples: int) -> None:
    for x in topological(scores) if samples else ():
        if x.op is variable and not isinstance(law.get(x), Iid):
            raise OperandError(
                f"samples are drawn of independent entries, sa.iid, and {x.brief()} has another law: samples=0 draws "
                "the exact line alone"
            )


def _sampled(x: Tensor, law: Mapping[Any, Any], size: sympy.Symbol, at: Sequence[int], samples: int) -> list[float]:
    """The variances of as many samples at each size."""
    random = np.random.default_rng(0)
    variables = [y for y in topological([x]) if y.op is variable]
    function = lambdify(variables, x)
    found = []
    for n in at:
        shapes = [[int(sympy.sympify(axis).subs(size, n)) for axis in y.shape] for y in variables]
        entries = [_drawn(random, law[y], (samples, *s)) for y, s in zip(variables, shapes, strict=True)]
        found.append(float(np.var(function(*entries))))
    return found


def _drawn(random: np.random.Generator, law: Iid, shape: tuple[int, ...]) -> np.ndarray:
    """Independent entries of a law, normal where nothing but mean and variance is known."""
    mean, spread = float(law.known(1) or 0), float(law.known(2) or 0) ** 0.5
    standard: dict[str, Callable[[], Any]] = {
        "rademacher": lambda: random.choice((-1.0, 1.0), shape),
        "uniform": lambda: random.uniform(-(3**0.5), 3**0.5, shape),
        "laplace": lambda: random.laplace(0, 0.5**0.5, shape),
        "bernoulli": lambda: (random.random(shape) < mean) / spread - mean / spread,
        "constant": lambda: np.zeros(shape),
    }
    unit = standard.get(law.name or "", lambda: random.standard_normal(shape))
    return np.asarray(mean + spread * unit())


def kernel_regression(
    x: Any,
    y: Any = None,
    bandwidths: Sequence[Any] = (sympy.oo, 1, 0.3),
    truth: sympy.Expr | None = None,
    noise: float = 0.0,
    kernel: str = "gaussian",
    caption: str = "",
) -> Figure:
    """Values y at points x, and what attention with a kernel of each bandwidth makes of them between.

    The points are keys, the values their values, and each place of the line is a query: see
    ``sa.attention.kernel_regression``. An infinite bandwidth is the average of all values. ``truth``, a formula of one
    symbol, is shown beside them; without y, values are made of it and of normal ``noise`` of that size. Raises
    OperandError for points and values that are not as many.

    >>> import symattn as sa
    >>> sa.plot.kernel_regression([0, 1, 2], [1, 3, 2], bandwidths=[1]).alternative
    'Kernel regression through 3 points from (0, 1) to (2, 2). Bandwidth 1: from 1.77 to 2.27.'
    """
    keys, formula = array_of("kernel_regression", x), None if truth is None else _of_one_symbol(truth)
    spread, widths = number_of("kernel_regression", "noise", noise), _bandwidths(bandwidths)
    made = 0 if formula is None else formula(keys) + spread * np.random.default_rng(0).standard_normal(keys.shape)
    values = array_of("kernel_regression", made if y is None else y)
    if keys.ndim != 1 or keys.shape != values.shape:
        raise OperandError(
            f"kernel_regression takes as many points as values, not {list(keys.shape)} and {list(values.shape)}"
        )
    queries = np.linspace(keys.min(), keys.max(), 161)
    fits = {h: _fitted(queries, keys, values, h, kernel) for h in widths}
    first, last = keys.argmin(), keys.argmax()
    told = " ".join(f"{_named(h).capitalize()}: from {fit[0]:.3g} to {fit[-1]:.3g}." for h, fit in fits.items())
    ends = f"({keys[first]:.3g}, {values[first]:.3g}) to ({keys[last]:.3g}, {values[last]:.3g})"

    def paint(figure: Any) -> None:
        place = figure.subplots()
        place.plot(keys, values, "o", color=INK, alpha=0.5, markersize=4, markeredgewidth=0)
        if formula is not None:
            place.plot(queries, formula(queries), "--", color=INK, linewidth=1, label="truth")
        for (h, fit), colour in zip(fits.items(), _COLOURS * len(fits), strict=False):
            place.plot(queries, fit, color=colour, label=_named(h))
        place.set(xlabel="query, key", ylabel="value")
        place.legend(frameon=False)

    shown = np.linspace(0, 160, 5).astype(int)
    rows = [[_named(h), *(f"{fit[k]:.3g}" for k in shown)] for h, fit in fits.items()]
    text = _table([["query", *(f"{queries[k]:.3g}" for k in shown)], *rows])
    alternative = f"Kernel regression through {len(keys)} points from {ends}. {told}"
    return Figure(Chart(6.4, 3.4, paint), alternative, captioned("kernel_regression", caption), text=text)


def _bandwidths(given: Any) -> list[Any]:
    """Positive numbers, as they were given, or infinite."""
    widths = each_of(given.tolist() if isinstance(given, np.ndarray) else given)
    finite = [h for h in widths if not _is_infinite(h)]
    if finite or not widths:
        numbers_of("kernel_regression", "bandwidths", finite, positive=True)
    return widths


def _is_infinite(bandwidth: Any) -> bool:
    return isinstance(bandwidth, (float, sympy.Expr)) and bandwidth in (sympy.oo, float("inf"))


def _of_one_symbol(truth: Any) -> Callable[[np.ndarray], np.ndarray]:
    if not isinstance(truth, sympy.Expr) or truth.has(AppliedUndef):
        raise OperandError(f"truth= is a formula of one symbol, not {described(truth)}")
    symbols = truth.free_symbols
    if len(symbols) != 1:
        raise OperandError(f"truth= is a formula of one symbol, and {truth} has {len(symbols)}")
    compiled: Any = sympy.lambdify(list(symbols), truth, "numpy")
    return lambda points: np.asarray(compiled(points))


def _fitted(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, bandwidth: Any, kernel: str) -> np.ndarray:
    if _is_infinite(bandwidth):
        return np.full(queries.shape, values.mean())
    x, z, y = tensor("x", "T"), tensor("z", "S"), tensor("y", "S")
    fit = lambdify([x, z, y], regression(x, z, y, kernel=kernel, bandwidth=bandwidth))
    return np.asarray(fit(queries, keys, values))


def _named(bandwidth: Any) -> str:
    return "average" if _is_infinite(bandwidth) else f"bandwidth {bandwidth}"


def saturation(gaps: Sequence[float] = (0.5, 1, 2), n: int = 8, most: float = 16, caption: str = "") -> Figure:
    """The largest entry of the Jacobian of softmax against the scale of the scores, for gaps of one above all others.

    Of ``n`` scores one lies above the others by the gap, and all are multiplied by the scale, up to ``most``.

    >>> import symattn as sa
    >>> print(sa.plot.saturation(gaps=[1], n=2).text)
    scale     0       4         8        12        16
    gap 1  0.25  0.0177  0.000335  6.14e-06  1.13e-07
    """
    gaps, most = numbers_of("saturation", "gaps", gaps), number_of("saturation", "most", most, positive=True)
    n = whole_number("saturation", "n", n, 2, _LONGEST)
    scales = np.linspace(0, most, 129)
    curves = {gap: _largest(scales, gap, n) for gap in gaps}
    shown = np.linspace(0, 128, 5).astype(int)
    rows = [[f"gap {gap:g}", *(f"{curve[k]:.3g}" for k in shown)] for gap, curve in curves.items()]
    text = _table([["scale", *(f"{scales[k]:g}" for k in shown)], *rows])
    ends = (f"Gap {g:g}: at most {ys.max():.2g}, {ys[-1]:.1g} at the scale {most:g}." for g, ys in curves.items())
    told = " ".join(ends)

    def paint(figure: Any) -> None:
        place = figure.subplots()
        place.axhline(0.25, linestyle="--", color=INK, linewidth=1)
        place.annotate("1/4", (most, 0.25), (3, 3), textcoords="offset points")
        for (gap, curve), colour in zip(curves.items(), _COLOURS * len(curves), strict=False):
            place.plot(scales, curve, color=colour, label=f"gap {gap:g}")
        place.set(xlabel="scale of the scores", ylabel="largest entry of the Jacobian", ylim=(0, 0.28), xlim=(0, most))
        place.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.88))

    what = f"Largest entry of the Jacobian of softmax for {n} scores, against their scale; never above 1/4."
    return Figure(Chart(6.4, 3.2, paint), f"{what} {told}", captioned("saturation", caption), text=text)


def _largest(scales: np.ndarray, gap: float, n: int) -> np.ndarray:
    z = tensor("z", "n")
    scores = np.zeros((len(scales), n))
    scores[:, 0] = gap * scales
    return np.abs(np.asarray(lambdify([z], jacobian(softmax(z), z))(scores))).max(axis=(1, 2))


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows under each other: their names at the left, numbers at the right of their columns."""
    first, *others = ([*map(len, column)] for column in zip(*rows, strict=True))
    widths = [max(lengths) for lengths in others]
    lines = []
    for name, *cells in rows:
        numbers = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append("  ".join([f"{name:<{max(first)}}", *numbers]))
    return "\n".join(lines)


def _name_at_end(place: Any, x: float, y: float, name: str) -> None:
    place.annotate(name, (x, y), (8, 0), textcoords="offset points", va="center", annotation_clip=False)
