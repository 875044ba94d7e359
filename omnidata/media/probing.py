"""What a medium is, without keeping what it shows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from omnidata.errors import MediaError, MissingMediaError
from omnidata.media.clip import decode
from omnidata.media.containers import audio_stream, broken, opened, video_stream
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture import image, image_size
from omnidata.media.sound import samples
from omnidata.media.wholeness import cut_short
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

AudioState = Literal["present", "silent", "missing", "corrupt"]
SILENCE = 1e-4
"""Peak below which a track is silent: three units of 16-bit sound, full scale 1."""

_RATE = 16_000
_LACKING_S = 0.25
STILL = 16
"""Levels of brightness, of 256, that a pixel of a still clip may change: what codecs do to it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Facts about one medium; None where they do not apply.

    Attributes:
        codec: FFmpeg's or Pillow's name of it.
        width, height: in pixels.
        seconds: duration of what was decoded.
        stated_seconds: duration by the header of a clip or track, where it has one.
        frames: decoded frames of a clip.
        fps: the clip's average rate.
        moves: whether a frame of the clip differs from the first, by more than `STILL` somewhere.
        rate: samples per second of the track, in Hz.
        channels: of the track.
        rms: root mean square of the samples, full scale 1.
        audio: by its samples, not by its streams; for a picture None.
        pixels: SHA-256 of a picture's size and RGB pixels.
        blank: whether all pixels of a picture are the same.
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


def probe(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Probe:
    """Decode a medium from end to end and say what it is.

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
    """As `probe`, but strict: a track raises as well, and so does whatever was cut short.

    Raises:
        MediaError: the medium is missing, broken, or ends before its own header says.
    """
    try:
        found = {"image": _picture, "video": _clip, "audio": _track}[ref.kind](ref, budget)
    except MediaError as error:
        if error.fault == "unreadable" and (missing := cut_short(ref, budget=budget)):
            raise _truncated(ref, missing) from None
        raise
    missing = cut_short(ref, budget=budget)
    # Not asked of clips: a recorder that writes a frame only when the screen changes may state
    # that the last one stays for seconds.
    lacks = (found.stated_seconds or 0) - (found.seconds or 0)
    if not missing and ref.kind == "audio" and lacks > _LACKING_S:
        missing = f"{found.seconds:.2f} s of {found.stated_seconds:.2f} s"
    if missing:
        raise _truncated(ref, missing)
    return found


def _truncated(ref: MediaRef, missing: str) -> MediaError:
    return broken(
        ref, f"the file is cut short: {missing}", f"a whole {ref.kind} file", fault="truncated"
    )


def _picture(ref: MediaRef, budget: Budget) -> Probe:
    pixels = image(ref, budget=budget).pixels
    height, width = pixels.shape[:2]
    digest = hashlib.sha256(f"{width} {height} ".encode())
    digest.update(pixels.data)
    return Probe(
        codec=ref.path.rpartition(".")[2].lower(),
        width=width,
        height=height,
        pixels=digest.hexdigest(),
        blank=bool((pixels == pixels[0, 0]).all()),
    )


def _clip(ref: MediaRef, budget: Budget) -> Probe:
    with opened(ref, budget) as container:
        video = video_stream(container, ref, budget, None)
        moves = _Moves(video)
        times = []
        for _, seconds, frame in decode(container, video, ref, budget):
            times.append(seconds)
            moves.see(frame)
        if not times:
            raise broken(ref, "no frame could be decoded", "at least one frame")
        context = video.codec_context
        fps = float(video.average_rate or 0) or None
        stated, has_sound = _stated(video, container), bool(container.streams.audio)
    return Probe(
        codec=context.name,
        width=context.width,
        height=context.height,
        seconds=times[-1] - times[0] + (1 / fps if fps else 0.0),
        stated_seconds=stated,
        frames=len(times),
        fps=fps,
        moves=moves.seen,
        audio=_own_sound(ref, budget) if has_sound else "missing",
    )


class _Moves:
    """Whether any frame differs from the first."""

    def __init__(self, video: VideoStream) -> None:
        from av.video.reformatter import VideoReformatter

        self.seen = False
        self._first: npt.NDArray[np.uint8] | None = None
        self._converter = VideoReformatter()  # frames that convert themselves prepare anew
        # A size of its own for every frame: damaged streams change it midway.
        self._width, self._height = video.codec_context.width, video.codec_context.height

    def see(self, frame: VideoFrame) -> None:
        import numpy as np

        if self.seen:
            return
        plain = self._converter.reformat(frame, self._width, self._height, "gray")
        grey = plain.to_ndarray().astype(np.uint8, copy=False)
        if self._first is None:
            self._first = grey
        else:
            apart = np.maximum(grey, self._first) - np.minimum(grey, self._first)
            self.seen = bool(apart.max() > STILL)


def _stated(stream: VideoStream | AudioStream, container: InputContainer) -> float | None:
    """Seconds by the stream's header, where that is no guess of FFmpeg's."""
    guessed = container.format.name in ("mp3", "aac")
    if guessed or stream.duration is None or stream.time_base is None:
        return None
    return float(stream.duration * stream.time_base)


def _track(ref: MediaRef, budget: Budget) -> Probe:
    wave = samples(ref, rate=_RATE, budget=budget)
    heard = Probe(seconds=len(wave) / _RATE, rms=_rms(wave), audio=_loudness(wave))
    if ref.inline is not None:
        return heard
    with opened(ref, budget) as container:
        stream = audio_stream(container, ref, None)
        context = stream.codec_context
        return replace(
            heard,
            codec=context.name,
            rate=context.sample_rate,
            channels=context.channels,
            stated_seconds=_stated(stream, container),
        )


def _own_sound(ref: MediaRef, budget: Budget) -> AudioState:
    """The state of the sound in a clip."""
    try:
        return _loudness(samples(ref, rate=_RATE, budget=budget))
    except MediaError:
        return "corrupt"


def _unheard(ref: MediaRef, budget: Budget) -> AudioState:
    """Why there is no sample: no stream to decode, or one that cannot be decoded."""
    try:
        with opened(ref, budget) as container:
            return "corrupt" if container.streams.audio else "missing"
    except MediaError:
        return "corrupt"


def _loudness(wave: npt.NDArray[np.float32]) -> AudioState:
    import numpy as np

    return "silent" if float(np.abs(wave).max()) < SILENCE else "present"


def _rms(wave: npt.NDArray[np.float32]) -> float:
    import numpy as np

    return float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))


def check(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> None:
    """Make sure that a medium can be handed to a model: it opens as what it should be.

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
    with opened(ref, budget) as container:
        if ref.kind == "video":
            next(container.decode(video_stream(container, ref, budget, None)))
        else:
            next(container.decode(audio_stream(container, ref, None)))
