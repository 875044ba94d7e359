"""Frames to MP4 and samples to WAV, the same bytes on every run."""

from __future__ import annotations

import io
import wave

import numpy as np
from numpy.typing import NDArray

from omnidata.media.mp4 import encode_mp4

__all__ = ["AUDIO_RATE", "Frame", "Samples", "encode_mp4", "encode_wav"]

Frame = NDArray[np.uint8]
"""A picture, (height, width, 3), RGB, 0 to 255."""

Samples = NDArray[np.float64]
"""A mono signal, (n,), -1 to 1."""

AUDIO_RATE = 16_000
"""Samples per second of every track that is written here."""


def encode_wav(samples: Samples) -> bytes:
    """Encode a signal as 16-bit PCM, `AUDIO_RATE`, mono; values beyond -1 and 1 are clipped."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(AUDIO_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()
