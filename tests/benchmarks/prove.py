"""What proofs and refutations cost, in one run: ``python tests/benchmarks/prove.py [--smoke]``."""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import symattn as sa
from symattn.core.budget import Budget
from symattn.proof.argument import Given
from symattn.proof.claims import eq
from symattn.proof.equality.entrywise import entrywise_proof
from symattn.proof.equality.rewriting import rewrite
from symattn.proof.refute.refuter import Search

GROUPS = {
    "two pre-norm layers": ("two_pre_norm_equiv",),
    "eight pre-norm layers": ("eight_pre_norm_equiv",),
    "rotary positions": ("rope_relative", "rope_shift", "rope_halves_relative", "rope_interleaved_relative"),
}


def corpus() -> ModuleType:
    """The claims of the tests, which are a folder and no package."""
    package = ModuleType("claims_of_tests")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["claims_of_tests"] = package
    return importlib.import_module("claims_of_tests.claims_corpus")


def median_ms(work: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def rows(repeats: int) -> Iterator[tuple[str, str]]:
    claims = {name: build() for name, build in corpus().CLAIMS.items()}
    times = {True: [], False: []}
    for case in claims.values():
        times[case.true].append(median_ms(lambda c=case: sa.prove(c.left, c.right, c.given), repeats))
    for true, taken in times.items():
        what = f"{len(taken)} {'true' if true else 'false'} claims: prove"
        slow = sum(t > 100 for t in taken)
        yield what, f"median {statistics.median(taken):7.1f} ms, longest {max(taken):7.1f} ms, {slow} above 100 ms"
    for title, names in GROUPS.items():
        for name in names:
            case = claims[name]
            whole = median_ms(lambda c=case: sa.prove(c.left, c.right, c.given), repeats)
            parts = (
                median_ms(lambda c=case: Search(eq(c.left, c.right), Given.of(c.given)).run(Budget(10)), repeats),
                median_ms(lambda c=case: rewrite(c.left, c.right, Budget(10)), repeats),
                median_ms(lambda c=case: entrywise_proof(c.left, c.right, c.given, Budget(10)), repeats),
            )
            shown = "refuter {:.0f}, rewriting {:.0f}, normal form {:.0f}".format(*parts)
            yield f"{title}: {name}", f"{whole:.0f} ms ({shown})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="one quick pass, to see that it runs")
    repeats = 1 if parser.parse_args().smoke else 5
    for what, figures in rows(repeats):
        print(f"{what:<55}{figures}", flush=True)


if __name__ == "__main__":
    main()
