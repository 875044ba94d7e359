"""The one way to open a clip or a track with FFmpeg's libraries, through PyAV."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnidata.errors import MediaError, MediaFault
from omnidata.media.paths import Budget, place
from omnidata.media.storage import stored
from omnidata.types import MediaRef, Modality

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

# Left to itself, FFmpeg also takes playlists, which make it open files that they name.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,wav,mp3,ogg,flac,aac"

_GROWN = 16_000_000
"""Pixels that a later frame may have although the header promises fewer: nearly twice 4K. A decoder
holds up to 16 frames, and takes their size from the stream, not from the header."""

_STEADY = ", of frames that are no larger than its header says"


@contextmanager
def opened(ref: MediaRef, budget: Budget) -> Iterator[InputContainer]:
    """The container, closed again when the block is left.

    Raises:
        MediaError: as `stored`; or the container, or anything decoded in the block, is broken.
    """
    import av

    found = stored(ref, budget=budget)
    source = io.BytesIO(found) if isinstance(found, bytes) else str(found)
    try:
        with av.open(
            source, "r", options=_options(ref, budget), metadata_errors="ignore"
        ) as container:
            yield container
    except MediaError:
        raise
    except Exception as error:
        # Not a list of types on purpose: hostile bytes make decoders raise whatever they like.
        raise MediaError(
            f"the {ref.kind} cannot be decoded ({type(error).__name__})",
            where=place(ref),
            expected=f"a whole {ref.kind} file" + _STEADY * (ref.kind == "video"),
            remedy="copy or record it again, or leave the step out with --exclude",
        ) from None


def _options(ref: MediaRef, budget: Budget) -> dict[str, str]:
    # FFmpeg decodes a few frames of what the header does not describe.
    options = {"format_whitelist": _CONTAINERS, "max_pixels": _padded(budget.max_pixels)}
    if ref.path.lower().endswith(".wav"):
        # FFmpeg searches 16-bit sound for S/PDIF streams, ten times as long as all the rest takes.
        options["probesize"] = "4096"
    return options


def broken(
    ref: MediaRef, what: str, expected: str, *, fault: MediaFault = "unreadable"
) -> MediaError:
    """The error for a medium that opens but is not what it should be."""
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
    """The stream with that index, or FFmpeg's choice; checked against the pixel budget."""
    number = _number(container, "video", stream)
    if number is None:
        raise broken(ref, "the file has no video stream", "a file with a video stream")
    found = next(s for s in container.streams.video if s.index == number)
    pixels = found.codec_context.width * found.codec_context.height
    if not 0 < pixels <= budget.max_pixels:
        raise broken(
            ref,
            f"its frames have {found.codec_context.width} x {found.codec_context.height} pixels",
            f"frames of 1 to {budget.max_pixels} pixels",
            fault="refused",
        )
    limit = max(pixels, min(_GROWN, budget.max_pixels))
    found.codec_context.options = {"max_pixels": _padded(limit)}
    return found


def _padded(pixels: int) -> str:
    """A limit for decoders, which count the rows' padding as well."""
    return str(min(pixels + pixels // 4 + 4096, (1 << 31) - 1))


def audio_stream(container: InputContainer, ref: MediaRef, stream: int | None) -> AudioStream:
    """The stream with that index, or FFmpeg's choice."""
    number = _number(container, "audio", stream)
    if number is None:
        raise broken(ref, "the file has no audio stream", "a file with an audio stream")
    return next(s for s in container.streams.audio if s.index == number)


def _number(container: InputContainer, kind: Modality, stream: int | None) -> int | None:
    streams = container.streams.video if kind == "video" else container.streams.audio
    numbers = [found.index for found in streams]
    if stream is not None:
        return stream if stream in numbers else None
    best = container.streams.best("video" if kind == "video" else "audio")
    return None if best is None else best.index
