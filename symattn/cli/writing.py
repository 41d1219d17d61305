"""Derivations verified and written in every format, one process each, with their progress on a terminal."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from ..document.render.files import FORMATS, files
from ..document.render.pdf import pdf
from ..errors import EvaluationError, SymattnError
from ..printing.prose import Document, Status, Words
from . import SELDOM, notes

_FEW = 2  # derivations for which no process is started


@dataclass(frozen=True)
class Outcome:
    """What became of one derivation: what its steps are, how long it took, and what is wrong with it."""

    name: str
    title: Words = ()
    summary: Words = ()
    tally: tuple[tuple[Status, int], ...] = ()
    lines: tuple[str, ...] = ()
    seconds: float = 0.0
    problem: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    pictures: Mapping[str, bytes] = field(default_factory=dict)


def checked(name: str, path: Path, formats: Iterable[str] = ()) -> Outcome:
    """One derivation, verified, and what is to be written of it."""
    start = time.perf_counter()
    try:
        note = notes.read(path).checked_by(notes.check_of(name if notes.derivations().get(name) == path else str(path)))
        with notes.blamed(path):
            report = note.verify()
            document = note.composed()
            written = _written(document, name, formats)
    except SymattnError as problem:
        return Outcome(name, seconds=time.perf_counter() - start, problem=str(problem))
    lines = tuple(report.text().splitlines())
    seconds = time.perf_counter() - start
    return Outcome(name, document.title, document.summary, document.tally, lines, seconds, "", *written)


def _written(document: Document, name: str, formats: Iterable[str]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files of a page, and those of its pictures."""
    pages, pictures = dict[str, bytes](), dict[str, bytes]()
    for to in formats:
        if to == "pdf":
            pages[f"{name}.pdf"] = _pdf(document)
        else:
            text, drawn = files(document, to, name)
            pages[f"{name}.{FORMATS[to].ending}"] = text.encode()
            pictures |= drawn
    return pages, pictures


def _pdf(document: Document) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.pdf"
        pdf(document, path)
        return path.read_bytes()


def all_of(paths: Mapping[str, Path], formats: Iterable[str] = ()) -> dict[str, Outcome]:
    """All of them, on all processors. Raises EvaluationError where a process ends by itself."""
    formats, done = tuple(formats), dict[str, Outcome]()
    if len(paths) <= _FEW:
        return {name: checked(name, path, formats) for name, path in paths.items()}
    with _pool(len(paths)) as pool, _Progress(len(paths)) as progress:
        with _uninterrupted():
            asked = [pool.submit(checked, name, path, formats) for name, path in paths.items()]
        try:
            for future in as_completed(asked):
                outcome = done[future.result().name] = future.result()
                progress.passed(outcome.name)
        except BrokenProcessPool:
            left = ", ".join(name for name in paths if name not in done)
            raise EvaluationError(f"a process ended by itself, as where memory runs out; not done are {left}") from None
    return {name: done[name] for name in paths}


@contextmanager
def _pool(tasks: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with the block, however that ends."""
    workers, context = min(tasks, os.cpu_count() or 1), get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=gc.set_threshold, initargs=SELDOM) as pool:
        try:
            yield pool
        except BaseException:
            for process in active_children():
                process.terminate()
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C does nothing here, nor ever in the processes that begin here: it is this one that ends them."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Progress:
    """A bar on a terminal, and nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._shown = total, 0, sys.stderr.isatty()

    def passed(self, name: str) -> None:
        self._done += 1
        if self._shown:
            full = 24 * self._done // self._total
            bar = "█" * full + "░" * (24 - full)
            print(f"\r\x1b[K{bar} {self._done}/{self._total} {name}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *problem: Any) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
