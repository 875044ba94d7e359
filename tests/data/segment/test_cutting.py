"""What is cut is exact: to the frame, and to the sample."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from omnidata.actions import Box, Point
from omnidata.data.segment import Segmented, segment
from omnidata.data.segment.plan import Cut
from omnidata.errors import DataError, MediaError
from omnidata.tasks.omnigui.load import load
from tests.data.segment.films import Tree, film, noise, number_of, numbered, tap, turn, write_log
from tests.trees import same_files


def cut(tmp_path: Path, recording: Path, *rows: dict[str, object], **how: object) -> Tree:
    log = write_log(tmp_path / "log.jsonl", *rows)
    segment(recording, log, tmp_path / "out", cut=Cut(**how))  # type: ignore[arg-type]  # options by name
    return Tree(tmp_path / "out")


def in_16_bits(wave: NDArray[np.float32]) -> NDArray[np.int16]:
    return (wave.astype(np.float64) * 32767).astype(np.int16)


def codes(made: Segmented) -> list[str]:
    return [finding.code for finding in made.findings]


def test_a_clip_goes_from_the_end_of_the_last_action_to_the_start_of_its_own(
    tmp_path: Path,
) -> None:
    """One that begins between two frames begins with the one on the screen."""
    rows = (tap(1.0, 1.2), tap(2.5, 2.51), tap(4.0))
    tree = cut(tmp_path, film(tmp_path / "a.mkv"), *rows)
    assert tree.numbers(0) == list(range(30))
    assert tree.numbers(1) == list(range(36, 75))
    assert tree.numbers(2) == list(range(75, 120))
    assert tree.clip(0)[1] == 30


@pytest.mark.parametrize(("lead", "number"), [(0.5, 60), (0.0, 75), (0.1, 72), (9.0, 36)])
def test_the_screenshot_is_the_frame_of_its_moment_but_not_from_before_the_last_action(
    tmp_path: Path, lead: float, number: int
) -> None:
    tree = cut(tmp_path, film(tmp_path / "a.mkv"), tap(1.0, 1.2), tap(2.5), lead_s=lead)
    assert number_of(tree.shot(1)) == number
    assert tree.shot(1).shape == (96, 160, 3)


def test_the_screenshot_may_lie_before_a_short_clip(tmp_path: Path) -> None:
    tree = cut(tmp_path, film(tmp_path / "a.mkv"), tap(3.0), longest_s=0.2)
    assert number_of(tree.shot(0)) == 75
    assert tree.numbers(0) == list(range(84, 90))


def test_sound_is_exact_to_the_sample(tmp_path: Path) -> None:
    wave = noise(5)
    tree = cut(tmp_path, film(tmp_path / "a.mkv", sound=wave), tap(1.0, 1.2003), tap(3.7))
    heard = in_16_bits(wave)
    assert np.array_equal(tree.sound(0), heard[:16_000])
    assert np.array_equal(tree.sound(1), heard[19_205:59_200])


def test_clicks_at_another_rate_stay_where_they_are(tmp_path: Path) -> None:
    wave = np.zeros(5 * 48_000, np.float32)
    wave[[24_000, 96_000]] = 0.9
    tree = cut(tmp_path, film(tmp_path / "a.mkv", sound=wave, rate=48_000), tap(1.0), tap(3.0))
    assert [int(np.abs(tree.sound(step)).argmax()) for step in (0, 1)] == [8_000, 16_000]


def test_sound_that_begins_late_and_ends_early_is_silence_there(tmp_path: Path) -> None:
    wave = noise(2)
    recording = film(tmp_path / "a.mkv", sound=wave, sound_start=1.0)
    tree = cut(tmp_path, recording, tap(2.0), tap(4.5))
    heard = in_16_bits(wave)
    assert not tree.sound(0)[:16_000].any()
    assert np.array_equal(tree.sound(0)[16_000:], heard[:16_000])
    assert np.array_equal(tree.sound(1)[:16_000], heard[16_000:])
    assert not tree.sound(1)[16_000:].any()
    assert len(tree.sound(1)) == 40_000


def test_a_gap_in_the_sound_is_silence(tmp_path: Path) -> None:
    wave = noise(2.048)
    recording = film(tmp_path / "a.mkv", sound=wave, gap=1.5)
    tree = cut(tmp_path, recording, tap(0.5), tap(4.0))
    heard = in_16_bits(wave)
    silence = np.zeros(24_000, np.int16)
    track = np.concatenate([heard[:16_384], silence, heard[16_384:]])
    assert np.array_equal(tree.sound(1)[: len(track) - 8_000], track[8_000:])


def test_time_begins_with_the_first_frame(tmp_path: Path) -> None:
    wave = noise(3)
    times = [7 + number / 30 for number in range(90)]
    recording = film(tmp_path / "a.mkv", times=times, sound=wave, sound_start=7.0)
    tree = cut(tmp_path, recording, tap(1.0), tap(2.0))
    assert tree.numbers(1) == list(range(30, 60))
    heard = in_16_bits(wave)
    assert np.array_equal(tree.sound(1), heard[16_000:32_000])


def test_a_varying_rate_becomes_a_steady_one_that_shows_what_the_screen_showed(
    tmp_path: Path,
) -> None:
    times = [0.0, 0.4, 0.433, 0.466, 1.5, 1.9, 1.933, 2.8, 3.0]
    tree = cut(tmp_path, film(tmp_path / "a.mkv", times=times), tap(1.0), tap(2.95))
    for step, begin in ((0, 0.0), (1, 1.0)):
        rate = float(tree.clip(step)[1])
        shown = [
            max(n for n, time in enumerate(times) if time <= begin + tick / rate + 1e-6)
            for tick in range(len(tree.numbers(step)))
        ]
        assert tree.numbers(step) == shown
        assert len(shown) == math.floor((1.0, 1.95)[step] * rate + 0.5)
        assert rate >= 24
    assert number_of(tree.shot(1)) == 6


def test_a_rate_with_a_fraction_is_kept(tmp_path: Path) -> None:
    fps = Fraction(30_000, 1001)
    tree = cut(tmp_path, film(tmp_path / "a.mp4", fps=fps), tap(1.001), tap(2.002))
    assert tree.clip(1)[1] == fps
    assert tree.numbers(1) == list(range(30, 60))


def test_an_odd_size_is_whole_in_the_screenshot_and_even_in_the_clip(tmp_path: Path) -> None:
    tree = cut(tmp_path, film(tmp_path / "a.mkv", size=(161, 97)), tap(1.0))
    assert tree.shot(0).shape == (97, 161, 3)
    assert (tree.rows[0]["image_width"], tree.rows[0]["image_height"]) == (161, 97)
    assert tree.clip(0)[0][0].shape == (96, 160, 3)
    assert tree.numbers(0) == list(range(30))


def test_a_turned_recording_is_cut_upright(tmp_path: Path) -> None:
    tree = cut(tmp_path, turn(film(tmp_path / "a.mp4")), tap(1.0))
    expected = np.rot90(numbered(15, (160, 96)), -1)
    for picture in (tree.shot(0), tree.clip(0)[0][15]):
        assert picture.shape == (160, 96, 3)
        assert np.abs(picture.astype(int) - expected).mean() < 8


@pytest.mark.parametrize("matrix", [(-1, 0, 0, 1), (1, 0, 0, -1), (0, 1, 1, 0), (0, -1, -1, 0)])
def test_a_mirrored_recording_is_refused(tmp_path: Path, matrix: tuple[int, ...]) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(1.0))
    with pytest.raises(MediaError, match="mirrors"):
        segment(turn(film(tmp_path / "a.mp4"), matrix), log, tmp_path / "out")


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_the_last_frame_stands_as_long_as_there_is_sound(tmp_path: Path, suffix: str) -> None:
    """Recorders that write a frame only when the screen changes."""
    times = [number / 10 for number in range(30)]
    film(tmp_path / "a.mkv", times=times, sound=noise(6))
    recording = tmp_path / f"a.{suffix}"
    if suffix == "mp4":
        film(recording, times=times, sound=noise(6), codec="aac")
    log = write_log(tmp_path / "log.jsonl", tap(2.0), tap(5.0, action="LONG_PRESS"), tap(6.5))
    made = segment(recording, log, tmp_path / "out")
    assert codes(made) == ["event-outside"]
    assert made.recording.seconds == pytest.approx(6.0, abs=0.1)
    tree = Tree(tmp_path / "out")
    assert number_of(tree.shot(1)) == 29
    assert tree.numbers(1)[-1] == 29
    assert len(tree.sound(1)) == 3 * 16_000


@pytest.mark.parametrize("until", ["last-action", 5.5])
def test_the_last_frame_stands_until_the_moment_that_is_named(
    tmp_path: Path, until: float | str
) -> None:
    """As scrcpy writes: a frame on a change, and a tenth of a second for the last one."""
    recording = film(tmp_path / "a.mp4", times=[0.0, 2.0, 2.1])
    log = write_log(tmp_path / "log.jsonl", tap(1.9, 2.0), tap(4.0, 5.0), tap(5.5, 5.5))
    made = segment(recording, log, tmp_path / "out", cut=Cut(until=until))  # type: ignore[arg-type]
    held = next(finding for finding in made.findings if finding.code == "frame-held")
    assert held.what.startswith("2 actions from 4.00 s on")
    assert made.recording.seconds < 2.3
    tree = Tree(tmp_path / "out")
    assert [number_of(tree.shot(step)) for step in range(3)] == [0, 2, 2]
    assert set(tree.numbers(1)) == {1, 2}
    assert len(tree.numbers(1)) == round(2.0 * made.recording.fps)
    assert set(tree.numbers(2)) == {2}


def test_a_moment_within_the_recording_changes_nothing(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mp4", sound=noise(5), codec="aac")
    log = write_log(tmp_path / "log.jsonl", tap(1.0), tap(2.0))
    plain = segment(recording, log, tmp_path / "plain")
    for until in ("last-action", 1.5):
        made = segment(recording, log, tmp_path / f"out{until}", cut=Cut(until=until))
        assert made == plain
        assert same_files(tmp_path / f"out{until}", tmp_path / "plain")


def test_held_sound_is_silence(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mkv", count=30, sound=noise(1))
    log = write_log(tmp_path / "log.jsonl", tap(0.5), tap(3.0))
    made = segment(recording, log, tmp_path / "out", cut=Cut(until="last-action"))
    assert "with silence" in made.findings[0].what
    sound = Tree(tmp_path / "out").sound(1)
    assert len(sound) == round(2.5 * 16_000)
    assert not sound[-16_000:].any()


def test_a_clock_that_is_days_off_is_no_still_screen(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mp4", count=30)
    log = write_log(tmp_path / "log.jsonl", tap(1.7e9))
    with pytest.raises(DataError, match="--offset"):
        segment(recording, log, tmp_path / "out", cut=Cut(until="last-action"))


def test_frames_that_are_stored_in_another_order_than_shown_are_cut_in_theirs(
    tmp_path: Path,
) -> None:
    recording = film(tmp_path / "a.avi")
    with av.open(str(recording)) as container:
        times = [frame.pts or 0 for frame in container.decode(video=0)]
    assert times != sorted(times)  # as FFmpeg gives them
    tree = cut(tmp_path, recording, tap(1.0, 1.2), tap(2.5))
    assert tree.numbers(0) == list(range(30))
    assert tree.numbers(1) == list(range(36, 75))
    assert number_of(tree.shot(1)) == 60


@pytest.mark.parametrize(("longest", "first"), [(10.0, 0), (2.0, 60), (0.5, 105)])
def test_of_a_longer_wait_the_end_is_kept(tmp_path: Path, longest: float, first: int) -> None:
    wave = noise(5)
    recording = film(tmp_path / "a.mkv", sound=wave)
    tree = cut(tmp_path, recording, tap(4.0), longest_s=longest)
    assert tree.numbers(0) == list(range(first, 120))
    heard = in_16_bits(wave)
    assert np.array_equal(tree.sound(0), heard[first * 1600 // 3 : 64_000])


def test_trimming_cuts_the_idle_head_and_the_actions_outside(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(0.5), tap(1.0, 1.9), tap(3.0), tap(4.5))
    how = Cut(trim=(1.5, 4.0))
    made = segment(film(tmp_path / "a.mkv"), log, tmp_path / "out", cut=how)
    tree = Tree(tmp_path / "out")
    assert len(tree.rows) == 1
    assert tree.numbers(0) == list(range(57, 90))  # the action before ends after the cut
    assert made.trimmed == 3
    assert codes(made) == ["sound-missing"]


def test_an_offset_or_the_clock_of_the_log_moves_it(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mkv")
    tree = cut(tmp_path, recording, tap(11.0, 11.2), tap(12.5), offset_s=-10.0)
    assert tree.numbers(1) == list(range(36, 75))
    log = write_log(tmp_path / "log.jsonl", tap(1001.5), tap(1002.0), clock=1000.5)
    segment(recording, log, tmp_path / "clock")
    assert Tree(tmp_path / "clock").numbers(1) == list(range(30, 45))


def test_overlapping_actions_have_a_screenshot_and_no_clip(tmp_path: Path) -> None:
    rows = (tap(1.0, 2.0), tap(1.5, 1.6), tap(1.8), tap(3.0))
    log = write_log(tmp_path / "log.jsonl", *rows)
    made = segment(film(tmp_path / "a.mkv", sound=noise(5)), log, tmp_path / "out")
    tree = Tree(tmp_path / "out")
    assert codes(made) == ["actions-overlap", "actions-overlap"]
    assert [row["video_path"] != "" for row in tree.rows] == [True, False, False, True]
    assert [row["audio_path"] != "" for row in tree.rows] == [True, False, False, True]
    assert tree.numbers(3) == list(range(60, 90))  # all actions before are over
    assert number_of(tree.shot(1)) == 45
    source = load(tmp_path / "out", strict=True)
    assert [step.media["video"] is None for step in source.steps] == [False, True, True, False]


def test_an_action_without_a_wait_has_no_clip_and_a_finding(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(0.0), tap(1.0, 1.5), tap(1.51))
    made = segment(film(tmp_path / "a.mkv"), log, tmp_path / "out")
    assert codes(made) == ["sound-missing", "span-empty", "span-empty"]
    rows = Tree(tmp_path / "out").rows
    assert [row["video_path"] != "" for row in rows] == [False, True, False]
    assert {row["audio_path"] for row in rows} == {""}
    steps = load(tmp_path / "out", strict=True).steps
    assert [step.media["audio"] for step in steps] == [None] * 3


def test_actions_in_disorder_are_sorted_with_a_finding(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", tap(2.0), tap(1.0, words="first"), tap(3.0))
    made = segment(film(tmp_path / "a.mkv"), log, tmp_path / "out")
    assert codes(made) == ["sound-missing", "events-unordered"]
    assert made.findings[1].where == f"{log}:3"
    assert Tree(tmp_path / "out").rows[0]["action_text"] == "first"


def test_targets_are_scaled_to_the_screenshot(tmp_path: Path) -> None:
    swipe = {"time": 3.0, "action": "SWIPE_UP", "point": [500, 500], "to": [500, 100]}
    rows = (
        tap(1.0, box=[100, 200, 300, 400]),
        tap(2.0, box=[0.1, 0.2, 0.3, 0.4], unit="rel"),
        swipe | {"unit": "norm1000"},
    )
    log = write_log(tmp_path / "log.jsonl", *rows, screen=[1600, 960])
    segment(film(tmp_path / "a.mkv"), log, tmp_path / "out")
    steps = load(tmp_path / "out", strict=True).steps
    found = [region for step in steps if step.action for region in step.action.start]
    assert found[:2] == [
        Box(10, 20, 30, 40, "px"),
        Box(16, 19.200000000000003, 48, 38.400000000000006, "px"),
    ]
    assert steps[2].action and steps[2].action.end == (Point(80, 9.6, "px"),)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mkv", sound=noise(5))
    log = write_log(tmp_path / "log.jsonl", tap(1.0), tap(3.0))
    for name in ("one", "two"):
        segment(recording, log, tmp_path / name)
    assert same_files(tmp_path / "one", tmp_path / "two")
    assert len([*(tmp_path / "one").rglob("*.*")]) > 8


def test_a_long_clip_is_never_held(tmp_path: Path) -> None:
    recording = film(tmp_path / "a.mkv", count=120, size=(480, 270))
    log = write_log(tmp_path / "log.jsonl", tap(4.0))
    tracemalloc.start()
    try:
        segment(recording, log, tmp_path / "out")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120 * 480 * 270 * 3 / 10


def test_a_track_far_from_its_picture_is_cut_all_the_same(tmp_path: Path) -> None:
    """All frames first, then all samples of two tracks: one pass would hold everything."""
    wave = noise(5)
    options = {"max_interleave_delta": "1"}
    recording = film(tmp_path / "a.mkv", sound=wave, tracks=2, options=options)
    with av.open(str(recording)) as container:
        kinds = [packet.stream.type for packet in container.demux() if packet.size]
    assert kinds.index("audio") > 100
    made = segment(recording, write_log(tmp_path / "log.jsonl", tap(2.0)), tmp_path / "out")
    assert codes(made) == ["stream-ignored"]
    assert np.array_equal(Tree(tmp_path / "out").sound(0), in_16_bits(wave)[:32_000])
