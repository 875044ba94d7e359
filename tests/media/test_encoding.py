"""PNG and WAV files that are made in memory hold the very pixels and samples."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from omnidata.media import png, resize, wav, within
from tests.full import FULL


@given(
    pixels=arrays.arrays(
        np.uint8,
        st.tuples(st.integers(1, 40), st.integers(1, 40), st.just(3)),
        elements=st.integers(0, 255),
    )
)
@settings(max_examples=150 if FULL else 40, deadline=None)
def test_a_png_has_the_very_pixels(pixels: np.ndarray) -> None:
    with Image.open(io.BytesIO(png(pixels))) as picture:
        assert (picture.format, picture.mode) == ("PNG", "RGB")
        assert (np.asarray(picture) == pixels).all()


def test_pixels_with_gaps_between_them_are_encoded_as_they_look() -> None:
    whole = np.random.default_rng(0).integers(0, 255, (64, 48, 3)).astype(np.uint8)
    part = whole[::2, 5:40:3]
    assert (np.asarray(Image.open(io.BytesIO(png(part)))) == part).all()


def test_a_plain_screen_is_compressed() -> None:
    assert len(png(np.full((800, 360, 3), 200, np.uint8))) < 800 * 360 * 3 / 100


@given(st.lists(st.integers(-32768, 32767), max_size=200))
def test_16_bit_samples_come_out_as_they_were(numbers: list[int]) -> None:
    wanted = np.array(numbers, "<i2")
    data = wav(wanted.astype(np.float32) / np.float32(32768), 8_000)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 8_000)
        assert (np.frombuffer(file.readframes(len(numbers)), "<i2") == wanted).all()


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000))
def test_a_picture_made_smaller_keeps_its_proportions(width: int, height: int, limit: int) -> None:
    small = within((width, height), limit)
    assert max(small) == min(limit, max(width, height))
    assert min(small) >= 1
    scale = max(small) / max(width, height)
    assert small[0] == pytest.approx(width * scale, abs=1)
    assert small[1] == pytest.approx(height * scale, abs=1)


def test_a_resized_picture_shows_the_whole() -> None:
    tiles = np.kron(np.arange(0, 240, 20).reshape(3, 4), np.ones((40, 40)))
    pixels = np.repeat(tiles[..., None], 3, axis=2).astype(np.uint8)
    small = resize(pixels, (80, 60))
    assert small.shape == (60, 80, 3)
    assert (small[10::20, 10::20, 0] == np.arange(0, 240, 20).reshape(3, 4)).all()
