"""Recordings in which every frame shows its number, and sound of which every sample is known."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from omnidata.actions import Screen

_BITS = 10
_BLOCK = 1024

Pixels = NDArray[np.uint8]
_MADE: dict[str, bytes] = {}
"""Recordings by what they were made of: most tests cut the same few."""


def numbered(number: int, size: Screen) -> Pixels:
    """A picture of white and black bars, the number's bits, over a lower half that is red."""
    width, height = size
    picture = np.zeros((height, width, 3), np.uint8)
    picture[height // 2 :, :, 0] = 255
    for bit in range(_BITS):
        if number >> bit & 1:
            picture[:, bit * width // _BITS : (bit + 1) * width // _BITS] = 255
    return picture


def number_of(picture: Pixels) -> int:
    """The number that a picture shows, by its upper half."""
    height, width, _ = picture.shape
    green = picture[: height // 2 - 2, :, 1].mean(axis=0)
    middles = ((np.arange(_BITS) + 0.5) * width / _BITS).astype(int)
    return sum(1 << bit for bit, place in enumerate(middles) if green[place] > 127)


def film(
    path: Path,
    *,
    count: int = 150,
    fps: Fraction = Fraction(30),
    times: Sequence[float] | None = None,
    size: Screen = (160, 96),
    sound: NDArray[np.float32] | None = None,
    rate: int = 16_000,
    sound_start: float = 0.0,
    gap: float = 0.0,
    tracks: int = 1,
    codec: Literal["pcm_s16le", "aac"] = "pcm_s16le",
    options: Mapping[str, str] | None = None,
) -> Path:
    """Write a recording.

    Args:
        path: its suffix says which container.
        count: frames.
        fps: frames per second.
        times: of the frames, where they do not keep to the rate.
        size: in pixels.
        sound: the samples; None = no audio stream.
        rate: samples per second.
        sound_start: seconds at which the sound begins.
        gap: seconds without a sample in the middle of the sound.
        tracks: audio streams.
        codec: of the sound.
        options: of the container.
    """
    heard = None if sound is None else sound.tobytes()
    shown = (path.suffix, count, fps, times, size)
    key = repr((shown, heard, rate, sound_start, gap, tracks, codec, options))
    if key in _MADE:
        path.write_bytes(_MADE[key])
        return path
    odd = size[0] % 2 or size[1] % 2
    with av.open(str(path), "w", options=dict(options or {})) as container:
        stream = container.add_stream(
            "libx264", rate=fps, options={"crf": "16", "preset": "superfast"}
        )
        stream.width, stream.height = size
        stream.pix_fmt = "yuv444p" if odd else "yuv420p"
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        tones = [
            container.add_stream(codec, rate=rate, layout="mono")
            for _ in range(tracks if sound is not None else 0)
        ]
        for number in range(count if times is None else len(times)):
            frame = av.VideoFrame.from_ndarray(numbered(number, size), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = round(times[number] * 1000), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        for tone in tones:
            assert sound is not None
            for first in range(0, len(sound), _BLOCK):
                values = (sound[None, first : first + _BLOCK] * 32768).astype("<i2")
                block = av.AudioFrame.from_ndarray(values, format="s16", layout="mono")
                block.sample_rate, block.time_base = rate, Fraction(1, rate)
                late = gap if first >= len(sound) / 2 else 0.0
                block.pts = round((sound_start + late) * rate) + first
                container.mux(tone.encode(block))
            container.mux(tone.encode(None))
    _MADE[key] = path.read_bytes()
    return path


def noise(seconds: float, *, rate: int = 16_000) -> NDArray[np.float32]:
    """Samples that occur once only, each a whole number of 16-bit steps."""
    values = np.random.default_rng(0).integers(-20_000, 20_000, round(seconds * rate))
    return (values / 32768).astype(np.float32)


def turn(path: Path, matrix: Sequence[int] = (0, 1, -1, 0)) -> Path:
    """Mark an MP4 as shown by a matrix (ISO 14496-12, 8.3.2), or a quarter turn clockwise."""
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4
    place += 52 if data[place] == 1 else 40
    one = 1 << 16
    a, b, c, d = (number * one for number in matrix)
    data[place : place + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 96 << 16, 0, 1 << 30)
    path.write_bytes(bytes(data))
    return path


def write_log(path: Path, *rows: Mapping[str, Any], **header: Any) -> Path:
    """A plain log with a header."""
    first = {"app": "TED", "instruction_en": "Like it", "dimension": "localization", **header}
    path.write_text("".join(json.dumps(row) + "\n" for row in (first, *rows)), encoding="utf-8")
    return path


def tap(time: float, end: float | None = None, **more: Any) -> dict[str, Any]:
    """A line of a plain log."""
    row = {"time": time, "action": "TAP", "box": [10, 20, 30, 40], **more}
    return row if end is None else {**row, "end": end}


class Tree:
    """The one episode of a tree."""

    def __init__(self, root: Path) -> None:
        (app,) = [path for path in root.iterdir() if path.is_dir()]
        self.media = app / "media"
        index = app / f"dataset_{app.name}.json"
        self.rows: list[dict[str, Any]] = json.loads(index.read_text(encoding="utf-8"))

    def shot(self, step: int) -> Pixels:
        with Image.open(self.media / self.rows[step]["image_path"]) as picture:
            assert picture.format == "PNG"
            return np.asarray(picture)

    def clip(self, step: int) -> tuple[list[Pixels], Fraction]:
        with av.open(str(self.media / self.rows[step]["video_path"])) as container:
            rate = container.streams.video[0].average_rate
            assert rate is not None
            frames = [
                frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
                for frame in container.decode(video=0)
            ]
        return frames, rate

    def numbers(self, step: int) -> list[int]:
        return [number_of(frame) for frame in self.clip(step)[0]]

    def sound(self, step: int) -> NDArray[np.int16]:
        data = (self.media / self.rows[step]["audio_path"]).read_bytes()
        assert struct.unpack_from("<HHI", data, 20) == (1, 1, 16_000)
        return np.frombuffer(data[44:], "<i2")
