"""Pictures keep the way back to the screen; budgets are held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from omnidata.errors import MediaError, UsageError
from omnidata.media import Budget, Placement, check, frames, image, probe, read_bytes, samples
from omnidata.types import MediaRef, Modality
from tests.measured import cost
from tests.media.bombs import tone, write_wav
from tests.sample import CLIP_FPS

sides = st.integers(1, 400)


def ref(path: Path, kind: Modality = "image") -> MediaRef:
    return MediaRef(kind, path.parent, path.name)


def test_a_screenshot_is_rgb_as_it_was_drawn(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).integers(0, 256, (90, 50, 3), dtype=np.uint8)
    Image.fromarray(drawn).save(tmp_path / "a.png")
    found = image(ref(tmp_path / "a.png"))
    assert np.array_equal(found.pixels, drawn)
    assert found.placement.to_screen(10, 20) == (10, 20)
    shades = np.linspace(0, 65535, 256, dtype=np.uint16).reshape(16, 16)
    Image.fromarray(shades).save(tmp_path / "a.png")
    greys = image(ref(tmp_path / "a.png")).pixels[..., 0]
    assert np.abs(greys.astype(int) - (shades >> 8)).max() <= 1, "of 16 bits"


def test_every_mode_of_png_jpeg_and_webp_becomes_rgb_and_a_gif_is_no_screenshot(
    tmp_path: Path,
) -> None:
    path, modes = tmp_path / "a.png", ("RGBA", "P", "L", "1", "LA", "I;16")
    kinds = [*((mode, "PNG") for mode in modes), ("RGB", "JPEG"), ("RGB", "WEBP")]
    for mode, form in kinds:
        Image.new(mode, (8, 4)).save(path, form)
        assert image(ref(path)).pixels.shape == (4, 8, 3), (mode, form)
        assert probe(ref(path)).codec == form.lower()  # whatever its name
    Image.new("RGB", (30, 20)).save(path, "GIF")
    with pytest.raises(MediaError, match=r"a\.png"):
        image(ref(path))


def test_a_mark_is_found_again_after_resizing_with_padding(tmp_path: Path) -> None:
    screen = np.zeros((1600, 720, 3), dtype=np.uint8)
    screen[780:820, 350:370] = 255
    Image.fromarray(screen).save(tmp_path / "a.png")
    found = image(ref(tmp_path / "a.png"), size=(448, 448))
    assert found.pixels.shape == (448, 448, 3)
    rows, columns = np.nonzero(found.pixels.sum(axis=2) > 300)
    x, y = found.placement.to_screen(columns.mean() + 0.5, rows.mean() + 0.5)
    assert [x, y] == pytest.approx([360, 800], abs=2)
    assert not found.pixels[:, :100].any()  # the padding


@given(st.tuples(sides, sides), st.tuples(sides, sides), st.floats(0, 1), st.floats(0, 1))
def test_the_map_goes_there_and_back(
    screen: tuple[int, int], size: tuple[int, int], across: float, down: float
) -> None:
    placement = Placement.fit(screen, size)
    x, y = across * screen[0], down * screen[1]
    there = placement.to_picture(x, y)
    assert list(placement.to_screen(*there)) == pytest.approx([x, y], abs=1e-6)
    assert -1 <= there[0] <= size[0] + 1
    assert -1 <= there[1] <= size[1] + 1


@pytest.mark.parametrize(
    ("budget", "kind", "name"),
    [
        (Budget(max_bytes=100), "image", "1.png"),
        (Budget(max_pixels=1000), "image", "1.png"),
        (Budget(max_pixels=1000), "video", "1.mp4"),
        (Budget(max_frames=3), "video", "1.mp4"),
        (Budget(max_seconds=0.1), "video", "1.mp4"),
        (Budget(max_decoded_bytes=1000), "video", "1.mp4"),
        (Budget(max_seconds=0.1), "audio", "1.wav"),
        (Budget(max_decoded_bytes=1000), "audio", "1.wav"),
    ],
)
def test_no_budget_is_exceeded(sample: Path, budget: Budget, kind: Modality, name: str) -> None:
    medium = ref(min(sample.glob("*/media/*")) / name, kind)
    calls: dict[Modality, Any] = {
        "image": lambda **limits: image(medium, **limits),
        "video": lambda **limits: frames(medium, which="all", **limits),
        "audio": lambda **limits: samples(medium, **limits),
    }
    assert calls[kind]() is not None
    with pytest.raises(MediaError, match=name):
        calls[kind](budget=budget)


@pytest.mark.parametrize(
    "choice",
    [{}, {"num_frames": 4, "fps": 2.0}, {"num_frames": 0}, {"fps": -1.0}, {"fps": float("inf")},
     {"num_frames": 2.5}, {"fps": float("nan")}, {"which": "keyframe"}],
)  # fmt: skip
def test_frames_need_one_clear_choice(sample: Path, choice: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="frames"):
        frames(ref(min(sample.glob("*/media/*/1.mp4")), "video"), **choice)


def test_probing_tells_what_the_sample_has(sample: Path) -> None:
    episode = min(sample.glob("Chirp/media/*"))
    clip = probe(ref(episode / "1.mp4", "video"))
    assert (clip.codec, clip.width, clip.height, clip.fps) == ("h264", 360, 800, CLIP_FPS)
    assert clip.frames and clip.seconds == pytest.approx(clip.frames / CLIP_FPS, abs=0.01)
    assert clip.audio == "missing"
    track = probe(ref(episode / "1.wav", "audio"))
    told = (track.codec, track.rate, track.channels, track.audio)
    assert told == ("pcm_s16le", 16_000, 1, "present")
    shot = probe(ref(episode / "1.png"))
    assert (shot.width, shot.height) == (720, 1600)
    assert probe(ref(episode / "none.wav", "audio")).audio == "missing"
    with pytest.raises(UsageError, match="rate=0"):
        samples(ref(episode / "1.wav", "audio"), rate=0)


def test_bytes_pass_through_untouched(sample: Path) -> None:
    path = min(sample.glob("*/media/*/1.mp4"))
    assert read_bytes(ref(path, "video")) == path.read_bytes()


def test_audio_that_a_row_holds_is_resampled_or_refused(tmp_path: Path) -> None:
    tone = np.sin(np.arange(8000) * 2 * np.pi * 440 / 8000)
    held = MediaRef("audio", tmp_path, "", {"array": tone.tolist(), "sampling_rate": 8000})
    wave = samples(held)
    assert len(wave) == pytest.approx(16_000, abs=40)
    assert probe(held).audio == "present"
    check(held)
    for broken in ({"array": "x", "sampling_rate": 8000}, {"array": [1.0], "sampling_rate": 0}):
        with pytest.raises(MediaError, match="inline"):
            samples(MediaRef("audio", tmp_path, "", broken))


@pytest.mark.parametrize("channels", [1, 2, 6, 7, 8, 9, 16, 64])
def test_several_channels_are_mixed_without_growing_louder(tmp_path: Path, channels: int) -> None:
    write_wav(tmp_path / "a.wav", channels, 16_000, 32_000)
    heard = samples(ref(tmp_path / "a.wav", "audio"))
    assert float(np.abs(heard).max()) == pytest.approx(0.9, abs=0.01)
    found = probe(ref(tmp_path / "a.wav", "audio"))
    assert found.rms == pytest.approx(0.636, abs=0.01)
    assert found.channels == channels


@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1", "7.1"])
@pytest.mark.parametrize(
    ("name", "codec", "rate"),
    [
        ("a.wav", "pcm_s24le", 44_100),
        ("a.wav", "pcm_f32le", 16_000),
        ("a.flac", "flac", 96_000),
        ("a.m4a", "aac", 44_100),
        ("a.aac", "aac", 48_000),
        ("a.ogg", "libopus", 48_000),
        ("a.mkv", "libopus", 48_000),
        ("a.mp4", "aac", 16_000),
    ],
)
def test_every_layout_is_heard_in_every_format(
    tmp_path: Path, name: str, codec: str, rate: int, layout: str
) -> None:
    with av.open(str(tmp_path / name), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        assert isinstance(stream, av.AudioStream)
        stream.layout = layout
        channels = stream.layout.nb_channels
        values = np.repeat(tone(rate).astype(np.float32), channels)[None]
        frame = av.AudioFrame.from_ndarray(values, format="flt", layout=layout)
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    heard = samples(ref(tmp_path / name, "audio"))
    assert len(heard) == pytest.approx(16_000, abs=2500)
    middle = heard[4000:12_000]
    assert float(np.abs(middle).max()) == pytest.approx(0.9, abs=0.2)


@pytest.mark.parametrize(
    ("channels", "rate"), [(65, 16_000), (400, 16_000), (1, 2**31 - 1), (2, 100_000_000)]
)
def test_sound_with_more_of_anything_than_sound_has_is_refused(
    tmp_path: Path, channels: int, rate: int
) -> None:
    write_wav(tmp_path / "a.wav", channels, rate, 32_000)
    with pytest.raises(MediaError, match=f"{channels} channels at {rate} Hz"):
        samples(ref(tmp_path / "a.wav", "audio"))


def test_a_packet_that_claims_to_last_for_hours_takes_no_memory(tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", 8, 1, 2048)  # 33 KB, 34 minutes, at 16 kHz 1 GB
    found = cost(
        """
        from omnidata.errors import MediaError
        from omnidata.media import Budget, samples
        from omnidata.types import MediaRef
        import av, numpy
        """,
        """
        for ref in (
            MediaRef("audio", Path(sys.argv[1]), "a.wav"),
            MediaRef("audio", Path(sys.argv[1]), "", {"array": [0.5] * 4096, "sampling_rate": 1}),
        ):
            try:
                samples(ref, budget=Budget(max_seconds=300))
            except MediaError as error:
                print(error.what)
        """,
        tmp_path,
    )
    assert found.said.count("continues after 300 s") == 2
    assert found.mebibytes < 150
