"""Files that were cut are known by their own headers, and whole ones never are."""

from __future__ import annotations

import io
import random
import struct
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Literal

import av
import numpy as np
import pytest
from PIL import Image

from omnidata.errors import MediaError
from omnidata.media.probing import examine
from omnidata.types import MediaRef, Modality
from tests.data.tiny import mp4, wav
from tests.full import FULL
from tests.trees import NO_SHARED, SHARED

DATA = SHARED / "data"
KINDS: dict[str, Modality] = {
    ".mp4": "video", ".mkv": "video", ".webm": "video", ".avi": "video",
    ".wav": "audio", ".flac": "audio", ".png": "image", ".jpg": "image", ".webp": "image",
}  # fmt: skip


def clip(path: Path, **options: str) -> bytes:
    codec: Literal["libvpx", "mpeg4"] = "libvpx" if path.suffix == ".webm" else "mpeg4"
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        rng = np.random.default_rng(0)
        for _ in range(20):
            pixels = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return path.read_bytes()


def sound(path: Path, codec: Literal["flac", "libopus"], rate: int) -> bytes:
    """Two seconds of noise."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        noise = np.random.default_rng(0).normal(0, 0.2, (1, 2 * rate)).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(noise, format="flt", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path.read_bytes()


def picture(form: str) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((60, 90), 40).save(out, form)
    return out.getvalue()


FILES: Mapping[str, Callable[[Path], bytes]] = {
    "a.mp4": lambda path: mp4(0),
    "moov first.mp4": lambda path: clip(path, movflags="faststart"),
    "fragments.mp4": lambda path: clip(path, movflags="frag_keyframe+empty_moov"),
    "a.mkv": clip,
    "a.webm": clip,
    "a.avi": clip,
    "a.wav": lambda path: wav(0),
    "a.flac": lambda path: sound(path, "flac", 16_000),
    "sound.webm": lambda path: sound(path, "libopus", 48_000),
    "a.png": lambda path: picture("PNG"),
    "a.jpg": lambda path: picture("JPEG"),
    "a.webp": lambda path: picture("WEBP"),
}


def ref(path: Path) -> MediaRef:
    kind = "audio" if path.name == "sound.webm" else KINDS[path.suffix]
    return MediaRef(kind, path.parent, path.name)


@cache
def made(name: str) -> bytes:
    """A whole file."""
    with tempfile.TemporaryDirectory() as folder:  # some muxers go back in what they wrote
        return FILES[name](Path(folder, name))


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_passes_also_with_a_tail_of_other_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for tail in (b"", b"\0" * 5, b"ID3 or whatever a program adds at the end"):
        path.write_bytes(made(name) + tail)
        examine(ref(path))


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_truncated_or_at_least_unreadable(tmp_path: Path, name: str) -> None:
    path, whole, rng = tmp_path / name, made(name), random.Random(name)
    faults = []
    for _ in range(20):  # not in what follows the pictures: AVI's index
        path.write_bytes(whole[: rng.randrange(1, len(whole) - 400)])
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
        examine(ref(path))


def riff(chunks: bytes, *, more: int = 0) -> bytes:
    return b"RIFF" + struct.pack("<I", len(chunks) + 4 + more) + b"WAVE" + chunks


FMT = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
SOUND = bytes(60 + round(50 * np.sin(n / 5)) for n in range(8001))
DATA_CHUNK = b"data" + struct.pack("<I", len(SOUND)) + SOUND
WAVS = {
    "8 too many": riff(FMT + DATA_CHUNK + b"\0", more=8),
    "1 too many": riff(FMT + DATA_CHUNK, more=1),
    "a size that was to be written at the end": riff(FMT + b"data" + bytes(4) + SOUND),
    "other tags behind": riff(FMT + DATA_CHUNK + b"\0" + b"TAG" + b"x" * 125),
    "a list that is too long": riff(FMT + DATA_CHUNK + b"\0LIST\xff\xff\0\0INFO"),
}


@pytest.mark.parametrize("name", WAVS)
def test_a_wav_with_all_its_samples_is_whole(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.wav").write_bytes(WAVS[name])
    found = examine(ref(tmp_path / "a.wav"))
    assert found.seconds == pytest.approx(1.0, abs=0.02)


def test_a_photo_with_a_film_behind_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture("JPEG") + bytes(100_000))
    examine(ref(tmp_path / "a.jpg"))


def test_sound_with_a_pause_in_its_times_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.m4a"
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16_000, layout="mono")
        for number in range(20):
            noise = np.random.default_rng(number).normal(0, 0.1, (1, 1024)).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(noise, format="fltp", layout="mono")
            frame.sample_rate = 16_000
            frame.pts = number * 1024 + (16_000 if number > 9 else 0)
            frame.time_base = Fraction(1, 16_000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    found = examine(MediaRef("audio", tmp_path, "a.m4a"))
    assert found.seconds and found.stated_seconds
    assert found.stated_seconds - found.seconds > 0.9


@pytest.mark.parametrize("name", ["a.mkv", "a.webm", "a.avi", "sound.webm"])
def test_a_hole_in_the_middle_is_found(tmp_path: Path, name: str) -> None:
    path, whole = tmp_path / name, bytearray(made(name))
    middle, hole = len(whole) // 2, len(whole) // 8
    whole[middle : middle + hole] = bytes(hole)
    path.write_bytes(whole)
    with pytest.raises(MediaError, match=r"begins at byte \d+ of \d+ is no part") as error:
        examine(ref(path))
    assert error.value.fault == "unreadable"


def test_hostile_headers_end(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "a.mp4"
    heads = (b"RIFF", b"\0\0\0\x08free", b"\x1a\x45\xdf\xa3", b"\xff\xd8\xff", b"\0\0\0\x01mdat")
    for _ in range(2000 if FULL else 50):
        path.write_bytes(rng.choice(heads) + rng.randbytes(rng.randrange(60)))
        with pytest.raises(MediaError):
            examine(ref(path))
    for name in ("a.mkv", "a.avi"):
        whole = made(name)
        for _ in range(1000 if FULL else 30):
            broken = bytearray(whole[: rng.randrange(1, len(whole))])
            broken[rng.randrange(len(broken))] = rng.randrange(256)
            (tmp_path / name).write_bytes(broken)
            with suppress(MediaError):
                examine(ref(tmp_path / name))
    path.write_bytes(b"\0\0\0\x08free" * 500_000)
    with pytest.raises(MediaError) as error:
        examine(ref(path))
    assert error.value.fault == "unreadable"


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_SHARED)
def test_real_files_are_whole() -> None:
    paths = [path for path in DATA.rglob("*") if path.suffix in KINDS and path.is_file()]
    paths = [path for path in paths if path.stat().st_size < 200_000]  # large ones take long
    assert len(paths) > 25
    for path in paths:
        examine(ref(path))
