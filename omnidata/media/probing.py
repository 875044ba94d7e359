"""Facts about a medium, without keeping its content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from omnidata.errors import MediaError, MissingMediaError
from omnidata.media.containers import (
    audio_stream,
    broken_media,
    decode,
    first_frame,
    video_stream,
)
from omnidata.media.decoding import samples
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture import image, image_size, picture_info
from omnidata.media.rotation import Turn, turn_of
from omnidata.media.storage import open_media
from omnidata.media.truncation import corruption, missing_bytes
from omnidata.types import MediaRef, VideoSegment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


Item = TypeVar("Item")
Result = TypeVar("Result")

AudioState = Literal["present", "silent", "missing", "corrupt"]
SILENCE = 1e-4
"""Peak below which a track is silent: three units of 16-bit sound, full scale 1."""

_RATE = 16_000
_LACKING_S = 0.25
_SPARSE = ("mov", "matroska")
"""Containers in which sound may pause between samples, so that there are fewer than seconds."""

STILL, STILL_AREA = 16, 3
"""Levels, of 256, by which brightness or colour of a still clip may change, in one pixel and in the
mean of 8 x 8: what codecs do to it, up and down by turns."""

_SIDE = 8


@dataclass(frozen=True, slots=True)
class Probe:
    """Facts about one medium; None where they do not apply.

    Attributes:
        codec: FFmpeg's or Pillow's name of it, in lower case.
        width, height: in pixels, upright.
        seconds: duration of what was decoded.
        stated_seconds: duration by the header of a clip or track, where it has one.
        frames: decoded frames of a clip.
        fps: the clip's average rate.
        moves: whether a frame of the clip differs from the first, by more than `STILL` in a pixel
            or by more than `STILL_AREA` in an area; None for a clip of one frame.
        rate: samples per second of the track, in Hz.
        channels: of the track.
        rms: root mean square of the samples, full scale 1.
        audio: by its samples, not by its streams; for a picture None.
        pixels: SHA-256 of a picture's size and RGB pixels.
        blank: whether all pixels of a picture are the same.
        turned: whether a picture or a clip lies turned in its file (see `PictureInfo.turned`).
    """

    codec: str | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    stated_seconds: float | None = None
    frames: int | None = None
    fps: float | None = None
    moves: bool | None = None
    rate: int | None = None
    channels: int | None = None
    rms: float | None = None
    audio: AudioState | None = None
    pixels: str | None = None
    blank: bool | None = None
    turned: bool | None = None


def probe(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Probe:
    """Decode a medium from end to end and return its facts.

    Raises:
        MediaError: a picture or a clip is missing or broken. A track never raises: `audio` is
            "missing" or "corrupt".
    """
    if ref.kind == "image":
        return _picture(ref, budget)
    if ref.kind == "video":
        return _clip(ref, budget)
    try:
        return _track(ref, budget)
    except MissingMediaError:
        return Probe(audio="missing")
    except MediaError:
        return Probe(audio=_unheard(ref, budget))


def examine(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Probe:
    """Like `probe`, but also raise for broken tracks and for truncated files.

    Raises:
        MediaError: the medium is missing, broken, or ends before its own header says.
    """
    try:
        found = {"image": _picture, "video": _clip, "audio": _track}[ref.kind](ref, budget)
    except MediaError as error:
        if error.fault == "unreadable" and (missing := missing_bytes(ref, budget=budget)):
            raise _truncation(ref, missing) from None
        raise
    if ref.kind == "image":
        return found  # what decodes is whole: behind it cameras keep a film, or what they like
    if missing := missing_bytes(ref, budget=budget) or _lacking(ref, found, budget):
        raise _truncation(ref, missing)
    if where := corruption(ref, budget=budget):
        raise broken_media(ref, f"the file is damaged: {where}", f"a complete {ref.kind} file")
    return found


def _lacking(ref: MediaRef, found: Probe, budget: Budget) -> str:
    """Return how much sound is missing by the track's header; empty if none.

    Not asked of clips: a recorder that writes a frame only when the screen changes may state that
    the last one stays for seconds.
    """
    seconds, stated = found.seconds or 0.0, found.stated_seconds or 0.0
    if ref.kind != "audio" or stated - seconds <= _LACKING_S:
        return ""
    with open_media(ref, budget) as container:
        sparse = container.format.name.startswith(_SPARSE)
    return "" if sparse else f"{seconds:.2f} s of {stated:.2f} s"


def _truncation(ref: MediaRef, missing: str) -> MediaError:
    return broken_media(
        ref, f"the file is cut short: {missing}", f"a complete {ref.kind} file", fault="truncated"
    )


def _picture(ref: MediaRef, budget: Budget) -> Probe:
    pixels = image(ref, budget=budget).pixels
    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"{width} {height} ".encode())
    digest.update(pixels.data)
    about = picture_info(ref, budget=budget)
    return Probe(
        codec=about.format or None,
        width=width,
        height=height,
        pixels=digest.hexdigest(),
        blank=bool((pixels == pixels[0, 0]).all()),
        turned=about.turned,
    )


def _clip(ref: MediaRef, budget: Budget) -> Probe:
    with open_media(ref, budget) as container:
        video = video_stream(container, ref, budget, None)
        moves = _Moves(video)
        times: list[float] = []
        stays, turn = 0.0, Turn()
        for _, seconds, frame in decode(container, video, ref, budget):
            turn = turn if times else turn_of(frame)
            times.append(seconds)
            stays = float((frame.duration or 0) * (frame.time_base or 0))
            moves.see(frame)
        if not times:
            raise broken_media(ref, "no frame could be decoded", "at least one frame")
        context = video.codec_context
        fps = float(video.average_rate or 0) or None
        span, stated = times[-1] - times[0], _header_seconds(video, container)
        seconds = span + (stays or (1 / fps if fps else 0.0))
        if stated is not None and stated >= span:  # how long the last frame stays is often a guess
            seconds = min(seconds, stated)
        has_sound = bool(container.streams.audio)
    width, height = turn.size(context.width, context.height)
    return Probe(
        codec=context.name,
        width=width,
        height=height,
        seconds=seconds,
        stated_seconds=stated,
        frames=len(times),
        fps=fps,
        moves=moves.seen if len(times) > 1 else None,
        turned=any(turn),
        audio=_own_sound(ref, budget) if has_sound else "missing",
    )


class _Moves:
    """Whether one of the frames it sees differs from the first."""

    def __init__(self, video: VideoStream) -> None:
        from av.video.reformatter import VideoReformatter

        self.seen = False
        self._first: npt.NDArray[np.int16] | None = None
        self._converter = VideoReformatter()  # frames that convert themselves prepare anew
        # A size of its own for every frame: damaged streams change it midway.
        self._width, self._height = video.codec_context.width, video.codec_context.height

    def see(self, frame: VideoFrame) -> None:
        import numpy as np

        if self.seen:
            return
        width, height = (max(2, extent - extent % 2) for extent in (self._width, self._height))
        plain = self._converter.reformat(frame, width, height, "yuv420p")  # mostly as it is
        planes = plain.to_ndarray().astype(np.int16)
        if self._first is None:
            self._first = planes
        else:
            self.seen = _differ(planes - self._first)


def _differ(apart: npt.NDArray[np.int16]) -> bool:
    import numpy as np

    most = max(int(apart.max()), -int(apart.min()))
    if most > STILL or most <= STILL_AREA:
        return most > STILL
    rows, columns = (np.arange(0, extent, _SIDE) for extent in apart.shape)
    sums = np.add.reduceat(np.add.reduceat(apart, rows, axis=0), columns, axis=1)
    return bool(np.abs(sums).max() > STILL_AREA * _SIDE**2)


def _header_seconds(stream: VideoStream | AudioStream, container: InputContainer) -> float | None:
    """Return seconds by the stream's header, where that is no guess of FFmpeg's."""
    guessed = container.format.name in ("mp3", "aac")
    if guessed or stream.duration is None or stream.time_base is None:
        return None
    return float(stream.duration * stream.time_base)


def stated_seconds(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> float | None:
    """Return the length of a clip or a track by its header; nothing is decoded.

    Args:
        ref: a clip, a track, or sound that a row holds.
        budget: limits.

    Returns:
        Seconds; None where the header does not say it, as that of MP3, which FFmpeg guesses.

    Raises:
        MediaError: the medium is missing, refused or broken.
    """
    if isinstance(ref.cell, VideoSegment):
        return ref.cell.end_s - ref.cell.start_s
    if ref.inline is not None:
        return len(_wave(ref, budget)) / _RATE
    with open_media(ref, budget) as container:
        if ref.kind == "video":
            stated = _header_seconds(video_stream(container, ref, budget, None), container)
        else:
            stated = _header_seconds(audio_stream(container, ref, None), container)
        if stated is None and container.format.name.startswith(_SPARSE) and container.duration:
            return container.duration / 1e6
        return stated


def _track(ref: MediaRef, budget: Budget) -> Probe:
    wave = _wave(ref, budget)
    heard = Probe(seconds=len(wave) / _RATE, rms=_rms(wave), audio=_loudness(wave))
    if ref.inline is not None:
        return heard
    with open_media(ref, budget) as container:
        stream = audio_stream(container, ref, None)
        context = stream.codec_context
        return replace(
            heard,
            codec=context.name,
            rate=context.sample_rate,
            channels=context.channels,
            stated_seconds=_header_seconds(stream, container),
        )


def _wave(ref: MediaRef, budget: Budget) -> npt.NDArray[np.float32]:
    import numpy as np

    wave = samples(ref, rate=_RATE, budget=budget)
    if not np.isfinite(wave).all():
        raise broken_media(ref, "some samples are not numbers", "samples from -1 to 1")
    return wave


def _own_sound(ref: MediaRef, budget: Budget) -> AudioState:
    try:
        return _loudness(_wave(ref, budget))
    except MediaError:
        return "corrupt"


def _unheard(ref: MediaRef, budget: Budget) -> AudioState:
    try:
        with open_media(ref, budget) as container:
            return "corrupt" if container.streams.audio else "missing"
    except MediaError:
        return "corrupt"


def _loudness(wave: npt.NDArray[np.float32]) -> AudioState:
    """Return whether a track is silent around the mean of its samples, which is inaudible."""
    import numpy as np

    apart = float(np.abs(wave - wave.mean(dtype=np.float64)).max())
    return "silent" if apart < SILENCE else "present"


def _rms(wave: npt.NDArray[np.float32]) -> float:
    import numpy as np

    return float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))


def check(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> None:
    """Check that a medium opens and is of its kind.

    Only the beginning of a clip or a track is decoded; `probe` goes to the end.

    Raises:
        MediaError: it is missing, unreadable or lacks the stream that its kind promises.
    """
    if ref.inline is not None:
        samples(ref, budget=budget)
        return
    if ref.kind == "image":
        image_size(ref, budget=budget)
        return
    with open_media(ref, budget, at_a_glance=True) as container:
        if ref.kind == "video":
            first_frame(container, ref, budget)
        else:
            next(container.decode(audio_stream(container, ref, None)))
