"""Only whole, regular files inside the dataset are opened."""

from __future__ import annotations

import os
import wave
from pathlib import Path

import pytest
from PIL import Image

from omnidata.errors import MediaError
from omnidata.media import DEFAULT_BUDGET, check, image_size, linkable, resolve, unsafe
from omnidata.types import MediaRef, Modality


def ref(root: Path, path: str, kind: Modality = "image") -> MediaRef:
    return MediaRef(kind, root, path)


@pytest.mark.parametrize("path", ["a/b.png", "a..b/c.png", "..a", "目/截图.png", "a b.png"])
def test_ordinary_paths_are_safe(path: str) -> None:
    assert unsafe(path) == ""


@pytest.mark.parametrize(
    "path", ["../a", "a/../../b", "/a", "\\a", "C:\\a", "c:/a", "file:a", "https://a", "a\0b",
             "a\\..\\b"]
)  # fmt: skip
def test_paths_that_lead_out_are_unsafe_and_never_opened(tmp_path: Path, path: str) -> None:
    assert unsafe(path)
    with pytest.raises(MediaError, match="inside the dataset"):
        resolve(ref(tmp_path, path))


def test_a_link_out_of_the_dataset_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    Image.new("RGB", (2, 2)).save(outside)
    root = tmp_path / "data"
    root.mkdir()
    (root / "a.png").symlink_to(outside)
    (root / "up").symlink_to(tmp_path)
    for path in ("a.png", "up/outside.png"):
        with pytest.raises(MediaError, match="through a link"):
            image_size(ref(root, path))


def test_a_link_inside_the_dataset_is_followed(tmp_path: Path) -> None:
    Image.new("RGB", (2, 3)).save(tmp_path / "a.png")
    (tmp_path / "b.png").symlink_to(tmp_path / "a.png")
    assert image_size(ref(tmp_path, "b.png")) == (2, 3)


@pytest.mark.parametrize(
    ("disk", "row"),
    [
        ("caf\u00e9/\u00e0 b.png", "cafe\u0301/a\u0300 b.png"),
        ("cafe\u0301/a\u0300 b.png", "caf\u00e9/\u00e0 b.png"),
        ("cafe\u0301/\u00e0.png", "caf\u00e9/\u00e0.png"),
        ("images/a.png", "images\\a.png"),
        ("images\\a.png", "images/a.png"),
        ("caf\u00e9/a.png", "cafe\u0301\\a.png"),
    ],
)
def test_a_name_is_found_as_the_disk_spells_it(tmp_path: Path, disk: str, row: str) -> None:
    path = tmp_path / disk
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (2, 3)).save(path)
    assert image_size(ref(tmp_path, row)) == (2, 3)
    assert linkable(ref(tmp_path, row)) == path


def test_the_rows_own_spelling_comes_first(tmp_path: Path) -> None:
    for width, name in enumerate(("caf\u00e9.png", "cafe\u0301.png"), 1):
        Image.new("RGB", (width, 3)).save(tmp_path / name)
    assert image_size(ref(tmp_path, "cafe\u0301.png")) == (2, 3)


def test_devices_pipes_folders_empty_and_huge_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "empty.png").touch()
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(DEFAULT_BUDGET.max_bytes + 1)
    for name in ("pipe.png", "folder.png", "empty.png", "huge.png"):
        with pytest.raises(MediaError, match=name):
            resolve(ref(tmp_path, name))


def test_a_whole_screenshot_clip_and_track_pass(sample: Path) -> None:
    episode = min(sample.glob("*/media/*"))
    check(ref(episode, "1.png"))
    check(ref(episode, "1.mp4", "video"))
    check(ref(episode, "1.wav", "audio"))


@pytest.mark.parametrize(("name", "kind"), [("1.png", "image"), ("1.mp4", "video")])
def test_a_truncated_file_is_a_media_error_that_names_it(
    sample: Path, tmp_path: Path, name: str, kind: Modality
) -> None:
    whole = (min(sample.glob("*/media/*")) / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MediaError, match=name):
        check(ref(tmp_path, name, kind))


@pytest.mark.parametrize("kind", ["image", "video", "audio"])
def test_a_file_of_another_kind_is_a_media_error(tmp_path: Path, kind: Modality) -> None:
    (tmp_path / "x").write_bytes(b"no medium at all" * 10)
    with pytest.raises(MediaError, match="Fix"):
        check(ref(tmp_path, "x", kind))


def test_a_playlist_makes_nothing_else_open(sample: Path, tmp_path: Path) -> None:
    clip = min(sample.glob("*/media/*/1.mp4"))
    (tmp_path / "in.mp4").symlink_to(clip)
    (tmp_path / "a.mp4").write_text("ffconcat version 1.0\nfile in.mp4\n")
    (tmp_path / "b.mp4").write_text(f"#EXTM3U\n#EXTINF:1,\n{clip}\n#EXT-X-ENDLIST\n")
    for name in ("a.mp4", "b.mp4"):
        with pytest.raises(MediaError, match=name):
            check(ref(tmp_path, name, "video"))


def test_a_track_without_a_picture_is_no_clip(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as track:
        track.setnchannels(1)
        track.setsampwidth(2)
        track.setframerate(16_000)
        track.writeframes(bytes(3200))
    with pytest.raises(MediaError, match="no video stream"):
        check(ref(tmp_path, "a.wav", "video"))
