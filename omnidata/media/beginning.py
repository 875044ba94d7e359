"""The beginning of a clip or a track, by time, as a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from omnidata.media.clip import decode
from omnidata.media.containers import audio_stream, broken, even, video_stream
from omnidata.media.encoding import AUDIO_RATE, encode_mp4, wav
from omnidata.media.paths import Budget
from omnidata.media.sound import samples
from omnidata.media.storage import opened
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_CRF = 10
"""What is cut is encoded again, finely enough that nobody sees it: two cuts of a clip, and the
whole, are to differ in their time alone."""
_FINEST = 1001  # 29.97 is 30000/1001
_SLOWEST, _FASTEST, _USUAL = 1, 240, 30


def beginning(ref: MediaRef, budget: Budget) -> bytes:
    """The first `ref.until` of a medium's time: a clip as MP4, with its sound; a track as WAV.

    A frame belongs to it that is shown before that moment; the first one always does. A track has
    one channel, and the rate that it had.

    Raises:
        MediaError: the medium is missing or broken, or a picture.
    """
    whole = replace(ref, until=1.0)
    if ref.kind == "audio":
        with opened(whole, budget) as container:
            own = audio_stream(container, whole, None).codec_context.sample_rate
        return wav(_first(samples(whole, rate=own, budget=budget), ref.until), own)
    if ref.kind != "video":
        raise broken(ref, "a picture has no beginning", "a clip or a sound")
    times, rate, has_sound = _times(whole, budget)
    end = times[0] + ref.until * (times[-1] - times[0] + 1 / rate)
    sound = _first(samples(whole, rate=AUDIO_RATE, budget=budget), ref.until) if has_sound else None
    fps = Fraction(rate).limit_denominator(_FINEST)
    return encode_mp4(_frames(whole, times, end, fps, budget), fps=fps, crf=_CRF, sound=sound)


def _first(heard: npt.NDArray[np.float32], share: float) -> npt.NDArray[np.float32]:
    return heard[: max(1, round(share * len(heard)))]


def _times(whole: MediaRef, budget: Budget) -> tuple[list[float], float, bool]:
    """When each frame is shown, frames per second, and whether the clip has a sound."""
    with opened(whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        times = [seconds for _, seconds, _ in decode(container, video, whole, budget)]
        if not times:
            raise broken(whole, "no frame could be decoded", "at least one frame")
        rate = float(video.average_rate or 0)
        has_sound = bool(container.streams.audio)
    return times, rate if _SLOWEST <= rate <= _FASTEST else _USUAL, has_sound


def _frames(
    whole: MediaRef, times: list[float], end: float, fps: Fraction, budget: Budget
) -> Iterator[npt.NDArray[np.uint8]]:
    """What the screen shows at each tick before the end: the last frame that began by then."""
    following = [*times[1:], end]
    tick = 0
    with opened(whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        shown = zip(decode(container, video, whole, budget), following, strict=False)
        for (_, seconds, frame), until in shown:
            if seconds >= end - 1e-6 and tick:
                return
            pixels = even(frame)
            while times[0] + tick / fps < min(until, end) - 1e-6 or not tick:
                yield pixels
                tick += 1
