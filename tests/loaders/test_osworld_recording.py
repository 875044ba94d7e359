"""A recording is cut into a clip for each turn, and what is known of the cut is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata import media
from omnidata.tasks.osworld.load import load
from omnidata.types import Step, VideoSegment
from tests.loaders.osworld import (
    FPS,
    codes,
    line,
    picture,
    plain,
    recording,
    rollout,
    screen,
    stamp,
    write_lines,
)
from tests.trees import NO_SHARED, SHARED

TASKED: dict[str, Any] = {"instruction": "Open the menu"}
THREE = [line(n, **TASKED) for n in (1, 2, 3)]
REAL = SHARED / "data" / "agentnet_raw_win10"


def span(step: Step, role: str) -> tuple[float, float] | None:
    ref = step.media[role]
    if ref is None:
        return None
    assert isinstance(ref.cell, VideoSegment)
    return ref.cell.start_s, ref.cell.end_s


def spans(root: Path, role: str = "video_after", **options: Any) -> list[Any]:
    return [span(step, role) for step in load(root, **options).steps]


def test_the_clips_follow_one_another_and_the_one_before_leads_to_the_action(
    tmp_path: Path,
) -> None:
    """35 s; turns 10 s apart; 15 s are left over, and the last turn takes 10 s as the others do."""
    plain(tmp_path)
    assert spans(tmp_path, "video") == [(0, 5), (5, 15), (15, 25)]
    assert spans(tmp_path, "video_after") == [(5, 15), (15, 25), (25, 35)]


@pytest.mark.parametrize(
    ("seconds", "after"),
    [
        (20.0, [(0, 10), (10, 20), None]),  # nothing is left over: the last clip is empty
        (24.0, [(0, 10), (10, 20), (20, 24)]),
        (12.0, [(0, 10), (10, 12), None]),  # it ends early: what lies behind its end is nowhere
    ],
)
def test_a_recording_that_is_short_gives_no_clip_beyond_its_end(
    tmp_path: Path, seconds: float, after: list[Any]
) -> None:
    rollout(tmp_path, *THREE, film=recording((), seconds))
    assert spans(tmp_path) == after
    assert codes(load(tmp_path)) == []


def test_a_single_turn_lies_in_the_middle_and_two_in_one_second_share_no_clip(
    tmp_path: Path,
) -> None:
    rollout(tmp_path / "one", line(1, **TASKED), film=recording((), 8.0))
    assert spans(tmp_path / "one", "video") == [(0, 4)]
    rows = [line(n, **TASKED, action_timestamp=stamp(10)) for n in (1, 2)]
    rollout(tmp_path / "two", *rows, film=recording((), 8.0))
    assert [one is None for one in spans(tmp_path / "two", "video")] == [False, True]


def test_microseconds_are_kept(tmp_path: Path) -> None:
    rows = [
        line(n, **TASKED, action_timestamp=stamp(at, micro=True)) for n, at in ((1, 10.25), (2, 12))
    ]
    rollout(tmp_path, *rows, film=recording((), 10.0))
    assert [step.source["start_s"] for step in load(tmp_path).steps] == [
        pytest.approx(6.5), pytest.approx(8.25),
    ]  # fmt: skip


def test_screenshots_tell_where_the_turns_lie_in_the_recording(tmp_path: Path) -> None:
    """The recording begins at 0 s; its screen changes 0.4 s after each of the actions."""
    rollout(tmp_path, *THREE, film=recording((10.4, 20.4, 30.4), 60.0))
    source = load(tmp_path, align="pictures")
    assert {step.tags["alignment"] for step in source.steps} == {"exact"}
    starts = [step.source["start_s"] for step in source.steps]
    assert starts == [pytest.approx(10.4), pytest.approx(20.4), pytest.approx(30.4)]
    clip = source.steps[1].media["video_after"]
    assert clip is not None
    shown = media.frames(clip, num_frames=2).pixels
    for pixels, number in zip(shown, (2, 2), strict=True):
        assert np.abs(pixels.astype(int) - screen(number)).mean() < 4
    assert {step.tags["alignment"] for step in load(tmp_path).steps} == {"estimated"}


def alignment(root: Path, **options: Any) -> set[str]:
    return {step.tags["alignment"] for step in load(root, align="pictures", **options).steps}


def test_screenshots_that_show_no_change_tell_nothing(tmp_path: Path) -> None:
    folder = rollout(tmp_path, *THREE, film=recording((), 40.0))
    for path in folder.glob("step_*.png"):
        path.write_bytes(picture(0))
    assert alignment(tmp_path) == {"estimated"}


def test_a_screenshot_that_the_recording_does_not_show_tells_nothing(tmp_path: Path) -> None:
    folder = rollout(tmp_path, *THREE, film=recording((10.4, 20.4), 60.0))
    assert alignment(tmp_path) == {"estimated"}, "no third change"
    for path in folder.glob("step_3_*.png"):
        path.unlink()
    assert alignment(tmp_path, check_media=False) == {"exact"}, "nobody asks for it now"


def test_screenshots_that_contradict_the_times_tell_nothing(tmp_path: Path) -> None:
    """The second change comes 30 s after the first one; by the clock, before the third turn."""
    rollout(tmp_path, *THREE, film=recording((5.0, 35.0, 36.0), 60.0))
    assert alignment(tmp_path) == {"estimated"}


def test_clips_are_whole_media_at_the_rate_of_the_recording(tmp_path: Path) -> None:
    first, second, _ = load(plain(tmp_path)).steps
    clip = first.media["video_after"]
    assert clip and clip == second.media["video"]
    found = media.examine(clip)
    assert (found.frames, found.seconds, found.fps) == (10 * FPS, 10, FPS)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)
def test_the_turns_of_a_real_recording_are_found_by_its_screenshots(tmp_path: Path) -> None:
    """A desktop's recording, its screenshots, and when its actions really began in it."""
    told = json.loads((REAL / "derived" / "step_timing.json").read_text())["rows"]
    rows = [row for row in told if row["action_start_s"] is not None][:4]
    folder = tmp_path / "os" / "real"
    write_lines(
        folder,
        [
            line(
                number,
                row["code"],
                action_timestamp=stamp(row["action_start_s"], micro=True),
                screenshot_file=f"{number}.png",
                **TASKED,
            )
            for number, row in enumerate(rows, 1)
        ],
    )
    for number, _ in enumerate(rows, 1):
        shutil.copy(REAL / told[number]["image"], folder / f"{number}.png")
    shutil.copy(REAL / "recording" / "recording.mp4", folder)
    source = load(tmp_path, align="pictures")
    assert [step.tags["alignment"] for step in source.steps] == ["exact"] * 4
    for step, row in zip(source.steps, rows, strict=True):
        assert step.source["start_s"] == pytest.approx(row["action_start_s"], abs=1.0)
    assert source.steps[0].screen == media.image_size(
        source.steps[0].media["screenshot_after"] or pytest.fail("there is a screenshot")
    )
