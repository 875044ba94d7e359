"""Clips and tracks opened with FFmpeg's libraries, through PyAV, and parts of recordings cut out.

Everything here is given a file or its bytes; `storage` knows where the bytes of a medium are.

A clip is what players show: the display matrix of its container is obeyed wherever frames are
decoded, which FFmpeg's libraries leave to their caller.
"""

from __future__ import annotations

import io
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from omnidata.actions import Screen
from omnidata.errors import MediaError, MediaFault, StoreError
from omnidata.media.encoding import encode_mp4, png
from omnidata.media.paths import Budget, around, place, resolve
from omnidata.types import MediaRef, Modality, VideoSegment

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# Left to itself, FFmpeg also takes playlists, which make it open files that they name.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,wav,mp3,ogg,flac,aac"

_GROWN = 16_000_000
"""Pixels that a later frame may have although the header promises fewer: nearly twice 4K. A decoder
holds up to 16 frames, and takes their size from the stream, not from the header."""

_STEADY = ", with frames no larger than its header states"


@contextmanager
def open_container(
    source: Path | bytes, ref: MediaRef, budget: Budget, *, at_a_glance: bool = False
) -> Iterator[InputContainer]:
    """Open the container of a medium for the block.

    Args:
        source: the file, or its bytes.
        ref: whose they are, for errors.
        budget: limits.
        at_a_glance: for `first_frame` alone: takes a sixth of the time, and the order and the rate
            of the frames behind it are unknown.

    Raises:
        MediaError: the container, or anything decoded in the block, is broken.
    """
    import av

    stream = io.BytesIO(source) if isinstance(source, bytes) else str(source)
    try:
        # FFmpeg decodes a few frames of what the header does not describe.
        options = {"format_whitelist": _CONTAINERS, "max_pixels": _padded_limit(budget.max_pixels)}
        if ref.path.lower().endswith(".wav"):
            # FFmpeg searches 16-bit sound for S/PDIF streams, which takes ten times as long.
            options["probesize"] = "4096"
        if at_a_glance:
            options["skip_frame"] = "all"
        with av.open(stream, "r", options=options, metadata_errors="ignore") as container:
            yield container
    except (MediaError, StoreError):
        raise
    except Exception as error:
        # Not a list of types on purpose: hostile bytes make decoders raise whatever they like.
        raise MediaError(
            f"the {ref.kind} cannot be decoded ({type(error).__name__})",
            where=place(ref),
            expected=f"a complete {ref.kind} file" + _STEADY * (ref.kind == "video"),
            remedy="copy or record it again, or leave the step out with --exclude",
        ) from None


def broken_media(
    ref: MediaRef, what: str, expected: str, *, fault: MediaFault = "unreadable"
) -> MediaError:
    """Return the error for a medium that opens but is damaged or of another kind."""
    return MediaError(
        what,
        where=place(ref),
        expected=expected,
        remedy="record the step again, or leave it out with --exclude",
        fault=fault,
    )


def video_stream(
    container: InputContainer, ref: MediaRef, budget: Budget, stream: int | None
) -> VideoStream:
    """Return the stream with an index, or FFmpeg's choice; checked against the pixel budget."""
    number = _number(container, "video", stream)
    if number is None:
        raise broken_media(ref, "the file has no video stream", "a file with a video stream")
    found = next(s for s in container.streams.video if s.index == number)
    pixels = found.codec_context.width * found.codec_context.height
    if not 0 < pixels <= budget.max_pixels:
        raise broken_media(
            ref,
            f"its frames have {found.codec_context.width} x {found.codec_context.height} pixels",
            f"frames of 1 to {budget.max_pixels} pixels",
            fault="refused",
        )
    limit = max(pixels, min(_GROWN, budget.max_pixels))
    found.codec_context.options = {"max_pixels": _padded_limit(limit)}
    return found


def first_frame(
    container: InputContainer, ref: MediaRef, budget: Budget
) -> tuple[VideoStream, VideoFrame]:
    """Decode the first frame of FFmpeg's choice of stream; its pixels are rough."""
    video = video_stream(container, ref, budget, None)
    video.codec_context.thread_count = 1  # others take as long to start as the frame to decode
    video.codec_context.options |= {"skip_loop_filter": "all"}
    return video, next(container.decode(video))


def _padded_limit(pixels: int) -> str:
    """Return a limit for decoders, which count the rows' padding as well."""
    return str(min(pixels + pixels // 4 + 4096, (1 << 31) - 1))


def audio_stream(container: InputContainer, ref: MediaRef, stream: int | None) -> AudioStream:
    """Return the stream with an index, or FFmpeg's choice."""
    number = _number(container, "audio", stream)
    if number is None:
        raise broken_media(ref, "the file has no audio stream", "a file with an audio stream")
    return next(s for s in container.streams.audio if s.index == number)


def _number(container: InputContainer, kind: Modality, stream: int | None) -> int | None:
    streams = container.streams.video if kind == "video" else container.streams.audio
    numbers = [found.index for found in streams]
    if stream is not None:
        return stream if stream in numbers else None
    best = container.streams.best("video" if kind == "video" else "audio")
    return None if best is None else best.index


def frames_with_times(
    container: InputContainer, video: VideoStream
) -> Iterator[tuple[float | None, VideoFrame]]:
    """Frames with the seconds at which they are shown, None where the file does not say.

    AVI has no times for frames but their place in the file. Where B-frames are stored in another
    order than they are shown in, FFmpeg gives each frame the time of another; the packets' times in
    their own order are right.
    """
    if container.format.name != "avi" or video.codec_context.skip_frame == "NONKEY":
        for frame in container.decode(video):
            yield frame.time, frame
        return
    stamps: deque[int] = deque()
    for packet in container.demux(video):
        if packet.size and packet.pts is not None:
            stamps.append(packet.pts)
        for frame in packet.decode():
            stamp = stamps.popleft() if stamps else None
            yield None if stamp is None else float(stamp * (video.time_base or 0)), frame


class Turn(NamedTuple):
    """The rotation that makes stored frames upright.

    Attributes:
        swap: whether rows become columns, before anything else.
        across, down: whether they are mirrored left to right, and top to bottom.
    """

    swap: bool = False
    across: bool = False
    down: bool = False

    @property
    def mirrors(self) -> bool:
        """Whether no rotation does the same."""
        return sum(self) % 2 == 1

    def size(self, width: int, height: int) -> Screen:
        """Width and height of the upright frame."""
        return (height, width) if self.swap else (width, height)

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return the upright frame.

        Args:
            pixels: uint8 (H, W, 3), as stored.
        """
        import numpy as np

        if not any(self):
            return pixels
        found = pixels.swapaxes(0, 1) if self.swap else pixels
        found = found[:: -1 if self.down else 1, :: -1 if self.across else 1]
        return np.ascontiguousarray(found)


def turn_of(frame: VideoFrame) -> Turn:
    """Return the rotation of a display matrix (ISO 14496-12, 8.3.2); none unless by quarter turns.

    A point (p, q) of the stored frame is shown at (a p + c q, b p + d q), but for an offset.
    """
    from av.sidedata.sidedata import SideData

    matrix = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(matrix, SideData):
        return Turn()
    a, b, _, c, d = struct.unpack_from("=5i", bytes(matrix))
    if a and d and not (b or c):
        return Turn(False, a < 0, d < 0)
    if b and c and not (a or d):
        return Turn(True, c < 0, b < 0)
    return Turn()


_UPRIGHT = struct.pack(">5i", 1 << 16, 0, 0, 0, 1 << 16)
_MOST_BOXES = 10_000


def is_turned(content: bytes, ref: MediaRef, budget: Budget) -> bool:
    """Return whether a clip's first frame has to be rotated; False if there is no frame.

    Args:
        content: the clip's file; only an MP4 or MOV is looked at.
        ref: whose it is.
        budget: limits.
    """
    if not _may_be_turned(content):
        return False
    try:
        with open_container(content, ref, budget, at_a_glance=True) as container:
            return any(turn_of(first_frame(container, ref, budget)[1]))
    except MediaError:
        return False


def _may_be_turned(content: bytes) -> bool:
    """Return whether a track of an MP4 or MOV has another matrix than most; nothing is decoded.

    Frames say it for sure, and those of other containers, which hardly ever have one, alone do.
    """
    place = 0
    for _ in range(_MOST_BOXES):
        length = int.from_bytes(content[place : place + 4])
        name = content[place + 4 : place + 8]
        if length == 1:
            length = int.from_bytes(content[place + 8 : place + 16])
        if name == b"moov":
            return _has_matrix(content[place : place + length] if length else content[place:])
        if length < 8:
            return False
        place += length
    return False


def _has_matrix(moov: bytes) -> bool:
    for name, before in ((b"mvhd", 36), (b"tkhd", 40)):
        place = moov.find(name)
        while place >= 0:
            place += 4
            longer = 12 if moov[place : place + 1] == b"\1" else 0  # times of 64 bits
            matrix = place + before + longer
            if moov[matrix : matrix + len(_UPRIGHT)] != _UPRIGHT:
                return True
            place = moov.find(name, place)
    return False


Decoded = tuple[int, float, "VideoFrame"]
"""Number, seconds, frame."""


def decode(
    container: InputContainer, video: VideoStream, ref: MediaRef, budget: Budget
) -> Iterator[Decoded]:
    """Frames with their numbers and times, within the budget."""
    rate = float(video.average_rate or 0) or 1.0
    begin = 0.0
    for number, (time, frame) in enumerate(frames_with_times(container, video)):
        seconds = number / rate if time is None else time
        if number == 0:
            begin = seconds  # a cut clip may keep the clock of what it was cut from
        if number >= budget.max_frames or seconds - begin > budget.max_seconds:
            raise broken_media(
                ref,
                f"the clip continues after {number} frames and {seconds - begin:.1f} s",
                f"at most {budget.max_frames} frames and {budget.max_seconds} s",
                fault="refused",
            )
        yield number, seconds, frame


# A part of a recording as a medium of its own: a clip, or the one picture shown at a moment.

_SLOWEST, _FASTEST, _USUAL = 1, 60, Fraction(30)
_KEPT = 8
RECORDING = Budget(max_bytes=1 << 40)
"""What lies around a cut may be as large as it likes: only a part of it is decoded."""


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
    found = resolve(whole, budget=RECORDING).stat()
    return _cut_segment(ref, cell, budget, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=_KEPT)  # a medium is opened several times: looked at, probed, decoded, read
def _cut_segment(ref: MediaRef, cell: VideoSegment, budget: Budget, size: int, time: int) -> bytes:
    whole = around(ref, cell)
    limits = replace(budget, max_bytes=RECORDING.max_bytes)
    try:
        with open_container(resolve(whole, budget=limits), whole, limits) as container:
            video = video_stream(container, whole, limits, None)
            shown = frames_from(container, video, cell.start_s)
            if ref.kind == "image":
                return png(_pixels(next(shown)[1]))
            rate = frame_rate(video)
            ticks = max(1, round((cell.end_s - cell.start_s) * rate))
            if ticks > budget.max_frames:
                raise broken_media(ref, f"it has {ticks} frames", f"at most {budget.max_frames}")
            frames = at_ticks(shown, cell.start_s, rate, ticks)
            return encode_mp4((even(frame) for frame in frames), fps=rate)
    except MediaError as error:
        raise MediaError(
            error.what,
            where=place(ref),
            expected=error.expected,
            remedy=error.remedy,
            fault=error.fault,
        ) from None


def frame_rate(video: VideoStream) -> Fraction:
    """Return the recording's own rate, or FFmpeg's guess at it."""
    guess = video.guessed_rate
    return guess if guess and _SLOWEST <= guess <= _FASTEST else _USUAL


Shown = tuple[float, "VideoFrame"]
"""Seconds after the recording's first frame, and the frame."""


def frames_from(container: InputContainer, video: VideoStream, start_s: float) -> Iterator[Shown]:
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


def _timed_frames(container: InputContainer, video: VideoStream) -> Iterator[Shown]:
    origin = float((video.start_time or 0) * (video.time_base or 0))
    rate = frame_rate(video)
    for number, (time, frame) in enumerate(frames_with_times(container, video)):
        yield (float(number / rate) if time is None else time - origin), frame


def at_ticks(
    shown: Iterator[Shown], start_s: float, rate: Fraction, ticks: int
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


def even(frame: VideoFrame) -> npt.NDArray[np.uint8]:
    """Return the upright pixels of a frame, cropped to even sides, which codecs require."""
    pixels = _pixels(frame)
    return pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
