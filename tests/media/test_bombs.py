"""Small files that would take much memory or time are refused before they do."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from omnidata.data.validate.media import Fault, look
from omnidata.errors import MediaError
from omnidata.export.sizing import Sizing
from omnidata.export.store import Broken, Kept, Store, key
from omnidata.media import Budget, examine, frames, glance, hold, image, image_size
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


READERS: list[Callable[[MediaRef], Any]] = [
    examine,
    lambda ref: frames(ref, num_frames=4),
    lambda ref: frames(ref, fps=30),
    lambda ref: frames(ref, which="all"),
]


@pytest.mark.parametrize("codec", ["libvpx-vp9", "mjpeg"])
def test_a_clip_that_outgrows_its_header_is_refused(tmp_path: Path, codec: str) -> None:
    ref = growing(tmp_path, codec, (5120, 4096))
    for read in READERS:
        with pytest.raises(MediaError, match=r"a\.") as caught:
            read(ref)
        assert "no larger than its header says" in caught.value.expected
    ((_, found),) = look([ref], workers=1)
    assert isinstance(found, Fault)


@pytest.mark.parametrize("later", [(640, 320), (1280, 2560), (3840, 2160)])
@pytest.mark.parametrize("codec", ["libvpx-vp9", "mjpeg"])
def test_a_recording_may_turn_and_grow(tmp_path: Path, codec: str, later: tuple[int, int]) -> None:
    ref = growing(tmp_path, codec, later)
    assert examine(ref).frames == 4
    assert frames(ref, which="all").pixels.shape == (4, 640, 320, 3)


def test_the_largest_frames_that_a_header_may_promise_are_decoded(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (7001, 7001), "red").save(buffer, "JPEG")
    with av.open(str(tmp_path / "a.avi"), "w") as container:
        stream = container.add_stream("mjpeg", rate=30)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 7001, 7001, "yuvj420p"
        packet = av.Packet(buffer.getvalue())
        packet.stream, packet.pts, packet.dts = stream, 0, 0
        packet.time_base = Fraction(1, 30)
        container.mux(packet)
    ref = MediaRef("video", tmp_path, "a.avi")
    assert frames(ref, which="all").pixels.shape == (1, 7001, 7001, 3)
    assert glance(hold(ref)).width == 7001
    with pytest.raises(MediaError, match="7001 x 7001 pixels"):
        frames(ref, which="all", budget=Budget(max_pixels=49_000_000))


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def write_png(path: Path, width: int, height: int, *, rows: int | None = None) -> MediaRef:
    """A black picture, some kilobytes; only the first rows where not all are wanted."""
    body = zlib.compress(bytes((width * 3 + 1) * (height if rows is None else rows)), 1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    whole = (chunk(b"IHDR", header), chunk(b"IDAT", body), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(whole))
    return MediaRef("image", path.parent, path.name)


@pytest.mark.parametrize("size", [(1, 50_000_000), (50_000_000, 1), (70_000, 2)])
def test_a_picture_with_an_endless_side_is_refused(tmp_path: Path, size: tuple[int, int]) -> None:
    ref = write_png(tmp_path / "a.png", *size, rows=0)
    for read in (image, image_size, examine):
        with pytest.raises(MediaError, match=f"the picture has {size[0]} x {size[1]} pixels"):
            read(ref)
    sizing = Sizing(longest=1000)
    store = Store(tmp_path, tmp_path / "j", sizing=sizing, frames=None, copy=True)
    assert isinstance(store.fill([ref])[key(ref)], Broken)


def test_large_screenshots_are_taken(tmp_path: Path) -> None:
    page = write_png(tmp_path / "page.png", 1440, 30_000)
    assert image(page).pixels.shape == (30_000, 1440, 3)
    assert image_size(write_png(tmp_path / "8k.png", 7680, 4320)) == (7680, 4320)
    tall = write_png(tmp_path / "tall.png", 20, 65_535)
    store = Store(tmp_path, tmp_path / "j", sizing=Sizing(longest=500), frames=None, copy=True)
    assert isinstance(store.fill([tall])[key(tall)], Kept)


def progressive(path: Path, width: int, height: int, more: int) -> MediaRef:
    """A JPEG whose last scan is repeated so many times."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), 100).save(buffer, "JPEG", progressive=True, quality=20)
    whole = buffer.getvalue()
    last = whole[whole.rindex(b"\xff\xda") : -2]
    path.write_bytes(whole[:-2] + last * more + b"\xff\xd9")
    return MediaRef("image", path.parent, path.name)


def test_a_jpeg_of_hundreds_of_scans_is_refused(tmp_path: Path) -> None:
    ref = progressive(tmp_path / "a.jpg", 3000, 3000, 300)
    for read in (image, image_size, examine):
        with pytest.raises(MediaError, match="scans of 3000 x 3000 pixels"):
            read(ref)
    with pytest.raises(MediaError, match="scans"):
        image(progressive(tmp_path / "a.jpg", 300, 300, 300), budget=Budget(max_pixels=100_000))


@pytest.mark.parametrize(("side", "more"), [(5000, 10), (300, 300)])
def test_usual_scans_are_decoded(tmp_path: Path, side: int, more: int) -> None:
    assert image(progressive(tmp_path / "a.jpg", side, side, more)).pixels.shape[0] == side
