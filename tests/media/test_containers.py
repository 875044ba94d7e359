"""A part of a recording is a medium of its own, cut exactly, and nothing else of it is decoded."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from omnidata import media
from omnidata.errors import MediaError, MissingMediaError
from omnidata.media import (
    Budget,
    encode_mp4,
    frames,
    image,
    place,
    probe,
    read_bytes,
    recorded_seconds,
    resolve,
)
from omnidata.types import MediaRef, Modality, VideoSegment
from tests.trees import NO_SHARED, SHARED

FPS, COUNT = 10, 600
REAL = SHARED / "data" / "agentnet_raw_win10" / "recording"


def grey(number: int) -> int:
    """The level of the frame with that number; neighbours are told apart after compression."""
    return 20 + 10 * (number % 20)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute, each frame of one grey, with a keyframe every 25 seconds."""
    path = tmp_path_factory.mktemp("film") / "recording.mp4"
    shown = (np.full((48, 64, 3), grey(number), np.uint8) for number in range(COUNT))
    path.write_bytes(encode_mp4(shown, fps=FPS, crf=10))
    return path


def part(path: Path, start: float, end: float, kind: Modality = "video") -> MediaRef:
    return MediaRef(kind, path.parent, "part.mp4", cell=VideoSegment(path.name, start, end))


@pytest.mark.parametrize("start", [0.0, 0.1, 7.0, 24.9, 25.0, 25.1, 49.95, 59.0])
def test_a_clip_begins_with_what_was_on_the_screen_then(film: Path, start: float) -> None:
    found = frames(part(film, start, start + 0.8), which="all").pixels[:, 24, 32, 0]
    first = int(start * FPS + 1e-6)
    wanted = [grey(min(first + tick, COUNT - 1)) for tick in range(8)]
    assert np.abs(found.astype(int) - wanted).max() <= 3


@pytest.mark.parametrize("moment", [0.0, 0.04, 12.34, 59.9, 60.5])
def test_a_picture_is_what_was_shown_at_that_moment(film: Path, moment: float) -> None:
    found = image(part(film, moment, moment, "image"))
    assert found.pixels.shape == (48, 64, 3)
    wanted = grey(min(int(moment * FPS + 1e-6), COUNT - 1))
    assert abs(int(found.pixels[24, 32, 0]) - wanted) <= 3


def test_a_part_has_the_length_and_rate_that_were_asked_for(film: Path) -> None:
    found = probe(part(film, 3.0, 5.5))
    assert (found.frames, found.fps, found.width, found.height) == (25, FPS, 64, 48)
    assert recorded_seconds(MediaRef("video", film.parent, film.name)) == COUNT / FPS


def test_the_same_part_has_the_same_bytes(film: Path) -> None:
    assert read_bytes(part(film, 3.0, 4.0)) == read_bytes(part(film, 3.0, 4.0))


def test_a_part_is_no_file_of_its_own(film: Path) -> None:
    ref = part(film, 3.0, 4.0)
    assert media.linkable(ref) is None
    assert place(ref) == f"{film}, 3.00 to 4.00 s"
    with pytest.raises(MediaError, match="no file of its own"):
        resolve(ref)


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        (5.0, 4.0, "it spans"),
        (-1.0, 4.0, "it spans"),
        (float("nan"), 4.0, "it spans"),
        (0.0, float("inf"), "it spans"),
        (0.0, 1e9, "it spans"),
        (62.0, 63.0, "the recording ends at"),
    ],
)
def test_a_part_that_there_is_not_is_refused(
    film: Path, start: float, end: float, says: str
) -> None:
    with pytest.raises(MediaError, match=says):
        read_bytes(part(film, start, end))


def test_a_part_beyond_the_budget_is_refused(film: Path) -> None:
    with pytest.raises(MediaError) as caught:
        read_bytes(part(film, 0.0, 5.0), budget=Budget(max_frames=10))
    assert caught.value.fault in ("refused", "unreadable")
    assert "50 frames" in caught.value.what


def test_sound_is_not_cut(film: Path) -> None:
    with pytest.raises(MediaError, match="sound cannot be cut"):
        read_bytes(part(film, 0.0, 5.0, "audio"))


def test_a_recording_that_is_missing_broken_or_outside_has_no_parts(
    film: Path, tmp_path: Path
) -> None:
    with pytest.raises(MissingMediaError):
        read_bytes(part(tmp_path / "none.mp4", 0.0, 1.0))
    (tmp_path / "text.mp4").write_text("no film")
    with pytest.raises(MediaError, match="cannot be decoded"):
        read_bytes(part(tmp_path / "text.mp4", 0.0, 1.0))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.mp4").symlink_to(film)
    with pytest.raises(MediaError, match="through a link"):
        read_bytes(part(tmp_path / "in" / "link.mp4", 0.0, 1.0))
    above = MediaRef("video", tmp_path / "in", "x.mp4", cell=VideoSegment("../text.mp4", 0, 1))
    with pytest.raises(MediaError, match=r"leaves its folder"):
        read_bytes(above)


@pytest.mark.full("the film of this file has it; tests/loaders/test_agentnet.py has the recording")
@pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
def test_a_part_of_a_real_recording_shows_the_frames_of_that_time() -> None:
    """Sought from a keyframe, the part has the frames that one pass from the beginning has."""
    found = frames(
        MediaRef("video", REAL, "a.mp4", cell=VideoSegment("recording.mp4", 12.5, 13.0)),
        which="all",
    ).pixels
    wanted = []
    with av.open(str(REAL / "recording.mp4")) as container:
        for number, frame in enumerate(container.decode(video=0)):
            if number in (375, 382, 389):
                wanted.append(frame.to_ndarray(format="rgb24"))
            if number > 389:
                break
    assert found.shape == (15, 718, 1276, 3)
    for pixels, tick in zip(wanted, (0, 7, 14), strict=True):
        assert np.abs(found[tick].astype(int) - pixels).mean() < 2
