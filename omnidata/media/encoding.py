"""Encode pixels as PNG, frames as MP4 and samples as WAV, in memory.

A PNG is little more than a zlib stream, and zlib is what takes the time. With Intel's ISA-L in its
place a decoded frame of a noisy clip, 360 x 800, took 1.4 ms and 350 KB on one core, FFmpeg's
encoder 7.2 ms and 310 KB, and Pillow's fastest level 14 ms and 284 KB.
"""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from omnidata.actions import Screen

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Frame: TypeAlias = "npt.NDArray[np.uint8]"
"""A picture, (height, width, 3), RGB, 0 to 255."""

Samples: TypeAlias = "npt.NDArray[np.float64]"
"""A mono signal, (n,), -1 to 1."""

AUDIO_RATE = 16_000
"""Samples per second of every track that is written here."""

_UP = 2
"""The filter that stores a row as its difference from the one above (PNG, section 9.2)."""

_RGB = 2
_FASTEST = 1


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Encode a picture as PNG, lossless.

    Compare pictures by their pixels: ISA-L does not promise that equal data become equal bytes, and
    has code of its own for each kind of processor. zlib does promise it, but takes twelve times as
    long.

    Args:
        pixels: uint8 (H, W, 3), RGB.
    """
    import numpy as np
    from isal import isal_zlib

    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, width * 3)
    filtered = np.empty((height, width * 3 + 1), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    data = isal_zlib.compress(filtered, _FASTEST)
    chunks = (_chunk(b"IHDR", header), _chunk(b"IDAT", data), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Length, kind, data, and the sum over the last two (PNG, section 5.3)."""
    check = zlib.crc32(data, zlib.crc32(kind))
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def within(size: Screen, longest: int | None) -> Screen:
    """Return a picture's width and height, scaled down so that neither exceeds a limit.

    Examples:
        >>> within((720, 1600), 1000), within((720, 1600), None), within((3000, 1), 1000)
        ((450, 1000), (720, 1600), (1000, 1))
    """
    most = max(size)
    if longest is None or most <= longest:
        return size
    width, height = (max(1, round(extent * longest / most)) for extent in size)
    return width, height


def resize(pixels: npt.NDArray[np.uint8], size: Screen) -> npt.NDArray[np.uint8]:
    """Resize a picture to exactly the given size; proportions may change.

    Args:
        pixels: uint8 (H, W, 3), RGB.
        size: width and height in pixels.
    """
    import numpy as np
    from PIL import Image

    if pixels.shape[1::-1] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))


# Frames to MP4 and samples to WAV, the same bytes on every run.


def encode_mp4(
    frames: Iterable[npt.NDArray[np.uint8]],
    *,
    fps: int | Fraction,
    crf: int = 24,
    sound: npt.NDArray[np.float32] | None = None,
) -> bytes:
    """Encode frames as H.264 in MP4.

    One thread and no time stamps of the encoding: the same frames give the same bytes.

    Args:
        frames: at least one, uint8 (H, W, 3), RGB; even width and height. A picture that stands
            still is converted once if each frame of it is the same object.
        fps: frames per second.
        crf: constant rate factor, 0 (lossless) to 51.
        sound: float32 (N,), `AUDIO_RATE`, which becomes a track in AAC; None for a clip without.

    Returns:
        The file, yuv420p.
    """
    import av
    from av.video.reformatter import VideoReformatter

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
                # Looking ahead took half of the time, and made short clips of screens a tenth
                # smaller.
                "x264-params": "mbtree=0:rc-lookahead=0:b-adapt=0:scenecut=0:weightp=0",
            },
        )
        stream.pix_fmt = "yuv420p"
        track = (
            None if sound is None else container.add_stream("aac", rate=AUDIO_RATE, layout="mono")
        )
        reformatter = VideoReformatter()
        last = None
        for frame in frames:
            if last is None:
                stream.height, stream.width = frame.shape[:2]
            if frame is not last:
                colours = av.VideoFrame.from_ndarray(frame, format="rgb24")
                picture = reformatter.reformat(colours, format="yuv420p")
                last = frame
            picture.pts = None  # the encoder numbers frames that have none
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
        if track is not None and sound is not None:
            heard = av.AudioFrame.from_ndarray(sound[None], format="fltp", layout="mono")
            heard.sample_rate = AUDIO_RATE
            container.mux([*track.encode(heard), *track.encode(None)])
    return buffer.getvalue()


def wav(samples: npt.NDArray[np.float32], rate: int) -> bytes:
    """Encode one channel of sound as a WAV file with 16-bit samples.

    Samples that were 16-bit numbers before come out as they were.

    Args:
        samples: float32 (N,), full scale at -1 and 1; what lies beyond is clipped.
        rate: samples per second, in Hz.

    Examples:
        >>> import numpy as np
        >>> wav(np.array([0, 0.5, -1, 2], np.float32), 16_000)[-8:].hex(" ", 2)
        '0000 0040 0080 ff7f'
    """
    import numpy as np

    numbers = np.rint(samples * np.float32(32768)).clip(-32768, 32767).astype("<i2")
    return _wav_file(numbers.tobytes(), rate)


def encode_wav(samples: Samples) -> bytes:
    """Encode a signal as 16-bit PCM, `AUDIO_RATE`, mono; values beyond -1 and 1 are clipped.

    Full scale is 32767, so 1 is not clipped; `wav` restores 16-bit samples exactly.
    """
    import numpy as np

    return _wav_file((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes(), AUDIO_RATE)


def _wav_file(numbers: bytes, rate: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(numbers)
    return buffer.getvalue()
