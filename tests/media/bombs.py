"""Small files that would take much memory or time."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from PIL import Image

from omnidata.types import MediaRef

CODECS = {"libvpx-vp9": "a.mkv", "mjpeg": "a.avi"}
OPTIONS = {"libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"}}


def packets(codec: str, size: tuple[int, int], count: int) -> Iterator[av.Packet[Any]]:
    """A clip's packets, in plain colours."""
    context = av.CodecContext.create(codec, "w")
    assert isinstance(context, av.VideoCodecContext)
    context.width, context.height = size
    context.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    context.time_base = Fraction(1, 30)
    context.options = OPTIONS.get(codec, {})
    for number in range(count):
        frame = av.VideoFrame(*size, context.pix_fmt)
        for plane in frame.planes:
            plane.update(bytes([50 + 20 * number]) * plane.buffer_size)
        frame.pts = number
        yield from context.encode(frame)
    yield from context.encode(None)


def growing(folder: Path, codec: str, later: tuple[int, int]) -> MediaRef:
    """A clip of three small frames, by its header, and one of another size."""
    name = CODECS[codec]
    with av.open(str(folder / name), "w") as container:
        stream = container.add_stream(codec, rate=30, options=OPTIONS.get(codec, {}))
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height = 320, 640
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        parts = [*packets(codec, (320, 640), 3), *packets(codec, later, 1)]
        for number, packet in enumerate(parts):
            packet.stream = stream
            packet.pts = packet.dts = number
            packet.time_base = Fraction(1, 30)
            container.mux(packet)
    return MediaRef("video", folder, name)


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def write_png(path: Path, width: int, height: int, *, rows: int | None = None) -> MediaRef:
    """A black picture, some kilobytes; only the first rows where not all are wanted."""
    body = zlib.compress(bytes((width * 3 + 1) * (height if rows is None else rows)), 1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    whole = (chunk(b"IHDR", header), chunk(b"IDAT", body), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(whole))
    return MediaRef("image", path.parent, path.name)


def progressive(path: Path, width: int, height: int, more: int) -> MediaRef:
    """A JPEG whose last scan is repeated so many times."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), 100).save(buffer, "JPEG", progressive=True, quality=20)
    whole = buffer.getvalue()
    last = whole[whole.rindex(b"\xff\xda") : -2]
    path.write_bytes(whole[:-2] + last * more + b"\xff\xd9")
    return MediaRef("image", path.parent, path.name)


def tone(count: int) -> npt.NDArray[np.float64]:
    return 0.9 * np.sin(np.arange(count) * 2 * np.pi * 440 / 16_000)


def write_wav(path: Path, channels: int, rate: int, count: int) -> None:
    with wave.open(str(path), "wb") as track:
        track.setnchannels(channels)
        track.setsampwidth(2)
        track.setframerate(rate)
        track.writeframes(np.repeat((32767 * tone(count)).astype("<i2"), channels).tobytes())
