"""Files are written as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from symattn.core.files import replacing


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


def test_a_folder_that_is_not_there_is_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="/nowhere/file'$"), replacing(tmp_path / "nowhere" / "file"):
        pass
