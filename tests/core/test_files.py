"""Files are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from symattn.core.files import check_writable, reading, replacing
from symattn.errors import FileError, OperandError


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with replacing(target) as beside:
        beside.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [*tmp_path.iterdir()] == [target]


def test_what_fails_leaves_the_old_file_alone(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(target) as beside:
        beside.write_text("ne\ud800", encoding="utf-8")
    assert target.read_text() == "old"
    assert [*tmp_path.iterdir()] == [target]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    target, link = tmp_path / "file", tmp_path / "link"
    link.symlink_to(target)
    with replacing(link) as beside:
        beside.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    with replacing("/dev/null") as beside:
        beside.write_text("new")
    assert not Path("/dev/null").is_file()


def test_a_long_name_leaves_room_for_that_of_the_file_beside(tmp_path: Path) -> None:
    target = tmp_path / ("a" * 255)
    with replacing(target) as beside:
        beside.write_text("new")
    assert target.read_text() == "new"


CLOSED = {
    "nowhere/file": (errno.ENOENT, "there is no folder {0}/nowhere: make it, or choose another one"),
    "a/b/c": (errno.ENOENT, "there is no folder {0}/a/b: make it, or choose another one"),
    "whole/file": (errno.ENOTDIR, "{0}/whole is no folder: choose another place"),
    "whole/sub/file": (errno.ENOTDIR, "{0}/whole is no folder: choose another place"),
    "folder": (errno.EISDIR, "that is a folder: name a file in it"),
    "b" * 256: (errno.ENAMETOOLONG, "its name is too long: choose a shorter one"),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_place_where_nothing_can_be_written_is_told_with_the_way_out(name: str, tmp_path: Path) -> None:
    (tmp_path / "whole").write_text("old")
    (tmp_path / "folder").mkdir()
    number, why = CLOSED[name]
    with pytest.raises(FileError) as told, replacing(tmp_path / name):
        pass
    assert str(told.value) == f"{tmp_path / name} cannot be written: {why.format(tmp_path)}"
    assert (told.value.errno, told.value.filename) == (number, str(tmp_path / name))
    assert isinstance(told.value, OSError)
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "folder"}


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "the disk is full: make room there, or choose another one"),
        (errno.EACCES, "it is closed to you: choose another place, or have it opened to you"),
        (errno.EPERM, "it is closed to you: choose another place, or have it opened to you"),
        (errno.EROFS, "nothing can be written on that disk: choose another place"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_happens_while_a_file_is_written_is_told_and_leaves_the_old_one(
    number: int, why: str, tmp_path: Path
) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(FileError, match=f"file cannot be written: {why}$"), replacing(target):
        raise OSError(number, os.strerror(number))
    assert target.read_text() == "old"
    assert [*tmp_path.iterdir()] == [target]
    with pytest.raises(FileNotFoundError, match="elsewhere"), replacing(target):
        Path("elsewhere").read_text()


def test_a_file_is_not_begun_in_a_folder_that_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FileError, match="it is closed to you"):
        check_writable(tmp_path / "file")
    check_writable(os.devnull)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, why in {"nowhere": "there is no such file", "": "that is a folder: name a file in it"}.items():
        with pytest.raises(FileError, match=f"cannot be read: {why}$"), reading(tmp_path / name):
            (tmp_path / name).read_text()


@pytest.mark.parametrize("path", ["", "a\0b", 3, None])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(OperandError, match="a file is written by its path, not "):
        check_writable(path)
