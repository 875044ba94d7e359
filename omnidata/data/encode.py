"""Frames to MP4 and samples to WAV, the same bytes on every run."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterable
from fractions import Fraction

import av
import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]
"""A picture, (height, width, 3), RGB, 0 to 255."""

Samples = NDArray[np.float64]
"""A mono signal, (n,), -1 to 1."""

AUDIO_RATE = 16_000
"""Samples per second of every track that is written here."""


def encode_mp4(frames: Iterable[Frame], *, fps: int | Fraction, crf: int = 24) -> bytes:
    """Encode frames as H.264 in MP4, without sound.

    One thread and no time stamps of the encoding: the same frames give the same bytes.

    Args:
        frames: at least one; even width and height.
        fps: frames per second.
        crf: constant rate factor, 0 (lossless) to 51.

    Returns:
        The file, yuv420p.
    """
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream(
            "libx264",
            rate=fps,
            options={
                "crf": str(crf),
                "preset": "veryfast",
                "threads": "1",
                "flags": "+bitexact",
                # With the macroblock tree the bytes differ from run to run, even on one thread:
                # x264's vector code for it (without vector code they do not) depends on memory.
                "x264-params": "mbtree=0",
            },
        )
        stream.pix_fmt = "yuv420p"
        for index, frame in enumerate(frames):
            if index == 0:
                stream.height, stream.width = frame.shape[:2]
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def encode_wav(samples: Samples) -> bytes:
    """Encode a signal as 16-bit PCM, `AUDIO_RATE`, mono; values beyond -1 and 1 are clipped."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(AUDIO_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return buffer.getvalue()
