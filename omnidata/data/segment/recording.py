"""Facts of a screen recording, and its picture and sound at any time."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.actions import Screen
from omnidata.errors import Finding
from omnidata.media import AUDIO_RATE, Budget
from omnidata.media.containers import (
    audio_stream,
    broken_media,
    frames_with_times,
    video_stream,
)
from omnidata.media.rotation import Turn, turn_of
from omnidata.media.sound import Mono
from omnidata.media.storage import open_media
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


_USUAL_FPS = Fraction(30)
"""Of the paper's recordings (section 3.3); used where a recording has no rate that makes sense."""

_FASTEST = 60
_COARSEST_S = 0.001  # a container that counts frames has a longer tick, and exact times
BUDGET = Budget(max_bytes=1 << 40, max_seconds=24 * 3600.0)
"""The user names the recording, so it may be long; its frames may not be larger than others."""

_SHORT_S = 1.0


@dataclass(frozen=True, slots=True)
class Recording:
    """The facts of a recording from its packets; only one frame is decoded.

    Attributes:
        ref: the file.
        origin_s: the first frame's time by the container's clock.
        seconds: from the first frame to the end of the last one, or of the sound if that lasts
            longer: some recorders write a frame only on a change.
        tick_s: resolution of the frames' times; Matroska rounds them to milliseconds.
        fps: frames per second of the clips that are cut from it.
        coded: width and height of the stored frames in pixels.
        turned: the rotation that makes them upright.
        has_sound: whether there is an audio stream.
        findings: ignored streams, an early end.
    """

    ref: MediaRef
    origin_s: float
    seconds: float
    tick_s: float
    fps: Fraction
    coded: Screen
    turned: Turn
    has_sound: bool
    findings: tuple[Finding, ...]

    @property
    def screen(self) -> Screen:
        """Width and height of the upright picture in pixels."""
        return self.turned.size(*self.coded)


def open_recording(path: Path) -> Recording:
    """Look at a recording's packets, and at its first frame.

    Raises:
        MediaError: it is missing, no film, or its frames are too large or too small.
    """
    real = path.resolve()  # a link stands for its target
    ref = MediaRef("video", real.parent, f"./{real.name}")  # no name is a URL then
    with open_media(ref, BUDGET) as container:
        video = video_stream(container, ref, BUDGET, None)
        time, first = next(frames_with_times(container, video), (None, None))
        if first is None or min(first.width, first.height) < 2:
            raise broken_media(
                ref, "there is no frame of at least 2 x 2 pixels", "a screen recording"
            )
        coded, turned = (first.width, first.height), _rotation(ref, first)
        stated = _header_seconds(container, video)
        sounds, films = len(container.streams.audio), len(container.streams.video)
    with open_media(ref, BUDGET) as container:
        video = video_stream(container, ref, BUDGET, None)
        fps = _rate(video)
        sound = audio_stream(container, ref, None) if sounds else None
        begin, end = _extent(container, video, sound, fps)
        tick = min(float(video.time_base or 0), _COARSEST_S)
    begin = begin if time is None else time
    if not 0 < end - begin <= BUDGET.max_seconds:
        raise broken_media(
            ref, f"it lasts {end - begin:.1f} s", f"up to {BUDGET.max_seconds:.0f} s"
        )
    findings = _stream_findings(ref, films, sounds)
    if end - begin < stated - _SHORT_S:
        early = Finding(
            "recording-short",
            "warning",
            str(ref.root / ref.path),
            f"it ends after {end - begin:.2f} s, the header says {stated:.2f} s",
            "a whole file",
            "copy the file again; actions after its end are left out",
        )
        findings.insert(0, early)
    return Recording(ref, begin, end - begin, tick, fps, coded, turned, sounds > 0, tuple(findings))


def _header_seconds(container: InputContainer, video: VideoStream) -> float:
    """Seconds by the header, which in Matroska counts all streams; 0 where it has none."""
    import av

    if video.duration and video.time_base:
        return float(video.duration * video.time_base)
    return (container.duration or 0) / av.time_base


def _rate(video: VideoStream) -> Fraction:
    """The recording's own rate; for a rate that varies, FFmpeg's guess at the densest part."""
    guess = video.guessed_rate
    return guess if guess and 1 <= guess <= _FASTEST else _USUAL_FPS


def _extent(
    container: InputContainer, video: VideoStream, sound: AudioStream | None, fps: Fraction
) -> tuple[float, float]:
    begin, end = float("inf"), float("-inf")
    for packet in container.demux([stream for stream in (video, sound) if stream]):
        stamp = packet.dts if packet.pts is None else packet.pts
        if stamp is None or not packet.size or packet.is_discard:
            continue
        is_frame = packet.stream.index == video.index
        tick = packet.stream.time_base or 0
        seconds = float(stamp * tick)
        length = float((packet.duration or 0) * tick) or (float(1 / fps) if is_frame else 0.0)
        begin = min(begin, seconds) if is_frame else begin
        end = max(end, seconds + length)
    return begin, end


def _rotation(ref: MediaRef, frame: VideoFrame) -> Turn:
    if frame.rotation % 90:
        raise broken_media(
            ref, f"the picture is turned by {frame.rotation} degrees", "quarter turns"
        )
    turn = turn_of(frame)
    if turn.mirrors:
        raise broken_media(ref, "the container mirrors the picture", "quarter turns at most")
    return turn


def _stream_findings(ref: MediaRef, films: int, sounds: int) -> list[Finding]:
    where = str(ref.root / ref.path)
    found = [
        Finding(
            "stream-ignored",
            "warning",
            where,
            f"there are {count} {kind} streams",
            "one",
            "FFmpeg's choice is used; remux the recording to use another one",
        )
        for kind, count in (("video", films), ("audio", sounds))
        if count > 1
    ]
    if not sounds:
        found.append(
            Finding(
                "sound-missing",
                "warning",
                where,
                "the recording has no audio stream",
                "the device's sound",
                "the steps have no audio; record the sound too if the task is about it",
            )
        )
    return found


# Picture and sound of a recording, each decoded once, from the beginning, and never held.
#
# Time 0 is the first frame. The file is opened twice, so that one whose tracks lie far apart costs
# no memory either.

_JUMP_S = 0.04  # what a track may stray from its time stamps before they win


class Film:
    """The picture at any time, asked for in order; holds two frames."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._frames = _frames(recording)
        self._current = self._next = next(self._frames, None)
        self._drawn: tuple[float, npt.NDArray[np.uint8]] | None = None

    def at(self, seconds: float) -> npt.NDArray[np.uint8]:
        """Return the frame on the screen at a moment: the last that began by then, or the first.

        Args:
            seconds: after the first frame, never less than in the call before.

        Returns:
            uint8 (H, W, 3), RGB, upright; not to be written to.

        Raises:
            MediaError: the recording is broken there, or its picture changes its size.
        """
        limit = seconds + self._recording.tick_s + 1e-6  # sums of floats are off by less
        while self._next is not None and self._next[0] <= limit:
            self._current = self._next
            self._next = next(self._frames, None)
        assert self._current is not None  # `open_recording` has seen a frame
        time, frame = self._current
        if self._drawn is None or self._drawn[0] != time:
            self._drawn = time, self._upright(frame, time)
        return self._drawn[1]

    def close(self) -> None:
        """Close the file."""
        self._frames.close()

    def _upright(self, frame: VideoFrame, time: float) -> npt.NDArray[np.uint8]:
        import numpy as np

        recording = self._recording
        if (frame.width, frame.height) != recording.coded:
            raise broken_media(
                recording.ref,
                f"the picture changes to {frame.width} x {frame.height} pixels at {time:.2f} s",
                f"{recording.coded[0]} x {recording.coded[1]} throughout, or --trim before that",
            )
        pixels = frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False)
        return recording.turned.apply(pixels)


def _frames(recording: Recording) -> Generator[tuple[float, VideoFrame], None, None]:
    ref = recording.ref
    with open_media(ref, BUDGET) as container:
        video = video_stream(container, ref, BUDGET, None)
        video.thread_type = "AUTO"
        last = 0.0
        for number, (time, frame) in enumerate(frames_with_times(container, video)):
            if time is None:
                last += float(1 / recording.fps) if number else 0.0
            else:
                last = time - recording.origin_s
            yield last, frame


class Track:
    """The sound of any span, asked for in order; holds little more than the span."""

    def __init__(self, recording: Recording) -> None:
        self._blocks = _blocks(recording)
        self._held: list[tuple[int, npt.NDArray[np.float32]]] = []
        self._more = True

    def read(self, first: int, last: int) -> npt.NDArray[np.float64]:
        """Return the samples `first` to `last` - 1 at `AUDIO_RATE`, from the first frame on.

        Args:
            first: never less than `last` in the call before.
            last: where the span ends.

        Returns:
            float64 (last - first,), mono; 0 where the track has a gap, or has ended.

        Raises:
            MediaError: the recording is broken there.
        """
        import numpy as np

        self._held = [block for block in self._held if block[0] + len(block[1]) > first]
        while self._more and (not self._held or _end(self._held[-1]) < last):
            block = next(self._blocks, None)
            if block is None:
                self._more = False
            elif _end(block) > first:
                self._held.append(block)
        samples = np.zeros(last - first)
        for start, values in self._held:
            low, high = max(first, start), min(last, start + len(values))
            if low < high:
                samples[low - first : high - first] = values[low - start : high - start]
        return samples

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()


def _end(block: tuple[int, npt.NDArray[np.float32]]) -> int:
    return block[0] + len(block[1])


def _blocks(
    recording: Recording,
) -> Generator[tuple[int, npt.NDArray[np.float32]], None, None]:
    """Resampled samples with the number of the first of each block.

    Samples are counted, since time stamps are coarse; where the two part, there is a gap or a jump
    in the recording, and counting begins anew.
    """
    ref = recording.ref
    with open_media(ref, BUDGET) as container:
        stream = audio_stream(container, ref, None)
        mono: Mono | None = None
        position, expected = 0, 0.0
        for frame in container.decode(stream):
            time = expected if frame.time is None else frame.time - recording.origin_s
            if mono is None or abs(time - expected) > _JUMP_S:
                for block in mono.feed(None) if mono else ():
                    yield position, block
                    position += len(block)
                mono = Mono(ref, AUDIO_RATE)
                position, expected = round(time * AUDIO_RATE), time
            expected += frame.samples / frame.sample_rate
            for block in mono.feed(frame):
                yield position, block
                position += len(block)
        for block in mono.feed(None) if mono else ():
            yield position, block
            position += len(block)
