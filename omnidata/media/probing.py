"""What a medium is, without keeping what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnidata.errors import MediaError, MissingMediaError
from omnidata.media.clip import decode
from omnidata.media.containers import audio_stream, broken, opened, video_stream
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture import image_size
from omnidata.media.sound import samples
from omnidata.types import MediaRef

AudioState = Literal["present", "silent", "missing", "corrupt"]
SILENCE = 1e-4
"""Peak below which a track is silent: three units of 16-bit sound, full scale 1."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Facts about one medium; None where they do not apply.

    Attributes:
        codec: FFmpeg's or Pillow's name of it.
        width, height: in pixels.
        seconds: duration of what was decoded.
        frames: decoded frames of a clip.
        fps: the clip's average rate.
        rate: samples per second of the track, in Hz.
        channels: of the track.
        rms: root mean square of the samples, full scale 1.
        audio: by its samples, not by its streams; for a picture None.
    """

    codec: str | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    frames: int | None = None
    fps: float | None = None
    rate: int | None = None
    channels: int | None = None
    rms: float | None = None
    audio: AudioState | None = None


def probe(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Probe:
    """Decode a medium from end to end and say what it is.

    Raises:
        MediaError: a picture or a clip is missing or broken. A track never raises: `audio` is
            "missing" or "corrupt".
    """
    if ref.kind == "image":
        return _picture(ref, budget)
    if ref.kind == "audio":
        return _track(ref, budget)
    with opened(ref, budget) as container:
        video = video_stream(container, ref, budget, None)
        times = [seconds for _, seconds, _ in decode(container, video, ref, budget)]
        if not times:
            raise broken(ref, "no frame could be decoded", "at least one frame")
        context = video.codec_context
        fps = float(video.average_rate or 0) or None
    return Probe(
        codec=context.name,
        width=context.width,
        height=context.height,
        seconds=times[-1] - times[0] + (1 / fps if fps else 0.0),
        frames=len(times),
        fps=fps,
        audio=_state(ref, budget)[0],
    )


def _picture(ref: MediaRef, budget: Budget) -> Probe:
    width, height = image_size(ref, budget=budget)
    return Probe(codec=ref.path.rpartition(".")[2].lower(), width=width, height=height)


def _track(ref: MediaRef, budget: Budget) -> Probe:
    state, rms, seconds = _state(ref, budget)
    if state in ("missing", "corrupt") or ref.inline is not None:
        return Probe(audio=state, rms=rms, seconds=seconds)
    with opened(ref, budget) as container:
        context = audio_stream(container, ref, None).codec_context
        return Probe(
            codec=context.name,
            rate=context.sample_rate,
            channels=context.channels,
            seconds=seconds,
            rms=rms,
            audio=state,
        )


def _state(ref: MediaRef, budget: Budget) -> tuple[AudioState, float | None, float | None]:
    """State, root mean square and seconds of the sound."""
    import numpy as np

    rate = 16_000
    try:
        if ref.inline is None:
            with opened(ref, budget) as container:
                if not container.streams.audio:
                    return "missing", None, None
        wave = samples(ref, rate=rate, budget=budget)
    except MissingMediaError:
        return "missing", None, None
    except MediaError:
        return "corrupt", None, None
    peak = float(np.abs(wave).max())
    rms = float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))
    return ("silent" if peak < SILENCE else "present"), rms, len(wave) / rate


def check(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> None:
    """Make sure that a medium can be handed to a model: it opens as what it should be.

    Only the beginning of a clip or a track is decoded; `probe` goes to the end.

    Raises:
        MediaError: it is missing, unreadable or lacks the stream that its kind promises.
    """
    if ref.inline is not None:
        return
    if ref.kind == "image":
        image_size(ref, budget=budget)
        return
    with opened(ref, budget) as container:
        if ref.kind == "video":
            next(container.decode(video_stream(container, ref, budget, None)))
        else:
            next(container.decode(audio_stream(container, ref, None)))
