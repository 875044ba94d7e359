"""Media that are passed on as they are: read once into memory, opened, not decoded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnidata.media.containers import audio_stream, first_frame
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture import image_size
from omnidata.media.probing import examine
from omnidata.media.rotation import turn_of
from omnidata.media.storage import InMemoryMedia, open_media, read_and_hash, upright
from omnidata.media.truncation import missing_bytes
from omnidata.types import MediaRef, VideoSegment

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

_PICTURES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg"}
_CONTAINERS = {"mov,mp4,m4a,3gp,3g2,mj2": "mp4", "matroska,webm": "mkv"}
_SUBTYPES = {
    **{"mov": "quicktime", "mkv": "x-matroska", "avi": "x-msvideo"},
    **{"mp3": "mpeg", "m4a": "mp4"},
}
"""Where the media type is not named like the format."""


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """Format and size of a medium, by its content; None if unknown or not applicable.

    Attributes:
        format: png, jpeg, webp; mp4, mov, mkv, webm, avi; wav, mp3, m4a, ogg, flac, aac.
        mime: the media type, e.g. "image/png".
        codec: FFmpeg's name of a clip's or a track's codec.
        width, height: of a picture or a clip, in pixels.
        seconds: of a clip or a track, by its header.
        pictures: whether there is a stream of pictures in it.
    """

    format: str
    mime: str
    codec: str | None = None
    width: int | None = None
    height: int | None = None
    seconds: float | None = None
    pictures: bool = True


def hold(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> InMemoryMedia:
    """Read a medium into memory, upright, and check that it is complete.

    Args:
        ref: a medium with bytes of its own, not one that a row holds inline.
        budget: limits.

    Raises:
        MediaError: it is missing or refused, or ends before its own header says.
    """
    content, digest = read_and_hash(ref, budget=budget)
    held = InMemoryMedia(
        ref.kind,
        ref.root,
        ref.path,
        cell=ref.cell,
        sha256=digest,
        within=ref.within,
        content=content,
    )
    # The beginning of a file is written anew: the file itself may end too early.
    is_beginning = ref.until < 1 and not isinstance(ref.cell, VideoSegment)
    whole = replace(ref, until=1.0) if is_beginning else held
    if missing_bytes(whole, budget=budget):
        examine(whole, budget=budget)  # raises, but for a JPEG with something behind its end
    shown = upright(held, content, budget)
    if shown is content:
        return held
    digest = hashlib.sha256(shown).hexdigest()
    return replace(held, content=shown, sha256=digest, as_stored=False)


def media_info(held: InMemoryMedia, *, budget: Budget = DEFAULT_BUDGET) -> MediaInfo:
    """Return format and size of a medium, and check that it opens (a clip: its first frame).

    Raises:
        MediaError: it is not what its kind promises.
    """
    if held.kind == "image":
        size = image_size(held, budget=budget)
        names = (name for start, name in _PICTURES.items() if held.content.startswith(start))
        name = next(names, "webp")
        return MediaInfo(name, f"image/{name}", width=size[0], height=size[1])
    with open_media(held, budget, at_a_glance=True) as container:
        stream: VideoStream | AudioStream
        width: int | None = None
        height: int | None = None
        if held.kind == "video":
            stream, frame = first_frame(container, held, budget)
            width, height = turn_of(frame).size(
                stream.codec_context.width, stream.codec_context.height
            )
        else:
            stream = audio_stream(container, held, None)
            next(container.decode(stream))
        name = _container_format(held, container)
        return MediaInfo(
            name,
            f"{held.kind}/{_SUBTYPES.get(name, name)}",
            stream.codec_context.name,
            width,
            height,
            None if container.duration is None else container.duration / 1e6,
            bool(container.streams.video),
        )


def _container_format(held: InMemoryMedia, container: InputContainer) -> str:
    name = _CONTAINERS.get(container.format.name, container.format.name)
    head = held.content[:64]
    if name == "mp4" and held.kind == "audio":
        return "m4a"
    if name == "mp4" and (head[4:8] != b"ftyp" or head[8:12] == b"qt  "):
        return "mov"
    return "webm" if name == "mkv" and b"webm" in head else name
