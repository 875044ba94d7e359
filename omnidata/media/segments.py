"""A part of a recording as a medium of its own: a clip, or the one picture shown at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from omnidata.errors import MediaError
from omnidata.media.clip import timed
from omnidata.media.containers import broken, opened, video_stream
from omnidata.media.encoding import encode_mp4, png
from omnidata.media.paths import Budget, around, place, resolve
from omnidata.types import MediaRef, VideoSegment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_SLOWEST, _FASTEST, _USUAL = 1, 60, Fraction(30)
_KEPT = 8
RECORDING = Budget(max_bytes=1 << 40)
"""What lies around a cut may be as large as it likes: only a part of it is decoded."""


def read_cut(ref: MediaRef, cell: VideoSegment, budget: Budget) -> bytes:
    """A part of a recording as a file: an MP4 at the recording's rate, or a PNG.

    Frame k of a clip is what the screen showed k ticks after its beginning: the last frame that
    began by then, as `omnidata segment` cuts. An odd row or column is left out of a clip.

    Args:
        ref: a clip or a picture.
        cell: where it lies.
        budget: limits on the part.

    Raises:
        MediaError: the recording is missing, outside the dataset's folder or broken there, or the
            part is longer than the budget allows, or begins after the recording's end.
    """
    if ref.kind == "audio":
        raise broken(ref, "sound is not cut out of a recording", "a clip or a picture")
    if not 0 <= cell.start_s <= cell.end_s <= cell.start_s + budget.max_seconds:
        raise broken(
            ref,
            f"it goes from {cell.start_s:.3f} to {cell.end_s:.3f} s",
            f"a part of at most {budget.max_seconds} s",
            fault="refused",
        )
    whole = around(ref, cell)
    found = resolve(whole, budget=RECORDING).stat()
    return _cut(ref, cell, budget, found.st_size, found.st_mtime_ns)


def recorded_seconds(ref: MediaRef) -> float:
    """How long a recording is by its header; nothing is decoded.

    Raises:
        MediaError: it is missing or no recording, or its header does not say.
    """
    with opened(ref, RECORDING) as container:
        video = video_stream(container, ref, RECORDING, None)
        base = video.time_base
        seconds = float(video.duration * base) if video.duration and base else 0.0
        seconds = seconds or (container.duration or 0) / 1e6
    if seconds <= 0:
        raise broken(ref, "the header does not say how long it is", "a whole recording")
    return seconds


@lru_cache(maxsize=_KEPT)  # a medium is opened several times: looked at, probed, decoded, read
def _cut(ref: MediaRef, cell: VideoSegment, budget: Budget, size: int, time: int) -> bytes:
    whole = around(ref, cell)
    limits = replace(budget, max_bytes=RECORDING.max_bytes)
    try:
        with opened(whole, limits) as container:
            video = video_stream(container, whole, limits, None)
            shown = _shown(container, video, cell.start_s)
            if ref.kind == "image":
                return png(_pixels(next(shown)[1]))
            rate = _rate(video)
            ticks = max(1, round((cell.end_s - cell.start_s) * rate))
            if ticks > budget.max_frames:
                raise broken(ref, f"it has {ticks} frames", f"at most {budget.max_frames}")
            frames = _at_ticks(shown, cell.start_s, rate, ticks)
            return encode_mp4((_even(frame) for frame in frames), fps=rate)
    except MediaError as error:
        raise MediaError(
            error.what,
            where=place(ref),
            expected=error.expected,
            remedy=error.remedy,
            fault=error.fault,
        ) from None


def _rate(video: VideoStream) -> Fraction:
    """The recording's own rate, or FFmpeg's guess at it."""
    guess = video.guessed_rate
    return guess if guess and _SLOWEST <= guess <= _FASTEST else _USUAL


Shown = tuple[float, "VideoFrame"]
"""Seconds after the recording's first frame, and the frame."""


def _shown(container: InputContainer, video: VideoStream, start_s: float) -> Iterator[Shown]:
    """The frame that is on the screen at a moment, and all that follow it.

    Raises:
        MediaError: there is none.
    """
    sought = start_s > 0 and container.format.name != "avi"  # whose frames have no times
    if sought:
        _seek(container, video, start_s)
    decoded = _timed(container, video)
    first = next(decoded, None)
    if sought and (first is None or first[0] > start_s):  # the index of the file is wrong
        container.seek(0)
        decoded = _timed(container, video)
        first = next(decoded, None)
    if first is None:
        raise MediaError("no frame could be decoded", expected="a whole recording")
    current = first
    for found in decoded:
        if found[0] > start_s + 1e-6:
            yield current
            yield found
            yield from decoded
            return
        current = found
    if start_s > current[0] + 1:  # one frame lasts until the next; the last one a second at most
        raise MediaError(
            f"the recording ends at {current[0]:.2f} s", expected="a part within the recording"
        )
    yield current


def _seek(container: InputContainer, video: VideoStream, start_s: float) -> None:
    base = video.time_base or Fraction(1)
    container.seek((video.start_time or 0) + int(start_s / base), stream=video)


def _timed(container: InputContainer, video: VideoStream) -> Iterator[Shown]:
    origin = float((video.start_time or 0) * (video.time_base or 0))
    rate = _rate(video)
    for number, (time, frame) in enumerate(timed(container, video)):
        yield (float(number / rate) if time is None else time - origin), frame


def _at_ticks(
    shown: Iterator[Shown], start_s: float, rate: Fraction, ticks: int
) -> Iterator[VideoFrame]:
    current = next(shown)
    following = next(shown, None)
    for tick in range(ticks):
        moment = start_s + float(tick / rate)
        while following is not None and following[0] <= moment + 1e-6:
            current, following = following, next(shown, None)
        yield current[1]


def _pixels(frame: VideoFrame) -> npt.NDArray[np.uint8]:
    import numpy as np

    return frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)


def _even(frame: VideoFrame) -> npt.NDArray[np.uint8]:
    pixels = _pixels(frame)
    return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
