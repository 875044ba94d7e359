"""Clips and tracks, opened with FFmpeg's libraries through PyAV.

Everything here is given a file or its bytes; `storage` knows where the bytes of a medium are.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from omnidata.errors import MediaError, MediaFault, StoreError
from omnidata.media.paths import Budget, place
from omnidata.types import MediaRef, Modality

if TYPE_CHECKING:
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
