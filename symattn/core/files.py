"""Files that are written as a whole or not at all, and what is said of one that cannot be written or read."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError, OperandError, described

_PROBLEMS = {
    errno.ENOENT: "there is no folder {folder}: make it, or choose another one",
    errno.ENOTDIR: "{folder} is no folder: choose another place",
    errno.EISDIR: "that is a folder: name a file in it",
    errno.EACCES: "it is closed to you: choose another place, or have it opened to you",
    errno.EROFS: "nothing can be written on that disk: choose another place",
    errno.ENOSPC: "the disk is full: make room there, or choose another one",
    errno.EDQUOT: "there is no room left for you on the disk: make some, or choose another one",
    errno.ENAMETOOLONG: "its name is too long: choose a shorter one",
    errno.EEXIST: "{folder} is no folder: choose another place",
}
_PROBLEMS[errno.EPERM] = _PROBLEMS[errno.EACCES]
_UNREAD = {
    errno.ENOENT: "there is no such file",
    errno.EISDIR: "that is a folder: name a file in it",
    errno.EACCES: "it is closed to you: have it opened to you",
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside another, whose name it takes when all of it is written; where anything fails, it is gone.

    Raises FileError, by the name that was asked for, where it cannot be written, and OperandError for what is no path.
    """
    check_writable(path)
    given = Path(path)
    if _is_device(given):  # nothing takes the place of it
        with writing(path, given):
            yield given
        return
    target = Path(os.path.realpath(path))  # a link stays one
    with writing(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    os.close(handle)
    beside = Path(name)
    try:
        with writing(path, beside):
            yield beside
        with writing(path):
            beside.chmod(0o666 & ~_umask())
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise FileError, before any work is done, where no file can be written, and OperandError for what is no path."""
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        raise OperandError(f"a file is written by its path, not {described(path)}")
    with writing(path):
        given = Path(path)
        if given.is_dir():
            raise _error(errno.EISDIR)
        if not _is_device(given):
            check_folder(given.parent, path, exists=True)


def check_folder(folder: Path, asked: str | os.PathLike[str], exists: bool = False) -> None:
    """Raise FileError for a folder that cannot be written, or made unless it has to be there."""
    with writing(asked):
        above = (folder.absolute(), *folder.absolute().parents)
        there = next(path for path in above if path.exists())
        if not there.is_dir():
            raise _error(errno.ENOTDIR)
        if exists and there != above[0]:
            raise _error(errno.ENOENT)
        if not os.access(there, os.W_OK | os.X_OK):
            raise _error(errno.EACCES)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


@contextmanager
def writing(asked: str | os.PathLike[str], beside: Path | None = None) -> Iterator[None]:
    """What keeps a file from being written is told by the name that somebody gave, as a FileError.

    Inside, other files may fail in their own ways: ``beside`` is the one that this is about.
    """
    try:
        yield
    except FileError:
        raise
    except OSError as problem:
        if beside is not None and problem.filename not in (None, str(beside)):
            raise
        raise _told(asked, "written", _PROBLEMS, problem) from None


@contextmanager
def reading(asked: str | os.PathLike[str]) -> Iterator[None]:
    """What keeps a file from being read, as a FileError."""
    try:
        yield
    except FileError:
        raise
    except OSError as problem:
        raise _told(asked, "read", _UNREAD, problem) from None


def _told(asked: str | os.PathLike[str], done: str, problems: dict[int, str], problem: OSError) -> FileError:
    number = problem.errno or 0
    why = problems.get(number, problem.strerror or str(problem)).format(folder=_folder(Path(asked), number))
    return FileError(f"{asked} cannot be {done}: {why}", number, str(asked))


def _folder(path: Path, number: int) -> Path:
    """The folder that is not there, or what stands where one should."""
    if number == errno.ENOENT:
        return path.parent
    return next((part for part in (path, *path.parents) if os.path.exists(part) and not os.path.isdir(part)), path)


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _umask() -> int:
    """The mask for new files, which mkstemp does not follow; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
