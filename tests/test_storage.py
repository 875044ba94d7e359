"""Files are written whole, under names that nobody foresees, and never through somebody's link."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal, get_args

import pytest

from omnidata.errors import RunError
from omnidata.storage import atomic_write, copy_file, is_unfinished, open_own

Mode = Literal["rb", "ab", "rb+"]
MODES: tuple[Mode, ...] = get_args(Mode)


def test_the_file_in_the_making_cannot_be_foreseen_and_is_known_by_its_name(
    tmp_path: Path,
) -> None:
    seen = set()
    for _ in range(3):
        with atomic_write(tmp_path / "a.json") as file:
            file.write(b"{}")
            [name] = [path.name for path in tmp_path.iterdir() if path.name != "a.json"]
            assert is_unfinished(name)
            seen.add(name)
    assert len(seen) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_link_in_the_place_of_the_target_is_replaced_and_not_written_through(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"theirs")
    (tmp_path / "a.json").symlink_to(other)
    with atomic_write(tmp_path / "a.json") as file:
        file.write(b"ours")
    assert other.read_bytes() == b"theirs"
    assert not (tmp_path / "a.json").is_symlink()
    assert (tmp_path / "a.json").read_bytes() == b"ours"


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_that_the_user_gives_to_new_ones(tmp_path: Path, mask: int) -> None:
    (tmp_path / "source").write_bytes(b"x")
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "a") as file:
            file.write(b"x")
        copy_file(tmp_path / "source", tmp_path / "b")
        open_own(tmp_path / "c", "ab").close()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "abc"}
    assert modes == {0o666 & ~mask}


def test_a_file_that_cannot_take_its_place_is_not_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError), atomic_write(tmp_path / "folder") as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_long_name_leaves_room_for_the_file_in_the_making(tmp_path: Path) -> None:
    with atomic_write(tmp_path / ("a" * 255)) as file:
        file.write(b"x")
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_what_is_no_file_of_the_folder_is_not_opened(tmp_path: Path, kind: str, mode: Mode) -> None:
    other, path = tmp_path / "other", tmp_path / "path"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(other)
        if kind == "link":
            other.write_bytes(b"theirs")
    with pytest.raises(RunError, match="cp -rL"):
        open_own(path, mode)
    assert kind != "link" or other.read_bytes() == b"theirs"
    assert kind != "dangling" or not other.exists()


def test_a_file_with_a_second_name_is_read_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"theirs")
    os.link(tmp_path / "other", tmp_path / "path")
    with open_own(tmp_path / "path", "rb") as file:
        assert file.read() == b"theirs"
    for mode in MODES[1:]:
        with pytest.raises(RunError, match="second name"):
            open_own(tmp_path / "path", mode)
