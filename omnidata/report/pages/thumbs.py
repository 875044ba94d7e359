"""Small pictures of screenshots, and sound as something to look at."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

from omnidata import media
from omnidata.actions import Screen
from omnidata.types import MediaRef

LONGEST: Final = 711
"""Of a thumbnail's edges, in pixels: a phone's screen of 720 x 1600 becomes 320 x 711."""

_QUALITY: Final = 78
_EFFORT: Final = 2
"""Of WebP's 0 to 6. On screens of the sample 4 took half as long again for 5 % fewer bytes."""

_RATE: Final = 8000
_COLUMNS: Final = 150
_HEIGHT: Final = 40


def thumbnail(ref: MediaRef) -> bytes:
    """A screenshot as a WebP of at most 711 pixels along either edge.

    Raises:
        MediaError: the screenshot cannot be read.
    """
    from PIL import Image

    pixels = media.image(ref).pixels
    size: Screen = media.within((pixels.shape[1], pixels.shape[0]), LONGEST)
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels).resize(size, Image.Resampling.BOX, reducing_gap=2.0)
    picture.save(buffer, "WEBP", quality=_QUALITY, method=_EFFORT)
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Wave:
    """A waveform.

    Attributes:
        path: what `d` of an SVG path has, in a box of `width` x `height`.
        seconds: of sound.
        width, height: of the box.
    """

    path: str
    seconds: float
    width: int = _COLUMNS
    height: int = _HEIGHT


def waveform(ref: MediaRef) -> Wave:
    """The loudest and lowest sample of every column, as the outline of one shape.

    Raises:
        MediaError: the sound cannot be read.
    """
    import numpy as np

    samples = media.samples(ref, rate=_RATE)
    columns = min(_COLUMNS, len(samples))
    starts = np.arange(columns) * len(samples) // columns
    middle = _HEIGHT / 2
    scale = middle / max(float(np.abs(samples).max()), 0.05)  # silence stays a line
    high = middle - scale * np.maximum.reduceat(samples, starts)
    low = middle - scale * np.minimum.reduceat(samples, starts)
    there = " ".join(f"{x} {y:.0f}" for x, y in enumerate(high))
    back = " ".join(f"{x} {y:.0f}" for x, y in reversed([*enumerate(np.maximum(low, high + 1))]))
    return Wave(f"M{there} {back}z", len(samples) / _RATE, width=columns)
