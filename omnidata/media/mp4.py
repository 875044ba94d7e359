"""Frames to MP4, the same bytes on every run."""

from __future__ import annotations

import io
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def encode_mp4(
    frames: Iterable[npt.NDArray[np.uint8]], *, fps: int | Fraction, crf: int = 24
) -> bytes:
    """Encode frames as H.264 in MP4, without sound.

    One thread and no time stamps of the encoding: the same frames give the same bytes.

    Args:
        frames: at least one, uint8 (H, W, 3), RGB; even width and height.
        fps: frames per second.
        crf: constant rate factor, 0 (lossless) to 51.

    Returns:
        The file, yuv420p.
    """
    import av

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
