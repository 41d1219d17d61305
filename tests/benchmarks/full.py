"""Soundness and endings, counted: ``python tests/benchmarks/full.py [--seeds 0 1] [--calls 100000] [--smoke]``.

Mutants of every true claim, pairs of random terms with one normal form, and random claims under hypotheses are held
against numbers: how often the engine and each prover alone said what. Calls with wrong values and command lines end in
an answer or an error of ours, in two seconds. Prints the counts of each family and everything that was wrong; exits
with 1 if anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.claims_corpus import CLAIMS
from tests.command_lines import judged
from tests.given_claims import FAMILIES, given_judged
from tests.random_terms import WORLDS
from tests.soundness import Tally, mutants_judged, terms_judged
from tests.wrong_calls import run

BATCH = 10_000  # calls of one seed of their own


def mutant_tallies(seed: int, count: int, names: list[str]) -> Iterator[Tally]:
    for _, tally in mutants_judged(names, count, seed):
        yield tally


def term_tallies(seed: int, batches: int) -> Iterator[Tally]:
    for batch in range(batches):
        for world in WORLDS:
            yield terms_judged(world, 1000 * seed + batch)


def given_tallies(seed: int, count: int) -> Iterator[Tally]:
    for family in FAMILIES:
        yield from given_judged(family, count, seed)


def call_tallies(seed: int, count: int) -> Iterator[Tally]:
    for batch in range(0, count, BATCH):
        yield run(min(BATCH, count - batch), 1000 * seed + batch // BATCH)


def line_tallies(seed: int, count: int) -> Iterator[Tally]:
    with tempfile.TemporaryDirectory() as folder:
        yield from judged(seed, count, Path(folder))


def report(title: str, tallies: Iterator[Tally]) -> bool:
    """The counts under a title, and whether nothing was wrong."""
    start, total = time.perf_counter(), Tally()
    for tally in tallies:
        total += tally
        for problem in tally.wrong:
            print(f"WRONG: {problem}", flush=True)
    print(f"{title} ({time.perf_counter() - start:.0f} s)")
    for what, number in [*sorted(total.counts.items()), ("wrong", len(total.wrong))]:
        print(f"  {what:<24}{number:>8}", flush=True)
    if total.slowest[1]:
        print(f"  slowest {total.slowest[0]:.2f} s: {total.slowest[1]}", flush=True)
    return not total.wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--count", type=int, default=36, help="mutants of a claim, for each seed")
    parser.add_argument("--batches", type=int, default=60, help="batches of terms in each world, for each seed")
    parser.add_argument("--given", type=int, default=250, help="claims of each family under hypotheses, for each seed")
    parser.add_argument("--calls", type=int, default=50_000, help="calls with wrong values, for each seed")
    parser.add_argument("--command-lines", type=int, default=10_000, help="for each seed")
    parser.add_argument("--smoke", action="store_true", help="a few of each")
    options = parser.parse_args()
    seeds, names = options.seeds, list(CLAIMS)
    count, batches, given = options.count, options.batches, options.given
    calls, lines = options.calls, options.command_lines
    if options.smoke:
        seeds, names, count, batches, given, calls, lines = seeds[:1], names[:6], 2, 1, 4, 1000, 100
    warnings.simplefilter("ignore")  # of numbers outside of a function's domain
    right = True
    for seed in seeds:
        right &= report(f"mutants, seed {seed}", mutant_tallies(seed, count, names))
        right &= report(f"random terms, seed {seed}", term_tallies(seed, batches))
        right &= report(f"claims under hypotheses, seed {seed}", given_tallies(seed, given))
        right &= report(f"calls with wrong values, seed {seed}", call_tallies(seed, calls))
        right &= report(f"command lines, seed {seed}", line_tallies(seed, lines))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
