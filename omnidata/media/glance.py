"""One look at a medium that is to be passed on as it is: read once, opened, not decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnidata.media.containers import audio_stream, opened, video_stream
from omnidata.media.held import Held
from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.picture import image_size
from omnidata.media.probing import examine
from omnidata.media.stored import read_bytes
from omnidata.media.wholeness import cut_short
from omnidata.types import MediaRef

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
class Glance:
    """What a medium is, by its content; None where it does not apply or the header is silent.

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


def hold(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> Held:
    """Read a medium into memory and make sure that nothing is missing at its end.

    Args:
        ref: a medium with bytes of its own, not one that a row holds inline.
        budget: limits.

    Raises:
        MediaError: it is missing or refused, or ends before its own header says.
    """
    content = read_bytes(ref, budget=budget)
    held = Held(ref.kind, ref.root, ref.path, cell=ref.cell, within=ref.within, content=content)
    if cut_short(held, budget=budget):
        examine(held, budget=budget)  # raises, but for a JPEG with something behind its end
    return held


def glance(held: Held, *, budget: Budget = DEFAULT_BUDGET) -> Glance:
    """Say what a medium is and make sure that it opens: of a clip, the first frame is decoded.

    Raises:
        MediaError: it is not what its kind promises.
    """
    if held.kind == "image":
        size = image_size(held, budget=budget)
        names = (name for start, name in _PICTURES.items() if held.content.startswith(start))
        name = next(names, "webp")
        return Glance(name, f"image/{name}", width=size[0], height=size[1])
    with opened(held, budget) as container:
        stream: VideoStream | AudioStream
        width: int | None = None
        height: int | None = None
        if held.kind == "video":
            stream = video_stream(container, held, budget, None)
            width, height = stream.codec_context.width, stream.codec_context.height
        else:
            stream = audio_stream(container, held, None)
        next(container.decode(stream))
        name = _format(held, container)
        return Glance(
            name,
            f"{held.kind}/{_SUBTYPES.get(name, name)}",
            stream.codec_context.name,
            width,
            height,
            None if container.duration is None else container.duration / 1e6,
            bool(container.streams.video),
        )


def _format(held: Held, container: InputContainer) -> str:
    name = _CONTAINERS.get(container.format.name, container.format.name)
    head = held.content[:64]
    if name == "mp4" and held.kind == "audio":
        return "m4a"
    if name == "mp4" and (head[4:8] != b"ftyp" or head[8:12] == b"qt  "):
        return "mov"
    return "webm" if name == "mkv" and b"webm" in head else name
