"""Few frames of long clips are sought, and are those that one pass gives; AVI with B-frames too."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.stream import VideoStream

from omnidata.errors import MediaError
from omnidata.media import Frames, frames, samples
from omnidata.types import MediaRef
from tests.data.segment.films import film, number_of

COUNT = 400
EASIER = pytest.mark.full("frames that are easier to seek than those of variable times")


def level(number: int) -> int:
    """A grey for every frame of a run of 200; steps that the codec keeps apart."""
    return 20 + number % 200


def write(path: Path, codec: str, *, gop: int, b_frames: int = 0, skipped: int = 0) -> MediaRef:
    """A clip whose frame k is all of grey `level(k)`; after every `skipped`-th one time is lost."""
    with av.open(str(path), "w") as container:
        options = {"crf": "4", "threads": "1"}
        if codec == "libvpx-vp9":
            options |= {"deadline": "realtime", "cpu-used": "8"}
        stream = container.add_stream(codec, rate=30, options=options)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        stream.gop_size, stream.max_b_frames = gop, b_frames
        stream.codec_context.time_base = Fraction(1, 30)
        time = 0
        for number in range(COUNT):
            picture = np.full((32, 32, 3), level(number), np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            time += 2 if skipped and number % skipped == 0 else 1
            frame.pts = time
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return MediaRef("video", path.parent, path.name)


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("variable.mp4", "libx264", {"gop": 50, "b_frames": 2, "skipped": 7}),
        ("one_keyframe.mp4", "libx264", {"gop": 10_000}),
        pytest.param("plain.mp4", "libx264", {"gop": 60}, marks=EASIER),
        pytest.param("reordered.mp4", "libx264", {"gop": 60, "b_frames": 3}, marks=EASIER),
        pytest.param("matroska.mkv", "libx264", {"gop": 60, "b_frames": 2}, marks=EASIER),
        ("vp9.webm", "libvpx-vp9", {"gop": 60}),
    ],
)
def test_sought_frames_are_those_of_one_pass(
    tmp_path: Path, name: str, codec: str, options: dict[str, int]
) -> None:
    ref = write(tmp_path / name, codec, **options)
    every = frames(ref, which="all")
    assert len(every.pixels) == COUNT
    assert frames(ref, num_frames=COUNT + 9).indices.tolist() == list(range(COUNT))
    for num_frames in (9, 1, 2, 4):
        found = frames(ref, num_frames=num_frames)
        wanted = [int(k * (COUNT - 1) / max(num_frames - 1, 1)) for k in range(num_frames)]
        assert found.indices.tolist() == wanted
        assert np.array_equal(found.pixels, every.pixels[wanted])
        assert np.array_equal(found.pts_seconds, every.pts_seconds[wanted])
        for number, pixels in zip(wanted, found.pixels, strict=True):
            assert abs(int(pixels.mean()) - level(number)) <= 2


def test_damage_between_the_sought_frames_does_not_matter(tmp_path: Path) -> None:
    ref = write(tmp_path / "clip.mp4", "libx264", gop=60)
    clean = frames(ref, num_frames=2)
    content = bytearray((tmp_path / "clip.mp4").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400] = bytes(400)
    (tmp_path / "clip.mp4").write_bytes(content)
    assert np.array_equal(frames(ref, num_frames=2).pixels, clean.pixels)
    with pytest.raises(MediaError, match=r"clip\.mp4"):
        frames(ref, which="all")


def test_frames_that_are_only_marked_as_keyframes_are_not_trusted(tmp_path: Path) -> None:
    """Recorders and muxers mark packets that nothing can be decoded from."""
    honest = tmp_path / "honest.mp4"
    ground = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    with av.open(str(honest), "w") as container:
        stream = container.add_stream("mpeg4", rate=30)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        stream.gop_size, stream.max_b_frames = 150, 2
        for number in range(COUNT):
            frame = av.VideoFrame.from_ndarray(np.roll(ground, number, axis=1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    pixels = frames(MediaRef("video", tmp_path, honest.name), which="all").pixels
    for every in (1, 37):
        path = tmp_path / f"marked-{every}.mp4"
        with av.open(str(honest)) as source, av.open(str(path), "w") as target:
            copy = target.add_stream_from_template(source.streams.video[0])
            for number, packet in enumerate(source.demux(video=0)):
                if packet.size:
                    packet.is_keyframe |= number % every == 0
                    packet.stream = copy
                    target.mux(packet)
        for num_frames in (2, 3, 5):
            found = frames(MediaRef("video", tmp_path, path.name), num_frames=num_frames)
            assert np.array_equal(found.pixels, pixels[found.indices])


def test_sound_in_any_wav_is_what_was_written(tmp_path: Path) -> None:
    wave = (np.sin(np.arange(8000) / 9) * 12_000).astype(np.int16)
    fmt = b"fmt " + (16).to_bytes(4, "little") + np.array([1, 1], "<u2").tobytes()
    fmt += np.array([16_000, 32_000], "<u4").tobytes() + np.array([2, 16], "<u2").tobytes()
    data = b"data" + (16_000).to_bytes(4, "little") + wave.tobytes()
    for size in (0, 5000, 300_000):  # what recorders put before the sound
        notes = b"LIST" + (size + 4).to_bytes(4, "little") + b"INFO" + bytes(size)
        body = b"WAVE" + notes + fmt + data
        riff = b"RIFF" + len(body).to_bytes(4, "little") + body
        (tmp_path / "a.wav").write_bytes(riff)
        found = samples(MediaRef("audio", tmp_path, "a.wav"))
        assert np.array_equal(np.round(found * 32768).astype(int), wave)


@pytest.fixture(scope="module")
def reordered(tmp_path_factory: pytest.TempPathFactory) -> MediaRef:
    """An AVI with B-frames, whose times FFmpeg gives in another order; frames show their number."""
    path = film(tmp_path_factory.mktemp("avi") / "clip.avi", count=COUNT)
    with av.open(str(path)) as container:
        times = [frame.pts or 0 for frame in container.decode(video=0)]
    assert times != sorted(times)
    return MediaRef("video", path.parent, path.name)


def numbers(found: Frames) -> list[int]:
    return [number_of(picture) for picture in found.pixels]


def test_reordered_times_rise_and_every_tick_shows_its_own_frame(reordered: MediaRef) -> None:
    every = frames(reordered, which="all")
    assert np.allclose(np.diff(every.pts_seconds), 1 / 30)
    assert numbers(every) == numbers(frames(reordered, fps=30)) == list(range(COUNT))
    assert numbers(frames(reordered, fps=10)) == list(range(0, COUNT, 3))
    for num_frames in (2, 3):
        few = frames(reordered, num_frames=num_frames)
        wanted = [k * (COUNT - 1) // (num_frames - 1) for k in range(num_frames)]
        assert few.indices.tolist() == numbers(few) == wanted
        assert np.array_equal(few.pts_seconds, every.pts_seconds[wanted])
