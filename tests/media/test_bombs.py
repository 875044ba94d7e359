"""Small files that would take much memory or time are refused before they do."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from omnidata.data.media_outcomes import Fault, look
from omnidata.errors import MediaError
from omnidata.media import Budget, examine, frames, hold, image, image_size, media_info
from omnidata.training.media_store import Sizing
from omnidata.types import MediaRef
from tests.export.small import BACK, faults, folder, rows, tree, written
from tests.full import in_gate
from tests.media.bombs import growing, progressive, write_png

CODECS = ["mjpeg", "libvpx-vp9"]
TURNED, GROWN = (640, 320), (3840, 2160)
READERS: list[Callable[[MediaRef], Any]] = [
    examine,
    lambda ref: frames(ref, num_frames=4),
    lambda ref: frames(ref, fps=30),
    lambda ref: frames(ref, which="all"),
]


@pytest.mark.parametrize("codec", in_gate(CODECS, 1, "the same check of another decoder's frames"))
def test_a_clip_that_outgrows_its_header_is_refused(tmp_path: Path, codec: str) -> None:
    ref = growing(tmp_path, codec, (5120, 4096))
    for read in READERS:
        with pytest.raises(MediaError, match=r"a\.") as caught:
            read(ref)
        assert "no larger than its header states" in caught.value.expected
    ((_, found),) = look([ref], workers=0)
    assert isinstance(found, Fault)


@pytest.mark.parametrize(
    "form",
    in_gate(
        [(CODECS[1], TURNED), (CODECS[0], GROWN), *product(CODECS, [TURNED, (1280, 2560), GROWN])],
        2,
        "other sizes of either codec",
    ),
)
def test_a_recording_may_turn_and_grow(tmp_path: Path, form: tuple[str, tuple[int, int]]) -> None:
    codec, later = form
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
    assert media_info(hold(ref)).width == 7001
    with pytest.raises(MediaError, match="7001 x 7001 pixels"):
        frames(ref, which="all", budget=Budget(max_pixels=49_000_000))


def exported(picture: Path, tmp_path: Path, *, longest: int) -> tuple[int, list[str]]:
    """Rows and faults of an export of two steps, of which one shows the picture."""
    data = tree(tmp_path / "data", actions=[BACK, BACK])
    picture.rename(folder(data) / "1.png")
    done = written(data, tmp_path / "out", sizing=Sizing(longest=longest), drop_audio=True)
    return len(rows(tmp_path / "out")), faults(done)


@pytest.mark.parametrize("size", [(1, 50_000_000), (50_000_000, 1), (70_000, 2), (8000, 8000)])
def test_a_picture_with_an_endless_side_or_too_many_pixels_is_refused(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    ref = write_png(tmp_path / "a.png", *size, rows=0)
    for read in (image, image_size, examine):
        with pytest.raises(MediaError, match=f"the picture has {size[0]} x {size[1]} pixels"):
            read(ref)
    assert exported(ref.root / ref.path, tmp_path, longest=1000) == (1, ["media-broken"])


def test_large_screenshots_are_taken(tmp_path: Path) -> None:
    assert image_size(write_png(tmp_path / "page.png", 1440, 30_000)) == (1440, 30_000)
    strip = write_png(tmp_path / "strip.png", 144, 30_000)
    assert image(strip).pixels.shape == (30_000, 144, 3)
    assert image_size(write_png(tmp_path / "8k.png", 7680, 4320)) == (7680, 4320)
    tall = write_png(tmp_path / "tall.png", 20, 65_535)
    assert exported(tall.root / tall.path, tmp_path, longest=500) == (2, [])


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
