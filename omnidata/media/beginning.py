"""The beginning of a clip or a track, by time, as a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.media.containers import (
    at_ticks,
    audio_stream,
    broken_media,
    decode,
    even,
    frame_rate,
    frames_from,
    open_container,
    video_stream,
)
from omnidata.media.encoding import AUDIO_RATE, encode_mp4, wav
from omnidata.media.paths import Budget
from omnidata.media.sound import decode_sound, join_sound
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
        track = _samples(source, whole, own, budget)
        return wav(track[: max(1, round(ref.until * len(track)))], own)
    begin, seconds, rate, has_sound = _length(source, whole, budget)
    ticks = max(1, ceil(ref.until * seconds * rate - _TIE))
    if ticks > budget.max_frames:
        raise broken_media(
            ref, f"it has {ticks} frames", f"at most {budget.max_frames}", fault="refused"
        )
    length = max(1, round(ref.until * seconds * AUDIO_RATE))
    sound = _sound(source, whole, begin, length, budget) if has_sound else None
    return encode_mp4(_frames(source, whole, rate, ticks, budget), fps=rate, crf=_CRF, sound=sound)


def _samples(
    source: Path | bytes, whole: MediaRef, rate: int, budget: Budget
) -> npt.NDArray[np.float32]:
    with open_container(source, whole, budget) as container:
        return join_sound(decode_sound(container, whole, rate, None, budget), whole, rate, budget)


def _sound(
    source: Path | bytes, whole: MediaRef, begin: float, length: int, budget: Budget
) -> npt.NDArray[np.float32] | None:
    import numpy as np

    with open_container(source, whole, budget) as container:
        first = next(container.decode(audio_stream(container, whole, None)), None)
    if first is None:
        return None
    late = round(((first.time or 0.0) - begin) * AUDIO_RATE)
    silence = np.zeros(min(max(late, 0), length), np.float32)
    track = _samples(source, whole, AUDIO_RATE, budget)[max(-late, 0) :]
    sound = np.concatenate([silence, track])[:length]
    return sound if len(sound) else None


def _length(
    source: Path | bytes, whole: MediaRef, budget: Budget
) -> tuple[float, float, Fraction, bool]:
    """Return a clip's start and length in seconds, its frame rate, and whether it has sound."""
    with open_container(source, whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        rate = frame_rate(video)
        has_sound = bool(container.streams.audio)
        times = [seconds for _, seconds, _ in decode(container, video, whole, budget)]
    if not times:
        raise broken_media(whole, "no frame could be decoded", "at least one frame")
    return times[0], times[-1] - times[0] + float(1 / rate), rate, has_sound


def _frames(
    source: Path | bytes, whole: MediaRef, rate: Fraction, ticks: int, budget: Budget
) -> Iterator[npt.NDArray[np.uint8]]:
    with open_container(source, whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        for frame in at_ticks(frames_from(container, video, 0.0), 0.0, rate, ticks):
            yield even(frame)
