"""Files that were cut are known by their own headers, and whole ones never are."""

from __future__ import annotations

import io
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import av
import numpy as np
import pytest
from PIL import Image

from omnidata.errors import MediaError
from omnidata.media import examine
from omnidata.media.wholeness import cut_short
from omnidata.types import MediaRef, Modality
from tests.data.tiny import mp4, wav
from tests.trees import NO_SHARED, SHARED

DATA = SHARED / "data"
KINDS: dict[str, Modality] = {
    ".mp4": "video", ".mkv": "video", ".webm": "video", ".avi": "video",
    ".wav": "audio", ".flac": "audio", ".png": "image", ".jpg": "image", ".webp": "image",
}  # fmt: skip


def clip(suffix: str, **options: str) -> bytes:
    codec: Literal["libvpx", "mpeg4"] = "libvpx" if suffix == ".webm" else "mpeg4"
    path = Path(tempfile.mkdtemp()) / f"clip{suffix}"  # some muxers go back in what they wrote
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        rng = np.random.default_rng(0)
        for _ in range(20):
            pixels = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    whole = path.read_bytes()
    shutil.rmtree(path.parent)
    return whole


def flac() -> bytes:
    out = io.BytesIO()
    with av.open(out, "w", format="flac") as container:
        stream = container.add_stream("flac", rate=16_000, layout="mono")
        noise = np.random.default_rng(0).integers(-9000, 9000, (1, 16_000), dtype=np.int16)
        frame = av.AudioFrame.from_ndarray(noise, format="s16", layout="mono")
        frame.sample_rate = 16_000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


def picture(form: str) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((60, 90), 40).save(out, form)
    return out.getvalue()


FILES: Mapping[str, Callable[[], bytes]] = {
    "a.mp4": lambda: mp4(0),
    "moov first.mp4": lambda: clip(".mp4", movflags="faststart"),
    "fragments.mp4": lambda: clip(".mp4", movflags="frag_keyframe+empty_moov"),
    "a.mkv": lambda: clip(".mkv"),
    "a.webm": lambda: clip(".webm"),
    "a.avi": lambda: clip(".avi"),
    "a.wav": lambda: wav(0),
    "a.flac": flac,
    "a.png": lambda: picture("PNG"),
    "a.jpg": lambda: picture("JPEG"),
    "a.webp": lambda: picture("WEBP"),
}


def ref(path: Path) -> MediaRef:
    return MediaRef(KINDS[path.suffix], path.parent, path.name)


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_passes_also_with_a_tail_of_other_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for tail in (b"", b"\0" * 5, b"ID3 or whatever a program adds at the end"):
        path.write_bytes(FILES[name]() + tail)
        assert cut_short(ref(path)) == ""
        if not tail:
            examine(ref(path))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_truncated_or_at_least_unreadable(tmp_path: Path, name: str) -> None:
    path, whole, rng = tmp_path / name, FILES[name](), random.Random(name)
    faults = []
    for _ in range(20):
        path.write_bytes(whole[: rng.randrange(1, len(whole) - 200)])
        with pytest.raises(MediaError) as error:
            examine(ref(path))
        faults.append(error.value.fault)
    assert set(faults) <= {"truncated", "unreadable"}
    # A track in FLAC ends in half a frame, which cannot be decoded in the first place.
    assert faults.count("truncated") >= (0 if name == "a.flac" else 14)


def test_sizes_that_a_stream_cannot_know_are_not_believed(tmp_path: Path) -> None:
    whole = bytearray(wav(0))
    for unknown in (b"\xff" * 4, b"\0" * 4):
        path = tmp_path / "a.wav"
        path.write_bytes(bytes(whole[:4]) + unknown + bytes(whole[8:40]) + b"\xff" * 4 + whole[44:])
        assert cut_short(ref(path)) == ""


def test_hostile_headers_end(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "a.mp4"
    heads = (b"RIFF", b"\0\0\0\x08free", b"\x1a\x45\xdf\xa3", b"\xff\xd8\xff", b"\0\0\0\x01mdat")
    for _ in range(200):
        path.write_bytes(rng.choice(heads) + rng.randbytes(rng.randrange(60)))
        cut_short(ref(path))
    path.write_bytes(b"\0\0\0\x08free" * 500_000)
    assert cut_short(ref(path)) == ""


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_SHARED)
def test_real_files_are_whole() -> None:
    paths = [path for path in DATA.rglob("*") if path.suffix in KINDS and path.is_file()]
    assert len(paths) > 40
    assert {path.name: cut for path in paths if (cut := cut_short(ref(path)))} == {}
