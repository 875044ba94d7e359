"""Files of one size: how many bytes a picture or a clip takes must not tell what it shows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

_END = 12  # bytes of a PNG file's last chunk


def pad_png(files: Sequence[bytes]) -> list[bytes]:
    """PNG files of equal length, by a private chunk that decoders pass over (PNG, 5.4)."""
    return [
        file[:-_END] + _chunk(b"paDd", bytes(count)) + file[-_END:]
        for file, count in zip(files, _missing(files), strict=True)
    ]


def pad_mp4(files: Sequence[bytes]) -> list[bytes]:
    """MP4 files of equal length, by a box of free space (ISO/IEC 14496-12, 8.1.2)."""
    return [
        file + struct.pack(">I4s", 8 + count, b"free") + bytes(count)
        for file, count in zip(files, _missing(files), strict=True)
    ]


def _missing(files: Sequence[bytes]) -> list[int]:
    longest = max(map(len, files))
    return [longest - len(file) for file in files]


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check
