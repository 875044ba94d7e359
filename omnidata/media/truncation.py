"""Finds damage that decoders ignore: truncated files and gaps.

FFmpeg decodes what it finds. PyAV reports neither a container that is shorter than its header says
nor bytes that the demuxer skipped, so the structure of the container is checked here.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from omnidata.media.paths import DEFAULT_BUDGET, Budget
from omnidata.media.storage import file_or_bytes
from omnidata.types import MediaRef

_STREAMED = 0x7FFF_0000  # RIFF sizes from here on are of writers that did not know the size
_PAYLOAD = {b"data", b"VP8 ", b"VP8L"}
_BOXES = {
    *(b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"mfra", b"sidx", b"ssix"),
    *(b"free", b"skip", b"wide", b"uuid", b"meta", b"emsg", b"prft"),
}
_JPEG, _JPEG_END = b"\xff\xd8\xff", b"\xff\xd9"
_EBML, _SEGMENT, _CLUSTER = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
_MAX_PARTS = 10_000  # a clip in fragments has two boxes for each
_MAX_BLOCKS = 1_000_000  # frames, and as many pieces of sound
_TAIL = 1 << 16


def missing_bytes(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """Return the missing part of a truncated file, in words; empty if none, or unknown.

    Supported are MP4 and MOV (boxes), Matroska and WebM (segment), WAV, AVI and WebP (the chunk of
    sound or pictures), and JPEG (end marker). Check a JPEG only if it cannot be decoded: others may
    have any bytes after the picture.

    Raises:
        MediaError: the medium is missing, or may not be opened.
    """
    if ref.inline is not None:
        return ""
    with _open(ref, budget) as (file, size, head):
        end = 0
        if head[:3] == _JPEG:
            file.seek(-min(size, _TAIL), os.SEEK_END)
            return "" if _JPEG_END in file.read() else f"{size} bytes without an end marker"
        if head[:4] == b"RIFF" and len(head) >= 8:
            begin, length = _riff_payload(file, size)
            whole = struct.unpack("<I", head[4:8])[0]
            end = begin + length if begin else whole + 8 if whole < _STREAMED else 0
        elif head[4:8] in _BOXES:
            end = _boxes_end(file, size)
        elif head[:4] == _EBML:
            begin, length = _segment(file, size)
            end = begin + length if length else 0
    return f"{size} bytes of {end}" if end > size else ""


def corruption(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET) -> str:
    """Return the position of bytes outside any part of the container, in words; empty if none.

    Matroska, WebM and AVI only: FFmpeg skips such bytes, and everything after them until it finds
    the next part. The decoder reports damage inside a frame.

    Raises:
        MediaError: the medium is missing, or may not be opened.
    """
    if ref.inline is not None:
        return ""
    with _open(ref, budget) as (file, size, head):
        place: int | None = None
        if head[:4] == _EBML:
            begin, length = _segment(file, size)
            place = _non_element(file, begin, begin + length) if length else None
        elif head[:4] == b"RIFF" and head[8:] == b"AVI ":
            begin, length = _riff_payload(file, size)
            place = _non_chunk(file, begin + 4, min(begin + length, size)) if length else None
    return "" if place is None else f"what begins at byte {place} of {size} is no part of it"


@contextmanager
def _open(ref: MediaRef, budget: Budget) -> Iterator[tuple[BinaryIO, int, bytes]]:
    found = file_or_bytes(ref, budget=budget)
    with io.BytesIO(found) if isinstance(found, bytes) else found.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        yield file, size, file.read(12)


def _riff_payload(file: BinaryIO, size: int) -> tuple[int, int]:
    """Return the offset of sound or pictures and their size, 0 if unknown; (0, 0) if none.

    Other chunks do not count: some writers state wrong sizes, which players ignore.
    """
    begin = 12
    for _ in range(_MAX_PARTS):
        if begin + 12 > size:
            break
        file.seek(begin)
        name, length, kind = struct.unpack("<4sI4s", file.read(12))
        begin += 8
        if name in _PAYLOAD or (name == b"LIST" and kind == b"movi"):
            return begin, length if length < _STREAMED else 0
        begin += length + length % 2
    return 0, 0


def _non_chunk(file: BinaryIO, begin: int, end: int) -> int | None:
    for _ in range(_MAX_BLOCKS):
        if begin + 8 > end:
            break
        file.seek(begin)
        name, length = struct.unpack("<4sI", file.read(8))
        if not all(32 <= letter < 127 for letter in name) or begin + 8 + length > end:
            return begin
        begin += 12 if name == b"LIST" else 8 + length + length % 2
    return None


def _boxes_end(file: BinaryIO, size: int) -> int:
    end = 0
    for _ in range(_MAX_PARTS):
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


def _segment(file: BinaryIO, size: int) -> tuple[int, int]:
    """Return the offset of the segment's content, and its size, 0 if unknown."""
    file.seek(len(_EBML))
    begin = _ebml_number(file) + file.tell()
    if begin > size:
        return 0, 0
    file.seek(begin)
    if file.read(len(_SEGMENT)) != _SEGMENT:
        return 0, 0
    length = _ebml_number(file)
    return file.tell(), length


def _non_element(file: BinaryIO, begin: int, end: int) -> int | None:
    for _ in range(_MAX_BLOCKS):
        if begin >= end:
            break
        file.seek(begin)
        first = file.read(1)
        count = 9 - first[0].bit_length() if first else 9
        if count > 4:  # an identifier has one byte to four
            return begin
        name = first + file.read(count - 1)
        length = _ebml_number(file)
        inside = file.tell()
        if name == _CLUSTER:  # its elements follow; only clusters may leave their size open
            begin = inside
        elif inside + length > end:
            return begin
        else:
            begin = inside + length
    return None


def _ebml_number(file: BinaryIO) -> int:
    """Read a number, which has as many more bytes as its first has leading zeros; 0 if unknown."""
    first = (file.read(1) or b"\0")[0]
    count = 8 - first.bit_length()
    bits = 7 * (count + 1)
    value = int.from_bytes(bytes([first]) + file.read(count)) & ((1 << bits) - 1)
    return 0 if value == (1 << bits) - 1 else value
