"""The beginning of a clip or a track, by time, as a file of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from omnidata.media.clip import decode
from omnidata.media.containers import (
    at_ticks,
    audio_stream,
    broken,
    even,
    frame_rate,
    shown_from,
    video_stream,
)
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
_TIE = 1e-3  # of a tick: clocks in milliseconds are usual


def beginning(ref: MediaRef, budget: Budget) -> bytes:
    """The first `ref.until` of a medium's time: a clip as MP4, with its sound; a track as WAV.

    The sound of a clip ends when its pictures do, however long it is.

    A frame belongs to it that is shown before that moment; the first one always does. A clip has
    the rate of its frames, an odd row or column less; a track its own rate, and one channel.

    Raises:
        MediaError: the medium is missing or broken, or a picture.
    """
    whole = replace(ref, until=1.0)
    if ref.kind == "audio":
        with opened(whole, budget) as container:
            own = audio_stream(container, whole, None).codec_context.sample_rate
        track = samples(whole, rate=own, budget=budget)
        return wav(track[: max(1, round(ref.until * len(track)))], own)
    if ref.kind != "video":
        raise broken(ref, "a picture has no beginning", "a clip or a sound")
    seconds, rate, has_sound = _length(whole, budget)
    ticks = max(1, ceil(ref.until * seconds * rate - _TIE))
    if ticks > budget.max_frames:
        raise broken(ref, f"it has {ticks} frames", f"at most {budget.max_frames}", fault="refused")
    heard = samples(whole, rate=AUDIO_RATE, budget=budget) if has_sound else None
    sound = None if heard is None else heard[: max(1, round(ref.until * seconds * AUDIO_RATE))]
    return encode_mp4(_frames(whole, rate, ticks, budget), fps=rate, crf=_CRF, sound=sound)


def _length(whole: MediaRef, budget: Budget) -> tuple[float, Fraction, bool]:
    """Seconds of a clip, its last frame for a tick; ticks per second; whether it has a sound."""
    with opened(whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        rate = frame_rate(video)
        has_sound = bool(container.streams.audio)
        times = [seconds for _, seconds, _ in decode(container, video, whole, budget)]
    if not times:
        raise broken(whole, "no frame could be decoded", "at least one frame")
    return times[-1] - times[0] + float(1 / rate), rate, has_sound


def _frames(
    whole: MediaRef, rate: Fraction, ticks: int, budget: Budget
) -> Iterator[npt.NDArray[np.uint8]]:
    with opened(whole, budget) as container:
        video = video_stream(container, whole, budget, None)
        for frame in at_ticks(shown_from(container, video, 0.0), 0.0, rate, ticks):
            yield even(frame)
