"""Frames and samples of real files, against timestamp tables that others made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from omnidata.media import Frames, frames, probe, samples
from omnidata.types import MediaRef, Modality
from tests.full import in_gate
from tests.trees import NO_SHARED, SHARED

DATA = SHARED / "data"
FOLDER = DATA / "torchcodec_av"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=NO_SHARED)


def ref(name: str, kind: Modality = "video", root: Path = FOLDER) -> MediaRef:
    return MediaRef(kind, root, name)


def times(stream: int) -> list[float]:
    table = json.loads((FOLDER / f"nasa_13013.mp4.stream{stream}.all_frames_info.json").read_text())
    return [float(row["pts_time"]) for row in table]


@pytest.fixture(scope="module")
def everything() -> Frames:
    """Every frame of the stream that is usually shown."""
    return frames(ref("nasa_13013.mp4"), which="all", stream=3)


@pytest.mark.parametrize("stream", in_gate([3, 0], 1, "the same film in another size"))
def test_every_frame_has_the_index_and_the_time_of_the_table(
    everything: Frames, stream: int
) -> None:
    wanted = times(stream)
    found = everything
    if stream != 3:
        found = frames(ref("nasa_13013.mp4"), which="all", stream=stream)
    assert len(found.pixels) == len(wanted)
    assert found.indices.tolist() == list(range(len(wanted)))
    assert found.pts_seconds == pytest.approx(wanted, abs=1e-6)


def test_without_a_choice_the_stream_is_the_one_that_ffmpeg_shows(everything: Frames) -> None:
    found = frames(ref("nasa_13013.mp4"), num_frames=2).pixels
    assert np.array_equal(found, everything.pixels[[0, -1]])


@pytest.mark.parametrize("count", in_gate([7, 10_000, 1, 2, 4, 100], 1, "seconds of films"))
def test_some_frames_are_those_of_all_frames_at_their_indices(
    everything: Frames, count: int
) -> None:
    some = frames(ref("nasa_13013.mp4"), num_frames=count, stream=3)
    total = len(everything.pixels)
    wanted = list(range(total)) if count >= total else np.linspace(0, total - 1, count).astype(int)
    assert some.indices.tolist() == list(wanted)
    assert np.array_equal(some.pixels, everything.pixels[some.indices])
    assert np.array_equal(some.pts_seconds, everything.pts_seconds[some.indices])


@pytest.mark.parametrize("fps", in_gate([2.0, 40.0, 0.5, 10.0, 29.97, 60.0], 2, "seconds of films"))
def test_a_rate_takes_the_frame_that_is_shown_at_each_tick(everything: Frames, fps: float) -> None:
    times = everything.pts_seconds
    found = frames(ref("nasa_13013.mp4"), fps=fps, stream=3)
    ticks = np.arange(0, times[-1] - times[0] + 1e-6, 1 / fps) + times[0]
    wanted = np.searchsorted(times, ticks + 1e-6, side="right") - 1
    assert found.indices.tolist() == wanted.tolist()


def test_keyframes_are_fewer_and_in_order(everything: Frames) -> None:
    keys = frames(ref("nasa_13013.mp4"), which="keyframes", stream=3)
    assert 1 <= len(keys.pixels) < len(everything.pixels)
    assert keys.pts_seconds[0] == everything.pts_seconds[0]
    assert set(keys.pts_seconds) <= set(everything.pts_seconds)


@pytest.mark.parametrize("name", ["av1_video.mkv", "h265_video.mp4", "bt709_full_range.mp4"])
def test_other_codecs_decode(name: str) -> None:
    found = frames(ref(name), num_frames=4)
    assert found.pixels.shape[0] == 4
    assert found.pixels.dtype == np.uint8
    assert found.pixels.std() > 1


def test_samples_are_as_many_as_the_table_says() -> None:
    table = json.loads((FOLDER / "nasa_13013.mp4.stream4.all_frames_info.json").read_text())
    seconds = sum(float(row["duration_time"]) for row in table)
    own = probe(ref("nasa_13013.mp4", "audio")).rate
    assert own
    wave = samples(ref("nasa_13013.mp4", "audio"), rate=own, stream=4)
    assert wave.shape == (round(seconds * own),)
    assert wave.dtype == np.float32
    assert len(samples(ref("nasa_13013.mp4", "audio"), stream=4)) == pytest.approx(
        seconds * 16_000, abs=2
    )


@pytest.mark.parametrize("name", ["sine_mono_s16.wav", "sine_mono_s32_8000.wav"])
def test_a_sine_stays_a_sine_of_its_pitch(name: str) -> None:
    wave = samples(ref(name, "audio"))
    spectrum = np.abs(np.fft.rfft(wave * np.hanning(len(wave))))
    peak = int(spectrum.argmax()) * 16_000 / len(wave)
    around = spectrum[max(0, spectrum.argmax() - 5) : spectrum.argmax() + 6]
    assert 400 < peak < 500
    assert (around**2).sum() / (spectrum**2).sum() > 0.99


def test_the_recordings_track_is_silent_by_its_samples() -> None:
    facts = probe(ref("recording.mp4", "audio", DATA / "agentnet_raw_win10" / "recording"))
    assert facts.audio == "silent"
    assert facts.rms == 0.0
    assert facts.channels == 2


def test_real_interface_sounds_are_heard() -> None:
    earcons = sorted((DATA / "talkback_earcons").glob("*.ogg"))
    assert len(earcons) == 15
    for path in earcons:
        facts = probe(ref(path.name, "audio", path.parent))
        assert facts.audio == "present", path.name
        assert facts.seconds and 0.04 < facts.seconds < 1.9
