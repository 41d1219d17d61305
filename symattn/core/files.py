"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import OperandError, described


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside another, whose name it takes when all of it is written; where anything fails, it is gone.

    Raises OSError, by the name that was asked for, where that cannot be written, and OperandError for what is no path.
    """
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise OperandError(f"a file is written by its path, not {described(path)}")
    given = Path(path)
    with _named(path):
        if given.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        is_device = given.exists() and not given.is_file()
    if is_device:  # nothing takes the place of it
        yield given
        return
    target = Path(os.path.realpath(path))  # a link stays one
    with _named(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with _named(path):
            beside.chmod(0o666 & ~_umask())
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Problems with a file are told by the name that somebody gave."""
    try:
        yield
    except OSError as problem:
        raise type(problem)(problem.errno, problem.strerror, str(path)) from None


def _umask() -> int:
    """The mask for new files, which mkstemp does not follow; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
