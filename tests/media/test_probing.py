"""What `probe` says of clips that hardly move, of sound that is none, and of lengths."""

from __future__ import annotations

import wave
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
from av.video.stream import VideoStream

from omnidata.errors import MediaError
from omnidata.media import examine, in_threads, probe
from omnidata.types import MediaRef

Pixels = npt.NDArray[np.uint8]
LEFT, RIGHT = slice(20, 40), slice(60, 80)


def ground(*colour: int) -> Pixels:
    return np.full((96, 128, 3), colour, np.uint8)


def clip(path: Path, shown: Sequence[Pixels], times: Sequence[int] | None = None) -> MediaRef:
    """Of 30 frames a second, or frames at these milliseconds."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30, options={"crf": "18", "threads": "1"})
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 30 if times is None else 1000)
        stream.codec_context.max_b_frames = 0
        for number, pixels in enumerate(shown):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts = number if times is None else times[number]
            frame.time_base = stream.codec_context.time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return MediaRef("video", path.parent, path.name)


def dark(number: int) -> Pixels:
    pixels = ground(12, 12, 12)
    pixels[LEFT, number : number + 20] = 24
    return pixels


def coloured(number: int) -> Pixels:
    """Red, then a green of the same brightness."""
    pixels = ground(90, 90, 90)
    pixels[LEFT, RIGHT] = (200, 60, 60) if number < 8 else (60, 131, 60)
    return pixels


def light(number: int) -> Pixels:
    pixels = ground(255, 255, 255)
    if number > 8:
        pixels[40:56, 60:84] = 246
    return pixels


@pytest.mark.parametrize("shown", [dark, coloured, light])
def test_what_moves_a_little_moves(tmp_path: Path, shown: Callable[[int], Pixels]) -> None:
    assert probe(clip(tmp_path / "a.mp4", [shown(n) for n in range(16)])).moves is True


def test_a_still_screen_does_not_move(tmp_path: Path) -> None:
    pixels = ground(255, 255, 255)
    pixels[LEFT, RIGHT] = np.random.default_rng(0).integers(0, 256, (20, 20, 3))
    for suffix in (".mp4", ".mkv"):
        assert probe(clip(tmp_path / f"a{suffix}", [pixels] * 16)).moves is False


def test_a_single_frame_can_not_move(tmp_path: Path) -> None:
    assert probe(clip(tmp_path / "a.mp4", [ground(9, 9, 9)])).moves is None


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_a_clip_lasts_to_the_end_of_its_last_frame(tmp_path: Path, suffix: str) -> None:
    times = [*range(0, 1001, 100), 8000]
    found = probe(clip(tmp_path / f"a{suffix}", [dark(n) for n in range(12)], times))
    assert found.frames == 12
    assert found.seconds == pytest.approx(8.03, abs=0.01)


def sound(path: Path, samples: npt.NDArray[np.int16]) -> MediaRef:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return MediaRef("audio", path.parent, path.name)


def test_a_constant_is_silence(tmp_path: Path) -> None:
    level = np.full(16_000, 9000, np.int16)
    assert probe(sound(tmp_path / "a.wav", level)).audio == "silent"
    level[::2] += 100
    assert probe(sound(tmp_path / "a.wav", level)).audio == "present"


def test_samples_that_are_no_numbers_are_no_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_f32le", rate=16_000, layout="mono")
        values = np.random.default_rng(0).normal(0, 0.1, (1, 16_000)).astype(np.float32)
        values[0, 5000:5010] = np.nan
        frame = av.AudioFrame.from_ndarray(values, format="flt", layout="mono")
        frame.sample_rate = 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    ref = MediaRef("audio", tmp_path, "a.wav")
    assert probe(ref).audio == "corrupt"
    with pytest.raises(MediaError, match="not numbers"):
        examine(ref)


@pytest.mark.parametrize("count", [0, 1, 7, 163, 1003])
@pytest.mark.parametrize("ahead", [1, 10, 1000])
def test_what_threads_look_at_comes_in_order_each_once(count: int, ahead: int) -> None:
    assert [*in_threads(str, range(count), workers=2, ahead=ahead)] == [*map(str, range(count))]
