"""Does a file end where its own header says? Decoders often take what is there and say nothing."""

from __future__ import annotations

import io
import os
import struct
from typing import BinaryIO

from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.stored import stored
from omnidata.types import MediaRef

_STREAMED = 0x7FFF_0000
"""RIFF sizes from here on are what writers put that did not know the size."""

_BOXES = {
    *(b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"ssix"),
    *(b"free", b"skip", b"wide", b"uuid", b"meta", b"emsg", b"prft"),
}
_EBML, _SEGMENT = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67"
_MOST_PARTS = 10_000  # a clip in fragments has two boxes for each
_TAIL = 1 << 16


def cut_short(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """How much of the file is missing by its own header; empty if none, or it cannot be known.

    Known are MP4 and MOV (boxes), Matroska and WebM (segment), WAV, AVI and WebP (RIFF), and JPEG
    (end marker).

    Raises:
        MediaError: the medium is missing, or is not opened at all.
    """
    if ref.inline is not None:
        return ""
    found = stored(ref, budget=budget)
    with io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(8)
        if head[:3] == b"\xff\xd8\xff":
            file.seek(-min(size, _TAIL), os.SEEK_END)
            return "" if b"\xff\xd9" in file.read() else f"{size} bytes without an end marker"
        stated = 0
        if len(head) < 8:
            return ""
        if head[:4] == b"RIFF":
            stated = _riff(file, size)
        elif head[4:] in _BOXES:
            stated = _boxes(file, size)
        elif head[:4] == _EBML:
            stated = _segment(file, size)
    return f"{size} bytes of {stated}" if stated > size else ""


def _riff(file: BinaryIO, size: int) -> int:
    """Where the file, or a chunk of it, ends by its header."""
    file.seek(4)
    (length,) = struct.unpack("<I", file.read(4))
    stated = length + 8 if length < _STREAMED else 0
    begin, end = 12, min(size, stated or size)
    for _ in range(_MOST_PARTS):
        if begin + 8 > end:
            break
        file.seek(begin + 4)
        (length,) = struct.unpack("<I", file.read(4))
        if length >= _STREAMED:
            break
        stated = max(stated, begin + 8 + length)
        begin += 8 + length + length % 2
    return int(stated)


def _boxes(file: BinaryIO, size: int) -> int:
    """Where the last box ends; 0 where a box may end anywhere."""
    end = 0
    for _ in range(_MOST_PARTS):
        if end + 8 > size:
            break
        file.seek(end)
        head = file.read(16)
        (length,) = struct.unpack(">I", head[:4])
        if length == 1 and len(head) == 16:
            (length,) = struct.unpack(">Q", head[8:])
        if length < 8 or head[4:8] not in _BOXES:
            return 0  # "up to the end of the file", or bytes that are no box
        end += length
    return end


def _segment(file: BinaryIO, size: int) -> int:
    """Where the one segment ends; 0 where its size is left open."""
    file.seek(len(_EBML))
    begin = _length(file) + file.tell()
    if begin > size:
        return 0
    file.seek(begin)
    if file.read(len(_SEGMENT)) != _SEGMENT:
        return 0
    length = _length(file)
    return file.tell() + length if length else 0


def _length(file: BinaryIO) -> int:
    """An EBML number: as many bytes as its first has leading zeros, and one; 0 for "unknown"."""
    first = (file.read(1) or b"\0")[0]
    count = 8 - first.bit_length()
    bits = 7 * (count + 1)
    value = int.from_bytes(bytes([first]) + file.read(count)) & ((1 << bits) - 1)
    return 0 if value == (1 << bits) - 1 else value
