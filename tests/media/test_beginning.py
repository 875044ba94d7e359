"""A medium that is shown up to a share of its time: nothing that comes later is in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

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


def test_a_picture_has_no_beginning_and_what_is_cut_has_no_file(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="no beginning"):
        media.read_bytes(replace(picture(tmp_path, "a.png", colours(1)), until=0.5))
    ref = clip(tmp_path)
    assert media.linkable(ref)
    assert media.linkable(replace(ref, until=0.5)) is None
