"""A medium that is shown up to a share of its time: nothing that comes later is in it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from omnidata import media
from omnidata.errors import MediaError
from omnidata.media import AUDIO_RATE, encode_mp4
from omnidata.types import MediaRef
from tests.adapters.media import FPS, FRAMES, clip, coded, colours, picture, tone, track


@pytest.mark.parametrize(
    ("share", "count"), [(0.25, 3), (0.5, 6), (0.99, 12), (0.01, 1), (1.0, 12)]
)
def test_a_clip_ends_before_the_moment(tmp_path: Path, share: float, count: int) -> None:
    cut = replace(clip(tmp_path), until=share)
    for ref in (cut, media.hold(cut)):  # what was read once is not cut again
        found = media.frames(ref, which="all")
        assert len(found.pixels) == count
        greys = found.pixels.reshape(count, -1).mean(axis=1)
        assert greys == pytest.approx([20 * number for number in range(count)], abs=3)
    about = media.media_info(media.hold(cut))
    assert about.seconds == pytest.approx(count / FPS, abs=1 / FPS)
    assert len(media.frames(clip(tmp_path), which="all").pixels) == FRAMES


@pytest.mark.parametrize("name", ["wav", "mp3", "inline"])
def test_a_sound_ends_at_the_moment(tmp_path: Path, name: str) -> None:
    ref = track(tmp_path)
    if name == "mp3":
        ref = coded(tmp_path, "sound.mp3", "mp3", channels=2)
    if name == "inline":
        ref = MediaRef("audio", tmp_path, "", inline={"array": tone(), "sampling_rate": AUDIO_RATE})
    whole, heard = media.samples(ref), media.samples(replace(ref, until=0.25))
    assert len(heard) == pytest.approx(len(whole) / 4, abs=2)
    assert heard[:-200] == pytest.approx(whole[: len(heard) - 200], abs=1e-3)


def test_the_sound_of_a_clip_is_cut_with_it(tmp_path: Path) -> None:
    greys = [np.full((64, 48, 3), 20 * number, np.uint8) for number in range(FRAMES)]
    heard = tone(FRAMES / FPS).astype(np.float32)
    (tmp_path / "clip.mp4").write_bytes(encode_mp4(greys, fps=FPS, sound=heard))
    ref = MediaRef("video", tmp_path, "clip.mp4")
    # AAC is written in pieces of 1024 samples, after one that leads in.
    assert len(media.samples(ref)) == pytest.approx(len(heard), abs=2048)
    assert len(media.samples(replace(ref, until=0.5))) == pytest.approx(len(heard) / 2, abs=2048)
    longer = tone(3 * FRAMES / FPS).astype(np.float32)
    (tmp_path / "clip.mp4").write_bytes(encode_mp4(greys, fps=FPS, sound=longer))
    cut = media.samples(replace(ref, until=0.5))  # at the moment at which the pictures end
    assert len(cut) == pytest.approx(len(heard) / 2, abs=2048)


def written(path: Path, *, sound_from: float | None, pictures_from: float = 0.0) -> MediaRef:
    """Two seconds of pictures, and one second of a tone from that moment on; None for no packet."""
    with av.open(str(path), "w") as container:
        video, audio = container.add_stream("libx264", 10), container.add_stream("flac", 16_000)
        assert isinstance(video, av.VideoStream) and isinstance(audio, av.AudioStream)
        video.width, video.height, audio.layout = 64, 48, "mono"
        for number in range(20):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 9, np.uint8), format="rgb24")
            frame.pts, frame.time_base = round(10 * pictures_from) + number, Fraction(1, 10)
            container.mux(video.encode(frame))
        container.mux(video.encode())
        if sound_from is not None:
            heard = av.AudioFrame.from_ndarray(np.full((1, 16_000), 9_999, np.int16), "s16", "mono")
            heard.sample_rate, heard.pts = 16_000, round(16_000 * sound_from)
            heard.time_base = Fraction(1, 16_000)
            container.mux(audio.encode(heard))
        container.mux(audio.encode())
    return MediaRef("video", path.parent, path.name)


def test_what_is_heard_later_in_a_clip_is_not_in_its_beginning(tmp_path: Path) -> None:
    late = written(tmp_path / "late.mkv", sound_from=1.2)
    assert np.abs(media.samples(replace(late, until=0.5))).max() < 1e-3
    some = np.abs(media.samples(replace(late, until=0.9))) > 0.1
    assert some.argmax() == pytest.approx(1.2 * AUDIO_RATE, abs=2048)
    early = written(tmp_path / "early.mkv", sound_from=0.0, pictures_from=0.75)
    assert len(media.samples(replace(early, until=0.5))) == pytest.approx(4_000, abs=2048)


def test_the_sound_of_a_clip_may_be_empty(tmp_path: Path) -> None:
    ref = written(tmp_path / "clip.mkv", sound_from=None)
    assert len(media.frames(replace(ref, until=0.5), which="all").pixels) == 10


@pytest.mark.parametrize("name", ["clip.mkv", "sound.wav"])
def test_what_is_cut_short_has_no_share(tmp_path: Path, name: str) -> None:
    """A share of what is left of it is not that share."""
    if name == "clip.mkv":
        ref = written(tmp_path / name, sound_from=0.0)
    else:
        (tmp_path / name).write_bytes(media.wav(tone().astype(np.float32), AUDIO_RATE))
        ref = MediaRef("audio", tmp_path, name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:-300])
    for share in (1.0, 0.5):
        with pytest.raises(MediaError, match="cut short"):
            media.hold(replace(ref, until=share))


def test_media_in_memory_are_cut_and_marked_too(tmp_path: Path) -> None:
    held = media.hold(clip(tmp_path))
    assert len(media.frames(replace(held, until=0.25), which="all").pixels) == 3
    still = media.hold(picture(tmp_path, "a.png", np.zeros((48, 64, 3), np.uint8)))
    assert media.image(replace(still, marks=((10, 10, 30, 30),))).pixels.any()


def test_a_picture_has_no_beginning_and_what_is_cut_has_no_file(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="no beginning"):
        media.read_bytes(replace(picture(tmp_path, "a.png", colours(1)), until=0.5))
    ref = clip(tmp_path)
    assert media.linkable(ref)
    assert media.linkable(replace(ref, until=0.5)) is None
