"""AVI with B-frames: FFmpeg's times for its frames are those of others."""

from __future__ import annotations

import av
import numpy as np
import pytest

from omnidata.media import Frames, frames
from omnidata.types import MediaRef
from tests.data.segment.films import film, number_of

COUNT = 400


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> MediaRef:
    """Every frame shows its number."""
    path = film(tmp_path_factory.mktemp("avi") / "clip.avi", count=COUNT)
    with av.open(str(path)) as container:
        times = [frame.pts or 0 for frame in container.decode(video=0)]
    assert times != sorted(times)
    return MediaRef("video", path.parent, path.name)


def numbers(found: Frames) -> list[int]:
    return [number_of(picture) for picture in found.pixels]


def test_times_rise_and_every_tick_shows_its_own_frame(clip: MediaRef) -> None:
    every = frames(clip, which="all")
    assert np.allclose(np.diff(every.pts_seconds), 1 / 30)
    assert numbers(every) == numbers(frames(clip, fps=30)) == list(range(COUNT))
    assert numbers(frames(clip, fps=10)) == list(range(0, COUNT, 3))


@pytest.mark.parametrize("num_frames", [2, 3])
def test_few_frames_are_those_of_one_pass(clip: MediaRef, num_frames: int) -> None:
    few, every = frames(clip, num_frames=num_frames), frames(clip, which="all")
    wanted = [k * (COUNT - 1) // (num_frames - 1) for k in range(num_frames)]
    assert few.indices.tolist() == numbers(few) == wanted
    assert np.array_equal(few.pts_seconds, every.pts_seconds[wanted])
