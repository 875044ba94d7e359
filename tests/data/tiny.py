"""Media of a few hundred bytes, with real codecs."""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache

import av
import numpy as np
from PIL import Image

from omnidata.media import AUDIO_RATE, encode_mp4, encode_wav

SIZE = (72, 160)
FPS, FRAMES = 15, 9


def png(seed: int, size: tuple[int, int] = SIZE) -> bytes:
    """A picture of its own."""
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize(size).save(out, "PNG")
    return out.getvalue()


def mp4(seed: int, *, moves: bool = True, size: tuple[int, int] = (36, 80)) -> bytes:
    """A small clip: something walks over noise, or stands still."""
    rng = np.random.default_rng(seed)
    ground = rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    frames = []
    for number in range(FRAMES):
        frame = ground.copy()
        left = 2 * number if moves else 0
        frame[10:18, left : left + 8] = 255 - frame[10:18, left : left + 8]
        frames.append(frame)
    return encode_mp4(frames, fps=FPS)


@cache
def endless() -> bytes:
    """A small file with nearly as many frames as the budget allows, minutes of decoding."""
    ground = np.zeros((1600, 720, 3), dtype=np.uint8)
    short = encode_mp4([ground] * 50, fps=30)
    out = io.BytesIO()
    with av.open(io.BytesIO(short), "r") as source, av.open(out, "w", format="mp4") as target:
        stream = source.streams.video[0]
        copy = target.add_stream_from_template(stream)
        packets = [p for p in source.demux(stream) if p.dts is not None and p.pts is not None]
        length = sum(packet.duration or 0 for packet in packets)
        for turn in range(395):
            for packet in packets:
                again = av.Packet(bytes(packet))
                again.pts = (packet.pts or 0) + turn * length
                again.dts = (packet.dts or 0) + turn * length
                again.time_base, again.is_keyframe = packet.time_base, packet.is_keyframe
                again.stream = copy
                target.mux(again)
    return out.getvalue()


def wav(seed: int, *, seconds: float = FRAMES / FPS, volume: float = 0.2) -> bytes:
    noise = np.random.default_rng(seed).normal(0, volume, round(seconds * AUDIO_RATE))
    return encode_wav(noise)


def bomb() -> bytes:
    """A PNG of a few bytes that says it has 49 million million pixels."""
    body = bytearray(png(0))
    body[16:24] = struct.pack(">II", 7_000_000, 7_000_000)
    body[29:33] = struct.pack(">I", zlib.crc32(bytes(body[12:29])))
    return bytes(body)
