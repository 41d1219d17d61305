"""What exact moments cost, against their degree: ``python tests/benchmarks/moments.py [--smoke]``.

Medians of repeats; every repeat uses names of its own, so that nothing is found ready-made.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import sympy

import symattn as sa

T, S, d, D, n = sa.sizes("T S d D n")
FRESH = itertools.count()
i, j, l, m = sympy.symbols("i j l m", integer=True, nonnegative=True)
kappa = sympy.Symbol("kappa", positive=True)


def median_ms(work: Callable[[], object], repeats: int) -> float:
    """The median time of a call, in milliseconds, after one call to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def vectors(count: int) -> list[sa.Tensor]:
    number = next(FRESH)
    return [sa.tensor(f"{letter}{number}", d) for letter in "qk"[:count]]


def power(degree: int, law: Any) -> Callable[[], object]:
    """``E[(q.k)^degree]``."""

    def work() -> object:
        q, k = vectors(2)
        return sa.expectation((q @ k) ** degree, {q: law, k: law})

    return work


def by_components(degree: int) -> Callable[[], object]:
    """The same in SymPy for d = 2: multiplied out, and each monomial replaced by its normal moments."""

    def moment(order: int) -> sympy.Integer:
        return sympy.factorial2(order - 1) if order % 2 == 0 else sympy.S.Zero

    def work() -> object:
        sympy.core.cache.clear_cache()
        a, b, c, e = entries = sympy.symbols("q:2 k:2")
        expanded = sympy.Poly((a * c + b * e) ** degree, *entries)
        return sum(value * sympy.prod(map(moment, orders)) for orders, value in expanded.terms())

    return work


def degree_rows(repeats: int, degrees: tuple[int, ...]) -> Iterator[tuple[str, float, str]]:
    targets = {4: "target: under 50 ms", 6: "target: under 1000 ms"}
    before = None
    for degree in degrees:
        now = median_ms(power(degree, sa.iid("normal")), repeats if degree < 8 else 1)
        ratio = f"{now / before:.1f} times the degree before; " if before else ""
        yield f"E[(q.k)^{degree}], normal, symbolic d", now, (ratio + targets.get(degree, "")).rstrip("; ")
        before = now
    for degree in degrees[:3]:
        rademacher = sa.iid("rademacher")
        yield f"E[(q.k)^{degree}], rademacher, symbolic d", median_ms(power(degree, rademacher), repeats), ""
    yield "E[(q.k)^4], given kurtosis", median_ms(power(4, sa.iid(skewness=0, kurtosis=kappa)), repeats), ""
    for degree in degrees[:3]:
        yield f"E[(q.k)^{degree}], normal, d = 2, by components in SymPy", median_ms(by_components(degree), repeats), ""


def dot_variance() -> object:
    q, k = vectors(2)
    return sa.variance(q @ k / sympy.sqrt(d), {q: sa.iid(), k: sa.iid()})


def correlated() -> object:
    q, k = vectors(2)
    return sa.variance(q @ k, {(q, k): sa.iid_pair(correlation=sympy.Rational(1, 2))})


def projected() -> object:
    number = next(FRESH)
    x, a, b = sa.tensor(f"X{number}", T, D), sa.tensor(f"A{number}", D, d), sa.tensor(f"B{number}", D, d)
    z = (x @ a) @ (x @ b).T
    return sa.variance(z[i, j], {x: sa.iid("normal"), a: sa.iid(variance=1 / D), b: sa.iid(variance=1 / D)})


def coincidences() -> object:
    number = next(FRESH)
    q, k = sa.tensor(f"Q{number}", T, d), sa.tensor(f"K{number}", S, d)
    z = q @ k.T
    return sa.expectation(z[i, j] * z[l, m], {q: sa.iid(mean=1), k: sa.iid(mean=1)})


def sphere() -> object:
    q, k = vectors(2)
    return sa.expectation((q @ k) ** 4, {q: sa.sphere(), k: sa.sphere()})


def features() -> object:
    (x, y), w = vectors(2), sa.tensor(f"W{next(FRESH)}", n, d)
    a, b = (sa.exp(w @ z - z @ z / 2) / sympy.sqrt(n) for z in (x, y))
    return sa.variance(a @ b, {w: sa.iid("normal"), x: "constant", y: "constant"})


def report() -> object:
    q, k = vectors(2)
    found = sa.moments(q @ k, {q: sa.iid("normal"), k: sa.iid("normal")})
    return found.mean, found.variance, found.skewness, found.kurtosis, found.assumptions


def question_rows(repeats: int) -> Iterator[tuple[str, float, str]]:
    questions: tuple[tuple[str, Callable[[], object]], ...] = (
        ("Var(q.k / sqrt(d))", dot_variance),
        ("Var(q.k), correlated", correlated),
        ("Var of a score, random inputs and weights", projected),
        ("E[Z_ij Z_lm], with means", coincidences),
        ("E[(q.k)^4] on the sphere", sphere),
        ("variance of positive random features", features),
        ("mean, variance, skewness and kurtosis of q.k", report),
    )
    for what, work in questions:
        yield what, median_ms(work, repeats), ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one quick pass, to see that it runs")
    smoke = parser.parse_args().smoke
    sections = (
        degree_rows(1 if smoke else 9, (2, 4) if smoke else (2, 4, 6, 8)),
        question_rows(1 if smoke else 9),
    )
    for rows in sections:
        for what, milliseconds, note in rows:
            print(f"{what:<62}{milliseconds:>10.3f} ms   {note}".rstrip(), flush=True)
        print()


if __name__ == "__main__":
    main()
