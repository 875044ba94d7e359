"""Parts of clips and tracks, by time, as files of their own.

Everything here is given a file or its bytes, or finds the recording around a cut; `storage` knows
where the bytes of a medium are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.errors import MediaError
from omnidata.media.containers import (
    audio_stream,
    broken_media,
    decode,
    frames_with_times,
    open_container,
    video_stream,
)
from omnidata.media.encoding import AUDIO_RATE, encode_mp4, png, wav
from omnidata.media.paths import RECORDING_BUDGET, Budget, around, place, resolve
from omnidata.media.rotation import turn_of
from omnidata.media.sound import decode_sound, join_sound
from omnidata.types import MediaRef, VideoSegment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# A part of a recording: a clip, or the one picture shown at a moment.

_KEPT = 8


def read_cut(ref: MediaRef, cell: VideoSegment, budget: Budget) -> bytes:
    """Return a part of a recording as a file: an MP4 at the recording's rate, or a PNG.

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
        raise broken_media(ref, "sound cannot be cut out of a recording", "a clip or a picture")
    if not 0 <= cell.start_s <= cell.end_s <= cell.start_s + budget.max_seconds:
        raise broken_media(
            ref,
            f"it spans {cell.start_s:.3f} to {cell.end_s:.3f} s",
            f"a part of at most {budget.max_seconds} s",
            fault="refused",
        )
    whole = around(ref, cell)
    found = resolve(whole, budget=RECORDING_BUDGET).stat()
    return _cut(ref, cell, budget, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=_KEPT)  # a medium is opened several times: looked at, probed, decoded, read
def _cut(ref: MediaRef, cell: VideoSegment, budget: Budget, _size: int, _time: int) -> bytes:
    """Cut once, as long as the recording keeps its size and time."""
    whole = around(ref, cell)
    limits = replace(budget, max_bytes=RECORDING_BUDGET.max_bytes)
    try:
        with open_container(resolve(whole, budget=limits), whole, limits) as container:
            video = video_stream(container, whole, limits, None)
            shown = _frames_from(container, video, cell.start_s)
            if ref.kind == "image":
                return png(_pixels(next(shown)[1]))
            rate = _frame_rate(video)
            ticks = max(1, round((cell.end_s - cell.start_s) * rate))
            if ticks > budget.max_frames:
                raise broken_media(ref, f"it has {ticks} frames", f"at most {budget.max_frames}")
            frames = _at_ticks(shown, cell.start_s, rate, ticks)
            return encode_mp4((_even_pixels(frame) for frame in frames), fps=rate)
    except MediaError as error:
        raise MediaError(
            error.what,
            where=place(ref),
            expected=error.expected,
            remedy=error.remedy,
            fault=error.fault,
        ) from None


# The beginning of a medium.

_CRF = 10
"""What is cut is encoded again, without a visible difference: two cuts of a clip, and the
whole, are to differ in their time alone."""
_TIE = 1e-3  # of a tick: clocks in milliseconds are usual


def beginning(ref: MediaRef, source: Path | bytes, budget: Budget) -> bytes:
    """Return the first `ref.until` of a medium's time: a clip as MP4 with sound, a track as WAV.

    The sound of a clip begins and ends when its pictures do, however long it is: before it is heard
    in the whole there is silence.

    A frame belongs to it that is shown before that moment; the first one always does. A clip has
    the rate of its frames, an odd row or column less; a track its own rate, and one channel.

    Args:
        ref: the medium.
        source: the file of the whole, or its bytes.
        budget: limits.

    Raises:
        MediaError: the medium is broken, or a picture.
    """
    if ref.kind not in ("audio", "video"):
        raise broken_media(ref, "a picture has no beginning", "a clip or a sound")
    whole = replace(ref, until=1.0)
    if ref.kind == "audio":
        with open_container(source, whole, budget) as container:
            own = audio_stream(container, whole, None).codec_context.sample_rate
        track = _read_samples(source, whole, own, budget)
        return wav(track[: max(1, round(ref.until * len(track)))], own)
    begin, seconds, rate, has_sound = _measure(source, whole, budget)
    ticks = max(1, ceil(ref.until * seconds * rate - _TIE))
    if ticks > budget.max_frames:
        raise broken_media(
            ref, f"it has {ticks} frames", f"at most {budget.max_frames}", fault="refused"
        )
    length = max(1, round(ref.until * seconds * AUDIO_RATE))
    sound = _sound_of_beginning(source, whole, begin, length, budget) if has_sound else None
    return encode_mp4(
        _frames_of_beginning(source, whole, rate, ticks, budget), fps=rate, crf=_CRF, sound=sound
    )


def _read_samples(
    source: Path | bytes, whole: MediaRef, rate: int, budget: Budget
) -> npt.NDArray[np.float32]:
    with open_container(source, whole, budget) as container:
        return join_sound(decode_sound(container, whole, rate, None, budget), whole, rate, budget)


def _sound_of_beginning(
    source: Path | bytes, whole: MediaRef, begin: float, length: int, budget: Budget
) -> npt.NDArray[np.float32] | None:
    import numpy as np

    with open_container(source, whole, budget) as container:
        first = next(container.decode(audio_stream(container, whole, None)), None)
    if first is None:
        return None
    late = round(((first.time or 0.0) - begin) * AUDIO_RATE)
    silence = np.zeros(min(max(late, 0), length), np.float32)
    track = _read_samples(source, whole, AUDIO_RATE, budget)[max(-late, 0) :]
    sound = np.concatenate([silence, track])[:length]
    return sound if len(sound) else None


def _measure(
    source: Path | bytes, whole: MediaRef, budget: Budget
) -> tuple[float, float, Fraction, bool]:
    """Return a clip's start and length in seconds, its frame rate, and whether it has sound."""
    with open_container(source, whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        rate = _frame_rate(video)
        has_sound = bool(container.streams.audio)
        times = [seconds for _, seconds, _ in decode(container, video, whole, budget)]
    if not times:
        raise broken_media(whole, "no frame could be decoded", "at least one frame")
    return times[0], times[-1] - times[0] + float(1 / rate), rate, has_sound


def _frames_of_beginning(
    source: Path | bytes, whole: MediaRef, rate: Fraction, ticks: int, budget: Budget
) -> Iterator[npt.NDArray[np.uint8]]:
    with open_container(source, whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        for frame in _at_ticks(_frames_from(container, video, 0.0), 0.0, rate, ticks):
            yield _even_pixels(frame)


# The frames that a screen shows over time.

_SLOWEST, _FASTEST, _USUAL = 1, 60, Fraction(30)


def _frame_rate(video: VideoStream) -> Fraction:
    """Return the recording's own rate, or FFmpeg's guess at it."""
    guess = video.guessed_rate
    return guess if guess and _SLOWEST <= guess <= _FASTEST else _USUAL


_Shown = tuple[float, "VideoFrame"]
"""Seconds after the recording's first frame, and the frame."""


def _frames_from(container: InputContainer, video: VideoStream, start_s: float) -> Iterator[_Shown]:
    """Yield the frame on the screen at a moment, and all that follow it.

    Raises:
        MediaError: there is none.
    """
    sought = start_s > 0 and container.format.name != "avi"  # whose frames have no times
    if sought:
        base = video.time_base or Fraction(1)
        container.seek((video.start_time or 0) + int(start_s / base), stream=video)
    decoded = _timed_frames(container, video)
    first = next(decoded, None)
    if sought and (first is None or first[0] > start_s):  # the index of the file is wrong
        container.seek(0)
        decoded = _timed_frames(container, video)
        first = next(decoded, None)
    if first is None:
        raise MediaError("no frame could be decoded", expected="a complete recording")
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


def _timed_frames(container: InputContainer, video: VideoStream) -> Iterator[_Shown]:
    origin = float((video.start_time or 0) * (video.time_base or 0))
    rate = _frame_rate(video)
    for number, (time, frame) in enumerate(frames_with_times(container, video)):
        yield (float(number / rate) if time is None else time - origin), frame


def _at_ticks(
    shown: Iterator[_Shown], start_s: float, rate: Fraction, ticks: int
) -> Iterator[VideoFrame]:
    """Yield the frame on the screen at each tick: the last that began by then."""
    current = next(shown)
    following = next(shown, None)
    for tick in range(ticks):
        moment = start_s + float(tick / rate)
        while following is not None and following[0] <= moment + 1e-6:
            current, following = following, next(shown, None)
        yield current[1]


def _pixels(frame: VideoFrame) -> npt.NDArray[np.uint8]:
    import numpy as np

    return turn_of(frame).apply(frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False))


def _even_pixels(frame: VideoFrame) -> npt.NDArray[np.uint8]:
    """Return the upright pixels of a frame, cropped to even sides, which codecs require."""
    pixels = _pixels(frame)
    return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
